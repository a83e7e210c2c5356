// SPDX-License-Identifier: Apache-2.0
// For tests of the full nodes: a stage between nodes that flow-input skips, which turns the fast path off.
#ifndef FLOW_OFF_STAGE_H
#define FLOW_OFF_STAGE_H

#include "core/node.h"

static uint16_t pass_on(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static struct rte_node_register off_stage = {
	.name = "test-flow-off", .process = pass_on, .nb_edges = 1, .next_nodes = {"@lookup-tunnel"}};
NODE_STAGE(off_stage, "lookup-tunnel")

#endif
