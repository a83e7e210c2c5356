// SPDX-License-Identifier: Apache-2.0
// Ethernet II with up to two VLAN tags (IEEE 802.3, 802.1Q, 802.1ad).
//
// TPIDs 0x8100, 0x88a8 and 0x9100 are equal in either place: AF_PACKET presents any outer tag as 0x8100. A priority tag
// (VLAN id 0) is a tag like any other.
#ifndef WIRE_ETH_H
#define WIRE_ETH_H

#include "wire/bytes.h"

#define ETH_HEADER 14
#define ETH_TAG 4
#define ETH_TYPE_IP4 0x0800
#define ETH_TYPE_ARP 0x0806
#define ETH_TYPE_IP6 0x86dd
#define ETH_TYPE_PPPOE_DISCOVERY 0x8863
#define ETH_TYPE_PPPOE_SESSION 0x8864
#define ETH_TYPE_CTAG 0x8100
#define ETH_TYPE_STAG 0x88a8
#define ETH_TYPE_QINQ_OLD 0x9100

enum eth_status {
	ETH_OK,
	ETH_SHORT, // ends within the header or a tag
	ETH_TAGS, // more than two tags
};

struct eth_info {
	uint16_t length; // bytes of Ethernet header and tags
	uint16_t ethertype; // innermost, host order; below 0x0600 it is an 802.3 length
	uint8_t tags; // 0..2
	uint16_t vlan[2]; // ids of outer and inner tag, 0 when absent
	uint16_t tpid[2]; // host order, 0 when absent
};

static inline int eth_is_tag(uint16_t ethertype)
{
	return ethertype == ETH_TYPE_CTAG || ethertype == ETH_TYPE_STAG || ethertype == ETH_TYPE_QINQ_OLD;
}

// Reads the header of the frame at p, of which `available` bytes may be read. *out is valid only after ETH_OK.
static inline enum eth_status eth_parse(const uint8_t *p, uint32_t available, struct eth_info *out)
{
	uint16_t type;
	uint32_t at = ETH_HEADER;

	if (__builtin_expect(available < ETH_HEADER, 0))
		return ETH_SHORT;
	type = load16(p + 12);
	out->tags = 0;
	out->vlan[0] = out->vlan[1] = 0;
	out->tpid[0] = out->tpid[1] = 0;
	while (eth_is_tag(type)) {
		if (__builtin_expect(out->tags == 2, 0))
			return ETH_TAGS;
		if (__builtin_expect(available < at + ETH_TAG, 0))
			return ETH_SHORT;
		out->tpid[out->tags] = type;
		out->vlan[out->tags] = load16(p + at) & 0x0fff; // priority and DEI bits are not part of the id
		out->tags++;
		type = load16(p + at + 2);
		at += ETH_TAG;
	}
	out->length = at;
	out->ethertype = type;
	return ETH_OK;
}

#endif
