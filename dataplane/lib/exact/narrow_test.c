// SPDX-License-Identifier: Apache-2.0
// The table of 64-bit keys against a naive model, when full, when blocks overflow, and with a reader beside the writer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exact/narrow.h"
#include <errno.h>
#include <pthread.h>
#include <rte_eal.h>

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

// Keys that differ in few bits, like TEIDs and addresses.
static uint64_t key_of(uint32_t id)
{
	return (uint64_t)id | 1ull << 62;
}

static int look(const struct narrow *t, uint64_t key, uint64_t *value)
{
	return narrow_lookup(t, narrow_hash(t, key), key, value);
}

#define KEYS 4000u

static void steps(struct narrow *t, uint64_t *model, uint32_t capacity, uint64_t seed)
{
	uint32_t count = 0;

	for (uint32_t step = 0; step < 200000; step++) {
		uint64_t r = random_next(&seed), value = r | 1, got = 0;
		uint32_t id = (uint32_t)(r >> 8) % KEYS, operation = r % 8;

		if (operation < 4) {
			int expected = model[id] == 0 && count >= capacity ? ENOSPC : 0;

			assert_int_equal(narrow_add(t, key_of(id), value), expected);
			if (expected == 0) {
				count += model[id] == 0;
				model[id] = value;
			}
		} else if (operation < 6) {
			assert_int_equal(narrow_delete(t, key_of(id)), model[id] != 0);
			count -= model[id] != 0;
			model[id] = 0;
		} else {
			assert_int_equal(look(t, key_of(id), &got), model[id] != 0);
			assert_true(model[id] == 0 || got == model[id]);
		}
		assert_int_equal(narrow_count(t), count);
	}
}

static void as_the_model(void **state)
{
	static uint64_t model[KEYS];
	struct narrow *t = narrow_create("test", 1500, SOCKET_ID_ANY);

	assert_non_null(t);
	steps(t, model, 1500, 88172645463325252ull);
	narrow_free(t);
}

// Far more keys than the blocks hold: the overflow is still found.
static void overflow(void **state)
{
	struct narrow *t = narrow_create("test", 1500, SOCKET_ID_ANY);
	uint64_t value;

	assert_non_null(t);
	t->mask = 63; // 256 entries
	for (uint32_t id = 1; id <= 1000; id++)
		assert_int_equal(narrow_add(t, key_of(id), id), 0);
	assert_true(t->spilled > 700);
	for (uint32_t id = 1; id <= 1000; id++) {
		assert_true(look(t, key_of(id), &value));
		assert_int_equal(value, id);
		assert_int_equal(narrow_add(t, key_of(id), id + 5000), 0);
	}
	assert_int_equal(narrow_count(t), 1000);
	for (uint32_t id = 1; id <= 1000; id++)
		assert_int_equal(narrow_delete(t, key_of(id)), 1);
	assert_int_equal(narrow_count(t), 0);
	assert_int_equal(t->spilled, 0);
	assert_false(look(t, key_of(1), &value));
	narrow_free(t);
}

// A reserved key has its place, in a block or spilled, and is not found before it is added; adding it then needs no
// further room.
static void reservation(void **state)
{
	struct narrow *t = narrow_create("test", 1500, SOCKET_ID_ANY);
	uint64_t value;

	assert_non_null(t);
	t->mask = 63; // 256 entries
	for (uint32_t id = 1; id <= 1000; id++) {
		assert_int_equal(narrow_reserve(t, key_of(id)), 1);
		assert_int_equal(narrow_reserve(t, key_of(id)), 0);
		assert_false(look(t, key_of(id), &value));
	}
	t->capacity = 1000;
	assert_int_equal(narrow_reserve(t, key_of(1001)), -1);
	for (uint32_t id = 1; id <= 1000; id += 2)
		assert_int_equal(narrow_delete(t, key_of(id)), 1);
	for (uint32_t id = 2; id <= 1000; id += 2) {
		assert_int_equal(narrow_add(t, key_of(id), id), 0);
		assert_true(look(t, key_of(id), &value));
		assert_int_equal(value, id);
		assert_int_equal(narrow_reserve(t, key_of(id)), 0);
		assert_true(look(t, key_of(id), &value));
	}
	assert_int_equal(narrow_count(t), 500);
	narrow_free(t);
}

// Holds exactly `capacity` keys at distance `step`: all are found, nearly all in their first block, few spill.
static void fill(uint32_t capacity, uint64_t step)
{
	struct narrow *t = narrow_create("test", capacity, SOCKET_ID_ANY);
	uint32_t first = 0, entries;
	uint64_t value;

	assert_non_null(t);
	entries = NARROW_BLOCK * (t->mask + 1);
	// Between three eighths and three quarters full (a key or two more, as blocks are whole), unless the table is
	// tiny.
	assert_true((uint64_t)capacity * 4 <= (uint64_t)entries * 3 + 8);
	assert_true(t->mask == 15 || (uint64_t)capacity * 8 > (uint64_t)entries * 3);
	for (uint32_t id = 0; id < capacity; id++)
		assert_int_equal(narrow_add(t, (1ull << 62) + id * step, id), 0);
	assert_int_equal(narrow_count(t), capacity);
	assert_int_equal(narrow_capacity(t), capacity);
	assert_int_equal(narrow_add(t, 1, 1), ENOSPC);
	for (uint32_t id = 0; id < capacity; id++) {
		uint64_t key = (1ull << 62) + id * step;

		assert_int_equal(look(t, key, &value), 1);
		assert_int_equal(value, id);
		first += (uint32_t)narrow_find(narrow_block(t, narrow_hash(t, key)), key, &value);
	}
	assert_true(first >= capacity / 100 * 80);
	assert_true(t->spilled <= 8 + capacity / 2000);
	assert_int_equal(narrow_add(t, 1ull << 62, 77), 0); // what is there may still be replaced
	narrow_free(t);
}

// Powers of two, which leave it half full; sizes that fill three quarters; and one above each.
static void at_capacity(void **state)
{
	static const uint32_t capacities[] = {1, 2, 48, 49, 64, 96, 97, 1024, 1025, 1536, 1537, 1u << 16,
		(1u << 16) + 1, 3u << 14, (3u << 14) + 1, 3u << 16, (3u << 16) + 1, 1u << 18, (1u << 18) + 1};

	for (uint32_t i = 0; i < RTE_DIM(capacities); i++) {
		// Each table has its own secret; small tables, which are quick, try many.
		for (uint32_t secrets = capacities[i] < 4096 ? 16 : 1; secrets > 0; secrets--) {
			fill(capacities[i], 3);
			fill(capacities[i], 1ull << 32);
		}
	}
}

// Blocks of 64 bytes: memory of a capacity.
static void memory(void **state)
{
	static const struct {
		uint32_t capacity, blocks;
	} sizes[] = {{1, 16}, {50, 16}, {51, 32}, {1024, 512}, {1u << 16, 1u << 15}, {3u << 14, 1u << 14},
		{3u << 16, 1u << 16}, {(3u << 16) + 3, 1u << 17}};

	for (uint32_t i = 0; i < RTE_DIM(sizes); i++) {
		struct narrow *t = narrow_create("test", sizes[i].capacity, SOCKET_ID_ANY);

		assert_non_null(t);
		assert_int_equal(t->mask + 1, sizes[i].blocks);
		narrow_free(t);
	}
}

struct race {
	struct narrow *t;
	int stop;
	uint64_t newest; // keys newest - 63 .. newest are there
	uint64_t wrong, found;
};

// A key's value identifies its owner.
static void *reader(void *arg)
{
	struct race *r = arg;
	uint64_t value;

	for (uint64_t i = 0; !__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE); i++) {
		uint64_t key = __atomic_load_n(&r->newest, __ATOMIC_ACQUIRE) - i % 80, lasting = 1ull << 40 | i % 64;

		if (key < 1ull << 40 && look(r->t, key, &value)) {
			r->found++;
			r->wrong += value >> 8 != key;
		}
		if (!look(r->t, lasting, &value) || value >> 8 != lasting)
			r->wrong++; // is never deleted, only given new values
	}
	return NULL;
}

// Keys come and go, none twice (see narrow.h), and take each other's places.
static void beside_a_reader(void **state)
{
	struct race r = {.t = narrow_create("test", 256, SOCKET_ID_ANY), .newest = 100};
	pthread_t thread;

	assert_non_null(r.t);
	for (uint64_t id = 0; id < 64; id++)
		assert_int_equal(narrow_add(r.t, 1ull << 40 | id, (1ull << 40 | id) << 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, reader, &r), 0);
	for (uint64_t key = 101; key < 300000; key++) {
		uint64_t lasting = 1ull << 40 | key % 64;

		narrow_delete(r.t, key - 64);
		assert_int_equal(narrow_add(r.t, key, key << 8 | (key & 0xff)), 0);
		assert_int_equal(narrow_add(r.t, lasting, lasting << 8 | (key & 0xff)), 0);
		__atomic_store_n(&r.newest, key, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&r.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(r.wrong, 0);
	narrow_free(r.t);
}

int main(void)
{
	char *args[] = {"narrow-test", "--no-huge", "--no-shconf", "-m", "64", "--no-pci", "--no-telemetry", "-l", "0",
		"--log-level", "lib.eal:error"};
	const struct CMUnitTest all[] = {
		cmocka_unit_test(as_the_model),
		cmocka_unit_test(overflow),
		cmocka_unit_test(reservation),
		cmocka_unit_test(at_capacity),
		cmocka_unit_test(memory),
		cmocka_unit_test(beside_a_reader),
	};

	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	return cmocka_run_group_tests(all, NULL, NULL);
}
