// SPDX-License-Identifier: Apache-2.0
// Timers of one thread: a binary heap, earliest first. A million waiting ones cost nothing; setting one costs its
// depth.
#ifndef USAGE_TIMERS_H
#define USAGE_TIMERS_H

#include <stdint.h>

// Part of what it belongs to; zero: not set.
struct timer {
	uint32_t place; // 1 + index in the heap; 0: not in it
};

struct timers {
	struct timer_entry {
		uint64_t due_ns;
		struct timer *timer;
	} * entry;
	uint32_t count, room;
};

// Makes room for `timers` timers in all, where failure can be reported; timers_set then cannot fail. Returns 0, or -1.
int timers_reserve(struct timers *t, uint32_t timers);
void timers_set(struct timers *t, struct timer *timer, uint64_t due_ns); // also moves an active one
void timers_clear(struct timers *t, struct timer *timer);
struct timer *timers_due(struct timers *t, uint64_t now_ns); // takes the earliest that is due out, or NULL

#endif
