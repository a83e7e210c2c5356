// SPDX-License-Identifier: Apache-2.0
// End Markers of a transaction that moves more tunnels than may wait: waiting ones leave in time, the rest is counted.
#include "core/control.h"
#include "gtpu/gtpu.h"
#include "rule/rule.h"
#include "session/mobile_fixture.h"
#include "testkit/reasons.h"

#define WAITING 65536u // as gtpu_end_marker.c has it
#define INBOX 512u

static void more_than_may_wait(void **state)
{
	const struct rule old = {.outer = API_OUTER_GTPU,
		.flags = RULE_FORWARD,
		.action = action_tunnel(0, 0x200, 0xff),
		.urr = RULE_NONE};
	struct kit_reasons before = kit_reasons();
	uint32_t markers = INBOX / 2 + WAITING + 7, left = 0;

	for (uint32_t i = 0; i < markers; i++)
		gtpu_end_marker(&old); // path 0 is gnb
	kit_only_rose(&before, "gtpu-end-marker-lost", 7);
	for (int i = 0; i < 1000 && left < markers - 7; i++) {
		kit_clear();
		kit_advance(1000);
		left += kit_count("ran");
	}
	assert_int_equal(left, markers - 7);
	kit_only_rose(&before, "gtpu-end-marker-lost", 7);
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.packet_buffers = 98304;
	e.max_handed_over = INBOX;
	fixture_start(&e);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(more_than_may_wait)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
