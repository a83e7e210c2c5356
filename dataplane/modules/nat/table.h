// SPDX-License-Identifier: Apache-2.0
// Mappings of one network instance: subscribers, their blocks of ports, the mapping of each port. Pure: no packets.
//
// A port's mapping is found by its place: the inbound direction needs no table of keys, the outbound one has a table
// per worker. Only a worker writes its own blocks, and its subscribers while they have blocks.
//   Read by others: the owner of a block (workers); counters, blocks (control thread, for `show` and reports)
#ifndef NAT_TABLE_H
#define NAT_TABLE_H

#include "exact/narrow.h"
#include "isthmus_api.h"
#include "wire/cache_line.h"
#include "wire/ip.h"
#include "wire/unguarded.h"
#include <stdint.h>

struct nat_pairs;

#define NAT_NONE UINT32_MAX
#define NAT_SECOND 16u // units of time in a second
#define NAT_MAX_PORTS (1u << 26) // of all addresses of an instance

// A port. 12 bytes, five in a line.
struct nat_slot {
	uint32_t inside; // as on the wire, as the port
	uint16_t port;
	uint8_t protocol; // 0: free. TCP, UDP and ICMP share the ports of a block
	uint8_t tcp; // NAT_TCP_*
	uint32_t expires;
};

#define NAT_TCP_OUT 1u // acknowledged by the subscriber
#define NAT_TCP_IN 2u // and by the other side
#define NAT_TCP_FIN_OUT 4u
#define NAT_TCP_FIN_IN 8u
#define NAT_TCP_RST 16u

struct nat_block {
	uint32_t outside; // as on the wire
	uint16_t first; // port
	uint16_t used; // ports with a mapping
	uint32_t subscriber; // its place; NAT_NONE: free
	uint32_t inside; // whom it was given for
	uint32_t next; // the subscriber's next block; of a free one: the address's
	uint32_t older, newer; // free: in the worker's list
	uint32_t since; // when it was given, or taken back
	uint32_t place; // in the worker's list of blocks in use
};

// By the session's index; deterministic: by the inside address.
struct nat_subscriber {
	uint32_t session, epoch; // whose the blocks are
	uint32_t first; // block; valid with an owner
	uint32_t owner; // worker + 1; 0: has no block
};

struct nat_part { // a worker's
	struct narrow *map; // (inside address, port, protocol) -> index of slot
	uint32_t oldest, newest; // free blocks, by the time since when
	uint32_t *first_of, *last_of; // the same of each address
	uint32_t *used; // blocks in use
	uint32_t blocks, free, cursor;
	uint32_t subscribers;
	uint64_t mappings, made;
} cache_aligned;

struct nat_range {
	uint32_t base, size, first; // host order; index of the first one among all ranges
};

struct nat_table {
	struct api_nat want; // what it was made for
	uint32_t workers, sessions;
	struct nat_range inside[API_NAT_INSIDE], outside[API_NAT_ADDRESSES];
	uint32_t addresses, per_address, blocks; // blocks of an address, of all
	uint32_t shift, mask; // of the ports of a block
	uint32_t words; // of `bits`, a block
	struct nat_slot *slot; // by block and port
	struct nat_block *block;
	uint64_t *bits; // 1: the port has a mapping
	struct nat_subscriber *subscriber;
	struct nat_part part[API_MAX_WORKERS];
	const uint16_t *epoch; // by session: rises when it goes
	int (*lives)(uint32_t session, uint32_t worker); // the worker has the session
	void (*told)(const struct nat_table *t, uint32_t worker, uint32_t block); // it was given, or taken back
	struct nat_report *report; // the control thread's, by block
	uint32_t id; // of notices
	struct nat_pairs *pairs; // of protocols without ports (pairs.h), or NULL
};

// Request for a mapping. Times: seconds, of the configuration in force.
struct nat_user {
	uint32_t worker, session;
	uint32_t inside; // as on the wire, as the port
	uint16_t port;
	uint8_t protocol;
	uint32_t now;
	uint32_t blocks; // most
	uint32_t *work; // of this visit of the node: NAT_WORK at its beginning; nat_map() takes from it
};

// Mappings removed in one visit of a node, plus the rest of a block: a tenth of a millisecond.
#define NAT_WORK 1024u

enum nat_verdict {
	NAT_OK,
	NAT_LIMIT, // the subscriber has all blocks that it may have, and uses all ports
	NAT_EXHAUSTED, // no free block, or none of the subscriber's external address
	NAT_FULL, // the worker's part of the mappings
	NAT_MOVING, // another worker, or an earlier session, still has the blocks: for some visits
};

// Memory for `want`, which was checked. NULL: none. The caller sets `epoch`, `lives` and `told` before use.
struct nat_table *nat_table_create(const struct api_nat *want, uint32_t workers, uint32_t sessions);
void nat_table_free(struct nat_table *t);
// Index of an address among the ranges (host order), or NAT_NONE.
static inline uint32_t nat_range_find(const struct nat_range *r, uint32_t count, uint32_t address)
{
	for (uint32_t i = 0; i < count; i++)
		if (address - r[i].base < r[i].size)
			return r[i].first + (address - r[i].base);
	return NAT_NONE;
}
uint32_t nat_ranges(struct nat_range *to, const struct api_address *from, uint32_t count); // how many addresses
// 1 when packets from the address (host order) are translated.
static inline int nat_is_inside(const struct nat_table *t, uint32_t address)
{
	return nat_range_find(t->inside, t->want.inside, address) != NAT_NONE;
}
// Index of an external address (host order), or NAT_NONE.
static inline uint32_t nat_outside(const struct nat_table *t, uint32_t address)
{
	return nat_range_find(t->outside, t->want.addresses, address);
}

static inline uint64_t nat_key(uint32_t inside, uint16_t port, uint8_t protocol)
{
	return (uint64_t)inside | (uint64_t)port << 32 | (uint64_t)protocol << 48; // a protocol is never 0
}

// The subscriber's mapping, found or new; a new slot does not expire before the next nat_refresh.
enum nat_verdict nat_map(struct nat_table *t, const struct nat_user *u, uint32_t *slot);
// The existing mapping, or NAT_NONE. Not refreshed.
uint32_t nat_find(const struct nat_table *t, const struct nat_user *u);
// The same, of any subscriber of the worker.
uint32_t nat_find_any(const struct nat_table *t, uint32_t worker, uint32_t inside, uint16_t port, uint8_t protocol);
// Slot of an external address (index) and port, or NAT_NONE.
static inline uint32_t nat_place(const struct nat_table *t, uint32_t address, uint16_t port)
{
	uint32_t offset = (uint32_t)port - t->want.port[0];

	if (port < t->want.port[0] || offset >> t->shift >= t->per_address)
		return NAT_NONE;
	return ((address * t->per_address + (offset >> t->shift)) << t->shift) + (offset & t->mask);
}
// Asks for the line with which nat_map() begins. `l4`: six bytes can be read.
static inline void nat_prefetch(const struct nat_table *t, uint32_t worker, const uint8_t *ip, const uint8_t *l4)
{
	const struct narrow *map = t->part[worker].map;
	uint32_t inside;
	uint16_t port;

	memcpy(&inside, ip + 12, 4);
	memcpy(&port, l4 + (ip[9] == IP_PROTOCOL_ICMP ? 4 : 0), 2);
	narrow_prefetch(map, narrow_hash(map, nat_key(inside, port, ip[9])));
}
// The worker of a slot, or NAT_NONE. Any worker.
uint32_t nat_owner(const struct nat_table *t, uint32_t slot);
// The mapping of a packet from outside, or NULL. Owner.
struct nat_slot *nat_enter(struct nat_table *t, uint32_t slot, uint8_t protocol, uint32_t now);
static inline const struct nat_block *nat_block_of(const struct nat_table *t, uint32_t slot)
{
	return &t->block[slot >> t->shift];
}
// RFC 6888 REQ-8: a free block that a subscriber had rests for a while.
static inline int nat_rests(const struct nat_table *t, const struct nat_block *b, uint32_t now)
{
	return b->since != 0 && now - b->since < __atomic_load_n(&t->want.hold, __ATOMIC_RELAXED) * NAT_SECOND;
}
static inline uint16_t nat_port_of(const struct nat_table *t, uint32_t slot)
{
	return (uint16_t)(nat_block_of(t, slot)->first + (slot & t->mask));
}

// A packet of the mapping. flags: of TCP. `data`: the segment has payload.
void nat_refresh(const struct api_nat *times, struct nat_slot *s, uint32_t now, uint8_t flags, int data);
void nat_arrived(const struct api_nat *times, struct nat_slot *s, uint32_t now, uint8_t flags);

// Looks at blocks in turn, until `ports` mappings were visited or NAT_WORK removed. Removes expired mappings and those
// of ended sessions. Returns how many it visited.
uint32_t nat_age(struct nat_table *t, uint32_t worker, uint32_t now, uint32_t ports);

#endif
