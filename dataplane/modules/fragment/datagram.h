// SPDX-License-Identifier: Apache-2.0
// Inside of reassembly: the datagrams whose fragments wait, of one worker.
//
// rte_ip_frag bounds datagrams, not what they hold, gives up none but those whose time is over, and knows no source.
// Here every buffer counts for its worker's share (core/hold.h) and for its source, and the oldest datagram can go at
// any time.
#ifndef FRAGMENT_DATAGRAM_H
#define FRAGMENT_DATAGRAM_H

#include "core/hold.h"
#include "wire/ip.h"

#define DATAGRAM_PIECES 8
#define DATAGRAM_NONE UINT32_MAX
#define DATAGRAM_SOURCES 1024u // shares of sources; those of one hash have one together

struct datagram_key {
	uint8_t source[16], destination[16];
	uint32_t id;
	uint8_t version, protocol, vrf, pad;
};

struct piece {
	struct rte_mbuf *m; // the frame: l2_len and l3_len before its data
	uint32_t offset, length; // of the data
	uint8_t ecn; // enum ecn
};

// In two lists by age, of all and of its source; `of` says which.
enum { AGE_ALL, AGE_SOURCE, AGE_LISTS };
struct age_link {
	uint32_t older, newer;
};
struct age_list {
	uint32_t oldest, newest;
};

struct datagram {
	struct datagram_key key;
	uint64_t since; // ticks, of its first fragment
	uint32_t source; // its share
	uint32_t next; // of the same hash, or free
	struct age_link link[AGE_LISTS];
	uint32_t total; // bytes of data, when the last fragment is here; else 0
	uint32_t got; // bytes of data
	uint8_t pieces;
	uint8_t ecn; // bit n: there is a piece with codepoint n
	struct piece piece[DATAGRAM_PIECES];
};

struct datagrams {
	struct datagram *list;
	uint32_t *bucket; // first datagram of a hash
	uint32_t mask; // of buckets
	uint32_t free;
	uint32_t seed; // of hashes, so that nobody outside knows which keys meet in a bucket
	uint32_t source_share; // buffers that one source may hold
	struct age_list all;
	struct {
		struct age_list age;
		uint32_t buffers;
	} source[DATAGRAM_SOURCES];
};

// Control thread: room for `share` buffers. NULL: no memory.
struct datagrams *datagrams_create(uint32_t share);

static inline struct datagram *datagram_oldest(const struct datagrams *t)
{
	return t->all.oldest == DATAGRAM_NONE ? NULL : &t->list[t->all.oldest];
}

static inline struct datagram *datagram_oldest_of(const struct datagrams *t, uint32_t source)
{
	uint32_t at = t->source[source].age.oldest;

	return at == DATAGRAM_NONE ? NULL : &t->list[at];
}

uint32_t datagram_source(const struct datagrams *t, const struct datagram_key *key);
struct datagram *datagram_find(const struct datagrams *t, const struct datagram_key *key);
// A new one, without pieces. NULL when all are in use.
struct datagram *datagram_new(struct datagrams *t, const struct datagram_key *key, uint64_t now);
// Takes it out of the table; its pieces are the caller's by now.
void datagram_remove(struct datagrams *t, struct datagram *d);

// Adds a piece in the order of offsets. 0 when it contradicts the others: overlap, a second end, data behind the end,
// or one more than DATAGRAM_PIECES (RFC 5722, RFC 1858: then no packet is made of any of them).
int datagram_add(struct datagram *d, const struct piece *p, int more);

static inline int datagram_complete(const struct datagram *d)
{
	return d->total != 0 && d->got == d->total;
}

// The pieces, all there and in order, become one packet. Each has its headers in its first buffer, and at most
// HOLD_RING_CHAIN buffers, so that the chain has room for all.
struct rte_mbuf *datagram_join(struct datagram *d);

#endif
