// SPDX-License-Identifier: Apache-2.0
// All prefixes that lead somewhere, by a hash of (table, address, length): 32 bytes each, in reserved memory that is
// taken page by page.
//
//   written by: the control thread
//   read by: workers, the entries that fib.c returns
#include "route/tables.h"
#include <errno.h>
#include <rte_jhash.h>
#include <rte_random.h>
#include <string.h>
#include <sys/mman.h>

static struct {
	uint32_t *bucket; // first entry of each chain
	uint32_t mask, seed;
	uint32_t limit, room, end, unused;
	uint32_t of_length[MAX_TABLES][129]; // entries in the forwarding table
} own = {.end = 1};

struct rib_entry *rib;

void *memory_reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at != MAP_FAILED ? at : NULL;
}

int rib_start(uint32_t routes)
{
	uint32_t buckets = rte_align32pow2(routes) / 2;

	if (rib != NULL)
		return 0;
	own.limit = routes;
	// Twice as many, and the networks of interfaces: a transaction may replace all of them.
	own.room = 2 * routes + MAX_INTERFACES * API_MAX_ADDRESSES + 1;
	rib = memory_reserve(own.room * sizeof(struct rib_entry));
	own.bucket = memory_reserve(buckets * sizeof(uint32_t));
	own.mask = buckets - 1;
	own.seed = (uint32_t)rte_rand();
	return rib != NULL && own.bucket != NULL ? 0 : ENOMEM;
}

struct api_address rib_prefix(const struct rib_entry *r)
{
	struct api_address a = {.family = family_of_table(r->table), .prefix = r->length};

	memcpy(a.bytes, r->address, sizeof(a.bytes));
	return a;
}

uint32_t rib_limit(void)
{
	return own.limit;
}

uint32_t rib_end(void)
{
	return own.end;
}

static uint32_t *bucket_of(uint8_t table, const uint8_t *address, uint8_t length)
{
	return &own.bucket[rte_jhash(address, 16, own.seed + ((uint32_t)table << 8) + length) & own.mask];
}

static uint32_t find(uint8_t table, const uint8_t *address, uint8_t length)
{
	uint32_t n = *bucket_of(table, address, length);

	while (n != 0 && (rib[n].table != table || rib[n].length != length || memcmp(rib[n].address, address, 16) != 0))
		n = rib[n].next;
	return n;
}

uint32_t rib_find(uint8_t table, const struct api_address *prefix)
{
	return rib != NULL ? find(table, prefix->bytes, prefix->prefix) : 0;
}

uint32_t rib_ensure(uint8_t table, const struct api_address *prefix)
{
	uint32_t n = rib_find(table, prefix);

	if (n != 0)
		return n;
	if (own.unused != 0) {
		n = own.unused;
		own.unused = rib[n].next;
	} else if (own.end < own.room) {
		n = own.end++;
	} else {
		return 0;
	}
	struct rib_entry *r = &rib[n];
	uint32_t *bucket = bucket_of(table, prefix->bytes, prefix->prefix);
	*r = (struct rib_entry){.length = prefix->prefix, .table = table, .next = *bucket};
	memcpy(r->address, prefix->bytes, 16);
	*bucket = n;
	return n;
}

void rib_free(uint32_t number)
{
	struct rib_entry *r = &rib[number];
	uint32_t *at = bucket_of(r->table, r->address, r->length);

	while (*at != number)
		at = &rib[*at].next;
	*at = r->next;
	*r = (struct rib_entry){.next = own.unused};
	own.unused = number;
}

void rib_present(uint32_t number, int present)
{
	struct rib_entry *r = &rib[number];

	if (present)
		r->flags |= RIB_PRESENT;
	else
		r->flags &= (uint8_t)~RIB_PRESENT;
	own.of_length[r->table][r->length] += present ? 1u : -1u;
}

uint32_t rib_cover(uint32_t number)
{
	const struct rib_entry *r = &rib[number];
	uint8_t address[16];

	memcpy(address, r->address, sizeof(address));
	for (uint32_t length = r->length; length-- > 0;) {
		address[length / 8] &= (uint8_t) ~(0x80 >> length % 8);
		if (own.of_length[r->table][length] == 0)
			continue;
		uint32_t n = find(r->table, address, (uint8_t)length);
		if (n != 0 && (rib[n].flags & RIB_PRESENT))
			return n;
	}
	return 0;
}
