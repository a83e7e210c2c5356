// SPDX-License-Identifier: Apache-2.0
// 5-tuple entries: find a packet by all fields that decided about it, when its session's key does not. Full key:
// traffic endpoint, F-TEID and QFI, or UE address, and the user packet's 5-tuple. An entry names a rule's state; a
// wireline subscriber's also means that its direction's access list permits such packets.
//
//   written and read by: the owner worker
//   invalid at once when: the rule's state has another number (engines_take()), the list another generation
//
// A key has TUPLE_WAYS lines in one aligned group, mostly in its own first line, and as many in a second group for
// overflow. A line holds two narrow entries or a wide one. Invalid entries are overwritten first, else the hash selects
// one: an entry is only a copy of the full nodes' knowledge. Entries unused for one or two rounds of tuples_age() are
// removed.
#ifndef FLOW_TUPLE_H
#define FLOW_TUPLE_H

#include "core/packet.h"
#include "core/worker.h"
#include "firewall/firewall.h"
#include "rule/tables.h"
#include "wire/cache_line.h"
#include "wire/ip.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define TUPLE_WAYS 4u
#define TUPLES_LARGE (1u << 23) // 512 MB: a line costs a page walk, mostly
#define TUPLE_STATE_BITS 27
#define TUPLE_MARKS 65536u
#define TUPLE_UNMET 61u // of so many keys that were not met, one has an entry all the same; odd
// The highest byte of a key's word: the key's first part, and the version. Never 0.
#define TUPLE_WIDE 0x80u // `more` is of the key
#define TUPLE_ENDPOINT 0x00u
#define TUPLE_TUNNEL 0x10u
#define TUPLE_UE 0x20u
#define TUPLE_HOME 0x30u
#define TUPLE_RULE 0x40u
#define TUPLE_IP4 0x01u
#define TUPLE_IP6 0x02u

// A narrow entry, or the first half of a wide one.
struct tuple_entry {
	uint64_t address; // source and destination; of IPv6 the source's first half
	// MAC; or TEID, endpoint, QFI; or UE's address, prefix, instance; or instance, era | protocol, TUPLE_*
	uint64_t word;
	uint32_t ports;
	uint32_t state : TUPLE_STATE_BITS; // index of rule_state
	uint32_t idle : 1; // since the last look no packet used it
	uint32_t age : 4; // rounds since it was written, at most 15
	uint32_t number; // of the state's key, when this was written; 0: empty
	uint32_t permitted; // acl_permission(); by F-TEID or UE address: state of the key's first rule
};
static_assert(sizeof(struct tuple_entry) == 32, "two in a line");

// A key, and with what it leads to an entry.
struct tuple {
	struct tuple_entry first;
	// TUPLE_WIDE: port, S-tag, C-tag, PPPoE id, or UE's key, or rule_value(), or the endpoint's high bits; the rest
	// of the addresses.
	uint64_t more[4];
} __rte_aligned(32);
static_assert(sizeof(struct tuple) == 64, "a wide entry is one cache line");

struct tuple_line {
	struct tuple_entry slot[2]; // the second one is of the first's entry, where that is wide
} cache_aligned;

// Of a worker. The table is cleared before numbers and generations wrap, which would make old entries valid
// (tuples_enter(), tuples_number()).
struct tuples {
	struct tuple_line *line;
	uint32_t groups; // of TUPLE_WAYS lines
	uint32_t entries;
	uint32_t next; // line that tuples_age() looks at
	uint64_t aged; // worker.now of its last look
	uint32_t number; // the last number that a rule's state got
	uint32_t era[2]; // of the lists' generations, by direction: what does not fit into tuple.permitted
	uint8_t is_used;
	uint8_t is_large; // more than TUPLES_LARGE lines
	uint8_t *met; // TUPLE_MARKS of keys that had no entry
	uint32_t unmet;
} cache_aligned;
extern struct tuples flow_tuples[API_MAX_WORKERS];
extern uint64_t flow_tuple_secret[8];

// Of rule_state.key: no kind of the keys of flow_index.
static inline uint64_t tuple_key_of(const struct worker *w, uint32_t number)
{
	return number | (uint64_t)w->id << 56;
}

// ---- keys -----------------------------------------------------------------------------------------------------------

static inline void tuple_of_endpoint(
	struct tuple *t, uint16_t port, uint16_t s_tag, uint16_t c_tag, uint16_t pppoe, const uint8_t mac[6])
{
	uint32_t high;
	uint16_t low;

	memcpy(&high, mac, 4);
	memcpy(&low, mac + 4, 2);
	t->first.word = (uint64_t)high | (uint64_t)low << 32 | (uint64_t)(TUPLE_ENDPOINT | TUPLE_WIDE) << 56;
	t->more[0] = (uint64_t)port | (uint64_t)s_tag << 16 | (uint64_t)c_tag << 32 | (uint64_t)pppoe << 48;
}

static inline void tuple_of_tunnel(struct tuple *t, uint32_t teid, uint16_t local, uint8_t qfi)
{
	t->first.word = (uint64_t)teid | (uint64_t)(local & 0xff) << 32 | (uint64_t)qfi << 40 |
			(uint64_t)(local <= 0xff ? TUPLE_TUNNEL : TUPLE_TUNNEL | TUPLE_WIDE) << 56;
	t->more[0] = local >> 8;
}

#define TUPLE_MAC 0xffffffffffffull // of a word

// Of packets of a traffic endpoint with which `t` begins, in walk.full.
static inline uint64_t tuple_endpoint(const struct tuple *t)
{
	return (t->more[0] ^ (t->first.word & TUPLE_MAC)) | 1ull << 63;
}

// In the index (flow/flow.h), of the traffic endpoint that `t` begins with.
static inline uint64_t tuple_endpoint_key(const struct tuple *t)
{
	return ((t->more[0] ^ (t->first.word & TUPLE_MAC) * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull) >> 4 |
	       KEY_UE6;
}

// `key`: flow_entry_key() of a UE's address without the worker: a table is one worker's.
static inline void tuple_of_ue(struct tuple *t, uint64_t key)
{
	uint64_t prefix = key >> 32 & 0xff, side = key >> 40 & 0xff, instance = key >> 48 & 0xff;

	t->more[0] = key;
	if (likely((key >> 62 << 62) == KEY_UE4 && side == 0))
		t->first.word = (uint32_t)key | prefix << 32 | instance << 40 | (uint64_t)TUPLE_UE << 56;
	else
		t->first.word = (uint64_t)(TUPLE_UE | TUPLE_WIDE) << 56;
}

// For packets to wireline subscribers in an instance (its index): the destination decides, until a session with a
// longer prefix comes, which begins a new era.
static inline void tuple_of_home(struct tuple *t, uint16_t instance)
{
	uint32_t era = __atomic_load_n(&session_tables.home_era, __ATOMIC_RELAXED);

	t->first.word = instance | (uint64_t)era << 16 | (uint64_t)TUPLE_HOME << 56;
	t->more[0] = 0;
}

// Of a packet that another way led to the key's first rule. `value`: rule_value().
static inline void tuple_of_rule(struct tuple *t, uint64_t value)
{
	t->first.word = (uint64_t)(TUPLE_RULE | TUPLE_WIDE) << 56;
	t->more[0] = value;
}

static __rte_always_inline int tuple_is_wide(const struct tuple_entry *s)
{
	return (int)(s->word >> 63);
}

static __rte_always_inline void tuple_addresses4(struct tuple *t, const uint8_t *ip)
{
	memcpy(&t->first.address, ip + 12, 8);
	if (tuple_is_wide(&t->first))
		t->more[1] = t->more[2] = t->more[3] = 0;
}

// The rest of the key, of UDP or TCP over IPv4 without options.
static __rte_always_inline void tuple_of_plain(struct tuple *t, const uint8_t *ip)
{
	t->first.word |= (uint64_t)ip[9] << 48 | (uint64_t)TUPLE_IP4 << 56;
	memcpy(&t->first.ports, ip + IP4_HEADER, 4);
	tuple_addresses4(t, ip);
}

// The rest of a packet's key; its transport header is `l4` bytes behind `ip`; 0: none, as in later fragments. Returns 0
// when the ports are cut off: the access lists look more closely.
static __rte_always_inline int tuple_of_packet(
	struct tuple *t, const uint8_t *ip, uint8_t version, uint8_t protocol, uint32_t l4, uint32_t length)
{
	t->first.ports = 0;
	if (likely(ip_has_ports(protocol) && l4 != 0)) {
		if (unlikely(l4 + 4 > length))
			return 0;
		memcpy(&t->first.ports, ip + l4, 4);
	}
	t->first.word |= (uint64_t)protocol << 48 | (uint64_t)(version == 4 ? TUPLE_IP4 : TUPLE_IP6 | TUPLE_WIDE) << 56;
	if (likely(version == 4)) {
		tuple_addresses4(t, ip);
		return 1;
	}
	memcpy(&t->first.address, ip + 8, 8);
	memcpy(&t->more[1], ip + 16, 24);
	return 1;
}

// NH (RFC 4418 §5.2.2) under a secret of the process, as exact_hash().
static __rte_always_inline uint32_t tuple_hash(const struct tuple *t)
{
	const uint64_t *secret = flow_tuple_secret;
	unsigned __int128 sum = (unsigned __int128)(t->first.word + secret[0]) * (t->first.address + secret[1]);

	sum += (unsigned __int128)(t->first.ports + secret[2]) * secret[3];
	if (tuple_is_wide(&t->first)) {
		sum += (unsigned __int128)(t->more[0] + secret[4]) * (t->more[1] + secret[5]);
		sum += (unsigned __int128)(t->more[2] + secret[6]) * (t->more[3] + secret[7]);
	}
	uint64_t x = (uint64_t)sum ^ (uint64_t)(sum >> 64);
	x = (x ^ (x >> 32)) * (secret[0] | 1);
	return (uint32_t)(x >> 32);
}

// ---- the table ------------------------------------------------------------------------------------------------------

// `way`: below TUPLE_WAYS of the first group, the others of the second.
static inline struct tuple_line *tuple_place(const struct tuples *t, uint32_t hash, uint32_t way)
{
	uint32_t of_group = way < TUPLE_WAYS ? hash : (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 32);
	uint64_t group = (uint64_t)of_group * t->groups >> 32;

	return &t->line[group * TUPLE_WAYS + ((of_group ^ way) & (TUPLE_WAYS - 1))];
}

static inline uint32_t tuples_lines(const struct tuples *t)
{
	return t->groups * TUPLE_WAYS;
}

// The slot's key is the first part of that one.
static __rte_always_inline int tuple_begins(const struct tuple_entry *s, const struct tuple *key)
{
#ifdef __AVX2__
	const __m256i mask = _mm256_setr_epi32(-1, -1, -1, -1, -1, 0, 0, 0);

	return _mm256_testz_si256(_mm256_xor_si256(*(const __m256i *)s, *(const __m256i *)&key->first), mask);
#else
	return ((s->address ^ key->first.address) | (s->word ^ key->first.word) | (s->ports ^ key->first.ports)) == 0;
#endif
}

// The entry with this key, or NULL. Branchless: which of two narrow ones matches is unpredictable.
static __rte_always_inline struct tuple_entry *tuple_in_line(struct tuple_line *l, const struct tuple *key)
{
	int first = tuple_begins(&l->slot[0], key);

	if (unlikely(tuple_is_wide(&key->first)))
		return first && memcmp(&l->slot[1], key->more, sizeof(key->more)) == 0 ? &l->slot[0] : NULL;
	int second = tuple_begins(&l->slot[1], key) & !tuple_is_wide(&l->slot[0]);
	return likely(first | second) ? &l->slot[second] : NULL;
}

// The state that the entry leads to, or NULL when it does so no longer. `permitted`: acl_permission() of its list, for
// any slot.
static __rte_always_inline struct rule_state *tuple_state(
	const struct worker *w, const struct tuple_entry *t, uint32_t permitted)
{
	struct rule_state *s = &session_pools.state[t->state];

	return likely((t->permitted ^ permitted) >> ACL_SLOT_BITS == 0 && t->number != 0 &&
		       __atomic_load_n(&s->key, __ATOMIC_ACQUIRE) == tuple_key_of(w, t->number))
		       ? s
		       : NULL;
}

// Asks for the lines of a group from `way` on.
static inline void tuple_ask(const struct tuples *t, uint32_t hash, uint32_t way)
{
	do
		rte_prefetch0(tuple_place(t, hash, way));
	while (++way % TUPLE_WAYS != 0);
}

// The entry with this key, or NULL. It is in its first group beside its own place, or in its second group, used when
// the first is full for such keys.
struct tuple_entry *tuple_find_beside(const struct tuples *t, uint32_t hash, const struct tuple *key);
int tuple_group_is_full(const struct tuples *t, uint32_t hash, int wide);
struct tuple_entry *tuple_find_far(const struct tuples *t, uint32_t hash, const struct tuple *key);
// In any place.
struct tuple_entry *tuple_find(const struct tuples *t, uint32_t hash, const struct tuple *key);

// A packet used the entry: written once a round at most.
static __rte_always_inline void tuple_used(struct tuple_entry *t)
{
	if (unlikely(t->idle != 0))
		t->idle = 0;
}

// Looks at the next `lines` of the table. Removes entries unused since the previous look; with `lifetime` (1 to 15)
// also those written so many looks ago.
void tuples_age(struct worker *w, struct tuples *t, uint32_t lines, uint32_t lifetime);

// Before a walk uses the worker's table with this list. `direction`: ACL_UPLINK, ACL_DOWNLINK.
void tuples_clear(struct tuples *t);
static inline uint32_t tuples_enter(struct tuples *t, enum acl_place direction, const struct acl *list)
{
	uint32_t era = list != NULL ? list->generation >> (32 - ACL_SLOT_BITS) : 0;

	if (unlikely(t->era[direction] != era)) {
		tuples_clear(t);
		t->era[direction] = era;
	}
	return acl_permission(list, 0);
}

// A number that no entry has.
uint32_t tuples_number(struct tuples *t);
// 1 when the key was seen recently: most flows of a scan have one packet and deserve no entry. Sometimes 1 for any key,
// so that two alternating keys with one mark do not exclude each other.
static inline int tuples_met(struct tuples *t, uint32_t hash)
{
	uint8_t *mark = &t->met[hash & (TUPLE_MARKS - 1)], now = (uint8_t)(hash >> 24), before = *mark;

	*mark = now;
	return before == now || ++t->unmet % TUPLE_UNMET == 0;
}

// Writes the entry, its value included. `hash`: of its key.
void tuples_put(struct worker *w, struct tuples *t, uint32_t hash, const struct tuple *entry);
// Control thread, at start. Returns 0 or ENOMEM.
int tuples_create(uint32_t workers, uint32_t flows);

#endif
