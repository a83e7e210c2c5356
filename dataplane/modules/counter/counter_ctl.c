// SPDX-License-Identifier: Apache-2.0
// The COUNTER object, and its rows.
#include "core/control.h"
#include "core/object.h"
#include "counter/counter.h"
#include "instance/instance.h"
#include "route/address.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct counter *find(const char *name) // "": a free one
{
	for (uint32_t i = 0; i < API_MAX_COUNTERS; i++)
		if (strncmp(counters[i].name, name, API_NAME) == 0)
			return &counters[i];
	return NULL;
}

static void use(const struct api_counter *x, int difference)
{
	if (x != NULL)
		object_use(API_INSTANCE, x->instance, difference);
}

static int check(const char *key, const struct api_counter *want)
{
	if (memchr(want->instance, 0, API_NAME) == NULL || want->each > 1 ||
		(want->ue.family != 0 && (!address_valid(&want->ue) || !prefix_canonical(&want->ue))))
		return object_error(EINVAL, "counter %s has a value out of range", key);
	if (want->each && want->bytes == 0 && want->packets == 0)
		return object_error(EINVAL, "counter %s is of each session, and has no watermark", key);
	if (want->instance[0] != 0 && instance_index(want->instance) < 0)
		return object_error(ENOENT, "counter %s: there is no network instance %s", key, want->instance);
	return 0;
}

static int stage(struct object_change *c)
{
	const struct api_counter *want = c->body;
	struct counter *x = find(c->key);

	if (want != NULL) {
		int error = check(c->key, want);

		if (error == 0 && x == NULL && (x = find("")) == NULL)
			error = object_error(ENOSPC, "more than %d counters", API_MAX_COUNTERS);
		if (error != 0)
			return error;
		snprintf(x->name, sizeof(x->name), "%s", c->key);
	}
	use(c->old_body, -1);
	use(want, 1);
	return 0;
}

static void discard(struct object_change *c)
{
	struct counter *x = find(c->key);

	use(c->body, -1);
	use(c->old_body, 1);
	if (x != NULL && !x->in_force)
		x->name[0] = 0;
}

static void commit(struct object_change *c)
{
}

// After sessions of the same transaction, whose counts were carried over.
static void release(struct object_change *c)
{
	struct counter *x = find(c->key);
	const struct api_counter *want = c->body;

	if (x == NULL)
		return;
	if (want == NULL) {
		counter_remove(x);
		return;
	}
	x->in_force = 1;
	counter_install(x, want, want->instance[0] ? (uint16_t)instance_index(want->instance) : INSTANCE_NONE);
}

static int verify(const char *key, const void *body, uint32_t length)
{
	const struct api_counter *x = body;

	if (x->instance[0] != 0 && instance_index(x->instance) < 0)
		return object_error(EBUSY, "instance %s is still used by counter %s", x->instance, key);
	return 0;
}

static int counts_use(uint32_t kind)
{
	return 1;
}

static const struct object_ops counter_ops = {
	OBJECT_OF_ONE(API_COUNTER, "counter", struct api_counter),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.verify = verify,
	.counts = counts_use,
};
OBJECT_REGISTER(counter_ops)

static uint64_t rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	for (const struct counter *x = counters; x < counters + API_MAX_COUNTERS; x++) {
		struct api_counter_row row = {.each = x->want.each,
			.sessions = x->sessions,
			.packets = x->sum.packets,
			.bytes = x->sum.bytes,
			.reached = x->reached,
			.mark_packets = x->want.packets,
			.mark_bytes = x->want.bytes};

		if (!x->in_force || (key[0] != 0 && strncmp(key, x->name, API_NAME) != 0))
			continue;
		memcpy(row.name, x->name, sizeof(row.name));
		if (!x->want.each) {
			row.period_packets = x->sum.packets - x->before.packets;
			row.period_bytes = x->sum.bytes - x->before.bytes;
		}
		stats_row(sink, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(counter_object)
{
	stats_table_register(API_TABLE_COUNTER, sizeof(struct api_counter_row), rows);
}
