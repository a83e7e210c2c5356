// SPDX-License-Identifier: Apache-2.0
// The model of hqos_model.h.
#include "hqos/hqos_model.h"

#include <stdlib.h>

#define SLOT 10e-6 // seconds that the engine may let a pipe wait on, once it has credit: its timer's grain
#define TURN 2048 // bytes of class credit that the engine gathers at a subport before it goes on
#define ROUNDING 1e-4 // of what a bucket has passed: the engine computes in whole units of time

struct bucket {
	double rate, size; // rate 0: no cap
	double tokens, passed;
	uint64_t at;
};

struct entry {
	struct rte_mbuf *packet;
	uint32_t length, burst;
	uint64_t order;
};

struct queue {
	struct entry *entry;
	uint32_t first, count, room;
};

struct pipe_model {
	struct bucket all, class[API_TRAFFIC_CLASSES];
	struct queue queue[HQOS_QUEUES];
};

struct subport_model {
	struct bucket all, class[API_TRAFFIC_CLASSES];
	uint32_t pipes;
	struct pipe_model *pipe;
};

struct model {
	const struct api_scheduler *scheduler;
	struct bucket port;
	struct subport_model subport[API_MAX_SUBPORTS];
	uint32_t held, burst;
	uint64_t order;
};

static struct bucket bucket_make(uint64_t rate, uint64_t size, uint64_t now)
{
	// The documented lower limit: 2^-14 s at the rate.
	double least = (double)rate / 16384;
	struct bucket b = {.rate = rate, .size = size > least ? size : least, .at = now};
	b.tokens = b.size;
	return b;
}

static double tokens(struct bucket *b, uint64_t now)
{
	b->tokens += (now - b->at) / 1e9 * b->rate;
	if (b->tokens > b->size)
		b->tokens = b->size;
	b->at = now;
	return b->tokens;
}

static double slack(const struct bucket *b)
{
	return 8 + b->passed * ROUNDING;
}

// Whether the bucket may pass a packet, judged generously.
static bool may(struct bucket *b, uint64_t now)
{
	return !b->rate || tokens(b, now) >= -slack(b);
}

// Whether it must, judged strictly; `extra` bytes are its margin.
static bool must(struct bucket *b, uint64_t now, double extra)
{
	return !b->rate || tokens(b, now) >= slack(b) + extra;
}

static void take(struct bucket *b, uint64_t now, uint32_t length)
{
	tokens(b, now);
	b->tokens -= length;
	b->passed += length;
}

static void pipe_rates(struct pipe_model *p, const struct api_pipe_profile *from, uint64_t now)
{
	p->all = bucket_make(from->rate, from->burst, now);
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		p->class[c] = bucket_make(from->class_rate[c], from->burst, now);
}

struct model *model_create(const struct api_scheduler *s, uint64_t start)
{
	struct model *m = calloc(1, sizeof(*m));
	m->scheduler = s;
	m->port = bucket_make(s->rate, s->rate / 1000, start);
	for (uint32_t i = 0; i < s->subports; i++) {
		struct subport_model *sp = &m->subport[i];
		sp->all = bucket_make(s->subport[i].rate, s->subport[i].burst, start);
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			sp->class[c] = bucket_make(s->subport[i].class_rate[c], s->subport[i].burst, start);
		sp->pipes = rte_align32pow2(s->subport[i].pipes);
		sp->pipe = calloc(sp->pipes, sizeof(*sp->pipe));
		for (uint32_t k = 0; k < sp->pipes; k++) {
			pipe_rates(&sp->pipe[k], &s->profile[0], start);
			for (uint32_t q = 0; q < HQOS_QUEUES; q++) {
				struct queue *queue = &sp->pipe[k].queue[q];
				// Includes room for packets that pass straight through: the model has them queued until
				// they leave.
				queue->room = s->queue_size[hqos_queue_class(q)] + 256;
				queue->entry = calloc(queue->room, sizeof(*queue->entry));
			}
		}
	}
	return m;
}

void model_free(struct model *m)
{
	for (uint32_t i = 0; i < m->scheduler->subports; i++) {
		for (uint32_t k = 0; k < m->subport[i].pipes; k++)
			for (uint32_t q = 0; q < HQOS_QUEUES; q++)
				free(m->subport[i].pipe[k].queue[q].entry);
		free(m->subport[i].pipe);
	}
	free(m);
}

void model_profile(struct model *m, uint32_t subport, uint32_t pipe, uint32_t profile, uint64_t now)
{
	pipe_rates(&m->subport[subport].pipe[pipe], &m->scheduler->profile[profile], now);
}

void model_burst(struct model *m)
{
	m->burst++;
}

uint32_t model_held(const struct model *m)
{
	return m->held;
}

static struct queue *queue_at(struct model *m, uint32_t place)
{
	return &m->subport[hqos_place_subport(place)].pipe[hqos_place_pipe(place)].queue[hqos_place_queue(place)];
}

static struct entry *queue_head(struct queue *q)
{
	return q->count ? &q->entry[q->first] : NULL;
}

const char *model_enqueued(
	struct model *m, struct rte_mbuf *packet, uint32_t place, uint8_t precedence, uint64_t now, bool accepted)
{
	struct queue *q = queue_at(m, place);
	uint32_t class = hqos_queue_class(hqos_place_queue(place)), size = m->scheduler->queue_size[class], older = 0;
	if (precedence > 0 && m->scheduler->precedence_size[precedence - 1][class] != 0)
		size = m->scheduler->precedence_size[precedence - 1][class];
	for (uint32_t i = 0; i < q->count; i++)
		older += q->entry[(q->first + i) % q->room].burst != m->burst;
	if (!accepted)
		return q->count < size ? "refused, but the queue was not full" : NULL;
	// Packets of this burst may have passed straight through; a packet behind older ones cannot.
	if (older && q->count >= size)
		return "accepted, but the queue was full";
	if (q->count == q->room)
		return "the model is full";
	q->entry[(q->first + q->count++) % q->room] = (struct entry){
		.packet = packet,
		.length = packet->pkt_len + m->scheduler->frame_overhead,
		.burst = m->burst,
		.order = m->order++,
	};
	packet->packet_type = place; // for model_left
	m->held++;
	return NULL;
}

static bool contended(const struct subport_model *sp, const struct pipe_model *but, uint32_t c)
{
	for (uint32_t k = 0; k < sp->pipes; k++)
		if (&sp->pipe[k] != but && sp->pipe[k].queue[c].count)
			return true;
	return false;
}

static double turn_of(const struct bucket *b)
{
	return b->size / 2 < TURN ? b->size / 2 : TURN;
}

// A class above `c` whose packet must go before `left`?
static bool overtaken(struct model *m, struct subport_model *sp, struct pipe_model *p, uint32_t c,
	const struct entry *left, uint64_t now)
{
	for (uint32_t d = 0; d < c; d++) {
		const struct entry *other = queue_head(&p->queue[d]);
		if (!other || !must(&p->class[d], now, 0) || !must(&sp->class[d], now, turn_of(&sp->class[d])))
			continue;
		// Where the class is short at the subport, pipes take turns for it.
		if (sp->class[d].rate && contended(sp, p, d))
			continue;
		// Straight through, before the other one arrived.
		if (left->burst == m->burst && left->order < other->order)
			continue;
		return true;
	}
	return false;
}

const char *model_left(struct model *m, struct rte_mbuf *packet, uint64_t now)
{
	uint32_t place = packet->packet_type, c = hqos_queue_class(hqos_place_queue(place));
	struct subport_model *sp = &m->subport[hqos_place_subport(place)];
	struct pipe_model *p = &sp->pipe[hqos_place_pipe(place)];
	struct queue *q = queue_at(m, place);
	struct entry *head = queue_head(q);
	if (!head || head->packet != packet)
		return "left, but was not the head of its queue";
	if (!may(&m->port, now))
		return "left, but the port had no credit";
	if (!may(&sp->all, now))
		return "left, but its subport had no credit";
	if (!may(&sp->class[c], now))
		return "left, but its class had no credit at the subport";
	if (!may(&p->all, now))
		return "left, but its pipe had no credit";
	if (!may(&p->class[c], now))
		return "left, but its class had no credit at the pipe";
	if (overtaken(m, sp, p, c, head, now))
		return "left before a packet of a higher class";
	struct bucket *passed[] = {&m->port, &sp->all, &sp->class[c], &p -> all, &p -> class[c]};
	for (int i = 0; i < 5; i++)
		take(passed[i], now, head->length);
	q->first = (q->first + 1) % q->room;
	q->count--;
	m->held--;
	return NULL;
}

static bool pipe_must(struct subport_model *sp, struct pipe_model *p, uint64_t now)
{
	if (!must(&p->all, now, p->all.rate * SLOT))
		return false;
	for (uint32_t q = 0; q < HQOS_QUEUES; q++) {
		uint32_t c = hqos_queue_class(q);
		struct bucket *own = &p->class[c], *shared = &sp->class[c];
		if (p->queue[q].count && must(own, now, own->rate * SLOT) &&
			must(shared, now, turn_of(shared) + shared->rate * SLOT))
			return true;
	}
	return false;
}

const char *model_silent(struct model *m, uint64_t now)
{
	if (!m->held || !must(&m->port, now, 0))
		return NULL;
	for (uint32_t i = 0; i < m->scheduler->subports; i++) {
		struct subport_model *sp = &m->subport[i];
		if (!must(&sp->all, now, 0))
			continue;
		for (uint32_t k = 0; k < sp->pipes; k++)
			if (pipe_must(sp, &sp->pipe[k], now))
				return "nothing left, but a packet had credit at all levels";
	}
	return NULL;
}
