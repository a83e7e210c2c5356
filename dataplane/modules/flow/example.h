// SPDX-License-Identifier: Apache-2.0
// Examples: what core-input, ip-input and gtpu-input find out about one packet of a vector from its first bytes holds
// for those whose first bytes are the same. An example lives for one vector, within a walk, so nothing that it was
// looked up in changes.
#ifndef FLOW_EXAMPLE_H
#define FLOW_EXAMPLE_H

#include "core/packet.h"
#include "wire/plain.h"

#define EXAMPLES 4 // of a kind, in a vector
#define EXAMPLE_LOOKS 8 // packets of a vector that are looked at

enum example_kind {
	EXAMPLE_OTHER, // takes the full nodes
	EXAMPLE_TUNNEL, // G-PDU over IPv4 to an endpoint of an instance
	EXAMPLE_UE, // IP packet on an interface where UEs are looked up by destination
};

struct example {
	struct plain_bytes bytes;
	uint16_t port_in, l3;
	uint16_t local; // path_local_id() of the endpoint
	uint16_t instance;
	uint8_t kind;
	uint8_t version; // of the IP header at l3
};

struct examples {
	// Narrow ones name a tunnel endpoint; wide ones hold for all else with that Ethernet header.
	struct example narrow[EXAMPLES], wide[EXAMPLES];
	uint8_t narrows, wides, looks;
};

static __rte_always_inline int example_holds(const struct example *e, struct rte_mbuf *m, const uint8_t *frame)
{
	return plain_bytes_same(&e->bytes, frame) && packet_of(m)->port_in == e->port_in;
}

// The example of a packet that the last one is not, made from it when there is none. NULL: the packet takes the full
// nodes.
const struct example *example_find(struct examples *x, struct rte_mbuf *m);

#endif
