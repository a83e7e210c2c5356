// SPDX-License-Identifier: Apache-2.0
// One rule for all holders of packets: each has a share of the packet buffers, so that together they leave enough for
// receiving.
//
// A holder is a queue, table or ring that keeps packets beyond the walk that brought them. It counts buffers; a chain
// has several. Limits come with the ENGINE object; hold_start checks their sum against packet_buffers. They are divided
// evenly among the workers: taking and giving back is an addition in the thread's own struct worker, without lock or
// atomic.
#ifndef CORE_HOLD_H
#define CORE_HOLD_H

#include "core/worker.h"
#include <rte_branch_prediction.h>
#include <stddef.h>

struct rte_ring;

struct holder {
	const char *name; // of its row in `show total`, and a label of metrics
	size_t field; // of struct api_engine: its limit
	uint8_t control; // only the control thread holds here, and has the whole limit
	uint32_t (*held)(void); // of rings, which count by their places; NULL: what hold_add counted
	uint16_t id;
	uint32_t limit; // buffers, whole process
	uint32_t share; // of one worker
};

void holder_register(struct holder *h); // from constructors

#define HOLDER(var, holder_name, engine_field, ...)                                                                    \
	struct holder var = {.name = (holder_name), .field = offsetof(struct api_engine, engine_field), __VA_ARGS__};  \
	RTE_INIT(holder_register_##var)                                                                                \
	{                                                                                                              \
		holder_register(&(var));                                                                               \
	}

// Checks the limits against packet_buffers and gives the holders their shares. 0, or a positive errno after
// object_error().
int hold_start(const struct api_engine *e);

// Buffers that this thread's share still has room for. All four: the thread that `w` belongs to.
static inline uint32_t hold_room(const struct worker *w, const struct holder *h)
{
	return w->hold[h->id] < h->share ? h->share - w->hold[h->id] : 0;
}

// 1 when this thread holds more than its share, which hold_add() allows until something else is given back.
static inline int hold_over(const struct worker *w, const struct holder *h)
{
	return w->hold[h->id] > h->share;
}

// Without a check: for packets that return to their place, or whose holder checks hold_over() next.
static inline void hold_add(struct worker *w, const struct holder *h, uint32_t buffers)
{
	w->hold[h->id] += buffers;
}

// 1 when there is room: the buffers are counted until hold_give().
static inline int hold_take(struct worker *w, const struct holder *h, uint32_t buffers)
{
	if (unlikely(buffers > hold_room(w, h)))
		return 0;
	hold_add(w, h, buffers);
	return 1;
}

static inline void hold_give(struct worker *w, const struct holder *h, uint32_t buffers)
{
	w->hold[h->id] -= buffers;
}

// Rings of packets: many producers, one consumer. A packet takes as many places as it has buffers, so the ring's size
// is its limit.

#define HOLD_RECEIVE 256 // buffers that the packets of one walk of a worker need
#define HOLD_RING_CHAIN 256 // buffers of the longest chain that a ring takes

struct rte_ring *hold_ring_create(const char *name, uint32_t buffers);
int hold_ring_put(struct rte_ring *r, struct rte_mbuf *m); // 1, or 0 when there is no room
// Puts as many of n packets, in order, as there is room for; returns how many. Consecutive packets of one buffer take
// one step.
uint32_t hold_ring_put_burst(struct rte_ring *r, struct rte_mbuf **pkts, uint32_t n);
uint32_t hold_ring_take(struct rte_ring *r, struct rte_mbuf **pkts, uint32_t n); // how many packets; 0 may precede more

#endif
