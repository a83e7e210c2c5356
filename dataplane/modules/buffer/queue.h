// SPDX-License-Identifier: Apache-2.0
// Inside of the buffer module: the queues of packets that wait for an idle UE (TS 29.244 §5.2.4).
//
// Node `buffer` gets packets of rules with RULE_BUFFER or RULE_DRAINING, and of dropping rules with RULE_NOTIFY;
// session_view is set and the IP header is at l3 = 0. Waiting packets belong to the session (its index) and remember
// their PDR id.
//
//   Written by: the session's owner worker (queues, wheels); the control thread (generations, lists of commands).
//   Safe because: only the worker that puts a queue into a session's slot takes it away; a generation rises before
//   the session's index is given to another session
#ifndef BUFFER_QUEUE_H
#define BUFFER_QUEUE_H

#include "core/hold.h"
#include "core/node.h"
#include "rule/far_more.h"
#include "rule/session.h"
#include "wire/cache_line.h"

#define BUFFER_PACKETS 64 // of a session, when the FAR names no number
#define QUEUE_NONE UINT32_MAX
#define NEVER UINT64_MAX
#define WHEEL_SLOTS 1024u
#define WHEEL_MS 4u // of a slot
#define NOTICES 4
#define RETRY_MS 10u // until the control thread is notified again when its ring was full
#define PARTIES 64 // associations with waiting packets on one worker; further ones share the last place
#define RANKS 256 // queues of that many buffers and more are equal

// A waiting packet: replaces the session view, because a rule is valid in one walk only.
struct waiting {
	struct rte_mbuf *next;
	uint64_t since; // ms of the worker's clock
	uint32_t longest; // ms; 0: as long as there is room
	uint16_t pdr;
	uint16_t discard; // api_session.discard when it came
	uint8_t qfi, uplink, dscp, pdu_type; // of the session view, as the next
	uint16_t relayed, front;
};
PACKET_VIEW(waiting)

static inline uint64_t waiting_ends(const struct waiting *x)
{
	return x->longest ? x->since + x->longest : NEVER;
}

struct notice { // that the control plane is to be notified of a packet, later
	uint64_t due; // ms
	uint16_t pdr;
	uint8_t qfi, dscp;
};

struct queue {
	struct rte_mbuf *first, *last;
	uint64_t due; // ms; when something expires or is to be notified
	uint32_t session, generation; // whose it is
	uint32_t packets, buffers;
	uint32_t coloured; // packets of a drop precedence (RFC 2597)
	uint32_t next, prev, slot; // in its worker's wheel; next also in the list of free ones
	uint32_t larger, smaller; // neighbours in the list of its rank, see fair.c
	uint8_t worker;
	uint8_t party; // of its worker
	uint8_t full; // dropped packets were reported to the control plane
	uint8_t notices; // used entries below
	struct notice notice[NOTICES];
} cache_aligned;

// By session index.
struct place {
	uint32_t queue; // QUEUE_NONE: nothing waits
	uint32_t generation; // one more for each session that had this index
	uint32_t next; // in its worker's list of commands; PLACE_IDLE: in none
	uint32_t unnotified; // PDR, QFI and DSCP of a packet that the full ring kept from the control thread; 0: none
};
#define UNNOTIFIED 0x80u // a DSCP has six bits
#define PLACE_IDLE (UINT32_MAX - 1)
#define PLACE_END UINT32_MAX

// Queues of one rank, in the order of arrival there.
struct rank {
	uint32_t first, last;
};

// What waits for the UEs of one association.
struct party {
	uint32_t association;
	uint32_t queues; // 0: the place is free
	uint32_t buffers;
	uint32_t top; // no queue has a higher rank
	struct rank rank[RANKS];
};

struct buffer_worker {
	uint32_t commands; // sessions that changed; the control thread pushes, the worker takes all
	uint32_t todo; // those that it took and has not dealt with
	uint64_t tick; // of the wheel, in WHEEL_MS
	uint32_t slot[WHEEL_SLOTS]; // first queue
	uint32_t filed; // queues in all slots
	uint32_t free; // first of the free queues
	struct party party[PARTIES];
} cache_aligned;

struct buffer_tables {
	struct place *place;
	uint32_t places;
	struct queue *queue;
	struct buffer_worker *worker[API_MAX_WORKERS];
	uint32_t longest; // ms, where the FAR does not say how long; the control thread writes
	uint16_t notice_data, notice_full; // numbers of event_notify()
};
extern struct buffer_tables buffer_tables;
extern struct holder buffer_holder; // of the packets that wait

// How long a packet of the FAR may wait, in ms; 0: without end.
static inline uint32_t buffer_longest(const struct far_more *more)
{
	uint32_t ms = more != NULL ? more->buffer_ms : 0;

	if (ms == UINT32_MAX)
		return 0;
	return ms != 0 ? ms : __atomic_load_n(&buffer_tables.longest, __ATOMIC_RELAXED);
}

static inline uint64_t buffer_now_ms(const struct worker *w)
{
	return w->now / (w->tsc_hz / 1000);
}

// The session's queue, created if missing. NULL: no packet may wait, or another worker has not emptied the old queue
// yet. Drops packets of an earlier session with this index. The session's owner worker.
struct queue *queue_ensure(struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t session);
struct queue *queue_find(struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t session);
void queue_free(struct worker *w, struct queue *q); // an empty one
void queue_append(struct worker *w, struct queue *q, struct rte_mbuf *m, struct waiting as);
// Reports its notices ahead of time and frees it: a queue without packets.
void queue_give_up(struct worker *w, struct queue *q);
// fair.c: a queue enters, changes its buffers, leaves. The first queue that has notices only, or NULL. The longest
// queue, or NULL.
void fair_enter(struct buffer_worker *b, struct queue *q);
void fair_move(struct buffer_worker *b, struct queue *q, uint32_t buffers);
void fair_leave(struct buffer_worker *b, struct queue *q);
struct queue *fair_empty(struct buffer_worker *b);
struct queue *fair_longest(struct buffer_worker *b);
struct rte_mbuf *queue_pop(struct worker *w, struct queue *q); // NULL at the end; the packet counts as held no longer
// The same of the oldest packet of the highest drop precedence that waits, when that is above `precedence`; else NULL.
struct rte_mbuf *queue_yield(struct worker *w, struct queue *q, uint8_t precedence);
// Puts it into the wheel at the time when something is due, or frees it when it has no purpose any more.
void queue_file(struct worker *w, struct queue *q);

// Reads the argument of event_notify: generation of the index, PDR, and 16 bits more (QFI and DSCP, or a length). Fills
// in the session; 0 when it is gone. Control thread.
int queue_event_of(struct api_event *e, uint32_t session, uint64_t argument);

// DOWNLINK_DATA (pending.c): a worker reports the first packet of a PDR; the event is raised now or as soon as it is
// accepted.
void pending_data(uint32_t worker, uint32_t session, uint64_t argument);
void pending_lost(void); // some workers found their rings full: place.unnotified has their reports
int pending_start(uint32_t sessions);

// A notified worker found another worker's queue: notifies that worker.
void queue_owner_notify(uint32_t session, uint32_t worker);

// Drops everything in it, under the reason of packets that are given up.
void queue_discard(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q);

#endif
