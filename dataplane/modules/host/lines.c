// SPDX-License-Identifier: Apache-2.0
// LINES objects: whether a VLAN of an access port has one subscriber or many. The control thread publishes a port's
// ranges as a whole; workers read them.
#include "host/lines.h"
#include "core/object.h"
#include "core/port.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct lines {
	uint16_t port;
	uint32_t count;
	struct api_line_range range[];
};

static const struct lines *lines_of[MAX_PORTS]; // atomic

static int is_in(const uint16_t range[2], uint16_t tag)
{
	return range[1] == 0 || (range[0] <= tag && tag <= range[1]);
}

uint32_t host_line(uint16_t port, uint16_t s_tag, uint16_t c_tag)
{
	const struct lines *l = port < MAX_PORTS ? __atomic_load_n(&lines_of[port], __ATOMIC_ACQUIRE) : NULL;

	for (uint32_t i = 0; l != NULL && i < l->count; i++)
		if (is_in(l->range[i].s_tag, s_tag) && is_in(l->range[i].c_tag, c_tag))
			return l->range[i].flags;
	return c_tag != 0 ? API_LINE_ONE : 0;
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_lines *want = body;
	const struct api_line_range *range = (const struct api_line_range *)(want + 1);
	const struct port *p = port_by_name(key);

	if (p == NULL || p->role != API_ROLE_ACCESS)
		return object_error(ENOENT, "lines %s: there is no such access port", key);
	for (uint32_t i = 0; i < want->count; i++) {
		const uint16_t *s = range[i].s_tag, *c = range[i].c_tag;

		if (s[0] > s[1] || c[0] > c[1] || s[1] > 4094 || c[1] > 4094)
			return object_error(
				EINVAL, "lines %s: range %u has tags from last to first, or above 4094", key, i + 1);
		if (range[i].flags & ~(API_LINE_ONE | API_LINE_TRUSTED))
			return object_error(EINVAL, "lines %s: unknown flags %#x", key, range[i].flags);
	}
	return 0;
}

static int stage(struct object_change *c)
{
	const struct api_lines *want = c->body;
	int error = want == NULL ? 0 : check(c->key, c->body, c->length);

	if (error != 0 || want == NULL)
		return error;
	struct lines *l = malloc(sizeof(*l) + want->count * sizeof(l->range[0]));
	if (l == NULL)
		return object_error(ENOMEM, "no memory for the lines of %s", c->key);
	l->port = port_by_name(c->key)->index;
	l->count = want->count;
	memcpy(l->range, want + 1, want->count * sizeof(l->range[0]));
	c->staged = l;
	return 0;
}

static void discard(struct object_change *c)
{
	free(c->staged);
}

static void commit(struct object_change *c)
{
	struct lines *l = c->staged, *old = *c->live;

	if (old != NULL && (l == NULL || l->port != old->port))
		__atomic_store_n(&lines_of[old->port], NULL, __ATOMIC_RELEASE);
	if (l != NULL)
		__atomic_store_n(&lines_of[l->port], l, __ATOMIC_RELEASE);
	c->replaced = old;
	*c->live = l;
}

static void release(struct object_change *c)
{
	free(c->replaced);
}

static const struct object_array arrays[] = {
	OBJECT_ARRAY(API_PART_LINE_RANGE, struct api_line_range, struct api_lines, count), {.part = 0}};

static const struct object_ops lines_ops = {
	.kind = API_LINES,
	.name = "lines",
	.min_length = sizeof(struct api_lines),
	.max_length = sizeof(struct api_lines) + API_MAX_LINES * sizeof(struct api_line_range),
	.arrays = arrays,
	.stage = stage,
	.discard = discard,
	.commit = commit,
	.release = release,
	.verify = check,
};
OBJECT_REGISTER(lines_ops)
