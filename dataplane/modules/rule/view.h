// SPDX-License-Identifier: Apache-2.0
// The typed views of a packet's metadata on its way to a session and behind it.
#ifndef RULE_VIEW_H
#define RULE_VIEW_H

#include "core/packet.h"
#include "rule/rule.h"

// Written by access-input; valid until session-uplink (or access-punt, arp-access, nd-access).
struct endpoint_view {
	uint16_t l2_length; // bytes before the IP header (or before the control payload)
	uint16_t ethertype; // innermost, host order
	uint16_t s_tag, c_tag; // VLAN ids, 0 when absent
	uint16_t outer_tpid; // host order, 0 when untagged
	uint16_t pppoe_session;
	uint8_t encap; // enum api_encap
	uint8_t tags;
	uint32_t permitted; // acl_permission() of firewall-uplink; 0: no list
};
PACKET_VIEW(endpoint_view)

// Written by gtpu-input; valid until session-downlink, session-tunnel (or gtpu-control).
struct tunnel_view {
	uint32_t teid; // host order
	uint16_t header_length; // GTP-U header with extensions
	uint16_t sequence;
	uint8_t message; // GTP-U message type
	uint8_t qfi; // 0xff: no PDU Session Container
	uint8_t has_sequence;
	uint8_t outer_version; // 4 or 6; outer addresses are still in the packet before l3
	uint16_t outer_l3; // offset of the outer IP header
	uint16_t gtpu; // offset of the GTP-U header
	uint16_t local; // path_local_id() of the outer destination
	uint8_t more; // GTPU_MORE, GTPU_ENDPOINT (wire/gtpu.h)
	uint8_t pdu_type; // enum api_pdu_type of the container that came
	uint32_t permitted; // acl_permission() of firewall-downlink; 0: no list
};
PACKET_VIEW(tunnel_view)

// Valid to port-tx. Written by the nodes that choose the rule: session-uplink, session-downlink, session-tunnel and
// session-ue. Also by ip-input, without a rule, for packets of no session, and by nodes that make, copy or answer a
// packet.
struct session_view {
	// Decision for this packet; RCU-safe until the end of this graph walk, except in the scheduler
	struct rule *rule;
	uint32_t next_hop; // written by ip-output
	union {
		uint32_t pipe; // scheduler place, lib/hqos
		uint32_t inside; // original source of a packet that NAT44 translated without a port
	};
	uint8_t qfi;
	uint8_t uplink;
	uint8_t dscp; // of the IP header at l3
	uint8_t pdu_type; // enum api_pdu_type of the container that came; API_PDU_NONE: none, the rule's
	// Bytes of the received GTP-U header, which still ends at l3, for gtpu-encap; 0: nothing to pass on
	uint16_t relayed;
	uint16_t front; // of a rule with RULE_SLOW_PATH: bytes in front of l3 that came with the packet, for mirrors
};
PACKET_VIEW(session_view)

// The arcs "uplink" and "downlink", between session and encapsulation: their stages have a session_view. They lead on
// by the edges 0 to 3, SESSION_EXITS(arc), of which session_exit() is the packet's.
#define SESSION_EXIT_COUNT 4
#define SESSION_EXITS(arc) "@" arc, "@" arc, "@" arc, "@" arc
static inline uint16_t session_exit(struct rte_mbuf *m)
{
	return session_view_of(m)->rule->outer; // enum api_outer
}

#endif
