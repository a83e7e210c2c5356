// SPDX-License-Identifier: Apache-2.0
// The ACL object: lists are made beside the old ones, swapped, and freed after a grace period.
//
// Keys: "uplink", "downlink" (wireline), and "in/NAME": the list of a network instance, which need not be there yet.
#include "core/control.h"
#include "core/object.h"
#include "firewall/firewall.h"
#include "instance/instance.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Pointers written by the control thread, read by workers.
static struct {
	struct acl *list[ACL_INSTANCE];
	struct acl *of_instance[MAX_INSTANCES];
	int instances; // of_instance that are not NULL
} firewall;

// The control thread's: each list has a slot from stage() on.
static struct slot {
	char key[API_NAME]; // empty: free
	struct acl *list;
} slots[ACL_INSTANCE + MAX_INSTANCES] = {{"uplink", NULL}, {"downlink", NULL}};

const struct acl *firewall_list(enum acl_place direction)
{
	return __atomic_load_n(&firewall.list[direction], __ATOMIC_ACQUIRE);
}

int firewall_instances(void)
{
	return __atomic_load_n(&firewall.instances, __ATOMIC_RELAXED) != 0;
}

const struct acl *firewall_instance_list(uint16_t instance)
{
	return instance < MAX_INSTANCES ? __atomic_load_n(&firewall.of_instance[instance], __ATOMIC_ACQUIRE) : NULL;
}

static struct slot *slot_of(const char *key)
{
	for (uint32_t i = 0; i < RTE_DIM(slots); i++)
		if (strncmp(slots[i].key, key, API_NAME) == 0)
			return &slots[i];
	return NULL;
}

static int is_instance(const char *key)
{
	return strncmp(key, "in/", 3) == 0 && key[3] != 0;
}

static struct acl *list_of_instance(uint16_t index)
{
	const struct instance *n = instance_staged(index);

	for (uint32_t i = ACL_INSTANCE; n != NULL && i < RTE_DIM(slots); i++)
		if (is_instance(slots[i].key) && strncmp(slots[i].key + 3, n->name, API_NAME - 3) == 0)
			return slots[i].list;
	return NULL;
}

// After a change of lists or of instances.
static void bind_instances(void)
{
	int bound = 0;

	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		struct acl *list = list_of_instance(i);

		__atomic_store_n(&firewall.of_instance[i], list, __ATOMIC_RELEASE);
		bound += list != NULL;
	}
	__atomic_store_n(&firewall.instances, bound, __ATOMIC_RELAXED);
}

static int stage(struct object_change *c)
{
	struct slot *s = slot_of(c->key);
	int error = 0;

	if (!is_instance(c->key) && (c->key[0] == 0 || s == NULL))
		return object_error(EINVAL, "access list %s: must be uplink, downlink or in/INSTANCE", c->key);
	if (c->body == NULL)
		return 0;
	if (s == NULL && (s = slot_of("")) == NULL)
		return object_error(
			ENOSPC, "access list %s: there are %d lists of instances already", c->key, MAX_INSTANCES);
	error = acl_check(c->body, c->length);
	if (error == 0)
		c->staged = acl_build(c->body, RTE_MAX(worker_count(), 1u), &error);
	if (error == 0)
		snprintf(s->key, sizeof(s->key), "%.*s", API_NAME - 1, c->key);
	return error;
}

// The slot of a deleted or refused instance list.
static void give_back(struct slot *s)
{
	if (s->list == NULL && is_instance(s->key))
		s->key[0] = 0;
}

static void commit(struct object_change *c)
{
	struct slot *s = slot_of(c->key);

	c->replaced = s->list;
	s->list = c->staged;
	if (s < slots + ACL_INSTANCE)
		__atomic_store_n(&firewall.list[s - slots], s->list, __ATOMIC_RELEASE);
	give_back(s);
	bind_instances();
}

static void discard(struct object_change *c)
{
	acl_free(c->staged);
	if (c->staged != NULL)
		give_back(slot_of(c->key));
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

// A place is a slot and a rule of its list, from the default action on.
#define PLACES_OF_LIST (1ull << 32)

static void show_rule(struct stats_sink *s, const char *name, const struct acl *a, uint32_t rule)
{
	struct api_acl_row row = {.rule = rule - 1}; // 0xffffffff: the default action

	row.action = rule ? a->permits[rule - 1] : a->default_verdict;
	for (uint32_t w = 0; w < a->workers; w++)
		row.packets += __atomic_load_n(&a->hits[w * a->stride + rule], __ATOMIC_RELAXED);
	snprintf(row.name, sizeof(row.name), "%.*s", API_NAME - 1, name);
	stats_row(s, &row, sizeof(row));
}

static uint64_t show(struct stats_sink *s, const char *key, uint64_t place)
{
	const struct slot *slot = &slots[place / PLACES_OF_LIST];
	uint64_t rule = place % PLACES_OF_LIST;

	if (slot->list != NULL && (key[0] == 0 || strncmp(key, slot->key, API_NAME) == 0) &&
		rule <= slot->list->rules) {
		show_rule(s, slot->key, slot->list, (uint32_t)rule);
		return place + 1;
	}
	return stats_next(place / PLACES_OF_LIST, RTE_DIM(slots)) * PLACES_OF_LIST;
}

RTE_INIT(firewall_register_table)
{
	stats_table_register(API_TABLE_ACL, sizeof(struct api_acl_row), show);
	instance_watch(bind_instances);
}
