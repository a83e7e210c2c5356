// SPDX-License-Identifier: Apache-2.0
// Routes with several next hops of equal cost: flows stay where they are, unless theirs is lost.
#include "core/port_inject.h"
#include "ip/router_test.h"
#include "route/route.h"
#include "testkit/frame.h"
#include <errno.h>

#define FLOWS 200

static void put_several(const char *key, const char *prefix, uint32_t count, const char *const *via)
{
	struct {
		struct api_route r;
		struct api_route_hop hop[API_ROUTE_FURTHER + 1];
	} body = {.r = {.prefix = router_address(prefix), .via = router_address(via[0]), .further = count - 1}};

	for (uint32_t i = 1; i < count; i++)
		body.hop[i - 1].via = router_address(via[i]);
	kit_put(API_ROUTE, key, &body, sizeof(body.r) + (count - 1) * sizeof(body.hop[0]));
}

static const char *const both[] = {"10.1.0.9", "10.2.0.9"}, *const both6[] = {"2001:db8:1::9", "2001:db8:2::9"};

static int setup(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	put_several("four", "198.51.100.0/24", 2, both);
	put_several("six", "2001:db8:64::/48", 2, both6);
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("north", "2001:db8:1::9", peer_north);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	return router_commit();
}

// Flow n, in a tunnel between two others or not.
static void send_flow(uint32_t n, int six, int tunnel)
{
	struct frame f;

	frame_payload(&f, 20);
	frame_udp(&f, (uint16_t)(1000 + n), 5000);
	if (tunnel) {
		frame_ip(&f, six ? "2001:db8:9::5" : "10.9.9.9", six ? "2001:db8:a::5" : "10.9.9.10", 17);
		frame_gtpu(&f, 7, n & 1 ? 9 : 0xff);
		frame_udp(&f, 2152, 2152);
	}
	frame_ip(&f, six ? "2001:db8:7::7" : "10.7.0.9", six ? "2001:db8:64::7" : "198.51.100.7", 17);
	frame_ethernet(&f, port_by_name("north")->mac.addr_bytes, peer_north, six ? 0x86dd : 0x0800);
	frame_tag(&f, 0x8100, 7);
	assert_int_equal(kit_send("north", f.at, f.length), 0);
	kit_run();
}

// By which of the two each flow leaves: 0 north, 1 south, 2 neither.
static void ways_of(uint8_t way[FLOWS], int six, int tunnel)
{
	for (uint32_t n = 0; n < FLOWS; n++) {
		kit_clear();
		send_flow(n, six, tunnel);
		way[n] = 2;
		for (uint32_t i = 0; i < router_count(); i++)
			if (router_out(i)->length > 60)
				way[n] = kit_count("south") != 0;
	}
	kit_clear();
}

static uint32_t count_of(const uint8_t way[FLOWS], uint8_t value)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < FLOWS; i++)
		n += way[i] == value;
	return n;
}

static void arp(const char *from, uint16_t operation)
{
	struct router_frame f;
	uint8_t p[28] = {0, 1, 8, 0, 6, 4, 0, (uint8_t)operation};

	router_ethernet(&f, "north", peer_north, 0, 0, 0x0806);
	memcpy(p + 8, peer_north, 6);
	memcpy(p + 14, router_address(from).bytes, 4);
	memcpy(p + 18, &port_by_name("north")->mac, 6);
	memcpy(p + 24, router_address("10.1.0.1").bytes, 4);
	router_append(&f, p, sizeof(p));
	router_receive("north", &f);
}

// 10.1.0.9 is no static neighbour: asked, answered, lost, and asked again without a packet.
static void a_neighbour_that_fails(void **state)
{
	uint8_t before[FLOWS], way[FLOWS];

	send_flow(0, 0, 0);
	for (uint32_t n = 0; n < FLOWS; n++)
		send_flow(n, 0, 0); // whose first packets ask
	arp("10.1.0.9", 2);
	ways_of(before, 0, 0);
	assert_int_equal(count_of(before, 2), 0);
	assert_in_range(count_of(before, 0), FLOWS / 4, 3 * FLOWS / 4);
	ways_of(way, 0, 0);
	assert_memory_equal(way, before, sizeof(way));
	router_wait(35); // it answers no more
	ways_of(way, 0, 0);
	assert_int_equal(count_of(way, 1), FLOWS); // the other's flows neither moved nor were lost
	router_wait(20);
	ways_of(way, 0, 0);
	assert_int_equal(count_of(way, 1), FLOWS);
	for (int i = 0; i < 100 && count_of(way, 0) == 0; i++) {
		router_wait(0.5);
		arp("10.1.0.9", 2); // believed when it was asked for
		ways_of(way, 0, 0);
	}
	assert_memory_equal(way, before, sizeof(way));
}

static void set_north(uint32_t flags)
{
	struct api_interface i = router_interface("north", 0, 0, "10.1.0.1/24", "2001:db8:1::1/64");

	i.flags = flags;
	kit_begin();
	kit_put(API_INTERFACE, "north", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
}

static void an_interface_that_is_down(void **state)
{
	uint8_t before[FLOWS], way[FLOWS];

	ways_of(before, 1, 0);
	assert_in_range(count_of(before, 0), FLOWS / 4, 3 * FLOWS / 4);
	assert_int_equal(count_of(before, 2), 0);
	set_north(API_INTERFACE_DOWN);
	ways_of(way, 1, 0);
	assert_int_equal(count_of(way, 1), FLOWS);
	set_north(0);
	ways_of(way, 1, 0);
	assert_memory_equal(way, before, sizeof(way));
}

// At once: not when the neighbours behind it fail to answer.
static void a_link_that_goes(void **state)
{
	uint8_t before[FLOWS], way[FLOWS];

	ways_of(before, 1, 0);
	assert_int_equal(count_of(before, 2), 0);
	assert_int_equal(inject_link(port_by_name("north"), 0), 0);
	router_wait(0.1);
	ways_of(way, 1, 0);
	assert_int_equal(count_of(way, 1), FLOWS);
	assert_int_equal(inject_link(port_by_name("north"), 1), 0);
	router_wait(0.1);
	ways_of(way, 1, 0);
	assert_memory_equal(way, before, sizeof(way));
}

// The outer headers are the same for all.
static void the_flow_in_a_tunnel(void **state)
{
	uint8_t way[FLOWS];

	ways_of(way, 1, 1);
	assert_int_equal(count_of(way, 2), 0);
	assert_in_range(count_of(way, 0), FLOWS / 4, 3 * FLOWS / 4);
}

static void refused(const char *text)
{
	assert_int_not_equal(router_commit(), 0);
	if (strstr(kit_error(), text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", kit_error(), text);
}

static void what_is_refused(void **state)
{
	static const char *const twice[] = {"10.1.0.9", "10.1.0.9"}, *const mixed[] = {"2001:db8:1::9", "10.1.0.9"},
				 *const ours[] = {"10.1.0.9", "10.2.0.1"}, *const nowhere[] = {"10.1.0.9", "10.99.0.1"};
	struct {
		struct api_route r;
		struct api_route_hop hop[API_ROUTE_FURTHER + 1];
	} body = {.r = {.prefix = router_address("203.0.113.0/24"), .via = router_address("10.1.0.9"), .further = 1}};
	static const char *const many[] = {
		"10.1.0.9", "10.1.0.10", "10.1.0.11", "10.1.0.12", "10.1.0.13", "10.1.0.14", "10.1.0.15", "10.1.0.16"};

	kit_begin();
	put_several("x", "203.0.113.0/24", 2, twice);
	refused("is there twice");
	kit_begin();
	put_several("x", "2001:db8:71::/48", 2, mixed);
	refused("not of the prefix's family");
	kit_begin();
	put_several("x", "203.0.113.0/24", 2, ours);
	refused("our own address");
	kit_begin();
	put_several("x", "203.0.113.0/24", 2, nowhere);
	refused("in no interface's network");
	snprintf(body.hop[0].interface, API_NAME, "north");
	kit_begin();
	kit_put(API_ROUTE, "x", &body, sizeof(body.r) + sizeof(body.hop[0]));
	refused("has no address");
	kit_begin();
	put_several("x", "203.0.113.0/24", API_ROUTE_FURTHER + 1, many);
	assert_int_equal(router_commit(), 0);
	kit_begin();
	put_several("x", "203.0.113.0/24", 2, both);
	assert_int_equal(router_commit(), 0);
	kit_begin();
	kit_delete(API_ROUTE, "x");
	assert_int_equal(router_commit(), 0);
}

// Sets come and go more often than there are slots of next hops.
static void slots_are_used_again(void **state)
{
	char a[32], b[32];
	const char *via[] = {a, b};

	for (uint32_t n = 0; n < 3 * MAX_NEXT_HOPS / 2; n++) {
		snprintf(a, sizeof(a), "10.1.0.%u", 20 + n % 200);
		snprintf(b, sizeof(b), "10.2.0.%u", 20 + n / 200 % 200);
		kit_begin();
		put_several("x", "203.0.113.0/24", 2, via);
		assert_int_equal(kit_commit(), 0);
	}
	kit_begin();
	kit_delete(API_ROUTE, "x");
	assert_int_equal(router_commit(), 0);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(an_interface_that_is_down),
		cmocka_unit_test(a_link_that_goes),
		cmocka_unit_test(the_flow_in_a_tunnel),
		cmocka_unit_test(a_neighbour_that_fails),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(slots_are_used_again),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
