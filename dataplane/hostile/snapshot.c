// SPDX-License-Identifier: Apache-2.0
// Counters as they were before, to be compared afterwards.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "hostile/snapshot.h"
#include <rte_cycles.h>
#include <string.h>

void snapshot_take(struct snapshot *b)
{
	memset(b, 0, sizeof(*b));
	for (uint16_t r = 0; r < reason_count(); r++)
		b->reason[r] = kit_reason_of(r);
	b->total = kit_totals();
	b->buffers = kit_buffers_in_use();
}

void snapshot_compare(const struct snapshot *b, const char *reason, uint64_t count)
{
	int wrong = 0;

	for (uint16_t r = 0; r < reason_count(); r++) {
		const char *name = reason_get(r)->name;
		uint64_t rose = kit_reason(name) - b->reason[r];

		if (rose == (reason != NULL && strcmp(name, reason) == 0 ? count : 0))
			continue;
		print_message("%s rose by %lu\n", name, rose);
		wrong = 1;
	}
	if (wrong)
		fail_msg("expected only %s, by %lu", reason ? reason : "(nothing)", count);
	assert_true(kit_balance());
	assert_int_equal(kit_totals().held, b->total.held);
	assert_int_equal(kit_buffers_in_use(), b->buffers);
}

uint32_t burst_of(uint32_t rate)
{
	uint64_t hz = rte_get_tsc_hz();

	return (uint32_t)(hz / 10 / (hz / rate + 1));
}
