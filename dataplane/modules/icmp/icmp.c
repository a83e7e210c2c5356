// SPDX-License-Identifier: Apache-2.0
// Rate limits of the ICMP nodes, one set per worker.
#include "icmp/icmp.h"
#include "core/control.h"

// Written by the control thread before the first walk; then each entry by its own worker only.
static struct icmp_limits {
	struct limiter error, echo;
} __rte_cache_aligned limits[API_MAX_WORKERS];

static int icmp_start(const struct api_engine *engine)
{
	for (uint32_t i = 0; i < API_MAX_WORKERS; i++) {
		limits[i].error = (struct limiter){.rate = engine->icmp_error_rate};
		limits[i].echo = (struct limiter){.rate = engine->echo_rate};
	}
	return 0;
}

RTE_INIT(icmp_module)
{
	module_register("icmp", icmp_start);
}

struct limiter *icmp_error_limiter(const struct worker *w)
{
	return &limits[w->id].error;
}

struct limiter *icmp_echo_limiter(const struct worker *w)
{
	return &limits[w->id].echo;
}
