// SPDX-License-Identifier: Apache-2.0
// Inside of the link: both sides' memory, links, sessions between processes. Everything written by the other process is
// read once and checked before use.
#ifndef SHARE_INSIDE_H
#define SHARE_INSIDE_H

#include "share/share.h"
#include "wire/cache_line.h"
#include <rte_spinlock.h>
#include <sys/types.h>

#define SHARE_MAGIC 0x53484152u // the first two words of a hello
#define SHARE_VERSION 2
#define SHARE_LINKS 64 // of a process
#define SHARE_PEERS 255 // sessions that are not over; a number fits share.lent[]
#define SHARE_GUARD 4096 // readable bytes behind the last buffer: frames are read in whole lines
#define DESCRIPTOR_HOME (1u << 31)

// Written by one side, read-only for the other. Indices count up for ever.
struct outbox {
	uint32_t sent cache_aligned; // frames in frame[]
	uint32_t taken cache_aligned; // frames of the other side's that it needs no more in the other's frame[]
	uint32_t given cache_aligned; // buffers in give[]
	uint32_t sleeps cache_aligned; // how often it went to sleep; a sender rings once for each
	uint64_t frame[SHARE_RING_MAX] cache_aligned; // buffer, DESCRIPTOR_HOME; offset << 32; length << 48
	uint16_t give[SHARE_BUFFERS_MAX];
};

// Buffers of equal size that both sides have mapped.
struct buffers {
	uint8_t *base;
	uint32_t count, bytes; // bytes of each: a multiple of 64
	uint32_t reciprocal;
	struct rte_mbuf **mbuf; // our mbuf of each buffer
};

struct share {
	struct buffers own;
	struct rte_mempool *pool;
	int fd; // of the memory
	uint8_t *lent; // for each buffer: number of the session that has it, or 0; atomic, as links share it
	struct share_link *link[SHARE_LINKS];
	struct peer *peer[SHARE_PEERS + 1];
};

// A session with another process: from the first link until one of them ends, which ends all.
struct peer {
	struct share *share;
	dev_t device; // with inode: which memory it lends, so which process it is
	ino_t inode;
	uint8_t number;
	bool up;
	struct buffers theirs;
	struct rte_mempool *pool; // mbufs of their buffers; NULL: all were given back, and nothing is mapped
	uint8_t *borrowed; // for each of their buffers: 1 while we have it; atomic, as `lent`
	uint32_t out; // how many we have
	rte_spinlock_t lock; // of what follows
	struct share_link *give; // the link by which buffers go back; NULL: the session is over
	uint32_t links;
	int watch[SHARE_LINKS],
		hold[SHARE_LINKS]; // lifelines: of theirs that ends when they need our buffers no more; ours
};

struct share_link {
	struct share *share;
	char name[32], path[108];
	bool server;
	uint32_t ring;
	uint16_t headroom;
	struct rte_mempool *copies;
	int listener, fd, watch; // -1: none
	uint64_t since; // clock_monotonic_ns() when fd was opened
	bool broken; // the other side broke a rule; set under either lock, never taken back while there is a peer
	struct outbox *mine;
	// Set and cleared with both locks held.
	struct peer *peer;
	const struct outbox *theirs;
	uint32_t their_ring;
	rte_spinlock_t rx_lock cache_aligned;
	uint32_t taken, returned; // of theirs->sent, theirs->given
	uint32_t sleeps; // as in mine
	struct share_counters received;
	rte_spinlock_t tx_lock cache_aligned;
	uint32_t sent; // as in mine
	uint32_t rung; // theirs->sleeps, when we rang
	// Of peer->lock: as in mine; the same, and theirs->sleeps, when we last looked whether they sleep
	uint32_t given, given_told, given_rung;
	uint64_t copied;
};

// memory.c
int memory_make(const char *name, size_t bytes, uint8_t **at); // a sealed file; returns its descriptor, or -1
uint8_t *memory_map(
	int fd, size_t bytes, bool writable); // of the other side; NULL when it is not as large, or could shrink
void memory_unmap(const void *at, size_t bytes);
size_t buffers_bytes(const struct buffers *b);
// Returns a pool of mbufs over the buffers; `peer`: freed ones go back to it. NULL without memory.
struct rte_mempool *buffers_pool(
	struct buffers *b, const char *name, uint16_t private_size, uint32_t cache, struct peer *peer);
void buffers_forget(struct buffers *b);
// peer.c
struct peer *peer_join(struct share_link *l, int memory, const struct buffers *theirs);
void peer_end(struct peer *p, const char *why);
void peer_reap(struct peer *p); // of an ended session: gives and takes back all possible buffers
void peer_forget(struct peer *p); // at once, as when the process dies
// session.c: closes the socket and all of its connection
void link_drop(struct share_link *l);
// link.c: takes back all that a session has of ours; returns how many
uint32_t lent_sweep(struct share *s, uint8_t number);
int give_back(struct rte_mempool *pool, void *const *mbufs, unsigned n);

static inline uint32_t buffer_of(const struct buffers *b, const struct rte_mbuf *m)
{
	return (uint32_t)(((uint64_t)((const uint8_t *)m->buf_addr - b->base) >> 6) * b->reciprocal >> 32);
}

#endif
