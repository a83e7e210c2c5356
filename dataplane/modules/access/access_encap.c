// SPDX-License-Identifier: Apache-2.0
// access-encap: puts the subscriber's Ethernet header, VLAN tags and PPPoE header in front of an IP packet.
#include "core/node.h"
#include "core/port.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "wire/bytes.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <string.h>

DROP_REASON(drop_room, "access-headroom", "there is no room in front of the packet for the access encapsulation")
DROP_REASON(drop_port, "access-port-gone", "the subscriber's port does not exist any more")

enum { EDGE_OUTPUT, EDGE_FRAGMENT, EDGE_DROP, EDGE_COUNT };

#define HEADER_MAX 32 // 14 + 2 * 4 + 8 = 30

// With both tags, whether PPPoE or not, in an order of stores that needs no branch: homes of both kinds come mixed, and a
// branch on the encapsulation is mispredicted every other time. The PPPoE header is written first and overwritten by the
// tags when there is none.
static inline uint32_t put_double_tagged(
	uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length)
{
	uint32_t pppoe = r->down.encap == API_ENCAP_QINQ_PPPOE ? PPPOE_HEADER : 0;
	uint16_t ppp = version == 4 ? PPP_IP4 : PPP_IP6, ip = version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6;
	uint16_t type = pppoe ? ETH_TYPE_PPPOE_SESSION : ip;
	uint8_t *at = end - ETH_HEADER - 2 * ETH_TAG - pppoe;

	pppoe_put_session(end - PPPOE_HEADER, r->down.pppoe_session, ppp, (uint16_t)length);
	memcpy(at, r->down.mac, 6);
	memcpy(at + 6, p->mac.addr_bytes, 6);
	store16(at + 12, r->down.tpid);
	store16(at + 14, r->down.s_tag);
	store16(at + 16, ETH_TYPE_CTAG);
	store16(at + 18, r->down.c_tag);
	store16(at + 20, type);
	return ETH_HEADER + 2 * ETH_TAG + pppoe;
}

// Any mix of tags and PPPoE.
static uint32_t put_any(uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length)
{
	uint16_t type = version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6;
	uint8_t *at = end;

	if (r->down.encap == API_ENCAP_QINQ_PPPOE) {
		at -= PPPOE_HEADER;
		pppoe_put_session(at, r->down.pppoe_session, version == 4 ? PPP_IP4 : PPP_IP6, (uint16_t)length);
		type = ETH_TYPE_PPPOE_SESSION;
	}
	at -= 2;
	store16(at, type);
	if (r->down.c_tag != 0) {
		at -= ETH_TAG;
		store16(at, ETH_TYPE_CTAG);
		store16(at + 2, r->down.c_tag);
	}
	if (r->down.s_tag != 0) {
		at -= ETH_TAG;
		store16(at, r->down.tpid);
		store16(at + 2, r->down.s_tag);
	}
	at -= 12;
	memcpy(at, r->down.mac, 6);
	memcpy(at + 6, p->mac.addr_bytes, 6);
	return (uint32_t)(end - at);
}

static rte_edge_t access_encap_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	struct session_view *v = session_view_of(m);
	const struct rule *r = v->rule;
	const struct port *p = port_get(r->down.port);

	if (unlikely(pkt->length > r->mru))
		return EDGE_FRAGMENT;
	if (unlikely(p == NULL))
		return packet_leave(m, &drop_port, EDGE_DROP);
	if (unlikely(rte_pktmbuf_headroom(m) < HEADER_MAX))
		return packet_leave(m, &drop_room, EDGE_DROP);
	uint8_t *end = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t length = likely(r->down.c_tag != 0) ? put_double_tagged(end, r, p, pkt->ip_version, pkt->length)
						     : put_any(end, r, p, pkt->ip_version, pkt->length);
	rte_pktmbuf_prepend(m, (uint16_t)length);
	pkt->l3 = (uint16_t)length;
	pkt->l4 += (uint16_t)length;
	pkt->port_out = r->down.port;
	v->pipe = r->down.pipe;
	return EDGE_OUTPUT;
}

static uint16_t access_encap(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, access_encap_packet);
}

static struct rte_node_register access_encap_node = {
	.name = "access-encap",
	.process = access_encap,
	.nb_edges = EDGE_COUNT,
	.next_nodes =
		{
			[EDGE_OUTPUT] = "@output-access",
			[EDGE_FRAGMENT] = "fragment-access",
			[EDGE_DROP] = "drop",
		},
};
NODE_REGISTER(access_encap_node)
NODE_ARC("output-access", "port-tx")
