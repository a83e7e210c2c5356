// SPDX-License-Identifier: Apache-2.0
// What single streams must do beside the run's loss goal: policed ones keep their rate, gold ones their delay.
#include "traffic/run/run.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool expectation_judged(const struct profile *p, uint32_t stream, enum trial_purpose why)
{
	const struct profile_stream *s = &p->stream[stream];

	if (!s->expect.given)
		return false;
	if (run_has_share(s))
		return why == TRIAL_FIXED || why == TRIAL_CONFIRM;
	return why == TRIAL_FIXED || why == TRIAL_CONFIRM || why == TRIAL_STEP || why == TRIAL_LATENCY;
}

// What was received in the expectation's unit, per second; for a part, of what was sent.
static double received_rate(const struct profile_expect *e, const struct stream_count *c, double seconds)
{
	if (e->rate.unit == RATE_PART)
		return c->sent ? (double)c->received / (double)c->sent : 0;
	if (seconds <= 0)
		return 0;
	if (e->rate.unit == RATE_PPS)
		return (double)c->received / seconds;
	return (double)(e->rate_l3 ? c->received_l3_bytes : c->received_bytes) * 8 / seconds;
}

static void write_rate(char *to, size_t n, const struct profile_expect *e, double value)
{
	if (e->rate.unit == RATE_PART)
		snprintf(to, n, "%.6g %% of what was sent", value * 100);
	else if (e->rate.unit == RATE_PPS)
		snprintf(to, n, "%.6g kpps", value / 1e3);
	else
		snprintf(to, n, "%.6g Mbit/s", value / 1e6);
}

bool stream_expectation(
	const struct profile *p, uint32_t stream, const struct trial *t, double tsc_hz, char *text, size_t n)
{
	const struct profile_stream *s = &p->stream[stream];
	const struct profile_expect *e = &s->expect;

	if (!e->given || stream >= t->streams)
		return true;

	const struct stream_count *c = &t->stream[stream];
	double loss = c->sent ? (double)c->lost / (double)c->sent : 0;

	if (e->rate.unit == RATE_PPS || e->rate.unit == RATE_BIT || e->rate.unit == RATE_PART) {
		double got = received_rate(e, c, t->seconds);
		char is[64], wanted[64];

		// The last bits of a rate at the edge are rounding, not the gateway.
		if (fabs(got - e->rate.value) > e->rate.value * (e->tolerance + 1e-9)) {
			write_rate(is, sizeof(is), e, got);
			write_rate(wanted, sizeof(wanted), e, e->rate.value);
			snprintf(text, n, "stream \"%s\": received %s%s, expected %s within %.6g %%", s->name, is,
				e->rate.unit == RATE_BIT && e->rate_l3 ? " (layer 3)" : "", wanted, e->tolerance * 100);
			return false;
		}
	}
	if (e->loss_max >= 0 && loss > e->loss_max) {
		snprintf(text, n, "stream \"%s\": lost %.6g %% (%" PRIu64 " of %" PRIu64 "), expected at most %.6g %%",
			s->name, loss * 100, c->lost, c->sent, e->loss_max * 100);
		return false;
	}
	if (e->p99_us_max > 0) {
		double p99 = (double)histogram_quantile(&c->latency, 0.99) / tsc_hz * 1e6;

		if (c->received == 0 || p99 > e->p99_us_max) {
			snprintf(text, n, "stream \"%s\": 99 %% arrived within %.6g us, expected %.6g us%s", s->name,
				p99, e->p99_us_max, c->received ? "" : ", but nothing arrived");
			return false;
		}
	}
	return true;
}

uint32_t trial_expectations(const struct profile *p, const struct trial *t, double tsc_hz, char *text, size_t n)
{
	char sentence[TEXT_BYTES];
	uint32_t failed = 0;

	if (n)
		text[0] = '\0';
	for (uint32_t i = 0; i < p->streams; i++) {
		if (stream_expectation(p, i, t, tsc_hz, sentence, sizeof(sentence)))
			continue;
		if (failed++ == 0)
			snprintf(text, n, "%s", sentence);
	}
	return failed;
}
