// SPDX-License-Identifier: Apache-2.0
// State of the scheduler: buckets, pipes, subports, the timing wheel.
//
// Time: internal units of 2^-35 s (29 ps), counted from EPOCH at creation; 64 bits last 17 years.
//
// Bucket: a token bucket kept as one time stamp, `free_at`. Packets may leave once free_at <= now. Each advances
// free_at by its length times the cost of a byte, starting at now - burst at the earliest. This equals a token bucket
// of `burst` that a packet may overdraw by its own length. It needs no refill and one compare, and eligibility does not
// depend on length.
//
// A pipe is idle (no packets), active (in its subport's round), parked (in the timing wheel until its own buckets allow
// a packet) or waiting. Waiting: its classes lack credit at the subport, or other pipes come first there.
//
// A class whose rate at the subport is used up has a list of waiting pipes. New credit goes to the pipes in turn as a
// grant: leave to send that class in their next turn.
#ifndef HQOS_PRIVATE_H
#define HQOS_PRIVATE_H

#include "hqos/hqos.h"
#include "wire/cache_line.h"
#include <assert.h>
#include <rte_branch_prediction.h>
#include <rte_prefetch.h>
#include <rte_red.h>
#include <string.h>

#define NIL UINT32_MAX
#define SECOND (1ull << 35)
#define EPOCH (1ull << 50)
#define COST_SHIFT 16 // fraction bits of the cost of a byte
#define SLOT_SHIFT 17 // one slot of the wheel: 3.8 us
#define SLOTS 4096u // 15.6 ms
#define READY 2048u // packets that passed straight through, waiting for dequeue
#define AHEAD 16 // packets, prefetch
#define PIPE_QUANTUM 2048 // bytes of a pipe's turn
#define SUBPORT_QUANTUM 32768 // bytes of the fastest subport's turn; the others' in proportion to their rates
#define SHARE_MAX 16383 // longest frame as the shares see it, so that a deficit fits 16 bits

struct rate {
	uint64_t cost; // units per byte << COST_SHIFT; 0: no cap
	uint64_t burst; // units
};

enum { IDLE, ACTIVE, PARKED, WAITING };

// Passed packets of a class, in the high 8 bits, and bytes, in the low 24, until they go to hqos.accepted.
#define TAKEN_PACKET (1u << 24)

// All that a packet needs that passes straight through, dense: of 65,536 pipes 4 MB.
struct pipe {
	uint64_t free_at;
	uint64_t class_free_at[API_TRAFFIC_CLASSES];
	uint32_t taken[API_TRAFFIC_CLASSES];
	uint32_t next; // ACTIVE, PARKED: in the round or slot
	uint16_t profile : 5;
	uint16_t subport : 6;
	uint16_t level : 5; // its list among the longest; 0: in none
	uint8_t mask; // queues that hold packets
	uint8_t state : 2;
	uint8_t turn : 2; // best-effort queue whose turn it is
	uint8_t granted : 4; // classes
} cache_aligned;

// Of a pipe in which packets wait, by its index. Linked through the 8 bytes of mbuf->hash.
struct pipe_queues {
	uint16_t queued[HQOS_QUEUES];
	uint16_t slot : 12; // PARKED: of the wheel
	uint16_t wants : 4; // classes for which the pipe is in its subport's list
	int16_t be_deficit[API_BE_QUEUES]; // bytes
	int32_t deficit; // bytes
	uint32_t prev;
	struct {
		struct rte_mbuf *head, *tail;
	} queue[HQOS_QUEUES];
} cache_aligned;
static_assert(SLOTS == 1 << 12, "a slot fits 12 bits");
static_assert(API_MAX_PIPE_PROFILES <= 1 << 5 && API_MAX_SUBPORTS <= 1 << 6, "profile and subport fit their bits");
static_assert(
	sizeof(struct pipe) == 64 && sizeof(struct pipe_queues) == 192, "a pipe is one line, and three that wait");
static_assert(255ull * (UINT16_MAX + 256) < TAKEN_PACKET, "255 frames fit pipe.taken");

struct profile {
	struct rate rate;
	struct rate class_rate[API_TRAFFIC_CLASSES];
	int16_t quantum[API_BE_QUEUES]; // bytes
};

struct list {
	uint32_t head, tail; // pipes
};

struct subport {
	uint64_t free_at;
	uint64_t class_free_at[API_TRAFFIC_CLASSES];
	struct rate rate;
	struct rate class_rate[API_TRAFFIC_CLASSES];
	struct list active;
	struct list wanting[API_TRAFFIC_CLASSES]; // linked through hqos.want_next
	uint32_t wanted; // classes whose list is not empty
	int32_t deficit, quantum; // bytes
	uint32_t grants[API_TRAFFIC_CLASSES]; // given and not used
	uint32_t held[API_TRAFFIC_CLASSES]; // packets
	struct {
		uint64_t packets, bytes;
	} accepted[API_TRAFFIC_CLASSES], dropped[API_TRAFFIC_CLASSES];
	uint64_t dropped_by[API_TRAFFIC_CLASSES][2]; // drop precedence 1, 2
} cache_aligned;

// Pipes by the length of their longest queue (hqos_longest.c).
#define LEVELS 18u // of a queue of up to 65535 packets: 0 to 16; level 0 has no list
struct long_link {
	uint32_t next, prev; // pipes
};

struct class_count {
	uint64_t packets, bytes;
};

struct hqos {
	uint64_t misplaced; // packets; the owner's
	size_t memory;
	uint32_t profiles;
	uint32_t total_pipes;
	uint32_t pipes[API_MAX_SUBPORTS]; // 0: not here
	uint32_t first[API_MAX_SUBPORTS]; // index of pipe 0 among all pipes of the instance
	uint64_t now; // units
	uint64_t free_at; // of the port
	struct rate rate;
	uint64_t origin, scale; // now = EPOCH + (ticks - origin) * scale >> 32
	uint64_t ready; // bit per subport: has active pipes and its own rate allows a packet
	uint64_t blocked; // bit per subport: holds packets, waits for its own rate or a class's
	uint64_t wake_at; // when the first of those may go on
	uint32_t turn; // subport
	uint32_t overhead;
	uint32_t queue_size[3][API_TRAFFIC_CLASSES]; // by drop precedence
	struct rte_red *red[API_TRAFFIC_CLASSES]; // of each queue of the class; NULL: no random early detection
	uint32_t held; // packets in queues
	uint32_t passed_head, passed_tail; // free running
	uint32_t parked; // pipes in the wheel
	uint32_t budget; // pipes that this dequeue may still look at
	uint64_t wheel_tick; // slots up to here have been emptied
	struct pipe *pipe;
	struct pipe_queues *queues; // per pipe
	struct class_count (*accepted)[API_TRAFFIC_CLASSES]; // per pipe, but for pipe.taken
	struct class_count (*dropped)[API_TRAFFIC_CLASSES]; // per pipe
	uint32_t (*want_next)[API_TRAFFIC_CLASSES]; // per pipe
	struct long_link *long_link; // per pipe
	struct list longest[LEVELS];
	uint32_t levels; // bit per list: is not empty
	struct profile profile[API_MAX_PIPE_PROFILES];
	struct rte_red_config red_config[API_TRAFFIC_CLASSES];
	bool (*mark)(struct rte_mbuf *m);
	struct rte_mbuf *passed[READY];
	struct subport subport[API_MAX_SUBPORTS];
	uint64_t wheel_bits[SLOTS / 64];
	struct list wheel[SLOTS];
};

static_assert(sizeof(((struct rte_mbuf *)0)->hash) == sizeof(void *), "a link fits mbuf->hash");

static inline bool place_valid(const struct hqos *h, uint32_t place)
{
	uint32_t subport = hqos_place_subport(place);
	return subport < API_MAX_SUBPORTS && hqos_place_pipe(place) < h->pipes[subport] &&
	       hqos_place_queue(place) < HQOS_QUEUES;
}

static inline struct pipe_queues *queues_of(const struct hqos *h, const struct pipe *p)
{
	return &h->queues[p - h->pipe];
}

static inline struct rte_mbuf *link_get(const struct rte_mbuf *m)
{
	struct rte_mbuf *next;
	memcpy(&next, &m->hash, sizeof(next));
	return next;
}

static inline void link_set(struct rte_mbuf *m, struct rte_mbuf *next)
{
	memcpy(&m->hash, &next, sizeof(next));
}

static inline uint64_t charge(uint64_t free_at, uint64_t now, const struct rate *rate, uint32_t length)
{
	uint64_t floor = now - rate->burst;
	return (free_at > floor ? free_at : floor) + ((length * rate->cost + (1u << (COST_SHIFT - 1))) >> COST_SHIFT);
}

// Takes a packet out of the credit of all five buckets that it passes.
static inline void charge_all(struct hqos *h, struct subport *sp, struct pipe *p, uint32_t c, uint32_t length)
{
	const struct profile *profile = &h->profile[p->profile];
	uint64_t now = h->now;
	p->free_at = charge(p->free_at, now, &profile->rate, length);
	p->class_free_at[c] = charge(p->class_free_at[c], now, &profile->class_rate[c], length);
	sp->free_at = charge(sp->free_at, now, &sp->rate, length);
	sp->class_free_at[c] = charge(sp->class_free_at[c], now, &sp->class_rate[c], length);
	h->free_at = charge(h->free_at, now, &h->rate, length);
}

static inline void advance_clock(struct hqos *h, uint64_t ticks)
{
	uint64_t passed = ticks - h->origin;
	uint64_t now = EPOCH + (uint64_t)((unsigned __int128)passed * h->scale >> 32);
	// Signed: a time before the origin must not look like the far future.
	if ((int64_t)passed > 0 && now > h->now)
		h->now = now;
}

static inline uint32_t class_mask(const struct pipe *p)
{
	return (p->mask & 7) | (p->mask > 7) << HQOS_BEST_EFFORT;
}

// hqos_red.c

// Sets up the classes that ask for random early detection, at the end of creation. 0: no memory.
bool red_create(struct hqos *h, const struct hqos_params *params);
// Whether the packet is not to enter its queue, which is not full.
bool red_refuses(struct hqos *h, uint32_t pipe, uint32_t q, struct rte_mbuf *m);
// The queue has run empty; its class has random early detection.
void red_empty(struct hqos *h, uint32_t pipe, uint32_t q);

// hqos_longest.c

// The pipe's queue has grown to `length`, of which the pipe's level does not know yet.
void level_raise(struct hqos *h, uint32_t pipe, uint32_t length);

// hqos_serve.c

// Takes the first packet out of a queue that is not empty.
struct rte_mbuf *pop_queue(struct hqos *h, struct subport *sp, struct pipe *p, uint32_t q);

// Puts a pipe that holds packets and is neither active nor parked where it belongs: active, parked or waiting.
void settle_pipe(struct hqos *h, struct subport *sp, uint32_t pipe);
// Decides again for a parked or waiting pipe.
void resettle_pipe(struct hqos *h, struct subport *sp, uint32_t pipe);
// Finds blocked subports whose time has come.
void wake_subports(struct hqos *h);

#endif
