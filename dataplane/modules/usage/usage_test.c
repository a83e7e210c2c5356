// SPDX-License-Identifier: Apache-2.0
// Usage reports in the whole graph: each trigger, quotas, changes and removal, and no storm of reports.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "usage/fixture_test.h"
#include <stdio.h>

#define HOME HOME_QINQ
#define EVERY_TRIGGER                                                                                                  \
	(API_URR_PERIO | API_URR_VOLTH | API_URR_TIMTH | API_URR_QUHTI | API_URR_START | API_URR_STOPT |               \
		API_URR_DROTH | API_URR_LIUSA | API_URR_VOLQU | API_URR_TIMQU | API_URR_EVETH | API_URR_EVEQU |        \
		API_URR_QUVTI)

static struct api_urr urr(uint32_t triggers)
{
	return (struct api_urr){.id = 1,
		.method = API_URR_VOLUME | API_URR_DURATION | API_URR_EVENT,
		.flags = API_URR_COUNT_PACKETS,
		.triggers = triggers};
}

static void use(const struct api_urr *u)
{
	struct home h = home_with(HOME, 1, u);

	put_home(HOME, &h);
	settle();
}

static const struct api_usage *only_report(void)
{
	settle();
	assert_int_equal(reports.count, 1);
	reports.count = 0;
	return &reports.row[0];
}

static void no_report(void)
{
	settle();
	assert_int_equal(reports.count, 0);
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

// Each test begins and ends without the session.
static int fresh(void **state)
{
	delete_home(HOME);
	settle();
	reports.count = reports.inactive = 0;
	return 0;
}

static void volume_threshold(void **state)
{
	struct api_urr u = urr(API_URR_VOLTH);
	const struct api_usage *r;

	u.volume_threshold[API_TOTAL] = 1000;
	use(&u);
	send_one(HOME, 1, 400);
	send_one(HOME, 0, 599);
	no_report();
	send_one(HOME, 1, 401); // reaches it, and is in the report
	r = only_report();
	assert_int_equal(r->triggers, API_USAGE_VOLTH);
	assert_int_equal(r->bytes[API_TOTAL], 1400);
	assert_int_equal(r->bytes[API_UPLINK], 801);
	assert_int_equal(r->bytes[API_DOWNLINK], 599);
	assert_int_equal(r->packets[API_TOTAL], 3);
	assert_int_equal(r->sequence, 0);
	assert_int_equal(r->urr, 1);
	assert_true(r->start_ns <= r->first_ns && r->first_ns < r->last_ns && r->last_ns <= r->end_ns);
	pass(SECONDS(1));
	send_one(HOME, 1, 999);
	no_report();
	send_one(HOME, 1, 40);
	r = only_report();
	assert_int_equal(r->bytes[API_TOTAL], 1039); // a new measurement
	assert_int_equal(r->sequence, 1);
	// One direction.
	u.volume_threshold[API_TOTAL] = 0;
	u.volume_threshold[API_DOWNLINK] = 500;
	use(&u);
	pass(SECONDS(1));
	send_one(HOME, 1, 1400);
	no_report();
	send_one(HOME, 0, 500);
	r = only_report();
	assert_int_equal(r->bytes[API_TOTAL], 1900);
}

static void volume_quota(void **state)
{
	struct api_urr u = urr(API_URR_VOLQU);
	uint64_t dropped = kit_reason("usage-quota");

	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_TOTAL] = 1000;
	use(&u);
	// All in one walk's time, before the control thread learns of anything.
	assert_int_equal(send_one(HOME, 1, 999), 1);
	assert_int_equal(send_one(HOME, 0, 100), 1); // the packet that uses it up
	assert_int_equal(send_one(HOME, 0, 28 + 1), 0);
	assert_int_equal(send_one(HOME, 1, 28 + 1), 0);
	assert_int_equal(kit_reason("usage-quota") - dropped, 2);
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_VOLQU);
	assert_int_equal(r->bytes[API_TOTAL], 1099);
	assert_int_equal(send_one(HOME, 1, 100), 0);
	no_report();
	// The same session again changes nothing; a grant does, with the same value or another.
	use(&u);
	assert_int_equal(send_one(HOME, 1, 100), 0);
	u.grant++;
	use(&u);
	assert_int_equal(send_one(HOME, 1, 1000), 1);
	assert_int_equal(send_one(HOME, 1, 100), 0);
	assert_int_equal(only_report()->bytes[API_TOTAL], 1000);
	u.volume_quota[API_TOTAL] = 0;
	u.volume_quota[API_UPLINK] = 50;
	use(&u);
	assert_int_equal(send_one(HOME, 0, 1000), 1);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	assert_int_equal(send_one(HOME, 0, 100), 0);
	assert_int_equal(only_report()->bytes[API_TOTAL], 1100);
	// Quota taken away.
	u.flags &= (uint16_t)~API_URR_HAS_VOLUME_QUOTA;
	use(&u);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	// A quota of 0 stops at once; nothing was used up, so there is nothing to report.
	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_UPLINK] = 0;
	use(&u);
	assert_int_equal(send_one(HOME, 1, 100), 0);
	assert_int_equal(send_one(HOME, 0, 100), 0);
	no_report();
}

static void threshold_and_quota_together(void **state)
{
	struct api_urr u = urr(API_URR_VOLQU | API_URR_VOLTH);

	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_TOTAL] = 1000;
	u.volume_threshold[API_TOTAL] = 800;
	use(&u);
	send_one(HOME, 1, 800);
	assert_int_equal(only_report()->triggers, API_USAGE_VOLTH);
	send_one(HOME, 1, 199);
	no_report();
	send_one(HOME, 1, 100);
	assert_int_equal(send_one(HOME, 1, 100), 0); // the quota went on through the report
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_VOLQU);
	assert_int_equal(r->bytes[API_TOTAL], 299);
	// Both passed before the control thread looked: one report of both; the worker had stopped by itself.
	u.grant++;
	use(&u);
	pass(SECONDS(1));
	assert_int_equal(send_one(HOME, 1, 700) + send_one(HOME, 1, 700) + send_one(HOME, 1, 700), 2);
	r = only_report();
	assert_int_equal(r->triggers, API_USAGE_VOLQU | API_USAGE_VOLTH);
	assert_int_equal(r->bytes[API_TOTAL], 1400);
}

static void periods(void **state)
{
	struct api_urr u = urr(API_URR_PERIO);
	uint64_t sum = 0;

	u.period = 10;
	use(&u);
	for (int i = 0; i < 35; i++) {
		send_one(HOME, i & 1, 100 + (uint32_t)i);
		pass(SECONDS(1));
	}
	assert_int_equal(reports.count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(reports.row[i].triggers, API_USAGE_PERIO);
		assert_int_equal(reports.row[i].packets[API_TOTAL], 10);
		assert_int_equal(reports.row[i].duration, 10);
		sum += reports.row[i].bytes[API_TOTAL];
	}
	assert_int_equal(sum, 30 * 100 + 29 * 30 / 2);
	pass(SECONDS(100)); // also without traffic
	assert_int_equal(reports.count, 13);
	assert_int_equal(reports.row[12].packets[API_TOTAL], 0);
	assert_int_equal(reports.row[12].first_ns, 0);
}

static void time_threshold_and_quota(void **state)
{
	struct api_urr u = urr(API_URR_TIMTH | API_URR_TIMQU);

	u.flags |= API_URR_HAS_TIME_QUOTA;
	u.time_threshold = 30;
	u.time_quota = 40;
	use(&u);
	pass(SECONDS(100)); // no packet, no time
	no_report();
	send_one(HOME, 1, 100);
	pass(SECONDS(29));
	no_report();
	pass(SECONDS(1));
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_TIMTH);
	assert_int_equal(r->duration, 30);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	pass(SECONDS(11));
	r = only_report();
	assert_int_equal(r->triggers, API_USAGE_TIMQU);
	assert_int_equal(r->duration, 10);
	assert_int_equal(send_one(HOME, 1, 100), 0);
	pass(SECONDS(100));
	no_report();
	// From the beginning, with ISTM.
	u.grant++;
	u.flags |= API_URR_START_OF_TRAFFIC;
	use(&u);
	pass(SECONDS(31));
	assert_int_equal(only_report()->triggers, API_USAGE_TIMTH);
}

static void holding_and_validity_time(void **state)
{
	struct api_urr u = urr(API_URR_QUHTI | API_URR_QUVTI);

	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_TOTAL] = 1000000;
	u.holding_time = 20;
	u.validity_time = 50;
	use(&u);
	for (int i = 0; i < 3; i++) {
		pass(SECONDS(15));
		assert_int_equal(send_one(HOME, 1, 100), 1);
	}
	no_report();
	pass(SECONDS(6));
	assert_int_equal(only_report()->triggers, API_USAGE_QUVTI);
	assert_int_equal(send_one(HOME, 1, 100), 0); // the rest of the quota has expired
	pass(SECONDS(200));
	no_report();
	u.grant++;
	use(&u);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	pass(SECONDS(21));
	assert_int_equal(only_report()->triggers, API_USAGE_QUHTI);
	assert_int_equal(send_one(HOME, 1, 100), 0); // no longer permitted to pass on
	pass(SECONDS(30));
	assert_int_equal(only_report()->triggers, API_USAGE_QUVTI);
	pass(SECONDS(200));
	no_report();
}

// Without a quota nothing expires: the report still comes, once for each time that the CP function gives it.
static void validity_time_without_quota(void **state)
{
	struct api_urr u = urr(API_URR_QUVTI);

	u.validity_time = 50;
	use(&u);
	send_one(HOME, 1, 100);
	pass(SECONDS(49));
	no_report();
	pass(SECONDS(2));
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_QUVTI);
	assert_int_equal(r->bytes[API_TOTAL], 100);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	pass(SECONDS(200));
	no_report();
	u.grant++;
	use(&u);
	pass(SECONDS(51));
	assert_int_equal(only_report()->bytes[API_TOTAL], 100);
}

static void start_and_stop_of_traffic(void **state)
{
	struct api_urr u = urr(API_URR_START | API_URR_STOPT);

	u.inactivity = 10;
	use(&u);
	send_one(HOME, 1, 100);
	assert_int_equal(only_report()->triggers, API_USAGE_START);
	for (int i = 0; i < 10; i++) {
		pass(SECONDS(5));
		send_one(HOME, 1, 100);
	}
	no_report();
	pass(SECONDS(11));
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_STOPT);
	assert_int_equal(r->packets[API_TOTAL], 10);
	pass(SECONDS(1000));
	no_report();
	send_one(HOME, 0, 100);
	assert_int_equal(only_report()->triggers, API_USAGE_START);
}

static void events(void **state)
{
	struct api_urr u = urr(API_URR_EVETH | API_URR_EVEQU);

	u.inactivity = 10;
	u.event_threshold = 2;
	u.event_quota = 3;
	u.flags |= API_URR_HAS_EVENT_QUOTA;
	use(&u);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_one(HOME, 1, 100), 1);
		assert_int_equal(send_one(HOME, 1, 100), 1);
		pass(SECONDS(11));
	}
	assert_int_equal(reports.count, 2);
	assert_int_equal(reports.row[0].triggers, API_USAGE_EVETH);
	assert_int_equal(reports.row[0].events, 2);
	assert_int_equal(reports.row[1].triggers, API_USAGE_EVEQU);
	assert_int_equal(reports.row[1].events, 1);
	assert_int_equal(send_one(HOME, 1, 100), 0);
}

// Time without traffic is not measured, but for the time that it takes to see that there is none.
static void inactivity_detection(void **state)
{
	struct api_urr u = urr(API_URR_TIMTH);

	u.inactivity = 10;
	u.time_threshold = 35;
	use(&u);
	for (int i = 0; i < 3; i++) {
		send_one(HOME, 1, 100);
		pass(SECONDS(1));
		send_one(HOME, 1, 100);
		pass(SECONDS(100));
	}
	no_report(); // 33 s
	send_one(HOME, 1, 100);
	pass(SECONDS(3));
	const struct api_usage *r = only_report();
	assert_int_equal(r->duration, 35);
}

static void monitoring_time(void **state)
{
	struct api_urr u = urr(API_URR_VOLTH);

	u.volume_threshold[API_TOTAL] = 1000;
	u.subsequent_volume_threshold[API_TOTAL] = 300;
	u.monitoring_time = event_realtime_ns() / 1000000000u + 20;
	use(&u);
	send_one(HOME, 1, 700);
	pass(SECONDS(21));
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_MONIT);
	assert_int_equal(r->information, API_USAGE_BEFORE);
	assert_int_equal(r->bytes[API_TOTAL], 700);
	send_one(HOME, 1, 299);
	no_report();
	send_one(HOME, 1, 30);
	r = only_report();
	assert_int_equal(r->triggers, API_USAGE_VOLTH);
	assert_int_equal(r->information, API_USAGE_AFTER);
	assert_int_equal(r->bytes[API_TOTAL], 329);
	pass(SECONDS(1));
	send_one(HOME, 1, 300);
	assert_int_equal(only_report()->information, 0); // neither the end nor the beginning is the monitoring time
	pass(SECONDS(100));
	no_report();
	// Without subsequent thresholds the rest of the first continues.
	u.subsequent_volume_threshold[API_TOTAL] = 0;
	u.monitoring_time = event_realtime_ns() / 1000000000u + 20;
	use(&u);
	send_one(HOME, 1, 700);
	pass(SECONDS(21));
	assert_int_equal(only_report()->triggers, API_USAGE_MONIT);
	send_one(HOME, 1, 300);
	assert_int_equal(only_report()->bytes[API_TOTAL], 300);
}

static void linked(void **state)
{
	struct api_urr u[3] = {urr(API_URR_VOLTH), urr(API_URR_LIUSA), urr(API_URR_LIUSA)};

	u[0].volume_threshold[API_TOTAL] = 100;
	u[1].id = 2;
	u[1].linked[1] = 1;
	u[2].id = 3;
	u[2].linked[0] = 2; // a linked report links no further
	struct home h = home_with(HOME, 3, u);
	put_home(HOME, &h);
	send_one(HOME, 1, 150);
	settle();
	assert_int_equal(reports.count, 2);
	assert_int_equal(reports.row[0].urr, 1);
	assert_int_equal(reports.row[1].urr, 2);
	assert_int_equal(reports.row[1].triggers, API_USAGE_LIUSA);
	assert_int_equal(reports.row[1].bytes[API_TOTAL], 150);
	// Also where the first one goes.
	reports.count = 0;
	send_one(HOME, 1, 99);
	h = home_with(HOME, 2, u + 1);
	put_home(HOME, &h);
	assert_int_equal(reports.count, 2);
	assert_int_equal(reports.row[0].triggers, API_USAGE_TERMR);
	assert_int_equal(reports.row[1].triggers, API_USAGE_LIUSA);
}

static void queries_and_final_reports(void **state)
{
	struct api_urr u[2] = {urr(0), urr(0)};

	u[1].id = UINT32_MAX;
	struct home h = home_with(HOME, 2, u);
	put_home(HOME, &h);
	send_one(HOME, 1, 100);
	h.urr[1].query = 9;
	put_home(HOME, &h);
	assert_int_equal(reports.count, 1); // in the commit's reply
	assert_int_equal(reports.row[0].triggers, API_USAGE_IMMER);
	assert_int_equal(reports.row[0].urr, UINT32_MAX);
	assert_int_equal(reports.row[0].query, 9);
	assert_int_equal(reports.row[0].bytes[API_TOTAL], 100);
	put_home(HOME, &h);
	assert_int_equal(reports.count, 1);
	send_one(HOME, 0, 200);
	reports.count = 0;
	delete_home(HOME);
	assert_int_equal(reports.count, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reports.row[i].triggers, API_USAGE_TERMR);
		assert_int_equal(reports.row[i].bytes[API_TOTAL], i == 0 ? 300 : 200);
	}
}

// Counts, quota and sequence go with the session to its new worker.
static void change_of_worker(void **state)
{
	struct api_urr u = urr(API_URR_VOLQU | API_URR_VOLTH);

	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_TOTAL] = 1000;
	u.volume_threshold[API_TOTAL] = 500;
	struct home h = home_with(HOME, 1, &u);
	put_home(HOME, &h);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(send_one(HOME, i & 1, 200), 1);
		h.k.s.worker = (uint16_t)(1 - h.k.s.worker);
		put_home(HOME, &h);
		settle();
	}
	assert_int_equal(reports.count, 1);
	assert_int_equal(reports.row[0].triggers, API_USAGE_VOLTH);
	assert_int_equal(reports.row[0].bytes[API_TOTAL], 600);
	assert_int_equal(send_one(HOME, 1, 199), 1);
	assert_int_equal(send_one(HOME, 1, 30), 1);
	assert_int_equal(send_one(HOME, 1, 30), 0);
	settle();
	assert_int_equal(reports.count, 2);
	assert_int_equal(reports.row[1].bytes[API_TOTAL], 429);
	assert_int_equal(reports.row[1].sequence, 1);
}

// Reports are not read: the counts wait, and come in one report when there is room again.
static void queue_full(void **state)
{
	struct api_urr u = urr(API_URR_VOLTH);
	struct api_event filler = {.type = API_EVENT_USAGE, .seid = 77};

	u.volume_threshold[API_TOTAL] = 100;
	use(&u);
	reports.deaf = 1;
	while (event_raise(&filler) == 0)
		;
	for (int i = 0; i < 50; i++) {
		send_one(HOME, 1, 100);
		pass(SECONDS(1));
	}
	assert_int_equal(reports.count, 0);
	reports.deaf = 0;
	pass(SECONDS(1));
	pass(SECONDS(1));
	const struct api_usage *r = only_report();
	assert_int_equal(r->bytes[API_TOTAL], 5000);
	assert_int_equal(r->sequence, 0);
}

// A worker's ring is full, so its notice is lost; the URR is found all the same.
static void news_lost(void **state)
{
	struct api_urr u = urr(API_URR_VOLTH);

	u.volume_threshold[API_TOTAL] = 100;
	use(&u);
	while (event_notify(worker_get(0), 0, 0, 0) == 0)
		;
	while (event_notify(worker_get(1), 0, 0, 0) == 0)
		;
	send_one(HOME, 1, 150);
	assert_int_equal(only_report()->bytes[API_TOTAL], 150);
}

static void dropped_downlink_traffic(void **state)
{
	struct api_policer p = {.type = API_SRTCM, .cir = 1, .cbs = 1000, .action = {0, 0, API_COLOUR_DROP}};
	struct api_urr u = urr(API_URR_DROTH);

	assert_int_equal(kit_change(API_POLICER, "slow", &p, sizeof(p)), 0);
	u.dropped_packets = 3;
	struct home h = home_with(HOME, 1, &u);
	snprintf(h.k.qer[1].downlink_policer, API_NAME, "slow");
	put_home(HOME, &h);
	assert_int_equal(send_one(HOME, 0, 900), 1);
	send_one(HOME, 0, 900);
	send_one(HOME, 0, 900);
	no_report();
	send_one(HOME, 0, 900);
	const struct api_usage *r = only_report();
	assert_int_equal(r->triggers, API_USAGE_DROTH);
	assert_int_equal(r->bytes[API_TOTAL], 900); // what was dropped is not counted
}

// Before QoS enforcement the policer's drops count too.
static void before_qos(void **state)
{
	struct api_urr u[2] = {urr(0), urr(0)};

	u[0].flags |= API_URR_BEFORE_QOS;
	u[1].id = 2;
	struct home h = home_with(HOME, 2, u);
	snprintf(h.k.qer[1].downlink_policer, API_NAME, "slow");
	put_home(HOME, &h);
	send_one(HOME, 0, 900);
	send_one(HOME, 0, 900);
	send_one(HOME, 0, 900);
	delete_home(HOME);
	assert_int_equal(reports.count, 2);
	assert_int_equal(reports.row[0].bytes[API_TOTAL], 2700);
	assert_int_equal(reports.row[1].bytes[API_TOTAL], 900);
}

// Several URRs: one used-up quota stops the packet for all, and no other counts it.
static void several(void **state)
{
	struct api_urr u[4] = {urr(0), urr(0), urr(API_URR_VOLQU), urr(0)};

	for (uint32_t i = 0; i < 4; i++)
		u[i].id = 10 + i;
	u[2].flags |= API_URR_HAS_VOLUME_QUOTA;
	u[2].volume_quota[API_TOTAL] = 150;
	struct home h = home_with(HOME, 4, u);
	put_home(HOME, &h);
	assert_int_equal(send_one(HOME, 1, 100) + send_one(HOME, 1, 100) + send_one(HOME, 1, 100), 2);
	settle();
	delete_home(HOME);
	assert_int_equal(reports.count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(reports.row[i].bytes[API_TOTAL],
			i > 0 && reports.row[i].urr == 12 ? 0 : 200); // the first one is of the quota
}

// While the quota is used up, packets follow the quota FAR.
static void quota_far(void **state)
{
	struct {
		struct api_session s;
		struct api_pdr pdr[2];
		struct api_far far[3];
		struct api_qer qer[2];
		struct api_urr urr[1];
	} h;
	struct kit_session k = gateway_home(HOME);
	uint64_t before = kit_reason("uplink-far-drop"), quota;

	memset(&h, 0, sizeof(h));
	h.s = k.s;
	h.s.fars = 3;
	h.s.urrs = 1;
	memcpy(h.pdr, k.pdr, sizeof(k.pdr));
	memcpy(h.far, k.far, sizeof(k.far));
	memcpy(h.qer, k.qer, sizeof(k.qer));
	h.far[2] = k.far[0];
	h.far[2].id = 3;
	h.far[2].action = API_FAR_DROP;
	h.pdr[0].urrs = 1;
	h.pdr[0].urr[0] = 1;
	h.urr[0] = urr(API_URR_VOLQU);
	h.urr[0].flags |= API_URR_HAS_VOLUME_QUOTA;
	h.urr[0].volume_quota[API_TOTAL] = 100;
	h.urr[0].quota_far = 3;
	for (int round = 0; round < 2; round++) {
		h.urr[0].grant++;
		assert_int_equal(kit_change(API_SESSION, gateway_home_name(HOME), &h, sizeof(h)), 0);
		settle();
		assert_int_equal(send_one(HOME, 1, 100), 1);
		assert_int_equal(only_report()->triggers, API_USAGE_VOLQU);
		quota = kit_reason("usage-quota");
		assert_int_equal(send_one(HOME, 1, 100), 0);
		assert_int_equal(kit_reason("uplink-far-drop"), ++before);
		assert_int_equal(kit_reason("usage-quota"), quota);
	}
}

static struct api_urr_row the_row;
static uint32_t rows;

static int keep_row(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *from)
{
	rows += part->count;
	if (part->count != 0)
		memcpy(&the_row, from, sizeof(the_row));
	return 0;
}

static void show(void **state)
{
	struct api_stats_request r = {.table = API_TABLE_URR};
	struct reply_sink sink = {.send = keep_row};
	struct api_urr u = urr(API_URR_VOLQU);

	u.flags |= API_URR_HAS_VOLUME_QUOTA;
	u.volume_quota[API_TOTAL] = 1000;
	use(&u);
	send_one(HOME, 1, 300);
	send_one(HOME, 0, 200);
	snprintf(r.key, sizeof(r.key), "%s", gateway_home_name(HOME));
	kit_request(&sink, API_STATS, API_PART_STATS_REQUEST, &r, sizeof(r));
	assert_int_equal(rows, 1);
	assert_string_equal(the_row.session, r.key);
	assert_int_equal(the_row.urr, 1);
	assert_int_equal(the_row.bytes[API_TOTAL], 500);
	assert_int_equal(the_row.packets[API_UPLINK], 1);
	assert_int_equal(the_row.quota_left[API_TOTAL], 500);
	assert_int_equal(the_row.quota_left[API_UPLINK], UINT64_MAX);
	assert_int_equal(the_row.exhausted, 0);
	send_one(HOME, 0, 600);
	settle();
	reports.count = 0;
	kit_request(&sink, API_STATS, API_PART_STATS_REQUEST, &r, sizeof(r));
	assert_int_equal(the_row.bytes[API_TOTAL], 0); // reported
	assert_int_equal(the_row.quota_left[API_TOTAL], 0);
	assert_int_equal(the_row.exhausted, 1);
	snprintf(r.key, sizeof(r.key), "nobody");
	rows = 0;
	kit_request(&sink, API_STATS, API_PART_STATS_REQUEST, &r, sizeof(r));
	assert_int_equal(rows, 0);
}

static void refused(void **state)
{
	struct api_urr u[2] = {urr(0), urr(0)};
	struct home h;

	h = home_with(HOME, 2, u); // the same id twice
	put_home(HOME, &h);
	assert_non_null(strstr(kit_error(), "twice"));
	u[0].method = 0;
	h = home_with(HOME, 1, u);
	put_home(HOME, &h);
	assert_non_null(strstr(kit_error(), "measurement method"));
	u[0] = urr(0);
	u[0].flags = 0x8000;
	h = home_with(HOME, 1, u);
	put_home(HOME, &h);
	assert_non_null(strstr(kit_error(), "flags"));
	for (int bit = 0; bit < 32; bit++) { // TS 29.244 §8.2.19: each trigger is served or refused
		u[0] = urr(1u << bit);
		h = home_with(HOME, 1, u);
		kit_begin();
		kit_put(API_SESSION, gateway_home_name(HOME), &h, (uint32_t)(sizeof(h.k) + sizeof(u[0])));
		assert_int_equal(kit_commit() != 0, (EVERY_TRIGGER & 1u << bit) == 0);
	}
}

// Row P24: zero thresholds, periods and times, an id of all ones, limits of one byte: no storm of reports.
static void hostile_values(void **state)
{
	struct api_urr u = urr(EVERY_TRIGGER);

	u.id = UINT32_MAX;
	u.flags = API_URR_START_OF_TRAFFIC;
	use(&u);
	for (int i = 0; i < 300; i++) {
		send_one(HOME, i & 1, 100);
		pass(50000);
	}
	assert_in_range(reports.count, 0, 1); // the start of traffic
	reports.count = 0;
	u.volume_threshold[API_TOTAL] = 1;
	u.event_threshold = 1;
	u.dropped_bytes = 1;
	u.time_threshold = u.period = u.inactivity = 1;
	u.monitoring_time = 1;
	use(&u);
	for (int i = 0; i < 1000; i++) {
		send_one(HOME, i & 1, 100);
		pass(2000);
	}
	assert_in_range(reports.count, 1, 30); // of 2 s
	// The largest of everything.
	reports.count = 0;
	u = urr(EVERY_TRIGGER);
	u.flags = API_URR_HAS_VOLUME_QUOTA | API_URR_HAS_TIME_QUOTA | API_URR_HAS_EVENT_QUOTA;
	for (int i = 0; i < 3; i++)
		u.volume_threshold[i] = u.volume_quota[i] = u.subsequent_volume_threshold[i] = UINT64_MAX;
	u.monitoring_time = u.dropped_bytes = UINT64_MAX;
	u.time_threshold = u.time_quota = u.subsequent_time_threshold = u.holding_time = u.validity_time = UINT32_MAX;
	u.period = u.inactivity = u.event_threshold = u.event_quota = u.dropped_packets = UINT32_MAX;
	use(&u);
	assert_int_equal(send_one(HOME, 1, 100), 1);
	pass(SECONDS(100));
	reports.count = 0;
	assert_int_equal(send_one(HOME, 1, 100), 1);
	no_report();
	delete_home(HOME);
	assert_int_equal(reports.count, 1);
}

static void session_inactivity(void **state)
{
	struct home h = home_with(HOME, 0, NULL);

	h.k.s.inactivity = 20;
	put_home(HOME, &h);
	for (int i = 0; i < 6; i++) {
		send_one(HOME, 1, 100);
		pass(SECONDS(15));
	}
	assert_int_equal(reports.inactive, 0);
	pass(SECONDS(11));
	assert_int_equal(reports.inactive, 1);
	pass(SECONDS(1000));
	assert_int_equal(reports.inactive, 1);
	send_one(HOME, 0, 100);
	pass(SECONDS(30));
	assert_int_equal(reports.inactive, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fresh)
	const struct CMUnitTest tests[] = {
		TEST(volume_threshold),
		TEST(volume_quota),
		TEST(threshold_and_quota_together),
		TEST(periods),
		TEST(time_threshold_and_quota),
		TEST(holding_and_validity_time),
		TEST(validity_time_without_quota),
		TEST(start_and_stop_of_traffic),
		TEST(events),
		TEST(inactivity_detection),
		TEST(monitoring_time),
		TEST(linked),
		TEST(queries_and_final_reports),
		TEST(change_of_worker),
		TEST(queue_full),
		TEST(news_lost),
		TEST(dropped_downlink_traffic),
		TEST(before_qos),
		TEST(several),
		TEST(quota_far),
		TEST(show),
		TEST(refused),
		TEST(hostile_values),
		TEST(session_inactivity),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
