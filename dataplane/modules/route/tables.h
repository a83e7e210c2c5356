// SPDX-License-Identifier: Apache-2.0
// Inside of the route module: its tables' common parts. Other modules include route.h.
//
// Everything here is written by the control thread. Workers read the snapshot, the forwarding tables and the next hops.
#ifndef ROUTE_TABLES_H
#define ROUTE_TABLES_H

#include "core/port.h"
#include "route/route.h"
#include <stddef.h>

#define MAX_ROUTES (8u << 20) // most that it may name

// Interfaces (interface.c).

struct vlan_slot {
	uint64_t key; // port, outer, inner; VLAN_EMPTY
	uint32_t interface;
};
#define VLAN_EMPTY UINT64_MAX

struct local_slot {
	struct ip_address address;
	uint32_t interface; // UINT32_MAX: empty
	uint16_t port;
	uint8_t access; // of an access port: a gateway address
	uint8_t vrf;
};

// All interfaces at one moment: immutable once published, replaced as a whole, freed after a grace period.
struct interfaces {
	uint32_t count; // highest index + 1; slots without a name are unused
	uint32_t vlan_mask, local_mask;
	struct vlan_slot *vlan; // open addressing, at most half full
	struct local_slot *local; // the same; an address may be there once per access port
	struct ip_filter filter; // of `local`
	uint64_t vrfs; // that have interfaces, a bit each
	uint16_t of_port[MAX_PORTS]; // 1 + index of the first; 0: none
	struct interface interface[];
};

// Next hops (next_hop.c).

int next_hops_start(void); // makes the tables when they are not there yet; 0 or ENOMEM
// Fills in headers and MTUs again after interfaces changed.
void next_hops_refresh(const struct interfaces *s);

// Next hop by flow hash: equally many buckets for each; a lost one's are spread over the others.

#define HOPS_MAX (1 + API_ROUTE_FURTHER)
#define HOP_BUCKETS 127 // a prime (several.c)

// Next hop by flow hash: equally many buckets for each; a lost one's are spread over the others.
struct hop_buckets {
	uint16_t hop[HOP_BUCKETS]; // atomic; read by workers
	uint8_t owner[HOP_BUCKETS]; // which of `member` has it as long as that is well
	uint16_t member[HOPS_MAX];
	uint32_t identity[HOPS_MAX]; // a hash that stays the same when it comes again
	uint32_t members;
};
void hop_buckets_share(struct hop_buckets *b); // fills in owner, of member and identity
void hop_buckets_settle(struct hop_buckets *b, uint32_t lost); // lost: a bit for each member
uint32_t flow_hash(const uint8_t *ip, uint32_t available, uint32_t total);

// All prefixes (rib.c).

#define MAX_TABLES (2 * MAX_VRFS) // IPv4, IPv6
static inline uint8_t table_of(uint8_t vrf, uint8_t family)
{
	return (uint8_t)(2 * vrf + (family == 6));
}
static inline uint8_t family_of_table(uint8_t table)
{
	return table & 1 ? 6 : 4;
}

enum { RIB_PRESENT = 1, RIB_ROUTE = 2, RIB_CONNECTED = 4 };

// A prefix with its next hop. Workers read the first 21 bytes where it is the slot's only longer prefix (fib.c).
// Entries are reused after a grace period.
struct rib_entry {
	uint8_t address[16];
	uint16_t hop; // atomic: index of the next hop
	uint16_t under; // atomic: the next hop of the rest of that slot ...
	uint8_t length;
	uint8_t under_length; // ... and the length of its prefix (control thread only)
	uint8_t table;
	uint8_t flags; // RIB_*: PRESENT: in the forwarding table; whose prefix it is
	uint32_t next; // of its bucket, or of the unused
	uint32_t plan; // of the open plan: index of its change + 1
};
static_assert(sizeof(struct rib_entry) == 32, "two entries are a cache line");

extern struct rib_entry *rib; // by number; 0 is none

// Zeros for all that may ever be needed; pages are taken when they are written. NULL: the system has no room.
void *memory_reserve(size_t bytes);
int rib_start(uint32_t routes); // 0 or ENOMEM
uint32_t rib_limit(void);
uint32_t rib_end(void); // one more than the highest number that was ever used
struct api_address rib_prefix(const struct rib_entry *r);
uint32_t rib_find(uint8_t table, const struct api_address *prefix); // 0: it is not there
uint32_t rib_ensure(uint8_t table, const struct api_address *prefix); // 0: there is no room
void rib_free(uint32_t number);
// For rib_cover(): the entry enters the forwarding table or leaves it.
void rib_present(uint32_t number, int present);
// The longest shorter prefix in the forwarding table that covers this one; 0: none.
uint32_t rib_cover(uint32_t number);

// Forwarding tables (fib.c).

int fib_start(uint32_t routes); // 0 or ENOMEM
// Makes the root of a table that gets its first prefix, while a transaction is staged. 0 or ENOMEM.
int fib_open(uint8_t table);
uint32_t fib_groups(const struct rib_entry *r); // that the prefix may need, at most
uint32_t fib_groups_free(void);
uint32_t fib_groups_used(void);
// Neither can fail: fib_open() was called and there are groups. The entry has its next hop already.
void fib_add(uint32_t number);
void fib_replace(uint32_t number); // after its next hop changed
void fib_delete(uint32_t number);
// After a grace period: entries released by deletions may be reused.
void fib_settle(void);
uint32_t fib_lookup(uint8_t table, const uint8_t *destination); // NEXT_HOP_NONE: no route. Workers

// Routes (route.c).

// Works out all routes as they will be after the open transaction, which changes interfaces. 0, or errno after
// object_error().
int routes_plan(void);
void routes_apply(void); // makes the plan true; does nothing without one
void routes_forget(void); // throws the plan away

#endif
