// SPDX-License-Identifier: Apache-2.0
// Policer profiles compiled for rte_meter (RFC 2697, RFC 2698), in finer time units than its own set-up uses.
#include "meter/meter.h"
#include "core/object.h"
#include <errno.h>
#include <string.h>

#define MIN_PERIOD 4096u // time units of one refill: rounding by half a unit is 0.012 %
#define MAX_RATE 1000000000000u // bytes per second
#define MAX_BURST (1ull << 40) // bytes

// A bucket of `rate`, 0 < rate <= MAX_RATE, that is refilled in units of 1 / (hz << METER_TIME_SHIFT) second.
static int bucket(struct meter_bucket *to, uint32_t *bytes, uint64_t rate, uint64_t burst, uint64_t hz)
{
	unsigned __int128 units = (unsigned __int128)hz << METER_TIME_SHIFT;
	unsigned __int128 each = ((unsigned __int128)rate * MIN_PERIOD + units - 1) / units;

	if (each > UINT32_MAX)
		return object_error(EINVAL, "a rate is too high for this clock");
	*bytes = (uint32_t)each;
	to->burst = burst;
	to->period = (uint64_t)((units * each + rate / 2) / rate);
	to->inverse = UINT64_MAX / to->period;
	return 0;
}

static int compile_srtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	if (want->cir == 0 || (want->cbs == 0 && want->pbs == 0))
		return object_error(EINVAL, "srTCM needs a committed rate and a burst (RFC 2697 §2)");
	to->peak.burst = want->pbs;
	return bucket(&to->committed, &to->committed_bytes, want->cir, want->cbs, hz);
}

static int compile_trtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	if (want->cir == 0 || want->pir < want->cir || want->cbs == 0 || want->pbs == 0)
		return object_error(
			EINVAL, "trTCM needs both bursts, and a peak rate not below the committed rate (RFC 2698 §2)");
	int error = bucket(&to->committed, &to->committed_bytes, want->cir, want->cbs, hz);
	return error != 0 ? error : bucket(&to->peak, &to->peak_bytes, want->pir, want->pbs, hz);
}

int meter_compile(struct policer_profile *to, const struct api_policer *want, uint64_t tsc_hz)
{
	if (want->type != API_SRTCM && want->type != API_TRTCM)
		return object_error(EINVAL, "policer type %u is not known", want->type);
	if (want->cir > MAX_RATE || want->pir > MAX_RATE)
		return object_error(EINVAL, "a rate is above %llu bytes per second", (unsigned long long)MAX_RATE);
	if (want->cbs > MAX_BURST || want->pbs > MAX_BURST)
		return object_error(EINVAL, "a burst is above %llu bytes", (unsigned long long)MAX_BURST);
	*to = (struct policer_profile){.type = (uint8_t)want->type};
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
		s->srtcm = (struct rte_meter_srtcm){.time = time, .tc = p->committed.burst, .te = p->peak.burst};
	else
		s->trtcm = (struct rte_meter_trtcm){
			.time_tc = time, .time_tp = time, .tc = p->committed.burst, .tp = p->peak.burst};
}
