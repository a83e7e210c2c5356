// SPDX-License-Identifier: Apache-2.0
// Worker threads: each walks its own graph until it must stop.
#include "core/walk.h"
#include "core/channel.h"
#include "core/hold.h"
#include "core/host_path.h"
#include "core/log.h"
#include "core/module.h"
#include "core/node.h"
#include "core/port.h"
#include "core/reply.h"
#include "core/sleeper.h"
#include "core/watch.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

enum { YIELDED_US = 20 }; // a yield that takes longer gave the CPU to another thread
enum { SHARES_MS = 20 }; // so long a worker that shares its CPU sleeps as soon as it is idle
enum { STALL_MS = 10 }; // a walk that takes longer is counted, and a sleep that is longer by that than it should be

static struct {
	pthread_t thread[API_MAX_WORKERS];
	uint32_t count; // running
	int stop; // written by the control thread, read by workers
} threads;

// Collects the descriptors that end a worker's sleep. Returns its length, ns.
static uint64_t prepare_sleep(struct worker *w)
{
	const struct port_queues *q = __atomic_load_n(&w->queues, __ATOMIC_ACQUIRE);
	uint64_t ns = WORKER_SLEEP_MS * 1000000u, now = worker_time(w, rte_rdtsc());

	if (w->due <= now)
		return 0;
	for (uint16_t i = 0; q != NULL && i < q->count; i++) {
		struct port *p = port_get(q->entry[i].port);
		int fd = p == NULL ? PORT_SILENT : PORT_POLLED;

		if (p != NULL && p->driver->rx_fd != NULL)
			fd = p->driver->rx_fd(p, q->entry[i].queue);
		if (fd == PORT_READY)
			return 0;
		if (fd != PORT_SILENT)
			ns = RTE_MIN(ns, watch_add(w->watch, i, fd));
	}
	return w->due - now < w->tsc_hz / 10 ? RTE_MIN(ns, (w->due - now) * NS_PER_S / w->tsc_hz) : ns;
}

// A long walk, another thread on the CPU, or a late wake-up.
static inline void note_stall(struct worker *w, uint64_t ticks)
{
	if (likely(ticks <= w->stall))
		return;
	w->stalls++;
	w->stalled_ticks += ticks;
}

static void wake_up(struct worker *w)
{
	__atomic_store_n(&w->asleep, 0, __ATOMIC_SEQ_CST);
	// Pairs with the fence of control_synchronize(): it saw us asleep, or we see its publications.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// A walk in which nothing entered or left is idle. The first idle walks only poll. With API_ENGINE_IDLE_SLEEP a worker
// sleeps after a millisecond without work, or when others want its CPU; it looks for work once more before.
static void idle(struct worker *w, uint64_t since)
{
	if (w->now - since <= w->tsc_hz / 1000 && w->now >= w->shares_until) {
		uint64_t before = rte_rdtsc(), took;

		sched_yield(); // to whom our last packets woke: it may wait for this CPU
		took = clock_passed(rte_rdtsc(), before, w->tsc_hz);
		note_stall(w, took);
		// Another thread ran: polling takes CPU time from it, and a sleeper is woken sooner than a yielding
		// thread gets its turn.
		if (took > w->tsc_hz / US_PER_S * YIELDED_US)
			w->shares_until = w->now + took + w->tsc_hz / 1000 * SHARES_MS;
		return;
	}
	bool listens = sleeper_listens(w->sleeper) != 0;

	watch_judge(w->watch, !listens);
	if (!listens) {
		sleeper_listen(w->sleeper);
		return;
	}
	uint64_t ns = prepare_sleep(w);
	if (ns == 0)
		return;
	__atomic_store_n(&w->asleep, 1, __ATOMIC_SEQ_CST);
	uint64_t wake = rte_rdtsc() + ns * (w->tsc_hz / US_PER_S) / 1000;
	watch_sleep(w->watch, w->sleeper, ns);
	wake_up(w);
	note_stall(w, clock_passed(rte_rdtsc(), wake, UINT64_MAX));
}

// One walk over the graph, as rte_graph_walk, but with one clock reading per node: a node's end is the next one's
// begin. A reading costs 20 ticks, shared by a vector of 64. Returns the last reading.
static uint64_t walk(struct worker *w, uint64_t start)
{
	struct rte_graph *graph = w->graph;
	const rte_graph_off_t *reel = graph->cir_start;
	uint32_t mask = graph->cir_mask, head = graph->head;

	if (unlikely(w->linked != __atomic_load_n(&arcs_generation, __ATOMIC_ACQUIRE)))
		graph_link(w);
	while (likely(head != graph->tail)) {
		struct rte_node *node = RTE_PTR_ADD(graph, reel[(int32_t)head++]);
		// A trace replaces it, and has made what its own function reads.
		rte_node_process_t process = __atomic_load_n(&node->process, __ATOMIC_ACQUIRE);
		uint16_t objects = process(graph, node, node->objs, node->idx);
		uint64_t end = rte_rdtsc();

		node->total_cycles += clock_passed(end, start, UINT64_MAX);
		node->total_calls++;
		node->total_objs += objects;
		node->idx = 0;
		start = end;
		head = likely((int32_t)head > 0) ? head & mask : head;
	}
	graph->tail = 0;
	if (unlikely(w->outboxes != 0)) {
		worker_give_all(w);
		start = rte_rdtsc();
	}
	return start;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	int may_sleep = (engine_get()->flags & API_ENGINE_IDLE_SLEEP) != 0;
	uint64_t last = rte_rdtsc(), busy_at = w->now;

	worker_current = w;
	wake_up(w);
	if (may_sleep)
		prctl(PR_SET_TIMERSLACK, 1ul); // else 50 us
	if (rte_thread_register() != 0)
		LOG(WARNING, "worker %u runs without a packet cache: %s\n", w->id, rte_strerror(rte_errno));
	while (!__atomic_load_n(&threads.stop, __ATOMIC_RELAXED)) {
		uint64_t before = worker_done(w);

		w->now = worker_time(w, last);
		w->due = UINT64_MAX;
		uint64_t now = walk(w, last), took = clock_passed(now, last, UINT64_MAX);
		// All reads of this walk are done: the grace period's mark. The fence pairs with that of
		// control_synchronize(): the next walk's reads come after it can see the mark. On arm64 a sequentially
		// consistent store alone lets them pass.
		__atomic_store_n(&w->walks, w->walks + 1, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (unlikely(took > w->longest_ticks))
			w->longest_ticks = took;
		note_stall(w, took);
		if (worker_done(w) != before) {
			w->busy_ticks += took;
			busy_at = w->now + took;
			if (unlikely(sleeper_listens(w->sleeper))) {
				sleeper_up(w->sleeper);
				sleeper_wake(&control_sleeper);
			}
		} else {
			w->idle_ticks += took;
			if (may_sleep)
				idle(w, busy_at);
			now = rte_rdtsc();
		}
		last = now;
	}
	__atomic_store_n(&w->asleep, 1, __ATOMIC_SEQ_CST);
	rte_thread_unregister();
	return NULL;
}

void engine_walk(void)
{
	struct worker *control = worker_current;

	for (uint32_t i = 0; i < worker_count(); i++) {
		struct worker *w = worker_get(i);

		worker_current = w;
		w->now = worker_time(w, engine_mode.virtual_now);
		walk(w, rte_rdtsc());
		w->walks++;
	}
	worker_current = control;
}

// Walks until a walk moves nothing (bounded: packets cannot multiply for ever).
void engine_run(void)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t before = 0, after = 0;

		for (uint32_t k = 0; k < worker_count(); k++)
			before += worker_done(worker_get(k)) + worker_get(k)->punted;
		engine_walk();
		host_path_poll();
		channel_flush();
		for (uint32_t k = 0; k < worker_count(); k++)
			after += worker_done(worker_get(k)) + worker_get(k)->punted +
				 rte_ring_count(worker_get(k)->inbox) + worker_get(k)->late.count;
		if (before == after)
			return;
	}
}

void engine_advance(uint64_t ticks)
{
	engine_mode.virtual_now += ticks;
	for (uint32_t i = 0; i < worker_count(); i++)
		worker_get(i)->now = worker_time(worker_get(i), engine_mode.virtual_now);
	control_worker.now = worker_time(&control_worker, engine_mode.virtual_now);
	control_run_timers();
}

void engine_step(int64_t ticks)
{
	engine_mode.virtual_now += (uint64_t)ticks;
	engine_mode.stepped += (uint64_t)ticks;
}

static struct worker *worker_new(uint32_t id, const struct api_engine *e)
{
	struct worker *w = rte_zmalloc("worker", sizeof(*w), CACHE_LINE);
	char name[RTE_RING_NAMESIZE];

	if (w == NULL)
		return NULL;
	w->id = id;
	w->asleep = 1;
	w->cpu = e->cpu[id];
	w->tsc_hz = rte_get_tsc_hz();
	w->stall = w->tsc_hz / 1000 * STALL_MS;
	w->now = worker_time(w, engine_mode.threads ? rte_rdtsc() : engine_mode.virtual_now);
	w->pool = engine_pool();
	worker_identify_from(w, (uint16_t)id, e->workers);
	snprintf(name, sizeof(name), "inbox-%u", id);
	w->inbox = hold_ring_create(name, e->max_handed_over / e->workers);
	w->sleeper = rte_zmalloc("sleeper", sizeof(*w->sleeper), CACHE_LINE);
	w->watch = watch_new(MAX_QUEUES);
	w->outbox = rte_zmalloc("outbox", e->workers * sizeof(*w->outbox), CACHE_LINE);
	// Nothing is given back: the process ends when its engine does not start.
	if (w->inbox == NULL || w->watch == NULL || w->outbox == NULL || w->sleeper == NULL ||
		sleeper_open(w->sleeper) != 0)
		return NULL;
	return w;
}

int worker_create_all(const struct api_engine *e)
{
	for (uint32_t i = 0; i < e->workers; i++) {
		struct worker *w = worker_new(i, e);

		if (w == NULL)
			return object_error(ENOMEM, "no memory for worker %u", i);
		worker_add(w);
	}
	return 0;
}

int worker_start_all(void)
{
	for (uint32_t i = 0; i < worker_count(); i++) {
		struct worker *w = worker_get(i);

		worker_current = w; // node init functions ask whose graph it is
		w->graph = graph_create(i);
		worker_current = &control_worker;
		if (w->graph == NULL)
			return object_error(EINVAL, "the packet graph cannot be built: %s", rte_strerror(rte_errno));
	}
	for (uint32_t i = 0; engine_mode.threads && i < worker_count(); i++) {
		char name[24];
		sigset_t all, before;

		sigfillset(&all); // signals are the control thread's, whose sleep they end
		pthread_sigmask(SIG_SETMASK, &all, &before);
		int error = pthread_create(&threads.thread[i], NULL, worker_main, worker_get(i));
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		if (error != 0)
			return object_error(EAGAIN, "worker %u does not start", i);
		threads.count = i + 1;
		snprintf(name, sizeof(name), "worker-%u", i);
		pthread_setname_np(threads.thread[i], name);
		if (worker_get(i)->cpu >= 0) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET(worker_get(i)->cpu, &set);
			error = pthread_setaffinity_np(threads.thread[i], sizeof(set), &set);
			if (error != 0)
				LOG(WARNING,
					"worker %u cannot be pinned to CPU %d: it floats (cpuset, engine.cpus): %s\n",
					i, worker_get(i)->cpu, strerror(error));
		}
	}
	return 0;
}

void engine_stop_workers(void)
{
	__atomic_store_n(&threads.stop, 1, __ATOMIC_RELAXED);
	for (; threads.count > 0; threads.count--) {
		worker_wake(threads.count - 1);
		pthread_join(threads.thread[threads.count - 1], NULL);
	}
}

static uint64_t worker_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint32_t i = 0; i < worker_count(); i++) {
		const struct worker *w = worker_get(i);
		struct api_worker_row row = {
			.worker = i,
			.cpu = w->cpu,
			.walks = w->walks,
			.busy_ticks = w->busy_ticks,
			.idle_ticks = w->idle_ticks,
			.packets = w->in,
			.flows = w->flows,
			.flow_inserts = w->flow_inserts,
			.flow_evictions = w->flow_evictions,
			.handed_over = w->handed_over,
			.sessions = w->sessions,
			.longest_us = w->longest_ticks / (rte_get_tsc_hz() / US_PER_S),
			.stalls = w->stalls,
			.stalled_us = w->stalled_ticks / (rte_get_tsc_hz() / US_PER_S),
		};
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(worker_table)
{
	stats_table_register(API_TABLE_WORKER, sizeof(struct api_worker_row), worker_rows);
}
