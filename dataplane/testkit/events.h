// SPDX-License-Identifier: Apache-2.0
// A subscriber in the test's own thread: the events that the control plane would be notified of.
//
//   kit_events_clear(); ... kit_advance(2000); kit_events(API_EVENT_...), kit_event(API_EVENT_DOWNLINK_DATA, 0)
#ifndef TESTKIT_EVENTS_H
#define TESTKIT_EVENTS_H

#include "core/engine.h"
#include "testkit/testkit.h"
#include <string.h>

#define KIT_EVENTS 4096

static struct {
	struct reply_sink sink; // first
	struct api_event event[KIT_EVENTS];
	uint32_t count;
	int subscribed;
} kit_subscriber;

static inline int kit_event_offered(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	const struct api_event *e = rows;

	for (uint32_t i = 0; part->part == API_PART_EVENT && i < part->count; i++)
		if (kit_subscriber.count < KIT_EVENTS)
			kit_subscriber.event[kit_subscriber.count++] = e[i];
	return 0;
}

// Forgets what came until now.
static inline void kit_events_clear(void)
{
	struct api_acknowledge a = {.sequence = UINT64_MAX};

	if (!kit_subscriber.subscribed) {
		kit_subscriber.sink =
			(struct reply_sink){.send = kit_event_offered, .offer = kit_event_offered, .owner = 7};
		kit_request(&kit_subscriber.sink, API_SUBSCRIBE, 0, NULL, 0);
		kit_subscriber.subscribed = 1;
	}
	kit_advance(200000);
	kit_request(&kit_subscriber.sink, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
	kit_subscriber.count = 0;
}

static inline uint32_t kit_events(uint32_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < kit_subscriber.count; i++)
		n += kit_subscriber.event[i].type == type;
	return n;
}

static inline const struct api_event *kit_event(uint32_t type, uint32_t nth)
{
	for (uint32_t i = 0; i < kit_subscriber.count; i++)
		if (kit_subscriber.event[i].type == type && nth-- == 0)
			return &kit_subscriber.event[i];
	return NULL;
}

#endif
