// SPDX-License-Identifier: Apache-2.0
// How nodes ask for an ICMP error: fill in the request, then take the edge to `@error`, which owns the packet. The
// arc's stages restore the packet as sent.
//
// The packet's head must hold l3 (its IP header, which ip_parse() accepted), port_in and interface.
#ifndef ICMP_ICMP_H
#define ICMP_ICMP_H

#include "core/node.h"
#include "rule/view.h"
#include "wire/icmp.h"
#include <stddef.h>

// Written by icmp_error_request(); valid until icmp-error. Begins with the session view, which decides the answer's
// way:
//
//   session.rule == NULL          plain routed packet: back through the routing table.
//   `session.uplink`              from a subscriber: back in that subscriber's access encapsulation.
//   Otherwise                     to a subscriber, so it came through a tunnel: back into that tunnel
struct icmp_view {
	struct session_view session;
	uint32_t mtu; // for too big, else 0
	uint8_t type, code;
};
PACKET_VIEW(icmp_view)
static_assert(offsetof(struct icmp_view, session) == 0, "a session view is also an icmp view's beginning");

// For nodes behind session-uplink, session-downlink or ip-input's forwarding: the session view is valid (rule NULL for
// a plain routed packet). Arguments type and code are of wire/icmp.h, for the IP version at l3.
static inline void icmp_error_request(struct rte_mbuf *m, uint8_t type, uint8_t code, uint32_t mtu)
{
	struct icmp_view *v = icmp_view_of(m);

	v->mtu = mtu;
	v->type = type;
	v->code = code;
}

// The same by problem, for either IP version: packet_of(m)->ip_version is valid.
static inline void icmp_error_request_problem(struct rte_mbuf *m, enum icmp_problem problem, uint32_t mtu)
{
	struct icmp_type t = icmp_type_of(problem, packet_of(m)->ip_version);

	icmp_error_request(m, t.type, t.code, mtu);
}

// Limits of one worker (icmp.c).
struct limiter *icmp_error_limiter(const struct worker *w);
struct limiter *icmp_echo_limiter(const struct worker *w);

#endif
