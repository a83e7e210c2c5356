// SPDX-License-Identifier: Apache-2.0
// A UPF's uplink pipeline built of DPDK's libraries, as a reference for flow-input. Steps: headers read by our decoders
// (wire/), rte_hash for the TEID, rte_meter, a count with a mark, rte_fib, the Ethernet header. In vectors, with bulk
// calls where the libraries have them.
#include "flow/flow_rte_bench.h"
#include "testkit/bench.h"
#include "wire/cache_line.h"
#include "wire/checksum.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_fib.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR 64
#define RUNS 2000

struct entry {
	struct rte_meter_trtcm meter;
	uint64_t packets, bytes, used, mark;
	uint32_t ue4; // as on the wire
} cache_aligned;

static struct {
	struct rte_hash *by_teid;
	struct rte_fib *fib;
	struct rte_meter_trtcm_profile profile;
	struct entry *entry;
	uint8_t header[ETH_HEADER];
} own;

struct packet_at {
	uint8_t *ip;
	uint32_t teid, length;
};

// The headers of a G-PDU as ip-input and gtpu-input check them. Returns 0 for any other packet.
static int read_packet(uint8_t *frame, uint32_t length, struct packet_at *to)
{
	struct eth_info eth;
	struct ip_info outer, inner;
	struct gtpu_info gtpu;

	if (eth_parse(frame, length, &eth) != ETH_OK || eth.ethertype != ETH_TYPE_IP4)
		return 0;
	uint8_t *ip = frame + eth.length;
	uint32_t rest = length - eth.length;
	if (ip_parse(ip, rest, rest, &outer) != IP_OK || outer.protocol != IP_PROTOCOL_UDP || !ip4_checksum_ok20(ip) ||
		ip_martian(4, ip + 12, ip + 16) != IP_MARTIAN_NONE || outer.destination_port != GTPU_PORT)
		return 0;
	uint8_t *header = ip + IP4_HEADER + 8;
	rest -= IP4_HEADER + 8;
	if (gtpu_parse(header, rest, rest, &gtpu) != GTPU_OK || gtpu.header_length > rest)
		return 0;
	to->ip = header + gtpu.header_length;
	to->length = rest - gtpu.header_length;
	to->teid = load32(header + 4);
	return ip_parse(to->ip, to->length, to->length, &inner) == IP_OK && inner.length == to->length &&
	       ip_martian(4, to->ip + 12, to->ip + 16) == IP_MARTIAN_NONE;
}

static int count(struct entry *e, uint64_t now, const struct packet_at *p)
{
	uint32_t ue4;

	memcpy(&ue4, p->ip + 12, 4);
	if (ue4 != e->ue4 || p->ip[8] <= 1 || e->used + p->length >= e->mark ||
		rte_meter_trtcm_color_blind_check(&e->meter, &own.profile, now, p->length) != RTE_COLOR_GREEN)
		return 0;
	e->used += p->length;
	e->packets++;
	e->bytes += p->length;
	return 1;
}

// Returns how many packets leave.
static uint32_t run(uint8_t *const frame[VECTOR], uint32_t length, uint64_t now)
{
	struct packet_at p[VECTOR];
	const void *key[VECTOR];
	int32_t at[VECTOR];
	uint32_t destination[VECTOR], left = 0;
	uint64_t hop[VECTOR];

	for (uint32_t i = 0; i < VECTOR; i++) {
		if (!read_packet(frame[i], length, &p[i]))
			return 0;
		key[i] = &p[i].teid;
		destination[i] = load32(p[i].ip + 16);
	}
	if (rte_hash_lookup_bulk(own.by_teid, key, VECTOR, at) != 0)
		return 0;
	for (uint32_t i = 0; i < VECTOR; i++)
		if (at[i] >= 0)
			rte_prefetch0(&own.entry[at[i]]);
	rte_fib_lookup_bulk(own.fib, destination, hop, VECTOR);
	for (uint32_t i = 0; i < VECTOR; i++) {
		if (at[i] < 0 || hop[i] == 0 || !count(&own.entry[at[i]], now, &p[i]))
			continue;
		ip4_decrement_ttl(p[i].ip);
		memcpy(p[i].ip - ETH_HEADER, own.header, ETH_HEADER);
		left++;
	}
	return left;
}

static uint32_t ue_of(uint32_t session)
{
	return rte_cpu_to_be_32(0x0a400000 + session);
}

static int start(uint32_t sessions)
{
	struct rte_hash_parameters h = {.name = "bench-teids",
		.entries = sessions * 2,
		.key_len = 4,
		.hash_func = rte_hash_crc,
		.socket_id = SOCKET_ID_ANY};
	struct rte_fib_conf f = {
		.type = RTE_FIB_DIR24_8, .max_routes = 64, .dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = 64}};
	struct rte_meter_trtcm_params rate = {.cir = 1ull << 32, .pir = 1ull << 33, .cbs = 1 << 20, .pbs = 1 << 20};

	own.by_teid = rte_hash_create(&h);
	own.fib = rte_fib_create("bench", SOCKET_ID_ANY, &f);
	own.entry = rte_zmalloc(NULL, 2 * sessions * sizeof(struct entry), CACHE_LINE);
	if (own.by_teid == NULL || own.fib == NULL || own.entry == NULL || rte_fib_add(own.fib, 0, 0, 1) != 0 ||
		rte_meter_trtcm_profile_config(&own.profile, &rate) != 0)
		return 0;
	for (uint32_t n = 0; n < sessions; n++) {
		uint32_t teid = 1 + n;
		int32_t at = rte_hash_add_key(own.by_teid, &teid);

		if (at < 0)
			return 0;
		own.entry[at].mark = UINT64_MAX;
		own.entry[at].ue4 = ue_of(n);
		rte_meter_trtcm_config(&own.entry[at].meter, &own.profile);
	}
	return 1;
}

#define TEID_AT (ETH_HEADER + IP4_HEADER + 8 + 4)
#define SOURCE_AT (ETH_HEADER + IP4_HEADER + 8 + GTPU_HEADER_CONTAINER + 12)

void flow_bench_rte(const uint8_t *template, uint32_t length, uint32_t sessions)
{
	static uint8_t room[VECTOR][2048] cache_aligned;
	static double of[RUNS];
	uint8_t *frame[VECTOR];
	uint64_t random = 1;

	if (!start(sessions)) {
		fprintf(stderr, "rte_hash and rte_meter: no memory for %u sessions\n", sessions);
		exit(1);
	}
	for (uint32_t round = 0; round < RUNS; round++) {
		for (uint32_t i = 0; i < VECTOR; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			uint32_t session = (uint32_t)(((random >> 32) * sessions) >> 32), ue4 = ue_of(session);
			frame[i] = room[i] + 128;
			memcpy(frame[i], template, length);
			store32(frame[i] + TEID_AT, 1 + session);
			memcpy(frame[i] + SOURCE_AT, &ue4, 4);
		}
		uint64_t begin = rte_rdtsc();
		uint32_t left = run(frame, length, begin);
		of[round] = (double)(rte_rdtsc() - begin) / VECTOR;
		if (left != VECTOR) {
			fprintf(stderr, "rte_hash and rte_meter: %u of %u packets left\n", left, VECTOR);
			exit(1);
		}
	}
	double median = kit_median(of, RUNS);
	printf("%-10s %6.1f  (%.1f .. %.1f), %u sessions\n", "upf-up-rte", median, of[0], of[RUNS * 9 / 10], sessions);
}
