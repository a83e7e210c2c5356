// SPDX-License-Identifier: Apache-2.0
// A packet to a subscriber, by the access header of its downlink rule: in access-encap, the fast path, and devices.
#ifndef FORWARD_SUBSCRIBER_H
#define FORWARD_SUBSCRIBER_H

#include "core/port.h"
#include "rule/endpoint.h"

enum subscriber_result { SUBSCRIBER_TAKES, SUBSCRIBER_TOO_LONG, SUBSCRIBER_NO_PORT, SUBSCRIBER_NO_ROOM };

// Of an IP packet of `length` bytes, with `room` bytes in front of it. `p`: the rule's port. Touches nothing.
static __rte_always_inline enum subscriber_result subscriber_takes(
	const struct rule *r, const struct port *p, uint32_t length, uint32_t room)
{
	if (unlikely(length > r->mru))
		return SUBSCRIBER_TOO_LONG;
	if (unlikely(p == NULL))
		return SUBSCRIBER_NO_PORT;
	return unlikely(room < ENDPOINT_HEADER_MAX) ? SUBSCRIBER_NO_ROOM : SUBSCRIBER_TAKES;
}

#endif
