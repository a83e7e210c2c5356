// SPDX-License-Identifier: Apache-2.0
// ICMP (RFC 792, RFC 1812 §4.3) and ICMPv6 (RFC 4443): a router's errors, forbidden answers, echo replies.
#ifndef WIRE_ICMP_H
#define WIRE_ICMP_H

#include "wire/ip.h"

// IPv4
#define ICMP4_ECHO_REPLY 0
#define ICMP4_UNREACHABLE 3
#define ICMP4_SOURCE_QUENCH 4
#define ICMP4_REDIRECT 5
#define ICMP4_ECHO 8
#define ICMP4_TIME_EXCEEDED 11
#define ICMP4_PARAMETER 12
#define ICMP4_CODE_NET 0
#define ICMP4_CODE_HOST 1
#define ICMP4_CODE_PROTOCOL 2
#define ICMP4_CODE_PORT 3
#define ICMP4_CODE_TOO_BIG 4 // of UNREACHABLE: fragmentation needed and DF set (RFC 1191)
#define ICMP4_CODE_PROHIBITED 13
// IPv6
#define ICMP6_UNREACHABLE 1
#define ICMP6_TOO_BIG 2
#define ICMP6_TIME_EXCEEDED 3
#define ICMP6_PARAMETER 4
#define ICMP6_ECHO 128
#define ICMP6_ECHO_REPLY 129
#define ICMP6_REDIRECT 137
#define ICMP6_CODE_NO_ROUTE 0
#define ICMP6_CODE_PROHIBITED 1
#define ICMP6_CODE_ADDRESS 3
#define ICMP6_CODE_PORT 4
#define ICMP6_CODE_REJECT 6

#define ICMP_HEADER 8
#define ICMP4_ERROR_HEADER (IP4_HEADER + ICMP_HEADER) // in front of the quoted packet
#define ICMP6_ERROR_HEADER (IP6_HEADER + ICMP_HEADER)
#define ICMP4_QUOTE_MAX (576 - ICMP4_ERROR_HEADER) // RFC 1812 §4.3.2.3
#define ICMP6_QUOTE_MAX (1280 - ICMP6_ERROR_HEADER) // RFC 4443 §3
#define ICMP_TTL 64

// The problem, for either family: nodes name it, and the table in icmp.c has type and code.
enum icmp_problem {
	ICMP_PROBLEM_TTL, // TTL or hop limit ran out in transit
	ICMP_PROBLEM_TOO_BIG, // needs the MTU
	ICMP_PROBLEM_NO_ROUTE,
	ICMP_PROBLEM_HOST, // the neighbour did not answer
	ICMP_PROBLEM_REJECTED, // by a route: other hosts of the network may be reachable
	ICMP_PROBLEM_PROHIBITED, // by policy
	ICMP_PROBLEM_PORT,
	ICMP_PROBLEM_PROTOCOL,
	ICMP_PROBLEM_COUNT
};

struct icmp_type {
	uint8_t type, code;
};

// Type and code for a problem. version 4 or 6.
struct icmp_type icmp_type_of(enum icmp_problem problem, uint8_t version);

enum icmp_answer {
	ICMP_ANSWER_OK,
	ICMP_ANSWER_FRAGMENT, // not the first fragment
	ICMP_ANSWER_ERROR, // it is an ICMP error (or redirect) itself
	ICMP_ANSWER_SOURCE, // its source is not one host: unspecified, loopback, multicast, broadcast
	ICMP_ANSWER_DESTINATION, // it was sent to multicast or broadcast
};

// Whether an error of this type may be sent about the packet at p, accepted by ip_parse() (RFC 1812 §4.3.2.7, RFC 4443
// §2.4 (e)). Reads only bytes that ip_parse() checked.
enum icmp_answer icmp_answerable(const uint8_t *p, const struct ip_info *info, uint8_t type);

// Bytes of the offending packet that an error quotes: at most `readable` (contiguous) and its `length`.
static inline uint32_t icmp_quote(uint8_t version, uint32_t length, uint32_t readable)
{
	uint32_t most = version == 4 ? ICMP4_QUOTE_MAX : ICMP6_QUOTE_MAX;

	length = length < readable ? length : readable;
	return length < most ? length : most;
}

struct icmp_error {
	uint8_t version; // 4 or 6
	uint8_t type, code;
	uint32_t mtu; // for too big (either version), else 0; for IPv6 parameter problem the pointer
	const uint8_t *source, *destination; // 4 or 16 bytes; must not lie in the bytes written
};

// Writes an error's IP and ICMP headers: ICMP4_ERROR_HEADER or ICMP6_ERROR_HEADER bytes at `to`, directly before
// `quote` bytes of the offending packet. Returns the whole packet's length.
uint32_t icmp_put_error(uint8_t *to, const struct icmp_error *e, uint32_t quote);

// 1 when the packet that ip_parse() accepted is an echo request in one piece.
static inline int icmp_is_echo(const uint8_t *p, const struct ip_info *info)
{
	uint8_t protocol = info->version == 4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMP6;
	uint8_t type = info->version == 4 ? ICMP4_ECHO : ICMP6_ECHO;

	// With this protocol ip_parse() made sure of 8 bytes.
	return info->fragment == 0 && info->protocol == protocol && p[info->l4] == type && p[info->l4 + 1] == 0;
}

// Turns the echo request at p into its reply in place: addresses swapped, TTL set. Checksums are updated incrementally,
// so damaged data stays detectable. Writes only the IP header and the first 8 bytes of ICMP.
void icmp_make_echo_reply(uint8_t *p, const struct ip_info *info);

#endif
