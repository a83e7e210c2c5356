// SPDX-License-Identifier: Apache-2.0
// lcp-keepalive: sends due Echo-Requests. A source node that visits all sessions in a second, a few per millisecond, so
// that requests are spread.
#include "core/node.h"
#include "core/port.h"
#include "lcp/lcp.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "wire/cache_line.h"
#include "wire/pppoe.h"

#define LOOKS_PER_S 1000
#define LONGEST_LOOK 4096u // sessions
#define LONGEST_BURST 64u // requests

enum { EDGE_TX, EDGE_COUNT };

// Its worker's.
static struct {
	uint64_t looked; // worker.now
	uint32_t next; // session
} cache_aligned places[API_MAX_WORKERS];

static const struct rule *downlink_of(uint32_t session)
{
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(session, i)) != NULL; i++)
		if (r->outer == API_OUTER_ENDPOINT)
			return r;
	return NULL;
}

static struct rte_mbuf *request(struct worker *w, const struct lcp *l, const struct rule *r)
{
	const struct port *p = port_get(r->down.port);
	struct rte_mbuf *m = p == NULL ? NULL : packet_originate(w);

	if (m == NULL)
		return NULL;
	uint8_t *packet = (uint8_t *)rte_pktmbuf_append(m, LCP_ECHO_HEADER);
	packet[0] = LCP_ECHO_REQUEST;
	packet[1] = l->identifier;
	store16(packet + 2, LCP_ECHO_HEADER);
	store32(packet + 4, l->magic);
	uint32_t length = endpoint_put_any(packet, r, p, 4, LCP_ECHO_HEADER);
	store16(packet - 2, PPP_LCP);
	rte_pktmbuf_prepend(m, (uint16_t)length);
	packet_of(m)->port_out = r->down.port;
	return m;
}

// Any packet since the last request answers all of them.
static void judge(struct lcp *l)
{
	uint8_t alive = LCP_ALIVE;

	if (lcp_reached(__atomic_load_n(&l->heard, __ATOMIC_RELAXED), l->sent))
		l->waiting = 0;
	if (l->waiting >= l->count &&
		__atomic_compare_exchange_n(&l->state, &alive, LCP_SILENT, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&lcp_table.news, 1, __ATOMIC_RELEASE);
}

static int is_due(const struct worker *w, const struct lcp *l, uint32_t clock)
{
	return __atomic_load_n(&l->interval, __ATOMIC_ACQUIRE) != 0 && l->worker == w->id &&
	       __atomic_load_n(&l->opened, __ATOMIC_ACQUIRE) && lcp_reached(clock, l->due);
}

// Returns how many of `most` it looked at.
static uint32_t keep(struct rte_graph *graph, struct rte_node *node, struct worker *w, uint32_t most)
{
	uint32_t *next = &places[w->id].next, clock = lcp_clock(w), sent = 0, looks = 0;

	for (; looks < most && sent < LONGEST_BURST; looks++) {
		struct lcp *l = &lcp_table.of[*next];
		const struct rule *r = is_due(w, l, clock) ? downlink_of(*next) : NULL;
		struct rte_mbuf *m = NULL;

		*next = *next + 1 == lcp_table.sessions ? 0 : *next + 1;
		if (likely(r == NULL))
			continue;
		judge(l);
		l->identifier++;
		l->waiting += l->waiting < UINT8_MAX;
		l->sent = clock;
		l->due = clock + l->interval * LCP_TICKS;
		m = request(w, l, r);
		if (m == NULL)
			continue;
		rte_node_enqueue_x1(graph, node, EDGE_TX, m);
		sent++;
	}
	return looks;
}

static uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	uint64_t *looked = &places[w->id].looked, since = w->now - *looked;

	if (likely(since < w->tsc_hz / LOOKS_PER_S))
		return 0;
	if (since > w->tsc_hz) // a round of all has been enough
		*looked = w->now - w->tsc_hz;
	if (__atomic_load_n(&lcp_table.keepers, __ATOMIC_RELAXED) == 0) {
		*looked = w->now;
		return 0;
	}
	uint64_t most = (w->now - *looked) * lcp_table.sessions / w->tsc_hz;
	uint32_t looks = keep(graph, node, w, (uint32_t)RTE_MIN(most, (uint64_t)LONGEST_LOOK));
	*looked += looks * w->tsc_hz / lcp_table.sessions;
	if (looks < most) // the rest in the next walk
		worker_due(w, w->now);
	return 0;
}

static struct rte_node_register lcp_keepalive_node = {
	.name = "lcp-keepalive",
	.flags = RTE_NODE_SOURCE_F,
	.process = process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx"},
};
NODE_REGISTER(lcp_keepalive_node)
