// SPDX-License-Identifier: Apache-2.0
// Pacers: how many packets are due, what a late one skips, and which have fallen behind.
#include "traffic/engine/engine.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void pacers_are_exact(void **state)
{
	const double hz = 2.3e9;
	static const double rates[] = {1, 999, 1e6, 14880952, 199e6};

	for (size_t k = 0; k < 5; k++) {
		struct pacer p = {
			.begun = 1000, .step = (uint64_t)(rates[k] / hz * 281474976710656.0), .may_catch_up = 1 << 20};
		uint64_t sent = 0, end = 1000 + (uint64_t)(2 * hz / (rates[k] > 1e6 ? 100 : 1));

		assert_int_equal(pacer_due(&p, 999), 0);
		for (uint64_t now = 1000; now <= end; now += (end - 1000) / 1000000) {
			uint32_t due = pacer_due(&p, now);

			p.sent += due;
			sent += due;
		}
		double expected = rates[k] * (double)(end - 1000) / hz;

		assert_true((double)sent >= expected - 2 - expected * 1e-5 && (double)sent <= expected + 1);
		assert_int_equal(p.late, 0);
	}
}

static void late_pacers_give_up(void **state)
{
	struct pacer p = {.step = 1ull << 38, .may_catch_up = 100}; // a packet in 1,024 ticks

	assert_int_equal(pacer_due(&p, 1024 * 1000), BURST);
	assert_int_equal(p.late, 900);
	p.sent += BURST;
	assert_int_equal(pacer_due(&p, 1024 * 1000), 100 - BURST);
	p.step = 0;
	assert_int_equal(pacer_due(&p, UINT64_MAX), 0);
	p.step = PACER_UNLIMITED;
	assert_int_equal(pacer_due(&p, 1), BURST);
}

// A port that owes a twentieth is late, whatever others do; packets due within a moment of the end do not count.
static void who_fell_behind_is_reported(void **state)
{
	struct pacer p = {.begun = 5000, .step = 1ull << 38}; // a packet in 1,024 ticks

	assert_int_equal(pacer_target(&p, 5000), 0);
	assert_int_equal(pacer_target(&p, 4000), 0);
	assert_int_equal(pacer_target(&p, 5000 + 1024 * 1000), 1000);
	p.sent = 1000;
	assert_false(pacer_fell_behind(&p, 5000 + 1024 * 1000, 0.995));
	p.late = 50;
	assert_true(pacer_fell_behind(&p, 5000 + 1024 * 1000, 0.995));
	assert_false(pacer_fell_behind(&p, 5000 + 1024 * 950, 0.995));
	// One of a few is rounding.
	p.sent = 9;
	p.late = 0;
	assert_false(pacer_fell_behind(&p, 5000 + 1024 * 10, 0.995));
	// A clock that goes back owes nothing.
	p.may_catch_up = 100;
	assert_int_equal(pacer_due(&p, 5000 + 1024 * 5), 0);
	assert_int_equal(p.late, 0);
	p.step = PACER_UNLIMITED;
	assert_false(pacer_fell_behind(&p, UINT64_MAX, 0.995));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pacers_are_exact),
		cmocka_unit_test(late_pacers_give_up),
		cmocka_unit_test(who_fell_behind_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
