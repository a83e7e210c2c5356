// SPDX-License-Identifier: Apache-2.0
// Runs of a profile against models of gateways, links and machines: what is found, what is repeated, and how a run ends
// that cannot go on.
#include "traffic/run/run_kit.h"

// ---- fixed rate -----------------------------------------------------------------------------------------------------

static void fixed(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	go(b);
	assert_true(b->r->complete && b->status == 0);
	assert_string_equal(b->why, "good");
	assert_int_equal(b->r->trials, 4);
	assert_int_equal(b->r->trial[0].purpose, TRIAL_WARMUP);
	assert_true(b->r->trial[0].trial.asked.rate == 1e5 && b->r->trial[0].trial.asked.seconds == 0.2);
	assert_int_equal(b->r->trial[1].purpose, TRIAL_FIXED);
	assert_true(b->r->trial[1].trial.asked.rate == 1e6 && b->r->trial[1].trial.asked.seconds == 10);
	assert_int_equal(b->r->trial[3].purpose, TRIAL_LATENCY);
	assert_true(b->r->trial[3].trial.asked.rate == 0.9e6 && b->r->trial[3].part == 0.9);
	assert_true(b->r->reference_pps == 1e6 && b->r->reference_goal == -1);
	assert_ptr_equal(result_main_trial(b->r), &b->r->trial[1]);
	done(b);
}

// Bits per second are those of all streams with a share, by their mean size: 200 bytes.
static void fixed_bits(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	b->p->run.rate = (struct rate){.unit = RATE_BIT, .value = 1.6e9};
	assert_true(run_mean_bytes(b->p) == 200);
	go(b);
	assert_true(b->r->trial[1].trial.asked.rate == 1e6);
	done(b);
}

static void fixed_with_loss(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	b->p->run.rate.value = 3.1e6;
	go(b);
	assert_true(b->r->complete && b->status == 1);
	assert_non_null(strstr(b->why, "packets were lost"));
	done(b);

	// As fast as possible: latency refers to what arrived.
	b = bench(RUN_FIXED);
	b->p->run.rate = (struct rate){.unit = RATE_MAX};
	go(b);
	assert_true(b->status == 1);
	assert_true(isinf(b->r->trial[1].trial.asked.rate));
	assert_true(fabs(b->r->reference_pps - 3e6) < 10);
	assert_true(fabs(b->r->trial[2].trial.asked.rate - 3e5) < 1);
	done(b);
}

static void wrong_contents(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	b->m.wrong = 1e-4;
	go(b);
	// No loss, but no good result either.
	assert_true(b->r->complete && b->r->trial[1].trial.lost == 0 && b->status == 1);
	assert_non_null(strstr(b->why, "wrong contents"));
	done(b);
}

// ---- disturbed trials -----------------------------------------------------------------------------------------------

static void disturbed_repeated(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	b->m.disturb_from = 2;
	b->m.disturb_to = 3;
	b->m.disturb_loss = 0.1;
	go(b);
	assert_true(b->status == 0);
	assert_int_equal(count(b->r, TRIAL_FIXED, false), 2);
	assert_int_equal(count(b->r, TRIAL_FIXED, true), 1);
	assert_int_equal(b->r->discarded, 2);
	done(b);

	// Without a loss they are as good as any.
	b = bench(RUN_FIXED);
	b->m.disturb_from = 1;
	b->m.disturb_to = 100;
	go(b);
	assert_true(b->status == 0 && b->r->discarded == 0 && b->r->trials == 4);
	done(b);

	// After three repetitions a trial counts, with its mark.
	b = bench(RUN_FIXED);
	b->m.disturb_from = 2;
	b->m.disturb_to = 100;
	b->m.disturb_loss = 0.1;
	go(b);
	assert_true(b->status == 1);
	assert_int_equal(count(b->r, TRIAL_FIXED, false), 3);
	assert_int_equal(count(b->r, TRIAL_FIXED, true), 1);
	assert_int_equal(result_main_trial(b->r)->trial.disturbed, DISTURBED_STEAL);
	done(b);
}

// A tester that falls behind at a rate that it has managed before is no limit.
static void tester_hindered(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->p->run.search_max = (struct rate){.unit = RATE_PPS, .value = 10e6};
	b->m.late = 4;
	go(b);
	assert_true(b->status == 0 && b->r->discarded == 1);
	assert_false(b->r->search.result[0].tester_limited);
	done(b);
}

// ---- search ---------------------------------------------------------------------------------------------------------

static void check_found(const struct bench *b, uint32_t goal, double limit)
{
	const struct search_result *found = &b->r->search.result[goal];

	assert_true(found->found && b->r->confirmed[goal]);
	assert_true(found->lower <= limit * (1 + 1e-6) && found->upper >= limit * (1 - 1e-6));
	assert_true((found->upper - found->lower) / found->upper <= 0.005 * (1 + 1e-6));
}

static void searched(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	go(b);
	assert_int_equal(b->status, 0);
	check_found(b, 0, 3e6);
	check_found(b, 1, 3e6 / 0.99);
	// The maximum was not given, so it was measured; the warm-up knew none.
	assert_int_equal(b->r->trial[1].purpose, TRIAL_MAXIMUM);
	assert_true(isinf(b->r->trial[1].trial.asked.rate));
	assert_true(b->r->maximum_pps == 20e6 && b->r->search.max == 26e6 && b->r->search.min == 1000);
	assert_true(b->r->trial[0].trial.asked.rate == 1e4);
	// Latency at parts of the loosest goal's rate.
	assert_true(b->r->reference_goal == 1 && b->r->reference_pps == b->r->search.result[1].lower);
	assert_int_equal(b->r->latency, 2);
	assert_int_equal(b->r->confirms, count(b->r, TRIAL_CONFIRM, true));
	assert_true(b->m.longest == 2 && b->m.shortest == 0.2);
	assert_true(b->r->trials < 50);
	assert_int_equal(result_main_trial(b->r)->purpose, TRIAL_CONFIRM);
	done(b);
}

// In the longer trials for confirmation the gateway does only 98 %: the search goes on below.
static void confirmation(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.weak_seconds = 2;
	b->m.weak = 0.98;
	go(b);
	assert_string_equal(b->why, "good");
	assert_true(b->r->confirms > 2 && b->r->confirms <= CONFIRM_TRIALS);
	assert_true(b->r->confirmed[0] && b->r->search.result[0].lower <= 3e6 * 0.98);
	assert_true(b->r->search.result[0].lower >= 3e6 * 0.98 * 0.985);
	done(b);

	// When nothing holds, that is the result, after a bounded number of trials.
	b = bench(RUN_SEARCH);
	b->m.weak_seconds = 2;
	b->m.weak = 1e-6;
	go(b);
	assert_true(b->status != 0 && !b->r->confirmed[0]);
	assert_true(b->r->confirms > 1 && b->r->confirms <= CONFIRM_TRIALS);
	assert_true(b->r->trials < SEARCH_TRIALS + CONFIRM_TRIALS + 10);
	done(b);

	b = bench(RUN_SEARCH);
	b->p->run.confirm_seconds = 0;
	go(b);
	assert_true(b->status == 0 && b->r->confirms == 0 && !b->r->confirmed[0]);
	done(b);
}

static void limited_by_tester(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.limit = 30e6;
	go(b);
	const struct search_result *found = &b->r->search.result[0];

	assert_true(b->status == 0 && found->tester_limited && found->lower > 19e6 && found->lower <= 20e6 / 0.995);
	done(b);

	// A maximum that the profile gives is no limit of the tester.
	b = bench(RUN_SEARCH);
	b->m.limit = 30e6;
	b->p->run.search_max = (struct rate){.unit = RATE_PPS, .value = 10e6};
	go(b);
	assert_true(b->r->search.result[0].at_maximum && !b->r->search.result[0].tester_limited);
	assert_true(b->r->trial[0].trial.asked.rate == 1e6 && b->r->maximum_pps == 0);
	done(b);
}

static void search_without_result(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->p->run.search_min = (struct rate){.unit = RATE_PPS, .value = 4e6};
	go(b);
	assert_true(b->r->complete && b->status == 1 && b->r->latency == 0);
	assert_non_null(strstr(b->why, "no rate has a loss of at most 0 %"));
	done(b);

	b = bench(RUN_SEARCH);
	b->p->run.search_min = (struct rate){.unit = RATE_PPS, .value = 30e6};
	go(b);
	assert_true(b->status == 2);
	assert_non_null(strstr(b->why, "the search has no room"));
	done(b);
}

// All trials of the search are disturbed and lose: the number of trials stays bounded.
static void search_always_disturbed(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.disturb_from = 2;
	b->m.disturb_to = UINT32_MAX;
	b->m.disturb_loss = 0.05;
	go(b);
	assert_int_equal(b->status, 1);
	assert_true(b->r->discarded <= RUN_DISCARDS && b->r->discarded > 10);
	assert_true(b->r->search.result[0].disturbed);
	assert_true(b->r->trials < RUN_DISCARDS + SEARCH_TRIALS);
	done(b);
}

static void wrong_gateway(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.wrong = 0.25;
	go(b);
	assert_int_equal(b->status, 2);
	assert_int_equal(b->m.trials, 2);
	assert_string_equal(b->why,
		"25 % of the packets that arrived are wrong, in two trials one after the other: the gateway does not "
		"do what the "
		"profile expects; the first of stream \"up\": header, byte 46 (gtpu.teid), flow 17");
	done(b);

	// Half a per cent does not stop the search, but spoils the verdict.
	b = bench(RUN_SEARCH);
	b->m.wrong = 0.005;
	go(b);
	assert_true(b->r->complete && b->status == 1);
	check_found(b, 0, 3e6);
	done(b);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

static void steps(void **state)
{
	struct bench *b = bench(RUN_STEPS);

	b->p->run.steps = 3;
	b->p->run.step[0] = (struct rate){.unit = RATE_PART, .value = 0.5};
	b->p->run.step[1] = (struct rate){.unit = RATE_PART, .value = 1.2};
	b->p->run.step[2] = (struct rate){.unit = RATE_PPS, .value = 4e6};
	b->p->run.seconds = 1;
	b->p->stream[2].expect.tolerance = 0.3; // the model drops of all streams alike
	go(b);
	// The last one loses, which steps are for.
	assert_int_equal(b->status, 0);
	assert_int_equal(b->r->steps, 3);
	assert_true(b->r->trial[1].trial.asked.rate == 0.5e6 && b->r->trial[1].part == 0.5);
	assert_true(b->r->trial[2].trial.asked.rate == 1.2e6);
	assert_true(b->r->trial[3].trial.asked.rate == 4e6 && b->r->trial[3].trial.lost > 0);
	done(b);

	// Parts of what the tester offers at most.
	b = bench(RUN_STEPS);
	b->p->run.rate = (struct rate){.unit = RATE_MAX};
	b->p->run.steps = 1;
	b->p->run.step[0] = (struct rate){.unit = RATE_PART, .value = 0.1};
	go(b);
	assert_int_equal(b->r->trial[1].purpose, TRIAL_MAXIMUM);
	assert_true(b->r->trial[2].trial.asked.rate == 2e6);
	done(b);
}

// ---- nothing arrives ------------------------------------------------------------------------------------------------

static void dead_link(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.dead = 2;
	go(b);
	assert_int_equal(b->status, 2);
	assert_int_equal(b->m.trials, 2);
	assert_true(b->m.longest == 2);
	assert_string_equal(b->why,
		"stream \"down\": nothing arrives: 5000 packets were sent at port \"core\" in 2.0 s, none came to "
		"port \"access\"; the links are up: look at the gateway's drops, addresses and sessions");
	done(b);

	// It comes to life while addresses are resolved.
	b = bench(RUN_SEARCH);
	b->m.dead = 7;
	b->m.dead_trials = 1;
	go(b);
	assert_int_equal(b->status, 0);
	assert_int_equal(count(b->r, TRIAL_WARMUP, true), 2);
	done(b);

	b = bench(RUN_FIXED);
	b->m.dead = 7;
	b->m.other_port = true;
	b->m.foreign = 12;
	b->p->run.warmup = 0; // then the first trial shows it
	b->p->run.seconds = 1;
	go(b);
	assert_int_equal(b->status, 2);
	assert_non_null(strstr(b->why, "arrived at another port than \"core\""));
	assert_non_null(strstr(b->why, "12 frames came that are nobody's"));
	assert_non_null(strstr(b->why, "2 more streams are silent"));
	done(b);

	b = bench(RUN_FIXED);
	b->m.dead = 1;
	b->m.refuses = true;
	go(b);
	assert_non_null(strstr(b->why, "nobody reads at the other end of \"access\""));
	done(b);
}

// A stream that must not come through is not missed.
static void meant_to_be_silent(void **state)
{
	struct bench *b = bench(RUN_FIXED);

	b->p->stream[2].expect = (struct profile_expect){.given = true, .loss_max = 1};
	b->m.dead = 4;
	go(b);
	assert_int_equal(b->status, 0);
	done(b);
}

// ---- early ends -----------------------------------------------------------------------------------------------------

static void interrupted(void **state)
{
	for (uint32_t stop = 1; stop < 18; stop++) {
		struct bench *b = bench(stop % 2 ? RUN_SEARCH : RUN_FIXED);

		b->m.stop_at = stop % 2 ? stop : stop % 8 / 2 + 1;
		go(b);
		assert_true(b->r->interrupted && !b->r->complete && b->status == 2);
		assert_string_equal(b->why, "interrupted");
		// What was measured is there, the last trial too, but it does not count.
		assert_int_equal(b->r->trials, b->m.stop_at);
		assert_false(b->r->trial[b->r->trials - 1].used);
		assert_true(b->r->trial[b->r->trials - 1].trial.sent > 0);
		if (stop == 17) {
			assert_true(b->r->searched && b->r->search.result[0].found);
			assert_true(b->r->search.result[0].lower <= 3e6 * (1 + 1e-6));
		}
		done(b);
	}
}

static void link_goes_down(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->m.fail_at = 5;
	b->heard.ended = 0;
	struct trial_source source = {.trial = model_trial, .arg = &b->m, .tsc_hz = TSC_HZ};

	assert_int_equal(run_profile(b->p, &source, NULL, NULL, b->r), -1);
	assert_int_equal(b->r->trials, 4);
	assert_string_equal(b->r->error, "the link went down: core");
	assert_int_equal(result_status(b->p, b->r, TSC_HZ, b->why, sizeof(b->why)), 2);
	done(b);
}

static void nothing_to_do(void **state)
{
	struct bench *b = bench(RUN_SEARCH);

	b->p->stream[0].expect.given = b->p->stream[1].expect.given = true;
	b->p->stream[0].expect.loss_max = b->p->stream[1].expect.loss_max = -1;
	go(b);
	assert_non_null(strstr(b->why, "a search needs a stream with a share, and one without `expect`"));
	done(b);

	b = bench(RUN_FIXED);
	b->p->run.rate.unit = RATE_NONE;
	go(b);
	assert_true(b->status == 2 && b->m.trials == 0);
	assert_string_equal(b->why, "the profile gives no rate for the streams with a share");
	done(b);

	b = bench(RUN_FIXED);
	b->m.tester = 0; // not one packet leaves
	b->p->run.warmup = 0;
	b->p->run.mode = RUN_SEARCH;
	go(b);
	assert_string_equal(b->why, "the ports took no packet at all when as many as possible were sent");
	done(b);
}

// ---- expectations ---------------------------------------------------------------------------------------------------

static void expectations(void **state)
{
	struct bench *b = bench(RUN_FIXED);
	struct profile_expect *e = &b->p->stream[2].expect;

	// 1,000 packets of 482 bytes per second are within 1 % of what is expected, and 1.1 % more are not.
	go(b);
	assert_int_equal(b->status, 0);
	assert_true(expectation_judged(b->p, 2, TRIAL_LATENCY) && !expectation_judged(b->p, 2, TRIAL_SEARCH));
	assert_false(expectation_judged(b->p, 0, TRIAL_FIXED));

	const struct trial *t = &result_main_trial(b->r)->trial;
	char text[SENTENCE_BYTES];

	e->rate.value *= 1.0101;
	assert_true(stream_expectation(b->p, 2, t, TSC_HZ, text, sizeof(text)));
	e->rate.value *= 1.001;
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 1);
	assert_string_equal(
		text, "stream \"policed\": received 3.856 Mbit/s (layer 3), expected 3.89884 Mbit/s within 1 %");
	assert_int_equal(result_status(b->p, b->r, TSC_HZ, b->why, sizeof(b->why)), 1);
	assert_string_equal(b->why, text);

	e->rate = (struct rate){.unit = RATE_PPS, .value = 1000};
	e->tolerance = 0;
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 0);
	e->rate = (struct rate){.unit = RATE_PART, .value = 0.5};
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "received 100 % of what was sent, expected 50 %"));
	e->rate.unit = RATE_NONE;
	// The latencies of the model are 10 to 20 us.
	e->p99_us_max = 19;
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "expected 19 us"));
	e->p99_us_max = 21;
	e->loss_max = 0;
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 0);
	t->stream[2].lost = 1;
	assert_int_equal(trial_expectations(b->p, t, TSC_HZ, text, sizeof(text)), 1);
	assert_string_equal(text, "stream \"policed\": lost 0.01 % (1 of 10000), expected at most 0 %");
	done(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed),
		cmocka_unit_test(fixed_bits),
		cmocka_unit_test(fixed_with_loss),
		cmocka_unit_test(wrong_contents),
		cmocka_unit_test(disturbed_repeated),
		cmocka_unit_test(tester_hindered),
		cmocka_unit_test(searched),
		cmocka_unit_test(confirmation),
		cmocka_unit_test(limited_by_tester),
		cmocka_unit_test(search_without_result),
		cmocka_unit_test(search_always_disturbed),
		cmocka_unit_test(wrong_gateway),
		cmocka_unit_test(steps),
		cmocka_unit_test(dead_link),
		cmocka_unit_test(meant_to_be_silent),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(link_goes_down),
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(expectations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
