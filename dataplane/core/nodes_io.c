// SPDX-License-Identifier: Apache-2.0
// Where packets enter and leave a worker's graph: port-rx, port-tx, handover-rx, punt, drop.
#include "core/hold.h"
#include "core/host_path.h"
#include "core/module.h"
#include "core/port.h"
#include "core/sleeper.h"
#include "core/trace.h"
#include <rte_ring.h>
#include <string.h>

DROP_REASON(drop_no_port, "port-gone",
	"the port that the packet was to leave by is gone, or its device was taken away. Normal for an instant after "
	"config apply; else see show port")
DROP_REASON(drop_inject_full, "inject-full",
	"the control thread's packet found the worker's inbox full. See engine.packet_buffers, show punt")
DROP_REASON(drop_tx_full, "port-tx-full",
	"the port's transmit queue had no room. The link or device is slower than we send: see show port")
DROP_REASON(drop_inbox_full, "inbox-full",
	"the worker that the packet was handed to had no room in its inbox. Packets come to the wrong worker: see show "
	"port, column STEERING")
DROP_REASON(drop_punt_rate, "punt-rate-limit",
	"more packets of one kind for the host path than engine.rates.punt allows. A flood, or engine.rates is low: "
	"see show punt")
DROP_REASON(drop_neighbour_full, "punt-neighbour-full",
	"the host path had no room for packets of routers and other neighbours of core ports. A loop or a storm: see "
	"show punt, gtsm")
DROP_REASON(drop_control_full, "punt-control-full",
	"the host path had no room for packets of control protocols. See engine.packet_buffers, show punt")
DROP_REASON(drop_urgent_full, "punt-urgent-full",
	"the host path had no room for packets with an urgent DSCP. A scan or flood: see show punt")
DROP_REASON(drop_punt_full, "punt-queue-full",
	"the host path had no room for all other packets. A scan or flood: see show punt")

enum { RX_ACCESS, RX_CORE, RX_MARKED, RX_XCONNECT, RX_EDGES };

static void receive(struct rte_graph *graph, struct rte_node *node, struct worker *w, uint16_t port, uint16_t queue)
{
	struct port *p = port_get(port);
	struct rte_mbuf *pkts[VECTOR];
	uint64_t bytes = 0;

	if (unlikely(p == NULL))
		return;
	uint16_t n = p->driver->rx(p, queue, pkts, VECTOR);
	if (n == 0)
		return;
	for (uint16_t i = 0; i < n; i++) {
		struct packet *pkt = packet_of(pkts[i]);

		pkt->port_in = p->index;
		pkt->port_out = p->xconnect;
		pkt->instance = UINT16_MAX;
		pkt->rpf = pkt->translated = 0;
		pkt->hops = pkt->handed = pkt->by = 0;
		pkt->shaped = 0;
		pkt->vrf = pkt->traced = 0; // with those before in one store
		bytes += rte_pktmbuf_pkt_len(pkts[i]);
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	}
	w->in += n;
	p->counters[w->id].rx_packets += n;
	p->counters[w->id].rx_bytes += bytes;
	rte_edge_t edge = p->xconnect != PORT_NONE     ? RX_XCONNECT
			  : p->role == API_ROLE_ACCESS ? RX_ACCESS
			  : p->marks                   ? RX_MARKED
						       : RX_CORE;
	rte_node_enqueue(graph, node, edge, (void **)pkts, n);
}

// Limit of a walk: a worker may have 1,024 queues, and rte_graph's streams end the process beyond 65,535 packets,
// including fragments and copies. The next walk continues with the next queue.
#define RX_MOST (32 * VECTOR)

static uint16_t port_rx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	const struct port_queues *q = __atomic_load_n(&w->queues, __ATOMIC_ACQUIRE);
	uint16_t *at = (uint16_t *)node->ctx;
	uint64_t before = w->in;

	if (unlikely(q == NULL))
		return 0;
	for (uint16_t i = 0; i < q->count && w->in - before <= RX_MOST - VECTOR; i++) {
		if (*at >= q->count)
			*at = 0;
		receive(graph, node, w, q->entry[*at].port, q->entry[*at].queue);
		(*at)++;
	}
	return (uint16_t)(w->in - before);
}

static struct rte_node_register port_rx_node = {
	.name = "port-rx",
	.flags = RTE_NODE_SOURCE_F,
	.process = port_rx,
	.nb_edges = RX_EDGES,
	.next_nodes = {[RX_XCONNECT] = "port-tx", [RX_EDGES] = NULL}, // the others: port_input_register()
};
NODE_REGISTER(port_rx_node)

void port_input_register(enum api_role role, const char *node)
{
	port_rx_node.next_nodes[role == API_ROLE_ACCESS ? RX_ACCESS : RX_CORE] = node;
}

void port_marks_register(const char *node)
{
	port_rx_node.next_nodes[RX_MARKED] = node;
}

static uint16_t drop_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	packets_drop(worker_self(), (struct rte_mbuf **)objs, n);
	return n;
}

static struct rte_node_register drop_node = {.name = "drop", .process = drop_process};
NODE_REGISTER(drop_node)

static void drop_for(struct worker *w, struct rte_mbuf **pkts, uint16_t n, const struct reason *r)
{
	for (uint16_t i = 0; i < n; i++) {
		packet_of(pkts[i])->reason = r->id;
		trace_dropped(w, pkts[i], r);
	}
	packets_drop(w, pkts, n);
}

void worker_drop(struct worker *w, struct rte_mbuf *m, const struct reason *r)
{
	drop_for(w, &m, 1, r);
}

static void transmit(struct worker *w, uint16_t port, struct rte_mbuf **pkts, uint16_t n)
{
	struct port *p = port_get(port);
	uint64_t bytes = 0;

	if (unlikely(p == NULL)) {
		drop_for(w, pkts, n, &drop_no_port);
		return;
	}
	for (uint16_t i = 0; i < n; i++)
		bytes += rte_pktmbuf_pkt_len(pkts[i]);
	uint16_t sent = p->driver->tx(p, (uint16_t)w->id, pkts, n);
	w->out += sent;
	p->counters[w->id].tx_packets += sent;
	if (unlikely(sent < n)) {
		for (uint16_t i = sent; i < n; i++)
			bytes -= rte_pktmbuf_pkt_len(pkts[i]);
		p->counters[w->id].tx_dropped += n - sent;
		drop_for(w, pkts + sent, n - sent, p->gone ? &drop_no_port : &drop_tx_full);
	}
	p->counters[w->id].tx_bytes += bytes;
}

static uint16_t port_tx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	uint16_t first = 0;

	for (uint16_t i = 1; i < n; i++) {
		if (packet_of(pkts[i])->port_out != packet_of(pkts[first])->port_out) {
			transmit(w, packet_of(pkts[first])->port_out, pkts + first, i - first);
			first = i;
		}
	}
	if (n > 0)
		transmit(w, packet_of(pkts[first])->port_out, pkts + first, n - first);
	return n;
}

static struct rte_node_register port_tx_node = {.name = "port-tx", .process = port_tx};
NODE_REGISTER(port_tx_node)

// CS5 to CS7, EF, VOICE-ADMIT (RFC 5865), AF41 to AF43 (RFC 4594 §2.3).
#define URGENT_DSCPS                                                                                                   \
	(1ull << 34 | 1ull << 36 | 1ull << 38 | 1ull << 40 | 1ull << 44 | 1ull << 46 | 1ull << 48 | 1ull << 56)

// For a packet whose reason is not a control protocol: by the DSCP of the IP header at l3, if any.
static enum host_queue queue_by_dscp(const struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of((struct rte_mbuf *)(uintptr_t)m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	if ((pkt->ip_version != 4 && pkt->ip_version != 6) || pkt->l3 + 2u > rte_pktmbuf_data_len(m))
		return HOST_OTHER;
	uint8_t dscp = pkt->ip_version == 4 ? ip[1] >> 2 : (ip[0] << 2 & 0x3c) | ip[1] >> 6;
	return URGENT_DSCPS >> dscp & 1 ? HOST_URGENT : HOST_OTHER;
}

static enum host_queue queue_of(const struct rte_mbuf *m, const struct reason *r)
{
	if (r == NULL || r->control == CONTROL_NONE)
		return queue_by_dscp(m);
	return r->control == CONTROL_NEIGHBOUR ? HOST_NEIGHBOUR : HOST_CONTROL;
}

static uint16_t punt_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	static const struct reason *const full[HOST_QUEUES] = {
		&drop_neighbour_full, &drop_control_full, &drop_urgent_full, &drop_punt_full};
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		uint16_t reason = packet_of(m)->reason;
		const struct reason *r = reason_get(reason);
		enum host_queue queue = queue_of(m, r);

		packet_of(m)->resume = RESUME_PUNTED;
		packet_of(m)->by = w->id & 15;
		if (r == NULL || (!r->limited && !limiter_take(&w->punt[reason][queue], w))) {
			drop_for(w, &m, 1, &drop_punt_rate);
		} else if (host_path_push(queue, m) != 0) {
			drop_for(w, &m, 1, full[queue]);
		} else {
			w->reason[reason]++;
			w->punted++;
		}
	}
	return n;
}

static void set_punt_rate(const struct api_engine *e)
{
	for (uint32_t i = 0; i < worker_count(); i++)
		for (int r = 0; r < MAX_REASONS; r++)
			for (int q = 0; q < HOST_QUEUES; q++)
				worker_get(i)->punt[r][q].rate = e->punt_rate;
}

RTE_INIT(punt_rates)
{
	engine_watch(set_punt_rate);
}

static struct rte_node_register punt_node = {.name = "punt", .process = punt_process};
NODE_REGISTER(punt_node)

static uint32_t inboxes_held(void)
{
	uint32_t held = 0;

	for (uint32_t i = 0; i < worker_count(); i++)
		held += rte_ring_count(worker_get(i)->inbox) + worker_get(i)->late.count;
	return held;
}

HOLDER(inbox_holder, "hand-over", max_handed_over, .held = inboxes_held)

static uint32_t take(struct worker *w, struct rte_mbuf **pkts)
{
	uint32_t count = w->late.count;

	if (likely(count == 0))
		return hold_ring_take(w->inbox, pkts, VECTOR);
	memcpy(pkts, w->late.pkts, count * sizeof(*pkts));
	w->late.count = 0;
	return count;
}

// Another CPU wrote these lines.
static void ask_for(struct rte_mbuf *const *pkts, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		rte_prefetch0(pkts[i]);
		rte_prefetch0(packet_of(pkts[i]));
	}
	for (uint32_t i = 0; i < count; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
}

// Packets taken by a walk, by packet.order: received frames, and packets half way through the full nodes.
struct resumed {
	uint64_t orders[2], held;
};

// Received frames take the fast path or all full nodes; other packets are half way through these. To keep a session's
// order, a packet behind one of the other kind waits for the next walk, and so do those behind it.
static uint32_t keep_in_order(struct worker *w, struct resumed *r, struct rte_mbuf **pkts, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct packet *pkt = packet_of(pkts[i]);
		uint64_t order = 1ull << (pkt->reason % ORDERS);

		if (unlikely((r->orders[!pkt->handed] | r->held) & order)) {
			r->held |= order;
			w->late.pkts[w->late.count++] = pkts[i];
			continue;
		}
		r->orders[pkt->handed] |= order;
		pkts[kept++] = pkts[i];
	}
	return kept;
}

static void resume_packets(struct rte_graph *graph, struct rte_node *node, struct rte_mbuf **pkts, uint32_t count)
{
	for (uint32_t first = 0, next; first < count; first = next) {
		uint16_t edge = packet_of(pkts[first])->resume;

		for (next = first + 1; next < count && packet_of(pkts[next])->resume == edge;)
			next++;
		rte_node_enqueue(graph, node, edge, (void **)pkts + first, (uint16_t)(next - first));
	}
}

// A walk takes no more, so that a worker that was held up catches up, and its ports have their turn.
#define INBOX_MOST (8 * VECTOR)

static uint16_t handover_rx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct rte_mbuf *pkts[VECTOR];
	struct resumed r = {0};
	uint32_t taken = 0, count;
	int more;

	do {
		more = w->late.count != 0;
		count = take(w, pkts);
		if (count == 0)
			break;
		ask_for(pkts, count);
		uint32_t kept = keep_in_order(w, &r, pkts, count);
		resume_packets(graph, node, pkts, kept);
		taken += kept;
		more |= count == VECTOR;
	} while (more && w->late.count == 0 && taken < INBOX_MOST);
	if (unlikely(w->late.count != 0 || taken >= INBOX_MOST))
		worker_due(w, w->now); // no sleep before the next walk
	w->held -= taken;
	return (uint16_t)taken;
}

#define MAX_RESUMES 32
static_assert(MAX_RESUMES < RESUME_PUNTED, "packet.resume tells them apart");

// Its edges are the nodes that asked for packets.
static struct rte_node_register handover_node = {
	.name = "handover-rx",
	.flags = RTE_NODE_SOURCE_F,
	.process = handover_rx,
	.next_nodes = {[MAX_RESUMES] = NULL},
};

int nodes_io_start(void)
{
	node_register(&handover_node);
	return 0;
}

static int resume_find(const char *node)
{
	for (uint16_t i = 0; i < handover_node.nb_edges; i++)
		if (strcmp(handover_node.next_nodes[i], node) == 0)
			return i;
	return -1;
}

uint16_t resume_register(const char *node)
{
	int known = resume_find(node);

	if (known >= 0)
		return (uint16_t)known;
	if (handover_node.nb_edges == MAX_RESUMES) // before main(): never from input
		rte_panic("more than %d nodes take packets from handover-rx\n", MAX_RESUMES);
	handover_node.next_nodes[handover_node.nb_edges] = node;
	return handover_node.nb_edges++;
}

int control_inject(uint32_t worker, const char *node, struct rte_mbuf *m)
{
	int resume = resume_find(node), punted = packet_of(m)->resume == RESUME_PUNTED;

	if (worker >= worker_count() || resume < 0) {
		control_drop(m, &drop_inject_full);
		return 0;
	}
	packet_of(m)->resume = (uint8_t)resume;
	packet_of(m)->handed = 0;
	if (!hold_ring_put(worker_get(worker)->inbox, m)) {
		packet_of(m)->resume = punted ? RESUME_PUNTED : (uint8_t)resume;
		control_drop(m, &drop_inject_full);
		return 0;
	}
	worker_wake(worker);
	if (punted)
		control_worker.punted--;
	control_worker.held++;
	return 1;
}

// Sends all waiting packets to worker `to`, in order; those beyond its inbox's room are dropped.
static void give(struct worker *w, uint32_t to)
{
	struct worker *owner = worker_get(to);
	struct outbox *o = &w->outbox[to];

	for (uint32_t at = 0; at < o->count;) {
		uint32_t put = hold_ring_put_burst(owner->inbox, o->pkts + at, o->count - at);

		w->handed_over += put;
		w->held += put;
		at += put;
		if (unlikely(at < o->count))
			drop_for(w, &o->pkts[at++], 1, &drop_inbox_full);
	}
	o->count = 0;
	sleeper_wake(owner->sleeper);
}

void worker_give_all(struct worker *w)
{
	for (; w->outboxes != 0; w->outboxes &= w->outboxes - 1)
		give(w, (uint32_t)__builtin_ctz(w->outboxes));
}

static void hand_over(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m)
{
	packet_of(m)->resume = (uint8_t)resume;
	packet_of(m)->reason = order;
	if (unlikely(to >= worker_count())) {
		drop_for(w, &m, 1, &drop_inbox_full);
		return;
	}
	struct outbox *o = &w->outbox[to];

	o->pkts[o->count++] = m;
	w->outboxes |= 1u << to;
	if (o->count == VECTOR)
		give(w, to);
}

void worker_hand_over(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m)
{
	packet_of(m)->handed = 0;
	hand_over(w, to, resume, order, m);
}

void worker_hand_over_as_it_came(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m)
{
	static_assert(API_MAX_WORKERS <= 16, "packet.by has four bits");
	packet_of(m)->handed = 1;
	packet_of(m)->by = w->id & 15;
	hand_over(w, to, resume, order, m);
}
