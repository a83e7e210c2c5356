// SPDX-License-Identifier: Apache-2.0
// The header of a traffic endpoint (Ethernet, VLAN tags, PPPoE) between home gateway and us: reads it, and writes it by
// the downlink rule.
#ifndef RULE_ENDPOINT_H
#define RULE_ENDPOINT_H

#include "core/port.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "wire/bytes.h"
#include "wire/eth.h"
#include "wire/ip.h"
#include "wire/pppoe.h"
#include <string.h>

#define ENDPOINT_HEADER_MAX 32u // 14 + 2 * 4 + 8 = 30

// Two tags and IP, with or without PPPoE: nearly every packet. *l3 is where IP begins, *total the length by PPPoE or
// the frame. 0: not that simple. (Masks instead of branches cost 3 ticks more: bench/README.md.)
static __rte_always_inline uint8_t endpoint_read(const uint8_t *frame, uint32_t readable, uint32_t length,
	struct endpoint_view *e, uint32_t *l3, uint32_t *total)
{
	const uint32_t l2 = ETH_HEADER + 2 * ETH_TAG;

	if (unlikely(readable < l2 + PPPOE_HEADER))
		return 0;
	uint16_t outer = load16(frame + 12), type = load16(frame + 20);
	uint32_t pppoe = type == ETH_TYPE_PPPOE_SESSION ? PPPOE_HEADER : 0;
	// The ethertype, or the PPP protocol eight bytes behind it.
	uint16_t protocol = load16(frame + 20 + pppoe);
	uint8_t v4 = protocol == (pppoe ? PPP_IP4 : ETH_TYPE_IP4), v6 = protocol == (pppoe ? PPP_IP6 : ETH_TYPE_IP6);
	uint32_t payload = load16(frame + l2 + 4); // PPPoE length, with the two bytes of the PPP protocol
	// RFC 2516 §4, §6: VER 1, TYPE 1, CODE 0, a length that the frame holds.
	uint32_t bad =
		pppoe && (load16(frame + l2) != PPPOE_VERSION_TYPE << 8 || payload < 2 || payload + l2 + 6 > length);

	if (unlikely(!eth_is_tag(outer) || !eth_is_tag(load16(frame + 16)) || bad || !(v4 | v6)))
		return 0;
	e->l2_length = (uint16_t)(l2 + pppoe);
	e->s_tag = load16(frame + 14) & 0x0fff;
	e->c_tag = load16(frame + 18) & 0x0fff;
	e->outer_tpid = outer;
	e->ethertype = type;
	e->pppoe_session = pppoe ? load16(frame + l2 + 2) : 0;
	e->encap = pppoe ? API_ENCAP_QINQ_PPPOE : API_ENCAP_QINQ;
	e->tags = 2;
	*l3 = e->l2_length;
	*total = pppoe ? payload - 2 : length - l2;
	return v4 ? 4 : 6;
}

// On a port where subscribers sign in by their first packet, IP packets and ARP of unknown senders are punted with this
// reason: to access-punt.
extern struct reason punt_first_packet;
static inline int endpoint_signs_in(uint16_t port, const struct endpoint_view *e)
{
	const struct port *p = port_get(port);

	return p != NULL && (p->sign_in & API_SIGN_IN_PACKET) && e->pppoe_session == 0;
}

// The same of any frame from a subscriber that has an IP packet in it, as access-input takes them.
uint8_t endpoint_read_any(const uint8_t *frame, uint32_t readable, uint32_t length, struct endpoint_view *e,
	uint32_t *l3, uint32_t *total);

static inline int endpoint_is_dhcp(uint16_t port)
{
	return port == 67 || port == 547;
}

// Possible control packets, examined further: DHCP, neighbour discovery. A renewing DHCP client asks by unicast.
static __rte_always_inline int endpoint_may_be_control(const uint8_t *ip, const struct ip_info *info)
{
	return (info->protocol == IP_PROTOCOL_UDP && endpoint_is_dhcp(info->destination_port)) ||
	       ip_is_discovery(ip, info);
}

// With both tags, PPPoE or not, in an order of stores without a branch. Homes of both kinds come mixed: a branch on the
// encapsulation is mispredicted every other time. The PPPoE header is written first; without PPPoE the tags overwrite
// it.
static __rte_always_inline uint32_t endpoint_put_double_tagged(
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

// Turns a frame from an endpoint back to it by port `p`. The tags stay, but the outer TPID is that of the subscriber's
// downlink rule `down` (or NULL): a device may have replaced it by 0x8100 (net_af_packet).
void endpoint_turn_back(struct rte_mbuf *m, const struct port *p, const struct rule *down);

// Any mix of tags and PPPoE.
uint32_t endpoint_put_any(uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length);

// The header of the downlink rule in front of `end`, where an IP packet of `length` bytes begins; ENDPOINT_HEADER_MAX
// bytes may be written. Returns its length.
static __rte_always_inline uint32_t endpoint_put(
	uint8_t *end, const struct rule *r, const struct port *p, uint8_t version, uint32_t length)
{
	return likely(r->down.c_tag != 0) ? endpoint_put_double_tagged(end, r, p, version, length)
					  : endpoint_put_any(end, r, p, version, length);
}

#endif
