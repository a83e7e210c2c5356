// SPDX-License-Identifier: Apache-2.0
// The exact-match table against a naive model, when full, and with a reader beside the writer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exact/exact.h"
#include <errno.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>

static struct exact_key key_of(uint32_t id)
{
	struct exact_key k = {0};
	// Keys that differ in few bits, all over the length, like ports, tags and addresses.
	memcpy(k.bytes, &id, 2);
	memcpy(k.bytes + 42, (uint8_t *)&id + 2, 2);
	k.bytes[21] = (uint8_t)(id * 7);
	return k;
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

struct model {
	uint64_t *value; // 0: absent
	uint32_t count, capacity;
};

static void compare_step(struct exact *t, struct model *m, uint32_t id, uint32_t operation, uint64_t value)
{
	struct exact_key k = key_of(id);
	uint32_t hash = exact_hash(t, &k);
	uint64_t got = 0;

	if (operation < 4) {
		int expected = m->value[id] == 0 && m->count >= m->capacity ? ENOSPC : 0;
		assert_int_equal(exact_add(t, hash, &k, value), expected);
		if (expected == 0) {
			m->count += m->value[id] == 0;
			m->value[id] = value;
		}
	} else if (operation < 7) {
		assert_int_equal(exact_delete(t, hash, &k), m->value[id] != 0);
		m->count -= m->value[id] != 0;
		m->value[id] = 0;
	} else {
		assert_int_equal(exact_lookup(t, hash, &k, &got), m->value[id] != 0);
		assert_int_equal(got, m->value[id]);
	}
	assert_int_equal(exact_count(t), m->count);
}

static void run_model(uint32_t capacity, uint32_t universe, uint32_t operations)
{
	struct exact *t = exact_create("model", capacity, SOCKET_ID_ANY);
	struct model m = {.value = test_calloc(universe, sizeof(uint64_t)), .capacity = capacity};
	uint64_t state = 88172645463325252u + capacity;

	assert_non_null(t);
	for (uint32_t i = 0; i < operations; i++) {
		uint64_t r = random_next(&state);
		compare_step(t, &m, (uint32_t)(r >> 32) % universe, (uint32_t)(r & 0xff) % 10, r | 1);
	}
	for (uint32_t id = 0; id < universe; id++)
		compare_step(t, &m, id, 9, 0);
	test_free(m.value);
	exact_free(t);
}

static void test_model(void **unused)
{
	run_model(20000, 30000, 1000000);
	run_model(1000, 1100, 300000);
	run_model(32, 100, 300000);
	run_model(1, 3, 10000);
}

static void test_full(void **unused)
{
	const uint32_t capacity = 4096;
	struct exact *t = exact_create("full", capacity, SOCKET_ID_ANY);
	uint64_t value;

	assert_int_equal(exact_capacity(t), capacity);
	for (uint32_t id = 0; id < capacity; id++) {
		struct exact_key k = key_of(id);
		assert_int_equal(exact_add(t, exact_hash(t, &k), &k, id), 0);
	}
	struct exact_key more = key_of(capacity);
	assert_int_equal(exact_add(t, exact_hash(t, &more), &more, 1), ENOSPC);
	assert_int_equal(exact_lookup(t, exact_hash(t, &more), &more, &value), 0);
	// Replacing still works, and a deletion makes room.
	struct exact_key first = key_of(0);
	assert_int_equal(exact_add(t, exact_hash(t, &first), &first, 77), 0);
	assert_int_equal(exact_lookup(t, exact_hash(t, &first), &first, &value), 1);
	assert_int_equal(value, 77);
	assert_int_equal(exact_delete(t, exact_hash(t, &first), &first), 1);
	assert_int_equal(exact_delete(t, exact_hash(t, &first), &first), 0);
	assert_int_equal(exact_add(t, exact_hash(t, &more), &more, 1), 0);
	assert_int_equal(exact_count(t), capacity);
	exact_free(t);
}

static void test_too_large(void **unused)
{
	assert_null(exact_create("huge", UINT32_MAX, SOCKET_ID_ANY));
	assert_null(exact_create("large", 1u << 30, SOCKET_ID_ANY)); // 128 GB
	exact_free(NULL);
}

// All keys share one home: an attacker's aim, impossible without the seed.
static void test_one_home(void **unused)
{
	struct exact *t = exact_create("home", 1000, SOCKET_ID_ANY);
	uint32_t added = 0;
	uint64_t value;

	for (uint32_t id = 0; id < 100; id++) {
		struct exact_key k = key_of(id);
		added += exact_add(t, 5, &k, id) == 0;
	}
	assert_int_equal(added, EXACT_PROBES);
	for (uint32_t id = 0; id < 100; id++) {
		struct exact_key k = key_of(id);
		assert_int_equal(exact_lookup(t, 5, &k, &value), id < EXACT_PROBES);
	}
	for (uint32_t id = 0; id < EXACT_PROBES; id++) {
		struct exact_key k = key_of(id);
		assert_int_equal(exact_delete(t, 5, &k), 1);
	}
	assert_int_equal(exact_count(t), 0);
	exact_free(t);
}

// A key that is there is replaced, in a full table too.
static void test_replace(void **unused)
{
	struct exact *t = exact_create("replace", 10, SOCKET_ID_ANY);
	uint64_t value;

	for (uint32_t i = 0; i < 100; i++) {
		struct exact_key k = key_of(i % 10);
		assert_int_equal(exact_add(t, exact_hash(t, &k), &k, i), 0);
		assert_int_equal(exact_lookup(t, exact_hash(t, &k), &k, &value), 1);
		assert_int_equal(value, i);
	}
	assert_int_equal(exact_count(t), 10);
	exact_free(t);
}

// Homes of similar keys are spread as dice would: the sum of squared deviations per cell is about 1.
static void test_hash_spread(void **unused)
{
	enum { KEYS = 1 << 18, CELLS = 1 << 12 };
	struct exact *t = exact_create("spread", 1, SOCKET_ID_ANY);
	uint32_t *cell = test_calloc(CELLS, sizeof(uint32_t));
	for (int shift = 0; shift <= 20; shift += 10) {
		double chi = 0, expected = (double)KEYS / CELLS;
		memset(cell, 0, CELLS * sizeof(uint32_t));
		for (uint32_t id = 0; id < KEYS; id++) {
			struct exact_key k = key_of(id);
			cell[exact_hash(t, &k) >> shift & (CELLS - 1)]++;
		}
		for (uint32_t i = 0; i < CELLS; i++)
			chi += (cell[i] - expected) * (cell[i] - expected) / expected;
		assert_true(chi / CELLS > 0.8 && chi / CELLS < 1.2);
	}
	test_free(cell);
	exact_free(t);
}

// Two tables hash differently, and keys that collide in one do not collide in the other.
static void test_hash_secret(void **unused)
{
	struct exact *a = exact_create("a", 1, SOCKET_ID_ANY), *b = exact_create("b", 1, SOCKET_ID_ANY);
	struct exact_key zero = key_of(0);
	uint32_t colliding = 0, both = 0;
	for (uint32_t id = 1; id < 1 << 18; id++) {
		struct exact_key k = key_of(id);
		if (((exact_hash(a, &k) ^ exact_hash(a, &zero)) & 0xfff) == 0) {
			colliding++;
			both += ((exact_hash(b, &k) ^ exact_hash(b, &zero)) & 0xfff) == 0;
		}
	}
	assert_true(colliding > 20 && both * 8 < colliding);
	exact_free(a);
	exact_free(b);
}

enum { STABLE = 200, MOVING = 2000 };

struct torture {
	struct exact *t;
	int stop;
	uint64_t lookups, hits, wrong, lost;
};

// Values say which key they belong to: key id << 32 | any version.
static void *torture_reader(void *arg)
{
	struct torture *s = arg;
	uint64_t state = 1234567, value;
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint32_t id = (uint32_t)(random_next(&state) % (STABLE + MOVING));
		struct exact_key k = key_of(id);
		int found = exact_lookup(s->t, exact_hash(s->t, &k), &k, &value);
		s->lookups++;
		s->hits += (uint64_t)found;
		s->wrong += found && value >> 32 != id;
		s->lost += !found && id < STABLE;
	}
	return NULL;
}

static void test_torture(void **unused)
{
	struct torture s = {.t = exact_create("torture", 1000, SOCKET_ID_ANY)};
	uint64_t state = 7654321, end = rte_get_tsc_cycles() + rte_get_tsc_hz();
	uint32_t version = 0;
	pthread_t reader;

	for (uint32_t id = 0; id < STABLE; id++) {
		struct exact_key k = key_of(id);
		assert_int_equal(exact_add(s.t, exact_hash(s.t, &k), &k, (uint64_t)id << 32), 0);
	}
	assert_int_equal(pthread_create(&reader, NULL, torture_reader, &s), 0);
	while (rte_get_tsc_cycles() < end) {
		uint64_t r = random_next(&state);
		uint32_t id = (uint32_t)(r >> 8) % (STABLE + MOVING);
		struct exact_key k = key_of(id);
		uint32_t hash = exact_hash(s.t, &k);
		uint64_t value = (uint64_t)id << 32 | version++;
		if (id < STABLE)
			exact_add(s.t, hash, &k, value); // replaced in place: always found
		else if ((r & 3) == 0)
			exact_delete(s.t, hash, &k);
		else if (exact_count(s.t) < 900)
			exact_add(s.t, hash, &k, value);
		else
			exact_delete(s.t, hash, &k);
	}
	__atomic_store_n(&s.stop, 1, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	assert_true(s.lookups > 10000 && s.hits > 1000);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.lost, 0);
	exact_free(s.t);
}

int main(void)
{
	char *args[] = {"exact-test", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0",
		"--log-level", "lib.eal:error"};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_one_home),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_hash_spread),
		cmocka_unit_test(test_hash_secret),
		cmocka_unit_test(test_torture),
	};
	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
