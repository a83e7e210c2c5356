// SPDX-License-Identifier: Apache-2.0
// GTP-U version 1 (3GPP TS 29.281) with the PDU Session Container (TS 38.415).
#ifndef WIRE_GTPU_H
#define WIRE_GTPU_H

#include "wire/bytes.h"

#define GTPU_PORT 2152
#define GTPU_HEADER 8 // without E, S, PN
#define GTPU_HEADER_CONTAINER 16 // with a PDU Session Container
#define GTPU_MAX_EXTENSIONS 8
#define GTPU_NO_QFI 0xff

// Message types (TS 29.281 table 6.1-1).
#define GTPU_ECHO_REQUEST 1
#define GTPU_ECHO_RESPONSE 2
#define GTPU_ERROR_INDICATION 26
#define GTPU_SUPPORTED_EXTENSIONS 31
#define GTPU_END_MARKER 254
#define GTPU_GPDU 255

// Extension header types (TS 29.281 figure 5.2.1-3).
#define GTPU_EXT_UDP_PORT 0x40
#define GTPU_EXT_PDU_SESSION 0x85
#define GTPU_EXT_PDCP_NUMBER 0xc0

#define GTPU_PDU_DL 0 // TS 38.415 §5.5.3.1
#define GTPU_PDU_UL 1

enum gtpu_status {
	GTPU_OK,
	GTPU_SHORT, // ends within the header
	GTPU_VERSION, // version is not 1, or PT = 0 (GTP')
	GTPU_LENGTH, // length field does not agree with the UDP payload
	GTPU_EXTENSION, // extension of length 0, past the packet, one too many, or a bad container
	// An unknown extension that every receiver must understand (§5.2.1): the peer gets our supported ones (§7.2.3)
	GTPU_REQUIRED,
};

// Header contents beside TEID and QFI. A relay into another tunnel passes them on; the tunnel's end must understand
// them.
#define GTPU_MORE 1u // sequence or N-PDU number, an extension header, or a container with more than a QFI
#define GTPU_ENDPOINT 2u // an extension that is unknown and that an end point must understand

struct gtpu_info {
	uint32_t teid; // host order
	uint16_t header_length; // with optional fields and extension headers
	uint16_t sequence; // host order; 0 unless has_sequence
	uint8_t message; // GTPU_GPDU, ...
	uint8_t qfi; // GTPU_NO_QFI: no container
	uint8_t pdu_type; // GTPU_PDU_DL or _UL; only with a qfi
	uint8_t has_sequence;
	uint8_t more; // GTPU_MORE, GTPU_ENDPOINT
};

// Any of E, S, PN set, but not just one container without more: the general path.
enum gtpu_status gtpu_options_parse(const uint8_t *p, uint32_t available, uint32_t total, struct gtpu_info *out);

// Reads the header at p. `available` bytes may be read; the UDP payload is `total` bytes. *out is valid only after
// GTPU_OK.
static inline enum gtpu_status gtpu_parse(const uint8_t *p, uint32_t available, uint32_t total, struct gtpu_info *out)
{
	if (__builtin_expect(available < GTPU_HEADER || total < GTPU_HEADER, 0))
		return GTPU_SHORT;
	if (__builtin_expect(
		    (p[0] & 0xf0) != 0x30, 0)) // §5.1: version 1, PT 1; the spare bit is not evaluated by receivers
		if (p[0] >> 5 != 1 || !(p[0] & 0x10))
			return GTPU_VERSION;
	if (__builtin_expect(load16(p + 2) + 8u != total, 0))
		return GTPU_LENGTH;
	out->message = p[1];
	out->teid = load32(p + 4);
	out->sequence = 0;
	out->has_sequence = 0;
	out->qfi = GTPU_NO_QFI;
	out->pdu_type = 0;
	out->more = 0;
	out->header_length = GTPU_HEADER;
	if ((p[0] & 7) == 0)
		return GTPU_OK;
	// 5G's usual form: one container of four bytes without optional parts.
	if (__builtin_expect((p[0] & 7) == 4 && available >= GTPU_HEADER_CONTAINER && total >= GTPU_HEADER_CONTAINER &&
				     p[11] == GTPU_EXT_PDU_SESSION && p[12] == 1 && (p[13] & 0xef) == 0 && p[15] == 0 &&
				     (p[14] & 0x80) == 0 && !(p[13] >> 4 == GTPU_PDU_UL && p[14] & 0x40),
		    1)) {
		out->pdu_type = p[13] >> 4;
		out->qfi = p[14] & 0x3f;
		out->more = p[14] >> 6 & GTPU_MORE; // reflective QoS (TS 38.415 §5.5.3.4), downlink only
		out->header_length = GTPU_HEADER_CONTAINER;
		return GTPU_OK;
	}
	return gtpu_options_parse(p, available, total, out);
}

// Writes the header of a G-PDU in front of `payload` bytes; returns its length (8, or 16 with a container). §5.2.2.7
static inline unsigned gtpu_put_gpdu(uint8_t *to, uint32_t teid, uint8_t qfi, uint8_t pdu_type, uint16_t payload)
{
	store32(to + 4, teid);
	to[1] = GTPU_GPDU;
	if (qfi == GTPU_NO_QFI) {
		to[0] = 0x30;
		store16(to + 2, payload);
		return GTPU_HEADER;
	}
	to[0] = 0x34;
	store16(to + 2, payload + 8);
	store32(to + 8, GTPU_EXT_PDU_SESSION);
	to[12] = 1;
	to[13] = pdu_type << 4;
	to[14] = qfi & 0x3f;
	to[15] = 0;
	return GTPU_HEADER_CONTAINER;
}

// Builds the header that an intermediate node sends on, from the received one: `length` bytes that end at `end` and
// were read by gtpu_parse(). The new header ends at `end` too and is at most 4 bytes longer. The caller fills in length
// and TEID. Extension headers follow §5.2.1; sequence and N-PDU numbers stay (§4.3.1).
//
// `qfi`: the container's octet with the QFI (TS 38.415 §5.5.2), or GTPU_NO_QFI. Its QFI replaces the received one, its
// bit above is added. Without a received container one is made, of pdu_type. without_container: the received container
// is left out (TS 29.244 §8.2.64). Returns the length.
unsigned gtpu_relay(uint8_t *end, unsigned length, uint8_t qfi, uint8_t pdu_type, int without_container);

// Message encoders return the bytes written; `to` has room for GTPU_MESSAGE_MAX.
#define GTPU_MESSAGE_MAX 48
// Echo Request (§7.2.1): TEID 0, sequence number, no IE.
unsigned gtpu_put_echo_request(uint8_t *to, uint16_t sequence);
// Echo Response (§7.2.2): TEID 0, the request's sequence number, Recovery IE with restart counter 0 (§8.2).
unsigned gtpu_put_echo_response(uint8_t *to, uint16_t sequence);
// Error Indication (§7.3.1): TEID 0 in the header; the unknown TEID and the address that it was sent to in IEs.
// family 4 or 6; address 4 or 16 bytes.
unsigned gtpu_put_error_indication(uint8_t *to, uint32_t teid, uint8_t family, const uint8_t *address);
// Supported Extension Headers Notification (§7.2.3): TEID 0; lists the types that an endpoint here understands.
unsigned gtpu_put_supported_extensions(uint8_t *to, uint16_t sequence);
// End Marker (§7.3.2) for the tunnel teid; with a container when qfi is not GTPU_NO_QFI.
unsigned gtpu_put_end_marker(uint8_t *to, uint32_t teid, uint8_t qfi, uint8_t pdu_type);

// IEs of a received message (§8). Fields that did not appear are 0 or NULL.
struct gtpu_ies {
	uint8_t has_teid, has_recovery;
	uint8_t recovery;
	uint8_t family; // of address: 0 none, 4, 6
	uint32_t teid; // TEID Data I, host order
	const uint8_t *address; // GTP-U Peer Address, in the packet
};

// Reads the IEs at p: `length` readable bytes behind the GTP-U header. Unknown TLV elements are skipped (§8.1).
// GTPU_OK; GTPU_SHORT: an IE runs past the end. GTPU_LENGTH: an IE's length is impossible, or there are more than 16.
// GTPU_EXTENSION: a TV element of unknown length.
enum gtpu_status gtpu_ies_parse(const uint8_t *p, uint32_t length, struct gtpu_ies *out);

#endif
