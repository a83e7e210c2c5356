// SPDX-License-Identifier: Apache-2.0
// flow-input: the whole way of plain packets of mobile sessions in one node. It decides nothing by itself: whatever is
// not plain, is wrong, has no entry, or would be dropped, remarked or reported, goes on to core-input as it came, and
// the full nodes decide.
//
// A block of packets goes through four loops, each asking for the line that the next one reads:
//   0 headers, key; ask for the index   1 ask for the entry   2 ask for the URR   3 check, count, rewrite
#include "core/control.h"
#include "core/node.h"
#include "flow/example.h"
#include "flow/flow.h"
#include "instance/instance.h"
#include "meter/meter.h"
#include "path/outer.h"
#include "route/ways.h"
#include "rule/session.h"
#include "usage/usage.h"
#include "wire/ecn.h"
#include "wire/gtpu.h"

enum { EDGE_TX, EDGE_FULL, EDGE_COUNT };

#define BLOCK 32

// A packet between the loops. key 0: it takes the full nodes, and what session it is of is not known.
struct lookup {
	uint64_t key;
	const uint32_t *slot;
	struct rule_state *state;
	uint16_t inner; // offset of the user's IP header
	uint16_t length; // of the user's packet
	uint8_t version, qfi, pdu_type;
	uint8_t instance;
	uint8_t to_gtpu; // a UE's GTP-U packet
	uint8_t plain;
	uint8_t mark; // of the tunnel's header, where it changes the user's (RFC 6040)
};

// What holds for a vector.
struct walk {
	struct worker *w;
	struct ways *ways;
	const struct instances *instances;
	const struct ue_lengths *lengths;
	const struct example *last;
	uint32_t ways_generation;
	uint64_t full; // bits of entries of which a packet took the full nodes: none behind it overtakes it
	struct examples examples;
};

static struct {
	uint8_t drop_gtpu;
	uint8_t off; // a stage that is not ours stands between the nodes that are left out
} settings;

// ---- 0: headers, key ------------------------------------------------------------------------------------------------

// The user's packet at `at`, `rest` bytes to the end of the frame. Outside a tunnel there may be padding, and neighbour
// discovery is for us.
static __rte_always_inline int read_user(
	struct lookup *l, const uint8_t *frame, uint32_t at, uint32_t rest, int tunnelled)
{
	const uint8_t *ip = frame + at;
	struct ip_info info;

	if (unlikely(ip_parse(ip, rest, rest, &info) != IP_OK || (info.length != rest && tunnelled) ||
		     info.fragment != 0 || ip_martian(info.version, info.source, info.destination) != IP_MARTIAN_NONE ||
		     (!tunnelled && ip_is_discovery(ip, &info))))
		return 0;
	l->inner = (uint16_t)at;
	l->length = (uint16_t)info.length;
	l->version = info.version;
	l->to_gtpu = info.protocol == IP_PROTOCOL_UDP && info.destination_port == GTPU_PORT;
	return 1;
}

// RFC 6040 §4.2. Returns 0 for what is to be dropped.
static __rte_always_inline int read_mark(struct lookup *l, uint8_t outer, uint8_t inner)
{
	l->mark = 0;
	if (likely(!ecn_acts(outer, inner)))
		return 1;
	l->mark = outer;
	return inner != ECN_NOT_ECT;
}

// What ip-input and gtpu-input check and the example does not say.
static __rte_always_inline void read_tunnel(
	struct lookup *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	const uint8_t *ip = frame + e->l3;
	uint32_t at = e->l3 + IP4_HEADER + 8u;
	struct gtpu_info gtpu;

	if (unlikely(total < at + GTPU_HEADER || !plain_outer_good(ip, total - e->l3)))
		return;
	if (unlikely(gtpu_parse(frame + at, total - at, total - at, &gtpu) != GTPU_OK))
		return;
	at += gtpu.header_length;
	l->key = fteid_key(gtpu.teid, e->local);
	l->qfi = gtpu.qfi;
	l->pdu_type = (uint8_t)(gtpu.pdu_type + (gtpu.qfi != GTPU_NO_QFI));
	l->plain = gtpu.more == 0 && read_user(l, frame, at, total - at, 1) &&
		   read_mark(l, ip_ecn(4, ip), ip_ecn(l->version, frame + at));
}

static __rte_always_inline void read_ue(
	const struct walk *k, struct lookup *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	const uint8_t *ip = frame + e->l3, *destination = ip + (e->version == 6 ? 24 : 16);
	int six = e->version == 6;

	if (unlikely(total < e->l3 + (six ? 40u : 20u) || k->lengths->count[six] == 0))
		return;
	l->key = ue_key((uint8_t)e->instance, 0, e->version, destination, k->lengths->prefix[six][0]);
	l->qfi = GTPU_NO_QFI;
	l->pdu_type = API_PDU_NONE;
	l->mark = 0;
	l->plain = read_user(l, frame, e->l3, total - e->l3, 0) && l->version == e->version &&
		   (six || (ip[0] == 0x45 && checksum_finish(ip4_sum20(ip)) == 0)) &&
		   !ip_is_local(l->version, destination);
}

static __rte_always_inline void read_packet(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t total = rte_pktmbuf_pkt_len(m);
	const struct example *e = k->last;

	l->key = 0;
	l->inner = 0;
	l->version = 4;
	if (unlikely(rte_pktmbuf_data_len(m) != total || total < PLAIN_BYTES))
		return;
	if (unlikely(e == NULL || !example_holds(e, m, frame) ||
		     (e->kind != EXAMPLE_TUNNEL && e->version == 4 && plain_to_gtpu(frame + e->l3)))) {
		e = k->last = example_find(&k->examples, m);
		if (e == NULL)
			return;
	}
	if (e->kind == EXAMPLE_TUNNEL)
		read_tunnel(l, e, frame, total);
	else if (e->kind == EXAMPLE_UE)
		read_ue(k, l, e, frame, total);
	if (unlikely(l->key == 0))
		return;
	l->instance = (uint8_t)e->instance;
	l->slot = flow_slot(k->w, l->key);
	rte_prefetch0(l->slot);
}

// ---- 1, 2: the entry ------------------------------------------------------------------------------------------------

// The prefix of a UE that has an IPv4 address too: its entry has that one's key.
static __rte_noinline int is_prefix_of(
	const struct worker *w, const struct rule_state *s, const struct lookup *l, uint64_t key)
{
	return FLOW_KIND(l->key) == KEY_UE6 && FLOW_KIND(key) == KEY_UE4 && (s->flags & FLOW_UE6) &&
	       (uint8_t)(key >> 48) == l->instance && (key >> 56 & 63) == w->id;
}

// Where two keys have one place in the index: the table that the session nodes use.
static __rte_noinline struct rule_state *find_by_table(const struct worker *w, uint64_t key)
{
	uint64_t value;

	if (!narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value))
		return NULL;
	const struct rule *r = rule_of_key(value);
	struct rule_state *s = rule_state_of(r);
	return __atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == flow_entry_key(w, key) ? s : NULL;
}

static __rte_always_inline void find_entry(const struct walk *k, struct lookup *l)
{
	struct rule_state *s = l->state;
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_ACQUIRE);

	if (unlikely(key != flow_entry_key(k->w, l->key)) && !is_prefix_of(k->w, s, l, key)) {
		s = l->state = find_by_table(k->w, l->key);
		if (s == NULL) {
			l->key = 0;
			return;
		}
	}
	if (s->urr != RULE_NONE)
		rte_prefetch0(&usage_pools.state[s->urr]);
	if (unlikely(l->version == 6))
		rte_prefetch0(&session_pools.rule[s->rule]);
}

// ---- 3: check, count, rewrite ---------------------------------------------------------------------------------------

// Rows G8, G11, G12: the packet is from or to the UE; by its address it is only where no session has a longer prefix.
static __rte_always_inline int is_ues(const struct walk *k, const struct lookup *l, const uint8_t *ip, int uplink)
{
	const struct rule_state *s = l->state;
	const struct rule *r = &session_pools.rule[s->rule];

	if (likely(l->version == 4)) {
		uint32_t ue;

		memcpy(&ue, ip + (uplink ? 12 : 16), 4);
		return !(s->flags & FLOW_UE4) || ue == s->ue4;
	}
	if (FLOW_KIND(l->key) == KEY_UE6 && r->up.ue6_prefix != k->lengths->prefix[1][0])
		return 0;
	return !(s->flags & FLOW_UE6) || rule_ue6_matches(r, ip + (uplink ? 8 : 24));
}

// What mobile sessions may not send (rows A11, G13).
static __rte_always_inline int may_send(const struct lookup *l, const uint8_t *destination)
{
	return !ip_is_local(l->version, destination) && !instance_guards(l->version, destination) &&
	       !(settings.drop_gtpu && l->to_gtpu);
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

// 1 when ip-forward would do nothing but count the hop.
static __rte_always_inline int may_route(const struct walk *k, const struct lookup *l, const uint8_t *ip)
{
	const uint8_t *destination = ip + (l->version == 4 ? 16 : 24);

	return ip[l->version == 4 ? 8 : 7] > 1 && !address_is_link_local(l->version, ip + (l->version == 4 ? 12 : 8)) &&
	       !address_is_link_local(l->version, destination) && !may_be_ue(k->instances, l->version, destination);
}

static __rte_always_inline const struct next_hop *hop_to(
	const struct walk *k, uint8_t version, const uint8_t *destination, uint32_t length)
{
	const struct next_hop *hop =
		next_hop_get(ways_next_hop(k->ways, k->ways_generation, version, destination, UINT32_MAX));

	return likely(__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE) && length <= hop->mtu) ? hop : NULL;
}

// Meter, URR and counters of a packet that nothing stops. Returns 0, and has changed nothing, when one of them has more
// to do.
static __rte_always_inline int count(struct worker *w, struct rule_state *s, uint32_t length)
{
	int uplink = (s->flags & FLOW_UPLINK) != 0;
	struct usage_state *u = s->urr == RULE_NONE ? NULL : &usage_pools.state[s->urr];

	if (u != NULL && unlikely(!usage_below_marks(u, length, uplink)))
		return 0;
	if (s->flags & FLOW_POLICED) {
		const struct policer_profile *p = policer_profile(s->policer);
		uint64_t time = w->now << METER_TIME_SHIFT;

		if (unlikely(p == NULL))
			return 0;
		struct meter_look look = meter_look_at(p, &s->meter, time, length);
		if (unlikely(p->action[look.colour] != API_COLOUR_PASS))
			return 0;
		meter_pass(p, &s->meter, time, &look);
	}
	if (u != NULL)
		usage_note(w, u, length, uplink);
	s->forwarded.packets++;
	s->forwarded.bytes += length;
	return 1;
}

// The frame begins with the header of `hop` in front of the IP header at `ip`, `length` bytes long.
static __rte_always_inline void leave(
	struct rte_mbuf *m, const struct next_hop *hop, uint8_t *ip, uint8_t version, uint32_t length)
{
	next_hop_header_put(hop, ip, version);
	m->data_off = (uint16_t)(ip - hop->l2_length - (uint8_t *)m->buf_addr);
	m->data_len = (uint16_t)(length + hop->l2_length);
	m->pkt_len = length + hop->l2_length;
	packet_of(m)->port_out = hop->port;
}

static __rte_always_inline int route(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	if (unlikely(!may_route(k, l, ip) || m->data_off + l->inner < NEXT_HOP_HEADER))
		return 0;
	const struct next_hop *hop = hop_to(k, l->version, ip + (l->version == 4 ? 16 : 24), l->length);
	if (unlikely(hop == NULL || !count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, l->version, ip);
	if (l->version == 4)
		ip4_decrement_ttl(ip);
	else
		ip[7]--;
	leave(m, hop, ip, l->version, l->length);
	return 1;
}

// As gtpu-encap.
static __rte_always_inline int encapsulate(const struct walk *k, struct lookup *l, struct rte_mbuf *m, uint8_t *ip)
{
	const struct rule_state *s = l->state;
	const struct path *p = path_get(s->path);
	uint8_t qfi = s->qfi, type = s->flags >> FLOW_PDU_SHIFT;

	if (unlikely(p == NULL || p->version != 4 || m->data_off + l->inner < OUTER_LENGTH_MAX + NEXT_HOP_HEADER))
		return 0;
	if (likely(!(s->flags & FLOW_WITHOUT_CONTAINER))) {
		qfi = qfi != GTPU_NO_QFI ? qfi : l->qfi;
		type = l->pdu_type != API_PDU_NONE ? l->pdu_type : type;
	}
	int container = qfi != GTPU_NO_QFI && type != API_PDU_NONE;
	uint32_t outer = p->length[container], length = l->length + outer;
	if (unlikely(length > UINT16_MAX || address_is_link_local(4, p->want.peer.bytes)))
		return 0;
	const struct next_hop *hop = hop_to(k, 4, p->want.peer.bytes, length);
	if (unlikely(hop == NULL || !count(k->w, l->state, l->length)))
		return 0;
	if (unlikely(l->mark != 0))
		ecn_leave_tunnel(l->mark, l->version, ip);
	uint8_t ecn = ip_ecn(l->version, ip);
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

static __rte_always_inline rte_edge_t finish(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	if (unlikely(l->key == 0))
		return EDGE_FULL;
	const struct rule_state *s = l->state;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l->inner);
	uint64_t bit = 1ull << ((s - session_pools.state) & 63);
	int uplink = (s->flags & FLOW_UPLINK) != 0;

	if (likely(l->plain && !(k->full & bit) && is_ues(k, l, ip, uplink) &&
		    (!uplink || may_send(l, ip + (l->version == 4 ? 16 : 24))) &&
		    (s->flags & FLOW_TUNNEL ? encapsulate(k, l, m, ip) : route(k, l, m, ip))))
		return EDGE_TX;
	k->full |= bit;
	return EDGE_FULL;
}

// ---- the node -------------------------------------------------------------------------------------------------------

static __rte_always_inline void run_block(struct walk *k, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	struct lookup lookup[BLOCK];

	for (uint16_t i = 0; i < n; i++)
		read_packet(k, &lookup[i], pkts[i]);
	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(lookup[i].key == 0))
			continue;
		lookup[i].state = &session_pools.state[*lookup[i].slot];
		rte_prefetch0(lookup[i].state);
	}
	for (uint16_t i = 0; i < n; i++)
		if (likely(lookup[i].key != 0))
			find_entry(k, &lookup[i]);
	for (uint16_t i = 0; i < n; i++)
		next[i] = finish(k, &lookup[i], pkts[i]);
}

static uint16_t flow_input(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
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
	k.lengths = __atomic_load_n(&session_tables.lengths, __ATOMIC_ACQUIRE);
	k.last = NULL;
	k.full = 0;
	k.examples.narrows = k.examples.wides = k.examples.looks = 0;
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i += BLOCK)
			run_block(&k, (struct rte_mbuf **)objs + base + i, RTE_MIN(count - i, BLOCK), next + i);
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
