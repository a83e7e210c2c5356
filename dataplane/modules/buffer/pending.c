// SPDX-License-Identifier: Apache-2.0
// Pending notifications: DOWNLINK_DATA events that the control plane did not take yet. The queue of events is full or
// engine.event_rate is used up, for example when many idle UEs get a packet at once. A worker notifies once per PDR,
// and a UE that is not paged waits for ever. So each notification is kept until it is accepted, in the order of the
// sessions' first. Control thread.
#include "buffer/queue.h"
#include "core/control.h"
#include "core/event.h"
#include "core/log.h"
#include "core/object.h"
#include <errno.h>
#include <stdlib.h>

#define RETRY_EVERY_MS 10
#define SESSIONS_PER_VISIT 4096
#define PLACES_PER_VISIT 65536
#define SESSION_NONE UINT32_MAX

struct pending {
	struct pending *next; // of the same session; one for each PDR at most
	uint64_t argument; // of event_notify
};

static struct {
	struct pending_list {
		struct pending *first; // NULL: none pends, and the session is in no list
		uint32_t next; // session; SESSION_NONE at the end
	} * of; // by session
	uint32_t first, last;
	uint32_t unseen; // sessions whose place.unnotified must still be checked, the last ones first
} own = {.first = SESSION_NONE, .last = SESSION_NONE};

static uint16_t pdr_of(uint64_t argument)
{
	return (uint16_t)(argument >> 16);
}

// Packets of the PDR still wait, or are still dropped with NOCP, and the index is still the same session's.
static int still_true(uint32_t session, uint64_t argument)
{
	const struct rule *r = session_rule(session, pdr_of(argument));

	return buffer_tables.place[session].generation == argument >> 32 && r != NULL && !(r->flags & RULE_FORWARD);
}

// 0 when there is nothing left to say.
static int try_to_notify(uint32_t session, uint64_t argument)
{
	struct api_event e = {
		.type = API_EVENT_DOWNLINK_DATA,
		.rule = pdr_of(argument),
		.qfi = (uint8_t)(argument >> 8),
		.dscp = (uint8_t)argument,
	};

	return queue_event_of(&e, session, argument) ? event_try(&e) : 0;
}

// Removes outdated events, so that a session has at most one per PDR. Returns a place for another, or NULL when the
// same is pending.
static struct pending **place_for(uint32_t session, uint64_t argument)
{
	struct pending **at = &own.of[session].first;

	while (*at != NULL) {
		struct pending *o = *at;

		if (o->argument >> 16 == argument >> 16)
			return NULL;
		if (still_true(session, o->argument)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		free(o);
	}
	return at;
}

static void enlist(uint32_t session)
{
	own.of[session].next = SESSION_NONE;
	if (own.last != SESSION_NONE)
		own.of[own.last].next = session;
	else
		own.first = session;
	own.last = session;
}

static void keep_pending(uint32_t session, uint64_t argument)
{
	int listed = own.of[session].first != NULL;
	struct pending *o = malloc(sizeof(*o)), **at;

	if (o == NULL) {
		LOG(ERR, "no memory: the control plane is not notified of downlink data for session %u\n", session);
		return;
	}
	at = place_for(session, argument);
	if (at == NULL) {
		free(o);
		return;
	}
	*o = (struct pending){.argument = argument};
	*at = o;
	if (!listed)
		enlist(session);
}

void pending_data(uint32_t worker, uint32_t session, uint64_t argument)
{
	if (session >= buffer_tables.places)
		return;
	// Others wait already: in order.
	if (own.first != SESSION_NONE || try_to_notify(session, argument) != 0)
		keep_pending(session, argument);
}

void pending_lost(void)
{
	own.unseen = buffer_tables.places;
}

// What workers could not report while their rings were full.
static void look_for_unnotified(void)
{
	for (int i = 0; own.unseen != 0 && i < PLACES_PER_VISIT; i++) {
		uint32_t session = --own.unseen;
		struct place *p = &buffer_tables.place[session];

		if (likely(__atomic_load_n(&p->unnotified, __ATOMIC_RELAXED) == 0))
			continue;
		uint32_t what = __atomic_exchange_n(&p->unnotified, 0, __ATOMIC_RELAXED);
		if (what != 0)
			pending_data(0, session, (uint64_t)p->generation << 32 | (what & ~UNNOTIFIED));
	}
}

static void retry(uint64_t now_ns)
{
	look_for_unnotified();
	for (int i = 0; own.first != SESSION_NONE && i < SESSIONS_PER_VISIT; i++) {
		struct pending_list *d = &own.of[own.first];

		for (struct pending *o = d->first; o != NULL; o = d->first) {
			if (still_true(own.first, o->argument) && try_to_notify(own.first, o->argument) != 0)
				return;
			d->first = o->next;
			free(o);
		}
		own.first = d->next;
		if (own.first == SESSION_NONE)
			own.last = SESSION_NONE;
	}
}

int pending_start(uint32_t sessions)
{
	own.of = calloc(RTE_MAX(sessions, 1u), sizeof(*own.of));
	return own.of == NULL ? object_error(ENOMEM, "no memory for events of %u sessions", sessions) : 0;
}

RTE_INIT(buffer_pending)
{
	timer_register(RETRY_EVERY_MS, retry);
}
