// SPDX-License-Identifier: Apache-2.0
// Random traffic and changes of sessions, workers and URRs, against a slow model that only adds up. Checks which
// packets pass. The reports of each URR add up to its bytes and packets, none twice and none missing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "usage/fixture_test.h"
#include <stdio.h>
#include <stdlib.h>

#define HOMES 5
#define URRS 4
#define STEPS 40000

struct model {
	int there;
	struct api_urr c;
	int on[2]; // of the uplink PDR, the downlink PDR
	uint64_t bytes[2], packets[2]; // since the URR was made
	uint64_t reported_bytes[2], reported_packets[2]; // by reports
	uint64_t used[2]; // since the quota was granted
	uint32_t sequence; // of the next report
};

static struct model model[HOMES + 1][URRS];
static uint16_t owner[HOMES + 1];
static uint64_t random_state = 88172645463325252u;
static uint32_t reports_checked, dropped;

static uint32_t rnd(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % below;
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_events = 64;
	gateway_start(&e);
	reports_subscribe();
	return 0;
}

static int used_up(const struct model *m)
{
	const uint64_t *q = m->c.volume_quota;

	if (!(m->c.flags & API_URR_HAS_VOLUME_QUOTA))
		return 0;
	if ((q[0] | q[1] | q[2]) == 0)
		return 1;
	return (q[API_TOTAL] && m->used[0] + m->used[1] >= q[API_TOTAL]) || (q[1] && m->used[0] >= q[1]) ||
	       (q[2] && m->used[1] >= q[2]);
}

static uint32_t home_of(uint64_t seid)
{
	return (uint32_t)seid - 0x200;
}

static void check_reports(void)
{
	for (uint32_t i = 0; i < reports.count; i++) {
		const struct api_usage *r = &reports.row[i];
		uint32_t home = home_of(r->seid);

		assert_in_range(home, 1, HOMES);
		struct model *m = &model[home][r->urr - 1];
		assert_int_equal(r->sequence, m->sequence++);
		assert_true(r->triggers != 0);
		for (int d = 0; d < 2; d++) {
			m->reported_bytes[d] += r->bytes[1 + d];
			m->reported_packets[d] += r->packets[1 + d];
			assert_true(m->reported_bytes[d] <= m->bytes[d]);
		}
		assert_int_equal(r->bytes[0], r->bytes[1] + r->bytes[2]);
		if (r->triggers & API_USAGE_TERMR) {
			for (int d = 0; d < 2; d++) {
				assert_int_equal(m->reported_bytes[d], m->bytes[d]);
				assert_int_equal(m->reported_packets[d], m->packets[d]);
			}
			*m = (struct model){0};
		}
		reports_checked++;
	}
	reports.count = 0;
}

static void choose(struct api_urr *u)
{
	u->method = API_URR_VOLUME;
	u->flags = API_URR_COUNT_PACKETS | (rnd(3) == 0 ? API_URR_HAS_VOLUME_QUOTA : 0);
	u->triggers = API_URR_VOLTH | API_URR_VOLQU | API_URR_PERIO | API_URR_LIUSA;
	u->volume_threshold[rnd(3)] = rnd(2) ? rnd(20000) : 0;
	memset(u->volume_quota, 0, sizeof(u->volume_quota));
	u->volume_quota[rnd(3)] = rnd(4) ? 1 + rnd(60000) : 0;
	u->period = rnd(4) ? 0 : 1 + rnd(20);
	u->linked[0] = rnd(2) ? 1 + rnd(URRS) : 0;
}

// The session as the model has it.
static void put(uint32_t home)
{
	struct home h = {.k = gateway_home(home)};

	h.k.s.worker = owner[home];
	for (uint32_t i = 0; i < URRS; i++) {
		if (!model[home][i].there)
			continue;
		h.urr[h.k.s.urrs++] = model[home][i].c;
		for (int d = 0; d < 2; d++)
			if (model[home][i].on[d])
				h.k.pdr[d].urr[h.k.pdr[d].urrs++] = i + 1;
	}
	put_home(home, &h);
}

static void change(uint32_t home)
{
	struct model *m = &model[home][rnd(URRS)];
	struct api_urr had = m->c;
	int was = m->there;

	// Reads waiting reports first: they must not follow this commit's, which take another way.
	reports.deaf = 0;
	settle();
	check_reports();
	if (rnd(8) == 0)
		owner[home] ^= 1;
	if (rnd(3) == 0) {
		m->there = 0; // the model forgets it when its final report has come
	} else {
		m->there = 1;
		m->c.id = (uint32_t)(m - model[home]) + 1;
		m->on[0] = rnd(3) != 0;
		m->on[1] = rnd(3) != 0;
		if (!was || rnd(2))
			choose(&m->c);
		m->c.grant += rnd(3) == 0;
		m->c.query += rnd(4) == 0;
	}
	if (!was || had.grant != m->c.grant || ((had.flags ^ m->c.flags) & API_URR_HAS_VOLUME_QUOTA) ||
		memcmp(had.volume_quota, m->c.volume_quota, sizeof(had.volume_quota)) != 0)
		m->used[0] = m->used[1] = 0;
	put(home);
	check_reports();
}

static void packet(uint32_t home)
{
	uint32_t length = 28 + rnd(1200);
	int uplink = (int)rnd(2), d = !uplink, expected = 1;

	for (uint32_t i = 0; i < URRS; i++)
		expected &= !(model[home][i].there && model[home][i].on[d] && used_up(&model[home][i]));
	assert_int_equal(send_one(home, uplink, length), expected);
	dropped += !expected;
	for (uint32_t i = 0; i < URRS && expected; i++) {
		struct model *m = &model[home][i];

		if (!m->there || !m->on[d])
			continue;
		m->bytes[d] += length;
		m->packets[d]++;
		m->used[d] += length;
	}
}

static void random_traffic(void **state)
{
	for (uint32_t home = 1; home <= HOMES; home++)
		put(home);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t what = rnd(100);

		if (what < 4)
			change(1 + rnd(HOMES));
		else if (what < 10)
			pass(rnd(100000));
		else
			packet(1 + rnd(HOMES));
		// At times the events are not read, and the queue fills.
		if (rnd(100) == 0)
			reports.deaf ^= 1;
		check_reports();
	}
	reports.deaf = 0;
	for (int i = 0; i < 20; i++)
		pass(1000000);
	check_reports();
	for (uint32_t home = 1; home <= HOMES; home++)
		delete_home(home);
	settle();
	check_reports();
	for (uint32_t home = 1; home <= HOMES; home++)
		for (uint32_t i = 0; i < URRS; i++)
			assert_int_equal(model[home][i].bytes[0] + model[home][i].bytes[1], 0);
	assert_in_range(reports_checked, 500, UINT32_MAX);
	assert_in_range(dropped, 500, UINT32_MAX);
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_traffic)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
