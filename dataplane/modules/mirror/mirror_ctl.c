// SPDX-License-Identifier: Apache-2.0
// The MIRROR object, and the sessions that have mirrors. A session may name a mirror that does not exist.
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "instance/instance.h"
#include "mirror/mirror.h"
#include "path/path.h"
#include "rule/session.h"
#include "rule/wish.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SNAP 64

struct mirror mirrors[API_MAX_MIRRORS];

static uint64_t in_force; // bit n: mirrors[n] has a target

static int is_of(const struct session *s, const struct mirror *x)
{
	const struct mirror_target *t = x->target;

	if (s->mirror != NULL && strncmp(s->mirror, x->name, API_NAME) == 0)
		return 1;
	if (t->want.ue.family == 0 && t->want.instance[0] == 0)
		return 0;
	return session_chosen(s, &t->want.ue, t->instance);
}

static uint8_t wished_ways(struct session *s)
{
	uint64_t set = 0;
	uint8_t ways = 0;

	for (uint64_t left = in_force; left != 0; left &= left - 1) {
		const struct mirror *x = &mirrors[__builtin_ctzll(left)];
		uint8_t direction = x->target->want.direction;

		if (!is_of(s, x))
			continue;
		set |= left & -left;
		ways |= direction != API_MIRROR_DOWNLINK ? WISH_UPLINK : 0;
		ways |= direction != API_MIRROR_UPLINK ? WISH_DOWNLINK : 0;
	}
	if (set != s->mirrors)
		__atomic_store_n(&s->mirrors, set, __ATOMIC_RELAXED);
	return ways;
}
SESSION_WISH(RULE_DUPLICATE, wished_ways)

static int check_target(const char *key, const struct api_mirror *want, struct mirror_target *t)
{
	const struct port *port;
	int path;

	switch (want->to) {
	case API_MIRROR_PORT:
		port = port_by_name(want->target);
		if (port == NULL)
			return object_error(ENOENT, "mirror %s: there is no port %s", key, want->target);
		t->port = port->index;
		return 0;
	case API_MIRROR_GTPU:
		path = path_index(want->target);
		if (path < 0)
			return object_error(ENOENT, "mirror %s: there is no path %s", key, want->target);
		t->action = action_tunnel((uint16_t)path, want->teid, want->dscp);
		return 0;
	case API_MIRROR_ERSPAN:
		if (!address_valid(&want->collector) || !address_assignable(&want->collector) || want->session > 1023)
			return object_error(
				EINVAL, "mirror %s: the collector is no host, or the session id above 1023", key);
		return 0;
	default:
		return object_error(EINVAL, "mirror %s goes to %u, which is none of its targets", key, want->to);
	}
}

static int prefix_ok(const struct api_address *a)
{
	return a->family == 0 || (address_valid(a) && prefix_canonical(a));
}

static int check(const char *key, const struct api_mirror *want)
{
	if (want->direction > API_MIRROR_DOWNLINK || want->dscp > 63 || !prefix_ok(&want->ue) ||
		!prefix_ok(&want->remote) || want->ue_port[0] > want->ue_port[1] ||
		want->remote_port[0] > want->remote_port[1] || memchr(want->target, 0, API_NAME) == NULL ||
		memchr(want->instance, 0, API_NAME) == NULL)
		return object_error(EINVAL, "mirror %s has a value out of range", key);
	if (want->snap != 0 && want->snap < LEAST_SNAP)
		return object_error(EINVAL, "mirror %s: copies of %u bytes, at least %d", key, want->snap, LEAST_SNAP);
	if (want->instance[0] != 0 && instance_index(want->instance) < 0)
		return object_error(ENOENT, "mirror %s: there is no network instance %s", key, want->instance);
	return 0;
}

static struct mirror *find(const char *name) // "": a free one
{
	for (uint32_t i = 0; i < API_MAX_MIRRORS; i++)
		if (strncmp(mirrors[i].name, name, API_NAME) == 0)
			return &mirrors[i];
	return NULL;
}

static void use(const struct api_mirror *x, int difference)
{
	if (x == NULL)
		return;
	object_use(API_INSTANCE, x->instance, difference);
	if (x->to == API_MIRROR_PORT)
		object_use(API_PORT, x->target, difference);
	if (x->to == API_MIRROR_GTPU)
		object_use(API_PATH, x->target, difference);
}

static int stage(struct object_change *c)
{
	const struct api_mirror *want = c->body;
	struct mirror *x = find(c->key);

	if (want != NULL) {
		struct mirror_target *t = calloc(1, sizeof(*t));
		int error = t == NULL ? object_error(ENOMEM, "no memory for mirror %s", c->key) : check(c->key, want);

		if (error == 0)
			error = check_target(c->key, want, t);
		if (error == 0 && x == NULL && (x = find("")) == NULL)
			error = object_error(ENOSPC, "more than %d mirrors", API_MAX_MIRRORS);
		if (error != 0) {
			free(t);
			return error;
		}
		t->want = *want;
		t->instance = want->instance[0] ? (uint16_t)instance_index(want->instance) : INSTANCE_NONE;
		if (x->name[0] == 0) {
			memset(x, 0, sizeof(*x));
			snprintf(x->name, sizeof(x->name), "%s", c->key);
		}
		c->staged = t;
	}
	use(c->old_body, -1);
	use(want, 1);
	return 0;
}

static void discard(struct object_change *c)
{
	struct mirror *x = find(c->key);

	use(c->body, -1);
	use(c->old_body, 1);
	if (x != NULL && x->target == NULL)
		x->name[0] = 0;
	free(c->staged);
}

static void commit(struct object_change *c)
{
	struct mirror *x = find(c->key);

	if (x == NULL)
		return;
	c->replaced = (void *)(uintptr_t)x->target;
	__atomic_store_n(&x->target, c->staged, __ATOMIC_RELEASE);
	in_force = c->staged != NULL ? in_force | 1ull << (x - mirrors) : in_force & ~(1ull << (x - mirrors));
}

static void release(struct object_change *c)
{
	struct mirror *x = find(c->key);

	if (x != NULL && x->target == NULL)
		x->name[0] = 0;
	free(c->replaced);
}

static int verify(const char *key, const void *body, uint32_t length)
{
	const struct api_mirror *x = body;

	if (x->to == API_MIRROR_PORT && port_by_name(x->target) == NULL)
		return object_error(EBUSY, "port %s is still used by mirror %s", x->target, key);
	if (x->to == API_MIRROR_GTPU && path_index(x->target) < 0)
		return object_error(EBUSY, "path %s is still used by mirror %s", x->target, key);
	if (x->instance[0] != 0 && instance_index(x->instance) < 0)
		return object_error(EBUSY, "instance %s is still used by mirror %s", x->instance, key);
	return 0;
}

static int counts_use(uint32_t kind)
{
	return 1;
}

static const struct object_ops mirror_ops = {
	OBJECT_OF_ONE(API_MIRROR, "mirror", struct api_mirror),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_commit = wishes_renew,
	.verify = verify,
	.counts = counts_use,
};
OBJECT_REGISTER(mirror_ops)

static uint64_t rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	for (const struct mirror *x = mirrors; x < mirrors + API_MAX_MIRRORS; x++) {
		struct api_mirror_row row = {0};

		if (x->target == NULL || (key[0] != 0 && strncmp(key, x->name, API_NAME) != 0))
			continue;
		row.to = x->target->want.to;
		row.collector = x->target->want.collector;
		memcpy(row.name, x->name, sizeof(row.name));
		memcpy(row.target, x->target->want.target, sizeof(row.target));
		for (uint32_t w = 0; w < worker_count(); w++) {
			row.packets += x->line[w].packets;
			row.bytes += x->line[w].bytes;
			row.limited += x->line[w].limited;
			row.no_buffer += x->line[w].no_buffer;
			row.failed += x->line[w].failed;
		}
		stats_row(sink, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(mirror_module)
{
	stats_table_register(API_TABLE_MIRROR, sizeof(struct api_mirror_row), rows);
}
