// SPDX-License-Identifier: Apache-2.0
// Routing of a packet: forbidden destinations, the address's owner, DSCP, next hop. For session nodes, ip-forward,
// ip-output, the fast path and devices.
#ifndef FORWARD_ROUTE_H
#define FORWARD_ROUTE_H

#include "instance/instance.h"
#include "route/route.h"
#include "rule/action.h"
#include "rule/session.h"
#include "wire/ecn.h"

// 1 when sessions may send to this destination of a VRF (rows A11, G13), or of all (VRF_ANY): not to us, nor to a
// guarded host. Nearly all are in neither filter.
static __rte_always_inline int route_may_send(uint8_t vrf, uint8_t version, const uint8_t *destination)
{
	const struct ip_filter *local = __atomic_load_n(&ip_local_filter, __ATOMIC_ACQUIRE);
	const struct instances *n = instances_get();
	uint32_t bit = ip_filter_bit(version, destination);

	return likely(!((local->bits[bit / 64] | n->guard_filter.bits[bit / 64]) >> bit % 64 & 1)) ||
	       (!ip_is_local_exactly(vrf, version, destination) && !instance_guards(n, vrf, version, destination));
}

// The instance of the VRF, or only `index`, in which this address is a UE's; INSTANCE_NONE: it goes by the route. Where
// pools do not list UE addresses, sessions decide: else a route to a plain IP access side would bypass a UE's downlink
// rules. Networks behind a wireline subscriber are in no pool.
static inline uint16_t route_to_ue(
	const struct instances *n, uint16_t index, uint8_t vrf, uint8_t version, const uint8_t *destination)
{
	uint16_t found = instance_by_pool(index, vrf, version, destination);

	for (uint8_t i = 0; found == INSTANCE_NONE && i < n->lookers + n->owners; i++) {
		int looks = i < n->lookers;
		uint8_t at = looks ? n->looker[i] : n->owner[i - n->lookers];

		if (index == INSTANCE_NONE ? instance_vrf(n, at) != vrf : index != at)
			continue;
		if (looks ? session_ue_known(at, version, destination) : session_home_known(at, version, destination))
			found = at;
	}
	return found;
}

// 1 when an end of the packet is link-local: it is not forwarded (RFC 3927 §2.7, RFC 4291 §2.5.6).
static inline int route_is_of_link(uint8_t version, const uint8_t *ip)
{
	return address_is_link_local(version, ip + (version == 4 ? 12 : 8)) ||
	       address_is_link_local(version, ip + (version == 4 ? 16 : 24));
}

// TTL or hop limit. A packet with 1 is not forwarded (RFC 1812 §5.3.1, RFC 8200 §3).
static inline uint8_t route_hops(uint8_t version, const uint8_t *ip)
{
	return ip[version == 4 ? 8 : 7];
}

static inline void route_count_hop(uint8_t version, uint8_t *ip)
{
	if (likely(version == 4))
		ip4_decrement_ttl(ip);
	else
		ip[7]--;
}

// 1 when a packet that leaves without a tunnel may get another DSCP.
static inline int route_marks(const struct instances *n, const struct action *a)
{
	return n->marking || a->dscp != ACTION_NO_DSCP;
}

// Packets that leave by an instance without a tunnel (N6, SGi) get their QoS flow's DSCP. The flow is the QER's QFI,
// else the received one, as in a tunnel. The FAR's Transport Level Marking comes first (TS 29.244 §8.2.12).
static inline void route_mark(
	const struct instances *n, const struct action *a, uint8_t came, uint8_t version, uint8_t *ip)
{
	uint8_t qfi = a->qfi != ACTION_NO_QFI ? a->qfi : came, dscp = a->dscp;
	const struct instance *i = a->instance < MAX_INSTANCES && qfi < 64 ? n->instance[a->instance] : NULL;

	if (dscp == ACTION_NO_DSCP && i != NULL)
		dscp = (uint8_t)(i->qfi_dscp[qfi] - 1);
	if (dscp < 64)
		ip_dscp_set(version, ip, dscp);
}

// The next hop `index`; of several of equal cost the flow's. Returns 1 when it is resolved. `available` bytes may be
// read, of `total`.
static __rte_always_inline int route_hop(
	uint32_t index, const uint8_t *ip, uint32_t available, uint32_t total, const struct next_hop **hop)
{
	*hop = next_hop_get(index);
	if (likely(__atomic_load_n(&(*hop)->resolved, __ATOMIC_ACQUIRE)))
		return 1;
	*hop = next_hop_get(next_hop_of_flow(index, ip, available, total));
	return __atomic_load_n(&(*hop)->resolved, __ATOMIC_ACQUIRE);
}

#endif
