// SPDX-License-Identifier: Apache-2.0
// Policer profiles (RFC 2697, RFC 2698) compiled: rates and bursts in time.
#include "meter/meter.h"
#include "core/object.h"
#include <errno.h>
#include <string.h>

#define MAX_RATE 1000000000000u // bytes per second
#define MAX_BURST (1ull << 40) // bytes
#define MAX_TIME (1ull << 61) // of a burst: half a year

// A bucket of `rate`, 0 < rate <= MAX_RATE. Costs are rounded by at most half a unit; a burst's worth of packets still
// fits.
static void bucket(struct meter_bucket *to, uint64_t rate, uint64_t burst, uint64_t hz)
{
	unsigned __int128 second = (unsigned __int128)hz << (METER_TIME_SHIFT + METER_COST_SHIFT);

	to->cost = (uint64_t)((second + rate / 2) / rate);
	unsigned __int128 time =
		((unsigned __int128)to->cost * burst >> METER_COST_SHIFT) + (burst >> 5) + (burst != 0);
	to->burst = (uint64_t)RTE_MIN(time, (unsigned __int128)MAX_TIME);
}

static int compile_srtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	if (want->cir == 0 || (want->cbs == 0 && want->pbs == 0))
		return object_error(EINVAL, "srTCM needs a committed rate and a burst (RFC 2697 §2)");
	bucket(&to->committed, want->cir, want->cbs, hz);
	bucket(&to->peak, want->cir, want->pbs, hz);
	return 0;
}

static int compile_trtcm(struct policer_profile *to, const struct api_policer *want, uint64_t hz)
{
	if (want->cir == 0 || want->pir < want->cir || want->cbs == 0 || want->pbs == 0)
		return object_error(
			EINVAL, "trTCM needs both bursts, and a peak rate not below the committed rate (RFC 2698 §2)");
	bucket(&to->committed, want->cir, want->cbs, hz);
	bucket(&to->peak, want->pir, want->pbs, hz);
	return 0;
}

// A trTCM whose buckets express any packet's cost in 64 bits: above some 100 kbit/s.
static int is_quick(const struct policer_profile *p)
{
	uint64_t most = (UINT64_MAX - (1u << METER_COST_SHIFT)) / UINT16_MAX;

	return p->type == API_TRTCM && p->committed.cost <= most && p->peak.cost <= most;
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
	int error = want->type == API_SRTCM ? compile_srtcm(to, want, tsc_hz) : compile_trtcm(to, want, tsc_hz);
	to->aware = want->colour_aware != 0;
	to->quick = error == 0 && !to->aware && is_quick(to);
	to->quick_pass = to->quick && to->action[RTE_COLOR_GREEN] == API_COLOUR_PASS;
	return error;
}
