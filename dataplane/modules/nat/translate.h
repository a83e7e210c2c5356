// SPDX-License-Identifier: Apache-2.0
// What of a packet is translated, and how: addresses, ports, checksums (RFC 1624). Pure.
#ifndef NAT_TRANSLATE_H
#define NAT_TRANSLATE_H

#include <stdint.h>

enum nat_kind {
	NAT_FLOW, // TCP, UDP, an ICMP query or its answer: has a port
	NAT_ERROR, // ICMP error about such a packet
	NAT_LATER, // a later fragment, without ports
	NAT_OTHER, // another protocol or ICMP message
	NAT_BROKEN, // ends too soon
};

struct nat_packet {
	uint8_t *ip, *l4; // IPv4; transport header
	uint8_t *inner, *inner_l4; // NAT_ERROR: the packet that it is about
	uint32_t inner_room; // bytes from inner on
	uint32_t address; // to be translated, as on the wire, as the port; NAT_ERROR: of the inner packet
	uint16_t port;
	uint8_t protocol; // of the mapping
	uint8_t tcp_flags;
	uint8_t data; // a TCP segment with payload
	uint8_t more; // a first fragment
};

// `out`: from a subscriber, whose source is translated; else the destination is. `room`: bytes that can be read and
// written. Headers up to the transport header's ports were checked.
enum nat_kind nat_read(struct nat_packet *p, uint8_t *ip, uint32_t room, int out);
// Puts an address and a port in the place of those that were read. A NAT_ERROR's own address: only with `whole`.
void nat_write(const struct nat_packet *p, enum nat_kind kind, int out, uint32_t address, uint16_t port, int whole);
// The address alone: of a later fragment.
void nat_write_address(uint8_t *ip, int out, uint32_t address);

#endif
