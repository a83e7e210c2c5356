// SPDX-License-Identifier: Apache-2.0
// lcp-echo: LCP echoes of known subscribers. A request becomes its answer in place; an answer shows that the subscriber
// is alive.
#include "core/node.h"
#include "core/port.h"
#include "lcp/lcp.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/pppoe.h"

DROP_REASON(drop_malformed, "lcp-echo-malformed",
	"an LCP echo whose length does not fit its frame, or has no magic number. Look at the line and the home router")
DROP_REASON(drop_loop, "lcp-echo-loop",
	"an LCP echo with our own magic number: the line is looped (RFC 1661 §6.4). Look at the line and the home "
	"router")
DROP_REASON(drop_rate, "lcp-echo-rate-limit",
	"more LCP Echo-Requests of one subscriber than are answered. Look at the line and the home router")
DROP_REASON(drop_heard, "lcp-echo-heard",
	"an LCP Echo-Reply or Discard-Request: the subscriber is alive, and nothing is left to do. Normal: no alert "
	"counts it")

enum { EDGE_TX, EDGE_DROP, EDGE_COUNT };

// 1: within the answers that a subscriber gets per second. Two workers at once may exceed it by one.
static int may_answer(struct lcp *l, uint32_t clock)
{
	uint32_t second = clock / LCP_TICKS << 8, before = __atomic_load_n(&l->answered, __ATOMIC_RELAXED);
	uint32_t now = (before & ~0xffu) == second ? before + 1 : second | 1;

	if ((now & 0xff) > LCP_ANSWERS)
		return 0;
	__atomic_store_n(&l->answered, now, __ATOMIC_RELAXED);
	return 1;
}

static void heard(struct lcp *l, uint32_t clock)
{
	__atomic_store_n(&l->heard, clock, __ATOMIC_RELAXED);
	if (unlikely(__atomic_load_n(&l->state, __ATOMIC_RELAXED) != LCP_ALIVE))
		__atomic_store_n(&l->state, LCP_ALIVE, __ATOMIC_RELAXED);
}

// `at`: of the LCP packet. 1 when code, identifier, length and magic number are there, and its length fits.
static int is_whole(const struct rte_mbuf *m, uint32_t at)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	uint32_t payload;

	if (at + LCP_ECHO_HEADER > rte_pktmbuf_data_len(m))
		return 0;
	payload = load16(p - 4) - 2u; // PPPoE's, without the PPP protocol; checked by access-input
	return load16(p + 2) >= LCP_ECHO_HEADER && load16(p + 2) <= payload && at + payload <= rte_pktmbuf_pkt_len(m);
}

// Truncates to the subscriber's MRU (RFC 1661 §6.1). 0 when the cut is not in the last segment.
static int fit(struct rte_mbuf *m, uint32_t at, uint16_t mru)
{
	uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, at);
	uint32_t excess = rte_pktmbuf_pkt_len(m) - at - mru;

	if (load16(p - 4) - 2 <= mru)
		return 1;
	store16(p - 4, (uint16_t)(mru + 2)); // PPPoE's
	if (load16(p + 2) > mru)
		store16(p + 2, mru);
	return excess <= UINT16_MAX && rte_pktmbuf_trim(m, (uint16_t)excess) == 0;
}

static rte_edge_t lcp_echo(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const struct port *p = port_get(packet_of(m)->port_in);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *packet = frame + e->l2_length;
	const struct rule *r = p == NULL ? NULL : session_endpoint_rule(p->index, e, frame + 6);
	struct lcp *l = r == NULL || r->session >= lcp_table.sessions ? NULL : &lcp_table.of[r->session];
	uint32_t clock = lcp_clock(w);

	if (l == NULL) // it went in this walk
		return packet_leave(m, &drop_heard, EDGE_DROP);
	if (!is_whole(m, e->l2_length))
		return packet_leave(m, &drop_malformed, EDGE_DROP);
	uint32_t magic = __atomic_load_n(&l->magic, __ATOMIC_RELAXED);
	if (magic != 0 && load32(packet + 4) == magic)
		return packet_leave(m, &drop_loop, EDGE_DROP);
	heard(l, clock);
	if (packet[0] != LCP_ECHO_REQUEST)
		return packet_leave(m, &drop_heard, EDGE_DROP);
	if (!may_answer(l, clock))
		return packet_leave(m, &drop_rate, EDGE_DROP);
	const struct rule *down = session_downlink_rule(r);
	if (down != NULL && !fit(m, e->l2_length, down->mru))
		return packet_leave(m, &drop_malformed, EDGE_DROP);
	packet[0] = LCP_ECHO_REPLY;
	store32(packet + 4, magic);
	endpoint_turn_back(m, p, down);
	return EDGE_TX;
}

NODE_EACH(process, lcp_echo)

static struct rte_node_register lcp_echo_node = {
	.name = "lcp-echo",
	.process = process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(lcp_echo_node)
