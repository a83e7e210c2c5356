// SPDX-License-Identifier: Apache-2.0
// nat-uplink: the subscriber's address and port become external ones. nat-downlink: the reverse. nat-error: in our ICMP
// errors, the quoted packet becomes the sender's. nat-age: time-outs.
#include "core/control.h"
#include "core/event.h"
#include "core/node.h"
#include "core/trace.h"
#include "nat/nat.h"
#include "nat/pairs_node.h"
#include "nat/table.h"
#include "nat/translate.h"
#include "reassembly/follow.h"
#include "route/ways.h"
#include "rule/view.h"
#include "wire/cache_line.h"

DROP_REASON(drop_protocol, "nat-protocol",
	"NAT44 translates TCP, UDP, ICMP queries and errors, and what nat.pairs names. GRE, ESP and 6in4 need "
	"nat.pairs")
DROP_REASON(drop_malformed, "nat-malformed",
	"the packet ends before what NAT44 has to translate. Cut packets: capture them")
DROP_REASON(drop_limit, "nat-subscriber-limit",
	"the subscriber uses all ports of all blocks that it may have (RFC 6888 REQ-4). See nat.blocks, nat.block; one "
	"subscriber alone may be a scan")
DROP_REASON(drop_exhausted, "nat-pool-exhausted",
	"no block of ports is free, or none of the subscriber's external address. See show nat: more addresses, "
	"smaller blocks")
DROP_REASON(drop_full, "nat-table-full",
	"as many mappings as the instance's NAT44 may have. See show nat: more addresses, smaller blocks")
DROP_REASON(drop_moving, "nat-moving",
	"the subscriber's ports are still an earlier session's, or another worker's, for a second at most. Normal "
	"while a session moves; for longer report it")
DROP_REASON(drop_no_mapping, "nat-no-mapping",
	"no subscriber has this external port. Scans, or late answers from the data network")
DROP_REASON(drop_inside, "nat-inside-address",
	"from the data network to a subscriber's inside address. Scans, or late answers from the data network")
DROP_REASON(drop_pair_hairpin, "nat-pair-hairpin",
	"a protocol without ports, to an external address of ours. Not served: use the inside address")

#define AGE_MOST 4096u // mappings that nat-age looks at in a visit, of one instance

static struct {
	uint32_t now; // of this walk, as soon as a node of ours has packets
	uint32_t aged; // time that nat-age has reached
	uint32_t owed[MAX_INSTANCES]; // mappings that it has to look at yet
	uint32_t work; // of this visit of nat-uplink (table.h)
	uint8_t more; // something of `owed` is due
} cache_aligned own[API_MAX_WORKERS];

static uint16_t resume_uplink, resume_downlink; // edges of handover-rx that lead to the nodes

enum { EDGE_NEXT, EDGE_DROP, EDGE_HAIRPIN, EDGE_GONE };

static rte_edge_t refuse(struct rte_mbuf *m, enum nat_verdict v)
{
	static const struct reason *const reason[] = {
		[NAT_LIMIT] = &drop_limit,
		[NAT_EXHAUSTED] = &drop_exhausted,
		[NAT_FULL] = &drop_full,
		[NAT_MOVING] = &drop_moving,
	};

	return packet_leave(m, reason[v], EDGE_DROP);
}

static uint32_t address_of(const uint8_t *p)
{
	uint32_t a;

	memcpy(&a, p, 4);
	return rte_be_to_cpu_32(a);
}

// RFC 4787 REQ-9: a packet to an external address of ours turns round, once, and its receiver sees an external source.
static rte_edge_t onward(struct rte_mbuf *m, const struct nat_table *t, const uint8_t *ip, uint16_t instance)
{
	if (likely(nat_outside(t, address_of(ip + 16)) == NAT_NONE))
		return EDGE_NEXT;
	packet_of(m)->instance = instance;
	return EDGE_HAIRPIN;
}

// The subscriber's mapping for the fields read, or NAT_NONE and *edge. An error neither makes nor keeps one (RFC 5508
// REQ-6).
static uint32_t mapping_of(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p,
	enum nat_kind kind, rte_edge_t *edge)
{
	const struct rule *r = session_view_of(m)->rule;
	struct nat_user u = {
		.worker = w->id,
		.session = r->session,
		.inside = p->address,
		.port = p->port,
		.protocol = p->protocol,
		.now = own[w->id].now,
		.blocks = n->want.blocks,
		.work = &own[w->id].work,
	};
	uint32_t slot;

	if (unlikely(r->worker != w->id)) {
		*edge = refuse(m, NAT_MOVING);
		return NAT_NONE;
	}
	if (kind == NAT_ERROR) {
		slot = nat_find(n->table, &u);
		if (slot == NAT_NONE)
			*edge = packet_leave(m, &drop_no_mapping, EDGE_DROP);
		return slot;
	}
	enum nat_verdict v = nat_map(n->table, &u, &slot);
	if (unlikely(v != NAT_OK)) {
		*edge = refuse(m, v);
		return NAT_NONE;
	}
	nat_refresh(&n->want, &n->table->slot[slot], u.now, p->tcp_flags, p->data);
	return slot;
}

static void translated_out(struct rte_mbuf *m, uint16_t instance)
{
	packet_of(m)->translated |= PACKET_SOURCE_TRANSLATED;
	packet_of(m)->instance = instance;
}

static rte_edge_t ask(struct worker *w, struct rte_mbuf *m, struct follow_scope scope, uint16_t resume)
{
	static const rte_edge_t edge[] = {
		[FOLLOW_ON] = EDGE_NEXT, [FOLLOW_GONE] = EDGE_GONE, [FOLLOW_DROP] = EDGE_DROP};

	return edge[fragment_follow(w, m, &scope, resume)];
}

// A fragment: EDGE_NEXT when its ports are known. While it waits, unseen by the session, its rule may become another
// session's: the generation is kept where ip-output writes later.
static __rte_noinline rte_edge_t fragment_out(struct worker *w, struct rte_mbuf *m)
{
	struct session_view *v = session_view_of(m);
	uint32_t generation = __atomic_load_n(&v->rule->generation, __ATOMIC_RELAXED);

	if (!(packet_of(m)->fragment & IP_FRAGMENT_FOLLOWS)) {
		v->next_hop = generation;
		return ask(w, m, follow_session(v->rule->session), resume_uplink);
	}
	return packet_of(m)->resume == resume_uplink && v->next_hop != generation ? refuse(m, NAT_MOVING) : EDGE_NEXT;
}

static rte_edge_t no_pair(struct rte_mbuf *m, enum pair_kind kind)
{
	return packet_leave(m, kind == PAIR_NONE ? &drop_protocol : &drop_malformed, EDGE_DROP);
}

// A protocol without ports. A subscriber's packets of it share one mapping, which fixes the external address; a port
// stands for it.
static rte_edge_t other_out(
	struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p, uint16_t instance)
{
	static const rte_edge_t edges[] = {
		[PAIR_GOES_ON] = EDGE_NEXT, [PAIR_GOES_AWAY] = EDGE_GONE, [PAIR_REFUSED] = EDGE_DROP};
	struct pair_packet q;
	rte_edge_t edge;
	enum pair_kind kind = pair_read(&q, n, m, p, 1);

	if (kind <= PAIR_SHORT)
		return no_pair(m, kind);
	if (nat_outside(n->table, address_of(p->ip + 16)) != NAT_NONE)
		return packet_leave(m, &drop_pair_hairpin, EDGE_DROP);
	uint32_t slot = mapping_of(w, n, m, p, p->inner != NULL ? NAT_ERROR : NAT_FLOW, &edge);
	return slot == NAT_NONE ? edge : edges[pair_out(w, n, m, p, &q, slot, instance)];
}

static rte_edge_t translate_out(struct worker *w, const struct nat *n, struct rte_mbuf *m, uint16_t instance)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3);
	struct nat_table *t = n->table;
	int inside = nat_is_inside(t, address_of(ip + 12));
	rte_edge_t edge = EDGE_NEXT;
	struct nat_packet p;

	if (!inside && ip[9] != IP_PROTOCOL_ICMP)
		return EDGE_NEXT;
	// Our error quotes the packet with the addresses that its receiver knows (nat-error).
	if (ip[9] == IP_PROTOCOL_ICMP && ip_is_local(packet_of(m)->vrf, 4, ip + 12))
		return onward(m, t, ip, instance);
	if (unlikely(packet_of(m)->fragment != 0) && (edge = fragment_out(w, m)) != EDGE_NEXT)
		return edge;
	enum nat_kind kind = nat_read(&p, ip, m->data_len - packet_of(m)->l3, 1, follow_head(m));
	// From another address of the subscriber, an error about a packet to an inside address.
	if (!inside && (p.inner == NULL || !nat_is_inside(t, rte_be_to_cpu_32(p.address))))
		return EDGE_NEXT;
	if (unlikely(kind > NAT_OTHER))
		return packet_leave(m, &drop_malformed, EDGE_DROP);
	if (unlikely(!nat_is_inside(t, rte_be_to_cpu_32(p.address))))
		return packet_leave(m, &drop_no_mapping, EDGE_DROP); // an error about nothing of the subscriber's
	if (unlikely(kind == NAT_OTHER))
		return other_out(w, n, m, &p, instance);
	uint32_t slot = mapping_of(w, n, m, &p, kind, &edge);
	if (unlikely(slot == NAT_NONE))
		return edge;
	uint32_t address = nat_block_of(t, slot)->outside;
	nat_write(&p, kind, 1, address, rte_cpu_to_be_16(nat_port_of(t, slot)), inside);
	translated_out(m, instance);
	return onward(m, t, ip, instance);
}

struct uplink_walk {
	struct ways *ways;
	uint32_t generation;
};

// Translation of a packet; NULL: it passes unchanged.
struct uplink {
	const struct nat *nat;
	uint16_t instance;
};

// Where no route leads on, external addresses are still reached from inside: their prefix may have a discard route,
// which announces it.
static __rte_noinline uint16_t hairpin_instance(uint8_t vrf, uint32_t destination)
{
	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct nat *n = nat_of(i);

		if (n != NULL && instance_vrf(instances_get(), i) == vrf &&
			nat_outside(n->table, destination) != NAT_NONE)
			return i;
	}
	return INSTANCE_NONE;
}

static __rte_always_inline struct uplink ask_uplink(struct worker *w, struct uplink_walk *k, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	// A fragment that waited here: its rule may be another session's downlink rule by now (fragment_out).
	if (r == NULL || pkt->ip_version != 4 ||
		!((r->flags & RULE_UPLINK) ||
			unlikely((pkt->fragment & IP_FRAGMENT_FOLLOWS) && pkt->resume == resume_uplink)))
		return (struct uplink){.nat = NULL};
	const struct next_hop *hop =
		next_hop_get(ways_find(k->ways, k->generation, way_table(pkt->vrf), 4, ip + 16, pkt->interface)->index);
	uint16_t instance =
		likely(next_hop_leads(hop)) ? instance_of_hop(hop) : hairpin_instance(pkt->vrf, address_of(ip + 16));
	const struct nat *n = nat_of(instance);
	if (n != NULL && likely(pkt->l4 + 6u <= m->data_len))
		nat_prefetch(n->table, w->id, ip, ip + (pkt->l4 - pkt->l3));
	return (struct uplink){.nat = n, .instance = instance};
}

static uint16_t nat_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct uplink_walk k;
	struct uplink way[NODE_CHUNK];
	rte_edge_t next[NODE_CHUNK];

	if (likely(!nat_anywhere())) {
		rte_node_next_stream_move(graph, node, EDGE_NEXT);
		return n;
	}
	own[w->id].now = nat_time(w);
	own[w->id].work = NAT_WORK;
	k.generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE); // before any table is read
	k.ways = ways_of(w);
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			way[i] = ask_uplink(w, &k, objs[base + i]);
		for (uint16_t i = 0; i < count; i++)
			next[i] = way[i].nat == NULL ? EDGE_NEXT
						     : translate_out(w, way[i].nat, objs[base + i], way[i].instance);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

// A hypothetical packet takes no mapping; it passes unchanged.
static int foresee_uplink(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	struct uplink_walk k = {
		.generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE), .ways = ways_of(w)};
	const struct nat *n = nat_anywhere() ? ask_uplink(w, &k, m).nat : NULL;

	if (n != NULL &&
		nat_is_inside(n->table, address_of(rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3) + 12)))
		trace_say(to, "NAT44 would translate it; what follows is said of its inside address");
	return EDGE_NEXT;
}

TRACE_STAGE("nat-uplink", .foresee = foresee_uplink)
TRACE_STAGE("nat-downlink", .pure = 1)

// Without NAT44, packets pass by both nodes. nat-error stays: its packet may have waited.
static enum stage_wants wants(void)
{
	return nat_anywhere() ? STAGE_ALL : STAGE_NONE;
}

static struct rte_node_register nat_uplink_node = {
	.name = "nat-uplink",
	.process = nat_uplink,
	.nb_edges = EDGE_GONE,
	.next_nodes = {[EDGE_NEXT] = "@output-ip", [EDGE_HAIRPIN] = "nat-downlink", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nat_uplink_node, "output-ip", .standard = 1, .wants = wants)

static rte_edge_t other_in(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p)
{
	struct pair_packet q;
	enum pair_kind kind = pair_read(&q, n, m, p, 0);

	if (kind <= PAIR_SHORT)
		return no_pair(m, kind);
	uint32_t owner = nat_pair_worker(n->table->pairs, &q.key);
	if (owner != w->id) {
		worker_hand_over(w, owner, resume_downlink, 0, m);
		return EDGE_GONE;
	}
	return pair_in(w, n, m, p, &q) == PAIR_GOES_ON ? EDGE_NEXT : EDGE_DROP;
}

// RFC 4787 REQ-8: any sender to the external port reaches the subscriber.
static rte_edge_t translate_in(struct worker *w, const struct nat *n, struct rte_mbuf *m, uint8_t *ip, uint32_t address)
{
	struct nat_table *t = n->table;
	struct nat_packet p;
	rte_edge_t edge;

	if (unlikely(packet_of(m)->fragment != 0) && !(packet_of(m)->fragment & IP_FRAGMENT_FOLLOWS) &&
		(edge = ask(w, m, follow_instance(packet_of(m)->instance), resume_downlink)) != EDGE_NEXT)
		return edge;
	enum nat_kind kind = nat_read(&p, ip, m->data_len - packet_of(m)->l3, 0, follow_head(m));
	if (unlikely(kind > NAT_OTHER))
		return packet_leave(m, &drop_malformed, EDGE_DROP);
	if (unlikely(kind == NAT_OTHER))
		return other_in(w, n, m, &p);
	// RFC 5508 REQ-3: an error quotes a packet from its destination.
	uint32_t slot =
		memcmp(&p.address, ip + 16, 4) == 0 ? nat_place(t, address, rte_be_to_cpu_16(p.port)) : NAT_NONE;
	uint32_t owner = slot == NAT_NONE ? NAT_NONE : nat_owner(t, slot);
	if (unlikely(owner >= t->workers))
		return packet_leave(m, &drop_no_mapping, EDGE_DROP);
	if (owner != w->id) {
		worker_hand_over(w, owner, resume_downlink, 0, m);
		return EDGE_GONE;
	}
	struct nat_slot *s = nat_enter(t, slot, p.protocol, own[w->id].now);
	if (unlikely(s == NULL))
		return packet_leave(m, &drop_no_mapping, EDGE_DROP);
	if (kind == NAT_FLOW && likely(!trace_is_hypothetical(m)))
		nat_arrived(&n->want, s, own[w->id].now, p.tcp_flags);
	nat_write(&p, kind, 0, s->inside, s->port, 1);
	packet_of(m)->translated |= PACKET_DESTINATION_TRANSLATED;
	return EDGE_NEXT;
}

static inline rte_edge_t downlink(struct worker *w, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	const struct nat *n = nat_of(pkt->instance);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);

	if (n == NULL || pkt->ip_version != 4)
		return EDGE_NEXT;
	uint32_t to = address_of(ip + 16);
	uint32_t address = nat_outside(n->table, to);
	if (likely(address != NAT_NONE))
		return translate_in(w, n, m, ip, address);
	// Not from another UE, and not out of a tunnel of UDP/IP, where no address is translated.
	if (session_view_of(m)->rule == NULL && nat_is_inside(n->table, to) &&
		instance_get(pkt->instance)->udp_port == 0)
		return packet_leave(m, &drop_inside, EDGE_DROP);
	return EDGE_NEXT;
}

static uint16_t nat_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	rte_edge_t next[NODE_CHUNK];

	if (likely(!nat_anywhere())) {
		rte_node_next_stream_move(graph, node, EDGE_NEXT);
		return n;
	}
	own[w->id].now = nat_time(w);
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = downlink(w, objs[base + i]);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

static struct rte_node_register nat_downlink_node = {
	.name = "nat-downlink",
	.process = nat_downlink,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@lookup-ue", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nat_downlink_node, "lookup-ue", .before = "firewall-ue", .standard = 1, .wants = wants)

RTE_INIT(nat_resume)
{
	resume_uplink = resume_register("nat-uplink");
	resume_downlink = resume_register("nat-downlink");
}

// RFC 5508 REQ-4: our error quotes the packet as its sender sent it. Of a packet that turned round only the destination
// is restored: the error turns round in its turn.
static rte_edge_t untranslate(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	const struct nat *n = nat_of(pkt->instance);
	int out = pkt->translated == PACKET_SOURCE_TRANSLATED;
	uint32_t slot = NAT_NONE, address;
	struct nat_packet p;

	if (pkt->translated == 0 || pkt->ip_version != 4)
		return EDGE_NEXT;
	enum nat_kind kind =
		nat_read(&p, rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3), m->data_len - pkt->l3, out, NULL);
	if (kind == NAT_ERROR || kind == NAT_LATER)
		return EDGE_NEXT; // which no error may be about
	// For a protocol without ports, the session's worker knows the external address by a mapping that stands for
	// it.
	int pair = kind == NAT_OTHER && p.inner == NULL && p.protocol != IP_PROTOCOL_ICMP;
	if ((kind != NAT_FLOW && !pair) || n == NULL)
		return packet_leave(m, &drop_no_mapping, EDGE_DROP);
	if (pair && out && session_view_of(m)->inside != 0) {
		nat_write(&p, kind, 1, session_view_of(m)->inside, 0, 1);
		return EDGE_NEXT;
	}
	if (!out)
		slot = nat_find_any(n->table, w->id, p.address, p.port, p.protocol);
	else if ((address = nat_outside(n->table, rte_be_to_cpu_32(p.address))) != NAT_NONE)
		slot = nat_place(n->table, address, rte_be_to_cpu_16(p.port));
	if (slot == NAT_NONE || nat_owner(n->table, slot) != w->id || n->table->slot[slot].protocol != p.protocol)
		return packet_leave(m, &drop_no_mapping, EDGE_DROP); // it is gone, or another worker's, since
	const struct nat_slot *s = &n->table->slot[slot];
	if (out)
		nat_write(&p, kind, 1, s->inside, s->port, 1);
	else
		nat_write(&p, kind, 0, nat_block_of(n->table, slot)->outside,
			rte_cpu_to_be_16(nat_port_of(n->table, slot)), 1);
	return EDGE_NEXT;
}

NODE_EACH(nat_error, untranslate)

static struct rte_node_register nat_error_node = {
	.name = "nat-error",
	.process = nat_error,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@error", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nat_error_node, "error", .standard = 1)
TRACE_STAGE("nat-error", .pure = 1)

// All of them in a second, a part in each visit. 1 when more is due.
static int age(const struct worker *w, const struct nat *n, uint32_t *owed, uint32_t now)
{
	const struct nat_part *p = &n->table->part[w->id];
	uint64_t all = p->mappings + (uint64_t)p->blocks * n->table->words;
	uint32_t passed = RTE_MIN(now - own[w->id].aged, NAT_SECOND);

	*owed = (uint32_t)RTE_MIN(*owed + all * passed / NAT_SECOND + (passed != 0), all);
	uint32_t looked = nat_age(n->table, w->id, now, RTE_MIN(*owed, AGE_MOST));
	*owed -= RTE_MIN(looked, *owed);
	struct nat_pairs *pairs = n->table->pairs;
	if (pairs != NULL && passed != 0) // of PAIRS_MOST so many in a visit
		nat_pairs_age(pairs, w->id, now, (uint32_t)(pairs->part[w->id].pairs * passed / NAT_SECOND) + 1);
	return *owed != 0;
}

static uint16_t nat_age_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	uint32_t now = nat_anywhere() ? nat_time(w) : own[w->id].aged;
	int more = 0;

	if (now == own[w->id].aged && !own[w->id].more)
		return 0;
	for (uint16_t i = 0; i < MAX_INSTANCES; i++)
		if (nat_of(i) != NULL)
			more |= age(w, nat_of(i), &own[w->id].owed[i], now);
	own[w->id].aged = now;
	own[w->id].more = (uint8_t)more;
	if (more)
		worker_due(w, w->now); // no sleep before the next visit
	return 0;
}

static struct rte_node_register nat_age_node = {
	.name = "nat-age",
	.flags = RTE_NODE_SOURCE_F,
	.process = nat_age_process,
	.nb_edges = 1,
	.next_nodes = {"drop"},
};
NODE_REGISTER(nat_age_node)
