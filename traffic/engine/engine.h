// SPDX-License-Identifier: Apache-2.0
// Inside of the tester: ports, egresses and threads.
//
//   main thread    opens, commands, waits, copies counters; never touches a packet.
//   Tester thread  receives on its ports and sends on its egresses, in one loop; only this thread touches them.
//
// The main thread writes `command` (release) and waits until every thread has written it to `seen` (release). So
// threads see its earlier writes, and it sees theirs.
#ifndef TRAFFIC_ENGINE_H
#define TRAFFIC_ENGINE_H

#include "clock/clock.h"
#include "core/ethdev.h"
#include "share/share.h"
#include "traffic/engine/capture.h"
#include "traffic/engine/machine.h"
#include "traffic/engine/stream.h"
#include "wire/cache_line.h"
#include <pthread.h>
#include <rte_ethdev.h>
#include <signal.h>

#define BURST 64

enum command {
	COMMAND_IDLE, // receive only; what arrives is stray, so that a trial's counters are at rest
	COMMAND_ARM, // clear counters, know the trial's number
	COMMAND_SEND,
	COMMAND_DRAIN, // send no more
	COMMAND_STOP, // end the thread
};

// Says how many packets are due. Fixed point, so that no rounding adds up.
struct pacer {
	uint64_t begun; // ticks
	uint64_t sent; // since then, with those given up
	uint64_t step; // packets per tick, times 2^48; 0: none; PACER_UNLIMITED
	uint64_t late; // given up, because the thread was behind by more than it may catch up
	uint64_t may_catch_up; // packets
};
#define PACER_UNLIMITED UINT64_MAX

// Streams with one pacer: those with shares of the trial's rate, or a single one with its own rate.
struct group {
	struct pacer pacer;
	uint32_t places, at;
	uint16_t *place; // index of the sender for each place: the shares, spread evenly
};

struct tester_port {
	const struct job_port *want;
	struct ethdev dev; // of a link (driver share): queues and address alone
	struct share_link *link; // NULL: dev
	uint16_t index;
	struct rte_ring *neighbour_answers; // mbufs for the thread that sends on this port; many producers
	struct check check; // of the receiving thread
	uint64_t received_frames;
};

struct egress {
	struct tester_port *port;
	struct rte_mempool *pool;
	uint32_t senders, groups;
	uint32_t turn; // of the groups without a limit
	struct sender **sender; // the streams that are sent here
	struct group *group;
	struct rte_mbuf *pending[BURST]; // made, but not taken by an unlimited port yet
	struct sender *pending_from[BURST];
	uint16_t pendings, queue;
	uint32_t nonce, stride;
};

struct tester_thread {
	struct tester *tester;
	pthread_t thread;
	pid_t tid;
	uint32_t index;
	int cpu; // -1: not pinned, and sleeps when there is nothing to do
	uint32_t ports, egresses;
	struct tester_port *port[JOB_PORTS]; // that it receives on
	struct egress *egress[JOB_PORTS];
	uint32_t seen; // last command, written with release
	uint64_t busy, longest; // ticks of loops with work; longest loop
	uint8_t *linear; // FRAME_MAX bytes for chained frames
} cache_aligned;

struct tester {
	const struct work *work;
	double tsc_hz;
	struct pattern pattern;
	struct rte_mempool *tx_pool, *rx_pool;
	struct share *share; // whose pool is tx_pool, where a port has a link; else NULL
	uint32_t ports, threads;
	struct tester_port *port;
	struct egress *egress; // one for each port
	struct sender *sender; // one for each stream
	struct receiver *receiver;
	struct tester_thread *thread;
	struct capture *capture;
	double nearest_ns; // shortest round trip to the gateway's CPU so far; 0 unknown
	uint32_t command; // generation << 3 | enum command
	uint32_t nonce; // of this trial
	uint64_t stray_told; // of what the ports have counted, in results
	uint64_t arrived, silent_since; // frames so far, as the main thread has seen them; clock_monotonic_ns()
	uint64_t links_until; // all links are waited for until then, clock_monotonic_ns()
	uint64_t begin, end; // ticks: when sending starts, and when threads stop sending of themselves
	const volatile sig_atomic_t *stop; // not 0: interrupted
};

static inline uint16_t port_receive(struct tester_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return p->link != NULL ? share_rx(p->link, m, n) : rte_eth_rx_burst(p->dev.id, queue, m, n);
}

static inline uint16_t port_send(struct tester_port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	return p->link != NULL ? share_tx(p->link, m, n) : rte_eth_tx_burst(p->dev.id, queue, m, n);
}

// send.c: the sending thread

// Fills a buffer with the pattern, before it is used for the first time (mempool callback).
void egress_prepare_buffer(struct rte_mempool *pool, void *pattern, void *mbuf, unsigned index);
// A received mbuf may be one of egress_prepare_buffer()'s, returned over a link. Its pattern is known to be intact if
// the frame was found right and ended at the same place.
void egress_buffer_home(struct rte_mbuf *m, bool right);
void egress_clear(struct egress *l, uint32_t nonce);
void egress_begin(struct egress *l, uint64_t now);
// Sends what is due at `now`. Returns how many packets it tried to send.
uint32_t egress_send(struct egress *l, uint64_t now);
// Sends the answers to neighbours' questions that wait, between trials too. Returns how many.
uint32_t egress_send_neighbour_answers(struct egress *l);
void egress_end(struct egress *l); // gives back what is pending
// How many packets a pacer with a limit owes from its begin until `now`; 0 without a limit.
uint64_t pacer_target(const struct pacer *p, uint64_t now);
// Whether less than `part` of the packets owed until `end` was sent; one packet is rounding.
bool pacer_fell_behind(const struct pacer *p, uint64_t end, double part);
// How many packets are due, at most BURST.
uint32_t pacer_due(struct pacer *p, uint64_t now);

// worker.c

int threads_start(struct tester *t, char *error, size_t n);
void threads_command(struct tester *t, enum command c); // returns when all have seen it
void threads_stop(struct tester *t);

#endif
