// SPDX-License-Identifier: Apache-2.0
// Port driver for every DPDK device: PCI, net_af_packet, net_af_xdp, net_tap, net_memif, net_pcap, net_bond, …
#include "core/ethdev.h"
#include "core/log.h"
#include "core/module.h"
#include "core/packet.h"
#include "core/port.h"
#include "share/burst.h"
#include <errno.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_spinlock.h>
#include <stdio.h>
#include <string.h>

#define TAGS 8 // bytes of QinQ on an access port

static_assert(API_MAX_WORKERS <= ETHDEV_QUEUES, "a descriptor for each queue");

struct ethdev_port {
	struct ethdev dev;
	bool card; // or made of cards: what they send must be memory of ours
	rte_spinlock_t lock[API_MAX_WORKERS]; // per transmit queue; taken only when workers share queues
};

static int ethdev_port_open(struct port *p, const struct api_port *want)
{
	struct ethdev_port *e = rte_zmalloc("ethdev", sizeof(*e), 0);
	struct ethdev_want device = {
		.source = {want->driver, want->devargs},
		.members = want->members,
		.mtu = want->mtu,
		.tags = want->role == API_ROLE_ACCESS ? TAGS : 0,
		.rx_queues = (uint16_t)(want->queues ? want->queues : worker_count()),
		.tx_queues = (uint16_t)worker_count(),
		.descriptors = (uint16_t)want->queue_size,
		.promiscuous = want->promiscuous != 0,
		.access = want->role == API_ROLE_ACCESS,
		.marks = want->offload != API_OFFLOAD_NONE,
		.pool = engine_pool(),
	};
	char text[API_TEXT];

	if (e == NULL)
		return object_error(ENOMEM, "no memory for port %s", p->name);
	memcpy(device.mac, want->mac, 6);
	e->card = strcmp(want->driver, "pci") == 0;
	for (uint32_t i = 0; i < want->members; i++) {
		device.member[i] = (struct ethdev_source){want->member[i].driver, want->member[i].devargs};
		e->card |= strcmp(want->member[i].driver, "pci") == 0;
	}
	int error = ethdev_open(&e->dev, p->name, &device, text, sizeof(text));
	if (error != 0) {
		rte_free(e);
		return object_error(error, "%s", text);
	}
	p->private = e;
	p->rx_queues = e->dev.rx_queues;
	p->tx_queues = e->dev.tx_queues;
	p->steering = e->dev.steering;
	p->mac = e->dev.mac;
	p->device = e->dev.id;
	p->up = 1;
	return 0;
}

static void ethdev_port_close(struct port *p)
{
	struct ethdev_port *e = p->private;

	ethdev_close(&e->dev);
	rte_free(e);
}

// Chained packets become one segment for devices without chains (net_af_packet). Packets that cannot are moved behind
// the others; the caller gets them back as not sent.
static uint16_t linearise(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t good = 0;

	for (uint16_t left = n; left > 0; left--)
		if (likely(pkts[good]->nb_segs == 1) || rte_pktmbuf_linearize(pkts[good]) == 0)
			good++;
		else
			burst_put_off(pkts + good, n - good);
	return good;
}

// Packets in other processes' buffers are copied for cards. Those that cannot be are moved behind, as above.
static uint16_t own(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t good = 0;

	for (uint16_t left = n; left > 0; left--) {
		struct rte_mbuf *m = pkts[good];

		if (unlikely(!packet_own_buffers(m)) && (m = rte_pktmbuf_copy(m, engine_pool(), 0, UINT32_MAX)) != NULL)
			rte_pktmbuf_free(pkts[good]);
		if (likely(m != NULL))
			pkts[good++] = m;
		else
			burst_put_off(pkts + good, n - good);
	}
	return good;
}

static uint16_t send_burst(struct ethdev *e, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0;

	uint16_t k;

	do {
		k = rte_eth_tx_burst(e->id, queue, pkts + sent, n - sent);
		sent += k;
	} while (k > 0 && sent < n);
	return sent;
}

static uint16_t ethdev_tx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct ethdev_port *e = p->private;
	uint16_t sent;

	if (e->card)
		n = own(pkts, n);
	if (!e->dev.multi_segment)
		n = linearise(pkts, n);
	if (likely(queue < e->dev.tx_queues && e->dev.tx_queues == worker_count())) {
		sent = send_burst(&e->dev, queue, pkts, n);
	} else {
		queue %= e->dev.tx_queues;
		rte_spinlock_lock(&e->lock[queue]);
		sent = send_burst(&e->dev, queue, pkts, n);
		rte_spinlock_unlock(&e->lock[queue]);
	}
	return sent;
}

static uint16_t ethdev_rx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	const struct ethdev_port *e = p->private;

	// LACPDUs leave with what the port sends, be it nothing.
	if (unlikely(e->dev.handles > 1))
		ethdev_tx(p, (uint16_t)worker_current->id, NULL, 0);
	return rte_eth_rx_burst(e->dev.id, queue, pkts, n);
}

static int ethdev_rx_fd(struct port *p, uint16_t queue)
{
	const struct ethdev_port *e = p->private;

	return e->dev.rx_fd[queue];
}

static int ethdev_port_link(struct port *p)
{
	const struct ethdev_port *e = p->private;

	return ethdev_link(&e->dev);
}

static void ethdev_stats(struct port *p, struct api_port_row *row)
{
	struct ethdev_port *e = p->private;
	struct rte_eth_stats s;
	struct rte_eth_link link;

	if (ethdev_counts(&e->dev, &s) == 0) {
		row->rx_missed = s.imissed;
		row->rx_no_buffer = s.rx_nombuf;
		row->rx_errors = s.ierrors;
		row->tx_errors = s.oerrors;
	}
	row->up = (uint32_t)ethdev_link(&e->dev);
	if (rte_eth_link_get_nowait(e->dev.id, &link) == 0) {
		row->speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	}
}

static uint64_t ethdev_no_buffer(struct port *p)
{
	const struct ethdev_port *e = p->private;
	struct rte_eth_stats s;

	return rte_eth_stats_get(e->dev.id, &s) == 0 ? s.rx_nombuf : p->no_buffer_seen;
}

// A device that is taken away.

static uint8_t taken[RTE_MAX_ETHPORTS]; // by device; written by EAL's interrupt thread, cleared by the control thread

// A card is pulled, or vfio-pci asks for it: the kernel waits until we have closed it.
static void on_device_event(const char *device, enum rte_dev_event_type event, void *arg)
{
	uint16_t id;

	if (event == RTE_DEV_EVENT_REMOVE && rte_eth_dev_get_port_by_name(device, &id) == 0)
		__atomic_store_n(&taken[id], 1, __ATOMIC_RELEASE);
}

static uint16_t no_burst(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return 0;
}

static int no_rx_fd(struct port *p, uint16_t queue)
{
	return PORT_SILENT;
}

static int no_link(struct port *p)
{
	return 0;
}

static void forget_port(struct port *p)
{
	rte_free(p->private);
}

static const struct port_driver gone_driver = {
	.name = "gone",
	.close = forget_port,
	.rx = no_burst,
	.tx = no_burst,
	.rx_fd = no_rx_fd,
	.link = no_link,
};

// The port stays, without a device, until the configuration takes it away.
static void lose_device(struct port *p)
{
	struct ethdev_port *e = p->private;

	LOG(WARNING, "port %s: device %s is taken away\n", p->name, e->dev.handle[0].device);
	p->gone = 1;
	__atomic_store_n(&p->driver, &gone_driver, __ATOMIC_RELEASE);
	control_synchronize();
	port_closing(p);
	ethdev_close(&e->dev);
	p->device = -1;
	p->up = 0;
}

static void look_for_taken(uint64_t now_ns)
{
	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		struct port *p = port_get(i);

		if (p == NULL || p->device < 0 || !__atomic_load_n(&taken[p->device], __ATOMIC_ACQUIRE))
			continue;
		uint8_t *flag = &taken[p->device];

		lose_device(p);
		__atomic_store_n(flag, 0, __ATOMIC_RELEASE);
	}
}

static const struct port_driver ethdev_driver = {
	.name = "*",
	.open = ethdev_port_open,
	.close = ethdev_port_close,
	.rx = ethdev_rx,
	.tx = ethdev_tx,
	.rx_fd = ethdev_rx_fd,
	.link = ethdev_port_link,
	.stats = ethdev_stats,
	.no_buffer = ethdev_no_buffer,
};

RTE_INIT(ethdev_register)
{
	port_driver_register(&ethdev_driver);
	timer_register(100, look_for_taken);
	rte_dev_event_callback_register(NULL, on_device_event, NULL);
}
