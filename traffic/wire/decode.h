// SPDX-License-Identifier: Apache-2.0
// An independent decoder for received frames: walks every header and verifies every length and checksum. Shares no code
// with the gateway or with stack.c. Pure; accepts any bytes.
#ifndef TRAFFIC_DECODE_H
#define TRAFFIC_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_LAYERS 32 // headers of a frame; more are a fault
#define DECODE_TAGS 4 // VLAN tags of a frame; more are a fault

struct decoded {
	bool control; // ARP, ND, MLD, IGMP, LLDP, slow protocols, PPPoE discovery and PPP's own, GTP-U echo and other
		// messages without a user's packet: not a test packet
	uint16_t inner_l3; // offset of the innermost IP header; 0 none
	uint16_t end; // where the innermost packet ends; bytes behind it are padding
	uint8_t layers;
	const char *fault; // static text ("ipv4: header checksum"), or NULL when everything holds
	uint16_t at; // offset of the header with the fault
};

// Decodes `length` bytes of a frame without FCS. A packet must fill its enclosing one to the last byte; padding may
// only follow the outermost packet of a 60-byte frame, the shortest on a wire (IEEE 802.3 §3.2.7). Data behind an
// unknown EtherType or IP protocol, a fragment's header or an ESP header is not examined. Returns 0 when nothing is
// wrong, else -1; *d is always filled.
int decode_frame(const uint8_t *frame, uint16_t length, struct decoded *d);

#endif
