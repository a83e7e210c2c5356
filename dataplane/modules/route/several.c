// SPDX-License-Identifier: Apache-2.0
// Next hops of equal cost (RFC 2992): which flow takes which.
//
// Each has equally many buckets, chosen by its identity alone (the tables of Maglev, NSDI 2016 §3.4), so a change of
// the set moves few flows. A lost next hop keeps its buckets, which others serve meanwhile; no other bucket moves.
#include "route/tables.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include <rte_jhash.h>
#include <string.h>

#define GTPU_UDP 2152

void hop_buckets_share(struct hop_buckets *b)
{
	uint32_t next[HOPS_MAX] = {0};
	uint8_t taken[HOP_BUCKETS] = {0};

	// Each in turn takes the next bucket of its own order. The number of buckets is a prime, so every step reaches
	// them all.
	for (uint32_t n = 0; n < HOP_BUCKETS;)
		for (uint32_t m = 0; m < b->members && n < HOP_BUCKETS; m++, n++) {
			uint32_t first = b->identity[m] % HOP_BUCKETS;
			uint32_t step = 1 + rte_jhash_1word(b->identity[m], 1) % (HOP_BUCKETS - 1), at;

			do
				at = (first + step * next[m]++) % HOP_BUCKETS;
			while (taken[at]);
			taken[at] = 1;
			b->owner[at] = (uint8_t)m;
		}
}

void hop_buckets_settle(struct hop_buckets *b, uint32_t lost)
{
	for (uint32_t n = 0; n < HOP_BUCKETS; n++) {
		uint32_t best = b->owner[n], most = 0;

		for (uint32_t m = 0; (lost >> b->owner[n] & 1) && m < b->members; m++) {
			uint32_t weight = rte_jhash_2words(b->identity[m], n, 2) | 1;

			if (!(lost >> m & 1) && weight > most) {
				most = weight;
				best = m;
			}
		}
		__atomic_store_n(&b->hop[n], b->member[best], __ATOMIC_RELAXED);
	}
}

// Fragments have no ports: those of a datagram stay together.
static uint32_t hash_of(const struct ip_info *ip)
{
	uint32_t n = address_length(ip->version), address[8], h;

	memcpy(address, ip->source, n); // aligned
	memcpy(address + n / 4, ip->destination, n);
	h = rte_jhash_32b(address, n / 2, ip->protocol);
	return ip->fragment != 0 ? h : rte_jhash_2words(ip->source_port, ip->destination_port, h);
}

uint32_t flow_hash(const uint8_t *ip, uint32_t available, uint32_t total)
{
	struct ip_info outer, inner;
	struct gtpu_info gtpu;

	if (ip_parse(ip, available, total, &outer) != IP_OK)
		return 0;
	uint32_t at = outer.l4 + 8u;
	if (outer.protocol != IP_PROTOCOL_UDP || outer.destination_port != GTPU_UDP || outer.fragment != 0 ||
		at > available || gtpu_parse(ip + at, available - at, outer.length - at, &gtpu) != GTPU_OK ||
		gtpu.message != GTPU_GPDU)
		return hash_of(&outer);
	at += gtpu.header_length;
	return at < available && ip_parse(ip + at, available - at, outer.length - at, &inner) == IP_OK
		       ? hash_of(&inner)
		       : hash_of(&outer);
}
