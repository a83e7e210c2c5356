// SPDX-License-Identifier: Apache-2.0
// Neighbour Discovery decoder and encoder.
#include "wire/nd.h"
#include "wire/checksum.h"
#include "wire/ip.h"

#define MESSAGE 24 // ICMPv6 header, flags, target
#define OPTION_SOURCE 1
#define OPTION_TARGET 2

static const uint8_t unspecified[16];
static const uint8_t solicited_prefix[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};

// §7.1.1 and §7.1.2: who may send what to whom.
static int addresses_ok(const struct nd_info *m)
{
	unsigned martian = ip_martian(6, m->source, m->destination);

	if (m->target[0] == 0xff || ip_martian(6, m->target, m->target) & IP_MARTIAN_SOURCE)
		return 0;
	if (martian & IP_MARTIAN_DESTINATION)
		return 0;
	if (m->type == ND_ADVERT) // solicited means: answered to one host
		return !(martian & IP_MARTIAN_SOURCE) && !(martian & IP_MULTICAST && m->flags & ND_SOLICITED);
	if (m->probe) // from :: only to the solicited-node group, and without a link-layer address
		return memcmp(m->destination, solicited_prefix, 13) == 0 && m->mac == NULL;
	return !(martian & IP_MARTIAN_SOURCE);
}

static enum nd_status options_parse(const uint8_t *p, uint32_t length, struct nd_info *out)
{
	uint8_t wanted = out->type == ND_SOLICIT ? OPTION_SOURCE : OPTION_TARGET;

	for (uint32_t at = 0, i = 0; at < length; i++) {
		if (i == ND_MAX_OPTIONS || length - at < 8)
			return ND_OPTION;
		uint32_t size = p[at + 1] * 8u;
		if (size == 0 || size > length - at)
			return ND_OPTION;
		if (p[at] == wanted && out->mac == NULL)
			out->mac = p + at + 2;
		at += size;
	}
	return ND_OK;
}

enum nd_status nd_parse(const uint8_t *p, uint32_t available, uint32_t total, struct nd_info *out)
{
	struct ip_info ip;
	const uint8_t *icmp;
	uint32_t size;
	enum nd_status status;

	if (ip_parse(p, available, total, &ip) != IP_OK || ip.length > available)
		return ND_SHORT;
	if (ip.version != 6 || ip.protocol != IP_PROTOCOL_ICMP6 || ip.l4 != IP6_HEADER)
		return ND_TYPE;
	icmp = p + ip.l4;
	size = ip.length - ip.l4;
	if ((icmp[0] != ND_SOLICIT && icmp[0] != ND_ADVERT) || icmp[1] != 0)
		return ND_TYPE;
	if (ip.ttl != 255)
		return ND_HOP_LIMIT;
	if (size < MESSAGE)
		return ND_SHORT;
	if (checksum_finish(checksum_add(
		    checksum_pseudo(6, ip.source, ip.destination, IP_PROTOCOL_ICMP6, size), icmp, size)) != 0)
		return ND_CHECKSUM;
	out->type = icmp[0];
	out->flags = out->type == ND_ADVERT ? icmp[4] : 0;
	out->probe = out->type == ND_SOLICIT && memcmp(ip.source, unspecified, 16) == 0;
	out->length = ip.length;
	out->source = ip.source;
	out->destination = ip.destination;
	out->target = icmp + 8;
	out->mac = NULL;
	status = options_parse(icmp + MESSAGE, size - MESSAGE, out);
	if (status != ND_OK)
		return status;
	return addresses_ok(out) ? ND_OK : ND_ADDRESS;
}

void nd_solicited_node(uint8_t *to, const uint8_t *address)
{
	memmove(to + 13, address + 13, 3);
	memcpy(to, solicited_prefix, 13);
}

void nd_group_mac(uint8_t *to, const uint8_t *group)
{
	to[0] = to[1] = 0x33;
	memcpy(to + 2, group + 12, 4);
}

static unsigned put_message(uint8_t *to, uint8_t type, uint8_t flags, const uint8_t *source, const uint8_t *destination,
	const uint8_t *target, const uint8_t *mac)
{
	uint8_t *icmp = to + IP6_HEADER;
	uint32_t size = ND_LENGTH - IP6_HEADER;
	uint16_t sum;

	store32(to, 0x6c000000u); // class selector 6, as network control
	store16(to + 4, size);
	to[6] = IP_PROTOCOL_ICMP6;
	to[7] = 255;
	memcpy(to + 8, source, 16);
	memcpy(to + 24, destination, 16);
	icmp[0] = type;
	icmp[1] = 0;
	memset(icmp + 2, 0, 6);
	icmp[4] = flags;
	memcpy(icmp + 8, target, 16);
	icmp[24] = type == ND_SOLICIT ? OPTION_SOURCE : OPTION_TARGET;
	icmp[25] = 1;
	memcpy(icmp + 26, mac, 6);
	sum = checksum_finish(
		checksum_add(checksum_pseudo(6, source, destination, IP_PROTOCOL_ICMP6, size), icmp, size));
	memcpy(icmp + 2, &sum, 2);
	return ND_LENGTH;
}

unsigned nd_put_ns(
	uint8_t *to, const uint8_t *source, const uint8_t *destination, const uint8_t *target, const uint8_t *mac)
{
	uint8_t group[16];

	nd_solicited_node(group, target);
	return put_message(to, ND_SOLICIT, 0, source, destination ? destination : group, target, mac);
}

unsigned nd_put_na(uint8_t *to, const uint8_t *source, const uint8_t *destination, const uint8_t *target,
	const uint8_t *mac, uint8_t flags)
{
	return put_message(to, ND_ADVERT, flags, source, destination, target, mac);
}
