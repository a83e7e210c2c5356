// SPDX-License-Identifier: Apache-2.0
// Arcs: named ways through the graph. Their nodes (stages) do not know each other.
//
// The edge "@arc" in next_nodes leads to the arc's first stage, or to its exit if it has none. A stage names its own
// arc in the same way, once per exit, in order; these edges lead to the next stage, and from the last stage to the
// exits. The edge ">stage" leads to what follows a stage, for packets that the stage held back. handover-rx leads past
// all stages, which its packets have already passed. The graph is assembled once, at start-up; a missing name stops the
// start. After each commit, edges skip stages that want no packets. modules/README.md lists the arcs.
#ifndef CORE_ARC_H
#define CORE_ARC_H

#include <rte_common.h>
#include <rte_graph.h>

#define NODE_ARC_EXITS 4
#define NODE_ARC_WORD (RTE_NODE_NAMESIZE + 1)
#define ARC_BYPASS_ARCS 12

// Which packets a stage wants.
enum stage_wants {
	STAGE_ALL, // fast paths that leave out its arc are closed
	STAGE_SOME, // those of the full nodes, which sessions that it chooses take (rule/wish.h)
	STAGE_NONE, // packets of full nodes, of sessions that it chooses (rule/wish.h)
};

// A node on an arc. Order: `before` and `after` name other stages; otherwise the product's own first, then by name.
struct node_stage {
	struct rte_node_register *node; // registered too
	const char *arc;
	const char *before, *after; // NULL: none
	int standard; // the product's own, which the fast paths account for
	// Called on the control thread at the end of each commit, when its changes are in force. NULL: all.
	enum stage_wants (*wants)(void);
	enum stage_wants wanted; // what it said last
	struct node_stage *next;
};

// An arc belongs to the module of its last node. With several exits it needs a stage, which chooses one.
struct node_arc {
	const char *name;
	const char *exit[NODE_ARC_EXITS]; // nodes
	struct node_stage *first;
	struct node_arc *next;
};

// A fast path, and the arcs that it skips because it does the work of the product's own stages.
struct arc_bypass {
	const char *arc[ARC_BYPASS_ARCS]; // up to NULL
	void (*changed)(void); // control thread, within a commit: `closed` has changed. NULL: nothing to do
	uint8_t closed; // another stage there wants all packets; workers read it
	struct arc_bypass *next;
};

// From constructors.
void node_arc_register(struct node_arc *a);
void node_stage_register(struct node_stage *s);
void arc_bypass_register(struct arc_bypass *b);

// For core. Called once, by graph_register_nodes(). Returns 0, or -1 after a log line.
int arcs_assemble(struct rte_node_register **node, uint32_t count);
// Reads all stages' wishes. Control thread, in a commit.
void arcs_settle(void);
extern uint32_t arcs_generation; // changes whenever edges do
uint32_t arcs_link(struct rte_node *const *node); // all of one graph, in the register's order; returns the generation

// NODE_ARC("name", "exit", ...)
#define NODE_ARC(arc_name, ...) NODE_ARC_(__COUNTER__, arc_name, __VA_ARGS__)
#define NODE_ARC_(n, arc_name, ...) NODE_ARC__(n, arc_name, __VA_ARGS__)
#define NODE_ARC__(n, arc_name, ...)                                                                                   \
	RTE_INIT(node_arc_register_##n)                                                                                \
	{                                                                                                              \
		static struct node_arc arc = {.name = (arc_name), .exit = {__VA_ARGS__}};                              \
		node_arc_register(&arc);                                                                               \
	}

// NODE_STAGE(node, "arc", .after = "other stage", .wants = fn): registers the node, and puts it on the arc.
#define NODE_STAGE(reg, arc_name, ...)                                                                                 \
	NODE_REGISTER(reg)                                                                                             \
	RTE_INIT(node_stage_register_##reg)                                                                            \
	{                                                                                                              \
		static struct node_stage stage = {.node = &(reg), .arc = (arc_name), ##__VA_ARGS__};                   \
		node_stage_register(&stage);                                                                           \
	}

#endif
