// SPDX-License-Identifier: Apache-2.0
// Packets that wait for idle UEs: order, notification, bounds, time, and random changes of FARs with the balance after
// each.
#include "session/mobile_fixture.h"
#include "testkit/events.h"
#include <errno.h>

#define LIMIT 400 // engine.max_buffered

static struct api_engine engine(void)
{
	struct api_engine e = kit_engine();

	e.max_buffered = LIMIT;
	return e;
}

static int setup(void **state)
{
	struct api_engine e = engine();

	fixture_start(&e);
	kit_events_clear();
	return 0;
}

// No session is left, and no packet waits.
static int clean(void **state)
{
	kit_begin();
	for (int i = 1; i < 20; i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%d", i);
		kit_delete(API_SESSION, name);
	}
	commit();
	kit_run();
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	assert_true(kit_balance());
	kit_events_clear();
	return 0;
}

// Workers walk, then the control thread reads their notices.
static void settle_events(void)
{
	for (int i = 0; i < 3; i++)
		kit_advance(2000);
}

static struct kit_mobile *with_action(uint32_t n, uint8_t action)
{
	struct kit_mobile *k = upf_session(n);

	k->far[1].action = action;
	return k;
}

// A packet to UE n that carries a number.
static void arrive_marked(uint32_t n, uint32_t number, uint8_t dscp)
{
	static struct frame f;
	char ue[32];

	snprintf(ue, sizeof(ue), "10.45.%u.%u", n >> 8, n & 255);
	ip_packet(&f, FAR4, ue, 80);
	store32(f.at + 28, number);
	f.at[1] = (uint8_t)(dscp << 2);
	frame_ip4_sum(&f);
	link_layer(&f, "internet", 1);
	assert_int_equal(kit_send("internet", f.at, f.length), 0);
}

static void arrive(uint32_t n, uint32_t number)
{
	arrive_marked(n, number, 0);
}

// The number of the i-th packet that left towards the gNB.
static uint32_t number_of(uint32_t i)
{
	return load32(kit_frame("ran", i)->bytes + 14 + 20 + 8 + 8 + 28);
}

static void waits_and_leaves_in_order(void **state)
{
	put("s1", with_action(1, API_FAR_BUFFER | API_FAR_NOTIFY));
	kit_clear();
	for (uint32_t i = 0; i < 10; i++)
		arrive(1, i);
	kit_run();
	assert_int_equal(all_out(), 0);
	assert_int_equal(kit_totals().held, 10);
	assert_true(kit_balance());
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
	const struct api_event *e = kit_event(API_EVENT_DOWNLINK_DATA, 0);
	assert_string_equal(e->session, "s1");
	assert_int_equal(e->rule, 2);
	assert_int_equal(e->seid, 1);
	// Packets that come after the change, before the worker knows of it, stay behind the waiting ones.
	put("s1", with_action(1, API_FAR_FORWARD));
	for (uint32_t i = 10; i < 20; i++)
		arrive(1, i);
	kit_run();
	assert_int_equal(kit_count("ran"), 20);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(number_of(i), i);
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
	arrive(1, 20);
	kit_run();
	assert_int_equal(kit_count("ran"), 21);
}

// In one walk the worker sees new packets before it knows that the session changed.
static void newer_ones_queue_behind(void **state)
{
	put("s1", with_action(1, API_FAR_BUFFER));
	kit_clear();
	arrive(1, 0);
	kit_run();
	arrive(1, 1);
	put("s1", with_action(1, API_FAR_FORWARD));
	kit_run();
	assert_int_equal(kit_count("ran"), 2);
	assert_int_equal(number_of(0), 0);
	assert_int_equal(number_of(1), 1);
}

static void notified_once_a_version(void **state)
{
	put("s1", with_action(1, API_FAR_BUFFER | API_FAR_NOTIFY));
	for (int i = 0; i < 5; i++) {
		arrive(1, 0);
		kit_advance(2000);
	}
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
	// The control plane changed the session but lets packets wait: the next ones are notified again.
	put("s1", with_action(1, API_FAR_BUFFER | API_FAR_NOTIFY));
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
	arrive(1, 0);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 2);
	assert_int_equal(kit_totals().held, 6);
	// Without NOCP there is no notification.
	put("s2", with_action(2, API_FAR_BUFFER));
	arrive(2, 0);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 2);
}

// All that waited has expired, and the UE was not paged or did not answer: notified again, once.
static void notified_when_all_expired(void **state)
{
	struct kit_mobile *k = with_action(1, API_FAR_BUFFER | API_FAR_NOTIFY);

	k->far[1].buffer_ms = 3000;
	put("s1", k);
	for (uint32_t notified = 1; notified < 4; notified++) {
		for (int i = 0; i < 4; i++)
			arrive(1, 0);
		settle_events();
		arrive(1, 0);
		settle_events();
		assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), notified);
		for (int i = 0; i < 50; i++)
			kit_advance(100000);
		assert_int_equal(kit_totals().held, 0);
	}
	// Without end there is no second time.
	k->far[1].buffer_ms = UINT32_MAX;
	put("s1", k);
	for (int i = 0; i < 100; i++) {
		arrive(1, 0);
		kit_advance(1000000);
	}
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 4);
}

static void notified_after_a_delay(void **state)
{
	struct kit_mobile *k = with_action(1, API_FAR_BUFFER | API_FAR_NOTIFY);

	k->far[1].notify_delay = 100;
	put("s1", k);
	arrive(1, 0);
	kit_run();
	kit_advance(90000);
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 0);
	kit_advance(20000);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
	// The UE answers before the delay is over: nothing is reported.
	k = with_action(2, API_FAR_BUFFER | API_FAR_NOTIFY);
	k->far[1].notify_delay = 100;
	put("s2", k);
	arrive(2, 0);
	kit_run();
	kit_advance(50000);
	put("s2", with_action(2, API_FAR_FORWARD));
	kit_advance(200000);
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
}

static void bound_of_a_session(void **state)
{
	struct kit_mobile *k = with_action(1, API_FAR_BUFFER);
	uint64_t before = kit_reason("buffer-full");

	k->far[1].buffer_packets = 5;
	put("s1", k);
	put("s2", with_action(2, API_FAR_BUFFER));
	kit_clear();
	for (uint32_t i = 0; i < 100; i++) {
		arrive(1, i);
		arrive(2, i);
	}
	kit_run();
	assert_int_equal(kit_totals().held, 5 + 64);
	assert_int_equal(kit_reason("buffer-full") - before, 95 + 36);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_BUFFER_FULL), 2);
	assert_int_equal(kit_event(API_EVENT_BUFFER_FULL, 0)->rule, 2); // the FAR
	assert_true(kit_balance());
	// The newest were dropped.
	put("s1", with_action(1, API_FAR_FORWARD));
	kit_run();
	assert_int_equal(kit_count("ran"), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(number_of(i), i);
	k = with_action(3, API_FAR_BUFFER);
	k->far[1].buffer_packets = 1025;
	assert_int_equal(refused("s3", k), EINVAL);
}

// RFC 2597: a full queue drops red packets before yellow ones, and those before green ones; the rest keeps its order.
static void bound_by_colour(void **state)
{
	static const uint8_t green = 10, yellow = 12, red = 14, other = 13;
	struct kit_mobile *k = with_action(1, API_FAR_BUFFER);
	static const uint32_t left[] = {0, 3, 6, 7};
	struct kit_reasons before;

	k->far[1].buffer_packets = 4;
	put("s1", k);
	kit_clear();
	before = kit_reasons();
	arrive_marked(1, 0, green);
	arrive_marked(1, 1, yellow);
	arrive_marked(1, 2, red);
	arrive_marked(1, 3, other);
	kit_run();
	arrive_marked(1, 4, yellow); // for 2
	kit_run();
	kit_only_rose(&before, "buffer-precedence", 1);
	before = kit_reasons();
	arrive_marked(1, 5, yellow); // none is worse
	kit_run();
	kit_only_rose(&before, "buffer-full", 1);
	before = kit_reasons();
	arrive_marked(1, 6, green); // for 1
	arrive_marked(1, 7, 0); // for 4
	kit_run();
	kit_only_rose(&before, "buffer-precedence", 2);
	before = kit_reasons();
	arrive_marked(1, 8, green);
	kit_run();
	kit_only_rose(&before, "buffer-full", 1);
	assert_int_equal(kit_totals().held, 4);
	put("s1", with_action(1, API_FAR_FORWARD));
	kit_run();
	assert_int_equal(kit_count("ran"), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(number_of(i), left[i]);
	assert_true(kit_balance());
}

static void bound_of_all(void **state)
{
	struct kit_reasons before = kit_reasons();

	for (uint32_t s = 1; s <= 10; s++) {
		char name[8];

		snprintf(name, sizeof(name), "s%u", s);
		put(name, with_action(s, API_FAR_BUFFER));
		for (uint32_t i = 0; i < 64; i++)
			arrive(s, i);
		kit_run();
	}
	assert_int_equal(kit_totals().held, LIMIT);
	kit_only_rose(&before, "buffer-crowded-out", 640 - LIMIT);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_BUFFER_FULL), 10); // each of them once
	assert_true(kit_balance());
	// The oldest went.
	kit_clear();
	put("s1", with_action(1, API_FAR_FORWARD));
	kit_run();
	assert_int_equal(kit_count("ran"), LIMIT / 10);
	for (uint32_t i = 0; i < LIMIT / 10; i++)
		assert_int_equal(number_of(i), 64 - LIMIT / 10 + i);
}

static void set_buffer_seconds(uint32_t seconds)
{
	struct api_engine e = engine();

	e.buffer_seconds = seconds;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	commit();
}

static void as_long_as_it_may(void **state)
{
	struct kit_mobile *k = with_action(1, API_FAR_BUFFER);
	uint64_t before = kit_reason("buffer-timeout");

	k->far[1].buffer_ms = 500;
	put("s1", k);
	arrive(1, 0);
	kit_run();
	kit_advance(300000);
	arrive(1, 1);
	kit_run();
	kit_advance(190000);
	assert_int_equal(kit_reason("buffer-timeout") - before, 0);
	kit_advance(30000);
	assert_int_equal(kit_reason("buffer-timeout") - before, 1);
	assert_int_equal(kit_totals().held, 1);
	kit_clear();
	put("s1", with_action(1, API_FAR_FORWARD));
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
	assert_int_equal(number_of(0), 1);
	// Far beyond one turn of the wheel.
	k = with_action(1, API_FAR_BUFFER);
	k->far[1].buffer_ms = 20000;
	put("s1", k);
	arrive(1, 0);
	kit_run();
	for (int i = 0; i < 199; i++)
		kit_advance(100000);
	assert_int_equal(kit_totals().held, 1);
	kit_advance(200000);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_reason("buffer-timeout") - before, 2);
	// No word of the control plane: the engine's time, which may change while it runs.
	put("s1", with_action(1, API_FAR_BUFFER));
	arrive(1, 0);
	kit_run();
	for (int i = 0; i < 299; i++)
		kit_advance(200000);
	assert_int_equal(kit_totals().held, 1);
	kit_advance(300000);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_reason("buffer-timeout") - before, 3);
	set_buffer_seconds(2);
	arrive(1, 0);
	k = with_action(2, API_FAR_BUFFER);
	k->far[1].buffer_ms = UINT32_MAX; // TS 29.244 §8.2.29: infinite
	put("s2", k);
	arrive(2, 0);
	kit_run();
	for (int i = 0; i < 19; i++)
		kit_advance(100000);
	assert_int_equal(kit_totals().held, 2);
	for (int i = 0; i < 700; i++)
		kit_advance(100000);
	assert_int_equal(kit_totals().held, 1);
	assert_int_equal(kit_reason("buffer-timeout") - before, 4);
	put("s2", with_action(2, API_FAR_DROP));
	kit_run();
	set_buffer_seconds(0);
	// A new time limit also ends earlier packets' wait, counted from their arrival.
	k = with_action(1, API_FAR_BUFFER);
	put("s1", k);
	arrive(1, 0);
	kit_run();
	kit_advance(300000);
	k->far[1].buffer_ms = 500;
	put("s1", k);
	kit_run();
	kit_advance(100000);
	assert_int_equal(kit_totals().held, 1);
	kit_advance(150000);
	kit_run();
	assert_int_equal(kit_reason("buffer-timeout") - before, 5);
	assert_int_equal(kit_totals().held, 0);
}

static void given_up(void **state)
{
	struct kit_reasons before = kit_reasons();

	kit_clear();
	put("s1", with_action(1, API_FAR_BUFFER));
	put("s2", with_action(2, API_FAR_BUFFER));
	for (uint32_t i = 0; i < 3; i++) {
		arrive(1, i);
		arrive(2, i);
	}
	kit_run();
	put("s1", with_action(1, API_FAR_DROP));
	kit_run();
	kit_only_rose(&before, "buffer-discarded", 3);
	// Another session gets the index at once, with the same PDR ids: it inherits nothing.
	kit_begin();
	kit_delete(API_SESSION, "s2");
	commit();
	put("s3", with_action(3, API_FAR_FORWARD));
	kit_run();
	kit_only_rose(&before, "buffer-discarded", 6);
	assert_int_equal(all_out(), 0);
	assert_int_equal(kit_totals().held, 0);
}

// TS 29.244 §8.2.31: the FAR's change drops the waiting packets. Packets after it follow the new FAR, also in the walk
// in which the worker learns of the change.
static void discarded_with_the_change(void **state)
{
	uint64_t before = kit_reason("buffer-discarded");
	struct kit_mobile *k;

	put("s1", with_action(1, API_FAR_BUFFER));
	for (uint32_t i = 0; i < 3; i++)
		arrive(1, i);
	kit_run();
	// Refused: nothing is lost.
	kit_begin();
	k = with_action(1, API_FAR_FORWARD);
	k->s.discard = 1;
	kit_put_mobile("s1", k);
	k = with_action(2, API_FAR_FORWARD);
	k->pdr[1].far = 9;
	kit_put_mobile("s2", k);
	assert_int_equal(kit_commit(), EINVAL);
	kit_run();
	assert_int_equal(kit_totals().held, 3);
	kit_clear();
	k = with_action(1, API_FAR_FORWARD);
	k->s.discard = 1;
	put("s1", k);
	for (uint32_t i = 3; i < 6; i++)
		arrive(1, i);
	kit_run();
	assert_int_equal(kit_count("ran"), 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(number_of(i), i + 3);
	assert_int_equal(kit_reason("buffer-discarded") - before, 3);
	// Packets wait on, only later ones; a change with the same number drops nothing.
	for (uint16_t number = 2; number < 4; number++) {
		k = with_action(1, API_FAR_BUFFER);
		k->s.discard = number;
		put("s1", k);
		arrive(1, number);
		kit_run();
		put("s1", k);
		kit_run();
		assert_int_equal(kit_totals().held, 1);
	}
	assert_int_equal(kit_reason("buffer-discarded") - before, 4);
	kit_clear();
	k = with_action(1, API_FAR_FORWARD);
	k->s.discard = 3;
	put("s1", k);
	kit_run();
	assert_int_equal(kit_count("ran"), 1);
	assert_int_equal(number_of(0), 3);
}

static void dropped_and_notified(void **state)
{
	struct kit_reasons first;

	put("s1", with_action(1, API_FAR_DROP | API_FAR_NOTIFY));
	first = kit_reasons();
	arrive(1, 0);
	kit_run();
	kit_only_rose(&first, "buffer-not-kept", 1);
	arrive(1, 1);
	settle_events();
	assert_int_equal(kit_events(API_EVENT_DOWNLINK_DATA), 1);
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
}

#define SESSIONS 8
#define ROUNDS 4000

static uint64_t random_state = 88172645463325252ull;

static uint32_t draw(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % n;
}

// Numbers that leave rise, session by session.
static void check_order(uint32_t last[SESSIONS + 1])
{
	for (uint32_t i = 0; i < kit_count("ran"); i++) {
		uint32_t session = load32(kit_frame("ran", i)->bytes + 14 + 28 + 4) - 0x200;

		assert_in_range(session, 1, SESSIONS);
		assert_true(number_of(i) > last[session]);
		last[session] = number_of(i);
	}
	kit_clear();
}

static void churn(void **state)
{
	static const uint8_t action[] = {API_FAR_FORWARD, API_FAR_BUFFER, API_FAR_BUFFER | API_FAR_NOTIFY, API_FAR_DROP,
		API_FAR_DROP | API_FAR_NOTIFY};
	uint32_t last[SESSIONS + 1] = {0}, number = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint32_t s = 1 + draw(SESSIONS);
		char name[8];

		snprintf(name, sizeof(name), "s%u", s);
		for (uint32_t i = draw(20); i > 0; i--)
			arrive(1 + draw(SESSIONS), ++number);
		if (draw(3) == 0)
			kit_run();
		kit_begin();
		if (draw(8) == 0) {
			kit_delete(API_SESSION, name);
		} else {
			struct kit_mobile *k = with_action(s, action[draw(5)]);

			k->far[1].buffer_packets = (uint16_t)draw(30);
			k->far[1].buffer_ms = draw(2) ? draw(50) : 0;
			k->far[1].notify_delay = (uint16_t)(draw(2) ? draw(50) : 0);
			kit_put_mobile(name, k);
		}
		commit();
		if (draw(2) == 0)
			kit_advance(draw(20000));
		kit_run();
		check_order(last);
		assert_true(kit_balance());
		assert_true(kit_totals().held <= LIMIT);
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(waits_and_leaves_in_order, clean),
		cmocka_unit_test_teardown(newer_ones_queue_behind, clean),
		cmocka_unit_test_teardown(notified_once_a_version, clean),
		cmocka_unit_test_teardown(notified_when_all_expired, clean),
		cmocka_unit_test_teardown(notified_after_a_delay, clean),
		cmocka_unit_test_teardown(bound_of_a_session, clean),
		cmocka_unit_test_teardown(bound_by_colour, clean),
		cmocka_unit_test_teardown(bound_of_all, clean),
		cmocka_unit_test_teardown(as_long_as_it_may, clean),
		cmocka_unit_test_teardown(given_up, clean),
		cmocka_unit_test_teardown(discarded_with_the_change, clean),
		cmocka_unit_test_teardown(dropped_and_notified, clean),
		cmocka_unit_test_teardown(churn, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
