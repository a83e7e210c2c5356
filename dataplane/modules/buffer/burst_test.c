// SPDX-License-Identifier: Apache-2.0
// Many idle UEs get a packet within 10 ms: each of them is paged, though engine.event_rate lets only so many events
// through at once.
#include "session/mobile_fixture.h"
#include "testkit/events.h"

#define UES 3000u
#define PER_PUT 500u

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_sessions = UES + 8;
	e.max_buffered = UES + 8;
	e.packet_buffers = 4 * UES;
	e.event_rate = 5000; // a bucket of 500
	fixture_start(&e);
	kit_events_clear();
	return 0;
}

static void put_all(uint8_t action)
{
	for (uint32_t from = 1; from <= UES; from += PER_PUT) {
		kit_begin();
		for (uint32_t n = from; n < from + PER_PUT && n <= UES; n++) {
			struct kit_mobile *k = upf_session(n);
			char name[16];

			k->far[1].action = action;
			snprintf(name, sizeof(name), "s%u", n);
			kit_put_mobile(name, k);
		}
		commit();
	}
}

// One packet to each UE, 10 ms in all.
static void burst(void)
{
	static struct frame f;

	for (uint32_t n = 1; n <= UES; n++) {
		char ue[32];

		snprintf(ue, sizeof(ue), "10.45.%u.%u", n >> 8, n & 255);
		downlink_of(&f, FAR4, ue);
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
		if (n % (UES / 10) == 0) {
			kit_run();
			kit_advance(1000);
		}
	}
}

static void each_notified_once(uint32_t notified)
{
	static uint8_t seen[UES + 1];

	memset(seen, 0, sizeof(seen));
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), notified);
	for (uint32_t i = 0; i < notified; i++) {
		const struct api_event *e = kit_event(API_EVENT_DOWNLINK_DATA, i);

		assert_in_range(e->seid, 1, UES);
		assert_int_equal(seen[e->seid]++, 0);
		assert_int_equal(e->rule, 2);
	}
	assert_int_equal(kit_events(API_EVENT_MISSED), 0);
}

static void all_are_paged(void **state)
{
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY);
	burst();
	assert_int_equal(kit_totals().held, UES);
	assert_in_range(kit_events(API_EVENT_DOWNLINK_DATA), 500, 600); // no more than the rate
	for (int i = 0; i < 60; i++)
		kit_advance(10000);
	each_notified_once(UES);
	put_all(API_FAR_FORWARD);
	kit_run();
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
	kit_events_clear();
}

// A UE that answered or went before its turn is not reported, nor is a session that reuses its index.
static void those_that_need_it_no_more(void **state)
{
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY);
	burst();
	uint32_t notified = kit_events(API_EVENT_DOWNLINK_DATA);
	put_all(API_FAR_FORWARD);
	for (int i = 0; i < 60; i++)
		kit_advance(10000);
	assert_in_range(kit_events(API_EVENT_DOWNLINK_DATA), notified, notified + 60);
	kit_events_clear();

	put_all(API_FAR_BUFFER | API_FAR_NOTIFY);
	burst();
	notified = kit_events(API_EVENT_DOWNLINK_DATA);
	for (uint32_t from = 1; from <= UES; from += PER_PUT) {
		kit_begin();
		for (uint32_t n = from; n < from + PER_PUT && n <= UES; n++) {
			char name[16];

			snprintf(name, sizeof(name), "s%u", n);
			kit_delete(API_SESSION, name);
		}
		commit();
	}
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY);
	for (int i = 0; i < 60; i++)
		kit_advance(10000);
	assert_in_range(kit_events(API_EVENT_DOWNLINK_DATA), notified, notified + 60);
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
	assert_int_equal(kit_events(API_EVENT_MISSED), 0);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(all_are_paged),
		cmocka_unit_test(those_that_need_it_no_more),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
