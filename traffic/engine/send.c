// SPDX-License-Identifier: Apache-2.0
// Makes and sends packets when they are due. Open loop: a packet that the link does not take in time is lost at the
// gateway's entry ("refused"), as on a wire. Only with an unlimited rate does the tester wait for the link.
#include "traffic/engine/engine.h"

#define LINE 64

uint16_t sender_make(struct sender *s, uint8_t *frame, uint32_t flow, uint32_t size, uint32_t time, uint32_t nonce)
{
	const struct headers *h = &s->headers;
	uint16_t length = s->headers.frame[size];
	struct tag tag;

	tag_make(&tag, s->index, flow, size, s->sequence[flow], time, nonce);
	s->sequence[flow] = (s->sequence[flow] + 1) & (TAG_SEQUENCES - 1);
	if (likely(h->row != NULL)) {
		const uint8_t *row = h->row + ((size_t)size * h->flows + flow) * h->stride;

		// Whole lines: the row behind the header holds the pattern that belongs there.
		for (uint32_t at = 0; at < h->stride; at += LINE)
			memcpy(frame + at, row + at, LINE);
	} else {
		headers_write(h, size, flow, frame);
	}
	memcpy(frame + length - TAG_BYTES, &tag, sizeof(tag));
	if (s->sum.offset != 0) {
		uint16_t zero;

		memcpy(&zero, frame + s->sum.offset, sizeof(zero));
		zero = payload_sum_with(&s->sum, size, zero, &tag);
		memcpy(frame + s->sum.offset, &zero, sizeof(zero));
	}
	return length;
}

// Buffers hold the pattern from their making on; only the lines of the header and the tag's place are written per
// packet. The tag's place is remembered in mbuf.hash.usr, which drivers leave alone on transmit.
void egress_prepare_buffer(struct rte_mempool *pool, void *pattern, void *mbuf, unsigned index)
{
	struct rte_mbuf *m = mbuf;
	const struct pattern *p = pattern;
	uint16_t room = (uint16_t)(m->buf_len - RTE_PKTMBUF_HEADROOM);

	(void)pool;
	(void)index;
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->hash.usr = 0;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), p->byte, RTE_MIN(room, (uint16_t)PATTERN_BYTES));
}

void egress_buffer_home(struct rte_mbuf *m, bool right)
{
	if (!right || m->data_off + m->data_len != RTE_PKTMBUF_HEADROOM + m->hash.usr + TAG_BYTES)
		m->hash.usr = SHARE_UNKNOWN;
}

static inline void make(struct egress *l, struct sender *s, struct rte_mbuf *m, uint32_t flow, uint32_t size,
	uint32_t time, const struct pattern *pattern)
{
	uint8_t *frame;

	// As drivers do on reception: one 64-bit store for data_off, refcnt, nb_segs and port.
	uint64_t rearm = RTE_PKTMBUF_HEADROOM | 1ull << 16 | 1ull << 32 | (uint64_t)RTE_MBUF_PORT_INVALID << 48;

	memcpy(&m->rearm_data, &rearm, sizeof(rearm));
	m->ol_flags = 0;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t tag_at = (uint16_t)(s->headers.frame[size] - TAG_BYTES);

	if (unlikely(m->hash.usr == SHARE_UNKNOWN))
		egress_prepare_buffer(l->pool, (void *)(uintptr_t)pattern, m, 0);
	if (unlikely(m->hash.usr != tag_at)) {
		if (m->hash.usr != 0)
			memcpy(frame + m->hash.usr, pattern->byte + m->hash.usr, TAG_BYTES);
		m->hash.usr = tag_at;
	}
	uint16_t length = sender_make(s, frame, flow, size, time, l->nonce);
	m->data_len = length;
	m->pkt_len = length;
}

uint64_t pacer_target(const struct pacer *p, uint64_t now)
{
	if (p->step == 0 || p->step == PACER_UNLIMITED || now <= p->begun)
		return 0;
	return (uint64_t)((unsigned __int128)(now - p->begun) * p->step >> 48);
}

bool pacer_fell_behind(const struct pacer *p, uint64_t end, double part)
{
	return (double)(p->sent - p->late) + 1 < part * (double)pacer_target(p, end);
}

uint32_t pacer_due(struct pacer *p, uint64_t now)
{
	if (p->step == 0 || now < p->begun)
		return 0;
	if (p->step == PACER_UNLIMITED)
		return BURST;
	uint64_t target = pacer_target(p, now), due = target - p->sent;

	if (target <= p->sent)
		return 0;
	if (unlikely(due > p->may_catch_up)) {
		p->late += due - p->may_catch_up;
		p->sent += due - p->may_catch_up;
		due = p->may_catch_up;
	}
	return (uint32_t)RTE_MIN(due, (uint64_t)BURST);
}

// Moves the chosen flow to one of the queue at work: blocks of flows take the queues in turn, as RSS would spread them.
static inline uint32_t on_queue(const struct egress *l, const struct sender *s, uint32_t flow)
{
	uint32_t queues = l->port->dev.tx_queues, block = s->want->job.block;

	if (likely(queues == 1))
		return flow;
	uint32_t number = flow / block;
	uint64_t moved = (uint64_t)(number - number % queues + l->queue) * block + flow % block;

	return moved < s->want->job.flows ? (uint32_t)moved : RTE_MIN(l->queue * block, s->want->job.flows - 1);
}

static uint16_t transmit(struct egress *l, struct rte_mbuf **m, uint16_t n)
{
	return port_send(l->port, l->queue, m, n);
}

// Packets refused by the link: lost, or with an unlimited rate kept for the next visit.
static void left_over(struct egress *l, struct rte_mbuf **m, struct sender **from, uint16_t n, bool keep)
{
	if (keep) {
		memmove(l->pending, m, n * sizeof(*m));
		memmove(l->pending_from, from, n * sizeof(*from));
		l->pendings = n;
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		from[i]->refused++;
	rte_pktmbuf_free_bulk(m, n);
}

static void send_made(struct egress *l, struct rte_mbuf **m, struct sender **from, uint16_t n, bool keep)
{
	uint64_t bytes[BURST];

	for (uint16_t i = 0; i < n; i++) // the driver may free what it has sent
		bytes[i] = m[i]->pkt_len + FCS;
	uint16_t sent = RTE_MIN(transmit(l, m, n), n), counted = keep ? sent : n;

	for (uint16_t i = 0; i < counted; i++) {
		from[i]->sent++;
		from[i]->sent_bytes += bytes[i];
	}
	if (unlikely(sent < n))
		left_over(l, m + sent, from + sent, (uint16_t)(n - sent), keep);
}

static uint32_t group_send(struct egress *l, struct group *g, uint32_t n, uint64_t now, const struct pattern *pattern)
{
	struct rte_mbuf *m[BURST];
	struct sender *from[BURST];
	uint32_t flow[BURST], size[BURST];
	uint32_t time = (uint32_t)(now >> TAG_TIME_SHIFT);

	if (rte_mempool_get_bulk(l->pool, (void **)m, n) != 0)
		return 0; // all under way: they are late then
	for (uint32_t i = 0; i < n; i++) {
		struct sender *s = from[i] = l->sender[g->place[g->at]];

		g->at = g->at + 1 < g->places ? g->at + 1 : 0;
		size[i] = sender_size(s);
		flow[i] = on_queue(l, s, order_next(&s->order));
		sender_prefetch(s, flow[i], size[i]);
	}
	for (uint32_t i = 0; i < n; i++)
		make(l, from[i], m[i], flow[i], size[i], time, pattern);
	g->pacer.sent += n;
	send_made(l, m, from, (uint16_t)n, g->pacer.step == PACER_UNLIMITED);
	return n;
}

// Answers to other streams' packets, with their time stamps.
static uint32_t send_answers(struct egress *l, struct sender *s, const struct pattern *pattern)
{
	struct answer asked[BURST];
	struct rte_mbuf *m[BURST];
	struct sender *from[BURST];
	unsigned n = RTE_MIN(rte_ring_count(s->answers), (unsigned)BURST);

	if (n == 0 || rte_mempool_get_bulk(l->pool, (void **)m, n) != 0)
		return 0; // what is asked for stays in the ring
	rte_ring_sc_dequeue_bulk_elem(s->answers, asked, sizeof(*asked), n, NULL);
	for (unsigned i = 0; i < n; i++) {
		from[i] = s;
		make(l, s, m[i], asked[i].flow, sender_size(s), asked[i].time, pattern);
	}
	send_made(l, m, from, (uint16_t)n, false);
	return n;
}

uint32_t egress_send_neighbour_answers(struct egress *l)
{
	struct rte_mbuf *m[BURST];
	unsigned n = rte_ring_sc_dequeue_burst(l->port->neighbour_answers, (void **)m, BURST, NULL);
	uint16_t sent = n > 0 ? transmit(l, m, (uint16_t)n) : 0;

	rte_pktmbuf_free_bulk(m + sent, n - sent);
	return n;
}

// Sends the pending packets of groups without a limit. Returns how many were sent; some may remain.
static uint32_t send_pending(struct egress *l)
{
	struct rte_mbuf *m[BURST];
	struct sender *from[BURST];
	uint16_t pendings = l->pendings;

	if (likely(pendings == 0))
		return 0;
	memcpy(m, l->pending, pendings * sizeof(m[0]));
	memcpy(from, l->pending_from, pendings * sizeof(from[0]));
	l->pendings = 0;
	send_made(l, m, from, pendings, true);
	return pendings - l->pendings;
}

// Groups without a limit use the rest of the link in turn; when it does not take all of one, they wait.
static uint32_t send_unlimited(struct egress *l, uint64_t now, const struct pattern *pattern)
{
	uint32_t n = send_pending(l);

	for (uint32_t i = 0; i < l->groups && l->pendings == 0; i++) {
		struct group *g = &l->group[l->turn];

		l->turn = l->turn + 1 < l->groups ? l->turn + 1 : 0;
		if (g->pacer.step == PACER_UNLIMITED)
			n += group_send(l, g, pacer_due(&g->pacer, now), now, pattern);
	}
	return n;
}

uint32_t egress_send(struct egress *l, uint64_t now)
{
	const struct pattern *pattern = l->port->check.pattern;
	uint32_t n = 0;

	if (l->pendings == 0) // what is pending belongs to its queue
		l->queue = (uint16_t)(l->queue + 1 < l->port->dev.tx_queues ? l->queue + 1 : 0);
	for (uint32_t i = 0; i < l->groups; i++) {
		struct group *g = &l->group[i];
		uint32_t due = g->pacer.step != PACER_UNLIMITED ? pacer_due(&g->pacer, now) : 0;

		if (due != 0)
			n += group_send(l, g, due, now, pattern);
	}
	for (uint32_t i = 0; i < l->senders; i++)
		if (unlikely(l->sender[i]->answers != NULL))
			n += send_answers(l, l->sender[i], pattern);
	return n + send_unlimited(l, now, pattern);
}

void egress_clear(struct egress *l, uint32_t nonce)
{
	struct answer old;

	l->nonce = nonce;
	for (uint32_t i = 0; i < l->senders; i++) {
		l->sender[i]->sent = l->sender[i]->sent_bytes = l->sender[i]->refused = 0;
		while (l->sender[i]->answers != NULL &&
			rte_ring_sc_dequeue_elem(l->sender[i]->answers, &old, sizeof(old)) == 0)
			;
	}
}

void egress_begin(struct egress *l, uint64_t now)
{
	for (uint32_t i = 0; i < l->groups; i++) {
		struct pacer *p = &l->group[i].pacer;

		p->begun = now;
		p->sent = p->late = 0;
	}
}

void egress_end(struct egress *l)
{
	rte_pktmbuf_free_bulk(l->pending, l->pendings);
	l->pendings = 0;
}
