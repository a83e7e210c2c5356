// SPDX-License-Identifier: Apache-2.0
// See yaml_file.h: mappings decoded by tables of keys, and the readers of single values.
#include "traffic/profile/units.h"
#include "traffic/profile/yaml_file.h"
#include <string.h>

#define WORDS 64
#define SENTENCE 200

static const struct yaml_key *key_of(const struct yaml_key *keys, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static void unknown_key(
	struct yaml_file *f, const yaml_node_t *at, const char *name, const struct yaml_key *keys, uint32_t n)
{
	const char *words[WORDS + 1];
	char sentence[SENTENCE];
	uint32_t i = 0;

	for (; i < n && i < WORDS; i++)
		words[i] = keys[i].name;
	words[i] = NULL;
	yaml_fault(f, at, "unknown key%s", yaml_suggest(name, words, sentence, sizeof(sentence)));
}

bool yaml_decode(struct yaml_file *f, const yaml_node_t *map, const struct yaml_key *keys, uint32_t n, void *to)
{
	uint64_t seen = 0;
	const yaml_node_t *key, *value;

	if (map == NULL || map->type != YAML_MAPPING_NODE) {
		yaml_fault(f, map, "must be a mapping (key: value)");
		return false;
	}
	for (uint32_t i = 0; yaml_pair(f, map, i, &key, &value); i++) {
		const char *name = yaml_scalar(key);
		const struct yaml_key *k = name != NULL ? key_of(keys, n, name) : NULL;

		if (k == NULL) {
			unknown_key(f, key, name != NULL ? name : "", keys, n);
			continue;
		}
		if (seen >> (k - keys) & 1) {
			yaml_fault_line(f, value, yaml_line(key), "is given twice");
			continue;
		}
		seen |= UINT64_C(1) << (k - keys);
		if (k->read != NULL)
			k->read(f, value, k, (uint8_t *)to + k->offset);
	}
	for (uint32_t i = 0; i < n; i++)
		if (keys[i].required && !(seen >> i & 1))
			yaml_fault(f, map, "needs a key \"%s\"", keys[i].name);
	return true;
}

const char *yaml_single(struct yaml_file *f, const yaml_node_t *n)
{
	const char *text = yaml_scalar(n);

	if (text == NULL)
		yaml_fault(f, n, "must be a single value, not a mapping or a list");
	return text;
}

void yaml_refuse(struct yaml_file *f, const yaml_node_t *n, const char *text, const char *wanted)
{
	char quote[YAML_QUOTE];

	if (text[0] == 0)
		yaml_fault(f, n, "has no value; it must be %s", wanted);
	else
		yaml_fault(f, n, "\"%s\" must be %s", yaml_quote(text, quote), wanted);
}

void yaml_text(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const char *text = yaml_single(f, n);

	if (text == NULL)
		return;
	size_t length = strlen(text);
	if (length >= (size_t)k->high) {
		yaml_fault(f, n, "is longer than %d bytes", (int)k->high - 1);
		return;
	}
	if (length < (size_t)k->low) {
		yaml_fault(f, n, "has no value");
		return;
	}
	for (const char *p = text; *p != 0; p++) {
		if ((uint8_t)*p < 0x20 || *p == 0x7f) {
			yaml_fault(f, n, "has a control character");
			return;
		}
	}
	memcpy(to, text, length + 1);
}

void yaml_name(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const char *text = yaml_single(f, n);
	char wanted[SENTENCE];

	if (text == NULL)
		return;
	size_t length = strlen(text);
	if (length == 0 || length >= (size_t)k->high ||
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-") != length) {
		snprintf(wanted, sizeof(wanted), "a name of 1 to %.0f letters, digits, and . _ : -", k->high - 1);
		yaml_refuse(f, n, text, wanted);
		return;
	}
	memcpy(to, text, length + 1);
}

void yaml_bool(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const char *text = yaml_single(f, n);

	if (text == NULL)
		return;
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		*(bool *)to = text[0] == 't';
	else
		yaml_refuse(f, n, text, "true or false");
}

static bool whole(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, uint64_t *to)
{
	const char *text = yaml_single(f, n);
	char wanted[SENTENCE];

	if (text == NULL)
		return false;
	if (whole_parse(text, to) == 0 && (double)*to >= k->low && (double)*to <= k->high)
		return true;
	snprintf(wanted, sizeof(wanted), "a whole number from %.0f to %.0f", k->low, k->high);
	yaml_refuse(f, n, text, wanted);
	return false;
}

void yaml_u32(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	uint64_t value;

	if (whole(f, n, k, &value))
		*(uint32_t *)to = (uint32_t)value;
}

void yaml_u64(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	uint64_t value;

	if (whole(f, n, k, &value))
		*(uint64_t *)to = value;
}

void yaml_word(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	const char *text = yaml_single(f, n);
	char list[SENTENCE], near[SENTENCE], quote[YAML_QUOTE];
	size_t at = 0;

	if (text == NULL)
		return;
	list[0] = 0;
	for (int i = 0; k->words[i] != NULL; i++) {
		if (strcmp(text, k->words[i]) == 0) {
			*(int *)to = i;
			return;
		}
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i > 0 ? ", " : "", k->words[i]);
	}
	yaml_fault(f, n, "\"%s\" is none of %s%s", yaml_quote(text, quote), list,
		yaml_suggest(text, k->words, near, sizeof(near)));
}

// A number that `parse` understands, within the key's bounds.
static void bounded(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, double *to,
	int (*parse)(const char *, double *), double scale, const char *kind, const char *unit)
{
	const char *text = yaml_single(f, n);
	char wanted[SENTENCE];
	double value;

	if (text == NULL)
		return;
	if (parse(text, &value) == 0 && value >= k->low && value <= k->high) {
		*to = value;
		return;
	}
	snprintf(wanted, sizeof(wanted), "%s from %.10g%s to %.10g%s", kind, k->low * scale, unit, k->high * scale,
		unit);
	yaml_refuse(f, n, text, wanted);
}

void yaml_part(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	bounded(f, n, k, to, part_parse, 100, "a part (0.5 or 50%)", "%");
}

void yaml_seconds(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	bounded(f, n, k, to, seconds_parse, 1, "a time (2, 2s or 500ms)", " s");
}

void yaml_real(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	bounded(f, n, k, to, real_parse, 1, "a number", "");
}
