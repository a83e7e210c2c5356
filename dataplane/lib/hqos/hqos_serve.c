// SPDX-License-Identifier: Apache-2.0
// Dequeue. Subports take turns at the port and pipes at their subport, by deficit round robin in bytes. A pipe that may
// not send leaves the round until it may, so it is not polled.
#include "hqos/hqos_private.h"

#include <rte_common.h>

static void list_push(struct hqos *h, struct list *list, uint32_t index)
{
	struct pipe *p = &h->pipe[index];
	p->next = NIL;
	queues_of(h, p)->prev = list->tail;
	if (list->tail == NIL)
		list->head = index;
	else
		h->pipe[list->tail].next = index;
	list->tail = index;
}

static void list_remove(struct hqos *h, struct list *list, uint32_t index)
{
	const struct pipe *p = &h->pipe[index];
	const struct pipe_queues *w = queues_of(h, p);
	if (w->prev == NIL)
		list->head = p->next;
	else
		h->pipe[w->prev].next = p->next;
	if (p->next == NIL)
		list->tail = w->prev;
	else
		h->queues[p->next].prev = w->prev;
}

static uint64_t subport_bit(const struct hqos *h, const struct subport *sp)
{
	return 1ull << (sp - h->subport);
}

// Credit of a class at the subport for one turn of a pipe, as time; each grant needs so much.
static uint64_t turn_time(const struct subport *sp, uint32_t c)
{
	uint64_t turn = PIPE_QUANTUM * sp->class_rate[c].cost >> COST_SHIFT;
	return RTE_MIN(turn, sp->class_rate[c].burst / 2);
}

static uint64_t grant_at(const struct subport *sp, uint32_t c)
{
	return sp->class_free_at[c] + (sp->grants[c] + 1) * turn_time(sp, c);
}

// When a subport that holds active or waiting pipes may send.
static uint64_t subport_time(const struct subport *sp)
{
	if (sp->active.head != NIL)
		return sp->free_at;
	uint64_t first = UINT64_MAX;
	for (uint32_t mask = sp->wanted; mask; mask &= mask - 1)
		first = RTE_MIN(first, grant_at(sp, __builtin_ctz(mask)));
	return RTE_MAX(first, sp->free_at);
}

// Files a subport under ready, blocked or neither.
static void subport_settle(struct hqos *h, struct subport *sp)
{
	uint64_t bit = subport_bit(h, sp);
	h->ready &= ~bit;
	h->blocked &= ~bit;
	if (sp->active.head == NIL && !sp->wanted)
		return;
	uint64_t at = subport_time(sp);
	if (at <= h->now) {
		h->ready |= bit;
	} else {
		h->blocked |= bit;
		h->wake_at = RTE_MIN(h->wake_at, at);
	}
}

void wake_subports(struct hqos *h)
{
	if (h->wake_at > h->now)
		return;
	h->wake_at = UINT64_MAX;
	for (uint64_t mask = h->blocked; mask; mask &= mask - 1)
		subport_settle(h, &h->subport[__builtin_ctzll(mask)]);
}

static void park(struct hqos *h, uint32_t index, uint64_t until)
{
	struct pipe *p = &h->pipe[index];
	struct pipe_queues *w = queues_of(h, p);
	uint64_t tick = (until + (1u << SLOT_SHIFT) - 1) >> SLOT_SHIFT;
	// Beyond the wheel's range: the pipe leaves at its end and is parked again.
	tick = RTE_MIN(tick, h->wheel_tick + SLOTS - 1);
	w->slot = tick % SLOTS;
	p->state = PARKED;
	list_push(h, &h->wheel[w->slot], index);
	h->wheel_bits[w->slot / 64] |= 1ull << w->slot % 64;
	h->parked++;
}

static void want(struct hqos *h, struct subport *sp, uint32_t index, uint32_t c)
{
	struct list *list = &sp->wanting[c];
	if (h->queues[index].wants >> c & 1)
		return;
	h->queues[index].wants |= 1u << c;
	h->want_next[index][c] = NIL;
	if (list->head == NIL)
		list->head = index;
	else
		h->want_next[list->tail][c] = index;
	list->tail = index;
	sp->wanted |= 1u << c;
}

static void activate(struct hqos *h, struct subport *sp, uint32_t index)
{
	h->pipe[index].state = ACTIVE;
	list_push(h, &sp->active, index);
}

void settle_pipe(struct hqos *h, struct subport *sp, uint32_t index)
{
	struct pipe *p = &h->pipe[index];
	uint64_t first = UINT64_MAX;
	h->queues[index].deficit = RTE_MIN(h->queues[index].deficit, 0);
	for (uint32_t mask = class_mask(p); mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		uint64_t at = RTE_MAX(p->free_at, p->class_free_at[c]);
		if (at <= h->now && (sp->class_free_at[c] > h->now || sp->wanted >> c & 1))
			want(h, sp, index, c);
		else
			first = RTE_MIN(first, at);
	}
	if (first <= h->now)
		activate(h, sp, index);
	else if (first < UINT64_MAX)
		park(h, index, first);
	else
		p->state = WAITING;
	if (!(h->ready & subport_bit(h, sp)))
		subport_settle(h, sp);
}

static void unpark(struct hqos *h, uint32_t index)
{
	uint32_t slot = h->queues[index].slot;
	list_remove(h, &h->wheel[slot], index);
	if (h->wheel[slot].head == NIL)
		h->wheel_bits[slot / 64] &= ~(1ull << slot % 64);
	h->parked--;
}

void resettle_pipe(struct hqos *h, struct subport *sp, uint32_t index)
{
	if (h->pipe[index].state == PARKED)
		unpark(h, index);
	settle_pipe(h, sp, index);
}

// First slot with pipes in it after `tick`, as a tick; at most `last` + 1.
static uint64_t wheel_next(const struct hqos *h, uint64_t tick, uint64_t last)
{
	while (++tick <= last) {
		uint64_t word = h->wheel_bits[tick % SLOTS / 64] >> tick % 64;
		if (word)
			return RTE_MIN(tick + __builtin_ctzll(word), last + 1);
		tick |= 63;
	}
	return last + 1;
}

static void wheel_advance(struct hqos *h)
{
	uint64_t last = h->now >> SLOT_SHIFT;
	// After a long silence every slot is due, and one round sees them all.
	if (last - h->wheel_tick > SLOTS)
		h->wheel_tick = last - SLOTS;
	while (h->parked) {
		uint64_t tick = wheel_next(h, h->wheel_tick, last);
		if (tick > last)
			break;
		struct list *slot = &h->wheel[tick % SLOTS];
		h->wheel_tick = tick;
		while (slot->head != NIL) {
			uint32_t index = slot->head;
			if (!h->budget) {
				h->wheel_tick = tick - 1; // the rest of this slot at the next call
				return;
			}
			h->budget--;
			if (h->pipe[index].next != NIL)
				rte_prefetch0(&h->pipe[h->pipe[index].next]);
			resettle_pipe(h, &h->subport[h->pipe[index].subport], index);
		}
	}
	h->wheel_tick = last;
}

// The class whose packet a pipe sends next, API_TRAFFIC_CLASSES when none may.
static inline uint32_t pick_class(const struct hqos *h, const struct subport *sp, const struct pipe *p)
{
	if (p->free_at > h->now)
		return API_TRAFFIC_CLASSES;
	for (uint32_t mask = class_mask(p); mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		if (p->class_free_at[c] <= h->now && sp->class_free_at[c] <= h->now &&
			((p->granted | ~sp->wanted) >> c & 1))
			return c;
	}
	return API_TRAFFIC_CLASSES;
}

// The best-effort queue whose turn it is. Every round adds to each queue's deficit, so the loop ends.
static inline uint32_t pick_queue(const struct hqos *h, struct pipe *p)
{
	uint32_t mask = p->mask >> HQOS_BEST_EFFORT, turn = p->turn;
	struct pipe_queues *w = queues_of(h, p);
	while (!(mask >> turn & 1) || w->be_deficit[turn] <= 0) {
		turn = (turn + 1) % API_BE_QUEUES;
		if (mask >> turn & 1)
			w->be_deficit[turn] += h->profile[p->profile].quantum[turn];
	}
	p->turn = turn;
	return HQOS_BEST_EFFORT + turn;
}

static inline struct rte_mbuf *queue_pop(struct hqos *h, struct subport *sp, struct pipe *p, uint32_t q)
{
	struct pipe_queues *w = queues_of(h, p);
	struct rte_mbuf *m = w->queue[q].head;
	if (--w->queued[q]) {
		w->queue[q].head = link_get(m);
		rte_prefetch0(w->queue[q].head);
	} else {
		p->mask &= ~(1u << q);
		if (q >= HQOS_BEST_EFFORT)
			w->be_deficit[q - HQOS_BEST_EFFORT] = 0;
		if (unlikely(h->red[hqos_queue_class(q)] != NULL))
			red_empty(h, (uint32_t)(p - h->pipe), q);
	}
	sp->held[hqos_queue_class(q)]--;
	h->held--;
	return m;
}

struct rte_mbuf *pop_queue(struct hqos *h, struct subport *sp, struct pipe *p, uint32_t q)
{
	return queue_pop(h, sp, p, q);
}

static struct rte_mbuf *send_one(struct hqos *h, struct subport *sp, struct pipe *p, uint32_t c)
{
	uint32_t q = c < HQOS_BEST_EFFORT ? c : pick_queue(h, p);
	struct pipe_queues *w = queues_of(h, p);
	struct rte_mbuf *m = queue_pop(h, sp, p, q);
	uint32_t length = m->pkt_len + h->overhead;
	charge_all(h, sp, p, c, length);
	length = RTE_MIN(length, (uint32_t)SHARE_MAX);
	if (p->mask >> q & 1 && q >= HQOS_BEST_EFFORT)
		w->be_deficit[q - HQOS_BEST_EFFORT] -= length;
	w->deficit -= length;
	sp->deficit -= length;
	return m;
}

// Prefetches two pipes ahead in the round: the pipe's lines; one ahead: its first packet. (Its next queue is unknown;
// the first with packets is a good guess.)
static inline void prefetch_round(const struct hqos *h, const struct pipe *p)
{
	if (p->next == NIL)
		return;
	const struct pipe *one = &h->pipe[p->next];
	if (one->mask)
		rte_prefetch0(queues_of(h, one)->queue[__builtin_ctz(one->mask)].head);
	if (one->next == NIL)
		return;
	const struct pipe *two = &h->pipe[one->next];
	rte_prefetch0(two);
	rte_prefetch0(queues_of(h, two)->queued);
	rte_prefetch0(&queues_of(h, two)->queue[API_TRAFFIC_CLASSES - 1]); // best effort
}

// The turn, or its rest, of the first pipe in a subport's round.
static uint32_t serve_pipe(struct hqos *h, struct subport *sp, struct rte_mbuf **out, uint32_t room)
{
	uint32_t index = sp->active.head, count = 0;
	struct pipe *p = &h->pipe[index];
	struct pipe_queues *w = queues_of(h, p);
	prefetch_round(h, p);
	if (w->deficit <= 0)
		w->deficit += PIPE_QUANTUM;
	while (w->deficit > 0) {
		uint32_t c = pick_class(h, sp, p);
		if (c == API_TRAFFIC_CLASSES)
			break;
		if (count == room || sp->deficit <= 0 || sp->free_at > h->now || h->free_at > h->now)
			return count; // the port or the subport pauses: the pipe keeps its turn
		out[count++] = send_one(h, sp, p, c);
		if (!p->mask)
			break;
	}
	list_remove(h, &sp->active, index);
	for (uint32_t mask = p->granted; mask; mask &= mask - 1)
		sp->grants[__builtin_ctz(mask)]--;
	p->granted = 0;
	if (p->mask) {
		settle_pipe(h, sp, index);
	} else {
		p->state = IDLE;
		w->deficit = 0;
	}
	return count;
}

static void grant(struct hqos *h, struct subport *sp, uint32_t index, uint32_t c)
{
	struct pipe *p = &h->pipe[index];
	h->queues[index].wants &= ~(1u << c);
	if (RTE_MAX(p->free_at, p->class_free_at[c]) > h->now) {
		// It has spent its own credit on other classes meanwhile.
		if (p->state == WAITING)
			settle_pipe(h, sp, index);
		return;
	}
	p->granted |= 1u << c;
	sp->grants[c]++;
	if (p->state == PARKED)
		unpark(h, index);
	if (p->state != ACTIVE)
		activate(h, sp, index);
}

// Gives out grants for the wanted classes, as many as the credit will serve, but not many at once.
static void grant_wanted(struct hqos *h, struct subport *sp)
{
	for (uint32_t mask = sp->wanted; mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		for (int i = 0; i < 16 && sp->wanting[c].head != NIL && grant_at(sp, c) <= h->now; i++) {
			uint32_t index = sp->wanting[c].head;
			sp->wanting[c].head = h->want_next[index][c];
			if (sp->wanting[c].head == NIL)
				sp->wanted &= ~(1u << c);
			grant(h, sp, index, c);
		}
	}
}

static uint32_t serve_subport(struct hqos *h, struct subport *sp, struct rte_mbuf **out, uint32_t room)
{
	uint32_t count = 0;
	if (sp->deficit <= 0)
		sp->deficit += sp->quantum;
	while (sp->deficit > 0 && count < room && h->budget && h->free_at <= h->now) {
		if (sp->wanted)
			grant_wanted(h, sp);
		if (sp->free_at > h->now || sp->active.head == NIL)
			break;
		h->budget--;
		count += serve_pipe(h, sp, out + count, room - count);
	}
	subport_settle(h, sp);
	bool ready = h->ready & subport_bit(h, sp);
	if (!ready)
		sp->deficit = RTE_MIN(sp->deficit, 0);
	if (!ready || sp->deficit <= 0)
		h->turn = (sp - h->subport + 1) % API_MAX_SUBPORTS;
	return count;
}

static inline uint32_t take_passed(struct hqos *h, struct rte_mbuf **out, uint32_t room)
{
	uint32_t count = RTE_MIN(room, h->passed_tail - h->passed_head);
	for (uint32_t i = 0; i < count; i++)
		out[i] = h->passed[h->passed_head++ % READY];
	return count;
}

uint32_t hqos_dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now)
{
	uint32_t count = take_passed(h, out, n);
	advance_clock(h, now);
	if (likely(!h->held))
		return count;
	h->budget = 4 * n + 64;
	wheel_advance(h);
	wake_subports(h);
	while (h->ready && count < n && h->budget && h->free_at <= h->now) {
		uint64_t after = h->ready >> h->turn << h->turn;
		struct subport *sp = &h->subport[__builtin_ctzll(after ? after : h->ready)];
		count += serve_subport(h, sp, out + count, n - count);
	}
	return count;
}
