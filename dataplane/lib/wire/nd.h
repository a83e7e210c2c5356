// SPDX-License-Identifier: Apache-2.0
// Neighbour Discovery for IPv6 (RFC 4861): neighbour solicitation and advertisement as whole IPv6 packets.
#ifndef WIRE_ND_H
#define WIRE_ND_H

#include "wire/bytes.h"

#define ND_SOLICIT 135
#define ND_ADVERT 136
#define ND_LENGTH 72 // IPv6 header, message, and one link-layer address option: the most that nd_put_* writes
#define ND_LENGTH_NO_MAC 64 // without the option
#define ND_MAX_OPTIONS 16

#define ND_ROUTER 0x80u
#define ND_SOLICITED 0x40u
#define ND_OVERRIDE 0x20u

enum nd_status {
	ND_OK,
	ND_SHORT, // packet ends early, or is not in one readable piece
	ND_TYPE, // neither solicitation nor advertisement, or behind extension headers
	ND_HOP_LIMIT, // not 255: it came through a router (§7.1)
	ND_CHECKSUM,
	ND_ADDRESS, // target multicast, or source and destination that the message may not have (§7.1.1, §7.1.2)
	ND_OPTION, // an option of length 0 or past the packet, or more than ND_MAX_OPTIONS
};

struct nd_info {
	uint8_t type; // ND_SOLICIT or ND_ADVERT
	uint8_t flags; // of an advertisement: ND_ROUTER, ...
	uint8_t probe; // solicitation from ::, duplicate address detection
	uint32_t length; // of the packet
	const uint8_t *source, *destination, *target; // 16 bytes each in the packet
	const uint8_t *mac; // source (solicitation) or target (advertisement) link-layer address option, or NULL
};

// Reads the IPv6 packet at p, of which `available` bytes may be read; the frame holds `total` from p on.
enum nd_status nd_parse(const uint8_t *p, uint32_t available, uint32_t total, struct nd_info *out);

// Writes a neighbour solicitation for `target` and returns its length (ND_LENGTH). destination NULL: the target's
// solicited-node group. mac: ours.
unsigned nd_put_ns(
	uint8_t *to, const uint8_t *source, const uint8_t *destination, const uint8_t *target, const uint8_t *mac);
// Writes a neighbour advertisement and returns its length (ND_LENGTH). flags: ND_ROUTER, ...
unsigned nd_put_na(uint8_t *to, const uint8_t *source, const uint8_t *destination, const uint8_t *target,
	const uint8_t *mac, uint8_t flags);

// ff02::1:ffXX:XXXX for an address (RFC 4291 §2.7.1), 16 bytes.
void nd_solicited_node(uint8_t *to, const uint8_t *address);
// 33:33:... for an IPv6 group (RFC 2464 §7), 6 bytes.
void nd_group_mac(uint8_t *to, const uint8_t *group);

#endif
