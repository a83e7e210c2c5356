// SPDX-License-Identifier: Apache-2.0
// The table of 5-tuples against a list of its contents; numbers and generations that wrap.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "flow/tuple.h"
#include "testkit/testkit.h"
#include <string.h>

#define LINES 56u

static struct tuples *t;
static struct worker *w;

static int setup(void **unused)
{
	struct api_engine e = kit_engine();

	e.max_flows = LINES * 6 / 7;
	kit_start(&e);
	w = worker_get(0);
	t = &flow_tuples[0];
	assert_int_equal(tuples_lines(t), LINES);
	return 0;
}

// Of state n, whose number is `number`; narrow when n is odd.
static struct tuple entry(uint32_t n, uint32_t number, uint32_t generation)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	uint8_t ip[24] = {0x45};
	struct tuple e = {0};

	if (n & 1)
		tuple_of_tunnel(&e, n, 1, 9);
	else
		tuple_of_endpoint(&e, 1, 100, (uint16_t)n, 0, mac);
	store32(ip + 12, n);
	store16(ip + 20, (uint16_t)(n * 7));
	assert_int_equal(tuple_of_packet(&e, ip, 4, 17, 20, 28), 1);
	assert_int_equal(tuple_is_wide(&e.first), !(n & 1));
	e.first.state = n % 8;
	e.first.number = number;
	e.first.permitted = generation << ACL_SLOT_BITS | 5;
	session_pools.state[e.first.state].key = tuple_key_of(w, number);
	return e;
}

static size_t size_of(const struct tuple *e)
{
	return tuple_is_wide(&e->first) ? sizeof(*e) : sizeof(e->first);
}

static struct tuple_entry *find(const struct tuple *key)
{
	return tuple_find(t, tuple_hash(key), key);
}

// A line's place in its group does not count.
static uint32_t group_of(const struct tuple *e)
{
	return (uint32_t)(tuple_place(t, tuple_hash(e), 0) - t->line) / TUPLE_WAYS;
}

static uint32_t entries_of(const struct tuple_line *l)
{
	int one = l->slot[0].number != 0 && tuple_is_wide(&l->slot[0]);

	return (l->slot[0].number != 0) + (!one && l->slot[1].number != 0);
}

// The last entry put is always found, a key once; no other entry appears.
static void put_and_find(void **unused)
{
	tuples_clear(t);
	for (uint32_t n = 1; n < 40 * LINES; n++) {
		struct tuple e = entry(n, 1 + n % 8, 3);

		tuples_put(w, t, tuple_hash(&e), &e);
		tuples_put(w, t, tuple_hash(&e), &e);
		assert_non_null(find(&e));
		assert_memory_equal(find(&e), &e, size_of(&e));
		uint32_t same = 0;
		for (uint32_t i = 0; i < LINES; i++)
			same += tuple_in_line(&t->line[i], &e) != NULL;
		assert_int_equal(same, 1);
		struct tuple other = entry(n + 100 * LINES, 1, 3);
		assert_null(find(&other));
	}
}

// Invalid entries make room before valid ones.
static void room_is_made_by_the_invalid(void **unused)
{
	struct tuple kept = entry(1, 9, 3);
	uint32_t others = 0;

	tuples_clear(t);
	tuples_put(w, t, tuple_hash(&kept), &kept);
	for (uint32_t n = 2; n < 20 * LINES; n++) {
		struct tuple e = entry(n, 9, 3);

		e.first.number = 8; // no state has it
		if (group_of(&e) != group_of(&kept))
			continue;
		tuples_put(w, t, tuple_hash(&e), &e);
		others++;
		assert_non_null(find(&kept));
	}
	assert_in_range(others, TUPLE_WAYS, UINT32_MAX);
}

static uint32_t held(uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i <= n; i++) {
		struct tuple e = entry(i, 9, 3);

		count += find(&e) != NULL;
	}
	return count;
}

static void fill(uint32_t n)
{
	tuples_clear(t);
	for (uint32_t i = 1; i <= n; i++) {
		struct tuple e = entry(i, 9, 3);

		tuples_put(w, t, tuple_hash(&e), &e);
	}
}

// Keys whose groups are full make room: half as many keys as lines are held without a loss.
static void full_groups(void **unused)
{
	uint64_t evictions = w->flow_evictions;

	fill(LINES / 2);
	assert_int_equal(w->flow_evictions, evictions);
	assert_int_equal(t->entries, LINES / 2);
	assert_int_equal(held(LINES / 2), LINES / 2);
}

// Removed at the second look without a packet in between; with a lifetime, in any case.
static void ageing(void **unused)
{
	struct tuple used = entry(1, 9, 3);

	fill(10);
	tuples_age(w, t, LINES, 0);
	assert_int_equal(held(10), 10);
	tuple_used(find(&used));
	tuples_age(w, t, LINES, 0);
	assert_int_equal(held(10), 1);
	assert_int_equal(t->entries, 1);
	assert_int_equal(w->flows, 1);
	for (uint32_t look = 2; look < 15; look++) {
		tuple_used(find(&used));
		tuples_age(w, t, LINES, 15);
		assert_int_equal(held(1), look < 14);
	}
	assert_int_equal(w->flows, 0);
}

// The node: a few entries in each millisecond, all in engine.flow_idle seconds.
static void occupancy_returns_to_zero(void **unused)
{
	kit_advance(11000000); // what is behind is made up for
	fill(10);
	for (uint32_t ms = 0; ms < 55000; ms += 500)
		kit_advance(500000);
	assert_int_equal(held(10), 10);
	for (uint32_t ms = 0; ms < 67000; ms += 500)
		kit_advance(500000);
	assert_int_equal(held(10), 0);
	assert_int_equal(t->entries, 0);
}

// Two keys with one mark whose packets alternate.
static void one_mark_keeps_nobody_out(void **unused)
{
	uint32_t met[2] = {0, 0};

	for (uint32_t n = 0; n < 4 * TUPLE_UNMET; n++)
		met[n & 1] += (uint32_t)tuples_met(t, (n & 1) << 24 | 77);
	assert_in_range(met[0], 1, 3);
	assert_in_range(met[1], 1, 3);
	t->unmet = 0;
	assert_int_equal(tuples_met(t, 9u << 24 | 78), 0);
	assert_int_equal(tuples_met(t, 9u << 24 | 78), 1);
}

static void leads_to_a_state(void **unused)
{
	struct tuple e = entry(3, 7, 3);
	uint32_t generation = 3 << ACL_SLOT_BITS;
	uint64_t *key = &session_pools.state[e.first.state].key;

	assert_ptr_equal(tuple_state(w, &e.first, generation), &session_pools.state[3]);
	assert_null(tuple_state(w, &e.first, 4 << ACL_SLOT_BITS)); // another list
	*key = 0; // engines_take()
	assert_null(tuple_state(w, &e.first, generation));
	*key = tuple_key_of(w, 8); // another rule's
	assert_null(tuple_state(w, &e.first, generation));
	*key = tuple_key_of(w, 7) ^ 1ull << 56; // another worker's
	assert_null(tuple_state(w, &e.first, generation));
	*key = 0;
	e.first.number = 0; // empty
	assert_null(tuple_state(w, &e.first, generation));
}

// No old entry becomes valid again.
static void numbers_come_round(void **unused)
{
	struct tuple e = entry(3, 1, 3);

	tuples_put(w, t, tuple_hash(&e), &e);
	t->number = UINT32_MAX;
	assert_int_equal(tuples_number(t), 1);
	assert_null(find(&e));
}

static void generations_come_round(void **unused)
{
	struct acl list = {.generation = 3};
	struct tuple e = entry(3, 1, 3);

	assert_int_equal(tuples_enter(t, ACL_UPLINK, &list), 3 << ACL_SLOT_BITS);
	tuples_put(w, t, tuple_hash(&e), &e);
	list.generation = 4;
	tuples_enter(t, ACL_UPLINK, &list);
	assert_non_null(find(&e)); // invalid by its generation
	list.generation = 3 + (1u << (32 - ACL_SLOT_BITS));
	assert_int_equal(tuples_enter(t, ACL_UPLINK, &list), 3 << ACL_SLOT_BITS);
	assert_null(find(&e));
	tuples_enter(t, ACL_UPLINK, NULL);
}

// Row G7: ports that are cut off are not guessed.
static void ports_cut_off(void **unused)
{
	uint8_t ip[24] = {0x45};
	struct tuple e = {0};

	assert_int_equal(tuple_of_packet(&e, ip, 4, 33, 20, 23), 0);
	assert_int_equal(tuple_of_packet(&e, ip, 4, 33, 20, 24), 1);
	assert_int_equal(tuple_of_packet(&e, ip, 4, 47, 20, 20), 1); // GRE has none
}

// Two narrow keys share a line; a wide one fills it and never matches as a narrow key.
static void two_in_a_line(void **unused)
{
	uint32_t shared = 0;

	tuples_clear(t);
	fill(LINES);
	for (uint32_t i = 0; i < LINES; i++)
		shared += entries_of(&t->line[i]) == 2;
	assert_true(shared > 0);

	struct tuple wide = entry(2, 9, 3), narrow = entry(3, 9, 3);
	memcpy(wide.more, &narrow.first, sizeof(wide.more)); // as an address of IPv6 may read
	tuples_clear(t);
	tuples_put(w, t, tuple_hash(&wide), &wide);
	assert_non_null(find(&wide));
	for (uint32_t i = 0; i < LINES; i++)
		assert_null(tuple_in_line(&t->line[i], &narrow));
	tuples_clear(t);
}

// Keys that differ only in their beginning, narrow or wide, are different.
static void beginnings_differ(void **unused)
{
	const struct worker *of = w;
	struct tuple k[8] = {0};
	uint8_t ip[40] = {0x45};

	tuple_of_tunnel(&k[0], 7, 1, 9);
	tuple_of_tunnel(&k[1], 7, 2, 9);
	tuple_of_tunnel(&k[2], 7, 0x101, 9);
	tuple_of_tunnel(&k[3], 7, 1, 10);
	tuple_of_ue(&k[4], flow_entry_key(of, 7 | KEY_UE4));
	tuple_of_ue(&k[5], flow_entry_key(of, 7 | 1ull << 48 | KEY_UE4));
	tuple_of_ue(&k[6], flow_entry_key(of, 7 | 1ull << 40 | KEY_UE4));
	tuple_of_home(&k[7], 7);
	for (uint32_t i = 0; i < RTE_DIM(k); i++) {
		assert_int_equal(tuple_of_packet(&k[i], ip, 4, 17, 20, 28), 1);
		for (uint32_t j = 0; j < i; j++)
			assert_memory_not_equal(&k[i], &k[j], sizeof(k[i]));
	}
	assert_true(tuple_is_wide(&k[2].first) && tuple_is_wide(&k[6].first));
	assert_true(!tuple_is_wide(&k[0].first) && !tuple_is_wide(&k[5].first) && !tuple_is_wide(&k[7].first));
}

// ---- against a model ------------------------------------------------------------------------------------------------

#define KEYS 512u // some are in the table
#define STEPS 200000u

// Allowed answers for a key: the last value put, unless room was made or the entry became invalid.
static struct {
	struct tuple put;
	uint32_t number; // of its state, when it was put; 0: never, or removed
} model[KEYS];

static uint64_t seed = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (uint32_t)((seed >> 20) % below);
}

static uint32_t counted(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < LINES; i++)
		n += entries_of(&t->line[i]);
	return n;
}

static void put_random(uint32_t n, const uint32_t number[8], uint32_t generation)
{
	struct tuple e = entry(n, number[n % 8], generation);

	tuples_put(w, t, tuple_hash(&e), &e);
	model[n].put = e;
	model[n].number = e.first.number;
}

// The table holds only keys that were put. Making room may uncover an older copy, but never one with a state. Returns 1
// when the key leads to a state.
static int check_random(uint32_t n, const uint32_t number[8], uint32_t generation)
{
	struct tuple key = entry(n, number[n % 8], generation);
	const struct tuple_entry *found = find(&key), *put = &model[n].put.first;

	if (found == NULL)
		return 0;
	assert_int_not_equal(model[n].number, 0);
	assert_int_equal(found->word, put->word);
	assert_int_equal(found->address, put->address);
	if (tuple_is_wide(found))
		assert_memory_equal(found + 1, model[n].put.more, sizeof(model[n].put.more));
	int valid = found->number == number[n % 8] && found->permitted >> ACL_SLOT_BITS == generation;
	assert_int_equal(tuple_state(w, found, generation << ACL_SLOT_BITS) != NULL, valid);
	if (valid) {
		assert_int_equal(found->number, model[n].number);
		assert_int_equal(found->permitted, put->permitted);
		assert_int_equal(found->state, put->state);
	}
	return valid;
}

// Puts, look-ups, new states, changed lists, ageing: at half load valid entries are nearly always found.
static void random_operations(void **unused)
{
	uint32_t number[8], generation = 3, asked = 0, hits = 0;

	tuples_clear(t);
	memset(model, 0, sizeof(model));
	for (uint32_t i = 0; i < 8; i++)
		number[i] = tuples_number(t);
	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t what = draw(1000), n = 1 + draw(step / 1000 % 2 ? KEYS - 1 : LINES / 2);

		if (what < 400) {
			put_random(n, number, generation);
			assert_int_equal(check_random(n, number, generation), 1);
		} else if (what < 990) {
			asked += model[n].number == number[n % 8] &&
				 model[n].put.first.permitted >> ACL_SLOT_BITS == generation;
			hits += (uint32_t)check_random(n, number, generation);
		} else if (what < 994) {
			number[draw(8)] = tuples_number(t);
		} else if (what < 996) {
			generation++;
		} else {
			tuples_age(w, t, draw(2 * LINES), draw(16));
		}
		assert_int_equal(t->entries, counted());
	}
	assert_true(hits > asked / 4);
	tuples_clear(t);
	assert_int_equal(counted(), 0);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(put_and_find),
		cmocka_unit_test(room_is_made_by_the_invalid),
		cmocka_unit_test(full_groups),
		cmocka_unit_test(ageing),
		cmocka_unit_test(occupancy_returns_to_zero),
		cmocka_unit_test(one_mark_keeps_nobody_out),
		cmocka_unit_test(leads_to_a_state),
		cmocka_unit_test(numbers_come_round),
		cmocka_unit_test(generations_come_round),
		cmocka_unit_test(ports_cut_off),
		cmocka_unit_test(two_in_a_line),
		cmocka_unit_test(beginnings_differ),
		cmocka_unit_test(random_operations),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
