// SPDX-License-Identifier: Apache-2.0
// Interfaces, routes and next hops, as the nodes see them.
//
// Tables are written by the control thread and read by workers inside a walk; replaced parts are freed after a grace
// period.
#ifndef ROUTE_ROUTE_H
#define ROUTE_ROUTE_H

#include "core/node.h"
#include "isthmus_api.h"
#include "route/address.h"
#include "wire/cache_line.h"
#include <assert.h>
#include <rte_ether.h>
#include <stdint.h>
#include <string.h>

#define MAX_INTERFACES 1024

struct interface {
	char name[API_NAME];
	uint16_t index;
	uint16_t port; // index of struct port; PORT_NONE: of no link (loopback)
	uint16_t vlan[2]; // outer, inner; 0 none
	uint16_t beside; // 1 + index of the next interface of its port; 0: none
	uint32_t mtu;
	uint32_t role; // enum api_role of the port; 0: there is none
	uint8_t l2_length; // 14, 18 or 22
	uint8_t down; // API_INTERFACE_DOWN
	uint8_t vrf; // its number
	uint8_t rpf; // API_INTERFACE_RPF_*
	uint8_t local_proxy; // API_INTERFACE_LOCAL_PROXY
	struct rte_ether_addr mac;
	uint32_t addresses;
	struct api_address address[API_MAX_ADDRESSES];
};

// Index 0 is an entry of its own (kind NONE), so a look-up that finds nothing still gives a next hop to read.
#define NEXT_HOP_NONE 0u

enum next_hop_kind {
	NEXT_HOP_NOWHERE, // no route
	NEXT_HOP_NEIGHBOUR,
	NEXT_HOP_GLEAN, // attached prefix: the destination itself is the neighbour, and is not known yet
	NEXT_HOP_SEVERAL, // of equal cost: next_hop_of_flow() chooses; interface is the first one's. Never resolved
	NEXT_HOP_DISCARD, // packets end here; of no interface. Never resolved, so that others' packets pay nothing
};

// One cache line: all that ip-output needs. The array is type-stable: a slot gets another neighbour only after a grace
// period, so an index is valid until the end of its walk.
//   Written by: the control thread; header and mtu only while resolved is 0 and no worker can still see 1.
//   Read by: workers, which read `resolved` first (acquire)
#define NEXT_HOP_HEADER 24
struct next_hop {
	uint8_t resolved; // NEIGHBOUR: header below is valid
	uint8_t kind; // enum next_hop_kind
	uint8_t l2_length;
	uint8_t discard; // DISCARD: enum api_discard
	uint32_t mtu;
	uint16_t port;
	uint16_t interface;
	uint32_t pad2;
	// Ethernet header at the end of this array; its last two bytes, the ethertype, are patched.
	uint8_t header[NEXT_HOP_HEADER];
	struct ip_address address; // of the neighbour
} cache_aligned;
static_assert(sizeof(struct next_hop) == 64, "a next hop is one cache line");

// 1 when packets leave by it, or will when its MAC address is known.
static inline int next_hop_leads(const struct next_hop *h)
{
	return h->kind != NEXT_HOP_NOWHERE && h->kind != NEXT_HOP_DISCARD;
}

// `family` is 4 or 6; addresses are 4 or 16 bytes in network order, except where struct ip_address is named. `vrf` is a
// VRF's number, 0 the default one; each has its own addresses and routes.
#define MAX_VRFS API_MAX_VRFS
static_assert(MAX_VRFS <= 64, "a bit each");
// Empty: the default one. API_NAME bytes. Control thread; workers, inside a walk, of a number that an interface has.
const char *vrf_name(uint8_t vrf);

// Interface of a frame on a port, or NULL. Workers; valid until the end of the walk.
const struct interface *interface_find(uint16_t port, uint16_t outer_vlan, uint16_t inner_vlan);
const struct interface *interface_get(uint32_t index); // NULL when there is none
// Writes the Ethernet header of a frame that leaves by the interface; returns where its ethertype goes.
uint8_t *interface_header(uint8_t *p, const struct interface *i, const uint8_t destination[6]);
// 1 when the address is ours on any interface of the VRF. Workers. (The local end of a GTP-U path is an interface's
// address.) Most packets are for others: a bit map of 1024 hashed addresses excludes them without a look-up.
extern const struct ip_filter *ip_local_filter; // never NULL; replaced with the tables, read within a walk
#define VRF_ANY UINT8_MAX
int ip_is_local_exactly(uint8_t vrf, uint8_t family, const uint8_t *address);
static inline int ip_is_local(uint8_t vrf, uint8_t family, const uint8_t *address)
{
	uint32_t bit = ip_filter_bit(family, address);
	const struct ip_filter *f = __atomic_load_n(&ip_local_filter, __ATOMIC_ACQUIRE);

	return (f->bits[bit / 64] >> bit % 64 & 1) != 0 && ip_is_local_exactly(vrf, family, address);
}
// 1 when it is ours on this interface (TS 29.281 tunnel endpoints are bound to their interface, row G20), or on no link
// of its VRF.
int ip_is_local_on(uint8_t family, const uint8_t *address, uint32_t interface);
// The interface of a core port that has the address in the VRF, or UINT32_MAX. Workers.
uint32_t ip_local_interface(uint8_t vrf, uint8_t family, const uint8_t *address);
// The link-local address by which subscribers of an access port know their router, 16 bytes. The first one of its
// interfaces, else that of its MAC address (RFC 4291 appendix A).
struct port;
void ip_link_local(const struct port *p, uint8_t to[16]);
// 1 when access port `port` answers for this gateway address: one of its interfaces', or the link-local one of its MAC
// address, which every link has (RFC 4291 §2.1). Workers.
int ip_is_gateway(uint8_t family, const uint8_t *address, uint16_t port);
// 1 when the address is in a network of an access port's interface with API_INTERFACE_LOCAL_PROXY, and not its
// broadcast address.
int ip_is_proxied(uint8_t family, const uint8_t *address, uint16_t port);
// An address of ours to send from: on the access port `port` (towards subscribers) or on the interface. NULL: none.
const uint8_t *ip_source_on_port(uint8_t family, uint16_t port);
const uint8_t *ip_source_on_interface(uint8_t family, uint32_t interface);
// The address whose prefix has `towards`, else ip_source_on_interface's, else a loopback address of its VRF (RFC 1812
// §4.3.2.4).
const uint8_t *ip_source_towards(uint8_t family, uint32_t interface, const uint8_t *towards);
// Longest-prefix match; NEXT_HOP_NONE when there is no route. Workers.
uint32_t ip_route_lookup(uint8_t vrf, uint8_t family, const uint8_t *destination);
// The same for a packet received on `interface` (UINT32_MAX: none), where link-local destinations are looked up.
uint32_t ip_route_of(uint8_t vrf, uint8_t family, const uint8_t *destination, uint32_t interface);
#define MAX_NEXT_HOPS 8192
extern struct next_hop *next_hops; // MAX_NEXT_HOPS, as soon as there is another one than NEXT_HOP_NONE
static inline const struct next_hop *next_hop_get(uint32_t index)
{
	return &__atomic_load_n(&next_hops, __ATOMIC_ACQUIRE)[likely(index < MAX_NEXT_HOPS) ? index : NEXT_HOP_NONE];
}
// Of several next hops of equal cost the flow's (for a G-PDU: the inner flow's); else the index itself. `available`
// bytes may be read, of `total`. Workers.
uint32_t next_hop_of_flow(uint32_t index, const uint8_t *ip, uint32_t available, uint32_t total);
// The same of the packet at packet.l3; it may be unresolved.
static inline const struct next_hop *next_hop_of_packet(uint32_t index, struct rte_mbuf *m)
{
	uint16_t l3 = packet_of(m)->l3;

	return next_hop_get(next_hop_of_flow(index, rte_pktmbuf_mtod_offset(m, const uint8_t *, l3),
		rte_pktmbuf_data_len(m) - l3, rte_pktmbuf_pkt_len(m) - l3));
}
// 1 when it leaves by the interface, of several one of them. Workers.
int next_hop_leaves_by(const struct next_hop *hop, uint32_t interface);
// Rises when a destination may have another next hop or owner (our address, a UE's), or when a next hop's slot is given
// up. It rises after the tables changed, before the grace period. Workers read it before the tables.
extern uint32_t ip_ways_generation;
void ip_ways_changed(void); // control thread

// Next hops of neighbours (control thread).
// Index of the next hop of a neighbour on an interface; made when it does not exist yet, and held until
// next_hop_release. NEXT_HOP_NONE when full.
uint32_t next_hop_ensure(uint32_t interface, const struct ip_address *address);
// The same while a transaction is staged, on an interface of interfaces_next(). address NULL: the attached prefix
// itself.
uint32_t next_hop_hold(const struct interface *i, const struct ip_address *address);
// The next hop of a neighbour on an interface, or of the attached prefix itself (destination NULL); NEXT_HOP_NONE when
// there is none. Workers too.
uint32_t next_hop_find(uint32_t interface, uint8_t family, const uint8_t *destination);
// That of routes with this enum api_discard, held as well.
uint32_t next_hop_discard(uint8_t discard);
void next_hop_take(uint32_t index); // holds once more what is held
void next_hop_release(uint32_t index);
// Equal-cost next hops as one, which holds references to them. NEXT_HOP_NONE without room, or if one is in it twice.
uint32_t next_hop_several(const uint32_t *hops, uint32_t count);
// The neighbour does not answer: until it is resolved, others of equal cost take its flows.
void next_hop_fail(uint32_t index);
int next_hop_is_one_of_several(uint32_t index);
// Fills in the neighbour's MAC (or takes it away when mac is NULL) for all workers.
void next_hop_resolve(uint32_t index, const struct rte_ether_addr *mac);

// All interfaces (control thread).

struct interfaces;
const struct interfaces *interfaces_now(void);
const struct interface *interfaces_by_name(const struct interfaces *s, const char *name);
// The interface of a core port of the VRF with the prefix that holds the address, or NULL. Link-local prefixes do not
// count.
const struct interface *interfaces_by_prefix(const struct interfaces *s, uint8_t vrf, const struct api_address *a);
// The number of a VRF with interfaces, or -1.
int interfaces_vrf(const struct interfaces *s, const char *name);
// The only VRF with an interface of a core port that has the address; 0 when there is none, -1 when there are several.
int interfaces_vrf_of(const struct interfaces *s, const struct api_address *a);
// The set after the open transaction, or the current one when that does not touch it.
const struct interfaces *interfaces_next(void);

// Called when interfaces were made, changed or deleted; fn may walk them with interface_get(0..interface_count()-1).
void interface_watch(void (*fn)(void)); // from constructors
uint32_t interface_count(void);

#endif
