// SPDX-License-Identifier: Apache-2.0
// Pairs against a list that is looked through: random subscribers, remotes, identifiers, ends of sessions, moves, time.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "nat/pairs.h"
#include "testkit/testkit.h"
#include <stdlib.h>
#include <string.h>

#define WORKERS 2
#define SESSIONS 12
#define LISTED 128
#define ROOM (WORKERS * LISTED)
#define OF_SUBSCRIBER 9 // as many as there are pairs for one in the list
#define TIMEOUT 10

struct listed {
	uint8_t used, session, worker;
	uint16_t epoch;
	struct pair_key key;
	uint32_t expires, waits, rests, unanswered;
	uint32_t out[PAIR_IDS], in[PAIR_IDS], outs, ins;
};

static struct {
	struct nat_pairs *p;
	uint32_t now;
	uint16_t epoch[SESSIONS];
	uint8_t lives[SESSIONS], worker[SESSIONS];
	struct listed pair[LISTED];
	uint64_t made, verdicts[PAIR_VERDICTS], answers;
} m;

static uint32_t pick(uint32_t n)
{
	return (uint32_t)random() % n;
}

static int lives(uint32_t session, uint32_t worker)
{
	return m.lives[session] && m.worker[session] == worker;
}

static uint32_t inside_of(uint32_t session)
{
	return 0x0a2d0001 + session;
}

static struct pair_key key_of(uint32_t session, uint32_t kind)
{
	return (struct pair_key){.outside = 0xcb007104 + session % 2, .remote = 0xc6336401 + pick(3), .kind = kind};
}

static int same_key(const struct pair_key *a, const struct pair_key *b)
{
	return a->outside == b->outside && a->remote == b->remote && a->kind == b->kind;
}

static void fresh(uint32_t most)
{
	memset(&m, 0, sizeof(m));
	m.now = 100;
	m.p = nat_pairs_create(most, WORKERS, SESSIONS);
	assert_non_null(m.p);
	m.p->epoch = m.epoch;
	m.p->lives = lives;
	for (uint32_t s = 0; s < SESSIONS; s++) {
		m.lives[s] = 1;
		m.worker[s] = s % WORKERS;
	}
}

static struct pair_user user(uint32_t session, struct pair_key key, uint32_t id)
{
	return (struct pair_user){.key = key,
		.id = id,
		.inside = inside_of(session),
		.session = session,
		.epoch = m.epoch[session],
		.worker = m.worker[session],
		.now = m.now,
		.most = OF_SUBSCRIBER,
		.timeout = TIMEOUT};
}

static enum pair_verdict send_out(uint32_t session, struct pair_key key, uint32_t id)
{
	struct pair_user u = user(session, key, id);

	return nat_pair_out(m.p, nat_pair_worker(m.p, &key), &u);
}

// The subscriber's session, or SESSIONS.
static uint32_t to(struct pair_key key, uint32_t id)
{
	const struct pair *q = nat_pair_in(m.p, nat_pair_worker(m.p, &key), &key, id, m.now, 1);

	return q != NULL ? q->session : SESSIONS;
}

static uint32_t quoted(struct pair_key key, uint32_t id, int out)
{
	const struct pair *q = nat_pair_quoted(m.p, nat_pair_worker(m.p, &key), &key, id, m.now, out);

	return q != NULL ? q->session : SESSIONS;
}

static int alive(const struct listed *q)
{
	return q->used && q->expires > m.now && q->epoch == m.epoch[q->session];
}

static int knows(const uint32_t *ids, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == id)
			return 1;
	return 0;
}

static void put_id(uint32_t *ids, uint32_t *n, uint32_t id)
{
	*n = *n < PAIR_IDS ? *n + 1 : PAIR_IDS;
	for (uint32_t i = *n - 1; i > 0; i--)
		ids[i] = ids[i - 1];
	ids[0] = id;
}

// Of this key and alive; the i-th, or NULL.
static struct listed *nth(const struct pair_key *key, uint32_t i)
{
	for (uint32_t k = 0; k < LISTED; k++)
		if (alive(&m.pair[k]) && same_key(&m.pair[k].key, key) && i-- == 0)
			return &m.pair[k];
	return NULL;
}

static enum pair_verdict list_out(uint32_t session, struct pair_key key, uint32_t id)
{
	int ids = key.kind == PAIR_ESP || key.kind == PAIR_PPTP, waited = 0, known = 0, others = 0;
	struct listed *mine = NULL, *q;

	for (uint32_t i = 0; (q = nth(&key, i)) != NULL; i++)
		if (q->session == session)
			mine = q;
		else {
			others++;
			waited |= q->waits > m.now;
			known |= knows(q->out, q->outs, id);
		}
	int fresh_id = mine == NULL || (ids && !knows(mine->out, mine->outs, id));
	if (fresh_id && (ids ? known || waited : others != 0))
		return PAIR_TAKEN;
	for (uint32_t k = 0; mine == NULL && k < LISTED; k++)
		if (!alive(&m.pair[k])) {
			mine = &m.pair[k];
			*mine = (struct listed){
				.used = 1, .session = (uint8_t)session, .epoch = m.epoch[session], .key = key};
			m.made++;
		}
	if (fresh_id && ids) {
		put_id(mine->out, &mine->outs, id);
		mine->unanswered += mine->unanswered < PAIR_IDS;
	}
	if (!waited && mine->unanswered != 0 && mine->waits <= m.now && mine->rests <= m.now) {
		mine->waits = (m.now + PAIR_WAIT) | 1;
		mine->rests = (mine->waits + PAIR_WAIT) | 1;
	}
	mine->expires = m.now + TIMEOUT * NAT_SECOND;
	mine->worker = m.worker[session];
	return PAIR_OK;
}

static uint32_t list_in(struct pair_key key, uint32_t id)
{
	struct listed *its = NULL, *waits = NULL, *q;
	uint32_t n = 0;

	for (; (q = nth(&key, n)) != NULL; n++)
		if (knows(q->in, q->ins, id))
			its = q;
		else if (q->waits > m.now)
			waits = q;
	q = its != NULL ? its : n == 1 ? nth(&key, 0) : waits;
	if (q != NULL && q != its && q->unanswered != 0) {
		put_id(q->in, &q->ins, id);
		m.answers++;
		if (--q->unanswered == 0)
			q->waits = q->rests = 0;
	}
	return q != NULL ? q->session : SESSIONS;
}

static uint32_t list_quoted(struct pair_key key, uint32_t id, int out)
{
	struct listed *q;
	uint32_t n = 0;

	for (; (q = nth(&key, n)) != NULL; n++)
		if (out ? knows(q->out, q->outs, id) : knows(q->in, q->ins, id))
			return q->session;
	return n == 1 ? nth(&key, 0)->session : SESSIONS;
}

static uint32_t listed(void)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < LISTED; k++)
		n += alive(&m.pair[k]);
	return n;
}

static uint32_t held(void)
{
	return (uint32_t)(m.p->part[0].pairs + m.p->part[1].pairs);
}

static void age_all(void)
{
	for (uint32_t w = 0; w < WORKERS; w++)
		nat_pairs_age(m.p, w, m.now, ROOM);
	for (uint32_t k = 0; k < LISTED; k++)
		if (!alive(&m.pair[k]) || !lives(m.pair[k].session, m.pair[k].worker))
			m.pair[k].used = 0;
}

static void step(void)
{
	static const uint32_t kinds[] = {PAIR_ESP, PAIR_ESP, PAIR_PPTP, PAIR_6IN4};
	uint32_t session = pick(SESSIONS), id = pick(24), what = pick(100);
	struct pair_key key = key_of(session, kinds[pick(4)]);

	if (key.kind == PAIR_6IN4)
		id = 0;
	if (what < 45) {
		enum pair_verdict got = send_out(session, key, id);

		m.verdicts[got]++;
		assert_int_equal(got, list_out(session, key, id));
	} else if (what < 75) {
		assert_int_equal(to(key, id), list_in(key, id));
	} else if (what < 85) {
		assert_int_equal(quoted(key, id, what & 1), list_quoted(key, id, what & 1));
	} else if (what < 94) {
		m.now += pick(NAT_SECOND);
	} else if (what < 96) {
		m.epoch[session]++; // its session went, and another has its place
	} else if (what < 97) {
		m.worker[session] ^= 1;
		age_all(); // an entry of the old worker goes
	} else {
		age_all();
		assert_int_equal(held(), listed());
	}
}

static void as_the_list(void **state)
{
	uint64_t made = 0;

	srandom(7);
	fresh(ROOM);
	for (uint32_t i = 0; i < 200000; i++)
		step();
	for (uint32_t w = 0; w < WORKERS; w++)
		made += m.p->part[w].made;
	assert_int_equal(made, m.made);
	assert_int_equal(m.p->part[0].refused + m.p->part[1].refused, m.verdicts[PAIR_TAKEN]);
	assert_true(m.verdicts[PAIR_OK] > 1000 && m.verdicts[PAIR_TAKEN] > 1000 && m.answers > 1000);
	for (uint32_t s = 0; s < SESSIONS; s++)
		m.lives[s] = 0;
	age_all();
	assert_int_equal(held(), 0);
	for (uint32_t s = 0; s < SESSIONS; s++)
		assert_int_equal(m.p->of_session[s], 0);
	nat_pairs_free(m.p);
}

// Limits of a subscriber over all workers; of all, and of a worker.
static void limits(void **state)
{
	struct pair_key key = {.outside = 0xcb007104, .kind = PAIR_6IN4};
	uint32_t good = 0, i;

	fresh(WORKERS * 16);
	for (i = 0; i < OF_SUBSCRIBER + 3; i++) {
		key.remote = 0xc6336401 + i;
		assert_int_equal(send_out(0, key, 0), i < OF_SUBSCRIBER ? PAIR_OK : PAIR_LIMIT);
	}
	assert_int_equal(held(), OF_SUBSCRIBER);
	for (i = 0; i < 200; i++) {
		uint32_t session = 1 + i % (SESSIONS - 1);

		key.remote = 0xc6336501 + i;
		enum pair_verdict v = send_out(session, key, 0);
		good += v == PAIR_OK;
		assert_true(v != PAIR_TAKEN);
	}
	assert_int_equal(good, WORKERS * 16 - OF_SUBSCRIBER);
	key.remote = 0xc6336401;
	assert_int_equal(to(key, 0), 0); // those that are there go on
	m.now += TIMEOUT * NAT_SECOND;
	assert_int_equal(to(key, 0), SESSIONS);
	age_all();
	assert_int_equal(held(), 0);
	assert_int_equal(send_out(0, key, 0), PAIR_OK);
	nat_pairs_free(m.p);
}

// As many subscribers at one remote as are searched for a packet.
static void at_one_remote(void **state)
{
	struct pair_key key = {.outside = 0xcb007104, .remote = 0xc6336401, .kind = PAIR_ESP};

	fresh(4 * PAIRS_AT_REMOTE);
	for (uint32_t i = 0; i <= PAIRS_AT_REMOTE; i++) {
		struct pair_user u = user(i % SESSIONS, key, 1000 + i);

		u.inside = 0x0a2d0001 + i;
		u.most = 1000;
		assert_int_equal(
			nat_pair_out(m.p, nat_pair_worker(m.p, &key), &u), i < PAIRS_AT_REMOTE ? PAIR_OK : PAIR_FULL);
		if (i < PAIRS_AT_REMOTE)
			assert_int_equal(to(key, 2000 + i), i % SESSIONS);
	}
	for (uint32_t i = 0; i < PAIRS_AT_REMOTE; i++) {
		assert_int_equal(to(key, 2000 + i), i % SESSIONS);
		assert_int_equal(quoted(key, 1000 + i, 1), i % SESSIONS);
		assert_int_equal(quoted(key, 2000 + i, 0), i % SESSIONS);
	}
	nat_pairs_free(m.p);
}

// An answer that never comes delays others for a limited time, however often the subscriber begins again.
static void waits_in_vain(void **state)
{
	struct pair_key key = {.outside = 0xcb007104, .remote = 0xc6336401, .kind = PAIR_ESP};

	fresh(16);
	assert_int_equal(send_out(0, key, 1), PAIR_OK);
	assert_int_equal(send_out(1, key, 50), PAIR_TAKEN);
	m.now += PAIR_WAIT + 1;
	assert_int_equal(send_out(0, key, 2), PAIR_OK); // another identifier does not wait again at once
	assert_int_equal(send_out(1, key, 50), PAIR_OK);
	assert_int_equal(send_out(0, key, 3), PAIR_TAKEN);
	assert_int_equal(send_out(0, key, 1), PAIR_OK); // a known one goes on
	assert_int_equal(to(key, 60), 1);
	assert_int_equal(to(key, 61), SESSIONS);
	m.now += PAIR_WAIT + 1;
	assert_int_equal(send_out(0, key, 1), PAIR_OK); // rested: it may be answered now
	assert_int_equal(to(key, 61), 0);
	assert_int_equal(to(key, 60), 1);
	assert_int_equal(send_out(1, key, 1), PAIR_TAKEN); // an identifier of the other's
	nat_pairs_free(m.p);
}

// The latest identifiers are known; a subscriber alone gets all packets.
static void identifiers(void **state)
{
	struct pair_key key = {.outside = 0xcb007104, .remote = 0xc6336401, .kind = PAIR_PPTP};

	fresh(16);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(send_out(0, key, i), PAIR_OK);
		assert_int_equal(to(key, 1000 + i), 0);
		assert_int_equal(to(key, 5000 + i), 0); // not an answer: it is not kept
	}
	assert_int_equal(send_out(1, key, 200), PAIR_OK);
	assert_int_equal(to(key, 2000), 1);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(to(key, 1000 + i), i < 100 - PAIR_IDS ? SESSIONS : 0);
		assert_int_equal(quoted(key, i, 1), i < 100 - PAIR_IDS ? SESSIONS : 0);
	}
	assert_int_equal(to(key, 5099), SESSIONS);
	nat_pairs_free(m.p);
}

static void kinds(void **state)
{
	static const struct {
		uint8_t protocol, bytes[8];
		uint32_t room;
		enum pair_kind kind;
		uint8_t id[4];
	} rows[] = {
		{47, {0x30, 0x81, 0x88, 0x0b, 0, 9, 0x12, 0x34}, 8, PAIR_PPTP, {0x12, 0x34}},
		{47, {0x30, 0x81, 0x88, 0x0b, 0, 9, 0x12, 0x34}, 7, PAIR_SHORT, {0}},
		{47, {0x30, 0x01, 0x08, 0x00, 0, 9, 0x12, 0x34}, 8, PAIR_NONE, {0}},
		{47, {0x00, 0x00, 0x08, 0x00}, 4, PAIR_GRE, {0}},
		{47, {0x00, 0x00, 0x08, 0x00}, 3, PAIR_SHORT, {0}},
		{47, {0x00, 0x02, 0x08, 0x00}, 4, PAIR_NONE, {0}},
		{50, {1, 2, 3, 4, 0, 0, 0, 1}, 8, PAIR_ESP, {1, 2, 3, 4}},
		{50, {1, 2, 3, 4, 0, 0, 0, 1}, 7, PAIR_SHORT, {0}},
		{41, {0x60}, 0, PAIR_6IN4, {0}},
		{51, {1, 2, 3, 4, 0, 0, 0, 1}, 8, PAIR_NONE, {0}},
		{132, {1, 2, 3, 4, 0, 0, 0, 1}, 8, PAIR_NONE, {0}},
	};

	for (uint32_t i = 0; i < RTE_DIM(rows); i++) {
		uint8_t *bytes = malloc(rows[i].room + 1);
		uint32_t id;

		memcpy(bytes, rows[i].bytes, rows[i].room);
		assert_int_equal(nat_pair_kind(rows[i].protocol, bytes, rows[i].room, &id), rows[i].kind);
		assert_memory_equal(&id, rows[i].id, 4);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_list),
		cmocka_unit_test(limits),
		cmocka_unit_test(at_one_remote),
		cmocka_unit_test(waits_in_vain),
		cmocka_unit_test(identifiers),
		cmocka_unit_test(kinds),
	};

	kit_start(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
