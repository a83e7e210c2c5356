// SPDX-License-Identifier: Apache-2.0
// A binary heap whose elements know their place.
#include "usage/timers.h"
#include <stddef.h>
#include <stdlib.h>

static void put(struct timers *t, uint32_t at, struct timer_entry e)
{
	t->entry[at] = e;
	e.timer->place = at + 1;
}

static void up(struct timers *t, uint32_t at, struct timer_entry e)
{
	while (at > 0 && t->entry[(at - 1) / 2].due_ns > e.due_ns) {
		put(t, at, t->entry[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(t, at, e);
}

static void down(struct timers *t, uint32_t at, struct timer_entry e)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < t->count && t->entry[child + 1].due_ns < t->entry[child].due_ns)
			child++;
		if (child >= t->count || t->entry[child].due_ns >= e.due_ns)
			break;
		put(t, at, t->entry[child]);
		at = child;
	}
	put(t, at, e);
}

// Place of an element that is earlier or later than the one at `at`.
static void settle(struct timers *t, uint32_t at, struct timer_entry e)
{
	if (at > 0 && t->entry[(at - 1) / 2].due_ns > e.due_ns)
		up(t, at, e);
	else
		down(t, at, e);
}

int timers_reserve(struct timers *t, uint32_t timers)
{
	uint32_t room = t->room ? t->room : 64;

	while (room < timers)
		room *= 2;
	if (room == t->room)
		return 0;
	struct timer_entry *entry = realloc(t->entry, room * sizeof(*entry));
	if (entry == NULL)
		return -1;
	t->entry = entry;
	t->room = room;
	return 0;
}

void timers_set(struct timers *t, struct timer *timer, uint64_t due_ns)
{
	struct timer_entry e = {.due_ns = due_ns, .timer = timer};

	if (timer->place != 0)
		settle(t, timer->place - 1, e);
	else if (t->count < t->room)
		up(t, t->count++, e);
}

void timers_clear(struct timers *t, struct timer *timer)
{
	uint32_t at = timer->place - 1;

	if (timer->place == 0)
		return;
	timer->place = 0;
	t->count--;
	if (at < t->count)
		settle(t, at, t->entry[t->count]);
}

struct timer *timers_due(struct timers *t, uint64_t now_ns)
{
	if (t->count == 0 || t->entry[0].due_ns > now_ns)
		return NULL;
	struct timer *first = t->entry[0].timer;
	timers_clear(t, first);
	return first;
}
