// SPDX-License-Identifier: Apache-2.0
// Disturbance of a measurement by the machine, read from /proc, and an estimate of the core's clock.
#include "traffic/engine/machine.h"
#include "wire/cache_line.h"
#include <math.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define LINE_BYTES 4096 // the line "intr" of /proc/stat is longer; its rest reads as unused lines

static bool asked_for(const uint16_t *cpu, uint32_t cpus, unsigned long number)
{
	for (uint32_t i = 0; i < cpus; i++)
		if (cpu[i] == number)
			return true;
	return false;
}

// proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice; guest time is part of user.
static void read_stat(FILE *f, const uint16_t *cpu, uint32_t cpus, struct machine_sample *s)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), f)) {
		char *at = line + 3;

		if (strncmp(line, "cpu", 3) != 0)
			continue;
		if ((*at == ' ') != (cpus == 0))
			continue;
		if (cpus && !asked_for(cpu, cpus, strtoul(at, &at, 10)))
			continue;
		for (uint32_t i = 0; i < 8; i++) {
			char *end;
			uint64_t ticks = strtoull(at, &end, 10);

			if (end == at)
				break;
			at = end;
			s->total += ticks;
			if (i == 7)
				s->steal += ticks;
		}
	}
}

static uint64_t read_switches(pid_t tid)
{
	static const char key[] = "nonvoluntary_ctxt_switches:";
	char line[LINE_BYTES];
	uint64_t switches = 0;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/self/task/%d/status", (int)tid);
	f = fopen(line, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			switches = strtoull(line + sizeof(key) - 1, NULL, 10);
	fclose(f);
	return switches;
}

void machine_sample(const uint16_t *cpu, uint32_t cpus, const pid_t *tid, uint32_t tids, struct machine_sample *s)
{
	FILE *f = fopen("/proc/stat", "r");

	memset(s, 0, sizeof(*s));
	if (f) {
		read_stat(f, cpu, cpus, s);
		fclose(f);
	}
	for (uint32_t i = 0; i < tids; i++)
		s->switches += read_switches(tid[i]);
}

double machine_steal(const struct machine_sample *a, const struct machine_sample *b)
{
	return b->total > a->total && b->steal > a->steal
		       ? (double)(b->steal - a->steal) / (double)(b->total - a->total)
		       : 0;
}

#ifdef __aarch64__
#define ADD "add %0, %0, %1"
#else
#define ADD "add %1, %0"
#endif

// One cycle each on every core: a register is added, because some cores swallow additions of constants.
static void chain(uint32_t sixteens)
{
	uint64_t sum = 1, one = 1;

	while (sixteens--)
		__asm__ volatile(".rept 16\n\t" ADD "\n\t.endr" : "+r"(sum) : "r"(one));
}

#define ROUNDS 64 // there and back, in one reading
#define READINGS 200
#define DISTANCE_SECONDS 0.03

// A line that two threads write in turn: odd numbers by one, even by the other.
struct volley {
	uint32_t turn cache_aligned;
	uint32_t stop;
	uint16_t cpu; // of the one who answers
	uint32_t ready; // 1 it is there, 2 it may not use its CPU
};

static int pin(uint16_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *answer_volleys(void *arg)
{
	struct volley *v = arg;
	uint32_t next = 1;

	__atomic_store_n(&v->ready, pin(v->cpu) == 0 ? 1u : 2u, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&v->stop, __ATOMIC_RELAXED))
		if (__atomic_load_n(&v->turn, __ATOMIC_ACQUIRE) == next) {
			__atomic_store_n(&v->turn, next + 1, __ATOMIC_RELEASE);
			next += 2;
		}
	return NULL;
}

// Best reading, in ticks for a round trip; UINT64_MAX when no reading came to its end in time.
static double best_volley(struct volley *v, uint64_t end)
{
	double best = INFINITY;
	uint32_t next = 1;

	for (uint32_t i = 0; i < READINGS; i++) {
		uint64_t begin = rte_rdtsc();

		for (uint32_t k = 0; k < ROUNDS; k++, next += 2) {
			__atomic_store_n(&v->turn, next, __ATOMIC_RELEASE);
			while (__atomic_load_n(&v->turn, __ATOMIC_ACQUIRE) != next + 1)
				if (rte_rdtsc() > end)
					return best;
		}
		best = fmin(best, (double)(rte_rdtsc() - begin) / ROUNDS);
	}
	return best;
}

struct distance {
	struct volley volley;
	uint16_t from;
	double tsc_hz, ticks;
};

// A thread of its own, so that the caller keeps its CPUs.
static void *measure_distance(void *arg)
{
	struct distance *d = arg;
	uint64_t end = rte_rdtsc() + (uint64_t)(DISTANCE_SECONDS * d->tsc_hz);
	pthread_t other;

	d->ticks = INFINITY;
	if (pin(d->from) != 0 || pthread_create(&other, NULL, answer_volleys, &d->volley) != 0)
		return NULL;
	while (__atomic_load_n(&d->volley.ready, __ATOMIC_ACQUIRE) == 0 && rte_rdtsc() < end)
		;
	if (__atomic_load_n(&d->volley.ready, __ATOMIC_ACQUIRE) == 1)
		d->ticks = best_volley(&d->volley, end);
	__atomic_store_n(&d->volley.stop, 1, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	return NULL;
}

double machine_round_trip_ns(uint16_t a, uint16_t b, double tsc_hz)
{
	struct distance d = {.volley = {.cpu = b}, .from = a, .tsc_hz = tsc_hz};
	pthread_t thread;

	if (a == b || tsc_hz <= 0 || pthread_create(&thread, NULL, measure_distance, &d) != 0)
		return 0;
	pthread_join(thread, NULL);
	return isfinite(d.ticks) ? d.ticks / tsc_hz * 1e9 : 0;
}

double machine_clock_ghz(double tsc_hz)
{
	enum { TRIES = 16, SIXTEENS = 25000 };
	uint64_t best = UINT64_MAX;

	// The shortest of some tries: an interrupt lengthens one.
	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t start = rte_rdtsc();

		chain(SIXTEENS);

		uint64_t ticks = rte_rdtsc() - start;

		if (ticks < best)
			best = ticks;
	}
	return best ? SIXTEENS * 16 * tsc_hz / (double)best / 1e9 : 0;
}

void machine_describe(char *cpu, size_t n, char *kernel, size_t m)
{
	static const char key[] = "model name";
	char line[LINE_BYTES];
	struct utsname name;
	FILE *f = fopen("/proc/cpuinfo", "r");

	snprintf(cpu, n, "unknown");
	snprintf(kernel, m, "%s", uname(&name) == 0 ? name.release : "unknown");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		const char *value = strchr(line, ':');

		if (strncmp(line, key, sizeof(key) - 1) != 0 || !value)
			continue;
		value += strspn(value, ": \t");
		snprintf(cpu, n, "%.*s", (int)strcspn(value, "\n"), value);
		break;
	}
	fclose(f);
}
