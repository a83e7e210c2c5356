// SPDX-License-Identifier: Apache-2.0
// access-encap: puts the subscriber's Ethernet, VLAN tags and PPPoE header in front of an IP packet, in one store of 32 bytes
// that ends where the IP header begins (what it writes before the header's start is headroom).
#include "core/node.h"
#include "core/port.h"
#include "session/session.h"
#include "wire/bytes.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <string.h>

DROP_REASON(drop_room, "access-headroom", "there is no room in front of the packet for the access encapsulation")
DROP_REASON(drop_port, "access-port-gone", "the subscriber's port does not exist any more")

enum { EDGE_SCHEDULER, EDGE_FRAGMENT, EDGE_DROP, EDGE_COUNT };

#define HEADER_MAX 32 // 14 + 2 * 4 + 8 = 30

// Writes the header for `version` so that it ends at `end`; returns its length.
static inline uint32_t put_header(uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length)
{
	uint8_t header[HEADER_MAX];
	uint16_t type = version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6;
	uint32_t at = HEADER_MAX;

	if (r->down.encap == API_ENCAP_QINQ_PPPOE) {
		at -= PPPOE_HEADER;
		pppoe_put_session(header + at, r->down.pppoe_session, version == 4 ? PPP_IP4 : PPP_IP6, (uint16_t)length);
		type = ETH_TYPE_PPPOE_SESSION;
	}
	at -= 2;
	store16(header + at, type);
	if (r->down.c_tag != 0) {
		at -= ETH_TAG;
		store16(header + at, ETH_TYPE_CTAG);
		store16(header + at + 2, r->down.c_tag);
	}
	if (r->down.s_tag != 0) {
		at -= ETH_TAG;
		store16(header + at, r->down.tpid);
		store16(header + at + 2, r->down.s_tag);
	}
	at -= 12;
	memcpy(header + at, r->down.mac, 6);
	memcpy(header + at + 6, p->mac.addr_bytes, 6);
	memcpy(end - HEADER_MAX, header, HEADER_MAX);
	return HEADER_MAX - at;
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
	uint32_t length = put_header(rte_pktmbuf_mtod(m, uint8_t *), r, p, pkt->ip_version, pkt->length);
	rte_pktmbuf_prepend(m, (uint16_t)length);
	pkt->l3 = (uint16_t)length;
	pkt->l4 += (uint16_t)length;
	pkt->port_out = r->down.port;
	v->pipe = r->down.pipe;
	return EDGE_SCHEDULER;
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
			[EDGE_SCHEDULER] = "scheduler",
			[EDGE_FRAGMENT] = "fragment-access",
			[EDGE_DROP] = "drop",
		},
};
NODE_REGISTER(access_encap_node)
