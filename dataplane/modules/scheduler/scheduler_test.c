// SPDX-License-Identifier: Apache-2.0
// Scheduler queues and the packet buffers: greedy queues pay, each other flow passes, and receiving goes on.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/engine.h"
#include "core/trace_inside.h"
#include "hqos/hqos.h"
#include "testkit/gateway.h"
#include "testkit/reasons.h"
#include "wire/bytes.h"
#include "wire/ecn.h"
#include <errno.h>
#include <rte_red.h>
#include <stdio.h>
#include <string.h>

#define HOMES 200u
#define BURST 64u
#define ROOM 1024u
#define RATE 125000000u // bytes per second
#define QUEUE_DSCP(queue) (1 + (queue)) // the others are best effort's first queue's

static void put_scheduler(const struct api_red *red, uint64_t rate)
{
	static struct api_scheduler s;

	memset(&s, 0, sizeof(s));
	s.subports = s.profiles = 1;
	s.rate = s.subport[0].rate = rate;
	s.subport[0].pipes = 256;
	s.frame_overhead = 24;
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	if (red != NULL)
		s.red[3] = *red;
	memset(s.qfi_class, 0xff, sizeof(s.qfi_class));
	memset(s.dscp_class, 3 << 2, sizeof(s.dscp_class));
	for (uint32_t queue = 0; queue < HQOS_QUEUES; queue++)
		s.dscp_class[QUEUE_DSCP(queue)] =
			(uint8_t)(hqos_queue_class(queue) << 2 | (queue - hqos_queue_class(queue)));
	strcpy(s.profile[0].name, "home");
	s.profile[0].rate = 250000; // 2 Mbit/s
	s.profile[0].burst = 2000;
	memset(s.profile[0].weight, 1, sizeof(s.profile[0].weight));
	kit_put(API_SCHEDULER, "access", &s, sizeof(s));
}

static void scheduled(const struct api_red *red, uint64_t rate)
{
	kit_begin();
	put_scheduler(red, rate);
	assert_int_equal(kit_commit(), 0);
	kit_run();
}

static struct api_holder_row holder(void)
{
	uint32_t count;
	const struct api_holder_row *rows = kit_rows(API_TABLE_HOLDER, "", sizeof(*rows), &count);

	while (count > 0 && strcmp(rows[count - 1].name, "scheduler") != 0)
		count--;
	assert_true(count > 0);
	return rows[count - 1];
}

static uint64_t queued(uint32_t home)
{
	char key[API_NAME];
	uint64_t sum = 0;
	uint32_t count;

	snprintf(key, sizeof(key), "access/0/%u", home);
	const struct api_scheduler_row *rows = kit_rows(API_TABLE_SCHEDULER, key, sizeof(*rows), &count);
	for (uint32_t i = 0; i < count; i++)
		sum += rows[i].queued;
	return sum;
}

static void downlink_tos(uint32_t home, uint32_t packets, int family, uint8_t tos)
{
	static struct frame f;

	frame_payload(&f, 1340 - 28);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, family == 4 ? "198.51.100.9" : "2001:db8:ffff::9", gateway_ue(home, family), 17);
	f.at[1] |= (uint8_t)(family == 4 ? tos : tos << 4);
	if (family == 4)
		frame_ip4_sum(&f);
	gateway_from_upf(&f, home);
	for (uint32_t i = 0; i < packets; i++)
		assert_int_equal(kit_send("core", f.at, f.length), 0);
	kit_run();
}

static void uplink_passes(void)
{
	static struct frame f;

	kit_clear();
	frame_payload(&f, 90);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, gateway_ue(1, 4), "198.51.100.9", 17);
	gateway_from_home(&f, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("core"), 1);
	kit_clear();
}

static void downlink(uint32_t home, uint32_t packets)
{
	downlink_tos(home, packets, 4, ECN_NOT_ECT);
}

// Frames that left towards the home, since kit_clear.
static uint32_t left_to(uint32_t home)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < kit_count("access"); i++)
		sum += (load16(kit_frame("access", i)->bytes + 18) & 0xfff) == home;
	return sum;
}

static void drained(void)
{
	for (int i = 0; i < 2000 && kit_totals().held > 0; i++) {
		kit_advance(1000);
		kit_clear();
	}
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(holder().held, 0);
	assert_int_equal(kit_buffers_in_use(), 0);
	assert_true(kit_balance());
}

// 64 packets to each of 200 homes at once, six times the queues' limit: the longest lose, all keep about equally many,
// and other traffic passes.
static void greedy_queues_pay(void **state)
{
	struct kit_reasons before = kit_reasons();

	scheduled(NULL, RATE);
	kit_clear();
	for (uint32_t home = 1; home <= HOMES; home++) {
		downlink(home, BURST);
		assert_true(holder().held <= ROOM);
	}
	uint64_t out = kit_count("access");
	uplink_passes();
	assert_true(holder().held > ROOM - 64);
	kit_only_rose(&before, "scheduler-longest", HOMES * BURST - (uint64_t)kit_totals().held - out);
	// Room is made for a whole vector, so the last one's is still whole.
	for (uint32_t home = 1; home < HOMES; home++)
		assert_in_range(queued(home), ROOM / HOMES / 2, ROOM / HOMES * 2);
	// Who asks for little gets it.
	for (int i = 0; i < 20; i++) {
		kit_clear();
		downlink(HOMES + 1, 1);
		for (int step = 0; step < 100; step++)
			kit_advance(100);
		assert_int_equal(left_to(HOMES + 1), 1);
		downlink(1 + (uint32_t)i, BURST);
	}
	assert_int_equal(kit_reason("scheduler-no-room"), 0);
	drained();
}

// A replaced scheduler returns its packets' buffers to the worker's share.
static void replaced(void **state)
{
	scheduled(NULL, RATE);
	for (int round = 0; round < 3; round++) {
		for (uint32_t home = 1; home <= HOMES; home++)
			downlink(home, BURST);
		assert_true(holder().held > ROOM - 64);
		struct kit_reasons before = kit_reasons();
		uint64_t held = (uint64_t)kit_totals().held;
		scheduled(NULL, RATE);
		kit_only_rose(&before, "scheduler-replaced", held);
		assert_int_equal(holder().held, 0);
		kit_clear();
	}
	drained();
}

// A packet in each queue of each home: none is longer, so a packet without room is dropped.
static void no_room(void **state)
{
	static_assert(HOMES * HQOS_QUEUES > ROOM, "more queues than buffers");
	scheduled(NULL, HQOS_MIN_RATE); // next to nothing leaves
	struct kit_reasons before = kit_reasons();
	for (uint32_t queue = 0; queue < HQOS_QUEUES; queue++)
		for (uint32_t home = 1; home <= HOMES; home++)
			downlink_tos(home, 1, 4, (uint8_t)(QUEUE_DSCP(queue) << 2));
	assert_int_equal(holder().held, ROOM);
	kit_only_rose(&before, "scheduler-no-room", HOMES * HQOS_QUEUES - ROOM - kit_count("access"));
	uplink_passes();
	scheduled(NULL, RATE);
	kit_clear();
	drained();
}

// Of the frames that left: how many have the mark, and all are intact.
static uint32_t with_ecn(uint32_t home, int family, enum ecn ecn)
{
	uint32_t sum = 0, l3 = home % 2 == 0 ? 30 : 22; // QinQ, even homes PPPoE too

	for (uint32_t i = 0; i < kit_count("access"); i++) {
		const uint8_t *ip = kit_frame("access", i)->bytes + l3;

		assert_int_equal(ip[0] >> 4, family);
		assert_true(family == 6 || ip4_checksum_ok(ip));
		sum += ip_ecn((uint8_t)family, ip) == ecn;
	}
	return sum;
}

// A burst of 40 behind RED between 4 and 64: senders without ECN lose packets under the option's own reason, others'
// are marked. Without the option nothing is lost.
static void early_detection(void **state)
{
	const struct api_red red = {.min = 4, .max = 64, .probability = 1, .weight = 1};

	for (int with = 0; with < 2; with++) {
		scheduled(with ? &red : NULL, RATE);
		for (uint32_t i = 0; i < 16; i++) {
			uint32_t home = 1 + i % 2;
			int family = i & 2 ? 6 : 4;
			enum ecn ecn = i >> 2;
			uint64_t before = kit_reason("scheduler-red");
			struct kit_reasons reasons = kit_reasons();

			rte_red_rand_seed = i; // the same every time
			rte_red_rand_val = rte_fast_rand();
			kit_clear();
			downlink_tos(home, 40, family, ecn);
			for (int step = 0; step < 2000 && kit_totals().held > 0; step++)
				kit_advance(1000);
			uint32_t lost = (uint32_t)(kit_reason("scheduler-red") - before);
			kit_only_rose(&reasons, "scheduler-red", lost);
			assert_int_equal(kit_count("access"), 40 - lost);
			if (with && ecn == ECN_NOT_ECT)
				assert_in_range(lost, 2, 30);
			else
				assert_int_equal(lost, 0);
			if (with && (ecn == ECN_ECT0 || ecn == ECN_ECT1)) {
				assert_in_range(with_ecn(home, family, ECN_CE), 2, 30);
				assert_int_equal(with_ecn(home, family, ecn) + with_ecn(home, family, ECN_CE), 40);
			} else {
				assert_int_equal(with_ecn(home, family, ecn), 40 - lost);
			}
		}
	}
	drained();
}

// Its words reach the operator, and the scheduler before stays.
static void early_detection_refused(void **state)
{
	const struct api_red bad = {.min = 8, .max = 8};

	kit_begin();
	put_scheduler(&bad, RATE);
	assert_int_equal(kit_commit(), EINVAL);
	assert_non_null(strstr(kit_error(), "0 < min < max"));
	downlink(1, 10);
	drained();
}

static char said[1024];

static void note(const struct api_trace_row *row)
{
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s: %.*s\n", row->node, row->length,
		(const char *)row->data);
}

// What is said of a packet to a home that is only asked about.
static const char *explained(uint32_t home)
{
	static struct trace_order o;
	static struct frame f;
	struct api_trace_state is;

	frame_payload(&f, 90);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, "198.51.100.9", gateway_ue(home, 4), 17);
	gateway_from_upf(&f, home);
	o.want = (struct api_trace){
		.flags = API_TRACE_STEPS | API_TRACE_HYPOTHETICAL, .seconds = 30, .octets = f.length};
	memcpy(o.octets, f.at, f.length);
	strcpy(o.want.port, "core");
	said[0] = 0;
	assert_int_equal(trace_begin(&o, &is), 0);
	kit_run();
	assert_int_equal(kit_trace_poll(is.trace, 1, note, &is), 0);
	return said;
}

// It would wait in its pipe, or pass where its port has no scheduler.
static void foreseen(void **state)
{
	struct kit_session k = gateway_home(HOMES + 2);

	kit_begin();
	kit_port("plain", API_ROLE_ACCESS);
	strcpy(k.s.port, "plain");
	kit_put_session("plain-home", &k);
	assert_int_equal(kit_commit(), 0);
	assert_non_null(strstr(explained(1), "scheduler: access: subport 0, pipe 1, class 3; 0 packets of the class "
					     "wait; it would be queued\n"));
	assert_non_null(strstr(explained(HOMES + 2), " bytes on plain\n"));
	assert_null(strstr(said, "it would be queued"));
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.packet_buffers = 4096;
	e.max_scheduled = ROOM;
	e.max_handed_over = e.max_punted = e.max_held = e.max_fragments = 64;
	gateway_start(&e);
	kit_begin();
	put_scheduler(NULL, RATE);
	for (uint32_t home = 1; home <= HOMES + 1; home++) {
		struct kit_session k = gateway_home(home);
		char name[API_NAME];

		k.s.pipe = home;
		strcpy(k.s.pipe_profile, "home");
		snprintf(name, sizeof(name), "home-%u", home);
		kit_put_session(name, &k);
	}
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
	kit_run();
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(greedy_queues_pay),
		cmocka_unit_test(replaced),
		cmocka_unit_test(no_room),
		cmocka_unit_test(early_detection),
		cmocka_unit_test(early_detection_refused),
		cmocka_unit_test(foreseen),
	};

	return cmocka_run_group_tests_name("scheduler", list, setup, NULL);
}
