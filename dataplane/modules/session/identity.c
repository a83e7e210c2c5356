// SPDX-License-Identifier: Apache-2.0
// From what other modules keep of a session (its index, a PDR's id, an F-TEID) back to its rules.
#include "session/tables.h"
#include <stdio.h>

struct rule *session_rule(uint32_t session, uint16_t pdr)
{
	if (session >= session_tables.capacity)
		return NULL;
	const struct session *s = __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE);
	for (uint16_t i = 0; s != NULL && i < s->rules; i++)
		if (session_pools.match[s->rule[i]].pdr == pdr)
			return &session_pools.rule[s->rule[i]];
	return NULL;
}

struct rule *session_rule_at(uint32_t session, uint16_t i)
{
	if (session >= session_tables.capacity)
		return NULL;
	const struct session *s = __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE);
	return s != NULL && i < s->rules ? &session_pools.rule[s->rule[i]] : NULL;
}

uint16_t session_discard(uint32_t session)
{
	if (session >= session_tables.capacity)
		return 0;
	const struct session *s = __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE);
	return s != NULL ? s->discard : 0;
}

uint32_t session_association(uint32_t session)
{
	if (session >= session_tables.capacity)
		return 0;
	const struct session *s = __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE);
	return s != NULL ? s->association : 0;
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
