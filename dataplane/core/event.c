// SPDX-License-Identifier: Apache-2.0
// The queue of events, its one subscriber, and the rings from workers to the control thread.
//
// The queue is a ring of engine.max_events with sequence numbers: acknowledged up to `first`, sent up to `next`, raised
// up to `end`. A new subscriber begins at `first`. Kinds other than usage reports may fill three quarters.
#include "core/event.h"
#include "core/module.h"
#include "core/object.h"
#include "core/reply.h"
#include "core/worker.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_EVENTS 65536u
#define DEFAULT_RATE 10000u
#define BATCH 64 // events in one message
#define BATCHES_PER_VISIT 64
#define MISSED_INTERVAL_NS 1000000000ull
#define VIRTUAL_EPOCH_S 1704067200ull // 2024-01-01
#define MAX_NUMBERS 16
#define BACKLOG_MOST API_MAX_CHANGES // reports that no reply could carry and that wait for room
#define KINDS (API_EVENT_LCP_DOWN + 1)

struct notice {
	uint64_t argument;
	uint32_t index;
	uint16_t number;
};

// One worker's ring: the worker writes `head`, `lost` and the entries, the control thread `tail`; both run on for ever.
struct notice_ring {
	uint32_t head cache_aligned;
	uint64_t lost;
	uint32_t tail cache_aligned;
	uint64_t lost_seen;
	struct notice entry[EVENT_RING];
};

static struct {
	struct api_event *queue;
	uint32_t capacity;
	uint64_t first, next, end; // sequences; the first event has 1
	struct reply_stream subscriber;
	struct {
		uint64_t raised, acknowledged, suppressed, waiting;
		uint64_t credit_ns, stamp_ns; // rate limit
	} kind[KINDS];
	uint64_t missed, missed_due_ns;
	uint64_t rate; // per second and kind
	struct notice_ring *ring[API_MAX_WORKERS];
	struct {
		void (*fn)(uint32_t worker, uint32_t index, uint64_t argument);
		void (*lost)(void);
	} number[MAX_NUMBERS];
	uint16_t numbers;
	// Reports of the running commit, and those whose client left before it had them.
	struct usage_rows {
		struct api_usage *row;
		uint32_t first, count, room; // those before `first` have been raised
	} commit, backlog;
} events = {.first = 1, .next = 1, .end = 1};

uint64_t event_realtime_ns(void)
{
	struct timespec t;

	if (engine_without_threads())
		return VIRTUAL_EPOCH_S * NS_PER_S + control_now_ns();
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t event_age_ns(uint64_t ticks)
{
	uint64_t tsc = engine_without_threads() ? engine_mode.virtual_now : rte_rdtsc(), hz = rte_get_tsc_hz();
	uint64_t age = clock_passed(worker_time(&control_worker, tsc), ticks, UINT64_MAX);

	return age / hz * NS_PER_S + age % hz * NS_PER_S / hz;
}

uint64_t event_realtime_of(uint64_t ticks)
{
	return event_realtime_ns() - event_age_ns(ticks);
}

uint64_t engine_start_ns(void)
{
	static uint64_t at;
	struct timespec t;

	if (at == 0) {
		clock_gettime(CLOCK_REALTIME, &t);
		at = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	}
	return at;
}

uint64_t engine_boot_id(void)
{
	return engine_start_ns() ^ ((uint64_t)getpid() << 32);
}

static struct api_event *slot(uint64_t sequence)
{
	return &events.queue[sequence % events.capacity];
}

// A bucket of a tenth of a second, at least one event.
static int within_rate(uint32_t type)
{
	uint64_t now = control_now_ns(), cost = NS_PER_S / events.rate, depth = RTE_MAX((uint64_t)NS_PER_S / 10, cost);
	uint64_t gained = RTE_MIN(now - events.kind[type].stamp_ns, depth);

	events.kind[type].stamp_ns = now;
	events.kind[type].credit_ns = RTE_MIN(events.kind[type].credit_ns + gained, depth);
	if (events.kind[type].credit_ns < cost)
		return 0;
	events.kind[type].credit_ns -= cost;
	return 1;
}

static void append(const struct api_event *e)
{
	struct api_event *to = slot(events.end);

	*to = *e;
	to->sequence = events.end++;
	to->boot_id = engine_boot_id();
	events.kind[e->type].raised++;
	events.kind[e->type].waiting++;
	control_stir();
}

int event_try(const struct api_event *e)
{
	uint64_t waiting = events.end - events.first;

	if (e->type == 0 || e->type >= KINDS)
		return EINVAL;
	if (e->type == API_EVENT_USAGE) {
		if (waiting >= events.capacity)
			return ENOSPC;
	} else if (waiting >= events.capacity - events.capacity / 4 || !within_rate(e->type)) {
		return EAGAIN;
	}
	append(e);
	return 0;
}

int event_raise(const struct api_event *e)
{
	int error = event_try(e);

	if (error == EAGAIN) {
		events.kind[e->type].suppressed++;
		events.missed++;
	}
	return error;
}

static void tell_missed(uint64_t now_ns)
{
	struct api_event e = {.type = API_EVENT_MISSED};

	if (events.missed == 0 || now_ns < events.missed_due_ns || events.end - events.first >= events.capacity)
		return;
	e.usage.packets[0] = events.missed;
	append(&e);
	events.missed = 0;
	events.missed_due_ns = now_ns + MISSED_INTERVAL_NS;
}

static void deliver(void)
{
	for (int i = 0; i < BATCHES_PER_VISIT && events.subscriber.to != NULL && events.next != events.end; i++) {
		uint64_t to_the_edge = events.capacity - events.next % events.capacity;
		struct api_part_head part = {
			.part = API_PART_EVENT,
			.size = sizeof(struct api_event),
			.count = (uint32_t)RTE_MIN(RTE_MIN(events.end - events.next, to_the_edge), (uint64_t)BATCH),
		};

		// The subscriber does not read, or is gone, which socket.c notices later.
		if (stream_offer(&events.subscriber, &part, slot(events.next), part.count * part.size) != 0)
			return;
		events.next += part.count;
	}
}

void event_subscribe(struct reply_sink *sink, const struct api_header *h)
{
	stream_take(&events.subscriber, sink, h, "another subscriber took over");
	events.next = events.first;
	deliver();
}

void event_acknowledge(const struct reply_sink *sink, uint64_t sequence)
{
	if (sink != events.subscriber.to)
		return; // of a former subscriber
	// What was never sent cannot have been dealt with.
	for (; events.first < events.next && events.first <= sequence; events.first++) {
		uint32_t type = slot(events.first)->type;

		events.kind[type].waiting--;
		events.kind[type].acknowledged++;
	}
}

void event_client_gone(uint32_t owner)
{
	stream_gone(&events.subscriber, owner);
}

// Reports in the reply of a commit.

static int keep(struct usage_rows *to, const struct api_usage *u)
{
	if (to->first > to->room / 2) {
		to->count -= to->first;
		memmove(to->row, to->row + to->first, to->count * sizeof(*to->row));
		to->first = 0;
	}
	if (to->count == to->room) {
		uint32_t room = to->room ? to->room * 2 : 64;
		struct api_usage *row = realloc(to->row, room * sizeof(*row));

		if (row == NULL)
			return ENOMEM;
		to->row = row;
		to->room = room;
	}
	to->row[to->count++] = *u;
	return 0;
}

int event_commit_usage(const struct api_usage *u)
{
	return keep(&events.commit, u);
}

void event_commit_begin(void)
{
	events.commit.count = 0;
}

const struct api_usage *event_commit_rows(uint32_t *count)
{
	*count = events.commit.count;
	return events.commit.row;
}

struct api_usage *event_commit_take(uint32_t *count)
{
	struct usage_rows rows = events.commit;

	*count = rows.count;
	if (rows.count == 0)
		return NULL;
	events.commit = (struct usage_rows){0};
	return rows.row;
}

void event_commit_unsent(const struct api_usage *row, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (events.backlog.count - events.backlog.first >= BACKLOG_MOST ||
			keep(&events.backlog, &row[i]) != 0) {
			events.kind[API_EVENT_USAGE].suppressed++;
			events.missed++;
		}
}

// Final reports that no reply could carry become events, as many as there is room for, oldest first.
static void raise_backlog(void)
{
	struct usage_rows *b = &events.backlog;

	for (int n = 0; n < BATCH * BATCHES_PER_VISIT && b->first < b->count; n++) {
		const struct api_usage *u = &b->row[b->first];
		struct api_event e = {.type = API_EVENT_USAGE, .seid = u->seid, .usage = *u};

		if (event_raise(&e) != 0)
			return;
		b->first++;
	}
	if (b->first == b->count) {
		free(b->row);
		*b = (struct usage_rows){0};
	}
}

uint16_t event_notice_register(void (*fn)(uint32_t worker, uint32_t index, uint64_t argument), void (*lost)(void))
{
	if (events.numbers == MAX_NUMBERS) // before main()
		rte_panic("more than %d kinds of news from workers\n", MAX_NUMBERS);
	events.number[events.numbers].fn = fn;
	events.number[events.numbers].lost = lost;
	return events.numbers++;
}

int event_notify(struct worker *w, uint16_t number, uint32_t index, uint64_t argument)
{
	struct notice_ring *r = events.ring[w->id];

	w->notified++;
	if (r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == EVENT_RING) {
		__atomic_store_n(&r->lost, r->lost + 1, __ATOMIC_RELEASE); // behind the marks that lost() looks for
		return -1;
	}
	r->entry[r->head % EVENT_RING] = (struct notice){.number = number, .index = index, .argument = argument};
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
	return 0;
}

static int drain(uint32_t worker)
{
	struct notice_ring *r = events.ring[worker];
	uint32_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);

	for (uint32_t at = r->tail; at != head; at++) {
		struct notice t = r->entry[at % EVENT_RING];

		__atomic_store_n(&r->tail, at + 1, __ATOMIC_RELEASE);
		events.number[t.number].fn(worker, t.index, t.argument);
	}
	uint64_t lost = __atomic_load_n(&r->lost, __ATOMIC_ACQUIRE);
	int more = lost != r->lost_seen;
	r->lost_seen = lost;
	return more;
}

static void visit(uint64_t now_ns)
{
	int lost = 0;

	for (uint32_t i = 0; i < worker_count(); i++)
		lost |= drain(i);
	for (uint16_t i = 0; lost && i < events.numbers; i++)
		if (events.number[i].lost != NULL)
			events.number[i].lost();
	raise_backlog();
	tell_missed(now_ns);
	deliver();
}

ENGINE_LIMIT(max_events, 4, 1u << 22)
ENGINE_LIMIT(event_rate, 1, 1000000)

static int start(const struct api_engine *e)
{
	uint32_t n = e->max_events ? e->max_events : DEFAULT_EVENTS;

	events.queue = calloc(n, sizeof(*events.queue));
	events.capacity = n;
	int short_of_memory = events.queue == NULL;
	for (uint32_t i = 0; i < e->workers; i++) {
		events.ring[i] = rte_zmalloc("notices", sizeof(struct notice_ring), CACHE_LINE);
		short_of_memory |= events.ring[i] == NULL;
	}
	return short_of_memory ? object_error(ENOMEM, "no memory for %u events", n) : 0;
}

static void rates(const struct api_engine *e)
{
	events.rate = e->event_rate ? e->event_rate : DEFAULT_RATE;
}

static uint64_t event_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint32_t i = 1; i < KINDS; i++) {
		struct api_event_row row = {
			.type = i,
			.subscribers = events.subscriber.to != NULL,
			.raised = events.kind[i].raised,
			.acknowledged = events.kind[i].acknowledged,
			.suppressed = events.kind[i].suppressed,
			.waiting = events.kind[i].waiting,
		};
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(event_module)
{
	events.rate = DEFAULT_RATE;
	module_register(start);
	engine_watch(rates);
	timer_register(1, visit);
	object_commit_watch(event_commit_begin, NULL);
	stats_table_register(API_TABLE_EVENT, sizeof(struct api_event_row), event_rows);
}
