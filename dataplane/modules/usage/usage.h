// SPDX-License-Identifier: Apache-2.0
// Usage reporting rules (URR, TS 29.244 §5.2.2): the workers' counts, and the session module's interface.
//
// Hot: one line of 64 bytes per URR. A mark is a count at which the worker looks at the cold part (usage_limits):
// thresholds, quotas, notices for the control thread. Below all marks a packet costs an addition.
//   Written by: the owner worker (counts, marks, last); the control thread (limits; marks to 0: "look again").
//   Safe because: usage_limits.version rises with each change; a worker that moved a mark checks it again afterwards
#ifndef USAGE_USAGE_H
#define USAGE_USAGE_H

#include "core/packet.h"
#include "core/worker.h"
#include "isthmus_api.h"
#include "rule/rule.h"
#include "wire/cache_line.h"
#include <assert.h>
#include <rte_prefetch.h>

struct usage_state {
	uint64_t bytes[2], packets[2]; // uplink, downlink; since the state was taken
	uint64_t mark[3]; // total, uplink, downlink (API_TOTAL, ...) bytes at which usage_slow() decides; 0: at once
	uint64_t last; // worker.now of the last packet counted; 0: none
} cache_aligned;
static_assert(sizeof(struct usage_state) == 64, "a URR's counts are one cache line");

struct usage_pools {
	struct usage_state *state;
	uint32_t states; // capacity
};
extern struct usage_pools usage_pools; // set once at start, read by all

// ---- workers --------------------------------------------------------------------------------------------------------

int usage_slow(struct worker *w, uint32_t index, uint32_t length, int uplink);

// The first half of counting a packet of `length` bytes for a URR: the direction's bytes with it, when that stays below
// all marks. Else 0: the packet may reach a mark.
static __rte_always_inline uint64_t usage_look(const struct usage_state *u, uint32_t length, int uplink)
{
	uint64_t total = u->bytes[0] + u->bytes[1] + length, after = u->bytes[!uplink] + length;

	return likely(total < u->mark[API_TOTAL] && after < u->mark[API_UPLINK + !uplink]) ? after : 0;
}

// The second half. `after`: usage_look().
static __rte_always_inline void usage_note(struct worker *w, struct usage_state *u, uint64_t after, int uplink)
{
	u->bytes[!uplink] = after;
	u->packets[!uplink]++;
	u->last = w->now;
}

// Counts a packet of `length` bytes for a URR (an index, not RULE_NONE). Returns 1 when it may pass; 0: a quota is used
// up, the packet is not counted and is to be dropped (TS 29.244 §5.2.2.2). The owner of the session, within a walk.
static __rte_always_inline int usage_count(struct worker *w, uint32_t index, uint32_t length, int uplink)
{
	struct usage_state *u = &usage_pools.state[index];
	uint64_t after = usage_look(u, length, uplink);

	if (unlikely(after == 0))
		return usage_slow(w, index, length, uplink);
	usage_note(w, u, after, uplink);
	return 1;
}

// ---- credits (credit.c) ---------------------------------------------------------------------------------------------

// More credit for the rule's state, at least `length` bytes. 0: the full nodes decide about the packet. Owner worker,
// within a walk; the rule's entry leads to it.
int usage_borrow(const struct rule *r, uint32_t length, int uplink);
// 1 when the state's loan is of the rule's own URRs: else it gets no entry.
int usage_has_loan_of(const struct rule *r);
// A packet in the full nodes that nothing drops: 1 when the rule's state has credit for it, of the rule's own URRs.
// Then none of them has a mark at it, nor a quota that is used up, and usage_pay() counts it for all, before QoS or
// not, and for the rule. Owner worker.
int usage_may_pay(const struct rule *r, uint32_t length, int uplink);
void usage_pay(struct worker *w, const struct rule *r, uint32_t length, uint8_t version);
// 0: nothing of the URR is on loan.
static inline int usage_is_lent(uint32_t index)
{
	return usage_pools.state[index].mark[API_TOTAL] == 0;
}
// Owner worker: nothing of the URR is on loan behind this, and all is counted.
void usage_recall(uint32_t index);
// Control thread, after the grace period of a rule: returns the state's loan to its URR. No rule in force has the loan.
void usage_return(const struct rule *r);

// Prefetches the policer nodes' lines; called by session nodes once the rule is found.
static inline void usage_prefetch(const struct rule *r)
{
	rte_prefetch0(&session_pools.state[r->state]);
	rte_prefetch0(&session_pools.account[r->state]);
	rte_prefetch0(&session_pools.account[r->state].uplink);
	if (r->urr != RULE_NONE)
		rte_prefetch0(&usage_pools.state[r->urr]);
}

// For a packet of several URRs: ask all of them, then count for all of them.
int usage_blocked(uint32_t index); // 1: a quota is used up
void usage_add(struct worker *w, uint32_t index, uint32_t length, int uplink); // counts, whatever the quotas
int usage_measures_before_qos(uint32_t index);
// The same for all URRs of a rule. One used-up quota stops the packet for all, and none counts it.
int usage_rule_blocked(const struct rule *r);
// `before_qos`: those with MBQE, or the others.
void usage_rule_add(struct worker *w, const struct rule *r, uint32_t length, int uplink, int before_qos);
const struct reason *usage_quota_reason(void); // why a packet is dropped that a quota stops

// Session nodes call it for a packet dropped by a closed gate: URRs that measure before QoS enforcement (MBQE) count
// it. (The policer nodes do so for policers' drops.)
void usage_before_qos(struct worker *w, const struct rule *r, uint32_t length);
// Packets dropped by the rule's gate, FAR, meters or buffer: counted for `show`, and downlink ones for DROTH's
// threshold. A worker; if not the owner (a buffer that the session left), it counts for the threshold alone.
void usage_dropped(const struct rule *r, uint32_t packets, uint64_t bytes);

// ---- sessions (control thread)  -------------------------------------------------------------------------------------
// A set is the URRs of one version of a session. Stage: usage_stage, and the rules' indices by usage_index; commit:
// usage_commit. Release, after the grace period: usage_release; discard: usage_discard. A URR (by its id) moves from
// the old set to the new one; if it is not there, it makes its final report at usage_release (TERMR).
struct usage_set;

struct usage_session {
	const char *name; // key of the session object
	uint64_t seid;
	uint32_t index; // of the session; for usage_activity_register
	uint32_t inactivity; // api_session.inactivity
	uint8_t worker;
};

// Returns 0, or a positive errno after object_error(). `old` may be NULL; a session without URRs and inactivity gets
// *to = NULL.
int usage_stage(struct usage_set **to, const struct usage_set *old, const struct usage_session *session,
	const struct api_urr *urr, uint16_t urrs);
// Index of a URR of the set for rule.urr and rule_further.urr; RULE_NONE: not there, or INAM (no measurement).
uint32_t usage_index(const struct usage_set *set, uint32_t urr);
// 1: before QoS enforcement: such a URR must be among rule_further.urr (RULE_FURTHER_METERS), never rule.urr.
int usage_is_before_qos(const struct usage_set *set, uint32_t urr);
// 1: a quota of one of the rule's URRs is used up, so that nothing passes.
int usage_rule_out(const struct rule *r);
// 1: of IPv6 alone. It is rule_match.urr6 of its rules, and among no others.
int usage_is_of_ip6(const struct usage_set *set, uint32_t urr);
// The IPv6 counts of the rule's state move: no longer URR `from` (its index, or RULE_NONE) counts them through a rule
// in force, but URR `to`, which begins with nothing. Control thread.
void usage_counts6_move(uint32_t from, uint32_t to, const struct rule *r);
void usage_discard(struct usage_set *staged);
// Either may be NULL: no URRs, or the session is deleted. Before its rules are published.
void usage_commit(struct usage_set *set, struct usage_set *old);
// After the grace period: final and queried reports (event_commit_usage). Frees old.
void usage_release(struct usage_set *set, struct usage_set *old);

// Quota FAR (api_urr.quota_far). 1 while the URR's quota is used up and it has a quota FAR: its PDRs then follow that
// FAR, and their rules leave this URR out. Without a quota FAR the rule keeps the URR, and the policer node drops.
//
// The handler is called when that begins and ends, so that the session module renews the session's rules. It is not
// called within the calls above, which change the session anyway. Packets until then are dropped.
int usage_exhausted(const struct usage_set *set, uint32_t urr);
void usage_quota_register(void (*fn)(uint32_t session)); // its index

// 1 when a device may count for a URR (index) and report now and then: neither packets nor their times trigger an
// action.
int usage_may_count_elsewhere(uint32_t index);
void usage_count_elsewhere(uint32_t index, uint64_t packets, uint64_t bytes, int uplink);
// fn: packets forwarded for a session so far, a number that only rises while the session stays on its worker. Needed
// for api_session.inactivity.
void usage_activity_register(uint64_t (*fn)(uint32_t session));

#endif
