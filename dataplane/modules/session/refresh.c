// SPDX-License-Identifier: Apache-2.0
// Sessions whose rules are made again from unchanged objects: a quota ended or began (quota FAR), or an instance
// changed pin_peer. Also answers usage whether a session has traffic.
#include "core/control.h"
#include "core/object.h"
#include "instance/instance.h"
#include "rule/tables.h"
#include "usage/usage.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REFRESHES_PER_VISIT 32 // each a transaction with a grace period of its own

// Sessions that wait, each once: thousands when quotas end together, all of an instance's, and while a transaction is
// open that must be over first. A ring.
static struct {
	uint32_t *session; // indices
	uint8_t *waits; // by session
	uint32_t first, count, room;
} waiting;

static void make_later(uint32_t session)
{
	if (session >= waiting.room || waiting.waits[session])
		return;
	waiting.waits[session] = 1;
	waiting.session[(waiting.first + waiting.count++) % waiting.room] = session;
}

static uint32_t next_one(void)
{
	uint32_t session = waiting.session[waiting.first];

	waiting.first = (waiting.first + 1) % waiting.room;
	waiting.count--;
	waiting.waits[session] = 0;
	return session;
}

// Returns 0, or why not. A session that fails waits again, behind the others; show total has it as refused.
static int make_one(void)
{
	uint32_t session = next_one();
	char name[API_NAME];
	int error;

	if (session_tables.session[session] == NULL)
		return 0;
	memcpy(name, session_tables.session[session]->name, sizeof(name)); // which the refresh replaces
	error = object_refresh(API_SESSION, name);
	if (error == 0 || error == ENOENT)
		return 0;
	make_later(session);
	return error;
}

static void make_again(uint64_t now_ns)
{
	int error = 0;

	for (int n = 0; n < REFRESHES_PER_VISIT && waiting.count > 0 && error == 0; n++)
		error = make_one();
	if (waiting.count > 0 && (error == 0 || error == EBUSY))
		control_stir();
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
			make_later(i);
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
	waiting.room = e->max_sessions;
	waiting.session = calloc(waiting.room, sizeof(*waiting.session));
	waiting.waits = calloc(waiting.room, sizeof(*waiting.waits));
	if (waiting.session == NULL || waiting.waits == NULL)
		return object_error(ENOMEM, "no memory to make %u sessions again", waiting.room);
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
