// SPDX-License-Identifier: Apache-2.0
// The register of holders, their shares, and rings that count buffers.
#include "core/hold.h"
#include "core/error.h"
#include "core/reply.h"
#include <errno.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>

static struct {
	struct holder *list[MAX_HOLDERS];
	uint16_t count;
} holders;

void holder_register(struct holder *h)
{
	if (holders.count == MAX_HOLDERS) // before main(): never from input
		rte_panic("more than %d holders of packets\n", MAX_HOLDERS);
	h->id = holders.count;
	holders.list[holders.count++] = h;
}

static uint32_t limit_of(const struct holder *h, const struct api_engine *e)
{
	uint32_t limit;

	memcpy(&limit, (const uint8_t *)e + h->field, sizeof(limit));
	return limit;
}

// Ports are unknown at this point: only the workers' own needs are counted. The control plane knows the ports and asks
// for more.
int hold_start(const struct api_engine *e)
{
	uint64_t limits = 0, receive = (uint64_t)e->workers * HOLD_RECEIVE;

	for (uint16_t i = 0; i < holders.count; i++)
		limits += limit_of(holders.list[i], e);
	if (limits + receive > e->packet_buffers)
		return object_error(EINVAL,
			"packet_buffers is %u: %lu of them may be held, and receiving needs %lu (%d for each of %u "
			"workers)",
			e->packet_buffers, limits, receive, HOLD_RECEIVE, e->workers);
	for (uint16_t i = 0; i < holders.count; i++) {
		struct holder *h = holders.list[i];

		h->limit = limit_of(h, e);
		h->share = h->control ? h->limit : h->limit / e->workers;
	}
	return 0;
}

struct rte_ring *hold_ring_create(const char *name, uint32_t buffers)
{
	return rte_ring_create(name, RTE_MAX(buffers, 1u), SOCKET_ID_ANY, RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

static int put_chain(struct rte_ring *r, struct rte_mbuf *m)
{
	void *places[HOLD_RING_CHAIN] = {m}; // the others stay NULL

	return m->nb_segs <= HOLD_RING_CHAIN && rte_ring_mp_enqueue_bulk(r, places, m->nb_segs, NULL) != 0;
}

int hold_ring_put(struct rte_ring *r, struct rte_mbuf *m)
{
	return likely(m->nb_segs == 1) ? rte_ring_mp_enqueue(r, m) == 0 : put_chain(r, m);
}

uint32_t hold_ring_put_burst(struct rte_ring *r, struct rte_mbuf **pkts, uint32_t n)
{
	uint32_t at = 0, put, run;

	do {
		for (run = 0; at + run < n && likely(pkts[at + run]->nb_segs == 1);)
			run++;
		if (run != 0)
			put = rte_ring_mp_enqueue_burst(r, (void **)pkts + at, run, NULL);
		else
			put = at < n && put_chain(r, pkts[at]);
		at += put;
	} while (at < n && put == RTE_MAX(run, 1u));
	return at;
}

uint32_t hold_ring_take(struct rte_ring *r, struct rte_mbuf **pkts, uint32_t n)
{
	uint32_t places = rte_ring_sc_dequeue_burst(r, (void **)pkts, n, NULL), packets = 0;

	for (uint32_t i = 0; i < places; i++)
		if (likely(pkts[i] != NULL))
			pkts[packets++] = pkts[i];
	return packets;
}

static uint64_t holder_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint16_t i = 0; i < holders.count; i++) {
		const struct holder *h = holders.list[i];
		struct api_holder_row row = {.limit = h->limit};

		snprintf(row.name, sizeof(row.name), "%s", h->name);
		if (h->held != NULL)
			row.held = h->held();
		for (uint32_t w = 0; h->held == NULL && w < worker_total(); w++)
			row.held += worker_any(w)->hold[h->id];
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(holder_table)
{
	stats_table_register(API_TABLE_HOLDER, sizeof(struct api_holder_row), holder_rows);
}
