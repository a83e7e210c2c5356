// SPDX-License-Identifier: Apache-2.0
// Addresses that a router has on no link: router ids, ends of routing sessions.
#include "ip/router_test.h"
#include "route/route.h"
#include "testkit/reasons.h"
#include "wire/arp.h"
#include "wire/nd.h"

static struct api_interface loopback(const char *vrf, const char *a, const char *b)
{
	struct api_interface i = router_interface("", 0, 0, a, b);

	snprintf(i.vrf, sizeof(i.vrf), "%s", vrf);
	return i;
}

// VLAN 9 of south is unnumbered; VLAN 10 is in VRF red, which has a loopback address of its own.
static int setup(void **state)
{
	struct api_interface lo = loopback("", "10.255.0.1/32", "2001:db8:ff::1/128"),
			     red_lo = loopback("red", "10.255.0.2/32", NULL), bare, red;

	if (router_start(state) != 0)
		return -1;
	bare = router_interface("south", 9, 0, "fe80::9/64", NULL);
	red = router_interface("south", 10, 0, "10.10.0.1/24", NULL);
	snprintf(red.vrf, sizeof(red.vrf), "red");
	kit_begin();
	kit_put(API_INTERFACE, "lo|", &lo, sizeof(lo));
	kit_put(API_INTERFACE, "lo|red", &red_lo, sizeof(red_lo));
	kit_put(API_INTERFACE, "bare", &bare, sizeof(bare));
	kit_put(API_INTERFACE, "red", &red, sizeof(red));
	kit_neighbour("north", "10.1.0.5", peer_north);
	kit_neighbour("north", "2001:db8:1::5", peer_north);
	kit_neighbour("red", "10.10.0.5", peer_south);
	kit_neighbour("bare", "fe80::77", peer_south);
	router_put_route("back", "198.51.100.0/24", "fe80::77", "bare");
	return router_commit();
}

// An ICMP echo request; 1: its answer left, from that address; 0: nothing left.
static int answers(const char *port, uint16_t vlan, const char *from, const char *to)
{
	struct api_address a = router_address(to);
	int six = a.family == 6;
	struct router_frame f;

	router_ethernet(&f, port, port[0] == 'n' ? peer_north : peer_south, vlan, 0, six ? 0x86dd : 0x0800);
	uint8_t *ip = router_udp(&f, from, to, 64, 20), *icmp = ip + (six ? 40 : 20);
	memset(icmp, 0, 28);
	icmp[0] = six ? 128 : 8;
	ip[six ? 6 : 9] = six ? 58 : 1;
	uint16_t sum = checksum_finish(checksum_add(six ? checksum_pseudo(6, ip + 8, ip + 24, 58, 28) : 0, icmp, 28));
	memcpy(icmp + 2, &sum, 2);
	if (!six)
		ip4_checksum_set(ip);
	kit_clear();
	router_receive(port, &f);
	if (router_count() != 1)
		return 0;
	const uint8_t *out = router_out(0)->bytes + (vlan ? 18 : 14);
	return memcmp(out + (six ? 8 : 12), a.bytes, six ? 16 : 4) == 0 && out[six ? 40 : 20] == (six ? 129 : 0);
}

static void are_ours(void **state)
{
	assert_true(answers("north", 0, "10.1.0.5", "10.255.0.1"));
	assert_true(answers("north", 0, "2001:db8:1::5", "2001:db8:ff::1"));
	assert_true(answers("south", 10, "10.10.0.5", "10.255.0.2"));
	assert_false(answers("north", 0, "10.1.0.5", "10.255.0.2")); // of another VRF
	assert_false(answers("south", 10, "10.10.0.5", "10.255.0.1"));
	assert_true(kit_balance());
}

// The host path gets BGP, BFD and all that has no server here.
static void what_they_get(void **state)
{
	static const struct {
		uint8_t protocol;
		uint16_t port;
		const char *reason;
	} row[] = {{6, 179, "routing"}, {17, 4784, "routing"}, {17, 5000, "host"}, {6, 22, "host"}};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct kit_reasons before = kit_reasons();
		struct router_frame f;

		router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
		uint8_t *ip = router_udp(&f, "198.51.100.9", "10.255.0.1", 64, 20);
		ip[9] = row[i].protocol;
		store16(ip + 22, row[i].port);
		if (row[i].protocol == 6)
			ip[32] = 0x50;
		ip4_checksum_set(ip);
		router_receive("north", &f);
		kit_only_rose(&before, row[i].reason, 1);
	}
}

static void have_no_network(void **state)
{
	struct api_address beside = router_address("10.255.0.9");

	assert_int_equal(next_hop_get(ip_route_lookup(0, 4, beside.bytes))->kind, NEXT_HOP_NOWHERE);
	assert_int_equal(
		next_hop_get(ip_route_lookup(0, 4, router_address("10.255.0.1").bytes))->kind, NEXT_HOP_NOWHERE);
}

// We answer questions on a link: a neighbour of an unnumbered interface has no other address to ask for.
static void links_ask_for_them(void **state)
{
	struct router_frame f;
	struct arp_info arp;
	struct nd_info nd;

	router_ethernet(&f, "south", peer_south, 9, 0, 0x0806);
	arp_put(f.bytes + f.length, ARP_REQUEST, peer_south, router_address("10.9.0.5").bytes, NULL,
		router_address("10.255.0.1").bytes);
	f.length += ARP_LENGTH + 18;
	kit_clear();
	router_receive("south", &f);
	assert_int_equal(router_count(), 1);
	assert_int_equal(arp_parse(router_out(0)->bytes + 18, router_out(0)->length - 18, &arp), ARP_OK);
	assert_int_equal(arp.operation, ARP_REPLY);
	assert_memory_equal(arp.sender, router_address("10.255.0.1").bytes, 4);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x86dd);
	f.length += nd_put_ns(f.bytes + f.length, router_address("2001:db8:1::5").bytes, NULL,
		router_address("2001:db8:ff::1").bytes, peer_north);
	kit_clear();
	router_receive("north", &f);
	assert_int_equal(router_count(), 1);
	assert_int_equal(nd_parse(router_out(0)->bytes + 14, ND_LENGTH, ND_LENGTH, &nd), ND_OK);
	assert_int_equal(nd.type, ND_ADVERT);
	struct kit_reasons before = kit_reasons();
	router_ethernet(&f, "south", peer_south, 9, 0, 0x0806); // of another VRF
	arp_put(f.bytes + f.length, ARP_REQUEST, peer_south, router_address("10.9.0.5").bytes, NULL,
		router_address("10.255.0.2").bytes);
	f.length += ARP_LENGTH + 18;
	router_receive("south", &f);
	kit_only_dropped(&before, "arp-not-for-us", 1);
}

// RFC 1812 §4.3.2.4: errors of an interface without an address come from another of ours.
static void unnumbered_interfaces_speak_by_them(void **state)
{
	struct router_frame f;

	router_ethernet(&f, "south", peer_south, 9, 0, 0x0800);
	router_udp(&f, "198.51.100.9", "10.1.0.5", 1, 20); // its TTL ends here
	kit_clear();
	router_receive("south", &f);
	assert_int_equal(router_count(), 1);
	const uint8_t *ip = router_out(0)->bytes + 18;
	assert_int_equal(ip[9], 1);
	assert_int_equal(ip[20], 11);
	assert_memory_equal(ip + 12, router_address("10.255.0.1").bytes, 4);
}

// An unnumbered interface asks for a next hop with it, and believes the answer.
static void unnumbered_interfaces_ask_by_them(void **state)
{
	static const uint8_t mac[6] = {2, 0x33, 0, 0, 0, 3};
	struct router_frame f;
	struct arp_info arp;

	kit_begin();
	router_put_route("onlink", "203.0.113.0/24", "10.99.0.1", "bare");
	assert_int_equal(router_commit(), 0);
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.5", "203.0.113.7", 64, 20);
	kit_clear();
	router_receive("north", &f);
	assert_int_equal(router_count(), 1);
	assert_int_equal(arp_parse(router_out(0)->bytes + 18, router_out(0)->length - 18, &arp), ARP_OK);
	assert_memory_equal(arp.sender, router_address("10.255.0.1").bytes, 4);
	assert_memory_equal(arp.target, router_address("10.99.0.1").bytes, 4);
	router_ethernet(&f, "south", mac, 9, 0, 0x0806);
	arp_put(f.bytes + f.length, ARP_REPLY, mac, router_address("10.99.0.1").bytes,
		port_by_name("south")->mac.addr_bytes, router_address("10.255.0.1").bytes);
	f.length += ARP_LENGTH + 18;
	kit_clear();
	router_receive("south", &f);
	assert_int_equal(router_count(), 1);
	assert_memory_equal(router_out(0)->bytes, mac, 6);
	assert_memory_equal(router_out(0)->bytes + 18 + 16, router_address("203.0.113.7").bytes, 4);
}

// An address of a discard route's prefix stays ours (an aggregate that a router announces).
static void inside_a_discard_route(void **state)
{
	struct api_route r = {.prefix = router_address("10.255.0.0/16"), .discard = API_DISCARD_BLACKHOLE};

	kit_begin();
	kit_put(API_ROUTE, "aggregate", &r, sizeof(r));
	assert_int_equal(router_commit(), 0);
	assert_true(answers("north", 0, "10.1.0.5", "10.255.0.1"));
}

static void refused(const char *text)
{
	assert_int_not_equal(router_commit(), 0);
	if (strstr(kit_error(), text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", kit_error(), text);
}

static void what_is_refused(void **state)
{
	struct api_interface bad[] = {loopback("", "10.255.9.1/32", NULL), loopback("", "10.255.9.1/32", NULL),
		loopback("", "10.255.9.1/32", NULL), loopback("", "10.1.0.1/32", NULL),
		loopback("", "127.0.0.1/8", NULL)};
	static const char *const text[] = {
		"without a port", "without a port", "without a port", "is on interface", "cannot have"};
	struct api_gtsm gtsm = {.hops = 1};

	bad[0].outer_vlan = 7;
	bad[1].mtu = 1500;
	bad[2].flags = API_INTERFACE_DOWN;
	for (size_t i = 0; i < RTE_DIM(bad); i++) {
		kit_begin();
		kit_put(API_INTERFACE, "bad", &bad[i], sizeof(bad[i]));
		refused(text[i]);
	}
	kit_begin();
	router_put_route("bad", "10.50.0.0/16", "10.1.0.9", "lo|");
	refused("is on no core port");
	kit_begin();
	kit_neighbour("lo|", "10.1.0.9", peer_north);
	refused("has no link");
	kit_begin();
	kit_put(API_GTSM, "lo|", &gtsm, sizeof(gtsm));
	refused("no such interface of a core port");
}

static void come_and_go(void **state)
{
	struct api_interface other = loopback("", "10.255.0.3/32", "10.255.0.1/24"); // its length says nothing

	kit_begin();
	kit_put(API_INTERFACE, "lo|", &other, sizeof(other));
	assert_int_equal(router_commit(), 0);
	assert_true(answers("north", 0, "10.1.0.5", "10.255.0.1"));
	assert_true(answers("north", 0, "10.1.0.5", "10.255.0.3"));
	assert_false(answers("north", 0, "2001:db8:1::5", "2001:db8:ff::1"));
	kit_begin();
	kit_delete(API_INTERFACE, "lo|");
	assert_int_equal(router_commit(), 0);
	assert_false(answers("north", 0, "10.1.0.5", "10.255.0.1"));
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(are_ours),
		cmocka_unit_test(what_they_get),
		cmocka_unit_test(have_no_network),
		cmocka_unit_test(links_ask_for_them),
		cmocka_unit_test(unnumbered_interfaces_speak_by_them),
		cmocka_unit_test(unnumbered_interfaces_ask_by_them),
		cmocka_unit_test(inside_a_discard_route),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(come_and_go),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
