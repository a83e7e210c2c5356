// SPDX-License-Identifier: Apache-2.0
// MLRsearch (RFC 9971): the classification of loads and the choice of the next trial.
//
// Each goal goes through SEARCH_PHASES targets, the first with short trials and four times the width, the last the goal
// itself; the bounds of one phase are the first loads of the next. A target is reached when its bounds are close
// enough. Trials of a duration count for every target, so later goals start with what earlier ones have learnt.
#include "traffic/run/search.h"
#include <math.h>
#include <string.h>

#define SLACK 1e-9 // relative; rates and durations that differ by less are the same

static const char *const reason_lowest = "the lowest rate allowed lost more than the goal";
static const char *const reason_trials = "no trial was left before the interval was as narrow as asked for";
static const char *const reason_ended = "the search was ended before the interval was as narrow as asked for";
static const char *const reason_tester = "the tester could not offer the lowest rate allowed";

// ---- what trials say about a load -----------------------------------------------------------------------------------

// What a trial can be evidence of, beside the gateway's limit.
enum blame { BLAME_NOBODY = 0, BLAME_TESTER = 1, BLAME_MACHINE = 2 };

static unsigned int blame(const struct search_trial *t, double loss)
{
	// What the tester did not offer, the gateway did not forward: a high loss, but no proof against the gateway.
	return (t->tester_limited && t->loss_ratio <= loss ? BLAME_TESTER : 0) | (t->disturbed ? BLAME_MACHINE : 0);
}

// Sums without the high losses that are to blame on one of `without` (enum blame).
static struct search_sums sums_of(
	const struct search *s, double rate, double loss, double final_seconds, unsigned int without)
{
	struct search_sums sums = {0};

	for (uint32_t i = 0; i < s->trials; i++) {
		const struct search_trial *t = &s->trial[i];

		if (t->rate != rate)
			continue;

		bool high = t->loss_ratio > loss || t->tester_limited;

		if (high && blame(t, loss) & without)
			continue;
		if (t->seconds >= final_seconds * (1 - SLACK))
			*(high ? &sums.full_high : &sums.full_low) += t->seconds;
		else
			*(high ? &sums.short_high : &sums.short_low) += t->seconds;
	}
	return sums;
}

struct search_sums search_sums(const struct search *s, double rate, double loss, double final_seconds)
{
	return sums_of(s, rate, loss, final_seconds, BLAME_NOBODY);
}

enum bound search_classify(const struct search_sums *sums, double duration_sum, double exceed)
{
	// Names as in RFC 9971 appendix A.
	double exceed_coefficient = exceed / (1.0 - exceed);
	double balancing = sums->short_low * exceed_coefficient;
	double positive_excess = fmax(0.0, sums->short_high - balancing);
	double effective_high_loss = sums->full_high + positive_excess;
	double effective_full_length = sums->full_low + effective_high_loss;
	double effective_whole = fmax(effective_full_length, duration_sum);
	double quantile_duration = effective_whole * exceed;
	double pessimistic_high_loss = effective_whole - sums->full_low;
	bool pessimistic_is_lower = pessimistic_high_loss <= quantile_duration;
	bool optimistic_is_lower = effective_high_loss <= quantile_duration;

	if (pessimistic_is_lower && optimistic_is_lower)
		return BOUND_LOWER;
	return pessimistic_is_lower || optimistic_is_lower ? BOUND_UNDECIDED : BOUND_UPPER;
}

// What the tester did not offer was not forwarded either.
static double loss_of(const struct search_trial *t)
{
	return t->tester_limited ? fmax(t->loss_ratio, 1.0 - t->received_pps / t->rate) : t->loss_ratio;
}

double search_conditional(const struct search *s, double rate, const struct search_goal *goal)
{
	// RFC 9971 appendix B. The trials are taken from the lowest loss upwards by looking for the lowest that was not
	// taken yet; there are few at one load.
	struct search_sums sums = search_sums(s, rate, goal->loss, goal->final_seconds);
	double remaining = fmax(goal->sum_seconds, sums.full_low + sums.full_high) * (1.0 - goal->exceed);
	double quantile = -1;
	bool taken[SEARCH_TRIALS] = {false};

	for (;;) {
		const struct search_trial *best = NULL;

		for (uint32_t i = 0; i < s->trials; i++) {
			const struct search_trial *t = &s->trial[i];

			if (t->rate == rate && t->seconds >= goal->final_seconds * (1 - SLACK) && !taken[i] &&
				(!best || loss_of(t) < loss_of(best)))
				best = t;
		}
		if (!best)
			break;
		if (quantile >= 0 && remaining <= 0)
			return rate * (1.0 - quantile);
		taken[best - s->trial] = true;
		quantile = loss_of(best);
		remaining -= best->seconds;
	}
	return quantile < 0 || remaining > 0 ? 0 : rate * (1.0 - quantile);
}

// ---- bounds ---------------------------------------------------------------------------------------------------------

static enum bound classify(const struct search *s, uint32_t goal, const struct search_target *t, double rate)
{
	if (s->refuted[goal] > 0 && rate >= s->refuted[goal])
		return BOUND_UPPER;

	struct search_sums sums = search_sums(s, rate, t->loss, t->seconds);

	return search_classify(&sums, t->sum, t->exceed);
}

// "Relevant Upper Bound": the lowest of all; "Relevant Lower Bound": the highest below it. 0: none.
static void relevant_bounds(
	const struct search *s, uint32_t goal, const struct search_target *t, double *lower, double *upper)
{
	*lower = 0;
	*upper = s->refuted[goal];
	for (uint32_t i = 0; i < s->trials; i++) {
		double rate = s->trial[i].rate;

		if ((*upper == 0 || rate < *upper) && classify(s, goal, t, rate) == BOUND_UPPER)
			*upper = rate;
	}
	for (uint32_t i = 0; i < s->trials; i++) {
		double rate = s->trial[i].rate;

		if (rate > *lower && (*upper == 0 || rate < *upper) && classify(s, goal, t, rate) == BOUND_LOWER)
			*lower = rate;
	}
}

static struct search_target target_of(const struct search_goal *g, uint32_t phase)
{
	uint32_t before = SEARCH_PHASES - 1 - phase; // phases that are still to come
	double initial = fmin(g->initial_seconds, g->final_seconds);
	// From the initial duration to the sum in equal ratios; a single trial is never longer than the final duration.
	double sum = initial * pow(fmax(1.0, g->sum_seconds / initial), (double)phase / (SEARCH_PHASES - 1));
	struct search_target t = {.loss = g->loss, .exceed = g->exceed};

	t.width = -log1p(-fmin(g->width, 0.5)) * (double)(1u << before);
	t.sum = before ? sum : g->sum_seconds;
	t.seconds = before ? fmin(sum, g->final_seconds) : g->final_seconds;
	return t;
}

// ---- what to try next -----------------------------------------------------------------------------------------------

void search_init(struct search *s, double min, double max, const struct search_goal *goals, uint32_t n)
{
	memset(s, 0, sizeof(*s));
	s->min = min;
	s->max = max;
	s->goals = n < PROFILE_GOALS ? n : PROFILE_GOALS;
	s->expand = 1;
	for (uint32_t i = 0; i < s->goals; i++) {
		uint32_t at = i;

		s->goal[i] = goals[i];
		for (; at > 0 && goals[s->order[at - 1]].loss > goals[i].loss; at--)
			s->order[at] = s->order[at - 1];
		s->order[at] = i;
	}
}

static double within(const struct search *s, double rate)
{
	return fmin(s->max, fmax(s->min, rate));
}

// The initial phase: one trial at the maximum, one at the rate that was forwarded then, and one on the other side of
// the expected limit. Returns false when it is over.
static bool initial_rate(struct search *s, double *rate)
{
	const struct search_goal *g = &s->goal[s->order[0]];
	struct search_target t = target_of(g, 0);
	const struct search_trial *last = s->trials ? &s->trial[s->trials - 1] : NULL;

	if (s->initial == 0 || !last) {
		*rate = s->max;
	} else if (s->initial < 3 && (last->loss_ratio > g->loss || last->tester_limited)) {
		// At a loss goal above 0 the load may be higher than what arrives.
		*rate = within(s, last->received_pps / (1 - g->loss));
		if (*rate >= last->rate * exp(-t.width / 2) && last->rate > s->min)
			*rate = within(s, last->rate * exp(-t.width));
	} else if (s->initial == 2) {
		*rate = within(s, last->rate * exp(t.width));
	} else {
		return false;
	}
	return !last || s->initial == 0 || *rate != last->rate;
}

// A load that is not measured to the end, a bound of the phase before, a step outwards, or the middle. Returns false
// when the target is reached, or cannot be.
static bool nominate(struct search *s, uint32_t goal, const struct search_target *t, double *rate)
{
	double lower, upper;

	relevant_bounds(s, goal, t, &lower, &upper);
	// A load outside the bounds decides nothing any more.
	double candidates[] = {s->pending, s->hint_lower, s->hint_upper};

	for (uint32_t i = 0; i < 3; i++) {
		double c = candidates[i];

		if (c > lower && (upper == 0 || c < upper) && classify(s, goal, t, c) == BOUND_UNDECIDED) {
			*rate = c;
			return true;
		}
	}
	if (lower == 0 && upper == 0) {
		*rate = s->max;
	} else if (lower == 0) {
		if (upper <= s->min)
			return false;
		*rate = upper * exp(-t->width * s->expand);
		if (*rate < s->min * exp(t->width))
			*rate = s->min;
		s->expand *= 2;
	} else if (upper == 0) {
		if (lower >= s->max)
			return false;
		*rate = lower * exp(t->width * s->expand);
		if (*rate > s->max * exp(-t->width))
			*rate = s->max;
		s->expand *= 2;
	} else if (log(upper / lower) > t->width * (1 + SLACK)) {
		*rate = sqrt(lower * upper);
	} else {
		return false;
	}
	return true;
}

// Whether a load is an upper bound only because of trials that are to blame on others than the gateway.
static bool to_blame(
	const struct search *s, uint32_t goal, const struct search_target *t, double upper, unsigned int others)
{
	if (upper > 0 && upper == s->refuted[goal])
		return (blame(&s->refuted_by[goal], t->loss) & others) != 0;

	struct search_sums proof = sums_of(s, upper, t->loss, t->seconds, others);

	return upper > 0 && search_classify(&proof, t->sum, t->exceed) != BOUND_UPPER;
}

static void conclude_goal(struct search *s, uint32_t goal)
{
	const struct search_goal *g = &s->goal[goal];
	struct search_result *r = &s->result[goal];
	struct search_target t = target_of(g, SEARCH_PHASES - 1);

	memset(r, 0, sizeof(*r));
	relevant_bounds(s, goal, &t, &r->lower, &r->upper);
	r->found = r->lower > 0;
	r->at_maximum = r->found && r->upper == 0 && r->lower >= s->max;
	if (r->found)
		r->conditional = search_conditional(s, r->lower, g);
	r->tester_limited = to_blame(s, goal, &t, r->upper, BLAME_TESTER);
	r->disturbed = !r->tester_limited && to_blame(s, goal, &t, r->upper, BLAME_TESTER | BLAME_MACHINE);
	if (r->upper > 0 && r->upper <= s->min)
		r->reason = r->tester_limited ? reason_tester : reason_lowest;
	else if (!r->at_maximum && (!r->found || r->upper == 0 || log(r->upper / r->lower) > t.width * (1 + SLACK)))
		r->reason = s->trials < SEARCH_TRIALS ? reason_ended : reason_trials;
	r->gave_up = r->reason != NULL;
}

void search_conclude(struct search *s)
{
	for (uint32_t g = 0; g < s->goals; g++)
		conclude_goal(s, g);
}

// To the next phase or goal. Returns false when there is none.
static bool advance(struct search *s)
{
	uint32_t goal = s->order[s->current];
	struct search_target t = target_of(&s->goal[goal], s->phase);

	relevant_bounds(s, goal, &t, &s->hint_lower, &s->hint_upper);
	s->pending = 0;
	s->expand = 1;
	if (s->phase + 1 < SEARCH_PHASES) {
		s->phase++;
		return true;
	}
	s->hint_lower = s->hint_upper = 0;
	s->phase = s->again ? SEARCH_PHASES - 1 : 0;
	return ++s->current < s->goals;
}

bool search_next(struct search *s, double *rate, double *seconds)
{
	if (s->goals == 0)
		return false;
	if (s->trials < SEARCH_TRIALS && s->initial < 3) {
		if (initial_rate(s, rate)) {
			*seconds = target_of(&s->goal[s->order[0]], 0).seconds;
			s->initial++;
			return true;
		}
		s->initial = 3;
	}
	while (s->trials < SEARCH_TRIALS) {
		uint32_t goal = s->order[s->current];
		struct search_target t = target_of(&s->goal[goal], s->phase);

		if (nominate(s, goal, &t, rate)) {
			*seconds = t.seconds;
			s->pending = *rate;
			return true;
		}
		if (advance(s))
			continue;
		// Trials for one goal may have changed what another had found: each is looked at again until nothing is
		// left to do.
		bool settled = s->again && s->trials == s->pass_trials;

		s->again = true;
		s->pass_trials = s->trials;
		s->current = 0;
		s->phase = SEARCH_PHASES - 1;
		if (settled)
			break;
	}
	search_conclude(s);
	return false;
}

void search_add(struct search *s, const struct search_trial *t)
{
	if (s->trials < SEARCH_TRIALS)
		s->trial[s->trials++] = *t;
}

void search_refute(struct search *s, uint32_t goal, double from, const struct search_trial *failed)
{
	if (goal >= s->goals || (s->refuted[goal] > 0 && from >= s->refuted[goal]))
		return;
	s->refuted[goal] = from;
	s->refuted_by[goal] = *failed;
}
