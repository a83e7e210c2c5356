// SPDX-License-Identifier: Apache-2.0
// flow-input: the whole way of plain packets from core ports in one node. It decides nothing by itself: whatever is
// not plain, is wrong, has no entry, or would be dropped, remarked or reported, goes on to core-input as it came, and
// the full nodes decide.
//
// A block of packets goes through four loops, each asking for the line that the next one reads:
//   0 headers, key; ask for the index   1 ask for the entry   2 ask for the URR   3 check, count, rewrite
#include "core/control.h"
#include "core/node.h"
#include "flow/finish.h"
#include "flow/tuple.h"
#include "usage/usage.h"

static struct flow_settings settings;

// ---- 1, 2: the entry ------------------------------------------------------------------------------------------------

// The prefix of a UE that has an IPv4 address too: its entry has that one's key.
static __rte_noinline int is_prefix_of(
	const struct worker *w, const struct rule_state *s, const struct lookup *l, uint64_t key)
{
	return FLOW_KIND(l->key) == KEY_UE6 && FLOW_KIND(key) == KEY_UE4 && (s->flags & FLOW_UE6) &&
	       (uint8_t)(key >> 48) == l->example->instance && (key >> 56 & 63) == w->id;
}

// Where two keys have one place in the index: the table that the session nodes use. A key that it does not have is
// nobody's; one without an entry is not plain.
static __rte_noinline void find_by_table(const struct worker *w, struct lookup *l)
{
	uint64_t value, key = flow_entry_key(w, l->key); // which takes the worker out again

	if (!narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value)) {
		l->key = l->plain = 0;
		return;
	}
	l->state = rule_state_of(rule_of_key(value));
	l->plain &= __atomic_load_n(&l->state->key, __ATOMIC_ACQUIRE) == l->key;
}

static __rte_always_inline void find_entry(struct walk *k, struct lookup *l)
{
	const struct rule_state *s = l->state;
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);

	if (unlikely(key != l->key) && !is_prefix_of(k->w, s, l, key)) {
		find_by_table(k->w, l);
		s = l->state;
	}
	l->order = order_of((uint64_t)(s - session_pools.state));
	if (unlikely(!l->plain))
		return;
	k->several |= s->several;
	if (s->urr != RULE_NONE)
		rte_prefetch0(&usage_pools.state[s->urr]);
	if (unlikely(l->user.version == 6 || s->further))
		rte_prefetch0(&session_pools.rule[s->rule]);
}

// ---- keys with several PDRs: the flow's entry ------------------------------------------------------------------------

struct flow_lookup {
	struct exact_key key;
	uint32_t hash;
};

static void ask_flow(const struct walk *k, const struct lookup *l, struct rte_mbuf *m, struct flow_lookup *f)
{
	const struct exact *flows = session_tables.flow[k->w->id];
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l->user.at);
	struct ip_info info;

	ip_parse(ip, l->length, l->length, &info); // which read_user() did before
	flow_key(&f->key, l->state->rule, l->user.qfi, info.version, info.protocol, info.l4, ip);
	f->hash = exact_hash(flows, &f->key);
	exact_prefetch(flows, f->hash);
}

// The entry of the flow's rule takes the place of the key's. Without one the packet takes the full nodes.
static void find_flow(const struct walk *k, struct lookup *l, const struct flow_lookup *f)
{
	uint64_t value;
	const struct rule *r = NULL;

	if (exact_lookup(session_tables.flow[k->w->id], f->hash, &f->key, &value))
		r = rule_of_value(value);
	struct rule_state *s = r != NULL ? rule_state_of(r) : NULL;
	l->plain = s != NULL && s->usable && s->rule == rule_index(r) &&
		   __atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == l->state->key;
	l->state = l->plain ? s : l->state;
}

static int is_of_several(const struct lookup *l)
{
	return l->plain && !l->user.by_tuple && l->state->several;
}

static __rte_noinline void find_flows(const struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	struct flow_lookup flow[FLOW_BLOCK];

	for (uint16_t i = 0; i < n; i++)
		if (is_of_several(&lookup[i]))
			ask_flow(k, &lookup[i], pkts[i], &flow[i]);
	for (uint16_t i = 0; i < n; i++)
		if (is_of_several(&lookup[i]))
			find_flow(k, &lookup[i], &flow[i]);
}

// ---- wireline subscribers: the 5-tuple's entry ------------------------------------------------------------------------

static __rte_noinline void find_tuples(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	struct tuple_lookup tuple[FLOW_BLOCK];

	for (uint16_t i = 0; i < n; i++) {
		struct lookup *l = &lookup[i];
		const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[i], const uint8_t *, l->user.at);

		if (!l->plain || !l->user.by_tuple)
			continue;
		tuple_of_tunnel(&tuple[i].key, (uint32_t)l->key, l->example->local, l->user.qfi);
		l->plain = (uint8_t)flow_ask_tuple(k, l, &tuple[i], ip);
	}
	flow_find_tuples(k, lookup, tuple, n);
}

// ---- the node -------------------------------------------------------------------------------------------------------

// Functions of their own, for one that has all is short of registers.
static __rte_noinline void read_block(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	k->by_tuple = 0;
	for (uint16_t i = 0; i < n; i++)
		flow_read(k, &lookup[i], pkts[i]);
}

static __rte_noinline void find_block(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	k->several = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(lookup[i].key == 0 || lookup[i].user.by_tuple))
			continue;
		lookup[i].state = &session_pools.state[*lookup[i].slot];
		rte_prefetch0(lookup[i].state);
	}
	for (uint16_t i = 0; i < n; i++)
		if (likely(lookup[i].key != 0 && !lookup[i].user.by_tuple))
			find_entry(k, &lookup[i]);
	if (unlikely(k->several))
		find_flows(k, lookup, pkts, n);
	if (unlikely(k->by_tuple))
		find_tuples(k, lookup, pkts, n);
}

static uint16_t flow_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct lookup lookup[FLOW_BLOCK];
	struct walk k;
	rte_edge_t next[NODE_CHUNK];

	if (settings.off || !(flow_index.is_used[w->id] | flow_tuples[w->id].is_used)) {
		rte_node_next_stream_move(graph, node, FLOW_FULL);
		return n;
	}
	walk_begin(&k, w, ACL_DOWNLINK, settings.drop_gtpu);
	k.examples.plains = k.examples.tunnels = k.examples.wides = k.examples.looks = 0;
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i += FLOW_BLOCK) {
			struct rte_mbuf **pkts = (struct rte_mbuf **)objs + base + i;
			uint16_t m = RTE_MIN(count - i, FLOW_BLOCK);

			read_block(&k, lookup, pkts, m);
			find_block(&k, lookup, pkts, m);
			flow_finish(&k, lookup, pkts, m, next + i);
		}
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register flow_input_node = {
	.name = "flow-input",
	.process = flow_input,
	.nb_edges = FLOW_EDGES,
	.next_nodes = {[FLOW_TX] = "@output-core", [FLOW_FULL] = "@input-core", [FLOW_ACCESS] = "@output-access"},
};
NODE_STAGE(flow_input_node, "input-core", .standard = 1)

static int start(const struct api_engine *e)
{
	static const char *const left_out[] = {"input-core", "input-ip", "input-gtpu", "lookup-tunnel", "lookup-ue",
		"uplink", "downlink", "lookup-downlink", "output-ip"};

	settings = flow_settings(e, left_out, RTE_DIM(left_out));
	return 0;
}

RTE_INIT(flow_input_start)
{
	module_register("flow-input", start);
}
