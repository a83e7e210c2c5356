// SPDX-License-Identifier: Apache-2.0
// Policed and scheduled rates through the whole graph, over one second of the virtual clock.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/engine.h"
#include "testkit/gateway.h"
#include "testkit/reasons.h"
#include "wire/bytes.h"
#include "wire/ip.h"
#include <stdio.h>
#include <string.h>

#define FAR4 "198.51.100.9"
#define STEP_US 100
#define STEPS 10000 // one second
#define OVERHEAD 24
#define PIPE_RATE 1250000u

static void commit(void)
{
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
}

static void put_scheduler(void)
{
	static struct api_scheduler s;

	s.subports = 1;
	s.rate = 125000000;
	s.frame_overhead = OVERHEAD;
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	s.profiles = 1;
	memset(s.qfi_class, 0xff, sizeof(s.qfi_class));
	s.qfi_class[1] = 0 << 2;
	s.qfi_class[2] = 1 << 2;
	for (int dscp = 0; dscp < 64; dscp++)
		s.dscp_class[dscp] = (uint8_t)(3 << 2 | dscp % 4);
	s.dscp_class[46] = 0 << 2;
	s.dscp_class[34] = 1 << 2;
	s.dscp_class[26] = 2 << 2;
	s.subport[0].rate = 125000000;
	s.subport[0].pipes = 16;
	strcpy(s.profile[0].name, "home");
	s.profile[0].rate = PIPE_RATE;
	s.profile[0].burst = 2000; // more than passes in a step of the clock
	for (int i = 0; i < API_BE_QUEUES; i++)
		s.profile[0].weight[i] = (uint8_t)(1 << i);
	kit_put(API_SCHEDULER, "access", &s, sizeof(s));
}

static int setup(void **state)
{
	struct api_policer single = {.type = API_SRTCM,
		.cir = 500000,
		.cbs = 2000,
		.pbs = 2000,
		.action = {API_COLOUR_PASS, API_COLOUR_DROP, API_COLOUR_DROP}};
	struct api_policer two = {.type = API_TRTCM,
		.cir = 250000,
		.cbs = 2000,
		.pir = 500000,
		.pbs = 2000,
		.action = {API_COLOUR_PASS, API_COLOUR_PASS, API_COLOUR_DROP}};

	gateway_start(NULL);
	kit_begin();
	put_scheduler();
	kit_put(API_POLICER, "single", &single, sizeof(single));
	kit_put(API_POLICER, "two", &two, sizeof(two));
	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++) {
		struct kit_session k = gateway_home(home);

		k.s.pipe = home;
		strcpy(k.s.pipe_profile, "home");
		if (home == 3 || home == 5)
			strcpy(k.qer[0].uplink_policer, home == 3 ? "single" : "two");
		if (home == 4 || home == 6)
			strcpy(k.qer[1].downlink_policer, home == 4 ? "single" : "two");
		kit_put_session(gateway_home_name(home), &k);
	}
	commit();
	kit_run();
	return 0;
}

// Until the scheduler is empty, and every bucket full.
static int quiet(void **state)
{
	for (int i = 0; i < 2000; i++)
		kit_advance(10000);
	kit_clear();
	assert_int_equal(kit_totals().held, 0);
	assert_true(kit_balance());
	return 0;
}

static void near(uint64_t got, uint64_t want)
{
	uint64_t off = got > want ? got - want : want - got;

	if (off > want / 100)
		fail_msg("%lu bytes in a second, expected %lu within 1 %%", got, want);
}

// IP bytes that leave in a second when three times the rate is offered. 300-byte IP packets.
static uint64_t policed(uint32_t home, int uplink)
{
	static struct frame f;
	uint64_t bytes = 0;

	frame_payload(&f, 272);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, uplink ? gateway_ue(home, 4) : FAR4, uplink ? FAR4 : gateway_ue(home, 4), 17);
	uplink ? gateway_from_home(&f, home) : gateway_from_upf(&f, home);
	for (int i = 0; i < STEPS / 2; i++) {
		kit_clear();
		assert_int_equal(kit_send(uplink ? "access" : "core", f.at, f.length), 0);
		kit_advance(2 * STEP_US);
		bytes += 300u * kit_count(uplink ? "core" : "access");
	}
	for (int i = 0; i < 100 && !uplink; i++) { // what the scheduler still holds
		kit_clear();
		kit_advance(1000);
		bytes += 300u * kit_count("access");
	}
	assert_true(kit_balance());
	return bytes;
}

static void policed_rates(void **state)
{
	near(policed(3, 1), 500000 + 4000); // rate and both bursts
	near(policed(4, 0), 500000 + 4000);
	near(policed(5, 1), 500000 + 2000); // green and yellow: the peak rate and burst
	near(policed(6, 0), 500000 + 2000);
}

struct offer {
	uint32_t home, every; // one packet each so many steps
	uint8_t dscp, qfi;
	uint16_t port; // UDP destination; differs per stream
	uint64_t bytes; // that left, with overhead on the wire
	uint64_t packets;
};

#define PACKET 500 // IP bytes

static void build(struct frame *f, const struct offer *o)
{
	frame_payload(f, PACKET - 28);
	frame_udp(f, 4000, o->port);
	frame_ip(f, FAR4, gateway_ue(o->home, 4), 17);
	f->at[1] = (uint8_t)(o->dscp << 2);
	frame_ip4_sum(f);
	frame_gtpu(f, 0x200 + o->home, o->qfi);
	gateway_outer(f, o->home % 2 ? 4 : 6, 0);
}

static void account(struct offer *o, int n)
{
	for (uint32_t i = 0; i < kit_count("access"); i++) {
		const struct kit_frame *k = kit_frame("access", i);
		const uint8_t *ip = k->bytes + (load16(k->bytes + 20) == 0x8864 ? 30 : 22);
		uint16_t port = load16(ip + 22);

		for (int s = 0; s < n; s++)
			if (o[s].port == port) {
				o[s].bytes += k->length + OVERHEAD;
				o[s].packets++;
			}
	}
	kit_clear();
}

// A second of these streams, measured after a tenth of a second.
static void offer(struct offer *o, int n)
{
	static struct frame f[8];

	for (int s = 0; s < n; s++)
		build(&f[s], &o[s]);
	kit_clear();
	for (int i = 0; i < STEPS + STEPS / 10; i++) {
		for (int s = 0; s < n; s++)
			if (i % (int)o[s].every == 0)
				assert_int_equal(kit_send("core", f[s].at, f[s].length), 0);
		kit_advance(STEP_US);
		account(o, n);
		for (int s = 0; i == STEPS / 10 - 1 && s < n; s++)
			o[s].bytes = o[s].packets = 0;
	}
	assert_true(kit_balance());
}

static void pipe_rate(void **state)
{
	struct offer o[] = {{.home = 1, .every = 2, .qfi = 9, .port = 1}, {.home = 2, .every = 2, .qfi = 9, .port = 2}};

	offer(o, 2); // 2.7 MB/s each
	near(o[0].bytes, PIPE_RATE);
	near(o[1].bytes, PIPE_RATE);
}

// Class by DSCP, then by QFI: the higher one gets all its demand, the lower one the rest.
static void strict_priority(void **state)
{
	struct offer by_dscp[] = {{.home = 1, .every = 8, .qfi = 9, .dscp = 46, .port = 1},
		{.home = 1, .every = 2, .qfi = 9, .dscp = 34, .port = 2}, {.home = 1, .every = 2, .qfi = 9, .port = 3}};
	struct offer by_qfi[] = {{.home = 1, .every = 8, .qfi = 1, .dscp = 0, .port = 1},
		{.home = 1, .every = 2, .qfi = 2, .dscp = 46, .port = 2},
		{.home = 1, .every = 2, .qfi = 9, .dscp = 1, .port = 3}};
	struct offer *both[] = {by_dscp, by_qfi};

	for (int i = 0; i < 2; i++) {
		offer(both[i], 3);
		assert_in_range(both[i][0].packets, 1248, 1252); // all
		near(both[i][0].bytes + both[i][1].bytes, PIPE_RATE);
		assert_int_equal(both[i][2].packets, 0);
		quiet(state);
	}
}

static void best_effort_weights(void **state)
{
	struct offer o[4];

	for (int q = 0; q < 4; q++)
		o[q] = (struct offer){.home = 1, .every = 4, .qfi = 9, .dscp = (uint8_t)q, .port = (uint16_t)(1 + q)};
	offer(o, 4); // 1.36 MB/s each: more than any share
	uint64_t all = o[0].bytes + o[1].bytes + o[2].bytes + o[3].bytes;
	near(all, PIPE_RATE);
	for (int q = 0; q < 4; q++) {
		double share = (double)o[q].bytes / (double)all, want = (double)(1 << q) / 15;

		if (share < want * 0.97 || share > want * 1.03)
			fail_msg("queue %d has %.3f, expected %.3f", q, share, want);
	}
}

// One home is offered ten times its rate, the others half of theirs: they lose nothing.
static void greedy_takes_nothing(void **state)
{
	struct offer o[] = {{.home = 1, .every = 1, .qfi = 9, .port = 1}, {.home = 2, .every = 10, .qfi = 9, .port = 2},
		{.home = 3, .every = 10, .qfi = 9, .port = 3}};
	uint64_t full = kit_reason("scheduler-queue-full");
	struct kit_reasons before = kit_reasons();

	offer(o, 3);
	near(o[0].bytes, PIPE_RATE);
	assert_in_range(o[1].packets, 999, 1001);
	assert_in_range(o[2].packets, 999, 1001);
	assert_true(kit_reason("scheduler-queue-full") > full);
	kit_only_rose(&before, "scheduler-queue-full", kit_reason("scheduler-queue-full") - full);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_setup(policed_rates, quiet),
		cmocka_unit_test_setup_teardown(pipe_rate, quiet, quiet),
		cmocka_unit_test_setup_teardown(strict_priority, quiet, quiet),
		cmocka_unit_test_setup_teardown(best_effort_weights, quiet, quiet),
		cmocka_unit_test_setup_teardown(greedy_takes_nothing, quiet, quiet),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
