// SPDX-License-Identifier: Apache-2.0
// A stack of free indices into a type-stable array.
#include "rule/pool.h"
#include <errno.h>
#include <stdlib.h>

int index_pool_create(struct index_pool *p, uint32_t capacity)
{
	p->free = malloc(capacity * sizeof(*p->free));
	if (p->free == NULL)
		return ENOMEM;
	p->capacity = p->count = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		p->free[i] = capacity - 1 - i; // low indices first: neighbours in memory belong together
	return 0;
}

uint32_t index_pool_take(struct index_pool *p)
{
	return p->count == 0 ? INDEX_NONE : p->free[--p->count];
}

void index_pool_give(struct index_pool *p, uint32_t index)
{
	if (index != INDEX_NONE && p->count < p->capacity)
		p->free[p->count++] = index;
}
