// SPDX-License-Identifier: Apache-2.0
// A stack of free indices into a type-stable array.
#include "rule/pool.h"
#include <errno.h>
#include <stdlib.h>

static void put(struct index_pool *p, uint32_t at, uint32_t index)
{
	p->free[at] = index;
	if (p->at != NULL)
		p->at[index] = at;
}

int index_pool_create(struct index_pool *p, uint32_t capacity)
{
	p->free = malloc(capacity * sizeof(*p->free));
	if (p->free == NULL)
		return ENOMEM;
	p->at = NULL;
	p->capacity = p->count = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		p->free[i] = capacity - 1 - i;
	return 0;
}

int index_pool_create_certain(struct index_pool *p, uint32_t capacity)
{
	if (index_pool_create(p, capacity) != 0)
		return ENOMEM;
	p->at = malloc(capacity * sizeof(*p->at));
	if (p->at == NULL)
		return ENOMEM;
	for (uint32_t i = 0; i < capacity; i++)
		put(p, i, i);
	return 0;
}

uint32_t index_pool_take(struct index_pool *p)
{
	return p->count == 0 ? INDEX_NONE : p->free[--p->count];
}

static int is_free(const struct index_pool *p, uint32_t index)
{
	return index < p->capacity && p->at[index] < p->count && p->free[p->at[index]] == index;
}

uint32_t index_pool_take_certain(struct index_pool *p, uint32_t index)
{
	if (!is_free(p, index))
		return index_pool_take(p);
	put(p, p->at[index], p->free[--p->count]);
	return index;
}

void index_pool_give(struct index_pool *p, uint32_t index)
{
	if (index != INDEX_NONE && p->count < p->capacity)
		put(p, p->count++, index);
}
