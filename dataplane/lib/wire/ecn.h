// SPDX-License-Identifier: Apache-2.0
// Explicit congestion notification (RFC 3168 §5) in the IP header and at tunnel ends: normal mode of RFC 6040.
#ifndef WIRE_ECN_H
#define WIRE_ECN_H

#include "wire/checksum.h"

enum ecn { ECN_NOT_ECT, ECN_ECT1, ECN_ECT0, ECN_CE };

// Of the header at ip, version 4 or 6. RFC 6040 §4.1: a tunnel's outer header copies the inner one's.
static inline uint8_t ip_ecn(uint8_t version, const uint8_t *ip)
{
	return ip[1] >> (version == 4 ? 0 : 4) & 3;
}

// DSCP << 2 | ECN.
static inline uint8_t ip_traffic_class(uint8_t version, const uint8_t *ip)
{
	return version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

// Writes the traffic class (DSCP << 2 | ECN), and keeps the IPv4 checksum right or as wrong as it was.
// RFC 2597 §6: the drop precedence of an assured forwarding DSCP (AFx1, AFx2, AFx3), from 0; 0 of any other.
static inline uint8_t dscp_precedence(uint8_t dscp)
{
	uint8_t class = dscp >> 3, precedence = dscp >> 1 & 3;

	return class >= 1 && class <= 4 && !(dscp & 1) && precedence != 0 ? (uint8_t)(precedence - 1) : 0;
}

static inline void ip_traffic_class_set(uint8_t version, uint8_t *ip, uint8_t class)
{
	uint16_t before, after;

	if (version != 4) {
		ip[0] = (uint8_t)(0x60 | class >> 4);
		ip[1] = (uint8_t)(class << 4 | (ip[1] & 0x0f));
		return;
	}
	memcpy(&before, ip, sizeof(before));
	ip[1] = class;
	memcpy(&after, ip, sizeof(after));
	checksum_update16(ip + 10, before, after);
}

// Writes a DSCP (RFC 2474) into the header at `ip`; ECN stays (RFC 3168 §5).
static inline void ip_dscp_set(uint8_t version, uint8_t *ip, uint8_t dscp)
{
	ip_traffic_class_set(version, ip, (uint8_t)(dscp << 2 | ip_ecn(version, ip)));
}

// 1 for the few pairs of RFC 6040 §4.2 by which a packet that leaves its tunnel is changed or dropped.
static inline int ecn_acts(uint8_t outer, uint8_t inner)
{
	const uint32_t pairs = 1u << (ECN_CE << 2 | ECN_NOT_ECT) | 1u << (ECN_CE << 2 | ECN_ECT1) |
			       1u << (ECN_CE << 2 | ECN_ECT0) | 1u << (ECN_ECT1 << 2 | ECN_ECT0);

	return pairs >> (outer << 2 | inner) & 1;
}

// The packet at ip leaves a tunnel whose header had `outer`; ecn_acts() returned 1. Returns 0 when it must be dropped.
int ecn_leave_tunnel(uint8_t outer, uint8_t version, uint8_t *ip);

#endif
