// SPDX-License-Identifier: Apache-2.0
// Translation of a packet: addresses, ports, checksums (RFC 1624). Pure.
#ifndef NAT_TRANSLATE_H
#define NAT_TRANSLATE_H

#include "wire/checksum.h"
#include "wire/ip.h"
#include "wire/unguarded.h"
#include <string.h>

enum nat_kind {
	NAT_FLOW, // TCP, UDP, an ICMP query or its answer: has a port
	NAT_ERROR, // ICMP error about such a packet
	NAT_OTHER, // another protocol or ICMP message, or an error about such: has an address only
	NAT_BROKEN, // ends too soon
	NAT_LATER, // a later fragment, without ports
};

struct nat_packet {
	uint8_t *ip, *l4; // IPv4; transport header
	uint8_t *inner, *inner_l4; // of an ICMP error, else NULL: the packet that it is about
	uint32_t inner_room; // bytes from inner on
	uint32_t address; // to be translated, as on the wire, as the port; of the inner packet, if there is one
	uint16_t port;
	uint8_t protocol; // of the mapping
	uint8_t tcp_flags;
	uint8_t data; // a TCP segment with payload
	uint8_t later; // a later fragment: l4 is its first one's data
};

// `out`: from a subscriber, source translated; else the destination. `room`: readable and writable bytes; headers were
// checked up to the ports. `head`: follow_head() of a later fragment, whose port is translated; NULL: unknown.
enum nat_kind nat_read(struct nat_packet *p, uint8_t *ip, uint32_t room, int out, uint8_t *head);
// Replaces the address, and the port if one was read. An error's own address: only with `whole`.
void nat_write(const struct nat_packet *p, enum nat_kind kind, int out, uint32_t address, uint16_t port, int whole);

// Packets that were checked (what the functions above are made of).

// Where the port is that is translated: of a packet's source or destination.
static inline uint8_t *nat_port_at(uint8_t protocol, uint8_t *l4, int source)
{
	return protocol == IP_PROTOCOL_ICMP ? l4 + 4 : source ? l4 : l4 + 2;
}

static inline uint8_t *nat_address_at(uint8_t *ip, int source)
{
	return ip + (source ? 12 : 16);
}

// Reads the rest of p from a checked packet; ip, l4 and protocol are set. `length`: from l4 on.
static inline void nat_read_flow(struct nat_packet *p, uint32_t length, int out)
{
	if (p->protocol == IP_PROTOCOL_TCP) {
		p->tcp_flags = p->l4[13];
		p->data = length > (p->l4[12] >> 4) * 4u;
	}
	COPY_FIXED(&p->address, nat_address_at(p->ip, out), 4);
	COPY_FIXED(&p->port, nat_port_at(p->protocol, p->l4, out), 2);
}

// The transport's checksum field, or NULL: there is none, or it was cut off.
static inline uint8_t *nat_checksum_at(uint8_t protocol, uint8_t *l4, uint32_t room)
{
	uint32_t at = protocol == IP_PROTOCOL_TCP ? 16 : protocol == IP_PROTOCOL_UDP ? 6 : 2;

	if (room < at + 2 || (protocol == IP_PROTOCOL_UDP && load16(l4 + 6) == 0)) // RFC 768: without checksum
		return NULL;
	return l4 + at;
}

static inline void nat_put_address(uint8_t *ip, int source, uint32_t address, uint8_t *sum)
{
	uint32_t old;

	memcpy(&old, nat_address_at(ip, source), 4);
	memcpy(nat_address_at(ip, source), &address, 4);
	checksum_update32(ip + 10, old, address);
	if (sum != NULL)
		checksum_update32(sum, old, address);
}

static inline void nat_put(
	uint8_t *ip, uint8_t *l4, uint32_t room, uint8_t protocol, int source, uint32_t address, uint16_t port)
{
	uint8_t *sum = nat_checksum_at(protocol, l4, room), *at = nat_port_at(protocol, l4, source);
	uint16_t old;

	nat_put_address(ip, source, address, protocol == IP_PROTOCOL_ICMP ? NULL : sum);
	memcpy(&old, at, 2);
	memcpy(at, &port, 2);
	if (sum == NULL)
		return;
	checksum_update16(sum, old, port);
	if (protocol == IP_PROTOCOL_UDP && load16(sum) == 0)
		store16(sum, 0xffff); // RFC 768: 0 says that there is none
}

#endif
