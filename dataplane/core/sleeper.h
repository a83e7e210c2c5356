// SPDX-License-Identifier: Apache-2.0
// How a thread without work sleeps until a descriptor can be read, another thread has something for it, or time is up.
//
//   the sleeper:  sleeper_listen(); look for work once more; sleeper_sleep(); look again
//   the others:   give work; sleeper_wake()
//   safe because: both sides have a full fence between their write and their read. Either the sleeper sees the work,
//                 or the giver sees that it listens.
#ifndef CORE_SLEEPER_H
#define CORE_SLEEPER_H

#include "wire/cache_line.h"
#include <poll.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <stdint.h>

struct sleeper {
	uint32_t listening; // 1: a giver must wake it; the first to do so clears it
	int event; // eventfd
} cache_aligned;

int sleeper_open(struct sleeper *s); // 0, or -1 with errno
void sleeper_close(struct sleeper *s);

static inline int sleeper_listens(const struct sleeper *s)
{
	return (int)__atomic_load_n(&s->listening, __ATOMIC_ACQUIRE); // what it counted before is seen, too
}

static inline void sleeper_listen(struct sleeper *s)
{
	__atomic_store_n(&s->listening, 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void sleeper_up(struct sleeper *s)
{
	__atomic_store_n(&s->listening, 0, __ATOMIC_RELAXED);
}

// Called by the thread itself after sleeper_listen(). Fills fds[0]; the caller fills the other n - 1. It goes on
// listening if it was not woken.
void sleeper_sleep(struct sleeper *s, struct pollfd *fds, uint32_t n, uint64_t ns);

void sleeper_ring(struct sleeper *s);

// Any thread, behind what it gave.
static inline void sleeper_wake(struct sleeper *s)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(sleeper_listens(s)))
		sleeper_ring(s);
}

#endif
