// SPDX-License-Identifier: Apache-2.0
// What a device does with an entry's packets: bytes compared, removed, and put in front. Made from the header of a
// packet that the full nodes passed, and the present tables. Control thread.
#ifndef OFFLOAD_PLAN_H
#define OFFLOAD_PLAN_H

#include "core/arc.h"
#include "forward/tunnel.h"
#include "isthmus_api.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include <stdint.h>

#define PLAN_HEADER 128 // of a packet: Ethernet with two tags, PPPoE or IPv4, UDP, GTP-U with container; IPv6, ports
#define PLAN_ITEMS 10
#define PLAN_ENCAP 96 // most is Ethernet with two tags, IPv4, UDP, GTP-U with container: 66

// A packet that passed, as its worker saw it.
struct offload_request {
	uint32_t rule, generation, interface;
	uint16_t port, l3, outer_l3, instance;
	uint8_t tunnel; // it came in a tunnel: l3 is inside
	uint8_t by_tuple; // the rule is found by all of the 5-tuple
	uint16_t length; // of header
	uint8_t header[PLAN_HEADER];
};

// Of a packet that came in a tunnel: its GTP-U header.
static inline const uint8_t *offload_gtpu(const struct offload_request *q)
{
	return q->header + q->outer_l3 + IP4_HEADER + 8;
}

// The container that the packet came with.
static inline struct container offload_came_with(const struct offload_request *q)
{
	const uint8_t *gtpu = offload_gtpu(q);

	if (!q->tunnel || gtpu[0] != 0x34)
		return (struct container){.qfi = GTPU_NO_QFI, .pdu_type = API_PDU_NONE};
	return (struct container){.qfi = gtpu[14] & 0x3f, .pdu_type = (uint8_t)((gtpu[13] >> 4) + 1)};
}

enum plan_type { PLAN_ETH, PLAN_VLAN, PLAN_IP4, PLAN_IP6, PLAN_UDP, PLAN_TCP, PLAN_GTPU, PLAN_CONTAINER };

// Without gaps: two are the same when their bytes are.
struct plan {
	uint16_t in, out; // devices
	uint8_t level; // enum api_offload: FULL, or ENCAPSULATION: the outer header comes off, the packet is marked
	uint8_t items;
	uint8_t type[PLAN_ITEMS], at[PLAN_ITEMS]; // enum plan_type, and where in `spec` it begins
	uint8_t spec[PLAN_HEADER], mask[PLAN_HEADER];
	// Packets of the entry without a bit of guard_mask at guard_at are the software's. They are too old to be
	// forwarded, or so short that the frame is padded, and a device would count the padding.
	uint8_t guard_at, guard_mask[2];
	uint8_t counts_hops; // down by one
	uint8_t decap, encap; // bytes
	uint8_t bytes[PLAN_ENCAP];
	uint8_t is_policed, pad;
	uint16_t queue; // of the owner: ENCAPSULATION
	uint16_t pad2;
	uint16_t overhead; // bytes of a frame in front of the IP packet that is counted
	struct api_policer policer;
};

// Returns NULL, or why the software alone serves the packets. `level`: FULL or ENCAPSULATION.
const char *plan_make(struct plan *p, const struct offload_request *q, uint8_t level);
// A plan that every device used at this level must accept.
void plan_sample(struct plan *p, uint16_t device, uint8_t level);
extern struct arc_bypass plan_bypass; // closed: every plan is refused

#endif
