// SPDX-License-Identifier: Apache-2.0
// Packets of NAT44 mappings (nat/README.md). From a subscriber the mapping is looked up after the session; in the other
// direction before it, and names the session. Packets without a mapping, or of another worker's, take the full nodes.
#ifndef FLOW_MAPPING_H
#define FLOW_MAPPING_H

#include "nat/nat.h"
#include <rte_mbuf.h>

#define MAPPING_TO_COME UINT64_MAX // parsed.key of a packet to an external address, whose mapping is asked for

struct parsed;
struct tuple;
struct walk;

// A packet of an instance with NAT44, when its headers were read: to an external address, it gets no key yet.
void flow_ask_mapping(struct walk *k, struct parsed *l, uint8_t *ip, uint32_t rest);
// Those get their subscriber's key now.
void flow_enter(struct walk *k, struct parsed *parsed, uint16_t n);
// Destination of a UE's packet, as the session sees it: 4 bytes or 16.
const uint8_t *flow_destination(const struct parsed *l, const uint8_t *ip);
// The same of the 5-tuple of a plain packet with USER_EXTERNAL.
void flow_tuple_inside(const struct parsed *l, struct tuple *t);

// Packets whose entry was found: to the UE, or not plain.
void flow_entered(struct parsed *parsed, uint16_t n);

// For plain packets of a block from subscribers: sets parsed.nat if translated, and parsed.slot of the mapping.
void flow_find_mappings(const struct walk *k, struct parsed *parsed, struct rte_mbuf **pkts, uint16_t n);

// nat-uplink's (`out`) or nat-downlink's work on the packet and its mapping.
void flow_translate(const struct walk *k, const struct parsed *l, uint8_t *ip, int out);

#endif
