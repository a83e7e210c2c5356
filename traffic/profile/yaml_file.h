// SPDX-License-Identifier: Apache-2.0
// A YAML file whose every place knows its line: a thin layer over libyaml's documents that decodes mappings by tables
// of keys and tells all faults of a file, "FILE:LINE: path: reason" each, with the nearest known word where one is
// unknown.
//
// One thread. Nodes belong to the file and live until yaml_file_close().
#ifndef TRAFFIC_YAML_FILE_H
#define TRAFFIC_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <yaml.h>

#define YAML_BYTES (1u << 20) // of a file
#define YAML_NODES 65536 // in a file, each alias counted as what it stands for
#define YAML_DEPTH 16
#define YAML_FAULTS 50 // that are written out
#define YAML_FAULT_BYTES 512
#define YAML_QUOTE 48 // bytes of a quotation in a fault

struct yaml_fault {
	int line;
	char text[YAML_FAULT_BYTES];
};

struct yaml_file {
	const char *name;
	FILE *errors;
	uint32_t faults; // all of them
	struct yaml_fault fault[YAML_FAULTS]; // the first, written in the order of their lines by yaml_file_close()
	yaml_document_t document;
	const yaml_node_t *root;
	int *parent; // by index of a node: the index of the mapping or list that it stands in (the first, for aliases); 0 none
};

// Reads a whole file of at most YAML_BYTES. Returns bytes that the caller frees, or NULL after a fault was written.
char *yaml_file_text(const char *name, size_t *n, FILE *errors);
// Parses `text`. Returns NULL after a fault was written: no YAML, no document or two, too large or too deep when
// written out (aliases of aliases, an alias within what it stands for), or no memory. `name` and `errors` must outlive
// the file.
struct yaml_file *yaml_file_open(const char *name, const char *text, size_t n, FILE *errors);
// Writes the faults and frees everything.
void yaml_file_close(struct yaml_file *f);

// Writes a fault at a place; NULL: the whole file.
void yaml_fault(struct yaml_file *f, const yaml_node_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
// The same with a line of its own, for a checker that knows it better than the node.
void yaml_fault_line(struct yaml_file *f, const yaml_node_t *at, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
// "; did you mean "X"?" for the word nearest to `word`, or "". `words` ends with NULL.
const char *yaml_suggest(const char *word, const char *const *words, char *to, size_t n);
// A text of the file as it can be shown: shortened, and without control characters.
const char *yaml_quote(const char *text, char to[YAML_QUOTE]);

int yaml_line(const yaml_node_t *n); // 1 is the first
// The text of a scalar, else NULL. A plain `null`, `~` or nothing is "".
const char *yaml_scalar(const yaml_node_t *n);
// The value of a key of a mapping, or NULL; anything else than a mapping has no keys.
const yaml_node_t *yaml_get(struct yaml_file *f, const yaml_node_t *map, const char *key);
// Entries of a list, or 0; the entry, or NULL.
uint32_t yaml_entries(const yaml_node_t *list);
const yaml_node_t *yaml_entry(struct yaml_file *f, const yaml_node_t *list, uint32_t i);
// Pairs of a mapping, or 0; a pair, false when there is no such one.
uint32_t yaml_pairs(const yaml_node_t *map);
bool yaml_pair(
	struct yaml_file *f, const yaml_node_t *map, uint32_t i, const yaml_node_t **key, const yaml_node_t **value);

// A key of a mapping: how it is read, to where, and its bounds.
struct yaml_key {
	const char *name;
	// Decodes `n` to `to`. Faults are written; what could not be read stays as it was.
	void (*read)(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to);
	size_t offset; // in the struct that yaml_decode() fills
	double low, high; // numbers, parts, seconds: lowest and highest; yaml_text: room in bytes
	const char *const *words; // yaml_word: ends with NULL
	bool required;
	const void *arg; // of readers outside this file
};
// Decodes a mapping by at most 64 keys: unknown keys, keys given twice and missing ones are faults. `to` holds the
// presets. Keys without `read` are only known, not read. Returns whether it is a mapping.
bool yaml_decode(struct yaml_file *f, const yaml_node_t *map, const struct yaml_key *keys, uint32_t n, void *to);

// The text of a value, or NULL after the fault that it is a mapping or a list.
const char *yaml_single(struct yaml_file *f, const yaml_node_t *n);
// The fault that a text is not what is wanted: "a MAC address".
void yaml_refuse(struct yaml_file *f, const yaml_node_t *n, const char *text, const char *wanted);

// Readers for tables.
void yaml_text(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // char[high]
void yaml_name(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // char[high], a name
void yaml_bool(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // bool
void yaml_u32(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to);
void yaml_u64(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to);
void yaml_word(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // enum: index in words
void yaml_part(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // double: 1% or 0.01
void yaml_seconds(
	struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // double: 2, 2s, 500ms
void yaml_real(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to); // double

#endif
