// SPDX-License-Identifier: Apache-2.0
#include "flow/mapping.h"
#include "flow/finish.h"
#include "nat/translate.h"
#include "rule/session.h"
#include "wire/unguarded.h"

// Reads a plain packet of TCP, UDP or an ICMP query; others give 0.
static __rte_always_inline int read_flow(const struct parsed *l, struct nat_packet *p, uint8_t *ip, int out)
{
	if (unlikely(l->protocol != IP_PROTOCOL_UDP && l->protocol != IP_PROTOCOL_TCP))
		return nat_read(p, ip, l->length, out, NULL) == NAT_FLOW;
	p->ip = ip;
	p->l4 = ip + l->l4;
	p->protocol = l->protocol;
	p->tcp_flags = p->data = 0;
	nat_read_flow(p, l->length - l->l4, out);
	return 1;
}

// ---- to subscribers -------------------------------------------------------------------------------------------------

void flow_ask_mapping(struct walk *k, struct parsed *l, uint8_t *ip, uint32_t rest)
{
	const struct nat_table *t = l->example->nat->table;
	uint32_t address = nat_outside(t, load32(ip + 16));
	struct nat_packet p;

	if (address == NAT_NONE) {
		l->plain &= !nat_is_inside(t, load32(ip + 16));
		return;
	}
	enum nat_kind kind = l->plain && read_flow(l, &p, ip, 0) ? NAT_FLOW : nat_read(&p, ip, rest, 0, NULL);
	uint32_t slot = NAT_NONE;

	if (kind == NAT_LATER)
		memset(k->full, 1, sizeof(k->full)); // of any session
	if ((kind == NAT_FLOW || kind == NAT_ERROR) && memcmp(&p.address, ip + 16, 4) == 0)
		slot = nat_place(t, address, rte_be_to_cpu_16(p.port));
	if (slot == NAT_NONE) {
		l->key = l->plain = 0;
		return;
	}
	l->key = MAPPING_TO_COME;
	l->plain &= kind == NAT_FLOW;
	l->user.change = USER_EXTERNAL;
	l->protocol = p.protocol;
	l->nat = l->example->nat;
	l->mapping = slot;
	k->external = 1;
	rte_prefetch0(&t->slot[slot]);
	rte_prefetch0(nat_block_of(t, slot));
}

void flow_enter(struct walk *k, struct parsed *parsed, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];

		if (l->key != MAPPING_TO_COME)
			continue;
		struct nat_table *t = l->nat->table;
		const struct nat_slot *s =
			nat_owner(t, l->mapping) == k->w->id ? nat_enter(t, l->mapping, l->protocol, k->nat_now) : NULL;
		if (s != NULL)
			read_ue4(k, l, l->example, s->inside);
		else
			l->key = l->plain = 0;
	}
}

const uint8_t *flow_destination(const struct parsed *l, const uint8_t *ip)
{
	if (unlikely(l->user.change == USER_EXTERNAL))
		return (const uint8_t *)&l->nat->table->slot[l->mapping].inside;
	return ip + (l->user.version == 4 ? 16 : 24);
}

void flow_tuple_inside(const struct parsed *l, struct tuple *t)
{
	const struct nat_slot *s = &l->nat->table->slot[l->mapping];

	memcpy((uint8_t *)&t->first.address + 4, &s->inside, 4);
	if (ip_has_ports(l->protocol))
		memcpy((uint8_t *)&t->first.ports + 2, &s->port, 2);
}

void flow_entered(struct parsed *parsed, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];

		if (!l->plain || l->user.change != USER_EXTERNAL)
			continue;
		// Packets routed on, or to another UE, would go by their present address.
		const struct rule_state *s = l->state;
		const struct action *a = &s->action;
		int leaves = (a->flags & ACTION_TUNNEL) || action_to_subscriber(a);
		l->plain = leaves && !(a->flags & ACTION_UPLINK) &&
			   (!(a->flags & ACTION_UE4) || s->ue4 == l->nat->table->slot[l->mapping].inside);
		l->user.by |= BY_MAPPING;
	}
}

// ---- from subscribers -----------------------------------------------------------------------------------------------

// What translates the packet, or NULL.
static const struct nat *nat_for(const struct walk *k, const struct parsed *l, const uint8_t *ip)
{
	if (!l->plain || l->user.version != 4 ||
		(l->state->action.flags & (ACTION_TUNNEL | ACTION_UPLINK)) != ACTION_UPLINK)
		return NULL;
	uint8_t table = instance_table(k->instances, l->state->action.instance);
	const struct nat *n = nat_of_hop(ways_find(k->ways, k->ways_generation, table, 4, ip + 16, UINT32_MAX)->index);
	// ICMP errors of others are translated by what they quote.
	return n != NULL && (nat_is_inside(n->table, load32(ip + 12)) || l->protocol == IP_PROTOCOL_ICMP) ? n : NULL;
}

static uint32_t mapping_of(const struct walk *k, const struct parsed *l, const struct nat_packet *p)
{
	const struct rule *r = &session_pools.rule[l->state->rule];
	const struct nat_user u = {.worker = k->w->id,
		.session = r->session,
		.inside = p->address,
		.port = p->port,
		.protocol = p->protocol};

	return r->worker == k->w->id ? nat_find(l->nat->table, &u) : NAT_NONE;
}

void flow_find_mappings(const struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n)
{
	struct nat_packet p[FLOW_BLOCK];
	uint64_t asked = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct parsed *l = &parsed[i];
		uint8_t *ip = rte_pktmbuf_mtod_offset(pkts[i], uint8_t *, l->user.at);

		if (l->plain && l->user.change == USER_EXTERNAL)
			continue;
		l->nat = nat_for(k, l, ip);
		l->mapping = NAT_NONE;
		if (l->nat == NULL || !read_flow(l, &p[i], ip, 1))
			continue;
		nat_prefetch(l->nat->table, k->w->id, ip, ip + l->l4);
		rte_prefetch0(&session_pools.rule[l->state->rule]);
		asked |= 1ull << i;
	}
	for (; asked != 0; asked &= asked - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(asked);
		struct parsed *l = &parsed[i];

		l->mapping = mapping_of(k, l, &p[i]);
		if (l->mapping != NAT_NONE)
			rte_prefetch0(&l->nat->table->slot[l->mapping]);
	}
}
static_assert(FLOW_BLOCK <= 64, "a bit each");

// ---- both -----------------------------------------------------------------------------------------------------------

NO_CANARY void flow_translate(const struct walk *k, const struct parsed *l, uint8_t *ip, int out)
{
	struct nat_table *t = l->nat->table;
	struct nat_slot *s = &t->slot[l->mapping];
	struct nat_packet p;

	read_flow(l, &p, ip, out);
	if (out) {
		nat_refresh(&l->nat->want, s, k->nat_now, p.tcp_flags, p.data);
		nat_put(ip, p.l4, l->length, p.protocol, 1, nat_block_of(t, l->mapping)->outside,
			rte_cpu_to_be_16(nat_port_of(t, l->mapping)));
	} else {
		nat_arrived(&l->nat->want, s, k->nat_now, p.tcp_flags);
		nat_put(ip, p.l4, l->length, p.protocol, 0, s->inside, s->port);
	}
}
