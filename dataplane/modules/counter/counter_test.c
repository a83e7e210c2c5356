// SPDX-License-Identifier: Apache-2.0
// Sums of sessions, exact through all changes; watermarks, once a period.
#include "session/mobile_fixture.h"
#include "testkit/events.h"

#define SECOND 1000000u
#define IP_BYTES 108u // of a packet

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	fixture_start(&e);
	kit_events_clear();
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_COUNTER, "c");
	kit_delete(API_COUNTER, "c2");
	kit_delete(API_SESSION, "s1");
	kit_delete(API_SESSION, "s2");
	commit();
	kit_run();
	assert_true(kit_balance());
	return 0;
}

static int try(const char *name, const struct api_counter *x)
{
	return kit_change(API_COUNTER, name, x, sizeof(*x));
}

static void put_counter(const char *name, const struct api_counter *x)
{
	if (try(name, x) != 0)
		fail_msg("refused: %s", kit_error());
}

static struct api_counter of_ues(void)
{
	return (struct api_counter){.ue = kit_address("10.45.0.0/24")};
}

// Packets to UE n, up to half of them on the fast path.
static void send_to(uint32_t n, uint32_t packets)
{
	static struct frame f;
	char ue[16];

	snprintf(ue, sizeof(ue), "10.45.0.%u", n);
	downlink_of(&f, FAR4, ue);
	kit_clear();
	for (uint32_t i = 0; i < packets; i++)
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("ran"), packets);
}

static struct api_counter_row row(const char *name)
{
	uint32_t count;

	kit_advance(2 * SECOND);
	const struct api_counter_row *r = kit_rows(API_TABLE_COUNTER, name, sizeof(*r), &count);
	assert_int_equal(count, 1);
	return *r;
}

static void expect_sum(const char *name, uint64_t packets)
{
	struct api_counter_row r = row(name);

	assert_int_equal(r.packets, packets);
	assert_int_equal(r.bytes, packets * IP_BYTES);
}

static uint32_t events_of(const char *name)
{
	uint32_t count = 0;

	kit_advance(2 * SECOND);
	kit_advance(10000); // to the subscriber
	for (uint32_t i = 0; i < (uint32_t)kit_events(API_EVENT_WATERMARK); i++)
		count += strcmp(kit_event(API_EVENT_WATERMARK, i)->counter, name) == 0;
	return count;
}

static void sums(void **state)
{
	struct api_counter x = of_ues();
	struct kit_mobile *k;

	put("s1", upf_session(1));
	send_to(1, 3); // before the counter
	put_counter("c", &x);
	k = upf_session(2);
	k->s.worker = 1;
	put("s2", k);
	send_to(1, 10);
	send_to(2, 20);
	expect_sum("c", 30);
	assert_int_equal(row("c").sessions, 2);
	// A session changes, changes workers, loses its PDR, is deleted: all its counts stay, and count once.
	send_to(1, 1);
	k = upf_session(1);
	k->far[1].dscp = 46;
	put("s1", k);
	send_to(1, 1);
	k = upf_session(1);
	k->s.worker = 1;
	put("s1", k);
	send_to(1, 1);
	k = upf_session(1);
	k->pdr[1].id = 7;
	put("s1", k);
	send_to(1, 1);
	gone("s1");
	expect_sum("c", 34);
	assert_int_equal(row("c").sessions, 1);
	put("s1", upf_session(1));
	send_to(1, 5);
	expect_sum("c", 39);
	// Out of the counter, and in again.
	x.ue = kit_address("10.45.1.0/24");
	put_counter("c", &x);
	send_to(1, 5);
	expect_sum("c", 39);
	assert_int_equal(row("c").sessions, 0);
	x.ue.family = 0;
	strcpy(x.instance, "core");
	put_counter("c", &x);
	send_to(1, 2);
	expect_sum("c", 41);
}

// A session's own counter by name, beside another; a counter that does not exist.
static void by_name(void **state)
{
	struct api_counter x = of_ues(), named = {0};
	struct kit_mobile *k = upf_session(1);

	strcpy(k->s.counter, "c2");
	put("s1", k);
	send_to(1, 1);
	put_counter("c", &x);
	put_counter("c2", &named);
	send_to(1, 4);
	put("s2", upf_session(2));
	send_to(2, 3);
	expect_sum("c", 7);
	expect_sum("c2", 4);
	// Sessions and counters in one transaction.
	kit_begin();
	kit_delete(API_COUNTER, "c");
	kit_put_mobile("s1", k = upf_session(1));
	commit();
	send_to(1, 2);
	expect_sum("c2", 4);
}

static void watermarks(void **state)
{
	struct api_counter x = of_ues();

	x.packets = 10;
	x.period = 60;
	put("s1", upf_session(1));
	put("s2", upf_session(2));
	put_counter("c", &x);
	uint32_t before = events_of("c");
	send_to(1, 5);
	send_to(2, 4);
	assert_int_equal(events_of("c") - before, 0);
	send_to(2, 1);
	assert_int_equal(events_of("c") - before, 1);
	const struct api_event *e = kit_event(API_EVENT_WATERMARK, (uint32_t)kit_events(API_EVENT_WATERMARK) - 1);
	assert_int_equal(e->usage.packets[API_TOTAL], 10);
	assert_int_equal(e->usage.bytes[API_TOTAL], 10 * IP_BYTES);
	assert_int_equal(e->seid, 0);
	send_to(1, 30); // once
	assert_int_equal(events_of("c") - before, 1);
	assert_int_equal(row("c").reached, 1);
	kit_advance(60 * SECOND); // a new period
	assert_int_equal(row("c").period_packets, 0);
	send_to(1, 9);
	assert_int_equal(events_of("c") - before, 1);
	send_to(1, 1);
	assert_int_equal(events_of("c") - before, 2);
	// Bytes; a changed counter starts again. Without period: reported once.
	x.packets = 0;
	x.period = 0;
	x.bytes = 5 * IP_BYTES;
	put_counter("c", &x);
	send_to(1, 4);
	assert_int_equal(events_of("c") - before, 2);
	send_to(1, 20);
	assert_int_equal(events_of("c") - before, 3);
	kit_advance(3600ull * SECOND);
	send_to(1, 20);
	assert_int_equal(events_of("c") - before, 3);
}

// Each session by itself.
static void of_each(void **state)
{
	struct api_counter x = of_ues();

	x.packets = 10;
	x.period = 60;
	x.each = 1;
	put_counter("c", &x);
	put("s1", upf_session(1));
	put("s2", upf_session(2));
	uint32_t before = events_of("c");
	send_to(1, 9);
	send_to(2, 9);
	assert_int_equal(events_of("c") - before, 0);
	send_to(2, 1);
	assert_int_equal(events_of("c") - before, 1);
	const struct api_event *e = kit_event(API_EVENT_WATERMARK, (uint32_t)kit_events(API_EVENT_WATERMARK) - 1);
	assert_string_equal(e->session, "s2");
	assert_int_equal(e->seid, 2);
	put("s2", upf_session(2)); // the account lives on
	send_to(2, 20);
	send_to(1, 1);
	assert_int_equal(events_of("c") - before, 2);
	kit_advance(60 * SECOND);
	send_to(1, 9);
	assert_int_equal(events_of("c") - before, 2);
	send_to(1, 1);
	assert_int_equal(events_of("c") - before, 3);
	gone("s1");
	put("s1", upf_session(1)); // another session
	send_to(1, 9);
	assert_int_equal(events_of("c") - before, 3);
	assert_int_equal(row("c").reached, 3);
}

// The fast path does not notice.
static void fast_path(void **state)
{
	struct api_counter x = of_ues();

	put_counter("c", &x);
	put("s1", upf_session(1));
	send_to(1, 4);
	uint64_t before = kit_node_packets("core-input");
	send_to(1, 50);
	assert_int_equal(kit_node_packets("core-input") - before, 0);
	expect_sum("c", 54);
}

static void refusals(void **state)
{
	struct api_counter x = {.each = 1}, bad = {.ue = {.family = 5}};
	char name[API_NAME];

	assert_int_not_equal(try("c", &x), 0);
	assert_non_null(strstr(kit_error(), "no watermark"));
	assert_int_not_equal(try("c", &bad), 0);
	x = of_ues();
	strcpy(x.instance, "nowhere");
	assert_int_not_equal(try("c", &x), 0);
	assert_non_null(strstr(kit_error(), "no network instance nowhere"));
	x = of_ues();
	for (uint32_t i = 0; i < API_MAX_COUNTERS; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		put_counter(name, &x);
	}
	assert_int_not_equal(try("c", &x), 0);
	put("s1", upf_session(1)); // counts in all of them
	send_to(1, 3);
	expect_sum("x63", 3);
	kit_begin();
	for (uint32_t i = 0; i < API_MAX_COUNTERS; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		kit_delete(API_COUNTER, name);
	}
	commit();
	// What it refers to stays.
	strcpy(x.instance, "peers");
	put_counter("c", &x);
	kit_begin();
	kit_delete(API_INSTANCE, "peers");
	assert_int_not_equal(kit_commit(), 0);
	assert_non_null(strstr(kit_error(), "counter c"));
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(sums, clean),
		cmocka_unit_test_teardown(by_name, clean),
		cmocka_unit_test_teardown(watermarks, clean),
		cmocka_unit_test_teardown(of_each, clean),
		cmocka_unit_test_teardown(fast_path, clean),
		cmocka_unit_test_teardown(refusals, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
