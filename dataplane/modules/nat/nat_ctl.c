// SPDX-License-Identifier: Apache-2.0
// The NAT object: tables are made beside the old ones, swapped, and freed after a grace period. Times and blocks per
// subscriber change in place; any other change makes a new table and loses all mappings.
#include "core/control.h"
#include "core/event.h"
#include "core/object.h"
#include "nat/nat.h"
#include "nat/pairs.h"
#include "nat/table.h"
#include "route/route.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "rule/watch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TIME (7 * 86400u)
#define BLOCKS_OF_STEP (1u << 17) // looked at, a millisecond
#define REPORT_INTERVAL_MS 100

// The last report of a block to the control plane.
struct nat_report {
	uint64_t seid;
	uint32_t inside, session;
	uint16_t epoch;
	uint8_t given;
};

struct nat_now nat_now;

static struct {
	struct nat *first; // in force
	struct nat *retired; // a release of some block is not reported yet
	uint16_t *epoch; // by session
	uint16_t notice;
	uint32_t tables; // made so far
	int owed;
} own;

static int session_lives(uint32_t session, uint32_t worker)
{
	const struct session *s = __atomic_load_n(&session_tables.session[session], __ATOMIC_ACQUIRE);

	return s != NULL && s->worker == worker;
}

static void block_told(const struct nat_table *t, uint32_t worker, uint32_t block)
{
	event_notify(worker_get(worker), own.notice, block, t->id); // when that fails, lost() looks at all blocks
}

static int raise(const struct nat_table *t, uint32_t id, uint32_t type, uint32_t since)
{
	const struct nat_block *b = &t->block[id];
	const struct nat_report *r = &t->report[id];
	struct api_event e = {.type = type, .seid = r->seid, .rule = (uint32_t)b->first << 16 | (b->first + t->mask)};
	char name[API_NAME];
	uint64_t seid;

	e.local = e.peer = (struct api_address){.family = 4, .prefix = 32};
	memcpy(e.local.bytes, &b->outside, 4);
	memcpy(e.peer.bytes, &r->inside, 4);
	if (type == API_EVENT_NAT_ALLOCATE && session_identity(r->session, name, &seid))
		memcpy(e.session, name, sizeof(name));
	e.usage.start_ns = event_realtime_of(since * (rte_get_tsc_hz() / NAT_SECOND));
	return event_try(&e);
}

// Reports pending changes of a block. Returns 0, or an errno when there is no room for it.
static int report(const struct nat_table *t, uint32_t id, int gone)
{
	const struct nat_block *b = &t->block[id];
	struct nat_report *r = &t->report[id];
	uint32_t at = gone ? NAT_NONE : __atomic_load_n(&b->subscriber, __ATOMIC_ACQUIRE);
	const struct nat_subscriber *s = at == NAT_NONE ? NULL : &t->subscriber[at];
	int error = 0;

	if (r->given && (s == NULL || s->session != r->session || (uint16_t)s->epoch != r->epoch)) {
		error = raise(t, id, API_EVENT_NAT_RELEASE, b->since);
		r->given = error != 0;
	}
	if (error != 0 || s == NULL || r->given)
		return error;
	char name[API_NAME];
	*r = (struct nat_report){.inside = b->inside, .session = s->session, .epoch = (uint16_t)s->epoch};
	session_identity(r->session, name, &r->seid);
	error = raise(t, id, API_EVENT_NAT_ALLOCATE, b->since);
	r->given = error == 0;
	return error;
}

static void owe(struct nat *n, uint32_t from)
{
	n->owed = n->owed == 0 || from + 1 < n->owed ? from + 1 : n->owed;
	own.owed = 1;
}

static void told(uint32_t worker, uint32_t block, uint64_t table)
{
	for (struct nat *n = own.first; n != NULL; n = n->next)
		if (n->table->id == table && report(n->table, block, 0) != 0)
			owe(n, block);
}

static void lost(void)
{
	for (struct nat *n = own.first; n != NULL; n = n->next)
		owe(n, 0);
}

// As many reports as there is room for, of at most so many blocks. 1 when none is pending.
static int pay(struct nat *n, int gone)
{
	for (uint32_t k = 0; k < BLOCKS_OF_STEP && n->owed != 0 && n->owed <= n->table->blocks; k++, n->owed++)
		if (report(n->table, n->owed - 1, gone) != 0)
			break;
	if (n->owed > n->table->blocks)
		n->owed = 0;
	return n->owed == 0;
}

static void drop_table(struct nat_table *t)
{
	free(t->report);
	nat_table_free(t);
}

static void settle(uint64_t now_ns)
{
	if (!own.owed)
		return;
	own.owed = 0;
	for (struct nat *n = own.first; n != NULL; n = n->next)
		own.owed |= !pay(n, 0);
	for (struct nat **link = &own.retired; *link != NULL;) {
		struct nat *n = *link;

		if (!pay(n, 1)) {
			own.owed = 1;
			link = &n->next;
			continue;
		}
		*link = n->next;
		drop_table(n->table);
		free(n);
	}
}

static int check_prefixes(const char *key, const char *what, const struct api_address *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char text[2][64];

		if (!address_valid(&a[i]) || !prefix_canonical(&a[i]) || a[i].family != 4 || a[i].prefix < 8)
			return object_error(EINVAL, "nat of %s: %s %u is no proper IPv4 prefix of 8 bits or more", key,
				what, i + 1);
		for (uint32_t k = 0; k < i; k++)
			if (ip_in_prefix(&a[k], 4, a[i].bytes) || ip_in_prefix(&a[i], 4, a[k].bytes))
				return object_error(EINVAL, "nat of %s: %s %s and %s overlap", key, what,
					address_text(&a[k], text[0]), address_text(&a[i], text[1]));
	}
	return 0;
}

static int check_size(const char *key, const struct api_nat *want)
{
	struct nat_range r[API_NAT_ADDRESSES];
	uint64_t inside = nat_ranges(r, want->inside_prefix, want->inside);
	uint64_t addresses = nat_ranges(r, want->address, want->addresses);
	uint64_t per_address = (want->port[1] - want->port[0] + 1u) / want->block;

	if (per_address == 0 || addresses * per_address * want->block > NAT_MAX_PORTS)
		return object_error(EINVAL, "nat of %s: %lu blocks an address of %u ports; at most %u ports in all",
			key, per_address, want->block, NAT_MAX_PORTS);
	// RFC 7422 §2: every subscriber has its ports beforehand.
	if (want->mode == API_NAT_DETERMINISTIC && inside > addresses * per_address)
		return object_error(EINVAL, "nat of %s: %lu inside addresses, but blocks for %lu", key, inside,
			addresses * per_address);
	return 0;
}

static int check_pairs(const char *key, const struct api_nat *want)
{
	const uint32_t all = API_NAT_GRE | API_NAT_ESP | API_NAT_6IN4;

	if (want->pairs == 0 && (want->pair_protocols | want->pairs_of_subscriber | want->pair_timeout) == 0)
		return 0;
	if (want->pairs == 0 || want->pairs > PAIRS_MOST || want->pair_protocols == 0 ||
		(want->pair_protocols & ~all) != 0 || want->pairs_of_subscriber == 0 ||
		want->pairs_of_subscriber > PAIRS_OF_SUBSCRIBER_MOST || want->pair_timeout == 0 ||
		want->pair_timeout > MAX_TIME)
		return object_error(EINVAL, "nat of %s: pairs have a value out of range", key);
	return 0;
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_nat *want = body;
	const uint32_t times[] = {want->udp, want->tcp, want->tcp_transitory, want->icmp};
	int index = instance_index(key), error;

	if (index < 0 || instance_staged((uint16_t)index)->lookup != API_LOOKUP_DESTINATION)
		return object_error(
			ENOENT, "nat of %s: there is no instance of that name that looks destinations up", key);
	if ((want->mode != API_NAT_BLOCKS && want->mode != API_NAT_DETERMINISTIC) || want->inside == 0 ||
		want->inside > API_NAT_INSIDE || want->addresses == 0 || want->addresses > API_NAT_ADDRESSES ||
		want->port[0] == 0 || want->port[1] < want->port[0] || want->block < 16 || want->block > 4096 ||
		!rte_is_power_of_2(want->block) || want->blocks == 0 || want->blocks > 64 ||
		(want->mode == API_NAT_DETERMINISTIC && want->blocks != 1) || want->hold > MAX_TIME)
		return object_error(EINVAL, "nat of %s has a value out of range", key);
	for (uint32_t i = 0; i < RTE_DIM(times); i++)
		if (times[i] == 0 || times[i] > MAX_TIME)
			return object_error(
				EINVAL, "nat of %s: a time-out is %u s, must be 1..%u", key, times[i], MAX_TIME);
	if ((error = check_prefixes(key, "inside prefix", want->inside_prefix, want->inside)) != 0 ||
		(error = check_prefixes(key, "address", want->address, want->addresses)) != 0 ||
		(error = check_pairs(key, want)) != 0)
		return error;
	return check_size(key, want);
}

// 1 when one table serves both configurations.
static int same_table(struct api_nat a, struct api_nat b)
{
	a.blocks = b.blocks = 0;
	a.udp = a.tcp = a.tcp_transitory = a.icmp = a.hold = 0;
	b.udp = b.tcp = b.tcp_transitory = b.icmp = b.hold = 0;
	a.pair_protocols = a.pairs_of_subscriber = a.pair_timeout = 0;
	b.pair_protocols = b.pairs_of_subscriber = b.pair_timeout = 0;
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static struct nat_table *make_table(const struct api_nat *want)
{
	const struct api_engine *e = engine_get();
	struct nat_table *t = nat_table_create(want, e->workers, e->max_sessions);

	if (t == NULL)
		return NULL;
	t->report = calloc(RTE_MAX(t->blocks, 1u), sizeof(*t->report));
	if (t->report == NULL) {
		nat_table_free(t);
		return NULL;
	}
	t->epoch = own.epoch;
	t->lives = session_lives;
	t->told = block_told;
	t->id = ++own.tables;
	if (t->pairs != NULL) {
		t->pairs->epoch = t->epoch;
		t->pairs->lives = t->lives;
	}
	return t;
}

static int stage(struct object_change *c)
{
	struct nat *old = *c->live, *n;
	int error = c->body == NULL ? 0 : check(c->key, c->body, c->length);

	c->replaced = old;
	if (c->body == NULL || error != 0)
		return error;
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return object_error(ENOMEM, "no memory for the nat of %s", c->key);
	snprintf(n->name, sizeof(n->name), "%s", c->key);
	n->want = *(const struct api_nat *)c->body;
	n->table = old != NULL && same_table(old->want, n->want) ? old->table : make_table(&n->want);
	if (n->table == NULL) {
		free(n);
		return object_error(ENOMEM, "no memory for the ports of the nat of %s", c->key);
	}
	c->staged = n;
	return 0;
}

static void discard(struct object_change *c)
{
	struct nat *n = c->staged, *old = c->replaced;

	if (n != NULL && (old == NULL || n->table != old->table))
		drop_table(n->table);
	free(n);
}

static void commit(struct object_change *c)
{
	struct nat *n = c->staged, *old = c->replaced, **link = &own.first;

	for (; old != NULL && *link != NULL; link = &(*link)->next)
		if (*link == old) {
			*link = old->next;
			break;
		}
	if (n != NULL) {
		n->next = own.first;
		own.first = n;
		owe(n, 0); // what a table that stays owed
		__atomic_store_n(&n->table->want.hold, n->want.hold, __ATOMIC_RELAXED);
	}
	*c->live = n;
}

static void release(struct object_change *c)
{
	struct nat *n = c->staged, *old = c->replaced;

	if (old == NULL || (n != NULL && n->table == old->table)) {
		free(old);
		return;
	}
	// The old table has no reader left: its subscribers lost their ports, which is reported first.
	old->next = own.retired;
	own.retired = old;
	owe(old, 0);
}

// After a change of instances or of NATs.
static void bind(void)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct instance *in = instance_staged(i);
		const struct nat *n = in == NULL ? NULL : own.first;

		while (n != NULL && strncmp(n->name, in->name, API_NAME) != 0)
			n = n->next;
		__atomic_store_n(&nat_now.of[i], n, __ATOMIC_RELEASE);
		count += n != NULL;
	}
	__atomic_store_n(&nat_now.count, count, __ATOMIC_RELAXED);
	ip_ways_changed(); // what fast paths know of destinations
}

static const struct object_ops nat_ops = {
	OBJECT_OF_ONE(API_NAT, "nat", struct api_nat),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_commit = bind,
	.verify = check,
};
OBJECT_REGISTER(nat_ops)

struct block_counts {
	uint64_t resting, unreported;
};

static void count_blocks(const struct nat_table *t, uint32_t from, struct block_counts *sum)
{
	uint32_t now = nat_time(worker_get(0));

	for (uint32_t id = from; id < t->blocks && id - from < BLOCKS_OF_STEP; id++) {
		int given = __atomic_load_n(&t->block[id].subscriber, __ATOMIC_RELAXED) != NAT_NONE;

		sum->resting += !given && nat_rests(t, &t->block[id], now);
		sum->unreported += given != t->report[id].given;
	}
}

static void nat_row(struct stats_sink *sink, const struct nat *n, const struct block_counts *sum)
{
	const struct nat_table *t = n->table;
	struct api_nat_row row = {.mode = t->want.mode,
		.addresses = t->addresses,
		.block = t->want.block,
		.blocks = t->blocks,
		.resting = (uint32_t)sum->resting,
		.unreported = sum->unreported};

	snprintf(row.name, sizeof(row.name), "%s", n->name);
	for (uint32_t w = 0; w < t->workers; w++) {
		row.used += t->part[w].blocks;
		row.subscribers += t->part[w].subscribers;
		row.mappings += t->part[w].mappings;
		row.made += t->part[w].made;
	}
	for (uint32_t w = 0; t->pairs != NULL && w < t->workers; w++) {
		row.pairs += t->pairs->part[w].pairs;
		row.pairs_made += t->pairs->part[w].made;
		row.pairs_refused += t->pairs->part[w].refused;
	}
	stats_row(sink, &row, sizeof(row));
}

// A place is a block's number plus those of earlier tables.
static const struct nat *nat_at(uint64_t place, uint32_t *id)
{
	const struct nat *n = own.first;

	for (; n != NULL && place >= n->table->blocks; n = n->next)
		place -= n->table->blocks;
	*id = (uint32_t)place;
	return n;
}

static uint64_t nat_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	struct block_counts *sum = stats_keep(sink);
	uint32_t id, step;
	const struct nat *n = nat_at(place, &id);

	if (n == NULL)
		return 0;
	step = RTE_MIN(n->table->blocks - id, BLOCKS_OF_STEP);
	if (key[0] != 0 && strcmp(key, n->name) != 0)
		return place + n->table->blocks - id;
	count_blocks(n->table, id, sum);
	if (id + step == n->table->blocks) {
		nat_row(sink, n, sum);
		*sum = (struct block_counts){0};
	}
	return place + step;
}

static struct api_address address4(uint32_t a)
{
	struct api_address to = {.family = 4, .prefix = 32};

	memcpy(to.bytes, &a, 4);
	return to;
}

static void block_row(struct stats_sink *sink, const struct nat *n, uint32_t id)
{
	const struct nat_table *t = n->table;
	const struct nat_block *b = &t->block[id];
	uint32_t at = __atomic_load_n(&b->subscriber, __ATOMIC_ACQUIRE);
	struct api_nat_block_row row = {.outside = address4(b->outside),
		.inside = address4(b->inside),
		.port = {b->first, (uint16_t)(b->first + t->mask)},
		.worker = nat_owner(t, id << t->shift),
		.mappings = b->used};
	uint64_t seid;

	if (at == NAT_NONE)
		return;
	snprintf(row.name, sizeof(row.name), "%s", n->name);
	session_identity(t->subscriber[at].session, row.session, &seid);
	stats_row(sink, &row, sizeof(row));
}

static uint64_t block_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	uint32_t id;
	const struct nat *n = nat_at(place, &id);

	if (n != NULL && (key[0] == 0 || strcmp(key, n->name) == 0))
		block_row(sink, n, id);
	return n != NULL ? place + 1 : 0;
}

// The session's index is another's soon.
static void session_is_gone(uint32_t session)
{
	__atomic_fetch_add(&own.epoch[session], 1, __ATOMIC_RELEASE);
}

static int start(const struct api_engine *e)
{
	own.epoch = calloc(e->max_sessions, sizeof(*own.epoch));
	return own.epoch != NULL ? 0 : object_error(ENOMEM, "no memory for %u sessions", e->max_sessions);
}

RTE_INIT(nat_module)
{
	static struct session_watcher watcher = {.removed = session_is_gone};

	session_watch(&watcher);
	instance_watch(bind);
	module_register(start);
	own.notice = event_notice_register(told, lost);
	timer_register(REPORT_INTERVAL_MS, settle);
	stats_table_register(API_TABLE_NAT, sizeof(struct api_nat_row), nat_rows);
	stats_table_register(API_TABLE_NAT_BLOCK, sizeof(struct api_nat_block_row), block_rows);
}
