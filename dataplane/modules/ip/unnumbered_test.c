// SPDX-License-Identifier: Apache-2.0
// Next hops outside their interface's networks: IPv6 next hops of IPv4 routes (RFC 8950), as in BGP unnumbered, and
// other on-link ones.
#include "ip/router_test.h"
#include "neighbour/table.h"
#include "route/route.h"
#include "testkit/reasons.h"
#include "wire/arp.h"
#include "wire/nd.h"

// VLAN 9 of south has a link-local address alone.
static int setup(void **state)
{
	struct api_interface bare;

	if (router_start(state) != 0)
		return -1;
	bare = router_interface("south", 9, 0, "fe80::9/64", NULL);
	kit_begin();
	kit_put(API_INTERFACE, "bare", &bare, sizeof(bare));
	kit_neighbour("bare", "fe80::77", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	kit_neighbour("north", "10.1.0.9", peer_north);
	router_put_route("link-local", "198.51.100.0/24", "fe80::77", "bare");
	router_put_route("global", "198.51.101.0/24", "2001:db8:2::9", "");
	router_put_route("unknown", "198.51.102.0/24", "fe80::88", "bare");
	return router_commit();
}

static void send_to(const char *destination)
{
	struct router_frame f;

	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", destination, 64, 30);
	kit_clear();
	router_receive("north", &f);
}

// The packet, IPv4 with one hop less, in a frame of that VLAN (0: none).
static void assert_left(const char *destination, const char *port, uint16_t vlan, const uint8_t mac[6])
{
	struct router_frame want;

	router_ethernet(&want, port, mac, vlan, 0, 0x0800);
	memcpy(want.bytes, mac, 6);
	memcpy(want.bytes + 6, &port_by_name(port)->mac, 6);
	router_udp(&want, "10.1.0.5", destination, 63, 30);
	assert_int_equal(router_count(), 1);
	assert_int_equal(kit_count(port), 1);
	assert_int_equal(router_out(0)->length, want.length);
	assert_memory_equal(router_out(0)->bytes, want.bytes, want.length);
}

static void an_ip6_next_hop(void **state)
{
	for (int round = 0; round < 2; round++) { // the second time by the fast path
		send_to("198.51.100.1");
		assert_left("198.51.100.1", "south", 9, peer_south);
		send_to("198.51.101.1");
		assert_left("198.51.101.1", "south", 0, peer_south);
	}
}

// It is asked for by neighbour discovery, and the IPv4 packet waits.
static void that_is_not_known(void **state)
{
	static const uint8_t mac[6] = {2, 0x33, 0, 0, 0, 3};
	struct router_frame f;
	struct nd_info nd;

	send_to("198.51.102.1");
	assert_int_equal(kit_count("south"), 1);
	const struct kit_frame *out = kit_frame("south", 0);
	assert_int_equal(load16(out->bytes + 16), 0x86dd);
	assert_int_equal(nd_parse(out->bytes + 18, out->length - 18, out->length - 18, &nd), ND_OK);
	assert_int_equal(nd.type, ND_SOLICIT);
	assert_memory_equal(nd.target, router_address("fe80::88").bytes, 16);
	assert_memory_equal(nd.source, router_address("fe80::9").bytes, 16);
	router_ethernet(&f, "south", mac, 9, 0, 0x86dd);
	f.length += nd_put_na(f.bytes + f.length, router_address("fe80::88").bytes, router_address("fe80::9").bytes,
		router_address("fe80::88").bytes, mac, ND_SOLICITED | ND_OVERRIDE);
	kit_clear();
	router_receive("south", &f);
	assert_left("198.51.102.1", "south", 9, mac);
	send_to("198.51.102.1");
	assert_left("198.51.102.1", "south", 9, mac);
	assert_true(kit_balance());
}

// Beside an IPv4 next hop of equal cost.
static void of_both_families(void **state)
{
	struct {
		struct api_route r;
		struct api_route_hop hop;
	} body = {.r = {.prefix = router_address("198.51.103.0/24"), .via = router_address("10.1.0.9"), .further = 1},
		.hop = {.via = router_address("fe80::77"), .interface = "bare"}};
	uint32_t north = 0, south = 0;
	char to[32];

	kit_begin();
	kit_put(API_ROUTE, "both", &body, sizeof(body));
	assert_int_equal(router_commit(), 0);
	for (int i = 0; i < 100; i++) {
		snprintf(to, sizeof(to), "198.51.103.%d", i);
		send_to(to);
		north += kit_count("north");
		south += kit_count("south");
	}
	assert_int_equal(north + south, 100);
	assert_in_range(north, 25, 75);
}

static void are_shown(void **state)
{
	uint32_t count;
	const struct api_route_row *row = kit_rows(API_TABLE_ROUTE, "198.51.100.0/24", sizeof(*row), &count);

	assert_int_equal(count, 1);
	assert_int_equal(row->via.family, 6);
	assert_int_equal(row->via.prefix, 128);
	assert_memory_equal(row->via.bytes, router_address("fe80::77").bytes, 16);
	assert_string_equal(row->interface, "bare");
	assert_int_equal(row->resolved, 1);
}

// The interface is named, so the next hop is on its link: of another network, or of the route's own prefix.
static void on_the_link(void **state)
{
	static const char *const via[] = {"10.99.0.1", "10.2.0.99", "203.0.113.1"};
	static const uint8_t mac[6] = {2, 0x44, 0, 0, 0, 4};

	for (size_t i = 0; i < RTE_DIM(via); i++) {
		struct router_frame f;
		struct arp_info arp;

		kit_begin();
		router_put_route("onlink", "203.0.113.0/24", via[i], "north");
		assert_int_equal(router_commit(), 0);
		send_to("203.0.113.7");
		assert_int_equal(router_count(), 1);
		assert_int_equal(arp_parse(kit_frame("north", 0)->bytes + 14, 46, &arp), ARP_OK);
		assert_memory_equal(arp.target, router_address(via[i]).bytes, 4);
		assert_memory_equal(arp.sender, router_address("10.1.0.1").bytes, 4);
		router_ethernet(&f, "north", mac, 0, 0, 0x0806);
		arp_put(f.bytes + f.length, ARP_REPLY, mac, router_address(via[i]).bytes,
			port_by_name("north")->mac.addr_bytes, router_address("10.1.0.1").bytes);
		f.length += ARP_LENGTH + 18;
		kit_clear();
		router_receive("north", &f);
		assert_left("203.0.113.7", "north", 0, mac);
	}
	kit_begin();
	kit_neighbour("north", "203.0.113.1", peer_north); // as routing daemons give the kernel
	assert_int_equal(router_commit(), 0);
	send_to("203.0.113.7");
	assert_left("203.0.113.7", "north", 0, peer_north);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *prefix, *via, *interface, *text;
	} row[] = {
		{"2001:db8:50::/48", "10.1.0.9", "", "not of the prefix's family"},
		{"10.50.0.0/16", "fe80::77", "", "in no interface's network"},
		{"10.50.0.0/16", "fe80::9", "bare", "our own address"},
		{"10.50.0.0/16", "10.1.0.1", "north", "our own address"},
		{"10.50.0.0/16", "ff02::1", "bare", "cannot be a gateway"},
		{"10.50.0.0/16", "10.99.0.1", "homes", "on no core port"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		kit_begin();
		router_put_route("bad", row[i].prefix, row[i].via, row[i].interface);
		assert_int_not_equal(router_commit(), 0);
		if (strstr(kit_error(), row[i].text) == NULL)
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, kit_error(), row[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(an_ip6_next_hop),
		cmocka_unit_test(that_is_not_known),
		cmocka_unit_test(of_both_families),
		cmocka_unit_test(are_shown),
		cmocka_unit_test(on_the_link),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
