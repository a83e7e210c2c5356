// SPDX-License-Identifier: Apache-2.0
// The search for the highest rate, over real trials: from the maximum downwards, then a last trial at each result,
// which must hold or the search goes on below.
#include "traffic/run/run.h"
#include <math.h>
#include <string.h>

#define PRESET_MIN 1e3 // packets per second
// Above the rate at which the ports took packets when as many as possible were sent: that rate may be the gateway's,
// which held the tester up, so the search looks beyond it.
#define MAXIMUM_ROOM 1.3

static struct search_trial as_search(const struct trial *t)
{
	return (struct search_trial){.rate = t->asked.rate,
		.seconds = t->asked.seconds,
		.loss_ratio = t->loss_ratio,
		.received_pps = t->offered_pps * (1 - t->loss_ratio),
		.tester_limited = t->tester_limited,
		.disturbed = t->disturbed != 0};
}

static void add(struct runner *u, const struct trial *t)
{
	struct search_trial given = as_search(t);

	search_add(&u->r->search, &given);
}

// A trial for confirmation at this rate, or NULL.
static const struct trial *confirmation(const struct run_result *r, double rate)
{
	for (uint32_t i = 0; i < r->trials; i++)
		if (r->trial[i].purpose == TRIAL_CONFIRM && r->trial[i].used && r->trial[i].trial.asked.rate == rate)
			return &r->trial[i].trial;
	return NULL;
}

// One trial may fail by chance: the search goes on right below. When a second one fails for the same goal, what was
// forwarded in it is what the next ones will forward too, and a load above that cannot hold.
static void refute(struct runner *u, uint32_t goal, const struct trial *t)
{
	struct search *s = &u->r->search;
	struct search_trial failed = as_search(t);
	double from = failed.rate;

	if (s->refuted[goal] > 0 && !t->tester_limited)
		from = fmin(from, failed.received_pps / (1 - s->goal[goal].loss));
	search_refute(s, goal, from, &failed);
}

enum confirmed { CONFIRM_FAILED = -1, CONFIRM_DONE, CONFIRM_AGAIN };

// Confirms what was found for each goal, one trial for a rate. CONFIRM_AGAIN: a new trial was run, so the search has a
// look at it.
static enum confirmed confirm(struct runner *u)
{
	struct run_result *r = u->r;
	struct search *s = &r->search;
	double seconds = u->p->run.confirm_seconds;

	for (uint32_t i = 0; i < s->goals && seconds > 0; i++) {
		uint32_t g = s->order[i];
		double rate = s->result[g].lower;
		const struct trial *t;
		bool fresh = false;

		r->confirmed[g] = false;
		if (!s->result[g].found)
			continue;
		t = confirmation(r, rate);
		if (!t && r->confirms < CONFIRM_TRIALS) {
			int at = run_judged(u, TRIAL_CONFIRM, rate, seconds, s->goal[g].loss, 0);

			if (at < 0)
				return CONFIRM_FAILED;
			t = &r->trial[at].trial;
			r->confirms++;
			add(u, t);
			fresh = true;
		}
		if (t && t->loss_ratio <= s->goal[g].loss && !t->tester_limited) {
			r->confirmed[g] = true;
		} else if (t) {
			refute(u, g, t);
			return CONFIRM_AGAIN;
		}
		if (fresh)
			return CONFIRM_AGAIN;
	}
	return CONFIRM_DONE;
}

static int limits(struct runner *u, double *min, double *max)
{
	const struct profile_run *run = &u->p->run;
	bool judged = false;

	for (uint32_t i = 0; i < u->p->streams; i++)
		judged |= !u->p->stream[i].expect.given;
	if (!judged || run_mean_bytes(u->p) <= 0)
		return run_fail(
			u, "a search needs a stream with a share, and one without `expect`, whose loss it judges");
	if (run->goals == 0)
		return run_fail(u, "a search needs a goal");
	*min = run->search_min.unit == RATE_NONE ? PRESET_MIN : run_rate_pps(u->p, &run->search_min, 0);
	*max = run_rate_pps(u->p, &run->search_max, 0);
	if (*max <= 0 || !isfinite(*max)) {
		if (run_maximum(u) != 0)
			return -1;
		*max = MAXIMUM_ROOM * u->r->maximum_pps;
	}
	if (!(*min > 0) || *min > *max)
		return run_fail(u, "the search has no room: from %.0f to %.0f packets per second", *min, *max);
	return 0;
}

// Marks what the search cannot know: a maximum that was measured is the tester's limit.
static void finish(struct runner *u)
{
	struct search *s = &u->r->search;

	for (uint32_t i = 0; i < s->goals; i++) {
		uint32_t g = s->order[i];

		if (s->result[g].at_maximum && u->r->maximum_pps > 0)
			s->result[g].tester_limited = true;
		if (s->result[g].found) {
			u->r->reference_pps = s->result[g].lower;
			u->r->reference_goal = (int32_t)g;
		}
	}
}

int run_search(struct runner *u)
{
	struct run_result *r = u->r;
	struct search *s = &r->search;
	enum confirmed more = CONFIRM_AGAIN;
	double min = 0, max = 0, rate, seconds;

	if (limits(u, &min, &max) != 0)
		return -1;
	search_init(s, min, max, u->p->run.goal, u->p->run.goals);
	r->searched = true;
	while (more == CONFIRM_AGAIN) {
		while (search_next(s, &rate, &seconds)) {
			int at = run_judged(u, TRIAL_SEARCH, rate, seconds, run_strictest(u->p), 0);

			if (at < 0) {
				search_conclude(s);
				finish(u);
				return -1;
			}
			add(u, &r->trial[at].trial);
		}
		more = confirm(u);
	}
	finish(u);
	if (more == CONFIRM_FAILED)
		return -1;
	for (uint32_t g = 0; g < s->goals; g++)
		if (s->result[g].gave_up && s->trials >= SEARCH_TRIALS)
			run_fail(u, "the search for a loss of at most %g %% gave up after %u trials: %s",
				s->goal[g].loss * 100, s->trials, s->result[g].reason);
	return 0;
}
