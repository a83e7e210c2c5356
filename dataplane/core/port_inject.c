// SPDX-License-Identifier: Apache-2.0
// Port driver `inject`: memory queues on both sides, for replay, unit tests and fuzzing. No threads, no devices.
#include "core/port_inject.h"
#include "core/error.h"
#include "core/ethdev.h"
#include <errno.h>
#include <rte_malloc.h>
#include <string.h>

struct inject {
	struct rte_mbuf *in[INJECT_QUEUE];
	uint32_t in_head, in_tail; // free-running
	inject_output_fn output;
	void *arg;
	int unlinked;
};

static int inject_open(struct port *p, const struct api_port *want)
{
	p->private = rte_zmalloc("inject", sizeof(struct inject), 0);
	if (p->private == NULL)
		return object_error(ENOMEM, "no memory for port %s", p->name);
	p->rx_queues = p->tx_queues = 1;
	// A replay's result must be the same every time, so a port without a configured address gets a fixed one.
	p->mac = (struct rte_ether_addr){{0x02, 0, 0, 0, 0x99, (uint8_t)p->index}};
	mac_given(&p->mac, want->mac);
	p->up = 1;
	return 0;
}

static void inject_close(struct port *p)
{
	struct inject *j = p->private;

	while (j->in_tail != j->in_head)
		rte_pktmbuf_free(j->in[j->in_tail++ % INJECT_QUEUE]);
	rte_free(j);
}

static uint16_t inject_rx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct inject *j = p->private;
	uint16_t got = 0;

	while (got < n && j->in_tail != j->in_head)
		pkts[got++] = j->in[j->in_tail++ % INJECT_QUEUE];
	return got;
}

static uint16_t inject_tx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct inject *j = p->private;

	for (uint16_t i = 0; i < n; i++) {
		if (j->output != NULL)
			j->output(p, pkts[i], j->arg);
		rte_pktmbuf_free(pkts[i]);
	}
	return n;
}

static int inject_port_link(struct port *p)
{
	const struct inject *j = p->private;

	return !j->unlinked;
}

static const struct port_driver inject_driver = {
	.name = "inject",
	.open = inject_open,
	.close = inject_close,
	.rx = inject_rx,
	.tx = inject_tx,
	.link = inject_port_link,
};

static int is_inject(const struct port *p)
{
	return p != NULL && p->driver == &inject_driver;
}

int inject_packet(struct port *p, const void *frame, uint32_t length)
{
	if (!is_inject(p) || length == 0 || length > INJECT_FRAME_MAX)
		return EINVAL;
	struct inject *j = p->private;
	if (j->in_head - j->in_tail == INJECT_QUEUE)
		return ENOBUFS;
	struct rte_mbuf *first = NULL, *last = NULL;
	const uint8_t *from = frame;
	while (length > 0) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(engine_pool());

		if (m == NULL) {
			rte_pktmbuf_free(first);
			port_no_buffer(p, worker_get(0), 1); // one thread, which walks for all workers
			return ENOMEM;
		}
		uint16_t n = (uint16_t)RTE_MIN(length, (uint32_t)rte_pktmbuf_tailroom(m));
		memcpy(rte_pktmbuf_append(m, n), from, n);
		from += n;
		length -= n;
		if (first == NULL) {
			first = m;
		} else {
			last->next = m;
			first->nb_segs++;
			first->pkt_len += n;
		}
		last = m;
	}
	j->in[j->in_head++ % INJECT_QUEUE] = first;
	return 0;
}

int inject_on_output(struct port *p, inject_output_fn fn, void *arg)
{
	if (!is_inject(p))
		return EINVAL;
	struct inject *j = p->private;
	j->output = fn;
	j->arg = arg;
	return 0;
}

int inject_link(struct port *p, int up)
{
	if (!is_inject(p))
		return EINVAL;
	struct inject *j = p->private;
	j->unlinked = !up;
	return 0;
}

RTE_INIT(inject_register)
{
	port_driver_register(&inject_driver);
}
