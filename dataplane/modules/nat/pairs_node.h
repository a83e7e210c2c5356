// SPDX-License-Identifier: Apache-2.0
// Packets of protocols without ports: their pair and their way. The session's worker gives a packet its external
// address; the pair's worker, its next stop, decides whether it may leave.
#ifndef NAT_PAIRS_NODE_H
#define NAT_PAIRS_NODE_H

#include "nat/nat.h"
#include "nat/pairs.h"
#include "nat/translate.h"

struct pair_packet {
	struct pair_key key; // `outside`: our side's address, as it is in the packet
	uint32_t id;
};

enum pair_step {
	PAIR_GOES_ON,
	PAIR_GOES_AWAY, // to the pair's worker, node nat-pairs
	PAIR_REFUSED, // packet.reason says why
};

// Of a NAT_OTHER. PAIR_NONE: it is of no protocol that the instance translates.
enum pair_kind pair_read(
	struct pair_packet *q, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p, int out);
// A packet of the slot's subscriber, or its ICMP error about the remote's packet. Worker of the session.
enum pair_step pair_out(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p,
	struct pair_packet *q, uint32_t slot, uint16_t instance);
// A packet from the remote, or an ICMP error, of any sender, about a packet to it. Worker of the key.
enum pair_step pair_in(struct worker *w, const struct nat *n, struct rte_mbuf *m, const struct nat_packet *p,
	const struct pair_packet *q);

#endif
