// SPDX-License-Identifier: Apache-2.0
// buffer: packets wait in order until their FAR decides (TS 29.244 §5.2.4). buffer-release: packets due by time or by a
// change of the session.
#include "buffer/queue.h"
#include "core/event.h"
#include "core/node.h"
#include "rule/view.h"
#include "usage/usage.h"
#include "wire/ecn.h"

DROP_REASON(drop_full, "buffer-full",
	"as many packets wait as the session's FAR allows, or as may wait in all. See engine.limits.buffered_packets: "
	"or paging takes too long")
DROP_REASON(drop_crowded, "buffer-crowded-out",
	"too many packets wait: the oldest of the UE that had most made room. See engine.limits.buffered_packets: or "
	"paging takes too long")
DROP_REASON(drop_precedence, "buffer-precedence",
	"as many packets wait as the session's FAR allows: one of a higher drop precedence (AFx2, AFx3) went. See "
	"engine.limits.buffered_packets: or paging takes too long")
DROP_REASON(drop_timeout, "buffer-timeout",
	"the packet waited for the UE as long as it may. See engine.limits.buffered_packets: or paging takes too long")
DROP_REASON(drop_discarded, "buffer-discarded",
	"the packet waited for a UE; then its FAR said drop, or its PDR or session went or moved to another worker. "
	"Normal: the CP function chose it")
DROP_REASON(drop_notified, "buffer-not-kept",
	"the FAR says drop; the control plane got a report of this packet. Normal: the CP function chose it")

enum { EDGE_UPLINK, EDGE_DOWNLINK, EDGE_DUPLICATE, EDGE_REDIRECT, EDGE_DROP, EDGE_COUNT };
#define EDGE_HELD EDGE_COUNT

#define RELEASE_WALK 1024 // packets released in one walk, plus the rest of one session's
#define HELD_PACKETS 1024 // of a session, while newer ones queue behind the leaving ones

#define NEXT_NODES                                                                                                     \
	{                                                                                                              \
		[EDGE_UPLINK] = "@uplink", [EDGE_DOWNLINK] = "@downlink", [EDGE_DUPLICATE] = "duplicate",              \
		[EDGE_REDIRECT] = "redirect", [EDGE_DROP] = "drop"                                                     \
	}

static int tell(struct worker *w, uint16_t number, uint32_t session, uint16_t pdr, uint16_t low)
{
	uint64_t generation = __atomic_load_n(&buffer_tables.place[session].generation, __ATOMIC_ACQUIRE);

	return event_notify(w, number, session, generation << 32 | (uint64_t)pdr << 16 | low);
}

static int tell_data(struct worker *w, uint32_t session, const struct notice *n)
{
	return tell(w, buffer_tables.notice_data, session, n->pdr, (uint16_t)(n->qfi << 8 | n->dscp));
}

// Notifies the control thread; if its ring is full, leaves the notice where it looks. 0: neither, because another PDR's
// notice is there.
static int tell_or_leave(struct worker *w, uint32_t session, const struct notice *n)
{
	uint32_t none = 0, what = (uint32_t)n->pdr << 16 | (uint32_t)n->qfi << 8 | n->dscp | UNNOTIFIED;

	if (tell_data(w, session, n) == 0)
		return 1;
	return __atomic_compare_exchange_n(
		&buffer_tables.place[session].unnotified, &none, what, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static uint32_t second_of(const struct worker *w)
{
	return (uint32_t)(buffer_now_ms(w) / 1000) + 1;
}

// TS 29.244 §5.2.4.1, §7.5.8.2, §8.2.26: the first waiting packet of a PDR is reported once in a rule's life. It is
// reported again when no packet waits and the last report is as old as packets may get. It needs no place in a queue.
static int is_first(const struct worker *w, const struct queue *q, const struct rule *r)
{
	uint32_t notified = session_pools.match[rule_index(r)].notified, longest = buffer_longest(far_more_of(r));

	if (!(r->flags & RULE_NOTIFY))
		return 0;
	return notified == 0 ||
	       ((q == NULL || q->packets == 0) && longest != 0 && second_of(w) - notified > longest / 1000);
}

// Only the owner worker of a rule writes to it once it is in force.
static void notify(
	struct worker *w, struct queue *q, const struct rule *r, const struct session_view *v, uint16_t delay)
{
	struct rule_match *match = &session_pools.match[rule_index(r)];
	struct notice n = {
		.due = buffer_now_ms(w) + delay,
		.pdr = match->pdr,
		.qfi = v->qfi,
		.dscp = v->dscp,
	};

	if (q != NULL && delay != 0 && q->notices < NOTICES)
		q->notice[q->notices++] = n;
	else if (!tell_or_leave(w, r->session, &n))
		return; // the next packet tries again
	match->notified = second_of(w);
}

static uint64_t first_notice(const struct queue *q)
{
	uint64_t due = NEVER;

	for (uint8_t i = 0; i < q->notices; i++)
		due = RTE_MIN(due, q->notice[i].due);
	return due;
}

static void notices_due(struct worker *w, struct queue *q, uint64_t now_ms)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < q->notices; i++) {
		struct notice n = q->notice[i];

		if (n.due <= now_ms) {
			if (tell_or_leave(w, q->session, &n))
				continue;
			n.due = now_ms + RETRY_MS;
		}
		q->notice[kept++] = n;
	}
	q->notices = kept;
}

void queue_give_up(struct worker *w, struct queue *q)
{
	for (uint8_t i = 0; i < q->notices; i++)
		tell_or_leave(w, q->session, &q->notice[i]);
	queue_free(w, q);
}

// What becomes of a packet.

void queue_discard(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q)
{
	struct rte_mbuf *m;

	while ((m = queue_pop(w, q)) != NULL)
		rte_node_enqueue_x1(graph, node, packet_leave(m, &drop_discarded, EDGE_DROP), m);
	queue_free(w, q);
}

static rte_edge_t discarded(const struct rule *r, struct rte_mbuf *m)
{
	usage_dropped(r, 1, packet_of(m)->length);
	return packet_leave(m, &drop_discarded, EDGE_DROP);
}

static rte_edge_t onward(const struct rule *r, struct rte_mbuf *m)
{
	if ((r->flags & (RULE_FORWARD | RULE_GATE_CLOSED)) != RULE_FORWARD)
		return discarded(r, m);
	if (r->flags & RULE_REDIRECT)
		return EDGE_REDIRECT;
	if (r->flags & RULE_DUPLICATE)
		return EDGE_DUPLICATE;
	return session_view_of(m)->uplink ? EDGE_UPLINK : EDGE_DOWNLINK;
}

static void tell_full(struct worker *w, struct queue *q, uint16_t pdr, uint32_t length)
{
	if (q != NULL && !q->full && tell(w, buffer_tables.notice_full, q->session, pdr, (uint16_t)length) == 0)
		q->full = 1;
}

// The session's share is full: the newest is dropped, because the oldest caused the UE's paging.
static rte_edge_t full(struct worker *w, struct queue *q, const struct rule *r, struct rte_mbuf *m)
{
	tell_full(w, q, session_pools.match[rule_index(r)].pdr, packet_of(m)->length);
	usage_dropped(r, 1, packet_of(m)->length);
	return packet_leave(m, &drop_full, EDGE_DROP);
}

// The session's share is full, but it holds a packet of higher drop precedence than the new one (RFC 2597 §2).
static void yield(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q, uint8_t precedence)
{
	struct rte_mbuf *m = queue_yield(w, q, precedence);

	if (m == NULL)
		return;
	uint16_t pdr = waiting_of(m)->pdr;
	const struct rule *r = session_rule(q->session, pdr);
	tell_full(w, q, pdr, packet_of(m)->length);
	if (r != NULL)
		usage_dropped(r, 1, packet_of(m)->length);
	rte_node_enqueue_x1(graph, node, packet_leave(m, &drop_precedence, EDGE_DROP), m);
}

// Drops the oldest packets of the longest queues, by association and then by session, until the worker is within its
// share. `keep` stays even if it becomes empty.
static void make_room(struct worker *w, struct rte_graph *graph, struct rte_node *node, const struct queue *keep)
{
	struct queue *q;

	while (hold_over(w, &buffer_holder) && (q = fair_longest(buffer_tables.worker[w->id])) != NULL) {
		uint32_t generation = __atomic_load_n(&buffer_tables.place[q->session].generation, __ATOMIC_ACQUIRE);
		struct rte_mbuf *m = queue_pop(w, q);
		uint16_t pdr = waiting_of(m)->pdr;
		const struct rule *r = q->generation == generation ? session_rule(q->session, pdr) : NULL;

		if (r != NULL) {
			tell_full(w, q, pdr, packet_of(m)->length);
			usage_dropped(r, 1, packet_of(m)->length);
		}
		rte_node_enqueue_x1(graph, node, packet_leave(m, &drop_crowded, EDGE_DROP), m);
		if (q != keep && q->packets == 0 && q->notices == 0)
			queue_free(w, q);
	}
}

static rte_edge_t wait(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q,
	struct rule *r, struct rte_mbuf *m)
{
	const struct far_more *more = far_more_of(r);
	uint32_t most = more != NULL && more->buffer_packets != 0 ? more->buffer_packets : BUFFER_PACKETS;
	most = r->flags & RULE_BUFFER ? most : HELD_PACKETS;
	const struct session_view *v = session_view_of(m);
	struct waiting as = {
		.since = buffer_now_ms(w),
		.longest = buffer_longest(more),
		.pdr = session_pools.match[rule_index(r)].pdr,
		.discard = session_discard(r->session),
		.qfi = v->qfi,
		.uplink = v->uplink,
		.dscp = v->dscp,
		.pdu_type = v->pdu_type,
		.relayed = v->relayed,
		.front = v->front,
	};
	rte_edge_t edge = EDGE_HELD;

	if ((r->flags & RULE_BUFFER) && is_first(w, q, r))
		notify(w, q, r, v, more ? more->notify_delay : 0);
	if (q != NULL && q->packets >= most)
		yield(w, graph, node, q, dscp_precedence(v->dscp));
	if (q == NULL || q->packets >= most || m->nb_segs > buffer_holder.share) {
		edge = full(w, q, r, m);
	} else {
		queue_append(w, q, m, as);
		make_room(w, graph, node, q);
	}
	// Only if something is due earlier: filing reads all waiting packets.
	if (q != NULL && (RTE_MIN(waiting_ends(&as), first_notice(q)) < q->due || q->packets == 0))
		queue_file(w, q);
	return edge;
}

static rte_edge_t buffer_packet(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct rte_mbuf *m)
{
	struct rule *r = session_view_of(m)->rule;

	if (r->flags & RULE_BUFFER)
		return wait(w, graph, node, queue_ensure(w, graph, node, r->session), r, m);
	if (!(r->flags & RULE_FORWARD)) {
		if (r->flags & RULE_NOTIFY) {
			notify(w, NULL, r, session_view_of(m), 0);
			if (session_pools.match[rule_index(r)].notified !=
				0) // further ones are dropped before they come here
				__atomic_and_fetch(&r->flags, (uint16_t)~RULE_NOTIFY, __ATOMIC_RELAXED);
		}
		usage_dropped(r, 1, packet_of(m)->length);
		return packet_leave(m, &drop_notified, EDGE_DROP);
	}
	// RULE_DRAINING: what waited goes first.
	struct queue *q = queue_find(w, graph, node, r->session);
	if (q != NULL && q->packets > 0 && (r->flags & RULE_DRAINING))
		return wait(w, graph, node, q, r, m);
	__atomic_and_fetch(&r->flags, (uint16_t)~RULE_DRAINING, __ATOMIC_RELAXED);
	return onward(r, m);
}

static uint16_t buffer(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		rte_edge_t edge = buffer_packet(w, graph, node, objs[i]);

		if (edge != EDGE_HELD)
			rte_node_enqueue_x1(graph, node, edge, objs[i]);
	}
	return n;
}

static struct rte_node_register buffer_node = {
	.name = "buffer",
	.process = buffer,
	.nb_edges = EDGE_COUNT,
	.next_nodes = NEXT_NODES,
};
NODE_REGISTER(buffer_node)

// Time, and changes of sessions.

static struct session_view view_of_waiting(const struct waiting *was)
{
	return (struct session_view){.qfi = was->qfi,
		.uplink = was->uplink,
		.dscp = was->dscp,
		.pdu_type = was->pdu_type,
		.relayed = was->relayed,
		.front = was->front};
}

// Each packet once: kept ones return to the queue's end, so their order stays.
static uint32_t pass_on(struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q)
{
	uint32_t count = q->packets;
	uint16_t discard = session_discard(q->session);

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *m = queue_pop(w, q);
		struct waiting was = *waiting_of(m);
		struct rule *r = session_rule(q->session, was.pdr);
		struct session_view *v = session_view_of(m);

		*v = view_of_waiting(&was);
		v->rule = r;
		if (r == NULL || r->worker != w->id) {
			rte_node_enqueue_x1(graph, node, packet_leave(m, &drop_discarded, EDGE_DROP), m);
		} else if (was.discard != discard) { // TS 29.244 §8.2.31: before what the FAR says now
			rte_node_enqueue_x1(graph, node, discarded(r, m), m);
		} else if (r->flags & RULE_BUFFER) {
			// The control plane may say how long only when it knows of the packet (DL Buffering Duration,
			// §8.2.29).
			was.longest = buffer_longest(far_more_of(r));
			queue_append(w, q, m, was);
		} else {
			rte_node_enqueue_x1(graph, node, onward(r, m), m);
		}
	}
	return count;
}

// A delayed notice is no longer due when its PDR waits no more.
static void forget_notices(struct worker *w, struct queue *q)
{
	uint8_t kept = 0;

	for (uint8_t i = 0; i < q->notices; i++) {
		const struct rule *r = session_rule(q->session, q->notice[i].pdr);

		if (r != NULL && r->worker == w->id && (r->flags & RULE_BUFFER))
			q->notice[kept++] = q->notice[i];
	}
	q->notices = kept;
}

static uint32_t session_changed(struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t session)
{
	struct queue *q = queue_find(w, graph, node, session);
	uint32_t count = 0;
	struct rule *r;

	if (q != NULL) {
		count = pass_on(w, graph, node, q);
		forget_notices(w, q);
		q->full = 0;
		queue_file(w, q);
	}
	for (uint16_t i = 0; (r = session_rule_at(session, i)) != NULL; i++)
		if (r->worker == w->id)
			__atomic_and_fetch(&r->flags, (uint16_t)~RULE_DRAINING, __ATOMIC_RELAXED);
	return count;
}

static uint32_t take_commands(struct worker *w, struct rte_graph *graph, struct rte_node *node)
{
	struct buffer_worker *b = buffer_tables.worker[w->id];
	uint32_t count = 0;

	if (b->todo == PLACE_END && likely(__atomic_load_n(&b->commands, __ATOMIC_RELAXED) == PLACE_END))
		return 0;
	if (b->todo == PLACE_END)
		b->todo = __atomic_exchange_n(&b->commands, PLACE_END, __ATOMIC_SEQ_CST);
	while (b->todo != PLACE_END && count < RELEASE_WALK) {
		uint32_t session = b->todo;
		struct place *p = &buffer_tables.place[session];

		b->todo = p->next;
		// From here on the control thread may list it again; its earlier publications are seen below.
		__atomic_store_n(&p->next, PLACE_IDLE, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		count += 1 + session_changed(w, graph, node, session);
		queue_owner_notify(session, w->id);
	}
	return count;
}

static uint32_t expire(
	struct worker *w, struct rte_graph *graph, struct rte_node *node, struct queue *q, uint64_t now_ms)
{
	uint32_t count = q->packets;

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *m = queue_pop(w, q);
		struct waiting was = *waiting_of(m);

		*session_view_of(m) = view_of_waiting(&was);
		if (waiting_ends(&was) > now_ms) {
			queue_append(w, q, m, was);
			continue;
		}
		const struct rule *r = session_rule(q->session, was.pdr);
		if (r != NULL)
			usage_dropped(r, 1, packet_of(m)->length);
		rte_node_enqueue_x1(graph, node, packet_leave(m, &drop_timeout, EDGE_DROP), m);
	}
	notices_due(w, q, now_ms);
	queue_file(w, q);
	return count;
}

static uint32_t turn_slot(
	struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t first, uint64_t now_ms)
{
	uint32_t count = 0, next;

	for (uint32_t i = first; i != QUEUE_NONE && count < RELEASE_WALK; i = next) {
		struct queue *q = &buffer_tables.queue[i];

		next = q->next;
		if (q->generation != __atomic_load_n(&buffer_tables.place[q->session].generation, __ATOMIC_ACQUIRE)) {
			count += q->packets;
			queue_discard(w, graph, node, q);
		} else if (q->due <= now_ms) {
			count += expire(w, graph, node, q, now_ms);
		}
	}
	return count;
}

static void turn_wheel(struct worker *w, struct rte_graph *graph, struct rte_node *node)
{
	struct buffer_worker *b = buffer_tables.worker[w->id];
	uint64_t now_ms = buffer_now_ms(w), tick = now_ms / WHEEL_MS;

	if (likely(tick <= b->tick))
		return;
	// After a long pause one turn sees every slot.
	if (tick - b->tick > WHEEL_SLOTS)
		b->tick = tick - WHEEL_SLOTS;
	for (uint32_t count = 0; b->tick < tick; b->tick++) {
		count += turn_slot(w, graph, node, b->slot[(b->tick + 1) % WHEEL_SLOTS], now_ms);
		if (count >= RELEASE_WALK)
			return; // the same slot again in the next walk
	}
}

static uint16_t buffer_release(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	const struct buffer_worker *b = buffer_tables.worker[w->id];

	turn_wheel(w, graph, node);
	uint32_t count = take_commands(w, graph, node);
	if (b->todo != PLACE_END)
		worker_due(w, w->now);
	else if (b->filed != 0)
		worker_due(w, (b->tick + 1) * WHEEL_MS * (w->tsc_hz / 1000));
	return (uint16_t)count;
}

static struct rte_node_register buffer_release_node = {
	.name = "buffer-release",
	.flags = RTE_NODE_SOURCE_F,
	.process = buffer_release,
	.nb_edges = EDGE_COUNT,
	.next_nodes = NEXT_NODES,
};
NODE_REGISTER(buffer_release_node)
