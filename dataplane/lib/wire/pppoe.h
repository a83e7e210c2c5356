// SPDX-License-Identifier: Apache-2.0
// PPP over Ethernet (RFC 2516): session header, and the checks on a discovery packet before anyone looks inside.
#ifndef WIRE_PPPOE_H
#define WIRE_PPPOE_H

#include "wire/bytes.h"

#define PPPOE_HEADER 8 // PPPoE header and the PPP protocol field of a session packet
#define PPPOE_DISCOVERY_HEADER 6 // without a PPP protocol field
#define PPPOE_MAX_TAGS 64 // in one discovery packet
#define PPPOE_VERSION_TYPE 0x11
#define PPP_IP4 0x0021
#define PPP_IP6 0x0057
#define PPP_LCP 0xc021
#define LCP_ECHO_HEADER 8 // code, identifier, length, magic number (RFC 1661 §5.8)

enum lcp_code { LCP_ECHO_REQUEST = 9, LCP_ECHO_REPLY = 10, LCP_DISCARD_REQUEST = 11 };

enum pppoe_status {
	PPPOE_OK,
	PPPOE_SHORT, // ends within the header
	PPPOE_VERSION, // version or type is not 1, or the code does not fit the ethertype
	PPPOE_LENGTH, // length field past the frame, or too small for the PPP protocol
	PPPOE_TAG, // discovery: a tag runs past the payload, or more than PPPOE_MAX_TAGS
};

struct pppoe_info {
	uint16_t session; // host order
	uint16_t protocol; // PPP protocol, host order
	uint16_t payload; // bytes after the PPP protocol field, as the length field says
};

// Codes of discovery packets (RFC 2516 §5).
enum pppoe_code { PPPOE_PADI = 0x09, PPPOE_PADO = 0x07, PPPOE_PADR = 0x19, PPPOE_PADS = 0x65, PPPOE_PADT = 0xa7 };

// Reads a session packet (ethertype 0x8864) at p. `available` bytes may be read; the frame holds `total` bytes from p
// on. Ethernet padding behind the payload is legal.
static inline enum pppoe_status pppoe_session_parse(
	const uint8_t *p, uint32_t available, uint32_t total, struct pppoe_info *out)
{
	uint16_t length;

	if (__builtin_expect(available < PPPOE_HEADER || total < PPPOE_HEADER, 0))
		return PPPOE_SHORT;
	// RFC 2516 §4 and §6: VER 1, TYPE 1, CODE 0 in a session.
	if (__builtin_expect(p[0] != PPPOE_VERSION_TYPE || p[1] != 0, 0))
		return PPPOE_VERSION;
	length = load16(p + 4);
	if (__builtin_expect(length < 2 || length + 6u > total, 0))
		return PPPOE_LENGTH;
	out->session = load16(p + 2);
	out->protocol = load16(p + 6);
	out->payload = length - 2;
	return PPPOE_OK;
}

// Checks a discovery packet (ethertype 0x8863) at p: code, payload within the frame, every tag within the payload.
enum pppoe_status pppoe_discovery_check(const uint8_t *p, uint32_t available, uint32_t total);

// Writes PPPOE_HEADER bytes: session header and PPP protocol in front of `payload` bytes.
static inline void pppoe_put_session(uint8_t *to, uint16_t session, uint16_t protocol, uint16_t payload)
{
	to[0] = PPPOE_VERSION_TYPE;
	to[1] = 0;
	store16(to + 2, session);
	store16(to + 4, payload + 2);
	store16(to + 6, protocol);
}

#endif
