// SPDX-License-Identifier: Apache-2.0
// scheduler: queues packets for a port by subport, pipe and class. scheduler-tx: sends those that are due.
#include "core/node.h"
#include "rule/view.h"
#include "scheduler/instance.h"
#include "scheduler/queue.h"
#include "wire/ecn.h"

DROP_REASON(drop_full, "scheduler-queue-full",
	"the subscriber's queue of this traffic class is full. See show scheduler: rates of the profile and the "
	"subport")
DROP_REASON(drop_red, "scheduler-red",
	"random early detection chose the packet by the average length of its queue. See show scheduler, red of the "
	"scheduler: senders without ECN")
DROP_REASON(drop_precedence, "scheduler-precedence",
	"the queue is as long as packets of this drop precedence (AFx2, AFx3) may find it. See yellow_size, red_size: "
	"what a policer coloured goes first")
DROP_REASON(drop_longest, "scheduler-longest",
	"schedulers' queues held all their buffers: the oldest packet of the longest made room. See "
	"engine.limits.scheduled_packets, packet_buffers, queue_size")
DROP_REASON(drop_no_room, "scheduler-no-room",
	"schedulers' queues held all their buffers, and none was longer than one packet. See "
	"engine.limits.scheduled_packets, packet_buffers, queue_size")

enum { EDGE_ACCESS, EDGE_CORE, EDGE_DROP, EDGE_COUNT };

#define LOOKS_PER_S 20000u // at what waits, by a worker without other work

static rte_edge_t towards(uint16_t port)
{
	const struct port *p = port_get(port);

	return p != NULL && p->role == API_ROLE_CORE ? EDGE_CORE : EDGE_ACCESS;
}

int scheduler_passes(const struct worker *w, struct rte_mbuf *m)
{
	const struct scheduler *s = scheduler_of(packet_of(m)->port_out);

	return s == NULL || s->instance[w->id] == NULL ? towards(packet_of(m)->port_out) : -1;
}

bool scheduler_mark(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	uint32_t header = pkt->ip_version == 4 ? 20 : 40;

	if (pkt->ip_version == 0 || pkt->l3 + header > rte_pktmbuf_data_len(m) || rte_mbuf_refcnt_read(m) != 1 ||
		!RTE_MBUF_DIRECT(m))
		return false;
	// As if the mark came from a tunnel that ends here: RFC 3168 section 5 requires the same for senders without
	// ECN.
	return ecn_leave_tunnel(ECN_CE, pkt->ip_version, rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3));
}

static uint32_t buffers_of(struct rte_mbuf **pkts, uint32_t n)
{
	uint32_t buffers = 0;

	for (uint32_t i = 0; i < n; i++)
		buffers += pkts[i]->nb_segs;
	return buffers;
}

static void count_out(struct worker *w, struct scheduler *s, struct rte_mbuf **pkts, uint32_t n)
{
	uint32_t buffers = buffers_of(pkts, n);

	hold_give(w, &scheduler_holder, buffers);
	s->held[w->id].buffers -= buffers;
	w->held -= n;
}

// The scheduler with the longest queue of this worker, of all ports.
static struct scheduler *longest(const struct worker *w)
{
	struct scheduler *found = NULL;
	uint32_t most = 0;

	for (uint64_t ports = scheduler_ports(); ports != 0; ports &= ports - 1) {
		struct scheduler *s = scheduler_of((uint16_t)__builtin_ctzll(ports));
		struct hqos *h = s ? s->instance[w->id] : NULL;

		if (h != NULL && hqos_longest(h) > most) {
			most = hqos_longest(h);
			found = s;
		}
	}
	return found;
}

// Until `buffers` fit into the worker's share, the longest queues pay. 0 when they cannot.
static __rte_noinline int make_room(struct rte_graph *graph, struct rte_node *node, struct worker *w, uint32_t buffers)
{
	struct rte_mbuf *out[VECTOR];

	while (hold_room(w, &scheduler_holder) < buffers) {
		uint32_t missing = buffers - hold_room(w, &scheduler_holder);
		struct scheduler *s = longest(w);
		uint32_t n = s ? hqos_push_out(s->instance[w->id], out, RTE_MIN(missing, (uint32_t)VECTOR)) : 0;

		if (n == 0)
			return 0;
		count_out(w, s, out, n);
		for (uint32_t i = 0; i < n; i++)
			packet_leave(out[i], &drop_longest, EDGE_DROP);
		rte_node_enqueue(graph, node, EDGE_DROP, (void **)out, (uint16_t)n);
	}
	return 1;
}

// Drops for `why`; packets returned by their queues may have been chosen by early detection or drop precedence.
static void reject(struct rte_graph *graph, struct rte_node *node, bool came_back, struct rte_mbuf **pkts, uint32_t n,
	const struct reason *why)
{
	for (uint32_t i = 0; i < n; i++)
		packet_leave(pkts[i],
			!came_back               ? why
			: hqos_early(pkts[i])    ? &drop_red
			: hqos_preceded(pkts[i]) ? &drop_precedence
						 : why,
			EDGE_DROP);
	if (n > 0)
		rte_node_enqueue(graph, node, EDGE_DROP, (void **)pkts, (uint16_t)n);
}

// Keeps the packets of the run for which there is room, drops the others. Returns how many stay, and their buffers.
static uint16_t admit(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf **pkts,
	uint16_t n, uint32_t *buffers)
{
	*buffers = buffers_of(pkts, n);
	if (likely(*buffers <= hold_room(w, &scheduler_holder)) || make_room(graph, node, w, *buffers))
		return n;
	uint16_t stay = n;

	while (stay > 0 && *buffers > hold_room(w, &scheduler_holder))
		*buffers -= pkts[--stay]->nb_segs;
	reject(graph, node, false, pkts + stay, n - stay, &drop_no_room);
	return stay;
}

// One run of packets for one port.
static void enqueue_run(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct scheduler *s = scheduler_of(packet_of(pkts[0])->port_out);
	struct hqos *h = s ? s->instance[w->id] : NULL;
	struct rte_mbuf *rejected[NODE_CHUNK];
	uint32_t buffers;

	if (h == NULL) {
		rte_node_enqueue(graph, node, towards(packet_of(pkts[0])->port_out), (void **)pkts, n);
		return;
	}
	n = admit(graph, node, w, pkts, n, &buffers);
	for (uint16_t i = 0; i < n; i++) {
		const struct session_view *v = session_view_of(pkts[i]);

		hqos_set_place_of(
			pkts[i], hqos_place_class(v->pipe, scheduler_class_of(s, v)), dscp_precedence(v->dscp));
	}
	uint32_t full = hqos_enqueue(h, pkts, n, w->now, rejected);
	w->held += n - full;
	if (unlikely(full > 0))
		buffers -= buffers_of(rejected, full);
	hold_add(w, &scheduler_holder, buffers);
	s->held[w->id].buffers += buffers;
	reject(graph, node, true, rejected, full, &drop_full);
}

static uint16_t scheduler(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct rte_mbuf **pkts = (struct rte_mbuf **)objs;
	uint16_t first = 0;

	for (uint16_t i = 1; i <= n; i++)
		if (i == n || i - first == NODE_CHUNK ||
			packet_of(pkts[i])->port_out != packet_of(pkts[first])->port_out) {
			enqueue_run(graph, node, w, pkts + first, i - first);
			first = i;
		}
	return n;
}

static struct rte_node_register scheduler_node = {
	.name = "scheduler",
	.process = scheduler,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_ACCESS] = "@output-access", [EDGE_CORE] = "@output-core", [EDGE_DROP] = "drop"},
};
NODE_STAGE(scheduler_node, "output-access", .standard = 1)

static uint16_t scheduler_tx(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct rte_mbuf *pkts[VECTOR * 2];
	uint32_t sum = 0;

	scheduler_apply_changes(w->id);
	for (uint64_t ports = scheduler_ports(); ports != 0; ports &= ports - 1) {
		struct scheduler *s = scheduler_of((uint16_t)__builtin_ctzll(ports));
		struct hqos *h = s ? s->instance[w->id] : NULL;

		if (h == NULL || hqos_queued(h) == 0)
			continue;
		uint32_t out = hqos_dequeue(h, pkts, RTE_DIM(pkts), w->now);
		// A queue's credit grows with time.
		worker_due(w, w->now + w->tsc_hz / LOOKS_PER_S);
		if (out > 0)
			rte_node_enqueue(graph, node, towards(s->port), (void **)pkts, (uint16_t)out);
		count_out(w, s, pkts, out);
		sum += out;
	}
	return (uint16_t)sum;
}

static struct rte_node_register scheduler_tx_node = {
	.name = "scheduler-tx",
	.flags = RTE_NODE_SOURCE_F,
	.process = scheduler_tx,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_ACCESS] = ">scheduler", [EDGE_CORE] = "@output-core", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(scheduler_tx_node)
