// SPDX-License-Identifier: Apache-2.0
// Hierarchical scheduler for the downlink of an access port: port -> subport (service group) -> pipe (subscriber) ->
// four traffic classes. TC0..TC2 are strict priority with one queue each; TC3 is best effort with four queues that
// share by weight, in bytes. Seven queues for each pipe. README.md has the picture and the exact semantics.
//
// Thread: an instance belongs to one worker. The control thread may call hqos_create, hqos_pipe_config and hqos_free
// before it gives the instance to the worker, and after it has it back. While the worker runs, only the hqos_*_stats
// reads are allowed to others. No call after hqos_create allocates, locks or blocks.
//
// Units: rates in bytes per second, bursts in bytes, lengths in bytes (pkt_len + frame_overhead for all rates and
// shares; pkt_len alone in the counters), queue sizes in packets. `now` is in ticks of params.hz, from any origin; time
// never runs backwards (an earlier `now` counts as the latest one seen).
#ifndef HQOS_H
#define HQOS_H

#include "isthmus_api.h"
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HQOS_QUEUES 7u // of one pipe: TC0, TC1, TC2, then the four of TC3
#define HQOS_BEST_EFFORT 3u // the traffic class with API_BE_QUEUES queues
#define HQOS_MAX_PIPES (1u << 16) // of one instance, all its subports together
#define HQOS_ALL_WORKERS UINT32_MAX
#define HQOS_ERROR 256 // bytes of error text
#define HQOS_MIN_RATE 1000u // bytes per second, any level
#define HQOS_MAX_RATE 100000000000ull // bytes per second, any level

struct hqos;

// All is copied. A class rate of 0: no cap of its own. A burst of 0: the smallest useful one; bursts shorter than 64 us
// at their rate are raised to that, since a worker polls no more often.
struct hqos_params {
	const struct api_scheduler *scheduler;
	uint32_t worker; // only the subports of this worker; HQOS_ALL_WORKERS: all
	int socket; // NUMA node of the memory, or SOCKET_ID_ANY
	uint64_t rate; // of the port, this instance's share of it; 0: scheduler->rate
	uint64_t burst; // of the port, bytes; 0: one millisecond at `rate`
	uint64_t hz; // of `now`: rte_get_tsc_hz(), or 1000000000 for nanoseconds
	uint64_t start; // `now` at creation; the buckets are full then
	// Marks a packet that random early detection has chosen; false: it cannot be marked, and is dropped. NULL: none
	// can.
	bool (*mark)(struct rte_mbuf *m);
};

// Counters of a (subport, class) or (pipe, class). Packets that left = packets - queued.
struct hqos_stats {
	uint64_t packets, bytes; // accepted
	uint64_t dropped_packets, dropped_bytes; // handed back, because the queue was full or by random early detection
	uint64_t dropped_by[2]; // of dropped_packets, those of drop precedence 1, 2; of a subport
	uint32_t queued; // held now
};

// A packet's place is in mbuf->hash.sched.queue_id, in the mbuf's first cache line. The line is hot: the previous node
// has just written the packet's header fields. The place does not depend on the instance: a session computes it once,
// and a rule holds its class and queue. While a packet is held the scheduler owns all 8 bytes of mbuf->hash; afterwards
// they have no meaning.

#define HQOS_PLACE_NONE UINT32_MAX // no such place in any instance
#define HQOS_PLACE_EARLY 7u // the same (no place has queue 7): of a packet that random early detection handed back
#define HQOS_PLACE_PRECEDENCE 15u // likewise: dropped for its precedence; the queue was not full

// queue: 0..3 within TC3, ignored for the others. Arguments out of range give HQOS_PLACE_NONE.
static inline uint32_t hqos_place(uint32_t subport, uint32_t pipe, uint32_t traffic_class, uint32_t queue)
{
	if (subport >= API_MAX_SUBPORTS || pipe >= HQOS_MAX_PIPES || traffic_class >= API_TRAFFIC_CLASSES ||
		queue >= API_BE_QUEUES)
		return HQOS_PLACE_NONE;
	return subport << 19 | pipe << 3 |
	       (traffic_class == HQOS_BEST_EFFORT ? HQOS_BEST_EFFORT + queue : traffic_class);
}

// For the fast path: a pipe's place (class 0) and the byte `class << 2 | queue` of api_scheduler's tables, in range.
static inline uint32_t hqos_place_class(uint32_t place, uint8_t class_queue)
{
	uint32_t traffic_class = class_queue >> 2 & 3;
	uint32_t queue = traffic_class == HQOS_BEST_EFFORT ? HQOS_BEST_EFFORT + (class_queue & 3) : traffic_class;
	return (place & ~7u) | queue;
}

static inline uint32_t hqos_place_subport(uint32_t place)
{
	return place >> 19;
}

static inline uint32_t hqos_place_pipe(uint32_t place)
{
	return place >> 3 & (HQOS_MAX_PIPES - 1);
}

// 0..6: TC0, TC1, TC2, TC3's four.
static inline uint32_t hqos_place_queue(uint32_t place)
{
	return place & 7;
}

static inline uint32_t hqos_queue_class(uint32_t queue)
{
	return queue < HQOS_BEST_EFFORT ? queue : HQOS_BEST_EFFORT;
}

static inline void hqos_set_place(struct rte_mbuf *m, uint32_t place)
{
	m->hash.sched.queue_id = place;
	m->hash.sched.color = 0;
}

// The same for a packet of drop precedence 0, 1 or 2 (api_scheduler.precedence_size).
static inline void hqos_set_place_of(struct rte_mbuf *m, uint32_t place, uint8_t precedence)
{
	m->hash.sched.queue_id = place;
	m->hash.sched.color = precedence;
}

// Checks the parameters and builds an instance, all pipes on profile 0. NULL on refusal, with one sentence in `error`
// (HQOS_ERROR bytes). Memory comes from rte_malloc.
struct hqos *hqos_create(const struct hqos_params *params, char error[HQOS_ERROR]);

// Frees the instance and its packets; returns their number, for the caller's counters.
uint32_t hqos_free(struct hqos *h);

// Gives a pipe one of the scheduler's profiles. Takes effect for the next packet; queued packets stay, and the pipe's
// buckets start afresh (full). Called by the owner thread. Returns 0, or -EINVAL when there is no such subport here,
// pipe or profile.
int hqos_pipe_config(struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t profile);

// Takes `n` packets, each at the place set by hqos_set_place. Those not taken (queue full, early detection, no such
// place here) are written to `rejected` in their order and stay the caller's; returns how many. `rejected` has room for
// `n` and may be `packets` itself.
uint32_t hqos_enqueue(struct hqos *h, struct rte_mbuf **packets, uint32_t n, uint64_t now, struct rte_mbuf **rejected);

// Of a packet that hqos_enqueue just handed back: random early detection chose it.
static inline bool hqos_early(const struct rte_mbuf *m)
{
	return m->hash.sched.queue_id == HQOS_PLACE_EARLY;
}

// The same of a packet dropped for its precedence.
static inline bool hqos_preceded(const struct rte_mbuf *m)
{
	return m->hash.sched.queue_id == HQOS_PLACE_PRECEDENCE;
}

// Writes up to `n` packets that may leave now to `out`; returns how many. Call it on every walk, even without new
// packets.
uint32_t hqos_dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now);

// Makes room: removes up to `n` packets, the oldest of the longest queues first. The caller gets and drops them; they
// count as accepted and as dropped. Lengths are compared by powers of two; queues of equal rank take turns; a queue's
// last packet stays. Returns how many; 0: no queue has more than one packet.
uint32_t hqos_push_out(struct hqos *h, struct rte_mbuf **out, uint32_t n);

// The longest queue has had less than 2 to the power of this many packets; below 2: hqos_push_out() finds none.
uint32_t hqos_longest(const struct hqos *h);

// Packets held.
uint32_t hqos_queued(const struct hqos *h);

// Any thread may read at any time; each counter is one aligned 64-bit word that only the owner writes, so two of them
// may be a packet apart. Return 0, or -EINVAL when there is no such subport here, pipe or class.

int hqos_subport_stats(const struct hqos *h, uint32_t subport, uint32_t traffic_class, struct hqos_stats *stats);
int hqos_pipe_stats(
	const struct hqos *h, uint32_t subport, uint32_t pipe, uint32_t traffic_class, struct hqos_stats *stats);

// Packets handed back because their place does not exist here.
uint64_t hqos_misplaced(const struct hqos *h);

// Pipes of a subport here (a power of two); 0: the subport does not exist or is another worker's.
uint32_t hqos_pipes(const struct hqos *h, uint32_t subport);

// Bytes of memory that the instance takes.
size_t hqos_memory(const struct hqos *h);

#endif
