// SPDX-License-Identifier: Apache-2.0
// The tables, and look-ups off the fast path.
#include "rule/session.h"
#include "rule/tables.h"
#include "rule/view.h"
#include <stdio.h>
#include <string.h>

struct session_pools session_pools;
struct session_tables session_tables;

// By what a packet says.

struct rule *session_endpoint_rule(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	const struct exact *t = session_tables.endpoint;
	struct exact_key k;
	uint64_t value;

	endpoint_key(&k, port, e->s_tag, e->c_tag, e->pppoe_session, mac);
	return exact_lookup(t, exact_hash(t, &k), &k, &value) && value != NARROW_RESERVED ? rule_of_key(value) : NULL;
}

int session_endpoint_known(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	return session_endpoint_rule(port, e, mac) != NULL;
}

int session_owns_address(
	uint16_t port, const struct endpoint_view *e, const uint8_t mac[6], uint8_t family, const uint8_t *address)
{
	const struct rule *r = session_endpoint_rule(port, e, mac);

	if (r == NULL)
		return 0;
	const struct session *s = __atomic_load_n(&session_tables.session[r->session], __ATOMIC_ACQUIRE);
	if (s == NULL)
		return 0;
	if (family == 4 ? s->has_ue4 && memcmp(s->ue4, address, 4) == 0
			: s->ue6_prefix <= 128 && ip_prefix_equal(s->ue6, address, s->ue6_prefix))
		return 1;
	for (uint8_t i = 0; i < s->routes; i++)
		if (s->route[i].family == family && ip_prefix_equal(s->route[i].bytes, address, s->route[i].prefix))
			return 1;
	return 0;
}

static const struct rule *other_direction(const struct rule *r)
{
	uint32_t other = session_pools.match[rule_index(r)].other;

	return other == RULE_NONE ? NULL : &session_pools.rule[other];
}

const struct rule *session_downlink_rule(const struct rule *uplink_rule)
{
	return other_direction(uplink_rule);
}

const struct rule *session_uplink_rule(const struct rule *downlink_rule)
{
	return other_direction(downlink_rule);
}

const struct rule *session_endpoint_downlink(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	const struct rule *r = session_endpoint_rule(port, e, mac);

	return r == NULL ? NULL : other_direction(r);
}

const struct rule *session_ue_rule_beside(uint64_t absent, uint16_t instance, uint8_t family, const uint8_t *address)
{
	const struct ue_lengths *lengths = __atomic_load_n(&session_tables.lengths, __ATOMIC_ACQUIRE);
	int six = family == 6;

	for (uint8_t i = 0; i < lengths->count[six]; i++)
		for (int any = 0; any < 2; any++) {
			uint64_t value, key = ue_key(any ? 0xff : (uint8_t)instance, 0, family, address,
						lengths->prefix[six][i]);

			if (key != absent &&
				narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value))
				return rule_of_key(value);
		}
	return NULL;
}

int session_home_known(uint16_t instance, uint8_t family, const uint8_t *address)
{
	if (session_homes_of(instance) == 0)
		return 0;
	const struct rule *first = session_ue_rule(instance, family, address);
	return first != NULL && first->outer == API_OUTER_ENDPOINT;
}

// By what is kept of a session.

static const struct session *in_force(uint32_t session)
{
	return session < session_tables.capacity ? __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE)
						 : NULL;
}

struct rule *session_rule(uint32_t session, uint16_t pdr)
{
	const struct session *s = in_force(session);

	for (uint16_t i = 0; s != NULL && i < s->rules; i++)
		if (session_pools.match[s->rule[i]].pdr == pdr)
			return &session_pools.rule[s->rule[i]];
	return NULL;
}

struct rule *session_rule_at(uint32_t session, uint16_t i)
{
	const struct session *s = in_force(session);

	return s != NULL && i < s->rules ? &session_pools.rule[s->rule[i]] : NULL;
}

uint16_t session_discard(uint32_t session)
{
	const struct session *s = in_force(session);

	return s != NULL ? s->discard : 0;
}

uint32_t session_association(uint32_t session)
{
	const struct session *s = in_force(session);

	return s != NULL ? s->association : 0;
}

uint16_t session_mss(uint32_t session)
{
	const struct session *s = in_force(session);

	return s != NULL ? s->mss : 0;
}

struct rule *session_fteid_rule(uint32_t teid, uint16_t local)
{
	uint64_t key = fteid_key(teid, local), value;

	if (!narrow_lookup(session_tables.key, narrow_hash(session_tables.key, key), key, &value))
		return NULL;
	return rule_of_key(value);
}

int session_identity(uint32_t session, char name[API_NAME], uint64_t *seid)
{
	const struct session *s = session < session_tables.capacity ? session_tables.session[session] : NULL;

	if (s == NULL)
		return 0;
	snprintf(name, API_NAME, "%s", s->name);
	*seid = s->seid;
	return 1;
}

static int sends_to(const struct session *s, uint16_t instance)
{
	for (uint16_t i = 0; i < s->rules; i++)
		if (session_pools.rule[s->rule[i]].instance == instance)
			return 1;
	for (uint16_t i = 0; i < s->keys; i++)
		if (s->key[i].table == TABLE_UE && s->key[i].instance == instance)
			return 1;
	return 0;
}

int session_chosen(const struct session *s, const struct api_address *ue, uint16_t instance)
{
	if (ue->family == 4 && !(s->has_ue4 && ip_prefix_equal(s->ue4, ue->bytes, ue->prefix)))
		return 0;
	if (ue->family == 6 &&
		(s->ue6_prefix > 128 || s->ue6_prefix < ue->prefix || !ip_prefix_equal(s->ue6, ue->bytes, ue->prefix)))
		return 0;
	return instance == UINT16_MAX || sends_to(s, instance);
}
