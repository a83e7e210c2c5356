// SPDX-License-Identifier: Apache-2.0
// Takes a trace's sessions from the fast path: a trace of one subscriber costs others nothing.
#include "trace/sessions.h"
#include "rule/engine.h"
#include "rule/tables.h"
#include <string.h>

static int has_teid(const struct session *s, uint32_t teid)
{
	for (uint32_t i = 0; i < s->keys; i++)
		if (s->key[i].table == TABLE_FTEID && (uint32_t)s->key[i].word[0] == teid)
			return 1;
	return 0;
}

static int has_endpoint(const struct session *s, const struct api_trace_key *k)
{
	for (uint32_t i = 0; i < s->keys; i++) {
		struct exact_key want, have;
		const uint64_t *word = s->key[i].word;

		if (s->key[i].table != TABLE_ENDPOINT)
			continue;
		endpoint_key(&want, (uint16_t)word[0], k->s_tag, k->c_tag, k->pppoe_session, k->mac);
		session_key_set(&have, word);
		if (memcmp(&want, &have, sizeof(want)) == 0)
			return 1;
	}
	return 0;
}

// A prefix of several hosts may belong to several sessions.
static int has_address(const struct session *s, const struct api_address *a)
{
	if (a->family == 4)
		return s->has_ue4 && a->prefix == 32 && memcmp(s->ue4, a->bytes, 4) == 0;
	return s->ue6_prefix <= 128 && a->prefix >= s->ue6_prefix && ip_prefix_equal(s->ue6, a->bytes, s->ue6_prefix);
}

static int has_key(const struct session *s, const struct api_trace_key *k)
{
	return k->by == API_TRACE_BY_TEID       ? has_teid(s, k->teid)
	       : k->by == API_TRACE_BY_ENDPOINT ? has_endpoint(s, k)
						: has_address(s, &k->address);
}

static void withdraw(const struct session *s)
{
	for (uint16_t i = 0; i < s->rules; i++)
		engines_take(&session_pools.rule[s->rule[i]]);
}

int sessions_withdraw(const struct api_trace_key *key, uint32_t keys, uint64_t most)
{
	uint8_t found[API_TRACE_KEYS] = {0};
	uint32_t missing = keys;
	uint64_t compared = 0;

	for (uint32_t i = 0; i < session_tables.capacity; i++) {
		const struct session *s = session_tables.session[i];
		int is_one = 0;

		if (s == NULL)
			continue;
		compared += (uint64_t)keys * (s->keys + 1u);
		if (compared > most)
			return 0;
		for (uint32_t k = 0; k < keys; k++) {
			if (!has_key(s, &key[k]))
				continue;
			is_one = 1;
			missing -= !found[k];
			found[k] = 1;
		}
		if (is_one)
			withdraw(s);
	}
	return missing == 0;
}
