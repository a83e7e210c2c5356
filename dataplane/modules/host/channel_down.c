// SPDX-License-Identifier: Apache-2.0
// Frames of the control plane for subscribers: checked, put into packets with addresses and tags, sent by their port.
#include "core/channel.h"
#include "core/control.h"
#include "core/node.h"
#include "core/port.h"
#include "host/channel.h"
#include "host/host.h"
#include "host/ppp_begins.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <string.h>

#define HEADER_MOST (ETH_HEADER + 2 * ETH_TAG)
#define MTU_PPPOE 8 // a port's MTU is that of IP packets, in front of which PPPoE may stand

static int ethertype_served(uint16_t type)
{
	return type == ETH_TYPE_PPPOE_DISCOVERY || type == ETH_TYPE_PPPOE_SESSION || type == ETH_TYPE_IP4 ||
	       type == ETH_TYPE_IP6 || type == ETH_TYPE_ARP;
}

static int tags_possible(const struct api_frame *h)
{
	if (h->s_tag > 4094 || h->c_tag > 4094 || (h->c_tag != 0 && h->s_tag == 0))
		return 0;
	return h->s_tag == 0 ? h->tpid == 0 : h->tpid == ETH_TYPE_CTAG || h->tpid == ETH_TYPE_STAG;
}

static uint32_t put_header(uint8_t *to, const struct api_frame *h, const struct port *p)
{
	uint8_t *at = to;

	memcpy(at, h->mac, 6);
	memcpy(at + 6, p->mac.addr_bytes, 6);
	at += 12;
	if (h->s_tag != 0) {
		store16(at, h->tpid);
		store16(at + 2, h->s_tag);
		at += ETH_TAG;
	}
	if (h->c_tag != 0) {
		store16(at, ETH_TYPE_CTAG);
		store16(at + 2, h->c_tag);
		at += ETH_TAG;
	}
	store16(at, h->ethertype);
	return (uint32_t)(at + 2 - to);
}

// One worker for all frames of a subscriber, so that they keep their order.
static uint32_t worker_of(const struct api_frame *h)
{
	uint32_t hash = h->s_tag * 4096u + h->c_tag;

	for (int i = 0; i < 6; i++)
		hash = hash * 31 + h->mac[i];
	return hash % worker_count();
}

static struct {
	uint64_t frames, full, refused;
} counts;

static int possible(const struct api_frame *h, const struct port *p)
{
	uint32_t least = h->ethertype == ETH_TYPE_PPPOE_DISCOVERY || h->ethertype == ETH_TYPE_PPPOE_SESSION
				 ? PPPOE_DISCOVERY_HEADER
				 : 1;

	return p != NULL && p->role == API_ROLE_ACCESS && ethertype_served(h->ethertype) && tags_possible(h) &&
	       h->length >= least && h->length <= p->mtu + MTU_PPPOE;
}

static void down(const struct api_frame *h, const uint8_t *octets)
{
	static uint8_t frame[HEADER_MOST + API_FRAME_MOST];
	const struct port *p = port_by_name(h->port);

	if (!possible(h, p)) {
		counts.refused++;
		return;
	}
	if (h->ethertype == ETH_TYPE_PPPOE_DISCOVERY || h->ethertype == ETH_TYPE_PPPOE_SESSION)
		host_ppp_sent(p->index, h, octets);
	uint32_t header = put_header(frame, h, p);
	memcpy(frame + header, octets, h->length);
	struct rte_mbuf *m = host_packet(frame, header + h->length);
	if (m == NULL) {
		counts.full++;
		return;
	}
	packet_of(m)->port_out = p->index;
	if (control_inject(worker_of(h), "port-tx", m))
		counts.frames++;
	else
		counts.full++;
}

struct api_channel_row channel_down_row(void)
{
	return (struct api_channel_row){
		.name = "down", .frames = counts.frames, .full = counts.full, .refused = counts.refused};
}

RTE_INIT(channel_down)
{
	channel_handler_register(down);
	resume_register("port-tx");
}
