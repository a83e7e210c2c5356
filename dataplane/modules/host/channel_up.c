// SPDX-License-Identifier: Apache-2.0
// What subscribers say to control protocols goes up the channel (core/channel.h), with where they are attached.
#include "core/channel.h"
#include "core/control.h"
#include "core/port.h"
#include "host/host.h"
#include "rule/rule.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <string.h>

DROP_REASON(drop_full, "channel-full", "the control plane reads subscribers' frames more slowly than they come")
DROP_REASON(drop_long, "channel-too-long", "a subscriber's frame for the control plane is longer than it takes")

// Octets behind the EtherType: what PPPoE's own length says, else all. IP packets were trimmed by access-input.
static uint32_t octets_of(const struct rte_mbuf *m, const struct endpoint_view *e, uint32_t offset)
{
	uint32_t all = rte_pktmbuf_pkt_len(m) - offset;
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, offset);

	if (e->ethertype != ETH_TYPE_PPPOE_DISCOVERY && e->ethertype != ETH_TYPE_PPPOE_SESSION)
		return all;
	return RTE_MIN(all, (uint32_t)PPPOE_DISCOVERY_HEADER + load16(p + 4)); // checked when it was punted
}

static uint64_t seid_of(uint16_t port, const struct endpoint_view *e, const uint8_t *mac)
{
	const struct rule *r = session_endpoint_rule(port, e, mac);
	char name[API_NAME];
	uint64_t seid;

	return r != NULL && session_identity(r->session, name, &seid) ? seid : 0;
}

static void up(struct rte_mbuf *m, uint8_t reason)
{
	const struct port *p = port_get(packet_of(m)->port_in);
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t offset = ETH_HEADER + e->tags * ETH_TAG;
	struct api_frame h = {.reason = reason,
		.ethertype = e->ethertype,
		.tpid = e->tags != 0 ? e->outer_tpid : 0,
		.s_tag = e->s_tag,
		.c_tag = e->c_tag};
	enum channel_result result;

	memcpy(h.port, p->name, API_NAME);
	memcpy(h.mac, frame + 6, 6);
	h.length = octets_of(m, e, offset);
	h.seid = seid_of(p->index, e, h.mac);
	if (h.length > API_FRAME_MOST) {
		control_drop(m, &drop_long);
		return;
	}
	result = channel_put(&h, m, offset);
	if (result == CHANNEL_FULL)
		control_drop(m, &drop_full);
	else
		rte_pktmbuf_free(m); // taken, or nobody's: it counts as punted
}

static void discovery(struct rte_mbuf *m)
{
	up(m, API_FRAME_PPPOE_DISCOVERY);
}

static void ppp(struct rte_mbuf *m)
{
	up(m, API_FRAME_PPP_CONTROL);
}

static void dhcp(struct rte_mbuf *m)
{
	up(m, API_FRAME_DHCP);
}

static void dhcp6(struct rte_mbuf *m)
{
	up(m, API_FRAME_DHCP6);
}

static void router_solicitation(struct rte_mbuf *m)
{
	up(m, API_FRAME_ROUTER_SOLICITATION);
}

static void first_packet(struct rte_mbuf *m)
{
	up(m, API_FRAME_FIRST_PACKET);
}

static int start(const struct api_engine *engine)
{
	punt_access_handler_register(&punt_pppoe_discovery, discovery);
	punt_access_handler_register(&punt_ppp_control, ppp);
	punt_access_handler_register(&punt_dhcp, dhcp);
	punt_access_handler_register(&punt_dhcp6, dhcp6);
	punt_access_handler_register(&punt_router_solicitation, router_solicitation);
	punt_access_handler_register(&punt_first_packet, first_packet);
	return 0;
}

RTE_INIT(channel_up)
{
	module_register("channel-up", start);
}
