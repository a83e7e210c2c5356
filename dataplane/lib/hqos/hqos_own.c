// SPDX-License-Identifier: Apache-2.0
// Our own scheduling engine: creation, counters, and enqueue with its straight-through path. hqos_serve.c dequeues.
#include "hqos/hqos_own.h"

#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>

// ---- creation -------------------------------------------------------------------------------------------------------

#define MIN_BURST (SECOND >> 14) // 61 us
#define MAX_BURST (EPOCH / 2)

static struct rate rate_make(uint64_t rate, uint64_t burst)
{
	struct rate r = {0};
	if (!rate)
		return r;
	r.cost = (uint64_t)((((unsigned __int128)SECOND << COST_SHIFT) + rate / 2) / rate);
	unsigned __int128 units = (unsigned __int128)burst * r.cost >> COST_SHIFT;
	r.burst = units > MAX_BURST ? MAX_BURST : units < MIN_BURST ? MIN_BURST : (uint64_t)units;
	return r;
}

static void profile_make(struct profile *profile, const struct api_pipe_profile *from)
{
	uint32_t low = 255, high = 1;
	profile->rate = rate_make(from->rate, from->burst);
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		profile->class_rate[c] = rate_make(from->class_rate[c], from->burst);
	for (int q = 0; q < API_BE_QUEUES; q++) {
		low = RTE_MIN(low, from->weight[q]);
		high = RTE_MAX(high, from->weight[q]);
	}
	// As many bytes for one of weight as let the lightest queue send about one packet a round, and fit 16 bits.
	uint32_t unit = RTE_MAX(1u, RTE_MIN(1024 / low, (uint32_t)INT16_MAX / high));
	for (int q = 0; q < API_BE_QUEUES; q++)
		profile->quantum[q] = from->weight[q] * unit;
}

static void subports_make(struct own *o, const struct api_scheduler *s)
{
	uint64_t fastest = 1;
	for (uint32_t i = 0; i < s->subports; i++)
		if (o->head.pipes[i])
			fastest = RTE_MAX(fastest, s->subport[i].rate);
	for (uint32_t i = 0; i < API_MAX_SUBPORTS; i++) {
		struct subport *sp = &o->subport[i];
		sp->active = (struct list){NIL, NIL};
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			sp->wanting[c] = (struct list){NIL, NIL};
		if (!o->head.pipes[i])
			continue;
		const struct api_subport *from = &s->subport[i];
		sp->rate = rate_make(from->rate, from->burst);
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			sp->class_rate[c] = rate_make(from->class_rate[c], from->burst);
		for (uint32_t k = 0; k < o->head.pipes[i]; k++)
			o->pipe[o->head.first[i] + k].subport = i;
		sp->quantum = RTE_MAX(256, (int32_t)((double)from->rate / fastest * SUBPORT_QUANTUM));
	}
}

static void own_free(struct hqos *h);
static const struct hqos_ops own_ops;

struct hqos *hqos_own_create(const struct hqos_params *params, const struct hqos *head, char *error)
{
	const struct api_scheduler *s = params->scheduler;
	struct own *o = rte_zmalloc_socket("hqos", sizeof(*o), RTE_CACHE_LINE_SIZE, params->socket);
	if (!o)
		goto full;
	o->head = *head;
	o->head.ops = &own_ops;
	o->pipe = rte_zmalloc_socket("hqos_pipe", head->total_pipes * sizeof(*o->pipe), 64, params->socket);
	o->queues = rte_zmalloc_socket("hqos_queues", head->total_pipes * sizeof(*o->queues), 64, params->socket);
	o->accepted = rte_zmalloc_socket("hqos_took", head->total_pipes * sizeof(*o->accepted), 64, params->socket);
	o->dropped = rte_zmalloc_socket("hqos_drop", head->total_pipes * sizeof(*o->dropped), 64, params->socket);
	o->want_next = rte_zmalloc_socket("hqos_want", head->total_pipes * sizeof(*o->want_next), 64, params->socket);
	o->long_link = rte_zmalloc_socket("hqos_long", head->total_pipes * sizeof(*o->long_link), 64, params->socket);
	if (!o->pipe || !o->queues || !o->accepted || !o->dropped || !o->want_next || !o->long_link)
		goto full;
	o->head.memory = sizeof(*o) + head->total_pipes * (sizeof(*o->pipe) + sizeof(*o->queues) +
								  sizeof(*o->accepted) + sizeof(*o->dropped) +
								  sizeof(*o->want_next) + sizeof(*o->long_link));
	uint64_t rate = params->rate ? params->rate : s->rate;
	o->rate = rate_make(rate, params->burst ? params->burst : rate / 1000);
	o->overhead = s->frame_overhead;
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		for (uint32_t i = 0; i < RTE_DIM(o->queue_size); i++)
			o->queue_size[i][c] =
				i > 0 && s->precedence_size[i - 1][c] ? s->precedence_size[i - 1][c] : s->queue_size[c];
	o->now = EPOCH;
	o->origin = params->start;
	o->scale = (uint64_t)(((unsigned __int128)SECOND << 32) / params->hz);
	o->wake_at = UINT64_MAX;
	o->wheel_tick = EPOCH >> SLOT_SHIFT;
	for (uint32_t i = 0; i < SLOTS; i++)
		o->wheel[i] = (struct list){NIL, NIL};
	for (uint32_t i = 0; i < LEVELS; i++)
		o->longest[i] = (struct list){NIL, NIL};
	for (uint32_t i = 0; i < s->profiles; i++)
		profile_make(&o->profile[i], &s->profile[i]);
	subports_make(o, s);
	if (!own_red_create(o, params))
		goto full;
	return &o->head;
full:
	snprintf(error, HQOS_ERROR, "no memory for %u pipes", head->total_pipes);
	if (o)
		own_free(&o->head);
	return NULL;
}

static void own_free(struct hqos *h)
{
	struct own *o = (struct own *)h;
	for (; o->passed_head != o->passed_tail; o->passed_head++)
		rte_pktmbuf_free(o->passed[o->passed_head % READY]);
	for (uint32_t i = 0; o->pipe && o->held && i < o->head.total_pipes; i++)
		for (uint32_t q = 0; q < HQOS_QUEUES; q++)
			for (struct rte_mbuf *m = o->queues[i].queue[q].head; m != NULL && o->queues[i].queued[q];
				o->queues[i].queued[q]--) {
				struct rte_mbuf *next = link_get(m);
				rte_pktmbuf_free(m);
				m = next;
			}
	rte_free(o->pipe);
	rte_free(o->queues);
	rte_free(o->accepted);
	rte_free(o->dropped);
	rte_free(o->want_next);
	rte_free(o->long_link);
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		rte_free(o->red[c]);
	rte_free(o);
}

static int own_pipe_config(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile)
{
	struct own *o = (struct own *)h;
	uint32_t index = h->first[subport] + pipe;
	struct pipe *p = &o->pipe[index];
	p->profile = profile;
	p->free_at = 0;
	memset(p->class_free_at, 0, sizeof(p->class_free_at));
	if (p->state >= PARKED)
		own_resettle(o, &o->subport[subport], index);
	return 0;
}

// ---- counters -------------------------------------------------------------------------------------------------------

static void own_subport_stats(struct hqos *h, uint32_t subport, uint32_t c, struct hqos_stats *stats)
{
	const struct subport *sp = &((struct own *)h)->subport[subport];
	*stats = (struct hqos_stats){
		.packets = sp->accepted[c].packets,
		.bytes = sp->accepted[c].bytes,
		.dropped_packets = sp->dropped[c].packets,
		.dropped_bytes = sp->dropped[c].bytes,
		.dropped_by = {sp->dropped_by[c][0], sp->dropped_by[c][1]},
		.queued = sp->held[c],
	};
}

static void own_pipe_stats(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t c, struct hqos_stats *stats)
{
	const struct own *o = (const struct own *)h;
	uint32_t index = h->first[subport] + pipe;
	const struct pipe *p = &o->pipe[index];
	*stats = (struct hqos_stats){
		.packets = o->accepted[index][c].packets + p->taken[c] / TAKEN_PACKET,
		.bytes = o->accepted[index][c].bytes + p->taken[c] % TAKEN_PACKET,
		.dropped_packets = o->dropped[index][c].packets,
		.dropped_bytes = o->dropped[index][c].bytes,
	};
	for (uint32_t q = 0; q < HQOS_QUEUES; q++)
		if (hqos_queue_class(q) == c)
			stats->queued += queues_of(o, p)->queued[q];
}

static uint32_t own_queued(const struct hqos *h)
{
	const struct own *o = (const struct own *)h;
	return o->held + (o->passed_tail - o->passed_head);
}

// ---- enqueue --------------------------------------------------------------------------------------------------------

// A packet may pass straight through when nothing that it could overtake is waiting for credit that it would use, and
// all five buckets have credit. Packets of pipes that wait for their own buckets only are not overtaken by this.
static inline bool may_pass(const struct own *o, const struct subport *sp, const struct pipe *p, uint32_t c)
{
	return !p->mask && !o->ready && !(sp->wanted >> c & 1) && p->free_at <= o->now &&
	       p->class_free_at[c] <= o->now && sp->free_at <= o->now && sp->class_free_at[c] <= o->now &&
	       o->free_at <= o->now && o->passed_tail - o->passed_head < READY;
}

static __rte_noinline bool drop(
	struct own *o, struct subport *sp, uint32_t index, uint32_t c, uint32_t bytes, uint32_t precedence)
{
	if (precedence > 0)
		sp->dropped_by[c][precedence - 1]++;
	sp->dropped[c].packets++;
	sp->dropped[c].bytes += bytes;
	o->dropped[index][c].packets++;
	o->dropped[index][c].bytes += bytes;
	return false;
}

// Adds a packet to its queue and sees to it that the pipe will have its turn.
static __rte_noinline void queue_push(struct own *o, struct subport *sp, uint32_t index, uint32_t q, struct rte_mbuf *m)
{
	struct pipe *p = &o->pipe[index];
	struct pipe_queues *w = queues_of(o, p);
	uint32_t before = class_mask(p);
	if (!o->held)
		o->wheel_tick = o->now >> SLOT_SHIFT; // stood still while it was empty
	if (w->queued[q]++)
		link_set(w->queue[q].tail, m);
	else
		w->queue[q].head = m;
	w->queue[q].tail = m;
	p->mask |= 1u << q;
	if (unlikely(w->queued[q] >> p->level))
		own_level_raise(o, index, w->queued[q]);
	sp->held[hqos_queue_class(q)]++;
	o->held++;
	if (p->state == IDLE) {
		own_settle(o, sp, index);
	} else if (p->state >= PARKED && before != class_mask(p)) {
		// Another class has packets now: it may be allowed to leave before those that the pipe was put away
		// for.
		own_resettle(o, sp, index);
	}
}

static __rte_noinline void count_taken(struct own *o, uint32_t index, uint32_t c)
{
	struct class_count *count = &o->accepted[index][c];
	uint32_t *taken = &o->pipe[index].taken[c];
	count->packets += *taken / TAKEN_PACKET;
	count->bytes += *taken % TAKEN_PACKET;
	*taken = 0;
}

static inline bool take(struct own *o, struct rte_mbuf *m)
{
	uint32_t place = m->hash.sched.queue_id;
	if (unlikely(!hqos_place_valid(&o->head, place))) {
		o->head.misplaced++;
		return false;
	}
	uint32_t q = hqos_place_queue(place), c = hqos_queue_class(q);
	uint32_t index = o->head.first[hqos_place_subport(place)] + hqos_place_pipe(place);
	struct subport *sp = &o->subport[hqos_place_subport(place)];
	struct pipe *p = &o->pipe[index];
	uint32_t bytes = m->pkt_len, precedence = RTE_MIN(m->hash.sched.color, 2u);
	if (likely(may_pass(o, sp, p, c))) {
		charge_all(o, sp, p, c, bytes + o->overhead);
		o->passed[o->passed_tail++ % READY] = m;
	} else if (queues_of(o, p)->queued[q] >= o->queue_size[precedence][c]) {
		if (queues_of(o, p)->queued[q] < o->queue_size[0][c])
			hqos_set_place(m, HQOS_PLACE_PRECEDENCE);
		return drop(o, sp, index, c, bytes, precedence);
	} else if (o->red[c] && own_red_refuses(o, index, q, m)) {
		hqos_set_place(m, HQOS_PLACE_EARLY);
		return drop(o, sp, index, c, bytes, precedence);
	} else {
		queue_push(o, sp, index, q, m);
	}
	if (unlikely(p->taken[c] >= 255 * TAKEN_PACKET))
		count_taken(o, index, c);
	p->taken[c] += TAKEN_PACKET + bytes;
	sp->accepted[c].packets++;
	sp->accepted[c].bytes += bytes;
	return true;
}

// Out-of-range places are caught in take(); an address outside the array does no harm to a prefetch.
static inline void prefetch_place(const struct own *o, uint32_t place)
{
	rte_prefetch0(o->pipe + o->head.first[hqos_place_subport(place) % API_MAX_SUBPORTS] + hqos_place_pipe(place));
}

// Of a pipe that will not let the packet pass, most likely: something waits in it.
static inline void prefetch_queue(const struct own *o, uint32_t place)
{
	if (!hqos_place_valid(&o->head, place))
		return;
	const struct pipe *p = o->pipe + o->head.first[hqos_place_subport(place)] + hqos_place_pipe(place);
	if (p->mask) {
		rte_prefetch0(queues_of(o, p)->queued);
		rte_prefetch0(&queues_of(o, p)->queue[hqos_place_queue(place)]);
	}
}

static uint32_t own_enqueue(
	struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected)
{
	struct own *o = (struct own *)h;
	uint32_t refused = 0;
	own_clock(o, now);
	if (unlikely(o->blocked != 0) && o->now >= o->wake_at)
		own_wake_subports(o);
	for (uint32_t i = 0; i < n && i < AHEAD; i++)
		prefetch_place(o, packets[i]->hash.sched.queue_id);
	for (uint32_t i = 0; i < n; i++) {
		if (i + AHEAD < n)
			prefetch_place(o, packets[i + AHEAD]->hash.sched.queue_id);
		if (o->held && i + AHEAD / 2 < n)
			prefetch_queue(o, packets[i + AHEAD / 2]->hash.sched.queue_id);
		struct rte_mbuf *m = packets[i];
		if (unlikely(!take(o, m)))
			rejected[refused++] = m;
	}
	return refused;
}

static const struct hqos_ops own_ops = {
	.free = own_free,
	.pipe_config = own_pipe_config,
	.enqueue = own_enqueue,
	.dequeue = own_dequeue,
	.queued = own_queued,
	.push_out = own_push_out,
	.longest = own_longest,
	.subport_stats = own_subport_stats,
	.pipe_stats = own_pipe_stats,
};
