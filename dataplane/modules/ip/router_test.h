// SPDX-License-Identifier: Apache-2.0
// A small router for the tests of this module and its neighbours: two core ports in memory, the whole graph, no
// threads.
#ifndef IP_ROUTER_TEST_H
#define IP_ROUTER_TEST_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "core/control.h"
#include "testkit/testkit.h"
#include "wire/checksum.h"
#include <string.h>

static inline uint32_t router_count(void)
{
	return kit_count("north") + kit_count("south") + kit_count("homes");
}

// Frame n of those sent since kit_clear(), port by port.
static inline const struct kit_frame *router_out(uint32_t n)
{
	static const char *const port[] = {"north", "south", "homes"};

	assert_true(n < router_count());
	for (int i = 0; i < 2; i++) {
		if (n < kit_count(port[i]))
			return kit_frame(port[i], n);
		n -= kit_count(port[i]);
	}
	return kit_frame("homes", n);
}

static inline int router_commit(void)
{
	int error = kit_commit();

	if (error == 0)
		kit_run(); // what interfaces announce
	return error;
}

static inline struct api_address router_address(const char *text)
{
	return text[0] != 0 ? kit_address(text) : (struct api_address){0};
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
	kit_put(API_ROUTE, key, &r, sizeof(r));
}

// Core ports "north" (10.1.0.1/24, 2001:db8:1::1/64; VLAN 7: 10.7.0.1/24; VLANs 8 in 9: 10.8.0.1/24) and "south"
// (10.2.0.1/24, 2001:db8:2::1/64, fe80::2/64), access port "homes" (100.64.0.1/10, fe80::1/64).
static inline int router_start(void **state)
{
	struct api_engine e = kit_engine();
	struct api_interface i;

	e.max_held = 20;
	e.icmp_error_rate = 1000;
	kit_start(&e);
	kit_begin();
	kit_port("north", API_ROLE_CORE);
	kit_port("south", API_ROLE_CORE);
	kit_port("homes", API_ROLE_ACCESS);
	kit_interface("north", "north", "10.1.0.1/24", "2001:db8:1::1/64");
	i = router_interface("north", 7, 0, "10.7.0.1/24", NULL);
	kit_put(API_INTERFACE, "north.7", &i, sizeof(i));
	i = router_interface("north", 8, 9, "10.8.0.1/24", NULL);
	kit_put(API_INTERFACE, "north.8.9", &i, sizeof(i));
	i = router_interface("south", 0, 0, "10.2.0.1/24", "2001:db8:2::1/64");
	i.address[i.count++] = router_address("fe80::2/64");
	kit_put(API_INTERFACE, "south", &i, sizeof(i));
	kit_interface("homes", "homes", "100.64.0.1/10", "fe80::1/64");
	if (router_commit() == 0)
		return 0;
	print_error("the router does not start: %s\n", kit_error());
	return -1;
}

// Moves the clock in steps of a tenth of a second and lets packets flow.
static inline void router_wait(double seconds)
{
	for (int i = 0; i < (int)(seconds * 10 + 0.5); i++) {
		kit_advance(100001);
	}
}

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
	assert_int_equal(kit_send(port, f->bytes, f->length), 0);
	kit_run();
}

#endif
