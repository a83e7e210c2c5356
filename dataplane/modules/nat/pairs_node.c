// SPDX-License-Identifier: Apache-2.0
// nat-pairs: packets of protocols without ports that leave by another worker than their session's.
#include "nat/pairs_node.h"
#include "core/control.h"
#include "core/node.h"
#include "core/trace.h"
#include "reassembly/follow.h"
#include "route/ways.h"
#include "rule/view.h"

DROP_REASON(drop_unknown, "nat-pair-unknown",
	"no subscriber has a pair of GRE, ESP or 6in4 with this remote, or several may. Scans, or late answers from "
	"the data network")
DROP_REASON(drop_taken, "nat-pair-taken",
	"another subscriber of the external address has the remote or identifier, or waits for its answer. Use more "
	"nat.addresses, or UDP encapsulation")
DROP_REASON(drop_limit, "nat-pair-limit",
	"the subscriber has as many pairs of GRE, ESP or 6in4 as it may. See nat.pairs.of_subscriber")
DROP_REASON(drop_full, "nat-pair-full",
	"as many pairs as the instance's NAT44 may have, or as one remote may have. See nat.pairs.most, show nat; a "
	"remote serves 64 subscribers")

enum { EDGE_NEXT, EDGE_DROP };

// For the way to the pair's worker, where the rule is not valid.
struct pair_view {
	uint32_t session, inside;
	uint16_t epoch;
	uint8_t worker; // the session's
};
PACKET_VIEW(pair_view)

static uint16_t resume;

static uint32_t bit_of(uint8_t protocol)
{
	return protocol == IP_PROTOCOL_GRE    ? API_NAT_GRE
	       : protocol == IP_PROTOCOL_ESP  ? API_NAT_ESP
	       : protocol == IP_PROTOCOL_IPV6 ? API_NAT_6IN4
					      : 0;
}

enum pair_kind pair_read(
	struct pair_packet *q, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p, int out)
{
	int quoted = p->inner != NULL;
	uint8_t *ip = quoted ? p->inner : p->ip, *l4 = quoted ? p->inner_l4 : p->l4;

	uint32_t room = RTE_MIN(m->data_len - packet_of(m)->l3, load16(p->ip + 2));

	if (n->table->pairs == NULL || (n->want.pair_protocols & bit_of(p->protocol)) == 0)
		return PAIR_NONE;
	room = p->later ? FOLLOW_HEAD : (quoted ? p->inner_room : room) - (uint32_t)(l4 - ip);
	q->key.kind = nat_pair_kind(p->protocol, l4, room, &q->id);
	q->key.outside = p->address;
	memcpy(&q->key.remote, nat_address_at(ip, out == quoted), 4); // what is quoted went the other way
	return q->key.kind;
}

// At the pair's worker.
static const struct reason *refusal(
	struct worker *w, const struct nat *n, const struct pair_packet *q, const struct pair_view *v, int quoted)
{
	static const struct reason *const why[PAIR_VERDICTS] = {
		[PAIR_TAKEN] = &drop_taken, [PAIR_LIMIT] = &drop_limit, [PAIR_FULL] = &drop_full};
	struct pair_user u = {.key = q->key,
		.id = q->id,
		.inside = v->inside,
		.session = v->session,
		.epoch = v->epoch,
		.worker = v->worker,
		.now = nat_time(w),
		.most = n->want.pairs_of_subscriber,
		.timeout = n->want.pair_timeout};

	if (!quoted)
		return why[nat_pair_out(n->table->pairs, w->id, &u)];
	const struct pair *pair = nat_pair_quoted(n->table->pairs, w->id, &q->key, q->id, u.now, 0);
	return pair != NULL && pair->inside == v->inside ? NULL : &drop_unknown; // others have the address too
}

// The packet's length prevents its departure (as in ip-output), and its sender gets an error.
static int is_too_big(struct worker *w, struct rte_mbuf *m, const uint8_t *ip)
{
	const struct packet *pkt = packet_of(m);
	uint32_t generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE); // before any table is read
	uint32_t index = ways_find(ways_of(w), generation, way_table(pkt->vrf), 4, ip + 16, pkt->interface)->index;
	const struct next_hop *hop = next_hop_of_packet(index, m);

	return next_hop_leads(hop) && pkt->length > hop->mtu && (ip[6] & 0x40);
}

enum pair_step pair_out(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p,
	struct pair_packet *q, uint32_t slot, uint16_t instance)
{
	struct packet *pkt = packet_of(m);
	struct nat_table *t = n->table;
	const struct nat_subscriber *s = &t->subscriber[nat_block_of(t, slot)->subscriber];
	const struct pair_view v = {
		.session = s->session, .inside = q->key.outside, .epoch = (uint16_t)s->epoch, .worker = (uint8_t)w->id};

	q->key.outside = nat_block_of(t, slot)->outside;
	nat_write(p, NAT_OTHER, 1, q->key.outside, 0, nat_is_inside(t, load32(p->ip + 12)));
	pkt->translated |= PACKET_SOURCE_TRANSLATED;
	pkt->instance = instance;
	session_view_of(m)->inside = p->inner == NULL ? v.inside : 0;
	if (p->inner == NULL && is_too_big(w, m, p->ip))
		return PAIR_GOES_ON; // the worker of its rule sends the error
	uint32_t owner = nat_pair_worker(t->pairs, &q->key);
	if (owner != w->id) {
		*pair_view_of(m) = v;
		worker_hand_over(w, owner, resume, 0, m);
		return PAIR_GOES_AWAY;
	}
	const struct reason *why = refusal(w, n, q, &v, p->inner != NULL);
	if (why != NULL)
		pkt->reason = why->id;
	return why == NULL ? PAIR_GOES_ON : PAIR_REFUSED;
}

enum pair_step pair_in(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p,
	const struct pair_packet *q)
{
	struct nat_pairs *pairs = n->table->pairs;
	uint32_t now = nat_time(w);
	const struct pair *pair;

	// RFC 5508 REQ-3: an error quotes a packet from its destination.
	if (p->inner == NULL)
		pair = nat_pair_in(pairs, w->id, &q->key, q->id, now, !trace_is_hypothetical(m));
	else if (memcmp(&p->address, p->ip + 16, 4) == 0)
		pair = nat_pair_quoted(pairs, w->id, &q->key, q->id, now, 1);
	else
		pair = NULL;
	if (pair == NULL) {
		packet_of(m)->reason = drop_unknown.id;
		return PAIR_REFUSED;
	}
	nat_write(p, NAT_OTHER, 0, pair->inside, 0, 1);
	packet_of(m)->translated |= PACKET_DESTINATION_TRANSLATED;
	return PAIR_GOES_ON;
}

// The packet belongs to no session from now on, and gets no answer, as in neighbour.c.
static void forget_rule(struct rte_mbuf *m, const uint8_t *ip)
{
	*session_view_of(m) = (struct session_view){.qfi = 0xff, .dscp = ip[1] >> 2};
	packet_of(m)->interface = UINT32_MAX;
}

static rte_edge_t admit(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct pair_view v = *pair_view_of(m);
	const struct nat *n = nat_of(packet_of(m)->instance);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3);
	struct pair_packet q;
	struct nat_packet p;

	forget_rule(m, ip);
	// The configuration may have changed since it got its address.
	if (n == NULL || nat_read(&p, ip, m->data_len - packet_of(m)->l3, 1, follow_head(m)) != NAT_OTHER ||
		pair_read(&q, n, m, &p, 1) < PAIR_GRE || nat_pair_worker(n->table->pairs, &q.key) != w->id)
		return packet_leave(m, &drop_unknown, EDGE_DROP);
	const struct reason *why = refusal(w, n, &q, &v, p.inner != NULL);
	return why != NULL ? packet_leave(m, why, EDGE_DROP) : EDGE_NEXT;
}

NODE_EACH(nat_pairs, admit)

static struct rte_node_register nat_pairs_node = {
	.name = "nat-pairs",
	.process = nat_pairs,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@output-ip", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(nat_pairs_node)

RTE_INIT(nat_pairs_resume)
{
	resume = resume_register("nat-pairs");
}
