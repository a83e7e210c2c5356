// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of CPU time of a packet's translation, both ways, by the number of mappings, in random order; of a new
// mapping; of ageing.
#include "nat/table.h"
#include "nat/translate.h"
#include "testkit/frame.h"
#include "testkit/testkit.h"
#include <rte_byteorder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORTS 32 // of a subscriber
#define VECTOR 64
#define ROUNDS 2000000u
#define NOW 1000

static int lives(uint32_t session, uint32_t worker)
{
	return 1;
}

static void told(const struct nat_table *t, uint32_t worker, uint32_t block)
{
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct nat_user user_of(uint32_t i)
{
	return (struct nat_user){.session = i / PORTS,
		.inside = rte_cpu_to_be_32(0x0a000000 + i / PORTS),
		.port = (uint16_t)(1000 + i % PORTS),
		.protocol = IP_PROTOCOL_UDP,
		.now = NOW,
		.blocks = 4};
}

static void measure(uint32_t subscribers)
{
	struct api_nat want = kit_nat("10.0.0.0/8", "203.0.113.0/28");
	uint32_t mappings = subscribers * PORTS, *slot = calloc(mappings, sizeof(*slot)), failed = 0;
	uint16_t *epoch = calloc(subscribers, sizeof(*epoch));
	static struct frame f;
	struct nat_user user[VECTOR];
	struct nat_packet p;

	struct nat_table *t = nat_table_create(&want, 1, subscribers);
	if (slot == NULL || epoch == NULL || t == NULL)
		exit(1);
	t->epoch = epoch;
	t->lives = lives;
	t->told = told;
	frame_payload(&f, 64);
	frame_udp(&f, 4000, 53);
	frame_ip(&f, "10.0.0.1", "198.51.100.9", IP_PROTOCOL_UDP);

	uint64_t begin = cpu_ns();
	for (uint32_t i = 0; i < mappings; i++) {
		struct nat_user u = user_of(i);
		failed += nat_map(t, &u, &slot[i]) != NAT_OK;
		nat_refresh(&want, &t->slot[slot[i]], NOW, 0, 0);
	}
	uint64_t made = cpu_ns() - begin;
	uint64_t random = 88172645463325252ull;
	begin = cpu_ns();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t at;

		for (uint32_t k = 0; i % VECTOR == 0 && k < VECTOR; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			user[k] = user_of((uint32_t)(random >> 16) % mappings);
			const struct narrow *map = t->part[0].map;
			narrow_prefetch(map, narrow_hash(map, nat_key(user[k].inside, user[k].port, user[k].protocol)));
		}
		struct nat_user u = user[i % VECTOR];
		enum nat_kind kind = nat_read(&p, f.at, f.length, 1, NULL);
		failed += nat_map(t, &u, &at) != NAT_OK;
		nat_refresh(&want, &t->slot[at], NOW, 0, 0);
		nat_write(&p, kind, 1, nat_block_of(t, at)->outside, nat_port_of(t, at), 1);
	}
	uint64_t out = cpu_ns() - begin;
	begin = cpu_ns();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		uint32_t at = slot[(uint32_t)(random >> 16) % mappings];
		enum nat_kind kind = nat_read(&p, f.at, f.length, 0, NULL);
		struct nat_slot *s = nat_enter(t, at, IP_PROTOCOL_UDP, NOW);
		failed += s == NULL;
		nat_write(&p, kind, 0, s->inside, s->port, 1);
	}
	uint64_t in = cpu_ns() - begin;
	begin = cpu_ns();
	nat_age(t, 0, NOW + 1, UINT32_MAX);
	uint64_t aged = cpu_ns() - begin;
	printf("%9u mappings: out %5.1f, in %5.1f, new %6.1f, looked at %5.1f ns each\n", mappings,
		(double)out / ROUNDS, (double)in / ROUNDS, (double)made / mappings, (double)aged / mappings);
	if (failed != 0)
		exit(1);
	nat_table_free(t);
	free(slot);
	free(epoch);
}

int main(void)
{
	kit_start(NULL);
	for (uint32_t subscribers = 100; subscribers <= 10000; subscribers *= 10)
		measure(subscribers);
	return 0;
}
