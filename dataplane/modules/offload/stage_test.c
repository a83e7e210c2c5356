// SPDX-License-Identifier: Apache-2.0
// Devices and a stage that says which packets it wants: none goes round it, in the commit by which it wants them.
#include "offload/fixture_test.h"
#include "session/stage_fixture.h"

static int setup(void **state)
{
	stage.wants = STAGE_NONE;
	start_fixture(NULL);
	set_offload(API_OFFLOAD_AUTO);
	return 0;
}

static int is_taken(const struct frame *f)
{
	return recorder_receive(RAN, f->at, f->length) == 1;
}

static void wanted_packets_come(void **state)
{
	static struct frame u, v;

	put("u", upf_session(0x21));
	put("v", upf_session(0x22));
	uplink_of(&u, "10.45.0.33", FAR4, 0x121, 9);
	uplink_of(&v, "10.45.0.34", FAR4, 0x122, 9);
	teach("ran", &u);
	teach("ran", &v);
	assert_true(is_taken(&u) && is_taken(&v));
	want(STAGE_ALL, NULL);
	assert_int_equal(recorder.flows, 0);
	teach("ran", &u);
	teach("ran", &v);
	assert_int_equal(recorder.flows, 0);
	want(STAGE_NONE, NULL);
	settle_entries();
	assert_true(is_taken(&u) && is_taken(&v));
	want(STAGE_SOME, "u");
	assert_true(!is_taken(&u) && is_taken(&v));
	teach("ran", &u);
	assert_true(!is_taken(&u) && is_taken(&v));
	want(STAGE_NONE, NULL);
	teach("ran", &u);
	assert_true(is_taken(&u) && is_taken(&v));
	gone("u");
	gone("v");
	nothing_left();
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(wanted_packets_come)};

	return cmocka_run_group_tests(all, setup, NULL);
}
