// SPDX-License-Identifier: Apache-2.0
// Stages that this program inserts: before a node that plain G-PDUs pass by on the fast path, and between session and
// encapsulation, one before the other. All packets pass them, and go on as before.
#include "gtpu/plain_fixture.h"

static struct {
	uint32_t outer, first, second;
	int order; // packets that came to `second` before `first`
} passed;

static uint16_t count_outer(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	passed.outer += n;
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static uint16_t count_first(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	passed.first += n;
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static uint16_t count_second(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	passed.second += n;
	passed.order |= passed.second > passed.first;
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static struct rte_node_register outer_node = {
	.name = "test-outer", .process = count_outer, .nb_edges = 1, .next_nodes = {"gtpu-input"}};
NODE_STAGE(outer_node, "gtpu-input")
// By its name it would come first.
static struct rte_node_register second_node = {
	.name = "test-a", .process = count_second, .nb_edges = 1, .next_nodes = {"policer-uplink"}};
NODE_STAGE(second_node, "policer-uplink")
static struct rte_node_register first_node = {
	.name = "test-b", .process = count_first, .nb_edges = 1, .next_nodes = {"test-a"}};
NODE_STAGE(first_node, "test-a")

static int setup(void **state)
{
	start_fixture();
	return 0;
}

static void all_packets_pass(void **state)
{
	static struct frame f;

	for (uint32_t i = 0; i < 2; i++) {
		memset(&passed, 0, sizeof(passed));
		kit_clear();
		gpdu(&f, &cases[i], 4, 9, 1, 40); // plain: without the stage no packet of it comes to gtpu-input
		for (int k = 0; k < 64; k++)
			assert_int_equal(kit_send("ran", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_count("internet"), 64);
		assert_int_equal(passed.outer, 64);
		assert_int_equal(passed.first, 64);
		assert_int_equal(passed.second, 64);
		assert_int_equal(passed.order, 0);
	}
}

// The graph that `show` tells is the one that was assembled.
static void plain_edge_follows_the_stage(void **state)
{
	const struct api_edge_row *r;
	uint32_t count, to_stage = 0;

	r = kit_rows(API_TABLE_EDGE, "", sizeof(*r), &count);
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(r[i].to, "policer-uplink") == 0)
			assert_string_equal(r[i].from, "test-a");
		if (strcmp(r[i].to, "test-a") == 0)
			assert_string_equal(r[i].from, "test-b");
		to_stage += strcmp(r[i].to, "test-b") == 0;
	}
	assert_true(to_stage > 2);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(all_packets_pass),
		cmocka_unit_test(plain_edge_follows_the_stage),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
