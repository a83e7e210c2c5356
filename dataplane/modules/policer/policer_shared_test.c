// SPDX-License-Identifier: Apache-2.0
// Several meters of one packet, meters shared by PDRs and sessions, and many profiles.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "meter/policer.h"
#include "testkit/gateway.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define A HOME_QINQ
#define B HOME_QINQ_OTHER
#define BURST 10000u

static struct api_policer policer(uint64_t rate, uint64_t burst)
{
	return (struct api_policer){.type = API_SRTCM, .cir = rate, .cbs = burst, .action = {0, 0, API_COLOUR_DROP}};
}

static void put_policer(const char *name, uint64_t rate, uint64_t burst)
{
	struct api_policer p = policer(rate, burst);

	kit_put(API_POLICER, name, &p, sizeof(p));
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_qers = 16;
	gateway_start(&e);
	kit_begin();
	put_policer("wide", 1000000, BURST);
	put_policer("narrow", 100000, 1000);
	put_policer("slow", 1, BURST); // a bucket that as good as never fills again
	assert_int_equal(kit_commit(), 0);
	return 0;
}

static void put(uint32_t home, const struct kit_session *k)
{
	kit_begin();
	kit_put_session(gateway_home_name(home), k);
	if (kit_commit() != 0)
		fail_msg("%s", kit_error());
}

static void gone(void)
{
	kit_begin();
	kit_delete(API_SESSION, gateway_home_name(A));
	kit_delete(API_SESSION, gateway_home_name(B));
	assert_int_equal(kit_commit(), 0);
}

static uint32_t send_one(uint32_t home, int uplink, uint32_t length)
{
	static struct frame f;
	const char *port = uplink ? "core" : "access", *far = "198.51.100.9", *ue = gateway_ue(home, 4);

	frame_payload(&f, length - 28);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, uplink ? ue : far, uplink ? far : ue, 17);
	uplink ? gateway_from_home(&f, home) : gateway_from_upf(&f, home);
	kit_clear();
	kit_send(uplink ? "access" : "core", f.at, f.length);
	kit_run();
	uint32_t left = kit_count(port);
	kit_clear();
	return left;
}

// Bytes that pass of one second's worth at `rate`, in packets of `length`.
static uint64_t second(uint32_t home, uint64_t rate, uint32_t length)
{
	uint64_t bytes = 0, packets = rate / length;

	for (uint64_t i = 0; i < packets; i++) {
		bytes += send_one(home, 1, length) * length;
		kit_advance(1000000 / packets);
	}
	return bytes;
}

static struct kit_session two_qers(uint32_t home, const char *first, const char *second_one)
{
	struct kit_session k = gateway_home(home);

	k.pdr[0].qers = 2;
	k.pdr[0].qer[0] = 1;
	k.pdr[0].qer[1] = 2;
	snprintf(k.qer[0].uplink_policer, API_NAME, "%s", first);
	snprintf(k.qer[1].uplink_policer, API_NAME, "%s", second_one);
	return k;
}

static void two_meters(void **state)
{
	for (int order = 0; order < 2; order++) {
		struct kit_session k = two_qers(A, order ? "narrow" : "wide", order ? "wide" : "narrow");

		put(A, &k);
		kit_advance(1000000);
		assert_in_range(second(A, 400000, 500), 99000, 102000);
	}
	gone();
}

// A drop of the second meter costs the first nothing.
static void nothing_taken(void **state)
{
	struct kit_session k = two_qers(A, "slow", "narrow");
	uint32_t passed = 0;

	put(A, &k);
	for (int i = 0; i < 100; i++)
		passed += send_one(A, 1, 500);
	assert_int_equal(passed, 2); // the burst of the narrow one
	k.qer[1].uplink_policer[0] = 0;
	put(A, &k);
	passed = 0;
	for (int i = 0; i < 100; i++)
		passed += send_one(A, 1, 500);
	assert_int_equal(passed, BURST / 500 - 2);
	gone();
}

// A QER of two PDRs is one meter (per direction).
static void one_qer_of_two_pdrs(void **state)
{
	struct {
		struct api_session s;
		struct api_pdr pdr[3];
		struct api_far far[2];
		struct api_qer qer[2];
	} s;
	struct kit_session k = gateway_home(A);
	uint32_t passed = 0;

	memset(&s, 0, sizeof(s));
	s.s = k.s;
	s.s.pdrs = 3;
	memcpy(s.pdr, k.pdr, sizeof(k.pdr));
	memcpy(s.far, k.far, sizeof(k.far));
	memcpy(s.qer, k.qer, sizeof(k.qer));
	snprintf(s.qer[0].uplink_policer, API_NAME, "slow");
	snprintf(s.qer[0].downlink_policer, API_NAME, "slow");
	s.pdr[1].qer[0] = 1;
	s.pdr[2] = s.pdr[0];
	s.pdr[2].id = 3;
	for (int round = 0; round < 3; round++) {
		s.pdr[2].precedence = round & 1 ? 1 : 1000; // the other PDR takes the packets
		assert_int_equal(kit_change(API_SESSION, gateway_home_name(A), &s, sizeof(s)), 0);
		kit_advance(1000);
		for (int i = 0; i < 15; i++)
			passed += send_one(A, 1, 500);
	}
	assert_int_equal(passed, BURST / 500);
	assert_int_equal(send_one(A, 0, 500), 1); // downlink has its own
	gone();
}

static struct kit_session with_share(uint32_t home, uint32_t share, uint16_t worker)
{
	struct kit_session k = gateway_home(home);

	k.s.worker = worker;
	k.qer[0].share = share;
	snprintf(k.qer[0].uplink_policer, API_NAME, "slow");
	return k;
}

// Sessions with one correlation id on one worker share buckets, also while they change.
static void shared_between_sessions(void **state)
{
	struct kit_session a = with_share(A, 5, 0), b = with_share(B, 5, 0);
	uint32_t passed = 0;

	put(A, &a);
	put(B, &b);
	for (int i = 0; i < 12; i++) {
		passed += send_one(A, 1, 500) + send_one(B, 1, 500);
		a.s.seid++;
		put(A, &a);
	}
	assert_int_equal(passed, BURST / 500);
	// The other worker's have their own; so has another id.
	b = with_share(B, 5, 1);
	put(B, &b);
	assert_int_equal(send_one(B, 1, 500), 1);
	assert_int_equal(send_one(A, 1, 500), 0);
	b = with_share(B, 6, 0);
	put(B, &b);
	assert_int_equal(send_one(B, 1, 500), 1);
	// The last one is deleted, and with it the buckets.
	gone();
	put(A, &a);
	assert_int_equal(send_one(A, 1, 500), 1);
	gone();
}

static void the_pool(void **state)
{
	struct meter_key key = {.qer = 1};
	uint32_t taken[16];

	for (uint32_t i = 0; i < 16; i++) {
		key.owner = i;
		taken[i] = meter_acquire(&key, 0);
		assert_int_not_equal(taken[i], METER_NONE);
		assert_int_equal(meter_acquire(&key, 0), taken[i]);
	}
	key.owner = 16;
	assert_int_equal(meter_acquire(&key, 0), METER_NONE);
	// A session that needs one is refused, in words.
	struct kit_session k = with_share(A, 5, 0);
	kit_begin();
	kit_put_session(gateway_home_name(A), &k);
	assert_int_equal(kit_commit(), ENOSPC);
	assert_non_null(strstr(kit_error(), "meters"));
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 16; i++)
			meter_release(taken[i]);
	for (uint32_t i = 0; i < 16; i++) {
		key.owner = 100 + i;
		taken[i] = meter_acquire(&key, 0);
		assert_int_not_equal(taken[i], METER_NONE);
	}
	for (uint32_t i = 0; i < 16; i++)
		meter_release(taken[i]);
}

// A line's two meters are one worker's, through all changes.
static void lines_of_one_worker(void **state)
{
	struct meter_key key = {.qer = 1};
	uint32_t taken[12], of_line[16], worker_of[12];

	for (uint32_t round = 0; round < 50; round++) {
		memset(of_line, 0xff, sizeof(of_line));
		for (uint32_t i = 0; i < 12; i++) {
			if (round > 0 && (i * 7 + round) % 3 == 0)
				meter_release(taken[i]);
			else if (round > 0)
				continue;
			key.owner = 1000 * (round + 1) + i;
			key.worker = (uint8_t)((i + round / 9) % 2);
			taken[i] = meter_acquire(&key, 0);
			assert_int_not_equal(taken[i], METER_NONE);
			worker_of[i] = key.worker;
		}
		for (uint32_t i = 0; i < 12; i++) {
			uint32_t *worker = &of_line[taken[i] / 2];

			assert_true(*worker == UINT32_MAX || *worker == worker_of[i]);
			*worker = worker_of[i];
		}
	}
	for (uint32_t i = 0; i < 12; i++)
		meter_release(taken[i]);
}

#define PROFILES 5000

static void profile_name(char to[API_NAME], uint32_t i)
{
	snprintf(to, API_NAME, "n4.%08x", i * 2654435761u);
}

static void many_profiles(void **state)
{
	static int index[PROFILES];
	static uint8_t used[POLICER_MAX_PROFILES];
	char name[API_NAME];

	for (int round = 0; round < 3; round++) {
		kit_begin();
		for (uint32_t i = 0; i < PROFILES; i++) {
			profile_name(name, i);
			put_policer(name, 1000 + i, 2000);
		}
		assert_int_equal(kit_commit(), 0);
		memset(used, 0, sizeof(used));
		for (uint32_t i = 0; i < PROFILES; i++) {
			profile_name(name, i);
			index[i] = policer_index(name);
			assert_in_range(index[i], 0, PROFILES + 3);
			assert_int_equal(used[index[i]]++, 0);
		}
		kit_begin();
		for (uint32_t i = round == 2 ? 0 : 1; i < PROFILES; i += round == 2 ? 1 : 2) {
			profile_name(name, i);
			kit_delete(API_POLICER, name);
		}
		assert_int_equal(kit_commit(), 0);
		profile_name(name, 1);
		assert_int_equal(policer_index(name), -1);
	}
	// A refused transaction leaves no slot taken.
	for (int i = 0; i < 20; i++) {
		struct api_policer bad = policer(0, 0);

		kit_begin();
		put_policer("other", 1000, 1000);
		kit_put(API_POLICER, "bad", &bad, sizeof(bad));
		assert_int_equal(kit_commit(), EINVAL);
		assert_int_equal(policer_index("other"), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_meters),
		cmocka_unit_test(nothing_taken),
		cmocka_unit_test(one_qer_of_two_pdrs),
		cmocka_unit_test(shared_between_sessions),
		cmocka_unit_test(the_pool),
		cmocka_unit_test(lines_of_one_worker),
		cmocka_unit_test(many_profiles),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
