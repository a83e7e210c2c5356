// SPDX-License-Identifier: Apache-2.0
// A rule's treatment of packets, compiled once (session/far.c). Module forward, the full nodes and the fast path carry
// it out; offload translates it to rte_flow. The rule has it, and its state a copy.
#ifndef RULE_ACTION_H
#define RULE_ACTION_H

#include <assert.h>
#include <stdint.h>

#define ACTION_TUNNEL 1u // a GTP-U header on `path` goes in front
#define ACTION_UPLINK 2u
#define ACTION_POLICED 4u // by the meter of the rule's state
#define ACTION_UE4 8u // the UE's address is rule_state.ue4
#define ACTION_UE6 16u // the UE's prefix is the rule's
// Of a tunnel.
#define ACTION_WITHOUT_CONTAINER 32u // removes the received container (TS 29.244 §8.2.64)
#define ACTION_PDU_SHIFT 6 // enum api_pdu_type of the container that we make
// Of all else.
#define ACTION_SUBSCRIBER 64u // the rule's access header goes in front; without it, the packet is routed
#define ACTION_HOME 128u // of a wireline subscriber: IPv6 is counted apart

#define ACTION_NO_DSCP 0x7fu // action.dscp: the path's, else the instance's
#define ACTION_NO_QFI 0xffu // action.qfi: no QER sets one

struct action {
	uint32_t teid; // of a tunnel, host order
	uint32_t policer : 21; // index of the profile
	uint32_t dscp : 7; // Transport Level Marking (TS 29.244 §8.2.12)
	uint32_t rqi : 1; // reflective QoS indicator of a downlink container
	uint32_t further : 1; // there are meters beside the state's
	uint32_t : 2; // 0 (RULE_STATE_FULL, RULE_STATE_LOOK)
	union {
		uint16_t path; // with a header of GTP-U or UDP
		uint16_t instance; // without
	};
	uint8_t qfi; // of the container; scheduler class
	uint8_t flags; // ACTION_*
};
static_assert(sizeof(struct action) == 12, "with it a rule and its state are a cache line each");

// 1 when IPv6 is counted apart.
static inline int action_counts6(const struct action *a)
{
	return (a->flags & (ACTION_HOME | ACTION_TUNNEL)) == ACTION_HOME;
}

static inline int action_to_subscriber(const struct action *a)
{
	return (a->flags & (ACTION_SUBSCRIBER | ACTION_TUNNEL)) == ACTION_SUBSCRIBER;
}

// Into a tunnel, without a container.
static inline struct action action_tunnel(uint16_t path, uint32_t teid, uint8_t dscp)
{
	return (struct action){.teid = teid,
		.dscp = dscp & ACTION_NO_DSCP,
		.path = path,
		.qfi = ACTION_NO_QFI,
		.flags = ACTION_TUNNEL | ACTION_WITHOUT_CONTAINER};
}

#endif
