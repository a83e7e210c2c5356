// SPDX-License-Identifier: Apache-2.0
// The function that replaces each node's own while a trace runs. It finds marked packets before the node sees them,
// runs the node, and records where they went.
//
// A vector without marked packets costs one comparison. Packets are marked behind port-rx or behind the fast path, or
// leave a source node (handover-rx, scheduler-tx) marked.
#include "core/port.h"
#include "core/trace_inside.h"
#include <rte_cycles.h>
#include <string.h>

DROP_REASON(drop_explained, "explained", "a packet of isthmus explain, never on the wire. Normal: see isthmus explain")

const struct trace_chooser *trace_chooser;
uint32_t trace_hypothetical;

void trace_mark(struct tracer *t, const struct worker *w, struct packet *pkt, uint8_t traces)
{
	uint32_t number = t->sequence++ * API_MAX_WORKERS + (w->id & (API_MAX_WORKERS - 1));

	pkt->traced = (uint8_t)(traces | (number >> 12 & TRACED_NUMBER));
	pkt->trace = (uint16_t)number;
}

// 1 when the trace follows a packet that matches: one of `sample`, within its rate and its number.
static int follows(struct tracer *t, const struct worker *w, struct trace *tr, uint32_t k)
{
	if (tr->want.sample > 1 && t->of[k].seen++ % tr->want.sample != 0)
		return 0;
	if (tr->want.packets != 0 && __atomic_load_n(&tr->followed, __ATOMIC_RELAXED) >= tr->want.packets)
		return 0;
	if (!limiter_take(&t->of[k].limiter, w)) {
		t->of[k].missed++;
		return 0;
	}
	return tr->want.packets == 0 || __atomic_fetch_add(&tr->followed, 1, __ATOMIC_RELAXED) < tr->want.packets;
}

static inline int is_of_other_port(const struct trace *tr, struct rte_mbuf *m)
{
	return tr->port != PORT_NONE && tr->port != packet_of(m)->port_in;
}

// *away: 1 when the packet's session is kept from the fast path, chosen or not.
static uint8_t choose(struct tracer *t, const struct worker *w, struct rte_mbuf *m, uint8_t among, uint8_t *away)
{
	uint8_t by = 0;

	for (uint32_t left = among; left != 0; left &= left - 1) {
		uint32_t k = (uint32_t)__builtin_ctz(left);
		struct trace *tr = __atomic_load_n(&traces_now[k], __ATOMIC_ACQUIRE);

		if (tr == NULL || (!tr->away && is_of_other_port(tr, m)))
			continue;
		uint32_t how = tr->filter != NULL ? trace_chooser->takes(tr->filter, m) : TRACE_KEYS | TRACE_ALL;
		*away |= tr->away && (how & TRACE_KEYS);
		if (!(how & TRACE_ALL) || is_of_other_port(tr, m) || !follows(t, w, tr, k))
			continue;
		if (tr->want.packets == 0)
			__atomic_fetch_add(&tr->followed, 1, __ATOMIC_RELAXED);
		by |= (uint8_t)(1u << k);
	}
	return by;
}

static inline int is_followed(struct rte_mbuf *m)
{
	return (packet_of(m)->traced & TRACED_BY) != 0;
}

static const char *port_name(uint16_t index)
{
	const struct port *p = port_get(index);

	return p != NULL ? p->name : NULL;
}

// Asks traces that do not follow the packet yet.
static void enter(
	struct tracer *t, const struct worker *w, struct rte_mbuf *m, uint8_t among, const struct trace_row *at)
{
	struct packet *pkt = packet_of(m);
	uint8_t away = 0, by = choose(t, w, m, among, &away);

	if (likely(by == 0)) {
		if (!is_followed(m))
			pkt->traced = away ? TRACED_AWAY : 0;
		return;
	}
	if (is_followed(m))
		pkt->traced |= by; // under its number
	else
		trace_mark(t, w, pkt, by);
	t->live = w->walks;
	struct trace_row row = *at;
	row.what = API_TRACE_ENTERED;
	row.port = port_name(pkt->port_in);
	row.frame = m;
	row.of = API_TRACE_RECEIVED;
	trace_record(t, w, trace_number(pkt), by, &row);
}

// Bits of those of n <= 64 frames that a trace may follow.
static uint64_t candidates(uint8_t among, void *const *mbufs, uint32_t n)
{
	uint64_t may = 0;

	for (uint32_t left = among; left != 0; left &= left - 1) {
		const struct trace *tr = __atomic_load_n(&traces_now[__builtin_ctz(left)], __ATOMIC_ACQUIRE);

		if (tr != NULL)
			may |= tr->filter != NULL ? trace_chooser->sieve(tr->filter, mbufs, n) : UINT64_MAX >> (64 - n);
	}
	return may;
}

// Frames behind port-rx, which has cleared their marks.
static void enter_all(
	struct tracer *t, const struct worker *w, void *const *mbufs, uint32_t n, const struct trace_row *at)
{
	for (uint32_t from = 0; from < n; from += 64)
		for (uint64_t may = candidates(t->early, mbufs + from, RTE_MIN(n - from, 64u)); may != 0;
			may &= may - 1)
			enter(t, w, mbufs[from + (uint32_t)__builtin_ctzll(may)], t->early, at);
}

static inline uint16_t edges_of(const struct rte_node *node)
{
	return RTE_MIN(node->nb_edges, (rte_edge_t)TRACE_EDGES);
}

static inline void note_edges(const struct rte_node *node, uint16_t before[TRACE_EDGES])
{
	for (uint16_t e = 0; e < edges_of(node); e++)
		before[e] = node->nodes[e]->idx;
}

static void count_edges(
	struct tracer *t, const struct trace_node *nt, const struct rte_node *node, const uint16_t before[TRACE_EDGES])
{
	for (uint16_t e = 0; e < edges_of(node); e++)
		if (!(nt->twice >> e & 1))
			t->edge[node->id][e] += (uint16_t)(node->nodes[e]->idx - before[e]);
}

static struct trace_packet *find(struct tracer *t, const struct rte_mbuf *m, const struct packet *pkt)
{
	for (uint32_t i = 0; i < t->packets; i++)
		if (t->packet[i].m == m && t->packet[i].traced == pkt->traced &&
			t->packet[i].number == trace_number(pkt))
			return &t->packet[i];
	return NULL;
}

static void step(struct tracer *t, struct worker *w, const struct trace_node *nt, const struct rte_node *node,
	const struct rte_node *next, struct trace_packet *p, uint32_t ticks)
{
	struct packet *pkt = packet_of(p->m);
	struct trace_row row = {
		.what = API_TRACE_STEP, .ticks = ticks, .node = node->name, .next = next->name, .text = &p->text};

	p->went_on = 1;
	if (nt->stage->after != NULL)
		nt->stage->after(&p->text, w, p->m, next->name);
	if (nt->stage->inside && strcmp(next->name, "drop") != 0) {
		row.frame = p->m;
		row.of = API_TRACE_INSIDE;
		row.from = pkt->l3;
	}
	trace_record(t, w, trace_number(pkt), pkt->traced, &row);
}

// Finds marked packets in what the node enqueued to its next nodes.
static void look_behind(struct tracer *t, struct worker *w, const struct trace_node *nt, const struct rte_node *node,
	const uint16_t before[TRACE_EDGES], uint32_t ticks)
{
	for (uint16_t e = 0; e < edges_of(node); e++) {
		const struct rte_node *next = node->nodes[e];

		for (uint16_t i = before[e]; !(nt->twice >> e & 1) && i < next->idx; i++) {
			struct rte_mbuf *m = next->objs[i];
			struct trace_packet *p, one;

			if (likely(!is_followed(m)))
				continue;
			p = find(t, m, packet_of(m));
			if (p == NULL) { // out of a source node, or a copy
				one = (struct trace_packet){.m = m};
				p = &one;
			}
			t->live = w->walks;
			step(t, w, nt, node, next, p, ticks);
		}
	}
}

static uint16_t run_source(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t before[TRACE_EDGES] = {0};

	note_edges(node, before);
	uint64_t start = rte_rdtsc();
	uint16_t got = nt->process(graph, node, objs, n);
	uint32_t ticks = got == 0 ? 0 : (uint32_t)clock_passed(rte_rdtsc(), start, UINT32_MAX) / got;
	if (got == 0)
		return 0;
	if (t->edges)
		count_edges(t, nt, node, before);
	if (!nt->entry) {
		look_behind(t, w, nt, node, before, ticks);
		return got;
	}
	for (uint16_t e = 0; t->early != 0 && e < edges_of(node); e++) {
		const struct rte_node *next = node->nodes[e];
		const struct trace_row at = {.node = node->name, .next = next->name, .ticks = ticks};

		if (!(nt->twice >> e & 1))
			enter_all(t, w, next->objs + before[e], (uint32_t)(next->idx - before[e]), &at);
	}
	return got;
}

static void reverse(void **objs, uint32_t n)
{
	for (uint32_t i = 0; i < n / 2; i++) {
		void *one = objs[i];

		objs[i] = objs[n - 1 - i];
		objs[n - 1 - i] = one;
	}
}

// The first k of n go behind the others; each part keeps its order.
static void put_behind(void **objs, uint32_t k, uint32_t n)
{
	reverse(objs, n);
	reverse(objs, n - k);
	reverse(objs + n - k, k);
}

// Gives marked packets of a vector, and later ones that may be of their flows, to the full nodes, so that each flow
// keeps its order. Returns how many remain, in front.
static uint16_t leave(const struct tracer *t, const struct worker *w, const struct trace_node *nt,
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t first = 0, kept;

	while (first < n && (t->live != w->walks || !is_followed(objs[first])))
		first++;
	kept = first;
	for (uint16_t i = first; i < n; i++) {
		int followed = is_followed(objs[i]);

		if (followed)
			trace_chooser->note_flow(w, objs[i], i == first);
		if (followed || trace_chooser->may_be_noted(w, objs[i]))
			rte_node_enqueue_x1(graph, node, nt->stage->full, objs[i]);
		else
			objs[kept++] = objs[i];
	}
	return kept;
}

// The fast path, which marked packets do not take.
static uint16_t run_fast(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, void **objs, uint16_t n)
{
	const struct rte_node *full = node->nodes[nt->stage->full];
	const struct trace_row at = {.node = node->name, .next = full->name};
	uint16_t before[TRACE_EDGES] = {0}, from = full->idx;

	note_edges(node, before);
	// Before the node, which may change objs; packets that leave() removed come afterwards.
	uint16_t kept = leave(t, w, nt, graph, node, objs, n);
	node->idx = kept;
	if (kept > 0)
		nt->process(graph, node, objs, kept);
	node->idx = n;
	if (kept < n)
		put_behind(full->objs + from, n - kept, full->idx - from);
	if (t->edges)
		count_edges(t, nt, node, before);
	for (uint16_t i = from; (t->late != 0 || kept < n) && i < full->idx; i++) {
		struct rte_mbuf *m = full->objs[i];

		uint8_t traced = packet_of(m)->traced, others = t->late & ~traced;

		if (traced & TRACED_BY) {
			struct trace_packet p = {.m = m};

			step(t, w, nt, node, full, &p, 0);
		}
		if (others == 0 || (traced & TRACED_HYPOTHETICAL))
			continue;
		enter(t, w, m, others, &at);
		if (packet_of(m)->traced == 0)
			packet_of(m)->traced = TRACED_ASKED;
	}
	return n;
}

static void end(struct tracer *t, const struct worker *w, const struct rte_node *node, const struct trace_packet *p,
	uint32_t ticks, struct rte_mbuf *frame)
{
	const struct trace_row row = {.what = API_TRACE_WENT,
		.outcome = p->outcome,
		.ticks = ticks,
		.node = node->name,
		.port = p->port,
		.text = &p->text,
		.frame = frame,
		.of = API_TRACE_SENT};

	trace_record(t, w, p->number, p->traced, &row);
}

// Effect of the node on a hypothetical packet, which is consumed or goes on.
static void foresee(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, struct trace_packet *p)
{
	struct rte_mbuf *m = p->m;
	int edge = TRACE_ENDS;

	if (nt->stage->foresee != NULL)
		edge = nt->stage->foresee(&p->text, w, m);
	else
		trace_say(
			&p->text, "it would be given to %s, which is not asked about hypothetical packets", node->name);
	if (edge < 0) {
		if (edge == TRACE_LOST)
			p->outcome = API_TRACE_DROPPED;
		end(t, w, node, p, 0, nt->stage->end == TRACE_SENDS || nt->stage->end == TRACE_DROPS ? m : NULL);
		packet_of(m)->traced = 0;
		packet_of(m)->reason = drop_explained.id;
		packets_drop(w, &m, 1);
		__atomic_fetch_sub(&trace_hypothetical, 1, __ATOMIC_RELEASE);
		return;
	}
	rte_node_enqueue_x1(graph, node, (rte_edge_t)edge, m);
	step(t, w, nt, node, node->nodes[edge], p, 0);
}

static void begin(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_mbuf *m)
{
	static const uint16_t outcome[] = {[TRACE_GOES] = API_TRACE_NOWHERE,
		[TRACE_SENDS] = API_TRACE_LEFT,
		[TRACE_DROPS] = API_TRACE_DROPPED,
		[TRACE_PUNTS] = API_TRACE_PUNTED};
	struct packet *pkt = packet_of(m);
	struct trace_packet *p = &t->packet[t->packets++];
	const char *port = nt->stage->end == TRACE_SENDS ? port_name(pkt->port_out) : NULL;

	p->m = m;
	p->number = trace_number(pkt);
	p->traced = pkt->traced;
	p->went_on = 0;
	p->outcome = outcome[nt->stage->end];
	p->text.used = 0;
	snprintf(p->port, sizeof(p->port), "%s", port != NULL ? port : "");
	if (nt->stage->before != NULL && (!nt->stage->single || trace_is_hypothetical(m)))
		nt->stage->before(&p->text, w, m);
}

// Collects the vector's marked packets. Hypothetical ones are removed if the node must not see them; returns how many
// remain.
static uint16_t gather(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t kept = 0;

	t->packets = 0;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];

		objs[kept++] = m;
		if (likely(!is_followed(m)) || (t->packets == TRACE_FOLLOWED && !trace_is_hypothetical(m)))
			continue;
		t->packets = RTE_MIN(t->packets, TRACE_FOLLOWED - 1u);
		begin(t, w, nt, m);
		struct trace_packet *p = &t->packet[t->packets - 1];
		p->at = (uint16_t)(kept - 1);
		if (!trace_is_hypothetical(m) || nt->stage->pure) {
			if (nt->stage->end == TRACE_SENDS || nt->stage->end == TRACE_DROPS) {
				// The frame may be freed behind the node, so the end is noted now; trace_dropped() adds
				// to it.
				end(t, w, node, p, 0, m);
				p->went_on = 1;
			}
			continue;
		}
		t->packets--;
		kept--;
		foresee(t, w, nt, graph, node, p);
	}
	return kept;
}

static int is_handed_over(const struct worker *w, const struct rte_mbuf *m)
{
	for (uint32_t left = w->outboxes; left != 0; left &= left - 1) {
		const struct outbox *o = &w->outbox[__builtin_ctz(left)];

		for (uint32_t i = 0; i < o->count; i++)
			if (o->pkts[i] == m)
				return 1;
	}
	return 0;
}

// Untraced packets about to be dropped: for traces of drops, those that the fast path passed on.
static void look_at_dropped(struct tracer *t, struct worker *w, const struct trace_node *nt,
	const struct rte_node *node, void **objs, uint16_t n)
{
	const struct trace_row at = {.node = node->name};

	for (uint16_t i = 0; i < n; i++)
		if (packet_of(objs[i])->traced == 0 && packet_of(objs[i])->port_in != PORT_NONE)
			enter(t, w, objs[i], t->late, &at);
}

// Each marked packet begins a vector of its own, so that reported meters and queues are those that it finds.
static void run_pieces(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t done = 0;

	for (uint32_t i = 0; i < t->packets; i++) {
		struct trace_packet *p = &t->packet[i];

		if (p->at > done)
			nt->process(graph, node, objs + done, p->at - done);
		done = p->at;
		nt->stage->before(&p->text, w, p->m);
	}
	nt->process(graph, node, objs + done, n - done);
}

static uint16_t run_followed(struct tracer *t, struct worker *w, const struct trace_node *nt, struct rte_graph *graph,
	struct rte_node *node, void **objs, uint16_t n)
{
	uint16_t before[TRACE_EDGES] = {0}, handed = 0;
	uint64_t handed_before = w->handed_over;

	if (nt->stage->end == TRACE_DROPS && t->late != 0)
		look_at_dropped(t, w, nt, node, objs, n);
	uint16_t kept = gather(t, w, nt, graph, node, objs, n);
	note_edges(node, before);
	node->idx = kept;
	uint64_t start = rte_rdtsc();
	if (kept > 0 && nt->stage->single)
		run_pieces(t, w, nt, graph, node, objs, kept);
	else if (kept > 0)
		nt->process(graph, node, objs, kept);
	uint32_t ticks = (uint32_t)clock_passed(rte_rdtsc(), start, UINT32_MAX) / n;
	node->idx = n;
	if (t->edges)
		count_edges(t, nt, node, before);
	look_behind(t, w, nt, node, before, ticks);
	for (uint32_t i = 0; i < t->packets; i++) {
		struct trace_packet *p = &t->packet[i];

		if (p->went_on)
			continue;
		handed = is_handed_over(w, p->m) || w->handed_over != handed_before;
		if (handed && p->outcome == API_TRACE_NOWHERE) {
			p->outcome = API_TRACE_HANDED;
			trace_say(&p->text, "%shanded over to another worker", p->text.used != 0 ? "; " : "");
		}
		end(t, w, node, p, ticks, NULL);
	}
	t->packets = 0;
	return n;
}

// Which edges lead to the same node.
static void note_twice(struct tracer *t, const struct worker *w)
{
	const struct rte_node *node;
	rte_graph_off_t off;
	rte_node_t i;

	t->linked = w->linked + 1;
	rte_graph_foreach_node(i, off, w->graph, node)
	{
		uint64_t twice = 0;

		for (uint32_t e = 0; e < node->nb_edges && e < TRACE_EDGES; e++)
			for (uint32_t f = 0; f < e; f++)
				if (node->nodes[f] == node->nodes[e])
					twice |= 1ull << e;
		t->node[node->id].twice = twice;
	}
}

uint16_t trace_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct tracer *t = &tracers[w->id];
	const struct trace_node *nt = &t->node[node->id];

	if (unlikely(t->linked != w->linked + 1))
		note_twice(t, w);
	if (nt->source)
		return run_source(t, w, nt, graph, node, objs, n);
	if (nt->stage->fast && (t->live == w->walks || t->late != 0))
		return run_fast(t, w, nt, graph, node, objs, n);
	if (t->live == w->walks || (nt->stage->end == TRACE_DROPS && t->late != 0))
		return run_followed(t, w, nt, graph, node, objs, n);
	if (likely(!t->edges))
		return nt->process(graph, node, objs, n);
	uint16_t before[TRACE_EDGES] = {0};
	note_edges(node, before);
	n = nt->process(graph, node, objs, n);
	count_edges(t, nt, node, before);
	return n;
}

void trace_dropped_marked(struct worker *w, struct rte_mbuf *m, const struct reason *r)
{
	struct tracer *t = tracer_of(w);
	const struct packet *pkt = packet_of(m);
	struct trace_text text = {0};

	if (t == NULL)
		return;
	trace_say(&text, "%s: %s", r->name, r->text);
	const struct trace_row row = {
		.what = API_TRACE_WENT, .outcome = API_TRACE_DROPPED, .node = "drop", .text = &text};
	struct trace_packet *p = find(t, m, pkt);

	if (p != NULL)
		p->went_on = 1;
	trace_record(t, w, trace_number(pkt), pkt->traced, &row);
	if (trace_is_hypothetical(m))
		__atomic_fetch_sub(&trace_hypothetical, 1, __ATOMIC_RELEASE);
}
