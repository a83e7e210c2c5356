// SPDX-License-Identifier: Apache-2.0
// What usage tells of a session: that a quota ended or began, so that its rules are made again (quota FAR); and what usage asks:
// whether the session has traffic.
#include "core/control.h"
#include "core/object.h"
#include "rule/tables.h"
#include "usage/usage.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESHES_PER_VISIT 32 // each a transaction with a grace period of its own

// Sessions whose rules are to be made again: thousands when quotas end together, and while a transaction is open that
// must be over first.
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

static void quota_changed(const char *session)
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
			return; // its packets are dropped until the session changes
		waiting.name = name;
		waiting.room = room;
	}
	snprintf(waiting.name[waiting.count++], API_NAME, "%s", session);
}

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
	usage_quota_register(quota_changed);
	usage_activity_register(activity);
	return 0;
}

RTE_INIT(session_refresh)
{
	module_register("session-refresh", start);
	timer_register("session-refresh", 1, make_again);
}
