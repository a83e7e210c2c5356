// SPDX-License-Identifier: Apache-2.0
// What few packets need; see lookup.h.
#include "session/lookup.h"
#include "core/trace.h"
#include "reassembly/follow.h"
#include "session/new_flows.h"
#include "wire/bytes.h"
#include "wire/eth.h"

DROP_REASON(drop_peer, "tunnel-peer",
	"the tunnel packet does not come from the peer that the session sends to. See pin_peer: the UE moved, or a "
	"forged packet")
DROP_REASON(drop_multicast, "tunnel-multicast",
	"a UE's packet to a multicast or broadcast address cannot be routed. Mostly a subscriber's own noise: "
	"multicast, ::, link-local")

int session_drop_gtpu;

// Of a fragment: its ports decide, and are not known.
static int asks(const struct lookup *l, const struct packet *pkt)
{
	return !(pkt->fragment & IP_FRAGMENT_FOLLOWS) &&
	       (session_pools.match[rule_index(l->first)].match & MATCH_PORTS);
}

int session_ask_tuple(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	int later = pkt->fragment & IP_FRAGMENT_LATER;
	uint32_t l4 = later ? 0 : pkt->l4 - pkt->l3;

	if (unlikely(pkt->fragment != 0) && asks(l, pkt))
		return 0;
	if (way->tunnel) {
		const struct tunnel_view *t = tunnel_view_of(m);

		tuple_of_tunnel(&l->tuple, t->teid, t->local, t->qfi);
	} else if (way->endpoint) {
		const struct endpoint_view *e = endpoint_view_of(m);

		tuple_of_endpoint(&l->tuple, pkt->port_in, e->s_tag, e->c_tag, e->pppoe_session, frame + 6);
	} else if (session_is_home(l, way)) {
		tuple_of_home(&l->tuple, pkt->instance);
	} else if (l->key != 0) {
		tuple_of_ue(&l->tuple, flow_entry_key(w, l->key));
	} else {
		tuple_of_rule(&l->tuple, rule_value(rule_index(l->first)));
	}
	if (pkt->l3 + l4 + 4u > rte_pktmbuf_data_len(m) ||
		!tuple_of_packet(&l->tuple, frame + pkt->l3, pkt->ip_version, pkt->protocol, l4, pkt->length))
		return 0;
	if (unlikely(later) && (pkt->fragment & IP_FRAGMENT_FOLLOWS) && ip_has_ports(pkt->protocol))
		memcpy(&l->tuple.first.ports, follow_head(m), sizeof(l->tuple.first.ports));
	l->tuple_hash = tuple_hash(&l->tuple);
	rte_prefetch0(tuple_place(&flow_tuples[w->id], l->tuple_hash, 0));
	return 1;
}

// In the index of the fast path, 0: it has none. *order: as flow-input and flow-access have it.
static uint64_t index_key(const struct worker *w, const struct lookup *l, struct rte_mbuf *m,
	const struct session_way *way, uint8_t *order)
{
	uint64_t key = flow_entry_key(w, l->key);

	*order = order_of(key);
	if (session_is_home(l, way)) { // the table of UE addresses says whose
		*order = order_of_state(rule_state_of(l->first));
		return 0;
	}
	if (way->endpoint) {
		const struct endpoint_view *e = endpoint_view_of(m);
		struct tuple t;

		tuple_of_endpoint(&t, packet_of(m)->port_in, e->s_tag, e->c_tag, e->pppoe_session,
			rte_pktmbuf_mtod(m, const uint8_t *) + 6);
		*order = order_of(tuple_endpoint(&t));
		return tuple_endpoint_key(&t);
	}
	return l->key != 0 && (way->entries || way->tuples) ? key : 0;
}

// Worker `by` took `wrong` for the owner.
static void correct(
	uint32_t by, uint32_t wrong, const struct lookup *l, struct rte_mbuf *m, const struct session_way *way)
{
	const struct worker *asked = worker_get(by);
	uint8_t order;

	flow_correct_owner(asked, index_key(asked, l, m, way, &order), wrong, l->first->worker);
}

void session_give(
	struct worker *w, const struct lookup *l, struct rte_mbuf *m, const struct session_way *way, uint16_t resume)
{
	uint8_t order;
	uint64_t key = index_key(w, l, m, way, &order);

	if (key != 0 && !trace_is_hypothetical(m)) {
		flow_note_owner(w, key, l->first->worker);
		if (packet_of(m)->handed)
			correct(packet_of(m)->by, w->id, l, m, way);
	}
	worker_hand_over(w, l->first->worker, resume, order, m);
}

rte_edge_t session_follow(
	struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way, uint16_t resume)
{
	const struct follow_scope scope = follow_session(l->first->session);

	if (!asks(l, packet_of(m)))
		return SESSION_UPLINK;
	enum follow answer = fragment_follow(w, m, &scope, resume);
	if (answer != FOLLOW_ON)
		return answer == FOLLOW_GONE ? SESSION_GONE : SESSION_DROP;
	l->has_flow = l->first->chain == 0 && session_ask_tuple(w, l, m, way);
	return SESSION_UPLINK;
}

// An entry without a target: the flow is known, and each of its packets is classified until it is no longer traced.
static void install_for_trace(struct worker *w, const struct lookup *l, const struct rule *r)
{
	struct tuple t = l->tuple;

	t.first.number = tuples_number(&flow_tuples[w->id]);
	t.first.state = r->state;
	t.first.permitted = t.first.idle = t.first.age = 0;
	tuples_put(w, &flow_tuples[w->id], l->tuple_hash, &t);
}

// `known`: the flow has an entry, which leads to no rule in force.
static void install(struct worker *w, const struct lookup *l, struct rte_mbuf *m, const struct rule *r,
	const struct session_way *way, int known)
{
	if (unlikely(trace_keeps(m))) {
		if (!known && !trace_is_hypothetical(m))
			install_for_trace(w, l, r);
		return;
	}
	uint32_t permitted = !way->tuples  ? l->first->state
			     : way->tunnel ? tunnel_view_of(m)->permitted
					   : endpoint_view_of(m)->permitted;

	int tuples = session_has_tuples(l, way);
	flow_keep(w, &l->tuple, l->tuple_hash, r, permitted,
		(way->entries || tuples) && flow_may_learn(l->first, r, tuples) && flow_may_pass(r, tuples));
}

// The access header is still at the data start, with its tags at the same place for one tag and for two.
static struct front front_of(struct rte_mbuf *m, const struct session_way *way, uint8_t qfi)
{
	const uint8_t *tags = rte_pktmbuf_mtod_offset(m, const uint8_t *, ETH_HEADER);
	uint8_t count = way->endpoint ? endpoint_view_of(m)->tags : 0;

	return (struct front){.qfi = qfi,
		.s_pcp = count > 0 ? (uint8_t)(1 << (tags[0] >> 5)) : 0,
		.c_pcp = count > 1 ? (uint8_t)(1 << (tags[ETH_TAG] >> 5)) : 0};
}

struct rule *session_classify(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct session_way *way,
	const uint8_t *ip, uint8_t qfi, enum session_why *why)
{
	const struct packet *pkt = packet_of(m);
	struct tuple_entry *known = l->has_flow ? tuple_find(&flow_tuples[w->id], l->tuple_hash, &l->tuple) : NULL;
	const struct rule_state *of_flow = known != NULL ? tuple_state(w, known, known->permitted) : NULL;
	int spoofed;

	if (likely(of_flow != NULL)) {
		if (likely(!trace_is_hypothetical(m)))
			tuple_used(known);
		return &session_pools.rule[of_flow->rule];
	}
	// What is for the gateway itself begins no flow.
	uint8_t is_new = l->has_flow && known == NULL &&
			 !ip_is_local(instance_vrf(instances_get(), l->first->instance), pkt->ip_version,
				 ip + (pkt->ip_version == 4 ? 16 : 24));
	if (is_new && (*why = new_flow_refused(w, l->first->session, ip_traffic_class(pkt->ip_version, ip) >> 2)) !=
			      WHY_COUNT)
		return NULL;
	struct rule *r = rule_classify(l->first, pkt, ip, front_of(m, way, qfi), &spoofed);
	if (r == NULL)
		*why = spoofed ? WHY_SPOOFED : WHY_NO_PDR;
	else if (l->has_flow)
		install(w, l, m, r, way, known != NULL);
	if (is_new && !trace_is_hypothetical(m))
		new_flow_count(w, l->first->session);
	l->is_new = is_new;
	return r;
}

// The limit of flows is the subscriber's own; for a packet without a rule the key's first one counts.
static rte_edge_t leave(struct rte_mbuf *m, const struct rule *r, enum session_why why)
{
	if (why == WHY_SUBSCRIBER_FLOWS && !trace_is_hypothetical(m))
		rule_account_of(r)->dropped++;
	return packet_leave(m, session_reason(why, (r->flags & RULE_UPLINK) != 0), SESSION_DROP);
}

rte_edge_t session_learn(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct rule *r,
	const struct session_way *way, rte_edge_t on)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	enum session_why refused =
		l->is_new ? WHY_COUNT : new_flow_refused(w, r->session, ip_traffic_class(pkt->ip_version, ip) >> 2);
	uint8_t is_new = 0, tuples = (uint8_t)session_has_tuples(l, way);
	int has_tuple = tuples && pkt->fragment == 0 && (l->has_flow || session_ask_tuple(w, l, m, way));

	engines_put(w, &(struct engine_flow){.key = tuples ? 0 : l->key,
			       .first = l->first,
			       .rule = r,
			       .m = m,
			       .tunnel = way->tunnel,
			       .home = (uint8_t)session_is_home(l, way),
			       .tuple = tuples,
			       .flow = has_tuple ? &l->tuple : NULL,
			       .hash = l->tuple_hash,
			       .refused = refused != WHY_COUNT,
			       .is_new = &is_new});
	if (!is_new || l->is_new)
		return on;
	if (refused != WHY_COUNT)
		return leave(m, r, refused);
	new_flow_count(w, r->session);
	return on;
}

static int from_peer(struct rte_mbuf *m, const struct rule *r)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	const uint8_t *outer = rte_pktmbuf_mtod_offset(m, const uint8_t *, t->outer_l3);
	uint32_t other = session_pools.match[rule_index(r)].other;

	if (other == RULE_NONE || session_pools.rule[other].outer != API_OUTER_GTPU)
		return 1;
	const struct path *p = path_get(session_pools.rule[other].action.path);
	return p == NULL || (p->outer.version == t->outer_version &&
				    memcmp(p->want.peer.bytes, outer + (t->outer_version == 4 ? 12 : 8),
					    t->outer_version == 4 ? 4 : 16) == 0);
}

const struct reason *session_stranger(struct rte_mbuf *m, const struct rule *r)
{
	return (r->flags & RULE_PIN_PEER) && !from_peer(m, r) ? &drop_peer : NULL;
}

rte_edge_t session_meet(struct worker *w, struct lookup *l, struct rte_mbuf *m, const struct rule *r,
	const struct session_way *way, rte_edge_t on)
{
	const struct packet *pkt = packet_of(m);

	if ((r->flags & (RULE_FORWARD | RULE_GATE_CLOSED)) != RULE_FORWARD || (l->first->flags & RULE_SEVERAL_PDRS) ||
		on == SESSION_ASIDE || pkt->fragment != 0 || (way->tunnel && session_stranger(m, r) != NULL) ||
		!session_ask_tuple(w, l, m, way))
		return on;
	struct tuple_entry *known = tuple_find(&flow_tuples[w->id], l->tuple_hash, &l->tuple);
	if (likely(known != NULL && tuple_state(w, known, known->permitted) != NULL)) {
		if (likely(!trace_is_hypothetical(m)))
			tuple_used(known);
		return on;
	}
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	enum session_why refused =
		known != NULL ? WHY_COUNT : new_flow_refused(w, r->session, ip_traffic_class(pkt->ip_version, ip) >> 2);
	if (refused != WHY_COUNT)
		return leave(m, r, refused);
	install(w, l, m, r, way, known != NULL);
	if (known == NULL && !trace_is_hypothetical(m))
		new_flow_count(w, r->session);
	return on;
}

// No outer header removal: the packet that goes on is the outer one.
static void keep_outer(struct rte_mbuf *m)
{
	const struct tunnel_view t = *tunnel_view_of(m);
	struct packet *pkt = packet_of(m);

	pkt->length += pkt->l3 - t.outer_l3;
	pkt->l3 = t.outer_l3;
	pkt->l4 = (uint16_t)(t.gtpu - 8); // UDP
	pkt->ip_version = t.outer_version;
	pkt->protocol = 17;
	pkt->fragment = 0;
}

int session_route_home(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);

	if (session_view_of(m)->rule != NULL)
		return 1;
	if (route_hops(pkt->ip_version, ip) <= 1)
		return 0;
	route_count_hop(pkt->ip_version, ip);
	return 1;
}

static void count_dropped(struct rte_mbuf *m, const struct rule *r)
{
	if (!trace_is_hypothetical(m))
		usage_dropped(r, 1, packet_of(m)->length);
}

rte_edge_t session_slow_path(
	struct rte_mbuf *m, const struct rule *r, int tunnel, struct removed_header came, rte_edge_t on)
{
	int uplink = (r->flags & RULE_UPLINK) != 0;
	struct packet *pkt = packet_of(m);

	const struct reason *stranger = tunnel ? session_stranger(m, r) : NULL;

	if (stranger != NULL)
		return packet_leave(m, stranger, SESSION_DROP);
	if (r->flags & RULE_GATE_CLOSED) {
		if ((r->flags & RULE_FURTHER_METERS) && !trace_is_hypothetical(m))
			usage_before_qos(worker_self(), r, pkt->length);
		count_dropped(m, r);
		return packet_leave(m, session_reason(WHY_GATE, uplink), SESSION_DROP);
	}
	if (!(r->flags & (RULE_FORWARD | RULE_BUFFER | RULE_NOTIFY))) {
		count_dropped(m, r);
		return packet_leave(m, session_reason(WHY_FAR, uplink), SESSION_DROP);
	}
	if (tunnel && (r->flags & RULE_KEEP_OUTER)) {
		keep_outer(m);
		came = (struct removed_header){.qfi = r->action.qfi}; // received bits stay in the kept header
	}
	uint16_t front = pkt->l3;
	session_strip(m, r, rte_pktmbuf_mtod_offset(m, const uint8_t *, front), came);
	session_view_of(m)->front = front;
	if (on == SESSION_ASIDE) // for the gateway itself: answered also while the subscriber is redirected or idle
		return on;
	if ((r->flags & (RULE_BUFFER | RULE_DRAINING)) || !(r->flags & RULE_FORWARD))
		return SESSION_BUFFER;
	if (r->flags & RULE_REDIRECT)
		return SESSION_REDIRECT;
	if (r->flags & RULE_DUPLICATE)
		return SESSION_DUPLICATE;
	return on;
}

static int is_gtpu(const struct packet *pkt, const uint8_t *ip)
{
	return pkt->protocol == IP_PROTOCOL_UDP && !(pkt->fragment & IP_FRAGMENT_LATER) &&
	       load16(ip + (pkt->l4 - pkt->l3) + 2) == 2152;
}

rte_edge_t session_guard_destination(struct rte_mbuf *m, const struct rule *r, const uint8_t *destination, int echo)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = destination - (pkt->ip_version == 4 ? 16 : 24);

	uint8_t vrf = instance_vrf(instances_get(), r->instance);
	int gateway = echo && ip_is_gateway(pkt->ip_version, destination, pkt->port_in);

	if (gateway || !route_may_send(vrf, pkt->ip_version, destination)) {
		int icmp = pkt->protocol == IP_PROTOCOL_ICMP || pkt->protocol == IP_PROTOCOL_ICMP6;

		if (gateway && icmp)
			return SESSION_ASIDE;
		return packet_leave(m, session_reason(WHY_GATEWAY, 1), SESSION_DROP);
	}
	if (session_drop_gtpu && is_gtpu(pkt, ip))
		return packet_leave(m, session_reason(WHY_GTPU, 1), SESSION_DROP);
	if (r->outer == API_OUTER_NONE && destination[0] >= (pkt->ip_version == 4 ? 0xe0 : 0xff))
		return packet_leave(m, &drop_multicast, SESSION_DROP);
	return SESSION_UPLINK;
}

rte_edge_t session_refuse(struct rte_mbuf *m, const struct rule *r, const uint8_t *ip, const struct session_way *way,
	enum session_why why)
{
	const struct packet *pkt = packet_of(m);

	if (why == WHY_SPOOFED && way->echo && pkt->protocol == IP_PROTOCOL_ICMP6 && pkt->ip_version == 6 &&
		address_is_link_local(6, ip + 8) && ip_is_gateway(6, ip + 24, pkt->port_in)) {
		session_strip(m, r, ip, (struct removed_header){0});
		return SESSION_ASIDE;
	}
	return leave(m, r, why);
}

static int start(const struct api_engine *e)
{
	session_drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0;
	return 0;
}

RTE_INIT(session_lookup)
{
	module_register(start);
}

// Between session and encapsulation: the rule's outer header names the way on (session_exit()).
static_assert(API_OUTER_NONE == 0 && API_OUTER_GTPU == 1 && API_OUTER_ENDPOINT == 2 && API_OUTER_UDP == 3,
	"exits are numbered as outer headers");
NODE_ARC("uplink", "ip-forward", "gtpu-encap", "access-encap", "udp-encap")
NODE_ARC("downlink", "ip-forward", "gtpu-encap", "access-encap", "udp-encap")
