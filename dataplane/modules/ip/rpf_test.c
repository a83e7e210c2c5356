// SPDX-License-Identifier: Apache-2.0
// Reverse paths (RFC 3704): packets whose source has no route, or no route by this interface.
#include "ip/router_test.h"
#include "route/route.h"
#include "testkit/mobile.h"
#include "testkit/reasons.h"

static void set(const char *name, uint32_t flags)
{
	int south = name[0] == 's';
	struct api_interface i = router_interface(
		name, 0, 0, south ? "10.2.0.1/24" : "10.1.0.1/24", south ? "2001:db8:2::1/64" : "2001:db8:1::1/64");

	i.flags = flags;
	kit_begin();
	kit_put(API_INTERFACE, name, &i, sizeof(i));
	assert_int_equal(router_commit(), 0);
}

static int setup(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_neighbour("north", "10.1.0.9", peer_north);
	kit_neighbour("north", "2001:db8:1::9", peer_north);
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	router_put_route("a", "198.51.100.0/24", "10.2.0.9", "");
	router_put_route("b", "2001:db8:64::/48", "2001:db8:2::9", "");
	router_put_route("c", "192.0.2.0/24", "10.1.0.9", "");
	router_put_route("d", "2001:db8:c0::/48", "2001:db8:1::9", "");
	assert_int_equal(router_commit(), 0);
	kit_clear();
	return 0;
}

// A packet to a network behind the other interface; 1: it passes, 0: it is dropped for its source.
static int passes(const char *in, const char *source)
{
	int six = strchr(source, ':') != NULL, north = in[0] == 'n';
	struct router_frame f;

	router_ethernet(&f, in, north ? peer_north : peer_south, 0, 0, six ? 0x86dd : 0x0800);
	router_udp(&f, source,
		six ? (north ? "2001:db8:64::1" : "2001:db8:c0::1") : (north ? "198.51.100.1" : "192.0.2.1"), 64, 20);
	struct kit_reasons before = kit_reasons();
	router_receive(in, &f);
	uint32_t left = router_count();
	kit_clear();
	kit_only_rose(&before, "ip-reverse-path", 1 - left);
	return (int)left;
}

static void sources(void **state)
{
	static const struct {
		const char *source;
		uint8_t north[3]; // passes there: unchecked, loose, strict
		uint8_t south[3];
	} row[] = {
		{"10.1.0.9", {1, 1, 1}, {1, 1, 0}},
		{"10.1.0.77", {1, 1, 1}, {1, 1, 0}}, // on the network, not known yet
		{"192.0.2.5", {1, 1, 1}, {1, 1, 0}},
		{"198.51.100.5", {1, 1, 0}, {1, 1, 1}},
		{"203.0.113.5", {1, 0, 0}, {1, 0, 0}}, // nowhere
		{"2001:db8:1::9", {1, 1, 1}, {1, 1, 0}},
		{"2001:db8:64::5", {1, 1, 0}, {1, 1, 1}},
		{"2001:db8:ffff::5", {1, 0, 0}, {1, 0, 0}},
	};
	static const uint32_t flags[] = {0, API_INTERFACE_RPF_LOOSE, API_INTERFACE_RPF_STRICT};

	for (int mode = 0; mode < 3; mode++) {
		set("north", flags[mode]);
		set("south", flags[mode]);
		kit_clear();
		// Twice: the second time the fast path knows the way.
		for (int round = 0; round < 2; round++)
			for (uint32_t i = 0; i < RTE_DIM(row); i++) {
				if (passes("north", row[i].source) != row[i].north[mode])
					fail_msg("mode %d, %s by north", mode, row[i].source);
				if (passes("south", row[i].source) != row[i].south[mode])
					fail_msg("mode %d, %s by south", mode, row[i].source);
			}
	}
}

// A default route counts; a deleted route invalidates its sources at once.
static void routes_come_and_go(void **state)
{
	set("north", API_INTERFACE_RPF_STRICT);
	kit_begin();
	router_put_route("z", "0.0.0.0/0", "10.1.0.9", "");
	assert_int_equal(router_commit(), 0);
	kit_clear();
	assert_true(passes("north", "203.0.113.5"));
	assert_true(passes("north", "203.0.113.5"));
	kit_begin();
	kit_delete(API_ROUTE, "z");
	assert_int_equal(router_commit(), 0);
	assert_false(passes("north", "203.0.113.5"));
}

// A UE's address enters only by a tunnel, whatever routes there are.
static void addresses_of_pools(void **state)
{
	set("north", API_INTERFACE_RPF_LOOSE);
	kit_begin();
	kit_instance("core", "south", NULL, API_LOOKUP_DESTINATION, "192.0.2.0/24");
	assert_int_equal(router_commit(), 0);
	kit_clear();
	assert_false(passes("north", "192.0.2.5"));
	struct api_instance out = kit_instance_body("south", NULL, API_LOOKUP_DESTINATION, "192.0.2.0/24");
	out.flags = API_INSTANCE_UE_OUT; // UEs' packets come back by the data network
	kit_begin();
	kit_put(API_INSTANCE, "core", &out, sizeof(out));
	assert_int_equal(router_commit(), 0);
	kit_clear();
	assert_true(passes("north", "192.0.2.5"));
	kit_begin();
	kit_delete(API_INSTANCE, "core");
	assert_int_equal(router_commit(), 0);
	assert_true(passes("north", "192.0.2.5"));
}

static void refused(void **state)
{
	struct api_interface i = router_interface("north", 9, 0, "10.9.0.1/24", NULL);

	i.flags = API_INTERFACE_RPF_LOOSE | API_INTERFACE_RPF_STRICT;
	kit_begin();
	kit_put(API_INTERFACE, "new", &i, sizeof(i));
	assert_int_not_equal(router_commit(), 0);
	assert_non_null(strstr(kit_error(), "not both"));
	i = router_interface("homes", 0, 0, "100.64.0.1/10", "fe80::1/64");
	i.flags = API_INTERFACE_RPF_LOOSE;
	kit_begin();
	kit_put(API_INTERFACE, "homes", &i, sizeof(i));
	assert_int_not_equal(router_commit(), 0);
	assert_non_null(strstr(kit_error(), "access port"));
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(sources),
		cmocka_unit_test(routes_come_and_go),
		cmocka_unit_test(addresses_of_pools),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
