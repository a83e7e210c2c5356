// SPDX-License-Identifier: Apache-2.0
// TCP (RFC 9293 §3.1): the Maximum Segment Size of a SYN.
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stdint.h>

#define TCP_HEADER 20
#define TCP_SYN 2u // of octet 13
// Subtracted from an MTU, options not counted (RFC 6691 §2).
#define TCP_OVER_IP4 40u
#define TCP_OVER_IP6 60u

#define TCP_MSS_LOWERED 1u
#define TCP_MSS_MALFORMED 2u // behind what was lowered, if anything was, options cannot be read

static inline int tcp_is_syn(const uint8_t *tcp)
{
	return (tcp[13] & TCP_SYN) != 0;
}

// Lowers the SYN's MSS option to `most` and updates the checksum (RFC 1624). A SYN without one is unchanged: its
// receiver assumes 536 or 1220 (RFC 9293 §3.7.1), which pass everywhere. `readable`: bytes from `tcp` on, at least
// TCP_HEADER. Returns TCP_MSS_*.
unsigned tcp_clamp_mss(uint8_t *tcp, uint32_t readable, uint16_t most);

#endif
