// SPDX-License-Identifier: Apache-2.0
// What the parts of the profile's reader share. Tables of keys are visible so that a test can compare docs/traffic.md
// with them.
#ifndef TRAFFIC_PROFILE_READ_H
#define TRAFFIC_PROFILE_READ_H

#include "traffic/profile/profile.h"
#include "traffic/profile/yaml_file.h"

// The keys of a mapping, with its name in docs/traffic.md. Arrays of them end with an entry without keys.
struct profile_form {
	const char *where;
	const struct yaml_key *keys;
	uint32_t n;
};
extern const struct profile_form profile_forms[], run_forms[], stream_forms[], layer_forms[];

#define KEYS(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

// Readers for tables of keys: a rate in packets or bits per second, or a part; that or `max`.
void read_rate_expected(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to);
void read_rate_own(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to);

// Each reads a part of the file to *p; faults are kept in *f. Streams need the ports, the run needs the streams.
void profile_read_run(struct yaml_file *f, const yaml_node_t *run, struct profile *p);
void profile_read_streams(struct yaml_file *f, const yaml_node_t *list, struct profile *p);
// A list of layers. Returns whether it is good.
bool profile_read_stack(struct yaml_file *f, const yaml_node_t *list, struct stack *s);

// Fills `words` (room for max + 1) with the names of n things of `size` bytes each, for yaml_suggest().
void profile_words(const void *first, size_t size, uint32_t n, uint32_t max, const char **words);

#endif
