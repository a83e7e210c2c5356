// SPDX-License-Identifier: Apache-2.0
#include "session/new_flows.h"
#include "core/control.h"
#include "core/object.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>

#define DSCP_EF 46 // RFC 3246
#define DSCP_CS6 48 // RFC 4594 §3.1: network control, and CS7 above it
#define OF_SUBSCRIBER(w) ((w)->tsc_hz) // depth: what is new in a second
#define OF_WORKER(w) ((w)->tsc_hz / 10)

// Token buckets (clock/clock.h).
static struct {
	uint32_t per_subscriber, per_worker; // a second; 0: no limit. Written by the control thread
	uint64_t *subscriber; // by session; written and read by its owner worker
	struct {
		uint64_t full;
	} cache_aligned worker[API_MAX_WORKERS]; // its own
} new_flows;

// Read once: it may become 0, which nothing is divided by, while a packet is looked at.
static uint32_t rate_of(const uint32_t *rate)
{
	return __atomic_load_n(rate, __ATOMIC_RELAXED);
}

// Ticks until an empty bucket is full, which is worth `depth` at least.
static uint64_t depth_of(uint64_t depth, uint64_t cost)
{
	return RTE_MAX(depth, 4 * cost);
}

static int has_room(const struct worker *w, uint64_t full, uint32_t rate, uint64_t depth, int urgent)
{
	uint64_t cost = w->tsc_hz / rate;

	depth = depth_of(depth, cost);
	return bucket_lack(full, w->now, depth) + cost <= (urgent ? depth : depth - depth / 4);
}

static void take(const struct worker *w, uint64_t *full, uint32_t rate, uint64_t depth)
{
	if (rate != 0)
		bucket_take(full, w->now, depth_of(depth, w->tsc_hz / rate), w->tsc_hz / rate);
}

enum session_why new_flow_refused(const struct worker *w, uint32_t session, uint8_t dscp)
{
	uint32_t subscriber = rate_of(&new_flows.per_subscriber), worker = rate_of(&new_flows.per_worker);
	int urgent = dscp == DSCP_EF || dscp >= DSCP_CS6;

	if (subscriber != 0 && !has_room(w, new_flows.subscriber[session], subscriber, OF_SUBSCRIBER(w), urgent))
		return WHY_SUBSCRIBER_FLOWS;
	if (worker != 0 && !has_room(w, new_flows.worker[w->id].full, worker, OF_WORKER(w), urgent))
		return WHY_WORKER_FLOWS;
	return WHY_COUNT;
}

void new_flow_count(const struct worker *w, uint32_t session)
{
	take(w, &new_flows.subscriber[session], rate_of(&new_flows.per_subscriber), OF_SUBSCRIBER(w));
	take(w, &new_flows.worker[w->id].full, rate_of(&new_flows.per_worker), OF_WORKER(w));
}

static void set_rates(const struct api_engine *e)
{
	__atomic_store_n(&new_flows.per_subscriber, e->subscriber_flow_rate, __ATOMIC_RELAXED);
	__atomic_store_n(&new_flows.per_worker, e->flow_rate, __ATOMIC_RELAXED);
}

static int start(const struct api_engine *e)
{
	new_flows.subscriber = rte_zmalloc("new-flows", e->max_sessions * sizeof(*new_flows.subscriber), CACHE_LINE);
	return new_flows.subscriber != NULL
		       ? 0
		       : object_error(ENOMEM, "no memory for the limits of %u sessions", e->max_sessions);
}

RTE_INIT(session_new_flows)
{
	module_register(start);
	engine_watch(set_rates);
}
