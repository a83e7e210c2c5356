// SPDX-License-Identifier: Apache-2.0
// A worker's cache of destinations. Traffic mostly goes to some hundred of them (the base stations of a UPF). Each
// worker keeps the tables' results until a route or neighbour comes or goes (ip_ways_generation).
#ifndef ROUTE_WAYS_H
#define ROUTE_WAYS_H

#include "route/route.h"
#include "wire/bytes.h"
#include "wire/cache_line.h"
#include "wire/eth.h"

struct way {
	uint64_t high, low; // the address as loaded
	uint32_t generation;
	uint16_t index; // of the next hop
	uint8_t table; // way_table(), IPv6: + 1; 0: none, or a link-local address's, which depends on the interface
	uint8_t note; // what its user found out, which holds as long; 0 when the way is new
};
static_assert(sizeof(struct way) == 24, "eight of them are three lines");

#define WAY_BITS 12
struct ways {
	struct way way[1 << WAY_BITS];
} cache_aligned;
extern struct ways ways_known[API_MAX_WORKERS]; // each its worker's

static inline struct ways *ways_of(const struct worker *w)
{
	return &ways_known[w->id % API_MAX_WORKERS];
}

// Number of a VRF's IPv4 ways; the next number is IPv6's; one more than table_of().
static inline uint8_t way_table(uint8_t vrf)
{
	return (uint8_t)(2 * vrf + 1);
}

static inline uint8_t way_vrf(uint8_t table)
{
	return (uint8_t)((table - 1) / 2);
}

// Asks the tables. `interface`: where the packet entered.
void ways_look_up(struct way *way, uint8_t version, const uint8_t *destination, uint32_t interface);

// The cached way to a destination (4 or 16 bytes): 1 when known and valid. Else its place gets this key, if `take`.
// `table`: way_table() of the VRF. `generation`: of ip_ways_generation, read in this walk before any table, so results
// of older tables are not kept beyond it.
static __rte_always_inline int ways_known_to(struct ways *ways, uint32_t generation, uint8_t table, uint8_t version,
	const uint8_t *destination, int take, struct way **place)
{
	uint64_t high = 0, low = 0;

	if (likely(version == 4)) {
		memcpy(&low, destination, 4);
	} else {
		memcpy(&high, destination, 8);
		memcpy(&low, destination + 8, 8);
		table++;
	}
	struct way *way = &ways->way[(high ^ low ^ table) * 0x9e3779b97f4a7c15ull >> (64 - WAY_BITS)];
	*place = way;
	if (likely(way->low == low && way->high == high && way->table == table && way->generation == generation))
		return 1;
	if (take)
		*way = (struct way){.high = high, .low = low, .table = table, .generation = generation};
	return 0;
}

// The way to a destination of a packet received on `interface`; valid until the next call.
static __rte_always_inline struct way *ways_find(struct ways *ways, uint32_t generation, uint8_t table, uint8_t version,
	const uint8_t *destination, uint32_t interface)
{
	struct way *way;

	if (unlikely(!ways_known_to(ways, generation, table, version, destination, 1, &way)))
		ways_look_up(way, version, destination, interface);
	return way;
}

// Next hops of many destinations at once, none link-local, by the tables alone: their cache lines are fetched side by
// side. `hop`: for an attached network its own (NEXT_HOP_GLEAN).
struct way_ask {
	const uint8_t *destination;
	union {
		const uint32_t *root; // ways_root()
		const struct next_hop *hop; // the answer
	};
};
#define WAY_ASKS 64 // at most
const uint32_t *ways_root(uint8_t vrf, uint8_t version); // within a walk
void ways_look_up_many(struct way_ask *ask, uint16_t n);

// Writes the Ethernet header of a resolved next hop in front of the IP header at `ip`: always 24 bytes that end there;
// shorter headers leave headroom before them.
static __rte_always_inline void next_hop_header_put(const struct next_hop *hop, uint8_t *ip, uint8_t version)
{
	memcpy(ip - 24, hop->header, 16);
	memcpy(ip - 8, hop->header + 16, 8);
	store16(ip - 2, version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
}

#endif
