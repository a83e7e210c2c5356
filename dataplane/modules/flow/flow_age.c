// SPDX-License-Identifier: Apache-2.0
// flow-age: visits all 5-tuple entries in engine.flow_idle seconds, a few per millisecond. Removes those of ended flows
// without delaying packets.
#include "core/control.h"
#include "core/node.h"
#include "flow/tuple.h"

#define LOOKS_PER_S 1000
#define LONGEST_S 10 // what a worker that did not run for longer leaves out
#define LINES_MOST 16384u // of a look: 1 MB

static struct {
	uint32_t idle, lifetime; // seconds; looks. Written by the control thread
} ages = {.idle = API_FLOW_IDLE};

static uint16_t flow_age(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct tuples *t = &flow_tuples[w->id];
	uint64_t since = w->now - t->aged, all = tuples_lines(t);

	if (likely(since < w->tsc_hz / LOOKS_PER_S))
		return 0;
	uint64_t round = __atomic_load_n(&ages.idle, __ATOMIC_RELAXED) * w->tsc_hz;
	uint64_t lines = RTE_MIN(since, LONGEST_S * w->tsc_hz) * all / round;

	t->aged = since > LONGEST_S * w->tsc_hz ? w->now : t->aged + lines * round / all;
	if (t->entries != 0)
		tuples_age(w, t, (uint32_t)RTE_MIN(lines, (uint64_t)LINES_MOST),
			__atomic_load_n(&ages.lifetime, __ATOMIC_RELAXED));
	return 0;
}

static struct rte_node_register flow_age_node = {
	.name = "flow-age",
	.flags = RTE_NODE_SOURCE_F,
	.process = flow_age,
	.nb_edges = 1,
	.next_nodes = {"drop"},
};
NODE_REGISTER(flow_age_node)

ENGINE_LIMIT(flow_idle, 1, 86400)

static void set_ages(const struct api_engine *e)
{
	uint32_t idle = e->flow_idle ? e->flow_idle : API_FLOW_IDLE;

	__atomic_store_n(&ages.idle, idle, __ATOMIC_RELAXED);
	__atomic_store_n(&ages.lifetime, (e->flow_lifetime + idle - 1) / idle, __ATOMIC_RELAXED);
}

RTE_INIT(flow_age_start)
{
	engine_watch(set_ages);
}
