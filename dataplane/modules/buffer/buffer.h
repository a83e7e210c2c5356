// SPDX-License-Identifier: Apache-2.0
// Downlink packets that wait for an idle UE (TS 29.244 §5.2.4), as the session module and `show` see them.
//
// Packets of a rule with RULE_BUFFER or RULE_HELD, and those of a rule that drops with RULE_NOTIFY, go to node `buffer`, with
// session_view set and the IP header at l3 = 0. What waits belongs to the session (its index) and remembers its PDR id.
#ifndef BUFFER_BUFFER_H
#define BUFFER_BUFFER_H

#include <stdint.h>

// A new version of the session has been in force for a grace period: its worker passes on, keeps or frees what waits, each
// packet as the FAR of its PDR now says; and the control plane will be told of the next packet that waits. To be called from
// release() when the old or the new version has a rule with RULE_BUFFER, RULE_HELD or RULE_NOTIFY. `worker` is the old one.
void buffer_session_changed(uint32_t session, uint32_t worker);
// The session is gone, since a grace period: what waits is freed, and is never the next session's with this index. From release(),
// before the index is given back, for every session: one may still have packets of an earlier version that waited.
void buffer_session_removed(uint32_t session);
// Packets of the session that wait now. Control thread.
uint32_t buffer_waiting(uint32_t session);

#endif
