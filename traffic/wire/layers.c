// SPDX-License-Identifier: Apache-2.0
// The forms of all layers, and their consequences for a profile's layer.
#include "traffic/wire/stack.h"
#include <string.h>

static const struct layer_form forms[LAYER_KINDS] = {
// clang-format off
#define LAYER(kind, name, bytes) [LAYER_##kind] = {name, bytes, {
#define FIELD(name, form, bit, bits, preset, role) {name, FORM_##form, bit, bits, preset, ROLE_##role},
#define END(fields) }, fields},
#include "traffic/layers/layers.inc"
#undef LAYER
#undef FIELD
#undef END
	// clang-format on
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
