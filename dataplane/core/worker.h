// SPDX-License-Identifier: Apache-2.0
// A worker: one thread (or the replay loop) that walks its own copy of the graph, run to completion.
//
// struct worker is written by its own thread only; the control thread reads the counters (64-bit aligned, monotonic,
// so a torn or late read is only a late figure). `self` is a thread-local pointer.
#ifndef CORE_WORKER_H
#define CORE_WORKER_H

#include "clock/clock.h"
#include "isthmus_api.h"
#include "wire/cache_line.h"
#include <rte_common.h>
#include <rte_mbuf.h>
#include <stdint.h>

#define VECTOR 64 // packets taken per port and visit
#define MAX_REASONS 256 // drop and punt reasons together
#define MAX_HOLDERS 8 // of packets (core/hold.h)
#define IDENTIFICATIONS 1024 // sequences of IPv4 identifications, of a worker

// Queues of the host path, each served when those before it are empty.
enum host_queue {
	HOST_NEIGHBOUR, // CONTROL_NEIGHBOUR: routing protocols, and what they stand on
	HOST_CONTROL, // other control protocols
	HOST_URGENT, // by DSCP: CS5 to CS7, EF, AF41 to AF43
	HOST_OTHER,
	HOST_QUEUES
};

struct rte_graph;
struct rte_ring;
struct port_queues;
struct sleeper;
struct watch;

// Token bucket for messages that we originate (ICMP errors, echo answers, error indications, punts). Owner thread only.
struct limiter {
	uint64_t rate; // per second; 0: nothing passes
	uint64_t stamp; // ticks
	uint64_t tokens; // in ticks of credit
};

// Packets for another worker, which it gets at the end of the walk.
struct outbox {
	uint32_t count;
	struct rte_mbuf *pkts[VECTOR];
};

struct worker {
	// TSC ticks at the start of this walk, or the replay's clock in TSC units: never less than in the walk before,
	// although the TSC may step back (worker_time()).
	uint64_t now;
	uint64_t tsc_hz; // ticks per second of `now`
	uint32_t id; // 0..engine.workers-1
	int32_t cpu; // -1 when not pinned
	struct rte_mempool *pool; // for packets originated here
	struct rte_graph *graph;
	struct rte_ring *inbox; // packets handed over by other workers and the control thread (multi-producer)
	const struct port_queues *queues; // receive queues that this worker polls; swapped by the control thread
	// By punt reason and queue: traffic that waits for a neighbour must not starve its ARP reply.
	struct limiter punt[MAX_REASONS][HOST_QUEUES];
	// counters; in + originated = out + punted + held + dropped + merged
	uint64_t in, out, originated, punted, merged, dropped;
	int64_t held; // in queues of this worker: scheduler, reassembly, inbox
	uint32_t hold[MAX_HOLDERS]; // buffers held, by holder
	uint64_t reason[MAX_REASONS]; // packets per drop or punt reason
	uint64_t walks, busy_ticks, idle_ticks;
	uint64_t longest_ticks, stalls, stalled_ticks; // of one walk; walks, yields above STALL_MS; sleeps as late
	uint64_t stall; // STALL_MS
	uint64_t shares_until; // ticks: others wanted its CPU lately
	uint64_t notified; // events for the control thread
	uint64_t due; // ticks; earliest of worker_due() in this walk
	struct outbox *outbox; // by worker
	uint32_t outboxes; // bits: those with packets
	struct outbox late; // out of the inbox, for the next walk (handover-rx)
	struct sleeper *sleeper;
	struct watch *watch; // what it sleeps on
	// 1: between two walks, and holds no pointer of the last one; a grace period need not wait for it
	uint32_t asleep;
	uint64_t flow_inserts, flow_evictions, flows, handed_over;
	uint64_t sessions; // owned; written by the control thread
	uint32_t linked; // arcs_generation of its graph
	// Next identifications of our IPv4 packets, by worker_identify(), and the step between two.
	uint16_t identification_step, identification[IDENTIFICATIONS];
} cache_aligned;

extern __thread struct worker *worker_current;

// The time of w's owner thread for its TSC reading. After a step back of more than a millisecond, time continues from
// where the first thread that saw it had been. After a smaller step it stands still.
uint64_t worker_step_back(struct worker *w, uint64_t tsc);
extern uint64_t worker_clock_ahead; // of the TSC; atomic
static inline uint64_t worker_time(struct worker *w, uint64_t tsc)
{
	uint64_t now = tsc + __atomic_load_n(&worker_clock_ahead, __ATOMIC_RELAXED);

	return likely((int64_t)(now - w->now) >= 0) ? now : worker_step_back(w, tsc);
}

// The identification of our IPv4 packet. RFC 6864 §4.3: fragmentable packets of one source, destination and protocol
// differ in it for the lifetime of fragments. Each such triple, `of`, has a sequence, and each worker its own numbers,
// modulo a power of two.
static inline uint16_t worker_identify(struct worker *w, uint32_t of)
{
	uint16_t *next = &w->identification[of % IDENTIFICATIONS], now = *next;

	*next = (uint16_t)(now + w->identification_step);
	return now;
}

// Its sequences begin with `first`; there are so many workers.
static inline void worker_identify_from(struct worker *w, uint16_t first, uint32_t workers)
{
	w->identification_step = (uint16_t)rte_align32pow2(workers);
	for (uint32_t i = 0; i < IDENTIFICATIONS; i++)
		w->identification[i] = first;
}

// The worker of the calling thread. Never NULL inside a node.
static inline struct worker *worker_self(void)
{
	return worker_current;
}

// A node without input packets has work due at this time. An idle worker sleeps at most until then, and never longer
// than WORKER_SLEEP_MS. Repeated in each walk. Owner thread, inside a walk.
#define WORKER_SLEEP_MS 50
static inline void worker_due(struct worker *w, uint64_t ticks)
{
	w->due = RTE_MIN(w->due, ticks);
}

// Any thread, after it published something for worker `id`, which looks at once.
void worker_wake(uint32_t id);

// Changes when w did something.
static inline uint64_t worker_done(const struct worker *w)
{
	return w->in + w->out + w->originated + w->dropped + w->notified;
}

// All workers; index below worker_count(). Valid after the ENGINE object was applied.
struct worker *worker_get(uint32_t id);
uint32_t worker_count(void);

// For sums over everything that counts packets: the workers and, last, the control thread's own counters.
struct worker *worker_any(uint32_t i);
uint32_t worker_total(void); // worker_count() + 1

// Waits until every worker finished the walk that it is in. Control thread only. Returns at once when none runs.
void control_synchronize(void);

uint64_t control_now_ns(void); // CLOCK_MONOTONIC, or the replay's clock
extern struct worker control_worker;
extern struct sleeper control_sleeper; // of the control thread; workers that leave their sleep wake it

// How the engine runs. Threads: the daemon. No threads: replay, unit tests and fuzzing call engine_walk themselves and
// move the clock.
struct engine_mode {
	int threads;
	uint64_t virtual_now; // of the TSC, ticks; used when threads == 0
	uint64_t stepped; // ticks of steps that the control thread's clock, which does not step, did not see; may wrap
};
extern struct engine_mode engine_mode;

// 1 in replay, unit tests and fuzzing: the control thread walks the graph itself.
static inline int engine_without_threads(void)
{
	return !engine_mode.threads;
}

static inline struct rte_mempool *engine_pool(void) // NULL before the ENGINE object was applied
{
	return control_worker.pool;
}

// Of core.
void worker_add(struct worker *w);
void workers_sum(struct api_total_row *to); // packets and sessions of all, and of the control thread
uint64_t workers_done(int *all_idle); // changes when one did something; all_idle: each sleeps, or is about to

// Takes one token. Returns 1 when the message may be sent. Burst: a tenth of a second's worth, at least one.
static inline int limiter_take(struct limiter *l, const struct worker *w)
{
	if (l->rate == 0)
		return 0;
	uint64_t cost = w->tsc_hz / l->rate + 1;
	uint64_t depth = RTE_MAX(w->tsc_hz / 10, cost);
	l->tokens = RTE_MIN(l->tokens + clock_passed(w->now, l->stamp, depth), depth);
	l->stamp = w->now;
	if (l->tokens < cost)
		return 0;
	l->tokens -= cost;
	return 1;
}

#endif
