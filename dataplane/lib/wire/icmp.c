// SPDX-License-Identifier: Apache-2.0
// ICMP and ICMPv6 errors and echo replies. Addresses are the only thing in which the two families differ much.
#include "wire/icmp.h"
#include "wire/checksum.h"

static const struct icmp_type type_of[ICMP_PROBLEM_COUNT][2] = {
	[ICMP_PROBLEM_TTL] = {{ICMP4_TIME_EXCEEDED, 0}, {ICMP6_TIME_EXCEEDED, 0}},
	[ICMP_PROBLEM_TOO_BIG] = {{ICMP4_UNREACHABLE, ICMP4_CODE_TOO_BIG}, {ICMP6_TOO_BIG, 0}},
	[ICMP_PROBLEM_NO_ROUTE] = {{ICMP4_UNREACHABLE, ICMP4_CODE_NET}, {ICMP6_UNREACHABLE, ICMP6_CODE_NO_ROUTE}},
	[ICMP_PROBLEM_HOST] = {{ICMP4_UNREACHABLE, ICMP4_CODE_HOST}, {ICMP6_UNREACHABLE, ICMP6_CODE_ADDRESS}},
	[ICMP_PROBLEM_REJECTED] = {{ICMP4_UNREACHABLE, ICMP4_CODE_HOST}, {ICMP6_UNREACHABLE, ICMP6_CODE_REJECT}},
	[ICMP_PROBLEM_PROHIBITED] = {{ICMP4_UNREACHABLE, ICMP4_CODE_PROHIBITED},
		{ICMP6_UNREACHABLE, ICMP6_CODE_PROHIBITED}},
	[ICMP_PROBLEM_PORT] = {{ICMP4_UNREACHABLE, ICMP4_CODE_PORT}, {ICMP6_UNREACHABLE, ICMP6_CODE_PORT}},
	[ICMP_PROBLEM_PROTOCOL] = {{ICMP4_UNREACHABLE, ICMP4_CODE_PROTOCOL}, {ICMP6_PARAMETER, 1}},
};

struct icmp_type icmp_type_of(enum icmp_problem problem, uint8_t version)
{
	if ((unsigned)problem >= ICMP_PROBLEM_COUNT)
		problem = ICMP_PROBLEM_NO_ROUTE;
	return type_of[problem][version == 6];
}

// An ICMP message that an error must not answer: an error itself, or a redirect.
static int is_error(uint8_t version, uint8_t protocol, uint8_t type)
{
	if (version == 6)
		return protocol == IP_PROTOCOL_ICMP6 && (type < 128 || type == ICMP6_REDIRECT);
	return protocol == IP_PROTOCOL_ICMP &&
	       (type == ICMP4_UNREACHABLE || type == ICMP4_SOURCE_QUENCH || type == ICMP4_REDIRECT ||
		       type == ICMP4_TIME_EXCEEDED || type == ICMP4_PARAMETER);
}

enum icmp_answer icmp_answerable(const uint8_t *p, const struct ip_info *info, uint8_t type)
{
	unsigned martian = ip_martian(info->version, info->source, info->destination);

	if (info->fragment & IP_FRAGMENT_LATER)
		return ICMP_ANSWER_FRAGMENT;
	if (martian & IP_MARTIAN_SOURCE)
		return ICMP_ANSWER_SOURCE;
	// RFC 4443 §2.4 (e.3): path MTU discovery works for multicast too.
	if (martian & (IP_MULTICAST | IP_MARTIAN_DESTINATION) && !(info->version == 6 && type == ICMP6_TOO_BIG))
		return ICMP_ANSWER_DESTINATION;
	// ip_parse() made sure of 8 bytes when the protocol is this version's ICMP.
	if (info->protocol == (info->version == 4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMP6) &&
		is_error(info->version, info->protocol, p[info->l4]))
		return ICMP_ANSWER_ERROR;
	return ICMP_ANSWER_OK;
}

// IPv4 header without options or IPv6 header, in front of `payload` bytes of ICMP.
static unsigned put_ip(uint8_t *to, const struct icmp_error *e, uint32_t payload)
{
	if (e->version == 4) {
		memset(to, 0, IP4_HEADER);
		to[0] = 0x45;
		to[1] = 0xc0; // RFC 1812 §4.3.2.5: precedence 6, internetwork control
		store16(to + 2, IP4_HEADER + payload);
		to[8] = ICMP_TTL;
		to[9] = IP_PROTOCOL_ICMP;
		memcpy(to + 12, e->source, 4);
		memcpy(to + 16, e->destination, 4);
		ip4_checksum_set(to);
		return IP4_HEADER;
	}
	store32(to, 0x60000000u);
	store16(to + 4, payload);
	to[6] = IP_PROTOCOL_ICMP6;
	to[7] = ICMP_TTL;
	memcpy(to + 8, e->source, 16);
	memcpy(to + 24, e->destination, 16);
	return IP6_HEADER;
}

uint32_t icmp_put_error(uint8_t *to, const struct icmp_error *e, uint32_t quote)
{
	uint32_t payload = ICMP_HEADER + quote;
	uint8_t *icmp = to + put_ip(to, e, payload);
	uint64_t sum = 0;
	uint16_t check;

	icmp[0] = e->type;
	icmp[1] = e->code;
	store32(icmp + 4, e->mtu);
	if (e->version == 4 && e->mtu > 0xffff) // RFC 1191 §4: the next-hop MTU is 16 bits
		store32(icmp + 4, 0xffff);
	memset(icmp + 2, 0, 2);
	if (e->version == 6)
		sum = checksum_pseudo(6, e->source, e->destination, IP_PROTOCOL_ICMP6, payload);
	check = checksum_finish(checksum_add(sum, icmp, payload));
	memcpy(icmp + 2, &check, 2);
	return (uint32_t)(icmp - to) + payload;
}

static void swap_addresses(uint8_t *source, uint8_t *destination, unsigned size)
{
	uint8_t keep[16];

	memcpy(keep, source, size);
	memcpy(source, destination, size);
	memcpy(destination, keep, size);
}

void icmp_make_echo_reply(uint8_t *p, const struct ip_info *info)
{
	uint8_t *icmp = p + info->l4;
	uint16_t before, after;

	memcpy(&before, icmp, 2);
	icmp[0] = info->version == 4 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY;
	memcpy(&after, icmp, 2);
	checksum_update16(icmp + 2, before, after);
	if (info->version == 4) {
		memcpy(&before, p + 8, 2);
		p[8] = ICMP_TTL;
		memcpy(&after, p + 8, 2);
		checksum_update16(p + 10, before, after);
		swap_addresses(p + 12, p + 16, 4); // a sum does not care about order
		return;
	}
	p[7] = ICMP_TTL;
	swap_addresses(p + 8, p + 24, 16);
}
