// SPDX-License-Identifier: Apache-2.0
// The descriptors that a worker sleeps on, one per receive queue, and which are trusted.
//
// The kernel reports some descriptors for ever: of an interface that went, or rung by another process without reason. A
// descriptor that ends several sleeps in a row without work is left out of every other sleep. That sleep is short and
// doubles each time, until the worker wakes as seldom as without it. It is trusted again after a silent sleep, or when
// it brings work.
#ifndef CORE_WATCH_H
#define CORE_WATCH_H

#include "core/sleeper.h"
#include <stdbool.h>

#define WATCHED_MAX 64 // descriptors; queues beyond are polled
#define POLLED_NS 128000u // sleep between two looks at a queue without descriptor
#define WATCH_VAIN_FREE 4u // sleeps that a descriptor may end in vain

struct watch {
	struct pollfd poll[WATCHED_MAX + 1]; // of this sleep, or the last; [0] is the sleeper's own
	uint16_t queue[WATCHED_MAX + 1]; // which of the worker's they are
	uint32_t count;
	bool slept; // since they were added
	struct {
		uint8_t vain; // sleeps in a row that it ended and brought nothing
		bool left_out; // of this sleep
	} known[]; // by queue
};

struct watch *watch_new(uint32_t queues); // NULL without memory
// Work was looked for after the last sleep; `brought`: there was some.
void watch_judge(struct watch *w, bool brought);
// For the next sleep: `fd` of a queue, or -1 when it has none. Returns the longest allowed sleep, ns.
uint64_t watch_add(struct watch *w, uint16_t queue, int fd);
void watch_sleep(struct watch *w, struct sleeper *s, uint64_t ns);

#endif
