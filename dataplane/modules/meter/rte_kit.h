// SPDX-License-Identifier: Apache-2.0
// rte_meter's buckets for the same policer, as a second opinion in tests and a peer in the benchmark.
#ifndef METER_RTE_KIT_H
#define METER_RTE_KIT_H

#include "meter/meter.h"
#include <rte_meter.h>

struct rte_check {
	uint32_t type;
	struct rte_meter_srtcm_profile srtcm;
	struct rte_meter_trtcm_profile trtcm;
};

union rte_check_state {
	struct rte_meter_srtcm srtcm;
	struct rte_meter_trtcm trtcm;
};

// A refill period of 4,096 time units or more: rte_meter's own set-up rounds to whole ticks, as much as 1 % too fast.
static inline void rte_check_bucket(uint64_t *period, uint64_t *bytes, uint64_t rate, uint64_t hz)
{
	unsigned __int128 second = (unsigned __int128)hz << METER_TIME_SHIFT;

	*bytes = (uint64_t)(((unsigned __int128)rate * 4096 + second - 1) / second);
	*period = (uint64_t)((second * *bytes + rate / 2) / rate);
}

static inline struct rte_check rte_check_of(const struct api_policer *p, uint64_t hz)
{
	struct rte_check to = {
		.type = p->type, .srtcm = {.cbs = p->cbs, .ebs = p->pbs}, .trtcm = {.cbs = p->cbs, .pbs = p->pbs}};

	rte_check_bucket(&to.srtcm.cir_period, &to.srtcm.cir_bytes_per_period, p->cir, hz);
	to.trtcm.cir_period = to.srtcm.cir_period;
	to.trtcm.cir_bytes_per_period = to.srtcm.cir_bytes_per_period;
	if (p->type == API_TRTCM)
		rte_check_bucket(&to.trtcm.pir_period, &to.trtcm.pir_bytes_per_period, p->pir, hz);
	return to;
}

static inline void rte_check_fill(const struct rte_check *p, union rte_check_state *s, uint64_t now)
{
	uint64_t time = now << METER_TIME_SHIFT;

	if (p->type == API_SRTCM)
		s->srtcm = (struct rte_meter_srtcm){.time = time, .tc = p->srtcm.cbs, .te = p->srtcm.ebs};
	else
		s->trtcm = (struct rte_meter_trtcm){
			.time_tc = time, .time_tp = time, .tc = p->trtcm.cbs, .tp = p->trtcm.pbs};
}

static inline enum rte_color rte_check_colour(
	struct rte_check *p, union rte_check_state *s, uint64_t now, uint32_t length)
{
	uint64_t time = now << METER_TIME_SHIFT;

	if (p->type == API_SRTCM)
		return rte_meter_srtcm_color_blind_check(&s->srtcm, &p->srtcm, time, length);
	return rte_meter_trtcm_color_blind_check(&s->trtcm, &p->trtcm, time, length);
}

#endif
