// SPDX-License-Identifier: Apache-2.0
// Inside of the policer: a compiled profile, and what is done to one packet with it.
#ifndef POLICER_METER_H
#define POLICER_METER_H

#include <rte_common.h>

#include "isthmus_api.h"
#include "session/session.h"
#include "wire/checksum.h"
#include <assert.h>
#include <rte_meter.h>

// Meters count time in 1/64 of a TSC tick, so that a refill period rounded to whole units keeps the rate within 0.02 %.
// (rte_meter_*_profile_config rounds down to whole ticks with periods from 100 up: as much as 1 % too fast.)
#define METER_TIME_SHIFT 6

// One cache line; never changes after it was published. Written by the control thread, read by workers.
struct policer_profile {
	uint32_t type; // enum api_meter
	uint8_t action[RTE_COLORS]; // enum api_colour_action
	uint8_t dscp[RTE_COLORS]; // for API_COLOUR_REMARK
	union {
		struct rte_meter_srtcm_profile srtcm;
		struct rte_meter_trtcm_profile trtcm;
	};
} __rte_cache_aligned;
static_assert(sizeof(struct policer_profile) == 64, "a profile is one cache line");

// Checks `want` and compiles it for a clock of tsc_hz. Returns 0, or a positive errno after object_error().
int meter_compile(struct policer_profile *to, const struct api_policer *want, uint64_t tsc_hz);
// Fills the buckets; leaves the counters alone.
void meter_fill(const struct policer_profile *p, struct rule_state *s, uint64_t now);
// The profile that workers see, or NULL. Any thread, within a graph walk.
const struct policer_profile *policer_profile(uint16_t index);

// Colour of a packet of `length` bytes, colour-blind. `now` in TSC ticks. Owner worker.
static inline enum rte_color meter_colour(
	const struct policer_profile *p, struct rule_state *s, uint64_t now, uint32_t length)
{
	// rte_meter takes profiles without const, and only reads them.
	struct policer_profile *profile = (struct policer_profile *)(uintptr_t)p;
	uint64_t time = now << METER_TIME_SHIFT;

	if (p->type == API_SRTCM)
		return rte_meter_srtcm_color_blind_check(&s->srtcm, &profile->srtcm, time, length);
	return rte_meter_trtcm_color_blind_check(&s->trtcm, &profile->trtcm, time, length);
}

// Writes a DSCP (RFC 2474) into the IP header at `ip`, version 4 or 6; keeps ECN (RFC 3168 §5) and the checksum right.
static inline void meter_remark(uint8_t *ip, uint8_t version, uint8_t dscp)
{
	uint16_t before, after;

	if (version == 6) {
		ip[0] = (uint8_t)(0x60 | dscp >> 2);
		ip[1] = (uint8_t)((dscp << 6 & 0xc0) | (ip[1] & 0x3f));
		return;
	}
	memcpy(&before, ip, sizeof(before));
	ip[1] = (uint8_t)(dscp << 2 | (ip[1] & 3));
	memcpy(&after, ip, sizeof(after));
	checksum_update16(ip + 10, before, after);
}

#endif
