// SPDX-License-Identifier: Apache-2.0
// Next hops: where ip-output gets its Ethernet header from.
//
// A next hop is named by (interface, neighbour address); that of an interface's attached prefixes has no address. Names
// are in an exact-match table. So a destination on an attached network needs no route of its own, and a network scan
// cannot fill the forwarding tables. Slots are reference-counted and reused after a grace period.
#include "core/control.h"
#include "core/port.h"
#include "exact/exact.h"
#include "route/tables.h"
#include "route/ways.h"
#include "wire/bytes.h"
#include "wire/cache_line.h"
#include "wire/eth.h"
#include <errno.h>
#include <rte_jhash.h>
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MS 10

static struct {
	struct exact *by_address; // read by workers, written by the control thread
	// control thread only
	uint32_t holders[MAX_NEXT_HOPS];
	struct rte_ether_addr mac[MAX_NEXT_HOPS];
	uint16_t spare[MAX_NEXT_HOPS]; // may be given out
	uint16_t retired[MAX_NEXT_HOPS]; // free, but a worker may still read them
	uint32_t spares, retirees;
	struct hop_buckets *buckets[MAX_NEXT_HOPS]; // of SEVERAL; read by workers, freed when the slot is another's
	uint16_t shared[MAX_NEXT_HOPS]; // by how many of SEVERAL it is held
	uint8_t failed[MAX_NEXT_HOPS];
	uint8_t unlinked[MAX_PORTS];
	uint32_t several;
} table;

uint32_t ip_ways_generation = 1;

void ip_ways_changed(void)
{
	__atomic_add_fetch(&ip_ways_generation, 1, __ATOMIC_RELEASE);
}

// What workers read before there is any table.
static struct next_hop nowhere = {.kind = NEXT_HOP_NOWHERE};
struct next_hop *next_hops = &nowhere;

int next_hops_start(void)
{
	if (next_hops != &nowhere)
		return 0;
	table.by_address = exact_create("neighbours", MAX_NEXT_HOPS, SOCKET_ID_ANY);
	struct next_hop *hop = rte_zmalloc("next hops", MAX_NEXT_HOPS * sizeof(*hop), CACHE_LINE);
	if (table.by_address == NULL || hop == NULL) {
		exact_free(table.by_address);
		rte_free(hop);
		table.by_address = NULL;
		return ENOMEM;
	}
	for (uint32_t i = MAX_NEXT_HOPS - 1; i > 0; i--)
		table.spare[table.spares++] = (uint16_t)i;
	__atomic_store_n(&next_hops, hop, __ATOMIC_RELEASE);
	return 0;
}

static struct exact_key key_of(uint32_t interface, const struct ip_address *address)
{
	struct exact_key k = {{0}};

	memcpy(k.bytes, &interface, sizeof(interface));
	if (address != NULL)
		memcpy(k.bytes + sizeof(interface), address, sizeof(*address));
	return k;
}

static uint32_t find(const struct exact_key *k)
{
	uint64_t value;

	if (table.by_address == NULL || !exact_lookup(table.by_address, exact_hash(table.by_address, k), k, &value))
		return NEXT_HOP_NONE;
	return (uint32_t)value;
}

uint32_t next_hop_find(uint32_t interface, uint8_t family, const uint8_t *destination)
{
	struct ip_address a;

	if (destination != NULL)
		a = ip_address_of(family, destination);
	struct exact_key k = key_of(interface, destination != NULL ? &a : NULL);
	return find(&k);
}

uint8_t *interface_header(uint8_t *p, const struct interface *i, const uint8_t destination[6])
{
	memcpy(p, destination, 6);
	memcpy(p + 6, &i->mac, 6);
	p += 12;
	for (int tag = 0; tag < 2; tag++) {
		if (i->vlan[tag] == 0)
			continue;
		// IEEE 802.1ad: the outer of two tags is a service tag.
		store16(p, tag == 0 && i->vlan[1] != 0 ? ETH_TYPE_STAG : ETH_TYPE_CTAG);
		store16(p + 2, i->vlan[tag]);
		p += 4;
	}
	return p;
}

// Headers end at the end of the array, so that ip-output can store all of it in front of any packet.
static void header_fill(struct next_hop *h, const struct interface *i, const struct rte_ether_addr *mac)
{
	memset(h->header, 0, sizeof(h->header));
	interface_header(h->header + NEXT_HOP_HEADER - i->l2_length, i, mac->addr_bytes);
	h->l2_length = i->l2_length;
	h->mtu = i->mtu;
	h->port = i->port;
}

static uint32_t slot_take(void)
{
	if (table.spares == 0 && table.retirees > 0) {
		control_synchronize();
		memcpy(table.spare, table.retired, table.retirees * sizeof(table.spare[0]));
		table.spares = table.retirees;
		table.retirees = 0;
	}
	return table.spares > 0 ? table.spare[--table.spares] : NEXT_HOP_NONE;
}

static struct exact_key key_of_hop(const struct next_hop *h)
{
	// Equal-cost next hops have no single interface; their indices replace the address. For discards the kind does,
	// where no index is 0.
	return key_of(h->kind >= NEXT_HOP_SEVERAL ? UINT32_MAX : h->interface,
		h->kind == NEXT_HOP_GLEAN ? NULL : &h->address);
}

// The existing one or a new one; with one reference more.
static uint32_t hold(const struct next_hop *h)
{
	struct exact_key k = key_of_hop(h);
	uint32_t index = find(&k);

	if (index == NEXT_HOP_NONE) {
		index = slot_take();
		if (index == NEXT_HOP_NONE)
			return NEXT_HOP_NONE;
		next_hops[index] = *h;
		table.holders[index] = 0;
		table.failed[index] = 0;
		free(table.buckets[index]);
		table.buckets[index] = NULL;
		memset(&table.mac[index], 0, sizeof(table.mac[index]));
		if (exact_add(table.by_address, exact_hash(table.by_address, &k), &k, index) != 0) {
			table.spare[table.spares++] = (uint16_t)index;
			return NEXT_HOP_NONE;
		}
		ip_ways_changed(); // of destinations on its network the attached prefix was the next hop
	}
	table.holders[index]++;
	return index;
}

uint32_t next_hop_hold(const struct interface *i, const struct ip_address *address)
{
	struct next_hop h = {.kind = address != NULL ? NEXT_HOP_NEIGHBOUR : NEXT_HOP_GLEAN,
		.interface = i->index,
		.port = i->port,
		.mtu = i->mtu,
		.l2_length = i->l2_length};

	if (address != NULL)
		h.address = *address;
	return next_hops_start() == 0 ? hold(&h) : NEXT_HOP_NONE;
}

uint32_t next_hop_ensure(uint32_t interface, const struct ip_address *address)
{
	const struct interface *i = interface_get(interface);

	return i == NULL ? NEXT_HOP_NONE : next_hop_hold(i, address);
}

uint32_t next_hop_discard(uint8_t discard)
{
	struct next_hop h = {.kind = NEXT_HOP_DISCARD, .interface = UINT16_MAX, .port = PORT_NONE, .discard = discard};

	h.address.bytes[sizeof(h.address) - 1] = discard;
	return next_hops_start() == 0 ? hold(&h) : NEXT_HOP_NONE;
}

void next_hop_take(uint32_t index)
{
	table.holders[index]++;
}

static void give_members(const struct hop_buckets *b)
{
	table.several--;
	for (uint32_t m = 0; m < b->members; m++) {
		table.shared[b->member[m]]--;
		next_hop_release(b->member[m]);
	}
}

void next_hop_release(uint32_t index)
{
	if (index == NEXT_HOP_NONE || index >= MAX_NEXT_HOPS || table.holders[index] == 0)
		return;
	if (--table.holders[index] > 0)
		return;
	struct next_hop *h = &next_hops[index];
	struct exact_key k = key_of_hop(h);

	if (h->kind == NEXT_HOP_SEVERAL)
		give_members(table.buckets[index]);
	exact_delete(table.by_address, exact_hash(table.by_address, &k), &k);
	__atomic_store_n(&h->resolved, 0, __ATOMIC_RELEASE);
	table.retired[table.retirees++] = (uint16_t)index;
	ip_ways_changed();
}

// A worker that saw resolved == 1 may read the header until its walk ends. So a header in use is first withdrawn, and
// written after a grace period. Packets in between are held as for an unknown neighbour.
static void withdraw(struct next_hop *h)
{
	if (__atomic_exchange_n(&h->resolved, 0, __ATOMIC_ACQ_REL))
		ip_ways_changed(); // what was made of its header holds no longer
}

static void rewrite(struct next_hop *h, const struct interface *i, const struct rte_ether_addr *mac)
{
	if (h->resolved) {
		withdraw(h);
		control_synchronize();
	}
	header_fill(h, i, mac);
	__atomic_store_n(&h->resolved, rte_is_zero_ether_addr(mac) ? 0 : 1, __ATOMIC_RELEASE);
}

static void settle(struct hop_buckets *b, const struct interfaces *s)
{
	uint32_t lost = 0;

	for (uint32_t m = 0; m < b->members; m++) {
		uint32_t n = next_hops[b->member[m]].interface;
		const struct interface *i = n < s->count ? &s->interface[n] : NULL;

		if (table.failed[b->member[m]] || i == NULL || i->name[0] == 0 || i->down ||
			(i->port < MAX_PORTS && table.unlinked[i->port]))
			lost |= 1u << m;
	}
	hop_buckets_settle(b, lost);
}

static void settle_all(const struct interfaces *s)
{
	for (uint32_t i = 1; table.several != 0 && i < MAX_NEXT_HOPS; i++)
		if (table.holders[i] != 0 && table.buckets[i] != NULL)
			settle(table.buckets[i], s);
}

// A lost link moves its flows at once: its neighbours would time out half a minute later.
static void watch_links(uint64_t now)
{
	int changed = 0;

	for (uint16_t n = 0; table.several != 0 && n < MAX_PORTS; n++) {
		struct port *p = port_get(n);
		uint8_t unlinked = p != NULL && !port_linked(p);

		changed |= unlinked != table.unlinked[n];
		table.unlinked[n] = unlinked;
	}
	if (changed)
		settle_all(interfaces_now());
}

RTE_INIT(next_hop_start)
{
	timer_register(LINKS_MS, watch_links);
}

static int by_number(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

// NULL: no memory, or one is there twice.
static struct hop_buckets *buckets_make(const uint32_t *hops, uint32_t count)
{
	struct hop_buckets *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	for (b->members = 0; b->members < count; b->members++)
		b->member[b->members] = (uint16_t)hops[b->members];
	qsort(b->member, count, sizeof(b->member[0]), by_number);
	for (uint32_t m = 0; m < count; m++) {
		const struct next_hop *h = &next_hops[b->member[m]];
		const struct interface *i = &interfaces_next()->interface[h->interface];

		b->identity[m] = rte_jhash(&h->address, sizeof(h->address), rte_jhash(i->name, API_NAME, 0));
		if (m > 0 && b->member[m] == b->member[m - 1]) {
			free(b);
			return NULL;
		}
	}
	hop_buckets_share(b);
	return b;
}

uint32_t next_hop_several(const uint32_t *hops, uint32_t count)
{
	struct hop_buckets *b = buckets_make(hops, count);

	if (b == NULL)
		return NEXT_HOP_NONE;
	struct next_hop h = next_hops[hops[0]];
	h.kind = NEXT_HOP_SEVERAL;
	h.resolved = 0;
	memset(h.header, 0, sizeof(h.header));
	static_assert(sizeof(b->member) == sizeof(h.address), "indices in place of an address");
	memcpy(&h.address, b->member, sizeof(h.address));
	uint32_t index = hold(&h);
	if (index == NEXT_HOP_NONE || table.buckets[index] != NULL) {
		free(b);
		return index;
	}
	table.several++;
	for (uint32_t m = 0; m < count; m++) {
		table.shared[b->member[m]]++;
		next_hop_take(b->member[m]);
	}
	watch_links(0); // not since the last one of several went
	settle(b, interfaces_next());
	__atomic_store_n(&table.buckets[index], b, __ATOMIC_RELEASE);
	return index;
}

uint32_t next_hop_of_flow(uint32_t index, const uint8_t *ip, uint32_t available, uint32_t total)
{
	if (likely(next_hop_get(index)->kind != NEXT_HOP_SEVERAL))
		return index;
	const struct hop_buckets *b = __atomic_load_n(&table.buckets[index], __ATOMIC_ACQUIRE);
	uint32_t bucket = (uint32_t)((uint64_t)flow_hash(ip, available, total) * HOP_BUCKETS >> 32);

	return b == NULL ? NEXT_HOP_NONE : __atomic_load_n(&b->hop[bucket], __ATOMIC_RELAXED);
}

int next_hop_leaves_by(const struct next_hop *hop, uint32_t interface)
{
	const struct hop_buckets *b;

	if (likely(hop->kind != NEXT_HOP_SEVERAL))
		return hop->interface == interface;
	b = __atomic_load_n(&table.buckets[hop - next_hops], __ATOMIC_ACQUIRE);
	for (uint32_t m = 0; b != NULL && m < b->members; m++)
		if (next_hop_get(b->member[m])->interface == interface)
			return 1;
	return 0;
}

void next_hop_resolve(uint32_t index, const struct rte_ether_addr *mac)
{
	if (next_hops == &nowhere || index == NEXT_HOP_NONE || index >= MAX_NEXT_HOPS)
		return;
	struct next_hop *h = &next_hops[index];
	const struct interface *i = interface_get(h->interface);

	if (mac == NULL || i == NULL) {
		withdraw(h);
		memset(&table.mac[index], 0, sizeof(table.mac[index]));
		return;
	}
	if (h->resolved && rte_is_same_ether_addr(&table.mac[index], mac))
		return;
	table.mac[index] = *mac;
	rewrite(h, i, mac);
	if (table.failed[index]) {
		table.failed[index] = 0;
		settle_all(interfaces_now());
	}
}

void next_hop_fail(uint32_t index)
{
	if (index == NEXT_HOP_NONE || index >= MAX_NEXT_HOPS || table.failed[index])
		return;
	table.failed[index] = 1;
	settle_all(interfaces_now());
}

int next_hop_is_one_of_several(uint32_t index)
{
	return index < MAX_NEXT_HOPS && table.shared[index] != 0;
}

static int header_same(const struct next_hop *h, const struct interface *i, const struct rte_ether_addr *mac)
{
	struct next_hop want = *h;

	header_fill(&want, i, mac);
	// A copy but for the header: padding is equal too.
	return memcmp(&want, h, sizeof(want)) == 0; // NOLINT(bugprone-suspicious-memory-comparison)
}

void next_hops_refresh(const struct interfaces *s)
{
	if (next_hops == &nowhere)
		return;
	for (uint32_t index = 1; index < MAX_NEXT_HOPS; index++) {
		struct next_hop *h = &next_hops[index];

		if (table.holders[index] == 0)
			continue;
		const struct interface *i = h->interface < s->count ? &s->interface[h->interface] : NULL;
		if (h->kind == NEXT_HOP_SEVERAL)
			continue;
		if (i == NULL || i->name[0] == 0)
			withdraw(h);
		else if (!header_same(h, i, &table.mac[index]))
			rewrite(h, i, &table.mac[index]);
	}
	settle_all(s);
}

// What workers know of destinations.

struct ways ways_known[API_MAX_WORKERS];
