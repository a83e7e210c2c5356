// SPDX-License-Identifier: Apache-2.0
// Examples: the results of core-input, ip-input and gtpu-input for a packet's first bytes hold for all packets with
// equal ones. An example lives for one vector, within a walk, so its tables do not change.
#ifndef FLOW_EXAMPLE_H
#define FLOW_EXAMPLE_H

#include "core/packet.h"
#include "core/worker.h"
#include "wire/plain.h"

#define EXAMPLES 4 // of a kind, in a vector
#define EXAMPLE_LOOKS 8 // packets of a vector that are looked at

enum example_kind {
	EXAMPLE_OTHER, // takes the full nodes
	EXAMPLE_PLAIN, // G-PDU over IPv4 to one of our endpoints, with at most a container with a QFI
	EXAMPLE_UE, // IP packet on an interface where UEs are looked up by destination
	EXAMPLE_ROUTED, // IP packet on an interface where it is of no session
	EXAMPLE_TUNNEL, // G-PDU over IPv4 with another GTP-U header
	EXAMPLE_TUNNEL6, // packets over IPv6 to one of our endpoints, with any GTP-U header
};

// How a packet finds its entry. By its key; by 5-tuple (flow/tuple.h), for endpoints and F-TEIDs of wireline
// subscribers, mobile keys with several PDRs, and instances with wireline subscribers; by its route, without a session.
// BY_MAPPING in addition: a mapping led to the key. BY_RPF, in the first loop: the interface checks reverse paths.
// BY_OWNER: to the worker of its session.
enum {
	BY_KEY,
	BY_SUBSCRIBER,
	BY_FLOW,
	BY_TUPLE = BY_SUBSCRIBER | BY_FLOW,
	BY_ROUTE,
	BY_MAPPING = 8,
	BY_RPF = 16,
	BY_OWNER = 32
};
static_assert((BY_ROUTE & BY_TUPLE) == 0, "asked for with &");

#define USER_EXTERNAL 4 // to an external address: NAT44 gives the packet the inside one (flow/mapping.h)

// The user's packet and its container.
struct user_head {
	uint16_t at; // offset of its IP header
	uint8_t version; // 4, 6
	uint8_t simple; // IPv4 without options
	uint8_t pdu_type; // enum api_pdu_type
	uint8_t qfi; // GTPU_NO_QFI: none
	uint8_t by; // BY_*
	uint8_t change; // before it leaves: by enum ecn of the tunnel's header (RFC 6040 §4.2), USER_EXTERNAL; 0: none
};
static_assert(sizeof(struct user_head) == 8, "copied in one move");

struct example {
	struct plain_bytes bytes;
	uint64_t key; // flow_entry_key() of a packet with TEID or address 0
	const struct nat *nat; // EXAMPLE_UE: of the instance; NULL: none
	uint32_t address_mask; // EXAMPLE_UE, IPv4: bits of an address that are of the key, as on the wire
	uint32_t offset; // flow_index.offset, or with in_place .place
	struct user_head user;
	uint16_t port_in, l3;
	uint16_t local; // path_local_id() of the endpoint
	uint16_t instance;
	uint8_t prefix; // EXAMPLE_UE: bits of the longest prefix that some session has
	uint8_t kind;
	uint8_t version; // of the IP header at l3
	uint8_t in_place; // states of the endpoint or instance lie at their keys' places (flow/flow.h)
	uint8_t is_wide; // nothing behind the Ethernet header is compared: G-PDUs are looked for before
	uint8_t homes; // EXAMPLE_UE: some UEs of the instance are wireline subscribers
	uint8_t vrf, rpf; // of the interface
	uint16_t interface;
	struct rule_state *routed; // of the VRF, in flow_routed
	uint8_t alone; // EXAMPLE_ROUTED: but for pools the route decides about packets to others (flow/router.c)
};

struct examples {
	// Examples of one GTP-U header, of a tunnel endpoint, and of all else with that Ethernet header.
	struct example plain[EXAMPLES], tunnel[EXAMPLES], wide[EXAMPLES];
	uint8_t plains, tunnels, wides, looks;
};

static __rte_always_inline int example_holds(const struct example *e, struct rte_mbuf *m, const uint8_t *frame)
{
	return plain_bytes_same(&e->bytes, frame) && packet_of(m)->port_in == e->port_in;
}

// The example of a packet that does not match the last one; made if missing. NULL: the packet takes the full nodes.
// PLAIN_BYTES of the frame must be readable.
const struct example *example_find(struct examples *x, const struct worker *w, struct rte_mbuf *m);

#endif
