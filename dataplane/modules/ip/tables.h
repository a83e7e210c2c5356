// SPDX-License-Identifier: Apache-2.0
// Inside of the ip module: what its tables share. Other modules include ip.h.
//
// Everything here is written by the control thread. Workers read the snapshot, the FIBs and the next hops.
#ifndef IP_TABLES_H
#define IP_TABLES_H

#include "ip/ip.h"
#include <stddef.h>

#define MAX_INTERFACES 1024
#define MAX_NEXT_HOPS 8192
#define MAX_ROUTES 65536 // of one family, those of interfaces not counted

// ---- addresses (address.c): pure ------------------------------------------------------------------------------------

static inline uint32_t address_length(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

// 1 when family and prefix length fit each other and the bytes behind the address are zero.
int address_valid(const struct api_address *a);
// 1 when no bit is set behind the prefix.
int prefix_canonical(const struct api_address *a);
// 1 when an interface may have this address (RFC 1122 §3.2.1.3, RFC 4291 §2.5).
int address_assignable(const struct api_address *a);
static inline int address_is_link_local(uint8_t family, const uint8_t *a)
{
	if (family == 4)
		return a[0] == 169 && a[1] == 254; // RFC 3927 §2.7
	return a[0] == 0xfe && (a[1] & 0xc0) == 0x80; // RFC 4291 §2.5.6
}
// Order of the route table: family, bytes, prefix length.
int prefix_compare(const struct api_address *a, const struct api_address *b);
const char *address_text(const struct api_address *a, char text[64]); // "10.0.0.0/8"; without length for host prefixes

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

const struct interfaces *interfaces_now(void);
const struct interface *interfaces_by_name(const struct interfaces *s, const char *name);
// The interface of a core port with the prefix that holds the address, or NULL. Link-local prefixes do not count.
const struct interface *interfaces_by_prefix(const struct interfaces *s, const struct api_address *a);
// The set as it will be after the open transaction, or the current one when that does not touch it.
const struct interfaces *interfaces_next(void);

// ---- next hops (next_hop.c) -----------------------------------------------------------------------------------------

// Rises whenever a destination may have another next hop than before, or a next hop's slot is given up: after the tables say so,
// and before the grace period. Workers read it before the tables.
extern uint32_t ip_ways_generation;
void ip_ways_changed(void);

int next_hops_start(void); // makes the tables when they are not there yet; 0 or ENOMEM
// As next_hop_ensure(), against the interfaces of the open transaction. address NULL: the attached prefix itself.
uint32_t next_hop_hold(const struct interface *i, const struct ip_address *address);
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
