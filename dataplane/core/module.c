// SPDX-License-Identifier: Apache-2.0
// The register of modules, their limits and watches of the engine's settings, and their timers.
#include "core/module.h"
#include "core/sleeper.h"
#include "core/worker.h"
#include <errno.h>
#include <rte_debug.h>
#include <string.h>

#define MAX_MODULES 32
#define MAX_LIMITS 32
#define MAX_TIMERS 32
#define QUIET_AFTER_NS 20000000u // without anything done
#define QUIET_INTERVAL_MS 20u // of timers, then

static struct {
	struct api_engine engine;
	int started;
	int (*start[MAX_MODULES])(const struct api_engine *engine);
	uint32_t starts;
	void (*watch[MAX_MODULES])(const struct api_engine *engine);
	uint32_t watches;
	const struct engine_limit *limit[MAX_LIMITS];
	uint32_t limits;
	struct {
		uint32_t interval_ms;
		uint64_t due_ns;
		void (*fn)(uint64_t now_ns);
	} timer[MAX_TIMERS];
	uint16_t timers;
	uint64_t done; // of workers_done()
	uint64_t stirred_ns; // time of the last activity
	uint8_t quiet;
} all;

const struct api_engine *engine_get(void)
{
	return all.started ? &all.engine : NULL;
}

void module_register(int (*start)(const struct api_engine *engine))
{
	if (all.starts == MAX_MODULES)
		rte_panic("more than %d modules\n", MAX_MODULES);
	all.start[all.starts++] = start;
}

void engine_limit_register(const struct engine_limit *l)
{
	if (all.limits == MAX_LIMITS) // before main(): never from input
		rte_panic("more than %d limits of the engine\n", MAX_LIMITS);
	all.limit[all.limits++] = l;
}

void engine_watch(void (*fn)(const struct api_engine *engine))
{
	if (all.watches == MAX_MODULES) // before main(): never from input
		rte_panic("more than %d modules watch the engine\n", MAX_MODULES);
	all.watch[all.watches++] = fn;
}

int modules_check(const struct api_engine *e)
{
	uint32_t value;

	for (uint32_t i = 0; i < all.limits; i++) {
		const struct engine_limit *l = all.limit[i];

		memcpy(&value, (const uint8_t *)e + l->field, sizeof(value));
		if (value != 0 && (value < l->least || value > l->most))
			return object_error(EINVAL, "%s is %u, must be 0 or %u..%u", l->name, value, l->least, l->most);
	}
	return 0;
}

int modules_start(const struct api_engine *e)
{
	int error = 0;

	all.engine = *e;
	for (uint32_t i = 0; error == 0 && i < all.starts; i++)
		error = all.start[i](e);
	all.started = error == 0;
	return error;
}

void modules_tell(const struct api_engine *e)
{
	all.engine = *e;
	for (uint32_t i = 0; i < all.watches; i++)
		all.watch[i](&all.engine);
}

void timer_register(uint32_t interval_ms, void (*fn)(uint64_t now_ns))
{
	if (all.timers == MAX_TIMERS)
		rte_panic("more than %d timers\n", MAX_TIMERS);
	all.timer[all.timers].interval_ms = interval_ms;
	all.timer[all.timers++].fn = fn;
}

void control_stir(void)
{
	all.stirred_ns = control_now_ns();
	all.quiet = 0;
}

// Quiet: no activity for a while, and the workers, which sleep, will wake this thread.
static void look_around(uint64_t now)
{
	int all_idle;
	uint64_t done = workers_done(&all_idle);

	if (done != all.done)
		all.stirred_ns = now;
	all.done = done;
	all.quiet = all_idle && now - all.stirred_ns > QUIET_AFTER_NS;
}

static int is_stretched(uint16_t timer)
{
	return all.quiet && all.timer[timer].interval_ms < QUIET_INTERVAL_MS;
}

static uint64_t due_at(uint16_t timer)
{
	uint32_t more = is_stretched(timer) ? QUIET_INTERVAL_MS - all.timer[timer].interval_ms : 0;

	return all.timer[timer].due_ns + more * 1000000ull;
}

uint64_t control_rest(void)
{
	uint64_t now = control_now_ns(), due = now + QUIET_INTERVAL_MS * 1000000ull;

	sleeper_listen(&control_sleeper);
	if (engine_get() == NULL)
		return due - now;
	look_around(now);
	for (uint16_t i = 0; i < all.timers; i++)
		due = RTE_MIN(due, due_at(i));
	return due > now ? due - now : 0;
}

void control_run_timers(void)
{
	uint64_t now = control_now_ns();

	if (engine_mode.threads)
		look_around(now);
	for (uint16_t i = 0; i < all.timers; i++)
		// Timers that can wait run together, so that this thread wakes once for all.
		if (now + (is_stretched(i) ? QUIET_INTERVAL_MS * 500000ull : 0) >= due_at(i)) {
			all.timer[i].due_ns = now + all.timer[i].interval_ms * 1000000ull;
			all.timer[i].fn(now);
		}
}
