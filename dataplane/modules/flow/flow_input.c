// SPDX-License-Identifier: Apache-2.0
// flow-input: the whole way of plain packets from core ports in one node. It leaves exceptions to the full nodes:
// packets that are not plain, are wrong, have no entry, or would be dropped or reported go to core-input unchanged.
//
// A block of packets goes through four loops; each prefetches the next one's lines.
//   0 headers, key; prefetches entry or index
//   1 prefetches the entry, by key or 5-tuple
//   2 prefetches what few packets need beside it
//   3 check, count, rewrite
#include "core/control.h"
#include "core/node.h"
#include "flow/finish.h"
#include "flow/tuple.h"
#include "rule/session.h"
#include "usage/usage.h"

static struct arc_bypass bypass = {.arc = {"input-core", "input-ip", "input-gtpu", "lookup-tunnel", "lookup-ue",
					   "uplink", "downlink", "lookup-downlink", "output-ip"}};
static uint8_t drop_gtpu; // API_ENGINE_DROP_UE_GTPU
static uint16_t resume; // edge of handover-rx that leads here

// ---- 1, 2: the entry ------------------------------------------------------------------------------------------------

// The prefix of a UE that also has an IPv4 address, whose key its entry has.
static __rte_noinline int is_prefix_of(
	const struct worker *w, const struct rule_state *s, const struct parsed *l, uint64_t key)
{
	return FLOW_KIND(l->key) == KEY_UE6 && FLOW_KIND(key) == KEY_UE4 && (s->action.flags & ACTION_UE6) &&
	       (uint8_t)(key >> 48) == l->example->instance && (key >> 56 & 63) == w->id;
}

// A packet to an address that no session has in full (`absent`: its key), where UEs are looked up: as session-ue, and
// ip-forward behind it.
static void find_route(uint64_t absent, struct parsed *l, struct rte_mbuf *m)
{
	uint8_t version = l->user.version;
	const uint8_t *destination = rte_pktmbuf_mtod_offset(m, const uint8_t *, l->user.at + (version == 4 ? 16 : 24));

	l->key = 0;
	if (instance_by_pool(l->example->instance, l->example->vrf, version, destination) == INSTANCE_NONE &&
		session_ue_rule_beside(absent, l->example->instance, version, destination) == NULL)
		l->key = l->example->routed->key;
	l->plain &= l->key != 0;
	l->user.by = BY_ROUTE;
	l->state = l->example->routed;
	l->order = order_of_destination(version, destination);
}

// For keys that share a place in the index, or without index: the session nodes' table. A key that it lacks has no
// session; a key without an entry is not plain. Returns 1 when the packet's 5-tuple leads to its rule.
static __rte_noinline int find_by_table(const struct walk *k, struct parsed *l, struct rte_mbuf *m)
{
	uint64_t value, key = flow_entry_key(k->w, l->key); // which takes the worker out again

	if (!narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value)) {
		if (l->example->kind == EXAMPLE_UE)
			find_route(key, l, m);
		else
			l->key = l->plain = 0;
		return 0;
	}
	const struct rule *first = rule_of_key(value);
	l->state = rule_state_of(first);
	l->order = order_of_state(l->state);
	if (flow_has_tuples(first))
		return 1;
	l->user.by = BY_KEY;
	key = __atomic_load_n(&l->state->key, __ATOMIC_ACQUIRE);
	l->plain &= key == l->key || is_prefix_of(k->w, l->state, l, key);
	return 0;
}

// Reads the index at the key's place. Returns 0 when it has no state.
static __rte_always_inline int ask_word(struct walk *k, struct parsed *l, uint32_t word)
{
	if (likely(!(word & (FLOW_SEVERAL | FLOW_ELSEWHERE)))) {
		l->state = &session_pools.state[word];
		return 1;
	}
	if (word & FLOW_SEVERAL)
		l->user.by = k->by_tuple = BY_FLOW;
	else if (flow_owned(k, l, l->key, word))
		l->order = order_of(l->key);
	else
		l->state = &flow_routed[k->w->id].of_vrf[0]; // which is not the key's
	return l->user.by == BY_KEY;
}

// The state at the key's place is another key's: asks the index or the table.
static __rte_noinline void find_elsewhere(struct walk *k, struct parsed *l, struct rte_mbuf *m)
{
	if (l->example->in_place) {
		uint32_t at = *flow_slot(k->w, l->key);

		if (!ask_word(k, l, at))
			return;
		l->order = order_of_state(l->state);
		if (__atomic_load_n(&l->state->key, __ATOMIC_ACQUIRE) == l->key)
			return;
	}
	if (find_by_table(k, l, m))
		l->user.by = k->by_tuple = BY_FLOW;
}

static __rte_always_inline void find_entry(struct walk *k, struct parsed *l, struct rte_mbuf *m)
{
	const struct rule_state *s = l->state;
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);

	l->order = order_of_state(s);
	if (unlikely(key != l->key) && !is_prefix_of(k->w, s, l, key)) {
		find_elsewhere(k, l, m);
		if (l->user.by != BY_KEY)
			return;
		s = l->state;
	}
	if (unlikely(!l->plain))
		return;
	if (unlikely(l->user.version == 6))
		rte_prefetch0(&session_pools.rule[s->rule]);
	if (unlikely(s->bits & RULE_STATE_FURTHER))
		flow_ask_further(k, s);
}

// ---- 5-tuple entries: of wireline subscribers, and of keys with several PDRs ----------------------------------------

static __rte_always_inline int ask_tuple(
	const struct walk *k, const struct parsed *l, struct tuple_lookup *t, const uint8_t *ip)
{
	if (likely(FLOW_KIND(l->key) == KEY_FTEID))
		tuple_of_tunnel(&t->key, (uint32_t)l->key, l->example->local, l->user.qfi);
	else if (likely(l->example->homes))
		tuple_of_home(&t->key, l->example->instance);
	else
		tuple_of_ue(&t->key, l->key);
	if (likely(ip[0] == 0x45 && ip_has_ports(l->protocol) && l->length >= IP4_HEADER + 4))
		tuple_of_plain(&t->key, ip);
	else if (!tuple_of_packet(&t->key, ip, l->user.version, l->protocol, l->l4, l->length))
		return 0;
	if (unlikely(l->user.change == USER_EXTERNAL))
		flow_tuple_inside(l, &t->key);
	flow_ask_line(k, t);
	return 1;
}

// A packet to a wireline subscriber without a known entry: the full nodes of its worker make one. Returns 0 when no
// subscriber has the address.
static __rte_noinline int is_to_home(const struct walk *k, struct parsed *l, struct rte_mbuf *m, uint8_t asked)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l->user.at);
	const struct rule *first = session_ue_rule(l->example->instance, l->user.version, flow_destination(l, ip));

	if (first == NULL || !flow_is_home(first))
		return 0;
	l->order = order_of_state(rule_state_of(first));
	l->state = &flow_routed[k->w->id].of_vrf[0]; // no session's
	l->plain = asked && first->worker != k->w->id;
	if (l->plain) {
		l->user.by = BY_OWNER;
		l->owner = first->worker;
	}
	return 1;
}

// A packet without an entry by 5-tuple is looked up by its key. Its place in the index may be another key's or another
// worker's. Or it is one of few keys with one PDR where nearly all have several.
static void settle(struct walk *k, struct parsed *l, struct rte_mbuf *m, uint8_t asked)
{
	if (l->example->homes && is_to_home(k, l, m, asked))
		return;
	l->plain = asked;
	if (flow_owned(k, l, l->key, *flow_slot(k->w, l->key)))
		l->order = order_of(l->key);
	else if (find_by_table(k, l, m))
		l->plain = 0;
}

static __rte_noinline void find_tuples(struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n)
{
	struct tuple_lookup tuple[FLOW_BLOCK];
	uint8_t asked[FLOW_BLOCK];
	uint32_t without = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];
		const uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[i], const uint8_t *, l->user.at);

		asked[i] = l->plain;
		if (likely(l->plain && (l->user.by & BY_TUPLE)))
			l->plain = (uint8_t)ask_tuple(k, l, &tuple[i], ip);
		without += !l->plain;
	}
	if (likely(without + flow_find_tuples(k, parsed, tuple, n) == 0))
		return;
	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];

		if (l->plain)
			continue;
		if (l->user.by == BY_FLOW && l->key != 0)
			settle(k, l, pkts[i], asked[i]);
		else if (l->user.by == BY_SUBSCRIBER && asked[i])
			l->plain = (uint8_t)flow_owned(k, l, l->key, *flow_slot(k->w, l->key));
	}
}

// ---- the node -------------------------------------------------------------------------------------------------------

// Separate functions: a single one runs out of registers.
static __rte_noinline void read_block(struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n)
{
	k->by_tuple = k->external = k->indexed = 0;
	for (uint16_t i = 0; i < n; i++)
		flow_read(k, &parsed[i], pkts[i]);
	if (unlikely(k->external))
		flow_enter(k, parsed, n);
}

static __rte_noinline void ask_index(struct walk *k, struct parsed *parsed, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];

		if (unlikely(l->key == 0 || l->user.by != BY_KEY || l->example->in_place))
			continue;
		uint32_t at = *l->slot;
		if (likely(ask_word(k, l, at)))
			rte_prefetch0(l->state);
	}
}

static __rte_noinline void find_block(struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n)
{
	if (unlikely(k->indexed))
		ask_index(k, parsed, n);
	for (uint16_t i = 0; i < n; i++)
		if (likely(parsed[i].key != 0 && parsed[i].user.by == BY_KEY))
			find_entry(k, &parsed[i], pkts[i]);
	if (unlikely(k->by_tuple))
		find_tuples(k, parsed, pkts, n);
	if (unlikely(k->external))
		flow_entered(parsed, n);
}

static uint16_t flow_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct parsed parsed[FLOW_BLOCK];
	struct walk k;
	rte_edge_t next[NODE_CHUNK];

	if (__atomic_load_n(&bypass.closed, __ATOMIC_RELAXED) ||
		!(flow_index.is_used[w->id] | flow_tuples[w->id].is_used)) {
		rte_node_next_stream_move(graph, node, FLOW_FULL);
		return n;
	}
	walk_begin(&k, w, ACL_DOWNLINK, drop_gtpu, resume);
	k.examples.plains = k.examples.tunnels = k.examples.wides = k.examples.looks = 0;
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK), routed = 0;

		for (uint16_t i = 0; i < count; i += FLOW_BLOCK) {
			struct rte_mbuf **pkts = (struct rte_mbuf **)objs + base + i;
			uint16_t m = RTE_MIN(count - i, FLOW_BLOCK), done = flow_route(&k, pkts, m, next + i);

			routed += done;
			if (likely(done == m))
				continue;
			pkts += done;
			m -= done;
			read_block(&k, parsed, pkts, m);
			find_block(&k, parsed, pkts, m);
			flow_finish(&k, parsed, pkts, m, next + i + done);
		}
		if (routed == n)
			rte_node_next_stream_move(graph, node, FLOW_TX);
		else
			flow_dispatch(w, graph, node, objs + base, next, count);
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
	drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0;
	return 0;
}

RTE_INIT(flow_input_start)
{
	resume = resume_register("flow-input");
	arc_bypass_register(&bypass);
	module_register(start);
}
