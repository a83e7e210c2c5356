// SPDX-License-Identifier: Apache-2.0
// Which rule of a key a packet belongs to, and why it is dropped when it may not pass.
#ifndef SESSION_MATCH_H
#define SESSION_MATCH_H

#include "core/node.h"
#include "rule/tables.h"
#include "rule/view.h"

// 1 when the address is the UE's by the rule's PDR (its IPv4 address, its IPv6 prefix, a framed route).
int rule_has_address(const struct rule *r, uint8_t version, const uint8_t *address);
// The same for the single PDR of a key; the ordinary case inline. `ue`: the UE's address in the packet.
static inline int rule_ue_matches(const struct rule *r, uint8_t version, const uint8_t *ue)
{
	if (likely(version == 4)) {
		uint32_t address;

		memcpy(&address, ue, 4);
		if (likely(!(r->flags & RULE_UE4) || address == r->up.ue4))
			return 1;
	} else {
		if (!(r->flags & RULE_UE6))
			return 1;
		if (likely(rule_ue6_matches(r, ue)))
			return 1;
	}
	return (r->flags & RULE_FRAMED) && rule_has_address(r, version, ue);
}

// Fields in front of a packet that PDRs match.
struct front {
	uint8_t qfi; // 0xff: none
	uint8_t s_pcp, c_pcp; // bit p: the VLAN tag's priority code point is p; 0: no tag
};

// The first rule of the chain that the packet matches, or NULL; *spoofed is then 1 when only the UE's address was
// wrong. `ip` is its IP header (l3 and l4 of pkt are valid).
struct rule *rule_classify(
	struct rule *first, const struct packet *pkt, const uint8_t *ip, struct front front, int *spoofed);

// Drop reasons for a packet whose session is known (reasons.c).
enum session_why {
	WHY_NO_PDR,
	WHY_GATE,
	WHY_FAR,
	WHY_SPOOFED,
	WHY_GATEWAY,
	WHY_GTPU,
	WHY_SUBSCRIBER_FLOWS,
	WHY_WORKER_FLOWS,
	WHY_COUNT
};
const struct reason *session_reason(enum session_why why, int uplink);

#endif
