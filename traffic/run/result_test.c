// SPDX-License-Identifier: Apache-2.0
// The result as JSON and as text, of a run made by hand; and the verdict.
#include "traffic/run/run.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TSC_HZ 2e9 // a microsecond is 2,000 ticks

static struct profile *make_profile(void)
{
	struct profile *p = calloc(1, sizeof(*p));

	snprintf(p->name, sizeof(p->name), "made-up");
	snprintf(p->title, sizeof(p->title), "two ways");
	snprintf(p->file, sizeof(p->file), "made-up.yaml");
	p->cpus = 2;
	p->cpu[0] = 3;
	p->cpu[1] = 5;
	p->ports = 2;
	snprintf(p->port[0].name, NAME_BYTES, "access");
	snprintf(p->port[0].driver, NAME_BYTES, "net_memif");
	snprintf(p->port[0].device, TEXT_BYTES, "/run/a.sock");
	snprintf(p->port[1].name, NAME_BYTES, "core");
	p->streams = 2;
	p->stream = calloc(p->streams, sizeof(*p->stream));
	for (uint32_t i = 0; i < p->streams; i++) {
		struct profile_stream *s = &p->stream[i];

		snprintf(s->name, sizeof(s->name), "%s", i ? "pong" : "up");
		s->sink = !i;
		s->port = i;
		s->flows = 4096;
		s->answers = (int32_t)i - 1;
		s->share = !i;
		s->sizes = 1;
		s->size[0] = (struct profile_size){.bytes = 480, .weight = 1};
	}
	p->run = (struct profile_run){.mode = RUN_SEARCH,
		.goals = 2,
		.goal = {{.loss = 0, .width = 0.005}, {.loss = 1e-5, .width = 0.005}},
		.confirm_seconds = 2};
	return p;
}

static struct run_trial *add_trial(struct run_result *r, enum trial_purpose why, double rate, uint64_t lost)
{
	struct run_trial *rt;
	struct trial *t;
	struct stream_count *c;

	r->trial = realloc(r->trial, (r->trials + 1) * sizeof(*r->trial));
	rt = &r->trial[r->trials++];
	*rt = (struct run_trial){.purpose = why, .used = true};
	t = &rt->trial;
	t->asked = (struct trial_request){.rate = rate, .seconds = 2};
	t->seconds = 2;
	t->offered_pps = isfinite(rate) ? rate : 5e6;
	t->streams = 2;
	t->stream = calloc(2, sizeof(*t->stream));
	c = &t->stream[0];
	c->sent = t->sent = t->judged_sent = (uint64_t)(t->offered_pps * 2);
	c->lost = t->lost = t->judged_lost = lost;
	c->received = t->received = c->sent - lost;
	c->received_bytes = c->received * 480;
	c->received_l3_bytes = c->received * 460;
	t->loss_ratio = (double)lost / (double)c->sent;
	t->clock_ghz = 3.7;
	t->busy_ticks = 88;
	histogram_clear(&c->latency);
	histogram_clear(&t->stream[1].latency);
	for (uint32_t i = 1; i <= 100; i++)
		histogram_add(&c->latency, i * 2000);
	histogram_add(&t->stream[1].latency, 4000000); // a round trip, no latency of the trial
	return rt;
}

static void make_wrong(struct run_trial *rt)
{
	struct stream_count *c = &rt->trial.stream[0];

	rt->trial.wrong = c->wrong[WRONG_HEADER] = 3;
	c->wrong_kept = 1;
	c->wrong_frame[0] =
		(struct wrong_frame){.kind = WRONG_HEADER, .offset = 46, .length = 476, .flow = 17, .kept = 3};
	memcpy(c->wrong_frame[0].frame, "\x01\x02\xff", 3);
	memcpy(c->wrong_frame[0].expected, "\x01\x02\x00", 3);
	snprintf(c->wrong_frame[0].where, sizeof(c->wrong_frame[0].where), "gtpu.teid");
}

// A search that found 2 Mpps for no loss and 2.5 Mpps for a little, with all kinds of trials.
static struct run_result *make_result(const struct profile *p)
{
	static char *argv[] = {"isthmus-traffic", "made-up.yaml"};
	static const uint32_t speed[] = {10000, 0};
	struct run_result *r = calloc(1, sizeof(*r));
	struct run_trial *rt;

	search_init(&r->search, 1e3, 5e6, p->run.goal, 2);
	r->search.trials = 1;
	r->search.result[0] = (struct search_result){.found = true, .lower = 2e6, .upper = 2.01e6, .conditional = 2e6};
	r->search.result[1] =
		(struct search_result){.found = true, .lower = 2.5e6, .upper = 2.51e6, .conditional = 2.4999e6};
	r->searched = r->complete = r->confirmed[0] = r->confirmed[1] = true;
	r->maximum_pps = 5e6;
	r->reference_pps = 2.5e6;
	r->reference_goal = 1;
	r->started = 1782000000; // 2026-06-21T00:00:00Z
	r->seconds = 12.5;
	r->argc = 2;
	r->argv = argv;
	r->speed_mbps = speed;
	snprintf(r->dpdk, sizeof(r->dpdk), "DPDK 22.11.11");
	add_trial(r, TRIAL_WARMUP, 1e4, 20000); // not judged
	add_trial(r, TRIAL_MAXIMUM, INFINITY, 1000000);
	rt = add_trial(r, TRIAL_SEARCH, 2e6, 7);
	rt->used = false;
	rt->trial.disturbed = DISTURBED_STEAL | DISTURBED_GAP | DISTURBED_MISSED;
	rt->trial.missed = 12;
	r->discarded = 1;
	add_trial(r, TRIAL_SEARCH, 2e6, 0);
	add_trial(r, TRIAL_CONFIRM, 2.6e6, 100000); // refuted
	add_trial(r, TRIAL_CONFIRM, 2.5e6, 20);
	rt = add_trial(r, TRIAL_LATENCY, 1.25e6, 0);
	rt->part = 0.5;
	r->latency = 1;
	return r;
}

static void done(struct profile *p, struct run_result *r)
{
	run_free(r);
	free(r);
	free(p->stream);
	free(p);
}

static json_t *written(const struct profile *p, const struct run_result *r)
{
	char name[] = "/tmp/traffic-result-XXXXXX";
	int fd = mkstemp(name);
	json_error_t error;
	json_t *o;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(result_write_json(name, p, r, TSC_HZ), 0);
	o = json_load_file(name, 0, &error);
	unlink(name);
	assert_non_null(o);
	return o;
}

static double number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_number(v));
	return json_number_value(v);
}

static const char *text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	assert_non_null(s);
	return s;
}

static bool truth(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_true(json_is_boolean(v));
	return json_is_true(v);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void json_of_run(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);
	json_t *o = written(p, r), *x;

	assert_string_equal(text_of(o, "profile"), "made-up");
	assert_string_equal(text_of(o, "file"), "made-up.yaml");
	assert_string_equal(text_of(o, "version"), ISTHMUS_VERSION);
	assert_string_equal(text_of(o, "started"), "2026-06-21T00:00:00Z");
	assert_true(truth(o, "complete") && !truth(o, "interrupted") && number(o, "seconds") == 12.5);
	assert_string_equal(text_of(o, "error"), "");
	assert_true(number(o, "status") == 0);
	assert_string_equal(text_of(o, "verdict"), "good");
	assert_int_equal(json_array_size(json_object_get(o, "command")), 2);
	x = json_object_get(o, "machine");
	assert_true(number(x, "tsc_hz") == TSC_HZ && number(x, "clock_ghz") > 0 && !truth(x, "huge_pages"));
	assert_true(strlen(text_of(x, "cpu")) > 0 && strlen(text_of(x, "kernel")) > 0);
	assert_string_equal(text_of(x, "dpdk"), "DPDK 22.11.11");
	assert_true(json_integer_value(json_array_get(json_object_get(x, "cpus"), 1)) == 5);
	x = json_array_get(json_object_get(o, "ports"), 0);
	assert_string_equal(text_of(x, "device"), "/run/a.sock");
	assert_true(number(x, "speed_mbps") == 10000);
	x = json_array_get(json_object_get(o, "streams"), 1);
	assert_string_equal(text_of(x, "answers"), "up");
	assert_string_equal(text_of(x, "port"), "core");
	assert_true(number(x, "flows") == 4096 && number(x, "mean_bytes") == 480 && number(x, "share") == 0);
	x = json_object_get(o, "search");
	assert_true(number(x, "min") == 1000 && number(x, "max") == 5e6 && number(x, "trials") == 1);
	x = json_array_get(json_object_get(x, "goals"), 1);
	assert_true(number(x, "loss") == 1e-5 && number(x, "rate_pps") == 2.5e6 && number(x, "upper_pps") == 2.51e6);
	assert_true(number(x, "conditional_pps") == 2.4999e6 && truth(x, "found") && truth(x, "confirmed"));
	assert_false(truth(x, "disturbed"));
	assert_false(truth(x, "at_maximum") || truth(x, "tester_limited") || truth(x, "gave_up"));
	assert_true(number(json_object_get(o, "reference"), "rate_pps") == 2.5e6);
	assert_int_equal(json_array_size(json_object_get(o, "trials")), r->trials);
	json_decref(o);

	// Without a search there is none.
	r->searched = false;
	o = written(p, r);
	assert_null(json_object_get(o, "search"));
	json_decref(o);
	done(p, r);
}

static void json_of_trials(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);
	json_t *o, *trials, *t, *s, *h;

	make_wrong(&r->trial[6]);
	o = written(p, r);
	trials = json_object_get(o, "trials");
	// A rate without limit is null.
	assert_true(json_is_null(json_object_get(json_array_get(trials, 1), "rate_pps")));
	t = json_array_get(trials, 2);
	assert_false(truth(t, "used"));
	assert_string_equal(json_string_value(json_array_get(json_object_get(t, "disturbed"), 0)), "steal");
	assert_string_equal(json_string_value(json_array_get(json_object_get(t, "disturbed"), 1)), "gap");
	assert_string_equal(json_string_value(json_array_get(json_object_get(t, "disturbed"), 2)), "missed");
	assert_true(number(t, "missed") == 12);
	assert_null(json_object_get(json_object_get(t, "latency_us"), "histogram"));
	t = json_array_get(trials, 6);
	assert_string_equal(text_of(t, "purpose"), "latency");
	assert_true(truth(t, "used") && number(t, "part") == 0.5);
	assert_true(number(t, "rate_pps") == 1.25e6 && number(t, "asked_seconds") == 2 && number(t, "seconds") == 2);
	assert_true(number(t, "sent") == 2.5e6 && number(t, "received") == 2.5e6 && number(t, "wrong") == 3);
	assert_true(near(number(t, "gbps_l2"), 1.25e6 * 480 * 8e-9) && near(number(t, "gbps_l1"), 1.25e6 * 500 * 8e-9));
	assert_true(number(t, "clock_ghz") == 3.7 && number(t, "busy_ticks") == 88);
	h = json_object_get(t, "latency_us");
	// 1 to 100 us, without the round trip of the stream that answers. Buckets are 1/32 wide.
	assert_true(number(h, "count") == 100 && number(h, "min") == 1 && number(h, "max") == 100);
	assert_true(near(number(h, "mean"), 50.5) && number(h, "p50") >= 50 && number(h, "p50") <= 51.6);
	assert_true(number(h, "p99") >= 99 && number(h, "p999") == 100);

	double sum = 0;
	size_t i;
	json_t *bucket;

	json_array_foreach(json_object_get(h, "histogram"), i, bucket)
	{
		assert_int_equal(json_array_size(bucket), 3);
		assert_true(
			json_number_value(json_array_get(bucket, 0)) <= json_number_value(json_array_get(bucket, 1)));
		sum += json_number_value(json_array_get(bucket, 2));
	}
	assert_true(sum == 100);
	s = json_array_get(json_object_get(t, "streams"), 0);
	assert_true(number(json_object_get(s, "wrong"), "header") == 3);
	assert_null(json_object_get(json_object_get(s, "wrong"), "payload"));
	assert_true(near(number(s, "received_pps"), 1.25e6) && near(number(s, "gbps_l3"), 1.25e6 * 460 * 8e-9));
	assert_null(json_object_get(s, "expectation"));
	s = json_array_get(json_object_get(s, "wrong_frames"), 0);
	assert_string_equal(text_of(s, "kind"), "header");
	assert_string_equal(text_of(s, "where"), "gtpu.teid");
	assert_string_equal(text_of(s, "frame"), "0102ff");
	assert_string_equal(text_of(s, "expected"), "010200");
	assert_true(number(s, "offset") == 46 && number(s, "flow") == 17 && number(s, "length") == 476);
	json_decref(o);
	done(p, r);
}

static void json_cannot_be_written(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);

	assert_int_equal(result_write_json("/nonexistent/result.json", p, r, TSC_HZ), -1);
	done(p, r);
}

static void events(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);
	struct trial_request asked = {.rate = INFINITY, .seconds = 0.5};
	char *line = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&line, &n);
	json_error_t error;
	json_t *o;

	result_event(f, p, TRIAL_MAXIMUM, &asked, NULL, TSC_HZ);
	fflush(f);
	assert_string_equal(
		line, "{\"event\":\"begin\",\"purpose\":\"maximum\",\"rate_pps\":null,\"asked_seconds\":0.5}\n");
	rewind(f);
	result_event(f, p, TRIAL_CONFIRM, &r->trial[5].trial.asked, &r->trial[5], TSC_HZ);
	fclose(f);
	// One line, with all of a trial but its histograms.
	assert_ptr_equal(strchr(line, '\n'), line + n - 1);
	o = json_loads(line, 0, &error);
	assert_string_equal(text_of(o, "event"), "end");
	assert_string_equal(text_of(o, "purpose"), "confirm");
	assert_true(number(o, "lost") == 20 && number(json_object_get(o, "latency_us"), "count") == 100);
	assert_null(json_object_get(json_object_get(o, "latency_us"), "histogram"));
	assert_int_equal(json_array_size(json_object_get(o, "streams")), 2);
	json_decref(o);
	free(line);
	done(p, r);
}

static char *printed(const struct profile *p, const struct run_result *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	result_print(f, p, r, TSC_HZ);
	fclose(f);
	return text;
}

static void has(const char *text, const char *what)
{
	if (!text || !strstr(text, what))
		fail_msg("no \"%s\" in:\n%s", what, text ? text : "nothing");
}

static void text(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);
	char *t = printed(p, r);

	has(t, "made-up, two ways: 2 streams, 480 B on average, 7 trials in 12.5 s");
	has(t, "loss <= 0 %         2.0000 Mpps     7.680 Gb/s L2     8.000 Gb/s L1  not 2.0100  confirmed");
	has(t, "loss <= 0.001 %     2.5000 Mpps     9.600 Gb/s L2    10.000 Gb/s L1");
	has(t, "the tester itself offers up to 5.0000 Mpps at these ports, 2.00 times that\n");
	// The confirmation that held, not the refuted one.
	has(t, "confirm, 2.5000 Mpps for 2 s; tester 88 ticks a packet, clock 3.70 GHz");
	has(t, "parts of the rate for loss <= 0.001 %, 2.5000 Mpps");
	has(t, "50 %");
	has(t, "1 disturbed trials were discarded and repeated: stolen time 1, context switches 0, pauses 1, "
	       "missed frames 1, CPUs far apart 0, tester fell behind 0\n");
	has(t, "\ngood\n");
	free(t);

	make_wrong(&r->trial[5]);
	r->maximum_pps = 3e6;
	r->search.result[0].tester_limited = true;
	r->confirmed[0] = false;
	r->trial[5].trial.stream[0].wrong_frame[0].offset = 2;
	t = printed(p, r);
	has(t, "stream up, flow 17: wrong header at byte 2 (gtpu.teid) of 476");
	has(t, "arrived   0102ff\n");
	has(t, "expected  010200\n                  ^^\n");
	has(t, "1.20 times that: too little to be sure");
	has(t, "LIMITED BY THE TESTER  NOT CONFIRMED");
	has(t, "NOT GOOD: 3 packets arrived with wrong contents\n");
	free(t);

	r->complete = false;
	snprintf(r->error, sizeof(r->error), "interrupted");
	t = printed(p, r);
	has(t, "NOT COMPLETE: interrupted\n");
	free(t);
	done(p, r);

	// A run that did not even begin.
	p = make_profile();
	r = calloc(1, sizeof(*r));
	snprintf(r->error, sizeof(r->error), "no link");
	t = printed(p, r);
	assert_string_equal(
		t, "made-up, two ways: 2 streams, 480 B on average, 0 trials in 0.0 s\nNOT COMPLETE: no link\n");
	free(t);
	done(p, r);
}

static void expect_status(const struct profile *p, const struct run_result *r, int status, const char *what)
{
	char why[SENTENCE_BYTES];

	assert_int_equal(result_status(p, r, TSC_HZ, why, sizeof(why)), status);
	has(why, what);
}

static void verdict(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);

	expect_status(p, r, 0, "good");
	r->search.result[1].disturbed = true;
	expect_status(p, r, 0, "good, but the machine disturbed the trials");
	r->search.result[1].tester_limited = true;
	expect_status(p, r, 0, "good, but what limits is the tester: the gateway may do more");
	r->search.result[1].disturbed = r->search.result[1].tester_limited = false;
	// Not even a trial that was discarded may have wrong contents.
	r->trial[2].trial.wrong = 1;
	expect_status(p, r, 1, "1 packets arrived with wrong contents");
	r->trial[2].trial.wrong = 0;
	r->trial[3].trial.duplicate = 2;
	expect_status(p, r, 1, "2 packets arrived twice");
	r->trial[3].trial.duplicate = 0;
	r->confirmed[1] = false;
	expect_status(p, r, 1, "at most 0.001 % did not hold in a trial of 2 s");
	p->run.confirm_seconds = 0;
	expect_status(p, r, 0, "good");
	r->search.result[1].found = false;
	expect_status(p, r, 1, "no rate has a loss of at most 0.001 %");
	r->search.result[1].found = true;

	// A fixed trial is judged by the strictest goal.
	add_trial(r, TRIAL_FIXED, 1e6, 1);
	expect_status(p, r, 1, "1 of 2000000 packets were lost (5e-05 %), allowed are 0 %");
	p->run.goal[0].loss = 1e-6;
	expect_status(p, r, 0, "good");
	// What a good result does not prove is said.
	r->trial[r->trials - 1].trial.tester_limited = true;
	expect_status(p, r, 0, "good, but the tester offered less than what was asked for");
	r->trial[r->trials - 1].trial.stale = 1;
	expect_status(p, r, 0, "good, but packets came so late that they may have come twice");
	r->trial[r->trials - 1].trial.tester_limited = false;
	r->trial[r->trials - 1].trial.stale = 0;
	p->stream[0].expect = (struct profile_expect){.given = true, .loss_max = 0};
	expect_status(p, r, 1, "stream \"up\": lost 5e-05 % (1 of 2000000)");
	// A trial that was repeated, and what was refuted, say nothing about expectations.
	r->trial[r->trials - 1].used = false;
	r->confirmed[1] = false;
	expect_status(p, r, 0, "good");
	r->complete = false;
	expect_status(p, r, 2, "not complete");
	done(p, r);
}

// An expectation stands beside the stream in each trial that it is judged in.
static void expectation_in_json(void **state)
{
	struct profile *p = make_profile();
	struct run_result *r = make_result(p);
	json_t *o, *trials;

	p->stream[0].expect = (struct profile_expect){.given = true, .loss_max = 1e-5};
	o = written(p, r);
	trials = json_object_get(o, "trials");
	assert_string_equal(
		text_of(json_array_get(json_object_get(json_array_get(trials, 5), "streams"), 0), "expectation"),
		"held");
	assert_null(json_object_get(
		json_array_get(json_object_get(json_array_get(trials, 4), "streams"), 0), "expectation"));
	json_decref(o);
	p->stream[0].expect.loss_max = 0;
	o = written(p, r);
	has(text_of(json_array_get(json_object_get(json_array_get(json_object_get(o, "trials"), 5), "streams"), 0),
		    "expectation"),
		"stream \"up\": lost 0.0004 % (20 of 5000000), expected at most 0 %");
	assert_true(number(o, "status") == 1);
	json_decref(o);
	done(p, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_of_run),
		cmocka_unit_test(json_of_trials),
		cmocka_unit_test(json_cannot_be_written),
		cmocka_unit_test(events),
		cmocka_unit_test(text),
		cmocka_unit_test(verdict),
		cmocka_unit_test(expectation_in_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
