// SPDX-License-Identifier: Apache-2.0
// What makes a packet an example for plain_take().
#include "gtpu/plain.h"
#include "route/route.h"
#include "wire/eth.h"
#include <string.h>

// Which bits of a header decide: Ethernet destination and type (and VLAN id), of IPv4 the version, header length, fragment
// offset and "more fragments", protocol and destination, of UDP the destination port, of GTP-U version, protocol type and message.
static void set_mask(uint8_t *mask, uint16_t l3)
{
	memset(mask, 0, PLAIN_BYTES);
	memset(mask, 0xff, 6);
	memset(mask + 12, 0xff, l3 - 12u);
	if (l3 > ETH_HEADER)
		mask[14] = 0x0f; // priority and DEI bits are not part of the id
	mask[l3] = 0xff;
	mask[l3 + 6] = 0x3f; // not "don't fragment"
	mask[l3 + 7] = 0xff;
	mask[l3 + 9] = 0xff;
	memset(mask + l3 + 16, 0xff, 4);
	memset(mask + l3 + 22, 0xff, 2);
	mask[l3 + 28] = 0xf0; // §5.1: the rest of the flags is gtpu_parse()'s
	mask[l3 + 29] = 0xff;
}

int plain_learn(struct plain *p, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *ip = frame + pkt->l3;

	p->looked++;
	// A group's MAC address is for core-input to look at (RFC 1122 §3.3.6).
	if (pkt->ip_version != 4 || (frame[0] & 1) || (pkt->l3 != ETH_HEADER && pkt->l3 != ETH_HEADER + ETH_TAG) ||
		rte_pktmbuf_data_len(m) < PLAIN_LENGTH_MIN)
		return 0;
	if (ip[0] != 0x45 || ip[9] != IP_PROTOCOL_UDP || (load16(ip + 6) & 0x3fff) != 0 ||
		load16(ip + 22) != GTPU_PORT || (ip[28] & 0xf0) != 0x30 || ip[29] != GTPU_GPDU)
		return 0;
	p->known = 0;
	// Row G20: an endpoint serves only the interface that has its address.
	p->local = ip_is_local_on(4, ip + 16, pkt->interface) ? path_local_id(4, ip + 16) : PATH_LOCAL_NONE;
	if (p->local == PATH_LOCAL_NONE)
		return 0;
	p->instance = instance_of_local(p->local);
	p->interface = pkt->interface;
	p->port_in = pkt->port_in;
	p->l3 = pkt->l3;
	set_mask((uint8_t *)p->mask, p->l3);
	memcpy(p->want, frame, PLAIN_BYTES);
	p->known = 1;
	return 1;
}
