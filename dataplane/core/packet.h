// SPDX-License-Identifier: Apache-2.0
// Packet metadata: 64 bytes in the mbuf's private area, one cache line, always right behind struct rte_mbuf.
//
// The head lives from port-rx to port-tx. The view area holds one of the typed views below; each view says which node
// writes it and until where it is valid. A packet belongs to one worker (or the control thread) at a time.
#ifndef CORE_PACKET_H
#define CORE_PACKET_H

#include <assert.h>
#include <rte_mbuf.h>
#include <stdint.h>

#define PACKET_PRIVATE 64
#define PACKET_VIEW_SIZE 32
#define PORT_NONE UINT16_MAX
#define PACKET_HOPS 4 // most times that a packet goes back into the graph (packet.hops)
#define RESUME_PUNTED UINT16_MAX // packet.resume of a packet that the control thread holds and that counts as punted

struct packet {
	uint16_t port_in; // index of struct port; written by port-rx, PORT_NONE when originated here
	uint16_t port_out; // written by the node that chose the way out; read by port-tx
	uint16_t l3; // offset from data start of the IP header under work (nodes that move data keep it right)
	uint16_t l4; // offset of its transport header; valid when ip_version != 0
	uint16_t reason; // id of a drop or punt reason, written just before the edge to drop or punt
	uint16_t resume; // edge of handover-rx that a handed-over packet takes on its new worker
	uint8_t ip_version; // of the header at l3: 4, 6, or 0 when not known
	uint8_t protocol; // transport protocol (after IPv6 extension headers)
	uint8_t fragment; // 1: not a first fragment, so no transport header
	uint8_t qos_class; // class << 2 | queue for the scheduler
	uint32_t length; // bytes of the IP packet at l3, as its header says (checked against the frame)
	uint32_t interface; // index of struct interface it came in on, or UINT32_MAX
	uint16_t
		instance; // index of struct instance; written by core-input, gtpu-input, ip-input and ip-forward on their way to a session
	uint8_t hops; // times it went from ip-output or ip-forward back into the graph; 0 from port-rx
	uint8_t pad[5];
	uint8_t view[PACKET_VIEW_SIZE] __attribute__((aligned(8)));
};

static_assert(sizeof(struct packet) == PACKET_PRIVATE, "packet metadata is one cache line");

static inline struct packet *packet_of(struct rte_mbuf *m)
{
	return (struct packet *)(m + 1);
}

static inline const struct rte_mbuf *packet_mbuf(const struct packet *pkt)
{
	return (const struct rte_mbuf *)(const void *)pkt - 1;
}

// Declares `static inline struct NAME *NAME_of(struct rte_mbuf *)` over the view area.
#define PACKET_VIEW(name)                                                                                              \
	static_assert(sizeof(struct name) <= PACKET_VIEW_SIZE, #name " fits the view area");                           \
	static inline struct name *name##_of(struct rte_mbuf *m)                                                       \
	{                                                                                                              \
		return (struct name *)packet_of(m)->view;                                                              \
	}

// Written by access-input; valid until session-uplink (or punt, arp, pppoe nodes).
struct endpoint_view {
	uint16_t l2_length; // bytes before the IP header (or before the control payload)
	uint16_t ethertype; // innermost, host order
	uint16_t s_tag, c_tag; // VLAN ids, 0 when absent
	uint16_t outer_tpid; // host order, 0 when untagged
	uint16_t pppoe_session;
	uint8_t encap; // enum api_encap
	uint8_t tags;
};
PACKET_VIEW(endpoint_view)

// Written by gtpu-input, or core-input for plain G-PDUs; valid until session-downlink, session-tunnel (or gtpu-control).
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
	uint16_t local; // gtpu_local_id() of the outer destination
	uint8_t more; // GTPU_MORE, GTPU_ENDPOINT (wire/gtpu.h)
	uint8_t pdu_type; // enum api_pdu_type of the container that came
};
PACKET_VIEW(tunnel_view)

struct rule;

// Written by session-uplink, session-downlink, session-tunnel and session-ue, which choose the rule; by ip-input
// without a rule, for packets of no session; by whoever makes, copies or answers a packet. Valid to port-tx.
struct session_view {
	struct rule
		*rule; // decision for this packet; RCU-safe until the end of this graph walk, except in the scheduler
	uint32_t next_hop; // written by ip-output
	uint32_t pipe; // scheduler place, lib/hqos
	uint8_t qfi;
	uint8_t uplink;
	uint8_t dscp; // of the IP header at l3
	uint8_t pdu_type; // enum api_pdu_type of the container that came; API_PDU_NONE: none, the rule's
	uint16_t
		relayed; // bytes of the GTP-U header that came and still ends at l3, for gtpu-encap; 0: nothing to pass on
};
PACKET_VIEW(session_view)

#endif
