// SPDX-License-Identifier: Apache-2.0
// A kind of objects: the parts of its bodies, and its module's functions.
#ifndef CORE_KIND_H
#define CORE_KIND_H

#include "isthmus_api.h"
#include <stddef.h>
#include <stdint.h>

struct object_change;

// An array of structs that follows the struct of a kind: the number of the part, and where that struct has the count.
struct object_array {
	uint16_t part, size; // enum api_part; bytes of one struct
	uint16_t count_at, count_size; // 2 or 4 bytes
};
#define OBJECT_ARRAY(number, type, head, count)                                                                        \
	{                                                                                                              \
		.part = (number), .size = sizeof(type), .count_at = offsetof(head, count),                             \
		.count_size = sizeof(((head *)0)->count)                                                               \
	}

// The first members of a kind whose bodies are one struct.
#define OBJECT_OF_ONE(number, text, type)                                                                              \
	.kind = (number), .name = (text), .min_length = sizeof(type), .max_length = sizeof(type)

struct object_ops {
	uint32_t kind;
	const char *name; // "port"
	uint32_t min_length; // of a body: the struct of the kind
	uint32_t max_length; // 0: API_MAX_BODY
	const struct object_array *arrays; // optional parts after that struct, in this order, up to part 0. May be NULL
	int packed; // 1: numerous: only differences from an example are held (body.h)
	// Returns 0, or a positive errno after writing the reason (object_error).
	int (*stage)(struct object_change *c);
	void (*commit)(struct object_change *c);
	void (*discard)(struct object_change *c); // may be NULL
	void (*release)(struct object_change *c); // may be NULL; after every worker passed a quiescent state
	// For tables that are rebuilt as a whole. finish_stage() may fail. It is called after all changes of this kind
	// were staged, before the next kind. A commit ends in finish_commit(), a failure in finish_discard(), which
	// undoes finish_stage(). May be NULL.
	int (*finish_stage)(void);
	void (*finish_discard)(void);
	void (*finish_commit)(void);
	// Called for each untouched object when the transaction deletes or narrows objects of lower kinds: can the
	// object stay? Returns 0 or a positive errno after object_error(). May be NULL.
	int (*verify)(const char *key, const void *body, uint32_t length);
	// 1 when this kind counts each dependency on an object of `kind` by object_use(); then an object without users
	// is deleted without verify(). NULL: verify() is always called.
	int (*counts)(uint32_t kind);
};

#endif
