// SPDX-License-Identifier: Apache-2.0
// Between the graph and the control thread: punted packets in, injected packets out, and timers.
#include "core/engine.h"
#include "core/hold.h"
#include "core/log.h"
#include "core/trace.h"
#include <rte_cycles.h>
#include <rte_ring.h>
#include <string.h>
#include <time.h>

#define MAX_RESUMES 32
#define MAX_TIMERS 32
#define QUIET_AFTER_NS 20000000u // without anything done
#define QUIET_INTERVAL_MS 20u // of timers, then

static_assert(MAX_RESUMES < RESUME_PUNTED, "packet.resume tells them apart");

DROP_REASON(drop_inject_full, "inject-full",
	"the control thread's packet found the worker's inbox full. See engine.packet_buffers, show punt")

static struct {
	struct rte_ring *punted[HOST_QUEUES]; // multi-producer: workers; single consumer: the control thread
	punt_fn handler[MAX_REASONS], access_handler[MAX_REASONS];
	const char *resume[MAX_RESUMES];
	uint16_t resumes;
	struct {
		const char *name;
		uint32_t interval_ms;
		uint64_t due_ns;
		void (*fn)(uint64_t now_ns);
	} timer[MAX_TIMERS];
	uint16_t timers;
	uint64_t done; // of workers_done()
	uint64_t stirred_ns; // when somebody did something
	uint8_t quiet;
} host;

struct sleeper control_sleeper;

static int resume_find(const char *node)
{
	for (uint16_t i = 0; i < host.resumes; i++)
		if (strcmp(host.resume[i], node) == 0)
			return i;
	return -1;
}

uint16_t resume_register(const char *node)
{
	int known = resume_find(node);

	if (known >= 0)
		return (uint16_t)known;
	if (host.resumes == MAX_RESUMES) // before main(): never from input
		rte_panic("more than %d nodes take packets from handover-rx\n", MAX_RESUMES);
	host.resume[host.resumes] = node;
	return host.resumes++;
}

const char *const *resume_names(uint16_t *count)
{
	*count = host.resumes;
	return host.resume;
}

static uint32_t punted_held(void)
{
	uint32_t held = 0;

	for (int q = 0; q < HOST_QUEUES; q++)
		held += host.punted[q] == NULL ? 0 : rte_ring_count(host.punted[q]);
	return held;
}

HOLDER(punted_holder, "punt", max_punted, .held = punted_held)

// Each has room of its own: nobody else takes it from them.
int host_path_start(const struct api_engine *e)
{
	static const char *const name[HOST_QUEUES] = {"punted-neighbour", "punted-control", "punted-urgent", "punted"};

	for (int q = 0; q < HOST_QUEUES; q++) {
		host.punted[q] = hold_ring_create(name[q], e->max_punted / HOST_QUEUES);
		if (host.punted[q] == NULL)
			return -1;
	}
	return 0;
}

int host_path_push(enum host_queue queue, struct rte_mbuf *m)
{
	return hold_ring_put(host.punted[queue], m) ? 0 : -1;
}

static int is_crowded(const struct rte_ring *r)
{
	return rte_ring_count(r) > rte_ring_get_capacity(r) / 2;
}

int host_path_crowded(void)
{
	return is_crowded(host.punted[HOST_CONTROL]);
}

int inboxes_crowded(void)
{
	for (uint32_t i = 0; i < worker_count(); i++)
		if (is_crowded(worker_get(i)->inbox))
			return 1;
	return 0;
}

// The first queue that has packets; NULL: none has.
static struct rte_ring *next_queue(void)
{
	for (int q = 0; q < HOST_QUEUES; q++)
		if (host.punted[q] != NULL && !rte_ring_empty(host.punted[q]))
			return host.punted[q];
	return NULL;
}

void punt_handler_register(const struct reason *r, punt_fn fn)
{
	host.handler[r->id] = fn;
}

void punt_access_handler_register(const struct reason *r, punt_fn fn)
{
	host.access_handler[r->id] = fn;
}

static punt_fn handler_of(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const struct port *p = port_get(pkt->port_in);

	if (p != NULL && p->role == API_ROLE_ACCESS && host.access_handler[pkt->reason] != NULL)
		return host.access_handler[pkt->reason];
	return host.handler[pkt->reason];
}

void host_path_poll(void)
{
	struct rte_mbuf *pkts[VECTOR];
	struct rte_ring *queue;
	uint32_t n;

	// Bounded, so that a flood cannot keep the control thread from its sockets. What came to an earlier queue
	// meanwhile goes before the rest of a later one.
	for (int round = 0; round < 16 && (queue = next_queue()) != NULL; round++) {
		n = hold_ring_take(queue, pkts, VECTOR);
		for (uint32_t i = 0; i < n; i++) {
			punt_fn fn = handler_of(pkts[i]);

			if (fn != NULL)
				fn(pkts[i]);
			else
				rte_pktmbuf_free(pkts[i]);
		}
	}
	channel_flush();
}

struct rte_mbuf *control_originate(void)
{
	control_worker.pool = engine_pool();
	return control_worker.pool == NULL ? NULL : packet_originate(&control_worker);
}

// The control thread's counters take part in the same sum as the workers'; a packet that it took over was counted as
// punted by a worker, so giving it another fate takes one punt back (the sum over all is what counts).
void control_hold(struct rte_mbuf *m)
{
	control_worker.punted--;
	control_worker.held++;
}

void control_unhold(struct rte_mbuf *m)
{
	control_worker.held--;
	control_worker.punted++;
}

void control_drop_held(uint32_t packets, const struct reason *r)
{
	control_worker.held -= packets;
	control_worker.dropped += packets;
	control_worker.reason[r->id] += packets;
}

int engine_without_threads(void)
{
	return !engine_mode.threads;
}

// Also a packet of our own can be punted (it waits for a neighbour), so where it came from says nothing.
static int was_punted(struct rte_mbuf *m)
{
	return packet_of(m)->resume == RESUME_PUNTED;
}

void control_drop(struct rte_mbuf *m, const struct reason *r)
{
	trace_dropped(&control_worker, m, r);
	if (was_punted(m))
		control_worker.punted--;
	control_worker.reason[r->id]++;
	control_worker.dropped++;
	rte_pktmbuf_free(m);
}

int control_inject(uint32_t worker, const char *node, struct rte_mbuf *m)
{
	int resume = resume_find(node), punted = was_punted(m);

	if (worker >= worker_count() || resume < 0) {
		control_drop(m, &drop_inject_full);
		return 0;
	}
	packet_of(m)->resume = (uint8_t)resume;
	packet_of(m)->handed = 0;
	if (!hold_ring_put(worker_get(worker)->inbox, m)) {
		packet_of(m)->resume = punted ? RESUME_PUNTED : (uint8_t)resume;
		control_drop(m, &drop_inject_full);
		return 0;
	}
	worker_wake(worker);
	if (punted)
		control_worker.punted--;
	control_worker.held++;
	return 1;
}

void timer_register(const char *name, uint32_t interval_ms, void (*fn)(uint64_t now_ns))
{
	if (host.timers == MAX_TIMERS)
		rte_panic("more than %d timers\n", MAX_TIMERS);
	host.timer[host.timers].name = name;
	host.timer[host.timers].interval_ms = interval_ms;
	host.timer[host.timers++].fn = fn;
}

uint64_t control_now_ns(void)
{
	if (!engine_mode.threads) {
		uint64_t hz = rte_get_tsc_hz();
		uint64_t now = engine_mode.virtual_now - engine_mode.stepped;

		return now / hz * NS_PER_S + now % hz * NS_PER_S / hz;
	}
	return clock_monotonic_ns();
}

void control_stir(void)
{
	host.stirred_ns = control_now_ns();
	host.quiet = 0;
}

// Quiet: the workers sleep, who will wake this thread, and nobody has done anything for a while.
static void look_around(uint64_t now)
{
	int all_idle;
	uint64_t done = workers_done(&all_idle);

	if (done != host.done)
		host.stirred_ns = now;
	host.done = done;
	host.quiet = all_idle && now - host.stirred_ns > QUIET_AFTER_NS;
}

static int is_stretched(uint16_t timer)
{
	return host.quiet && host.timer[timer].interval_ms < QUIET_INTERVAL_MS;
}

static uint64_t due_at(uint16_t timer)
{
	uint32_t more = is_stretched(timer) ? QUIET_INTERVAL_MS - host.timer[timer].interval_ms : 0;

	return host.timer[timer].due_ns + more * 1000000ull;
}

uint64_t control_rest(void)
{
	uint64_t now = control_now_ns(), due = now + QUIET_INTERVAL_MS * 1000000ull;

	sleeper_listen(&control_sleeper);
	if (!engine_started())
		return due - now;
	look_around(now);
	for (uint16_t i = 0; i < host.timers; i++)
		due = RTE_MIN(due, due_at(i));
	return due > now ? due - now : 0;
}

void control_run_timers(void)
{
	uint64_t now = control_now_ns();

	if (engine_mode.threads)
		look_around(now);
	for (uint16_t i = 0; i < host.timers; i++)
		// What may wait runs together, so that this thread wakes once for all.
		if (now + (is_stretched(i) ? QUIET_INTERVAL_MS * 500000ull : 0) >= due_at(i)) {
			host.timer[i].due_ns = now + host.timer[i].interval_ms * 1000000ull;
			host.timer[i].fn(now);
		}
}
