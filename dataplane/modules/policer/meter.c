// SPDX-License-Identifier: Apache-2.0
// Policer profiles compiled for rte_meter (RFC 2697, RFC 2698), in finer time units than its own set-up uses.
#include "policer/meter.h"
#include "core/object.h"
#include <errno.h>
#include <string.h>

#define MIN_PERIOD 4096u // time units of one refill: rounding by half a unit is 0.012 %
#define MAX_RATE 1000000000000u // bytes per second
#define MAX_BURST (1ull << 40) // bytes

// The refill of one bucket: `bytes` every `period` units of 1 / (hz << METER_TIME_SHIFT) second. 0 < rate <= MAX_RATE.
static void bucket(uint64_t rate, uint64_t hz, uint64_t *period, uint64_t *bytes)
{
	unsigned __int128 units = (unsigned __int128)hz << METER_TIME_SHIFT;

	*bytes = (uint64_t)(((unsigned __int128)rate * MIN_PERIOD + units - 1) / units);
	*period = (uint64_t)((units * *bytes + rate / 2) / rate);
}

static int compile_srtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	struct rte_meter_srtcm_params params = {.cir = want->cir, .cbs = want->cbs, .ebs = want->pbs};

	if (rte_meter_srtcm_profile_config(&to->srtcm, &params) != 0)
		return object_error(EINVAL, "srTCM needs a committed rate and a burst (RFC 2697 §2)");
	bucket(want->cir, hz, &to->srtcm.cir_period, &to->srtcm.cir_bytes_per_period);
	to->cir_inverse = UINT64_MAX / to->srtcm.cir_period;
	return 0;
}

static int compile_trtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	struct rte_meter_trtcm_params params = {.cir = want->cir, .pir = want->pir, .cbs = want->cbs, .pbs = want->pbs};

	if (rte_meter_trtcm_profile_config(&to->trtcm, &params) != 0)
		return object_error(
			EINVAL, "trTCM needs both bursts, and a peak rate not below the committed rate (RFC 2698 §2)");
	bucket(want->cir, hz, &to->trtcm.cir_period, &to->trtcm.cir_bytes_per_period);
	bucket(want->pir, hz, &to->trtcm.pir_period, &to->trtcm.pir_bytes_per_period);
	to->cir_inverse = UINT64_MAX / to->trtcm.cir_period;
	to->pir_inverse = UINT64_MAX / to->trtcm.pir_period;
	return 0;
}

int meter_compile(struct policer_profile *to, const struct api_policer *want, uint64_t tsc_hz)
{
	if (want->type != API_SRTCM && want->type != API_TRTCM)
		return object_error(EINVAL, "policer type %u is not known", want->type);
	if (want->cir > MAX_RATE || want->pir > MAX_RATE)
		return object_error(EINVAL, "a rate is above %llu bytes per second", (unsigned long long)MAX_RATE);
	if (want->cbs > MAX_BURST || want->pbs > MAX_BURST)
		return object_error(EINVAL, "a burst is above %llu bytes", (unsigned long long)MAX_BURST);
	*to = (struct policer_profile){.type = want->type};
	for (int i = 0; i < RTE_COLORS; i++) {
		if (want->action[i] > API_COLOUR_REMARK || want->dscp[i] > 63)
			return object_error(
				EINVAL, "action %u with DSCP %u is not known", want->action[i], want->dscp[i]);
		to->action[i] = want->action[i];
		to->dscp[i] = want->dscp[i];
	}
	return want->type == API_SRTCM ? compile_srtcm(to, want, tsc_hz) : compile_trtcm(to, want, tsc_hz);
}

void meter_fill(const struct policer_profile *p, union meter_tokens *s, uint64_t now)
{
	uint64_t time = now << METER_TIME_SHIFT;

	if (p->type == API_SRTCM)
		s->srtcm = (struct rte_meter_srtcm){.time = time, .tc = p->srtcm.cbs, .te = p->srtcm.ebs};
	else
		s->trtcm = (struct rte_meter_trtcm){
			.time_tc = time, .time_tp = time, .tc = p->trtcm.cbs, .tp = p->trtcm.pbs};
}
