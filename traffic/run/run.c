// SPDX-License-Identifier: Apache-2.0
// Runs a profile: warm-up and the proof that something arrives, a fixed rate or steps, and latency at parts of a rate.
// Trials that the machine disturbed are repeated. The search is in run_search.c.
#include "traffic/run/run.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_SECONDS 2.0 // a gateway may have to resolve addresses first
#define WARMUP_PPS 1e4 // when no rate is known beforehand
#define OFFERED_PART 0.98 // of the highest rate offered so far, which the tester should manage again

const char *const trial_purpose_name[TRIAL_PURPOSES] = {
	"warmup", "maximum", "fixed", "search", "confirm", "step", "latency"};

int run_fail(struct runner *u, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(u->r->error, sizeof(u->r->error), format, args);
	va_end(args);
	return -1;
}

// ---- rates ----------------------------------------------------------------------------------------------------------

bool run_has_share(const struct profile_stream *s)
{
	return s->share > 0 && s->answers < 0 && s->rate.unit == RATE_NONE;
}

double run_mean_bytes(const struct profile *p)
{
	double bytes = 0, share = 0;

	for (uint32_t i = 0; i < p->streams; i++) {
		if (!run_has_share(&p->stream[i]))
			continue;
		bytes += p->stream[i].share * stream_mean_bytes(&p->stream[i]);
		share += p->stream[i].share;
	}
	return share > 0 ? bytes / share : 0;
}

double run_rate_pps(const struct profile *p, const struct rate *rate, double reference)
{
	return rate->unit == RATE_PART ? rate->value * reference : profile_pps(p, rate);
}

double run_strictest(const struct profile *p)
{
	double loss = p->run.goals ? p->run.goal[0].loss : 0;

	for (uint32_t g = 1; g < p->run.goals; g++)
		loss = fmin(loss, p->run.goal[g].loss);
	return loss;
}

// ---- one trial ------------------------------------------------------------------------------------------------------

// The first wrong frame of a trial, as the end of a sentence.
static void first_wrong(const struct runner *u, const struct trial *t, char *to, size_t n)
{
	snprintf(to, n, "no sample was kept");
	for (uint32_t i = 0; i < t->streams && i < u->p->streams; i++) {
		const struct stream_count *c = &t->stream[i];

		if (c->wrong_kept == 0)
			continue;
		snprintf(to, n, "the first of stream \"%s\": %s, byte %u (%s), flow %u", u->p->stream[i].name,
			c->wrong_frame[0].kind < WRONG_KINDS ? wrong_name[c->wrong_frame[0].kind] : "?",
			c->wrong_frame[0].offset, c->wrong_frame[0].where, c->wrong_frame[0].flow);
		return;
	}
}

// A search against a gateway that does something else is worth nothing. Returns 0 or -1.
static int check_contents(struct runner *u, const struct trial *t)
{
	char first[TEXT_BYTES];

	if (u->p->run.mode != RUN_SEARCH)
		return 0;
	u->wrong_in_row = (double)t->wrong > WRONG_PART * (double)t->received ? u->wrong_in_row + 1 : 0;
	if (u->wrong_in_row < 2)
		return 0;
	first_wrong(u, t, first, sizeof(first));
	return run_fail(u,
		"%.3g %% of the packets that arrived are wrong, in two trials one after the other: the gateway does "
		"not do what the "
		"profile expects; %s",
		t->received > 0 ? 100 * fmin(1, (double)t->wrong / (double)t->received) : 100, first);
}

// Runs a trial and keeps it. `last_try`: it counts even when it was disturbed. Returns its index, or -1 when the run
// ends.
static int one_trial(struct runner *u, enum trial_purpose why, const struct trial_request *asked, double part,
	double loss, bool last_try)
{
	struct run_result *r = u->r;
	struct run_trial *all = realloc(r->trial, (r->trials + 1) * sizeof(*all)), *now;
	char error[SENTENCE_BYTES] = "";
	bool lost, hindered;

	if (!all)
		return run_fail(u, "out of memory after %u trials", r->trials);
	r->trial = all;
	now = &all[r->trials];
	memset(now, 0, sizeof(*now));
	now->purpose = why;
	now->part = part;
	if (u->fn)
		u->fn(u->arg, why, asked, NULL);
	if (u->source->trial(u->source->arg, asked, &now->trial, error, sizeof(error)) != 0) {
		trial_free(&now->trial);
		return run_fail(u, "%s", error);
	}
	now->trial.asked = *asked;
	r->trials++;
	// A disturbed trial that lost nothing is as good as any. A tester that falls behind at a rate that it has
	// offered before was hindered too, whatever by.
	lost = now->trial.loss_ratio > loss || (isfinite(asked->rate) && now->trial.tester_limited);
	hindered = now->trial.disturbed || (now->trial.tester_limited && asked->rate < OFFERED_PART * u->offered);
	u->offered = fmax(u->offered, now->trial.offered_pps);
	now->used = !now->trial.interrupted && (last_try || !hindered || !lost);
	if (!now->used && !now->trial.interrupted)
		r->discarded++;
	if (u->fn)
		u->fn(u->arg, why, asked, now);
	if (now->trial.interrupted) {
		r->interrupted = true;
		return run_fail(u, "interrupted");
	}
	return (int)r->trials - 1;
}

// ---- does anything arrive? ------------------------------------------------------------------------------------------

static uint64_t arrived(const struct stream_count *c)
{
	// Whether the engine counts packets at a wrong port as received or not: they have not arrived where they
	// should.
	return c->received > c->wrong[WRONG_PORT] ? c->received - c->wrong[WRONG_PORT] : 0;
}

static bool may_be_silent(const struct profile_stream *s)
{
	const struct profile_expect *e = &s->expect;

	return e->given && (e->loss_max >= 1 || (e->rate.unit != RATE_NONE && e->rate.value <= 0));
}

// Number of streams of which packets were sent and none arrived; the first in *first.
static uint32_t silent_streams(const struct profile *p, const struct trial *t, uint32_t *first)
{
	uint32_t silent = 0;

	for (uint32_t i = 0; i < p->streams && i < t->streams; i++)
		if (t->stream[i].sent > 0 && arrived(&t->stream[i]) == 0 && !may_be_silent(&p->stream[i]) &&
			silent++ == 0)
			*first = i;
	return silent;
}

static int tell_silence(struct runner *u, const struct trial *t, uint32_t stream, uint32_t silent)
{
	const struct profile *p = u->p;
	const struct profile_stream *s = &p->stream[stream];
	const struct stream_count *c = &t->stream[stream];
	char more[SENTENCE_BYTES / 2] = "";
	size_t at = 0;

#define HINT(...) (at += (size_t)snprintf(more + at, at < sizeof(more) ? sizeof(more) - at : 0, __VA_ARGS__))
	if (c->refused == c->sent)
		HINT("; the port took none of them: nobody reads at the other end of \"%s\"", p->port[s->port].name);
	else if (c->refused > 0)
		HINT("; the port did not take %" PRIu64 " of them", c->refused);
	if (c->wrong[WRONG_PORT] > 0)
		HINT("; %" PRIu64 " arrived at another port than \"%s\"", c->wrong[WRONG_PORT], p->port[s->sink].name);
	if (t->foreign > 0)
		HINT("; %" PRIu64
		     " frames came that are nobody's: the gateway may damage the last 16 bytes, or other traffic "
		     "runs",
			t->foreign);
	if (t->foreign == 0 && c->wrong[WRONG_PORT] == 0 && c->refused < c->sent)
		HINT("; the links are up: look at the gateway's drops, addresses and sessions");
	if (silent > 1)
		HINT("; %u more streams are silent", silent - 1);
#undef HINT
	return run_fail(u,
		"stream \"%s\": nothing arrives: %" PRIu64 " packets were sent at port \"%s\" in %.1f s, none came to "
		"port \"%s\"%.*s",
		s->name, c->sent, p->port[s->port].name, t->seconds, p->port[s->sink].name, (int)sizeof(more) - 1,
		more);
}

// After the first trial: a stream of which nothing arrived gets one longer trial. Returns 0 or -1.
static int check_arrival(struct runner *u, const struct trial *t, double rate)
{
	struct trial_request asked = {.rate = rate, .seconds = PROBE_SECONDS};
	uint32_t first = 0, silent;
	int at;

	if (u->arrived || silent_streams(u->p, t, &first) == 0) {
		u->arrived = true;
		return 0;
	}
	at = one_trial(u, TRIAL_WARMUP, &asked, 0, 1, true);
	if (at < 0)
		return -1;
	t = &u->r->trial[at].trial;
	silent = silent_streams(u->p, t, &first);
	u->arrived = silent == 0;
	return u->arrived ? 0 : tell_silence(u, t, first, silent);
}

static int warm_up(struct runner *u, double rate)
{
	struct trial_request asked = {.rate = rate, .seconds = u->p->run.warmup};
	int at;

	if (u->p->run.warmup <= 0)
		return 0;
	at = one_trial(u, TRIAL_WARMUP, &asked, 0, 1, true);
	if (at < 0)
		return -1;
	return check_arrival(u, &u->r->trial[at].trial, rate) != 0 ? -1 : check_contents(u, &u->r->trial[at].trial);
}

int run_judged(struct runner *u, enum trial_purpose why, double rate, double seconds, double loss, double part)
{
	struct trial_request asked = {.rate = rate, .seconds = seconds};

	for (uint32_t try = 0;; try++) {
		bool last = try >= u->p->run.repeats || u->r->discarded >= RUN_DISCARDS;
		int at = one_trial(u, why, &asked, part, loss, last);

		if (at < 0)
			return -1;
		if (check_arrival(u, &u->r->trial[at].trial, isfinite(rate) ? rate : WARMUP_PPS) != 0 ||
			check_contents(u, &u->r->trial[at].trial) != 0)
			return -1;
		// Later trials may have moved the array, but not the index.
		if (u->r->trial[at].used)
			return at;
	}
}

// ---- modes ----------------------------------------------------------------------------------------------------------

int run_maximum(struct runner *u)
{
	const struct profile_run *run = &u->p->run;
	double seconds = run->goals ? run->goal[0].initial_seconds : 0.5;
	int at = run_judged(u, TRIAL_MAXIMUM, INFINITY, seconds > 0 ? seconds : 0.5, 1, 0);

	if (at < 0)
		return -1;
	u->r->maximum_pps = u->r->trial[at].trial.offered_pps;
	return u->r->maximum_pps > 0
		       ? 0
		       : run_fail(u, "the ports took no packet at all when as many as possible were sent");
}

static int run_latency(struct runner *u)
{
	const struct profile_run *run = &u->p->run;
	double base = u->r->reference_pps;

	if (run->latency_seconds <= 0)
		return 0;
	for (uint32_t i = 0; i < run->latency_points && base > 0; i++) {
		double part = run->latency_at[i];

		if (run_judged(u, TRIAL_LATENCY, part * base, run->latency_seconds, run_strictest(u->p), part) < 0)
			return -1;
		u->r->latency++;
	}
	return 0;
}

static int run_fixed(struct runner *u)
{
	double rate = run_rate_pps(u->p, &u->p->run.rate, 0);
	int at = run_judged(u, TRIAL_FIXED, rate, u->p->run.seconds, run_strictest(u->p), 0);

	if (at < 0)
		return -1;
	u->r->fixed++;
	// Parts of "as fast as possible" would be overload still: they refer to what arrived.
	const struct trial *t = &u->r->trial[at].trial;

	u->r->reference_pps = isfinite(rate) ? rate : t->offered_pps * (1 - t->loss_ratio);
	return run_latency(u);
}

static int run_steps(struct runner *u)
{
	const struct profile_run *run = &u->p->run;
	double base = run_rate_pps(u->p, &run->rate, 0);

	if (!isfinite(base)) {
		if (run_maximum(u) != 0)
			return -1;
		base = u->r->maximum_pps;
	}
	u->r->reference_pps = base;
	for (uint32_t i = 0; i < run->steps; i++) {
		double rate = run_rate_pps(u->p, &run->step[i], base);
		double part = base > 0 && isfinite(rate) ? rate / base : 0;

		if (rate <= 0)
			return run_fail(u, "step %u is a part of a rate that the profile does not give", i + 1);
		if (run_judged(u, TRIAL_STEP, rate, run->seconds, run_strictest(u->p), part) < 0)
			return -1;
		u->r->steps++;
	}
	return 0;
}

// What the warm-up's tenth is taken of: the run's rate, as far as it is known.
static double known_rate(const struct profile *p)
{
	const struct profile_run *run = &p->run;
	double rate = run_rate_pps(p, run->mode == RUN_SEARCH ? &run->search_max : &run->rate, 0);

	return rate > 0 && isfinite(rate) ? rate : 10 * WARMUP_PPS;
}

static int run_all(struct runner *u)
{
	const struct profile *p = u->p;
	bool shared = run_mean_bytes(p) > 0;
	double warm = shared ? known_rate(p) / 10 : 0;

	if (p->streams == 0)
		return run_fail(u, "the profile has no streams");
	if (p->run.mode == RUN_FIXED && shared && run_rate_pps(p, &p->run.rate, 0) <= 0)
		return run_fail(u, "the profile gives no rate for the streams with a share");
	if (warm_up(u, warm) != 0)
		return -1;
	switch (p->run.mode) {
	case RUN_FIXED:
		return run_fixed(u);
	case RUN_STEPS:
		return run_steps(u);
	case RUN_SEARCH:
		break;
	}
	return run_search(u) != 0 ? -1 : run_latency(u);
}

int run_profile(
	const struct profile *p, const struct trial_source *source, run_progress fn, void *arg, struct run_result *r)
{
	struct runner u = {.p = p, .source = source, .fn = fn, .arg = arg, .r = r};

	r->reference_goal = -1;
	r->complete = run_all(&u) == 0 && r->error[0] == '\0';
	return r->complete ? 0 : -1;
}

void run_free(struct run_result *r)
{
	for (uint32_t i = 0; i < r->trials; i++)
		trial_free(&r->trial[i].trial);
	free(r->trial);
	r->trial = NULL;
	r->trials = 0;
}
