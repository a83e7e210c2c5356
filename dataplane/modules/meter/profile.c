// SPDX-License-Identifier: Apache-2.0
// The POLICER object: a table of profiles, swapped one by one.
#include "core/control.h"
#include "core/object.h"
#include "meter/meter.h"
#include "meter/policer.h"
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS (1u << 20) // of the hash of names
#define SPARE 65536u // profiles of an open transaction beside those in force

struct policer_profile *policer_profiles[POLICER_MAX_PROFILES];

// Written by the control thread. A name belongs to its slot from the stage() that makes it to the
// discard() of that or the release() of its deletion. Pages of slots that were never used are never touched.
static struct {
	struct policer_profile *next[POLICER_MAX_PROFILES]; // as it will be after the open transaction
	char name[POLICER_MAX_PROFILES][API_NAME];
	uint32_t chain[POLICER_MAX_PROFILES]; // 1 + the next slot of its bucket, or of the free ones; 0: the last
	uint32_t bucket[BUCKETS]; // 1 + first slot; 0: none
	uint32_t free; // 1 + a slot that was used before
	uint32_t slots; // ever used
} policers;

// Profiles in order of creation; allocates nothing while sessions come and go.
static struct {
	struct policer_profile line[POLICER_MAX_PROFILES + SPARE];
	struct policer_profile *free[POLICER_MAX_PROFILES + SPARE]; // given back
	uint32_t count, used; // of free; ever used
} slab;

static struct policer_profile *take_line(void)
{
	if (slab.count > 0)
		return slab.free[--slab.count];
	return slab.used < RTE_DIM(slab.line) ? &slab.line[slab.used++] : NULL;
}

static void give_line(struct policer_profile *p)
{
	if (p != NULL)
		slab.free[slab.count++] = p;
}

static uint32_t *bucket_of(const char *name)
{
	uint32_t h = 2166136261u; // FNV-1a

	for (uint32_t i = 0; i < API_NAME && name[i] != 0; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return &policers.bucket[(h ^ h >> 16) & (BUCKETS - 1)];
}

static int find_slot(const char *name)
{
	for (uint32_t at = *bucket_of(name); at != 0; at = policers.chain[at - 1])
		if (strncmp(policers.name[at - 1], name, API_NAME) == 0)
			return (int)at - 1;
	return -1;
}

static int take_slot(const char *name)
{
	uint32_t *bucket = bucket_of(name), at = policers.free;

	if (at != 0)
		policers.free = policers.chain[at - 1];
	else if (policers.slots < POLICER_MAX_PROFILES)
		at = ++policers.slots;
	else
		return -1;
	snprintf(policers.name[at - 1], API_NAME, "%s", name);
	policers.chain[at - 1] = *bucket;
	*bucket = at;
	return (int)at - 1;
}

static void give_slot(int slot)
{
	uint32_t *at = bucket_of(policers.name[slot]);

	while (*at != (uint32_t)slot + 1)
		at = &policers.chain[*at - 1];
	*at = policers.chain[slot];
	policers.chain[slot] = policers.free;
	policers.free = (uint32_t)slot + 1;
}

int policer_index(const char *name)
{
	int i = find_slot(name);
	return i >= 0 && policers.next[i] != NULL ? i : -1;
}

const struct api_policer *policer_body(uint32_t index)
{
	uint32_t length;

	return index < policers.slots ? object_find(API_POLICER, policers.name[index], &length) : NULL;
}

static int stage_put(struct object_change *c)
{
	struct policer_profile *p = take_line();
	if (p == NULL)
		return object_error(ENOSPC, "more than %u policers", POLICER_MAX_PROFILES);
	int error = meter_compile(p, c->body, rte_get_tsc_hz());
	if (error != 0) {
		give_line(p);
		return error;
	}
	int slot = find_slot(c->key);
	if (slot < 0)
		slot = take_slot(c->key);
	if (slot < 0) {
		give_line(p);
		return object_error(ENOSPC, "more than %u policers", POLICER_MAX_PROFILES);
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
	c->replaced = policer_profiles[slot];
	__atomic_store_n(&policer_profiles[slot], c->staged, __ATOMIC_RELEASE);
}

static void discard(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (slot >= 0)
		policers.next[slot] = policer_profiles[slot];
	if (slot >= 0 && policer_profiles[slot] == NULL)
		give_slot(slot);
	give_line(c->staged);
}

static void release(struct object_change *c)
{
	int slot = find_slot(c->key);

	if (c->body == NULL && slot >= 0)
		give_slot(slot);
	give_line(c->replaced);
}

static const struct object_ops policer_ops = {
	OBJECT_OF_ONE(API_POLICER, "policer", struct api_policer),
	.packed = 1,
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
};
OBJECT_REGISTER(policer_ops)
