// SPDX-License-Identifier: Apache-2.0
// Interfaces and routes as transactions, and the nodes on real frames.
#include "ip/router_test.h"
#include "route/route.h"
#include "testkit/reasons.h"
#include <errno.h>
#include <stdlib.h>

static void interfaces_that_are_refused(void **state)
{
	static const struct {
		const char *port;
		uint16_t outer, inner;
		const char *a, *b;
		const char *text; // part of the answer
	} row[] = {
		{"west", 0, 0, "10.9.0.1/24", NULL, "there is no port"},
		{"south", 4095, 0, "10.9.0.1/24", NULL, "VLAN ids"},
		{"south", 0, 5, "10.9.0.1/24", NULL, "no outer VLAN"},
		{"south", 0, 0, "10.9.0.1/24", NULL, "same port and VLAN"},
		{"south", 5, 0, "10.1.0.1/24", NULL, "is on interface"},
		{"south", 5, 0, "10.1.0.77/24", NULL, "lies in a network"},
		{"south", 5, 0, "10.0.0.1/8", NULL, "lies in a network"},
		{"south", 5, 0, "2001:db8:1::2/48", NULL, "lies in a network"},
		{"south", 5, 0, "10.9.0.0/24", NULL, "cannot have"},
		{"south", 5, 0, "10.9.0.255/24", NULL, "cannot have"},
		{"south", 5, 0, "127.0.0.1/8", NULL, "cannot have"},
		{"south", 5, 0, "224.0.0.1/24", NULL, "cannot have"},
		{"south", 5, 0, "ff02::1/64", NULL, "cannot have"},
		{"south", 5, 0, "::1/128", NULL, "cannot have"},
		{"south", 5, 0, "10.9.0.1/24", "10.9.0.1/24", "is on interface"},
		{"south", 5, 0, "100.64.0.1/24", NULL, "is on interface"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct api_interface f = router_interface(row[i].port, row[i].outer, row[i].inner, row[i].a, row[i].b);

		kit_begin();
		kit_put(API_INTERFACE, "new", &f, sizeof(f));
		assert_int_not_equal(router_commit(), 0);
		if (strstr(kit_error(), row[i].text) == NULL)
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, kit_error(), row[i].text);
		assert_null(interfaces_by_name(interfaces_now(), "new"));
	}
}

static void routes_that_are_refused(void **state)
{
	static const struct {
		const char *prefix, *via, *interface;
		const char *text;
	} row[] = {
		{"10.50.0.0/16", "", "", "neither a gateway nor an interface"},
		{"10.50.0.0/16", "10.99.0.1", "", "in no interface's network"},
		{"10.50.0.0/16", "", "west", "there is no interface"},
		{"10.50.0.0/16", "", "homes", "on no core port"},
		{"10.50.0.0/16", "10.1.0.1", "", "our own address"},
		{"2001:db8:50::/48", "10.1.0.9", "", "not of the prefix's family"},
		{"10.50.0.0/16", "224.0.0.1", "north", "cannot be a gateway"},
		{"10.50.0.1/16", "10.1.0.9", "", "bits set behind"},
		{"10.1.0.0/24", "10.2.0.9", "", "own network"},
		{"fe80::/64", "2001:db8:1::9", "", "link-local"},
		{"2001:db8:50::/48", "fe80::9", "", "in no interface's network"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		kit_begin();
		router_put_route("good", "10.60.0.0/16", "10.1.0.9", "");
		router_put_route("bad", row[i].prefix, row[i].via, row[i].interface);
		assert_int_not_equal(router_commit(), 0);
		if (strstr(kit_error(), row[i].text) == NULL)
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, kit_error(), row[i].text);
		// All or nothing: the good route of the same transaction is not there either.
		assert_int_equal(ip_route_lookup(0, 4, router_address("10.60.0.1").bytes), NEXT_HOP_NONE);
	}
	kit_begin();
	router_put_route("one", "10.60.0.0/16", "10.1.0.9", "");
	router_put_route("two", "10.60.0.0/16", "10.1.0.8", "");
	assert_int_not_equal(router_commit(), 0);
	assert_non_null(strstr(kit_error(), "is there twice"));
}

static const struct next_hop *hop_to(const char *destination)
{
	struct api_address a = router_address(destination);

	return next_hop_get(ip_route_lookup(0, a.family, a.bytes));
}

static void assert_via(const char *destination, const char *via)
{
	struct api_address a = router_address(via);
	struct ip_address want = ip_address_of(a.family, a.bytes);

	assert_memory_equal(&hop_to(destination)->address, &want, sizeof(want));
}

static void routes_come_change_and_go(void **state)
{
	assert_int_equal(hop_to("10.1.0.77")->kind, NEXT_HOP_GLEAN);
	assert_int_equal(hop_to("2001:db8:2::77")->kind, NEXT_HOP_GLEAN);
	assert_int_equal(hop_to("100.64.0.9")->kind, NEXT_HOP_NOWHERE); // subscribers are not on a network of ours
	kit_begin();
	router_put_route("a", "10.60.0.0/16", "10.1.0.9", "");
	router_put_route("b", "10.60.1.0/24", "10.2.0.9", "");
	router_put_route("c", "2001:db8:60::/48", "fe80::9", "south");
	router_put_route("d", "::/0", "2001:db8:1::9", "");
	assert_int_equal(router_commit(), 0);
	assert_via("10.60.0.1", "10.1.0.9");
	assert_via("10.60.1.1", "10.2.0.9");
	assert_via("2001:db8:60::1", "fe80::9");
	assert_via("2001:db8:61::1", "2001:db8:1::9");
	kit_begin();
	router_put_route("a", "10.60.0.0/16", "10.2.0.8", "");
	kit_delete(API_ROUTE, "b");
	assert_int_equal(router_commit(), 0);
	assert_via("10.60.0.1", "10.2.0.8");
	assert_via("10.60.1.1", "10.2.0.8");
	// An interface that a route needs stays; with its routes it may go.
	kit_begin();
	kit_delete(API_INTERFACE, "south");
	assert_int_not_equal(router_commit(), 0);
	assert_via("10.60.0.1", "10.2.0.8");
	kit_begin();
	for (int i = 0; i < 4; i++)
		kit_delete(API_ROUTE, (const char *[]){"a", "b", "c", "d"}[i]);
	assert_int_equal(router_commit(), 0);
	assert_int_equal(hop_to("10.60.0.1")->kind, NEXT_HOP_NOWHERE);
	assert_int_equal(hop_to("2001:db8:61::1")->kind, NEXT_HOP_NOWHERE);
}

static void an_interface_and_its_routes_move_together(void **state)
{
	struct api_interface f = router_interface("south", 5, 0, "10.9.0.1/24", NULL);

	kit_begin();
	kit_put(API_INTERFACE, "moving", &f, sizeof(f));
	router_put_route("moving", "10.61.0.0/16", "10.9.0.9", "");
	assert_int_equal(router_commit(), 0);
	assert_via("10.61.0.1", "10.9.0.9");
	uint32_t index = hop_to("10.61.0.1")->interface;
	f = router_interface("south", 6, 0, "10.9.1.1/24", NULL);
	kit_begin();
	kit_put(API_INTERFACE, "moving", &f, sizeof(f));
	assert_int_not_equal(router_commit(), 0); // the route's gateway would hang in the air
	assert_non_null(strstr(kit_error(), "moving"));
	kit_begin();
	kit_put(API_INTERFACE, "moving", &f, sizeof(f));
	router_put_route("moving", "10.61.0.0/16", "10.9.1.9", "");
	assert_int_equal(router_commit(), 0);
	assert_via("10.61.0.1", "10.9.1.9");
	assert_int_equal(hop_to("10.61.0.1")->interface, index);
	assert_non_null(interface_find(port_by_name("south")->index, 6, 0));
	assert_null(interface_find(port_by_name("south")->index, 5, 0));
	kit_begin();
	kit_delete(API_INTERFACE, "moving");
	kit_delete(API_ROUTE, "moving");
	assert_int_equal(router_commit(), 0);
	assert_int_equal(hop_to("10.61.0.1")->kind, NEXT_HOP_NOWHERE);
	assert_int_equal(hop_to("10.9.1.9")->kind, NEXT_HOP_NOWHERE);
}

static void many_routes_make_the_table_grow(void **state)
{
	char key[32], prefix[64];

	kit_begin();
	for (int i = 0; i < 3000; i++) {
		snprintf(key, sizeof(key), "r%d", i);
		snprintf(prefix, sizeof(prefix), "20.%d.%d.0/24", i / 256, i % 256);
		router_put_route(key, prefix, i % 2 ? "10.1.0.9" : "10.2.0.9", "");
	}
	assert_int_equal(router_commit(), 0);
	assert_via("20.0.3.1", "10.1.0.9");
	assert_via("20.11.182.1", "10.2.0.9");
	assert_int_equal(hop_to("20.12.0.1")->kind, NEXT_HOP_NOWHERE);
	kit_begin();
	for (int i = 0; i < 3000; i++) {
		snprintf(key, sizeof(key), "r%d", i);
		kit_delete(API_ROUTE, key);
	}
	assert_int_equal(router_commit(), 0);
	assert_int_equal(hop_to("20.0.3.1")->kind, NEXT_HOP_NOWHERE);
	assert_int_equal(hop_to("10.1.0.9")->kind, NEXT_HOP_GLEAN);
}

static void addresses_are_ours_where_they_are(void **state)
{
	uint32_t north = interfaces_by_name(interfaces_now(), "north")->index;
	uint32_t south = interfaces_by_name(interfaces_now(), "south")->index;
	uint16_t homes = port_by_name("homes")->index;

	assert_true(ip_is_local(0, 4, router_address("10.1.0.1").bytes));
	assert_true(ip_is_local(0, 6, router_address("fe80::1").bytes));
	assert_false(ip_is_local(0, 4, router_address("10.1.0.2").bytes));
	assert_true(ip_is_local_on(4, router_address("10.1.0.1").bytes, north));
	assert_false(ip_is_local_on(4, router_address("10.1.0.1").bytes, south));
	assert_true(ip_is_gateway(4, router_address("100.64.0.1").bytes, homes));
	assert_false(ip_is_gateway(4, router_address("10.1.0.1").bytes, port_by_name("north")->index));
	assert_memory_equal(ip_source_on_port(4, homes), router_address("100.64.0.1").bytes, 4);
	assert_memory_equal(ip_source_on_interface(6, south), router_address("2001:db8:2::1").bytes, 16);
	assert_memory_equal(
		ip_source_towards(6, south, router_address("fe80::77").bytes), router_address("fe80::2").bytes, 16);
	assert_null(ip_source_on_interface(6, interfaces_by_name(interfaces_now(), "north.7")->index));
}

static void static_neighbours(void)
{
	kit_begin();
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	kit_neighbour("north.7", "10.7.0.9", peer_north);
	kit_neighbour("north.8.9", "10.8.0.9", peer_north);
	router_put_route("n4", "10.60.0.0/16", "10.2.0.9", "");
	router_put_route("n6", "2001:db8:60::/48", "2001:db8:2::9", "");
	assert_int_equal(router_commit(), 0);
}

static void packets_are_forwarded(void **state)
{
	static const struct {
		const char *source, *destination;
		const char *out;
		uint16_t outer, inner; // of what leaves
		uint16_t in_vlan;
	} row[] = {
		{"10.1.0.5", "10.2.0.9", "south", 0, 0, 0},
		{"10.1.0.5", "10.60.3.4", "south", 0, 0, 0},
		{"2001:db8:1::5", "2001:db8:60::1", "south", 0, 0, 0},
		{"10.1.0.5", "10.7.0.9", "north", 7, 0, 0},
		{"10.1.0.5", "10.8.0.9", "north", 8, 9, 0},
		{"10.7.0.5", "10.60.3.4", "south", 0, 0, 7},
	};

	static_neighbours();
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct api_address s = router_address(row[i].source);
		struct router_frame in, want;

		router_ethernet(&in, "north", peer_north, row[i].in_vlan, 0, s.family == 4 ? 0x0800 : 0x86dd);
		router_udp(&in, row[i].source, row[i].destination, 64, 100);
		in.length += 6; // padding that must not go on
		router_ethernet(
			&want, row[i].out, peer_north, row[i].outer, row[i].inner, s.family == 4 ? 0x0800 : 0x86dd);
		memcpy(want.bytes, row[i].out[0] == 's' ? peer_south : peer_north, 6);
		memcpy(want.bytes + 6, &port_by_name(row[i].out)->mac, 6);
		router_udp(&want, row[i].source, row[i].destination, 63, 100);
		kit_clear();
		router_receive("north", &in);
		assert_int_equal(router_count(), 1);
		assert_int_equal(kit_count(row[i].out), router_count());
		assert_int_equal(router_out(0)->length, want.length);
		assert_memory_equal(router_out(0)->bytes, want.bytes, want.length);
	}
	assert_true(kit_balance());
}

// Changes to a good frame, each with its drop reason.
static void put_checksum(struct router_frame *f)
{
	ip4_checksum_set(f->bytes + 14);
}

static void bad_checksum(struct router_frame *f)
{
	f->bytes[24] ^= 1;
}

static void short_frame(struct router_frame *f)
{
	f->length = 30;
}

static void cut_frame(struct router_frame *f)
{
	f->length = 50;
}

static void other_mac(struct router_frame *f)
{
	f->bytes[5] ^= 0x40;
}

static void three_tags(struct router_frame *f)
{
	static const uint8_t tags[12] = {0x81, 0, 0, 1, 0x81, 0, 0, 1, 0x81, 0, 0, 1};

	memcpy(f->bytes + 12, tags, 12);
}

static void unknown_vlan(struct router_frame *f)
{
	static const uint8_t tag[6] = {0x81, 0, 0, 99, 8, 0};

	memcpy(f->bytes + 12, tag, 6);
}

static void unknown_type(struct router_frame *f)
{
	f->bytes[12] = 0x12;
}

static void other_version(struct router_frame *f)
{
	f->bytes[12] = 0x86;
	f->bytes[13] = 0xdd;
}

static void bad_ihl(struct router_frame *f)
{
	f->bytes[14] = 0x44;
}

static void long_length(struct router_frame *f)
{
	f->bytes[16] = 0x40;
	put_checksum(f);
}

static void udp_length(struct router_frame *f)
{
	store16(f->bytes + 38, 7);
}

static void loopback_source(struct router_frame *f)
{
	f->bytes[26] = 127;
	put_checksum(f);
}

static void zero_destination(struct router_frame *f)
{
	f->bytes[30] = 0;
	put_checksum(f);
}

static void multicast_destination(struct router_frame *f)
{
	f->bytes[30] = 224;
	put_checksum(f);
}

static void link_local_destination(struct router_frame *f)
{
	f->bytes[30] = 169;
	f->bytes[31] = 254;
	put_checksum(f);
}

static void to_us(struct router_frame *f, uint8_t protocol)
{
	memcpy(f->bytes + 30, router_address("10.1.0.1").bytes, 4);
	f->bytes[23] = protocol;
	put_checksum(f);
}

static void ipip_to_us(struct router_frame *f)
{
	to_us(f, 4);
}

static void gre_to_us(struct router_frame *f)
{
	to_us(f, 47);
}

static void ip6_to_us(struct router_frame *f)
{
	to_us(f, 41);
}

static void udp_to_us(struct router_frame *f)
{
	to_us(f, 17);
}

// An IPv6 packet in place of the IPv4 one: `length` bytes behind its header.
static void six(struct router_frame *f, const char *to, uint8_t next_header, const uint8_t *bytes, uint16_t length)
{
	uint8_t head[40] = {0x60, 0, 0, 0, (uint8_t)(length >> 8), (uint8_t)length, next_header, 255};

	memcpy(head + 8, router_address("2001:db8:1::5").bytes, 16);
	memcpy(head + 24, router_address(to).bytes, 16);
	router_ethernet(f, "north", peer_north, 0, 0, 0x86dd);
	router_append(f, head, sizeof(head));
	router_append(f, bytes, length);
}

static void nd_redirect(struct router_frame *f)
{
	static const uint8_t redirect[40] = {137}; // RFC 4861 §4.5

	six(f, "2001:db8:1::1", 58, redirect, sizeof(redirect));
}

// Hop-by-hop options behind destination options (RFC 8200 §4.1).
static void late_hop_by_hop(struct router_frame *f)
{
	static const uint8_t options[24] = {[1] = 0, [2] = 1, [3] = 4, [8] = 59, [10] = 1, [11] = 4};

	six(f, "2001:db8:2::9", 60, options, sizeof(options));
}

static void bad_frames_have_their_reasons(void **state)
{
	static const struct {
		void (*change)(struct router_frame *f);
		const char *reason;
	} row[] = {
		{short_frame, "ip-short"},
		{cut_frame, "ip-length"},
		{other_mac, "mac-not-ours"},
		{three_tags, "ethernet-tags"},
		{unknown_vlan, "interface-unknown"},
		{unknown_type, "ethertype-unknown"},
		{bad_checksum, "ip-checksum"},
		{other_version, "ip-version"},
		{bad_ihl, "ip-header-length"},
		{long_length, "ip-length"},
		{udp_length, "ip-transport-header"},
		{loopback_source, "ip-martian-source"},
		{zero_destination, "ip-martian-destination"},
		{multicast_destination, "ip-multicast"},
		{link_local_destination, "forward-link-local"},
		{ipip_to_us, "ip-protocol-unreachable"},
		{gre_to_us, "ip-protocol-unreachable"},
		{ip6_to_us, "ip-protocol-unreachable"},
		{udp_to_us, "host"},
		{nd_redirect, "ip-redirect"},
		{late_hop_by_hop, "ip-extension-headers"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct kit_reasons before = kit_reasons();
		struct router_frame f;

		router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
		router_udp(&f, "10.1.0.5", "10.2.0.9", 64, 20);
		row[i].change(&f);
		kit_clear();
		router_receive("north", &f);
		kit_only_rose(&before, row[i].reason, 1);
		assert_int_equal(router_count(), 0);
	}
	assert_true(kit_balance());
}

// An ICMP error goes back to 10.1.0.5.
static void assert_icmp_error(uint8_t type, uint8_t code)
{
	assert_int_equal(router_count(), 1);
	assert_int_equal(kit_count("north"), router_count());
	const uint8_t *ip = router_out(0)->bytes + 14;
	assert_int_equal(ip[9], 1);
	assert_memory_equal(ip + 12, router_address("10.1.0.1").bytes, 4);
	assert_memory_equal(ip + 16, router_address("10.1.0.5").bytes, 4);
	assert_int_equal(ip[20], type);
	assert_int_equal(ip[21], code);
}

static void routers_tell_senders(void **state)
{
	struct router_frame f;

	kit_begin();
	kit_neighbour("north", "10.1.0.5", peer_north);
	assert_int_equal(router_commit(), 0);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.2.0.9", 1, 20);
	kit_clear();
	router_receive("north", &f);
	assert_icmp_error(11, 0);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.99.0.9", 64, 20);
	kit_clear();
	router_receive("north", &f);
	assert_icmp_error(3, 0);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	uint8_t *ip = router_udp(&f, "10.1.0.5", "10.2.0.9", 64, 1500);
	ip[6] = 0x40;
	ip4_checksum_set(ip);
	kit_clear();
	router_receive("north", &f);
	assert_icmp_error(3, 4);
	assert_int_equal(load16(router_out(0)->bytes + 14 + 20 + 6), 1500);
	// Without DF it goes on in pieces.
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "10.2.0.9", 64, 1500);
	kit_clear();
	router_receive("north", &f);
	assert_int_equal(router_count(), 2);
	assert_int_equal(kit_count("south"), router_count());
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interfaces_that_are_refused),
		cmocka_unit_test(routes_that_are_refused),
		cmocka_unit_test(routes_come_change_and_go),
		cmocka_unit_test(an_interface_and_its_routes_move_together),
		cmocka_unit_test(many_routes_make_the_table_grow),
		cmocka_unit_test(addresses_are_ours_where_they_are),
		cmocka_unit_test(packets_are_forwarded),
		cmocka_unit_test(bad_frames_have_their_reasons),
		cmocka_unit_test(routers_tell_senders),
	};

	return cmocka_run_group_tests(tests, router_start, NULL);
}
