// SPDX-License-Identifier: Apache-2.0
// Common parts of all graph nodes: registration, named reasons, and the helper that runs a node over its vector.
//
// A module's node file ends with a static struct rte_node_register and NODE_REGISTER(it); its drop and punt reasons are
// DROP_REASON / PUNT_REASON lines. Nothing else in the tree is edited, except the list of sources in meson.build.
#ifndef CORE_NODE_H
#define CORE_NODE_H

#include "core/arc.h"
#include "core/packet.h"
#include "core/reason.h"
#include "core/worker.h"
#include <rte_graph.h>
#include <rte_graph_worker.h>
#include <rte_prefetch.h>

// Adds the node to every worker's graph. `next_nodes` are nodes, or arcs (core/arc.h); they must exist when the graph
// is built, or start-up fails with the missing name. Called from constructors only.
void node_register(struct rte_node_register *node);

#define NODE_REGISTER(reg)                                                                                             \
	RTE_INIT(node_register_##reg)                                                                                  \
	{                                                                                                              \
		node_register(&(reg));                                                                                 \
	}

// Marks the packet with a reason and returns the edge to take ("drop" or "punt" of the caller's next_nodes).
static inline rte_edge_t packet_leave(struct rte_mbuf *m, const struct reason *r, rte_edge_t edge)
{
	packet_of(m)->reason = r->id;
	return edge;
}

// Sends objs[i] to edge next[i]. A vector with one edge moves without a copy; else runs of equal edges are copied
// together. Only this function enqueues vectors.
static __rte_always_inline void node_dispatch(
	struct rte_graph *graph, struct rte_node *node, void **objs, const rte_edge_t *next, uint16_t n)
{
	uint16_t first = 0;
	if (unlikely(n == 0))
		return;
	for (uint16_t i = 1; i < n; i++) {
		if (unlikely(next[i] != next[first])) {
			rte_node_enqueue(graph, node, next[first], &objs[first], i - first);
			first = i;
		}
	}
	if (likely(first == 0 && objs == node->objs && n == node->idx))
		rte_node_next_stream_move(graph, node, next[0]);
	else
		rte_node_enqueue(graph, node, next[first], &objs[first], n - first);
}

// The same when some packets were consumed by the node itself (edge `gone`, one past the last real edge).
static __rte_always_inline void node_dispatch_except(
	struct rte_graph *graph, struct rte_node *node, void **objs, rte_edge_t *next, uint16_t n, rte_edge_t gone)
{
	uint16_t consumed = 0, kept = 0;

	for (uint16_t i = 0; i < n; i++)
		consumed += next[i] == gone;
	if (likely(consumed == 0)) {
		node_dispatch(graph, node, objs, next, n);
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		if (next[i] != gone) {
			objs[kept] = objs[i];
			next[kept++] = next[i];
		}
	if (kept == 0)
		return;
	for (uint16_t i = 0; i < kept; i++)
		rte_node_enqueue_x1(graph, node, next[i], objs[i]);
}

// Decides one packet: returns the edge it takes.
typedef rte_edge_t (*node_packet_fn)(struct worker *w, struct rte_node *node, struct rte_mbuf *m);

#define NODE_CHUNK 256

// Runs `fn` over the vector; inlined, so `fn` costs no call. No prefetch: port-rx fetches the header line, and further
// hints gained nothing (bench/README.md).
static __rte_always_inline uint16_t node_each(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n, node_packet_fn fn)
{
	struct worker *w = worker_self();
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);
		void **chunk = objs + base;
		for (uint16_t i = 0; i < count; i++)
			next[i] = fn(w, node, chunk[i]);
		node_dispatch(graph, node, chunk, next, count);
	}
	return n;
}

// The process function of a node that is `fn` for each packet.
#define NODE_EACH(process, fn)                                                                                         \
	static uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)               \
	{                                                                                                              \
		return node_each(graph, node, objs, n, fn);                                                            \
	}

// A new packet of this worker, counted as originated, metadata cleared, port_in = PORT_NONE. NULL when the pool is
// empty.
struct rte_mbuf *packet_originate(struct worker *w);
// A fragment or copy of a packet that was already counted: counts it and inherits the metadata of `from`.
void packet_originate_like(struct worker *w, struct rte_mbuf *m, struct rte_mbuf *from);

// Of core.
void packets_drop(struct worker *w, struct rte_mbuf **pkts, uint16_t n); // counts them by packet.reason, and frees them
int graph_register_nodes(void);
struct rte_graph *graph_create(uint32_t worker);
uint32_t graph_nodes(struct rte_node_register *const **list);
struct rte_node *graph_node(uint32_t worker, uint32_t number); // by its place in that list
// Gives its graph the edges of now. The owner, between two walks, when arcs_generation is not worker.linked.
void graph_link(struct worker *w);

#endif
