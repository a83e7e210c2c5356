// SPDX-License-Identifier: Apache-2.0
// Rate limits of the ICMP nodes, one set per worker.
#include "icmp/icmp.h"
#include "core/control.h"
#include "wire/cache_line.h"

// The rate is written by the control thread, the rest of each entry by its own worker only.
static struct icmp_limits {
	struct limiter error, echo;
} cache_aligned limits[API_MAX_WORKERS];

static void set_rates(const struct api_engine *engine)
{
	for (uint32_t i = 0; i < API_MAX_WORKERS; i++) {
		limits[i].error.rate = engine->icmp_error_rate;
		limits[i].echo.rate = engine->echo_rate;
	}
}

RTE_INIT(icmp_module)
{
	engine_watch(set_rates);
}

struct limiter *icmp_error_limiter(const struct worker *w)
{
	return &limits[w->id].error;
}

struct limiter *icmp_echo_limiter(const struct worker *w)
{
	return &limits[w->id].echo;
}
