// SPDX-License-Identifier: Apache-2.0
// Adds the counts of rules to traffic and to counters: all sessions in a second, if counters exist. A sum that reaches
// a watermark is reported once a period.
#include "counter/counter.h"
#include "core/control.h"
#include "core/event.h"
#include "core/log.h"
#include "core/object.h"
#include "counter/traffic.h"
#include "rule/session.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 10
#define SECOND_NS 1000000000ull
#define VISITS 32768u // sessions a second, where there is no counter

struct counter counters[API_MAX_COUNTERS];
struct counter_member *counter_members; // by session

static uint64_t in_force; // bit n: counters[n]
static uint32_t next; // session
static uint64_t looked_ns; // when the tick before was

static struct rule_counts total_of(uint32_t rule)
{
	struct rule_counts now = rule_forwarded(&session_pools.rule[rule]);
	const struct rule_match *m = &session_pools.match[rule];

	return (struct rule_counts){.packets = m->packets + now.packets, .bytes = m->bytes + now.bytes};
}

static void add(struct rule_counts *to, struct rule_counts from)
{
	to->packets += from.packets;
	to->bytes += from.bytes;
}

// The rule's counts that no counter has yet. They are in traffic now.
static struct rule_counts fresh(uint32_t rule)
{
	struct rule_counts now = total_of(rule), *told = &session_pools.match[rule].told;
	struct rule_counts more = {.packets = now.packets - told->packets, .bytes = now.bytes - told->bytes};

	*told = now;
	if (more.packets != 0)
		traffic_add(rule, &more);
	return more;
}

static uint32_t period_of(const struct counter *x, uint64_t now_ns)
{
	return x->want.period == 0 ? 0 : (uint32_t)((now_ns - x->began_ns) / (x->want.period * SECOND_NS));
}

static int reaches(const struct counter *x, uint64_t packets, uint64_t bytes)
{
	return (x->want.packets != 0 && packets >= x->want.packets) || (x->want.bytes != 0 && bytes >= x->want.bytes);
}

// 1 when it was reported; else the next look tries again.
static int tell(struct counter *x, const struct session *s, uint64_t packets, uint64_t bytes)
{
	struct api_event e = {.type = API_EVENT_WATERMARK};

	memcpy(e.counter, x->name, sizeof(e.counter));
	if (s != NULL) {
		e.seid = s->seid;
		strncpy(e.session, s->name, API_NAME - 1);
	}
	e.usage.packets[API_TOTAL] = packets;
	e.usage.bytes[API_TOTAL] = bytes;
	e.usage.end_ns = event_realtime_ns();
	e.usage.start_ns = e.usage.end_ns - (control_now_ns() - x->began_ns) +
			   (uint64_t)period_of(x, control_now_ns()) * x->want.period * SECOND_NS;
	if (event_try(&e) != 0)
		return 0;
	x->reached++;
	if (s == NULL)
		LOG(NOTICE, "counter %s reached its watermark: %" PRIu64 " packets, %" PRIu64 " bytes\n", x->name,
			packets, bytes);
	return 1;
}

static void add_own(struct counter *x, struct counter_member *m, const struct session *s, struct rule_counts more)
{
	uint32_t period = period_of(x, control_now_ns());

	if (m->period != period) {
		m->own = (struct rule_counts){0};
		m->period = period;
		m->told = 0;
	}
	add(&m->own, more);
	if (!m->told && reaches(x, m->own.packets, m->own.bytes))
		m->told = (uint8_t)tell(x, s, m->own.packets, m->own.bytes);
}

static void count(struct counter_member *m, const struct session *s, struct rule_counts more)
{
	for (uint64_t left = m->set; left != 0; left &= left - 1)
		add(&counters[__builtin_ctzll(left)].sum, more);
	if (m->each != 0)
		add_own(&counters[m->each - 1], m, s, more);
}

static void visit(const struct session *s)
{
	struct counter_member *m = &counter_members[s->index];
	struct rule_counts more = {0};

	for (uint16_t i = 0; i < s->rules; i++)
		add(&more, fresh(s->rule[i]));
	if (m->set != 0)
		count(m, s, more);
}

static int is_of(const struct session *s, const struct counter *x)
{
	if (s->counter != NULL && strncmp(s->counter, x->name, API_NAME) == 0)
		return 1;
	return (x->want.ue.family != 0 || x->want.instance[0] != 0) && session_chosen(s, &x->want.ue, x->instance);
}

static void leave(struct counter_member *m)
{
	for (uint64_t left = m->set; left != 0; left &= left - 1)
		counters[__builtin_ctzll(left)].sessions--;
	m->set = 0;
}

static void join(const struct session *s)
{
	struct counter_member *m = &counter_members[s->index];
	int counted = m->set != 0;
	uint8_t each = 0;

	if (counted)
		visit(s);
	leave(m);
	for (uint64_t left = in_force; left != 0; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);

		if (!is_of(s, &counters[i]) || (counters[i].want.each && each != 0))
			continue;
		m->set |= 1ull << i;
		counters[i].sessions++;
		if (counters[i].want.each)
			each = (uint8_t)(i + 1);
	}
	if (each != m->each) {
		m->own = (struct rule_counts){0};
		m->told = 0;
	}
	m->each = each;
	for (uint16_t i = 0; !counted && m->set != 0 && i < s->rules; i++)
		fresh(s->rule[i]); // what was before is not counted
}

static uint32_t rule_with(const struct session *s, uint16_t pdr)
{
	for (uint16_t i = 0; s != NULL && i < s->rules; i++)
		if (session_pools.match[s->rule[i]].pdr == pdr)
			return s->rule[i];
	return RULE_NONE;
}

// Counts so far belong to the old version's traffic.
static void settle(const struct session *s, const struct session *old)
{
	struct rule_counts more = {0};

	for (uint16_t i = 0; i < old->rules; i++) {
		const struct rule_match *before = &session_pools.match[old->rule[i]];
		uint32_t kept = rule_with(s, before->pdr);

		if (kept == RULE_NONE) {
			add(&more, fresh(old->rule[i]));
			continue;
		}
		uint32_t row = session_pools.match[kept].traffic;
		session_pools.match[kept].traffic = before->traffic;
		add(&more, fresh(kept));
		session_pools.match[kept].traffic = row;
	}
	if (counter_members[old->index].set != 0)
		count(&counter_members[old->index], old, more);
}

void counter_session(const struct session *s, const struct session *old)
{
	struct counter_member *m = &counter_members[old != NULL ? old->index : s->index];

	if (old != NULL)
		settle(s, old);
	if (s != NULL && in_force != 0) {
		join(s);
	} else if (s == NULL) {
		leave(m);
		*m = (struct counter_member){0};
	}
}

void counter_install(struct counter *x, const struct api_counter *want, uint16_t instance)
{
	x->want = *want;
	x->instance = instance;
	x->before = x->sum;
	x->began_ns = control_now_ns();
	x->period = 0;
	x->told = 0;
	in_force |= 1ull << (x - counters);
	for (uint32_t i = 0; i < session_tables.capacity; i++)
		if (session_tables.session[i] != NULL) {
			if (counter_members[i].each == x - counters + 1)
				counter_members[i].each = 0; // starts again
			join(session_tables.session[i]);
		}
}

void counter_remove(struct counter *x)
{
	uint64_t bit = 1ull << (x - counters);

	in_force &= ~bit;
	for (uint32_t i = 0; i < session_tables.capacity; i++) {
		counter_members[i].set &= ~bit;
		if (counter_members[i].each == x - counters + 1)
			counter_members[i].each = 0;
	}
	memset(x, 0, sizeof(*x));
}

static void look(struct counter *x, uint64_t now_ns)
{
	uint32_t period = period_of(x, now_ns);

	if (x->want.each)
		return;
	if (period != x->period) {
		x->period = period;
		x->before = x->sum;
		x->told = 0;
	}
	uint64_t packets = x->sum.packets - x->before.packets, bytes = x->sum.bytes - x->before.bytes;
	if (!x->told && reaches(x, packets, bytes))
		x->told = (uint8_t)tell(x, NULL, packets, bytes);
}

static void tick(uint64_t now_ns)
{
	uint64_t gone = RTE_MIN(now_ns - looked_ns, SECOND_NS);
	uint64_t some = session_tables.capacity * gone / SECOND_NS + 1; // all in a second,
	uint64_t visits = in_force != 0 ? UINT64_MAX : VISITS * gone / SECOND_NS + 1; // or as many as cost little

	looked_ns = now_ns;
	for (uint64_t i = 0; i < some && visits != 0 && session_tables.capacity != 0; i++) {
		next = next + 1 < session_tables.capacity ? next + 1 : 0;
		if (session_tables.session[next] == NULL)
			continue;
		visit(session_tables.session[next]);
		visits--;
	}
	for (uint64_t left = in_force; left != 0; left &= left - 1)
		look(&counters[__builtin_ctzll(left)], now_ns);
}

ENGINE_LIMIT(max_traffic, 1, 65536)

static int start(const struct api_engine *e)
{
	counter_members = calloc(e->max_sessions, sizeof(*counter_members));
	if (counter_members == NULL)
		return object_error(ENOMEM, "no memory for %u sessions", e->max_sessions);
	return traffic_start(e->max_traffic != 0 ? e->max_traffic : API_TRAFFIC);
}

RTE_INIT(counter_module)
{
	module_register(start);
	timer_register(TICK_MS, tick);
}
