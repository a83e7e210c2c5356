// SPDX-License-Identifier: Apache-2.0
// Properties of any machine: counts grow, parts are parts, and the clock is a real core's.
#include "traffic/engine/machine.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void counts_grow(void **state)
{
	struct machine_sample all, again, first;
	const uint16_t cpu[1] = {0};
	pid_t tid = gettid();

	machine_sample(NULL, 0, &tid, 1, &all);
	machine_sample(cpu, 1, NULL, 0, &first);
	machine_sample(NULL, 0, &tid, 1, &again);
	assert_true(all.total > 0 && all.steal <= all.total);
	assert_true(again.total >= all.total && again.steal >= all.steal && again.switches >= all.switches);
	// One CPU of them is a part of all, and without threads there are no switches.
	assert_true(first.total > 0 && first.total <= again.total);
	assert_true(first.switches == 0);
}

static void what_is_not_there(void **state)
{
	struct machine_sample s;
	const uint16_t cpu[1] = {65535};
	pid_t tid = 0;

	machine_sample(cpu, 1, &tid, 1, &s);
	assert_true(s.total == 0 && s.steal == 0 && s.switches == 0);
}

static void steal_is_a_part(void **state)
{
	struct machine_sample a = {.steal = 10, .total = 1000}, b = {.steal = 15, .total = 2000};

	assert_true(machine_steal(&a, &b) == 0.005);
	assert_true(machine_steal(&a, &a) == 0);
	assert_true(machine_steal(&b, &a) == 0);
}

static void clock_of_a_core(void **state)
{
	double ghz = machine_clock_ghz(2.5e9);

	// In units of a TSC that is taken for 2.5 GHz; a wrong chain would be off by its length.
	assert_true(ghz > 0.3 && ghz < 12);
	// The estimate is in the TSC's unit.
	assert_true(machine_clock_ghz(0) == 0);
}

static void description(void **state)
{
	char cpu[64], kernel[64], tiny[4];

	machine_describe(cpu, sizeof(cpu), kernel, sizeof(kernel));
	assert_true(strlen(cpu) > 0 && !strchr(cpu, '\n'));
	assert_true(kernel[0] >= '1' && kernel[0] <= '9');
	machine_describe(tiny, sizeof(tiny), kernel, sizeof(kernel));
	assert_int_equal(strlen(tiny), 3);
	assert_memory_equal(tiny, cpu, 3);
}

static void round_trip(void **state)
{
	uint16_t cpu[2], n = 0;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (uint16_t i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	assert_true(machine_round_trip_ns(cpu[0], cpu[0], 2.5e9) == 0);
	assert_true(machine_round_trip_ns(cpu[0], 1000, 2.5e9) == 0); // there is no such CPU
	if (n == 2) {
		double ns = machine_round_trip_ns(cpu[0], cpu[1], 2.5e9);

		assert_true(ns == 0 || (ns > 1 && ns < 1e5)); // 0: a machine too busy to answer
	}
	// The caller keeps its CPUs.
	cpu_set_t after;

	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&set, &after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_grow),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(steal_is_a_part),
		cmocka_unit_test(clock_of_a_core),
		cmocka_unit_test(description),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
