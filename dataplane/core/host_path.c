// SPDX-License-Identifier: Apache-2.0
// Between the graph and the control thread: punted packets in, injected packets out.
#include "core/host_path.h"
#include "core/hold.h"
#include "core/port.h"
#include "core/trace.h"
#include <rte_ring.h>

static struct {
	struct rte_ring *punted[HOST_QUEUES]; // multi-producer: workers; single consumer: the control thread
	punt_fn handler[MAX_REASONS], access_handler[MAX_REASONS];
} host;

static uint32_t punted_held(void)
{
	uint32_t held = 0;

	for (int q = 0; q < HOST_QUEUES; q++)
		held += host.punted[q] == NULL ? 0 : rte_ring_count(host.punted[q]);
	return held;
}

HOLDER(punted_holder, "punt", max_punted, .held = punted_held)

// Each has buffers of its own.
int host_path_start(const struct api_engine *e)
{
	static const char *const name[HOST_QUEUES] = {"punted-neighbour", "punted-control", "punted-urgent", "punted"};

	for (int q = 0; q < HOST_QUEUES; q++) {
		host.punted[q] = hold_ring_create(name[q], e->max_punted / HOST_QUEUES);
		if (host.punted[q] == NULL)
			return -1;
	}
	return 0;
}

int host_path_push(enum host_queue queue, struct rte_mbuf *m)
{
	return hold_ring_put(host.punted[queue], m) ? 0 : -1;
}

static int is_crowded(const struct rte_ring *r)
{
	return rte_ring_count(r) > rte_ring_get_capacity(r) / 2;
}

int host_path_crowded(void)
{
	return is_crowded(host.punted[HOST_CONTROL]);
}

int inboxes_crowded(void)
{
	for (uint32_t i = 0; i < worker_count(); i++)
		if (is_crowded(worker_get(i)->inbox))
			return 1;
	return 0;
}

static struct rte_ring *next_queue(void)
{
	for (int q = 0; q < HOST_QUEUES; q++)
		if (host.punted[q] != NULL && !rte_ring_empty(host.punted[q]))
			return host.punted[q];
	return NULL;
}

void punt_handler_register(const struct reason *r, punt_fn fn)
{
	host.handler[r->id] = fn;
}

void punt_access_handler_register(const struct reason *r, punt_fn fn)
{
	host.access_handler[r->id] = fn;
}

static punt_fn handler_of(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const struct port *p = port_get(pkt->port_in);

	if (p != NULL && p->role == API_ROLE_ACCESS && host.access_handler[pkt->reason] != NULL)
		return host.access_handler[pkt->reason];
	return host.handler[pkt->reason];
}

void host_path_poll(void)
{
	struct rte_mbuf *pkts[VECTOR];
	struct rte_ring *queue;
	uint32_t n;

	// Bounded, so that a flood cannot keep the control thread from its sockets. New packets of an earlier queue
	// precede the rest of a later one.
	for (int round = 0; round < 16 && (queue = next_queue()) != NULL; round++) {
		n = hold_ring_take(queue, pkts, VECTOR);
		for (uint32_t i = 0; i < n; i++) {
			punt_fn fn = handler_of(pkts[i]);

			if (fn != NULL)
				fn(pkts[i]);
			else
				rte_pktmbuf_free(pkts[i]);
		}
	}
}

struct rte_mbuf *control_originate(void)
{
	return engine_pool() == NULL ? NULL : packet_originate(&control_worker);
}

// The control thread's counters and the workers' make one sum. A worker counted the packet as punted; another fate
// takes one punt back here.
void control_hold(struct rte_mbuf *m)
{
	control_worker.punted--;
	control_worker.held++;
}

void control_unhold(struct rte_mbuf *m)
{
	control_worker.held--;
	control_worker.punted++;
}

void control_drop_held(uint32_t packets, const struct reason *r)
{
	control_worker.held -= packets;
	control_worker.dropped += packets;
	control_worker.reason[r->id] += packets;
}

// Our own packets can be punted too (to wait for a neighbour), so the origin does not decide.
static int was_punted(struct rte_mbuf *m)
{
	return packet_of(m)->resume == RESUME_PUNTED;
}

void control_drop(struct rte_mbuf *m, const struct reason *r)
{
	trace_dropped(&control_worker, m, r);
	if (was_punted(m))
		control_worker.punted--;
	control_worker.reason[r->id]++;
	control_worker.dropped++;
	rte_pktmbuf_free(m);
}
