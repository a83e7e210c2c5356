// SPDX-License-Identifier: Apache-2.0
#include "core/body.h"
#include "core/pack.h"
#include <assert.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLES 64u
#define EXAMPLES_A_LENGTH 4u // are tried: so much work a body takes
#define LONGEST 16384u // of an example
#define MOST_STORED ((1u << 24) - 1)

static struct example {
	uint8_t *bytes;
	uint32_t length, users;
} example[EXAMPLES];
static_assert(EXAMPLES < 256, "body.example");

// Buffers that grow and stay: the difference, and two packings of it.
static struct room {
	uint8_t *bytes;
	uint32_t size;
} difference, packing[2];

static uint8_t *room_for(struct room *r, uint32_t size)
{
	if (r->size < size) {
		uint8_t *bytes = realloc(r->bytes, size);

		if (bytes == NULL)
			return NULL;
		r->bytes = bytes;
		r->size = size;
	}
	return r->bytes;
}

static void differ(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		to[i] = a[i] ^ b[i];
}

// What a body is held as: `stored` bytes in packing[0]; 0: none.
struct choice {
	uint32_t stored;
	uint8_t example; // as in struct body
};

// Packs the difference from an example (NULL: from zeros), and keeps the result if it is the shortest.
static void try(struct choice *c, const uint8_t *bytes, uint32_t length, const struct example *e)
{
	const uint8_t *from = bytes;

	if (e != NULL) {
		differ(difference.bytes, bytes, e->bytes, length);
		from = difference.bytes;
	}
	uint32_t stored = pack_bytes(packing[1].bytes, from, length);
	if (c->stored != 0 && stored >= c->stored)
		return;
	c->stored = stored;
	c->example = e != NULL ? (uint8_t)(e - example + 1) : 0;
	RTE_SWAP(packing[0], packing[1]);
}

// A place for one more example of this length, or NULL.
static struct example *place_for(uint32_t length)
{
	struct example *free_one = NULL;
	uint32_t alike = 0;

	for (uint32_t i = 0; i < EXAMPLES; i++) {
		struct example *e = &example[i];

		if (e->bytes == NULL || e->users == 0)
			free_one = e;
		else
			alike += e->length == length;
	}
	return alike < EXAMPLES_A_LENGTH && length <= LONGEST ? free_one : NULL;
}

static void become_example(struct choice *c, const uint8_t *bytes, uint32_t length)
{
	struct example *e = place_for(length);
	uint8_t *copy = e != NULL ? malloc(length) : NULL;

	if (copy == NULL)
		return;
	memcpy(copy, bytes, length);
	free(e->bytes);
	*e = (struct example){copy, length, 0};
	c->stored = 0; // it may have been by the former example
	try(c, bytes, length, e);
}

static struct choice choose(const uint8_t *bytes, uint32_t length)
{
	struct choice c = {0};
	uint32_t good = length / 12, tried = 0;

	if (room_for(&difference, length) == NULL || room_for(&packing[0], PACK_MOST(length)) == NULL ||
		room_for(&packing[1], PACK_MOST(length)) == NULL)
		return c;
	for (uint32_t i = 0; i < EXAMPLES && tried < EXAMPLES_A_LENGTH && (c.stored == 0 || c.stored > good); i++)
		if (example[i].bytes != NULL && example[i].length == length) {
			try(&c, bytes, length, &example[i]);
			tried++;
		}
	if (c.stored == 0 || c.stored > good)
		try(&c, bytes, length, NULL);
	if (c.stored > good)
		become_example(&c, bytes, length);
	return c;
}

void body_hold(struct body *b, void *bytes, uint32_t length, int packed)
{
	struct choice c = {0};

	if (b->example != 0)
		example[b->example - 1].users--;
	free(b->bytes);
	*b = (struct body){.bytes = bytes, .length = length};
	if (bytes != NULL && packed)
		c = choose(bytes, length);
	uint8_t *fitting = c.stored != 0 && c.stored < RTE_MIN(length, MOST_STORED) ? malloc(c.stored) : NULL;
	if (fitting == NULL)
		return;
	memcpy(fitting, packing[0].bytes, c.stored);
	free(bytes);
	b->bytes = fitting;
	b->stored = c.stored;
	b->example = c.example;
	if (c.example != 0)
		example[c.example - 1].users++;
}

void body_copy(const struct body *b, void *to)
{
	if (b->stored == 0) {
		if (b->length != 0)
			memcpy(to, b->bytes, b->length);
		return;
	}
	unpack_bytes(to, b->length, b->bytes, b->stored);
	if (b->example != 0)
		differ(to, to, example[b->example - 1].bytes, b->length);
}

const void *body_read(const struct body *b)
{
	static struct room copy[4];
	static unsigned turn;

	if (b->stored == 0)
		return b->bytes;
	turn = (turn + 1) % RTE_DIM(copy);
	if (room_for(&copy[turn], b->length) == NULL)
		return NULL;
	body_copy(b, copy[turn].bytes);
	return copy[turn].bytes;
}
