// SPDX-License-Identifier: Apache-2.0
// The object store: what the control plane wants, by (kind, key), and the transactions that change it.
//
// A module that owns a kind registers an object_ops. All calls come from the control thread. A commit runs
//   stage() for every change (validate, build beside the old; may fail): deletions first, highest kind first; then the
//   rest, lowest kind first
//   commit() for every change in the same order (cannot fail; publishes; workers see it at once or at their next walk)
// and after an RCU grace period release() with what commit() replaced. On any failure discard() undoes each stage() in
// reverse order. A deletion may only unpublish in commit(): others still refer to the object until release().
#ifndef CORE_OBJECT_H
#define CORE_OBJECT_H

#include "isthmus_api.h"
#include <stddef.h>
#include <stdint.h>

struct object_change {
	uint32_t kind;
	const char *key; // API_NAME bytes, NUL-terminated
	const void *body; // new body; NULL for a deletion
	uint32_t length;
	const void *old_body; // NULL for a creation; valid until release()
	uint32_t old_length;
	void *staged; // set by stage(), read by commit() and discard()
	void *replaced; // set by stage() or commit(), freed by release()
	int narrows; // set by stage(): objects of higher kinds may not fit the new body; they are verified
	void **live; // the module's own pointer, kept with the object; commit() sets it
	void *unpacked; // the store's: old_body of an object that is held packed
};

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

struct object_ops {
	uint32_t kind;
	const char *name; // "port"
	uint32_t min_length; // of a body: the struct of the kind
	uint32_t max_length; // 0: API_MAX_BODY
	const struct object_array *arrays; // what may follow that struct, in this order, up to part 0. May be NULL
	int packed; // 1: there are so many that of each what differs from another is held (body.h)
	// Returns 0, or a positive errno after writing the reason (object_error).
	int (*stage)(struct object_change *c);
	void (*commit)(struct object_change *c);
	void (*discard)(struct object_change *c); // may be NULL
	void (*release)(struct object_change *c); // may be NULL; after every worker passed a quiescent state
	// Called once when all changes of this kind in a transaction were staged (finish_stage, may fail; the next
	// kind is staged after it) and committed (finish_commit): for tables that are rebuilt as a whole.
	// finish_discard undoes finish_stage. May be NULL.
	int (*finish_stage)(void);
	void (*finish_discard)(void);
	void (*finish_commit)(void);
	// Called for each held object that the transaction does not touch, when it deletes objects of lower kinds or
	// narrows them: says whether the object can live on. Returns 0 or a positive errno after object_error(). May
	// be NULL.
	int (*verify)(const char *key, const void *body, uint32_t length);
	// 1 when this kind tells of every object of `kind` that it depends on by object_use(), so that a deletion of
	// one without users needs no verify(). May be NULL: verify() is always called.
	int (*counts)(uint32_t kind);
};

void object_ops_register(const struct object_ops *ops); // from constructors
#define OBJECT_REGISTER(var)                                                                                           \
	RTE_INIT(object_register_##var)                                                                                \
	{                                                                                                              \
		object_ops_register(&(var));                                                                           \
	}

// Sets the text that the refused commit answers, printf-like; the value is `code`, so that stage() can return it. (A
// macro, so that compilers and analysers see which value that is.)
void object_explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int object_refusal(int code)
{
	return code;
}
#define object_error(code, ...) (object_explain(__VA_ARGS__), object_refusal(code))
// Names the rule (enum api_rule) that the last object_error() is about, unless one was named already. Returns
// `error`; 0: does nothing.
int object_blame(int error, uint32_t rule_kind, uint32_t rule);

// The body of an object as it will be after the open transaction (staged changes seen), or NULL. Of a kind that is
// held packed: a copy, good until the fourth call from now.
const void *object_find(uint32_t kind, const char *key, uint32_t *length);
int object_is_there(uint32_t kind, const char *key); // the same, without the body
// 1 when the open transaction changes or deletes the object.
int object_changing(uint32_t kind, const char *key);
// One user more or less of an object; at the end of stage(), and taken back in discard(): so the count is that after
// the open transaction. Nothing for an empty key.
void object_use(uint32_t kind, const char *key, int difference);
// Stages and commits an object as it is once more: something that it is made from, and that is no object, has
// changed. A transaction of its own. Returns 0 or an errno; EBUSY while a transaction is open.
int object_refresh(uint32_t kind, const char *key);
// Calls fn for every held object of a kind, as it will be after the open transaction. Stops when fn returns non-zero.
int object_each(uint32_t kind, int (*fn)(const char *key, const void *body, uint32_t length, void *arg), void *arg);

#endif
