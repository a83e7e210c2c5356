// SPDX-License-Identifier: Apache-2.0
// Random early detection (RFC 7567; DPDK's rte_red), for the traffic classes that ask for
// it.
#include "hqos/hqos_private.h"
#include "wire/cache_line.h"

#include <rte_common.h>
#include <rte_malloc.h>

#define TYPICAL 1500 // bytes of the packets that an idle queue did not see

bool red_create(struct hqos *h, const struct hqos_params *params)
{
	h->mark = params->mark;
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++) {
		const struct api_red *r = &params->scheduler->red[c];
		size_t size = h->total_pipes * (c == HQOS_BEST_EFFORT ? API_BE_QUEUES : 1) * sizeof(*h->red[c]);
		if (!r->max)
			continue;
		h->red[c] = rte_zmalloc_socket("hqos_red", size, CACHE_LINE, params->socket);
		if (!h->red[c])
			return false;
		h->memory += size;
		rte_red_config_init(&h->red_config[c], r->weight, r->min, r->max, r->probability);
	}
	return true;
}

static struct rte_red *red_of(const struct hqos *h, uint32_t index, uint32_t q)
{
	return q < HQOS_BEST_EFFORT ? &h->red[q][index]
				    : &h->red[HQOS_BEST_EFFORT][index * API_BE_QUEUES + q - HQOS_BEST_EFFORT];
}

void red_empty(struct hqos *h, uint32_t index, uint32_t q)
{
	rte_red_mark_queue_empty(red_of(h, index, q), h->now);
}

// The average after a pause, as if the packets that the pipe could have sent had met an empty queue. It halves every
// 2^weight * ln 2 of them. (rte_red_enqueue_empty() shifts by a negative number when these are few.)
static void age(const struct hqos *h, struct rte_red *red, uint32_t weight, const struct pipe *p)
{
	uint64_t packet = RTE_MAX(TYPICAL * h->profile[p->profile].rate.cost >> COST_SHIFT, UINT64_C(1));
	uint64_t halvings = (h->now - red->q_time) / packet * 3 / 2 >> weight;
	red->avg -= red->avg >> weight;
	red->avg >>= RTE_MIN(halvings, 31u);
	red->count++;
}

__rte_noinline bool red_refuses(struct hqos *h, uint32_t index, uint32_t q, struct rte_mbuf *m)
{
	const struct pipe *p = &h->pipe[index];
	const struct rte_red_config *config = &h->red_config[hqos_queue_class(q)];
	struct rte_red *red = red_of(h, index, q);
	if (!queues_of(h, p)->queued[q]) {
		age(h, red, config->wq_log2, p);
		return false;
	}
	// The average has 32 bits, RTE_RED_SCALING and the weight's of them behind the point: longer queues would
	// overflow it.
	uint32_t length = RTE_MIN(queues_of(h, p)->queued[q], UINT32_MAX >> (RTE_RED_SCALING + config->wq_log2));
	switch (rte_red_enqueue_nonempty(config, red, length)) {
	case 0:
		return false;
	case 2: // between the thresholds
		return !h->mark || !h->mark(m);
	default: // max or more: RFC 3168 section 7, nothing is marked any more
		return true;
	}
}
