// SPDX-License-Identifier: Apache-2.0
// A small router for the tests of this module and its neighbours: two core ports in memory, the whole graph, no threads.
#ifndef IP_ROUTER_TEST_H
#define IP_ROUTER_TEST_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "core/control.h"
#include "core/engine.h"
#include "core/object.h"
#include "core/port_inject.h"
#include "wire/checksum.h"
#include <arpa/inet.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#define MAX_OUT 256

// Frames that left, oldest first.
static struct {
	uint16_t port;
	uint32_t length;
	uint8_t frame[2048];
} router_out[MAX_OUT];
static uint32_t router_outs;

static inline void router_capture(struct port *p, struct rte_mbuf *m, void *arg)
{
	if (router_outs == MAX_OUT)
		return;
	router_out[router_outs].port = p->index;
	router_out[router_outs].length = RTE_MIN(rte_pktmbuf_pkt_len(m), 2048u);
	const void *frame =
		rte_pktmbuf_read(m, 0, router_out[router_outs].length, router_out[router_outs].frame);
	if (frame != router_out[router_outs].frame)
		memcpy(router_out[router_outs].frame, frame, router_out[router_outs].length);
	router_outs++;
}

// ---- objects ---------------------------------------------------------------------------------------------------------

static inline void router_put(uint32_t kind, const char *key, const void *body, uint32_t length)
{
	struct api_object_head head = {.kind = kind, .length = length};

	snprintf(head.key, sizeof(head.key), "%s", key);
	assert_int_equal(object_put(&head, body), 0);
}

static inline void router_delete(uint32_t kind, const char *key)
{
	struct api_object_head head = {.kind = kind};

	snprintf(head.key, sizeof(head.key), "%s", key);
	assert_int_equal(object_delete(&head), 0);
}

static char router_refusal[API_TEXT];

static inline int router_commit(void)
{
	struct api_status status;

	object_commit(&status);
	snprintf(router_refusal, sizeof(router_refusal), "%s", status.text);
	if (status.code == 0)
		engine_run(); // what interfaces announce
	return (int)status.code;
}

// "10.0.0.1/24" or "2001:db8::1" as an address; "" as none.
static inline struct api_address router_address(const char *text)
{
	struct api_address a = {0};
	char host[64];

	if (text == NULL || text[0] == 0)
		return a;
	snprintf(host, sizeof(host), "%s", text);
	char *slash = strchr(host, '/');
	if (slash != NULL)
		*slash = 0;
	a.family = strchr(host, ':') ? 6 : 4;
	a.prefix = slash ? (uint8_t)atoi(slash + 1) : a.family == 4 ? 32 : 128;
	assert_int_equal(inet_pton(a.family == 4 ? AF_INET : AF_INET6, host, a.bytes), 1);
	return a;
}

static inline struct api_interface router_interface(
	const char *port, uint16_t outer, uint16_t inner, const char *a, const char *b)
{
	struct api_interface i = {.outer_vlan = outer, .inner_vlan = inner};

	snprintf(i.port, sizeof(i.port), "%s", port);
	if (a != NULL)
		i.address[i.count++] = router_address(a);
	if (b != NULL)
		i.address[i.count++] = router_address(b);
	return i;
}

static inline void router_put_route(const char *key, const char *prefix, const char *via, const char *interface)
{
	struct api_route r = {.prefix = router_address(prefix), .via = router_address(via)};

	snprintf(r.interface, sizeof(r.interface), "%s", interface);
	router_put(API_ROUTE, key, &r, sizeof(r));
}

static inline void router_put_neighbour(const char *key, const char *interface, const char *address, const uint8_t mac[6])
{
	struct api_neighbour n = {.address = router_address(address)};

	snprintf(n.interface, sizeof(n.interface), "%s", interface);
	memcpy(n.mac, mac, 6);
	router_put(API_NEIGHBOUR, key, &n, sizeof(n));
}

static inline void router_put_port(const char *name, uint32_t role)
{
	struct api_port p = {.driver = "inject", .role = role, .mtu = 1500, .queues = 1};

	router_put(API_PORT, name, &p, sizeof(p));
}

// Core ports "north" (10.1.0.1/24, 2001:db8:1::1/64; VLAN 7: 10.7.0.1/24; VLANs 8 in 9: 10.8.0.1/24) and "south"
// (10.2.0.1/24, 2001:db8:2::1/64, fe80::2/64), access port "homes" (100.64.0.1/10, fe80::1/64).
static inline int router_start(void **state)
{
	struct api_engine e = {
		.workers = 1,
		.packet_buffers = 4096,
		.max_sessions = 16,
		.max_flows = 64,
		.max_held = 20,
		.max_fragments = 64,
		.icmp_error_rate = 1000,
		.echo_rate = 1000,
		.error_indication_rate = 10,
		.punt_rate = 100000,
		.cpu = {-1},
	};
	struct api_interface i;

	engine_mode.virtual_now = rte_get_tsc_hz();
	assert_int_equal(object_begin(), 0);
	router_put(API_ENGINE, "engine", &e, sizeof(e));
	router_put_port("north", API_ROLE_CORE);
	router_put_port("south", API_ROLE_CORE);
	router_put_port("homes", API_ROLE_ACCESS);
	i = router_interface("north", 0, 0, "10.1.0.1/24", "2001:db8:1::1/64");
	router_put(API_INTERFACE, "north", &i, sizeof(i));
	i = router_interface("north", 7, 0, "10.7.0.1/24", NULL);
	router_put(API_INTERFACE, "north.7", &i, sizeof(i));
	i = router_interface("north", 8, 9, "10.8.0.1/24", NULL);
	router_put(API_INTERFACE, "north.8.9", &i, sizeof(i));
	i = router_interface("south", 0, 0, "10.2.0.1/24", "2001:db8:2::1/64");
	i.address[i.count++] = router_address("fe80::2/64");
	router_put(API_INTERFACE, "south", &i, sizeof(i));
	i = router_interface("homes", 0, 0, "100.64.0.1/10", "fe80::1/64");
	router_put(API_INTERFACE, "homes", &i, sizeof(i));
	if (router_commit() != 0) {
		fprintf(stderr, "the router does not start: %s\n", router_refusal);
		return -1;
	}
	inject_on_output(port_by_name("north"), router_capture, NULL);
	inject_on_output(port_by_name("south"), router_capture, NULL);
	inject_on_output(port_by_name("homes"), router_capture, NULL);
	engine_run();
	return 0;
}

// Moves the clock in steps of a tenth of a second and lets packets flow.
static inline void router_wait(double seconds)
{
	for (int i = 0; i < (int)(seconds * 10 + 0.5); i++) {
		engine_advance(rte_get_tsc_hz() / 10 + 1);
		engine_run();
	}
}

// ---- packets ---------------------------------------------------------------------------------------------------------

static const uint8_t peer_north[6] = {0x02, 0x11, 0, 0, 0, 1};
static const uint8_t peer_south[6] = {0x02, 0x22, 0, 0, 0, 2};

struct router_frame {
	uint8_t bytes[2048];
	uint32_t length;
};

static inline void router_append(struct router_frame *f, const void *bytes, uint32_t n)
{
	memcpy(f->bytes + f->length, bytes, n);
	f->length += n;
}

// Ethernet header towards a port of ours, with up to two tags.
static inline void router_ethernet(
	struct router_frame *f, const char *port, const uint8_t from[6], uint16_t outer, uint16_t inner, uint16_t type)
{
	uint8_t tag[4];

	f->length = 0;
	router_append(f, &port_by_name(port)->mac, 6);
	router_append(f, from, 6);
	store16(tag, inner ? 0x88a8 : 0x8100);
	store16(tag + 2, outer);
	if (outer)
		router_append(f, tag, 4);
	store16(tag, 0x8100);
	store16(tag + 2, inner);
	if (inner)
		router_append(f, tag, 4);
	store16(tag, type);
	router_append(f, tag, 2);
}

// A UDP packet behind the Ethernet header; returns where its IP header begins.
static inline uint8_t *router_udp(
	struct router_frame *f, const char *source, const char *destination, uint8_t ttl, uint16_t payload)
{
	struct api_address s = router_address(source), d = router_address(destination);
	uint8_t *p = f->bytes + f->length;
	uint16_t udp = 8 + payload;
	uint32_t header = s.family == 4 ? 20 : 40;

	memset(p, 0, header + udp);
	if (s.family == 4) {
		p[0] = 0x45;
		store16(p + 2, (uint16_t)(20 + udp));
		p[8] = ttl;
		p[9] = 17;
		memcpy(p + 12, s.bytes, 4);
		memcpy(p + 16, d.bytes, 4);
		ip4_checksum_set(p);
	} else {
		p[0] = 0x60;
		store16(p + 4, udp);
		p[6] = 17;
		p[7] = ttl;
		memcpy(p + 8, s.bytes, 16);
		memcpy(p + 24, d.bytes, 16);
	}
	store16(p + header, 4000);
	store16(p + header + 2, 5000);
	store16(p + header + 4, udp);
	store16(p + header + 6, 1);
	f->length += header + udp;
	return p;
}

static inline void router_receive(const char *port, const struct router_frame *f)
{
	assert_int_equal(inject_packet(port_by_name(port), f->bytes, f->length), 0);
	engine_run();
}

// ---- counters --------------------------------------------------------------------------------------------------------

static inline uint64_t router_reason(const char *name)
{
	for (uint16_t i = 0; i < reason_count(); i++)
		if (strcmp(reason_get(i)->name, name) == 0) {
			uint64_t n = 0;

			for (uint32_t w = 0; w < worker_total(); w++)
				n += worker_any(w)->reason[i];
			return n;
		}
	fail_msg("there is no reason %s", name);
	return 0;
}

// in + originated = out + punted + held + dropped + merged
static inline void router_check_sum(void)
{
	uint64_t left = 0, right = 0;

	for (uint32_t i = 0; i < worker_total(); i++) {
		const struct worker *w = worker_any(i);

		left += w->in + w->originated;
		right += w->out + w->punted + (uint64_t)w->held + w->dropped + w->merged;
	}
	assert_int_equal(left, right);
}

static inline int router_main(const struct CMUnitTest *tests, size_t count)
{
	engine_mode.threads = 0;
	if (engine_eal_init("test", 0, 1024, 0, NULL) != 0)
		return 1;
	return _cmocka_run_group_tests("router", tests, count, router_start, NULL);
}

#endif
