// SPDX-License-Identifier: Apache-2.0
// Rare parts of FARs, compiled: buffering limits (BAR), duplication and redirection (TS 29.244 §7.5.2.3, §7.5.2.6).
//
// Made by the control thread before the rule can be found, read-only afterwards, freed after a grace period.
#ifndef RULE_FAR_MORE_H
#define RULE_FAR_MORE_H

#include "isthmus_api.h"
#include "rule/rule.h"

struct far_more {
	uint32_t buffer_ms; // longest wait; 0: no end
	uint16_t buffer_packets; // 0: BUFFER_PACKETS
	uint16_t notify_delay; // milliseconds
	uint8_t duplicate; // the FAR has DUPL
	uint8_t duplicate_outer; // enum api_outer: GTPU, or NONE
	struct action copy; // with GTPU
	uint8_t redirect; // enum api_redirect
	uint8_t leads_back; // the FAR itself leads to the access side: answers of a redirection go by it
	uint16_t location_length; // of a URL
	char location[]; // not terminated
};

// NULL: the rule's FAR has none.
static inline const struct far_more *far_more_of(const struct rule *r)
{
	return session_pools.match[rule_index(r)].more;
}

#endif
