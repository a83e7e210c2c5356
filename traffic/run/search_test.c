// SPDX-License-Identifier: Apache-2.0
// The search against RFC 9971's own example, and against models of gateways whose limit is known.
#include "traffic/run/search.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct search *s, double rate, double seconds, double loss, double received, bool limited)
{
	struct search_trial t = {.rate = rate,
		.seconds = seconds,
		.loss_ratio = loss,
		.received_pps = received,
		.tester_limited = limited};

	search_add(s, &t);
}

// ---- RFC 9971 appendix C --------------------------------------------------------------------------------------------

#define EXAMPLE_RATE 1e6
// The four goals of appendix C: "RFC2544", "TST009", "1s final", "20% exceed".
static const struct search_goal example_goal[4] = {
	{.loss = 0, .exceed = 0, .final_seconds = 60, .sum_seconds = 60},
	{.loss = 0, .exceed = 0.5, .final_seconds = 60, .sum_seconds = 120},
	{.loss = 0.005, .exceed = 0.5, .final_seconds = 1, .sum_seconds = 120},
	{.loss = 0.005, .exceed = 0.2, .final_seconds = 60, .sum_seconds = 60},
};

static void example_add(struct search *s, uint32_t times, double seconds, double loss)
{
	for (uint32_t i = 0; i < times; i++)
		add(s, EXAMPLE_RATE, seconds, loss, EXAMPLE_RATE * (1 - loss), false);
}

static void example_expect(const struct search *s, const enum bound expected[4])
{
	for (uint32_t i = 0; i < 4; i++) {
		const struct search_goal *g = &example_goal[i];
		struct search_sums sums = search_sums(s, EXAMPLE_RATE, g->loss, g->final_seconds);

		assert_int_equal(search_classify(&sums, g->sum_seconds, g->exceed), expected[i]);
	}
}

static void rfc9971_example(void **state)
{
	static const enum bound U = BOUND_UPPER, L = BOUND_LOWER, N = BOUND_UNDECIDED;
	struct search *s = calloc(1, sizeof(*s));

	example_expect(s, (enum bound[]){N, N, N, N});
	example_add(s, 59, 1, 0); // point 1, "first short good"
	example_expect(s, (enum bound[]){N, N, N, N});
	example_add(s, 1, 1, 0.01); // 2, "first short bad"
	example_expect(s, (enum bound[]){U, N, N, N});
	example_add(s, 59, 1, 0.01); // 3, "last short bad"
	example_expect(s, (enum bound[]){U, N, N, U});
	example_add(s, 1, 1, 0); // 4, "last short good"
	example_expect(s, (enum bound[]){U, N, L, U});
	example_add(s, 1, 60, 0.001); // 5, "first long bad"
	// The tables of points 5 and 6 call the load a lower bound of "20% exceed", though with exceed ratios of 42.857
	// % and 27.273 % in the same column; the code of appendix A, which the definition of the bounds refers to, does
	// not.
	example_expect(s, (enum bound[]){U, N, L, U});
	example_add(s, 1, 60, 0); // 6, "first long good"
	example_expect(s, (enum bound[]){U, L, L, U});

	// The sums of point 6, goal "20% exceed".
	struct search_sums sums = search_sums(s, EXAMPLE_RATE, 0.005, 60);

	assert_true(sums.full_high == 0 && sums.full_low == 120 && sums.short_high == 60 && sums.short_low == 60);
	// "Conditional Throughput Computations"
	assert_true(search_conditional(s, EXAMPLE_RATE, &example_goal[1]) == 1e6);
	assert_true(search_conditional(s, EXAMPLE_RATE, &example_goal[2]) == 1e6);
	assert_true(fabs(search_conditional(s, EXAMPLE_RATE, &example_goal[3]) - 999e3) < 1e-3);
	assert_true(search_conditional(s, 2 * EXAMPLE_RATE, &example_goal[3]) == 0);
	free(s);
}

// ---- models of gateways ---------------------------------------------------------------------------------------------

struct model {
	double limit; // packets per second that are forwarded at most
	double queue; // packets that wait beyond it
	double slow; // part of the excess that overload takes from the limit itself
	double burst_chance, burst; // of a trial; part that is lost then
	double floor; // part that is always lost
	double tester; // packets per second that the tester can offer; 0 any
	uint64_t seed;
	double longest, seconds; // of the trials so far
	uint32_t trials;
};

// SplitMix64; 0..1.
static double chance(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static void model_trial(struct model *m, struct search *s, double rate, double seconds)
{
	double offered = m->tester > 0 ? fmin(rate, m->tester) : rate;
	double excess = fmax(0, offered - m->limit);
	double lost = fmax(0, (excess * (1 + m->slow)) * seconds - m->queue) + offered * seconds * m->floor;
	double ratio;

	if (m->burst_chance > 0 && chance(&m->seed) < m->burst_chance)
		lost += offered * seconds * m->burst;
	ratio = fmin(1, lost / (offered * seconds));
	m->trials++;
	m->seconds += seconds;
	m->longest = fmax(m->longest, seconds);
	add(s, rate, seconds, ratio, offered * (1 - ratio), offered < rate * 0.995);
}

static const struct search_goal two_goals[2] = {
	{.loss = 0, .exceed = 0.5, .width = 0.005, .initial_seconds = 0.5, .final_seconds = 1, .sum_seconds = 3},
	{.loss = 1e-5, .exceed = 0.5, .width = 0.005, .initial_seconds = 0.5, .final_seconds = 1, .sum_seconds = 3},
};

static void model_search(struct model *m, struct search *s)
{
	double rate, seconds;

	while (search_next(s, &rate, &seconds)) {
		assert_true(rate >= s->min && rate <= s->max);
		assert_true(seconds >= 0.1 && seconds <= 1);
		assert_true(m->trials < SEARCH_TRIALS);
		model_trial(m, s, rate, seconds);
	}
	assert_int_equal(s->trials, m->trials);
}

static void model_run(
	struct model *m, struct search *s, double min, double max, const struct search_goal *g, uint32_t n)
{
	search_init(s, min, max, g, n);
	model_search(m, s);
}

static void narrow(const struct search_result *r, double width)
{
	assert_true(r->found && r->upper > r->lower);
	assert_true((r->upper - r->lower) / r->upper <= width * (1 + 1e-6));
	assert_false(r->gave_up || r->at_maximum || r->tester_limited || r->disturbed);
	assert_null(r->reason);
}

// The limit may lie anywhere between the ends; overload may make things worse than the limit.
static void hard_limit(void **state)
{
	struct search *s = calloc(1, sizeof(*s));

	for (uint32_t i = 0; i < 200; i++) {
		double limit = 10e3 * pow(40e6 / 10e3, (i + 0.5) / 200);

		for (uint32_t slow = 0; slow < 3; slow++) {
			struct model m = {.limit = limit, .slow = slow};

			model_run(&m, s, 10e3, 40e6, two_goals, 1);
			narrow(&s->result[0], 0.005);
			assert_true(s->result[0].lower <= limit && s->result[0].upper > limit);
			assert_true(s->result[0].conditional == s->result[0].lower);
			assert_true(m.longest == 1);
			assert_true(m.trials <= (slow ? 60 : 24));
		}
	}
	free(s);
}

// At a loss goal the limit is where excess / offered is the goal.
static void loss_goal(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct search_goal g = two_goals[0];
	struct model m = {.limit = 3e6};

	g.loss = 0.02;
	model_run(&m, s, 10e3, 40e6, &g, 1);
	narrow(&s->result[0], 0.005);
	assert_true(s->result[0].lower <= 3e6 / 0.98 && s->result[0].upper >= 3e6 / 0.98);
	// Full-length trials there lost a little less than 2 %.
	assert_true(s->result[0].conditional <= 3e6 * 1.0001 && s->result[0].conditional >= 3e6 * 0.994);
	free(s);
}

// Bursts of loss in a fifth of the trials: the exceed ratio lets them pass.
static void noisy_limit(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	uint32_t exact = 0;

	for (uint32_t seed = 1; seed <= 100; seed++) {
		struct model m = {.limit = 2.2e6, .burst_chance = 0.2, .burst = 0.001, .seed = seed};

		model_run(&m, s, 10e3, 40e6, two_goals, 2);
		for (uint32_t g = 0; g < 2; g++) {
			narrow(&s->result[g], 0.005);
			assert_true(s->result[g].lower <= 2.2e6 * 1.00001);
			exact += s->result[g].upper > 2.2e6;
		}
	}
	// A load well below the limit is refused only when two of its two or three trials have a burst.
	assert_true(exact >= 120);

	// The same with a burst in every second trial stays bounded, and never above the limit.
	for (uint32_t seed = 1; seed <= 100; seed++) {
		struct model m = {.limit = 2.2e6, .burst_chance = 0.5, .burst = 0.5, .seed = seed};

		model_run(&m, s, 10e3, 40e6, two_goals, 2);
		assert_true(s->result[0].lower <= 2.2e6 && s->result[1].lower <= 2.2e6 * 1.00001);
		assert_true(m.trials <= SEARCH_TRIALS);
	}
	free(s);
}

// A queue makes short trials look better than long ones; the result is what trials of full length show.
static void queue(void **state)
{
	struct search *s = calloc(1, sizeof(*s));

	for (uint32_t packets = 1000; packets < 1000000; packets *= 3) {
		struct model m = {.limit = 1e6, .queue = packets};

		model_run(&m, s, 10e3, 40e6, two_goals, 1);
		narrow(&s->result[0], 0.005);
		assert_true(s->result[0].lower <= (1e6 + packets) * (1 + 1e-9) && s->result[0].upper >= 1e6 + packets);
	}
	free(s);
}

static void nothing_arrives(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 0};

	model_run(&m, s, 10e3, 40e6, two_goals, 2);
	for (uint32_t g = 0; g < 2; g++) {
		assert_false(s->result[g].found || s->result[g].tester_limited);
		assert_true(s->result[g].gave_up && s->result[g].upper == 10e3);
		assert_string_equal(s->result[g].reason, "the lowest rate allowed lost more than the goal");
	}
	assert_true(m.trials <= 6);
	free(s);
}

static void loss_everywhere(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 2e6, .floor = 1e-3};

	model_run(&m, s, 10e3, 40e6, two_goals, 2);
	assert_true(!s->result[0].found && s->result[0].gave_up && !s->result[1].found && s->result[1].gave_up);
	assert_true(m.trials <= 40);

	// Three in a hundred thousand: too much for the strict goal, good for a loose one.
	struct search_goal loose[2] = {two_goals[1], two_goals[0]};

	loose[0].loss = 1e-4;
	m = (struct model){.limit = 2e6, .floor = 3e-5};
	model_run(&m, s, 10e3, 40e6, loose, 2);
	assert_true(!s->result[1].found && s->result[1].gave_up);
	narrow(&s->result[0], 0.005);
	assert_true(s->result[0].lower > 1.98e6 && s->result[0].lower < 2.01e6);
	free(s);
}

static void at_maximum(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 50e6};

	model_run(&m, s, 10e3, 40e6, two_goals, 2);
	for (uint32_t g = 0; g < 2; g++) {
		assert_true(s->result[g].found && s->result[g].at_maximum && s->result[g].lower == 40e6);
		assert_true(s->result[g].upper == 0);
		assert_false(s->result[g].gave_up || s->result[g].tester_limited);
	}
	assert_true(m.trials <= 4);
	free(s);
}

// The tester offers 5 Mpps, the gateway does 8: the result is what the tester can offer, and says so. When the gateway
// does 3, the result is the gateway's.
static void tester_limited(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 8e6, .tester = 5e6};

	model_run(&m, s, 10e3, 40e6, two_goals, 1);
	assert_true(s->result[0].found && s->result[0].tester_limited);
	assert_false(s->result[0].gave_up || s->result[0].at_maximum);
	// A trial counts as offered when 99.5 % were.
	assert_true(s->result[0].lower <= 5e6 / 0.995 * (1 + 1e-9) && s->result[0].upper >= 5e6 / 0.995);

	m = (struct model){.limit = 3e6, .tester = 5e6};
	model_run(&m, s, 10e3, 40e6, two_goals, 1);
	narrow(&s->result[0], 0.005);
	assert_true(s->result[0].lower <= 3e6 && s->result[0].upper > 3e6);

	m = (struct model){.limit = 3e6, .tester = 5e3};
	model_run(&m, s, 10e3, 40e6, two_goals, 1);
	assert_true(!s->result[0].found && s->result[0].gave_up && s->result[0].tester_limited);
	assert_string_equal(s->result[0].reason, "the tester could not offer the lowest rate allowed");
	free(s);
}

// Goals share trials: the second costs a few more only. The order in the profile does not matter.
static void goals_share_trials(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct search_goal three[3] = {two_goals[0], two_goals[0], two_goals[0]};
	struct model m = {.limit = 3e6};
	uint32_t alone, both;

	three[0].loss = 0.05;
	three[1].loss = 0.001;
	model_run(&m, s, 10e3, 40e6, &three[2], 1);
	alone = m.trials;
	m = (struct model){.limit = 3e6};
	model_run(&m, s, 10e3, 40e6, &three[1], 2);
	both = m.trials;
	assert_true(both < 2 * alone);
	m = (struct model){.limit = 3e6};
	model_run(&m, s, 10e3, 40e6, three, 3);
	assert_int_equal(s->order[0], 2);
	assert_int_equal(s->order[2], 0);
	for (uint32_t g = 0; g < 3; g++) {
		double limit = 3e6 / (1 - three[g].loss);

		narrow(&s->result[g], 0.005);
		assert_true(s->result[g].lower <= limit * (1 + 1e-9) && s->result[g].upper >= limit);
	}
	free(s);
}

// A result that is refuted moves down, again and again if it must, and never costs more than all trials.
static void refuted(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 3e6};
	struct search_trial failed = {.loss_ratio = 0.5};
	double before;

	model_run(&m, s, 10e3, 40e6, two_goals, 2);
	for (uint32_t round = 0; round < 200; round++) {
		double other = s->result[1].lower;

		before = s->result[0].lower;
		search_refute(s, 0, round % 2 ? before : before * 0.999, &failed);
		model_search(&m, s);
		if (s->result[0].gave_up)
			break;
		narrow(&s->result[0], 0.005);
		assert_true(s->result[0].lower < before && s->result[0].upper <= before);
		assert_true(s->result[1].lower == other);
	}
	// To name a higher load again changes nothing.
	before = s->refuted[0];
	search_refute(s, 0, 3e6, &failed);
	assert_true(s->refuted[0] == before);
	assert_true(s->trials == SEARCH_TRIALS);
	assert_true(s->result[0].gave_up && !s->result[0].tester_limited);
	assert_string_equal(s->result[0].reason, "no trial was left before the interval was as narrow as asked for");
	free(s);
}

// What the tester could not hold in a confirmation is its limit, not the gateway's.
static void refuted_by_tester(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct model m = {.limit = 3e6};

	struct search_trial failed = {.tester_limited = true};

	model_run(&m, s, 10e3, 40e6, two_goals, 1);
	search_refute(s, 0, s->result[0].lower, &failed);
	model_search(&m, s);
	assert_true(s->result[0].found && s->result[0].tester_limited && !s->result[0].gave_up);
	free(s);
}

// Losses in disturbed trials stop the search, but are no proof against the gateway.
static void disturbed(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	double rate, seconds;

	search_init(s, 10e3, 40e6, two_goals, 1);
	while (search_next(s, &rate, &seconds)) {
		bool lost = rate > 3e6;
		struct search_trial t = {.rate = rate,
			.seconds = seconds,
			.loss_ratio = lost ? 0.1 : 0,
			.received_pps = lost ? rate * 0.9 : rate,
			.disturbed = rate > 2e6 && rate < 4e6};

		search_add(s, &t);
	}
	assert_true(s->result[0].found && s->result[0].lower <= 3e6 && s->result[0].upper > 3e6);
	assert_true(s->result[0].disturbed && !s->result[0].tester_limited && !s->result[0].gave_up);
	free(s);
}

// Every answer is random: the search ends all the same, with bounds in order.
static void random_answers(void **state)
{
	struct search *s = calloc(1, sizeof(*s));

	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t at = seed;
		double rate, seconds;
		uint32_t trials = 0;

		search_init(s, 1e3, 1e3 * (1 + seed), two_goals, 2);
		while (search_next(s, &rate, &seconds)) {
			double loss = chance(&at) < 0.5 ? 0 : chance(&at) * 2e-5;

			assert_true(rate >= s->min && rate <= s->max);
			assert_true(++trials <= SEARCH_TRIALS);
			add(s, rate, seconds, loss, rate * (1 - loss), chance(&at) < 0.1);
		}
		for (uint32_t g = 0; g < 2; g++)
			assert_true(s->result[g].upper == 0 || s->result[g].lower < s->result[g].upper);
	}
	free(s);
}

// One load only, and equal durations in all phases.
static void one_load(void **state)
{
	struct search *s = calloc(1, sizeof(*s));
	struct search_goal g = {.exceed = 0, .width = 0.01, .initial_seconds = 1, .final_seconds = 1, .sum_seconds = 1};
	struct model m = {.limit = 3e6};

	model_run(&m, s, 1e6, 1e6, &g, 1);
	assert_true(s->result[0].at_maximum && m.trials == 1);
	m = (struct model){.limit = 3e6};
	model_run(&m, s, 4e6, 4e6, &g, 1);
	assert_true(!s->result[0].found && s->result[0].gave_up && m.trials == 1);
	m = (struct model){.limit = 3e6};
	model_run(&m, s, 1e6, 4e6, &g, 1);
	narrow(&s->result[0], 0.01);
	assert_true(s->result[0].lower <= 3e6 && s->result[0].upper > 3e6);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rfc9971_example),
		cmocka_unit_test(hard_limit),
		cmocka_unit_test(loss_goal),
		cmocka_unit_test(noisy_limit),
		cmocka_unit_test(queue),
		cmocka_unit_test(nothing_arrives),
		cmocka_unit_test(loss_everywhere),
		cmocka_unit_test(at_maximum),
		cmocka_unit_test(tester_limited),
		cmocka_unit_test(goals_share_trials),
		cmocka_unit_test(refuted),
		cmocka_unit_test(refuted_by_tester),
		cmocka_unit_test(disturbed),
		cmocka_unit_test(random_answers),
		cmocka_unit_test(one_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
