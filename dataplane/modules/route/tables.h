// SPDX-License-Identifier: Apache-2.0
// Inside of the route module: what its tables share. Other modules include route.h.
//
// Everything here is written by the control thread. Workers read the snapshot, the FIBs and the next hops.
#ifndef ROUTE_TABLES_H
#define ROUTE_TABLES_H

#include "route/route.h"
#include <stddef.h>

#define MAX_INTERFACES 1024
#define MAX_ROUTES 65536 // of one family, those of interfaces not counted

// ---- interfaces (interface.c) ---------------------------------------------------------------------------------------

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
};

// All interfaces at one moment: immutable once published, replaced as a whole, freed after a grace period.
struct interfaces {
	uint32_t count; // highest index + 1; slots without a name are unused
	uint32_t vlan_mask, local_mask;
	struct vlan_slot *vlan; // open addressing, at most half full
	struct local_slot *local; // the same; an address may be there once per access port
	struct ip_filter filter; // of `local`
	struct interface interface[];
};

// ---- next hops (next_hop.c) -----------------------------------------------------------------------------------------

int next_hops_start(void); // makes the tables when they are not there yet; 0 or ENOMEM
// Fills in headers and MTUs again after interfaces changed.
void next_hops_refresh(const struct interfaces *s);

// ---- forwarding tables (fib.c) --------------------------------------------------------------------------------------

struct fib;

// tbl8 groups that a prefix may need, at most.
uint32_t fib_groups(const struct api_address *prefix);
struct fib *fib_create(uint8_t family, uint32_t routes, uint32_t groups);
void fib_free(struct fib *f);
int fib_fits(const struct fib *f, uint32_t routes, uint32_t groups);
int fib_add(struct fib *f, const struct api_address *prefix, uint32_t next_hop); // adds or replaces; 0 or errno
int fib_delete(struct fib *f, const struct api_address *prefix);
uint32_t fib_lookup(const struct fib *f, const uint8_t *destination); // NEXT_HOP_NONE
uint32_t fib_groups_max(uint8_t family);

// ---- routes (route.c) -----------------------------------------------------------------------------------------------

// Works out the routes as they will be after the open transaction. 0, or errno after object_error().
int routes_plan(void);
void routes_apply(void); // makes the plan true; does nothing without one
void routes_forget(void); // throws the plan away

#endif
