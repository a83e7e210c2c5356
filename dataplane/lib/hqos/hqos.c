// SPDX-License-Identifier: Apache-2.0
// Creation of an instance, its pipes' profiles, and counters.
#include "hqos/hqos_private.h"
#include "wire/cache_line.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_malloc.h>
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
		if (size > s->queue_size[i % API_TRAFFIC_CLASSES])
			why = "a drop precedence's size is above the queue size";
	}
	if (why) {
		snprintf(error, HQOS_ERROR, "%s", why);
		return false;
	}
	return check_levels(s, error);
}

#define MIN_BURST (SECOND >> 14) // 61 us
#define MAX_BURST (EPOCH / 2)

static struct rate rate_make(uint64_t rate, uint64_t burst)
{
	struct rate r = {0};
	if (!rate)
		return r;
	r.cost = (uint64_t)((((unsigned __int128)SECOND << COST_SHIFT) + rate / 2) / rate);
	unsigned __int128 units = (unsigned __int128)burst * r.cost >> COST_SHIFT;
	r.burst = units > MAX_BURST ? MAX_BURST : units < MIN_BURST ? MIN_BURST : (uint64_t)units;
	return r;
}

static void profile_make(struct profile *profile, const struct api_pipe_profile *from)
{
	uint32_t low = 255, high = 1;
	profile->rate = rate_make(from->rate, from->burst);
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		profile->class_rate[c] = rate_make(from->class_rate[c], from->burst);
	for (int q = 0; q < API_BE_QUEUES; q++) {
		low = RTE_MIN(low, from->weight[q]);
		high = RTE_MAX(high, from->weight[q]);
	}
	// Bytes per unit of weight: the lightest queue sends about one packet a round, and the product fits 16 bits.
	uint32_t unit = RTE_MAX(1u, RTE_MIN(1024 / low, (uint32_t)INT16_MAX / high));
	for (int q = 0; q < API_BE_QUEUES; q++)
		profile->quantum[q] = from->weight[q] * unit;
}

static void subports_make(struct hqos *h, const struct api_scheduler *s)
{
	uint64_t fastest = 1;
	for (uint32_t i = 0; i < s->subports; i++)
		if (h->pipes[i])
			fastest = RTE_MAX(fastest, s->subport[i].rate);
	for (uint32_t i = 0; i < API_MAX_SUBPORTS; i++) {
		struct subport *sp = &h->subport[i];
		sp->active = (struct list){NIL, NIL};
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			sp->wanting[c] = (struct list){NIL, NIL};
		if (!h->pipes[i])
			continue;
		const struct api_subport *from = &s->subport[i];
		sp->rate = rate_make(from->rate, from->burst);
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			sp->class_rate[c] = rate_make(from->class_rate[c], from->burst);
		for (uint32_t k = 0; k < h->pipes[i]; k++)
			h->pipe[h->first[i] + k].subport = i;
		sp->quantum = RTE_MAX(256, (int32_t)((double)from->rate / fastest * SUBPORT_QUANTUM));
	}
}

static void release(struct hqos *h)
{
	if (!h)
		return;
	for (; h->passed_head != h->passed_tail; h->passed_head++)
		rte_pktmbuf_free(h->passed[h->passed_head % READY]);
	for (uint32_t i = 0; h->pipe && h->held && i < h->total_pipes; i++)
		for (uint32_t q = 0; q < HQOS_QUEUES; q++)
			for (struct rte_mbuf *m = h->queues[i].queue[q].head; m != NULL && h->queues[i].queued[q];
				h->queues[i].queued[q]--) {
				struct rte_mbuf *next = link_get(m);
				rte_pktmbuf_free(m);
				m = next;
			}
	rte_free(h->pipe);
	rte_free(h->queues);
	rte_free(h->accepted);
	rte_free(h->dropped);
	rte_free(h->want_next);
	rte_free(h->long_link);
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		rte_free(h->red[c]);
	rte_free(h);
}

static bool count_pipes(struct hqos *h, const struct hqos_params *params, char *error)
{
	const struct api_scheduler *s = params->scheduler;
	for (uint32_t i = 0; i < s->subports; i++) {
		if (params->worker != HQOS_ALL_WORKERS && s->subport[i].worker != params->worker)
			continue;
		h->first[i] = h->total_pipes;
		h->pipes[i] = rte_align32pow2(s->subport[i].pipes);
		h->total_pipes += h->pipes[i];
		if (h->total_pipes > HQOS_MAX_PIPES) {
			snprintf(error, HQOS_ERROR, "more than %u pipes in all", HQOS_MAX_PIPES);
			return false;
		}
	}
	if (!h->total_pipes)
		snprintf(error, HQOS_ERROR, "no subport belongs to worker %u", params->worker);
	return h->total_pipes != 0;
}

static bool allocate(struct hqos *h, int socket)
{
	uint32_t pipes = h->total_pipes;
	h->pipe = rte_zmalloc_socket("hqos_pipe", pipes * sizeof(*h->pipe), 64, socket);
	h->queues = rte_zmalloc_socket("hqos_queues", pipes * sizeof(*h->queues), 64, socket);
	h->accepted = rte_zmalloc_socket("hqos_took", pipes * sizeof(*h->accepted), 64, socket);
	h->dropped = rte_zmalloc_socket("hqos_drop", pipes * sizeof(*h->dropped), 64, socket);
	h->want_next = rte_zmalloc_socket("hqos_want", pipes * sizeof(*h->want_next), 64, socket);
	h->long_link = rte_zmalloc_socket("hqos_long", pipes * sizeof(*h->long_link), 64, socket);
	h->memory = sizeof(*h) + pipes * (sizeof(*h->pipe) + sizeof(*h->queues) + sizeof(*h->accepted) +
						 sizeof(*h->dropped) + sizeof(*h->want_next) + sizeof(*h->long_link));
	return h->pipe && h->queues && h->accepted && h->dropped && h->want_next && h->long_link;
}

struct hqos *hqos_create(const struct hqos_params *params, char error[HQOS_ERROR])
{
	const struct api_scheduler *s = params->scheduler;
	if (!check(params, error))
		return NULL;
	struct hqos *h = rte_zmalloc_socket("hqos", sizeof(*h), CACHE_LINE, params->socket);
	snprintf(error, HQOS_ERROR, "no memory for the scheduler");
	if (!h || !count_pipes(h, params, error) || !allocate(h, params->socket))
		goto refuse;
	h->profiles = s->profiles;
	uint64_t rate = params->rate ? params->rate : s->rate;
	h->rate = rate_make(rate, params->burst ? params->burst : rate / 1000);
	h->overhead = s->frame_overhead;
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		for (uint32_t i = 0; i < RTE_DIM(h->queue_size); i++)
			h->queue_size[i][c] =
				i > 0 && s->precedence_size[i - 1][c] ? s->precedence_size[i - 1][c] : s->queue_size[c];
	h->now = EPOCH;
	h->origin = params->start;
	h->scale = (uint64_t)(((unsigned __int128)SECOND << 32) / params->hz);
	h->wake_at = UINT64_MAX;
	h->wheel_tick = EPOCH >> SLOT_SHIFT;
	for (uint32_t i = 0; i < SLOTS; i++)
		h->wheel[i] = (struct list){NIL, NIL};
	for (uint32_t i = 0; i < LEVELS; i++)
		h->longest[i] = (struct list){NIL, NIL};
	for (uint32_t i = 0; i < s->profiles; i++)
		profile_make(&h->profile[i], &s->profile[i]);
	subports_make(h, s);
	if (!red_create(h, params))
		goto refuse;
	return h;
refuse:
	release(h);
	return NULL;
}

uint32_t hqos_free(struct hqos *h)
{
	uint32_t held = h ? hqos_queued(h) : 0;
	release(h);
	return held;
}

int hqos_pipe_config(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile)
{
	if (subport >= API_MAX_SUBPORTS || pipe >= h->pipes[subport] || profile >= h->profiles)
		return -EINVAL;
	uint32_t index = h->first[subport] + pipe;
	struct pipe *p = &h->pipe[index];
	p->profile = profile;
	p->free_at = 0;
	memset(p->class_free_at, 0, sizeof(p->class_free_at));
	if (p->state >= PARKED)
		resettle_pipe(h, &h->subport[subport], index);
	return 0;
}

int hqos_subport_stats(const struct hqos *h, uint32_t subport, uint32_t c, struct hqos_stats *stats)
{
	if (subport >= API_MAX_SUBPORTS || !h->pipes[subport] || c >= API_TRAFFIC_CLASSES)
		return -EINVAL;
	const struct subport *sp = &h->subport[subport];
	*stats = (struct hqos_stats){
		.packets = sp->accepted[c].packets,
		.bytes = sp->accepted[c].bytes,
		.dropped_packets = sp->dropped[c].packets,
		.dropped_bytes = sp->dropped[c].bytes,
		.dropped_by = {sp->dropped_by[c][0], sp->dropped_by[c][1]},
		.queued = sp->held[c],
	};
	return 0;
}

int hqos_pipe_stats(const struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t c, struct hqos_stats *stats)
{
	if (subport >= API_MAX_SUBPORTS || pipe >= h->pipes[subport] || c >= API_TRAFFIC_CLASSES)
		return -EINVAL;
	uint32_t index = h->first[subport] + pipe;
	const struct pipe *p = &h->pipe[index];
	*stats = (struct hqos_stats){
		.packets = h->accepted[index][c].packets + p->taken[c] / TAKEN_PACKET,
		.bytes = h->accepted[index][c].bytes + p->taken[c] % TAKEN_PACKET,
		.dropped_packets = h->dropped[index][c].packets,
		.dropped_bytes = h->dropped[index][c].bytes,
	};
	for (uint32_t q = 0; q < HQOS_QUEUES; q++)
		if (hqos_queue_class(q) == c)
			stats->queued += queues_of(h, p)->queued[q];
	return 0;
}

uint32_t hqos_queued(const struct hqos *h)
{
	return h->held + (h->passed_tail - h->passed_head);
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
