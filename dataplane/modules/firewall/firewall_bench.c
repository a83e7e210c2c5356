// SPDX-License-Identifier: Apache-2.0
// Cost of the firewall per packet, by kind of list and vector width, and compile time of a list.
//
// 4,096 frames of IPv4/UDP, so that headers come from the second-level cache; vectors of 64; medians in TSC ticks.
#include "core/packet.h"
#include "firewall/firewall.h"
#include "testkit/bench.h"
#include "wire/cache_line.h"
#include <netinet/in.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 4096
#define RUNS 31

struct frame {
	struct rte_mbuf m;
	struct packet p;
	uint8_t bytes[64];
} cache_aligned;

static uint64_t random_state = 88172645463325252u;

static uint32_t pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state >> 32) % n);
}

// Subscriber i of 4,096 has 10.0.(i / 256).(i % 256).
static struct api_address subscriber(uint32_t i)
{
	return (struct api_address){.family = 4, .prefix = 32, .bytes = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
}

static struct api_address anywhere(uint8_t prefix)
{
	return (struct api_address){.family = 4,
		.prefix = prefix,
		.bytes = {(uint8_t)(1 + pick(220)), (uint8_t)pick(256), (uint8_t)pick(256), (uint8_t)pick(256)}};
}

// Random five-tuples with prefixes and ranges: the paper's blocklist.
static void make_random(struct api_acl_rule *r, uint32_t i)
{
	r->source = anywhere((uint8_t)(8 + pick(25)));
	r->destination = anywhere((uint8_t)(8 + pick(25)));
	r->protocol = pick(2) ? IPPROTO_TCP : IPPROTO_UDP;
	r->protocol_mask = 0xff;
	r->source_port[1] = UINT16_MAX;
	r->destination_port[0] = (uint16_t)pick(50000);
	r->destination_port[1] = (uint16_t)(r->destination_port[0] + pick(2) * pick(1000));
	r->action = API_DENY;
}

static void make_subscriber(struct api_acl_rule *r, uint32_t i)
{
	r->destination = subscriber(i);
	r->source_port[1] = r->destination_port[1] = UINT16_MAX;
	r->action = API_PERMIT;
}

static void make_flow(struct api_acl_rule *r, uint32_t i)
{
	make_subscriber(r, i);
	r->source = anywhere(32);
	r->protocol = IPPROTO_UDP;
	r->protocol_mask = 0xff;
	r->source_port[0] = r->source_port[1] = 53;
	r->destination_port[0] = r->destination_port[1] = (uint16_t)(1024 + i);
}

// A server prefix and a port range for each subscriber, with priorities.
static void make_general(struct api_acl_rule *r, uint32_t i)
{
	make_flow(r, i);
	r->source.prefix = (uint8_t)(16 + pick(17));
	r->destination_port[0] = 1024;
	r->destination_port[1] = (uint16_t)(1024 + pick(60000));
	r->priority = pick(100);
}

static struct api_acl *make_list(uint32_t count, void (*make)(struct api_acl_rule *r, uint32_t i))
{
	struct api_acl *list = calloc(1, sizeof(*list) + count * sizeof(struct api_acl_rule));

	if (list == NULL)
		exit(1);
	list->count = count;
	for (uint32_t i = 0; i < count; i++)
		make((struct api_acl_rule *)(list + 1) + i, i);
	return list;
}

// Packets that hit random rules of the list.
static void make_frames(struct frame *f, const struct api_acl *list, int hit)
{
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(list + 1);

	for (uint32_t i = 0; i < FRAMES; i++, f++) {
		const struct api_acl_rule *r = &rule[pick(list->count)];
		struct api_address any = anywhere(32), to = hit ? r->destination : subscriber(pick(FRAMES));
		memset(f, 0, sizeof(*f));
		f->bytes[14] = 0x45;
		f->bytes[23] = IPPROTO_UDP;
		memcpy(f->bytes + 26, hit && r->source.family ? r->source.bytes : any.bytes, 4);
		memcpy(f->bytes + 30, to.bytes, 4);
		f->bytes[35] = 53;
		f->bytes[36] = (uint8_t)(r->destination_port[1] >> 8);
		f->bytes[37] = (uint8_t)r->destination_port[1];
		f->m.buf_addr = f->bytes;
		f->m.data_len = 64;
		f->p = (struct packet){.l3 = 14, .l4 = 34, .ip_version = 4, .protocol = IPPROTO_UDP, .length = 50};
	}
}

static double run(const struct acl *a, struct frame *frame, uint32_t *permitted)
{
	double sample[RUNS];
	struct rte_mbuf *m[ACL_VECTOR];
	uint32_t verdict[ACL_VECTOR];

	for (uint32_t r = 0; r < RUNS; r++) {
		uint64_t start = rte_rdtsc_precise();
		*permitted = 0;
		for (uint32_t i = 0; i < FRAMES; i += ACL_VECTOR) {
			for (uint32_t j = 0; j < ACL_VECTOR; j++)
				m[j] = &frame[i + j].m;
			acl_classify(a, m, ACL_VECTOR, verdict);
			for (uint32_t j = 0; j < ACL_VECTOR; j++)
				*permitted += verdict[j] & 1;
		}
		sample[r] = (double)(rte_rdtsc_precise() - start) / FRAMES;
	}
	return kit_median(sample, RUNS);
}

static void bench(const char *name, uint32_t rules, void (*make)(struct api_acl_rule *r, uint32_t i), int hit)
{
	static const uint16_t widths[] = {RTE_VECT_SIMD_128, RTE_VECT_SIMD_256, RTE_VECT_SIMD_512};
	static struct frame frame[FRAMES];
	struct api_acl *list = make_list(rules, make);
	uint32_t permitted = 0;
	double build = 0;

	make_frames(frame, list, hit);
	printf("| %-44s | %5u |", name, rules);
	for (uint32_t i = 0; i < RTE_DIM(widths); i++) {
		int error;
		rte_vect_set_max_simd_bitwidth(widths[i]);
		uint64_t start = rte_rdtsc();
		struct acl *a = acl_build(list, 1, &error);
		build = (double)(rte_rdtsc() - start) / (double)rte_get_tsc_hz() * 1000;
		if (a == NULL)
			exit(1);
		printf(" %5.1f |", run(a, frame, &permitted));
		acl_free(a);
	}
	printf(" %3.0f %% | %6.1f |\n", 100.0 * permitted / FRAMES, build);
	free(list);
}

int main(void)
{
	char *args[] = {"firewall-bench", "--no-huge", "--no-shconf", "-m", "512", "--no-pci", "--no-telemetry", "-l",
		"0", "--log-level", "lib.eal:error"};

	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	printf("TSC %lu MHz, ticks per packet\n| list | rules | 128 bits | 256 bits | 512 bits | permitted | build ms "
	       "|\n"
	       "|---|---|---|---|---|---|---|\n",
		rte_get_tsc_hz() / 1000000);
	bench("blocklist of the paper, packets of subscribers", 150, make_random, 0);
	bench("blocklist of the paper, packets that hit", 150, make_random, 1);
	bench("allowlist, one address each", 4096, make_subscriber, 1);
	bench("allowlist, one five-tuple each", 4096, make_flow, 1);
	bench("allowlist, prefix and port range each", 4096, make_general, 1);
	return 0;
}
