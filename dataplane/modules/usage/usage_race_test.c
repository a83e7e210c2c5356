// SPDX-License-Identifier: Apache-2.0
// A worker counts at full speed while the control thread grants quotas and takes reports. Each grant passes exactly its
// packets, no mark of old limits stays, and the reports add up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "usage/fixture_test.h"
#include "usage/urr.h"
#include <pthread.h>
#include <rte_cycles.h>
#include <stdio.h>

#define GRANTS 20000u
#define PACKET 100u
#define QUOTA 1000u

static struct {
	uint32_t index;
	int stop;
	uint64_t passed; // packets
	// The control thread's last ticket, and the one seen before the last stopped packet
	uint64_t ticket, blocked;
} load;

static void *work(void *arg)
{
	struct worker *w = worker_get(0);

	worker_current = w;
	while (!__atomic_load_n(&load.stop, __ATOMIC_ACQUIRE)) {
		uint64_t ticket = __atomic_load_n(&load.ticket, __ATOMIC_SEQ_CST);

		if (usage_count(w, load.index, PACKET, 1))
			__atomic_store_n(&load.passed, load.passed + 1, __ATOMIC_RELEASE);
		else
			__atomic_store_n(&load.blocked, ticket, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

// The worker was stopped by the limits as they are now.
static void wait_blocked(void)
{
	uint64_t ticket = __atomic_add_fetch(&load.ticket, 1, __ATOMIC_SEQ_CST),
		 end = rte_rdtsc() + 20 * rte_get_tsc_hz();

	while (__atomic_load_n(&load.blocked, __ATOMIC_SEQ_CST) != ticket && rte_rdtsc() < end)
		sched_yield();
	assert_true(rte_rdtsc() < end);
}

static void tick(void)
{
	engine_mode.virtual_now += rte_get_tsc_hz() / 1000;
	control_run_timers();
	reports_acknowledge();
}

static void grants(void **state)
{
	struct api_urr u = {.id = 1,
		.method = API_URR_VOLUME,
		.flags = API_URR_HAS_VOLUME_QUOTA,
		.triggers = API_URR_VOLTH | API_URR_VOLQU,
		.volume_threshold = {QUOTA / 2},
		.volume_quota = {QUOTA}};
	struct usage_session s = {.name = "s", .seid = 1};
	struct usage_set *set, *next;
	pthread_t thread;
	uint64_t sum = 0;

	assert_int_equal(usage_stage(&set, NULL, &s, &u, 1), 0);
	usage_commit(set, NULL);
	usage_release(set, NULL);
	load.index = usage_index(set, 1);
	assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
	for (uint32_t i = 1; i <= GRANTS; i++) {
		wait_blocked();
		assert_int_equal(__atomic_load_n(&load.passed, __ATOMIC_ACQUIRE), (uint64_t)i * QUOTA / PACKET);
		if (i % 2)
			tick();
		// The quota takes effect in the midst of the worker's counting.
		u.grant++;
		assert_int_equal(usage_stage(&next, set, &s, &u, 1), 0);
		usage_commit(next, set);
		usage_release(next, set);
		set = next;
		if (reports.count > MAX_REPORTS / 2) {
			for (uint32_t k = 0; k < reports.count; k++)
				sum += reports.row[k].bytes[API_TOTAL];
			reports.count = 0;
		}
	}
	wait_blocked();
	__atomic_store_n(&load.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	for (int i = 0; i < 10; i++)
		tick();
	event_commit_begin();
	usage_release(NULL, set);
	collect_rows();
	for (uint32_t k = 0; k < reports.count; k++)
		sum += reports.row[k].bytes[API_TOTAL];
	assert_int_equal(sum, load.passed * PACKET);
	assert_int_equal(sum, (GRANTS + 1ull) * QUOTA);
}

static int setup(void **state)
{
	kit_start(NULL);
	reports_subscribe();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(grants)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
