// SPDX-License-Identifier: Apache-2.0
// Frames between clones and the graph: up from the host path, down to port-tx of the interface's port.
#include "core/control.h"
#include "core/port.h"
#include "host/clone_table.h"
#include "host/host.h"
#include "wire/bytes.h"
#include "wire/eth.h"
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define MACS 12 // bytes of both addresses
#define TAGS 8
#define SEGMENTS 64
#define LONGEST (ETH_HEADER + TAGS + 65536)

DROP_REASON(drop_refused, "clone-refused",
	"the kernel's device for the interface is down, or did not take the frame. See ip link, and show clone, column "
	"WHY")
DROP_REASON(drop_too_long, "clone-too-long",
	"the kernel sent a frame that is longer than the interface's MTU allows. Short when the kernel's device goes "
	"down or its MTU changes")
DROP_REASON(drop_buffers, "clone-no-buffer",
	"there was no packet buffer for a frame that the kernel sent. See engine.packet_buffers")
DROP_REASON(drop_interface_down, "clone-interface-down",
	"the kernel sent a frame by an interface that is down. Short when the kernel's device goes down or its MTU "
	"changes")

// The Ethernet header that the kernel's device shows: without the tags, which are the interface's.
static void header_of(uint8_t header[ETH_HEADER], const struct rte_mbuf *m, const struct packet *pkt)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	memcpy(header, frame, MACS);
	memcpy(header + MACS, frame + pkt->l3 - 2, 2);
}

static int write_frame(int fd, const struct rte_mbuf *m, const struct packet *pkt)
{
	uint8_t header[ETH_HEADER];
	struct iovec v[1 + SEGMENTS] = {{header, sizeof(header)}};
	int n = 1;

	header_of(header, m, pkt);
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next) {
		uint32_t skip = s == m ? pkt->l3 : 0;

		if (n > SEGMENTS)
			return -1;
		v[n++] = (struct iovec){rte_pktmbuf_mtod_offset(s, void *, skip), s->data_len - skip};
	}
	return writev(fd, v, n) < 0 ? -1 : 0;
}

enum clone_result clone_up(const struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of((struct rte_mbuf *)(uintptr_t)m);
	struct clone *c = clone_of(pkt->interface);
	const struct interface *i = c != NULL ? interface_get(pkt->interface) : NULL;

	// Except our packets to ourselves, which were never on the link.
	if (i == NULL || i->port != pkt->port_in || pkt->l3 < ETH_HEADER || pkt->l3 > rte_pktmbuf_data_len(m))
		return CLONE_NONE;
	if (c->tap.fd < 0 || write_frame(c->tap.fd, m, pkt) != 0) {
		c->refused++;
		return CLONE_REFUSED;
	}
	c->to_kernel++;
	return CLONE_TAKEN;
}

static void up(struct rte_mbuf *m)
{
	if (clone_up(m) == CLONE_REFUSED)
		control_drop(m, &drop_refused);
	else
		rte_pktmbuf_free(m); // consumed, or without receiver: counts as punted
}

struct rte_mbuf *host_packet(const uint8_t *frame, uint32_t length)
{
	struct rte_mbuf *m = control_originate();

	if (m == NULL)
		return NULL;
	for (struct rte_mbuf *s = m;;) {
		uint16_t n = (uint16_t)RTE_MIN(length, (uint32_t)rte_pktmbuf_tailroom(s));

		memcpy(rte_pktmbuf_mtod(s, uint8_t *), frame, n);
		s->data_len = n;
		m->pkt_len += n;
		frame += n;
		length -= n;
		if (length == 0)
			return m;
		s->next = rte_pktmbuf_alloc(m->pool);
		if (s->next == NULL) {
			control_drop(m, &drop_buffers);
			return NULL;
		}
		s = s->next;
		m->nb_segs++;
	}
}

static int send_frame(const struct interface *i, uint8_t *frame, uint32_t length)
{
	uint8_t header[ETH_HEADER + TAGS];
	uint32_t packet = length - ETH_HEADER;
	uint32_t before = (uint32_t)(interface_header(header, i, frame) - header); // addresses and tags

	memcpy(header + 6, frame + 6, 6); // the sender is the kernel's: VRRP has addresses of its own
	frame += (int)MACS - (int)before;
	memcpy(frame, header, before);
	struct rte_mbuf *m = host_packet(frame, length + before - MACS);
	if (m == NULL)
		return 0;
	packet_of(m)->port_out = i->port;
	packet_of(m)->interface = i->index;
	if (packet > i->mtu || i->down) {
		control_drop(m, i->down ? &drop_interface_down : &drop_too_long);
		return 0;
	}
	control_inject(0, "port-tx", m); // one worker for all, so that frames keep their order
	return 1;
}

void clone_down(struct clone *c, const struct interface *i)
{
	static uint8_t room[TAGS + LONGEST];
	uint8_t *frame = room + TAGS; // the tags go in front

	for (int n = 0; n < VECTOR; n++) {
		ssize_t length = read(c->tap.fd, frame, LONGEST);

		if (length <= 0)
			return;
		if (length >= ETH_HEADER && send_frame(i, frame, (uint32_t)length))
			c->from_kernel++;
		else
			c->dropped++;
	}
}

static int start(const struct api_engine *engine)
{
	punt_handler_register(&punt_routing, up);
	punt_handler_register(&punt_host, up);
	punt_handler_register(&punt_link, up);
	punt_handler_register(&punt_icmp, up);
	punt_handler_register(&punt_router_discovery, up);
	return 0;
}

RTE_INIT(clone_io)
{
	module_register(start);
	resume_register("port-tx");
}
