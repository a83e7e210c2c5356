// SPDX-License-Identifier: Apache-2.0
// The access list of an instance whose interface only routes, without sessions or pools: first packets of a flow, and
// later ones on the fast path.
#include "ip/router_test.h"
#include "testkit/mobile.h"
#include "testkit/reasons.h"

static const char *const server[] = {"10.2.0.9", "2001:db8:2::9"};
static const char *const host[][2] = {{"203.0.113.7", "203.0.113.8"}, {"2001:db8:dead::7", "2001:db8:dead::8"}};

static int setup(void **state)
{
	struct api_instance in = kit_instance_body("north", NULL, API_LOOKUP_DESTINATION, NULL);

	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_put(API_INSTANCE, "lan", &in, sizeof(in));
	for (int six = 0; six < 2; six++) {
		kit_neighbour("south", server[six], peer_south);
		kit_neighbour("north", six ? "2001:db8:1::9" : "10.1.0.9", peer_north);
	}
	router_put_route("back", "203.0.113.0/24", "10.1.0.9", "");
	router_put_route("back6", "2001:db8:dead::/48", "2001:db8:1::9", "");
	return router_commit();
}

// A list of the instance that denies the first host of each family; 0: none.
static void put_list(int there)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule[2];
	} l = {.head = {API_PERMIT, 2}};

	for (int six = 0; six < 2; six++) {
		char prefix[API_NAME];

		snprintf(prefix, sizeof(prefix), "%s/%d", host[six][0], six ? 128 : 32);
		l.rule[six].source = kit_address(prefix);
		l.rule[six].source_port[1] = l.rule[six].destination_port[1] = UINT16_MAX;
		l.rule[six].action = API_DENY;
	}
	kit_begin();
	if (there)
		kit_put(API_ACL, "in/lan", &l, sizeof(l));
	else
		kit_delete(API_ACL, "in/lan");
	assert_int_equal(router_commit(), 0);
}

// Sends three packets by way of the router; returns how many left by the other port.
static uint32_t pass(const char *from, const char *source, const char *destination, int six)
{
	struct router_frame f;

	kit_clear();
	for (int i = 0; i < 3; i++) {
		router_ethernet(&f, from, peer_north, 0, 0, six ? 0x86dd : 0x0800);
		router_udp(&f, source, destination, 64, 40);
		router_receive(from, &f);
	}
	return router_count();
}

static void what_is_routed(void **state)
{
	for (int six = 0; six < 2; six++) {
		assert_int_equal(pass("north", host[six][0], server[six], six), 3);
		put_list(1);
		struct kit_reasons before = kit_reasons();
		assert_int_equal(pass("north", host[six][0], server[six], six), 0); // also of a flow that is known
		kit_only_rose(&before, "firewall-instance-deny", 3);
		assert_int_equal(pass("north", host[six][1], server[six], six), 3);
		// The way back comes into no instance.
		assert_int_equal(pass("south", server[six], host[six][0], six), 3);
		put_list(0);
		assert_int_equal(pass("north", host[six][0], server[six], six), 3);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(what_is_routed),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
