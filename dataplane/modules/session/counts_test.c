// SPDX-License-Identifier: Apache-2.0
// Counters of mobile rules, in the rule or in a state: exact through all changes of the session; room for all of them;
// End Markers in a circle.
#include "core/control.h"
#include "core/engine.h"
#include "path/local.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "session/mobile_fixture.h"
#include "usage/urr.h"
#include <errno.h>

#define SESSIONS 1024

static struct api_policer profile = {.type = API_SRTCM,
	.cir = 1000000000,
	.cbs = 1000000,
	.pbs = 1000000,
	.action = {API_COLOUR_PASS, API_COLOUR_PASS, API_COLOUR_DROP}};

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_sessions = SESSIONS;
	e.packet_buffers = 8192;
	fixture_start(&e);
	kit_begin();
	kit_put(API_POLICER, "gold", &profile, sizeof(profile));
	commit();
	return 0;
}

static uint32_t seed = 12345;
static uint32_t below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

static void build(struct kit_mobile *k)
{
	uint32_t what = below(64);
	struct api_pdr *up, *down;

	kit_mobile(k, 2, "10.45.0.2", what & 1 ? "2001:db8:1:2::/64" : NULL);
	up = kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x102, 1);
	if (below(3))
		up->match |= API_PDR_UE_IP;
	down = kit_pdr_ue(k, API_FROM_CORE, "core", 2);
	kit_far_ip(k, 1, API_FROM_CORE, "core");
	kit_far_gtpu(k, 2, API_FROM_ACCESS, "gnb", 0x202);
	k->s.worker = (what >> 1) & 1;
	if (what & 4) {
		struct api_qer *q = kit_qer(k, 1, 0);
		strcpy(q->uplink_policer, "gold");
		strcpy(q->downlink_policer, "gold");
		if (below(2))
			kit_pdr_qer(up, 1);
		kit_pdr_qer(down, 1);
	}
	if (what & 8) {
		kit_urr(k, 1);
		kit_urr(k, 2);
		kit_pdr_urr(up, 1);
		kit_pdr_urr(up, 2);
		kit_pdr_urr(down, 1);
		if (below(2))
			kit_pdr_urr(down, 2);
	}
	if (what & 16) {
		kit_framed_route(k, "172.16.8.0/24");
		up->match |= API_PDR_FRAMED | API_PDR_UE_IP;
		down->match |= API_PDR_FRAMED;
	}
}

static const struct session *session_of_fteid(uint32_t teid)
{
	uint8_t local[4] = {10, 1, 0, 1};
	const struct rule *r = session_fteid_rule(teid, path_local_id(4, local));

	assert_non_null(r);
	return session_tables.session[r->session];
}

// Counts of the session's URRs 1 and 2, up and down, against the packets sent while its PDRs had them: `u` and `d` more
// since the last call. Loans pass to the next version, or return where a PDR's URRs change.
static void check_urrs(const struct kit_mobile *k, uint32_t u, uint32_t d)
{
	static uint64_t sent[2][2];
	const struct session *s = session_of_fteid(0x102);

	for (uint32_t id = 1; id <= 2; id++) {
		uint64_t *of = sent[id - 1];
		uint32_t index = s->usage != NULL ? usage_index(s->usage, id) : RULE_NONE;

		if (index == RULE_NONE) {
			of[0] = of[1] = 0;
			continue;
		}
		for (uint8_t p = 0; p < 2; p++)
			for (uint8_t i = 0; i < k->pdr[p].urrs; i++)
				of[p] += k->pdr[p].urr[i] == id ? (p == 0 ? u : d) : 0;
		struct usage_totals t = urr_totals(usage_table.urr[index], control_now_ns());
		assert_int_equal(t.packets[0], of[0]);
		assert_int_equal(t.packets[1], of[1]);
		assert_int_equal(t.bytes[0], of[0] * 108);
		assert_int_equal(t.bytes[1], of[1] * 108);
	}
}

static void exact_counts(void **state)
{
	static struct frame up, down;
	struct kit_mobile k, in_force;
	uint64_t ups = 0, downs = 0;

	uplink_of(&up, UE4, FAR4, 0x102, 0xff);
	downlink_of(&down, FAR4, UE4);
	for (int i = 0; i < 2000; i++) {
		build(&k);
		kit_begin();
		kit_put_mobile("s2", &k);
		if (i > 0 && below(8) == 0)
			kit_put_mobile("s3", &k); // the same keys: refused, and all is as it was
		if (kit_commit() == 0)
			in_force = k;
		else
			assert_true(i > 0);
		uint32_t u = below(3), d = below(3);
		kit_clear();
		for (uint32_t n = 0; n < u; n++)
			assert_int_equal(kit_send("ran", up.at, up.length), 0);
		for (uint32_t n = 0; n < d; n++)
			assert_int_equal(kit_send("internet", down.at, down.length), 0);
		kit_run();
		assert_int_equal(kit_count("internet"), u);
		assert_int_equal(kit_count("ran"), d);
		ups += u;
		downs += d;
		struct api_session_row r = kit_session_row("s2");
		assert_int_equal(r.uplink_packets, ups);
		assert_int_equal(r.downlink_packets, downs);
		assert_int_equal(r.uplink_bytes, ups * 108);
		assert_int_equal(r.downlink_bytes, downs * 108);
		check_urrs(&in_force, u, d);
		kit_advance(1000);
	}
	kit_begin();
	kit_delete(API_SESSION, "s2");
	commit();
	assert_true(kit_balance());
	assert_int_equal(session_tables.states.count, session_tables.states.capacity);
	assert_int_equal(session_tables.rules.count, session_tables.rules.capacity);
}

static int put_all(uint16_t worker, uint32_t pdrs)
{
	char name[16];

	kit_begin();
	for (uint32_t i = 2; i < SESSIONS + 2; i++) {
		struct kit_mobile *k = upf_session(i);

		k->s.ue_ip4.family = 0; // IPv6 only: every rule has a state, every session two keys
		k->s.worker = worker;
		for (uint32_t p = 2; p < pdrs; p++)
			kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x10000 + i + (p << 20), 1)->match |=
				API_PDR_UE_IP;
		snprintf(name, sizeof(name), "s%u", i);
		kit_put_mobile(name, k);
	}
	return kit_commit();
}

static void all_go(void)
{
	char name[16];

	kit_begin();
	for (uint32_t i = 2; i < SESSIONS + 2; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		kit_delete(API_SESSION, name);
	}
	commit();
	assert_int_equal(session_tables.states.count, session_tables.states.capacity);
	assert_int_equal(session_tables.rules.count, session_tables.rules.capacity);
}

// engine.max_rules 0: all sessions of two PDRs can change at once, also their worker.
static void all_change_workers(void **state)
{
	if (put_all(0, 2))
		fail_msg("%s", kit_error());
	if (put_all(1, 2))
		fail_msg("%s", kit_error());
	all_go();
}

// ... and every session may have four.
static void four_each(void **state)
{
	if (put_all(0, 4))
		fail_msg("%s", kit_error());
	all_go();
}

// A tunnel that two PDRs send on, into tunnels that lead back to it.
static void marker_circle_ends(void **state)
{
	static const uint8_t in[8] = {0x30, 254, 0, 0, 0, 0, 9, 0};
	static struct frame f;
	struct kit_mobile k;

	kit_mobile(&k, 1, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x900, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x900, 2)->precedence = 200;
	kit_pdr_fteid(&k, API_FROM_CORE, "10.1.0.1", 0x301, 3);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.1.0.1", 0x302, 3);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "self3", 0x301);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "self3", 0x302);
	kit_far_gtpu(&k, 3, API_FROM_ACCESS, "self9", 0x900);
	put("s1", &k);
	frame_payload(&f, 0);
	frame_append(&f, in, sizeof(in));
	frame_udp(&f, 2152, 2152);
	frame_ip(&f, "10.9.0.2", "10.9.0.1", 17);
	link_layer(&f, "peers", 1);
	assert_int_equal(kit_send("peers", f.at, f.length), 0);
	for (int i = 0; i < 200; i++)
		engine_walk();
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
	gone("s1");
}

#define QUOTAS 400

static void of_all_quotas(void (*fn)(uint32_t session))
{
	for (uint32_t i = 0; i < session_tables.capacity; i++)
		if (session_tables.session[i] != NULL && session_tables.session[i]->name[0] == 'q')
			fn(i);
}

static void quotas(void (*fn)(const char *name, uint32_t n))
{
	char name[API_NAME];

	kit_begin();
	for (uint32_t i = 0; i < QUOTAS; i++) {
		snprintf(name, sizeof(name), "q%u", i);
		fn(name, i);
	}
	commit();
}

static void come(const char *name, uint32_t n)
{
	struct kit_mobile k;
	char ue[32];

	snprintf(ue, sizeof(ue), "10.46.%u.%u", n >> 8, n & 255);
	kit_mobile(&k, 2000 + n, ue, NULL);
	kit_put_mobile(name, &k);
}

static void go(const char *name, uint32_t n)
{
	kit_delete(API_SESSION, name);
}

// No more than so many commits come.
static void expect_commits(uint64_t count)
{
	for (int i = 0; i < 2 * QUOTAS && object_totals.commits < count; i++)
		kit_advance(20000);
	kit_advance(20000);
	assert_int_equal(object_totals.commits, count);
}

// Quotas that end at once: a few sessions are made again in each visit, each once however often its quota changes, and
// none while a transaction is open.
static void refreshed_in_turn(void **state)
{
	quotas(come);
	uint64_t before = object_totals.commits, last = before;
	for (int i = 0; i < 5; i++)
		of_all_quotas(usage_table.quota_changed);
	for (int i = 0; i < QUOTAS && object_totals.commits < before + QUOTAS; i++) {
		kit_advance(1000);
		assert_in_range(object_totals.commits - last, 1, 64);
		last = object_totals.commits;
	}
	expect_commits(before + QUOTAS);
	kit_begin();
	of_all_quotas(usage_table.quota_changed);
	expect_commits(before + QUOTAS);
	commit();
	expect_commits(before + 1 + 2 * QUOTAS);
	quotas(go);
}

// A session that cannot be made again now is no less tried until it can.
static void refreshed_in_the_end(void **state)
{
	put("s1", upf_session(1));
	uint64_t commits = object_totals.commits, refused = object_totals.refused;
	uint32_t room = session_tables.rules.count;
	session_tables.rules.count = 0;
	usage_table.quota_changed(session_of_fteid(0x101)->index);
	kit_advance(20000);
	assert_int_equal(object_totals.commits, commits);
	assert_true(object_totals.refused > refused);
	session_tables.rules.count = room;
	expect_commits(commits + 1);
	gone("s1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refreshed_in_turn),
		cmocka_unit_test(refreshed_in_the_end),
		cmocka_unit_test(exact_counts),
		cmocka_unit_test(all_change_workers),
		cmocka_unit_test(four_each),
		cmocka_unit_test(marker_circle_ends),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
