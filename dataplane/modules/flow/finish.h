// SPDX-License-Identifier: Apache-2.0
// Shared by flow-input and flow-access: entries of 5-tuples, and the last loops.
#ifndef FLOW_FINISH_H
#define FLOW_FINISH_H

#include "core/node.h"
#include "flow/read.h"
#include "forward/route.h"
#include "meter/policer.h"
#include "usage/usage.h"

// Edges of both nodes; FLOW_GONE: handed over.
enum { FLOW_TX, FLOW_FULL, FLOW_ACCESS, FLOW_EDGES, FLOW_GONE = FLOW_EDGES };

#define FLOW_BLOCK 64 // packets of a loop

// ---- 5-tuple entries ------------------------------------------------------------------------------------------------

struct tuple_lookup {
	struct tuple key;
	uint32_t hash;
	struct tuple_entry *found;
};

// A large table's lines are prefetched in a loop of little else (flow_find_tuples()): during page walks few packets fit
// between two of them. Other tables' lines arrive during this loop's work.
static __rte_always_inline void flow_ask_line(const struct walk *k, struct tuple_lookup *t)
{
	t->hash = tuple_hash(&t->key);
	if (likely(!k->tuples->is_large))
		rte_prefetch0(tuple_place(k->tuples, t->hash, 0));
}

// For a packet of a rule with several meters: prefetches them, or the line that names them; the rule may have changed.
static __rte_always_inline void flow_ask_further(struct walk *k, const struct rule_state *s)
{
	const struct state_meters m = rule_state_meters(s);

	if (unlikely(m.index[0] == STATE_METER_NONE)) {
		k->further = 1;
		rte_prefetch0(&session_pools.further[s->rule]);
		return;
	}
	rte_prefetch0(&meter_states[m.index[0]]);
	if (m.index[1] != STATE_METER_NONE)
		rte_prefetch0(&meter_states[m.index[1]]);
}

// What flow_finish() handed over is in an outbox.
static __rte_always_inline void flow_dispatch(const struct worker *w, struct rte_graph *graph, struct rte_node *node,
	void **objs, rte_edge_t *next, uint16_t n)
{
	if (likely(w->outboxes == 0))
		node_dispatch(graph, node, objs, next, n);
	else
		node_dispatch_except(graph, node, objs, next, n, FLOW_GONE);
}

// The key's session is on the worker named by the index's word. Returns 0 when the word names none.
static __rte_always_inline int flow_owned(struct walk *k, struct parsed *l, uint64_t key, uint32_t word)
{
	uint32_t owner = flow_owner(word, key);

	if (owner == UINT32_MAX)
		return 0;
	l->user.by = BY_OWNER;
	l->state = &flow_routed[k->w->id].of_vrf[0]; // no session's
	l->owner = owner;
	return 1;
}

// The packet's IP header is `room` bytes behind the buffer's begin, with `header` bytes in front of it.
static __rte_always_inline void leave(
	struct rte_mbuf *m, uint32_t room, uint32_t header, uint32_t length, uint16_t port)
{
	m->data_off = (uint16_t)(room - header);
	m->pkt_len = length + header;
	m->data_len = (uint16_t)m->pkt_len;
	packet_of(m)->port_out = port;
}

// For plain packets only; those without an entry are then no longer plain. Returns how many have none.
uint32_t flow_find_tuples(struct walk *k, struct parsed *parsed, struct tuple_lookup *tuple, uint16_t n);

// Sends the plain packets of a block; each has its state in parsed.state, and with BY_TUPLE its rule of the access
// list. All others, and their sessions' later packets, stay unchanged with next = FLOW_FULL. Packets of other workers'
// sessions go there unchanged, to the edge walk.resume of handover-rx.
void flow_finish(struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next);

// Sends the first packets of a block of at most WAY_ASKS that are routed where no UEs are (example.alone). Stops at a
// packet that is not plain or needs more than its route and next hop; it and the rest stay unchanged. Returns how many
// were sent.
uint16_t flow_route(struct walk *k, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next);

#endif
