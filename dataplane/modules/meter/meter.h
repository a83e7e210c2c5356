// SPDX-License-Identifier: Apache-2.0
// Inside of the policer: a compiled profile, and what is done to one packet with it.
#ifndef POLICER_METER_H
#define POLICER_METER_H

#include <rte_common.h>

#include "isthmus_api.h"
#include "meter/policer.h"
#include "rule/rule.h"
#include "wire/ecn.h"
#include <assert.h>
#include <rte_meter.h>

// Meters count time in 1/64 of a TSC tick, so that a refill period rounded to whole units keeps the rate within 0.02 %.
// (rte_meter_*_profile_config rounds down to whole ticks with periods from 100 up: as much as 1 % too fast.)
#define METER_TIME_SHIFT 6

// The refill of a bucket: `bytes` every `period`, up to `burst`.
struct meter_bucket {
	uint64_t burst, period;
	uint64_t inverse; // 2^64 / period: a multiplication stands for the division by the period
};

// One line, for there may be as many as sessions. Never changes after it was published. Written by the control thread, read by
// workers.
struct policer_profile {
	struct meter_bucket committed;
	struct meter_bucket peak; // srTCM: only the excess burst
	uint32_t committed_bytes, peak_bytes; // of each period
	uint8_t type; // enum api_meter
	uint8_t action[RTE_COLORS]; // enum api_colour_action
	uint8_t dscp[RTE_COLORS]; // for API_COLOUR_REMARK
} __rte_cache_aligned;
static_assert(sizeof(struct policer_profile) == 64, "a profile is one cache line");

// Checks `want` and compiles it for a clock of tsc_hz. Returns 0, or a positive errno after object_error().
int meter_compile(struct policer_profile *to, const struct api_policer *want, uint64_t tsc_hz);
// Fills the buckets.
void meter_fill(const struct policer_profile *p, union meter_tokens *s, uint64_t now);

// The buckets of a rule's own meter.
static inline union meter_tokens *meter_of_rule(struct rule_state *s)
{
	static_assert(offsetof(struct rule_state, srtcm) == 0 && offsetof(struct rule_state, trtcm) == 0,
		"a rule's state begins with its meter");
	return (union meter_tokens *)s;
}
// The profile that workers see, or NULL. Any thread, within a graph walk.
const struct policer_profile *policer_profile(uint32_t index);

// Bytes that a bucket gains until `time`, in whole periods; *last moves on by these. The quotient may be one period short of
// the exact one, which the next packet gets instead: nothing is lost.
static inline uint64_t meter_gain(uint64_t *last, uint64_t time, const struct meter_bucket *b, uint64_t bytes)
{
	uint64_t gain, periods = (uint64_t)((unsigned __int128)(time - *last) * b->inverse >> 64);

	*last += periods * b->period;
	// After months without a packet the product may not fit: the bucket is full then anyway.
	return __builtin_mul_overflow(periods, bytes, &gain) ? UINT64_MAX >> 1 : gain;
}

// RFC 2697 §3, colour-blind.
static inline enum rte_color meter_srtcm(
	const struct policer_profile *p, struct rte_meter_srtcm *s, uint64_t time, uint32_t length)
{
	uint64_t tc = s->tc + meter_gain(&s->time, time, &p->committed, p->committed_bytes);
	uint64_t te = s->te + (tc > p->committed.burst ? tc - p->committed.burst : 0);

	tc = RTE_MIN(tc, p->committed.burst);
	te = RTE_MIN(te, p->peak.burst);
	enum rte_color colour = tc >= length ? RTE_COLOR_GREEN : te >= length ? RTE_COLOR_YELLOW : RTE_COLOR_RED;
	s->tc = tc - (colour == RTE_COLOR_GREEN ? length : 0);
	s->te = te - (colour == RTE_COLOR_YELLOW ? length : 0);
	return colour;
}

// RFC 2698 §3, colour-blind.
static inline enum rte_color meter_trtcm(
	const struct policer_profile *p, struct rte_meter_trtcm *s, uint64_t time, uint32_t length)
{
	uint64_t tc = s->tc + meter_gain(&s->time_tc, time, &p->committed, p->committed_bytes);
	uint64_t tp = s->tp + meter_gain(&s->time_tp, time, &p->peak, p->peak_bytes);

	tc = RTE_MIN(tc, p->committed.burst);
	tp = RTE_MIN(tp, p->peak.burst);
	enum rte_color colour = tp < length ? RTE_COLOR_RED : tc < length ? RTE_COLOR_YELLOW : RTE_COLOR_GREEN;
	s->tc = tc - (colour == RTE_COLOR_GREEN ? length : 0);
	s->tp = tp - (colour != RTE_COLOR_RED ? length : 0);
	return colour;
}

// Colour of a packet of `length` bytes, colour-blind. `now` in TSC ticks. Owner worker. The same state and arithmetic as
// rte_meter's checks (meter_colour_rte, which the tests and the benchmark hold beside it), without its divisions.
static inline enum rte_color meter_colour(
	const struct policer_profile *p, union meter_tokens *s, uint64_t now, uint32_t length)
{
	uint64_t time = now << METER_TIME_SHIFT;

	return p->type == API_SRTCM ? meter_srtcm(p, &s->srtcm, time, length) : meter_trtcm(p, &s->trtcm, time, length);
}

// For a packet of several meters: which colour it would have (length 0 takes nothing, but the gain since the last packet is put
// into the buckets), and what it costs when no meter drops it.
static inline enum rte_color meter_peek(
	const struct policer_profile *p, union meter_tokens *s, uint64_t now, uint32_t length)
{
	meter_colour(p, s, now, 0);
	if (p->type == API_SRTCM)
		return s->srtcm.tc >= length   ? RTE_COLOR_GREEN
		       : s->srtcm.te >= length ? RTE_COLOR_YELLOW
					       : RTE_COLOR_RED;
	return s->trtcm.tp < length ? RTE_COLOR_RED : s->trtcm.tc < length ? RTE_COLOR_YELLOW : RTE_COLOR_GREEN;
}

static inline void meter_take(
	const struct policer_profile *p, union meter_tokens *s, enum rte_color colour, uint32_t length)
{
	// One meter may stand twice in a packet's list: what is not there any more cannot be taken.
	if (p->type == API_SRTCM) {
		s->srtcm.tc -= colour == RTE_COLOR_GREEN ? RTE_MIN(s->srtcm.tc, (uint64_t)length) : 0;
		s->srtcm.te -= colour == RTE_COLOR_YELLOW ? RTE_MIN(s->srtcm.te, (uint64_t)length) : 0;
		return;
	}
	s->trtcm.tc -= colour == RTE_COLOR_GREEN ? RTE_MIN(s->trtcm.tc, (uint64_t)length) : 0;
	s->trtcm.tp -= colour != RTE_COLOR_RED ? RTE_MIN(s->trtcm.tp, (uint64_t)length) : 0;
}

// A profile as rte_meter has it, and its check of a packet.
struct meter_rte {
	uint32_t type;
	struct rte_meter_srtcm_profile srtcm;
	struct rte_meter_trtcm_profile trtcm;
};

static inline struct meter_rte meter_rte_of(const struct policer_profile *p)
{
	const struct meter_bucket *c = &p->committed, *k = &p->peak;

	return (struct meter_rte){.type = p->type,
		.srtcm = {.cbs = c->burst,
			.ebs = k->burst,
			.cir_period = c->period,
			.cir_bytes_per_period = p->committed_bytes},
		.trtcm = {.cbs = c->burst,
			.pbs = k->burst,
			.cir_period = c->period,
			.cir_bytes_per_period = p->committed_bytes,
			.pir_period = k->period,
			.pir_bytes_per_period = p->peak_bytes}};
}

static inline enum rte_color meter_colour_rte(struct meter_rte *p, union meter_tokens *s, uint64_t now, uint32_t length)
{
	uint64_t time = now << METER_TIME_SHIFT;

	if (p->type == API_SRTCM)
		return rte_meter_srtcm_color_blind_check(&s->srtcm, &p->srtcm, time, length);
	return rte_meter_trtcm_color_blind_check(&s->trtcm, &p->trtcm, time, length);
}

// Writes a DSCP (RFC 2474) into the IP header at `ip`, version 4 or 6; keeps ECN (RFC 3168 §5) and the checksum right.
static inline void meter_remark(uint8_t *ip, uint8_t version, uint8_t dscp)
{
	ip_traffic_class_set(version, ip, (uint8_t)(dscp << 2 | ip_ecn(version, ip)));
}

#endif
