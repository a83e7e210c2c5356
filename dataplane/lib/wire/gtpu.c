// SPDX-License-Identifier: Apache-2.0
// The rare half of the GTP-U codec: optional fields, extension headers in general, signalling messages and their IEs.
#include "wire/gtpu.h"

#define IE_RECOVERY 14 // TV, 1 byte (TS 29.281 §8.2)
#define IE_TEID_DATA 16 // TV, 4 bytes (§8.3)
#define IE_PEER_ADDRESS 133 // TLV (§8.4)
#define IE_EXTENSION_TYPES 141 // TLV with a length of one byte only (§8.5)
#define IE_TLV 0x80 // types from here on carry a length (§8.1)
#define MAX_IES 16

// Bytes that a PDU Session Container's content must have for the parts its flags announce (TS 38.415 §5.5.2).
static unsigned container_content(const uint8_t *c)
{
	unsigned need = 2;

	if (c[0] >> 4 == GTPU_PDU_DL) { // §5.5.2.1
		need += c[1] & 0x80 ? 1 : 0; // PPP: paging policy
		need += c[0] & 0x08 ? 8 : 0; // QMP: sending time stamp
		need += c[0] & 0x04 ? 3 : 0; // SNP: QFI sequence number
		need += c[0] & 0x02 ? 4 : 0; // MSNP: MBS sequence number
		return need;
	}
	// §5.5.2.2
	need += c[0] & 0x08 ? 24 : 0; // QMP: three time stamps
	need += c[0] & 0x04 ? 4 : 0; // DL delay result
	need += c[0] & 0x02 ? 4 : 0; // UL delay result
	need += c[0] & 0x01 ? 3 : 0; // SNP
	need += c[1] & 0x80 ? 4 : 0; // N3/N9 delay result
	need += c[1] & 0x40 ? 1 : 0; // new IE flags
	return need;
}

// The extension header's content (between its length and next-type bytes) of `size` bytes.
static enum gtpu_status read_extension(uint8_t type, const uint8_t *content, unsigned size, struct gtpu_info *out)
{
	switch (type) {
	case GTPU_EXT_PDU_SESSION:
		if (out->qfi != GTPU_NO_QFI || content[0] >> 4 > GTPU_PDU_UL || container_content(content) > size)
			return GTPU_EXTENSION;
		out->pdu_type = content[0] >> 4;
		out->qfi = content[1] & 0x3f;
		return GTPU_OK;
	case GTPU_EXT_UDP_PORT: // §5.2.2.1, always one unit
		return size == 2 ? GTPU_OK : GTPU_EXTENSION;
	default: // §5.2.1: bits 8-7 = 11: every receiver must understand it, 10: only the end point
		if (type >> 6 == 3 && type != GTPU_EXT_PDCP_NUMBER) // which an SGW need not (figure 5.2.1-3, note 1)
			return GTPU_REQUIRED;
		out->more |= type & 0x80 ? GTPU_ENDPOINT : 0;
		return GTPU_OK;
	}
}

enum gtpu_status gtpu_options_parse(const uint8_t *p, uint32_t available, uint32_t total, struct gtpu_info *out)
{
	uint32_t at = 12;
	uint8_t type;

	// §5.1: any of E, S, PN brings all three fields, which the length field counts.
	if (total < at)
		return GTPU_LENGTH;
	if (available < at)
		return GTPU_SHORT;
	if (p[0] & 2) {
		out->has_sequence = 1;
		out->sequence = load16(p + 8);
	}
	type = p[0] & 4 ? p[11] : 0; // the next-type byte shall not be evaluated without E
	for (unsigned i = 0; type != 0; i++) {
		if (i == GTPU_MAX_EXTENSIONS || total - at < 4)
			return GTPU_EXTENSION;
		if (available < at + 4)
			return GTPU_SHORT;
		uint32_t size = p[at] * 4u; // §5.2.1: in 4-byte units, of the whole extension header
		if (size == 0 || size > total - at)
			return GTPU_EXTENSION;
		if (available < at + size)
			return GTPU_SHORT;
		enum gtpu_status status = read_extension(type, p + at + 1, size - 2, out);
		if (status != GTPU_OK)
			return status;
		type = p[at + size - 1];
		at += size;
	}
	out->header_length = at;
	out->more |= GTPU_MORE;
	return GTPU_OK;
}

// Moves the kept extension headers to the end, last one first, so that none is overwritten before it is read. Returns
// where the first one begins; *first is its type.
static uint8_t *relay_extensions(uint8_t *end, unsigned length, uint8_t qfi, int without_container, uint8_t *first)
{
	struct {
		uint16_t at;
		uint8_t type;
	} list[GTPU_MAX_EXTENSIONS];
	uint8_t *start = end - length, *to = end;
	uint8_t type = length > 12 && start[0] & 4 ? start[11] : 0;
	unsigned n = 0, size;

	for (unsigned at = 12; type != 0 && n < GTPU_MAX_EXTENSIONS && at < length; at += size) {
		list[n].at = (uint16_t)at;
		list[n++].type = type;
		size = start[at] * 4u;
		if (size == 0 || size > length - at)
			return end; // gtpu_parse() would not have passed it
		type = start[at + size - 1];
	}
	*first = 0;
	while (n-- > 0) {
		uint8_t *from = start + list[n].at;

		type = list[n].type;
		// §5.2.1: bits 8-7 = 01: not for the next node.
		if (type >> 6 == 1 || (type == GTPU_EXT_PDU_SESSION && without_container))
			continue;
		if (type == GTPU_EXT_PDU_SESSION && qfi != GTPU_NO_QFI)
			from[2] = (uint8_t)((from[2] & 0xc0) | qfi);
		size = from[0] * 4u;
		to -= size;
		memmove(to, from, size);
		to[size - 1] = *first;
		*first = type;
	}
	return to;
}

static int has_container(const uint8_t *at, const uint8_t *end, uint8_t type)
{
	for (; type != 0 && at < end; at += at[0] * 4u) {
		if (type == GTPU_EXT_PDU_SESSION)
			return 1;
		type = at[at[0] * 4u - 1];
	}
	return 0;
}

unsigned gtpu_relay(uint8_t *end, unsigned length, uint8_t qfi, uint8_t pdu_type, int without_container)
{
	const uint8_t *came = end - length;
	uint8_t flags = length >= 12 ? came[0] & 3 : 0, first = 0, number[3] = {0};

	if (flags & 2)
		memcpy(number, came + 8, 2);
	if (flags & 1)
		number[2] = came[10];
	uint8_t *to = relay_extensions(end, length, qfi, without_container, &first);
	if (qfi != GTPU_NO_QFI && !has_container(to, end, first)) {
		to -= 4;
		to[0] = 1;
		to[1] = (uint8_t)(pdu_type << 4);
		to[2] = qfi;
		to[3] = first;
		first = GTPU_EXT_PDU_SESSION; // figure 5.2.1-3: it should be the first
	}
	flags |= first != 0 ? 4 : 0;
	if (flags != 0) {
		to -= 4;
		memcpy(to, number, 3);
		to[3] = first;
	}
	to -= GTPU_HEADER;
	memset(to, 0, GTPU_HEADER);
	to[0] = 0x30 | flags;
	to[1] = GTPU_GPDU;
	return (unsigned)(end - to);
}

// A signalling message with S set (§5.1); body bytes follow the 12-byte header.
static void put_signalling(uint8_t *to, uint8_t message, uint16_t sequence, uint16_t body)
{
	to[0] = 0x32;
	to[1] = message;
	store16(to + 2, 4 + body);
	store32(to + 4, 0);
	store16(to + 8, sequence);
	store16(to + 10, 0);
}

unsigned gtpu_put_echo_request(uint8_t *to, uint16_t sequence)
{
	put_signalling(to, GTPU_ECHO_REQUEST, sequence, 0);
	return 12;
}

unsigned gtpu_put_echo_response(uint8_t *to, uint16_t sequence)
{
	put_signalling(to, GTPU_ECHO_RESPONSE, sequence, 2);
	to[12] = IE_RECOVERY;
	to[13] = 0; // §8.2: sent as 0, ignored by the receiver
	return 14;
}

unsigned gtpu_put_error_indication(uint8_t *to, uint32_t teid, uint8_t family, const uint8_t *address)
{
	unsigned size = family == 4 ? 4 : 16;
	unsigned body = 5 + 3 + size;

	// §5.1: the S flag is set in Error Indication; the sequence number has no meaning and is 0.
	put_signalling(to, GTPU_ERROR_INDICATION, 0, body);
	to[12] = IE_TEID_DATA;
	store32(to + 13, teid);
	to[17] = IE_PEER_ADDRESS;
	store16(to + 18, size);
	memcpy(to + 20, address, size);
	return 12 + body;
}

unsigned gtpu_put_supported_extensions(uint8_t *to, uint16_t sequence)
{
	static const uint8_t list[] = {GTPU_EXT_UDP_PORT, GTPU_EXT_PDU_SESSION};

	// §5.1: with a sequence number. §8.5: one byte of length, then a byte for each type.
	put_signalling(to, GTPU_SUPPORTED_EXTENSIONS, sequence, 2 + sizeof(list));
	to[12] = IE_EXTENSION_TYPES;
	to[13] = sizeof(list);
	memcpy(to + 14, list, sizeof(list));
	return 14 + sizeof(list);
}

unsigned gtpu_put_end_marker(uint8_t *to, uint32_t teid, uint8_t qfi, uint8_t pdu_type)
{
	unsigned length = gtpu_put_gpdu(to, teid, qfi, pdu_type, 0);

	to[1] = GTPU_END_MARKER;
	return length;
}

static int ie_tlv(uint8_t type, const uint8_t *value, uint16_t size, struct gtpu_ies *out)
{
	if (type != IE_PEER_ADDRESS || out->address != NULL)
		return 1; // unknown, or a repeated one of which the first counts
	if (size != 4 && size != 16)
		return 0;
	out->family = size == 4 ? 4 : 6;
	out->address = value;
	return 1;
}

enum gtpu_status gtpu_ies_parse(const uint8_t *p, uint32_t length, struct gtpu_ies *out)
{
	uint32_t at = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; at < length; i++) {
		uint8_t type = p[at];
		uint32_t left = length - at - 1;
		if (i == MAX_IES)
			return GTPU_LENGTH;
		if (type == IE_EXTENSION_TYPES) {
			if (left < 1 || p[at + 1] > left - 1)
				return GTPU_SHORT;
			at += 2u + p[at + 1];
		} else if (type & IE_TLV) {
			if (left < 2)
				return GTPU_SHORT;
			uint16_t size = load16(p + at + 1);
			if (size > left - 2)
				return GTPU_SHORT;
			if (!ie_tlv(type, p + at + 3, size, out))
				return GTPU_LENGTH;
			at += 3u + size;
		} else if (type == IE_RECOVERY) {
			if (left < 1)
				return GTPU_SHORT;
			out->has_recovery = 1;
			out->recovery = p[at + 1];
			at += 2;
		} else if (type == IE_TEID_DATA) {
			if (left < 4)
				return GTPU_SHORT;
			if (!out->has_teid)
				out->teid = load32(p + at + 1);
			out->has_teid = 1;
			at += 5;
		} else {
			return GTPU_EXTENSION;
		}
	}
	return GTPU_OK;
}
