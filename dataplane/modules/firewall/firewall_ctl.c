// SPDX-License-Identifier: Apache-2.0
// The ACL object: lists are built beside the old ones, swapped, and freed after a grace period.
#include "core/control.h"
#include "core/object.h"
#include "firewall/firewall.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Pointers written by the control thread, read by workers.
static struct {
	struct acl *list[ACL_DIRECTIONS];
} firewall;

static const char *const direction_names[ACL_DIRECTIONS] = {"uplink", "downlink"};

const struct acl *firewall_list(enum acl_direction direction)
{
	return __atomic_load_n(&firewall.list[direction], __ATOMIC_ACQUIRE);
}

static int direction_of(const char *key)
{
	for (int i = 0; i < ACL_DIRECTIONS; i++)
		if (strcmp(key, direction_names[i]) == 0)
			return i;
	return -1;
}

static int stage(struct object_change *c)
{
	int error = 0;

	if (direction_of(c->key) < 0)
		return object_error(EINVAL, "access list %s: must be uplink or downlink", c->key);
	if (c->body == NULL)
		return 0;
	error = acl_check(c->body, c->length);
	if (error == 0)
		c->staged = acl_build(c->body, RTE_MAX(worker_count(), 1u), &error);
	return error;
}

static void commit(struct object_change *c)
{
	struct acl **at = &firewall.list[direction_of(c->key)];

	c->replaced = *at;
	__atomic_store_n(at, c->staged, __ATOMIC_RELEASE);
}

static void discard(struct object_change *c)
{
	acl_free(c->staged);
}

static void release(struct object_change *c)
{
	acl_free(c->replaced);
}

static const struct object_array acl_arrays[] = {
	OBJECT_ARRAY(API_PART_ACL_RULE, struct api_acl_rule, struct api_acl, count), {0}};

static const struct object_ops acl_ops = {
	.kind = API_ACL,
	.name = "access list",
	.min_length = sizeof(struct api_acl),
	.arrays = acl_arrays,
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
};
OBJECT_REGISTER(acl_ops)

// ---- show ------------------------------------------------------------------------------------------------------------

static void show_list(struct stats_sink *s, const char *name, const struct acl *a)
{
	for (uint32_t slot = 0; slot <= a->rules; slot++) {
		struct api_acl_row row = {.rule = slot - 1}; // 0xffffffff: the default action
		row.action = slot ? a->permits[slot - 1] : a->default_verdict;
		for (uint32_t w = 0; w < a->workers; w++)
			row.packets += __atomic_load_n(&a->hits[w * a->stride + slot], __ATOMIC_RELAXED);
		snprintf(row.name, sizeof(row.name), "%s", name);
		stats_row(s, &row, sizeof(row));
	}
}

static void show(struct stats_sink *s, const char *key)
{
	for (int i = 0; i < ACL_DIRECTIONS; i++)
		if (firewall.list[i] != NULL && (key[0] == 0 || strcmp(key, direction_names[i]) == 0))
			show_list(s, direction_names[i], firewall.list[i]);
}

RTE_INIT(firewall_register_table)
{
	stats_table_register(API_TABLE_ACL, sizeof(struct api_acl_row), show);
}
