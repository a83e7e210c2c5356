// SPDX-License-Identifier: Apache-2.0
// Queues of packets for idle UEs: pool, wheel, and the control thread's notices about sessions.
#include "buffer/queue.h"
#include "core/control.h"
#include "core/event.h"
#include "core/object.h"
#include "rule/watch.h"
#include "wire/cache_line.h"
#include "wire/ecn.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>

struct buffer_tables buffer_tables;
HOLDER(buffer_holder, "paging", max_buffered)

static void wheel_remove(struct buffer_worker *b, struct queue *q)
{
	if (q->slot == QUEUE_NONE)
		return;
	if (q->prev != QUEUE_NONE)
		buffer_tables.queue[q->prev].next = q->next;
	else
		b->slot[q->slot] = q->next;
	if (q->next != QUEUE_NONE)
		buffer_tables.queue[q->next].prev = q->prev;
	q->slot = QUEUE_NONE;
	b->filed--;
}

static void wheel_insert(struct buffer_worker *b, struct queue *q)
{
	// Never behind the slot that is looked at next.
	uint64_t tick = RTE_MAX(q->due / WHEEL_MS + 1, b->tick + 1);
	uint32_t index = (uint32_t)(q - buffer_tables.queue);

	q->slot = (uint32_t)(tick % WHEEL_SLOTS);
	q->prev = QUEUE_NONE;
	q->next = b->slot[q->slot];
	if (q->next != QUEUE_NONE)
		buffer_tables.queue[q->next].prev = index;
	b->slot[q->slot] = index;
	b->filed++;
}

void queue_file(struct worker *w, struct queue *q)
{
	struct buffer_worker *b = buffer_tables.worker[w->id];
	uint64_t due = NEVER;

	for (const struct rte_mbuf *m = q->first; m != NULL; m = waiting_of((struct rte_mbuf *)(uintptr_t)m)->next)
		due = RTE_MIN(due, waiting_ends(waiting_of((struct rte_mbuf *)(uintptr_t)m)));
	for (uint8_t i = 0; i < q->notices; i++)
		due = RTE_MIN(due, q->notice[i].due);
	if (q->packets == 0 && q->notices == 0) {
		queue_free(w, q);
		return;
	}
	wheel_remove(b, q);
	q->due = due;
	if (due != NEVER)
		wheel_insert(b, q);
}

void queue_free(struct worker *w, struct queue *q)
{
	struct buffer_worker *b = buffer_tables.worker[w->id];

	wheel_remove(b, q);
	fair_leave(b, q);
	__atomic_store_n(&buffer_tables.place[q->session].queue, QUEUE_NONE, __ATOMIC_RELEASE);
	q->next = b->free;
	b->free = (uint32_t)(q - buffer_tables.queue);
}

struct queue *queue_find(struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t session)
{
	struct place *p = &buffer_tables.place[session];
	uint32_t index = __atomic_load_n(&p->queue, __ATOMIC_ACQUIRE);

	if (index == QUEUE_NONE || buffer_tables.queue[index].worker != w->id)
		return NULL;
	struct queue *q = &buffer_tables.queue[index];
	if (q->generation != __atomic_load_n(&p->generation, __ATOMIC_ACQUIRE)) {
		queue_discard(w, graph, node, q);
		return NULL;
	}
	return q;
}

struct queue *queue_ensure(struct worker *w, struct rte_graph *graph, struct rte_node *node, uint32_t session)
{
	struct place *p = &buffer_tables.place[session];
	struct buffer_worker *b = buffer_tables.worker[w->id];
	struct queue *q = queue_find(w, graph, node, session);

	if (q != NULL)
		return q;
	if (__atomic_load_n(&p->queue, __ATOMIC_ACQUIRE) != QUEUE_NONE)
		return NULL;
	// Queues outnumber waiting packets by one: if none is free, some queue has notices only.
	if (b->free == QUEUE_NONE && (q = fair_empty(b)) != NULL)
		queue_give_up(w, q);
	if (b->free == QUEUE_NONE)
		return NULL;
	uint32_t index = b->free;
	q = &buffer_tables.queue[index];
	b->free = q->next;
	*q = (struct queue){
		.due = NEVER,
		.session = session,
		.generation = __atomic_load_n(&p->generation, __ATOMIC_ACQUIRE),
		.slot = QUEUE_NONE,
		.worker = (uint8_t)w->id,
	};
	fair_enter(b, q);
	__atomic_store_n(&p->queue, index, __ATOMIC_RELEASE);
	return q;
}

void queue_append(struct worker *w, struct queue *q, struct rte_mbuf *m, struct waiting as)
{
	as.next = NULL;
	*waiting_of(m) = as;
	if (q->last != NULL)
		waiting_of(q->last)->next = m;
	else
		q->first = m;
	q->last = m;
	q->packets++;
	q->coloured += dscp_precedence(as.dscp) != 0;
	w->held++;
	fair_move(buffer_tables.worker[w->id], q, q->buffers + m->nb_segs);
	hold_add(w, &buffer_holder, m->nb_segs);
}

// Removes the packet behind `before`; NULL: the first one.
static struct rte_mbuf *take(struct worker *w, struct queue *q, struct rte_mbuf *before)
{
	struct rte_mbuf **link = before == NULL ? &q->first : &waiting_of(before)->next, *m = *link;

	*link = waiting_of(m)->next;
	if (q->last == m)
		q->last = before;
	q->packets--;
	q->coloured -= dscp_precedence(waiting_of(m)->dscp) != 0;
	w->held--;
	fair_move(buffer_tables.worker[w->id], q, q->buffers - m->nb_segs);
	hold_give(w, &buffer_holder, m->nb_segs);
	return m;
}

struct rte_mbuf *queue_pop(struct worker *w, struct queue *q)
{
	return q->first == NULL ? NULL : take(w, q, NULL);
}

// Searched only if there is one, which is then removed: many packets share the search's cost.
struct rte_mbuf *queue_yield(struct worker *w, struct queue *q, uint8_t precedence)
{
	struct rte_mbuf *before = NULL, *found = NULL, *behind = NULL;

	if (q->coloured == 0)
		return NULL;
	for (struct rte_mbuf *m = q->first; m != NULL; behind = m, m = waiting_of(m)->next)
		if (dscp_precedence(waiting_of(m)->dscp) > precedence) {
			precedence = dscp_precedence(waiting_of(m)->dscp);
			before = behind;
			found = m;
		}
	return found == NULL ? NULL : take(w, q, before);
}

// Makes the worker look at the session. A session is in at most one list, once: the worker acts on the state that it
// finds. If the queue is another worker's, it passes the notice on (queue_owner_notify).
static void push(uint32_t session, uint32_t worker)
{
	struct place *p = &buffer_tables.place[session];
	struct buffer_worker *b = worker < API_MAX_WORKERS ? buffer_tables.worker[worker] : NULL;
	uint32_t idle = PLACE_IDLE;

	// Sequentially consistent with the worker's "taken, now I look": one of the two sees the other.
	if (b == NULL ||
		!__atomic_compare_exchange_n(&p->next, &idle, PLACE_END, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	uint32_t head = __atomic_load_n(&b->commands, __ATOMIC_RELAXED);
	do
		__atomic_store_n(&p->next, head, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&b->commands, &head, session, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	worker_wake(worker);
}

void queue_owner_notify(uint32_t session, uint32_t worker)
{
	uint32_t index = __atomic_load_n(&buffer_tables.place[session].queue, __ATOMIC_ACQUIRE);

	if (index != QUEUE_NONE && buffer_tables.queue[index].worker != worker)
		push(session, buffer_tables.queue[index].worker);
}

// The session's worker forwards, keeps or frees each waiting packet as the FAR of its PDR now says. The control plane
// will be notified of the next packet that waits.
static void session_has_changed(uint32_t session, uint32_t worker)
{
	if (session < buffer_tables.places)
		push(session, worker);
}

// Frees waiting packets, which must not become the index's next session's. Also for a session that no longer buffers:
// packets of an earlier version may still wait.
static void session_is_gone(uint32_t session)
{
	if (session >= buffer_tables.places)
		return;
	struct place *p = &buffer_tables.place[session];
	__atomic_fetch_add(&p->generation, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&p->unnotified, 0, __ATOMIC_RELAXED);
	// Its worker adds no queue here any more: the session has been gone for a grace period.
	uint32_t index = __atomic_load_n(&p->queue, __ATOMIC_ACQUIRE);
	if (index != QUEUE_NONE)
		push(session, buffer_tables.queue[index].worker);
}

static uint32_t packets_waiting(uint32_t session)
{
	if (session >= buffer_tables.places)
		return 0;
	const struct place *p = &buffer_tables.place[session];
	uint32_t index = __atomic_load_n(&p->queue, __ATOMIC_ACQUIRE);

	if (index == QUEUE_NONE || buffer_tables.queue[index].generation != p->generation)
		return 0;
	return __atomic_load_n(&buffer_tables.queue[index].packets, __ATOMIC_RELAXED);
}

int queue_event_of(struct api_event *e, uint32_t session, uint64_t argument)
{
	if (session >= buffer_tables.places || buffer_tables.place[session].generation != argument >> 32)
		return 0;
	return session_identity(session, e->session, &e->seid);
}

static void on_full(uint32_t worker, uint32_t session, uint64_t argument)
{
	struct api_event e = {.type = API_EVENT_BUFFER_FULL};
	const struct rule *r = session_rule(session, (uint16_t)(argument >> 16));
	uint64_t bytes = (uint16_t)argument;

	if (r == NULL || !queue_event_of(&e, session, argument))
		return;
	e.rule = session_pools.match[rule_index(r)].far;
	e.usage.seid = e.seid;
	e.usage.packets[API_TOTAL] = e.usage.packets[API_DOWNLINK] = 1;
	e.usage.bytes[API_TOTAL] = e.usage.bytes[API_DOWNLINK] = bytes;
	event_raise(&e);
}

#define LONGEST_S 60 // what engine.buffer_seconds 0 means
ENGINE_LIMIT(buffer_seconds, 1, 86400)

static void set_longest(const struct api_engine *e)
{
	uint32_t seconds = e->buffer_seconds ? e->buffer_seconds : LONGEST_S;

	__atomic_store_n(&buffer_tables.longest, seconds * 1000, __ATOMIC_RELAXED);
}

static int start_worker(uint32_t w, uint32_t queues)
{
	struct buffer_worker *b = rte_zmalloc("buffer-worker", sizeof(*b), CACHE_LINE);

	if (b == NULL)
		return object_error(ENOMEM, "no memory for packets that wait");
	b->commands = b->todo = PLACE_END;
	for (uint32_t i = 0; i < WHEEL_SLOTS; i++)
		b->slot[i] = QUEUE_NONE;
	b->free = w * queues;
	for (uint32_t i = 0; i < queues; i++)
		buffer_tables.queue[b->free + i].next = i + 1 < queues ? b->free + i + 1 : QUEUE_NONE;
	for (uint32_t i = 0; i < PARTIES; i++)
		for (uint32_t k = 0; k < RANKS; k++)
			b->party[i].rank[k] = (struct rank){QUEUE_NONE, QUEUE_NONE};
	buffer_tables.worker[w] = b;
	return 0;
}

static int start(const struct api_engine *e)
{
	struct buffer_tables *t = &buffer_tables;
	uint32_t queues = buffer_holder.share + 1; // of one worker
	int error = 0;

	t->places = e->max_sessions;
	t->place = malloc((size_t)t->places * sizeof(*t->place));
	t->queue = rte_zmalloc("buffer-queues", (size_t)e->workers * queues * sizeof(*t->queue), CACHE_LINE);
	if (t->place == NULL || t->queue == NULL)
		return object_error(ENOMEM, "no memory for %u packets that wait", e->max_buffered);
	for (uint32_t i = 0; i < t->places; i++)
		t->place[i] = (struct place){.queue = QUEUE_NONE, .next = PLACE_IDLE};
	for (uint32_t w = 0; w < e->workers && error == 0; w++)
		error = start_worker(w, queues);
	return error != 0 ? error : pending_start(t->places);
}

RTE_INIT(buffer_module)
{
	static struct session_watcher watcher = {
		.changed = session_has_changed, .removed = session_is_gone, .waiting = packets_waiting};

	session_watch(&watcher);
	module_register(start);
	engine_watch(set_longest);
	buffer_tables.notice_data = event_notice_register(pending_data, pending_lost);
	buffer_tables.notice_full = event_notice_register(on_full, NULL);
}
