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
#define FRAME_MIN 48u // what makes an example reads

// A packet between the loops. key 0: it takes the full nodes, and what session it is of is not known.
struct lookup {
	uint64_t key; // flow_entry_key()
	union {
		const uint32_t *slot;
		struct rule_state *state;
	};
	const struct example *example;
	struct user_head user;
	uint16_t length; // of the user's packet
	uint8_t plain;
	uint8_t mark; // of the tunnel's header, where it changes the user's (RFC 6040)
};

// What holds for a vector.
struct walk {
	struct worker *w;
	struct ways *ways;
	const struct instances *instances;
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

// ip_parse() and ip_martian() for a packet that is whole and, with IPv4, has no options.
static __rte_always_inline int read_ip(struct ip_info *info, const uint8_t *ip, uint32_t rest, int simple)
{
	if (!simple)
		return ip_parse(ip, rest, rest, info) == IP_OK && info->fragment == 0 &&
		       ip_martian(info->version, info->source, info->destination) == IP_MARTIAN_NONE;
	info->version = 4;
	info->protocol = ip[9];
	info->fragment = 0;
	info->l4 = IP4_HEADER;
	info->length = load16(ip + 2);
	return info->length >= IP4_HEADER && info->length <= rest && (load16(ip + 6) & 0x3fff) == 0 &&
	       ip_martian(4, ip + 12, ip + 16) == IP_MARTIAN_NONE && ip_transport_parse(ip, rest, info) == IP_OK;
}

// The user's packet at l->user.at, `rest` bytes to the end of the frame. Outside a tunnel there may be padding, and
// neighbour discovery is for us.
static __rte_always_inline int read_user(struct lookup *l, const uint8_t *ip, uint32_t rest, int tunnelled, int simple)
{
	struct ip_info info;

	if (unlikely(!read_ip(&info, ip, rest, simple) || info.version != l->user.version ||
		     (tunnelled ? info.length != rest : ip_is_discovery(ip, &info))))
		return 0;
	l->length = (uint16_t)info.length;
	// The full nodes know whether it may be sent.
	return !(tunnelled && unlikely(settings.drop_gtpu)) || info.protocol != IP_PROTOCOL_UDP ||
	       info.destination_port != GTPU_PORT;
}

// What comes out of a tunnel: the user's packet, with the congestion mark of the tunnel's header (RFC 6040 §4.2).
static __rte_always_inline uint8_t read_tunnelled(
	struct lookup *l, const uint8_t *outer, const uint8_t *ip, uint32_t rest, int simple)
{
	uint8_t ecn = ip_ecn(4, outer), inner = ip_ecn(simple ? 4 : l->user.version, ip);

	if (unlikely(ecn_acts(ecn, inner))) {
		l->mark = ecn;
		if (inner == ECN_NOT_ECT)
			return 0;
	}
	return (uint8_t)read_user(l, ip, rest, 1, simple);
}

static __rte_always_inline void read_teid(
	const struct walk *k, struct lookup *l, const struct example *e, uint32_t teid)
{
	l->key = e->key | teid;
	l->slot = flow_slot_at(k->w, teid, e->offset, 1);
}

// What ip-input and gtpu-input check and the example does not say.
static __rte_always_inline void read_plain(
	const struct walk *k, struct lookup *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	const uint8_t *outer = frame + e->l3, *gtpu = outer + PLAIN_OUTER, *ip = frame + e->user.at;
	uint32_t rest = total - e->user.at;

	if (unlikely(total < (uint32_t)e->user.at + IP4_HEADER || !plain_outer_good(outer, total - e->l3) ||
		     load16(gtpu + 2) != total - e->l3 - PLAIN_OUTER - GTPU_HEADER))
		return;
	read_teid(k, l, e, load32(gtpu + 4));
	if (e->user.pdu_type != API_PDU_NONE)
		l->user.qfi = gtpu[14] & 0x3f;
	l->plain = e->user.simple ? read_tunnelled(l, outer, ip, rest, 1) : read_tunnelled(l, outer, ip, rest, 0);
}

// The same of another GTP-U header.
static __rte_noinline void read_tunnel(
	const struct walk *k, struct lookup *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	uint32_t at = e->l3 + PLAIN_OUTER;
	struct gtpu_info gtpu;

	if (total < at + GTPU_HEADER || !plain_outer_good(frame + e->l3, total - e->l3) ||
		gtpu_parse(frame + at, total - at, total - at, &gtpu) != GTPU_OK)
		return;
	read_teid(k, l, e, gtpu.teid);
	at += gtpu.header_length;
	l->user = (struct user_head){.at = (uint16_t)at,
		.version = at < total ? frame[at] >> 4 : 0,
		.pdu_type = (uint8_t)(gtpu.pdu_type + (gtpu.qfi != GTPU_NO_QFI)),
		.qfi = gtpu.qfi};
	l->plain = gtpu.more == 0 && at < total && read_tunnelled(l, frame + e->l3, frame + at, total - at, 0);
}

static __rte_always_inline void read_ue(
	const struct walk *k, struct lookup *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	const uint8_t *ip = frame + e->l3;
	uint32_t rest = total - e->l3, address;

	if (likely(e->version == 4)) {
		memcpy(&address, ip + 16, 4);
		address &= e->address_mask;
		l->key = e->key | address;
		l->slot = flow_slot_at(k->w, rte_be_to_cpu_32(address), e->offset, 0);
		l->plain = ip[0] == 0x45 && ip4_checksum_ok20(ip) && read_user(l, ip, rest, 0, 1) &&
			   !ip_is_local(4, ip + 16);
		return;
	}
	if (unlikely(rest < IP6_HEADER))
		return;
	uint64_t key = ue_key((uint8_t)e->instance, 0, 6, ip + 24, e->prefix);
	l->key = flow_entry_key(k->w, key);
	l->slot = flow_slot(k->w, key);
	l->plain = read_user(l, ip, rest, 0, 0) && !ip_is_local(6, ip + 24);
}

static __rte_always_inline void read_packet(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t total = rte_pktmbuf_pkt_len(m);
	const struct example *e = k->last;

	l->key = 0;
	if (unlikely(rte_pktmbuf_data_len(m) != total || total < FRAME_MIN || m->data_off + PLAIN_BYTES > m->buf_len))
		return;
	if (unlikely(e == NULL || !example_holds(e, m, frame) ||
		     (e->kind == EXAMPLE_UE && e->version == 4 && plain_to_gtpu(frame + e->l3)))) {
		e = example_find(&k->examples, k->w, m);
		if (e == NULL)
			return;
		k->last = e->kind != EXAMPLE_TUNNEL ? e : k->last;
	}
	l->example = e;
	l->user = e->user;
	l->mark = 0;
	if (e->kind == EXAMPLE_PLAIN)
		read_plain(k, l, e, frame, total);
	else if (e->kind == EXAMPLE_UE)
		read_ue(k, l, e, frame, total);
	else if (e->kind == EXAMPLE_TUNNEL)
		read_tunnel(k, l, e, frame, total);
	if (likely(l->key != 0))
		rte_prefetch0(l->slot);
}

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

static __rte_always_inline void find_entry(const struct walk *k, struct lookup *l)
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
	if (s->urr != RULE_NONE)
		rte_prefetch0(&usage_pools.state[s->urr]);
	if (unlikely(l->user.version == 6))
		rte_prefetch0(&session_pools.rule[s->rule]);
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

// A packet that is not green, or whose meter is an srTCM.
static __rte_noinline int police_closely(
	const struct policer_profile *p, struct meter *meter, uint64_t time, uint32_t length)
{
	struct meter_look look = meter_look_at(p, meter, time, length);

	if (p->action[look.colour] != API_COLOUR_PASS)
		return 0;
	meter_pass(p, meter, time, &look);
	return 1;
}

// 1: the packet passes, and is not marked.
static __rte_always_inline int police(const struct worker *w, struct rule_state *s, uint32_t length)
{
	const struct policer_profile *p = policer_profile(s->policer);
	uint64_t time = w->now << METER_TIME_SHIFT;

	if (unlikely(p == NULL))
		return 0;
	if (likely(p->action[RTE_COLOR_GREEN] == API_COLOUR_PASS && meter_green(p, &s->meter, time, length)))
		return 1;
	return police_closely(p, &s->meter, time, length);
}

// Meter, URR and counters of a packet that nothing stops. Returns 0, and has changed nothing, when one of them has more
// to do.
static __rte_noinline int count(struct worker *w, struct rule_state *s, uint32_t length)
{
	int uplink = (s->flags & FLOW_UPLINK) != 0;

	if (s->urr == RULE_NONE) {
		if ((s->flags & FLOW_POLICED) && unlikely(!police(w, s, length)))
			return 0;
	} else {
		struct usage_state *u = &usage_pools.state[s->urr];
		uint64_t after = usage_look(u, length, uplink);

		if (unlikely(after == 0 || ((s->flags & FLOW_POLICED) && !police(w, s, length))))
			return 0;
		usage_note(w, u, after, uplink);
	}
	s->forwarded.packets++;
	s->forwarded.bytes += length;
	return 1;
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
	if (unlikely(hop == NULL || !count(k->w, l->state, l->length)))
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
	if (unlikely(hop == NULL || !count(k->w, l->state, l->length)))
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

static __rte_always_inline uint64_t bit_of(const struct rule_state *s)
{
	return 1ull << ((s - session_pools.state) & 63);
}

static __rte_always_inline rte_edge_t finish(struct walk *k, struct lookup *l, struct rte_mbuf *m)
{
	if (unlikely(l->key == 0))
		return EDGE_FULL;
	const struct rule_state *s = l->state;
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, l->user.at);

	if (likely(l->plain && (k->full == 0 || !(k->full & bit_of(s))) && is_ues(l, ip, s->flags & FLOW_UPLINK) &&
		    (s->flags & FLOW_TUNNEL ? encapsulate(k, l, m, ip) : route(k, l, m, ip))))
		return EDGE_TX;
	k->full |= bit_of(s);
	return EDGE_FULL;
}

// ---- the node -------------------------------------------------------------------------------------------------------

// Functions of their own, for one that has all is short of registers.
static __rte_noinline void read_block(struct walk *k, struct lookup *lookup, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		read_packet(k, &lookup[i], pkts[i]);
}

static __rte_noinline void find_block(const struct walk *k, struct lookup *lookup, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(lookup[i].key == 0))
			continue;
		lookup[i].state = &session_pools.state[*lookup[i].slot];
		rte_prefetch0(lookup[i].state);
	}
	for (uint16_t i = 0; i < n; i++)
		if (likely(lookup[i].key != 0))
			find_entry(k, &lookup[i]);
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
	k.full = 0;
	k.examples.plains = k.examples.tunnels = k.examples.wides = k.examples.looks = 0;
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i += BLOCK) {
			struct rte_mbuf **pkts = (struct rte_mbuf **)objs + base + i;
			uint16_t m = RTE_MIN(count - i, BLOCK);

			read_block(&k, lookup, pkts, m);
			find_block(&k, lookup, m);
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
