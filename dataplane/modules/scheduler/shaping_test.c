// SPDX-License-Identifier: Apache-2.0
// Shaping on N3: each UE's downlink leaves at the rate of its pipe, counted as frames on the link, and by class; a UE
// without a pipe passes.
#include "core/engine.h"
#include "session/mobile_fixture.h"
#include <errno.h>

#define FRAME 1250u // bytes on N3
#define PAYLOAD (FRAME - 14 - 36 - 28)
#define SLOW 1250000u // bytes a second: 10 Mbit/s
#define FAST 12500000u
#define URGENT 5 // QFI
#define EXPEDITED 46 // DSCP

static void put_scheduler(void)
{
	static struct api_scheduler s = {.subports = 1, .profiles = 2};

	s.rate = s.subport[0].rate = 125000000;
	s.subport[0].pipes = 16;
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	s.precedence_size[0][3] = 32;
	s.precedence_size[1][3] = 16;
	memset(s.qfi_class, 0xff, sizeof(s.qfi_class));
	memset(s.dscp_class, 3 << 2, sizeof(s.dscp_class));
	s.qfi_class[URGENT] = 0;
	s.dscp_class[EXPEDITED] = 0;
	for (int i = 0; i < 2; i++) {
		snprintf(s.profile[i].name, sizeof(s.profile[i].name), "%s", i == 0 ? "slow" : "fast");
		s.profile[i].rate = i == 0 ? SLOW : FAST;
		s.profile[i].burst = 2 * FRAME;
		memset(s.profile[i].weight, 1, sizeof(s.profile[i].weight));
	}
	kit_put(API_SCHEDULER, "ran", &s, sizeof(s));
}

static struct kit_mobile *shaped(uint32_t n, uint32_t pipe, const char *profile)
{
	struct kit_mobile *k = upf_session(n);

	snprintf(k->s.port, sizeof(k->s.port), "ran");
	snprintf(k->s.pipe_profile, sizeof(k->s.pipe_profile), "%s", profile);
	k->s.pipe = pipe;
	return k;
}

static int start(void **state)
{
	struct api_engine e = kit_engine();

	e.max_scheduled = 1024;
	fixture_start(&e);
	kit_begin();
	put_scheduler();
	commit();
	put("one", shaped(1, 1, "slow"));
	put("two", shaped(2, 2, "fast"));
	put("three", upf_session(3));
	return 0;
}

static void send_to(uint32_t ue, uint8_t dscp, uint32_t packets)
{
	static struct frame f;
	char address[32];

	snprintf(address, sizeof(address), "10.45.0.%u", ue);
	ip_packet(&f, FAR4, address, PAYLOAD);
	f.at[1] = (uint8_t)(dscp << 2);
	frame_ip4_sum(&f);
	link_layer(&f, "internet", 1);
	for (uint32_t i = 0; i < packets; i++)
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
	kit_run();
}

struct sums {
	uint32_t packets[4], bytes[4], expedited;
};

// Packets sent to the gNB since the last call, by UE.
static void add_left(struct sums *s)
{
	for (uint32_t i = 0; i < kit_count("ran"); i++) {
		const struct kit_frame *k = kit_frame("ran", i);
		uint32_t ue = load32(k->bytes + 46) - 0x200;

		assert_in_range(ue, 1, 3);
		s->packets[ue]++;
		s->bytes[ue] += k->length;
		s->expedited += (uint32_t)(k->bytes[k->length - PAYLOAD - 28 + 1] >> 2 == EXPEDITED);
	}
	kit_clear();
}

static void drained(struct sums *s)
{
	for (int i = 0; i < 2000 && kit_totals().held > 0; i++) {
		kit_advance(1000);
		add_left(s);
	}
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	assert_true(kit_balance());
}

// 20 Mbit/s for each of the three, for half a second.
static void each_at_its_rate(void **state)
{
	struct kit_reasons before = kit_reasons();
	struct sums s = {0};
	uint32_t dropped;

	kit_clear();
	for (int ms = 0; ms < 500; ms++) {
		for (uint32_t ue = 1; ue <= 3; ue++)
			send_to(ue, 0, 2);
		kit_advance(1000);
		add_left(&s);
	}
	assert_in_range(s.bytes[1], SLOW / 2 * 98 / 100, SLOW / 2 * 102 / 100);
	assert_int_equal(s.packets[1] * FRAME, s.bytes[1]);
	drained(&s);
	assert_int_equal(s.packets[2], 1000);
	assert_int_equal(s.packets[3], 1000);
	dropped = 1000 - s.packets[1];
	assert_true(dropped > 300);
	kit_only_rose(&before, "scheduler-queue-full", dropped);
}

// Before a queue of 50 ms go packets with an urgent DSCP, and all those whose QER has an urgent QFI.
static void classes(void **state)
{
	struct sums s = {0};

	kit_clear();
	send_to(1, 0, 50);
	send_to(1, EXPEDITED, 2);
	for (int ms = 0; ms < 4; ms++) {
		kit_advance(1000);
		add_left(&s);
	}
	assert_int_equal(s.expedited, 2);
	assert_true(s.packets[1] < 12);
	drained(&s);
	assert_int_equal(s.packets[1], 52);
}

static void by_qfi(void **state)
{
	const struct api_scheduler_row *r;
	struct sums s = {0};
	uint32_t rows;
	struct kit_mobile *k = shaped(1, 1, "slow");

	kit_qer(k, 1, URGENT);
	kit_pdr_qer(&k->pdr[1], 1);
	put("one", k);
	kit_clear();
	send_to(1, 0, 10);
	r = kit_rows(API_TABLE_SCHEDULER, "ran/0/1", sizeof(*r), &rows);
	assert_int_equal(rows, API_TRAFFIC_CLASSES);
	assert_true(r[0].queued > 0);
	assert_int_equal(r[3].queued, 0);
	drained(&s);
	put("one", shaped(1, 1, "slow"));
}

// RFC 2597: as a queue grows, red packets are dropped first (from 16 on), then yellow (32), then green ones (64).
static void by_colour(void **state)
{
	static const uint8_t green = 10, yellow = 12, red = 14;
	const struct api_scheduler_row *r;
	struct kit_reasons before;
	struct sums s = {0};
	uint32_t rows, passed;

	kit_clear();
	before = kit_reasons();
	send_to(1, red, 40);
	passed = kit_count("ran");
	kit_only_rose(&before, "scheduler-precedence", 40 - 16 - passed);
	before = kit_reasons();
	send_to(1, yellow, 40);
	kit_only_rose(&before, "scheduler-precedence", 40 - 16);
	before = kit_reasons();
	send_to(1, green, 40);
	kit_only_rose(&before, "scheduler-queue-full", 40 - 32);
	before = kit_reasons();
	send_to(1, yellow, 1); // full for all
	kit_only_rose(&before, "scheduler-queue-full", 1);
	r = kit_rows(API_TABLE_SCHEDULER, "ran", sizeof(*r), &rows);
	assert_int_equal(r[3].dropped_red, 40 - 16 - passed);
	assert_int_equal(r[3].dropped_yellow, 40 - 16 + 1);
	drained(&s);
}

// A pipe, a profile or a port that is not there is refused. Without the scheduler all passes.
static void what_is_refused(void **state)
{
	struct sums s = {0};

	assert_int_equal(refused("four", shaped(4, 16, "slow")), ENOENT);
	assert_int_equal(refused("four", shaped(4, 3, "other")), ENOENT);
	struct kit_mobile *k = shaped(4, 3, "slow");
	snprintf(k->s.port, sizeof(k->s.port), "nowhere");
	assert_int_equal(refused("four", k), ENOENT);
	kit_begin();
	kit_delete(API_SCHEDULER, "ran");
	commit();
	kit_clear();
	send_to(1, 0, 100);
	add_left(&s);
	assert_int_equal(s.packets[1], 100);
	kit_begin();
	put_scheduler();
	commit();
	send_to(1, 0, 60);
	assert_true(kit_totals().held > 0); // the new one gave the pipe its profile
	drained(&s);
	assert_int_equal(s.packets[1], 160);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(each_at_its_rate),
		cmocka_unit_test(classes),
		cmocka_unit_test(by_qfi),
		cmocka_unit_test(by_colour),
		cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests(all, start, NULL);
}
