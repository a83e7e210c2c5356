// SPDX-License-Identifier: Apache-2.0
// The interface of lib/hqos: checks parameters, then hands every call to the engine chosen at creation.
#include "hqos/hqos_private.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_red.h>
#include <stdio.h>

static bool rate_ok(uint64_t rate)
{
	return rate >= HQOS_MIN_RATE && rate <= HQOS_MAX_RATE;
}

static bool class_rates_ok(const uint64_t rate[API_TRAFFIC_CLASSES])
{
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		if (rate[c] && !rate_ok(rate[c]))
			return false;
	return true;
}

static bool check_levels(const struct api_scheduler *s, char *error)
{
	for (uint32_t i = 0; i < s->subports; i++) {
		const struct api_subport *p = &s->subport[i];
		if (!rate_ok(p->rate) || !class_rates_ok(p->class_rate)) {
			snprintf(error, HQOS_ERROR, "subport %u: a rate is outside %u..%llu bytes/s", i, HQOS_MIN_RATE,
				HQOS_MAX_RATE);
			return false;
		}
		if (!p->pipes || p->pipes > HQOS_MAX_PIPES) {
			snprintf(error, HQOS_ERROR, "subport %u: pipes is outside 1..%u", i, HQOS_MAX_PIPES);
			return false;
		}
	}
	for (uint32_t i = 0; i < s->profiles; i++) {
		const struct api_pipe_profile *p = &s->profile[i];
		if (!rate_ok(p->rate) || !class_rates_ok(p->class_rate)) {
			snprintf(error, HQOS_ERROR, "pipe profile %u: a rate is outside %u..%llu bytes/s", i,
				HQOS_MIN_RATE, HQOS_MAX_RATE);
			return false;
		}
		for (int q = 0; q < API_BE_QUEUES; q++)
			if (!p->weight[q]) {
				snprintf(error, HQOS_ERROR, "pipe profile %u: weight %d is 0", i, q);
				return false;
			}
	}
	return true;
}

static const char *check_red(const struct api_scheduler *s)
{
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++) {
		const struct api_red *r = &s->red[c];
		struct rte_red_config config;
		if (!(r->min | r->max | r->probability | r->weight))
			continue;
		if (s->engine != API_SCHED_HQOS)
			return "random early detection needs the engine hqos";
		if (!r->min || r->max > s->queue_size[c] ||
			rte_red_config_init(&config, r->weight, r->min, r->max, r->probability))
			return "random early detection needs 0 < min < max <= queue size and 1023, probability "
			       "1..255, weight 1..12";
	}
	return NULL;
}

static bool check(const struct hqos_params *params, char *error)
{
	const struct api_scheduler *s = params->scheduler;
	const char *why = NULL;
	if (!s)
		why = "no scheduler given";
	else if (!s->subports || s->subports > API_MAX_SUBPORTS)
		why = "subports is outside 1..64";
	else if (!s->profiles || s->profiles > API_MAX_PIPE_PROFILES)
		why = "profiles is outside 1..32";
	else if (!rate_ok(params->rate ? params->rate : s->rate))
		why = "the port's rate is out of range";
	else if (params->hz < 1000000 || params->hz > 20000000000ull)
		why = "hz is outside 1 MHz..20 GHz";
	else if (s->frame_overhead > 255)
		why = "frame_overhead is above 255";
	for (int c = 0; !why && c < API_TRAFFIC_CLASSES; c++)
		if (!rte_is_power_of_2(s->queue_size[c]) || s->queue_size[c] > 16384)
			why = "a queue size is not a power of two up to 16384";
	if (!why)
		why = check_red(s);
	for (int i = 0; !why && i < 2 * API_TRAFFIC_CLASSES; i++) {
		uint32_t size = s->precedence_size[i / API_TRAFFIC_CLASSES][i % API_TRAFFIC_CLASSES];
		if (size > s->queue_size[i % API_TRAFFIC_CLASSES] || (size != 0 && s->engine != API_SCHED_HQOS))
			why = "a drop precedence's size is above the queue size, or the engine is not hqos";
	}
	if (why) {
		snprintf(error, HQOS_ERROR, "%s", why);
		return false;
	}
	return check_levels(s, error);
}

struct hqos *hqos_create(const struct hqos_params *params, char error[HQOS_ERROR])
{
	struct hqos head = {0};
	if (!check(params, error))
		return NULL;
	const struct api_scheduler *s = params->scheduler;
	head.profiles = s->profiles;
	for (uint32_t i = 0; i < s->subports; i++) {
		if (params->worker != HQOS_ALL_WORKERS && s->subport[i].worker != params->worker)
			continue;
		head.first[i] = head.total_pipes;
		head.pipes[i] = rte_align32pow2(s->subport[i].pipes);
		head.total_pipes += head.pipes[i];
		if (head.total_pipes > HQOS_MAX_PIPES) {
			snprintf(error, HQOS_ERROR, "more than %u pipes in all", HQOS_MAX_PIPES);
			return NULL;
		}
	}
	if (!head.total_pipes) {
		snprintf(error, HQOS_ERROR, "no subport belongs to worker %u", params->worker);
		return NULL;
	}
	switch (s->engine) {
	case API_SCHED_HQOS:
		return hqos_own_create(params, &head, error);
	case API_SCHED_RTE:
		return hqos_rte_create(params, &head, error);
	default:
		snprintf(error, HQOS_ERROR, "unknown engine %u", s->engine);
		return NULL;
	}
}

uint32_t hqos_free(struct hqos *h)
{
	if (!h)
		return 0;
	uint32_t held = h->ops->queued(h);
	h->ops->free(h);
	return held;
}

int hqos_pipe_config(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile)
{
	if (subport >= API_MAX_SUBPORTS || pipe >= h->pipes[subport] || profile >= h->profiles)
		return -EINVAL;
	return h->ops->pipe_config(h, subport, pipe, profile);
}

uint32_t hqos_enqueue(struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected)
{
	return h->ops->enqueue(h, packets, n, now, rejected);
}

uint32_t hqos_dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now)
{
	return h->ops->dequeue(h, out, n, now);
}

uint32_t hqos_push_out(struct hqos *h, struct rte_mbuf **out, uint32_t n)
{
	return h->ops->push_out ? h->ops->push_out(h, out, n) : 0;
}

uint32_t hqos_longest(const struct hqos *h)
{
	return h->ops->longest ? h->ops->longest(h) : 0;
}

uint32_t hqos_queued(const struct hqos *h)
{
	return h->ops->queued(h);
}

int hqos_subport_stats(struct hqos *h, uint32_t subport, uint32_t traffic_class, struct hqos_stats *stats)
{
	if (subport >= API_MAX_SUBPORTS || !h->pipes[subport] || traffic_class >= API_TRAFFIC_CLASSES)
		return -EINVAL;
	h->ops->subport_stats(h, subport, traffic_class, stats);
	return 0;
}

int hqos_pipe_stats(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t traffic_class, struct hqos_stats *stats)
{
	if (subport >= API_MAX_SUBPORTS || pipe >= h->pipes[subport] || traffic_class >= API_TRAFFIC_CLASSES)
		return -EINVAL;
	h->ops->pipe_stats(h, subport, pipe, traffic_class, stats);
	return 0;
}

uint64_t hqos_misplaced(const struct hqos *h)
{
	return h->misplaced;
}

uint32_t hqos_pipes(const struct hqos *h, uint32_t subport)
{
	return subport < API_MAX_SUBPORTS ? h->pipes[subport] : 0;
}

size_t hqos_memory(const struct hqos *h)
{
	return h->memory;
}
