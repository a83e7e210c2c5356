// SPDX-License-Identifier: Apache-2.0
// Arrays of packets that are sent one behind the other.
#ifndef SHARE_BURST_H
#define SHARE_BURST_H

#include <rte_mbuf.h>
#include <string.h>

// Moves the first of n, which cannot be sent, behind the others, which keep their order.
static inline void burst_put_off(struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *first = pkts[0];

	memmove(pkts, pkts + 1, (n - 1u) * sizeof(*pkts));
	pkts[n - 1] = first;
}

#endif
