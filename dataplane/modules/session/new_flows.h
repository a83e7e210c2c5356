// SPDX-License-Identifier: Apache-2.0
// Limits of new flows, per subscriber and per worker. First packets take the full nodes; a flood of them is cut before
// it affects known flows and control traffic. Control protocols reach their nodes before the session look-up, so these
// limits do not touch them. The last quarter of both limits is for urgent packets.
#ifndef SESSION_NEW_FLOWS_H
#define SESSION_NEW_FLOWS_H

#include "core/worker.h"
#include "session/match.h"

// Why a packet of this session (its index) may not begin a flow; WHY_COUNT: it may. Owner worker.
enum session_why new_flow_refused(const struct worker *w, uint32_t session, uint8_t dscp);
// It has begun one.
void new_flow_count(const struct worker *w, uint32_t session);

#endif
