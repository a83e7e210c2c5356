// SPDX-License-Identifier: Apache-2.0
// Inside of the policer: how its nodes drop.
#ifndef POLICER_POLICER_NODE_H
#define POLICER_POLICER_NODE_H

#include "core/node.h"

// The edge by which a packet leaves that a meter, a quota drops, with its reason. Workers.
rte_edge_t policer_leave(struct rte_mbuf *m, int uplink);
rte_edge_t policer_leave_quota(struct rte_mbuf *m);

#endif
