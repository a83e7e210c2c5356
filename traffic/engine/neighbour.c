// SPDX-License-Identifier: Apache-2.0
// ARP and neighbour discovery of the tester's ports: only as much as a gateway needs to find the tester.
#include "traffic/engine/neighbour.h"
#include <string.h>

#define ETHERNET_BYTES 14
#define FRAME_SHORTEST 60 // without FCS
#define TAGS_MAX 4
#define ARP_BYTES 28
#define IPV6_BYTES 40
#define SOLICITATION_BYTES 24 // without options; an advertisement has the same
#define LINK_OPTION_BYTES 8

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static bool is_tag(uint16_t type)
{
	return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

static bool is_ours(const struct job_port *p, uint8_t version, const uint8_t *address)
{
	for (uint32_t i = 0; i < p->addresses && i < JOB_ADDRESSES; i++)
		if (p->address[i].version == version &&
			memcmp(p->address[i].bytes, address, version == 4 ? 4 : 16) == 0)
			return true;
	return false;
}

// A valid sender is neither a group address nor zeros; our own address is our frame come back.
static bool is_other(const uint8_t mac[6], const uint8_t ours[6])
{
	static const uint8_t none[6];

	return (mac[0] & 1) == 0 && memcmp(mac, none, 6) != 0 && memcmp(mac, ours, 6) != 0;
}

static uint16_t padded(uint32_t length)
{
	return length < FRAME_SHORTEST ? FRAME_SHORTEST : (uint16_t)length;
}

// Writes Ethernet header and tags of the answer, and zeros behind them. Returns its length, or 0 when there is no room.
static uint16_t begin(uint8_t *to, uint16_t room, const uint8_t *frame, uint16_t header, uint16_t body,
	const uint8_t destination[6], const uint8_t mac[6])
{
	uint16_t length = padded((uint32_t)header + body);

	if (room < length)
		return 0;
	memset(to, 0, length);
	memcpy(to, destination, 6);
	memcpy(to + 6, mac, 6);
	memcpy(to + 12, frame + 12, header - 12);
	return length;
}

// RFC 826 "Packet Reception". A request from 0.0.0.0 is a probe (RFC 5227 §2.1.1) and is answered as well.
static uint16_t answer_arp(const struct job_port *p, const uint8_t mac[6], const uint8_t *frame, uint16_t header,
	uint16_t length, uint8_t *to, uint16_t room)
{
	static const uint8_t request[8] = {0, 1, 8, 0, 6, 4, 0, 1}; // Ethernet, IPv4, their lengths, request
	const uint8_t *arp = frame + header;

	if (length < header + ARP_BYTES || memcmp(arp, request, sizeof(request)) != 0)
		return 0;
	const uint8_t *sender_mac = arp + 8, *sender = arp + 14, *target = arp + 24;
	if (!is_other(sender_mac, mac) || !is_ours(p, 4, target))
		return 0;
	uint16_t total = begin(to, room, frame, header, ARP_BYTES, sender_mac, mac);
	if (total == 0)
		return 0;
	uint8_t *reply = to + header;
	memcpy(reply, request, sizeof(request));
	put16(reply + 6, 2);
	memcpy(reply + 8, mac, 6);
	memcpy(reply + 14, target, 4);
	memcpy(reply + 18, sender_mac, 6);
	memcpy(reply + 24, sender, 4);
	return total;
}

// ICMPv6 checksum over the pseudo header (RFC 8200 §8.1) and `bytes` of message behind an IPv6 header; 0 when the
// message holds its own good checksum.
static uint16_t icmpv6_sum(const uint8_t *ip, uint16_t bytes)
{
	uint32_t sum = bytes + 58u;

	for (uint32_t i = 8; i < IPV6_BYTES; i += 2)
		sum += get16(ip + i);
	for (uint32_t i = 0; i < bytes; i += 2)
		sum += i + 1 < bytes ? get16(ip + IPV6_BYTES + i) : (uint32_t)ip[IPV6_BYTES + i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

// Reads the options of a solicitation. *link: the source link-layer address, or NULL. Returns false for an option
// without length or beyond the message (RFC 4861 §7.1.1).
static bool read_options(const uint8_t *option, uint16_t bytes, const uint8_t **link)
{
	*link = NULL;
	while (bytes > 0) {
		uint32_t length = bytes >= 2 ? option[1] * 8u : 0;

		if (length == 0 || length > bytes)
			return false;
		if (option[0] == 1 && length == LINK_OPTION_BYTES)
			*link = option + 2;
		option += length;
		bytes -= (uint16_t)length;
	}
	return true;
}

// Checks of RFC 4861 §7.1.1 for a solicitation. `ip` has IPV6_BYTES + `bytes` bytes. *link: NULL or the address to
// answer.
static bool good_solicitation(const uint8_t *ip, uint16_t bytes, const uint8_t **link)
{
	static const uint8_t nobody[16], solicited[13] = {0xff, 2, [11] = 1, [12] = 0xff};
	const uint8_t *icmp = ip + IPV6_BYTES, *target = icmp + 8;
	bool probe = memcmp(ip + 8, nobody, 16) == 0; // duplicate address detection (RFC 4862 §5.4)

	if (ip[7] != 255 || bytes < SOLICITATION_BYTES || icmp[0] != 135 || icmp[1] != 0 || target[0] == 0xff)
		return false;
	if (icmpv6_sum(ip, bytes) != 0 || ip[8] == 0xff)
		return false;
	if (!read_options(icmp + SOLICITATION_BYTES, (uint16_t)(bytes - SOLICITATION_BYTES), link))
		return false;
	if (probe)
		return *link == NULL && memcmp(ip + 24, solicited, sizeof(solicited)) == 0;
	return true;
}

// RFC 4861 §7.2.4; a question from the unspecified address is answered to ff02::1, unsolicited.
static uint16_t answer_nd(const struct job_port *p, const uint8_t mac[6], const uint8_t *frame, uint16_t header,
	uint16_t length, uint8_t *to, uint16_t room)
{
	static const uint8_t nobody[16], all_nodes[16] = {0xff, 2, [15] = 1}, all_nodes_mac[6] = {0x33, 0x33, [5] = 1};
	const uint16_t bytes = SOLICITATION_BYTES + LINK_OPTION_BYTES;
	const uint8_t *ip = frame + header, *link;

	if (length < header + IPV6_BYTES || ip[0] >> 4 != 6 || ip[6] != 58 ||
		length - header - IPV6_BYTES < get16(ip + 4) || !good_solicitation(ip, get16(ip + 4), &link))
		return 0;
	const uint8_t *target = ip + IPV6_BYTES + 8;
	if (!is_ours(p, 6, target) || (link != NULL && !is_other(link, mac)))
		return 0;
	bool probe = memcmp(ip + 8, nobody, 16) == 0;
	const uint8_t *destination = probe ? all_nodes_mac : link ? link : frame + 6;
	uint16_t total = begin(to, room, frame, header, IPV6_BYTES + bytes, destination, mac);
	if (total == 0)
		return 0;
	uint8_t *out = to + header, *icmp = out + IPV6_BYTES;
	out[0] = 0x60;
	put16(out + 4, bytes);
	out[6] = 58;
	out[7] = 255;
	memcpy(out + 8, target, 16);
	memcpy(out + 24, probe ? all_nodes : ip + 8, 16);
	icmp[0] = 136;
	icmp[4] = probe ? 0x20 : 0x60; // override, and solicited
	memcpy(icmp + 8, target, 16);
	icmp[24] = 2; // target link-layer address, 8 bytes
	icmp[25] = 1;
	memcpy(icmp + 26, mac, 6);
	put16(icmp + 2, icmpv6_sum(out, bytes));
	return total;
}

uint16_t neighbour_answer(const struct job_port *p, const uint8_t mac[6], const uint8_t *frame, uint16_t length,
	uint8_t *to, uint16_t room)
{
	uint16_t header = ETHERNET_BYTES;

	if (p->addresses == 0 || length < ETHERNET_BYTES || !is_other(frame + 6, mac))
		return 0;
	// Another station's frame on a shared wire.
	if ((frame[0] & 1) == 0 && memcmp(frame, mac, 6) != 0)
		return 0;
	for (uint32_t tags = 0; is_tag(get16(frame + header - 2)); tags++) {
		header += 4;
		if (tags == TAGS_MAX || length < header)
			return 0;
	}
	switch (get16(frame + header - 2)) {
	case 0x0806:
		return answer_arp(p, mac, frame, header, length, to, room);
	case 0x86dd:
		return answer_nd(p, mac, frame, header, length, to, room);
	default:
		return 0;
	}
}
