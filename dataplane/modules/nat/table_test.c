// SPDX-License-Identifier: Apache-2.0
// The table against a list that is looked through: random subscribers, packets, ends of sessions, moves, time.
// NAT_MODEL_STEPS=N for a longer run.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "nat/table.h"
#include "testkit/testkit.h"
#include <rte_byteorder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 2
#define SESSIONS 14
#define BLOCK 16
#define PER_ADDRESS 6
#define ADDRESSES 3
#define BLOCKS (PER_ADDRESS * ADDRESSES)
#define SLOTS (BLOCKS * BLOCK)

static struct {
	struct api_nat want;
	struct nat_table *t;
	uint32_t now;
	uint16_t epoch[SESSIONS];
	uint8_t lives[SESSIONS], worker[SESSIONS];
	struct {
		uint8_t used, session, epoch, protocol, worker;
		uint16_t port;
		uint32_t expires;
	} slot[SLOTS];
	struct {
		uint8_t given, told, session, epoch, worker;
		uint32_t since; // free: from then on; 0: from the beginning
	} block[BLOCKS];
	uint64_t made;
} m;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)random() % n;
}

static int lives(uint32_t session, uint32_t worker)
{
	return m.lives[session] && m.worker[session] == worker;
}

static void told(const struct nat_table *t, uint32_t worker, uint32_t block)
{
	m.block[block].told = t->block[block].subscriber != NAT_NONE;
}

static uint32_t used_of(uint32_t block)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < BLOCK; i++)
		n += m.slot[block * BLOCK + i].used;
	return n;
}

static void free_block(uint32_t b)
{
	for (uint32_t i = 0; i < BLOCK; i++)
		m.slot[b * BLOCK + i].used = 0;
	m.block[b].given = 0;
	m.block[b].since = m.now;
}

static void free_all_of(uint32_t session)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		if (m.block[b].given && m.block[b].session == session)
			free_block(b);
}

static int rests(uint32_t b)
{
	return m.block[b].since != 0 && m.now - m.block[b].since < m.want.hold * NAT_SECOND;
}

static uint32_t mappings_of(uint32_t worker)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		n += m.slot[i].used && m.slot[i].worker == worker;
	return n;
}

// Expected answer of room_for(); 1 when it is a new block, which must be free, rested, and of `address` unless that is
// NAT_NONE.
static enum nat_verdict expected(uint32_t session, uint32_t worker, int *fresh, uint32_t *address)
{
	uint32_t n = 0;
	int oldest_rests[ADDRESSES + 1] = {0}, any[ADDRESSES + 1] = {0};
	uint32_t oldest[ADDRESSES + 1];

	*fresh = 0;
	*address = NAT_NONE;
	for (uint32_t b = 0; b < BLOCKS; b++)
		if (m.block[b].given && m.block[b].session == session) {
			n++;
			*address = b / PER_ADDRESS;
			if (used_of(b) < BLOCK)
				return NAT_OK;
		}
	if (n >= m.want.blocks)
		return NAT_LIMIT;
	*fresh = 1;
	if (m.want.mode == API_NAT_DETERMINISTIC)
		return NAT_OK;
	for (uint32_t b = 0; b < BLOCKS; b++) {
		uint32_t lists[2] = {b / PER_ADDRESS, ADDRESSES};

		if (m.block[b].given || b % WORKERS != worker)
			continue;
		for (int k = 0; k < 2; k++)
			if (!any[lists[k]] || m.block[b].since < oldest[lists[k]]) {
				any[lists[k]] = 1;
				oldest[lists[k]] = m.block[b].since;
				oldest_rests[lists[k]] = rests(b);
			}
	}
	uint32_t list = *address == NAT_NONE ? ADDRESSES : *address;
	return any[list] && !oldest_rests[list] ? NAT_OK : NAT_EXHAUSTED;
}

static uint32_t find(uint32_t session, uint16_t port, uint8_t protocol, uint32_t worker)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (m.slot[i].used && m.slot[i].session == session && m.slot[i].port == port &&
			m.slot[i].protocol == protocol && m.slot[i].worker == worker)
			return i;
	return NAT_NONE;
}

// 0: no block; 1: blocks of this session with this worker; 2: of an earlier one; 3: with another worker.
static int holder(uint32_t session, uint32_t worker)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		if (m.block[b].given && m.block[b].session == session)
			return m.block[b].worker != worker ? 3 : m.block[b].epoch != (uint8_t)m.epoch[session] ? 2 : 1;
	return 0;
}

static enum nat_verdict before_block(uint32_t session, uint32_t worker, uint32_t old, int *fresh, uint32_t *address)
{
	if (old != NAT_NONE)
		m.slot[old].used = 0; // of an earlier session
	if (mappings_of(worker) >= narrow_capacity(m.t->part[worker].map))
		return NAT_FULL;
	int who = holder(session, worker);
	if (who == 3)
		return NAT_MOVING;
	if (who == 2)
		free_all_of(session);
	return expected(session, worker, fresh, address);
}

static void send(void)
{
	uint32_t s = pick(SESSIONS), slot, address = NAT_NONE, w = m.worker[s], work = UINT32_MAX;
	struct nat_user u = {.worker = w,
		.session = s,
		.inside = rte_cpu_to_be_32(0x0a2d0000 + s),
		.port = (uint16_t)pick(40),
		.protocol = pick(2) ? 17 : 1,
		.now = m.now,
		.blocks = m.want.blocks,
		.work = &work};
	int fresh;

	if (!m.lives[s])
		return;
	uint32_t known = find(s, u.port, u.protocol, w);
	if (known != NAT_NONE && m.slot[known].epoch == (uint8_t)m.epoch[s]) {
		assert_int_equal(nat_map(m.t, &u, &slot), NAT_OK);
		assert_int_equal(slot, known);
	} else {
		enum nat_verdict v = before_block(s, w, known, &fresh, &address);

		assert_int_equal(nat_map(m.t, &u, &slot), v);
		if (v != NAT_OK)
			return;
		uint32_t b = slot / BLOCK;
		assert_false(m.slot[slot].used);
		assert_true(m.block[b].given ? !fresh && m.block[b].session == s
					     : fresh && (!rests(b) || m.want.mode == API_NAT_DETERMINISTIC));
		if (address != NAT_NONE)
			assert_int_equal(b / PER_ADDRESS, address);
		if (m.want.mode == API_NAT_DETERMINISTIC)
			assert_int_equal(b, s);
		else
			assert_int_equal(b % WORKERS, w);
		m.block[b].given = 1;
		m.block[b].session = (uint8_t)s;
		m.block[b].epoch = (uint8_t)m.epoch[s];
		m.block[b].worker = (uint8_t)w;
		m.slot[slot].used = 1;
		m.slot[slot].session = (uint8_t)s;
		m.slot[slot].epoch = (uint8_t)m.epoch[s];
		m.slot[slot].worker = (uint8_t)w;
		m.slot[slot].port = u.port;
		m.slot[slot].protocol = u.protocol;
		m.made++;
	}
	nat_refresh(&m.want, &m.t->slot[slot], m.now, 0, 0);
	m.slot[slot].expires = m.now + (u.protocol == 17 ? m.want.udp : m.want.icmp) * NAT_SECOND;
}

static void receive(void)
{
	uint32_t i = pick(SLOTS),
		 slot = nat_place(m.t, i / BLOCK / PER_ADDRESS, (uint16_t)(1024 + i % (BLOCK * PER_ADDRESS)));
	uint8_t protocol = pick(2) ? 17 : 1;
	int there = m.slot[i].used && m.slot[i].protocol == protocol && m.slot[i].expires > m.now &&
		    m.slot[i].epoch == (uint8_t)m.epoch[m.slot[i].session];

	assert_int_equal(slot, i);
	if (m.slot[i].used)
		assert_int_equal(nat_owner(m.t, slot), m.slot[i].worker);
	struct nat_slot *s = nat_enter(m.t, slot, protocol, m.now);
	assert_int_equal(s != NULL, there);
	if (!there)
		return;
	assert_int_equal(rte_be_to_cpu_32(s->inside), 0x0a2d0000 + m.slot[i].session);
	assert_int_equal(s->port, m.slot[i].port);
	assert_int_equal(nat_port_of(m.t, slot), 1024 + i % (BLOCK * PER_ADDRESS));
}

static void end_or_begin(void)
{
	uint32_t s = pick(SESSIONS);

	if (m.lives[s] && pick(2)) {
		m.worker[s] = (uint8_t)pick(WORKERS); // moves, perhaps
		return;
	}
	m.epoch[s] = (uint16_t)(m.epoch[s] + m.lives[s]);
	m.lives[s] = !m.lives[s];
	m.worker[s] = (uint8_t)pick(WORKERS);
}

static void pass_time(void)
{
	m.now += pick(40 * NAT_SECOND);
	for (uint32_t i = 0; i < 4 * WORKERS; i++) // a block in the place of a removed one waits for the next round
		nat_age(m.t, i % WORKERS, m.now, UINT32_MAX);
	for (uint32_t b = 0; b < BLOCKS; b++) {
		uint32_t s = m.block[b].session;

		if (!m.block[b].given)
			continue;
		for (uint32_t i = 0; i < BLOCK; i++)
			m.slot[b * BLOCK + i].used &= m.slot[b * BLOCK + i].expires > m.now;
		if (used_of(b) == 0 || m.block[b].epoch != (uint8_t)m.epoch[s] || !lives(s, m.block[b].worker))
			free_block(b);
	}
}

static void compare(void)
{
	for (uint32_t w = 0; w < WORKERS; w++) {
		uint32_t blocks = 0, sessions = 0;

		for (uint32_t b = 0; b < BLOCKS; b++) {
			blocks += m.block[b].given && m.block[b].worker == w;
			assert_int_equal(m.block[b].told, m.block[b].given);
			assert_int_equal(m.t->block[b].used, used_of(b));
		}
		for (uint32_t s = 0; s < SESSIONS; s++) {
			uint32_t has = 0;

			for (uint32_t b = 0; b < BLOCKS; b++)
				has |= m.block[b].given && m.block[b].session == s && m.block[b].worker == w;
			sessions += has;
		}
		assert_int_equal(m.t->part[w].blocks, blocks);
		assert_int_equal(m.t->part[w].subscribers, sessions);
		assert_int_equal(m.t->part[w].mappings, mappings_of(w));
		assert_int_equal(narrow_count(m.t->part[w].map), mappings_of(w));
	}
	assert_int_equal(m.t->part[0].made + m.t->part[1].made, m.made);
}

static void run(uint32_t mode, uint32_t mappings)
{
	const char *text = getenv("NAT_MODEL_STEPS");
	uint32_t steps = text != NULL ? (uint32_t)atoi(text) : 60000;

	memset(&m, 0, sizeof(m));
	m.now = 1000;
	m.want = (struct api_nat){.mode = mode,
		.inside = 1,
		.addresses = 2,
		.port = {1024, 1024 + BLOCK * PER_ADDRESS - 1},
		.block = BLOCK,
		.blocks = mode == API_NAT_BLOCKS ? 3 : 1,
		.mappings = mappings,
		.udp = 120,
		.tcp = 7440,
		.tcp_transitory = 240,
		.icmp = 60,
		.hold = 20};
	m.want.inside_prefix[0] = kit_address("10.45.0.0/28");
	m.want.address[0] = kit_address("203.0.113.4/31");
	m.want.address[1] = kit_address("203.0.113.9");
	m.t = nat_table_create(&m.want, WORKERS, SESSIONS);
	assert_non_null(m.t);
	m.t->epoch = m.epoch;
	m.t->lives = lives;
	m.t->told = told;
	for (uint32_t i = 0; i < steps; i++) {
		uint32_t what = pick(1000);

		if (what < 700)
			send();
		else if (what < 970)
			receive();
		else if (what < 985)
			end_or_begin();
		else
			pass_time();
		if (what >= 960)
			compare();
	}
	memset(m.lives, 0, sizeof(m.lives));
	pass_time();
	compare();
	assert_int_equal(m.t->part[0].blocks + m.t->part[1].blocks, 0);
	nat_table_free(m.t);
}

static void blocks(void **state)
{
	run(API_NAT_BLOCKS, 0);
}

static void blocks_of_few_mappings(void **state)
{
	run(API_NAT_BLOCKS, 60);
}

static void deterministic(void **state)
{
	run(API_NAT_DETERMINISTIC, 0);
}

#define LARGE 4096u // ports of a block, and blocks of the subscriber's
#define MANY 64u

static int all_live(uint32_t session, uint32_t worker)
{
	return 1;
}

static void told_nothing(const struct nat_table *t, uint32_t worker, uint32_t block)
{
}

// A subscriber with the maximum of mappings.
static struct nat_table *full(struct nat_user *u)
{
	struct api_nat want = {.mode = API_NAT_BLOCKS,
		.inside = 1,
		.addresses = 1,
		.port = {1024, 65535},
		.block = LARGE,
		.blocks = MANY,
		.udp = 300,
		.tcp = 7440,
		.tcp_transitory = 240,
		.icmp = 60};
	struct nat_table *t;
	uint32_t slot;

	want.inside_prefix[0] = kit_address("10.45.0.0/28");
	want.address[0] = kit_address("203.0.113.4");
	memset(m.epoch, 0, sizeof(m.epoch));
	t = nat_table_create(&want, 1, SESSIONS);
	assert_non_null(t);
	t->epoch = m.epoch;
	t->lives = all_live;
	t->told = told_nothing;
	*u = (struct nat_user){.inside = 0x0100000a, .protocol = 17, .now = 1000, .blocks = MANY};
	for (; t->part[0].mappings < t->blocks * LARGE; u->port++)
		assert_int_equal(nat_map(t, u, &slot), NAT_OK);
	return t;
}

#define VISIT_MOST (2 * LARGE) // mappings that a visit removes at most, with the rest of its last block

// RFC 6888 REQ-8: a deleted session's ports are returned, a part in each visit.
static void visits_are_bounded(void **state)
{
	struct nat_user u;
	struct nat_table *t = full(&u);
	uint64_t before = t->part[0].mappings;
	uint32_t visits = 0;

	m.epoch[0]++;
	for (; before != 0; before = t->part[0].mappings, visits++) {
		nat_age(t, 0, u.now, UINT32_MAX);
		assert_true(t->part[0].mappings < before);
		assert_true(before - t->part[0].mappings <= VISIT_MOST);
		assert_true(visits < 1000);
	}
	assert_int_equal(t->part[0].blocks, 0);
	assert_int_equal(t->part[0].subscribers, 0);
	nat_table_free(t);
}

// Time runs out for all at once.
static void expiry_is_bounded(void **state)
{
	struct nat_user u;
	struct nat_table *t = full(&u);
	uint64_t before = t->part[0].mappings;

	for (uint32_t visits = 0; before != 0; before = t->part[0].mappings, visits++) {
		nat_age(t, 0, u.now + 301 * NAT_SECOND, UINT32_MAX);
		assert_true(before - t->part[0].mappings <= VISIT_MOST);
		assert_true(visits < 1000);
	}
	assert_int_equal(t->part[0].subscribers, 0);
	nat_table_free(t);
}

// The next session with the index waits for its ports meanwhile, some visits.
static void the_next_one_waits(void **state)
{
	struct nat_user u;
	struct nat_table *t = full(&u);
	uint32_t slot, work, visits = 0;

	u.work = &work;
	m.epoch[0]++;
	for (enum nat_verdict v = NAT_MOVING; v != NAT_OK; visits++) {
		uint64_t before = t->part[0].mappings;

		work = NAT_WORK;
		for (int packet = 0; packet < 64 && v != NAT_OK; packet++) {
			v = nat_map(t, &u, &slot);
			assert_true(v == NAT_OK || v == NAT_MOVING);
		}
		assert_true(before + 1 - t->part[0].mappings <= VISIT_MOST);
		assert_true(visits < 1000);
	}
	assert_int_equal(t->part[0].mappings, 1);
	assert_int_equal(t->part[0].subscribers, 1);
	nat_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(visits_are_bounded),
		cmocka_unit_test(expiry_is_bounded),
		cmocka_unit_test(the_next_one_waits),
		cmocka_unit_test(blocks),
		cmocka_unit_test(blocks_of_few_mappings),
		cmocka_unit_test(deterministic),
	};

	kit_start(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
