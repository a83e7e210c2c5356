// SPDX-License-Identifier: Apache-2.0
// Port driver for every DPDK device: PCI, net_af_packet, net_af_xdp, net_tap, net_memif, net_pcap, net_bond, …
#include "core/engine.h"
#include "core/log.h"
#include "core/object.h"
#include <errno.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_spinlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_DESCRIPTORS 1024
#define L2_ROOM 26 // Ethernet, two tags and FCS

struct ethdev {
	uint16_t id;
	uint16_t tx_queues;
	uint8_t multi_segment; // the device sends chained mbufs
	rte_spinlock_t lock[API_MAX_WORKERS]; // per transmit queue; taken only when workers share queues
	char bus[16];
	char device[80];
};

static int is_pci(const struct api_port *want)
{
	return strcmp(want->driver, "pci") == 0;
}

// net_af_packet takes its queue count as a device argument, and its ring has room for frames of 2 KB unless told otherwise.
static void device_args(const struct api_port *want, uint16_t queues, char *args, size_t n)
{
	int packet = strcmp(want->driver, "net_af_packet") == 0;
	int count = packet && strstr(want->devargs, "qpairs=") == NULL;
	int large = packet && want->mtu > 1900 && strstr(want->devargs, "framesz=") == NULL;
	char queue_pairs[24] = "";

	if (count)
		snprintf(queue_pairs, sizeof(queue_pairs), ",qpairs=%u", queues);
	snprintf(args, n, "%s%s%s", want->devargs, queue_pairs, large ? ",framesz=16384,blocksz=65536" : "");
}

static int probe(struct port *p, struct ethdev *e, const struct api_port *want, uint16_t queues)
{
	char args[API_TEXT + 32];
	int error;

	if (is_pci(want)) {
		snprintf(e->bus, sizeof(e->bus), "pci");
		snprintf(e->device, sizeof(e->device), "%.*s", (int)strcspn(want->devargs, ","), want->devargs);
		const char *comma = strchr(want->devargs, ',');
		snprintf(args, sizeof(args), "%s", comma ? comma + 1 : "");
	} else {
		snprintf(e->bus, sizeof(e->bus), "vdev");
		snprintf(e->device, sizeof(e->device), "%s_%s", want->driver, p->name);
		device_args(want, queues, args, sizeof(args));
	}
	uint16_t other;
	if (rte_eth_dev_get_port_by_name(e->device, &other) == 0)
		return object_error(EBUSY, "port %s: device %s serves another port", p->name, e->device);
	error = rte_eal_hotplug_add(e->bus, e->device, args);
	if (error != 0)
		return object_error(ENODEV, "port %s: %s does not take \"%s\": %s", p->name, want->driver, args,
			rte_strerror(error < 0 ? -error : error));
	if (rte_eth_dev_get_port_by_name(e->device, &e->id) != 0) {
		rte_eal_hotplug_remove(e->bus, e->device);
		return object_error(ENODEV, "port %s: device %s is not a network port", p->name, e->device);
	}
	return 0;
}

static void set_offloads(
	const struct rte_eth_dev_info *info, const struct api_port *want, struct rte_eth_conf *conf, struct ethdev *e)
{
	uint32_t room = rte_pktmbuf_data_room_size(engine_pool()) - RTE_PKTMBUF_HEADROOM;

	if (want->mtu + L2_ROOM > room)
		conf->rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	conf->txmode.offloads |= info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	e->multi_segment = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	if (conf->rxmode.mq_mode == RTE_ETH_MQ_RX_RSS) {
		// Steer by the IP addresses where the device can see them; the hand-over to the owner corrects the rest.
		conf->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_GTPU);
		if (conf->rx_adv_conf.rss_conf.rss_hf == 0)
			conf->rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	}
}

static int configure(struct port *p, struct ethdev *e, const struct api_port *want)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf = {0};
	uint16_t descriptors = want->queue_size ? (uint16_t)want->queue_size : DEFAULT_DESCRIPTORS, rx = descriptors,
		 tx = rx;

	if (rte_eth_dev_info_get(e->id, &info) != 0)
		return object_error(EIO, "port %s: the device does not say what it can do", p->name);
	p->rx_queues = RTE_MIN((uint16_t)(want->queues ? want->queues : worker_count()), info.max_rx_queues);
	e->tx_queues = RTE_MIN((uint16_t)worker_count(), info.max_tx_queues);
	p->tx_queues = e->tx_queues;
	uint32_t room = rte_pktmbuf_data_room_size(engine_pool()) - RTE_PKTMBUF_HEADROOM;
	if (want->mtu + L2_ROOM > room && !(info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER))
		return object_error(EINVAL,
			"port %s: the device does not chain buffers, so an MTU of %u needs engine.buffer_size %u",
			p->name, want->mtu, want->mtu + L2_ROOM);
	conf.rxmode.mtu = want->mtu;
	conf.rxmode.mq_mode = p->rx_queues > 1 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE;
	set_offloads(&info, want, &conf, e);
	int error = rte_eth_dev_configure(e->id, p->rx_queues, e->tx_queues, &conf);
	if (error != 0) // some virtual devices refuse an MTU at this point, and take it later or never
		conf.rxmode.mtu = 0, error = rte_eth_dev_configure(e->id, p->rx_queues, e->tx_queues, &conf);
	if (error == 0)
		error = rte_eth_dev_adjust_nb_rx_tx_desc(e->id, &rx, &tx);
	for (uint16_t q = 0; error == 0 && q < p->rx_queues; q++)
		error = rte_eth_rx_queue_setup(e->id, q, rx, rte_eth_dev_socket_id(e->id), NULL, engine_pool());
	for (uint16_t q = 0; error == 0 && q < e->tx_queues; q++)
		error = rte_eth_tx_queue_setup(e->id, q, tx, rte_eth_dev_socket_id(e->id), NULL);
	if (error != 0)
		return object_error(-error, "port %s: the device refuses %u+%u queues of %u descriptors: %s", p->name,
			p->rx_queues, e->tx_queues, descriptors, rte_strerror(-error));
	return 0;
}

// The Linux interface behind a device (net_af_packet, whose driver refuses more than 1500).
static int set_interface_mtu(const struct ethdev *e, uint32_t mtu)
{
	struct rte_eth_dev_info info;
	struct ifreq request = {.ifr_mtu = (int)mtu};
	int error = -1, s;

	if (rte_eth_dev_info_get(e->id, &info) != 0 || info.if_index == 0 ||
		if_indextoname(info.if_index, request.ifr_name) == NULL)
		return -1;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s >= 0) {
		error = ioctl(s, SIOCSIFMTU, &request);
		close(s);
	}
	return error;
}

// Linux counts the tags of QinQ as part of what an interface carries: veth drops what is longer.
static void set_mtu(const struct port *p, const struct ethdev *e, const struct api_port *want)
{
	uint32_t mtu = want->mtu + (want->role == API_ROLE_ACCESS ? 8 : 0);

	if (rte_eth_dev_set_mtu(e->id, (uint16_t)mtu) != 0 && set_interface_mtu(e, mtu) != 0 &&
		rte_eth_dev_set_mtu(e->id, (uint16_t)want->mtu) != 0)
		LOG(INFO, "port %s: the device has no MTU to set\n", p->name);
}

static int start(struct port *p, struct ethdev *e, const struct api_port *want)
{
	static const uint8_t none[6];

	if (memcmp(want->mac, none, 6) != 0 &&
		rte_eth_dev_default_mac_addr_set(e->id, (struct rte_ether_addr *)(uintptr_t)want->mac) != 0)
		LOG(WARNING,
			"port %s: the device keeps its own MAC address; frames to the configured one need promiscuous "
			"mode\n",
			p->name);
	int error = rte_eth_dev_start(e->id);
	if (error != 0)
		return object_error(-error, "port %s does not start: %s", p->name, rte_strerror(-error));
	rte_eth_macaddr_get(e->id, &p->mac);
	if (memcmp(want->mac, none, 6) != 0)
		memcpy(p->mac.addr_bytes, want->mac, 6);
	set_mtu(p, e, want);
	if (want->promiscuous && rte_eth_promiscuous_enable(e->id) != 0)
		LOG(WARNING, "port %s: no promiscuous mode\n", p->name);
	// Neighbour discovery needs the solicited-node groups (RFC 4291 §2.7.1).
	rte_eth_allmulticast_enable(e->id);
	return 0;
}

static int ethdev_open(struct port *p, const struct api_port *want)
{
	struct ethdev *e = rte_zmalloc("ethdev", sizeof(*e), 0);

	if (e == NULL)
		return object_error(ENOMEM, "no memory for port %s", p->name);
	p->private = e;
	int error = probe(p, e, want, (uint16_t)(want->queues ? want->queues : worker_count()));
	if (error != 0) {
		rte_free(e);
		return error;
	}
	error = configure(p, e, want);
	if (error == 0)
		error = start(p, e, want);
	if (error != 0) {
		rte_eal_hotplug_remove(e->bus, e->device);
		rte_free(e);
		return error;
	}
	p->up = 1;
	return 0;
}

static void ethdev_close(struct port *p)
{
	struct ethdev *e = p->private;

	rte_eth_dev_stop(e->id);
	rte_eth_dev_close(e->id);
	rte_eal_hotplug_remove(e->bus, e->device);
	rte_free(e);
}

static uint16_t ethdev_rx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	const struct ethdev *e = p->private;

	return rte_eth_rx_burst(e->id, queue, pkts, n);
}

// Chained packets become one segment for devices that take no chains (net_af_packet). What cannot is moved behind the
// others: the caller gets it back as not sent.
static uint16_t linearise(struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n;) {
		if (likely(pkts[i]->nb_segs == 1) || rte_pktmbuf_linearize(pkts[i]) == 0) {
			i++;
			continue;
		}
		struct rte_mbuf *last = pkts[--n];
		pkts[n] = pkts[i];
		pkts[i] = last;
	}
	return n;
}

static uint16_t send_burst(struct ethdev *e, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0;

	while (sent < n) {
		uint16_t k = rte_eth_tx_burst(e->id, queue, pkts + sent, n - sent);

		if (k == 0)
			break;
		sent += k;
	}
	return sent;
}

static uint16_t ethdev_tx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct ethdev *e = p->private;
	uint16_t sent;

	if (!e->multi_segment)
		n = linearise(pkts, n);
	if (likely(queue < e->tx_queues && e->tx_queues == worker_count())) {
		sent = send_burst(e, queue, pkts, n);
	} else {
		queue %= e->tx_queues;
		rte_spinlock_lock(&e->lock[queue]);
		sent = send_burst(e, queue, pkts, n);
		rte_spinlock_unlock(&e->lock[queue]);
	}
	return sent;
}

static void ethdev_stats(struct port *p, struct api_port_row *row)
{
	const struct ethdev *e = p->private;
	struct rte_eth_stats s;
	struct rte_eth_link link;

	if (rte_eth_stats_get(e->id, &s) == 0) {
		row->rx_missed = s.imissed;
		row->rx_no_buffer = s.rx_nombuf;
	}
	if (rte_eth_link_get_nowait(e->id, &link) == 0) {
		row->up = link.link_status;
		row->speed_mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	}
}

static const struct port_driver ethdev_driver = {
	.name = "*",
	.open = ethdev_open,
	.close = ethdev_close,
	.rx = ethdev_rx,
	.tx = ethdev_tx,
	.stats = ethdev_stats,
};

RTE_INIT(ethdev_register)
{
	port_driver_register(&ethdev_driver);
}
