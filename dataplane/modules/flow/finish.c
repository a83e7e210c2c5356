// SPDX-License-Identifier: Apache-2.0
// The last loops of flow-input and flow-access: the full nodes' checks, counts and writes behind the session, for
// packets whose entry was found.
#include "flow/finish.h"
#include "core/control.h"
#include "forward/account.h"
#include "forward/subscriber.h"
#include "forward/tunnel.h"
#include "nptv6/nptv6.h"
#include "route/ways.h"
#include "rule/view.h"

// ---- entries of 5-tuples --------------------------------------------------------------------------------------------

static __rte_always_inline int is_by_tuple(const struct parsed *l)
{
	return l->plain && (l->user.by & BY_TUPLE);
}

// Returns 1 when there is an entry, and asks for its state.
static __rte_always_inline int ask_state(const struct tuple_lookup *t)
{
	if (unlikely(t->found == NULL))
		return 0;
	rte_prefetch0(&session_pools.state[t->found->state]);
	return 1;
}

// Finds the entries that are not in their own place: a quarter of wide ones in a full table. Their other lines are
// fetched side by side, not one after the other. `which`: of the block; returns how many have no entry.
static __rte_noinline uint32_t find_displaced(
	const struct walk *k, struct parsed *parsed, struct tuple_lookup *tuple, uint8_t *which, uint32_t n)
{
	uint32_t far = 0, without = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct tuple_lookup *t = &tuple[which[i]];

		t->found = tuple_find_beside(k->tuples, t->hash, &t->key);
		if (ask_state(t))
			continue;
		if (tuple_group_is_full(k->tuples, t->hash, tuple_is_wide(&t->key.first))) {
			tuple_ask(k->tuples, t->hash, TUPLE_WAYS);
			which[far++] = which[i];
		} else {
			parsed[which[i]].plain = 0;
			without++;
		}
	}
	for (uint32_t i = 0; i < far; i++) {
		struct tuple_lookup *t = &tuple[which[i]];

		t->found = tuple_find_far(k->tuples, t->hash, &t->key);
		if (!ask_state(t)) {
			parsed[which[i]].plain = 0;
			without++;
		}
	}
	return without;
}

uint32_t flow_find_tuples(struct walk *k, struct parsed *parsed, struct tuple_lookup *tuple, uint16_t n)
{
	uint32_t displaced = 0, without = 0;
	uint8_t which[FLOW_BLOCK];

	for (uint16_t i = 0; k->tuples->is_large && i < n; i++)
		if (likely(is_by_tuple(&parsed[i])))
			rte_prefetch0(tuple_place(k->tuples, tuple[i].hash, 0));
	for (uint16_t i = 0; i < n; i++) {
		struct tuple_lookup *t = &tuple[i];

		if (unlikely(!is_by_tuple(&parsed[i])))
			continue;
		t->found = tuple_in_line(tuple_place(k->tuples, t->hash, 0), &t->key);
		if (likely(ask_state(t)))
			continue;
		which[displaced++] = (uint8_t)i;
		tuple_ask(k->tuples, t->hash, 1);
	}
	if (displaced > 0)
		without = find_displaced(k, parsed, tuple, which, displaced);
	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];

		if (unlikely(!is_by_tuple(l)))
			continue;
		struct tuple_entry *t = tuple[i].found;
		struct rule_state *s = tuple_state(k->w, t, l->user.by == BY_SUBSCRIBER ? k->permitted : t->permitted);
		l->plain = s != NULL && !(s->bits & RULE_STATE_FULL);
		if (unlikely(!l->plain)) {
			without++;
			continue;
		}
		l->state = s;
		tuple_used(t);
		if (l->user.by == BY_FLOW)
			l->order = order_of_state(&session_pools.state[t->permitted]);
		l->list_slot = t->permitted & ((1u << ACL_SLOT_BITS) - 1);
		if (action_to_subscriber(&s->action))
			rte_prefetch0(&session_pools.rule[s->rule]);
		if (unlikely(s->bits & RULE_STATE_FURTHER))
			flow_ask_further(k, s);
	}
	return without;
}

// ---- checks ---------------------------------------------------------------------------------------------------------

// Rows G8, G11, G12: the packet is from or to the UE; by its address it is only where no session has a longer prefix.
static __rte_always_inline int is_ues(const struct parsed *l, const uint8_t *ip, uint8_t version, int uplink)
{
	const struct rule_state *s = l->state;

	if (likely(version == 4)) {
		uint32_t ue;

		memcpy(&ue, ip + (uplink ? 12 : 16), 4);
		return !(s->action.flags & ACTION_UE4) || ue == s->ue4;
	}
	const struct rule *r = &session_pools.rule[s->rule];
	if (FLOW_KIND(l->key) == KEY_UE6 && r->up.ue6_prefix != l->example->prefix)
		return 0;
	return !(s->action.flags & ACTION_UE6) || rule_ue6_matches(r, ip + (uplink ? 8 : 24));
}

// What decides about a UE's packets to a destination: the route alone; the route and NAT44; others, NPTv6 and
// link-local destinations, whose way depends on the interface.
enum { NOTE_NONE, NOTE_ROUTED, NOTE_TRANSLATED, NOTE_OTHER };

// The result is valid as long as the route, unless sessions without pools decide. (A wireline subscriber's network
// outside the pools renews the routes: session_homes_renew().)
static __rte_always_inline uint8_t note_way(
	const struct walk *k, struct way *way, uint8_t version, const uint8_t *destination)
{
	const struct nat *n = version == 4 && k->translating ? nat_of_hop(way->index) : NULL;
	uint8_t vrf = way_vrf(way->table);
	uint8_t note = n != NULL ? NOTE_TRANSLATED : NOTE_ROUTED;

	if (!route_may_send(vrf, version, destination) || address_is_link_local(version, destination) ||
		route_to_ue(k->instances, INSTANCE_NONE, vrf, version, destination) != INSTANCE_NONE ||
		(n != NULL && nat_outside(n->table, load32(destination)) != NAT_NONE) ||
		(version == 6 && nptv6_of_hop(way->index)))
		note = NOTE_OTHER;
	if (k->instances->lookers == 0)
		way->note = note;
	return note;
}

// The way of a packet that is not known, or has another note than NOTE_ROUTED.
static __rte_noinline uint8_t ask_way(
	const struct walk *k, uint8_t table, uint8_t version, const uint8_t *destination, struct way **way)
{
	if (!ways_known_to(k->ways, k->ways_generation, table, version, destination, 1, way))
		ways_look_up(*way, version, destination, UINT32_MAX);
	return (*way)->note != NOTE_NONE ? (*way)->note : note_way(k, *way, version, destination);
}

// ---- the ways out. Each returns 0, and has changed nothing, when the full nodes have more to do ---------------------

static __rte_noinline void change_first(const struct walk *k, const struct parsed *l, uint8_t *ip)
{
	if (l->user.change == USER_EXTERNAL)
		flow_translate(k, l, ip, 0);
	else
		ecn_leave_tunnel(l->user.change, l->user.version, ip);
}

// Meters, URRs and counters, and behind them the first change of the packet.
static __rte_always_inline int count(const struct walk *k, const struct parsed *l, uint8_t *ip, uint8_t version)
{
	if (unlikely(!account_quick(k->w, l->state, l->length, version, ip)))
		return 0;
	if (unlikely(l->user.change != 0))
		change_first(k, l, ip);
	return 1;
}

static __rte_noinline void mark_routed(const struct walk *k, const struct parsed *l, uint8_t *ip)
{
	route_mark(k->instances, &l->state->action, l->user.qfi, l->user.version, ip);
}

static __rte_always_inline int send_by(const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint32_t room,
	uint8_t *ip, uint8_t version, const struct way *way, int translated)
{
	const struct next_hop *hop;

	if (unlikely(!route_hop(way->index, ip, l->length, l->length, &hop) || l->length > hop->mtu ||
		     !count(k, l, ip, version)))
		return 0;
	route_count_hop(version, ip);
	if (unlikely(route_marks(k->instances, &l->state->action)))
		mark_routed(k, l, ip);
	if (translated)
		flow_translate(k, l, ip, 1);
	next_hop_header_put(hop, ip, version);
	leave(m, room, hop->l2_length, l->length, hop->port);
	return 1;
}

// Where no way is known with that note.
static __rte_noinline int send_closely(const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint32_t room,
	uint8_t *ip, uint8_t version, uint8_t table)
{
	struct way *way;
	uint8_t note = ask_way(k, table, version, ip + (version == 4 ? 16 : 24), &way);

	if (note == NOTE_ROUTED || (note == NOTE_TRANSLATED && k->translating && l->nat == NULL))
		return send_by(k, l, m, room, ip, version, way, 0);
	// Of several next hops, the translated header says which.
	if (note == NOTE_TRANSLATED && k->translating && l->mapping != NAT_NONE &&
		next_hop_get(way->index)->kind != NEXT_HOP_SEVERAL)
		return send_by(k, l, m, room, ip, version, way, 1);
	return 0;
}

static __rte_always_inline int send_routed(
	const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint32_t room, uint8_t *ip, uint8_t version)
{
	uint8_t *destination = ip + (version == 4 ? 16 : 24);

	if (unlikely(route_hops(version, ip) <= 1 || address_is_link_local(version, ip + (version == 4 ? 12 : 8)) ||
		     room < NEXT_HOP_HEADER))
		return 0;
	uint8_t table = instance_table(k->instances, l->state->action.instance);
	struct way *way;
	if (unlikely(!ways_known_to(k->ways, k->ways_generation, table, version, destination, 0, &way) ||
		     way->note != NOTE_ROUTED))
		return send_closely(k, l, m, room, ip, version, table);
	return send_by(k, l, m, room, ip, version, way, 0);
}

static __rte_always_inline int send_tunnelled(
	const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint32_t room, uint8_t *ip, uint8_t version)
{
	const struct action *a = &l->state->action;
	const struct container came = {.qfi = l->user.qfi, .pdu_type = l->user.pdu_type};
	struct container c;

	if (unlikely(room < OUTER_BYTES ||
		     ((a->flags & ACTION_UPLINK) && !route_may_send(VRF_ANY, version, ip + (version == 4 ? 16 : 24)))))
		return 0;
	int container = tunnel_container(a, came, &c);
	const struct template *t = template_of(k->templates, k->w, k->ways_generation, a->path);
	if (unlikely(t == NULL) && l->user.change != USER_EXTERNAL)
		t = template_of_flow(k->templates, k->w, k->ways_generation, a->path, ip, l->length);
	if (unlikely(t == NULL || l->length > t->room[container] || !count(k, l, ip, version)))
		return 0;
	uint32_t header = t->outer.length[container];
	uint8_t class = tunnel_class(a, &t->outer, t->path, c.qfi) | ip_ecn(version, ip);

	tunnel_put(ip, &t->outer, OUTER_BYTES, a, container, c);
	tunnel_finish(k->w, m, ip - header, &t->outer, a, l->length + header, class);
	leave(m, room, header + t->l2, l->length, t->port);
	return 1;
}

// As access-encap, with the views that the scheduler reads.
static __rte_always_inline int send_to_subscriber(
	const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint32_t room, uint8_t *ip, uint8_t version)
{
	const struct rule *r = &session_pools.rule[l->state->rule];
	const struct port *p = port_get(r->down.port);
	int routed = (l->user.by & BY_FLOW) != 0; // not out of a tunnel

	if (unlikely(subscriber_takes(r, p, l->length, room) != SUBSCRIBER_TAKES ||
		     (routed && route_hops(version, ip) <= 1) || !count(k, l, ip, version)))
		return 0;
	if (routed)
		route_count_hop(version, ip);
	uint32_t header = endpoint_put(ip, r, p, version, l->length);
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m);

	pkt->l3 = (uint16_t)header;
	pkt->l4 = (uint16_t)(header + l->l4);
	pkt->length = l->length;
	pkt->ip_version = version;
	pkt->protocol = l->protocol;
	pkt->fragment = 0;
	v->rule = (struct rule *)(uintptr_t)r;
	v->pipe = r->down.pipe;
	v->qfi = l->user.qfi;
	v->pdu_type = l->user.pdu_type;
	v->relayed = 0;
	v->uplink = 0;
	v->dscp = ip_traffic_class(version, ip) >> 2;
	leave(m, room, header, l->length, r->down.port);
	return 1;
}

// ---- the loop -------------------------------------------------------------------------------------------------------

// The owner's node of the same name decides.
static __rte_noinline rte_edge_t hand_over(const struct walk *k, const struct parsed *l, struct rte_mbuf *m)
{
	if (packet_of(m)->handed || l->owner >= worker_count())
		return FLOW_FULL;
	worker_hand_over_as_it_came(k->w, l->owner, k->resume, l->order, m);
	return FLOW_GONE;
}

// `version`: of the user's packet, a constant.
static __rte_always_inline rte_edge_t finish(
	const struct walk *k, const struct parsed *l, struct rte_mbuf *m, uint8_t version)
{
	uint32_t room = m->data_off + l->user.at;
	uint8_t *ip = (uint8_t *)m->buf_addr + room, flags = l->state->action.flags;

	if (unlikely(k->full[l->order]))
		return FLOW_FULL;
	if (likely(l->user.by == BY_KEY) && unlikely(!is_ues(l, ip, version, flags & ACTION_UPLINK)))
		return FLOW_FULL;
	if (unlikely(l->user.by == BY_OWNER))
		return hand_over(k, l, m);
	if (flags & ACTION_TUNNEL)
		return likely(send_tunnelled(k, l, m, room, ip, version)) ? FLOW_TX : FLOW_FULL;
	if (flags & ACTION_SUBSCRIBER)
		return likely(send_to_subscriber(k, l, m, room, ip, version)) ? FLOW_ACCESS : FLOW_FULL;
	return likely(send_routed(k, l, m, room, ip, version)) ? FLOW_TX : FLOW_FULL;
}

static __rte_noinline rte_edge_t finish6(const struct walk *k, const struct parsed *l, struct rte_mbuf *m)
{
	return finish(k, l, m, 6);
}

// The second step of flow_ask_further(): the meters of rules that have more than a state has room for.
static __rte_noinline void ask_meters(const struct parsed *parsed, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		const struct parsed *l = &parsed[i];

		if (!l->plain || !(l->state->bits & RULE_STATE_FURTHER) ||
			rule_state_meters(l->state).index[0] != STATE_METER_NONE)
			continue;
		const struct rule_further *m = &session_pools.further[l->state->rule];
		for (uint8_t j = 0; j < m->meters && j < API_PDR_QERS; j++)
			rte_prefetch0(&meter_states[m->meter[j].state]);
	}
}

// A rule of the packet's session, or NULL where its key does not name one.
static const struct rule *rule_held_back(const struct walk *k, const struct parsed *l)
{
	uint64_t value, key = flow_entry_key(k->w, l->key); // which takes the worker out again

	if (l->user.by != BY_KEY && l->user.by != BY_FLOW)
		return NULL;
	if (l->plain && l->state->rule != RULE_NONE)
		return &session_pools.rule[l->state->rule];
	return narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value) ? rule_of_key(value)
												    : NULL;
}

// The session's next packets take the full nodes too, by any key: they share URRs and meters.
static __rte_noinline void hold_back(struct walk *k, const struct parsed *l)
{
	const struct rule *held = rule_held_back(k, l), *r;

	k->held = k->full[l->order] = 1;
	for (uint16_t i = 0; held != NULL && (r = session_rule_at(held->session, i)) != NULL; i++)
		k->full[order_of_state(rule_state_of(r))] = 1;
}

void flow_finish(struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n, rte_edge_t *next)
{
	if (unlikely(k->further)) {
		ask_meters(parsed, n);
		k->further = 0;
	}
	if (unlikely(k->translating))
		flow_find_mappings(k, parsed, pkts, n);
	for (uint16_t i = 0; i < n; i++) {
		const struct parsed *l = &parsed[i];

		next[i] = FLOW_FULL;
		if (likely(l->plain))
			next[i] = likely(l->user.version == 4) ? finish(k, l, pkts[i], 4) : finish6(k, l, pkts[i]);
		if (unlikely(next[i] == FLOW_FULL)) {
			if (l->key != 0)
				hold_back(k, l);
			continue;
		}
		if (unlikely(l->user.by == BY_SUBSCRIBER && k->hits != NULL))
			k->hits[l->list_slot]++;
	}
}
