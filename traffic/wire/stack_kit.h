// SPDX-License-Identifier: Apache-2.0
// Stacks for the tests and the fuzz target: setters by name, and every combination of layers that there is.
#ifndef TRAFFIC_STACK_KIT_H
#define TRAFFIC_STACK_KIT_H

#include "traffic/wire/stack.h"
#include "traffic/wire/tag.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline struct value *kit_value(struct layer *l, const char *field)
{
	return &l->field[layer_field(l->kind, field)];
}

static inline struct layer *kit_layer(struct stack *s, enum layer_kind kind)
{
	struct layer *l = &s->layer[s->layers++];

	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->line = s->layers * 10;
	return l;
}

static inline struct value *kit_set(struct layer *l, const char *field, uint64_t number)
{
	struct value *v = kit_value(l, field);

	memset(v, 0, sizeof(*v));
	v->given = true;
	v->word = 3;
	v->each = 1;
	for (int i = 15; i >= 8; i--, number >>= 8)
		v->bytes[i] = (uint8_t)number;
	return v;
}

static inline struct value *kit_count(
	struct layer *l, const char *field, uint64_t base, uint32_t step, uint32_t each, uint32_t count)
{
	struct value *v = kit_set(l, field, base);

	v->step = step;
	v->each = each;
	v->count = count;
	return v;
}

static inline void kit_any(struct layer *l, const char *field)
{
	kit_set(l, field, 0)->any = true;
}

static inline struct value *kit_ipv6_address(struct layer *l, const char *field, uint64_t high, uint64_t low)
{
	struct value *v = kit_set(l, field, low);

	for (int i = 7; i >= 0; i--, high >>= 8)
		v->bytes[i] = (uint8_t)high;
	return v;
}

static inline void kit_extension(struct layer *l, uint8_t type, const uint8_t *content, uint8_t length)
{
	struct extension *e = &l->extension[l->extensions++];

	e->type = type;
	e->length = length;
	memcpy(e->content, content, length);
}

static inline void kit_ethernet(struct stack *s)
{
	struct layer *l = kit_layer(s, LAYER_ETHERNET);

	kit_set(l, "destination", 0x020000aa0001);
	kit_count(l, "source", 0x020100000000, 1, 4, 0);
}

// An IP layer; `depth` gives each its own addresses.
static inline void kit_ip(struct stack *s, bool v6, uint32_t depth)
{
	struct layer *l = kit_layer(s, v6 ? LAYER_IPV6 : LAYER_IPV4);

	if (v6) {
		kit_ipv6_address(l, "source", 0x20010db800000000 + depth, 1)->step = 0x10001;
		kit_ipv6_address(l, "destination", 0x20010db8ffff0000 + depth, 0xffffffff00000000);
		kit_value(l, "destination")->step = 3; // of the word that ends the /64
		kit_value(l, "destination")->word = 1;
		kit_count(l, "flow_label", 0x12345, 7, 2, 9);
		kit_count(l, "traffic_class", 0xb8, 1, 1, 4);
	} else {
		kit_count(l, "source", 0x0a400000 + depth * 0x10000, 1, 4, 0);
		kit_set(l, "destination", 0xcb007150 + depth);
		kit_count(l, "dscp", 8, 2, 1, 20);
		kit_set(l, "df", 1);
		kit_count(l, "id", 0x1234, 0x101, 1, 0);
	}
}

enum kit_carrier {
	KIT_NO_TUNNEL,
	KIT_GTPU4,
	KIT_GTPU6,
	KIT_GTPU4_CHECKSUM,
	KIT_GTPU6_CHECKSUM,
	KIT_GTPU4_SEQUENCE,
	KIT_GTPU6_EXTENSION,
	KIT_GTPU4_ALL, // sequence, N-PDU number, two extensions
	KIT_CARRIERS
};

static inline void kit_tunnel(struct stack *s, enum kit_carrier how)
{
	bool v6 = how == KIT_GTPU6 || how == KIT_GTPU6_CHECKSUM || how == KIT_GTPU6_EXTENSION;
	struct layer *l;

	if (how == KIT_NO_TUNNEL)
		return;
	kit_ip(s, v6, 1);
	l = kit_layer(s, LAYER_UDP);
	if (how == KIT_GTPU4_CHECKSUM || how == KIT_GTPU6_CHECKSUM)
		kit_set(l, "checksum", 1);
	l = kit_layer(s, LAYER_GTPU);
	kit_count(l, "teid", 0x10000000, 1, 4, 0);
	if (how == KIT_GTPU4_SEQUENCE || how == KIT_GTPU4_ALL)
		kit_count(l, "sequence", 0xff00, 1, 1, 16);
	if (how == KIT_GTPU4_ALL)
		kit_set(l, "npdu", 77);
	if (how == KIT_GTPU6_EXTENSION || how == KIT_GTPU4_ALL)
		kit_extension(l, 0x85, (const uint8_t[]){0x10, 9}, 2);
	if (how == KIT_GTPU4_ALL)
		kit_extension(l, 0x03, (const uint8_t[]){1, 2, 3, 4, 5, 6}, 6);
}

enum kit_user { KIT_NO_L4, KIT_UDP, KIT_UDP_CHECKSUM, KIT_UDP_ZERO, KIT_TCP, KIT_ICMP, KIT_USERS };

static inline void kit_l4(struct stack *s, bool v6, enum kit_user how)
{
	struct layer *l;

	if (how == KIT_NO_L4)
		return;
	l = kit_layer(s, how == KIT_TCP ? LAYER_TCP : how != KIT_ICMP ? LAYER_UDP : v6 ? LAYER_ICMPV6 : LAYER_ICMP);
	if (how == KIT_ICMP) {
		kit_count(l, "id", 1, 1, 1, 0);
		return;
	}
	kit_set(l, "source", 4000);
	kit_count(l, "destination", 5000, 1, 1, 4);
	if (how == KIT_UDP_CHECKSUM || how == KIT_UDP_ZERO)
		kit_set(l, "checksum", how == KIT_UDP_CHECKSUM);
	if (how == KIT_TCP)
		kit_count(l, "sequence", 0xfffff000, 16, 1, 256);
}

// Adds the layers of a text: "ethernet destination=0x020000aa0001 source=0x020100000000+1/4; udp source=any". A field
// has a base, +step, /each and %count. An IPv6 address is its first eight bytes and the rest after a colon. GTP-U's
// extension is the PDU session container, by its QFI.
static inline void kit_text(struct stack *s, const char *text)
{
	char copy[1024], *rest = copy, *one, *fields, *name, *at;
	enum layer_kind kind;

	snprintf(copy, sizeof(copy), "%s", text);
	while ((one = strsep(&rest, ";")) != NULL) {
		fields = one + strspn(one, " ");
		if (layer_form_by_name(strsep(&fields, " "), &kind) == NULL)
			abort();
		struct layer *l = kit_layer(s, kind);

		while ((name = strsep(&fields, " ")) != NULL) {
			char *value = strchr(name, '=');

			*value++ = 0;
			if (strcmp(name, "uplink") == 0) {
				kit_extension(l, 0x85, (const uint8_t[]){0x10, (uint8_t)strtoul(value, NULL, 0)}, 2);
				continue;
			}
			uint64_t number = strtoull(value, &at, 0);
			bool v6 = *at == ':';
			struct value *v = v6 ? kit_ipv6_address(l, name, number, strtoull(at + 1, &at, 0))
					     : kit_set(l, name, number);

			v->word = v6 ? 1 : 3; // of the word that ends the /64
			v->any = strcmp(value, "any") == 0;
			v->step = *at == '+' ? (uint32_t)strtoul(at + 1, &at, 0) : 0;
			v->each = *at == '/' ? (uint32_t)strtoul(at + 1, &at, 0) : 1;
			v->count = *at == '%' ? (uint32_t)strtoul(at + 1, &at, 0) : 0;
		}
	}
}

// Compiles what must be good.
static inline void kit_compile(const struct stack *s, uint32_t flows, bool received, struct template *t)
{
	char error[256] = "";
	int line;

	if (stack_compile(s, flows, received, t, error, sizeof(error), &line) == 0)
		return;
	fprintf(stderr, "line %d: %s\n", line, error);
	abort();
}

// A frame as a sender makes it, its tag zeros.
static inline void kit_frame(const struct template *t, uint32_t flow, uint32_t length, uint8_t *frame)
{
	for (uint32_t i = t->length; i < length; i++)
		frame[i] = i + TAG_BYTES < length ? (uint8_t)(i - t->length) : 0;
	template_write(t, flow, length, frame + t->length, frame);
}

#define KIT_TAGS 4 // 0 to 3
#define KIT_STACKS (KIT_TAGS * 2 * KIT_CARRIERS * 2 * KIT_USERS)

// One of KIT_STACKS combinations.
static inline void kit_stack(uint32_t index, struct stack *s)
{
	uint32_t tags = index % KIT_TAGS, pppoe = index / KIT_TAGS % 2, rest = index / KIT_TAGS / 2;
	bool v6 = rest / KIT_CARRIERS % 2;

	memset(s, 0, sizeof(*s));
	kit_ethernet(s);
	for (uint32_t i = 0; i < tags; i++) {
		struct layer *l = kit_layer(s, LAYER_VLAN);

		kit_count(l, "id", 100 + 100 * i, 1, 1 + i, 90);
		kit_count(l, "priority", 0, 1, 1, 8);
	}
	if (pppoe)
		kit_count(kit_layer(s, LAYER_PPPOE), "session", 1, 1, 4, 0);
	kit_tunnel(s, (enum kit_carrier)(rest % KIT_CARRIERS));
	kit_ip(s, v6, 0);
	kit_l4(s, v6, (enum kit_user)(rest / KIT_CARRIERS / 2 % KIT_USERS));
}

#endif
