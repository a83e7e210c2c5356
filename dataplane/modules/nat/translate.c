// SPDX-License-Identifier: Apache-2.0
#include "nat/translate.h"

#define ICMP_HEADER 8

// Queries that a subscriber may ask, and their answers (RFC 5508 §3): echo, timestamp.
static int is_query(uint8_t type, int out)
{
	return out ? type == 8 || type == 13 : type == 0 || type == 14;
}

static int is_error(uint8_t type)
{
	return type == 3 || type == 11 || type == 12;
}

// As far as nat_put() goes.
static int has_port(uint8_t protocol)
{
	return protocol == IP_PROTOCOL_TCP || protocol == IP_PROTOCOL_UDP || protocol == IP_PROTOCOL_ICMP;
}

static uint32_t header_of(const uint8_t *ip)
{
	return (ip[0] & 15) * 4u;
}

// The packet inside an error went the other way: its other end is translated.
static enum nat_kind read_error(struct nat_packet *p, uint32_t room, int out)
{
	uint8_t *inner = p->l4 + ICMP_HEADER;

	if (room < ICMP_HEADER + IP4_HEADER)
		return NAT_BROKEN;
	room -= ICMP_HEADER;
	uint32_t header = header_of(inner);
	// RFC 792: eight bytes of its transport header at least.
	if (inner[0] >> 4 != 4 || header < IP4_HEADER || room < header + 8 || (load16(inner + 6) & 0x1fff) != 0)
		return NAT_BROKEN;
	p->inner = inner;
	p->inner_l4 = inner + header;
	p->inner_room = room;
	p->protocol = inner[9];
	memcpy(&p->address, nat_address_at(inner, !out), 4);
	if (p->protocol == IP_PROTOCOL_ICMP ? !is_query(p->inner_l4[0], !out)
					    : p->protocol != IP_PROTOCOL_TCP && p->protocol != IP_PROTOCOL_UDP)
		return NAT_OTHER;
	memcpy(&p->port, nat_port_at(p->protocol, p->inner_l4, !out), 2);
	return NAT_ERROR;
}

static enum nat_kind read_flow(struct nat_packet *p, uint32_t room, uint32_t length, int out)
{
	if (room < (p->protocol == IP_PROTOCOL_TCP ? 20u : 8u))
		return NAT_BROKEN;
	nat_read_flow(p, length, out);
	return NAT_FLOW;
}

// Only an ICMP error's first fragment quotes the packet.
static enum nat_kind read_later(struct nat_packet *p, uint8_t *head, int out)
{
	p->l4 = head;
	p->later = 1;
	memcpy(&p->address, nat_address_at(p->ip, out), 4);
	if (p->protocol == IP_PROTOCOL_ICMP ? !is_query(head[0], out)
					    : p->protocol != IP_PROTOCOL_TCP && p->protocol != IP_PROTOCOL_UDP)
		return NAT_OTHER;
	memcpy(&p->port, nat_port_at(p->protocol, head, out), 2);
	return NAT_FLOW;
}

enum nat_kind nat_read(struct nat_packet *p, uint8_t *ip, uint32_t room, int out, uint8_t *head)
{
	uint32_t header = header_of(ip), length = load16(ip + 2);
	uint16_t fragment = load16(ip + 6);

	*p = (struct nat_packet){.ip = ip, .l4 = ip + header, .protocol = ip[9]};
	if (fragment & 0x1fff)
		return head == NULL ? NAT_LATER : read_later(p, head, out);
	memcpy(&p->address, nat_address_at(ip, out), 4);
	room = room < length ? room : length;
	if (room < header)
		return NAT_BROKEN;
	room -= header;
	if (p->protocol == IP_PROTOCOL_TCP || p->protocol == IP_PROTOCOL_UDP)
		return read_flow(p, room, length - header, out);
	if (p->protocol != IP_PROTOCOL_ICMP)
		return NAT_OTHER;
	if (room < ICMP_HEADER)
		return NAT_BROKEN;
	if (is_error(p->l4[0]))
		return read_error(p, room, out);
	return is_query(p->l4[0], out) ? read_flow(p, room, length - header, out) : NAT_OTHER;
}

// RFC 5508 §4.2: restores the quoted packet as its sender knows it; the error's checksum covers it.
static void put_error(const struct nat_packet *p, int out, uint32_t address, uint16_t port)
{
	uint32_t header = (uint32_t)(p->inner_l4 - p->inner), n = header + 20;

	n = (n < p->inner_room ? n : p->inner_room) & ~1u;
	uint16_t before = checksum_fold(checksum_add(0, p->inner, n));
	if (has_port(p->protocol))
		nat_put(p->inner, p->inner_l4, p->inner_room - header, p->protocol, !out, address, port);
	else
		nat_put_address(p->inner, !out, address, NULL);
	checksum_update16(p->l4 + 2, before, checksum_fold(checksum_add(0, p->inner, n)));
}

void nat_write(const struct nat_packet *p, enum nat_kind kind, int out, uint32_t address, uint16_t port, int whole)
{
	if (kind == NAT_FLOW) {
		// The checksum is in the first fragment, and covers all of them.
		nat_put(p->ip, p->l4, p->later ? 0 : UINT32_MAX, p->protocol, out, address, port);
		return;
	}
	if (p->inner != NULL)
		put_error(p, out, address, port);
	if (whole)
		nat_put_address(p->ip, out, address, NULL);
}
