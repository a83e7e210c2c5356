// SPDX-License-Identifier: Apache-2.0
#include "rule/endpoint.h"
#include "core/node.h"

// Shared by the nodes that punt, so this is not static.
struct reason punt_first_packet = {.name = "first-packet",
	.text = "a packet of nobody who is known, on a port where the first packet signs in",
	.kind = REASON_PUNT,
	.limited = 1};

RTE_INIT(endpoint_reasons)
{
	reason_register(&punt_first_packet);
}

uint8_t endpoint_read_any(const uint8_t *frame, uint32_t readable, uint32_t length, struct endpoint_view *e,
	uint32_t *l3, uint32_t *total)
{
	struct pppoe_info pppoe = {0};
	struct eth_info eth;

	if (eth_parse(frame, readable, &eth) != ETH_OK)
		return 0;
	*e = (struct endpoint_view){.s_tag = eth.vlan[0], .c_tag = eth.vlan[1]};
	*l3 = eth.length;
	*total = length - eth.length;
	if (eth.ethertype != ETH_TYPE_PPPOE_SESSION)
		return eth.ethertype == ETH_TYPE_IP4 ? 4 : eth.ethertype == ETH_TYPE_IP6 ? 6 : 0;
	if (pppoe_session_parse(frame + eth.length, readable - eth.length, length - eth.length, &pppoe) != PPPOE_OK)
		return 0;
	e->pppoe_session = pppoe.session;
	*l3 += PPPOE_HEADER;
	*total = pppoe.payload;
	return pppoe.protocol == PPP_IP4 ? 4 : pppoe.protocol == PPP_IP6 ? 6 : 0;
}

void endpoint_turn_back(struct rte_mbuf *m, const struct port *p, const struct rule *down)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	if (down != NULL && endpoint_view_of(m)->tags > 0)
		store16(frame + ETH_HEADER - 2, down->down.tpid);
	memmove(frame, frame + 6, 6);
	memcpy(frame + 6, &p->mac, 6);
	packet_of(m)->port_out = p->index;
}

uint32_t endpoint_put_any(uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length)
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
