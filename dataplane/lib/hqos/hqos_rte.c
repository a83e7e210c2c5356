// SPDX-License-Identifier: Apache-2.0
// The scheduling engine that is DPDK's rte_sched. Our four classes are its traffic classes 0, 1, 2 and its best-effort
// class; the other nine have no queues.
//
// rte_sched frees the packets that find their queue full. To hand them back instead, each packet gets a second
// reference before rte_sched sees it: what rte_sched "frees" then falls back to one reference and is still ours, whole.
// The count is exact and depends on nothing but the meaning of rte_pktmbuf_free.
#include "clock/clock.h"
#include "hqos/hqos_private.h"

#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_sched.h>
#include <stdio.h>
#include <string.h>

#define BATCH 64
#define TC_PERIOD 10 // milliseconds
#define PIPE_QUEUES 16 // RTE_SCHED_QUEUES_PER_PIPE
#define DRAIN_MS 100 // that hqos_free may take to empty the queues
#define MIN_BURST 16384 // bytes; a bucket must hold the longest frame or rte_sched never sends it

struct rte_engine {
	struct hqos head;
	struct rte_sched_port *port;
	uint32_t held;
	uint32_t pipes_log2; // of rte_sched's queue numbers
	uint32_t unlimited; // subport profile
	struct hqos_stats subport[API_MAX_SUBPORTS][API_TRAFFIC_CLASSES];
	struct hqos_stats (*pipe)[API_TRAFFIC_CLASSES]; // read so far: rte_sched clears its counters when read
};

static uint32_t rte_class(uint32_t c)
{
	return c == HQOS_BEST_EFFORT ? RTE_SCHED_TRAFFIC_CLASS_BE : c;
}

// ---- creation -------------------------------------------------------------------------------------------------------

static uint64_t class_rate(uint64_t rate, uint64_t level)
{
	return rate && rate < level ? rate : level;
}

static void profiles_make(struct rte_sched_pipe_params *out, const struct api_scheduler *s, uint64_t port_rate)
{
	for (uint32_t i = 0; i < s->profiles; i++) {
		const struct api_pipe_profile *from = &s->profile[i];
		out[i].tb_rate = RTE_MIN(from->rate, port_rate);
		out[i].tb_size = RTE_MAX(from->burst, (uint64_t)MIN_BURST);
		out[i].tc_period = TC_PERIOD;
		out[i].tc_ov_weight = 1;
		for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
			out[i].tc_rate[rte_class(c)] = class_rate(from->class_rate[c], out[i].tb_rate);
		memcpy(out[i].wrr_weights, from->weight, sizeof(from->weight));
	}
	// One more, without limits of its own, for engine_free.
	out[s->profiles] = out[0];
	out[s->profiles].tb_rate = port_rate;
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		out[s->profiles].tc_rate[rte_class(c)] = port_rate;
}

static void subport_profile_make(
	struct rte_sched_subport_profile_params *out, const struct api_subport *from, uint64_t port_rate)
{
	out->tb_rate = RTE_MIN(from->rate, port_rate);
	out->tb_size = RTE_MAX(from->burst, (uint64_t)MIN_BURST);
	out->tc_period = TC_PERIOD;
	for (int c = 0; c < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; c++)
		out->tc_rate[c] = out->tb_rate;
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		out->tc_rate[rte_class(c)] = class_rate(from->class_rate[c], out->tb_rate);
}

static struct rte_sched_port *port_make(const struct hqos_params *params, uint32_t most_pipes)
{
	const struct api_scheduler *s = params->scheduler;
	struct rte_sched_subport_profile_params profiles[API_MAX_SUBPORTS + 1];
	uint64_t rate = params->rate ? params->rate : s->rate;
	for (uint32_t i = 0; i < s->subports; i++)
		subport_profile_make(&profiles[i], &s->subport[i], rate);
	const struct api_subport unlimited = {.rate = rate};
	subport_profile_make(&profiles[s->subports], &unlimited, rate); // for engine_free
	struct rte_sched_port_params port = {
		.name = "hqos",
		.socket = params->socket == SOCKET_ID_ANY ? 0 : params->socket, // it takes no "any"
		.rate = rate,
		.mtu = 9018,
		.frame_overhead = s->frame_overhead,
		.n_subports_per_port = rte_align32pow2(s->subports),
		.subport_profiles = profiles,
		.n_subport_profiles = s->subports + 1,
		.n_max_subport_profiles = s->subports + 1,
		.n_pipes_per_subport = most_pipes,
	};
	return rte_sched_port_config(&port);
}

static int subport_make(
	struct rte_engine *e, const struct hqos_params *params, uint32_t i, struct rte_sched_pipe_params *profiles)
{
	const struct api_scheduler *s = params->scheduler;
	// Numbers that are not ours exist all the same, with one pipe: rte_sched walks over all of them.
	uint32_t pipes = i < s->subports && e->head.pipes[i] ? e->head.pipes[i] : 1;
	struct rte_sched_subport_params subport = {
		.n_pipes_per_subport_enabled = pipes,
		.pipe_profiles = profiles,
		.n_pipe_profiles = s->profiles + 1,
		.n_max_pipe_profiles = s->profiles + 1,
	};
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		subport.qsize[rte_class(c)] = s->queue_size[c];
	// The first call allocates and takes profile 0 whatever we say; the second one sets the profile.
	int status = rte_sched_subport_config(e->port, i, &subport, 0);
	if (!status && i && i < s->subports)
		status = rte_sched_subport_config(e->port, i, &subport, i);
	for (uint32_t p = 0; !status && p < pipes; p++)
		status = rte_sched_pipe_config(e->port, i, p, 0);
	return status;
}

// rte_sched_port_free of DPDK 22.11 takes a queue that is exactly full for an empty one and loses its packets. So let
// them out first: without any limit but the port's, and for a limited time.
static void drain(struct rte_engine *e)
{
	uint64_t end = clock_monotonic_ns() + DRAIN_MS * 1000000ull;
	for (uint32_t i = 0; i < API_MAX_SUBPORTS; i++) {
		if (!e->head.pipes[i])
			continue;
		rte_sched_subport_config(e->port, i, NULL, e->unlimited);
		for (uint32_t p = 0; p < e->head.pipes[i]; p++)
			rte_sched_pipe_config(e->port, i, p, e->head.profiles);
	}
	while (e->held && clock_monotonic_ns() < end) {
		struct rte_mbuf *out[BATCH];
		int n = rte_sched_port_dequeue(e->port, out, BATCH);
		rte_pktmbuf_free_bulk(out, n);
		e->held -= n;
	}
}

static void engine_free(struct hqos *h)
{
	struct rte_engine *e = (struct rte_engine *)h;
	if (e->held)
		drain(e);
	rte_sched_port_free(e->port);
	rte_free(e->pipe);
	rte_free(e);
}

static size_t heap_used(int socket)
{
	struct rte_malloc_socket_stats stats;
	if (rte_malloc_get_socket_stats(socket == SOCKET_ID_ANY ? 0 : socket, &stats))
		return 0;
	return stats.heap_allocsz_bytes;
}

static const struct hqos_ops rte_ops;

struct hqos *hqos_rte_create(const struct hqos_params *params, const struct hqos *head, char *error)
{
	const struct api_scheduler *s = params->scheduler;
	struct rte_sched_pipe_params profiles[API_MAX_PIPE_PROFILES + 1] = {0};
	size_t before = heap_used(params->socket);
	struct rte_engine *e = rte_zmalloc_socket("hqos_rte", sizeof(*e), RTE_CACHE_LINE_SIZE, params->socket);
	const char *what = "no memory";
	int status = 0;
	if (!e)
		goto refuse;
	e->head = *head;
	e->head.ops = &rte_ops;
	e->pipe = rte_zmalloc_socket("hqos_rte", head->total_pipes * sizeof(*e->pipe), 64, params->socket);
	if (!e->pipe)
		goto refuse;
	uint32_t most = 1;
	for (uint32_t i = 0; i < s->subports; i++)
		most = RTE_MAX(most, head->pipes[i]);
	e->unlimited = s->subports;
	what = "rte_sched refused the port";
	e->port = port_make(params, most);
	if (!e->port)
		goto refuse;
	e->pipes_log2 = __builtin_ctz(most);
	profiles_make(profiles, s, params->rate ? params->rate : s->rate);
	what = "rte_sched refused a subport";
	for (uint32_t i = 0; !status && i < rte_align32pow2(s->subports); i++)
		status = subport_make(e, params, i, profiles);
	if (status)
		goto refuse;
	e->head.memory = heap_used(params->socket) - before;
	return &e->head;
refuse:
	snprintf(error, HQOS_ERROR, "%s (%d)", what, status);
	if (e)
		engine_free(&e->head);
	return NULL;
}

static int pipe_config(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile)
{
	return rte_sched_pipe_config(((struct rte_engine *)h)->port, subport, pipe, profile) ? -EINVAL : 0;
}

// ---- packets --------------------------------------------------------------------------------------------------------

// Adds or takes back our reference to every segment. A packet that nobody else holds needs no atomic operation.
static inline void hold(struct rte_mbuf *m)
{
	for (; m; m = m->next)
		rte_mbuf_refcnt_update(m, 1);
}

static void unhold_chain(struct rte_mbuf *m)
{
	for (; m; m = m->next)
		rte_mbuf_refcnt_update(m, -1);
}

static inline void unhold(struct rte_mbuf *m)
{
	if (likely(m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 2))
		rte_mbuf_refcnt_set(m, 1);
	else
		unhold_chain(m);
}

static uint32_t enqueue_batch(struct rte_engine *e, struct rte_mbuf **packets, uint32_t n, struct rte_mbuf **rejected)
{
	struct rte_mbuf *batch[BATCH];
	uint32_t place[BATCH];
	uint16_t references[BATCH];
	uint32_t count = 0, refused = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = packets[i];
		uint32_t at = m->hash.sched.queue_id;
		place[i] = at;
		if (unlikely(!hqos_place_valid(&e->head, at)))
			continue;
		uint32_t q = hqos_place_queue(at), c = hqos_queue_class(q);
		rte_sched_port_pkt_write(
			e->port, m, hqos_place_subport(at), hqos_place_pipe(at), rte_class(c), q - c, RTE_COLOR_GREEN);
		references[i] = rte_mbuf_refcnt_read(m);
		if (likely(m->nb_segs == 1 && references[i] == 1))
			rte_mbuf_refcnt_set(m, 2);
		else
			hold(m);
		batch[count++] = m;
	}
	bool all = !count || (uint32_t)rte_sched_port_enqueue(e->port, batch, count) == count;
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = packets[i];
		if (unlikely(!hqos_place_valid(&e->head, place[i]))) {
			e->head.misplaced++;
			rejected[refused++] = m;
			continue;
		}
		struct hqos_stats *stats =
			&e->subport[hqos_place_subport(place[i])][hqos_queue_class(hqos_place_queue(place[i]))];
		if (likely(all || rte_mbuf_refcnt_read(m) != references[i])) {
			unhold(m);
			stats->packets++;
			stats->bytes += m->pkt_len;
			e->held++;
		} else {
			stats->dropped_packets++;
			stats->dropped_bytes += m->pkt_len;
			rejected[refused++] = m;
		}
	}
	return refused;
}

static uint32_t enqueue(struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected)
{
	struct rte_engine *e = (struct rte_engine *)h;
	uint32_t refused = 0;
	(void)now;
	for (uint32_t i = 0; i < n; i += BATCH)
		refused += enqueue_batch(e, packets + i, RTE_MIN(n - i, (uint32_t)BATCH), rejected + refused);
	return refused;
}

static uint32_t dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now)
{
	struct rte_engine *e = (struct rte_engine *)h;
	(void)now;
	int count = rte_sched_port_dequeue(e->port, out, n);
	e->held -= count;
	return count;
}

static uint32_t queued(const struct hqos *h)
{
	return ((const struct rte_engine *)h)->held;
}

// ---- counters -------------------------------------------------------------------------------------------------------

static void subport_stats(struct hqos *h, uint32_t subport, uint32_t c, struct hqos_stats *stats)
{
	*stats = ((const struct rte_engine *)h)->subport[subport][c];
}

static void pipe_stats(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t c, struct hqos_stats *stats)
{
	struct rte_engine *e = (struct rte_engine *)h;
	struct hqos_stats *sum = &e->pipe[h->first[subport] + pipe][c];
	uint32_t first = ((subport << e->pipes_log2) + pipe) * PIPE_QUEUES + rte_class(c);
	sum->queued = 0;
	for (uint32_t q = 0; q < (c == HQOS_BEST_EFFORT ? API_BE_QUEUES : 1); q++) {
		struct rte_sched_queue_stats s;
		uint16_t length = 0;
		if (rte_sched_queue_read_stats(e->port, first + q, &s, &length))
			continue;
		sum->packets += s.n_pkts;
		sum->bytes += s.n_bytes;
		sum->dropped_packets += s.n_pkts_dropped;
		sum->dropped_bytes += s.n_bytes_dropped;
		sum->queued += length;
	}
	*stats = *sum;
}

static const struct hqos_ops rte_ops = {
	.free = engine_free,
	.pipe_config = pipe_config,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.queued = queued,
	.subport_stats = subport_stats,
	.pipe_stats = pipe_stats,
};
