// SPDX-License-Identifier: Apache-2.0
// Port driver `share`: a link without copies to another program of ours on this machine (lib/share). One receive queue;
// workers send under its lock.
#include "core/ethdev.h"
#include "core/module.h"
#include "core/packet.h"
#include "core/port.h"
#include "share/share.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#define LENT 8192 // buffers of the process; other packets are copied into one
#define RING 1024 // preset of queue_size
#define L2_ROOM 26 // Ethernet, two tags and FCS
#define POLL_MS 5

// Made with the first port and kept: others may have buffers after the last port is gone.
static struct share *ours;

struct share_port {
	struct share_link *link;
	uint64_t no_buffer; // reported by port_no_buffer()
	bool up; // state at the last poll
};

// "socket=PATH[,role=server|client]"
static int parse(char *args, const char **path, bool *server)
{
	char *rest = NULL;

	*path = "";
	*server = true;
	for (char *arg = strtok_r(args, ",", &rest); arg != NULL; arg = strtok_r(NULL, ",", &rest)) {
		if (strncmp(arg, "socket=", 7) == 0)
			*path = arg + 7;
		else if (strcmp(arg, "role=client") == 0)
			*server = false;
		else if (strcmp(arg, "role=server") != 0)
			return object_error(EINVAL, "driver share does not know \"%s\"", arg);
	}
	return 0;
}

static struct share *process(char *error, size_t n)
{
	const struct share_want want = {.name = "share",
		.buffers = LENT,
		.room = rte_pktmbuf_data_room_size(engine_pool()),
		.private_size = PACKET_PRIVATE,
		.cache = 256};

	if (ours == NULL)
		ours = share_new(&want, error, n);
	return ours;
}

static int open_link(struct port *p, const struct api_port *want, struct share_port *s)
{
	char args[API_TEXT], error[API_TEXT];
	struct share_link_want link = {.name = p->name,
		.ring = want->queue_size ? want->queue_size : RING,
		.headroom = RTE_PKTMBUF_HEADROOM,
		.pool = engine_pool()};
	uint32_t room = rte_pktmbuf_data_room_size(engine_pool()) - RTE_PKTMBUF_HEADROOM;

	snprintf(args, sizeof(args), "%s", want->devargs);
	int code = parse(args, &link.path, &link.server);

	if (code != 0)
		return code;
	if (want->mtu + L2_ROOM > room)
		return object_error(EINVAL, "port %s: an MTU of %u needs engine.buffer_size %u", p->name, want->mtu,
			want->mtu + L2_ROOM);
	if (process(error, sizeof(error)) != NULL)
		s->link = share_open(ours, &link, error, sizeof(error));
	return s->link != NULL ? 0 : object_error(EINVAL, "port %s: %s", p->name, error);
}

static int share_port_open(struct port *p, const struct api_port *want)
{
	struct share_port *s = rte_zmalloc("share-port", sizeof(*s), 0);

	if (s == NULL)
		return object_error(ENOMEM, "no memory for port %s", p->name);
	int error = open_link(p, want, s);

	if (error != 0) {
		rte_free(s);
		return error;
	}
	p->private = s;
	p->rx_queues = p->tx_queues = 1;
	rte_eth_random_addr(p->mac.addr_bytes);
	mac_given(&p->mac, want->mac);
	p->up = 1;
	return 0;
}

static void share_port_close(struct port *p)
{
	struct share_port *s = p->private;

	share_close(s->link);
	rte_free(s);
}

static uint16_t share_port_rx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct share_port *s = p->private;
	struct share_counters c;
	uint16_t got = share_rx(s->link, pkts, n);

	share_count(s->link, &c);
	if (unlikely(c.no_buffer != s->no_buffer)) {
		port_no_buffer(p, worker_current, c.no_buffer - s->no_buffer);
		s->no_buffer = c.no_buffer;
	}
	return got;
}

static uint16_t share_port_tx(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct share_port *s = p->private;

	return share_tx(s->link, pkts, n);
}

static int share_port_rx_fd(struct port *p, uint16_t queue)
{
	struct share_port *s = p->private;
	int fd;

	if (!share_sleep(s->link, &fd))
		return PORT_READY;
	return fd >= 0 ? fd : PORT_SILENT;
}

static void share_port_stats(struct port *p, struct api_port_row *row)
{
	struct share_port *s = p->private;

	row->up = share_up(s->link);
}

static int share_port_link(struct port *p)
{
	const struct share_port *s = p->private;

	return share_up(s->link);
}

static const struct port_driver share_driver = {
	.name = "share",
	.open = share_port_open,
	.close = share_port_close,
	.rx = share_port_rx,
	.tx = share_port_tx,
	.rx_fd = share_port_rx_fd,
	.link = share_port_link,
	.stats = share_port_stats,
};

static void poll_links(uint64_t now_ns)
{
	if (ours != NULL)
		share_poll(ours);
	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		struct port *p = port_table[i];
		struct share_port *s = p != NULL && p->driver == &share_driver ? p->private : NULL;
		bool up = s != NULL && share_up(s->link);

		for (uint32_t w = 0; up && !s->up && w < worker_count(); w++)
			worker_wake(w); // one of them did not watch it
		if (s != NULL)
			s->up = up;
	}
}

RTE_INIT(share_port_register)
{
	timer_register(POLL_MS, poll_links);
	port_driver_register(&share_driver);
}
