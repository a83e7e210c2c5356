// SPDX-License-Identifier: Apache-2.0
// flow-input: the whole way of plain packets of mobile sessions in one node. It decides nothing by itself: whatever is
// not plain, is wrong, has no entry, or would be dropped, remarked or reported, goes on to core-input as it came, and
// the full nodes decide.
//
// A block of packets goes through four loops, each asking for the line that the next one reads:
//   0 headers, key; ask for the index   1 ask for the entry   2 ask for the URR   3 check, count, rewrite
#include "core/control.h"
#include "core/node.h"
#include "flow/count.h"
#include "flow/read.h"
#include "instance/instance.h"
#include "path/outer.h"
#include "route/ways.h"
#include "rule/session.h"
#include "wire/ecn.h"
#include "wire/gtpu.h"

enum { EDGE_TX, EDGE_FULL, EDGE_COUNT };

#define BLOCK 32

static struct {
	uint8_t drop_gtpu;
	uint8_t off; // a stage that is not ours stands between the nodes that are left out
} settings;

// ---- 1, 2: the entry ------------------------------------------------------------------------------------------------

// The prefix of a UE that has an IPv4 address too: its entry has that one's key.
static __rte_noinline int is_prefix_of(
	const struct worker *w, const struct rule_state *s, const struct lookup *l, uint64_t key)
{
	return FLOW_KIND(l->key) == KEY_UE6 && FLOW_KIND(key) == KEY_UE4 && (s->flags & FLOW_UE6) &&
	       (uint8_t)(key >> 48) == l->example->instance && (key >> 56 & 63) == w->id;
}

// Where two keys have one place in the index: the table that the session nodes use.
static __rte_noinline struct rule_state *find_by_table(const struct worker *w, uint64_t entry_key)
{
	uint64_t value, key = flow_entry_key(w, entry_key); // which takes the worker out again

	if (!narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value))
		return NULL;
	const struct rule *r = rule_of_key(value);
	struct rule_state *s = rule_state_of(r);
	return __atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == entry_key ? s : NULL;
}

static __rte_always_inline void find_entry(struct walk *k, struct lookup *l)
{
	struct rule_state *s = l->state;
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);

	if (unlikely(key != l->key) && !is_prefix_of(k->w, s, l, key)) {
		s = l->state = find_by_table(k->w, l->key);
		if (s == NULL) {
			l->key = 0;
			return;
		}
	}
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
	flow_key(&f->key, l->state->rule, FLOW_OF_RULE, l->user.qfi, info.version, info.protocol, info.l4, ip);
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

static __rte_noinline void find_flows(const struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	struct flow_lookup flow[BLOCK];

	for (uint16_t i = 0; i < n; i++)
		if (lookup[i].key != 0 && lookup[i].plain && lookup[i].state->several)
			ask_flow(k, &lookup[i], pkts[i], &flow[i]);
	for (uint16_t i = 0; i < n; i++)
		if (lookup[i].key != 0 && lookup[i].plain && lookup[i].state->several)
			find_flow(k, &lookup[i], &flow[i]);
}

// ---- 3: check, count, rewrite ---------------------------------------------------------------------------------------

// Rows G8, G11, G12: the packet is from or to the UE; by its address it is only where no session has a longer prefix.
static __rte_always_inline int is_ues(const struct lookup *l, const uint8_t *ip, int uplink)
{
	const struct rule_state *s = l->state;

	if (likely(l->user.version == 4)) {
		uint32_t ue;

		memcpy(&ue, ip + (uplink ? 12 : 16), 4);
		return !(s->flags & FLOW_UE4) || ue == s->ue4;
	}
	const struct rule *r = &session_pools.rule[s->rule];
	if (FLOW_KIND(l->key) == KEY_UE6 && r->up.ue6_prefix != l->example->prefix)
		return 0;
	return !(s->flags & FLOW_UE6) || rule_ue6_matches(r, ip + (uplink ? 8 : 24));
}

// 1 when mobile sessions may send to this destination (rows A11, G13).
static __rte_always_inline int may_send(uint8_t version, const uint8_t *destination)
{
	return !ip_is_local(version, destination) && !instance_guards(version, destination);
}

// The address may be a UE's: ip-forward looks closer.
static int may_be_ue(const struct instances *n, uint8_t version, const uint8_t *destination)
{
	if (instance_by_pool(INSTANCE_NONE, version, destination) != INSTANCE_NONE)
		return 1;
	for (uint8_t i = 0; i < n->lookers; i++)
		if (session_ue_known(n->looker[i], version, destination))
			return 1;
	return 0;
}

enum { NOTE_NONE, NOTE_ROUTED, NOTE_OTHER };

// 1 when nothing but the route decides about a packet of a UE to this destination. The answer stands as long as the
// route, unless sessions decide that have no pools.
static __rte_noinline int note_way(const struct walk *k, struct way *way, uint8_t version, const uint8_t *destination)
{
	int routed = may_send(version, destination) && !address_is_link_local(version, destination) &&
		     !may_be_ue(k->instances, version, destination);

	if (k->instances->lookers == 0)
		way->note = routed ? NOTE_ROUTED : NOTE_OTHER;
	return routed;
}

// NULL: the full nodes have more to do than to send a packet of `length` bytes.
static __rte_always_inline const struct next_hop *hop_of(const struct way *way, uint32_t length)
{
	const struct next_hop *hop = next_hop_get(way->index);

	return likely(way->version != 0 && __atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE) && length <= hop->mtu)
		       ? hop
		       : NULL;
}

// The frame begins with the header of `hop` in front of the IP header at `ip`, `length` bytes long.
static __rte_always_inline void leave(
	struct rte_mbuf *m, const struct next_hop *hop, uint8_t *ip, uint8_t version, uint32_t length)
{
	uint32_t l2 = hop->l2_length;

	next_hop_header_put(hop, ip, version);
	m->data_off = (uint16_t)(ip - (uint8_t *)m->buf_addr - l2);
	m->pkt_len = length + l2;
	m->data_len = (uint16_t)m->pkt_len;
	packet_of(m)->port_out = hop->port;
}

static __rte_always_inline int route(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	uint8_t version = l->user.version, *destination = ip + (version == 4 ? 16 : 24);
	struct way *way = ways_find(k->ways, k->ways_generation, version, destination, UINT32_MAX);

	if (unlikely(ip[version == 4 ? 8 : 7] <= 1 || address_is_link_local(version, ip + (version == 4 ? 12 : 8)) ||
		     m->data_off + l->user.at < NEXT_HOP_HEADER))
		return 0;
	if (unlikely(way->note != NOTE_ROUTED) && (way->note == NOTE_OTHER || !note_way(k, way, version, destination)))
		return 0;
	const struct next_hop *hop = hop_of(way, l->length);
	if (unlikely(hop == NULL || !flow_count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, version, ip);
	if (likely(version == 4))
		ip4_decrement_ttl(ip);
	else
		ip[7]--;
	leave(m, hop, ip, version, l->length);
	return 1;
}

// As gtpu-encap.
static __rte_always_inline int encapsulate(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	const struct rule_state *s = l->state;
	const struct path *p = path_get(s->path);
	uint8_t qfi = s->qfi, type = s->flags >> FLOW_PDU_SHIFT;

	if (unlikely(p == NULL || p->version != 4 || m->data_off + l->user.at < OUTER_LENGTH_MAX + NEXT_HOP_HEADER))
		return 0;
	if (unlikely((s->flags & FLOW_UPLINK) && !may_send(l->user.version, ip + (l->user.version == 4 ? 16 : 24))))
		return 0;
	if (likely(!(s->flags & FLOW_WITHOUT_CONTAINER))) {
		qfi = qfi != GTPU_NO_QFI ? qfi : l->user.qfi;
		type = l->user.pdu_type != API_PDU_NONE ? l->user.pdu_type : type;
	}
	int container = qfi != GTPU_NO_QFI && type != API_PDU_NONE;
	uint32_t outer = p->length[container], length = l->length + outer;
	if (unlikely(length > UINT16_MAX))
		return 0;
	const struct next_hop *hop =
		hop_of(ways_find(k->ways, k->ways_generation, 4, p->want.peer.bytes, UINT32_MAX), length);
	if (unlikely(hop == NULL || !flow_count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, l->user.version, ip);
	uint8_t ecn = ip_ecn(l->user.version, ip);
	memcpy(ip - OUTER_LENGTH_MAX, p->header[container], OUTER_LENGTH_MAX);
	ip -= outer;
	if (container)
		outer_container(ip + 28, type, qfi, s->rqi);
	outer_finish(ip, 20, length, s->teid);
	outer_finish_ip4(
		k->w, ip, p, length, (uint8_t)((s->dscp == FLOW_DSCP_OF_PATH ? p->want.dscp : s->dscp) << 2 | ecn));
	leave(m, hop, ip, 4, length);
	return 1;
}

static __rte_always_inline uint64_t bit_of(const struct lookup *l)
{
	return 1ull << (l->key * 0x9e3779b97f4a7c15ull >> 58);
}

static __rte_always_inline rte_edge_t finish(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	if (unlikely(l->key == 0))
		return EDGE_FULL;
	const struct rule_state *s = l->state;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l->user.at);

	if (likely(l->plain && (k->full == 0 || !(k->full & bit_of(l))) && is_ues(l, ip, s->flags & FLOW_UPLINK) &&
		    (s->flags & FLOW_TUNNEL ? encapsulate(k, l, m, ip) : route(k, l, m, ip))))
		return EDGE_TX;
	k->full |= bit_of(l);
	return EDGE_FULL;
}

// ---- the node -------------------------------------------------------------------------------------------------------

// Functions of their own, for one that has all is short of registers.
static __rte_noinline void read_block(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		flow_read(k, &lookup[i], pkts[i]);
}

static __rte_noinline void find_block(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	k->several = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(lookup[i].key == 0))
			continue;
		lookup[i].state = &session_pools.state[*lookup[i].slot];
		rte_prefetch0(lookup[i].state);
	}
	for (uint16_t i = 0; i < n; i++)
		if (likely(lookup[i].key != 0))
			find_entry(k, &lookup[i]);
	if (unlikely(k->several))
		find_flows(k, lookup, pkts, n);
}

static __rte_noinline void finish_block(
	struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	for (uint16_t i = 0; i < n; i++)
		next[i] = finish(k, &lookup[i], pkts[i]);
}

static uint16_t flow_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct lookup lookup[BLOCK];
	struct walk k;
	rte_edge_t next[NODE_CHUNK];

	if (settings.off || !flow_index.is_used[w->id]) {
		rte_node_next_stream_move(graph, node, EDGE_FULL);
		return n;
	}
	k.w = w;
	k.ways = ways_of(w);
	k.ways_generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE); // before any table is read
	k.instances = instances_get();
	k.last = NULL;
	k.drop_gtpu = settings.drop_gtpu;
	k.full = 0;
	k.examples.plains = k.examples.tunnels = k.examples.wides = k.examples.looks = 0;
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i += BLOCK) {
			struct rte_mbuf **pkts = (struct rte_mbuf **)objs + base + i;
			uint16_t m = RTE_MIN(count - i, BLOCK);

			read_block(&k, lookup, pkts, m);
			find_block(&k, lookup, pkts, m);
			finish_block(&k, lookup, pkts, m, next + i);
		}
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register flow_input_node = {
	.name = "flow-input",
	.process = flow_input,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "@output-core", [EDGE_FULL] = "@input-core"},
};
NODE_STAGE(flow_input_node, "input-core", .standard = 1)

// The arcs whose stages do here what they do for all packets; one that is not ours would be left out.
static const char *const left_out[] = {
	"input-core", "input-ip", "input-gtpu", "lookup-tunnel", "lookup-ue", "uplink", "downlink"};

static int start(const struct api_engine *e)
{
	settings.drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0;
	settings.off = 0;
	for (unsigned i = 0; i < RTE_DIM(left_out); i++)
		settings.off |= (uint8_t)!arc_is_standard(left_out[i]);
	return 0;
}

RTE_INIT(flow_input_start)
{
	module_register("flow-input", start);
}
