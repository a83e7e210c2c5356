// SPDX-License-Identifier: Apache-2.0
// Longest-prefix match: a trie of 16 bits and then 8 bits at a time, for both families and all tables.
//
// A slot has 4 bytes: a next hop with its prefix length; a group of 256 slots for the next 8 bits; or the only prefix
// longer than the slot. That prefix is compared as a whole, and its RIB entry says where the rest of the slot leads. So
// a look-up of a sparse table is two or three loads, and memory follows the number of prefixes.
//
// The control thread changes slots in place while workers look up: it stores a slot as a whole, after all that it
// refers to. A released group or entry is reused after a grace period.
//
// rte_fib's tables need 192 bytes a route beside 32 MB per IPv4 table, and rte_lpm finds a rule by a linear search
// among its length: fib_bench.c compares.
#include "route/tables.h"
#include "route/ways.h"
#include "wire/bytes.h"
#include "wire/ip.h"
#include <errno.h>

#define ROOT_BITS 16
#define GROUP_BITS 8

enum { SLOT_HOP, SLOT_GROUP, SLOT_ENTRY };
#define SLOT_KIND 30 // a slot's two highest bits; below: 8 bits of length and 16 of a next hop, or a number

struct group {
	uint32_t slot[1 << GROUP_BITS];
};

static struct {
	uint32_t *root[MAX_TABLES]; // 1 << ROOT_BITS slots; read by workers
	struct group *group; // the same; number 0 is none
	uint32_t *longer; // of each group: how many prefixes are longer than its first bit
	uint32_t room, end, used;
	uint32_t unused, retired; // lists, by slot 0
} own = {.end = 1};

int fib_start(uint32_t routes)
{
	if (own.group != NULL)
		return 0;
	own.room = 2 * routes;
	own.group = memory_reserve((size_t)own.room * sizeof(struct group));
	own.longer = memory_reserve((size_t)own.room * sizeof(uint32_t));
	return own.group != NULL && own.longer != NULL ? 0 : ENOMEM;
}

int fib_open(uint8_t table)
{
	if (own.root[table] != NULL)
		return 0;
	uint32_t *root = memory_reserve(sizeof(uint32_t) << ROOT_BITS);
	if (root == NULL)
		return ENOMEM;
	__atomic_store_n(&own.root[table], root, __ATOMIC_RELEASE);
	return 0;
}

static inline uint32_t kind_of(uint32_t slot)
{
	return slot >> SLOT_KIND;
}

static inline uint32_t number_of(uint32_t slot)
{
	return slot & ((1u << SLOT_KIND) - 1);
}

static inline uint32_t slot_hop(uint32_t hop, uint32_t length)
{
	return hop | length << 16;
}

static inline uint32_t slot_number(uint32_t kind, uint32_t number)
{
	return kind << SLOT_KIND | number;
}

static inline void put(uint32_t *slot, uint32_t value)
{
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

static inline uint32_t get(const uint32_t *slot)
{
	return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

// Of a slot that is no group.
static __rte_always_inline uint32_t hop_of(uint32_t slot, const uint8_t *destination)
{
	if (kind_of(slot) == SLOT_HOP)
		return slot & UINT16_MAX;
	const struct rib_entry *r = &rib[number_of(slot)];
	return __atomic_load_n(
		ip_prefix_equal(r->address, destination, r->length) ? &r->hop : &r->under, __ATOMIC_ACQUIRE);
}

static __rte_always_inline uint32_t lookup(uint8_t table, const uint8_t *destination)
{
	const uint32_t *root = __atomic_load_n(&own.root[table], __ATOMIC_ACQUIRE);

	if (root == NULL)
		return NEXT_HOP_NONE;
	uint32_t slot = get(&root[load16(destination)]);
	// Ends: prefixes are no longer than addresses, so no group is behind an address's last byte.
	for (uint32_t at = ROOT_BITS / 8; kind_of(slot) == SLOT_GROUP; at++)
		slot = get(&own.group[number_of(slot)].slot[destination[at]]);
	return hop_of(slot, destination);
}

uint32_t fib_lookup(uint8_t table, const uint8_t *destination)
{
	return lookup(table, destination);
}

const uint32_t *ways_root(uint8_t vrf, uint8_t version)
{
	static const uint32_t empty[1 << ROOT_BITS];
	const uint32_t *root = __atomic_load_n(&own.root[table_of(vrf, version)], __ATOMIC_ACQUIRE);

	return root != NULL ? root : empty;
}

// Prefetches the slot's target. 1: another slot, *next.
static __rte_always_inline int ask_next(uint32_t slot, const uint8_t *octet, const uint32_t **next)
{
	if (kind_of(slot) == SLOT_GROUP) {
		*next = &own.group[number_of(slot)].slot[*octet];
		rte_prefetch0(*next);
		return 1;
	}
	if (unlikely(kind_of(slot) == SLOT_ENTRY))
		rte_prefetch0(&rib[number_of(slot)]);
	return 0;
}

void ways_look_up_many(struct way_ask *ask, uint16_t n)
{
	const struct next_hop *hops = next_hop_get(0);
	const uint32_t *next[WAY_ASKS];
	uint32_t slot[WAY_ASKS], lefts = 0;
	uint8_t left[WAY_ASKS]; // whose slot was a group

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *destination = ask[i].destination;

		slot[i] = get(&ask[i].root[load16(destination)]);
		left[lefts] = (uint8_t)i;
		lefts += (uint32_t)ask_next(slot[i], destination + ROOT_BITS / 8, &next[i]);
	}
	for (uint32_t at = ROOT_BITS / 8 + 1; lefts != 0; at++) {
		uint32_t more = 0;

		for (uint32_t k = 0; k < lefts; k++) {
			uint32_t i = left[k];

			slot[i] = get(next[i]);
			left[more] = (uint8_t)i;
			more += (uint32_t)ask_next(slot[i], ask[i].destination + at, &next[i]);
		}
		lefts = more;
	}
	for (uint32_t i = 0; i < n; i++) {
		ask[i].hop = &hops[hop_of(slot[i], ask[i].destination)];
		rte_prefetch0(ask[i].hop);
	}
}

void ways_look_up(struct way *way, uint8_t version, const uint8_t *destination, uint32_t interface)
{
	// What depends on more than the destination is not kept.
	if (unlikely(address_is_link_local(version, destination))) {
		way->index = (uint16_t)ip_route_of(way_vrf(way->table), version, destination, interface);
		way->table = 0;
		return;
	}
	uint32_t index = lookup(way->table - 1, destination);
	way->index = (uint16_t)index;
	if (unlikely(next_hop_get(index)->kind == NEXT_HOP_GLEAN)) // a neighbour may be known
		way->index = (uint16_t)ip_route_lookup(way_vrf(way->table), version, destination);
}

uint32_t fib_groups(const struct rib_entry *r)
{
	return r->length <= ROOT_BITS ? 0 : (r->length - ROOT_BITS + GROUP_BITS - 1u) / GROUP_BITS;
}

uint32_t fib_groups_free(void)
{
	return own.room - 1 - own.used;
}

uint32_t fib_groups_used(void)
{
	return own.used;
}

static uint32_t group_take(uint32_t fill)
{
	uint32_t g = own.unused;

	if (g != 0)
		own.unused = own.group[g].slot[0];
	else
		g = own.end++;
	own.used++;
	own.longer[g] = 0;
	for (uint32_t i = 0; i < 1 << GROUP_BITS; i++)
		own.group[g].slot[i] = fill;
	return g;
}

void fib_settle(void)
{
	while (own.retired != 0) {
		uint32_t g = own.retired;

		own.retired = own.longer[g];
		own.group[g].slot[0] = own.unused;
		own.unused = g;
		own.used--;
	}
}

// New value for slots below a place: those with a prefix length in this range.
struct paint {
	uint32_t value;
	uint32_t least, most;
};

static void paint(uint32_t *slot, const struct paint *p)
{
	uint32_t old = *slot, length = old >> 16;

	if (kind_of(old) == SLOT_GROUP) {
		for (uint32_t i = 0; i < 1 << GROUP_BITS; i++)
			paint(&own.group[number_of(old)].slot[i], p);
		return;
	}
	struct rib_entry *r = kind_of(old) == SLOT_ENTRY ? &rib[number_of(old)] : NULL;
	if (r != NULL)
		length = r->under_length;
	if (length < p->least || length > p->most)
		return;
	if (r == NULL) {
		put(slot, p->value);
		return;
	}
	__atomic_store_n(&r->under, (uint16_t)p->value, __ATOMIC_RELEASE);
	r->under_length = (uint8_t)(p->value >> 16);
}

// Where a prefix is in a table: from the root along its bits.
struct place {
	uint32_t *slots;
	uint32_t base, bits; // of the address: those before, those that number the slots
};

static struct place place_first(const struct rib_entry *r)
{
	return (struct place){.slots = own.root[r->table], .bits = ROOT_BITS};
}

static struct place place_below(const struct place *p, uint32_t group)
{
	return (struct place){.slots = own.group[group].slot, .base = p->base + p->bits, .bits = GROUP_BITS};
}

static uint32_t *slot_at(const struct place *p, const struct rib_entry *r)
{
	return &p->slots[p->base == 0 ? load16(r->address) : r->address[p->base / 8]];
}

// The prefix is a number of slots here.
static int is_here(const struct place *p, const struct rib_entry *r)
{
	return r->length <= p->base + p->bits;
}

static void paint_here(const struct place *p, const struct rib_entry *r, const struct paint *colour)
{
	uint32_t *slot = slot_at(p, r);

	for (uint32_t i = 0; i < 1u << (p->base + p->bits - r->length); i++)
		paint(&slot[i], colour);
}

// Stores the only prefix of a place, where all slots lead to the covering one.
static void put_first(const struct place *p, uint32_t number)
{
	struct rib_entry *r = &rib[number];

	if (is_here(p, r))
		paint_here(p, r, &(struct paint){.value = slot_hop(r->hop, r->length), .most = r->length});
	else
		put(slot_at(p, r), slot_number(SLOT_ENTRY, number));
}

void fib_add(uint32_t number)
{
	struct rib_entry *r = &rib[number];
	struct place p = place_first(r);

	while (!is_here(&p, r)) {
		uint32_t *slot = slot_at(&p, r), old = *slot, group = number_of(old);

		if (kind_of(old) == SLOT_HOP) {
			r->under = (uint16_t)old;
			r->under_length = (uint8_t)(old >> 16);
			put(slot, slot_number(SLOT_ENTRY, number));
			return;
		}
		if (kind_of(old) == SLOT_ENTRY) {
			const struct rib_entry *other = &rib[number_of(old)];

			group = group_take(slot_hop(other->under, other->under_length));
			own.longer[group] = 1;
			struct place below = place_below(&p, group);
			put_first(&below, number_of(old));
			put(slot, slot_number(SLOT_GROUP, group));
		}
		own.longer[group]++;
		p = place_below(&p, group);
	}
	put_first(&p, number);
}

void fib_replace(uint32_t number)
{
	const struct rib_entry *r = &rib[number];
	struct place p = place_first(r);

	while (!is_here(&p, r)) {
		uint32_t slot = *slot_at(&p, r);

		if (kind_of(slot) != SLOT_GROUP)
			return; // its entry says it
		p = place_below(&p, number_of(slot));
	}
	paint_here(&p, r, &(struct paint){slot_hop(r->hop, r->length), r->length, r->length});
}

void fib_delete(uint32_t number)
{
	const struct rib_entry *r = &rib[number];
	uint32_t cover = rib_cover(number), value = cover != 0 ? slot_hop(rib[cover].hop, rib[cover].length) : 0;
	struct place p = place_first(r);
	int gone = 0; // the group above is free, and those below, which only this prefix needed

	while (!is_here(&p, r)) {
		uint32_t *slot = slot_at(&p, r), old = *slot, group = number_of(old);

		if (kind_of(old) == SLOT_ENTRY && !gone)
			put(slot, slot_hop(r->under, r->under_length));
		if (kind_of(old) != SLOT_GROUP)
			return;
		p = place_below(&p, group);
		if (--own.longer[group] != 0)
			continue;
		if (!gone)
			put(slot, value);
		gone = 1;
		own.longer[group] = own.retired;
		own.retired = group;
	}
	if (!gone)
		paint_here(&p, r, &(struct paint){value, r->length, r->length});
}
