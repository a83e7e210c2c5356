// SPDX-License-Identifier: Apache-2.0
// More packets for idle UEs than may wait: each UE is reported, and the largest holder loses packets.
#include "core/hold.h"
#include "session/mobile_fixture.h"
#include "testkit/events.h"

#define LIMIT 4096u // engine.max_buffered
#define UES 5200u
#define PER_PUT 650u

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_sessions = UES + 8;
	e.max_buffered = LIMIT;
	e.packet_buffers = 16384;
	e.event_rate = 1000000;
	e.buffer_seconds = 5;
	fixture_start(&e);
	return 0;
}

static void put_all(uint8_t action, uint16_t delay)
{
	for (uint32_t from = 1; from <= UES; from += PER_PUT) {
		kit_begin();
		for (uint32_t n = from; n < from + PER_PUT && n <= UES; n++) {
			struct kit_mobile *k = upf_session(n);
			char name[16];

			k->far[1].action = action;
			k->far[1].notify_delay = delay;
			k->s.association = 1 + n % 2;
			snprintf(name, sizeof(name), "s%u", n);
			kit_put_mobile(name, k);
		}
		commit();
	}
}

static int clean(void **state)
{
	put_all(API_FAR_DROP, 0);
	for (int i = 0; i < 20; i++)
		kit_advance(1000); // a thousand sessions in one walk
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	assert_true(kit_balance());
	kit_clear();
	return 0;
}

static void arrive(uint32_t n, uint32_t packets)
{
	static struct frame f;
	char ue[32];

	snprintf(ue, sizeof(ue), "10.45.%u.%u", n >> 8, n & 255);
	downlink_of(&f, FAR4, ue);
	for (uint32_t i = 0; i < packets; i++)
		if (kit_send("internet", f.at, f.length) != 0) { // as many as the port takes at a time
			kit_run();
			assert_int_equal(kit_send("internet", f.at, f.length), 0);
		}
}

static uint32_t waits(uint32_t n)
{
	char name[16];

	snprintf(name, sizeof(name), "s%u", n);
	return (uint32_t)kit_session_row(name).buffered;
}

// The events since kit_events_clear(), in order; each UE at most once.
static uint32_t notified(uint8_t seen[UES + 1])
{
	uint32_t count = 0;

	for (int i = 0; i < 40; i++) {
		kit_advance(10000);
		for (uint32_t k = 0; k < kit_subscriber.count; k++) {
			const struct api_event *e = &kit_subscriber.event[k];

			if (e->type != API_EVENT_DOWNLINK_DATA)
				continue;
			assert_in_range(e->seid, 1, UES);
			assert_int_equal(seen[e->seid]++, 0);
			count++;
		}
		struct api_acknowledge a = {.sequence = UINT64_MAX};
		kit_request(&kit_subscriber.sink, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
		kit_subscriber.count = 0;
	}
	return count;
}

// As many idle UEs as packets may wait do not answer. All others are reported, and their packets wait.
static void everybody_is_reachable(void **state)
{
	static uint8_t seen[UES + 1];
	uint64_t crowded = kit_reason("buffer-crowded-out");

	memset(seen, 0, sizeof(seen));
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY, 0);
	kit_events_clear();
	for (uint32_t n = 1; n <= LIMIT; n++)
		arrive(n, 1);
	kit_run();
	assert_int_equal(kit_totals().held, LIMIT);
	assert_int_equal(notified(seen), LIMIT);
	for (uint32_t n = LIMIT + 1; n <= UES; n++)
		arrive(n, 1);
	kit_run();
	assert_int_equal(notified(seen), UES - LIMIT);
	assert_int_equal(kit_totals().held, LIMIT);
	assert_int_equal(kit_reason("buffer-crowded-out") - crowded, UES - LIMIT);
	for (uint32_t n = LIMIT + 1; n <= UES; n++)
		assert_int_equal(waits(n), 1);
	assert_true(kit_balance());
	// One of them answers.
	kit_clear();
	put("s5000", upf_session(5000));
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
}

// More notices in one walk than the worker's ring takes; most of the packets are gone before the control thread reads
// it.
static void rings_may_be_full(void **state)
{
	static uint8_t seen[UES + 1];

	memset(seen, 0, sizeof(seen));
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY, 0);
	kit_events_clear();
	for (uint32_t n = 1; n <= UES; n++)
		arrive(n, 1);
	kit_run();
	assert_int_equal(notified(seen), UES);
}

// With a delay too: a queue without packets, which waits only to notify, makes room for another one and is reported.
static void delays_hold_no_place(void **state)
{
	static uint8_t seen[UES + 1];

	memset(seen, 0, sizeof(seen));
	put_all(API_FAR_BUFFER | API_FAR_NOTIFY, 100);
	kit_events_clear();
	for (uint32_t n = 1; n <= UES; n++)
		arrive(n, 1);
	kit_run();
	assert_int_equal(kit_totals().held, LIMIT);
	assert_int_equal(notified(seen), UES);
}

// 64 packets for each of 100 UEs of one association: each keeps the same, its newest.
static void ues_share(void **state)
{
	put_all(API_FAR_BUFFER, 0);
	for (uint32_t n = 2; n <= 200; n += 2)
		arrive(n, 64);
	kit_run();
	assert_int_equal(kit_totals().held, LIMIT);
	for (uint32_t n = 2; n <= 200; n += 2)
		assert_in_range(waits(n), LIMIT / 100, LIMIT / 100 + 1);
	assert_true(kit_balance());
}

// One association fills everything; the other's UE gets and keeps its packets, though it holds more than any single UE.
static void associations_share(void **state)
{
	put_all(API_FAR_BUFFER, 0);
	for (uint32_t n = 2; n <= UES; n += 2)
		arrive(n, 2);
	kit_run();
	assert_int_equal(kit_totals().held, LIMIT);
	arrive(1, 64);
	kit_run();
	assert_int_equal(waits(1), 64);
	for (uint32_t n = 2; n <= UES; n += 2)
		arrive(n, 1);
	kit_run();
	assert_int_equal(waits(1), 64);
	assert_int_equal(kit_totals().held, LIMIT);
	assert_true(kit_balance());
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(everybody_is_reachable, clean),
		cmocka_unit_test_teardown(rings_may_be_full, clean),
		cmocka_unit_test_teardown(delays_hold_no_place, clean),
		cmocka_unit_test_teardown(ues_share, clean),
		cmocka_unit_test_teardown(associations_share, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
