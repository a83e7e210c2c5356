// SPDX-License-Identifier: Apache-2.0
// Drop and punt counters before and after, for cmocka tests: one reason rose, and no other.
//
//   struct kit_reasons before = kit_reasons();
//   kit_send(...), kit_run();
//   kit_only_rose(&before, "gtpu-length", 1);
#ifndef TESTKIT_REASONS_H
#define TESTKIT_REASONS_H

#include "core/engine.h"
#include "core/node.h"
#include "testkit/testkit.h"
#include <string.h>

struct kit_reasons {
	uint64_t count[MAX_REASONS];
};

static inline struct kit_reasons kit_reasons(void)
{
	struct kit_reasons r = {0};

	for (uint16_t i = 0; i < reason_count(); i++)
		r.count[i] = kit_reason_of(i);
	return r;
}

static inline void kit_reasons_check(
	const struct kit_reasons *before, const char *reason, uint64_t count, int punts_too)
{
	uint64_t own = kit_reason(reason); // an unknown name ends the program
	int wrong = 0;

	for (uint16_t i = 0; i < reason_count(); i++) {
		const char *name = reason_get(i)->name;
		uint64_t now = kit_reason_of(i), expected = strcmp(name, reason) == 0 ? count : 0;

		if (now == before->count[i] + expected || (!punts_too && reason_get(i)->kind == REASON_PUNT))
			continue;
		print_error("%s rose by %lu\n", name, now - before->count[i]);
		wrong = 1;
	}
	if (wrong)
		fail_msg("only %s should have risen, by %lu (it stands at %lu)", reason, count, own);
}

// `reason` rose by `count` since `before`, and no other drop or punt reason did. Fails the test with the names of those
// that did.
static inline void kit_only_rose(const struct kit_reasons *before, const char *reason, uint64_t count)
{
	kit_reasons_check(before, reason, count, 1);
}

// The same for drop reasons; packets may also have gone to the host path.
static inline void kit_only_dropped(const struct kit_reasons *before, const char *reason, uint64_t count)
{
	kit_reasons_check(before, reason, count, 0);
}

#endif
