// SPDX-License-Identifier: Apache-2.0
// The object store and its transactions.
#include "core/object.h"
#include "core/body.h"
#include "core/contract.h"
#include "core/worker.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPEN_BYTES (1ull << 30) // bodies of one transaction

struct object {
	struct object *next; // in its bucket
	char key[API_NAME];
	uint64_t digest;
	struct body body;
	void *live; // the owning module's
	uint32_t kind;
	uint32_t change; // of the open transaction: index + 1, or 0
	uint32_t users; // objects that name this one, as after the open transaction (object_use)
};

static struct {
	const struct object_ops *ops[API_KIND_COUNT];
	struct table {
		// Chained, in the order of keys (api_list): the high bits are the number of the bucket
		struct object **bucket;
		uint32_t bits, count; // count: held or staged objects
	} table[API_KIND_COUNT];
	uint32_t count; // in all tables
	int open, committing;
	struct object_change *change;
	struct object **object; // of change[i]; an object that is being created is not in the table's count yet
	uint32_t changes, room;
	uint64_t bytes;
	void (*begins)(void), (*settles)(void); // of object_commit_watch()
} store;

struct object_totals object_totals;

static uint64_t order_of(const char *key)
{
	uint64_t x = fnv1a(FNV_START, key, strnlen(key, API_NAME));

	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

// The number of the bucket that holds an order. Only of a table that has buckets, of which there are more than one.
static uint32_t bucket_of(const struct table *t, uint64_t order)
{
	return (uint32_t)(order >> (64 - t->bits));
}

static uint32_t buckets_of(const struct table *t)
{
	return t->bucket != NULL ? 1u << t->bits : 0;
}

static int grow(struct table *t)
{
	struct table now = {.bits = t->bucket != NULL ? t->bits + 2 : 6, .count = t->count};

	now.bucket = calloc(1u << now.bits, sizeof(*now.bucket));
	if (now.bucket == NULL)
		return ENOMEM;
	for (uint32_t i = 0; i < buckets_of(t); i++)
		for (struct object *o = t->bucket[i], *next; o != NULL; o = next) {
			struct object **at = &now.bucket[bucket_of(&now, order_of(o->key))];

			next = o->next;
			o->next = *at;
			*at = o;
		}
	free(t->bucket);
	*t = now;
	return 0;
}

// The object's change in a transaction that is being committed; an open one stays invisible.
static const struct object_change *changing(const struct object *o)
{
	return store.committing && o->change != 0 ? &store.change[o->change - 1] : NULL;
}

static struct object *lookup(uint32_t kind, const char *key)
{
	const struct table *t = &store.table[kind];

	if (t->bucket == NULL)
		return NULL;
	for (struct object *o = t->bucket[bucket_of(t, order_of(key))]; o != NULL; o = o->next)
		if (strncmp(o->key, key, API_NAME) == 0)
			return o;
	return NULL;
}

static struct object *insert(uint32_t kind, const char *key)
{
	struct table *t = &store.table[kind];

	if (t->count >= buckets_of(t) && grow(t) != 0)
		return NULL;
	struct object *o = calloc(1, sizeof(*o));
	if (o == NULL)
		return NULL;
	o->kind = kind;
	snprintf(o->key, sizeof(o->key), "%s", key);
	struct object **at = &t->bucket[bucket_of(t, order_of(key))];
	o->next = *at;
	*at = o;
	store.count++;
	t->count++;
	return o;
}

static void erase(struct object *o)
{
	struct table *t = &store.table[o->kind];
	struct object **at = &t->bucket[bucket_of(t, order_of(o->key))];

	while (*at != o)
		at = &(*at)->next;
	*at = o->next;
	store.count--;
	t->count--;
	body_hold(&o->body, NULL, 0, 0);
	free(o);
}

void object_commit_watch(void (*begins)(void), void (*settles)(void))
{
	store.begins = begins != NULL ? begins : store.begins;
	store.settles = settles != NULL ? settles : store.settles;
}

void object_ops_register(const struct object_ops *ops)
{
	if (ops->kind == 0 || ops->kind >= API_KIND_COUNT || store.ops[ops->kind] != NULL)
		rte_panic("object kind %u (%s) cannot be registered\n", ops->kind, ops->name);
	store.ops[ops->kind] = ops;
}

const void *object_find(uint32_t kind, const char *key, uint32_t *length)
{
	const struct object *o = lookup(kind, key);

	if (o == NULL)
		return NULL;
	const struct object_change *c = changing(o);
	*length = c ? c->length : o->body.length;
	return c ? c->body : body_read(&o->body);
}

int object_is_there(uint32_t kind, const char *key)
{
	const struct object *o = lookup(kind, key);

	return o != NULL && (changing(o) ? changing(o)->body != NULL : o->body.bytes != NULL);
}

int object_changing(uint32_t kind, const char *key)
{
	const struct object *o = lookup(kind, key);

	return o != NULL && changing(o) != NULL;
}

void object_use(uint32_t kind, const char *key, int difference)
{
	struct object *o = key[0] != 0 ? lookup(kind, key) : NULL;

	if (o != NULL)
		o->users += (uint32_t)difference;
}

int object_each(uint32_t kind, int (*fn)(const char *key, const void *body, uint32_t length, void *arg), void *arg)
{
	const struct table *t = &store.table[kind];
	int stop = 0;

	for (uint32_t i = 0; i < buckets_of(t) && !stop; i++)
		for (const struct object *o = t->bucket[i]; o != NULL && !stop; o = o->next) {
			const struct object_change *c = changing(o);
			const void *body = c ? c->body : body_read(&o->body);

			if (body != NULL)
				stop = fn(o->key, body, c ? c->length : o->body.length, arg);
		}
	return stop;
}

// The least order in a bucket that is not below `first`, of an object that is held. Returns 0 when there is none.
static int next_order(const struct object *bucket, uint64_t first, uint64_t *order)
{
	int found = 0;

	for (const struct object *o = bucket; o != NULL; o = o->next) {
		uint64_t x = order_of(o->key);

		if (o->body.bytes == NULL || x < first || (found && x >= *order))
			continue; // only staged, or not next
		*order = x;
		found = 1;
	}
	return found;
}

static uint32_t list_order(
	const struct object *bucket, uint64_t order, void (*fn)(const struct api_digest *d, void *arg), void *arg)
{
	uint32_t n = 0;

	for (const struct object *o = bucket; o != NULL; o = o->next) {
		struct api_digest d = {.kind = o->kind, .digest = o->digest};

		if (o->body.bytes == NULL || order_of(o->key) != order)
			continue;
		snprintf(d.key, sizeof(d.key), "%s", o->key);
		fn(&d, arg);
		n++;
	}
	return n;
}

uint64_t object_list(const struct api_list *l, uint64_t from, uint32_t *room, int *more,
	void (*fn)(const struct api_digest *d, void *arg), void *arg)
{
	const struct table *t = &store.table[l->kind];
	uint64_t order = 0;

	if (t->bucket == NULL)
		return 0;
	uint32_t i = bucket_of(t, from);
	while (next_order(t->bucket[i], from, &order) && order <= l->last) {
		*more = *room == 0;
		if (*more)
			return 0;
		*room -= RTE_MIN(list_order(t->bucket[i], order, fn, arg), *room);
		if (order == UINT64_MAX)
			return 0;
		from = order + 1;
	}
	return i < bucket_of(t, l->last) ? (uint64_t)(i + 1) << (64 - t->bits) : 0;
}

int object_begin(void)
{
	if (store.open)
		return EBUSY;
	store.open = 1;
	object_explain("%s", "");
	return 0;
}

// Forgets the open transaction: bodies that were not taken over, and objects that exist only in it.
static void clear(void)
{
	for (uint32_t i = 0; i < store.changes; i++) {
		struct object *o = store.object[i];

		free((void *)(uintptr_t)store.change[i].body);
		free(store.change[i].unpacked);
		o->change = 0;
		if (o->body.bytes == NULL)
			erase(o);
	}
	free(store.change);
	free(store.object);
	store.change = NULL;
	store.object = NULL;
	store.changes = store.room = 0;
	store.bytes = 0;
	store.open = store.committing = 0;
}

void object_abort(void)
{
	if (store.open)
		clear();
}

static int add_change(struct object *o, void *body, uint32_t length)
{
	if (store.changes == store.room) {
		uint32_t room = store.room ? store.room * 2 : 64;
		struct object_change *c = realloc(store.change, room * sizeof(*c));

		if (c != NULL)
			store.change = c;
		struct object **list = realloc(store.object, room * sizeof(struct object *));
		if (list != NULL)
			store.object = list;
		if (c == NULL || list == NULL)
			return ENOMEM;
		store.room = room;
	}
	void *unpacked = o->body.stored != 0 ? malloc(o->body.length) : NULL;
	if (unpacked == NULL && o->body.stored != 0)
		return ENOMEM;
	if (unpacked != NULL)
		body_copy(&o->body, unpacked);
	struct object_change *c = &store.change[store.changes];
	*c = (struct object_change){
		.kind = o->kind,
		.key = o->key,
		.body = body,
		.length = length,
		.old_body = unpacked != NULL ? unpacked : o->body.bytes,
		.unpacked = unpacked,
		.old_length = o->body.length,
		.live = &o->live,
	};
	store.object[store.changes++] = o;
	o->change = store.changes;
	return 0;
}

static int head_ok(const struct api_object_head *head)
{
	if (!store.open)
		return object_error(EINVAL, "no transaction is open");
	if (head->kind == 0 || head->kind >= API_KIND_COUNT || store.ops[head->kind] == NULL)
		return object_error(EINVAL, "object kind %u is not known", head->kind);
	if (head->key[0] == 0 || memchr(head->key, 0, API_NAME) == NULL)
		return object_error(EINVAL, "an object of kind %s has no proper key", store.ops[head->kind]->name);
	if (store.changes >= API_MAX_CHANGES || store.bytes > MAX_OPEN_BYTES)
		return object_error(E2BIG, "the transaction is too large");
	return 0;
}

static int put(const struct api_object_head *head, const void *body, uint32_t length)
{
	const struct object_ops *ops = store.ops[head->kind];

	if (length < ops->min_length || (ops->max_length != 0 && length > ops->max_length))
		return object_error(EINVAL, "%s %s has a body of %u bytes, expected at least %u", ops->name, head->key,
			length, ops->min_length);
	struct object *o = lookup(head->kind, head->key);
	if (o != NULL && o->change != 0)
		return object_error(EEXIST, "%s %s stands twice in the transaction", ops->name, head->key);
	void *copy = malloc(length);
	if (copy == NULL)
		return object_error(ENOMEM, "no memory");
	memcpy(copy, body, length);
	if (o == NULL)
		o = insert(head->kind, head->key);
	if (o == NULL || add_change(o, copy, length) != 0) {
		free(copy);
		if (o != NULL && o->body.bytes == NULL)
			erase(o);
		return object_error(ENOMEM, "no memory");
	}
	store.bytes += length;
	return 0;
}

int object_put(const struct api_object_head *head, const void *body, uint32_t length)
{
	int error = head_ok(head);

	return error != 0 ? error : put(head, body, length);
}

int object_put_parts(const struct api_object_head *head, struct part_reader *r)
{
	const void *body = NULL;
	uint32_t length = 0;
	int error = head_ok(head);

	if (error == 0)
		error = object_read(store.ops[head->kind], head->key, r, &body, &length);
	return error != 0 ? error : put(head, body, length);
}

int object_delete(const struct api_object_head *head)
{
	int error = head_ok(head);

	if (error != 0)
		return error;
	struct object *o = lookup(head->kind, head->key);
	if (o == NULL)
		return 0; // idempotent
	if (o->change != 0)
		return object_error(
			EEXIST, "%s %s stands twice in the transaction", store.ops[head->kind]->name, head->key);
	return add_change(o, NULL, 0) == 0 ? 0 : object_error(ENOMEM, "no memory");
}

// Deletions first, highest kind first; then the rest, lowest kind first.
static int order(const struct object_change *c)
{
	return c->body == NULL ? API_KIND_COUNT - (int)c->kind : API_KIND_COUNT + (int)c->kind;
}

static int sort_changes(uint32_t **sorted)
{
	uint32_t at[2 * API_KIND_COUNT + 1] = {0};
	uint32_t *list = malloc((store.changes + 1) * sizeof(*list));

	if (list == NULL)
		return object_error(ENOMEM, "no memory");
	for (uint32_t i = 0; i < store.changes; i++)
		at[order(&store.change[i]) + 1]++;
	for (int i = 1; i <= 2 * API_KIND_COUNT; i++)
		at[i] += at[i - 1];
	for (uint32_t i = 0; i < store.changes; i++)
		list[at[order(&store.change[i])]++] = i;
	*sorted = list;
	return 0;
}

struct progress {
	uint32_t staged; // changes whose stage() succeeded, in sorted order
	uint64_t finished; // bit per kind whose finish_stage() succeeded
	struct object_change *failed;
};

static int last_of_kind(const uint32_t *sorted, uint32_t i)
{
	return i + 1 == store.changes || store.change[sorted[i + 1]].kind != store.change[sorted[i]].kind;
}

static int finish_kind(uint32_t kind, struct progress *p)
{
	const struct object_ops *ops = store.ops[kind];

	// A kind with deletions and puts is finished after its puts.
	if (p->finished & (1ull << kind))
		return 0;
	if (ops->finish_stage != NULL) {
		int error = ops->finish_stage();

		if (error != 0)
			return error;
	}
	p->finished |= 1ull << kind;
	return 0;
}

static int kind_has_puts(uint32_t kind)
{
	for (uint32_t i = 0; i < store.changes; i++)
		if (store.change[i].kind == kind && store.change[i].body != NULL)
			return 1;
	return 0;
}

static int stage_all(const uint32_t *sorted, struct progress *p)
{
	for (uint32_t i = 0; i < store.changes; i++) {
		struct object_change *c = &store.change[sorted[i]];
		int error = store.ops[c->kind]->stage(c);

		if (error == 0)
			p->staged = i + 1;
		if (error == 0 && last_of_kind(sorted, i) && (c->body != NULL || !kind_has_puts(c->kind)))
			error = finish_kind(c->kind, p);
		if (error != 0) {
			p->failed = c;
			return error;
		}
	}
	return 0;
}

// 1 when each object of a kind must be asked whether it accepts this change.
static int must_ask(const struct object_change *c, const struct object *o, uint32_t kind)
{
	const struct object_ops *ops = store.ops[kind];

	if (ops == NULL || ops->verify == NULL || kind <= c->kind || store.table[kind].count == 0)
		return 0;
	return c->narrows || (c->body == NULL && (o->users != 0 || ops->counts == NULL || !ops->counts(c->kind)));
}

static int verify_kind(uint32_t kind)
{
	const struct table *t = &store.table[kind];

	for (uint32_t i = 0; i < buckets_of(t); i++)
		for (const struct object *o = t->bucket[i]; o != NULL; o = o->next) {
			if (o->change != 0)
				continue;
			const void *body = body_read(&o->body);
			int error = body == NULL ? object_error(ENOMEM, "no memory")
						 : store.ops[kind]->verify(o->key, body, o->body.length);
			if (error != 0)
				return error;
		}
	return 0;
}

// Sessions come and go by the thousand per second among millions: a deletion scans nothing when the object can have no
// users.
static int verify_rest(void)
{
	uint32_t asked = 0; // bit per kind

	for (uint32_t i = 0; i < store.changes; i++)
		for (uint32_t kind = 1; kind < API_KIND_COUNT; kind++)
			if (!(asked >> kind & 1) && must_ask(&store.change[i], store.object[i], kind))
				asked |= 1u << kind;
	for (uint32_t kind = 1; kind < API_KIND_COUNT; kind++) {
		int error = asked >> kind & 1 ? verify_kind(kind) : 0;

		if (error != 0)
			return error;
	}
	return 0;
}

static void discard_all(const uint32_t *sorted, const struct progress *p)
{
	for (uint32_t i = p->staged; i-- > 0;) {
		struct object_change *c = &store.change[sorted[i]];

		if (store.ops[c->kind]->discard != NULL)
			store.ops[c->kind]->discard(c);
	}
	for (uint32_t kind = API_KIND_COUNT; kind-- > 1;)
		if ((p->finished & (1ull << kind)) && store.ops[kind]->finish_discard != NULL)
			store.ops[kind]->finish_discard();
}

static void finish_commit(const struct progress *p, uint32_t kind)
{
	if ((p->finished & (1ull << kind)) && store.ops[kind]->finish_commit != NULL)
		store.ops[kind]->finish_commit();
}

static void commit_all(const uint32_t *sorted, const struct progress *p)
{
	for (uint32_t i = 0; i < store.changes; i++) {
		struct object_change *c = &store.change[sorted[i]];

		store.ops[c->kind]->commit(c);
	}
	// Ports last: the first packet of a new port finds everything in place.
	for (uint32_t kind = 1; kind < API_KIND_COUNT; kind++)
		if (kind != API_PORT)
			finish_commit(p, kind);
	store.settles();
	finish_commit(p, API_PORT);
	control_synchronize();
	for (uint32_t i = 0; i < store.changes; i++) {
		struct object_change *c = &store.change[sorted[i]];

		if (store.ops[c->kind]->release != NULL)
			store.ops[c->kind]->release(c);
	}
}

// The store takes over the new bodies.
static void adopt(void)
{
	for (uint32_t i = 0; i < store.changes; i++) {
		struct object *o = store.object[i];
		struct object_change *c = &store.change[i];

		o->digest = c->body ? object_digest(store.ops[o->kind], c->body, c->length) : 0;
		body_hold(&o->body, (void *)(uintptr_t)c->body, c->length, store.ops[o->kind]->packed);
		c->body = NULL;
	}
}

void object_commit(struct api_status *status)
{
	struct progress p = {0};
	uint32_t *sorted = NULL;
	int error;

	memset(status, 0, sizeof(*status));
	store.begins();
	if (!store.open) {
		status->code = EINVAL;
		snprintf(status->text, sizeof(status->text), "no transaction is open");
		return;
	}
	store.committing = 1;
	error = sort_changes(&sorted);
	if (error == 0 && store.changes > 0)
		error = stage_all(sorted, &p);
	if (error == 0)
		error = verify_rest();
	if (error == 0) {
		commit_all(sorted, &p);
		adopt();
		object_totals.commits++;
	} else {
		if (sorted != NULL)
			discard_all(sorted, &p);
		object_totals.refused++;
		status->code = (uint32_t)error;
		if (p.failed != NULL) {
			status->kind = p.failed->kind;
			snprintf(status->key, sizeof(status->key), "%s", p.failed->key);
		}
		object_error_status(status);
	}
	free(sorted);
	clear();
	object_totals.objects = store.count;
}

int object_refresh(uint32_t kind, const char *key)
{
	const struct object *o = lookup(kind, key);
	struct api_object_head head = {.kind = kind};
	struct api_status status;

	if (store.open)
		return EBUSY;
	if (o == NULL || o->body.bytes == NULL)
		return ENOENT;
	snprintf(head.key, sizeof(head.key), "%s", key);
	object_begin();
	const void *body = body_read(&o->body);
	int error = body == NULL ? ENOMEM : object_put(&head, body, o->body.length);
	if (error != 0) {
		object_abort();
		object_totals.refused++;
		return error;
	}
	object_commit(&status);
	return (int)status.code;
}
