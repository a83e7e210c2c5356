// SPDX-License-Identifier: Apache-2.0
// Parts of messages (api/README.md, "How it grows"): converts a peer's struct sizes to ours.
#ifndef CORE_CONTRACT_H
#define CORE_CONTRACT_H

#include "isthmus_api.h"
#include <stddef.h>
#include <stdint.h>

struct object_ops;

struct part {
	uint32_t number, size, count;
	const uint8_t *rows;
};

struct part_reader {
	const uint8_t *at;
	uint32_t left;
};

// Bytes of `count` structs with the zeros behind them.
static inline uint64_t part_padded(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

#define FNV_START 0xcbf29ce484222325ull
static inline uint64_t fnv1a(uint64_t h, const void *data, size_t n)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

// Reads the next part. Returns 1, 0 at the end, or EPROTO after object_error().
int part_next(struct part_reader *r, struct part *p);
// Copies the structs of a part into `to`, `size` bytes each; fields that the sender lacks become zero. Returns 0, or
// ENOTSUP after object_error() when unknown bytes are not zero. `what` names the sender's object or request.
int part_fit(const struct part *p, uint32_t size, void *to, const char *what);
// A body of one struct. Returns 0, or a positive errno after object_error().
int part_only(const void *body, uint32_t length, uint16_t number, void *to, uint32_t size, const char *what);
// The struct's name, for messages.
const char *part_name(uint32_t number);

// Reads the parts of an object into memory that is good until the next call: the struct of its kind, then its
// arrays. Returns 0, or a positive errno after object_error().
int object_read(
	const struct object_ops *ops, const char *key, struct part_reader *r, const void **body, uint32_t *length);
// api_digest.digest of a body in our sizes.
uint64_t object_digest(const struct object_ops *ops, const void *body, uint32_t length);

// The highest version that both ranges have; 0: none.
uint32_t contract_version(uint32_t oldest, uint32_t newest, uint32_t peer_oldest, uint32_t peer_newest);
// Our layouts, in the static memory of the function.
const struct api_layout *contract_layouts(uint32_t *count);
// Compares the layouts of a peer with ours, in one version. Returns 0, or EPROTO after object_error().
int contract_compare(const struct api_layout *peer, uint32_t count, uint32_t version);

#endif
