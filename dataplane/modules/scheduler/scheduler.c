// SPDX-License-Identifier: Apache-2.0
// The SCHEDULER object: builds and replaces the instances of a port.
#include "scheduler/scheduler.h"
#include "core/control.h"
#include "core/object.h"
#include "scheduler/instance.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

DROP_REASON(drop_replaced, "scheduler-replaced",
	"the packet was queued in a scheduler that was reconfigured or removed. Normal after a changed scheduler")

#define CHANGES 4096

HOLDER(scheduler_holder, "scheduler", max_scheduled)

static struct {
	struct scheduler *live[MAX_PORTS];
	uint64_t ports; // bit i: live[i] is there
	struct rte_ring *changes[API_MAX_WORKERS]; // pipe changes, packed into a pointer; writer: control thread
} schedulers;

struct scheduler *scheduler_of(uint16_t port)
{
	return port < MAX_PORTS ? __atomic_load_n(&schedulers.live[port], __ATOMIC_ACQUIRE) : NULL;
}

static_assert(MAX_PORTS <= 64, "a bit for each port");

uint64_t scheduler_ports(void)
{
	return __atomic_load_n(&schedulers.ports, __ATOMIC_ACQUIRE);
}

static void *pack(uint16_t port, uint32_t subport, uint32_t pipe, uint32_t profile)
{
	return (void *)(uintptr_t)(1ull << 63 | (uint64_t)port << 48 | (uint64_t)subport << 40 | (uint64_t)pipe << 8 |
				   profile);
}

// Buffers that an instance held when it was freed: the worker's own counter, so the worker gives them back.
#define GIVE_BACK (1ull << 62)

static void apply(uint32_t worker, uint64_t change)
{
	if (change & GIVE_BACK) {
		hold_give(worker_get(worker), &scheduler_holder, (uint32_t)change);
		return;
	}
	struct scheduler *s = scheduler_of((uint16_t)(change >> 48 & 0x7fff));

	if (s != NULL && s->instance[worker] != NULL)
		hqos_pipe_config(s->instance[worker], change >> 40 & 0xff, (uint32_t)(change >> 8), change & 0xff);
}

void scheduler_apply_changes(uint32_t id)
{
	void *change;

	while (rte_ring_sc_dequeue(schedulers.changes[id], &change) == 0)
		apply(id, (uint64_t)(uintptr_t)change);
}

// A full ring empties at the worker's next walk; without threads, this function empties it.
static void tell(uint32_t worker, void *change)
{
	while (rte_ring_sp_enqueue(schedulers.changes[worker], change) != 0) {
		if (engine_without_threads())
			scheduler_apply_changes(worker);
		else
			sched_yield();
	}
	worker_wake(worker);
}

static int profile_index(const struct api_scheduler *s, const char *name)
{
	for (uint32_t i = 0; i < s->profiles; i++)
		if (strncmp(s->profile[i].name, name, API_NAME) == 0)
			return (int)i;
	return -1;
}

static const struct api_scheduler *wanted(const char *port)
{
	uint32_t length;

	return object_find(API_SCHEDULER, port, &length);
}

int scheduler_has_place(const char *port, uint32_t subport, uint32_t pipe)
{
	const struct api_scheduler *s = port[0] != 0 ? wanted(port) : NULL;

	return s != NULL && subport < s->subports && pipe < s->subport[subport].pipes;
}

int scheduler_check_place(
	const char *port, const char *session, uint32_t worker, uint32_t subport, uint32_t pipe, const char *profile)
{
	const struct api_scheduler *s = wanted(port);

	if (s == NULL)
		return 0;
	if (subport >= s->subports || pipe >= s->subport[subport].pipes)
		return object_error(
			ENOENT, "session %s: the scheduler of port %s has no pipe %u.%u", session, port, subport, pipe);
	if (s->subport[subport].worker != worker)
		return object_error(EINVAL, "session %s belongs to worker %u, its subport %u to worker %u", session,
			worker, subport, s->subport[subport].worker);
	if (profile_index(s, profile) < 0)
		return object_error(
			ENOENT, "session %s: the scheduler of port %s has no profile %s", session, port, profile);
	return 0;
}

void scheduler_pipe_profile(const char *port, uint32_t subport, uint32_t pipe, const char *profile)
{
	const struct api_scheduler *s = wanted(port);
	const struct port *p = port_by_name(port);

	if (s == NULL || p == NULL || subport >= s->subports)
		return;
	uint32_t worker = s->subport[subport].worker;
	int index = profile_index(s, profile);
	struct scheduler *live = schedulers.live[p->index];
	// A new instance starts with all pipes on profile 0.
	if (index < 0 || live == NULL || worker >= worker_count())
		return;
	tell(worker, pack(p->index, subport, pipe, (uint32_t)index));
}

static void scheduler_free(struct scheduler *s)
{
	for (uint32_t w = 0; s != NULL && w < API_MAX_WORKERS; w++) {
		if (s->instance[w] == NULL)
			continue;
		uint32_t held = hqos_free(s->instance[w]);
		control_drop_held(held, &drop_replaced);
		if (s->held[w].buffers > 0)
			tell(w, (void *)(uintptr_t)(1ull << 63 | GIVE_BACK | s->held[w].buffers));
	}
	rte_free(s);
}

// Each worker's instance has the port's rate in proportion to the rates of the subports that it owns.
static uint64_t rate_share(const struct api_scheduler *want, uint32_t worker)
{
	uint64_t mine = 0, all = 0;

	for (uint32_t i = 0; i < want->subports; i++) {
		all += want->subport[i].rate;
		mine += want->subport[i].worker == worker ? want->subport[i].rate : 0;
	}
	return all == 0 ? want->rate : (uint64_t)((double)want->rate * ((double)mine / (double)all));
}

static int build(struct scheduler *s)
{
	for (uint32_t w = 0; w < worker_count(); w++) {
		char error[HQOS_ERROR];
		int owns = 0;
		struct hqos_params params = {
			.scheduler = &s->want,
			.worker = w,
			.socket = SOCKET_ID_ANY,
			.rate = rate_share(&s->want, w),
			.hz = rte_get_tsc_hz(),
			.start = worker_get(w)->now,
			.mark = scheduler_mark,
		};

		for (uint32_t i = 0; i < s->want.subports; i++)
			owns |= s->want.subport[i].worker == w;
		if (!owns)
			continue;
		s->instance[w] = hqos_create(&params, error);
		if (s->instance[w] == NULL)
			return object_error(EINVAL, "scheduler %s: %s", s->name, error);
	}
	return 0;
}

static int check(const struct object_change *c, const struct port *p)
{
	const struct api_scheduler *want = c->body;

	if (p == NULL)
		return object_error(ENOENT, "scheduler %s: there is no port of that name", c->key);
	if (want->subports < 1 || want->subports > API_MAX_SUBPORTS || want->profiles < 1 ||
		want->profiles > API_MAX_PIPE_PROFILES)
		return object_error(EINVAL,
			"scheduler %s has %u subports and %u profiles; 1..%d and 1..%d are possible", c->key,
			want->subports, want->profiles, API_MAX_SUBPORTS, API_MAX_PIPE_PROFILES);
	for (uint32_t i = 0; i < want->subports; i++)
		if (want->subport[i].worker >= worker_count())
			return object_error(EINVAL, "scheduler %s: subport %u belongs to worker %u, there are %u",
				c->key, i, want->subport[i].worker, worker_count());
	return 0;
}

static int stage(struct object_change *c)
{
	struct scheduler *old = *c->live;
	const struct port *p = port_by_name(c->key);

	c->replaced = old;
	c->narrows = 1; // sessions must find their pipe, profile and worker in what is new
	if (c->body == NULL)
		return 0;
	int error = check(c, p);
	if (error != 0)
		return error;
	struct scheduler *s = rte_zmalloc("scheduler", sizeof(*s), CACHE_LINE);
	if (s == NULL)
		return object_error(ENOMEM, "no memory for the scheduler of port %s", c->key);
	snprintf(s->name, sizeof(s->name), "%s", c->key);
	s->port = p->index;
	s->want = *(const struct api_scheduler *)c->body;
	error = build(s);
	if (error != 0) {
		scheduler_free(s);
		return error;
	}
	c->staged = s;
	return 0;
}

static void discard(struct object_change *c)
{
	scheduler_free(c->staged);
}

static int configure_pipe(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_session *session = body;
	const struct scheduler *s = arg;

	// A new instance has all pipes on profile 0.
	if (strncmp(session->port, s->name, API_NAME) == 0 && profile_index(&s->want, session->pipe_profile) > 0)
		scheduler_pipe_profile(session->port, session->subport, session->pipe, session->pipe_profile);
	return 0;
}

static void commit(struct object_change *c)
{
	struct scheduler *s = c->staged, *old = c->replaced;

	if (s == NULL && old == NULL)
		return;
	uint16_t port = s ? s->port : old->port;
	uint64_t bit = 1ull << port;
	__atomic_store_n(&schedulers.live[port], s, __ATOMIC_RELEASE);
	__atomic_store_n(&schedulers.ports, s ? schedulers.ports | bit : schedulers.ports & ~bit, __ATOMIC_RELEASE);
	*c->live = s;
	if (s != NULL)
		object_each(API_SESSION, configure_pipe, s);
}

static void release(struct object_change *c)
{
	scheduler_free(c->replaced);
}

static int verify(const char *key, const void *body, uint32_t length)
{
	return port_by_name(key) == NULL ? object_error(EBUSY, "port %s still has a scheduler", key) : 0;
}

static const struct object_ops scheduler_ops = {
	OBJECT_OF_ONE(API_SCHEDULER, "scheduler", struct api_scheduler),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.verify = verify,
};
OBJECT_REGISTER(scheduler_ops)

static int start(const struct api_engine *e)
{
	for (uint32_t w = 0; w < e->workers; w++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "pipe-changes-%u", w);
		schedulers.changes[w] = rte_ring_create(name, CHANGES, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (schedulers.changes[w] == NULL)
			return object_error(ENOMEM, "no memory for the scheduler");
	}
	return 0;
}

static void put_row(struct stats_sink *sink, const struct scheduler *s, struct api_scheduler_row *row,
	const struct hqos_stats *stats)
{
	snprintf(row->port, sizeof(row->port), "%s", s->name);
	row->packets = stats->packets;
	row->bytes = stats->bytes;
	row->dropped_packets = stats->dropped_packets;
	row->dropped_bytes = stats->dropped_bytes;
	row->queued = stats->queued;
	row->dropped_yellow = stats->dropped_by[0];
	row->dropped_red = stats->dropped_by[1];
	stats_row(sink, row, sizeof(*row));
}

static void subport_rows(struct stats_sink *sink, struct scheduler *s, uint32_t subport)
{
	struct hqos *h = s->instance[s->want.subport[subport].worker];

	for (uint32_t tc = 0; h != NULL && tc < API_TRAFFIC_CLASSES; tc++) {
		struct api_scheduler_row row = {.subport = subport, .pipe = UINT32_MAX, .traffic_class = tc};
		struct hqos_stats stats;

		if (hqos_subport_stats(h, subport, tc, &stats) == 0)
			put_row(sink, s, &row, &stats);
	}
}

// One subscriber's queues, by a key of PORT/SUBPORT/PIPE.
static void pipe_rows(struct stats_sink *sink, const char *port, uint32_t subport, uint32_t pipe)
{
	const struct port *p = port_by_name(port);
	struct scheduler *s = p != NULL ? schedulers.live[p->index] : NULL;

	if (s == NULL || subport >= s->want.subports)
		return;
	struct hqos *h = s->instance[s->want.subport[subport].worker];
	for (uint32_t tc = 0; h != NULL && tc < API_TRAFFIC_CLASSES; tc++) {
		struct api_scheduler_row row = {.subport = subport, .pipe = pipe, .traffic_class = tc};
		struct hqos_stats stats;

		if (hqos_pipe_stats(h, subport, pipe, tc, &stats) == 0)
			put_row(sink, s, &row, &stats);
	}
}

static uint64_t scheduler_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	struct scheduler *s = place < MAX_PORTS ? schedulers.live[place] : NULL;
	char port[API_NAME];
	uint32_t subport, pipe;

	if (sscanf(key, "%31[^/]/%u/%u", port, &subport, &pipe) == 3) {
		pipe_rows(sink, port, subport, pipe);
		return 0;
	}
	for (uint32_t k = 0; s != NULL && (key[0] == 0 || strcmp(key, s->name) == 0) && k < s->want.subports; k++)
		subport_rows(sink, s, k);
	return stats_next(place, MAX_PORTS);
}

RTE_INIT(scheduler_module)
{
	module_register(start);
	stats_table_register(API_TABLE_SCHEDULER, sizeof(struct api_scheduler_row), scheduler_rows);
}
