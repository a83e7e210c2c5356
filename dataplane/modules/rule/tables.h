// SPDX-License-Identifier: Apache-2.0
// Sessions and the tables in which packets find their rules: keys, values.
//
//   written by: the control thread (the session module)
//   read by: workers, within a walk
#ifndef RULE_TABLES_H
#define RULE_TABLES_H

#include "core/packet.h"
#include "core/worker.h"
#include "exact/exact.h"
#include "exact/narrow.h"
#include "rule/pool.h"
#include "rule/rule.h"
#include "wire/ip.h"

#define MAX_RULES_OF_SESSION API_MAX_PDR

enum session_table { TABLE_ENDPOINT, TABLE_FTEID, TABLE_UE };

// A key by which packets find a session: two words of an endpoint, or one of an F-TEID or UE address, in one table.
struct session_key {
	uint64_t word[2];
	uint32_t first; // first rule of its chain
	uint8_t table; // enum session_table
	uint8_t family, prefix; // TABLE_UE
	uint8_t instance; // index; 0xff: none, or any
};

// A session as the control thread keeps it; workers read the addresses. Rules with one key are chained
// (rule_match.next).
struct session {
	const char *name; // the object's key
	uint64_t seid;
	uint32_t index;
	uint16_t rules, keys;
	uint8_t worker, encap;
	uint8_t routes; // framed routes
	uint8_t ue6_prefix; // bits; 0xff: no IPv6 address
	uint8_t has_ue4;
	uint8_t notifies; // some rule has RULE_BUFFER, RULE_DRAINING or RULE_NOTIFY
	uint8_t wished; // rule/wish.c
	uint32_t association;
	uint16_t mss; // as in api_session; workers read it
	uint16_t discard; // api_session.discard: what waited under another number is dropped
	uint8_t ue4[4];
	uint8_t ue6[16];
	struct session_key *key;
	struct api_sdf *sdf; // of all PDRs; NULL: none
	struct api_address *route; // NULL: none
	struct usage_set *usage; // NULL: no URR
	char *mirror, *counter; // as in api_session; NULL: none
	uint64_t mirrors; // in force, bit n: number n of them (mirror/mirror.h); workers read it
	uint32_t rule[]; // of each PDR, in the object's order; behind them ids of their QERs and URRs (rule_match.id)
};

// Lengths of UE prefixes that some session has, longest first: where a UE's address is looked for. Two copies, as a
// grace period ends every transaction.
struct ue_lengths {
	uint8_t count[2]; // IPv4, IPv6
	uint8_t prefix[2][129];
};

struct session_tables {
	struct exact *endpoint; // (port, tags, PPPoE id, MAC) -> first rule of the chain; writer: control thread
	struct narrow *key; // F-TEIDs (TEID, local address) and UE addresses (instance, side, prefix) -> the same
	uint64_t secret[4]; // of the keys of IPv6 prefixes
	struct session **session; // by index
	const struct ue_lengths *lengths; // never NULL after start
	uint32_t home_era; // entries of 5-tuples to wireline subscribers are of one (flow/tuple.h); workers read it
	// By instance: keys of UE addresses whose packets go to a traffic endpoint; workers read it.
	uint32_t homes[256];
	uint32_t clamping; // sessions with an MSS; workers read it
	uint32_t capacity, count;
	struct index_pool indices, rules, states;
};
extern struct session_tables session_tables;

static inline uint32_t session_homes_of(uint16_t instance)
{
	return __atomic_load_n(&session_tables.homes[instance & 0xff], __ATOMIC_RELAXED);
}

// Rules of the pool when engine.max_rules is 0: all sessions of two PDRs can change at once. As many states: sessions
// that change workers need new ones, and every PDR may have a meter.
#define RULES_PER_SESSION 4

static inline uint32_t rules_of(const struct api_engine *e)
{
	return (e->max_rules ? e->max_rules : e->max_sessions * RULES_PER_SESSION) + API_MAX_PDR;
}

// Places of states that keys name, in the pool of states: twice the keys of two PDRs per session. So those of one
// endpoint or instance are side by side, and apart from others'.
static inline uint32_t places_of(const struct api_engine *e)
{
	return rte_align32pow2(RTE_MAX(e->max_sessions, 256u) * RULES_PER_SESSION);
}

// Bit of a generation: a newer version of the session is in force, the rule may only be used until the end of the walk.
#define RULE_RETIRED 1u

// Value of a table: the rule and its generation when it was found.
static inline uint64_t rule_value(uint32_t index)
{
	return (uint64_t)session_pools.rule[index].generation << 32 | index;
}

// The rule of a value found in a key table in this walk: in force, or until just now. The generation is no test here:
// it rises while the old version may still be found.
static inline struct rule *rule_of_key(uint64_t value)
{
	return &session_pools.rule[(uint32_t)value];
}

static inline void endpoint_key(
	struct exact_key *k, uint16_t port, uint16_t s_tag, uint16_t c_tag, uint16_t pppoe, const uint8_t mac[6])
{
	uint32_t high;
	uint16_t low;

	memcpy(&high, mac, 4);
	memcpy(&low, mac + 4, 2);
	exact_key_set(k, (uint64_t)port | (uint64_t)s_tag << 16 | (uint64_t)c_tag << 32 | (uint64_t)pppoe << 48,
		(uint64_t)high | (uint64_t)low << 32, 0, 0, 0, 0);
}

static inline void session_key_set(struct exact_key *k, const uint64_t word[2])
{
	exact_key_set(k, word[0], word[1], 0, 0, 0, 0);
}

// Keys of 64 bits: the two highest bits are their kind.
#define KEY_FTEID (1ull << 62)
#define KEY_UE4 (2ull << 62)
#define KEY_UE6 (3ull << 62)

// First `prefix` bits of an address of 4 or 16 bytes as two words.
static inline void ue_key_address(uint64_t word[2], uint8_t family, const uint8_t *address, uint32_t prefix)
{
	word[0] = word[1] = 0;
	if (likely(family == 4)) {
		uint32_t a = 0;

		memcpy(&a, address, 4);
		if (unlikely(prefix < 32))
			a &= prefix == 0 ? 0 : rte_cpu_to_be_32(UINT32_MAX << (32 - prefix));
		word[0] = a;
		return;
	}
	memcpy(word, address, 16);
	if (prefix <= 64) {
		word[0] &= prefix == 0 ? 0 : rte_cpu_to_be_64(UINT64_MAX << (64 - prefix));
		word[1] = 0;
	} else {
		word[1] &= rte_cpu_to_be_64(UINT64_MAX << (128 - prefix));
	}
}

// `side` 0: the address is a destination, 1: a source. `instance`: index, 0xff: any.
//
// An IPv4 prefix is its own key. An IPv6 prefix does not fit: its key is 62 bits of NH (RFC 4418 §5.2.2) under a secret
// of this process. Among a million prefixes two have equal keys about once in four million starts; the second is then
// refused as taken. Another address with a session's key is detected by rule_ue_matches().
static inline uint64_t ue_key(uint8_t instance, uint32_t side, uint8_t family, const uint8_t *address, uint8_t prefix)
{
	const uint64_t *secret = session_tables.secret;
	uint64_t word[2], what = (uint64_t)prefix | (uint64_t)side << 8 | (uint64_t)instance << 16;

	ue_key_address(word, family, address, prefix);
	if (likely(family == 4))
		return word[0] | what << 32 | KEY_UE4;
	unsigned __int128 sum = (unsigned __int128)(word[0] + secret[0]) * (word[1] + secret[1]);
	sum += (unsigned __int128)(what + secret[2]) * secret[3];
	return ((uint64_t)sum ^ (uint64_t)(sum >> 64)) | KEY_UE6;
}

static inline uint64_t fteid_key(uint32_t teid, uint16_t local)
{
	return (uint64_t)teid | (uint64_t)local << 32 | KEY_FTEID;
}

// An entry keeps the key and the worker, because a state may be given to another worker's session with the same key.
static_assert(API_MAX_WORKERS <= 64, "a worker's number fits between a key and its kind");
static inline uint64_t flow_entry_key(const struct worker *w, uint64_t key)
{
	return key ^ (uint64_t)w->id << 56;
}

// Order class of packets by their session's key: below ORDERS, the same for all workers, because eight bits, among them
// the worker's, do not count.
static __rte_always_inline uint8_t order_of(uint64_t number)
{
	return (uint8_t)(number * (0x9e3779b97f4a7c15ull << 8) >> 58);
}

#endif
