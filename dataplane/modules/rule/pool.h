// SPDX-License-Identifier: Apache-2.0
// A stack of free indices into a type-stable array.
#ifndef RULE_POOL_H
#define RULE_POOL_H

#include <stdint.h>

#define INDEX_NONE UINT32_MAX

// Control thread.
struct index_pool {
	uint32_t *free;
	uint32_t count, capacity;
};
int index_pool_create(struct index_pool *p, uint32_t capacity);
uint32_t index_pool_take(struct index_pool *p); // INDEX_NONE when empty
void index_pool_give(struct index_pool *p, uint32_t index);

#endif
