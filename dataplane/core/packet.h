// SPDX-License-Identifier: Apache-2.0
// Packet metadata: 64 bytes in the mbuf's private area, one cache line, always right behind struct rte_mbuf.
//
// The head is valid from port-rx to port-tx. The view area holds one of the typed views that modules declare
// (PACKET_VIEW); each names its writer and its lifetime. A packet belongs to one worker (or the control thread) at a
// time.
#ifndef CORE_PACKET_H
#define CORE_PACKET_H

#include <assert.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

#define PACKET_PRIVATE 64
#define PACKET_VIEW_SIZE 32
#define PORT_NONE UINT16_MAX
#define ORDERS 64u // packets are kept in order by so many groups of sessions
#define PACKET_HOPS 4 // most times that a packet goes back into the graph (packet.hops)

// Addresses and ports that the NAT44 or NPTv6 of the packet's `instance` has replaced.
#define PACKET_SOURCE_TRANSLATED 1u
#define PACKET_DESTINATION_TRANSLATED 2u

#define RESUME_PUNTED UINT8_MAX // packet.resume of a packet that the control thread holds and that counts as punted

struct packet {
	uint16_t port_in; // index of struct port; written by port-rx, PORT_NONE when originated here
	uint16_t port_out; // written by the node that chose the way out; read by port-tx
	uint16_t l3; // offset from data start of the IP header under work (nodes that move data keep it right)
	uint16_t l4; // offset of its transport header; valid when ip_version != 0
	// Id of a drop or punt reason, written just before the edge to drop or punt; in an inbox its order
	uint16_t reason;
	uint8_t resume; // edge of handover-rx that a handed-over packet takes on its new worker
	uint8_t ip_version; // of the header at l3: 4, 6, or 0 when not known
	uint8_t protocol; // transport protocol (after IPv6 extension headers)
	uint8_t fragment; // IP_FRAGMENT_* (wire/ip.h) of the packet at l3; 0: whole
	uint16_t trace; // with `traced`: the rest of its number
	uint32_t length; // bytes of the IP packet at l3, by its header (checked against the frame)
	uint32_t interface; // index of struct interface it came in on, or UINT32_MAX
	// The eight bytes that port-rx writes at once.
	uint16_t instance; // index of struct instance, UINT16_MAX: none; written by the nodes that lead to a session
	uint8_t rpf; // API_INTERFACE_RPF_* of its interface; from core-input to ip-input
	uint8_t translated; // PACKET_…_TRANSLATED of the IP header at l3, by `instance`; 0 from port-rx
	uint8_t hops : 3; // times that the routing nodes gave it back to the graph; 0 from port-rx
	uint8_t handed : 1; // handed over unprocessed: its new worker decides; 0 from port-rx
	uint8_t by : 4; // the worker that punted it; with `handed`, that took the other one for the owner
	uint8_t shaped; // 1 + index of the port whose scheduler has a pipe for it (the node that encapsulates); 0: none
	uint8_t vrf; // of its interface, then of the instance or path that it leaves by; 0 from port-rx
	uint8_t traced; // traces that follow it (core/trace.h); 0 from port-rx: none
	uint8_t view[PACKET_VIEW_SIZE] __attribute__((aligned(8)));
};

static_assert(PACKET_HOPS < 7, "packet.hops has three bits");
static_assert(sizeof(struct packet) == PACKET_PRIVATE, "packet metadata is one cache line");

static inline struct packet *packet_of(struct rte_mbuf *m)
{
	return (struct packet *)(m + 1);
}

static inline const struct rte_mbuf *packet_mbuf(const struct packet *pkt)
{
	return (const struct rte_mbuf *)(const void *)pkt - 1;
}

// False when a segment's buffer is another process's (core/port_share.c): a card cannot read it, and
// rte_pktmbuf_attach() must not refer to it.
static inline bool packet_own_buffers(const struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next)
		if (RTE_MBUF_DIRECT(m) && m->buf_addr != rte_mbuf_buf_addr((struct rte_mbuf *)(uintptr_t)m, m->pool))
			return false;
	return true;
}

// Cuts off the bytes behind `end` (Ethernet padding). 0 when the last segment holds fewer.
static inline int packet_trim(struct rte_mbuf *m, uint32_t end)
{
	uint32_t excess = rte_pktmbuf_pkt_len(m) - end;

	return excess == 0 || (excess <= UINT16_MAX && rte_pktmbuf_trim(m, (uint16_t)excess) == 0);
}

// Declares `static inline struct NAME *NAME_of(struct rte_mbuf *)` over the view area.
#define PACKET_VIEW(name)                                                                                              \
	static_assert(sizeof(struct name) <= PACKET_VIEW_SIZE, #name " fits the view area");                           \
	static inline struct name *name##_of(struct rte_mbuf *m)                                                       \
	{                                                                                                              \
		return (struct name *)packet_of(m)->view;                                                              \
	}

#endif
