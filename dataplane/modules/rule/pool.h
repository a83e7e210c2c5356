// SPDX-License-Identifier: Apache-2.0
// A stack of free indices into a type-stable array.
#ifndef RULE_POOL_H
#define RULE_POOL_H

#include <stdint.h>

#define INDEX_NONE UINT32_MAX

// Control thread.
struct index_pool {
	uint32_t *free;
	uint32_t *at; // place of an index in `free`; NULL: no index is asked for by number
	uint32_t count, capacity;
};
// Low indices are taken first: neighbours in memory belong together. 0 or ENOMEM.
int index_pool_create(struct index_pool *p, uint32_t capacity);
// A pool of which a certain index may be taken. Without a certain index, high ones come first.
int index_pool_create_certain(struct index_pool *p, uint32_t capacity);
uint32_t index_pool_take(struct index_pool *p); // INDEX_NONE when empty
// The index itself when it is free, else any.
uint32_t index_pool_take_certain(struct index_pool *p, uint32_t index);
void index_pool_give(struct index_pool *p, uint32_t index);

#endif
