// SPDX-License-Identifier: Apache-2.0
// Meters against the text of RFC 2697 and RFC 2698 in floating point, over a virtual second; remarking; refused
// profiles.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/packet.h"
#include "meter/meter.h"
#include "meter/rte_kit.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t clocks[] = {1000000000u, 1700000000u, 2300000123u, 4999999999u};

struct model {
	double c, e; // bytes in the committed bucket; in the excess or peak bucket
	double last; // seconds
};

// RFC 2697 §3: tokens go to C while there is room, then to E. `came`: the packet's colour, green in colour-blind mode.
static enum rte_color model_srtcm(
	struct model *m, const struct api_policer *p, double now, uint32_t length, enum rte_color came)
{
	double c = m->c + (now - m->last) * (double)p->cir;
	m->last = now;
	if (c > (double)p->cbs) {
		m->e = RTE_MIN(m->e + c - (double)p->cbs, (double)p->pbs);
		c = (double)p->cbs;
	}
	m->c = c;
	if (came == RTE_COLOR_GREEN && m->c >= length) {
		m->c -= length;
		return RTE_COLOR_GREEN;
	}
	if (came != RTE_COLOR_RED && m->e >= length) {
		m->e -= length;
		return RTE_COLOR_YELLOW;
	}
	return RTE_COLOR_RED;
}

// RFC 2698 §3: red when P is short, yellow when C is, else green; P pays for yellow and green.
static enum rte_color model_trtcm(
	struct model *m, const struct api_policer *p, double now, uint32_t length, enum rte_color came)
{
	m->c = RTE_MIN(m->c + (now - m->last) * (double)p->cir, (double)p->cbs);
	m->e = RTE_MIN(m->e + (now - m->last) * (double)p->pir, (double)p->pbs);
	m->last = now;
	if (came == RTE_COLOR_RED || m->e < length)
		return RTE_COLOR_RED;
	m->e -= length;
	if (came == RTE_COLOR_YELLOW || m->c < length)
		return RTE_COLOR_YELLOW;
	m->c -= length;
	return RTE_COLOR_GREEN;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

// Offers `load` bytes per second in packets of `size` (0: mixed), at random times, and compares bytes per colour.
static void compare_second(const struct api_policer *want, uint64_t hz, double load, uint32_t size)
{
	struct policer_profile p;
	struct meter s = {0};
	struct model m = {.c = (double)want->cbs, .e = (double)want->pbs};
	double bytes[RTE_COLORS] = {0}, expected[RTE_COLORS] = {0}, now = 0;
	uint64_t start = 123456789012345u;

	assert_int_equal(meter_compile(&p, want, hz), 0);
	meter_fill(&s, start);
	while (now < 1.0) {
		uint32_t length = size ? size : 64 + (uint32_t)(random_next() >> 32) % 1437;
		enum rte_color came = (enum rte_color)((random_next() >> 32) % RTE_COLORS);
		enum rte_color counts = want->colour_aware ? came : RTE_COLOR_GREEN;
		enum rte_color a = meter_colour(&p, &s, start + (uint64_t)(now * (double)hz), length, came);
		enum rte_color b = want->type == API_SRTCM ? model_srtcm(&m, want, now, length, counts)
							   : model_trtcm(&m, want, now, length, counts);
		bytes[a] += length;
		expected[b] += length;
		now += length / load * (double)(1 + (random_next() >> 32) % 199) / 100;
	}
	for (int i = 0; i < RTE_COLORS; i++) {
		double error = fabs(bytes[i] - expected[i]);
		if (error > 0.002 * expected[i] + 3000)
			fail_msg("type %u, %.0f bytes/s of %u offered to %lu: colour %d got %.0f, expected %.0f",
				want->type, load, size, want->cir, i, bytes[i], expected[i]);
	}
}

static void test_srtcm(void **unused)
{
	static const uint64_t rates[] = {125000, 1250000, 7654321, 12500000, 125000000};
	static const uint32_t sizes[] = {64, 128, 650, 1500, 0};
	for (uint32_t r = 0; r < RTE_DIM(rates); r++)
		for (uint32_t i = 0; i < RTE_DIM(sizes); i++) {
			struct api_policer want = {
				.type = API_SRTCM, .cir = rates[r], .cbs = 3000 + rates[r] / 100, .pbs = 5000};
			double load = (double)rates[r];
			compare_second(&want, clocks[i % RTE_DIM(clocks)], load * 0.5, sizes[i]);
			compare_second(&want, clocks[r % RTE_DIM(clocks)], load * 1.5, sizes[i]);
			want.colour_aware = 1;
			compare_second(&want, clocks[r % RTE_DIM(clocks)], load * 1.5, sizes[i]);
			want.colour_aware = 0;
			want.pbs = 0;
			compare_second(&want, clocks[(i + r) % RTE_DIM(clocks)], load * 4, sizes[i]);
		}
}

static void test_trtcm(void **unused)
{
	static const uint64_t rates[] = {125000, 1250000, 7654321, 12500000, 125000000};
	static const uint32_t sizes[] = {64, 128, 650, 1500, 0};
	for (uint32_t r = 0; r < RTE_DIM(rates); r++)
		for (uint32_t i = 0; i < RTE_DIM(sizes); i++) {
			struct api_policer want = {.type = API_TRTCM,
				.cir = rates[r],
				.pir = rates[r] * 3 / 2,
				.cbs = 3000 + rates[r] / 200,
				.pbs = 4000 + rates[r] / 100};
			double load = (double)rates[r];
			compare_second(&want, clocks[i % RTE_DIM(clocks)], load * 0.8, sizes[i]);
			compare_second(&want, clocks[r % RTE_DIM(clocks)], load * 1.3, sizes[i]);
			compare_second(&want, clocks[(i + r) % RTE_DIM(clocks)], load * 3, sizes[i]);
			want.colour_aware = 1;
			compare_second(&want, clocks[r % RTE_DIM(clocks)], load * 1.3, sizes[i]);
		}
}

// Costs of bytes are within 0.1 % for every rate up to 10^10 bytes per second; packets of 1,500 bytes to 10^11.
static void test_cost(void **unused)
{
	for (double rate = 1; rate < 1e11; rate *= 1.07)
		for (uint32_t i = 0; i < RTE_DIM(clocks); i++) {
			struct api_policer want = {.type = API_SRTCM, .cir = (uint64_t)rate, .cbs = 1};
			uint32_t length = rate < 1e10 ? 64 : 1500;
			struct policer_profile p;
			assert_int_equal(meter_compile(&p, &want, clocks[i]), 0);
			double units = (double)length / (double)want.cir * (double)(clocks[i] << METER_TIME_SHIFT);
			assert_true(fabs((double)meter_cost(&p.committed, length) / units - 1) < 0.001 + 0.5 / units);
		}
}

// A burst is as many packets as it has room for, to the byte, at any rate.
static void test_burst(void **unused)
{
	for (double rate = 1000; rate < 2e9; rate *= 3.3)
		for (uint32_t length = 20; length < 9000; length += 777) {
			struct api_policer want = {
				.type = API_SRTCM, .cir = (uint64_t)rate, .cbs = 10ull * length, .pbs = 3ull * length};
			struct policer_profile p;
			struct meter s;
			assert_int_equal(meter_compile(&p, &want, clocks[2]), 0);
			meter_fill(&s, 1000);
			for (int i = 0; i < 15; i++)
				assert_int_equal(
					meter_colour(&p, &s, 1000, length, RTE_COLOR_GREEN), i < 10   ? RTE_COLOR_GREEN
											     : i < 13 ? RTE_COLOR_YELLOW
												      : RTE_COLOR_RED);
			meter_fill(&s, 1000);
			assert_int_equal(meter_colour(&p, &s, 1000, 10 * length + 1 + length / 64, RTE_COLOR_GREEN),
				RTE_COLOR_RED);
		}
}

// A profile of the other type on the same buckets: the new rate holds from there.
static void test_type_change(void **unused)
{
	struct api_policer one = {.type = API_SRTCM, .cir = 1000000, .cbs = 10000, .pbs = 10000}, two = one;
	struct policer_profile p, q;
	struct rule_state s = {.credit = 7, .taken = 8};
	uint64_t hz = 2300000000u, now = 1000 * hz;

	two.type = API_TRTCM;
	two.pir = 2000000;
	assert_int_equal(meter_compile(&p, &one, hz), 0);
	assert_int_equal(meter_compile(&q, &two, hz), 0);
	meter_fill(&s.meter, now);
	for (int round = 0; round < 4; round++) {
		uint64_t passed = 0;
		for (uint64_t i = 0; i < 20000; i++, now += hz / 10000)
			if (meter_colour(round & 1 ? &q : &p, &s.meter, now, 1000, RTE_COLOR_GREEN) != RTE_COLOR_RED)
				passed += 1000;
		// Two seconds at the rate that passes, and the bursts.
		double expected = round & 1 ? 4000000 : 2000000;
		assert_true(fabs((double)passed - expected) < 25000);
	}
	assert_int_equal(s.credit + s.taken, 15);
}

// The meter passes the same as rte_meter: bytes of each colour agree within a few packets. (Individual packets may
// differ after one at the bucket's exact edge.)
static void same_as_rte(const struct api_policer *want)
{
	const uint64_t hz = 2300000000;
	struct policer_profile p;
	struct meter a;
	union rte_check_state b = {0};
	uint64_t now = hz, random = 1;
	int64_t bytes[RTE_COLORS] = {0}; // ours less rte_meter's

	assert_int_equal(meter_compile(&p, want, hz), 0);
	struct rte_check rte = rte_check_of(want, hz);
	meter_fill(&a, now);
	rte_check_fill(&rte, &b, now);
	for (uint32_t i = 0; i < 200000; i++) {
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		uint32_t length = 64 + (uint32_t)(random >> 40) % 1437;
		now += (random >> 33) % 60000;
		bytes[meter_colour(&p, &a, now, length, RTE_COLOR_GREEN)] += length;
		bytes[rte_check_colour(&rte, &b, now, length)] -= length;
	}
	for (int i = 0; i < RTE_COLORS; i++)
		assert_in_range(llabs(bytes[i]), 0, 30000); // of 150 MB
	// Idle for ten years: the buckets are full, not wrapped.
	assert_int_equal(meter_colour(&p, &a, now + hz * 86400 * 3652 / 64, 1500, RTE_COLOR_GREEN), RTE_COLOR_GREEN);
}

static void test_same_as_rte(void **unused)
{
	const struct api_policer list[] = {
		{.type = API_SRTCM, .cir = 12500000, .cbs = 20000, .pbs = 40000},
		{.type = API_TRTCM, .cir = 12500000, .pir = 50000000, .cbs = 20000, .pbs = 40000},
		{.type = API_TRTCM, .cir = 1000, .pir = 125000000000, .cbs = 3000, .pbs = 9000},
	};

	for (unsigned i = 0; i < RTE_DIM(list); i++)
		same_as_rte(&list[i]);
}

static void test_check(void **unused)
{
	struct api_policer good = {.type = API_TRTCM, .cir = 10, .pir = 20, .cbs = 1500, .pbs = 1500}, bad;
	struct policer_profile p;
	const uint64_t hz = 2000000000u;

	assert_int_equal(meter_compile(&p, &good, hz), 0);
	bad = good, bad.type = 3;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.pir = 5;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.cir = 0;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.cir = bad.pir = UINT64_MAX;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.pbs = UINT64_MAX;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.action[2] = 3;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = good, bad.dscp[1] = 64;
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = (struct api_policer){.type = API_SRTCM, .cir = 100};
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
	bad = (struct api_policer){.type = API_SRTCM, .cbs = 100};
	assert_int_equal(meter_compile(&p, &bad, hz), EINVAL);
}

static void test_remark(void **unused)
{
	for (uint32_t i = 0; i < 65536; i++) {
		uint8_t ip[20] = {0x45, (uint8_t)i, 0, 100, (uint8_t)(i >> 3), (uint8_t)(i * 7), 0, 0, 64, 17};
		uint8_t dscp = (uint8_t)(i >> 10), ecn = ip[1] & 3;
		uint64_t noise = random_next();
		memcpy(ip + 12, &noise, 8);
		ip4_checksum_set(ip);
		ip_dscp_set(4, ip, dscp);
		assert_int_equal(ip[1], dscp << 2 | ecn);
		assert_true(ip4_checksum_ok(ip));
		uint8_t six[4] = {0x60 | (i & 15), (uint8_t)(i >> 4), 0xaa, 0x55}, before = six[1];
		ip_dscp_set(6, six, dscp);
		uint32_t traffic_class = (six[0] & 15u) << 4 | six[1] >> 4;
		assert_int_equal(six[0] >> 4, 6);
		assert_int_equal(traffic_class >> 2, dscp);
		assert_int_equal(six[1] & 0x3f, before & 0x3f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_srtcm),
		cmocka_unit_test(test_trtcm),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_type_change),
		cmocka_unit_test(test_same_as_rte),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_remark),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
