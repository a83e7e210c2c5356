// SPDX-License-Identifier: Apache-2.0
// Packets for the host path, and packets dropped before it.
#include "core/engine.h"
#include "host/host.h"
#include "ip/router_test.h"
#include "wire/ip.h"
#include "wire/pppoe.h"

// A discovery packet behind 22 bytes of Ethernet and tags, in an mbuf.
static const struct reason *discovery(const uint8_t *packet, uint16_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(engine_pool());
	const struct reason *r;

	assert_non_null(m);
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, 22 + length);
	memset(p, 0, 22);
	memcpy(p + 22, packet, length);
	r = host_pppoe_discovery(m, 22);
	rte_pktmbuf_free(m);
	return r;
}

static void discovery_is_checked(void **state)
{
	// Hostile-input row B1: header, length, tags.
	static const struct {
		const char *what;
		uint8_t packet[24];
		uint16_t length;
		int good;
	} row[] = {
		{"PADI, empty service name", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0}, 10, 1},
		{"PADI, padded", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0}, 24, 1},
		{"no tags", {0x11, 0xa7, 0, 9, 0, 0}, 6, 1},
		{"no header", {0x11, 9, 0, 0}, 4, 0},
		{"empty", {0}, 0, 0},
		{"version 2", {0x21, 9, 0, 0, 0, 0}, 6, 0},
		{"payload past the frame", {0x11, 9, 0, 0, 0, 5, 1, 1, 0, 0}, 10, 0},
		{"tag past the payload", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 19, 0},
		{"half a tag", {0x11, 9, 0, 0, 0, 2, 1, 1}, 8, 0},
		{"unknown code", {0x11, 0x42, 0, 0, 0, 0}, 6, 0},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		const struct reason *r = discovery(row[i].packet, row[i].length);

		if (r != (row[i].good ? &punt_pppoe_discovery : &drop_pppoe_discovery))
			fail_msg("%s: %s", row[i].what, r->name);
	}
	assert_int_equal(punt_pppoe_discovery.kind, REASON_PUNT);
	assert_int_equal(drop_pppoe_discovery.kind, REASON_DROP);
}

static enum host_protocol protocol_of(
	const char *source, const char *destination, uint8_t protocol, uint16_t port, uint8_t type)
{
	struct router_frame f = {.length = 0};
	struct ip_info ip;
	uint8_t *p = router_udp(&f, source, destination, 64, 20);
	uint32_t header = p[0] >> 4 == 4 ? 20 : 40;

	p[header == 20 ? 9 : 6] = protocol;
	if (protocol == 17)
		store16(p + header + 2, port);
	else
		p[header] = type;
	assert_int_equal(ip_parse(p, f.length, f.length, &ip), IP_OK);
	return host_protocol_of(p, &ip);
}

static void protocols_are_told_apart(void **state)
{
	assert_int_equal(protocol_of("0.0.0.0", "255.255.255.255", 17, 67, 0), HOST_DHCP);
	assert_int_equal(protocol_of("10.0.0.1", "10.0.0.2", 17, 68, 0), HOST_NONE);
	assert_int_equal(protocol_of("fe80::1", "ff02::1:2", 17, 547, 0), HOST_DHCP6);
	assert_int_equal(protocol_of("fe80::1", "ff02::1:2", 17, 67, 0), HOST_NONE);
	assert_int_equal(protocol_of("fe80::1", "ff02::2", 58, 0, 133), HOST_ROUTER_SOLICITATION);
	assert_int_equal(protocol_of("fe80::1", "ff02::2", 58, 0, 128), HOST_NONE);
	assert_null(host_reason_of(HOST_NONE));
	assert_ptr_equal(host_reason_of(HOST_DHCP), &punt_dhcp);
	assert_ptr_equal(host_reason_of(HOST_DHCP6), &punt_dhcp6);
	assert_ptr_equal(host_reason_of(HOST_ROUTER_SOLICITATION), &punt_router_solicitation);
}

// BGP by either port, BFD; all others are "host".
static void routing_is_told_apart(void **state)
{
	static const struct {
		uint8_t protocol;
		uint16_t source, destination;
		int routing;
	} row[] = {
		{6, 179, 40000, 1},
		{6, 40000, 179, 1},
		{6, 40000, 22, 0},
		{17, 49152, 3784, 1},
		{17, 49152, 3785, 1},
		{17, 49152, 4784, 1},
		{17, 3784, 5000, 0},
		{17, 40000, 179, 0},
		{132, 40000, 179, 0},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct ip_info ip = {.version = 4,
			.protocol = row[i].protocol,
			.source_port = row[i].source,
			.destination_port = row[i].destination};

		assert_ptr_equal(host_reason_to_us(&ip), row[i].routing ? &punt_routing : &punt_host);
	}
	assert_true(punt_routing.control && punt_dhcp.control && punt_pppoe_discovery.control && !punt_host.control);
}

static void punted_packets_are_counted_and_freed(void **state)
{
	uint64_t host = kit_reason("host"), solicitation = kit_reason("router-discovery");
	unsigned in_use = kit_buffers_in_use();
	struct router_frame f;

	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.1.0.1", 64, 20);
	router_receive("north", &f);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x86dd);
	uint8_t *p = router_udp(&f, "fe80::5", "ff02::2", 255, 20);
	p[6] = 58;
	p[40] = 133;
	router_receive("north", &f);
	assert_int_equal(kit_reason("host"), host + 1);
	assert_int_equal(kit_reason("router-discovery"), solicitation + 1);
	assert_int_equal(kit_buffers_in_use(), in_use);
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discovery_is_checked),
		cmocka_unit_test(protocols_are_told_apart),
		cmocka_unit_test(routing_is_told_apart),
		cmocka_unit_test(punted_packets_are_counted_and_freed),
	};

	return cmocka_run_group_tests(tests, router_start, NULL);
}
