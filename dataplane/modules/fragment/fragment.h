// SPDX-License-Identifier: Apache-2.0
// Shared by the nodes of this module.
#ifndef FRAGMENT_FRAGMENT_H
#define FRAGMENT_FRAGMENT_H

#include <rte_mbuf.h>

// Cuts off what follows byte `end` of the packet (Ethernet padding). 0 when it is more than the last segment holds.
static inline int fragment_trim(struct rte_mbuf *m, uint32_t end)
{
	uint32_t excess = rte_pktmbuf_pkt_len(m) - end;

	return excess == 0 || (excess <= UINT16_MAX && rte_pktmbuf_trim(m, (uint16_t)excess) == 0);
}

#endif
