// SPDX-License-Identifier: Apache-2.0
// Engines that forward plain packets in place of the full nodes: the software (flow/), and devices beside it
// (offload/). Each learns from packets that the full nodes passed, and forgets a rule when it is retired.
#ifndef RULE_ENGINE_H
#define RULE_ENGINE_H

#include "core/trace.h"
#include "core/worker.h"
#include "rule/rule.h"
#include <rte_mbuf.h>

struct tuple;

// A packet that is about to pass, with the view of the node that found its session.
struct engine_flow {
	uint64_t key; // of session_tables.key; 0: packets are not known by it
	const struct rule *first, *rule; // of the key; of the packet
	struct rte_mbuf *m;
	uint8_t tunnel; // it has a tunnel_view, else an endpoint_view or none
	uint8_t home; // it has none, and its address is of a wireline subscriber
	uint8_t tuple; // packets are known by their 5-tuple
	const struct tuple *flow; // its entry's key (flow/tuple.h), NULL: it has none
	uint32_t hash; // of that
	uint8_t refused; // unknown, and too many are new: it gets no entry
	uint8_t *is_new; // set to 1: its 5-tuple had no entry
};

struct flow_engine {
	void (*put)(struct worker *w, const struct engine_flow *f); // owner worker, within a walk
	// Control thread: the rule is retired or changed; afterwards no entry leads to it.
	void (*take)(const struct rule *r);
	// Control thread: adds up counts kept outside rule_state and usage_state. NULL: none.
	void (*read)(const struct rule *r);
};

#define FLOW_ENGINES 2
extern const struct flow_engine *flow_engines[FLOW_ENGINES + 1]; // in the order of registration; NULL ends them
void flow_engine_register(const struct flow_engine *e); // from constructors

static inline void engines_put(struct worker *w, const struct engine_flow *f)
{
	if (unlikely(trace_keeps(f->m)))
		return;
	for (const struct flow_engine *const *e = flow_engines; *e != NULL; e++)
		(*e)->put(w, f);
}

void engines_take(const struct rule *r);
// Of all rules of a session (its index).
void engines_read(uint32_t session);

#endif
