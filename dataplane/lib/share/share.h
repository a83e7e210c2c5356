// SPDX-License-Identifier: Apache-2.0
// Links between two processes on one machine that exchange buffers instead of copying frames. README.md describes the
// memory, each buffer's owner, and the death of a process.
//
// One thread, the control thread of the process, calls everything but share_rx(), share_sleep() and share_tx(), which
// any thread may call.
#ifndef SHARE_H
#define SHARE_H

#include <rte_mbuf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_BUFFERS_MAX 65536
#define SHARE_RING_MIN 64
#define SHARE_RING_MAX 8192
#define SHARE_UNKNOWN UINT32_MAX // mbuf.hash.usr of an own buffer that came back without a frame: others wrote to it

extern int share_logtype; // of its log lines

struct share; // what a process lends: buffers that others may read and write
struct share_link; // one end of a link

struct share_want {
	const char *name; // of the pool
	uint32_t buffers; // 1 to SHARE_BUFFERS_MAX
	uint32_t room; // bytes of each, with the headroom; rounded up to 64
	uint16_t private_size; // of its mbufs
	uint32_t cache; // mbufs of a thread
};

struct share_link_want {
	const char *name; // for messages
	const char *path; // of the Unix socket
	bool server; // listens, one client at a time; a client retries until it is served
	uint32_t ring; // frames under way: a power of two
	uint16_t headroom; // of received frames; one with less is copied
	// For frames that are copied on reception; its private_size is that of all received mbufs
	struct rte_mempool *pool;
};

struct share_counters {
	uint64_t no_buffer; // frames that were to be copied on reception and were lost: the pool was empty
	uint64_t copied; // frames that were copied, either way
};

// Both return NULL after a sentence in `error`.
struct share *share_new(const struct share_want *want, char *error, size_t n);
// The mbufs of lent buffers: a frame in one of them is sent without a copy. They look direct (README.md).
struct rte_mempool *share_pool(struct share *s);
// Reclaims lent buffers: the process ends, or no link was ever opened.
void share_free(struct share *s);
struct share_link *share_open(struct share *s, const struct share_link_want *want, char *error, size_t n);
void share_close(struct share_link *l); // no thread is in share_rx() or share_tx() of it
// Connects, and notices dead peers. Call every few milliseconds, also when all links are closed.
void share_poll(struct share *s);
bool share_up(const struct share_link *l); // any thread
uint32_t share_lent(const struct share *s); // buffers that others have at the moment
void share_count(const struct share_link *l, struct share_counters *c);

// Frames of one segment with refcnt 1, ol_flags 0 and packet_type 0; the private area is unchanged. Any thread may free
// them.
uint16_t share_rx(struct share_link *l, struct rte_mbuf **pkts, uint16_t n);
// The receiving thread is about to sleep: false when frames wait. Else it may poll(2) `fd`, which becomes readable when
// frames come; -1: it may wait until the link is up. The peer may ring without reason, or never: neither wait for ever
// nor return at once every time.
bool share_sleep(struct share_link *l, int *fd);
// Returns how many were taken; the caller keeps the rest, behind them. Both keep their order.
uint16_t share_tx(struct share_link *l, struct rte_mbuf **pkts, uint16_t n);

#endif
