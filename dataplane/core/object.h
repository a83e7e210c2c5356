// SPDX-License-Identifier: Apache-2.0
// The object store: the control plane's intent by (kind, key), and the transactions that change it.
//
// A module that owns a kind registers an object_ops. All calls come from the control thread. A commit runs
//   stage() for every change: validates and builds beside the old; may fail. Deletions first, highest kind first; then
//   the rest, lowest kind first
//   commit() for every change in the same order: publishes; cannot fail. Workers see it at once or at their next walk
// and after an RCU grace period release() with what commit() replaced. On any failure discard() undoes each stage() in
// reverse order. The commit() of a deletion may only unpublish: others refer to the object until release().
#ifndef CORE_OBJECT_H
#define CORE_OBJECT_H

#include "core/error.h"
#include "core/kind.h"

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

void object_ops_register(const struct object_ops *ops); // from constructors
// Run when a commit begins, and when all of it but ports is in force. NULL: nothing. From constructors, one of each.
void object_commit_watch(void (*begins)(void), void (*settles)(void));
#define OBJECT_REGISTER(var)                                                                                           \
	RTE_INIT(object_register_##var)                                                                                \
	{                                                                                                              \
		object_ops_register(&(var));                                                                           \
	}

// The object's body after the open transaction (staged changes seen), or NULL. For packed kinds a copy, valid until the
// fourth call from now.
const void *object_find(uint32_t kind, const char *key, uint32_t *length);
int object_is_there(uint32_t kind, const char *key); // the same, without the body
// 1 when the open transaction changes or deletes the object.
int object_changing(uint32_t kind, const char *key);
// Counts a user of an object, up or down; at the end of stage(), and undone in discard(): the count is that after the
// open transaction. An empty key does nothing.
void object_use(uint32_t kind, const char *key, int difference);
// Stages and commits an object again, because a source of it that is no object has changed. A transaction of its own.
// Returns 0 or an errno; EBUSY while a transaction is open.
int object_refresh(uint32_t kind, const char *key);
// Calls fn for every held object of a kind, as it will be after the open transaction. Stops when fn returns non-zero.
int object_each(uint32_t kind, int (*fn)(const char *key, const void *body, uint32_t length, void *arg), void *arg);

// Of core: what requests do.
struct object_totals {
	uint64_t objects, commits, refused;
};
extern struct object_totals object_totals;
struct part_reader;
int object_begin(void);
int object_put(const struct api_object_head *head, const void *body, uint32_t length);
int object_put_parts(const struct api_object_head *head, struct part_reader *r); // as they were received
int object_delete(const struct api_object_head *head);
void object_commit(struct api_status *status);
void object_abort(void);
// Calls fn for objects from the order `from` on, ascending, to the end of its bucket or of l's range. Returns where the
// next bucket begins; 0: the end. *room counts down; objects beyond it set *more.
uint64_t object_list(const struct api_list *l, uint64_t from, uint32_t *room, int *more,
	void (*fn)(const struct api_digest *d, void *arg), void *arg);

#endif
