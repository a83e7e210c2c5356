// SPDX-License-Identifier: Apache-2.0
// Cost of a full table: 1 M IPv4 and 250 K IPv6 routes. fib-bench: the tables alone, beside rte_fib and rte_fib6 with
// the same prefixes; fib-bench contract [BATCH]: through transactions. CPU time of this thread; memory as counted by
// the system. Instructions of a look-up (a million of each):
//   valgrind --tool=callgrind --toggle-collect=look_up_ours fib-bench
#include "route/tables.h"
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on
#include "testkit/testkit.h"
#include "wire/bytes.h"
#include <inttypes.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FOUR 1000000u
#define SIX 250000u
#define EACH 1000000u // look-ups of a family
#define LOOKUPS (2 * EACH)
#define GATEWAYS 64

static struct api_address *prefixes; // FOUR, then SIX; no prefix twice
static uint8_t (*destinations)[16]; // of both families in turn

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f != NULL && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	return (double)pages * 4096 / (1 << 20);
}

// Prefix lengths roughly as in the Internet's tables: three of five IPv4 are /24, half of IPv6 /48. IPv6 has some
// 40,000 /32s, which contain the longer prefixes.
static struct api_address random_prefix(uint8_t family)
{
	uint64_t r = rte_rand();
	uint32_t dice = (uint32_t)(rte_rand() % 100);
	struct api_address a = {.family = family};

	if (family == 4) {
		a.prefix = (uint8_t)(dice < 60 ? 24 : dice < 72 ? 22 : dice < 95 ? 16 + r % 8 : 8 + r % 8);
		a.bytes[0] = (uint8_t)(1 + (r >> 8) % 222);
		a.bytes[0] = a.bytes[0] != 169 ? a.bytes[0] : 168; // no link-local addresses
		a.bytes[1] = (uint8_t)(r >> 16);
		a.bytes[2] = (uint8_t)(r >> 24);
	} else {
		uint32_t site = (uint32_t)(r % 40000) * 2654435761u;

		a.prefix = (uint8_t)(dice < 50 ? 48 : dice < 65 ? 32 : dice < 80 ? 44 : 33 + r % 15);
		a.bytes[0] = 0x20 | (site & 15);
		a.bytes[1] = (uint8_t)(site >> 8);
		a.bytes[2] = (uint8_t)(site >> 16);
		a.bytes[3] = (uint8_t)(site >> 24);
		a.bytes[4] = (uint8_t)(r >> 32);
		a.bytes[5] = (uint8_t)(r >> 40);
	}
	for (uint32_t bit = a.prefix; bit < 128; bit++)
		a.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return a;
}

static int order(const void *a, const void *b)
{
	return prefix_compare(a, b);
}

static void make_family(struct api_address *to, uint8_t family, uint32_t n)
{
	uint32_t have = 0;

	while (have < n) {
		while (have < n)
			to[have++] = random_prefix(family);
		qsort(to, n, sizeof(*to), order);
		have = 1;
		for (uint32_t i = 1; i < n; i++)
			if (prefix_compare(&to[have - 1], &to[i]) != 0)
				to[have++] = to[i];
	}
	for (uint32_t i = n - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rte_rand_max(i + 1);
		struct api_address t = to[i];

		to[i] = to[k];
		to[k] = t;
	}
}

static void make(void)
{
	prefixes = calloc(FOUR + SIX, sizeof(*prefixes));
	destinations = calloc(LOOKUPS, 16);
	make_family(prefixes, 4, FOUR);
	make_family(prefixes + FOUR, 6, SIX);
	for (uint32_t i = 0; i < LOOKUPS; i++) {
		const struct api_address *p =
			i % 2 == 0 ? &prefixes[rte_rand_max(FOUR)] : &prefixes[FOUR + rte_rand_max(SIX)];
		uint64_t r = rte_rand();

		memcpy(destinations[i], p->bytes, 16);
		memcpy(destinations[i] + (i % 2 == 0 ? 3 : 8), &r, i % 2 == 0 ? 1 : 8);
	}
}

static void put(uint32_t i, uint32_t shift)
{
	struct api_route r = {.prefix = prefixes[i]};
	char via[32], key[API_NAME];

	snprintf(via, sizeof(via), i < FOUR ? "10.0.1.%u" : "2001:db8::%u", 2 + (i + shift) % GATEWAYS);
	r.via = kit_address(via);
	snprintf(key, sizeof(key), "r%u", i);
	kit_put(API_ROUTE, key, &r, sizeof(r));
}

static void drop(uint32_t i, uint32_t shift)
{
	char key[API_NAME];

	snprintf(key, sizeof(key), "r%u", i);
	kit_delete(API_ROUTE, key);
}

static void all(const char *what, uint32_t batch, void (*fn)(uint32_t i, uint32_t shift), uint32_t shift)
{
	double spent = 0, longest = 0;

	for (uint32_t i = 0; i < FOUR + SIX; i += batch) {
		kit_begin();
		for (uint32_t k = i; k < RTE_MIN(i + batch, FOUR + SIX); k++)
			fn(k, shift);
		double from = seconds();
		if (kit_commit() != 0) {
			printf("refused: %s\n", kit_error());
			exit(1);
		}
		double took = seconds() - from;
		spent += took;
		longest = RTE_MAX(longest, took);
	}
	printf("%-34s %8.0f K/s, longest transaction %.1f ms, resident %.0f MiB, %u groups\n", what,
		(FOUR + SIX) / spent / 1e3, longest * 1e3, resident(), fib_groups_used());
}

// The tables alone, beside the library's.

static struct rte_fib *four;
static struct rte_fib6 *six;

// Apart, for callgrind. Every second destination: of one family.
uint64_t look_up_ours(uint32_t first);
uint64_t look_up_library(uint32_t first);

__rte_noinline uint64_t look_up_ours(uint32_t first)
{
	uint64_t sum = 0;

	for (uint32_t i = first; i < LOOKUPS; i += 2)
		sum += fib_lookup(table_of(0, first == 0 ? 4 : 6), destinations[i]);
	return sum;
}

__rte_noinline uint64_t look_up_library(uint32_t first)
{
	uint64_t sum = 0, hop = 0;

	for (uint32_t i = first; i < LOOKUPS; i += 2) {
		uint32_t a = load32(destinations[i]);

		if (first == 0)
			rte_fib_lookup_bulk(four, &a, &hop, 1);
		else
			rte_fib6_lookup_bulk(six, (void *)&destinations[i], &hop, 1);
		sum += hop;
	}
	return sum;
}

static int add_ours(uint32_t i)
{
	const struct api_address *p = &prefixes[i];
	uint32_t n = rib_ensure(table_of(0, p->family), p);

	rib[n].hop = (uint16_t)(1 + i % 5000);
	rib_present(n, 1);
	fib_add(n);
	return 0;
}

static int delete_ours(uint32_t i)
{
	uint32_t n = rib_find(table_of(0, prefixes[i].family), &prefixes[i]);

	rib_present(n, 0);
	fib_delete(n);
	rib_free(n);
	return 0;
}

static int add_library(uint32_t i)
{
	const struct api_address *p = &prefixes[i];

	return i < FOUR ? rte_fib_add(four, load32(p->bytes), p->prefix, 1 + i % 5000)
			: rte_fib6_add(six, (void *)p->bytes, p->prefix, 1 + i % 5000);
}

static int delete_library(uint32_t i)
{
	const struct api_address *p = &prefixes[i];

	return i < FOUR ? rte_fib_delete(four, load32(p->bytes), p->prefix)
			: rte_fib6_delete(six, (void *)p->bytes, p->prefix);
}

static void each(const char *what, int (*fn)(uint32_t i))
{
	double before = resident(), from = seconds();

	for (uint32_t i = 0; i < FOUR + SIX; i++)
		if (fn(i) != 0) {
			printf("%s: route %u is refused\n", what, i);
			exit(1);
		}
	printf("%-34s %8.0f K/s, resident %+.0f MiB\n", what, (FOUR + SIX) / (seconds() - from) / 1e3,
		resident() - before);
}

static uint64_t look_up(const char *what, uint64_t (*fn)(uint32_t first))
{
	double t0 = seconds();
	uint64_t sum = fn(0);
	double t1 = seconds();

	sum += fn(1) << 32;
	printf("%-34s IPv4 %.1f ns, IPv6 %.1f ns\n", what, (t1 - t0) / EACH * 1e9, (seconds() - t1) / EACH * 1e9);
	return sum;
}

static int tables(void)
{
	char *args[] = {"fib-bench", "--no-huge", "-m", "4096", "--no-pci", "--no-telemetry", "--no-shconf", "-l", "0"};
	struct rte_fib_conf c4 = {.type = RTE_FIB_DIR24_8,
		.max_routes = FOUR + 1000,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = 1000}};
	struct rte_fib6_conf c6 = {.type = RTE_FIB6_TRIE,
		.max_routes = SIX + 1000,
		.trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 1000000}};

	if (rte_eal_init(RTE_DIM(args), args) < 0 || rib_start(API_ROUTES) != 0 || fib_start(API_ROUTES) != 0 ||
		fib_open(table_of(0, 4)) != 0 || fib_open(table_of(0, 6)) != 0)
		return 1;
	make();
	each("add", add_ours);
	uint64_t ours = look_up("look up", look_up_ours);
	double before = resident();
	four = rte_fib_create("four", SOCKET_ID_ANY, &c4);
	six = rte_fib6_create("six", SOCKET_ID_ANY, &c6);
	if (four == NULL || six == NULL)
		return 1;
	printf("%-34s resident %+.0f MiB\n", "rte_fib, rte_fib6: create", resident() - before);
	each("rte_fib, rte_fib6: add", add_library);
	uint64_t theirs = look_up("rte_fib, rte_fib6: look up", look_up_library);
	each("delete", delete_ours);
	each("rte_fib, rte_fib6: delete", delete_library);
	printf("%s\n", ours == theirs ? "both agree" : "they DIFFER");
	return ours != theirs;
}

static int contract(uint32_t batch)
{
	kit_start(NULL);
	kit_begin();
	kit_port("north", API_ROLE_CORE);
	kit_interface("north", "north", "10.0.1.1/24", "2001:db8::1/64");
	if (batch == 0 || kit_commit() != 0)
		return 1;
	kit_run();
	make();
	printf("transactions of %u; resident before: %.0f MiB\n", batch, resident());
	all("add", batch, put, 0);
	all("change the gateway", batch, put, 1);
	kit_begin();
	kit_interface("north", "north", "10.0.1.250/24", "2001:db8::1/64");
	double from = seconds();
	if (kit_commit() != 0)
		return 1;
	printf("%-34s %.1f ms\n", "change an interface's address", (seconds() - from) * 1e3);
	all("delete", batch, drop, 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "contract") == 0)
		return contract(argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10000);
	return tables();
}
