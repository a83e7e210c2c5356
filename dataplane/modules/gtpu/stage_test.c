// SPDX-License-Identifier: Apache-2.0
// Nodes that this program inserts by a registration each, without changes to their neighbours. One stands on an arc
// that plain G-PDUs skip on the fast path. Others stand between session and encapsulation, before and after the
// policer. All packets pass them, and go on as before.
#include "gtpu/tunnel_fixture.h"
#include "rule/view.h"

enum { GTPU, BEFORE, FIRST, SECOND, OUTPUT, STAGES };

static struct {
	uint32_t packets[STAGES];
	int order; // packets that reached a stage before the stage in front of it
} passed;

static void count(int stage, uint16_t n)
{
	passed.packets[stage] += n;
	passed.order |= stage > BEFORE && stage < OUTPUT && passed.packets[stage] > passed.packets[stage - 1];
}

static uint16_t count_gtpu(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	count(GTPU, n);
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static uint16_t count_output(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	count(OUTPUT, n);
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static rte_edge_t go_on(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return session_exit(m);
}

static uint16_t count_before(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	count(BEFORE, n);
	return node_each(graph, node, objs, n, go_on);
}

static uint16_t count_first(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	count(FIRST, n);
	return node_each(graph, node, objs, n, go_on);
}

static uint16_t count_second(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	count(SECOND, n);
	return node_each(graph, node, objs, n, go_on);
}

#define BETWEEN .nb_edges = SESSION_EXIT_COUNT, .next_nodes = {SESSION_EXITS("uplink")}

static struct rte_node_register gtpu_node = {
	.name = "test-gtpu", .process = count_gtpu, .nb_edges = 1, .next_nodes = {"@input-gtpu"}};
NODE_STAGE(gtpu_node, "input-gtpu")
static struct rte_node_register before_node = {.name = "test-before", .process = count_before, BETWEEN};
NODE_STAGE(before_node, "uplink", .before = "policer-uplink")
// By its name it would come first of the two.
static struct rte_node_register second_node = {.name = "test-a", .process = count_second, BETWEEN};
NODE_STAGE(second_node, "uplink", .after = "test-b")
static struct rte_node_register first_node = {.name = "test-b", .process = count_first, BETWEEN};
NODE_STAGE(first_node, "uplink", .after = "policer-uplink")
static struct rte_node_register output_node = {
	.name = "test-output", .process = count_output, .nb_edges = 1, .next_nodes = {"@output-core"}};
NODE_STAGE(output_node, "output-core")

static int setup(void **state)
{
	start_fixture(NULL);
	return 0;
}

static void all_packets_pass(void **state)
{
	static struct frame f;

	for (uint32_t i = 0; i < 4; i++) { // a second vector of each would take the fast path of its session (flow/)
		memset(&passed, 0, sizeof(passed));
		kit_clear();
		gpdu(&f, &cases[i & 1], 4, 9, 1, 40); // plain: without the stage none reaches gtpu-input
		for (int k = 0; k < 64; k++)
			assert_int_equal(kit_send("ran", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_count("internet"), 64);
		for (int stage = 0; stage < STAGES; stage++)
			assert_int_equal(passed.packets[stage], 64);
		assert_int_equal(passed.order, 0);
	}
}

// `show` lists the graph that was assembled.
static void edges_lead_by_the_stages(void **state)
{
	static const char *const way[] = {"test-before", "policer-uplink", "test-b", "test-a"};
	static const char *const exits[] = {"ip-forward", "gtpu-encap", "access-encap", "udp-encap"};
	const struct api_edge_row *r;
	uint32_t rows, to_arc = 0, on[RTE_DIM(way)] = {0}, off[RTE_DIM(exits)] = {0};

	r = kit_rows(API_TABLE_EDGE, "", sizeof(*r), &rows);
	for (uint32_t i = 0; i < rows; i++) {
		if (strcmp(r[i].from, "mss-uplink") == 0) // nothing leads there: no MSS is limited
			continue;
		assert_false(strcmp(r[i].to, "mss-uplink") == 0);
		to_arc += strcmp(r[i].to, way[0]) == 0;
		for (uint32_t k = 0; k < RTE_DIM(exits); k++)
			off[k] += strcmp(r[i].from, way[RTE_DIM(way) - 1]) == 0 && strcmp(r[i].to, exits[k]) == 0;
		for (uint32_t k = 1; k < RTE_DIM(way); k++) {
			on[k] += strcmp(r[i].from, way[k - 1]) == 0 && strcmp(r[i].to, way[k]) == 0;
			assert_false(strcmp(r[i].to, way[k]) == 0 && strcmp(r[i].from, way[k - 1]) != 0);
		}
	}
	assert_true(to_arc > 2);
	for (uint32_t k = 1; k < RTE_DIM(way); k++)
		assert_int_equal(on[k], 4);
	for (uint32_t k = 0; k < RTE_DIM(exits); k++)
		assert_int_equal(off[k], 1);
}

// A stage without a wish wants all packets.
static struct arc_bypass bypass[] = {
	{.arc = {"downlink", "uplink"}}, {.arc = {"input-gtpu"}}, {.arc = {"downlink", "lookup-tunnel"}}};

RTE_INIT(bypasses)
{
	for (uint32_t i = 0; i < RTE_DIM(bypass); i++)
		arc_bypass_register(&bypass[i]);
}

static void fast_paths_are_closed(void **state)
{
	assert_int_equal(bypass[0].closed, 1);
	assert_int_equal(bypass[1].closed, 1);
	assert_int_equal(bypass[2].closed, 0);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(all_packets_pass),
		cmocka_unit_test(edges_lead_by_the_stages),
		cmocka_unit_test(fast_paths_are_closed),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
