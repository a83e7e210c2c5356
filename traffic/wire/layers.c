// SPDX-License-Identifier: Apache-2.0
// The forms of all layers as tables: where each field lies in its header, and what it is when a profile does not give
// it.
#include "traffic/wire/stack.h"
#include <string.h>

// Header figures: IEEE 802.3, 802.1Q §9.6, RFC 2516, 791, 8200, 768, 9293, 792, 4443, TS 29.281 §5.1.
static const struct layer_form forms[LAYER_KINDS] = {
	[LAYER_ETHERNET] = {"ethernet", 14, 3,
		{
			{"destination", FORM_MAC, 0, 48, 0, ROLE_REQUIRED},
			{"source", FORM_MAC, 48, 48, 0, ROLE_REQUIRED},
			{"type", FORM_NUMBER, 96, 16, 0, ROLE_NEXT},
		}},
	[LAYER_VLAN] = {"vlan", 4, 5,
		{
			{"tpid", FORM_NUMBER, -16, 16, 0, ROLE_TPID},
			{"priority", FORM_NUMBER, 0, 3, 0, ROLE_PLAIN},
			{"dei", FORM_NUMBER, 3, 1, 0, ROLE_PLAIN},
			{"id", FORM_NUMBER, 4, 12, 0, ROLE_REQUIRED},
			{"type", FORM_NUMBER, 16, 16, 0, ROLE_NEXT},
		}},
	// The two octets of the PPP protocol are part of the layer.
	[LAYER_PPPOE] = {"pppoe", 8, 6,
		{
			{"version", FORM_NUMBER, 0, 4, 1, ROLE_PLAIN},
			{"type", FORM_NUMBER, 4, 4, 1, ROLE_PLAIN},
			{"code", FORM_NUMBER, 8, 8, 0, ROLE_PLAIN},
			{"session", FORM_NUMBER, 16, 16, 0, ROLE_REQUIRED},
			{"length", FORM_NUMBER, 32, 16, 6, ROLE_LENGTH},
			{"protocol", FORM_NUMBER, 48, 16, 0, ROLE_NEXT},
		}},
	[LAYER_IPV4] = {"ipv4", 20, 14,
		{
			{"version", FORM_NUMBER, 0, 4, 4, ROLE_PLAIN},
			{"header_length", FORM_NUMBER, 4, 4, 5, ROLE_PLAIN},
			{"dscp", FORM_NUMBER, 8, 6, 0, ROLE_PLAIN},
			{"ecn", FORM_NUMBER, 14, 2, 0, ROLE_PLAIN},
			{"length", FORM_NUMBER, 16, 16, 0, ROLE_LENGTH},
			{"id", FORM_NUMBER, 32, 16, 0, ROLE_PLAIN},
			{"df", FORM_NUMBER, 49, 1, 0, ROLE_PLAIN},
			{"mf", FORM_NUMBER, 50, 1, 0, ROLE_PLAIN},
			{"fragment_offset", FORM_NUMBER, 51, 13, 0, ROLE_PLAIN},
			{"ttl", FORM_NUMBER, 64, 8, 64, ROLE_PLAIN},
			{"protocol", FORM_NUMBER, 72, 8, 0, ROLE_NEXT},
			{"checksum", FORM_NUMBER, 80, 16, 0, ROLE_CHECKSUM},
			{"source", FORM_IPV4, 96, 32, 0, ROLE_REQUIRED},
			{"destination", FORM_IPV4, 128, 32, 0, ROLE_REQUIRED},
		}},
	[LAYER_IPV6] = {"ipv6", 40, 8,
		{
			{"version", FORM_NUMBER, 0, 4, 6, ROLE_PLAIN},
			{"traffic_class", FORM_NUMBER, 4, 8, 0, ROLE_PLAIN},
			{"flow_label", FORM_NUMBER, 12, 20, 0, ROLE_PLAIN},
			{"length", FORM_NUMBER, 32, 16, 40, ROLE_LENGTH},
			{"next_header", FORM_NUMBER, 48, 8, 0, ROLE_NEXT},
			{"hop_limit", FORM_NUMBER, 56, 8, 64, ROLE_PLAIN},
			{"source", FORM_IPV6, 64, 128, 0, ROLE_REQUIRED},
			{"destination", FORM_IPV6, 192, 128, 0, ROLE_REQUIRED},
		}},
	[LAYER_UDP] = {"udp", 8, 4,
		{
			{"source", FORM_NUMBER, 0, 16, 49152, ROLE_PORT},
			{"destination", FORM_NUMBER, 16, 16, 9, ROLE_PORT},
			{"length", FORM_NUMBER, 32, 16, 0, ROLE_LENGTH},
			{"checksum", FORM_NUMBER, 48, 16, 0, ROLE_CHECKSUM},
		}},
	[LAYER_TCP] = {"tcp", 20, 10,
		{
			{"source", FORM_NUMBER, 0, 16, 49152, ROLE_PLAIN},
			{"destination", FORM_NUMBER, 16, 16, 9, ROLE_PLAIN},
			{"sequence", FORM_NUMBER, 32, 32, 0, ROLE_PLAIN},
			{"acknowledgement", FORM_NUMBER, 64, 32, 0, ROLE_PLAIN},
			{"data_offset", FORM_NUMBER, 96, 4, 5, ROLE_PLAIN},
			{"reserved", FORM_NUMBER, 100, 4, 0, ROLE_PLAIN},
			{"flags", FORM_NUMBER, 104, 8, 0x10, ROLE_PLAIN}, // ACK
			{"window", FORM_NUMBER, 112, 16, 65535, ROLE_PLAIN},
			{"checksum", FORM_NUMBER, 128, 16, 0, ROLE_CHECKSUM},
			{"urgent", FORM_NUMBER, 144, 16, 0, ROLE_PLAIN},
		}},
	[LAYER_ICMP] = {"icmp", 8, 5,
		{
			{"type", FORM_NUMBER, 0, 8, 8, ROLE_PLAIN}, // echo
			{"code", FORM_NUMBER, 8, 8, 0, ROLE_PLAIN},
			{"checksum", FORM_NUMBER, 16, 16, 0, ROLE_CHECKSUM},
			{"id", FORM_NUMBER, 32, 16, 0, ROLE_PLAIN},
			{"sequence", FORM_NUMBER, 48, 16, 0, ROLE_PLAIN},
		}},
	[LAYER_ICMPV6] = {"icmpv6", 8, 5,
		{
			{"type", FORM_NUMBER, 0, 8, 128, ROLE_PLAIN}, // echo request
			{"code", FORM_NUMBER, 8, 8, 0, ROLE_PLAIN},
			{"checksum", FORM_NUMBER, 16, 16, 0, ROLE_CHECKSUM},
			{"id", FORM_NUMBER, 32, 16, 0, ROLE_PLAIN},
			{"sequence", FORM_NUMBER, 48, 16, 0, ROLE_PLAIN},
		}},
	[LAYER_GTPU] = {"gtpu", 8, 7,
		{
			{"flags", FORM_NUMBER, 0, 8, 0, ROLE_FLAGS},
			{"type", FORM_NUMBER, 8, 8, 255, ROLE_PLAIN}, // G-PDU
			{"length", FORM_NUMBER, 16, 16, 8, ROLE_LENGTH},
			{"teid", FORM_NUMBER, 32, 32, 0, ROLE_REQUIRED},
			{"sequence", FORM_NUMBER, 64, 16, 0, ROLE_PLAIN},
			{"npdu", FORM_NUMBER, 80, 8, 0, ROLE_PLAIN},
			{"next_extension", FORM_NUMBER, 88, 8, 0, ROLE_EXTENSION},
		}},
};

const struct layer_form *layer_form(enum layer_kind kind)
{
	return &forms[kind];
}

const struct layer_form *layer_form_by_name(const char *name, enum layer_kind *kind)
{
	for (uint32_t i = 0; i < LAYER_KINDS; i++)
		if (strcmp(forms[i].name, name) == 0) {
			*kind = (enum layer_kind)i;
			return &forms[i];
		}
	return NULL;
}

int layer_field(enum layer_kind kind, const char *name)
{
	for (int i = 0; i < forms[kind].fields; i++)
		if (strcmp(forms[kind].field[i].name, name) == 0)
			return i;
	return -1;
}

const struct value *layer_given(const struct layer *l, const char *name)
{
	int i = layer_field(l->kind, name);

	return i >= 0 && (l->field[i].given || l->field[i].any) ? &l->field[i] : NULL;
}

uint8_t layer_gtpu_flags(const struct layer *l)
{
	return (uint8_t)((l->extensions ? 4 : 0) | (layer_given(l, "sequence") ? 2 : 0) |
			 (layer_given(l, "npdu") ? 1 : 0));
}

uint16_t layer_bytes(const struct layer *l)
{
	uint16_t bytes = forms[l->kind].bytes;

	if (l->kind != LAYER_GTPU)
		return bytes;
	if (layer_gtpu_flags(l))
		bytes += 4;
	for (uint32_t i = 0; i < l->extensions; i++)
		bytes += l->extension[i].length + 2; // the length octet before and the next type behind
	return bytes;
}

const char *layer_rank(const struct stack *s, uint32_t index)
{
	static const char *const ranks[] = {"", "inner ", "third ", "fourth ", "deeper "};
	uint32_t before = 0;

	for (uint32_t i = 0; i < index; i++)
		before += s->layer[i].kind == s->layer[index].kind;
	return ranks[before < 4 ? before : 4];
}
