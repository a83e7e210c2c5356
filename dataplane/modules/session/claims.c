// SPDX-License-Identifier: Apache-2.0
// Sessions that the open transaction makes or changes. Finds two that claim one key (row A5). Reserves their keys: each
// new key enters its table without a value while the transaction is staged, so that a commit cannot fail.
#include "core/control.h"
#include "core/object.h"
#include "session/compile.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct session **list;
	uint32_t count, room;
	uint32_t keys;
} pending;

static struct {
	struct session_key *key; // that were put into their table, without a value
	uint32_t count, room;
} reserved;

static struct {
	const struct session **list; // versions that are replaced or deleted
	uint32_t count, room;
} leaving;

int session_claim(struct session *s)
{
	if (pending.count == pending.room) {
		uint32_t room = pending.room ? pending.room * 2 : 64;
		struct session **list = realloc(pending.list, room * sizeof(*list));

		if (list == NULL)
			return object_error(ENOMEM, "no memory");
		pending.list = list;
		pending.room = room;
	}
	pending.list[pending.count++] = s;
	pending.keys += s->keys;
	return 0;
}

void session_claims_forget(void)
{
	pending.count = pending.keys = leaving.count = 0;
}

int session_leaves(const struct session *old)
{
	if (leaving.count == leaving.room) {
		uint32_t room = leaving.room ? leaving.room * 2 : 64;
		const struct session **list = realloc(leaving.list, room * sizeof(*list));

		if (list == NULL)
			return object_error(ENOMEM, "no memory");
		leaving.list = list;
		leaving.room = room;
	}
	leaving.list[leaving.count++] = old;
	return 0;
}

// A key that a session took over has its value: a rule of that session, or of this one's next version.
static void leave(const struct session *old)
{
	for (uint16_t i = 0; i < old->keys; i++) {
		uint64_t value;
		int own = 0;

		if (!session_key_find(&old->key[i], &value))
			continue;
		for (uint16_t k = 0; k < old->rules; k++)
			own |= old->rule[k] == (uint32_t)value;
		if (own)
			session_key_delete(&old->key[i]);
	}
}

void session_leave_all(void)
{
	for (uint32_t i = 0; i < leaving.count; i++)
		leave(leaving.list[i]);
	leaving.count = reserved.count = 0;
}

struct claim {
	const struct session_key *key;
	const struct session *by;
};

static int claim_order(const void *a, const void *b)
{
	const struct session_key *x = ((const struct claim *)a)->key, *y = ((const struct claim *)b)->key;

	if (x->table != y->table)
		return (int)x->table - (int)y->table;
	return memcmp(x->word, y->word, sizeof(x->word));
}

static int conflict(const struct session *a, const struct session *b, uint8_t table)
{
	static const char *const what[] = {[TABLE_ENDPOINT] = "traffic endpoint (port, tags, PPPoE id, MAC)",
		[TABLE_FTEID] = "F-TEID",
		[TABLE_UE] = "UE address or framed route"};

	return object_error(EEXIST, "sessions %s and %s have the same %s", a->name, b->name, what[table]);
}

// Rows A5: a key of a session that lives and that the transaction leaves alone.
static int check_holder(const struct session *s, const struct session_key *key)
{
	uint64_t value;
	const struct rule *r = session_key_find(key, &value) ? rule_of_key(value) : NULL;
	const struct session *holder = r ? session_tables.session[r->session] : NULL;
	if (holder == NULL || holder->index == s->index || object_changing(API_SESSION, holder->name))
		return 0;
	return conflict(s, holder, key->table);
}

#define FEW_CLAIMS 24u

static int compare_claims(struct claim *claims, uint32_t n)
{
	// Most transactions are small; sorting pays for large ones only.
	if (n > FEW_CLAIMS) {
		qsort(claims, n, sizeof(*claims), claim_order);
		for (uint32_t i = 1; i < n; i++)
			if (claim_order(&claims[i - 1], &claims[i]) == 0)
				return conflict(claims[i - 1].by, claims[i].by, claims[i].key->table);
		return 0;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i + 1; k < n; k++)
			if (claims[i].by != claims[k].by && claim_order(&claims[i], &claims[k]) == 0)
				return conflict(claims[i].by, claims[k].by, claims[i].key->table);
	return 0;
}

// A key may belong to one session only: within the transaction, and among untouched sessions.
static int check_claims(void)
{
	struct claim few[FEW_CLAIMS], *claims = few;
	uint32_t n = 0;
	int error = 0;

	if (pending.keys > FEW_CLAIMS) {
		claims = malloc((size_t)pending.keys * sizeof(*claims));
		if (claims == NULL)
			return object_error(ENOMEM, "no memory");
	}
	for (uint32_t i = 0; i < pending.count && error == 0; i++)
		for (uint16_t k = 0; k < pending.list[i]->keys && error == 0; k++) {
			const struct session *s = pending.list[i];

			claims[n++] = (struct claim){.key = &s->key[k], .by = s};
			error = check_holder(s, &s->key[k]);
		}
	if (error == 0)
		error = compare_claims(claims, n);
	if (claims != few)
		free(claims);
	return error;
}

// A reader of a table may be about to use a removed key: none is added again before it has finished (exact/narrow.h).
void session_reservations_undo(void)
{
	for (uint32_t i = 0; i < reserved.count; i++)
		session_key_delete(&reserved.key[i]);
	if (reserved.count != 0)
		control_synchronize();
	reserved.count = 0;
}

static int reserve(const struct session *s, const struct session_key *key)
{
	int taken = session_key_reserve(key);

	if (taken < 0)
		return object_error(ENOSPC, "session %s: no place in the table for the key of PDR %u", s->name,
			session_pools.match[key->first].pdr);
	if (taken == 1)
		reserved.key[reserved.count++] = *key;
	return 0;
}

static int reserve_all(void)
{
	int error = 0;

	if (pending.keys > reserved.room) {
		struct session_key *list = realloc(reserved.key, pending.keys * sizeof(*list));

		if (list == NULL)
			return object_error(ENOMEM, "no memory");
		reserved.key = list;
		reserved.room = pending.keys;
	}
	for (uint32_t i = 0; i < pending.count && error == 0; i++)
		for (uint16_t k = 0; k < pending.list[i]->keys && error == 0; k++)
			error = reserve(pending.list[i], &pending.list[i]->key[k]);
	if (error != 0)
		session_reservations_undo();
	return error;
}

int session_claims_check(void)
{
	int error = check_claims();

	if (error == 0 &&
		(exact_count(session_tables.endpoint) + pending.count > exact_capacity(session_tables.endpoint) ||
			narrow_count(session_tables.key) + pending.keys > narrow_capacity(session_tables.key)))
		error = object_error(ENOSPC, "too many sessions change at once, or engine.limits.rules is too low");
	if (error == 0)
		error = reserve_all();
	pending.count = pending.keys = 0;
	return error;
}
