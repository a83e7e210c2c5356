// SPDX-License-Identifier: Apache-2.0
// Inside of the session module: pools, keys and look-up tables.
#ifndef SESSION_TABLES_H
#define SESSION_TABLES_H

#include "core/packet.h"
#include "core/worker.h"
#include "exact/exact.h"
#include "session/session.h"
#include "wire/ip.h"

#define MAX_RULES_OF_SESSION API_MAX_PDR

// A session as the control thread keeps it. Rules are in two chains (rule_match.next), uplink and downlink.
struct session {
	char name[API_NAME];
	uint64_t seid;
	uint32_t index;
	uint16_t rules;
	uint8_t worker;
	uint32_t rule[MAX_RULES_OF_SESSION];
	uint32_t state[MAX_RULES_OF_SESSION];
	uint16_t pdr[MAX_RULES_OF_SESSION];
	uint32_t first[2]; // by enum api_source
	// Keys under which it can be found, to be taken away again.
	uint16_t keys;
	struct {
		uint8_t endpoint; // 1: endpoint table, 0: F-TEID table
		struct exact_key key;
	} key[MAX_RULES_OF_SESSION + 1];
};

// Pools of rules and states (pool.c). RULE_NONE when empty. Control thread.
struct index_pool {
	uint32_t *free;
	uint32_t count, capacity;
};
int index_pool_create(struct index_pool *p, uint32_t capacity);
uint32_t index_pool_take(struct index_pool *p);
void index_pool_give(struct index_pool *p, uint32_t index);

struct session_tables {
	struct exact *endpoint; // (port, tags, PPPoE id, MAC) -> first uplink rule; writer: control thread
	struct exact *fteid; // (TEID, local address) -> first downlink rule; writer: control thread
	struct exact *flow[API_MAX_WORKERS]; // (TEID, local address, inner 5-tuple, QFI) -> rule; writer: the worker
	struct session **session; // by index
	uint32_t capacity, count;
	uint64_t unplaced; // keys for which the table had no slot, about one in 10^8
	struct index_pool indices, rules, states;
};
extern struct session_tables session_tables;

// Value of a table: the rule and its generation when it was found.
static inline uint64_t rule_value(uint32_t index)
{
	return (uint64_t)session_pools.rule[index].generation << 32 | index;
}

// The rule, or NULL when the slot has another meaning by now.
static inline struct rule *rule_of_value(uint64_t value)
{
	struct rule *r = &session_pools.rule[(uint32_t)value];

	return likely(r->generation == value >> 32) ? r : NULL;
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

static inline void fteid_key(struct exact_key *k, uint32_t teid, uint16_t local)
{
	// The 1 makes it differ from the key of an empty slot.
	exact_key_set(k, (uint64_t)teid | (uint64_t)local << 32 | 1ull << 48, 0, 0, 0, 0, 0);
}

// 44 bytes: source 16, destination 16, TEID 4, ports 4, local 2, protocol 1, version and QFI 1. `ip` is the inner header.
static inline void flow_key(
	struct exact_key *k, uint32_t teid, uint16_t local, uint8_t qfi, const struct packet *pkt, const uint8_t *ip)
{
	uint32_t last = (uint32_t)local | (uint32_t)pkt->protocol << 16 | (uint32_t)(qfi & 0x7f) << 24;
	uint32_t ports = 0, source, destination;
	uint64_t w[4];

	if (likely((pkt->protocol == IP_PROTOCOL_UDP || pkt->protocol == IP_PROTOCOL_TCP ||
			   pkt->protocol == IP_PROTOCOL_SCTP) &&
		    !(pkt->fragment & IP_FRAGMENT_LATER)))
		memcpy(&ports, ip + (pkt->l4 - pkt->l3), 4);
	if (likely(pkt->ip_version == 4)) {
		memcpy(&source, ip + 12, 4);
		memcpy(&destination, ip + 16, 4);
		exact_key_set(k, source, 0, destination, 0, (uint64_t)teid | (uint64_t)ports << 32, last);
		return;
	}
	memcpy(w, ip + 8, 32);
	exact_key_set(k, w[0], w[1], w[2], w[3], (uint64_t)teid | (uint64_t)ports << 32, last | 0x80000000u);
}

// The first rule of the chain that the packet matches, or NULL. `ip` is its IP header (l3 and l4 of pkt are valid).
struct rule *rule_classify(struct rule *first, const struct packet *pkt, const uint8_t *ip, uint8_t qfi, int uplink);

// compile.c: fills the rules of a session from its object; see there.
int session_compile(struct session *s, const struct api_session *want, const struct session *old);
void session_keys(struct session *s, const struct api_session *want);
int session_check(const struct api_session *want, uint32_t length, const char *name);

#endif
