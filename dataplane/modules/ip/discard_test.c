// SPDX-License-Identifier: Apache-2.0
// Routes that discard on purpose: the packets' fate and their senders' errors.
#include "ip/router_test.h"
#include "route/route.h"
#include "testkit/reasons.h"
#include <errno.h>

static const struct {
	uint32_t discard;
	const char *four, *six; // prefixes
	const char *inside4, *inside6;
	uint8_t code4, code6; // of destination unreachable; 0 of a blackhole
	const char *reason;
} kinds[] = {
	{API_DISCARD_BLACKHOLE, "198.51.100.0/26", "2001:db8:64::/64", "198.51.100.1", "2001:db8:64::1", 0, 0,
		"route-blackhole"},
	{API_DISCARD_UNREACHABLE, "198.51.100.64/26", "2001:db8:64:1::/64", "198.51.100.65", "2001:db8:64:1::1", 1, 6,
		"route-unreachable"},
	{API_DISCARD_PROHIBIT, "198.51.100.128/26", "2001:db8:64:2::/64", "198.51.100.129", "2001:db8:64:2::1", 13, 1,
		"route-prohibit"},
	{API_DISCARD_UNASSIGNED, "198.51.102.0/26", "2001:db8:64:3::/64", "198.51.102.1", "2001:db8:64:3::1", 0, 0,
		"route-unassigned"},
};

static void put_discard(const char *prefix, uint32_t discard)
{
	struct api_route r = {.prefix = router_address(prefix), .discard = discard};

	kit_put(API_ROUTE, prefix, &r, sizeof(r));
}

static void put_all(void)
{
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		put_discard(kinds[i].four, kinds[i].discard);
		put_discard(kinds[i].six, kinds[i].discard);
	}
}

static int setup(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_neighbour("north", "10.1.0.5", peer_north);
	kit_neighbour("north", "2001:db8:1::5", peer_north);
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	router_put_route("0.0.0.0/0", "0.0.0.0/0", "10.2.0.9", "");
	router_put_route("::/0", "::/0", "2001:db8:2::9", "");
	put_all();
	return router_commit();
}

static void send_to(const char *destination)
{
	int six = strchr(destination, ':') != NULL;
	struct router_frame f;

	router_ethernet(&f, "north", peer_north, 0, 0, six ? 0x86dd : 0x0800);
	router_udp(&f, six ? "2001:db8:1::5" : "10.1.0.5", destination, 64, 20);
	kit_clear();
	router_receive("north", &f);
}

// The sender gets an error; without one, only `reason` rises.
static void assert_discarded(const char *destination, uint8_t code, const char *reason)
{
	int six = strchr(destination, ':') != NULL;
	struct kit_reasons before = kit_reasons();

	send_to(destination);
	kit_only_rose(&before, reason, code == 0);
	assert_int_equal(kit_count("south"), 0); // not the default route
	assert_int_equal(kit_count("north"), code != 0);
	if (code == 0)
		return;
	const uint8_t *ip = kit_frame("north", 0)->bytes + 14, *icmp = ip + (six ? 40 : 20);
	assert_int_equal(ip[six ? 6 : 9], six ? 58 : 1);
	assert_int_equal(icmp[0], six ? 1 : 3);
	assert_int_equal(icmp[1], code);
}

static void packets_end_here(void **state)
{
	for (int round = 0; round < 2; round++) // the second time the way is known
		for (size_t i = 0; i < RTE_DIM(kinds); i++) {
			assert_discarded(kinds[i].inside4, kinds[i].code4, kinds[i].reason);
			assert_discarded(kinds[i].inside6, kinds[i].code6, kinds[i].reason);
			send_to("198.51.100.193"); // beside them
			assert_int_equal(kit_count("south"), 1);
		}
	assert_true(kit_balance());
}

// Packets of a vector with another destination go on.
static void beside_packets_that_go_on(void **state)
{
	static const char *const to[] = {"203.0.113.1", "198.51.100.1", "203.0.113.2", "198.51.100.1", "203.0.113.3"};
	struct kit_reasons before = kit_reasons();

	kit_clear();
	for (size_t i = 0; i < RTE_DIM(to); i++) {
		struct router_frame f;

		router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
		router_udp(&f, "10.1.0.5", to[i], 64, 20);
		assert_int_equal(kit_send("north", f.bytes, f.length), 0);
	}
	kit_run();
	kit_only_rose(&before, "route-blackhole", 2);
	assert_int_equal(kit_count("south"), 3);
	for (uint32_t i = 0; i < 3; i++) // in their order
		assert_int_equal(kit_frame("south", i)->bytes[14 + 19], i + 1);
}

// Our own packets cause no error: an answer to an echo request from such an address.
static void our_own_packets(void **state)
{
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		struct kit_reasons before = kit_reasons();
		struct router_frame f;

		router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
		uint8_t *ip = router_udp(&f, kinds[i].inside4, "10.1.0.1", 64, 20);
		memset(ip + 20, 0, 28);
		ip[9] = 1;
		ip[20] = 8;
		store16(ip + 22, 0xf7ff); // the checksum
		ip4_checksum_set(ip);
		kit_clear();
		router_receive("north", &f);
		kit_only_rose(&before, kinds[i].reason, 1);
		assert_int_equal(router_count(), 0);
	}
	assert_true(kit_balance());
}

static void change(const char *prefix, const char *via, uint32_t discard)
{
	struct api_route r = {.prefix = router_address(prefix), .via = router_address(via), .discard = discard};

	assert_int_equal(kit_change(API_ROUTE, prefix, &r, sizeof(r)), 0);
}

static void they_come_change_and_go(void **state)
{
	send_to("203.0.113.9");
	assert_int_equal(kit_count("south"), 1);
	change("203.0.113.0/24", "", API_DISCARD_UNREACHABLE);
	assert_discarded("203.0.113.9", 1, "route-unreachable");
	change("203.0.113.8/29", "10.2.0.9", API_DISCARD_NONE); // a longer prefix leads somewhere
	send_to("203.0.113.9");
	assert_int_equal(kit_count("south"), 1);
	change("203.0.113.8/29", "", API_DISCARD_BLACKHOLE);
	assert_discarded("203.0.113.9", 0, "route-blackhole");
	kit_begin();
	kit_delete(API_ROUTE, "203.0.113.8/29");
	assert_int_equal(router_commit(), 0);
	assert_discarded("203.0.113.9", 1, "route-unreachable");
	change("203.0.113.0/24", "10.2.0.9", API_DISCARD_NONE);
	send_to("203.0.113.9");
	assert_int_equal(kit_count("south"), 1);
	kit_begin();
	kit_delete(API_ROUTE, "203.0.113.0/24");
	assert_int_equal(router_commit(), 0);
}

// Changes of interfaces plan all routes again.
static void they_outlive_interfaces(void **state)
{
	struct api_interface f = router_interface("south", 5, 0, "10.9.0.1/24", NULL);

	kit_begin();
	kit_put(API_INTERFACE, "new", &f, sizeof(f));
	assert_int_equal(router_commit(), 0);
	assert_discarded("198.51.100.1", 0, "route-blackhole");
	kit_begin();
	kit_delete(API_INTERFACE, "new");
	assert_int_equal(router_commit(), 0);
	assert_discarded("198.51.100.1", 0, "route-blackhole");
}

// RFC 5635 §4: a source whose address has a discard route is dropped.
static void no_reverse_path(void **state)
{
	for (int strict = 0; strict < 2; strict++) {
		struct api_interface i = router_interface("north", 0, 0, "10.1.0.1/24", "2001:db8:1::1/64");
		struct kit_reasons before;
		struct router_frame f;

		i.flags = strict ? API_INTERFACE_RPF_STRICT : API_INTERFACE_RPF_LOOSE;
		kit_begin();
		kit_put(API_INTERFACE, "north", &i, sizeof(i));
		assert_int_equal(router_commit(), 0);
		for (size_t k = 0; k < RTE_DIM(kinds); k++) {
			before = kit_reasons();
			router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
			router_udp(&f, kinds[k].inside4, "203.0.113.1", 64, 20);
			router_receive("north", &f);
			kit_only_rose(&before, "ip-reverse-path", 1);
		}
	}
	struct api_interface i = router_interface("north", 0, 0, "10.1.0.1/24", "2001:db8:1::1/64");
	kit_begin();
	kit_put(API_INTERFACE, "north", &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *prefix, *via, *interface, *vrf;
		uint32_t discard, further;
		const char *text;
	} row[] = {
		{"10.50.0.0/16", "10.1.0.9", "", "", API_DISCARD_BLACKHOLE, 0, "leads nowhere"},
		{"10.50.0.0/16", "", "north", "", API_DISCARD_BLACKHOLE, 0, "leads nowhere"},
		{"10.50.0.0/16", "", "", "", API_DISCARD_BLACKHOLE, 1, "leads nowhere"},
		{"10.50.0.0/16", "", "", "", API_DISCARD_UNASSIGNED + 1, 0, "unknown kind"},
		{"10.50.0.1/16", "", "", "", API_DISCARD_BLACKHOLE, 0, "bits set behind"},
		{"fe80::/64", "", "", "", API_DISCARD_BLACKHOLE, 0, "link-local"},
		{"10.1.0.0/24", "", "", "", API_DISCARD_BLACKHOLE, 0, "own network"},
		{"10.50.0.0/16", "", "", "red", API_DISCARD_BLACKHOLE, 0, "no interface is in VRF"},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct {
			struct api_route r;
			struct api_route_hop hop;
		} body = {.r = {.prefix = router_address(row[i].prefix),
				  .via = router_address(row[i].via),
				  .discard = row[i].discard,
				  .further = row[i].further}};

		snprintf(body.r.interface, API_NAME, "%s", row[i].interface);
		snprintf(body.r.vrf, API_NAME, "%s", row[i].vrf);
		body.hop.via = router_address("10.1.0.9");
		kit_begin();
		kit_put(API_ROUTE, "bad", &body, sizeof(body.r) + row[i].further * sizeof(body.hop));
		assert_int_not_equal(router_commit(), 0);
		if (strstr(kit_error(), row[i].text) == NULL)
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, kit_error(), row[i].text);
	}
}

static void they_are_shown(void **state)
{
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		uint32_t count;
		const struct api_route_row *row = kit_rows(API_TABLE_ROUTE, kinds[i].four, sizeof(*row), &count);

		assert_int_equal(count, 1);
		assert_int_equal(row->discard, kinds[i].discard);
		assert_int_equal(row->via.family, 0);
		assert_string_equal(row->interface, "");
		assert_int_equal(row->resolved, 1);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(packets_end_here),
		cmocka_unit_test(beside_packets_that_go_on),
		cmocka_unit_test(our_own_packets),
		cmocka_unit_test(they_come_change_and_go),
		cmocka_unit_test(they_outlive_interfaces),
		cmocka_unit_test(no_reverse_path),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(they_are_shown),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
