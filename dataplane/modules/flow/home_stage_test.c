// SPDX-License-Identifier: Apache-2.0
// A stage of others on an arc that the fast path of wireline subscribers leaves out turns it off.
#include "access/agf_test.h"
#include "core/node.h"
#include "rule/view.h"

static uint32_t passed;

static rte_edge_t go_on(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	passed++;
	return session_exit(m);
}

NODE_EACH(count, go_on)

static struct rte_node_register uplink_node = {.name = "test-uplink",
	.process = count,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("uplink")}};
NODE_STAGE(uplink_node, "uplink", .after = "policer-uplink")
static void stage_is_passed(void **state)
{
	static struct frame up, down, to_upf, to_home;

	inner(&up, gateway_ue(1, 4), FAR4, 60);
	gateway_from_home(&up, 1);
	inner(&to_upf, gateway_ue(1, 4), FAR4, 60);
	gateway_to_upf(&to_upf, 1);
	inner(&down, FAR4, gateway_ue(1, 4), 60);
	gateway_from_upf(&down, 1);
	inner(&to_home, FAR4, gateway_ue(1, 4), 60);
	gateway_to_home(&to_home, 1);
	for (uint32_t i = 1; i < 4; i++) {
		expect("access", &up, "core", &to_upf);
		expect("core", &down, "access", &to_home);
		assert_int_equal(passed, i);
	}
	// Both nodes are off: the arc is mobile sessions' too.
	assert_int_equal(kit_node_packets("access-input"), kit_node_packets("flow-access"));
	assert_int_equal(kit_node_packets("core-input"), kit_node_packets("flow-input"));
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(stage_is_passed)};

	return cmocka_run_group_tests(list, setup, NULL);
}
