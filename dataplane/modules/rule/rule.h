// SPDX-License-Identifier: Apache-2.0
// The compiled rule, the fast path's form of a PDR (TS 29.244 words: PDR, FAR, QER, URR).
//
// A rule is one PDR with its FAR and QER folded in: one cold cache line, read by the packet's owner worker. The worker
// writes the rule_state (meter, counters): one more line, which is also the fast path's entry (flow/flow.h). Both are
// in type-stable pools: a flow that outlives its rule still reads a rule, and `generation` shows that it is another.
//   Written by: the control thread (rule), the owner worker (rule_state).
//   Safe because: a rule is filled before it can be found, and reused only after a grace period
#ifndef RULE_RULE_H
#define RULE_RULE_H

#include "isthmus_api.h"
#include "rule/action.h"
#include "wire/cache_line.h"
#include <assert.h>
#include <rte_common.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RULE_FORWARD 1u // FAR: forward (else drop or buffer)
#define RULE_GATE_CLOSED 2u // QER gate of this direction
#define RULE_STAGE 4u // a stage wants its packets: they take the full nodes (rule/wish.h)
#define RULE_SEVERAL_PDRS 8u // the endpoint, F-TEID or UE address has several PDRs: classify by flow
#define RULE_UE4 16u // ue4 is to be checked (uplink) / was matched (downlink)
#define RULE_UE6 32u
#define RULE_FURTHER_METERS 64u // further meters and URRs are in rule_further
#define RULE_UPLINK 128u // counts as uplink: the PDR's source interface is access
#define RULE_BUFFER 256u // FAR: buffer; packets wait in the session's buffer (module buffer)
#define RULE_DRAINING 512u // packets of an earlier buffering may still wait: they go first
#define RULE_DUPLICATE 1024u // FAR, or a mirror: copies go out as well (duplicate/duplicate.c)
#define RULE_REDIRECT 2048u // FAR: redirect information (redirect/redirect.c)
#define RULE_NOTIFY 4096u // FAR: the control plane is notified of the first packet that waits or is dropped
#define RULE_PIN_PEER 8192u // the outer source must be the peer's
#define RULE_FRAMED 16384u // addresses in the session's framed routes are the UE's too
#define RULE_KEEP_OUTER 32768u // no outer header removal
// A packet whose rule has none of these but RULE_FORWARD takes the straight way.
#define RULE_SLOW_PATH                                                                                                 \
	(RULE_GATE_CLOSED | RULE_BUFFER | RULE_DRAINING | RULE_DUPLICATE | RULE_REDIRECT | RULE_PIN_PEER |             \
		RULE_KEEP_OUTER)

#define CHAIN_PER_PACKET                                                                                               \
	1u // some filter looks at what a flow's key does not hold (ToS, SPI, flow label, VLAN priority): no flows
#define CHAIN_ALONE 2u // one PDR without filters: no flows either, its addresses are compared

#define MATCH_PORTS 0x8000u // rule_match.match of a key's first rule: some filter of its chain looks at ports or an SPI
static_assert(API_PDR_FRAMED < MATCH_PORTS, "rule_match.match has room beside the PDR's");

struct far_more;

// What a rule forwarded: packets, and bytes of IP packets.
struct rule_counts {
	uint64_t packets, bytes;
};

struct rule {
	uint32_t generation; // changes whenever this slot gets another meaning
	uint32_t session; // index of struct session
	uint32_t state; // index of rule_state
	uint32_t urr; // index of the first URR's usage_state (usage/usage.h); RULE_NONE: none
	uint16_t flags; // RULE_*
	uint8_t worker; // owner
	uint8_t outer; // enum api_outer
	struct action action;
	uint16_t mru; // downlink: largest IP packet the subscriber takes
	uint8_t no_relay; // the tunnel leads to the CP function or SGi-LAN: nothing goes on of a removed outer header
	uint8_t chain; // of the first rule of a key, with RULE_SEVERAL_PDRS: CHAIN_*
	uint16_t port; // UDP port of the peer, API_OUTER_UDP
	uint16_t instance; // index of the instance that it leaves by; UINT16_MAX: any
	union {
		struct { // the UE's addresses: uplink, and downlink without access encapsulation (RULE_UE4, RULE_UE6)
			uint8_t ue6[16];
			uint32_t ue4; // as on the wire
			uint8_t ue6_prefix; // bits; 0xff: none
			uint8_t shaped; // 1 + index of the port with its pipe (rule_match.pipe); 0: none
		} up;
		struct { // downlink: access encapsulation
			uint8_t mac[6];
			uint16_t s_tag, c_tag, pppoe_session, tpid; // host order
			uint16_t port; // index of the access port
			uint8_t encap; // enum api_encap
			uint8_t pad;
			uint32_t pipe; // scheduler place without class and queue
		} down;
	};
} cache_aligned;
static_assert(sizeof(struct rule) == 64, "a rule is one cache line");

// Two token buckets, each as the time at which it is full: no refill, no remainder. A packet advances the time
// (meter/meter.h). For an srTCM: the excess bucket's, which fills after the committed one.
struct meter {
	uint64_t full[2]; // TSC ticks << METER_TIME_SHIFT
};

// Meter of a PDR, kept from one version of its session to the next. Also the fast path's entry for this key: the owner
// worker writes it (flow/flow.h), and the control thread removes it (key to 0) with the version.
struct rule_state {
	struct meter meter;
	// flow_entry_key() of a key in session_tables.key, or tuple_key_of(); 0: packets take the full nodes
	uint64_t key;
	union {
		uint64_t last; // worker.now of the last packet on credit, but for its low 16 bits (rule_state_last())
		uint16_t meters_high; // of the second meter's index
	};
	uint32_t credit; // bytes that pass without a look at the URR: what is left of the account's loan
	uint32_t taken; // packets that it forwarded on that loan
	uint32_t rule; // the rule's index
	uint32_t meters_low; // the first meter of `further`, and the low bits of the second (rule_state_meters())
	union {
		uint32_t ue4; // the rule's
		uint32_t packets6; // action_counts6(): of IPv6 on that loan
	};
	union {
		struct action action; // the rule's
		struct {
			uint32_t bytes6; // as packets6
			uint32_t bits; // RULE_STATE_*
		};
	};
} cache_aligned;
static_assert(sizeof(struct rule_state) == 64, "a rule's state is one cache line");
#define RULE_STATE_FURTHER (1u << 29) // action.further
#define RULE_STATE_FULL (1u << 30) // packets take the full nodes: their entry only names the rule
#define RULE_STATE_LOOK (1u << 31) // before the next packet, at the loan; set by the control thread

// Further meters of the state's rule: indices of meter_state, STATE_METER_NONE behind the last. The first is
// STATE_METER_NONE where a state has no room for them: rule_further has them.
#define STATE_METER_BITS 24
#define STATE_METER_NONE ((1u << STATE_METER_BITS) - 1)
struct state_meters {
	uint32_t index[2];
};

static __rte_always_inline struct state_meters rule_state_meters(const struct rule_state *s)
{
	return (struct state_meters){
		{s->meters_low & STATE_METER_NONE, s->meters_low >> STATE_METER_BITS | (uint32_t)s->meters_high << 8}};
}

static inline void rule_state_set_meters(struct rule_state *s, struct state_meters m)
{
	s->meters_low = m.index[0] | m.index[1] << STATE_METER_BITS;
	s->meters_high = (uint16_t)(m.index[1] >> 8);
}

// In TSC ticks, as exact as 65,536 of them. Owner worker, control thread.
static inline uint64_t rule_state_last(const struct rule_state *s)
{
	return __atomic_load_n(&s->last, __ATOMIC_RELAXED) & ~(uint64_t)UINT16_MAX;
}

static __rte_always_inline void rule_state_touch(struct rule_state *s, uint64_t now)
{
	s->last = (now & ~(uint64_t)UINT16_MAX) | s->meters_high;
}

// The lenders: all URRs of a rule (indices of usage_state), RULE_NONE behind the last one.
struct lenders {
	uint32_t urr[API_PDR_URRS];
};

// A packet is counted on the state's credit, which suffices. Owner worker.
static __rte_always_inline void rule_state_pay(struct rule_state *s, uint64_t now, uint32_t length, uint8_t version)
{
	s->credit -= length;
	s->taken++;
	if (version == 6 && action_counts6(&s->action)) {
		s->packets6++;
		s->bytes6 += length;
	}
	rule_state_touch(s, now);
}

// Counts of a state's PDR, without the fast path's use of the loan, which is added when the loan is settled
// (usage/credit.c).
struct rule_account {
	struct rule_counts forwarded;
	struct rule_counts six; // of forwarded packets, IPv6; behind a tunnel only those of the full nodes
	uint64_t dropped; // packets that its own gate, FAR, meters, quotas, redirection, buffer and limit of flows took
	uint32_t loan; // bytes lent; 0: none
	struct lenders of; // while some are lent; none: nothing limits them
	uint32_t version; // odd: a loan is being settled
	uint8_t uplink; // direction of the loan
};

#define RULE_NONE UINT32_MAX

// Further meters and URRs, with RULE_FURTHER_METERS; read per packet. Other rules have both counts 0, and most of their
// lines are in pages that were never written.
struct rule_further {
	uint8_t meters, urrs;
	struct {
		uint32_t policer;
		uint32_t state; // index of meter_state (meter/policer.h)
	} meter[API_PDR_QERS];
	uint32_t urr[API_PDR_URRS - 1];
} cache_aligned;
static_assert(sizeof(struct rule_further) == 64, "one cache line");

// Decides whether a packet belongs to a PDR, and holds rarely used fields; read only for sessions with several PDRs or
// new flows.
struct rule_match {
	uint32_t next; // rule of the next PDR of the same key, by precedence; RULE_NONE at the end
	uint32_t other; // the session's first rule of the other direction, for answers; RULE_NONE: none
	uint32_t precedence; // lower wins (TS 29.244 §8.2.11)
	uint16_t match; // API_PDR_*, MATCH_PORTS
	uint16_t pdr; // id
	uint32_t far; // id
	uint32_t urr6; // usage_state of the URR of IPv6 alone, which reads rule_account.six; RULE_NONE: none
	// Second of the worker's clock, + 1, in which the control plane was notified of a packet that waits; 0: not
	// yet.
	uint32_t notified;
	uint32_t pipe; // scheduler place without class and queue, with up.shaped
	uint32_t traffic; // row in which it counts (counter/traffic.h)
	uint16_t sdfs;
	uint8_t qer_ids, urr_ids;
	uint64_t qfis; // bit q: QFI q matches
	const struct api_sdf *sdf; // the session's filters of this PDR, freed with the session
	const uint32_t *id; // of the QERs, then of the URRs, for traces; freed with the session
	const struct far_more *more; // of the FAR (rule/far_more.h), freed with the session; NULL: none
	uint64_t packets, bytes,
		dropped; // counted elsewhere by earlier versions; added to what the rule counts by `show`
	struct rule_counts told; // how much of them, and of the state's, went into counters (counter/counter.h)
};

static_assert(sizeof(struct rule_match) == 112, "an idle session has two");

struct session_pools {
	struct rule *rule;
	struct rule_match *match; // same index as rule
	struct rule_further *further; // the same
	struct rule_state *state;
	struct rule_account *account; // same index as state; written by the owner worker
	uint32_t rules; // capacity of each
};
extern struct session_pools session_pools; // set once at start, read by all

static inline struct rule_state *rule_state_of(const struct rule *r)
{
	return &session_pools.state[r->state];
}

static inline struct rule_account *rule_account_of(const struct rule *r)
{
	return &session_pools.account[r->state];
}

static inline struct rule_further *rule_further_of(const struct rule *r)
{
	return &session_pools.further[r - session_pools.rule];
}

#define RULE_TURNS 64 // of the control thread, for a worker that settles a loan

// Packets forwarded by the rule's state, including those on loan; with `six`, of IPv6. Owner worker, control thread.
static inline struct rule_counts rule_counted(const struct rule *r, int six)
{
	const struct rule_account *a = rule_account_of(r);
	const struct rule_state *s = rule_state_of(r);
	struct rule_counts sum;
	uint32_t version, turns = 0;

	do {
		if (++turns % RULE_TURNS == 0)
			sched_yield(); // the worker may wait for this CPU
		version = __atomic_load_n(&a->version, __ATOMIC_ACQUIRE);
		if (six) {
			uint32_t counts = action_counts6(&s->action) ? UINT32_MAX : 0;

			sum.packets = __atomic_load_n(&a->six.packets, __ATOMIC_RELAXED) +
				      (__atomic_load_n(&s->packets6, __ATOMIC_RELAXED) & counts);
			sum.bytes = __atomic_load_n(&a->six.bytes, __ATOMIC_RELAXED) +
				    (__atomic_load_n(&s->bytes6, __ATOMIC_RELAXED) & counts);
		} else {
			sum.packets = __atomic_load_n(&a->forwarded.packets, __ATOMIC_RELAXED) +
				      __atomic_load_n(&s->taken, __ATOMIC_RELAXED);
			sum.bytes = __atomic_load_n(&a->forwarded.bytes, __ATOMIC_RELAXED) +
				    __atomic_load_n(&a->loan, __ATOMIC_RELAXED) -
				    __atomic_load_n(&s->credit, __ATOMIC_RELAXED);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((version & 1) != 0 || __atomic_load_n(&a->version, __ATOMIC_RELAXED) != version);
	return sum;
}

static inline struct rule_counts rule_forwarded(const struct rule *r)
{
	return rule_counted(r, 0);
}

// The full nodes forwarded a packet of `length` bytes. Owner worker.
static __rte_always_inline void rule_count(struct rule_account *a, uint8_t version, uint32_t length)
{
	a->forwarded.packets++;
	a->forwarded.bytes += length;
	if (version == 6) {
		a->six.packets++;
		a->six.bytes += length;
	}
}

// 1 when the rule's IPv6 prefix holds the address (16 bytes).
static inline int rule_ue6_matches(const struct rule *r, const uint8_t *address)
{
	uint32_t prefix = r->up.ue6_prefix, whole = prefix / 8, rest = prefix % 8;

	return prefix <= 128 && memcmp(address, r->up.ue6, whole) == 0 &&
	       (rest == 0 || (address[whole] ^ r->up.ue6[whole]) >> (8 - rest) == 0);
}

static inline uint32_t rule_index(const struct rule *r)
{
	return (uint32_t)(r - session_pools.rule);
}

// The downlink rule of the session that `uplink_rule` belongs to, for answers to the subscriber (ICMP errors, ARP,
// echo): its access encapsulation. NULL when the session has none. Any worker, within a graph walk.
const struct rule *session_downlink_rule(const struct rule *uplink_rule);
// The uplink rule, for ICMP errors about downlink packets that go back through the tunnel.
const struct rule *session_uplink_rule(const struct rule *downlink_rule);

#endif
