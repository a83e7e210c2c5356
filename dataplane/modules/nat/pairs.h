// SPDX-License-Identifier: Apache-2.0
// NAT44 of protocols without ports: owners of pairs of addresses, of which the external one is shared. Pure: no
// packets.
//
// The receiver chooses its identifier: a call id of PPTP (RFC 2637 §4.1), an SPI of ESP (RFC 4303 §2.1). So a pair
// begins with an outgoing packet, and the first unknown identifier from the remote is its answer. GRE of version 0 and
// IPv6 in IPv4 have none: a remote belongs to one subscriber.
//
// All pairs of an external address, a remote and a kind belong to one worker (nat_pair_worker), their only writer.
//   Written by several: `of_session`, by atomic operations, when a pair begins or ends.
//   Read by others: counters (control thread)
#ifndef NAT_PAIRS_H
#define NAT_PAIRS_H

#include "exact/exact.h"
#include "isthmus_api.h"
#include "nat/table.h"
#include "wire/cache_line.h"

#define PAIR_IDS 8 // identifiers each way that a pair knows, the latest ones
#define PAIRS_AT_REMOTE 64u // of an external address, a remote and a kind
#define PAIR_WAIT (2 * NAT_SECOND) // for an answer, before others may begin
#define PAIRS_MOST 65536u // of an instance: a second of nat-age looks at all
#define PAIRS_OF_SUBSCRIBER_MOST 1024u

enum pair_kind { PAIR_NONE, PAIR_SHORT, PAIR_GRE, PAIR_PPTP, PAIR_ESP, PAIR_6IN4 };

struct pair_key {
	uint32_t outside, remote; // as on the wire
	uint32_t kind; // enum pair_kind, with identifiers from here on
};

struct pair {
	struct pair_key key;
	uint32_t inside; // as on the wire
	uint32_t session, expires;
	uint32_t waits; // until then for an answer; 0: does not
	uint32_t rests; // until then it may not wait again: it did in vain
	uint32_t next, previous; // of the same key
	uint32_t place; // in `used`
	uint16_t epoch;
	uint8_t worker; // the session's
	uint8_t unanswered; // identifiers that went out
	uint8_t outs, ins; // used below, the latest first
	uint32_t out[PAIR_IDS], in[PAIR_IDS];
};

struct pair_part { // a worker's
	struct exact *first; // by key
	struct pair *pair;
	uint32_t *used; // the first `pairs`: in use
	uint32_t capacity, cursor;
	uint64_t pairs, made, refused;
} cache_aligned;

struct nat_pairs {
	uint32_t workers;
	uint16_t *of_session; // pairs, by session
	const uint16_t *epoch; // as in struct nat_table
	int (*lives)(uint32_t session, uint32_t worker);
	struct pair_part part[API_MAX_WORKERS];
};

// A packet from a subscriber. `id`: as on the wire.
struct pair_user {
	struct pair_key key;
	uint32_t id, inside, session;
	uint16_t epoch;
	uint8_t worker; // the session's
	uint32_t now;
	uint32_t most, timeout; // of the configuration in force; seconds
};

enum pair_verdict {
	PAIR_OK,
	PAIR_TAKEN, // another one has the remote or the identifier, or waits for its answer
	PAIR_LIMIT, // the subscriber has as many as it may
	PAIR_FULL, // the worker's part, or PAIRS_AT_REMOTE
	PAIR_VERDICTS
};

struct nat_pairs *nat_pairs_create(uint32_t most, uint32_t workers, uint32_t sessions);
void nat_pairs_free(struct nat_pairs *p);

// Kind and identifier of a transport header of `protocol` (0: it has none). `room`: readable bytes.
enum pair_kind nat_pair_kind(uint8_t protocol, const uint8_t *l4, uint32_t room, uint32_t *id);
// The worker of a key.
static inline uint32_t nat_pair_worker(const struct nat_pairs *p, const struct pair_key *k)
{
	uint64_t x = ((uint64_t)k->outside << 32 | k->remote) * 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 32 ^ k->kind) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)((x >> 32) * p->workers >> 32);
}
// What follows: the worker of the key.
enum pair_verdict nat_pair_out(struct nat_pairs *p, uint32_t worker, const struct pair_user *u);
// The pair of a packet from the remote, or NULL. `learn`: its identifier is the awaited answer, if any.
const struct pair *nat_pair_in(
	struct nat_pairs *p, uint32_t worker, const struct pair_key *k, uint32_t id, uint32_t now, int learn);
// The pair of the packet to the remote (`out`) or from it that an ICMP error quotes, or NULL. Not refreshed (RFC 5508
// REQ-6).
const struct pair *nat_pair_quoted(
	struct nat_pairs *p, uint32_t worker, const struct pair_key *k, uint32_t id, uint32_t now, int out);
// Looks at so many pairs in turn; removes expired ones and those whose session is gone or moved.
void nat_pairs_age(struct nat_pairs *p, uint32_t worker, uint32_t now, uint32_t pairs);

#endif
