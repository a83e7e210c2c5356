// SPDX-License-Identifier: Apache-2.0
// Meters, URRs and counters of a packet. The fast path passes a packet that all of them allow unchanged; the policer
// nodes ask here where several meters decide. Owner worker.
#ifndef FORWARD_ACCOUNT_H
#define FORWARD_ACCOUNT_H

#include "core/worker.h"
#include "meter/several.h"
#include "usage/usage.h"

// Applies all meters of a packet's rule. 1: it passes, tokens are taken; *dscp becomes the colour's. 0: nothing changed
// except, with `counts`, the drop count of the shared meter.
int account_meters(const struct rule *r, uint64_t time, uint32_t length, uint8_t *dscp, int counts);

// Of the fast path. Each returns 0 without a change where the full nodes must decide; else the packet whose IP header
// is at `ip` has its colour's DSCP.

// For a packet that is not green, or whose meter is an srTCM or marks green ones.
int account_closely(struct rule_state *s, uint64_t time, uint32_t length, uint8_t version, uint8_t *ip);
// A rule with several meters.
int account_several(const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, uint8_t *ip);
// More credit. A routed packet of no session has all that it wants.
int account_borrow(struct rule_state *s, uint32_t length);

// The state's own meter.
static __rte_always_inline int account_own(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, uint8_t *ip)
{
	const struct policer_profile *p = policer_profile(s->action.policer);

	if (likely(p != NULL && p->quick_pass && meter_green(p, &s->meter, w->now << METER_TIME_SHIFT, length)))
		return 1;
	return account_closely(s, w->now << METER_TIME_SHIFT, length, version, ip);
}

// Meter, URR and counters of a packet that nothing stops.
static __rte_always_inline int account_quick(
	const struct worker *w, struct rule_state *s, uint32_t length, uint8_t version, uint8_t *ip)
{
	if (unlikely((s->bits & RULE_STATE_LOOK) != 0 || s->credit < length) && !account_borrow(s, length))
		return 0;
	if (unlikely(s->bits & RULE_STATE_FURTHER)) {
		if (!account_several(w, s, length, version, ip))
			return 0;
	} else if ((s->action.flags & ACTION_POLICED) && unlikely(!account_own(w, s, length, version, ip))) {
		return 0;
	}
	rule_state_pay(s, w->now, length, version);
	return 1;
}

#endif
