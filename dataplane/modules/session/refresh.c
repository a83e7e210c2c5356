// SPDX-License-Identifier: Apache-2.0
// Sessions whose rules are made again, though their objects are the same: a quota ended or began (quota FAR), an
// instance pins peers or does so no more. And what usage asks: whether a session has traffic.
#include "core/control.h"
#include "core/object.h"
#include "instance/instance.h"
#include "rule/tables.h"
#include "usage/usage.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESHES_PER_VISIT 32 // each a transaction with a grace period of its own

// Thousands when quotas end together, all of an instance's, and while a transaction is open that must be over first.
static struct {
	char (*name)[API_NAME];
	uint32_t first, count, room; // those before `first` are done
} waiting;

static void make_again(uint64_t now_ns)
{
	for (int n = 0; n < REFRESHES_PER_VISIT && waiting.first < waiting.count; n++) {
		if (object_refresh(API_SESSION, waiting.name[waiting.first]) == EBUSY)
			break;
		waiting.first++;
	}
	if (waiting.first == waiting.count)
		waiting.first = waiting.count = 0;
	else
		control_stir();
}

static void make_later(const char *session)
{
	if (waiting.first > waiting.room / 2) {
		waiting.count -= waiting.first;
		memmove(waiting.name, waiting.name + waiting.first, waiting.count * sizeof(*waiting.name));
		waiting.first = 0;
	}
	if (waiting.count == waiting.room) {
		uint32_t room = waiting.room ? waiting.room * 2 : 64;
		void *name = realloc(waiting.name, room * sizeof(*waiting.name));

		if (name == NULL)
			return; // its rules stay until the session changes
		waiting.name = name;
		waiting.room = room;
	}
	snprintf(waiting.name[waiting.count++], API_NAME, "%s", session);
}

// A rule of a tunnel says whether its instance pins peers (row G13).
static int is_pinned_otherwise(const struct session *s, uint64_t pins)
{
	for (uint16_t i = 0; i < s->keys; i++) {
		const struct session_key *k = &s->key[i];

		if (k->table == TABLE_FTEID && k->instance < MAX_INSTANCES &&
			(pins >> k->instance & 1) != ((session_pools.rule[k->first].flags & RULE_PIN_PEER) != 0))
			return 1;
	}
	return 0;
}

static void instances_changed(void)
{
	static uint64_t before;
	uint64_t pins = 0;

	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct instance *n = instance_staged(i);

		pins |= (uint64_t)(n != NULL && (n->flags & API_INSTANCE_PIN_PEER)) << i;
	}
	for (uint32_t i = 0; pins != before && i < session_tables.capacity; i++)
		if (session_tables.session[i] != NULL && is_pinned_otherwise(session_tables.session[i], pins))
			make_later(session_tables.session[i]->name);
	before = pins;
}
static_assert(MAX_INSTANCES <= 64, "a bit each");

static uint64_t activity(uint32_t session)
{
	const struct session *s = session < session_tables.capacity ? session_tables.session[session] : NULL;
	uint64_t packets = 0;

	for (uint16_t i = 0; s != NULL && i < s->rules; i++)
		packets += session_pools.match[s->rule[i]].packets +
			   rule_forwarded(&session_pools.rule[s->rule[i]]).packets;
	return packets;
}

static int start(const struct api_engine *e)
{
	usage_quota_register(make_later);
	usage_activity_register(activity);
	return 0;
}

RTE_INIT(session_refresh)
{
	module_register(start);
	instance_watch(instances_changed);
	timer_register(1, make_again);
}
