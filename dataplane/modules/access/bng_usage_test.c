// SPDX-License-Identifier: Apache-2.0
// Accounting of subscribers with an IP core side: all packets, and IPv6 apart, to the byte, by any way and through
// changes of the session; quota, inactivity.
#include "access/bng_test.h"
#include "core/event.h"
#include "testkit/events.h"
#include <stdlib.h>

static struct {
	uint64_t bytes[2][3], packets[2][3]; // all, IPv6; as in reports
} model;

static const struct bng home = {1, BNG_QINQ, 1};
static struct kit_mobile session;

static void one_packet(int uplink, int family, int framed, uint32_t payload)
{
	static struct frame f;
	const char *framed_ue = family == 4 ? "203.0.113.9" : "2001:db8:f001:1::9", *far = family == 4 ? FAR4 : FAR6;
	const char *ue = framed ? framed_ue : gateway_ue(1, family);

	inner(&f, uplink ? ue : far, uplink ? far : ue, payload);
	uint32_t length = f.length;
	uplink ? bng_access(&f, &home, 1) : bng_internet(&f, 0);
	assert_int_equal(kit_send(uplink ? "access" : "internet", f.at, f.length), 0);
	for (int six = 0; six <= (family == 6); six++)
		for (int way = 0; way < 2; way++) { // total, and one direction
			int i = way == 0 ? API_TOTAL : uplink ? API_UPLINK : API_DOWNLINK;

			model.bytes[six][i] += length;
			model.packets[six][i]++;
		}
}

static void packets(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		one_packet(rand() & 1, rand() & 1 ? 6 : 4, rand() & 1, (uint32_t)rand() % 1200);
		if (rand() % 8 == 0)
			kit_run();
	}
	kit_run();
	kit_clear();
}

static void rows_are(int urrs)
{
	uint32_t n;
	const struct api_urr_row *row = kit_rows(API_TABLE_URR, "home-1", sizeof(*row), &n);

	assert_int_equal(n, urrs);
	for (uint32_t i = 0; i < n; i++)
		for (int d = 0; d < 3; d++) {
			assert_int_equal(row[i].bytes[d], model.bytes[row[i].urr == BNG_IP6][d]);
			assert_int_equal(row[i].packets[d], model.packets[row[i].urr == BNG_IP6][d]);
		}
}

static void begin(void)
{
	memset(&model, 0, sizeof(model));
	bng_session(&session, &home);
	bng_urrs(&session);
	bng_commit("home-1", &session);
}

// The reports of the last commit, by URR, are the model.
static void final_reports(int urrs)
{
	uint32_t n;
	const struct api_usage *u = event_commit_rows(&n);

	assert_int_equal(n, urrs);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(u[i].triggers, API_USAGE_TERMR);
		for (int d = 0; d < 3; d++)
			assert_int_equal(u[i].bytes[d], model.bytes[u[i].urr == BNG_IP6][d]);
	}
}

static void exact(void **state)
{
	begin();
	for (int round = 0; round < 20; round++) {
		packets(200);
		rows_are(2);
		if (round % 3 == 0) { // a change that keeps the PDRs
			session.s.mru = (uint16_t)(1400 + round);
			bng_commit("home-1", &session);
		}
		rows_are(2);
	}
	bng_delete(1);
	final_reports(2);
}

// A URR added later begins with nothing; a removed one reports its counts. PDRs that are replaced do the same.
static void later(void **state)
{
	begin();
	packets(100);
	session.s.urrs = 1;
	session.pdr[0].urrs = session.pdr[1].urrs = 1;
	bng_commit("home-1", &session);
	uint32_t n;
	const struct api_usage *u = event_commit_rows(&n);
	assert_int_equal(n, 1);
	assert_int_equal(u->urr, BNG_IP6);
	assert_int_equal(u->bytes[API_TOTAL], model.bytes[1][API_TOTAL]);
	packets(100);
	memset(model.bytes[1], 0, sizeof(model.bytes[1]));
	memset(model.packets[1], 0, sizeof(model.packets[1]));
	session.s.urrs = 2;
	session.pdr[0].urrs = session.pdr[1].urrs = 2;
	bng_commit("home-1", &session);
	rows_are(2);
	packets(100);
	rows_are(2);
	session.pdr[0].id = 7;
	session.pdr[1].id = 8;
	bng_commit("home-1", &session);
	rows_are(2);
	packets(100);
	rows_are(2);
	bng_delete(1);
	final_reports(2);
}

// The second is reported with the first, in one step.
static void linked(void **state)
{
	begin();
	session.urr[0].triggers = API_URR_PERIO;
	session.urr[0].period = 10;
	session.urr[1].triggers = API_URR_LIUSA;
	session.urr[0].flags |= API_URR_COUNT_PACKETS;
	session.urr[1].flags |= API_URR_COUNT_PACKETS;
	session.urr[1].linked[0] = BNG_ALL;
	bng_commit("home-1", &session);
	kit_events_clear();
	packets(300);
	for (int i = 0; i < 101; i++)
		kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_USAGE), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct api_usage *u = &kit_event(API_EVENT_USAGE, i)->usage;

		assert_int_equal(u->triggers, u->urr == BNG_IP6 ? API_USAGE_LIUSA : API_USAGE_PERIO);
		for (int d = 0; d < 3; d++) {
			assert_int_equal(u->bytes[d], model.bytes[u->urr == BNG_IP6][d]);
			assert_int_equal(u->packets[d], model.packets[u->urr == BNG_IP6][d]);
		}
	}
	bng_delete(1);
}

// The quota counts both families and directions; packets beyond it are dropped both ways.
static void quota(void **state)
{
	static struct frame f;

	begin();
	session.urr[0].triggers = API_URR_VOLQU;
	session.urr[0].flags = API_URR_HAS_VOLUME_QUOTA;
	session.urr[0].volume_quota[API_TOTAL] = 1000;
	bng_commit("home-1", &session);
	for (int i = 0; i < 10; i++) // 100 bytes each
		one_packet(i & 1, i & 2 ? 6 : 4, 0, i & 2 ? 52 : 72);
	kit_run();
	rows_are(2);
	inner(&f, gateway_ue(1, 6), FAR6, 10);
	bng_access(&f, &home, 1);
	expect_drop("access", &f, "usage-quota");
	inner(&f, FAR4, gateway_ue(1, 4), 10);
	bng_internet(&f, 0);
	expect_drop("internet", &f, "usage-quota");
	rows_are(2);
	bng_delete(1);
}

static void idle(void **state)
{
	begin();
	session.s.inactivity = 4;
	bng_commit("home-1", &session);
	kit_events_clear();
	for (int i = 0; i < 60; i++) {
		kit_advance(100000);
		one_packet(0, 6, 1, 10);
	}
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 0);
	for (int i = 0; i < 60; i++)
		kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 1);
	bng_delete(1);
}

static void refused(void **state)
{
	struct {
		uint32_t triggers;
		uint16_t method, flags;
	} bad[] = {{API_URR_VOLTH, API_URR_VOLUME, API_URR_IP6}, {0, API_URR_DURATION, API_URR_IP6},
		{0, API_URR_VOLUME, API_URR_IP6 | API_URR_HAS_VOLUME_QUOTA},
		{0, API_URR_VOLUME, API_URR_IP6 | API_URR_BEFORE_QOS}};

	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		bng_session(&session, &home);
		bng_urrs(&session);
		session.urr[1].triggers = bad[i].triggers;
		session.urr[1].method = bad[i].method;
		session.urr[1].flags = bad[i].flags;
		kit_begin();
		kit_put_mobile("home-1", &session);
		assert_int_equal(kit_commit(), EINVAL);
		assert_non_null(strstr(kit_error(), "IPv6 alone"));
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(later),
		cmocka_unit_test(linked),
		cmocka_unit_test(quota),
		cmocka_unit_test(idle),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(list, bng_setup, NULL);
}
