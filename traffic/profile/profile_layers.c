// SPDX-License-Identifier: Apache-2.0
// See profile.h: lists of layers, from outermost to innermost, and the values of their fields.
#include "traffic/profile/profile_read.h"
#include "traffic/profile/units.h"
#include <string.h>

#define EXTENSION_PDU_SESSION 0x85 // TS 29.281 §5.2.2.7
#define EXTENSION_BYTES 30

static void put_be(uint8_t bytes[16], uint64_t value)
{
	for (int i = 0; i < 8; i++)
		bytes[15 - i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get_be32(const uint8_t *from)
{
	return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

// A single value of a field, right-aligned in `to`.
static void read_bytes(struct yaml_file *f, const yaml_node_t *n, const struct field_form_of *form, uint8_t to[16])
{
	const char *text = yaml_single(f, n);
	char wanted[64];
	struct profile_address a;
	uint64_t value;

	if (text == NULL)
		return;
	memset(to, 0, 16);
	switch (form->form) {
	case FORM_NUMBER:
		if (whole_parse(text, &value) == 0 && (form->bits >= 64 || value >> form->bits == 0)) {
			put_be(to, value);
			return;
		}
		snprintf(wanted, sizeof(wanted), "a number from 0 to %.0f",
			(double)((UINT64_C(1) << (form->bits < 63 ? form->bits : 63)) - 1));
		break;
	case FORM_MAC:
		if (mac_parse(text, to + 10) == 0)
			return;
		snprintf(wanted, sizeof(wanted), "a MAC address (02:00:00:00:00:01)");
		break;
	case FORM_IPV4:
	case FORM_IPV6:
		if (address_parse(text, &a) == 0 && (a.version == 4) == (form->form == FORM_IPV4)) {
			memcpy(to + (a.version == 4 ? 12 : 0), a.bytes, a.version == 4 ? 4 : 16);
			return;
		}
		snprintf(wanted, sizeof(wanted), "an %s address", form->form == FORM_IPV4 ? "IPv4" : "IPv6");
		break;
	}
	yaml_refuse(f, n, text, wanted);
}

static void read_base(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	read_bytes(f, n, k->arg, ((struct value *)to)->bytes);
}

// A number, or for IPv6 an address that says which 32-bit word is counted: 0:0:0:1:: counts /64 prefixes.
static void read_step(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const struct field_form_of *form = k->arg;
	const char *text = yaml_single(f, n);
	struct value *v = to;
	struct profile_address a;
	char quote[YAML_QUOTE];
	uint64_t step;

	if (text == NULL)
		return;
	if (whole_parse(text, &step) == 0 && step <= UINT32_MAX) {
		v->step = (uint32_t)step;
		return;
	}
	if (form->form == FORM_IPV6 && address_parse(text, &a) == 0 && a.version == 6) {
		int words = 0;

		for (uint8_t i = 0; i < 4; i++) {
			if (get_be32(a.bytes + 4 * i) != 0) {
				v->step = get_be32(a.bytes + 4 * i);
				v->word = i;
				words++;
			}
		}
		if (words == 1)
			return;
		yaml_fault(f, n, "\"%s\": exactly one 32-bit word of an address that is a step is not 0",
			yaml_quote(text, quote));
		return;
	}
	yaml_refuse(f, n, text,
		form->form == FORM_IPV6 ? "a number up to 4294967295, or an address with one 32-bit word that is not 0"
					: "a number up to 4294967295");
}

static const struct yaml_key value_keys[] = {
	{.name = "base", .read = read_base, .required = true},
	{.name = "step", .read = read_step},
	{.name = "each", .read = yaml_u32, .offset = offsetof(struct value, each), .low = 1, .high = UINT32_MAX},
	{.name = "count", .read = yaml_u32, .offset = offsetof(struct value, count), .high = UINT32_MAX},
};

static void read_value(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct value *v = to;
	struct yaml_key keys[KEYS(value_keys)];
	const char *text = yaml_scalar(n);

	*v = (struct value){.given = true, .word = 3, .each = 1};
	if (text != NULL && strcmp(text, "any") == 0) {
		v->any = true;
	} else if (text != NULL) {
		read_bytes(f, n, k->arg, v->bytes);
	} else if (n->type == YAML_SEQUENCE_NODE) {
		yaml_fault(f, n, "must be a value, any, or {base, step, each, count}");
	} else {
		v->step = 1;
		memcpy(keys, value_keys, sizeof(keys));
		for (uint32_t i = 0; i < KEYS(keys); i++)
			keys[i].arg = k->arg;
		yaml_decode(f, n, keys, KEYS(keys), v);
	}
}

struct pdu_session {
	int type; // as in TS 38.415 §5.5.2: 0 downlink, 1 uplink
	uint32_t qfi;
};
static const char *const pdu_types[] = {"downlink", "uplink", NULL};
static const struct yaml_key pdu_session_keys[] = {
	{.name = "type",
		.read = yaml_word,
		.offset = offsetof(struct pdu_session, type),
		.words = pdu_types,
		.required = true},
	{.name = "qfi", .read = yaml_u32, .offset = offsetof(struct pdu_session, qfi), .high = 63, .required = true},
};

static void read_pdu_session(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct extension *e = to;
	struct pdu_session s = {0};

	yaml_decode(f, n, pdu_session_keys, KEYS(pdu_session_keys), &s);
	*e = (struct extension){
		.type = EXTENSION_PDU_SESSION, .length = 2, .content = {(uint8_t)(s.type << 4), (uint8_t)s.qfi}};
}

static void read_content(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct extension *e = to;
	const char *text = yaml_scalar(n);
	size_t digits = text != NULL ? strlen(text) : 0, bytes = digits / 2;

	// TS 29.281 §5.2.1: the header with its length and next type is a multiple of four bytes.
	if (digits % 2 != 0 || bytes % 4 != 2 || bytes > EXTENSION_BYTES) {
		yaml_fault(f, n, "must be 2, 6, 10, ... 30 bytes in hexadecimal");
		return;
	}
	for (size_t i = 0; i < bytes; i++) {
		char byte[] = {'0', 'x', text[2 * i], text[2 * i + 1], 0};
		uint64_t value;

		if (whole_parse(byte, &value) != 0) {
			yaml_fault(f, n, "must be in hexadecimal, without blanks");
			return;
		}
		e->content[i] = (uint8_t)value;
	}
	e->length = (uint8_t)bytes;
}

static void read_type(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	uint32_t type = 0;

	yaml_u32(f, n, k, &type);
	*(uint8_t *)to = (uint8_t)type;
}

static const struct yaml_key raw_keys[] = {
	{.name = "type",
		.read = read_type,
		.offset = offsetof(struct extension, type),
		.low = 1,
		.high = 255,
		.required = true},
	{.name = "content", .read = read_content, .required = true},
};

static void read_raw(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	yaml_decode(f, n, raw_keys, KEYS(raw_keys), to);
}

static const struct yaml_key extension_keys[] = {
	{.name = "pdu-session", .read = read_pdu_session},
	{.name = "raw", .read = read_raw},
};

static void read_extensions(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct layer *l = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) > LAYER_EXTENSIONS) {
		yaml_fault(f, n, "must be a list of at most %d extension headers", LAYER_EXTENSIONS);
		return;
	}
	for (uint32_t i = 0; i < yaml_entries(n); i++) {
		const yaml_node_t *one = yaml_entry(f, n, i);

		if (yaml_decode(f, one, extension_keys, KEYS(extension_keys), &l->extension[l->extensions]) &&
			yaml_pairs(one) != 1)
			yaml_fault(f, one, "must be one extension header: pdu-session or raw");
		l->extensions++;
	}
}

const struct profile_form layer_forms[] = {
	{"value", value_keys, KEYS(value_keys)},
	{"pdu-session", pdu_session_keys, KEYS(pdu_session_keys)},
	{"raw", raw_keys, KEYS(raw_keys)},
	{"extensions", extension_keys, KEYS(extension_keys)},
	{NULL, NULL, 0},
};

static void read_fields(struct yaml_file *f, const yaml_node_t *n, struct layer *l)
{
	const struct layer_form *form = layer_form(l->kind);
	struct yaml_key keys[LAYER_FIELDS + 1];
	const char *text = yaml_scalar(n);
	uint32_t k = 0;

	if (text != NULL && text[0] == 0) // "- udp:", with nothing behind it
		return;
	for (; k < form->fields; k++)
		keys[k] = (struct yaml_key){.name = form->field[k].name,
			.read = read_value,
			.offset = offsetof(struct layer, field) + k * sizeof(struct value),
			.arg = &form->field[k]};
	if (l->kind == LAYER_GTPU)
		keys[k++] = (struct yaml_key){.name = "extensions", .read = read_extensions};
	yaml_decode(f, n, keys, k, l);
}

bool profile_read_stack(struct yaml_file *f, const yaml_node_t *list, struct stack *s)
{
	uint32_t before = f->faults;
	const yaml_node_t *key, *value;

	if (list->type != YAML_SEQUENCE_NODE || yaml_entries(list) == 0 || yaml_entries(list) > STACK_LAYERS) {
		yaml_fault(f, list, "must be a list of 1 to %d layers, the outermost first", STACK_LAYERS);
		return false;
	}
	for (uint32_t i = 0; i < yaml_entries(list); i++) {
		const yaml_node_t *one = yaml_entry(f, list, i);
		struct layer *l = &s->layer[s->layers++];

		*l = (struct layer){.line = yaml_line(one)};
		if (!yaml_pair(f, one, 0, &key, &value) || yaml_pairs(one) != 1 || yaml_scalar(key) == NULL) {
			yaml_fault(f, one, "must be one layer: a name and a mapping of its fields");
			continue;
		}
		if (layer_form_by_name(yaml_scalar(key), &l->kind) == NULL) {
			const char *words[LAYER_KINDS + 1] = {NULL};
			char near[YAML_FAULT_BYTES];

			for (uint32_t w = 0; w < LAYER_KINDS; w++)
				words[w] = layer_form((enum layer_kind)w)->name;
			yaml_fault(f, key, "there is no such layer%s",
				yaml_suggest(yaml_scalar(key), words, near, sizeof(near)));
			continue;
		}
		read_fields(f, value, l);
	}
	return f->faults == before;
}
