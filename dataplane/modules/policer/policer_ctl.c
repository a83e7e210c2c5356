// SPDX-License-Identifier: Apache-2.0
// The POLICER object: a table of profiles whose entries are swapped one by one.
#include "core/control.h"
#include "core/object.h"
#include "policer/meter.h"
#include "policer/policer.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

// Written by the control thread; workers read profile[] only. A name belongs to its slot while either pointer is set.
static struct {
	struct policer_profile *profile[POLICER_MAX_PROFILES]; // what workers see
	struct policer_profile *next[POLICER_MAX_PROFILES]; // as it will be after the open transaction
	char name[POLICER_MAX_PROFILES][API_NAME];
	uint32_t slots; // ever used
} policers;

const struct policer_profile *policer_profile(uint16_t index)
{
	return index < POLICER_MAX_PROFILES ? __atomic_load_n(&policers.profile[index], __ATOMIC_ACQUIRE) : NULL;
}

static int is_free(uint32_t i)
{
	return policers.profile[i] == NULL && policers.next[i] == NULL;
}

static int find_slot(const char *name)
{
	for (uint32_t i = 0; i < policers.slots; i++)
		if (!is_free(i) && strncmp(policers.name[i], name, API_NAME) == 0)
			return (int)i;
	return -1;
}

static int take_slot(const char *name)
{
	uint32_t i = 0;

	while (i < policers.slots && !is_free(i))
		i++;
	if (i == POLICER_MAX_PROFILES)
		return -1;
	policers.slots = RTE_MAX(policers.slots, i + 1);
	snprintf(policers.name[i], API_NAME, "%s", name);
	return (int)i;
}

int policer_index(const char *name)
{
	int i = find_slot(name);
	return i >= 0 && policers.next[i] != NULL ? i : -1;
}

void policer_state_init(uint16_t profile, struct rule_state *s, uint64_t now)
{
	if (profile < POLICER_MAX_PROFILES && policers.next[profile] != NULL)
		meter_fill(policers.next[profile], s, now);
}

// ---- object ----------------------------------------------------------------------------------------------------------

static int stage_put(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (slot < 0)
		slot = take_slot(c->key);
	if (slot < 0)
		return object_error(ENOSPC, "more than %d policers", POLICER_MAX_PROFILES);
	struct policer_profile *p = rte_zmalloc("policer", sizeof(*p), RTE_CACHE_LINE_SIZE);
	if (p == NULL)
		return object_error(ENOMEM, "no memory");
	int error = meter_compile(p, c->body, rte_get_tsc_hz());
	if (error != 0) {
		rte_free(p);
		return error;
	}
	policers.next[slot] = p;
	c->staged = p;
	return 0;
}

static int stage(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (c->body != NULL)
		return stage_put(c);
	if (slot >= 0)
		policers.next[slot] = NULL;
	return 0;
}

static void commit(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (slot < 0)
		return;
	c->replaced = policers.profile[slot];
	__atomic_store_n(&policers.profile[slot], c->staged, __ATOMIC_RELEASE);
}

static void discard(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (slot >= 0)
		policers.next[slot] = policers.profile[slot];
	rte_free(c->staged);
}

static void release(struct object_change *c)
{
	rte_free(c->replaced);
}

static const struct object_ops policer_ops = {
	.kind = API_POLICER,
	.name = "policer",
	.min_length = sizeof(struct api_policer),
	.max_length = sizeof(struct api_policer),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
};
OBJECT_REGISTER(policer_ops)
