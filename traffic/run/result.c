// SPDX-License-Identifier: Apache-2.0
// The result as text for people, and the verdict on it.
#include "traffic/run/run.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_SHOWN 3
#define BYTES_SHOWN 128

// ---- verdict --------------------------------------------------------------------------------------------------------

bool result_counts(const struct run_result *r, const struct run_trial *t)
{
	if (t->purpose != TRIAL_CONFIRM || !t->used)
		return t->used;
	for (uint32_t g = 0; g < r->search.goals; g++)
		if (r->confirmed[g] && r->search.result[g].lower == t->trial.asked.rate)
			return true;
	return false;
}

const struct run_trial *result_main_trial(const struct run_result *r)
{
	const struct run_trial *best = NULL;

	for (uint32_t i = 0; i < r->trials; i++) {
		const struct run_trial *t = &r->trial[i];

		if (!result_counts(r, t) || t->purpose == TRIAL_WARMUP || t->purpose == TRIAL_MAXIMUM ||
			t->purpose == TRIAL_LATENCY)
			continue;
		if (best && best->purpose == TRIAL_CONFIRM && t->purpose != TRIAL_CONFIRM)
			continue;
		best = t;
	}
	return best;
}

void result_latency(const struct profile *p, const struct trial *t, struct histogram *h)
{
	histogram_clear(h);
	for (uint32_t i = 0; i < t->streams && i < p->streams; i++)
		if (p->stream[i].answers < 0)
			histogram_join(h, &t->stream[i].latency);
}

static int judge_search(const struct profile *p, const struct run_result *r, char *text, size_t n)
{
	for (uint32_t i = 0; i < r->search.goals; i++) {
		uint32_t g = r->search.order[i];
		const struct search_result *found = &r->search.result[g];

		if (!found->found)
			return snprintf(text, n, "no rate has a loss of at most %g %%: %s",
				       r->search.goal[g].loss * 100,
				       found->reason ? found->reason : "none was found") >= 0;
		if (p->run.confirm_seconds > 0 && !r->confirmed[g])
			return snprintf(text, n, "the rate for a loss of at most %g %% did not hold in a trial of %g s",
				       r->search.goal[g].loss * 100, p->run.confirm_seconds) >= 0;
	}
	return 0;
}

static int judge_trials(const struct profile *p, const struct run_result *r, double tsc_hz, char *text, size_t n)
{
	double loss = run_strictest(p);

	for (uint32_t i = 0; i < r->trials; i++) {
		const struct run_trial *rt = &r->trial[i];
		const struct trial *t = &rt->trial;

		if (rt->purpose == TRIAL_FIXED && rt->used && t->loss_ratio > loss)
			return snprintf(text, n,
				       "%" PRIu64 " of %" PRIu64 " packets were lost (%.4g %%), allowed are %g %%",
				       t->judged_lost, t->judged_sent, t->loss_ratio * 100, loss * 100) >= 0;
		for (uint32_t k = 0; k < p->streams && k < t->streams && result_counts(r, rt); k++)
			if (expectation_judged(p, k, rt->purpose) && !stream_expectation(p, k, t, tsc_hz, text, n))
				return 1;
	}
	return 0;
}

// What keeps a good result from proving all that was asked for. A rate that the gateway has shown is a good result,
// but the one that it can do may be higher.
static const char *remark(const struct run_result *r)
{
	bool limited = false, disturbed = false;

	for (uint32_t i = 0; i < r->trials; i++)
		if (result_counts(r, &r->trial[i]) && r->trial[i].trial.stale > 0)
			return ", but packets came so late that they may have come twice, and as many may be missing";
	for (uint32_t i = 0; i < r->trials; i++)
		if (r->trial[i].purpose == TRIAL_FIXED && r->trial[i].used && r->trial[i].trial.tester_limited)
			return ", but the tester offered less than what was asked for";
	for (uint32_t g = 0; g < r->search.goals; g++) {
		limited |= r->search.result[g].tester_limited;
		disturbed |= r->search.result[g].disturbed;
	}
	if (limited)
		return ", but what limits is the tester: the gateway may do more";
	return disturbed ? ", but the machine disturbed the trials that were lost: the gateway may do more" : "";
}

int result_status(const struct profile *p, const struct run_result *r, double tsc_hz, char *text, size_t n)
{
	uint64_t wrong = 0, twice = 0;

	for (uint32_t i = 0; i < r->trials; i++) {
		wrong += r->trial[i].trial.wrong;
		twice += r->trial[i].trial.duplicate;
	}
	if (!r->complete) {
		snprintf(text, n, "%s", r->error[0] ? r->error : "not complete");
		return 2;
	}
	if (wrong) {
		snprintf(text, n, "%" PRIu64 " packets arrived with wrong contents", wrong);
		return 1;
	}
	if (twice) {
		snprintf(text, n, "%" PRIu64 " packets arrived twice", twice);
		return 1;
	}
	if (judge_search(p, r, text, n) || judge_trials(p, r, tsc_hz, text, n))
		return 1;
	snprintf(text, n, "good%s", remark(r));
	return 0;
}

// ---- text -----------------------------------------------------------------------------------------------------------

static double us(uint64_t ticks, double tsc_hz)
{
	return tsc_hz > 0 ? (double)ticks / tsc_hz * 1e6 : 0;
}

static double per_second(double what, double seconds)
{
	return seconds > 0 ? what / seconds : 0;
}

static void print_found(FILE *to, const struct profile *p, const struct run_result *r, uint32_t g)
{
	const struct search_result *found = &r->search.result[g];
	double bytes = run_mean_bytes(p), rate = found->lower;
	char goal[32];

	snprintf(goal, sizeof(goal), "loss <= %.4g %%", r->search.goal[g].loss * 100);
	fprintf(to, "  %-16s", goal);
	if (!found->found) {
		fprintf(to, " not found: %s\n", found->reason ? found->reason : "the search did not come to its end");
		return;
	}
	fprintf(to, " %9.4f Mpps %9.3f Gb/s L2 %9.3f Gb/s L1", rate / 1e6, rate * bytes * 8e-9,
		rate * (bytes + WIRE_BYTES) * 8e-9);
	if (found->upper > 0)
		fprintf(to, "  not %.4f", found->upper / 1e6);
	if (found->at_maximum)
		fprintf(to, "  highest rate allowed");
	if (found->tester_limited)
		fprintf(to, "  LIMITED BY THE TESTER");
	if (found->disturbed)
		fprintf(to, "  DISTURBED, may be more");
	if (p->run.confirm_seconds > 0)
		fprintf(to, "  %s", r->confirmed[g] ? "confirmed" : "NOT CONFIRMED");
	if (found->gave_up)
		fprintf(to, "  (%s)", found->reason);
	fputc('\n', to);
}

static void print_search(FILE *to, const struct profile *p, const struct run_result *r)
{
	const struct search *s = &r->search;
	double best = 0;

	fprintf(to, "\nsearch: %u trials between %.4f and %.4f Mpps\n", s->trials, s->min / 1e6, s->max / 1e6);
	for (uint32_t i = 0; i < s->goals; i++) {
		print_found(to, p, r, s->order[i]);
		best = fmax(best, s->result[s->order[i]].lower);
	}
	if (r->maximum_pps > 0 && best > 0)
		fprintf(to, "  the tester itself offers up to %.4f Mpps at these ports, %.2f times that%s\n",
			r->maximum_pps / 1e6, r->maximum_pps / best,
			r->maximum_pps < 1.3 * best ? ": too little to be sure that the gateway is what limits" : "");
}

static void print_streams(FILE *to, const struct profile *p, const struct run_trial *rt, double tsc_hz)
{
	const struct trial *t = &rt->trial;

	fprintf(to, "\n%s, ", trial_purpose_name[rt->purpose]);
	if (isfinite(t->asked.rate))
		fprintf(to, "%.4f Mpps for %.3g s", t->asked.rate / 1e6, t->asked.seconds);
	else
		fprintf(to, "as fast as possible for %.3g s", t->asked.seconds);
	fprintf(to, "%s%s; tester %.0f ticks a packet, clock %.2f GHz\n",
		t->tester_limited ? ", the tester offered less" : "", t->disturbed ? ", disturbed" : "", t->busy_ticks,
		t->clock_ghz);
	fprintf(to, "%-16s %12s %12s %9s %9s %9s %9s %7s %8s %8s %9s %9s %9s\n", "STREAM", "SENT", "RECEIVED", "LOST",
		"LOST %", "REORDER", "TWICE", "WRONG", "MPPS", "GB/S L2", "P50 US", "P99 US", "MAX US");
	for (uint32_t i = 0; i < t->streams && i < p->streams; i++) {
		const struct stream_count *c = &t->stream[i];
		uint64_t wrong = 0;

		for (uint32_t k = 0; k < WRONG_KINDS; k++)
			wrong += c->wrong[k];
		fprintf(to,
			"%-16s %12" PRIu64 " %12" PRIu64 " %9" PRIu64 " %9.4g %9" PRIu64 " %9" PRIu64 " %7" PRIu64
			" %8.4f %8.3f %9.1f %9.1f %9.1f\n",
			p->stream[i].name, c->sent, c->received, c->lost,
			c->sent ? 100.0 * (double)c->lost / (double)c->sent : 0, (c->reordered + c->stale),
			c->duplicate, wrong, per_second((double)c->received, t->seconds) / 1e6,
			per_second((double)c->received_bytes * 8e-9, t->seconds),
			us(histogram_quantile(&c->latency, 0.5), tsc_hz),
			us(histogram_quantile(&c->latency, 0.99), tsc_hz), us(c->latency.max, tsc_hz));
	}
	if (t->foreign || t->stray)
		fprintf(to, "  %" PRIu64 " frames were nobody's, %" PRIu64 " of an earlier trial\n", t->foreign,
			t->stray);
}

// A line for each trial of a kind: what was offered, what arrived, how late.
static void print_trials(FILE *to, const struct profile *p, const struct run_result *r, enum trial_purpose why,
	double tsc_hz, const char *title)
{
	struct histogram *h = calloc(1, sizeof(*h));

	if (!h)
		return;
	fprintf(to, "\n%-16s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", title, "OFFERED", "ARRIVED", "LOST %", "MIN US",
		"P50", "P90", "P99", "P99.9", "MAX");
	for (uint32_t i = 0; i < r->trials; i++) {
		const struct run_trial *rt = &r->trial[i];
		const struct trial *t = &rt->trial;
		char name[32];

		if (rt->purpose != why || !rt->used)
			continue;
		result_latency(p, t, h);
		snprintf(name, sizeof(name), "%.4g %%", rt->part * 100);
		if (rt->part <= 0)
			snprintf(
				name, sizeof(name), isfinite(t->asked.rate) ? "%.4g Mpps" : "max", t->asked.rate / 1e6);
		fprintf(to, "%-16s %9.4f %9.4f %9.4g %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f%s%s\n", name,
			t->offered_pps / 1e6, per_second((double)t->received, t->seconds) / 1e6, t->loss_ratio * 100,
			h->count ? us(h->min, tsc_hz) : 0, us(histogram_quantile(h, 0.5), tsc_hz),
			us(histogram_quantile(h, 0.9), tsc_hz), us(histogram_quantile(h, 0.99), tsc_hz),
			us(histogram_quantile(h, 0.999), tsc_hz), us(h->max, tsc_hz), t->disturbed ? "  disturbed" : "",
			t->tester_limited ? "  tester limited" : "");
	}
	free(h);
}

static void print_disturbed(FILE *to, const struct run_result *r)
{
	uint32_t reason[6] = {0}, counted = 0;

	for (uint32_t i = 0; i < r->trials; i++) {
		uint32_t disturbed = r->trial[i].trial.disturbed;

		if (r->trial[i].used) {
			counted += disturbed != 0;
			continue;
		}
		reason[0] += (disturbed & DISTURBED_STEAL) != 0;
		reason[1] += (disturbed & DISTURBED_SWITCHED) != 0;
		reason[2] += (disturbed & DISTURBED_GAP) != 0;
		reason[3] += (disturbed & DISTURBED_MISSED) != 0;
		reason[4] += (disturbed & DISTURBED_FAR) != 0;
		reason[5] += disturbed == 0 && r->trial[i].trial.tester_limited;
	}
	if (r->discarded)
		fprintf(to,
			"%u disturbed trials were discarded and repeated: stolen time %u, context switches %u, pauses "
			"%u, missed frames %u, CPUs far apart %u, tester fell behind %u\n",
			r->discarded, reason[0], reason[1], reason[2], reason[3], reason[4], reason[5]);
	if (counted)
		fprintf(to,
			"%u trials count though they were disturbed: they lost nothing, or could not be repeated any "
			"more\n",
			counted);
}

static void print_bytes(FILE *to, const char *title, const uint8_t *bytes, uint32_t n)
{
	fprintf(to, "    %-10s", title);
	for (uint32_t i = 0; i < n && i < BYTES_SHOWN; i++)
		fprintf(to, "%s%02x", i && i % 8 == 0 ? " " : "", bytes[i]);
	fprintf(to, "%s\n", n > BYTES_SHOWN ? " ..." : "");
}

static void print_wrong(FILE *to, const struct profile *p, const struct run_result *r)
{
	uint32_t shown = 0;

	for (uint32_t i = 0; i < r->trials; i++) {
		const struct trial *t = &r->trial[i].trial;

		for (uint32_t k = 0; k < t->streams && k < p->streams; k++) {
			const struct stream_count *c = &t->stream[k];

			for (uint32_t w = 0; w < c->wrong_kept && w < WRONG_KEPT && shown < FRAMES_SHOWN;
				w++, shown++) {
				const struct wrong_frame *f = &c->wrong_frame[w];

				fprintf(to, "%sstream %s, flow %u: wrong %s at byte %u (%s) of %u\n", shown ? "" : "\n",
					p->stream[k].name, f->flow, f->kind < WRONG_KINDS ? wrong_name[f->kind] : "?",
					f->offset, f->where, f->length);
				print_bytes(to, "arrived", f->frame, f->kept);
				print_bytes(to, "expected", f->expected, f->kept);
				if (f->offset < f->kept && f->offset < BYTES_SHOWN)
					fprintf(to, "    %*s^^\n", 10 + 2 * f->offset + f->offset / 8, "");
			}
		}
	}
}

static void print_expectations(FILE *to, const struct profile *p, const struct run_result *r, double tsc_hz)
{
	for (uint32_t k = 0; k < p->streams; k++) {
		char text[SENTENCE_BYTES], first[SENTENCE_BYTES] = "";
		uint32_t judged = 0, failed = 0;

		for (uint32_t i = 0; i < r->trials; i++) {
			const struct run_trial *rt = &r->trial[i];

			if (!result_counts(r, rt) || !expectation_judged(p, k, rt->purpose))
				continue;
			judged++;
			if (stream_expectation(p, k, &rt->trial, tsc_hz, text, sizeof(text)))
				continue;
			if (failed++ == 0)
				snprintf(first, sizeof(first), "%s", text);
		}
		if (failed)
			fprintf(to, "expectation failed in %u of %u trials: %s\n", failed, judged, first);
		else if (judged)
			fprintf(to, "expectation held in %u trials: stream \"%s\"\n", judged, p->stream[k].name);
	}
}

void result_print(FILE *to, const struct profile *p, const struct run_result *r, double tsc_hz)
{
	const struct run_trial *main_trial = result_main_trial(r);
	char text[SENTENCE_BYTES];
	int status = result_status(p, r, tsc_hz, text, sizeof(text));

	fprintf(to, "%s%s%s: %u streams, %.4g B on average, %u trials in %.1f s\n", p->name, p->title[0] ? ", " : "",
		p->title, p->streams, run_mean_bytes(p), r->trials, r->seconds);
	if (r->searched)
		print_search(to, p, r);
	if (r->steps)
		print_trials(to, p, r, TRIAL_STEP, tsc_hz, "STEP, MPPS");
	if (main_trial && !r->steps)
		print_streams(to, p, main_trial, tsc_hz);
	if (r->latency) {
		print_trials(to, p, r, TRIAL_LATENCY, tsc_hz, "LOAD, MPPS");
		if (r->reference_goal >= 0)
			fprintf(to, "  parts of the rate for loss <= %.4g %%, %.4f Mpps\n",
				r->search.goal[r->reference_goal].loss * 100, r->reference_pps / 1e6);
	}
	print_wrong(to, p, r);
	if (r->trials)
		fputc('\n', to);
	print_disturbed(to, r);
	print_expectations(to, p, r, tsc_hz);
	fprintf(to, "%s%s\n", status == 0 ? "" : status == 1 ? "NOT GOOD: " : "NOT COMPLETE: ", text);
}
