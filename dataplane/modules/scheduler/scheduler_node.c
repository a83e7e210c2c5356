// SPDX-License-Identifier: Apache-2.0
// scheduler: queues packets for an access port by subport, pipe and class. scheduler-tx: takes out what may leave now.
#include "core/node.h"
#include "scheduler/instance.h"

DROP_REASON(drop_full, "scheduler-queue-full", "the subscriber's queue of this traffic class is full")

enum { EDGE_TX, EDGE_DROP, EDGE_COUNT };

// The QFI decides the class where the operator gave it one, else the DSCP.
static uint8_t class_of(const struct scheduler *s, const struct session_view *v)
{
	uint8_t by_qfi = v->qfi < 64 ? s->want.qfi_class[v->qfi] : 0xff;

	return by_qfi != 0xff ? by_qfi : s->want.dscp_class[v->dscp & 63];
}

// One run of packets for one port.
static void enqueue_run(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	struct scheduler *s = scheduler_of(packet_of(pkts[0])->port_out);
	struct hqos *h = s ? s->instance[w->id] : NULL;
	struct rte_mbuf *rejected[NODE_CHUNK];

	if (h == NULL) {
		rte_node_enqueue(graph, node, EDGE_TX, (void **)pkts, n);
		return;
	}
	for (uint16_t i = 0; i < n; i++) {
		const struct session_view *v = session_view_of(pkts[i]);

		hqos_set_place(pkts[i], hqos_place_class(v->pipe, class_of(s, v)));
	}
	uint32_t full = hqos_enqueue(h, pkts, n, w->now, rejected);
	w->held += n - full;
	for (uint32_t i = 0; i < full; i++)
		packet_leave(rejected[i], &drop_full, EDGE_DROP);
	if (full > 0)
		rte_node_enqueue(graph, node, EDGE_DROP, (void **)rejected, (uint16_t)full);
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
	.next_nodes = {[EDGE_TX] = "port-tx", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(scheduler_node)

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
		if (out > 0)
			rte_node_enqueue(graph, node, EDGE_TX, (void **)pkts, (uint16_t)out);
		sum += out;
	}
	w->held -= sum;
	return (uint16_t)sum;
}

static struct rte_node_register scheduler_tx_node = {
	.name = "scheduler-tx",
	.flags = RTE_NODE_SOURCE_F,
	.process = scheduler_tx,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(scheduler_tx_node)
