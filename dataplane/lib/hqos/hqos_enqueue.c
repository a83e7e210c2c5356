// SPDX-License-Identifier: Apache-2.0
// Enqueue with its straight-through path.
#include "hqos/hqos_private.h"

// A packet may pass straight through when nothing that it could overtake is waiting for credit that it would use, and
// all five buckets have credit. Packets of pipes that wait for their own buckets only are not overtaken by this.
static inline bool may_pass(const struct hqos *h, const struct subport *sp, const struct pipe *p, uint32_t c)
{
	return !p->mask && !h->ready && !(sp->wanted >> c & 1) && p->free_at <= h->now &&
	       p->class_free_at[c] <= h->now && sp->free_at <= h->now && sp->class_free_at[c] <= h->now &&
	       h->free_at <= h->now && h->passed_tail - h->passed_head < READY;
}

static __rte_noinline bool drop(
	struct hqos *h, struct subport *sp, uint32_t index, uint32_t c, uint32_t bytes, uint32_t precedence)
{
	if (precedence > 0)
		sp->dropped_by[c][precedence - 1]++;
	sp->dropped[c].packets++;
	sp->dropped[c].bytes += bytes;
	h->dropped[index][c].packets++;
	h->dropped[index][c].bytes += bytes;
	return false;
}

// Adds a packet to its queue and sees to it that the pipe will have its turn.
static __rte_noinline void queue_push(
	struct hqos *h, struct subport *sp, uint32_t index, uint32_t q, struct rte_mbuf *m)
{
	struct pipe *p = &h->pipe[index];
	struct pipe_queues *w = queues_of(h, p);
	uint32_t before = class_mask(p);
	if (!h->held)
		h->wheel_tick = h->now >> SLOT_SHIFT; // stood still while it was empty
	if (w->queued[q]++)
		link_set(w->queue[q].tail, m);
	else
		w->queue[q].head = m;
	w->queue[q].tail = m;
	p->mask |= 1u << q;
	if (unlikely(w->queued[q] >> p->level))
		level_raise(h, index, w->queued[q]);
	sp->held[hqos_queue_class(q)]++;
	h->held++;
	if (p->state == IDLE) {
		settle_pipe(h, sp, index);
	} else if (p->state >= PARKED && before != class_mask(p)) {
		// Another class has packets now: it may leave before those that the pipe was parked for.
		resettle_pipe(h, sp, index);
	}
}

static __rte_noinline void count_taken(struct hqos *h, uint32_t index, uint32_t c)
{
	struct class_count *count = &h->accepted[index][c];
	uint32_t *taken = &h->pipe[index].taken[c];
	count->packets += *taken / TAKEN_PACKET;
	count->bytes += *taken % TAKEN_PACKET;
	*taken = 0;
}

static inline bool take(struct hqos *h, struct rte_mbuf *m)
{
	uint32_t place = m->hash.sched.queue_id;
	if (unlikely(!place_valid(h, place))) {
		h->misplaced++;
		return false;
	}
	uint32_t q = hqos_place_queue(place), c = hqos_queue_class(q);
	uint32_t index = h->first[hqos_place_subport(place)] + hqos_place_pipe(place);
	struct subport *sp = &h->subport[hqos_place_subport(place)];
	struct pipe *p = &h->pipe[index];
	uint32_t bytes = m->pkt_len, precedence = RTE_MIN(m->hash.sched.color, 2u);
	if (likely(may_pass(h, sp, p, c))) {
		charge_all(h, sp, p, c, bytes + h->overhead);
		h->passed[h->passed_tail++ % READY] = m;
	} else if (queues_of(h, p)->queued[q] >= h->queue_size[precedence][c]) {
		if (queues_of(h, p)->queued[q] < h->queue_size[0][c])
			hqos_set_place(m, HQOS_PLACE_PRECEDENCE);
		return drop(h, sp, index, c, bytes, precedence);
	} else if (h->red[c] && red_refuses(h, index, q, m)) {
		hqos_set_place(m, HQOS_PLACE_EARLY);
		return drop(h, sp, index, c, bytes, precedence);
	} else {
		queue_push(h, sp, index, q, m);
	}
	if (unlikely(p->taken[c] >= 255 * TAKEN_PACKET))
		count_taken(h, index, c);
	p->taken[c] += TAKEN_PACKET + bytes;
	sp->accepted[c].packets++;
	sp->accepted[c].bytes += bytes;
	return true;
}

// Out-of-range places are caught in take(); an address outside the array does no harm to a prefetch.
static inline void prefetch_place(const struct hqos *h, uint32_t place)
{
	rte_prefetch0(h->pipe + h->first[hqos_place_subport(place) % API_MAX_SUBPORTS] + hqos_place_pipe(place));
}

// Of a pipe that will not let the packet pass, most likely: something waits in it.
static inline void prefetch_queue(const struct hqos *h, uint32_t place)
{
	if (!place_valid(h, place))
		return;
	const struct pipe *p = h->pipe + h->first[hqos_place_subport(place)] + hqos_place_pipe(place);
	if (p->mask) {
		rte_prefetch0(queues_of(h, p)->queued);
		rte_prefetch0(&queues_of(h, p)->queue[hqos_place_queue(place)]);
	}
}

uint32_t hqos_enqueue(struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected)
{
	uint32_t refused = 0;
	advance_clock(h, now);
	if (unlikely(h->blocked != 0) && h->now >= h->wake_at)
		wake_subports(h);
	for (uint32_t i = 0; i < n && i < AHEAD; i++)
		prefetch_place(h, packets[i]->hash.sched.queue_id);
	for (uint32_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			prefetch_place(h, packets[i + AHEAD]->hash.sched.queue_id);
		if (h->held && i + AHEAD / 2 < n)
			prefetch_queue(h, packets[i + AHEAD / 2]->hash.sched.queue_id);
		struct rte_mbuf *m = packets[i];
		if (unlikely(!take(h, m)))
			rejected[refused++] = m;
	}
	return refused;
}
