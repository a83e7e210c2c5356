// SPDX-License-Identifier: Apache-2.0
// Inside of the policer: a compiled profile, and its use on one packet.
#ifndef POLICER_METER_H
#define POLICER_METER_H

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "clock/clock.h"
#include "isthmus_api.h"
#include "meter/policer.h"
#include "rule/rule.h"
#include "wire/cache_line.h"
#include "wire/ecn.h"
#include <assert.h>
#include <rte_meter.h>

// Meters count time in 1/64 of a TSC tick.
#define METER_TIME_SHIFT 6
#define METER_COST_SHIFT 24

// A bucket in units of time: the cost of a byte at its rate, and the time to fill an empty one.
struct meter_bucket {
	uint64_t cost; // of a byte, in time units << METER_COST_SHIFT
	uint64_t burst; // time units
};

// One line, because there may be one per session. Never changes after publication. Written by the control thread, read
// by workers.
struct policer_profile {
	struct meter_bucket committed;
	struct meter_bucket peak; // srTCM: the excess burst, at the committed rate
	uint8_t type; // enum api_meter
	uint8_t action[RTE_COLORS]; // enum api_colour_action
	uint8_t dscp[RTE_COLORS]; // for API_COLOUR_REMARK
	uint8_t quick; // meter_green() may be asked
	uint8_t quick_pass; // and its green packets pass unchanged
	uint8_t aware; // the colour that a packet came with counts
} cache_aligned;
static_assert(sizeof(struct policer_profile) == 64, "a profile is one cache line");

// Checks `want` and compiles it for a clock of tsc_hz. Returns 0, or a positive errno after object_error().
int meter_compile(struct policer_profile *to, const struct api_policer *want, uint64_t tsc_hz);
// Fills the buckets.
static inline void meter_fill(struct meter *s, uint64_t now)
{
	s->full[0] = s->full[1] = now << METER_TIME_SHIFT;
}

extern struct policer_profile
	*policer_profiles[POLICER_MAX_PROFILES]; // what workers see; replaced by the control thread

// The profile of an index, or NULL. Any thread, within a graph walk.
static inline const struct policer_profile *policer_profile(uint32_t index)
{
	return likely(index < POLICER_MAX_PROFILES) ? __atomic_load_n(&policer_profiles[index], __ATOMIC_ACQUIRE)
						    : NULL;
}

// What `length` bytes cost, to the nearest unit.
static inline uint64_t meter_cost(const struct meter_bucket *b, uint32_t length)
{
	return (uint64_t)(((unsigned __int128)b->cost * length + (1u << (METER_COST_SHIFT - 1))) >> METER_COST_SHIFT);
}

// Time from `time` until the bucket is full: 0 when it is, at most the burst (a new profile may have a smaller one).
static inline uint64_t meter_lack(uint64_t full, uint64_t time, uint64_t burst)
{
	return bucket_lack(full, time, burst);
}

// A packet at two buckets: each one's lack, and the cost.
struct meter_look {
	uint64_t lack[2], cost[2];
	enum rte_color colour;
};

// RFC 2698 §3; RFC 2697 §3: the excess bucket begins to fill when the committed one is full. `came`: the packet's
// received colour, used when the meter is colour-aware.
static __rte_always_inline struct meter_look meter_look_at(
	const struct policer_profile *p, const struct meter *s, uint64_t time, uint32_t length, enum rte_color came)
{
	struct meter_look l;

	came = p->aware ? came : RTE_COLOR_GREEN;
	l.lack[0] = meter_lack(s->full[0], time, p->committed.burst);
	l.cost[0] = meter_cost(&p->committed, length);
	int committed = came == RTE_COLOR_GREEN && l.lack[0] + l.cost[0] <= p->committed.burst;
	if (p->type == API_SRTCM) {
		l.lack[1] = meter_lack(s->full[1], time + l.lack[0], p->peak.burst);
		l.cost[1] = l.cost[0];
		int excess = came != RTE_COLOR_RED && l.lack[1] + l.cost[1] <= p->peak.burst;
		l.colour = committed ? RTE_COLOR_GREEN : excess ? RTE_COLOR_YELLOW : RTE_COLOR_RED;
		return l;
	}
	l.lack[1] = meter_lack(s->full[1], time, p->peak.burst);
	l.cost[1] = meter_cost(&p->peak, length);
	int red = came == RTE_COLOR_RED || l.lack[1] + l.cost[1] > p->peak.burst;
	l.colour = red ? RTE_COLOR_RED : committed ? RTE_COLOR_GREEN : RTE_COLOR_YELLOW;
	return l;
}

// The packet passes: takes its bytes from the buckets of its colour.
static __rte_always_inline void meter_pass(
	const struct policer_profile *p, struct meter *s, uint64_t time, const struct meter_look *l)
{
	int green = l->colour == RTE_COLOR_GREEN;

	if (p->type == API_SRTCM) {
		s->full[0] = time + l->lack[0] + (green ? l->cost[0] : 0);
		s->full[1] = time + l->lack[0] + l->lack[1] + (l->colour != RTE_COLOR_RED ? l->cost[0] : 0);
		return;
	}
	s->full[0] = time + l->lack[0] + (green ? l->cost[0] : 0);
	s->full[1] = time + l->lack[1] + (l->colour != RTE_COLOR_RED ? l->cost[1] : 0);
}

// A bucket's lack after a packet of `length` bytes. Costs fit into 64 bits.
static __rte_always_inline uint64_t meter_lack_after(
	const struct meter_bucket *b, uint64_t full, uint64_t time, uint32_t length)
{
	int64_t lack = (int64_t)(full - time);

	return (uint64_t)(lack < 0 ? 0 : lack) +
	       ((b->cost * length + (1u << (METER_COST_SHIFT - 1))) >> METER_COST_SHIFT);
}

// meter_look_at() for a quick meter: 1 when the packet is green; `after` is then the new meter.
static __rte_always_inline int meter_is_green(
	const struct policer_profile *p, const struct meter *s, uint64_t time, uint32_t length, struct meter *after)
{
	uint64_t committed = meter_lack_after(&p->committed, s->full[0], time, length);
	uint64_t peak = meter_lack_after(&p->peak, s->full[1], time, length);

	after->full[0] = time + committed;
	after->full[1] = time + peak;
	return likely(committed <= p->committed.burst && peak <= p->peak.burst);
}

// The same, and meter_pass() of a green one. Returns 0 without a change for other colours.
static __rte_always_inline int meter_green(
	const struct policer_profile *p, struct meter *s, uint64_t time, uint32_t length)
{
	struct meter after;

	if (unlikely(!meter_is_green(p, s, time, length, &after)))
		return 0;
	*s = after;
	return 1;
}

// The colour in a packet's DSCP (RFC 2597 §6).
static inline enum rte_color meter_came(uint8_t dscp)
{
	return (enum rte_color)dscp_precedence(dscp);
}
static_assert(RTE_COLOR_GREEN == 0 && RTE_COLOR_YELLOW == 1 && RTE_COLOR_RED == 2, "as drop precedences");

// Colour of a packet of `length` bytes, which are taken from the buckets. `now` in TSC ticks; `came`: see
// meter_look_at(). Owner worker.
static __rte_always_inline enum rte_color meter_colour(
	const struct policer_profile *p, struct meter *s, uint64_t now, uint32_t length, enum rte_color came)
{
	uint64_t time = now << METER_TIME_SHIFT;

	if (likely(p->quick && meter_green(p, s, time, length)))
		return RTE_COLOR_GREEN;
	struct meter_look l = meter_look_at(p, s, time, length, came);
	meter_pass(p, s, time, &l);
	return l.colour;
}

#endif
