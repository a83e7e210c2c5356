// SPDX-License-Identifier: Apache-2.0
// The fast path of sessions: a rule's meaning for a plain packet is in its state, one line found by the packet's key.
// Only session nodes make an entry, from a rule that a packet has just passed (rule/engine.h); flow-input uses it.
//
//   written by: the owner worker; the control thread removes an entry (forget()); another worker corrects the hint
//               that led to it in vain, if it is still there.
//
//   safe because: the control thread retires the rule, then removes the key; a worker stores the key, then checks that
//                 the rule is not retired. So when the transaction's grace period begins, no entry leads to a retired
//                 rule
#ifndef FLOW_FLOW_H
#define FLOW_FLOW_H

#include "core/worker.h"
#include "route/route.h"
#include "rule/tables.h"
#include "wire/cache_line.h"

// Allowed flags of a rule: all else takes the full nodes.
#define FLOW_RULE_FLAGS                                                                                                \
	(RULE_FORWARD | RULE_UE4 | RULE_UE6 | RULE_UPLINK | RULE_NOTIFY | RULE_FURTHER_METERS | RULE_SEVERAL_PDRS)

// In the index, instead of a state: the key has several PDRs, and the packet's 5-tuple decides; flow_elsewhere(): the
// key's session is on another worker.
#define FLOW_SEVERAL 0x80000000u
#define FLOW_ELSEWHERE 0x40000000u

// Where the entry of a key may be, by the low bits of a TEID or IPv4 address. Those of one tunnel endpoint or pool are
// dense, so few keys collide; different endpoints and pools are kept apart. The state of a key's rule is stored at that
// place of the pool, if it was free (flow_place()). A worker prefetches it there at once while this holds for nearly
// all keys of an endpoint or instance; else it asks the index first.
struct flow_index {
	// Index of rule_state, of the key's first rule with FLOW_SEVERAL; its worker's
	uint32_t *state[API_MAX_WORKERS];
	uint32_t mask;
	uint32_t place_mask; // of the pool of states
	uint32_t offset[256]; // by local id of the endpoint, or instance
	uint32_t place[2][256]; // offset of places: of a tunnel or not, and the same
	uint8_t is_used[API_MAX_WORKERS]; // the worker had an entry
	// Habits of nearly all keys of an endpoint or instance, above 0: states at their own places; several PDRs. Of
	// F-TEIDs and IPv4 addresses, by worker, tunnel or not, and local id or instance. Written by its worker.
	struct flow_habits {
		int16_t in_place[2][256], several[2][256];
	} cache_aligned habits[API_MAX_WORKERS];
};
extern struct flow_index flow_index;
#define FLOW_HABIT_MOST 256
#define FLOW_HABIT_BREACH 2 // a key without it outweighs so many with it

// Counts of routed packets without a session: a worker's, by VRF. Has a key once the full nodes have routed a packet of
// the VRF.
struct flow_routes {
	struct rule_state of_vrf[MAX_VRFS];
};
extern struct flow_routes flow_routed[API_MAX_WORKERS];
#define FLOW_ROUTED 1u

static inline void flow_learn_routed(const struct worker *w, uint8_t vrf)
{
	flow_routed[w->id].of_vrf[vrf].key = FLOW_ROUTED;
	flow_index.is_used[w->id] = 1;
}

#define FLOW_KIND(key) ((key) & (3ull << 62))

// Of the endpoint or instance in a key.
static inline uint32_t flow_id(uint64_t key)
{
	return (FLOW_KIND(key) == KEY_FTEID ? key >> 32 : key >> 48) & 0xff;
}

static inline uint32_t flow_offset(uint64_t key)
{
	return flow_index.offset[flow_id(key)];
}

// `index`: flow_index.state of the worker. `low`: the TEID, or of a UE's key the low half, in host order.
static __rte_always_inline uint32_t *flow_slot_in(uint32_t *index, uint32_t low, uint32_t offset, int tunnel)
{
	return &index[((low + offset) << 1 | (uint32_t)tunnel) & flow_index.mask];
}

static inline uint32_t flow_low(uint64_t key)
{
	return FLOW_KIND(key) == KEY_UE4 ? rte_be_to_cpu_32((uint32_t)key) : (uint32_t)key; // as on the wire
}

static inline uint32_t *flow_slot(const struct worker *w, uint64_t key)
{
	return flow_slot_in(flow_index.state[w->id], flow_low(key), flow_offset(key), FLOW_KIND(key) == KEY_FTEID);
}

static __rte_always_inline uint32_t flow_place_in(uint32_t low, uint32_t offset)
{
	return (low + offset) & flow_index.place_mask;
}

// Place in walk.full of a session's state: neighbours are apart.
static __rte_always_inline uint8_t order_of_state(const struct rule_state *s)
{
	return (uint8_t)((uintptr_t)s / sizeof(*s) % ORDERS);
}

static inline uint32_t flow_place_offset(uint64_t key)
{
	return flow_index.place[FLOW_KIND(key) == KEY_FTEID][flow_id(key)];
}

// Index of the state that packets with the key look at first. Any thread.
static inline uint32_t flow_place(uint64_t key)
{
	return flow_place_in(flow_low(key), flow_place_offset(key));
}

// `id`: of the endpoint, with `tunnel`, or of the instance.
static inline int16_t *flow_in_place(const struct worker *w, int tunnel, uint32_t id)
{
	return &flow_index.habits[w->id].in_place[tunnel][id & 0xff];
}

static inline int16_t *flow_several(const struct worker *w, int tunnel, uint32_t id)
{
	return &flow_index.habits[w->id].several[tunnel][id & 0xff];
}

static_assert(API_MAX_WORKERS <= 64, "a worker's number is 6 bits of a word, its check 24");
// The index's word of a key whose session is on `worker`. A hint: packets of another key with this word take the full
// nodes there, which find the right worker. `key`: flow_entry_key() of the worker that looks.
static inline uint32_t flow_elsewhere(uint64_t key, uint32_t worker)
{
	return FLOW_ELSEWHERE | (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40) << 6 | worker;
}

// The worker, or UINT32_MAX.
static inline uint32_t flow_owner(uint32_t word, uint64_t key)
{
	uint32_t worker = word & 63;

	return word == flow_elsewhere(key, worker) ? worker : UINT32_MAX;
}

// Packets with the key go there at once from now on. Owner worker of the index, within a walk.
void flow_note_owner(struct worker *w, uint64_t key, uint32_t owner);
// Worker `asked` followed a wrong hint to `wrong`, the calling worker, which knows the owner. `key`: of `asked`.
void flow_correct_owner(const struct worker *asked, uint64_t key, uint32_t wrong, uint32_t owner);

// 1 when 5-tuples distinguish the PDRs of a key, whose first rule this is.
static inline int flow_has_tuples(const struct rule *first)
{
	return (first->flags & RULE_SEVERAL_PDRS) && first->chain == 0;
}

// 1 when packets to the UE's addresses, whose first rule this is, go to a traffic endpoint: a wireline subscriber with
// an IP core side. They are found by 5-tuple, for an address in any of its prefixes.
static inline int flow_is_home(const struct rule *first)
{
	return first->outer == API_OUTER_ENDPOINT;
}

// 1 when key, 5-tuple or per-packet checks decide about the rule's packets. `first`: the key's, another rule only where
// flows are kept of the key. `tuple`: packets are found by 5-tuple alone, so framed routes do not matter.
static inline int flow_may_learn(const struct rule *first, const struct rule *r, int tuple)
{
	uint16_t most = FLOW_RULE_FLAGS | (tuple ? RULE_FRAMED : 0);

	return (r->flags & (uint16_t)(~most | RULE_FORWARD)) == RULE_FORWARD && !(first->chain & CHAIN_PER_PACKET);
}

struct tuple;
// Keeps that a 5-tuple leads to the rule; without `plain`, for the full nodes alone. `key`, `hash`, `permitted`:
// flow/tuple.h.
// Owner worker, within a walk.
void flow_keep(
	struct worker *w, const struct tuple *key, uint32_t hash, const struct rule *r, uint32_t permitted, int plain);
// 1 when the fast path has the rule's way out; `tuple`: of a wireline subscriber's packets.
int flow_may_pass(const struct rule *r, int tuple);

#endif
