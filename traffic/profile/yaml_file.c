// SPDX-License-Identifier: Apache-2.0
// See yaml_file.h: reading and bounding a file, its places, its faults.
#include "traffic/profile/yaml_file.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_TEXT 160
#define ANCHORS 256 // libyaml compares each with all before it

int yaml_line(const yaml_node_t *n)
{
	return n != NULL ? (int)n->start_mark.line + 1 : 1;
}

static int index_of(const struct yaml_file *f, const yaml_node_t *n)
{
	return (int)(n - f->document.nodes.start) + 1;
}

static const yaml_node_t *node_at(const struct yaml_file *f, int index)
{
	return &f->document.nodes.start[index - 1];
}

const char *yaml_scalar(const yaml_node_t *n)
{
	if (n == NULL || n->type != YAML_SCALAR_NODE)
		return NULL;
	const char *text = (const char *)n->data.scalar.value;
	if (n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
		return "";
	return text;
}

uint32_t yaml_entries(const yaml_node_t *list)
{
	if (list == NULL || list->type != YAML_SEQUENCE_NODE)
		return 0;
	return (uint32_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

const yaml_node_t *yaml_entry(struct yaml_file *f, const yaml_node_t *list, uint32_t i)
{
	return i < yaml_entries(list) ? node_at(f, list->data.sequence.items.start[i]) : NULL;
}

uint32_t yaml_pairs(const yaml_node_t *map)
{
	if (map == NULL || map->type != YAML_MAPPING_NODE)
		return 0;
	return (uint32_t)(map->data.mapping.pairs.top - map->data.mapping.pairs.start);
}

bool yaml_pair(
	struct yaml_file *f, const yaml_node_t *map, uint32_t i, const yaml_node_t **key, const yaml_node_t **value)
{
	if (i >= yaml_pairs(map))
		return false;
	*key = node_at(f, map->data.mapping.pairs.start[i].key);
	*value = node_at(f, map->data.mapping.pairs.start[i].value);
	return true;
}

const yaml_node_t *yaml_get(struct yaml_file *f, const yaml_node_t *map, const char *key)
{
	const yaml_node_t *k, *v;

	for (uint32_t i = 0; yaml_pair(f, map, i, &k, &v); i++) {
		const char *text = yaml_scalar(k);

		if (text != NULL && strcmp(text, key) == 0)
			return v;
	}
	return NULL;
}

const char *yaml_quote(const char *text, char to[YAML_QUOTE])
{
	size_t n = 0;

	for (; text[n] != 0 && n < YAML_QUOTE - 4; n++)
		to[n] = (uint8_t)text[n] < 0x20 || text[n] == 0x7f ? '?' : text[n];
	memcpy(to + n, text[n] != 0 ? "..." : "", text[n] != 0 ? 4 : 1);
	return to;
}

// ".key" or "[3]": where a node stands in the mapping or list above it.
static void step_text(struct yaml_file *f, const yaml_node_t *above, int index, char *to, size_t n)
{
	const yaml_node_t *key, *value;
	char quote[YAML_QUOTE];

	to[0] = 0;
	for (uint32_t i = 0; i < yaml_entries(above); i++) {
		if (above->data.sequence.items.start[i] == index) {
			snprintf(to, n, "[%u]", i);
			return;
		}
	}
	for (uint32_t i = 0; yaml_pair(f, above, i, &key, &value); i++) {
		if (index_of(f, key) == index || index_of(f, value) == index) {
			const char *text = yaml_scalar(key);

			snprintf(to, n, ".%s", text != NULL ? yaml_quote(text, quote) : "?");
			return;
		}
	}
}

// "streams[0].send[1].vlan.id" for a node, "" for the root.
static void path_text(struct yaml_file *f, const yaml_node_t *at, char to[PATH_TEXT])
{
	char step[YAML_QUOTE + 2];
	size_t start = PATH_TEXT - 1;

	to[start] = 0;
	for (int i = at != NULL ? index_of(f, at) : 0; i > 0 && f->parent[i] > 0; i = f->parent[i]) {
		step_text(f, node_at(f, f->parent[i]), i, step, sizeof(step));
		size_t n = strlen(step);

		if (n > start)
			break;
		start -= n;
		memcpy(to + start, step, n);
	}
	if (to[start] == '.')
		start++;
	memmove(to, to + start, PATH_TEXT - start);
}

static void keep_fault(struct yaml_file *f, const yaml_node_t *at, int line, const char *format, va_list list)
{
	char path[PATH_TEXT];

	if (f->faults++ >= YAML_FAULTS)
		return;
	struct yaml_fault *fault = &f->fault[f->faults - 1];
	path_text(f, at, path);
	fault->line = line;
	int n = snprintf(fault->text, sizeof(fault->text), "%s%s", path, path[0] != 0 ? ": " : "");
	vsnprintf(fault->text + n, sizeof(fault->text) - (size_t)n, format, list);
}

void yaml_fault(struct yaml_file *f, const yaml_node_t *at, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	keep_fault(f, at, yaml_line(at), format, list);
	va_end(list);
}

void yaml_fault_line(struct yaml_file *f, const yaml_node_t *at, int line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	keep_fault(f, at, line > 0 ? line : yaml_line(at), format, list);
	va_end(list);
}

static void write_faults(struct yaml_file *f)
{
	uint32_t n = f->faults < YAML_FAULTS ? f->faults : YAML_FAULTS;

	// Stable, so that what was found first on a line is told first.
	for (uint32_t i = 1; i < n; i++) {
		struct yaml_fault one = f->fault[i];
		uint32_t j = i;

		for (; j > 0 && f->fault[j - 1].line > one.line; j--)
			f->fault[j] = f->fault[j - 1];
		f->fault[j] = one;
	}
	for (uint32_t i = 0; i < n; i++)
		fprintf(f->errors, "%s:%d: %s\n", f->name, f->fault[i].line, f->fault[i].text);
	if (f->faults > n)
		fprintf(f->errors, "%s: and %u more faults\n", f->name, f->faults - n);
}

// Levenshtein's distance; of long words it is not asked for.
static uint32_t distance(const char *a, const char *b)
{
	uint8_t row[YAML_QUOTE];
	size_t n = strlen(b);

	if (strlen(a) >= YAML_QUOTE || n >= YAML_QUOTE)
		return YAML_QUOTE;
	for (size_t j = 0; j <= n; j++)
		row[j] = (uint8_t)j;
	for (size_t i = 1; a[i - 1] != 0; i++) {
		uint8_t diagonal = row[0];

		row[0] = (uint8_t)i;
		for (size_t j = 1; j <= n; j++) {
			uint8_t best = (uint8_t)(diagonal + (a[i - 1] != b[j - 1]));

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

const char *yaml_suggest(const char *word, const char *const *words, char *to, size_t n)
{
	const char *best = NULL;
	uint32_t least = 3;

	for (; *words != NULL; words++) {
		uint32_t d = distance(word, *words);

		if (d < least && d < strlen(*words)) {
			best = *words;
			least = d;
		}
	}
	to[0] = 0;
	if (best != NULL)
		snprintf(to, n, "; did you mean \"%s\"?", best);
	return to;
}

char *yaml_file_text(const char *name, size_t *n, FILE *errors)
{
	FILE *in = fopen(name, "rbe");
	char *text = malloc(YAML_BYTES + 1);
	struct stat st;
	const char *why = NULL;

	if (in == NULL || fstat(fileno(in), &st) != 0)
		why = strerror(errno);
	else if (S_ISDIR(st.st_mode))
		why = "is a folder, not a file";
	else if (text == NULL)
		why = "no memory";
	if (why == NULL) {
		*n = fread(text, 1, YAML_BYTES + 1, in);
		if (ferror(in))
			why = strerror(errno);
		else if (*n > YAML_BYTES)
			why = "is larger than 1 MB";
	}
	if (in != NULL)
		fclose(in);
	if (why == NULL)
		return text;
	fprintf(errors, "%s:1: %s\n", name, why);
	free(text);
	return NULL;
}

// What libyaml has against a text. Bytes that are no UTF-8 have an offset and no line.
static void parser_fault(struct yaml_file *f, const yaml_parser_t *p, const char *text, size_t n)
{
	int line = (int)p->problem_mark.line + 1;

	if (p->error == YAML_READER_ERROR) {
		line = 1;
		for (size_t i = 0; i < n && i < p->problem_offset; i++)
			line += text[i] == '\n';
	}
	yaml_fault_line(f, NULL, line, "no YAML: %s%s%s", p->problem != NULL ? p->problem : "no memory",
		p->context != NULL ? " " : "", p->context != NULL ? p->context : "");
}

// Looks at one event of the parser, which is cheap in every file, before libyaml builds a document of it, which is not.
struct survey {
	uint32_t documents, nodes, anchors, depth;
};
static const char *survey_event(struct survey *s, const yaml_event_t *e)
{
	const yaml_char_t *anchor = NULL;

	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		return s->documents++ > 0 ? "a second document; a profile has one" : NULL;
	case YAML_SCALAR_EVENT:
		anchor = e->data.scalar.anchor;
		if (memchr(e->data.scalar.value, 0, e->data.scalar.length) != NULL)
			return "a text has a NUL byte";
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = e->data.sequence_start.anchor;
		s->depth++;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = e->data.mapping_start.anchor;
		s->depth++;
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		s->depth--;
		return NULL;
	case YAML_ALIAS_EVENT:
		break;
	default:
		return NULL;
	}
	if (anchor != NULL && ++s->anchors > ANCHORS)
		return "more than 256 anchors";
	if (s->depth > YAML_DEPTH)
		return "mappings and lists stand in each other more than 16 deep";
	return ++s->nodes > YAML_NODES ? "more than 65536 values" : NULL;
}

static bool survey(struct yaml_file *f, const char *text, size_t n)
{
	struct survey s = {0};
	yaml_parser_t parser;
	bool end = false;

	if (!yaml_parser_initialize(&parser)) {
		yaml_fault(f, NULL, "no memory");
		return false;
	}
	yaml_parser_set_input_string(&parser, (const uint8_t *)text, n);
	while (!end) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event)) {
			parser_fault(f, &parser, text, n);
			break;
		}
		const char *why = survey_event(&s, &event);
		if (why != NULL)
			yaml_fault_line(f, NULL, (int)event.start_mark.line + 1, "%s", why);
		end = why != NULL || event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	if (f->faults == 0 && s.documents == 0)
		yaml_fault(f, NULL, "the file is empty");
	return f->faults == 0;
}

// Counts what a node stands for, aliases written out, and notes where each node stands. Depth is bounded, so an alias
// within what it stands for ends, too.
static const char *walk(struct yaml_file *f, int index, int above, uint32_t depth, uint32_t *nodes)
{
	const yaml_node_t *n = node_at(f, index);
	const char *why = NULL;

	if (depth > YAML_DEPTH)
		return "an alias stands within what it stands for, or aliases are more than 16 deep";
	if (++*nodes > YAML_NODES)
		return "more than 65536 values when aliases are written out";
	if (f->parent[index] == 0)
		f->parent[index] = above;
	if (n->type == YAML_SEQUENCE_NODE)
		for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top && !why;
			i++)
			why = walk(f, *i, index, depth + 1, nodes);
	if (n->type == YAML_MAPPING_NODE) {
		for (const yaml_node_pair_t *i = n->data.mapping.pairs.start; i < n->data.mapping.pairs.top && !why;
			i++) {
			why = walk(f, i->key, index, depth + 1, nodes);
			if (why == NULL)
				why = walk(f, i->value, index, depth + 1, nodes);
		}
	}
	return why;
}

static bool load(struct yaml_file *f, const char *text, size_t n)
{
	yaml_parser_t parser;
	uint32_t nodes = 0;

	if (!yaml_parser_initialize(&parser)) {
		yaml_fault(f, NULL, "no memory");
		return false;
	}
	yaml_parser_set_input_string(&parser, (const uint8_t *)text, n);
	if (!yaml_parser_load(&parser, &f->document))
		parser_fault(f, &parser, text, n);
	yaml_parser_delete(&parser);
	if (f->faults != 0)
		return false;
	f->root = yaml_document_get_root_node(&f->document);
	size_t all = (size_t)(f->document.nodes.top - f->document.nodes.start);
	f->parent = calloc(all + 1, sizeof(f->parent[0]));
	const char *scalar = yaml_scalar(f->root);
	bool empty = f->root == NULL || (scalar != NULL && scalar[0] == 0);
	if (empty || f->parent == NULL) {
		yaml_fault(f, NULL, "%s", empty ? "the file is empty" : "no memory");
		return false;
	}
	const char *why = walk(f, index_of(f, f->root), 0, 0, &nodes);
	if (why != NULL)
		yaml_fault(f, NULL, "%s", why);
	return why == NULL;
}

struct yaml_file *yaml_file_open(const char *name, const char *text, size_t n, FILE *errors)
{
	struct yaml_file *f = calloc(1, sizeof(*f));

	if (f == NULL) {
		fprintf(errors, "%s:1: no memory\n", name);
		return NULL;
	}
	f->name = name;
	f->errors = errors;
	if (n > YAML_BYTES)
		yaml_fault(f, NULL, "is larger than 1 MB");
	else if (survey(f, text, n) && load(f, text, n))
		return f;
	yaml_file_close(f);
	return NULL;
}

void yaml_file_close(struct yaml_file *f)
{
	if (f == NULL)
		return;
	write_faults(f);
	yaml_document_delete(&f->document);
	free(f->parent);
	free(f);
}
