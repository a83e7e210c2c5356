// SPDX-License-Identifier: Apache-2.0
// access-encap: puts the subscriber's Ethernet header, VLAN tags and PPPoE header in front of an IP packet.
#include "core/node.h"
#include "forward/subscriber.h"

DROP_REASON(drop_room, "access-headroom",
	"there is no room in front of the packet for the access encapsulation. Report it with show drop -j")
DROP_REASON(drop_port, "access-port-gone",
	"the subscriber's port does not exist any more. Normal for an instant after config apply; for longer report it")

enum { EDGE_OUTPUT, EDGE_FRAGMENT, EDGE_DROP, EDGE_COUNT };

static rte_edge_t access_encap_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	const struct rule *r = session_view_of(m)->rule;
	const struct port *p = port_get(r->down.port);
	enum subscriber_result result = subscriber_takes(r, p, pkt->length, rte_pktmbuf_headroom(m));

	if (unlikely(result == SUBSCRIBER_TOO_LONG))
		return EDGE_FRAGMENT;
	if (unlikely(result != SUBSCRIBER_TAKES))
		return packet_leave(m, result == SUBSCRIBER_NO_PORT ? &drop_port : &drop_room, EDGE_DROP);
	uint32_t length = endpoint_put(rte_pktmbuf_mtod(m, uint8_t *), r, p, pkt->ip_version, pkt->length);
	rte_pktmbuf_prepend(m, (uint16_t)length);
	pkt->l3 = (uint16_t)length;
	pkt->l4 += (uint16_t)length;
	pkt->port_out = r->down.port;
	session_view_of(m)->pipe = r->down.pipe;
	return EDGE_OUTPUT;
}

NODE_EACH(access_encap, access_encap_packet)

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
