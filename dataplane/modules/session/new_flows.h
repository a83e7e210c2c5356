// SPDX-License-Identifier: Apache-2.0
// Limits of new flows, for each subscriber and for each worker: a flood of first packets, which take the full
// nodes, is cut before it takes what known flows and control traffic need. Control protocols come to their nodes
// before a session is looked up, so no limit is theirs; the last quarter of both limits is for urgent packets.
#ifndef SESSION_NEW_FLOWS_H
#define SESSION_NEW_FLOWS_H

#include "core/worker.h"
#include "session/match.h"

// Why a packet of this session (its index) may not begin a flow; WHY_COUNT: it may. Owner worker.
enum session_why new_flow_refused(const struct worker *w, uint32_t session, uint8_t dscp);
// It has begun one.
void new_flow_count(const struct worker *w, uint32_t session);

#endif
