// SPDX-License-Identifier: Apache-2.0
// Inside of this module: a worker's incomplete datagrams.
//
// rte_ip_frag limits datagrams but not their buffers, removes only expired ones, and has no sources. Here every buffer
// counts for its worker's share (core/hold.h) and for its source, and the oldest datagram can be removed at any time.
//
// A worker has two tables. In reassembly's, fragments wait for all others of their datagram. In the pass-through's
// (follow.h), later fragments wait for the first one alone.
#ifndef REASSEMBLY_DATAGRAM_H
#define REASSEMBLY_DATAGRAM_H

#include "core/hold.h"
#include "core/node.h"
#include "reassembly/follow.h"
#include "wire/ip.h"

#define DATAGRAM_PIECES 8
#define DATAGRAM_NONE UINT32_MAX
#define DATAGRAM_SOURCES 1024u // shares of sources; sources with one hash share one

struct datagram_key {
	uint8_t source[16], destination[16];
	struct follow_scope scope;
	uint32_t id;
	uint8_t version, protocol, pad[2];
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
	uint64_t since; // ticks; of waiting ones: when the first of them came; else the last
	uint32_t source; // its share
	uint32_t units; // buffers that wait, at least 1 (also when none does)
	uint32_t next; // of the same hash, or free
	struct age_link link[AGE_LISTS];
	uint32_t total; // bytes of data, when the last fragment is here; else 0
	uint32_t got; // bytes of data
	// Of reassembly.
	uint8_t pieces;
	uint8_t ecn; // bit n: there is a piece with codepoint n
	// Of follow.c.
	uint64_t squares; // of bytes of data: where they end less where they begin
	uint8_t first; // FIRST_*
	uint8_t first_protocol;
	uint8_t head[FOLLOW_HEAD]; // FIRST_KNOWN: follow_head() of its later fragments
	struct rte_mbuf *waiting, *last; // later fragments, linked by follow_head(); NULL: none
	struct piece piece[DATAGRAM_PIECES];
};

enum { FIRST_MISSING, FIRST_KNOWN, FIRST_TWICE };

struct datagrams {
	struct datagram *list;
	uint32_t *bucket; // first datagram of a hash
	uint32_t mask; // of buckets
	uint32_t free;
	uint32_t seed; // of hashes, so that no sender knows which keys meet in a bucket
	uint32_t share, source_share; // units of all, of one source
	uint32_t units;
	const struct reason *late; // why those go whose time is over
	struct age_list all;
	struct {
		struct age_list age;
		uint32_t units;
	} source[DATAGRAM_SOURCES];
};

extern struct holder fragments_holder;
// Reasons for removing the oldest, of all or of its source; also for dropping a packet without any room.
extern const struct reason *const fragments_full, *const fragments_source_full;

#define DATAGRAM_LIFE_MS 1000

// Control thread: room for `share` units. The holder's room for a worker is divided among its tables; no buffer counts
// in two, so one table's packets never make room in the other. NULL: no memory.
struct datagrams *datagrams_create(uint32_t share, const struct reason *late);
// Of follow.c: its table of a worker. 0, or a positive errno.
int follow_start(uint32_t worker, uint32_t share);
struct datagrams *follow_table(uint32_t worker);

static inline struct datagram *datagram_oldest(const struct datagrams *t)
{
	return t->all.oldest == DATAGRAM_NONE ? NULL : &t->list[t->all.oldest];
}

static inline struct datagram *datagram_oldest_of(const struct datagrams *t, uint32_t source)
{
	uint32_t at = t->source[source].age.oldest;

	return at == DATAGRAM_NONE ? NULL : &t->list[at];
}

// RFC 791 §3.2 and RFC 8200 §4.5: the fields common to a packet's fragments. `ip`: its header.
void datagram_key_of(struct datagram_key *key, const struct follow_scope *scope, uint8_t version, const uint8_t *ip);
// Fragments of one packet may reach different workers, because later ones have no ports for the NIC to hash. So
// addresses and identification choose one worker for all.
uint32_t datagram_owner(const struct datagram_key *key);
struct datagram *datagram_find(const struct datagrams *t, const struct datagram_key *key);
// It is the newest from now on.
void datagram_touch(struct datagrams *t, struct datagram *d, uint64_t now);
// It counts for so many units, at least one: there are as many datagrams as units.
void datagram_count(struct datagrams *t, struct datagram *d, uint32_t units);
// Takes it out of the table; its pieces are the caller's by now.
void datagram_remove(struct datagrams *t, struct datagram *d);

// A buffer chain of the datagram waits, or waits no longer.
void datagram_hold(struct worker *w, struct datagrams *t, struct datagram *d, const struct rte_mbuf *m);
void datagram_let_go(struct worker *w, const struct rte_mbuf *m);

// Of a table, by its worker. A node of this module drops by its edge DATAGRAM_DROP, where traces look; without a node
// packets are dropped on the spot.
struct visit {
	struct worker *w;
	struct datagrams *t;
	struct rte_graph *graph;
	struct rte_node *node;
};
enum { DATAGRAM_TO_INPUT, DATAGRAM_DROP, DATAGRAM_EDGES };

// Drops its waiting fragments and removes the datagram.
void datagram_give_up(const struct visit *v, struct datagram *d, const struct reason *why);
// Removes expired ones, so many in a visit. 1: more are due.
int datagrams_expire(const struct visit *v);
// The datagram, found or new, with room for `units` more. Removes the oldest: of the source if its share is used up,
// else of all. NULL without room. Other datagrams, and this one, may have been removed.
struct datagram *datagram_enter(const struct visit *v, const struct datagram_key *key, uint32_t units);

// Adds a piece in the order of offsets. 0 when it contradicts the others: overlap, a second end, data behind the end,
// or more than DATAGRAM_PIECES. Then none of them becomes a packet (RFC 5722, RFC 1858).
int datagram_add(struct datagram *d, const struct piece *p, int more);

static inline int datagram_complete(const struct datagram *d)
{
	return d->total != 0 && d->got == d->total;
}

// Joins the pieces, complete and in order, to one packet. Each has its headers in its first buffer, and at most
// HOLD_RING_CHAIN buffers, so the chain has room for all.
struct rte_mbuf *datagram_join(struct datagram *d);

#endif
