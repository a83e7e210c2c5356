// SPDX-License-Identifier: Apache-2.0
// Network instances (TS 29.244 §8.2.4): which interfaces, tunnel endpoints and UE addresses belong together.
//
//   Written by: the control thread, as one snapshot of all instances.
//   Read by: workers, within a walk.
//   Safe because: there are two snapshots, and each transaction ends with a grace period: readers never see one filled
#ifndef INSTANCE_INSTANCE_H
#define INSTANCE_INSTANCE_H

#include "isthmus_api.h"
#include "route/address.h"
#include "route/route.h"
#include "route/ways.h"
#include "wire/bytes.h"
#include "wire/cache_line.h"
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <stdint.h>

#define MAX_INSTANCES 64
#define INSTANCE_NONE UINT16_MAX
#define INSTANCE_INTERFACES 1024 // as many as the route module has
#define INSTANCE_LOCALS 256 // as many local ids as the path module gives

struct instance {
	char name[API_NAME];
	uint16_t index;
	uint16_t udp_port; // 0: none
	uint16_t mss; // as in api_instance
	uint8_t lookup; // enum api_lookup
	uint8_t flags; // API_INSTANCE_*
	uint8_t endpoints, pools;
	uint8_t qfi_dscp[64]; // as in api_instance
	uint16_t local[API_INSTANCE_ENDPOINTS]; // path_local_id() of each endpoint
	struct api_address endpoint[API_INSTANCE_ENDPOINTS];
	struct api_address pool[API_INSTANCE_POOLS];
};

// Of addresses' first bits, as many as the shortest pool of the family has, 64 at most: nearly all addresses that are
// in no pool are not in it.
struct pool_filter {
	uint64_t bits[16];
	uint32_t shift; // below 64, but for a pool of all addresses
};
static __rte_always_inline uint32_t pool_filter_bit(const struct pool_filter *f, uint8_t family, const uint8_t *address)
{
	uint64_t first = (uint64_t)load32(address) << 32 | (family == 4 ? 0 : load32(address + 4));

	return (uint32_t)((first >> f->shift % 64) * 0x9e3779b97f4a7c15ull >> 54);
}
static __rte_always_inline int pool_filter_has(const struct pool_filter *f, uint8_t family, const uint8_t *address)
{
	uint32_t bit = pool_filter_bit(f, family, address);

	return f->bits[bit / 64] >> bit % 64 & 1;
}

struct instances {
	const struct instance *instance[MAX_INSTANCES]; // freed after a grace period
	uint8_t of_interface[INSTANCE_INTERFACES]; // index + 1; 0: none
	uint8_t of_lookup[INSTANCE_INTERFACES]; // the same, of instances that look UEs up
	uint8_t of_local[INSTANCE_LOCALS];
	uint8_t table[UINT8_MAX +
		      1]; // instance_table(), by the low bits of an instance's index or of instance_of_vrf()
	uint8_t owners; // instances with pools that look destinations up
	uint8_t owner[MAX_INSTANCES]; // their indices
	struct pool_filter pools[2]; // theirs, IPv4 and IPv6
	uint8_t lookers; // instances without pools that look destinations up
	uint8_t looker[MAX_INSTANCES];
	uint8_t marking; // some instance has a DSCP for a QFI
	uint8_t clamping; // some instance has an MSS
	struct ip_filter guard_filter; // of all guarded hosts: nearly every packet goes elsewhere
	uint32_t guarded;
	struct api_address guard[MAX_INSTANCES * API_INSTANCE_GUARDED];
	uint8_t guard_of[MAX_INSTANCES * API_INSTANCE_GUARDED]; // the instance whose it is
};
extern const struct instances *instances_now; // never NULL

// Counts since start, each line its worker's.
struct instance_counters {
	uint64_t unknown_ue[MAX_INSTANCES], unknown_teid[MAX_INSTANCES];
} cache_aligned;
extern struct instance_counters instance_counters[API_MAX_WORKERS];

static inline const struct instances *instances_get(void)
{
	return __atomic_load_n(&instances_now, __ATOMIC_ACQUIRE);
}

// No instance, but the packet is of a VRF.
static inline uint16_t instance_of_vrf(uint32_t vrf)
{
	return (uint16_t)(UINT16_MAX - vrf);
}
static_assert(MAX_INSTANCES + MAX_VRFS <= UINT8_MAX + 1, "the low bits tell instances and VRFs apart");

// way_table() of the VRF by whose routes packets leave by an instance: its interfaces' VRF. Workers.
static __rte_always_inline uint8_t instance_table(const struct instances *s, uint16_t index)
{
	return __atomic_load_n(&s->table[index & UINT8_MAX], __ATOMIC_RELAXED);
}

static inline uint8_t instance_vrf(const struct instances *s, uint16_t index)
{
	return way_vrf(instance_table(s, index));
}

// NULL when there is none. Workers.
static inline const struct instance *instance_get(uint16_t index)
{
	return likely(index < MAX_INSTANCES) ? instances_get()->instance[index] : NULL;
}

// 1 when a UE's packets to another UE leave by the route, and so return by it. Workers.
static inline int instance_lets_out(uint16_t index)
{
	const struct instance *n = instance_get(index);

	return n != NULL && (n->flags & API_INSTANCE_UE_OUT) != 0;
}

// The instance whose endpoint has this local id, or INSTANCE_NONE: the local end of a path of wireline sessions.
static inline uint16_t instance_of_local(uint16_t local)
{
	uint8_t i = local < INSTANCE_LOCALS ? instances_get()->of_local[local] : 0;

	return i ? (uint16_t)(i - 1) : INSTANCE_NONE;
}

// The instance that an interface (its index, or UINT32_MAX) belongs to, or INSTANCE_NONE. Workers.
static inline uint16_t instance_of_interface(uint32_t interface)
{
	uint8_t i = interface < INSTANCE_INTERFACES ? instances_get()->of_interface[interface] : 0;

	return i ? (uint16_t)(i - 1) : INSTANCE_NONE;
}

// The instance by whose interface packets leave for a next hop, or INSTANCE_NONE. Workers.
static inline uint16_t instance_of_hop(const struct next_hop *hop)
{
	return next_hop_leads(hop) ? instance_of_interface(hop->interface) : INSTANCE_NONE;
}

// As instance_of_interface, but only where packets are looked up by a UE's address.
static inline uint16_t instance_of_lookup(uint32_t interface)
{
	uint8_t i = interface < INSTANCE_INTERFACES ? instances_get()->of_lookup[interface] : 0;

	return i ? (uint16_t)(i - 1) : INSTANCE_NONE;
}

// 1 when no UE may send to this host of the VRF (row A11); VRF_ANY: of some. Workers.
int instance_guards(const struct instances *s, uint8_t vrf, uint8_t family, const uint8_t *address);
// UDP ports of all instances, for ip_local_register_udp_map(). Packets to our addresses and such a port go to node
// udp-input, which checks the interface by instance_udp_port(interface).
extern uint64_t instance_udp_open[65536 / 64];
// The port of UDP/IP tunnels (TS 29.244 §8.2.64) on this interface; 0: none. Workers.
uint16_t instance_udp_port(uint32_t interface);
// 1 when one of the instance's pools holds the address.
int instance_owns(const struct instance *n, uint8_t family, const uint8_t *address);
// The instance that looks destinations up and has the address in a pool: `index`, or any of the VRF when it is
// INSTANCE_NONE. Returns INSTANCE_NONE without one. Workers.
uint16_t instance_by_pool_exactly(
	const struct instances *s, uint16_t index, uint8_t vrf, uint8_t family, const uint8_t *address);
static inline uint16_t instance_by_pool(uint16_t index, uint8_t vrf, uint8_t family, const uint8_t *address)
{
	const struct instances *s = instances_get();

	if (likely(!pool_filter_has(&s->pools[family == 6], family, address)))
		return INSTANCE_NONE;
	return instance_by_pool_exactly(s, index, vrf, family, address);
}
// 1 when a packet with this source may enter by an interface with `rpf` (RFC 3704). `hop`: of the route to the source;
// none when it discards (RFC 5635 §4). A UE's address enters by its tunnel alone, unless its packets to others leave
// (ue_out). Workers.
static inline int instance_source_routed(
	const struct next_hop *hop, uint8_t rpf, uint32_t interface, uint8_t vrf, uint8_t family, const uint8_t *source)
{
	if (!next_hop_leads(hop) || (rpf == API_INTERFACE_RPF_STRICT && !next_hop_leaves_by(hop, interface)))
		return 0;
	uint16_t ue = instance_by_pool(INSTANCE_NONE, vrf, family, source);
	return ue == INSTANCE_NONE || instance_lets_out(ue);
}
// An address of ours to speak to UEs from: of an interface of the instance (INSTANCE_NONE: of any). NULL: none.
// Workers.
const uint8_t *instance_source(uint16_t index, uint8_t family);

// Control thread: as after the open transaction.

// From a constructor: calls `changed` after each transaction with changes of instances, when instance_staged() and
// workers agree. At most 4.
void instance_watch(void (*changed)(void));
int instance_index(const char *name); // -1: there is none
const struct instance *instance_staged(uint16_t index);
uint16_t instance_of_local_staged(uint16_t local);
// Tunnels (F-TEIDs) and UE addresses that sessions have in an instance, for `show`.
void instance_count(uint16_t index, int tunnels, int ue_addresses);

#endif
