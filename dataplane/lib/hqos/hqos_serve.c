// SPDX-License-Identifier: Apache-2.0
// Our own scheduling engine: dequeue. Subports take turns at the port and pipes take turns at their subport, each by
// deficit round robin in bytes; a pipe that may not send leaves the round until it may, so that nobody polls it.
#include "hqos/hqos_own.h"

#include <rte_common.h>

// ---- lists ----------------------------------------------------------------------------------------------------------

static void list_push(struct own *o, struct list *list, uint32_t index)
{
	struct pipe *p = &o->pipe[index];
	p->next = NIL;
	queues_of(o, p)->prev = list->tail;
	if (list->tail == NIL)
		list->head = index;
	else
		o->pipe[list->tail].next = index;
	list->tail = index;
}

static void list_remove(struct own *o, struct list *list, uint32_t index)
{
	const struct pipe *p = &o->pipe[index];
	const struct pipe_queues *w = queues_of(o, p);
	if (w->prev == NIL)
		list->head = p->next;
	else
		o->pipe[w->prev].next = p->next;
	if (p->next == NIL)
		list->tail = w->prev;
	else
		o->queues[p->next].prev = w->prev;
}

// ---- where a pipe belongs -------------------------------------------------------------------------------------------

static uint64_t subport_bit(const struct own *o, const struct subport *sp)
{
	return 1ull << (sp - o->subport);
}

// Credit of a class at the subport for one turn of a pipe, as time; so much must be there for each grant.
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
static void subport_settle(struct own *o, struct subport *sp)
{
	uint64_t bit = subport_bit(o, sp);
	o->ready &= ~bit;
	o->blocked &= ~bit;
	if (sp->active.head == NIL && !sp->wanted)
		return;
	uint64_t at = subport_time(sp);
	if (at <= o->now) {
		o->ready |= bit;
	} else {
		o->blocked |= bit;
		o->wake_at = RTE_MIN(o->wake_at, at);
	}
}

void own_wake_subports(struct own *o)
{
	if (o->wake_at > o->now)
		return;
	o->wake_at = UINT64_MAX;
	for (uint64_t mask = o->blocked; mask; mask &= mask - 1)
		subport_settle(o, &o->subport[__builtin_ctzll(mask)]);
}

static void park(struct own *o, uint32_t index, uint64_t until)
{
	struct pipe *p = &o->pipe[index];
	struct pipe_queues *w = queues_of(o, p);
	uint64_t tick = (until + (1u << SLOT_SHIFT) - 1) >> SLOT_SHIFT;
	// Beyond the wheel's reach: the pipe comes out at the end of it and is parked again.
	tick = RTE_MIN(tick, o->wheel_tick + SLOTS - 1);
	w->slot = tick % SLOTS;
	p->state = PARKED;
	list_push(o, &o->wheel[w->slot], index);
	o->wheel_bits[w->slot / 64] |= 1ull << w->slot % 64;
	o->parked++;
}

static void want(struct own *o, struct subport *sp, uint32_t index, uint32_t c)
{
	struct list *list = &sp->wanting[c];
	if (o->queues[index].wants >> c & 1)
		return;
	o->queues[index].wants |= 1u << c;
	o->want_next[index][c] = NIL;
	if (list->head == NIL)
		list->head = index;
	else
		o->want_next[list->tail][c] = index;
	list->tail = index;
	sp->wanted |= 1u << c;
}

static void activate(struct own *o, struct subport *sp, uint32_t index)
{
	o->pipe[index].state = ACTIVE;
	list_push(o, &sp->active, index);
}

void own_settle(struct own *o, struct subport *sp, uint32_t index)
{
	struct pipe *p = &o->pipe[index];
	uint64_t first = UINT64_MAX;
	o->queues[index].deficit = RTE_MIN(o->queues[index].deficit, 0);
	for (uint32_t mask = class_mask(p); mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		uint64_t at = RTE_MAX(p->free_at, p->class_free_at[c]);
		if (at <= o->now && (sp->class_free_at[c] > o->now || sp->wanted >> c & 1))
			want(o, sp, index, c);
		else
			first = RTE_MIN(first, at);
	}
	if (first <= o->now)
		activate(o, sp, index);
	else if (first < UINT64_MAX)
		park(o, index, first);
	else
		p->state = WAITING;
	if (!(o->ready & subport_bit(o, sp)))
		subport_settle(o, sp);
}

static void unpark(struct own *o, uint32_t index)
{
	uint32_t slot = o->queues[index].slot;
	list_remove(o, &o->wheel[slot], index);
	if (o->wheel[slot].head == NIL)
		o->wheel_bits[slot / 64] &= ~(1ull << slot % 64);
	o->parked--;
}

void own_resettle(struct own *o, struct subport *sp, uint32_t index)
{
	if (o->pipe[index].state == PARKED)
		unpark(o, index);
	own_settle(o, sp, index);
}

// ---- timing wheel ---------------------------------------------------------------------------------------------------

// First slot with pipes in it after `tick`, as a tick; at most `last` + 1.
static uint64_t wheel_next(const struct own *o, uint64_t tick, uint64_t last)
{
	while (++tick <= last) {
		uint64_t word = o->wheel_bits[tick % SLOTS / 64] >> tick % 64;
		if (word)
			return RTE_MIN(tick + __builtin_ctzll(word), last + 1);
		tick |= 63;
	}
	return last + 1;
}

static void wheel_advance(struct own *o)
{
	uint64_t last = o->now >> SLOT_SHIFT;
	// After a long silence every slot is due, and one round sees them all.
	if (last - o->wheel_tick > SLOTS)
		o->wheel_tick = last - SLOTS;
	while (o->parked) {
		uint64_t tick = wheel_next(o, o->wheel_tick, last);
		if (tick > last)
			break;
		struct list *slot = &o->wheel[tick % SLOTS];
		o->wheel_tick = tick;
		while (slot->head != NIL) {
			uint32_t index = slot->head;
			if (!o->budget) {
				o->wheel_tick = tick - 1; // the rest of this slot at the next call
				return;
			}
			o->budget--;
			if (o->pipe[index].next != NIL)
				rte_prefetch0(&o->pipe[o->pipe[index].next]);
			own_resettle(o, &o->subport[o->pipe[index].subport], index);
		}
	}
	o->wheel_tick = last;
}

// ---- service --------------------------------------------------------------------------------------------------------

// The class whose packet a pipe sends next, API_TRAFFIC_CLASSES when none may.
static inline uint32_t pick_class(const struct own *o, const struct subport *sp, const struct pipe *p)
{
	if (p->free_at > o->now)
		return API_TRAFFIC_CLASSES;
	for (uint32_t mask = class_mask(p); mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		if (p->class_free_at[c] <= o->now && sp->class_free_at[c] <= o->now &&
			((p->granted | ~sp->wanted) >> c & 1))
			return c;
	}
	return API_TRAFFIC_CLASSES;
}

// The best-effort queue whose turn it is. Every round adds to each queue's deficit, so the loop ends.
static inline uint32_t pick_queue(const struct own *o, struct pipe *p)
{
	uint32_t mask = p->mask >> HQOS_BEST_EFFORT, turn = p->turn;
	struct pipe_queues *w = queues_of(o, p);
	while (!(mask >> turn & 1) || w->be_deficit[turn] <= 0) {
		turn = (turn + 1) % API_BE_QUEUES;
		if (mask >> turn & 1)
			w->be_deficit[turn] += o->profile[p->profile].quantum[turn];
	}
	p->turn = turn;
	return HQOS_BEST_EFFORT + turn;
}

static inline struct rte_mbuf *queue_pop(struct own *o, struct subport *sp, struct pipe *p, uint32_t q)
{
	struct pipe_queues *w = queues_of(o, p);
	struct rte_mbuf *m = w->queue[q].head;
	if (--w->queued[q]) {
		w->queue[q].head = link_get(m);
		rte_prefetch0(w->queue[q].head);
	} else {
		p->mask &= ~(1u << q);
		if (q >= HQOS_BEST_EFFORT)
			w->be_deficit[q - HQOS_BEST_EFFORT] = 0;
		if (unlikely(o->red[hqos_queue_class(q)] != NULL))
			own_red_empty(o, (uint32_t)(p - o->pipe), q);
	}
	sp->held[hqos_queue_class(q)]--;
	o->held--;
	return m;
}

struct rte_mbuf *own_queue_pop(struct own *o, struct subport *sp, struct pipe *p, uint32_t q)
{
	return queue_pop(o, sp, p, q);
}

static struct rte_mbuf *send_one(struct own *o, struct subport *sp, struct pipe *p, uint32_t c)
{
	uint32_t q = c < HQOS_BEST_EFFORT ? c : pick_queue(o, p);
	struct pipe_queues *w = queues_of(o, p);
	struct rte_mbuf *m = queue_pop(o, sp, p, q);
	uint32_t length = m->pkt_len + o->overhead;
	charge_all(o, sp, p, c, length);
	length = RTE_MIN(length, (uint32_t)SHARE_MAX);
	if (p->mask >> q & 1 && q >= HQOS_BEST_EFFORT)
		w->be_deficit[q - HQOS_BEST_EFFORT] -= length;
	w->deficit -= length;
	sp->deficit -= length;
	return m;
}

// Two pipes ahead in the round: the lines of the pipe; one ahead: its first packet. (Which queue it will send from is
// not known yet; the first one with packets is a good guess.)
static inline void prefetch_round(const struct own *o, const struct pipe *p)
{
	if (p->next == NIL)
		return;
	const struct pipe *one = &o->pipe[p->next];
	if (one->mask)
		rte_prefetch0(queues_of(o, one)->queue[__builtin_ctz(one->mask)].head);
	if (one->next == NIL)
		return;
	const struct pipe *two = &o->pipe[one->next];
	rte_prefetch0(two);
	rte_prefetch0(queues_of(o, two)->queued);
	rte_prefetch0(&queues_of(o, two)->queue[API_TRAFFIC_CLASSES - 1]); // best effort
}

// The turn, or what is left of it, of the first pipe in a subport's round.
static uint32_t serve_pipe(struct own *o, struct subport *sp, struct rte_mbuf **out, uint32_t room)
{
	uint32_t index = sp->active.head, count = 0;
	struct pipe *p = &o->pipe[index];
	struct pipe_queues *w = queues_of(o, p);
	prefetch_round(o, p);
	if (w->deficit <= 0)
		w->deficit += PIPE_QUANTUM;
	while (w->deficit > 0) {
		uint32_t c = pick_class(o, sp, p);
		if (c == API_TRAFFIC_CLASSES)
			break;
		if (count == room || sp->deficit <= 0 || sp->free_at > o->now || o->free_at > o->now)
			return count; // the port or the subport pauses: the pipe keeps its turn
		out[count++] = send_one(o, sp, p, c);
		if (!p->mask)
			break;
	}
	list_remove(o, &sp->active, index);
	for (uint32_t mask = p->granted; mask; mask &= mask - 1)
		sp->grants[__builtin_ctz(mask)]--;
	p->granted = 0;
	if (p->mask) {
		own_settle(o, sp, index);
	} else {
		p->state = IDLE;
		w->deficit = 0;
	}
	return count;
}

static void grant(struct own *o, struct subport *sp, uint32_t index, uint32_t c)
{
	struct pipe *p = &o->pipe[index];
	o->queues[index].wants &= ~(1u << c);
	if (RTE_MAX(p->free_at, p->class_free_at[c]) > o->now) {
		// It has spent its own credit on other classes meanwhile.
		if (p->state == WAITING)
			own_settle(o, sp, index);
		return;
	}
	p->granted |= 1u << c;
	sp->grants[c]++;
	if (p->state == PARKED)
		unpark(o, index);
	if (p->state != ACTIVE)
		activate(o, sp, index);
}

// Gives out grants for the wanted classes, as many as the credit will serve, but not many at once.
static void grant_wanted(struct own *o, struct subport *sp)
{
	for (uint32_t mask = sp->wanted; mask; mask &= mask - 1) {
		uint32_t c = __builtin_ctz(mask);
		for (int i = 0; i < 16 && sp->wanting[c].head != NIL && grant_at(sp, c) <= o->now; i++) {
			uint32_t index = sp->wanting[c].head;
			sp->wanting[c].head = o->want_next[index][c];
			if (sp->wanting[c].head == NIL)
				sp->wanted &= ~(1u << c);
			grant(o, sp, index, c);
		}
	}
}

static uint32_t serve_subport(struct own *o, struct subport *sp, struct rte_mbuf **out, uint32_t room)
{
	uint32_t count = 0;
	if (sp->deficit <= 0)
		sp->deficit += sp->quantum;
	while (sp->deficit > 0 && count < room && o->budget && o->free_at <= o->now) {
		if (sp->wanted)
			grant_wanted(o, sp);
		if (sp->free_at > o->now || sp->active.head == NIL)
			break;
		o->budget--;
		count += serve_pipe(o, sp, out + count, room - count);
	}
	subport_settle(o, sp);
	bool ready = o->ready & subport_bit(o, sp);
	if (!ready)
		sp->deficit = RTE_MIN(sp->deficit, 0);
	if (!ready || sp->deficit <= 0)
		o->turn = (sp - o->subport + 1) % API_MAX_SUBPORTS;
	return count;
}

static inline uint32_t take_passed(struct own *o, struct rte_mbuf **out, uint32_t room)
{
	uint32_t count = RTE_MIN(room, o->passed_tail - o->passed_head);
	for (uint32_t i = 0; i < count; i++)
		out[i] = o->passed[o->passed_head++ % READY];
	return count;
}

uint32_t own_dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now)
{
	struct own *o = (struct own *)h;
	uint32_t count = take_passed(o, out, n);
	own_clock(o, now);
	if (likely(!o->held))
		return count;
	o->budget = 4 * n + 64;
	wheel_advance(o);
	own_wake_subports(o);
	while (o->ready && count < n && o->budget && o->free_at <= o->now) {
		uint64_t after = o->ready >> o->turn << o->turn;
		struct subport *sp = &o->subport[__builtin_ctzll(after ? after : o->ready)];
		count += serve_subport(o, sp, out + count, n - count);
	}
	return count;
}
