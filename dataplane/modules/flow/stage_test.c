// SPDX-License-Identifier: Apache-2.0
// Stages that say which packets they want. A stage that wants none costs nothing; a stage for one session leaves others
// on the fast path; entries learnt before skip no stage.
#include "gtpu/tunnel_fixture.h"
#include "session/stage_fixture.h"

#define PACKETS 64

static struct rte_node_register downlink_node = {.name = "test-downlink",
	.process = stage_process,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("downlink")}};
NODE_STAGE(downlink_node, "downlink", .wants = stage_wants_now)

static const struct tunnel_case several = {"several PDRs", "10.1.0.1", "10.1.0.2", 0x107, 0, 1};
static const struct tunnel_case *const all[] = {&cases[0], &cases[1], &cases[2], &cases[4], &several};

static void send_all(const struct tunnel_case *c)
{
	static struct frame f;

	kit_clear();
	gpdu(&f, c, 4, 9, 1, 40);
	for (int i = 0; i < PACKETS; i++)
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count(c->mobile ? "internet" : "homes"), PACKETS);
}

static void learn(const struct tunnel_case *c)
{
	send_all(c);
	send_all(c);
}

// For equally many packets: expected at the full nodes, and at the stage.
static void expect_ways(const struct tunnel_case *c, uint32_t full, uint32_t passed)
{
	uint64_t before = kit_node_packets("core-input");

	stage.passed = 0;
	send_all(c);
	if (kit_node_packets("core-input") - before != full || stage.passed != passed)
		fail_msg("%s: %u packets took the full nodes, %u passed the stage; expected %u, %u", c->name,
			(uint32_t)(kit_node_packets("core-input") - before), stage.passed, full, passed);
}

static uint32_t edges_to(const char *node)
{
	uint32_t rows, count_of = 0;
	const struct api_edge_row *r = kit_rows(API_TABLE_EDGE, "", sizeof(*r), &rows);

	for (uint32_t i = 0; i < rows; i++)
		count_of += strcmp(r[i].to, node) == 0;
	return count_of;
}

static int setup(void **state)
{
	stage.wants = STAGE_NONE;
	start_fixture(NULL);
	struct kit_mobile *k = upf_session(7);
	kit_sdf(k, &k->pdr[0])->remote = kit_address("198.51.100.0/24");
	k->pdr[0].precedence = 10;
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x107, 3)->match |= API_PDR_UE_IP;
	kit_far_ip(k, 3, API_FROM_CORE, "core");
	put("s7", k);
	return 0;
}

static void none(void **state)
{
	stage.passed = 0;
	for (uint32_t i = 0; i < RTE_DIM(all); i++) {
		learn(all[i]); // the full nodes pass it by, too
		expect_ways(all[i], 0, 0);
	}
	assert_int_equal(stage.passed, 0);
	assert_int_equal(edges_to("test-uplink") + edges_to("test-downlink"), 0);
	assert_int_equal(kit_node_packets("test-uplink") + kit_node_packets("test-downlink"), 0);
}

// The product's own stages of what nothing is configured of: the full nodes pass them by.
static void not_configured(void **state)
{
	static const char *const idle[] = {"nat-uplink", "nat-downlink", "nptv6-uplink", "nptv6-downlink",
		"firewall-uplink", "firewall-downlink", "firewall-tunnel", "firewall-ue", "mss-uplink", "mss-downlink"};
	static struct frame f;
	uint64_t before = kit_node_packets("ip-forward");

	want(STAGE_ALL, NULL); // the full nodes get all
	for (uint32_t i = 0; i < RTE_DIM(all); i++)
		send_all(all[i]);
	downlink_of(&f, "198.51.100.7", "10.45.0.1");
	assert_int_equal(kit_send("internet", f.at, f.length), 0);
	kit_run();
	assert_true(kit_node_packets("ip-forward") > before && kit_node_packets("session-ue") > 0);
	for (uint32_t i = 0; i < RTE_DIM(idle); i++)
		if (kit_node_packets(idle[i]) != 0)
			fail_msg("%s got packets", idle[i]);
	want(STAGE_NONE, NULL);
}

static void all_that_were_learnt(void **state)
{
	for (int i = 0; i < 2; i++) {
		want(STAGE_ALL, NULL);
		assert_true(edges_to("test-uplink") > 0 && edges_to("test-downlink") > 0);
		for (uint32_t k = 0; k < RTE_DIM(all); k++)
			expect_ways(all[k], PACKETS, PACKETS);
		want(STAGE_NONE, NULL);
		for (uint32_t k = 0; k < RTE_DIM(all); k++)
			expect_ways(all[k], 0, 0);
	}
}

static void of_one_session(void **state)
{
	static const char *const name[] = {"s1", "s2", "home-1", "s4", "s7"}; // of `all`

	for (uint32_t i = 0; i < RTE_DIM(all); i++) {
		want(STAGE_SOME, name[i]);
		for (int times = 0; times < 2; times++)
			for (uint32_t k = 0; k < RTE_DIM(all); k++)
				expect_ways(all[k], k == i ? PACKETS : 0, k == i ? PACKETS : 0);
		want(STAGE_NONE, NULL);
		expect_ways(all[i], PACKETS, 0);
		learn(all[i]);
		for (uint32_t k = 0; k < RTE_DIM(all); k++)
			expect_ways(all[k], 0, 0);
	}
	// Another version of the session, and a later session.
	want(STAGE_SOME, "s1");
	put("s1", upf_session(1));
	expect_ways(all[0], PACKETS, PACKETS);
	gone("s1");
	put("s1", upf_session(1));
	learn(all[0]);
	expect_ways(all[0], PACKETS, PACKETS);
	want(STAGE_SOME, "s2");
	learn(all[0]);
	expect_ways(all[0], 0, 0);
	expect_ways(all[1], PACKETS, PACKETS);
	want(STAGE_NONE, NULL);
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test(none), cmocka_unit_test(not_configured),
		cmocka_unit_test(all_that_were_learnt), cmocka_unit_test(of_one_session)};

	return cmocka_run_group_tests(list, setup, NULL);
}
