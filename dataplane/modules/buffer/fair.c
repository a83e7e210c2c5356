// SPDX-License-Identifier: Apache-2.0
// Finds the longest queue: a worker's queues by association (party) and by the buffers that they hold (rank). A queue
// changes rank as packets come and go, so finding the longest costs nothing. Among equals the first to reach the rank
// is taken.
#include "buffer/queue.h"

static uint32_t rank_of(const struct queue *q)
{
	return RTE_MIN(q->buffers, RANKS - 1u);
}

static void link_last(struct party *p, struct queue *q)
{
	struct rank *r = &p->rank[rank_of(q)];
	uint32_t index = (uint32_t)(q - buffer_tables.queue);

	q->smaller = QUEUE_NONE;
	q->larger = r->last;
	if (r->last != QUEUE_NONE)
		buffer_tables.queue[r->last].smaller = index;
	else
		r->first = index;
	r->last = index;
	p->top = RTE_MAX(p->top, rank_of(q));
}

static void unlink(struct party *p, struct queue *q)
{
	struct rank *r = &p->rank[rank_of(q)];

	if (q->larger != QUEUE_NONE)
		buffer_tables.queue[q->larger].smaller = q->smaller;
	else
		r->first = q->smaller;
	if (q->smaller != QUEUE_NONE)
		buffer_tables.queue[q->smaller].larger = q->larger;
	else
		r->last = q->larger;
	while (p->top != 0 && p->rank[p->top].first == QUEUE_NONE)
		p->top--;
}

static uint8_t party_of(const struct buffer_worker *b, uint32_t association)
{
	uint8_t place = PARTIES - 1;

	for (uint8_t i = 0; i < PARTIES; i++) {
		if (b->party[i].queues != 0 && b->party[i].association == association)
			return i;
		if (b->party[i].queues == 0 && place == PARTIES - 1)
			place = i;
	}
	return place;
}

void fair_enter(struct buffer_worker *b, struct queue *q)
{
	uint32_t association = session_association(q->session);

	q->party = party_of(b, association);
	struct party *p = &b->party[q->party];
	if (p->queues++ == 0)
		p->association = association;
	link_last(p, q);
}

void fair_move(struct buffer_worker *b, struct queue *q, uint32_t buffers)
{
	struct party *p = &b->party[q->party];

	unlink(p, q);
	p->buffers += buffers - q->buffers;
	q->buffers = buffers;
	link_last(p, q);
}

void fair_leave(struct buffer_worker *b, struct queue *q)
{
	struct party *p = &b->party[q->party];

	unlink(p, q);
	p->buffers -= q->buffers;
	p->queues--;
}

static struct queue *queue_at(uint32_t index)
{
	return index == QUEUE_NONE ? NULL : &buffer_tables.queue[index];
}

struct queue *fair_empty(struct buffer_worker *b)
{
	for (uint8_t i = 0; i < PARTIES; i++)
		if (b->party[i].rank[0].first != QUEUE_NONE)
			return queue_at(b->party[i].rank[0].first);
	return NULL;
}

struct queue *fair_longest(struct buffer_worker *b)
{
	struct party *most = &b->party[0];

	for (uint8_t i = 1; i < PARTIES; i++)
		if (b->party[i].buffers > most->buffers)
			most = &b->party[i];
	return most->top != 0 ? queue_at(most->rank[most->top].first) : NULL;
}
