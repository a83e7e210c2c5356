// SPDX-License-Identifier: Apache-2.0
// State of our own scheduling engine: buckets, pipes, subports, the timing wheel.
//
// Time: internal units of 2^-35 s (29 ps), counted from EPOCH at creation; 64 bits last 17 years.
//
// Bucket: a token bucket kept as one moment, `free_at`: packets may leave once free_at <= now, and each moves free_at
// on by its length times the cost of a byte, starting no earlier than now - burst. That is a token bucket of `burst`
// that a packet may overdraw by its own length: no refill to do, one compare to ask, and eligibility does not depend on
// length.
//
// A pipe is idle (no packets), active (in its subport's round), parked (in the timing wheel until its own buckets allow
// a packet) or waiting (every class that could send lacks credit at the subport, or others are before it there).
//
// A class whose rate at the subport is used up has a list of the pipes that want it. As credit comes in, pipes are
// taken from the list in turn and get a grant: leave to send that class in their next turn.
#ifndef HQOS_OWN_H
#define HQOS_OWN_H

#include "hqos/hqos_private.h"
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

// What passed, of a class: packets in the high 8 bits, bytes in the low 24, until they go to own.accepted.
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
} __rte_cache_aligned;

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
} __rte_cache_aligned;
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
	struct list wanting[API_TRAFFIC_CLASSES]; // linked through own.want_next
	uint32_t wanted; // classes whose list is not empty
	int32_t deficit, quantum; // bytes
	uint32_t grants[API_TRAFFIC_CLASSES]; // given and not used
	uint32_t held[API_TRAFFIC_CLASSES]; // packets
	struct {
		uint64_t packets, bytes;
	} accepted[API_TRAFFIC_CLASSES], dropped[API_TRAFFIC_CLASSES];
	uint64_t dropped_by[API_TRAFFIC_CLASSES][2]; // drop precedence 1, 2
} __rte_cache_aligned;

// Pipes by the length of their longest queue (hqos_longest.c).
#define LEVELS 18u // of a queue of up to 65535 packets: 0 to 16; level 0 has no list
struct long_link {
	uint32_t next, prev; // pipes
};

struct class_count {
	uint64_t packets, bytes;
};

struct own {
	struct hqos head;
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

static inline struct pipe_queues *queues_of(const struct own *o, const struct pipe *p)
{
	return &o->queues[p - o->pipe];
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
static inline void charge_all(struct own *o, struct subport *sp, struct pipe *p, uint32_t c, uint32_t length)
{
	const struct profile *profile = &o->profile[p->profile];
	uint64_t now = o->now;
	p->free_at = charge(p->free_at, now, &profile->rate, length);
	p->class_free_at[c] = charge(p->class_free_at[c], now, &profile->class_rate[c], length);
	sp->free_at = charge(sp->free_at, now, &sp->rate, length);
	sp->class_free_at[c] = charge(sp->class_free_at[c], now, &sp->class_rate[c], length);
	o->free_at = charge(o->free_at, now, &o->rate, length);
}

static inline void own_clock(struct own *o, uint64_t ticks)
{
	uint64_t passed = ticks - o->origin;
	uint64_t now = EPOCH + (uint64_t)((unsigned __int128)passed * o->scale >> 32);
	// Signed: a time before the origin must not look like the far future.
	if ((int64_t)passed > 0 && now > o->now)
		o->now = now;
}

static inline uint32_t class_mask(const struct pipe *p)
{
	return (p->mask & 7) | (p->mask > 7) << HQOS_BEST_EFFORT;
}

// hqos_red.c

// Sets up the classes that ask for random early detection, at the end of creation. 0: no memory.
bool own_red_create(struct own *o, const struct hqos_params *params);
// Whether the packet is not to enter its queue, which is not full.
bool own_red_refuses(struct own *o, uint32_t pipe, uint32_t q, struct rte_mbuf *m);
// The queue has run empty; its class has random early detection.
void own_red_empty(struct own *o, uint32_t pipe, uint32_t q);

// hqos_longest.c

// The pipe's queue has grown to `length`, of which the pipe's level does not know yet.
void own_level_raise(struct own *o, uint32_t pipe, uint32_t length);
uint32_t own_push_out(struct hqos *h, struct rte_mbuf **out, uint32_t n);
uint32_t own_longest(const struct hqos *h);

// hqos_serve.c

// Takes the first packet out of a queue that has one.
struct rte_mbuf *own_queue_pop(struct own *o, struct subport *sp, struct pipe *p, uint32_t q);

// Puts a pipe that holds packets and is neither active nor parked where it belongs: active, parked or waiting.
void own_settle(struct own *o, struct subport *sp, uint32_t pipe);
// Decides anew for a parked or waiting pipe.
void own_resettle(struct own *o, struct subport *sp, uint32_t pipe);
// Finds blocked subports whose time has come.
void own_wake_subports(struct own *o);
uint32_t own_dequeue(struct hqos *h, struct rte_mbuf **out, uint32_t n, uint64_t now);

#endif
