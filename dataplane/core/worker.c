// SPDX-License-Identifier: Apache-2.0
// The register of workers, their time, and the grace period.
#include "core/worker.h"
#include "core/sleeper.h"
#include <rte_cycles.h>
#include <sched.h>

static struct {
	struct worker *worker[API_MAX_WORKERS];
	uint32_t count;
} workers;

__thread struct worker *worker_current;
struct worker control_worker;
struct engine_mode engine_mode;
struct sleeper control_sleeper;

struct worker *worker_get(uint32_t id)
{
	return workers.worker[id];
}

uint32_t worker_count(void)
{
	return workers.count;
}

struct worker *worker_any(uint32_t i)
{
	return i < workers.count ? workers.worker[i] : &control_worker;
}

uint32_t worker_total(void)
{
	return workers.count + 1;
}

void worker_add(struct worker *w)
{
	workers.worker[workers.count++] = w;
}

void workers_sum(struct api_total_row *to)
{
	for (uint32_t i = 0; i < worker_total(); i++) {
		const struct worker *w = worker_any(i);

		to->in += w->in;
		to->originated += w->originated;
		to->out += w->out;
		to->punted += w->punted;
		to->held += w->held;
		to->dropped += w->dropped;
		to->merged += w->merged;
		to->sessions += w->sessions;
	}
}

uint64_t worker_clock_ahead;

uint64_t worker_step_back(struct worker *w, uint64_t tsc)
{
	uint64_t ahead = __atomic_load_n(&worker_clock_ahead, __ATOMIC_RELAXED), want = w->now - tsc;

	// Another thread may have seen a smaller or larger step.
	while (want - ahead > w->tsc_hz / 1000 && (int64_t)(want - ahead) > 0 &&
		!__atomic_compare_exchange_n(&worker_clock_ahead, &ahead, want, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return w->now;
}

void worker_wake(uint32_t id)
{
	if (id < workers.count)
		sleeper_wake(workers.worker[id]->sleeper);
}

uint64_t workers_done(int *all_idle)
{
	uint64_t sum = 0;

	*all_idle = 1;
	for (uint32_t i = 0; i < workers.count; i++) {
		*all_idle &= sleeper_listens(workers.worker[i]->sleeper);
		sum += worker_done(workers.worker[i]);
	}
	return sum;
}

uint64_t control_now_ns(void)
{
	if (!engine_mode.threads) {
		uint64_t hz = rte_get_tsc_hz();
		uint64_t now = engine_mode.virtual_now - engine_mode.stepped;

		return now / hz * NS_PER_S + now % hz * NS_PER_S / hz;
	}
	return clock_monotonic_ns();
}

void control_synchronize(void)
{
	uint64_t seen[API_MAX_WORKERS];

	if (!engine_mode.threads)
		return;
	// Orders earlier publications before the read of the walk counts. Together with the store in the worker's loop:
	// no walk that begins after its count was read here sees old pointers.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < workers.count; i++)
		seen[i] = __atomic_load_n(&workers.worker[i]->walks, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < workers.count; i++)
		while (__atomic_load_n(&workers.worker[i]->walks, __ATOMIC_ACQUIRE) == seen[i] &&
			!__atomic_load_n(&workers.worker[i]->asleep, __ATOMIC_SEQ_CST))
			sched_yield();
}
