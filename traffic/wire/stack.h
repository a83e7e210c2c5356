// SPDX-License-Identifier: Apache-2.0
// An encapsulation stack (Ethernet, tags, PPPoE, IP, UDP, GTP-U, …) of a profile, and the template of header bytes
// compiled from it. Shares no code with the gateway, whose output is compared with it.
//
// Pure: no I/O, no globals, no DPDK. All multi-byte values in `bytes` are in network order.
#ifndef TRAFFIC_STACK_H
#define TRAFFIC_STACK_H

#include "traffic/job/job.h"
#include <stdbool.h>
#include <stddef.h>

#define TEMPLATE_BYTES 256
#define TEMPLATE_FIELDS 32
#define TEMPLATE_LENGTHS 12
#define TEMPLATE_SUMS 8
#define FCS 4 // frame sizes of a profile include it, frames in memory do not

enum layer_kind {
	LAYER_ETHERNET,
	LAYER_VLAN,
	LAYER_PPPOE,
	LAYER_IPV4,
	LAYER_IPV6,
	LAYER_UDP,
	LAYER_TCP,
	LAYER_ICMP,
	LAYER_ICMPV6,
	LAYER_GTPU,
	LAYER_KINDS
};

// A field's notation in a profile, and its place in the header.
enum field_form { FORM_NUMBER, FORM_MAC, FORM_IPV4, FORM_IPV6 };
// A field's value when the profile gives none. A given value overrides all of them, so that wrong headers can be sent
// on purpose. Of UDP's checksum a profile can only say whether it is there (0: none, 1: computed).
enum field_role {
	ROLE_PLAIN, // its preset
	ROLE_REQUIRED, // a fault: no preset makes sense (addresses, ids)
	ROLE_NEXT, // says what follows: EtherType, PPP protocol, IP protocol
	ROLE_LENGTH, // of the rest of the frame; the first `preset` octets of the header do not count
	ROLE_CHECKSUM,
	ROLE_TPID, // stands in the type of the layer before
	ROLE_PORT, // 2152 before GTP-U (TS 29.281 §4.4.2), else its preset
	ROLE_FLAGS, // of GTP-U: version 1, and E, S, PN as the profile needs
	ROLE_EXTENSION, // type of the first GTP-U extension header
};
struct field_form_of {
	const char *name; // "source", "ttl", …
	enum field_form form;
	int16_t bit; // offset in the header, network bit order (IEEE 802 and RFC figures); < 0: in the header before
	uint16_t bits; // width
	uint32_t preset;
	enum field_role role;
};
struct layer_form {
	const char *name; // "ethernet", "vlan", …
	uint16_t bytes; // of the header without options and extensions
	struct field_form_of field[JOB_FIELDS];
	uint8_t fields;
};
// The form of a kind; by name (NULL: none such). Static tables.
const struct layer_form *layer_form(enum layer_kind kind);
const struct layer_form *layer_form_by_name(const char *name, enum layer_kind *kind);
// Index of a field in its layer, or -1.
int layer_field(enum layer_kind kind, const char *name);

// The value that the profile gives to the field `name` of a layer, or NULL.
const struct value *layer_given(const struct layer *l, const char *name);
// E, S and PN of GTP-U as the profile's values ask for them (TS 29.281 §5.1).
uint8_t layer_gtpu_flags(const struct layer *l);
// Bytes of a layer's header with GTP-U's optional octets and extensions.
uint16_t layer_bytes(const struct layer *l);
// Distinguishes a layer from outer ones of its kind: "", "inner ", "third ", …
const char *layer_rank(const struct stack *s, uint32_t index);

// A big-endian number of `width` bytes (1, 2, 4) at `offset` that varies by flow: step * ((flow / each) % count) is
// added. It never carries into neighbours in the same bytes (VLAN priority and id): stack_compile() has checked all
// flows. Two fields may share bytes.
struct template_field {
	uint16_t offset;
	uint8_t width;
	uint32_t step, each, count; // step as it is added (shifted to the field's place); count 0: never wraps
};
// A 16-bit length: frame bytes without FCS minus `less`. PPPoE, IPv4, IPv6, UDP, GTP-U.
struct template_length {
	uint16_t offset, less;
};
enum sum_kind { SUM_IPV4_HEADER, SUM_L4 };
struct template_sum {
	enum sum_kind kind;
	uint16_t offset; // of the checksum
	uint16_t start; // of what it covers: the IPv4 header, or the L4 header; the latter reaches to the frame's end
	uint16_t addresses; // where both addresses of the pseudo header (RFC 768, RFC 8200 §8.1) begin
	uint16_t address_bytes; // of both; 0: there is no pseudo header (ICMP over IPv4)
	uint8_t protocol;
	bool udp; // computed 0 is sent as 0xffff
};

// The header of every flow of a stream at every size.
struct template
{
	uint16_t length; // header bytes
	uint16_t inner_l3; // offset of the innermost IP header; 0: there is none
	uint8_t bytes[TEMPLATE_BYTES]; // of flow 0; zeros where `size` and `sum` write
	// 1 bits are compared; header bytes only. Zeros for fields that are `any`, and for checksums that cover one (an
	// IPv4 id that is `any` also masks its header checksum). Those keep their entry in `sum`: the receiver computes
	// them over the received bytes. A checksum that is itself `any` has no entry.
	uint8_t mask[TEMPLATE_BYTES];
	uint8_t fields, lengths, sums;
	struct template_field field[TEMPLATE_FIELDS];
	struct template_length size[TEMPLATE_LENGTHS];
	struct template_sum sum[TEMPLATE_SUMS]; // innermost first
	struct stack stack; // for template_name()
};

// Compiles `s`. `flows`: of the stream; a counted field that would exceed its width is an error. `received`: `any` is
// allowed. Missing fields are computed (enum field_role). UDP has no checksum over IPv4 and below GTP-U (RFC 768, RFC
// 6935 §5) unless the profile says `checksum: 1`; over IPv6 it has one unless it says `checksum: 0`. GTP-U has a
// sequence or N-PDU number if the profile gives one (or `any`). Returns 0, or -1 with a sentence in `error` (layer and
// field) and its line in `line`; then *t is unusable.
int stack_compile(
	const struct stack *s, uint32_t flows, bool received, struct template *t, char *error, size_t n, int *line);

// Writes the header of `flow` for a frame of `frame` bytes (no FCS, at least t->length) to `to` (room for t->length
// bytes). Fills in fields, lengths, IPv4 header checksums, and L4 checksums over this header and `payload` (frame -
// t->length bytes, NULL: zeros). The last TAG_BYTES of the payload count as zeros. Any thread.
void template_write(const struct template *t, uint32_t flow, uint32_t frame, const uint8_t *payload, uint8_t *to);

// The innermost L4 checksum there is, which depends on the payload, or NULL. Outer checksums that cover it do not
// change with the payload, because an L4 segment with a good checksum sums up to a constant.
const struct template_sum *template_payload_sum(const struct template *t);

// "gtpu.teid" for the field that holds byte `offset` of the header, "ipv4.dscp/ecn" where several share it; "payload"
// behind the header. The second layer of a kind is "inner ipv4". Always ends the string (n >= 1).
void template_name(const struct template *t, uint16_t offset, char *to, size_t n);

#endif
