// SPDX-License-Identifier: Apache-2.0
// For tests of runs: a model of a gateway, its links and the machine that it is measured on, and a profile.
#ifndef TRAFFIC_RUN_KIT_H
#define TRAFFIC_RUN_KIT_H

#include "traffic/run/run.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TSC_HZ 1e9 // a tick is a nanosecond

// ---- a gateway, its links and the machine ---------------------------------------------------------------------------

struct model {
	const struct profile *p;
	double limit; // packets per second that are forwarded at most
	double tester; // that the tester can offer
	double weak_seconds; // trials of this length or longer do only `weak` of the limit; 0: none
	double weak;
	uint32_t dead, dead_trials; // bits of streams of which nothing arrives, in the first so many trials
	bool other_port; // they arrive at the wrong one
	uint64_t foreign;
	bool refuses; // the port of the dead ones takes nothing
	double wrong; // part of what arrives
	uint32_t disturb_from, disturb_to; // these trials are disturbed
	double disturb_loss; // and lose this part
	uint32_t late; // in this trial the tester falls behind without a reason; 0: none
	uint32_t stop_at; // this trial is interrupted; 0: none
	uint32_t fail_at; // the link goes down in this one; 0: none
	uint32_t trials;
	double shortest, longest;
};

static double share_of(const struct profile *p, uint32_t stream, double rate)
{
	double all = 0;

	for (uint32_t i = 0; i < p->streams; i++)
		all += p->stream[i].share;
	return p->stream[stream].share ? rate * p->stream[stream].share / all : stream_own_pps(&p->stream[stream]);
}

static void one_stream(const struct model *m, const struct trial *t, uint32_t i, double pps, double part)
{
	const struct profile_stream *s = &m->p->stream[i];
	struct stream_count *c = &t->stream[i];
	bool dead = m->dead & 1u << i && (m->dead_trials == 0 || m->trials <= m->dead_trials);

	c->sent = (uint64_t)(pps * t->seconds + 0.5);
	c->received = dead ? 0 : (uint64_t)((double)c->sent * part + 0.5);
	c->lost = c->sent - c->received;
	c->sent_bytes = c->sent * s->size[0].bytes;
	c->received_bytes = c->received * s->size[0].bytes;
	c->received_l3_bytes = c->received * (s->size[0].bytes - 18u);
	c->wrong[WRONG_HEADER] = (uint64_t)((double)c->received * m->wrong);
	if (dead && m->other_port)
		c->wrong[WRONG_PORT] = c->sent;
	if (dead && m->refuses)
		c->refused = c->sent;
	if (c->wrong[WRONG_HEADER]) {
		c->wrong_kept = 1;
		c->wrong_frame[0] =
			(struct wrong_frame){.kind = WRONG_HEADER, .offset = 46, .length = 100, .flow = 17, .kept = 60};
		snprintf(c->wrong_frame[0].where, sizeof(c->wrong_frame[0].where), "gtpu.teid");
	}
	histogram_clear(&c->latency);
	for (uint32_t k = 0; k < 1000 && c->received; k++)
		histogram_add(&c->latency, 10000 + k * 10);
}

static void add_up(const struct model *m, struct trial *t)
{
	double shared = 0;

	for (uint32_t i = 0; i < t->streams; i++) {
		const struct stream_count *c = &t->stream[i];

		t->sent += c->sent;
		t->received += c->received;
		t->lost += c->lost;
		t->wrong += c->wrong[WRONG_HEADER] + c->wrong[WRONG_PORT];
		if (m->p->stream[i].share)
			shared += (double)c->sent;
		if (m->p->stream[i].expect.given)
			continue;
		t->judged_sent += c->sent;
		t->judged_lost += c->lost;
	}
	t->loss_ratio = t->judged_sent ? (double)t->judged_lost / (double)t->judged_sent : 0;
	t->offered_pps = shared / t->seconds;
	t->tester_limited = isfinite(t->asked.rate) && t->offered_pps < t->asked.rate * 0.995;
	t->foreign = m->foreign;
}

static int model_trial(void *arg, const struct trial_request *asked, struct trial *t, char *error, size_t n)
{
	struct model *m = arg;
	double offered = fmin(asked->rate, m->tester), limit = m->limit;
	bool disturbed = ++m->trials >= m->disturb_from && m->trials <= m->disturb_to;

	m->shortest = m->trials == 1 ? asked->seconds : fmin(m->shortest, asked->seconds);
	m->longest = fmax(m->longest, asked->seconds);
	if (m->trials == m->fail_at) {
		snprintf(error, n, "the link went down: core");
		return -1;
	}
	*t = (struct trial){.asked = *asked, .seconds = asked->seconds, .streams = m->p->streams};
	t->stream = calloc(t->streams, sizeof(*t->stream));
	assert_non_null(t->stream);
	if (m->trials == m->stop_at) {
		t->interrupted = true;
		t->seconds /= 4;
	}
	if (m->trials == m->late)
		offered *= 0.9;
	if (m->weak_seconds > 0 && asked->seconds >= m->weak_seconds)
		limit *= m->weak;

	double part = offered > limit ? limit / offered : 1;

	if (disturbed) {
		t->disturbed = DISTURBED_STEAL;
		part *= 1 - m->disturb_loss;
	}
	for (uint32_t i = 0; i < t->streams; i++)
		one_stream(m, t, i, share_of(m->p, i, offered), part);
	add_up(m, t);
	return 0;
}

// ---- a profile ------------------------------------------------------------------------------------------------------

static struct profile *make_profile(enum run_mode mode)
{
	struct profile *p = calloc(1, sizeof(*p));

	snprintf(p->name, sizeof(p->name), "test");
	p->ports = 2;
	snprintf(p->port[0].name, NAME_BYTES, "access");
	snprintf(p->port[1].name, NAME_BYTES, "core");
	p->streams = 3;
	p->stream = calloc(p->streams, sizeof(*p->stream));
	for (uint32_t i = 0; i < p->streams; i++) {
		struct profile_stream *s = &p->stream[i];

		snprintf(s->name, sizeof(s->name), "%s", (const char *[]){"up", "down", "policed"}[i]);
		s->port = i == 1;
		s->sink = i != 1;
		s->answers = -1;
		s->share = i == 0 ? 3 : 1;
		s->sizes = 1;
		s->size[0] = (struct profile_size){.bytes = i == 0 ? 100 : 500, .weight = 1};
	}
	p->stream[2].share = 0;
	p->stream[2].rate = (struct rate){.unit = RATE_PPS, .value = 1000};
	p->stream[2].expect = (struct profile_expect){.given = true,
		.rate = {.unit = RATE_BIT, .value = 1000 * 482 * 8},
		.rate_l3 = true,
		.tolerance = 0.01,
		.loss_max = -1,
		.p99_us_max = 25};
	p->run = (struct profile_run){.mode = mode,
		.rate = {.unit = RATE_PPS, .value = 1e6},
		.seconds = 10,
		.warmup = 0.2,
		.drain = 0.5,
		.repeats = 3,
		.goals = 2,
		.goal = {{.loss = 0,
				 .exceed = 0.5,
				 .width = 0.005,
				 .initial_seconds = 0.5,
				 .final_seconds = 1,
				 .sum_seconds = 3},
			{.loss = 1e-2,
				.exceed = 0.5,
				.width = 0.005,
				.initial_seconds = 0.5,
				.final_seconds = 1,
				.sum_seconds = 3}},
		.confirm_seconds = 2,
		.latency_points = 2,
		.latency_at = {0.1, 0.9},
		.latency_seconds = 1};
	return p;
}

static void free_profile(struct profile *p)
{
	free(p->stream);
	free(p);
}

// What the events say: every trial that begins ends, unless the source failed.
struct heard {
	uint32_t begun, ended;
};

static void hear(void *arg, enum trial_purpose why, const struct trial_request *asked, const struct run_trial *ended)
{
	struct heard *h = arg;

	if (!ended) {
		h->begun++;
		assert_int_equal(h->begun, h->ended + 1);
	} else {
		h->ended++;
		assert_int_equal(ended->purpose, why);
		assert_true(ended->trial.asked.seconds == asked->seconds);
	}
	assert_int_equal(h->begun - h->ended, ended ? 0 : 1);
}

struct bench {
	struct profile *p;
	struct model m;
	struct run_result *r;
	struct heard heard;
	int returned, status;
	char why[SENTENCE_BYTES];
};

static struct bench *bench(enum run_mode mode)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->p = make_profile(mode);
	b->r = calloc(1, sizeof(*b->r));
	b->m = (struct model){.p = b->p, .limit = 3e6, .tester = 20e6};
	return b;
}

static void go(struct bench *b)
{
	struct trial_source source = {.trial = model_trial, .arg = &b->m, .tsc_hz = TSC_HZ};

	b->returned = run_profile(b->p, &source, hear, &b->heard, b->r);
	assert_int_equal(b->returned == 0, b->r->complete);
	assert_int_equal(b->heard.ended, b->r->trials);
	b->status = result_status(b->p, b->r, TSC_HZ, b->why, sizeof(b->why));
}

static void done(struct bench *b)
{
	run_free(b->r);
	free(b->r);
	free_profile(b->p);
	free(b);
}

static uint32_t count(const struct run_result *r, enum trial_purpose why, bool used)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->trials; i++)
		n += r->trial[i].purpose == why && r->trial[i].used == used;
	return n;
}

#endif
