// SPDX-License-Identifier: Apache-2.0
// One longest-prefix-match table for either family, on rte_fib (DIR24-8) or rte_fib6 (trie), with 2-byte next hops.
//
// The control thread adds and deletes in place while workers look up: entries are 2 bytes and aligned, so a reader sees
// the old or the new next hop. A deletion may empty a tbl8 group under a reader that is on its way there; it then reads
// 0, which is NEXT_HOP_NONE, and its packet is dropped for want of a route. Whoever deletes calls control_synchronize()
// before adding again, so that a group is never given to another prefix while a reader is in it.
#include "route/tables.h"
#include <rte_byteorder.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS4 8192 // tbl8 groups of 512 bytes
#define GROUPS6 32000 // below 2^15: a 2-byte entry holds the group's number and one flag
#define GROUPS_SPARE 16 // the library asks for a few more than it takes

struct fib {
	uint8_t family;
	uint32_t routes, groups; // capacity
	union {
		struct rte_fib *four;
		struct rte_fib6 *six;
	};
};

uint32_t fib_groups(const struct api_address *prefix)
{
	if (prefix->prefix <= 24)
		return 0;
	return prefix->family == 4 ? 1 : (prefix->prefix - 24u + 7) / 8;
}

uint32_t fib_groups_max(uint8_t family)
{
	return family == 4 ? GROUPS4 : GROUPS6;
}

static int create_four(struct fib *f, const char *name)
{
	struct rte_fib_conf conf = {
		.type = RTE_FIB_DIR24_8,
		.default_nh = NEXT_HOP_NONE,
		.max_routes = (int)f->routes,
		.dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = f->groups + GROUPS_SPARE},
	};

	f->four = rte_fib_create(name, SOCKET_ID_ANY, &conf);
	return f->four != NULL ? 0 : -1;
}

static int create_six(struct fib *f, const char *name)
{
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE,
		.default_nh = NEXT_HOP_NONE,
		.max_routes = (int)f->routes,
		.trie = {.nh_sz = RTE_FIB6_TRIE_2B, .num_tbl8 = f->groups + GROUPS_SPARE},
	};

	f->six = rte_fib6_create(name, SOCKET_ID_ANY, &conf);
	return f->six != NULL ? 0 : -1;
}

struct fib *fib_create(uint8_t family, uint32_t routes, uint32_t groups)
{
	static uint32_t generation; // the library wants names of its own for an old and a new table
	struct fib *f = calloc(1, sizeof(*f));
	char name[32];

	if (f == NULL)
		return NULL;
	f->family = family;
	f->routes = routes;
	f->groups = groups;
	snprintf(name, sizeof(name), "fib%u-%u", family, generation++);
	if ((family == 4 ? create_four(f, name) : create_six(f, name)) != 0) {
		free(f);
		return NULL;
	}
	return f;
}

void fib_free(struct fib *f)
{
	if (f == NULL)
		return;
	if (f->family == 4)
		rte_fib_free(f->four);
	else
		rte_fib6_free(f->six);
	free(f);
}

int fib_fits(const struct fib *f, uint32_t routes, uint32_t groups)
{
	return f != NULL && routes <= f->routes && groups <= f->groups;
}

static uint32_t host_order4(const uint8_t *address)
{
	uint32_t a;

	memcpy(&a, address, sizeof(a));
	return rte_be_to_cpu_32(a);
}

int fib_add(struct fib *f, const struct api_address *prefix, uint32_t next_hop)
{
	if (f->family == 4)
		return -rte_fib_add(f->four, host_order4(prefix->bytes), prefix->prefix, next_hop);
	return -rte_fib6_add(f->six, prefix->bytes, prefix->prefix, next_hop);
}

int fib_delete(struct fib *f, const struct api_address *prefix)
{
	if (f->family == 4)
		return -rte_fib_delete(f->four, host_order4(prefix->bytes), prefix->prefix);
	return -rte_fib6_delete(f->six, prefix->bytes, prefix->prefix);
}

uint32_t fib_lookup(const struct fib *f, const uint8_t *destination)
{
	uint64_t next_hop = NEXT_HOP_NONE;

	if (f == NULL)
		return NEXT_HOP_NONE;
	if (f->family == 4) {
		uint32_t a = host_order4(destination);

		rte_fib_lookup_bulk(f->four, &a, &next_hop, 1);
	} else {
		uint8_t a[1][RTE_FIB6_IPV6_ADDR_SIZE];

		memcpy(a[0], destination, sizeof(a[0]));
		rte_fib6_lookup_bulk(f->six, a, &next_hop, 1);
	}
	return (uint32_t)next_hop;
}
