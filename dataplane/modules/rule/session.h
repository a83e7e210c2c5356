// SPDX-License-Identifier: Apache-2.0
// Look-ups of a session's rules, for packets and for modules that keep a session's index, a PDR's id or an F-TEID.
#ifndef RULE_SESSION_H
#define RULE_SESSION_H

#include "isthmus_api.h"
#include <stddef.h>
#include <stdint.h>

struct reason;
struct rte_mbuf;
struct rule;
struct session;
struct endpoint_view;
// 1 when a session has this traffic endpoint (port, tags, PPPoE id, MAC). Any worker, within a walk.
int session_endpoint_known(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6]);
// The downlink rule of the session at this traffic endpoint, or NULL: the encapsulation for packets sent back to it.
const struct rule *session_endpoint_downlink(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6]);
// 1 when that session's UE addresses or framed routes include this one (family 4 or 6, bytes in network order).
int session_owns_address(
	uint16_t port, const struct endpoint_view *e, const uint8_t mac[6], uint8_t family, const uint8_t *address);
// The uplink rule of an endpoint, or NULL.
struct rule *session_endpoint_rule(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6]);

// The rule in force of a session's PDR (its id), or NULL. Workers, within a walk; the control thread.
struct rule *session_rule(uint32_t session, uint16_t pdr);
// The i-th rule in force of a session, or NULL behind the last one.
struct rule *session_rule_at(uint32_t session, uint16_t i);
// api_session.discard in force: packets that waited under another number are dropped. Workers, within a walk.
uint16_t session_discard(uint32_t session);
// The first rule of the longest session prefix with this UE address in the instance, or NULL. Any worker, within a
// walk. `absent`: a key that the caller did not find; 0: none.
const struct rule *session_ue_rule_beside(uint64_t absent, uint16_t instance, uint8_t family, const uint8_t *address);
static inline const struct rule *session_ue_rule(uint16_t instance, uint8_t family, const uint8_t *address)
{
	return session_ue_rule_beside(0, instance, family, address);
}
static inline int session_ue_known(uint16_t instance, uint8_t family, const uint8_t *address)
{
	return session_ue_rule_beside(0, instance, family, address) != NULL;
}
// The same of a wireline subscriber's address. Quick where the instance has none of them.
int session_home_known(uint16_t instance, uint8_t family, const uint8_t *address);
uint32_t session_association(uint32_t session); // api_session.association. Workers, within a walk.
uint16_t session_mss(uint32_t session); // api_session.mss. Workers, within a walk.
// First rule of the chain of an F-TEID, or NULL. Workers, within a walk.
struct rule *session_fteid_rule(uint32_t teid, uint16_t local);
// Row G13: the drop reason of a tunnel packet whose source is not the address to which the session's own packets go, if
// its policy checks that; else NULL. Workers, within a walk.
const struct reason *session_stranger(struct rte_mbuf *m, const struct rule *r);
// 1 when the session has a UE address in the prefix (family 0: any), and sends to the network instance (its index;
// UINT16_MAX: any) or has a UE address there. Control thread.
int session_chosen(const struct session *s, const struct api_address *ue, uint16_t instance);
// The session that has this index. Returns 1, or 0 when it is free. Control thread.
int session_identity(uint32_t session, char name[API_NAME], uint64_t *seid);

#endif
