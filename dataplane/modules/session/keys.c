// SPDX-License-Identifier: Apache-2.0
// Keys under which packets find a session: its traffic endpoint, its F-TEIDs, its UE addresses and framed routes. PDRs
// with the same key are chained by precedence (TS 29.244 §8.2.11).
#include "core/object.h"
#include "core/port.h"
#include "instance/instance.h"
#include "path/local.h"
#include "session/compile.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Each PDR: the addresses of the UE and its framed routes.
#define MAX_KEYS (API_MAX_PDR * (2 + API_MAX_ROUTES))

static struct ue_lengths lengths[2];
static struct {
	struct session_key key[MAX_KEYS]; // of the session that is being made
	uint32_t users[2][129]; // keys of each family and length
	int changed;
} own;

int session_key_find(const struct session_key *k, uint64_t *value)
{
	struct exact_key e;

	if (k->table != TABLE_ENDPOINT)
		return narrow_lookup(
			session_tables.key, narrow_hash(session_tables.key, k->word[0]), k->word[0], value);
	session_key_set(&e, k->word);
	return exact_lookup(session_tables.endpoint, exact_hash(session_tables.endpoint, &e), &e, value) &&
	       *value != NARROW_RESERVED;
}

int session_key_reserve(const struct session_key *k)
{
	struct exact *t = session_tables.endpoint;
	struct exact_key e;
	uint64_t value;

	if (k->table != TABLE_ENDPOINT)
		return narrow_reserve(session_tables.key, k->word[0]);
	session_key_set(&e, k->word);
	if (exact_lookup(t, exact_hash(t, &e), &e, &value))
		return 0;
	return exact_add(t, exact_hash(t, &e), &e, NARROW_RESERVED) == 0 ? 1 : -1;
}

void session_key_publish(const struct session_key *k, uint64_t value)
{
	struct exact_key e;

	if (k->table != TABLE_ENDPOINT) {
		narrow_add(session_tables.key, k->word[0], value);
		return;
	}
	session_key_set(&e, k->word);
	exact_add(session_tables.endpoint, exact_hash(session_tables.endpoint, &e), &e, value);
}

void session_key_delete(const struct session_key *k)
{
	struct exact_key e;

	if (k->table != TABLE_ENDPOINT) {
		narrow_delete(session_tables.key, k->word[0]);
		return;
	}
	session_key_set(&e, k->word);
	exact_delete(session_tables.endpoint, exact_hash(session_tables.endpoint, &e), &e);
}

// The common key of a chain's PDRs. Of a UE chain: without the address.
static void chain_key(const struct parts *p, const struct api_pdr *pdr, struct session_key *k)
{
	const struct api_session *s = p->s;
	struct exact_key e;

	memset(k, 0, sizeof(*k));
	k->instance = 0xff;
	if (pdr->match & API_PDR_ENDPOINT) {
		const struct port *port = port_by_name(s->port);

		k->table = TABLE_ENDPOINT;
		endpoint_key(&e, port ? port->index : PORT_NONE, s->s_tag, s->c_tag, s->pppoe_session, s->mac);
		k->word[0] = exact_word(&e, 0);
		k->word[1] = exact_word(&e, 1);
	} else if (pdr->match & API_PDR_FTEID) {
		uint16_t local = path_local_id(pdr->local.family, pdr->local.bytes);

		k->table = TABLE_FTEID;
		k->word[0] = fteid_key(pdr->teid, local);
		k->instance = (uint8_t)instance_of_local_staged(local); // INSTANCE_NONE becomes 0xff
	} else {
		k->table = TABLE_UE;
		if (pdr->instance != 0xff)
			k->instance = (uint8_t)instance_index(s->instance[pdr->instance]);
		k->word[0] = (uint64_t)k->instance << 1 | (pdr->source == API_FROM_ACCESS);
	}
}

static int same_key(const struct session_key *a, const struct session_key *b)
{
	return a->table == b->table && memcmp(a->word, b->word, sizeof(a->word)) == 0;
}

static int looks_beyond_flow(const struct rule_match *m)
{
	for (uint16_t i = 0; i < m->sdfs; i++)
		if ((m->sdf[i].flags & (API_SDF_TOS | API_SDF_SPI | API_SDF_FLOW_LABEL)) || m->sdf[i].s_pcp != 0 ||
			m->sdf[i].c_pcp != 0)
			return 1;
	return 0;
}

static int looks_at_ports(const struct rule_match *m)
{
	for (uint16_t i = 0; i < m->sdfs; i++) {
		const struct api_sdf *f = &m->sdf[i];

		if ((f->flags & API_SDF_SPI) || f->remote_port[0] != 0 || f->local_port[0] != 0 ||
			(f->remote_port[1] & f->local_port[1]) != UINT16_MAX)
			return 1;
	}
	return 0;
}

// Marks the rules of a chain in which the key alone does not say which PDR it is, if any.
static void mark(uint32_t first)
{
	struct rule *head = &session_pools.rule[first];
	int filters = session_pools.match[first].next != RULE_NONE, addresses = 0, each = 0, ports = 0;

	for (uint32_t i = first; i != RULE_NONE; i = session_pools.match[i].next) {
		const struct rule_match *m = &session_pools.match[i];

		filters |= (m->match & (API_PDR_SDF | API_PDR_QFI)) != 0;
		each |= looks_beyond_flow(m);
		ports |= looks_at_ports(m);
		// A rule with an access header has no place for the UE's addresses.
		addresses |= session_pools.rule[i].outer == API_OUTER_ENDPOINT && (m->match & API_PDR_UE_IP);
	}
	for (uint32_t i = first; (filters | addresses) && i != RULE_NONE; i = session_pools.match[i].next)
		session_pools.rule[i].flags |= RULE_SEVERAL_PDRS;
	session_pools.match[first].match &= (uint16_t)~MATCH_PORTS;
	session_pools.match[first].match |= ports ? MATCH_PORTS : 0;
	head->chain = each ? CHAIN_PER_PACKET : filters ? 0 : CHAIN_ALONE;
}

// Chains the session's rules by key; first[i] is the first rule of PDR i's chain. Insertion sort: at most API_MAX_PDR.
static void chain(const struct session *s, const struct parts *p, uint32_t *first)
{
	struct session_key key[API_MAX_PDR];

	for (uint16_t i = 0; i < s->rules; i++) {
		uint16_t leader = 0;

		chain_key(p, &p->pdr[i], &key[i]);
		while (!same_key(&key[leader], &key[i]))
			leader++;
		uint32_t begin = leader == i ? RULE_NONE : first[leader], *at = &begin;
		while (*at != RULE_NONE && session_pools.match[*at].precedence <= p->pdr[i].precedence)
			at = &session_pools.match[*at].next;
		session_pools.match[s->rule[i]].next = *at;
		*at = s->rule[i];
		first[i] = begin;
		for (uint16_t k = leader; k < i; k++)
			if (same_key(&key[k], &key[i]))
				first[k] = begin;
	}
	for (uint16_t i = 0; i < s->rules; i++)
		if (first[i] == s->rule[i])
			mark(first[i]);
}

static void add_key(uint16_t *n, const struct session_key *k)
{
	for (uint16_t i = 0; i < *n; i++)
		if (same_key(&own.key[i], k))
			return;
	if (*n < MAX_KEYS)
		own.key[(*n)++] = *k;
}

static void add_address(uint16_t *n, struct session_key k, uint8_t family, const uint8_t *address, uint8_t prefix)
{
	k.word[0] = ue_key(k.instance, k.word[0] & 1, family, address, prefix);
	k.family = family;
	k.prefix = prefix;
	add_key(n, &k);
}

static void add_addresses(const struct session *s, const struct api_pdr *pdr, const struct session_key *k, uint16_t *n)
{
	if (s->has_ue4 && !(pdr->match & API_PDR_UE6_ONLY))
		add_address(n, *k, 4, s->ue4, 32);
	if (s->ue6_prefix <= 128 && !(pdr->match & API_PDR_UE4_ONLY))
		add_address(n, *k, 6, s->ue6, s->ue6_prefix);
	for (uint8_t i = 0; (pdr->match & API_PDR_FRAMED) && i < s->routes; i++)
		// A UE with one address may have networks of the other family behind it (rule_has_address()).
		add_address(n, *k, s->route[i].family, s->route[i].bytes, s->route[i].prefix);
}

int session_keys(struct session *s, const struct parts *p)
{
	uint32_t first[API_MAX_PDR];
	uint16_t n = 0;

	chain(s, p, first);
	for (uint16_t i = 0; i < s->rules; i++) {
		struct session_key k;

		chain_key(p, &p->pdr[i], &k);
		k.first = first[i];
		if (k.table == TABLE_UE)
			add_addresses(s, &p->pdr[i], &k, &n);
		else
			add_key(&n, &k);
	}
	s->key = malloc(RTE_MAX(n, (uint16_t)1) * sizeof(*s->key));
	if (s->key == NULL)
		return object_error(ENOMEM, "no memory for session %s", s->name);
	memcpy(s->key, own.key, n * sizeof(*s->key));
	s->keys = n;
	return 0;
}

// 1 when another session has a shorter prefix with that of the key in it.
static int is_in_other(const struct session *s, const struct session_key *k, const uint8_t *address)
{
	for (uint8_t bits = 0; bits < k->prefix; bits++) {
		struct session_key wider = *k;
		uint64_t value;

		if (own.users[k->family == 6][bits] == 0)
			continue;
		wider.word[0] = ue_key(k->instance, 0, k->family, address, bits);
		if (session_key_find(&wider, &value) && rule_of_key(value)->session != s->index)
			return 1;
	}
	return 0;
}

static int has_key(const struct session *s, const struct session_key *k)
{
	for (uint16_t i = 0; s != NULL && i < s->keys; i++)
		if (same_key(&s->key[i], k))
			return 1;
	return 0;
}

// The fast paths' knowledge of destinations, and of a destination's session, may be outdated.
static void renew(const struct session *s, const struct session_key *k, const uint8_t *address, int *inside)
{
	const struct instance *n = instance_get(k->instance);

	*inside |= is_in_other(s, k, address);
	if (n != NULL && n->pools != 0 && !instance_owns(n, k->family, address))
		ip_ways_changed();
}

void session_homes_renew(const struct session *s, const struct session *old)
{
	int inside = 0;

	for (uint16_t i = 0; i < s->keys; i++) {
		const struct session_key *k = &s->key[i];

		if (k->table != TABLE_UE || session_tables.homes[k->instance] == 0 || has_key(old, k))
			continue;
		if (k->family == 4 && k->prefix == 32 && s->has_ue4)
			renew(s, k, s->ue4, &inside);
		if (k->family == 6 && k->prefix == s->ue6_prefix)
			renew(s, k, s->ue6, &inside);
		for (uint8_t r = 0; r < s->routes; r++)
			if (k->family == s->route[r].family && k->prefix == s->route[r].prefix)
				renew(s, k, s->route[r].bytes, &inside);
	}
	if (inside)
		__atomic_add_fetch(&session_tables.home_era, 1, __ATOMIC_RELEASE);
}

void session_lengths_add(const struct session *s, int difference)
{
	for (uint16_t i = 0; i < s->keys; i++) {
		const struct session_key *k = &s->key[i];

		if (k->instance != 0xff && k->table != TABLE_ENDPOINT)
			instance_count(k->instance, k->table == TABLE_FTEID ? difference : 0,
				k->table == TABLE_UE ? difference : 0);
		if (k->table != TABLE_UE)
			continue;
		if (s->encap != API_ENCAP_NONE)
			__atomic_add_fetch(&session_tables.homes[k->instance], (uint32_t)difference, __ATOMIC_RELAXED);
		uint32_t *users = &own.users[k->family == 6][k->prefix];
		uint32_t before = *users;
		*users += (uint32_t)difference;
		own.changed |= (before == 0) != (*users == 0);
	}
}

// Workers look for the lengths in use only, longest first.
void session_lengths_publish(void)
{
	struct ue_lengths *l = session_tables.lengths == &lengths[0] ? &lengths[1] : &lengths[0];

	if (session_tables.lengths != NULL && !own.changed)
		return;
	own.changed = 0;
	l->count[0] = l->count[1] = 0;
	for (int f = 0; f < 2; f++)
		for (int bits = 128; bits >= 0; bits--)
			if (own.users[f][bits] != 0)
				l->prefix[f][l->count[f]++] = (uint8_t)bits;
	__atomic_store_n(&session_tables.lengths, l, __ATOMIC_RELEASE);
}
