// SPDX-License-Identifier: Apache-2.0
// See profile.h: what to do with the streams, and rates.
#include "traffic/profile/profile.h"
#include "traffic/profile/profile_read.h"
#include "traffic/profile/units.h"
#include <math.h>
#include <string.h>

static void read_rate(struct yaml_file *f, const yaml_node_t *n, struct rate *to, bool part, bool max)
{
	const char *text = yaml_single(f, n);
	char wanted[TEXT_BYTES];
	struct rate r;

	if (text == NULL)
		return;
	if (rate_scan(text, &r) != 0 || (r.unit == RATE_PART && !part) || (r.unit == RATE_MAX && !max)) {
		snprintf(wanted, sizeof(wanted),
			"a rate: 100kpps, 1.5Mpps, 10Gbit%s%s, or a number of packets per second", part ? ", 50%" : "",
			max ? ", max" : "");
		yaml_refuse(f, n, text, wanted);
		return;
	}
	if (rate_fault(&r) != NULL)
		yaml_fault(f, n, "a rate of %s %s", text, rate_fault(&r));
	else
		*to = r;
}

static void read_rate_plain(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	read_rate(f, n, to, false, false);
}

void read_rate_expected(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	read_rate(f, n, to, true, false);
}

void read_rate_own(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	read_rate(f, n, to, false, true);
}

static void read_rate_step(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	read_rate(f, n, to, true, true);
}

double stream_mean_bytes(const struct profile_stream *s)
{
	double bytes = 0, weight = 0;

	for (uint32_t i = 0; i < s->sizes; i++) {
		bytes += (double)s->size[i].bytes * s->size[i].weight;
		weight += s->size[i].weight;
	}
	return weight > 0 ? bytes / weight : 0;
}

static double pps_of_bits(double bits, double mean_bytes)
{
	return mean_bytes > 0 ? bits / 8 / mean_bytes : 0;
}

double stream_own_pps(const struct profile_stream *s)
{
	switch (s->rate.unit) {
	case RATE_PPS:
		return s->rate.value;
	case RATE_BIT:
		return pps_of_bits(s->rate.value, stream_mean_bytes(s));
	case RATE_MAX:
		return INFINITY;
	default:
		return 0;
	}
}

// Mean L2 bytes of the frames of all streams with a share; 0 when there is none.
static double shared_mean_bytes(const struct profile *p)
{
	double bytes = 0, share = 0;

	for (uint32_t i = 0; i < p->streams; i++) {
		bytes += stream_mean_bytes(&p->stream[i]) * p->stream[i].share;
		share += p->stream[i].share;
	}
	return share > 0 ? bytes / share : 0;
}

double profile_pps(const struct profile *p, const struct rate *r)
{
	switch (r->unit) {
	case RATE_PPS:
		return r->value;
	case RATE_BIT:
		return pps_of_bits(r->value, shared_mean_bytes(p));
	case RATE_PART: // run.rate is no part itself
		return p->run.rate.unit == RATE_PART ? 0 : r->value * profile_pps(p, &p->run.rate);
	case RATE_MAX:
		return INFINITY;
	default:
		return 0;
	}
}

#define AT(member) offsetof(struct search_goal, member)
static const struct yaml_key goal_keys[] = {
	{.name = "loss", .read = yaml_part, .offset = AT(loss), .high = 0.5, .required = true},
	{.name = "exceed", .read = yaml_part, .offset = AT(exceed), .high = 0.99},
	{.name = "width", .read = yaml_part, .offset = AT(width), .low = 0.0001, .high = 0.5},
	{.name = "initial", .read = yaml_seconds, .offset = AT(initial_seconds), .low = 0.01, .high = 3600},
	{.name = "final", .read = yaml_seconds, .offset = AT(final_seconds), .low = 0.01, .high = 3600},
	{.name = "sum", .read = yaml_seconds, .offset = AT(sum_seconds), .low = 0.01, .high = 36000},
};
#undef AT

// `search` has what all goals share beside what it has of its own.
struct search_want {
	struct rate min, max;
	double confirm;
	struct search_goal common;
};
#define AT(member) offsetof(struct search_want, member)
static const struct yaml_key search_keys[] = {
	{.name = "min", .read = read_rate_plain, .offset = AT(min)},
	{.name = "max", .read = read_rate_plain, .offset = AT(max)},
	{.name = "goals"},
	{.name = "exceed", .read = yaml_part, .offset = AT(common.exceed), .high = 0.99},
	{.name = "width", .read = yaml_part, .offset = AT(common.width), .low = 0.0001, .high = 0.5},
	{.name = "initial", .read = yaml_seconds, .offset = AT(common.initial_seconds), .low = 0.01, .high = 3600},
	{.name = "final", .read = yaml_seconds, .offset = AT(common.final_seconds), .low = 0.01, .high = 3600},
	{.name = "sum", .read = yaml_seconds, .offset = AT(common.sum_seconds), .low = 0.01, .high = 36000},
	{.name = "confirm", .read = yaml_seconds, .offset = AT(confirm), .high = 3600},
};
#undef AT

static void check_goal(struct yaml_file *f, const yaml_node_t *at, const struct search_goal *g)
{
	if (g->final_seconds < g->initial_seconds)
		yaml_fault(f, at, "final (%g s) is shorter than initial (%g s)", g->final_seconds, g->initial_seconds);
	if (g->sum_seconds < g->final_seconds)
		yaml_fault(f, at, "sum (%g s) is shorter than final (%g s)", g->sum_seconds, g->final_seconds);
}

static void read_goals(
	struct yaml_file *f, const yaml_node_t *n, const struct search_goal *common, struct profile_run *run)
{
	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) == 0 || yaml_entries(n) > PROFILE_GOALS) {
		yaml_fault(f, n, "must be a list of 1 to %d goals", PROFILE_GOALS);
		return;
	}
	run->goals = 0;
	for (uint32_t i = 0; i < yaml_entries(n); i++) {
		const yaml_node_t *one = yaml_entry(f, n, i);
		struct search_goal *g = &run->goal[i];

		*g = *common;
		if (!yaml_decode(f, one, goal_keys, KEYS(goal_keys), g))
			continue;
		check_goal(f, one, g);
		run->goals++;
	}
}

static const struct search_goal goal_preset = {
	.exceed = 0.5, .width = 0.005, .initial_seconds = 0.5, .final_seconds = 1, .sum_seconds = 3};

static void read_search(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile_run *run = to;
	struct search_want want = {
		.min = run->search_min, .max = run->search_max, .confirm = run->confirm_seconds, .common = goal_preset};

	if (!yaml_decode(f, n, search_keys, KEYS(search_keys), &want))
		return;
	run->search_min = want.min;
	run->search_max = want.max;
	run->confirm_seconds = want.confirm;
	run->goal[0] = want.common;
	const yaml_node_t *goals = yaml_get(f, n, "goals");
	if (goals != NULL)
		read_goals(f, goals, &want.common, run);
	else
		check_goal(f, n, &want.common);
}

static void read_steps(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	struct profile_run *run = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) == 0 || yaml_entries(n) > PROFILE_STEPS) {
		yaml_fault(f, n, "must be a list of 1 to %d rates", PROFILE_STEPS);
		return;
	}
	for (uint32_t i = 0; i < yaml_entries(n); i++)
		read_rate_step(f, yaml_entry(f, n, i), k, &run->step[run->steps++]);
}

static void read_latency_at(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	static const struct yaml_key part = {.low = 0.001, .high = 1};
	struct profile_run *run = to;

	if (n->type != YAML_SEQUENCE_NODE || yaml_entries(n) > PROFILE_STEPS) {
		yaml_fault(f, n, "must be a list of at most %d parts of the rate", PROFILE_STEPS);
		return;
	}
	run->latency_points = 0;
	for (uint32_t i = 0; i < yaml_entries(n); i++)
		yaml_part(f, yaml_entry(f, n, i), &part, &run->latency_at[run->latency_points++]);
}

#define AT(member) offsetof(struct profile_run, member)
static const struct yaml_key latency_keys[] = {
	{.name = "at", .read = read_latency_at},
	{.name = "seconds", .read = yaml_seconds, .offset = AT(latency_seconds), .high = 3600},
};

static void read_latency(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	yaml_decode(f, n, latency_keys, KEYS(latency_keys), to);
}

static const struct yaml_key disturbed_keys[] = {
	{.name = "repeats", .read = yaml_u32, .offset = AT(repeats), .high = 100},
	{.name = "steal", .read = yaml_part, .offset = AT(steal_max), .high = 1},
};

static void read_disturbed(struct yaml_file *f, const yaml_node_t *n, const struct yaml_key *k, void *to)
{
	yaml_decode(f, n, disturbed_keys, KEYS(disturbed_keys), to);
}

static const char *const modes[] = {[RUN_FIXED] = "fixed", [RUN_SEARCH] = "search", [RUN_STEPS] = "steps", NULL};
static const struct yaml_key run_keys[] = {
	{.name = "mode", .read = yaml_word, .offset = AT(mode), .words = modes},
	{.name = "rate", .read = read_rate_own, .offset = AT(rate)},
	{.name = "seconds", .read = yaml_seconds, .offset = AT(seconds), .low = 0.01, .high = 86400},
	{.name = "steps", .read = read_steps},
	{.name = "search", .read = read_search},
	{.name = "latency", .read = read_latency},
	{.name = "warmup", .read = yaml_seconds, .offset = AT(warmup), .high = 600},
	{.name = "drain", .read = yaml_seconds, .offset = AT(drain), .low = 0.001, .high = 60},
	{.name = "link_wait", .read = yaml_seconds, .offset = AT(link_wait), .low = 0.1, .high = 600},
	{.name = "disturbed", .read = read_disturbed},
};
#undef AT

const struct profile_form run_forms[] = {
	{"run", run_keys, KEYS(run_keys)},
	{"search", search_keys, KEYS(search_keys)},
	{"goals", goal_keys, KEYS(goal_keys)},
	{"latency", latency_keys, KEYS(latency_keys)},
	{"disturbed", disturbed_keys, KEYS(disturbed_keys)},
	{NULL, NULL, 0},
};

// Whether a step is above the one before. What `max` is will be known once the tester has tried, so steps in packets
// and parts of `max` cannot be compared here.
static bool rises(const struct profile *p, const struct rate *before, const struct rate *step)
{
	if (step->unit == RATE_PART && before->unit == RATE_PART)
		return step->value > before->value;
	if ((step->unit == RATE_PART || before->unit == RATE_PART) && p->run.rate.unit == RATE_MAX)
		return before->unit != RATE_MAX;
	return profile_pps(p, step) > profile_pps(p, before);
}

static const char *check_steps(const struct profile *p, const char **key)
{
	*key = "steps";
	if (p->run.steps == 0)
		return "mode steps needs a list of steps";
	for (uint32_t i = 0; i < p->run.steps; i++) {
		if (p->run.step[i].unit == RATE_PART && p->run.rate.unit == RATE_NONE) {
			*key = "rate";
			return "steps in % need a rate that they refer to";
		}
		if (i > 0 && !rises(p, &p->run.step[i - 1], &p->run.step[i]))
			return "the steps must rise";
	}
	return NULL;
}

static const char *check_search(const struct profile *p, const char **key)
{
	bool judged = false;

	for (uint32_t i = 0; i < p->streams; i++)
		judged |= p->stream[i].share > 0 && !p->stream[i].expect.given;
	*key = "mode";
	if (!judged)
		return "mode search needs a stream with a share and without expect, whose loss decides";
	*key = "search";
	if (p->run.search_max.unit != RATE_NONE &&
		profile_pps(p, &p->run.search_min) >= profile_pps(p, &p->run.search_max))
		return "max must be above min";
	return NULL;
}

int profile_check_run(const struct profile *p, const char **key, char *error, size_t n)
{
	bool shared = shared_mean_bytes(p) > 0;
	const char *why = NULL;

	*key = "mode";
	if (!shared && p->run.mode != RUN_FIXED)
		why = "every stream has a rate of its own, so no rate is left to look for: mode must be fixed";
	else if (p->run.mode == RUN_STEPS)
		why = check_steps(p, key);
	else if (p->run.mode == RUN_SEARCH)
		why = check_search(p, key);
	else if (shared && p->run.rate.unit == RATE_NONE)
		why = "mode fixed needs a rate for the streams with a share";
	else if (!shared && p->run.rate.unit != RATE_NONE)
		why = "the rate is nobody's, because no stream has a share";
	if (p->run.mode == RUN_FIXED && why != NULL)
		*key = "rate";
	if (why == NULL)
		return 0;
	snprintf(error, n, "%s", why);
	return -1;
}

void profile_read_run(struct yaml_file *f, const yaml_node_t *run, struct profile *p)
{
	char error[TEXT_BYTES];
	const char *key;

	p->run = (struct profile_run){.mode = RUN_FIXED,
		.warmup = 0.2,
		.drain = 0.5,
		.link_wait = 10,
		.repeats = 3,
		.steal_max = 0.001,
		.search_min = {.unit = RATE_PPS, .value = 1000},
		.goals = 1,
		.goal = {goal_preset},
		.confirm_seconds = 2,
		.latency_points = 3,
		.latency_at = {0.1, 0.5, 0.9},
		.latency_seconds = 1};
	if (run != NULL && !yaml_decode(f, run, run_keys, KEYS(run_keys), &p->run))
		return;
	if (p->run.seconds == 0)
		p->run.seconds = p->run.mode == RUN_STEPS ? 1 : 10;
	// Only when all else is good: what is missing because of another fault is not told twice.
	if (f->faults == 0 && profile_check_run(p, &key, error, sizeof(error)) != 0) {
		const yaml_node_t *at = yaml_get(f, run, key);

		yaml_fault(f, at != NULL ? at : run, "%s", error);
	}
}
