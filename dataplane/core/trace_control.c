// SPDX-License-Identifier: Apache-2.0
// Traces on the control thread: begin, poll, end. A trace ends by itself: after its time, after its number of packets,
// or without polls. So a client or control plane that goes away leaves nothing behind.
#include "core/host_path.h"
#include "core/module.h"
#include "core/port.h"
#include "core/reply.h"
#include "core/trace_inside.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_MS 100
#define ROWS_OF_STEP 64u
#define RING_PLACES (2ull * TRACE_ROWS)
#define QUEUE_ROWS 4096 // rows of a trace that another one's poll took from the rings

static struct {
	struct trace *trace[API_MAX_TRACES]; // running, or ended and not polled yet
	uint32_t sequence;
	uint32_t next; // place to be tried, modulo API_MAX_TRACES
	uint32_t running; // bits
	int armed;
	const struct trace_stage *stages;
	const char *entry[API_ROLE_CORE + 1];
} control;

void trace_stage_register(struct trace_stage *s)
{
	s->next = (struct trace_stage *)(uintptr_t)control.stages;
	control.stages = s;
}

void trace_chooser_register(const struct trace_chooser *c)
{
	trace_chooser = c;
}

void trace_entry_register(enum api_role role, const char *node)
{
	control.entry[role] = node;
	resume_register(node);
}

static const struct trace_stage *stage_of(const char *node)
{
	static const struct trace_stage none = {.node = ""};
	const struct trace_stage *s = control.stages;

	while (s != NULL && strcmp(s->node, node) != 0)
		s = s->next;
	return s != NULL ? s : &none;
}

static int make_tracer(struct tracer *t, uint32_t i)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "trace-%u", i);
	t->live = UINT64_MAX;
	t->edge = calloc(TRACE_NODES, sizeof(*t->edge));
	t->ring = rte_ring_create_elem(
		name, sizeof(struct api_trace_row), TRACE_ROWS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	return t->edge == NULL || t->ring == NULL ? ENOMEM : 0;
}

static void free_tracers(struct tracer *all)
{
	for (uint32_t i = 0; all != NULL && i <= API_MAX_WORKERS; i++) {
		rte_ring_free(all[i].ring);
		free(all[i].edge);
	}
	rte_free(all);
}

static void learn_nodes(struct tracer *t, uint32_t worker)
{
	struct rte_node_register *const *list;
	uint32_t count = graph_nodes(&list);

	for (uint32_t i = 0; i < count; i++) {
		const struct rte_node *node = graph_node(worker, i);
		struct trace_node *nt = &t->node[list[i]->id];

		nt->process = node->process;
		nt->stage = stage_of(list[i]->name);
		nt->source = (list[i]->flags & RTE_NODE_SOURCE_F) != 0;
		nt->entry = strcmp(list[i]->name, "port-rx") == 0;
	}
}

// Once: what follows packets stays for the next trace.
static int prepare(void)
{
	struct rte_node_register *const *list;
	uint32_t count = graph_nodes(&list);

	if (tracers != NULL)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (list[i]->id >= TRACE_NODES)
			return object_error(ENOSPC, "the graph has too many nodes to be traced");
	struct tracer *all = rte_zmalloc("tracers", (API_MAX_WORKERS + 1) * sizeof(*all), CACHE_LINE);
	int error = all == NULL ? ENOMEM : 0;
	for (uint32_t i = 0; error == 0 && i <= worker_count(); i++) {
		struct tracer *t = &all[i < worker_count() ? i : API_MAX_WORKERS];

		error = make_tracer(t, i);
		if (error == 0 && i < worker_count())
			learn_nodes(t, i);
	}
	if (error != 0) {
		free_tracers(all); // the next try finds no ring of this one's names
		return object_error(ENOMEM, "no memory for a trace");
	}
	__atomic_store_n(&tracers, all, __ATOMIC_RELEASE);
	return 0;
}

// A node's function is one pointer, read by the worker before each vector: it sees the old or the new one, and both are
// correct.
static void arm(int on)
{
	struct rte_node_register *const *list;
	uint32_t count = graph_nodes(&list);

	if (control.armed == on)
		return;
	control.armed = on;
	for (uint32_t i = 0; i < worker_count(); i++)
		for (uint32_t n = 0; n < count; n++) {
			struct rte_node *node = graph_node(i, n);
			rte_node_process_t own = tracers[i].node[list[n]->id].process;

			__atomic_store_n(&node->process, on ? trace_process : own, __ATOMIC_RELEASE);
		}
}

static struct tracer *tracer_at(uint32_t i) // the workers', then the control thread's
{
	return &tracers[i < worker_count() ? i : API_MAX_WORKERS];
}

static void set_bit(uint8_t *bits, uint32_t k, int on)
{
	__atomic_store_n(bits, (uint8_t)(on ? *bits | 1u << k : *bits & ~(1u << k)), __ATOMIC_RELAXED);
}

static void tell_workers(uint32_t k, const struct trace *tr)
{
	uint32_t flags = tr != NULL ? tr->want.flags : 0;
	int edges = 0;

	for (uint32_t i = 0; i < API_MAX_TRACES; i++)
		edges |= traces_now[i] != NULL && (traces_now[i]->want.flags & API_TRACE_EDGES);
	for (uint32_t i = 0; i < worker_total(); i++) {
		struct tracer *t = tracer_at(i);
		int only = (flags & (API_TRACE_HYPOTHETICAL | API_TRACE_EDGES)) != 0;

		set_bit(&t->only, k, tr != NULL && only);
		int late = (flags & API_TRACE_LATE) != 0 || (tr != NULL && tr->away);

		set_bit(&t->late, k, tr != NULL && !only && late);
		set_bit(&t->early, k, tr != NULL && !only && !late);
		__atomic_store_n(&t->edges, (uint8_t)edges, __ATOMIC_RELAXED);
	}
}

// Hypothetical packets may outlive their trace, in an inbox: tick() asks again.
static void disarm(void)
{
	if (control.running == 0 && __atomic_load_n(&trace_hypothetical, __ATOMIC_ACQUIRE) == 0)
		arm(0);
}

static void stop(uint32_t k)
{
	if (!(control.running >> k & 1))
		return;
	control.running &= ~(1u << k);
	__atomic_store_n(&traces_now[k], NULL, __ATOMIC_RELEASE);
	tell_workers(k, NULL);
	disarm();
	control_synchronize();
}

static void keep(struct trace *tr, const struct api_trace_row *row)
{
	if (tr->queue == NULL)
		tr->queue = calloc(QUEUE_ROWS, sizeof(*tr->queue));
	if (tr->queue == NULL || tr->queued == QUEUE_ROWS)
		tr->lost_before++;
	else
		tr->queue[tr->queued++] = *row;
}

// Takes at most so many rows of the ring: trace k's go to fn, others' to their queues. Returns how many.
static uint32_t take_rows(struct rte_ring *ring, uint32_t k, uint32_t most,
	void (*fn)(void *arg, const struct api_trace_row *row), void *arg)
{
	struct api_trace_row row;
	uint32_t n = 0;

	for (; n < most && rte_ring_sc_dequeue_elem(ring, &row, sizeof(row)) == 0; n++) {
		if (row.traces >> k & 1)
			fn(arg, &row);
		for (uint32_t j = 0; j < API_MAX_TRACES; j++)
			if (j != k && (row.traces >> j & 1) && control.trace[j] != NULL)
				keep(control.trace[j], &row);
	}
	return n;
}

static void leave_out(void *arg, const struct api_trace_row *row)
{
}

static void forget(uint32_t k)
{
	struct trace *tr = control.trace[k];

	stop(k);
	if (tr == NULL)
		return;
	for (uint32_t i = 0; i < worker_total(); i++) // so that the next trace with this bit does not get them
		take_rows(tracer_at(i)->ring, k, TRACE_ROWS, leave_out, NULL);
	control.trace[k] = NULL;
	if (tr->filter != NULL)
		trace_chooser->free(tr->filter);
	free(tr->queue);
	free(tr);
}

static enum api_trace_end end_of(const struct trace *tr, uint64_t now)
{
	if (now >= tr->ends_ns)
		return API_TRACE_TIME;
	if (now - tr->polled_ns > (uint64_t)API_TRACE_SILENCE * NS_PER_S)
		return API_TRACE_STOPPED;
	return API_TRACE_RUNS;
}

// A trace that ended waits for its last poll, for as long as a silent one runs.
static void tick(uint64_t now)
{
	for (uint32_t k = 0; k < API_MAX_TRACES; k++) {
		struct trace *tr = control.trace[k];

		if (tr == NULL)
			continue;
		if (end_of(tr, now) != API_TRACE_RUNS)
			stop(k);
		if (now - tr->polled_ns > 2 * (uint64_t)API_TRACE_SILENCE * NS_PER_S)
			forget(k);
	}
	disarm();
}

static int check(struct api_trace *w)
{
	if (w->seconds == 0 || w->seconds > API_TRACE_SECONDS)
		return object_error(EINVAL, "a trace lasts 1..%u seconds, not %u", API_TRACE_SECONDS, w->seconds);
	if (w->snap > API_TRACE_SNAP)
		return object_error(EINVAL, "a trace has at most %u bytes of a frame, not %u", API_TRACE_SNAP, w->snap);
	if (memchr(w->port, 0, sizeof(w->port)) == NULL)
		return object_error(EINVAL, "the port of a trace has no name");
	if (w->rate == 0)
		w->rate = API_TRACE_RATE;
	if ((w->flags & API_TRACE_HYPOTHETICAL) && (w->octets < 14 || w->octets > API_TRACE_FRAME))
		return object_error(
			EINVAL, "a hypothetical packet has 14..%u bytes, not %u", API_TRACE_FRAME, w->octets);
	if (!(w->flags & API_TRACE_HYPOTHETICAL) && w->octets != 0)
		return object_error(EINVAL, "a frame in a trace that has no hypothetical packet");
	return 0;
}

static int inject(const struct trace *tr, uint32_t k, const struct trace_order *o)
{
	struct port *p = port_get(tr->port);
	struct rte_mbuf *m;

	if (o->want.octets > (uint32_t)rte_pktmbuf_data_room_size(engine_pool()) - RTE_PKTMBUF_HEADROOM)
		return object_error(EMSGSIZE, "the packet does not fit into one buffer (engine buffer_size)");
	m = control_originate();
	if (m == NULL)
		return object_error(ENOMEM, "no packet buffer is free");
	control_synchronize(); // no worker runs a node's own function any more
	__atomic_fetch_add(&trace_hypothetical, 1, __ATOMIC_RELAXED);
	memcpy(rte_pktmbuf_append(m, (uint16_t)o->want.octets), o->octets, o->want.octets);
	packet_of(m)->port_in = p->index;
	struct tracer *t = &tracers[API_MAX_WORKERS];
	trace_mark(t, &control_worker, packet_of(m), (uint8_t)(1u << k | TRACED_HYPOTHETICAL));
	const struct trace_row row = {.what = API_TRACE_ENTERED,
		.node = "port-rx",
		.next = control.entry[p->role],
		.port = p->name,
		.frame = m,
		.of = API_TRACE_RECEIVED};
	trace_record(t, &control_worker, trace_number(packet_of(m)), packet_of(m)->traced, &row);
	control_inject(0, control.entry[p->role], m);
	return 0;
}

static int find_port(struct trace *tr, const struct trace_order *o)
{
	const struct port *p = o->want.port[0] != 0 ? port_by_name(o->want.port) : NULL;

	tr->port = p != NULL ? p->index : PORT_NONE;
	if (o->want.port[0] != 0 && p == NULL)
		return object_error(ENOENT, "there is no port %s", o->want.port);
	if (p == NULL && (o->want.flags & API_TRACE_HYPOTHETICAL))
		return object_error(EINVAL, "a hypothetical packet comes by a port, and none is named");
	return 0;
}

static int make(struct trace **to, const struct trace_order *o)
{
	struct trace *tr = calloc(1, sizeof(*tr));
	int error = tr == NULL ? object_error(ENOMEM, "no memory for a trace") : find_port(tr, o);

	if (error == 0 && (o->want.keys | o->want.frame_code | o->want.packet_code) != 0)
		error = trace_chooser->make(&tr->filter, &o->want, o->key, o->frame, o->packet);
	if (error != 0) {
		free(tr);
		return error;
	}
	tr->want = o->want;
	tr->number = ++control.sequence;
	tr->polled_ns = control_now_ns();
	tr->ends_ns = tr->polled_ns + (uint64_t)o->want.seconds * NS_PER_S;
	*to = tr;
	return 0;
}

static void describe(const struct trace *tr, uint32_t k, struct api_trace_state *to)
{
	*to = (struct api_trace_state){.trace = tr->number,
		.packets = __atomic_load_n(&tr->followed, __ATOMIC_RELAXED),
		.lost = tr->lost_before,
		.tsc_hz = rte_get_tsc_hz()};
	if (tr->want.packets != 0)
		to->packets = RTE_MIN(to->packets, (uint64_t)tr->want.packets);
	for (uint32_t i = 0; i < worker_total(); i++) {
		to->missed += tracer_at(i)->of[k].missed;
		to->lost += tracer_at(i)->of[k].lost;
	}
}

// Walks that began an entry before they saw the trace are over.
static int withdraw(const struct trace *tr)
{
	control_synchronize();
	return trace_chooser->withdraw(tr->filter);
}

// Not that of the trace before: packets that it followed, and that still wait somewhere, have its mark.
static uint32_t free_place(void)
{
	for (uint32_t n = 0; n < API_MAX_TRACES; n++) {
		uint32_t k = control.next++ % API_MAX_TRACES;

		if (control.trace[k] == NULL)
			return k;
	}
	return API_MAX_TRACES;
}

int trace_begin(const struct trace_order *o, struct api_trace_state *to)
{
	struct trace_order *order = (struct trace_order *)(uintptr_t)o;
	uint32_t k = free_place();
	struct trace *tr;

	if (!TRACE_HOOKS)
		return object_error(ENOTSUP, "this data plane was built without traces");
	if (engine_get() == NULL)
		return object_error(EAGAIN, "the data plane has no configuration yet");
	if (k == API_MAX_TRACES)
		return object_error(
			EBUSY, "%u traces run already; each ends by itself, or with its client", API_MAX_TRACES);
	int error = check(&order->want);
	error = error != 0 ? error : prepare();
	error = error != 0 ? error : make(&tr, o);
	if (error != 0)
		return error;
	for (uint32_t i = 0; i < worker_total(); i++) {
		memset(&tracer_at(i)->of[k], 0, sizeof(tracer_at(i)->of[k]));
		tracer_at(i)->of[k].limiter =
			(struct limiter){.rate = o->want.rate, .stamp = worker_any(i)->now, .tokens = UINT64_MAX / 2};
	}
	control.trace[k] = tr;
	control.running |= 1u << k;
	__atomic_store_n(&traces_now[k], tr, __ATOMIC_RELEASE);
	// For sessions alone: their packets are kept from the fast path, and no other packet is examined. First step,
	// so that their packets cannot make an entry that was withdrawn.
	tr->away = o->want.keys != 0;
	tell_workers(k, tr);
	arm(1);
	if (tr->away && !withdraw(tr)) {
		__atomic_store_n(&tr->away, 0, __ATOMIC_RELAXED);
		tell_workers(k, tr);
	}
	describe(tr, k, to);
	error = o->want.flags & API_TRACE_HYPOTHETICAL ? inject(tr, k, o) : 0;
	if (error != 0)
		forget(k);
	return error;
}

static uint32_t place_of(uint32_t number)
{
	uint32_t k = 0;

	while (k < API_MAX_TRACES && (control.trace[k] == NULL || control.trace[k]->number != number))
		k++;
	return k;
}

static int no_trace(uint32_t number)
{
	return object_error(ENOENT, "there is no trace %u any more", number);
}

int trace_poll(const struct api_trace_poll *p, enum api_trace_end *end)
{
	uint64_t now = control_now_ns();
	uint32_t k = place_of(p->trace);

	if (k == API_MAX_TRACES)
		return no_trace(p->trace);
	struct trace *tr = control.trace[k];
	*end = p->stop ? API_TRACE_STOPPED : end_of(tr, now);
	tr->polled_ns = now;
	tr->given = 0;
	if (*end != API_TRACE_RUNS)
		stop(k);
	return 0;
}

static void give(void *arg, const struct api_trace_row *row)
{
	stats_row(arg, row, sizeof(*row));
}

// Returns 0 when the queue is empty.
static int give_queued(struct trace *tr, struct stats_sink *to)
{
	for (uint32_t n = 0; n < ROWS_OF_STEP && tr->given < tr->queued; n++)
		give(to, &tr->queue[tr->given++]);
	if (tr->given < tr->queued)
		return 1;
	tr->queued = tr->given = 0;
	return 0;
}

// Places: the queue, then each ring behind RING_PLACES rows, then new rows of the queue.
uint64_t trace_rows(uint32_t number, enum api_trace_end end, uint64_t place, struct stats_sink *to)
{
	uint64_t most = end == API_TRACE_RUNS ? TRACE_ROWS_OF_POLL : TRACE_ROWS;
	uint64_t ring = place / RING_PLACES, taken = place % RING_PLACES;
	uint32_t k = place_of(number), n;

	if (k == API_MAX_TRACES)
		return 0;
	if (ring == 0 || ring > worker_total()) {
		if (give_queued(control.trace[k], to))
			return RTE_MAX(place, 1u);
		return ring == 0 ? RING_PLACES : 0;
	}
	n = take_rows(tracer_at((uint32_t)ring - 1)->ring, k, ROWS_OF_STEP, give, to);
	return n == ROWS_OF_STEP && taken + n < most ? place + n : (ring + 1) * RING_PLACES;
}

int trace_polled(uint32_t number, enum api_trace_end end, struct api_trace_state *to)
{
	uint32_t k = place_of(number);

	if (k == API_MAX_TRACES)
		return no_trace(number);
	struct trace *tr = control.trace[k];
	describe(tr, k, to);
	to->end = end;
	// Its last packets have had a poll's time to come through.
	if (end == API_TRACE_RUNS && tr->want.packets != 0 && to->packets >= tr->want.packets)
		to->end = API_TRACE_PACKETS;
	if (end != API_TRACE_RUNS)
		forget(k);
	return 0;
}

RTE_INIT(trace_start)
{
	timer_register(TIMER_MS, tick);
}
