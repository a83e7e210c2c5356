// SPDX-License-Identifier: Apache-2.0
// Cost of a policed packet, with our check and with rte_meter's. First with the profile and buckets in cache. Then with
// the buckets of 64 K rules in random order, behind a prefetch window of 8, with one profile or one each. TSC ticks,
// medians.
#include "meter/rte_kit.h"
#include "testkit/bench.h"
#include "wire/cache_line.h"
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_prefetch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKETS 16384u
#define RUNS 31
#define MAX_RULES 65536u

static struct policer_profile *profile[MAX_RULES]; // by index, as the node finds them
static struct rte_check rte[MAX_RULES];

// A rule's state, with either's buckets.
struct state {
	union {
		struct meter own;
		union rte_check_state theirs;
	};
	struct rule_counts forwarded;
	uint64_t policed;
} cache_aligned;

typedef enum rte_color (*colour_fn)(uint32_t profile, struct state *s, uint64_t now, uint32_t length);

static __rte_always_inline enum rte_color own(uint32_t i, struct state *s, uint64_t now, uint32_t length)
{
	return meter_colour(profile[i], &s->own, now, length, RTE_COLOR_GREEN);
}

static __rte_always_inline enum rte_color library(uint32_t i, struct state *s, uint64_t now, uint32_t length)
{
	return rte_check_colour(&rte[i], &s->theirs, now, length);
}

// As the node does it: colour, then counters.
static __rte_always_inline double measure(
	uint32_t profiles, struct state *s, const uint32_t *order, uint32_t *red, colour_fn colour)
{
	double sample[RUNS];
	uint64_t now = rte_rdtsc();

	for (uint32_t r = 0; r < RUNS; r++) {
		uint64_t start = rte_rdtsc_precise();
		for (uint32_t i = 0; i < PACKETS; i++) {
			rte_prefetch0(&s[order[i + 8]]);
			struct state *state = &s[order[i]];
			now += i % 64 ? 0 : 6400; // a walk
			if (colour(order[i] & (profiles - 1), state, now, 650) == RTE_COLOR_RED) {
				state->policed++;
				*red += 1;
			} else {
				state->forwarded.packets++;
				state->forwarded.bytes += 650;
			}
		}
		sample[r] = (double)(rte_rdtsc_precise() - start) / PACKETS;
	}
	return kit_median(sample, RUNS);
}

static void bench(const char *name, const struct api_policer *want, uint32_t rules, uint32_t profiles)
{
	static uint32_t order[PACKETS + 8];
	struct state *s = aligned_alloc(CACHE_LINE, rules * sizeof(*s));
	struct policer_profile *p = aligned_alloc(CACHE_LINE, profiles * sizeof(*p));
	uint32_t red = 0;

	if (s == NULL || p == NULL)
		exit(1);
	for (uint32_t i = 0; i < profiles; i++) {
		profile[i] = &p[i];
		if (meter_compile(&p[i], want, rte_get_tsc_hz()) != 0)
			exit(1);
		rte[i] = rte_check_of(want, rte_get_tsc_hz());
	}
	for (uint32_t i = 0; i < RTE_DIM(order); i++)
		order[i] = (uint32_t)rand() % rules;
	memset(s, 0, rules * sizeof(*s));
	for (uint32_t i = 0; i < rules; i++)
		rte_check_fill(&rte[0], &s[i].theirs, rte_rdtsc());
	double theirs = measure(profiles, s, order, &red, library);
	memset(s, 0, rules * sizeof(*s));
	for (uint32_t i = 0; i < rules; i++)
		meter_fill(&s[i].own, rte_rdtsc());
	double ours = measure(profiles, s, order, &red, own);
	printf("| %-6s | %6u | %6u | %5.1f | %5.1f | %5.1f %% |\n", name, rules, profiles, ours, theirs,
		100.0 * red / PACKETS / RUNS / 2);
	free(s);
	free(p);
}

int main(void)
{
	char *args[] = {"meter-bench", "--no-huge", "--no-shconf", "-m", "64", "--no-pci", "--no-telemetry", "-l", "0",
		"--log-level", "lib.eal:error"};
	const struct api_policer srtcm = {.type = API_SRTCM, .cir = 12500000, .cbs = 100000, .pbs = 100000};
	const struct api_policer trtcm = {
		.type = API_TRTCM, .cir = 12500000, .pir = 25000000, .cbs = 100000, .pbs = 200000};

	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	printf("TSC %lu MHz\n| meter | rules | profiles | ticks per packet | rte_meter | red "
	       "|\n|---|---|---|---|---|---|\n",
		rte_get_tsc_hz() / 1000000);
	bench("srTCM", &srtcm, 64, 1);
	bench("trTCM", &trtcm, 64, 1);
	bench("srTCM", &srtcm, MAX_RULES, 1);
	bench("trTCM", &trtcm, MAX_RULES, 1);
	bench("srTCM", &srtcm, MAX_RULES, MAX_RULES);
	bench("trTCM", &trtcm, MAX_RULES, MAX_RULES);
	return 0;
}
