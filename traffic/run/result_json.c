// SPDX-License-Identifier: Apache-2.0
// The result as JSON, and events as lines of JSON. Units: packets and bits per second, seconds, latency in
// microseconds.
#include "traffic/engine/machine.h"
#include "traffic/run/run.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS JSON_REAL_PRECISION(12)

// JSON has no infinity: a rate without limit is null.
static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static double microseconds(uint64_t ticks, double tsc_hz)
{
	return tsc_hz > 0 ? (double)ticks / tsc_hz * 1e6 : 0;
}

static json_t *latency_json(const struct histogram *h, double tsc_hz, bool buckets)
{
	static const struct {
		const char *name;
		double part;
	} quantile[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}};
	json_t *o = json_object(), *list;

	json_object_set_new(o, "count", count(h->count));
	json_object_set_new(o, "min", real(h->count ? microseconds(h->min, tsc_hz) : 0));
	json_object_set_new(o, "mean", real(h->count ? microseconds(h->sum, tsc_hz) / (double)h->count : 0));
	for (uint32_t i = 0; i < sizeof(quantile) / sizeof(quantile[0]); i++)
		json_object_set_new(
			o, quantile[i].name, real(microseconds(histogram_quantile(h, quantile[i].part), tsc_hz)));
	json_object_set_new(o, "max", real(microseconds(h->max, tsc_hz)));
	if (!buckets)
		return o;
	list = json_array();
	for (uint32_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
		// The last bucket has no end of its own.
		uint64_t high = b + 1 < HISTOGRAM_BUCKETS ? histogram_high(b) : h->max;

		if (h->bucket[b])
			json_array_append_new(list, json_pack("[o, o, o]", real(microseconds(histogram_low(b), tsc_hz)),
							    real(microseconds(high, tsc_hz)), count(h->bucket[b])));
	}
	json_object_set_new(o, "histogram", list);
	return o;
}

static json_t *hex(const uint8_t *bytes, uint32_t n)
{
	char text[2 * WRONG_BYTES + 1] = "";

	for (uint32_t i = 0; i < n && i < WRONG_BYTES; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
	return json_string(text);
}

static json_t *wrong_frames_json(const struct stream_count *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->wrong_kept && i < WRONG_KEPT; i++) {
		const struct wrong_frame *w = &c->wrong_frame[i];
		json_t *o = json_object();

		json_object_set_new(o, "kind", json_string(w->kind < WRONG_KINDS ? wrong_name[w->kind] : "?"));
		json_object_set_new(o, "where", json_string(w->where));
		json_object_set_new(o, "offset", count(w->offset));
		json_object_set_new(o, "length", count(w->length));
		json_object_set_new(o, "flow", count(w->flow));
		json_object_set_new(o, "frame", hex(w->frame, w->kept));
		json_object_set_new(o, "expected", hex(w->expected, w->kept));
		json_array_append_new(list, o);
	}
	return list;
}

static double per_second(double what, double seconds)
{
	return seconds > 0 ? what / seconds : 0;
}

// Histograms are left out of the many trials of a search, which nobody draws curves of.
static bool with_buckets(enum trial_purpose why)
{
	return why == TRIAL_FIXED || why == TRIAL_CONFIRM || why == TRIAL_STEP || why == TRIAL_LATENCY;
}

static json_t *stream_json(
	const struct profile *p, const struct run_result *r, const struct run_trial *rt, uint32_t i, double tsc_hz)
{
	const struct trial *t = &rt->trial;
	const struct stream_count *c = &t->stream[i];
	json_t *o = json_object(), *wrong = json_object();
	char text[SENTENCE_BYTES];

	json_object_set_new(o, "name", json_string(p->stream[i].name));
	json_object_set_new(o, "sent", count(c->sent));
	json_object_set_new(o, "refused", count(c->refused));
	json_object_set_new(o, "received", count(c->received));
	json_object_set_new(o, "lost", count(c->lost));
	json_object_set_new(o, "duplicate", count(c->duplicate));
	json_object_set_new(o, "reordered", count(c->reordered));
	json_object_set_new(o, "stale", count(c->stale));
	for (uint32_t k = 0; k < WRONG_KINDS; k++)
		if (c->wrong[k])
			json_object_set_new(wrong, wrong_name[k], count(c->wrong[k]));
	json_object_set_new(o, "wrong", wrong);
	json_object_set_new(o, "decoded", count(c->decoded));
	json_object_set_new(o, "received_pps", real(per_second((double)c->received, t->seconds)));
	json_object_set_new(o, "gbps_l2", real(per_second((double)c->received_bytes * 8e-9, t->seconds)));
	json_object_set_new(o, "gbps_l3", real(per_second((double)c->received_l3_bytes * 8e-9, t->seconds)));
	json_object_set_new(o, "latency_us", latency_json(&c->latency, tsc_hz, r && with_buckets(rt->purpose)));
	if ((r ? result_counts(r, rt) : rt->used) && expectation_judged(p, i, rt->purpose))
		json_object_set_new(o, "expectation",
			json_string(stream_expectation(p, i, t, tsc_hz, text, sizeof(text)) ? "held" : text));
	if (c->wrong_kept)
		json_object_set_new(o, "wrong_frames", wrong_frames_json(c));
	return o;
}

static json_t *disturbed_json(uint32_t disturbed)
{
	json_t *list = json_array();

	if (disturbed & DISTURBED_STEAL)
		json_array_append_new(list, json_string("steal"));
	if (disturbed & DISTURBED_SWITCHED)
		json_array_append_new(list, json_string("switched"));
	if (disturbed & DISTURBED_GAP)
		json_array_append_new(list, json_string("gap"));
	if (disturbed & DISTURBED_FAR)
		json_array_append_new(list, json_string("far"));
	if (disturbed & DISTURBED_MISSED)
		json_array_append_new(list, json_string("missed"));
	return list;
}

static void add_counts(json_t *o, const struct trial *t)
{
	json_object_set_new(o, "sent", count(t->sent));
	json_object_set_new(o, "received", count(t->received));
	json_object_set_new(o, "lost", count(t->lost));
	json_object_set_new(o, "loss_ratio", real(t->loss_ratio));
	json_object_set_new(o, "duplicate", count(t->duplicate));
	json_object_set_new(o, "reordered", count(t->reordered));
	json_object_set_new(o, "stale", count(t->stale));
	json_object_set_new(o, "wrong", count(t->wrong));
	json_object_set_new(o, "foreign", count(t->foreign));
	json_object_set_new(o, "control", count(t->control));
	json_object_set_new(o, "stray", count(t->stray));
}

// Adds a trial's fields to an object. `r`: the run that it belongs to, or NULL while that is going on.
static void add_trial(
	json_t *o, const struct profile *p, const struct run_result *r, const struct run_trial *rt, double tsc_hz)
{
	const struct trial *t = &rt->trial;
	json_t *streams = json_array();
	struct histogram *h = calloc(1, sizeof(*h));
	double bits = 0;

	for (uint32_t i = 0; i < t->streams && i < p->streams; i++) {
		bits += (double)t->stream[i].received_bytes * 8;
		json_array_append_new(streams, stream_json(p, r, rt, i, tsc_hz));
	}
	json_object_set_new(o, "purpose", json_string(trial_purpose_name[rt->purpose]));
	json_object_set_new(o, "used", json_boolean(rt->used));
	if (rt->part > 0)
		json_object_set_new(o, "part", real(rt->part));
	json_object_set_new(o, "rate_pps", real(t->asked.rate));
	json_object_set_new(o, "asked_seconds", real(t->asked.seconds));
	json_object_set_new(o, "seconds", real(t->seconds));
	json_object_set_new(o, "offered_pps", real(t->offered_pps));
	add_counts(o, t);
	json_object_set_new(o, "gbps_l2", real(per_second(bits, t->seconds) * 1e-9));
	json_object_set_new(
		o, "gbps_l1", real(per_second(bits + (double)t->received * 8 * WIRE_BYTES, t->seconds) * 1e-9));
	json_object_set_new(o, "tester_limited", json_boolean(t->tester_limited));
	json_object_set_new(o, "disturbed", disturbed_json(t->disturbed));
	json_object_set_new(o, "steal", real(t->steal));
	json_object_set_new(o, "switches", count(t->switches));
	json_object_set_new(o, "gap_us", real(t->gap_us));
	json_object_set_new(o, "missed", count(t->missed));
	json_object_set_new(o, "busy_ticks", real(t->busy_ticks));
	json_object_set_new(o, "round_trip_ns", real(t->round_trip_ns));
	json_object_set_new(o, "clock_ghz", real(t->clock_ghz));
	json_object_set_new(o, "interrupted", json_boolean(t->interrupted));
	if (h) {
		result_latency(p, t, h);
		json_object_set_new(o, "latency_us", latency_json(h, tsc_hz, r && with_buckets(rt->purpose)));
		free(h);
	}
	json_object_set_new(o, "streams", streams);
}

static json_t *search_json(const struct run_result *r)
{
	const struct search *s = &r->search;
	json_t *o = json_object(), *goals = json_array();

	json_object_set_new(o, "min", real(s->min));
	json_object_set_new(o, "max", real(s->max));
	json_object_set_new(o, "trials", count(s->trials));
	for (uint32_t g = 0; g < s->goals; g++) {
		const struct search_result *found = &s->result[g];
		json_t *goal = json_object();

		json_object_set_new(goal, "loss", real(s->goal[g].loss));
		json_object_set_new(goal, "found", json_boolean(found->found));
		json_object_set_new(goal, "rate_pps", real(found->lower));
		json_object_set_new(goal, "upper_pps", real(found->upper));
		json_object_set_new(goal, "conditional_pps", real(found->conditional));
		json_object_set_new(goal, "at_maximum", json_boolean(found->at_maximum));
		json_object_set_new(goal, "tester_limited", json_boolean(found->tester_limited));
		json_object_set_new(goal, "disturbed", json_boolean(found->disturbed));
		json_object_set_new(goal, "gave_up", json_boolean(found->gave_up));
		if (found->reason)
			json_object_set_new(goal, "reason", json_string(found->reason));
		json_object_set_new(goal, "confirmed", json_boolean(r->confirmed[g]));
		json_array_append_new(goals, goal);
	}
	json_object_set_new(o, "goals", goals);
	return o;
}

static json_t *machine_json(const struct profile *p, const struct run_result *r, double tsc_hz)
{
	char cpu[TEXT_BYTES], kernel[TEXT_BYTES];
	json_t *o = json_object(), *cpus = json_array();

	machine_describe(cpu, sizeof(cpu), kernel, sizeof(kernel));
	for (uint32_t i = 0; i < p->cpus; i++)
		json_array_append_new(cpus, count(p->cpu[i]));
	json_object_set_new(o, "cpu", json_string(cpu));
	json_object_set_new(o, "kernel", json_string(kernel));
	json_object_set_new(o, "tsc_hz", real(tsc_hz));
	json_object_set_new(o, "clock_ghz", real(machine_clock_ghz(tsc_hz)));
	json_object_set_new(o, "cpus", cpus);
	json_object_set_new(o, "huge_pages", json_boolean(p->huge_pages));
	json_object_set_new(o, "dpdk", json_string(r->dpdk));
	return o;
}

static void add_profile(json_t *o, const struct profile *p, const struct run_result *r)
{
	json_t *ports = json_array(), *streams = json_array();

	for (uint32_t i = 0; i < p->ports; i++) {
		json_t *port = json_object();

		json_object_set_new(port, "name", json_string(p->port[i].name));
		json_object_set_new(port, "driver", json_string(p->port[i].driver));
		json_object_set_new(port, "device", json_string(p->port[i].device));
		if (r->speed_mbps)
			json_object_set_new(port, "speed_mbps", count(r->speed_mbps[i]));
		json_array_append_new(ports, port);
	}
	json_object_set_new(o, "ports", ports);
	for (uint32_t i = 0; i < p->streams; i++) {
		const struct profile_stream *s = &p->stream[i];
		json_t *stream = json_object();

		json_object_set_new(stream, "name", json_string(s->name));
		json_object_set_new(stream, "port", json_string(p->port[s->port].name));
		json_object_set_new(stream, "sink", json_string(p->port[s->sink].name));
		json_object_set_new(stream, "flows", count(s->flows));
		json_object_set_new(stream, "mean_bytes", real(stream_mean_bytes(s)));
		json_object_set_new(stream, "share", count(run_has_share(s) ? s->share : 0));
		if (s->answers >= 0)
			json_object_set_new(stream, "answers", json_string(p->stream[s->answers].name));
		json_array_append_new(streams, stream);
	}
	json_object_set_new(o, "streams", streams);
}

static void add_run(json_t *o, const struct profile *p, const struct run_result *r, double tsc_hz)
{
	char text[SENTENCE_BYTES], started[32] = "";
	json_t *command = json_array();
	struct tm utc;

	for (int i = 0; i < r->argc; i++)
		json_array_append_new(command, json_string(r->argv[i]));
	if (gmtime_r(&r->started, &utc))
		strftime(started, sizeof(started), "%Y-%m-%dT%H:%M:%SZ", &utc);
	json_object_set_new(o, "profile", json_string(p->name));
	json_object_set_new(o, "title", json_string(p->title));
	json_object_set_new(o, "file", json_string(p->file));
	json_object_set_new(o, "version", json_string(ISTHMUS_VERSION));
	json_object_set_new(o, "complete", json_boolean(r->complete));
	json_object_set_new(o, "interrupted", json_boolean(r->interrupted));
	json_object_set_new(o, "error", json_string(r->error));
	json_object_set_new(o, "status", json_integer(result_status(p, r, tsc_hz, text, sizeof(text))));
	json_object_set_new(o, "verdict", json_string(text));
	json_object_set_new(o, "command", command);
	json_object_set_new(o, "started", json_string(started));
	json_object_set_new(o, "seconds", real(r->seconds));
}

int result_write_json(const char *file, const struct profile *p, const struct run_result *r, double tsc_hz)
{
	json_t *o = json_object(), *trials = json_array();
	char part[4096];
	int status;

	add_run(o, p, r, tsc_hz);
	json_object_set_new(o, "machine", machine_json(p, r, tsc_hz));
	add_profile(o, p, r);
	if (r->searched)
		json_object_set_new(o, "search", search_json(r));
	if (r->maximum_pps > 0)
		json_object_set_new(o, "tester_maximum_pps", real(r->maximum_pps));
	if (r->reference_pps > 0)
		json_object_set_new(o, "reference",
			json_pack("{s:o, s:i}", "rate_pps", real(r->reference_pps), "goal", (int)r->reference_goal));
	for (uint32_t i = 0; i < r->trials; i++) {
		json_t *trial = json_object();

		add_trial(trial, p, r, &r->trial[i], tsc_hz);
		json_array_append_new(trials, trial);
	}
	json_object_set_new(o, "trials", trials);
	if (!file || strcmp(file, "-") == 0) {
		status = json_dumpf(o, stdout, JSON_INDENT(1) | DIGITS);
		status |= fputc('\n', stdout) < 0 || fflush(stdout) != 0 ? -1 : 0;
	} else {
		// Whoever reads the file sees a whole one.
		snprintf(part, sizeof(part), "%s.part", file);
		status = json_dump_file(o, part, JSON_COMPACT | DIGITS) == 0 && rename(part, file) == 0 ? 0 : -1;
	}
	json_decref(o);
	return status;
}

void result_event(FILE *to, const struct profile *p, enum trial_purpose why, const struct trial_request *asked,
	const struct run_trial *ended, double tsc_hz)
{
	json_t *o = json_object();

	json_object_set_new(o, "event", json_string(ended ? "end" : "begin"));
	if (ended) {
		add_trial(o, p, NULL, ended, tsc_hz);
	} else {
		json_object_set_new(o, "purpose", json_string(trial_purpose_name[why]));
		json_object_set_new(o, "rate_pps", real(asked->rate));
		json_object_set_new(o, "asked_seconds", real(asked->seconds));
	}
	json_dumpf(o, to, JSON_COMPACT | DIGITS);
	fputc('\n', to);
	fflush(to);
	json_decref(o);
}
