// SPDX-License-Identifier: Apache-2.0
// Finds the longest queues, for a worker whose share of packet buffers is used up.
//
// Level L: no queue of the pipe has reached 2^L packets since the pipe entered that level's list. A pipe rises when a
// queue outgrows its level, at powers of two only. It sinks when it is examined here, so a departing packet costs
// nothing.
#include "hqos/hqos_private.h"

#include <rte_common.h>

#define LOOK_AT 64 // pipes that have sunk meanwhile, in one call

static uint32_t level_of(uint32_t length)
{
	return length ? 32 - (uint32_t)__builtin_clz(length) : 0;
}

static void level_leave(struct hqos *h, uint32_t index)
{
	struct pipe *p = &h->pipe[index];
	struct list *list = &h->longest[p->level];
	struct long_link link = h->long_link[index];
	if (!p->level)
		return;
	if (link.prev == NIL)
		list->head = link.next;
	else
		h->long_link[link.prev].next = link.next;
	if (link.next == NIL)
		list->tail = link.prev;
	else
		h->long_link[link.next].prev = link.prev;
	if (list->head == NIL)
		h->levels &= ~(1u << p->level);
	p->level = 0;
}

static void level_enter(struct hqos *h, uint32_t index, uint32_t level)
{
	struct list *list = &h->longest[level];
	h->pipe[index].level = level;
	if (!level)
		return;
	h->long_link[index] = (struct long_link){.next = NIL, .prev = list->tail};
	if (list->tail == NIL)
		list->head = index;
	else
		h->long_link[list->tail].next = index;
	list->tail = index;
	h->levels |= 1u << level;
}

void level_raise(struct hqos *h, uint32_t index, uint32_t length)
{
	level_leave(h, index);
	level_enter(h, index, level_of(length));
}

uint32_t hqos_longest(const struct hqos *h)
{
	return level_of(h->levels) ? level_of(h->levels) - 1 : 0;
}

static uint32_t longest_queue(const struct pipe_queues *w)
{
	uint32_t longest = 0;
	for (uint32_t q = 1; q < HQOS_QUEUES; q++)
		if (w->queued[q] >= w->queued[longest]) // of equal ones the lowest class
			longest = q;
	return longest;
}

uint32_t hqos_push_out(struct hqos *h, struct rte_mbuf **out, uint32_t n)
{
	uint32_t count = 0;
	for (uint32_t looked = 0; count < n && looked < n + LOOK_AT && hqos_longest(h) >= 2; looked++) {
		uint32_t top = hqos_longest(h), index = h->longest[top].head;
		struct pipe *p = &h->pipe[index];
		struct subport *sp = &h->subport[p->subport];
		const struct pipe_queues *w = &h->queues[index];
		uint32_t q = longest_queue(w), c = hqos_queue_class(q), length = w->queued[q];
		// To the end of its list or a lower one.
		level_leave(h, index);
		level_enter(h, index, level_of(length));
		if (level_of(length) < top)
			continue;
		struct rte_mbuf *m = pop_queue(h, sp, p, q);
		sp->dropped[c].packets++;
		sp->dropped[c].bytes += m->pkt_len;
		h->dropped[index][c].packets++;
		h->dropped[index][c].bytes += m->pkt_len;
		out[count++] = m;
	}
	return count;
}
