// SPDX-License-Identifier: Apache-2.0
// Sets of URRs as sessions come, change and go; the timer visit; workers' notices.
#include "core/control.h"
#include "core/event.h"
#include "core/lazy.h"
#include "core/object.h"
#include "rule/pool.h"
#include "usage/urr.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS_PER_VISIT 2000
#define SWEEP_PER_VISIT 16384u
#define LOOKS_PER_INACTIVITY 4 // an INACTIVE event is late by a quarter of the time at most
#define SECOND 1000000000ull
#define KNOWN_FLAGS                                                                                                    \
	(API_URR_HAS_VOLUME_QUOTA | API_URR_HAS_TIME_QUOTA | API_URR_HAS_EVENT_QUOTA | API_URR_INACTIVE |              \
		API_URR_COUNT_PACKETS | API_URR_BEFORE_QOS | API_URR_START_OF_TRAFFIC | API_URR_IP6)

#define KNOWN_TRIGGERS                                                                                                 \
	(API_URR_PERIO | API_URR_VOLTH | API_URR_TIMTH | API_URR_QUHTI | API_URR_START | API_URR_STOPT |               \
		API_URR_DROTH | API_URR_LIUSA | API_URR_VOLQU | API_URR_TIMQU | API_URR_EVETH | API_URR_EVEQU |        \
		API_URR_QUVTI)

static struct index_pool states;

// ---- stage ----------------------------------------------------------------------------------------------------------

static struct usage_entry *find(const struct usage_set *set, uint32_t id)
{
	for (uint16_t i = 0; set != NULL && i < set->count; i++) {
		const struct usage_entry *e = &set->entry[i];

		if ((e->want ? e->want->id : e->urr->c->id) == id)
			return (struct usage_entry *)(uintptr_t)e;
	}
	return NULL;
}

static int check_one(const struct usage_session *session, const struct api_urr *urr, uint16_t i)
{
	const uint16_t methods = API_URR_VOLUME | API_URR_DURATION | API_URR_EVENT;

	if ((urr[i].method & methods) == 0 || (urr[i].method & ~methods) != 0)
		return object_error(EINVAL, "session %s: URR %u has measurement method %u", session->name, urr[i].id,
			urr[i].method);
	if (urr[i].flags & ~KNOWN_FLAGS)
		return object_error(EINVAL, "session %s: URR %u has flags %#x", session->name, urr[i].id, urr[i].flags);
	if (urr[i].triggers & ~KNOWN_TRIGGERS)
		return object_error(EINVAL, "session %s: URR %u has reporting triggers %#x", session->name, urr[i].id,
			urr[i].triggers);
	if ((urr[i].flags & API_URR_IP6) &&
		(urr[i].method != API_URR_VOLUME || (urr[i].flags & ~(API_URR_IP6 | API_URR_COUNT_PACKETS)) != 0 ||
			(urr[i].triggers & ~(API_URR_PERIO | API_URR_LIUSA)) != 0))
		return object_error(EINVAL,
			"session %s: URR %u of IPv6 alone has another method than volume, a quota or a threshold",
			session->name, urr[i].id);
	for (uint16_t k = 0; k < i; k++)
		if (urr[k].id == urr[i].id)
			return object_error(EEXIST, "session %s has URR %u twice", session->name, urr[i].id);
	return 0;
}

static int check(const struct usage_session *session, const struct api_urr *urr, uint16_t urrs)
{
	int error = 0;

	for (uint16_t i = 0; error == 0 && i < urrs; i++)
		error = object_blame(check_one(session, urr, i), API_RULE_URR, urr[i].id);
	return error;
}

static struct urr *new_urr(void)
{
	struct urr *u = calloc(1, sizeof(*u));

	if (u != NULL) {
		u->kind = USAGE_TIMER_URR;
		u->state = u->old_state = RULE_NONE;
	}
	return u;
}

static int stage_entry(struct usage_set *set, struct usage_entry *e, const struct usage_set *old)
{
	const struct usage_entry *was = find(old, e->want->id);

	e->new_state = RULE_NONE;
	e->created = was == NULL;
	e->urr = was ? was->urr : new_urr();
	if (e->urr == NULL)
		return object_error(ENOMEM, "no memory for URR %u of session %s", e->want->id, set->name);
	if (was != NULL && old->worker == set->worker)
		return 0;
	e->new_state = index_pool_take(&states);
	if (e->new_state == RULE_NONE)
		return object_error(ENOSPC, "session %s: no more URRs (engine.limits.urrs)", set->name);
	return 0;
}

static int stage_activity(struct usage_set *set, const struct usage_set *old)
{
	if (set->inactivity == 0)
		return 0;
	set->activity = old ? old->activity : NULL;
	if (set->activity != NULL)
		return 0;
	set->activity = calloc(1, sizeof(*set->activity));
	if (set->activity == NULL)
		return object_error(ENOMEM, "no memory for session %s", set->name);
	set->activity->kind = USAGE_TIMER_ACTIVITY;
	set->activity_created = 1;
	return 0;
}

int usage_stage(struct usage_set **to, const struct usage_set *old, const struct usage_session *session,
	const struct api_urr *urr, uint16_t urrs)
{
	int error = check(session, urr, urrs);

	*to = NULL;
	if (error != 0 || (urrs == 0 && session->inactivity == 0))
		return error;
	struct usage_set *set = calloc(1, sizeof(*set) + urrs * sizeof(set->entry[0]));
	if (set == NULL)
		return object_error(ENOMEM, "no memory for the URRs of session %s", session->name);
	set->name = session->name;
	set->seid = session->seid;
	set->session = session->index;
	set->inactivity = session->inactivity;
	set->worker = session->worker;
	error = stage_activity(set, old);
	for (uint16_t i = 0; error == 0 && i < urrs; i++) {
		set->entry[i].want = urr_config_take(&urr[i]);
		if (set->entry[i].want == NULL) {
			error = object_error(ENOMEM, "no memory for URR %u of session %s", urr[i].id, set->name);
			break;
		}
		set->count = i + 1;
		error = stage_entry(set, &set->entry[i], old);
	}
	// All staged URRs may be new: so many timers more; those of a transaction add up in `live`.
	usage_table.live += set->count + 1u;
	if (error == 0 && timers_reserve(&usage_table.timers, usage_table.live) != 0)
		error = object_error(ENOMEM, "no memory for the timers of session %s", session->name);
	if (error != 0) {
		usage_discard(set);
		return error;
	}
	*to = set;
	return 0;
}

void usage_discard(struct usage_set *set)
{
	if (set == NULL)
		return;
	for (uint16_t i = 0; i < set->count; i++) {
		index_pool_give(&states, set->entry[i].new_state);
		urr_config_give(set->entry[i].want);
		if (set->entry[i].created)
			free(set->entry[i].urr);
	}
	if (set->activity_created)
		free(set->activity);
	usage_table.live -= set->count + 1u;
	free(set);
}

uint32_t usage_index(const struct usage_set *set, uint32_t id)
{
	const struct usage_entry *e = find(set, id);

	if (e == NULL)
		return RULE_NONE;
	const struct api_urr *c = e->want ? e->want : e->urr->c;
	if (c->flags & API_URR_INACTIVE)
		return RULE_NONE;
	return e->new_state != RULE_NONE ? e->new_state : e->urr->state;
}

int usage_is_of_ip6(const struct usage_set *set, uint32_t id)
{
	const struct usage_entry *e = find(set, id);

	return e != NULL && ((e->want ? e->want->flags : e->urr->c->flags) & API_URR_IP6) != 0;
}

int usage_is_before_qos(const struct usage_set *set, uint32_t id)
{
	const struct usage_entry *e = find(set, id);

	return e != NULL && ((e->want ? e->want : e->urr->c)->flags & API_URR_BEFORE_QOS) != 0;
}

int usage_exhausted(const struct usage_set *set, uint32_t id)
{
	const struct usage_entry *e = find(set, id);

	if (e == NULL)
		return 0;
	const struct api_urr *c = e->want ? e->want : e->urr->c;
	return c->quota_far != 0 && (e->want ? urr_out_with(e->created ? NULL : e->urr, e->want) : e->urr->out) != 0;
}

// ---- commit ---------------------------------------------------------------------------------------------------------

// A state begins at 0 for its new owner, whose worker does not know it yet.
static void take_state(struct urr *u, uint32_t state)
{
	memset(&usage_pools.state[state], 0, sizeof(struct usage_state));
	memset(&usage_table.limits[state], 0, sizeof(struct usage_limits));
	usage_table.limits[state].session = u->set->session;
	if (u->state != RULE_NONE) {
		const struct usage_limits *l = &usage_table.limits[u->state];

		if (u->first == 0 && l->answered == l->asked)
			u->first = l->first;
		u->old_state = u->state;
	}
	u->state = state;
	usage_table.urr[state] = u;
}

static void commit_entry(struct usage_set *set, struct usage_entry *e, uint64_t now)
{
	struct urr *u = e->urr;

	u->set = set;
	e->queried = !e->created && e->want->query != u->c->query;
	if (e->new_state != RULE_NONE)
		take_state(u, e->new_state);
	if (e->created) {
		u->c = e->want;
		urr_begin(u, now);
	} else if (e->new_state != RULE_NONE || u->c != e->want) {
		urr_change(u, e->want, now);
	} else {
		urr_config_give(e->want);
	}
	e->created = 0;
	e->new_state = RULE_NONE;
	e->want = NULL;
}

static uint64_t packets_of(const struct activity *a)
{
	return usage_table.activity ? usage_table.activity(a->set->session) : 0;
}

static void schedule_activity(struct activity *a, uint64_t now)
{
	uint64_t whole = a->set->inactivity * SECOND, step = whole / LOOKS_PER_INACTIVITY;

	// Where the event was raised, only the next packet counts.
	timers_set(&usage_table.timers, &a->timer,
		a->notified ? now + step : RTE_MIN(now + step, RTE_MAX(a->since + whole, now + 1)));
}

static void commit_activity(struct usage_set *set, const struct usage_set *old, uint64_t now)
{
	struct activity *a = set->activity;

	if (a == NULL)
		return;
	a->set = set;
	if (set->activity_created || old == NULL || old->inactivity != set->inactivity || old->worker != set->worker) {
		a->packets = packets_of(a);
		a->since = now;
		a->notified = 0;
		schedule_activity(a, now);
	}
	set->activity_created = 0;
}

void usage_commit(struct usage_set *set, struct usage_set *old)
{
	uint64_t now = control_now_ns();

	if (set == NULL)
		return;
	for (uint16_t i = 0; i < set->count; i++)
		commit_entry(set, &set->entry[i], now);
	commit_activity(set, old, now);
}

// ---- release --------------------------------------------------------------------------------------------------------

static int has(const struct usage_set *set, const struct urr *u)
{
	for (uint16_t i = 0; set != NULL && i < set->count; i++)
		if (set->entry[i].urr == u)
			return 1;
	return 0;
}

static void answer_linked(struct usage_set *set, uint32_t to, uint64_t now)
{
	for (uint16_t i = 0; set != NULL && to != 0 && i < set->count; i++) {
		struct urr *u = set->entry[i].urr;

		if (u->c->id != to && (u->c->triggers & API_URR_LIUSA) &&
			(u->c->linked[0] == to || u->c->linked[1] == to))
			urr_answer(u, API_USAGE_LIUSA, now);
	}
}

// The last owner has left the rules that counted for it: its figures are final.
static void end(struct urr *u, struct usage_set *successor, uint64_t now)
{
	urr_answer(u, API_USAGE_TERMR, now);
	answer_linked(successor, u->c->id, now);
	timers_clear(&usage_table.timers, &u->timer);
	usage_table.urr[u->state] = NULL;
	index_pool_give(&states, u->state);
	urr_config_give(u->c);
	free(u);
}

// The former owner's counts are final now; the new owner's limits account for them to the byte.
static void settle(struct urr *u, uint64_t now)
{
	uint32_t old = u->old_state;
	struct usage_limits *was = &usage_table.limits[old], *is = &usage_table.limits[u->state];

	u->last = urr_last(u);
	u->old_state = RULE_NONE;
	for (int d = 0; d < 2; d++) {
		u->base.bytes[d] += usage_pools.state[old].bytes[d];
		u->base.packets[d] += usage_pools.state[old].packets[d];
		u->base.dropped[d] += was->dropped[d];
	}
	// Its raised bits are not lost either, though its notice will not find the URR any more.
	if ((was->raised & USAGE_RAISED_FIRST) && !(is->raised & USAGE_RAISED_FIRST))
		is->first = was->first;
	__atomic_fetch_or(&is->raised, was->raised, __ATOMIC_ACQ_REL);
	usage_table.urr[old] = NULL;
	index_pool_give(&states, old);
	urr_arm(u);
	timers_set(&usage_table.timers, &u->timer, now);
}

void usage_release(struct usage_set *set, struct usage_set *old)
{
	uint64_t now = control_now_ns();

	for (uint16_t i = 0; set != NULL && i < set->count; i++) {
		struct usage_entry *e = &set->entry[i];

		if (e->urr->old_state != RULE_NONE)
			settle(e->urr, now);
		if (e->queried) {
			urr_answer(e->urr, API_USAGE_IMMER, now);
			answer_linked(set, e->urr->c->id, now);
		}
		e->queried = 0;
	}
	if (old == NULL)
		return;
	for (uint16_t i = 0; i < old->count; i++)
		if (!has(set, old->entry[i].urr))
			end(old->entry[i].urr, set, now);
	if (old->activity != NULL && (set == NULL || set->activity != old->activity)) {
		timers_clear(&usage_table.timers, &old->activity->timer);
		free(old->activity);
	}
	usage_table.live -= old->count + 1u;
	free(old);
}

// ---- news and timers ------------------------------------------------------------------------------------------------

void usage_quota_register(void (*fn)(uint32_t session))
{
	usage_table.quota_changed = fn;
}

void usage_activity_register(uint64_t (*fn)(uint32_t session))
{
	usage_table.activity = fn;
}

static void look(struct urr *u, uint64_t now)
{
	urr_look(u, now);
	if (!u->far_news)
		return;
	u->far_news = 0;
	if (usage_table.quota_changed != NULL)
		usage_table.quota_changed(u->set->session);
}

static void news(uint32_t worker, uint32_t index, uint64_t argument)
{
	if (usage_table.urr[index] != NULL)
		look(usage_table.urr[index], control_now_ns());
}

static void news_lost(void)
{
	usage_table.sweep_left = usage_pools.states;
}

// Visits URRs whose notices may have been lost, a part each time.
static void sweep(uint64_t now)
{
	uint32_t n = RTE_MIN(usage_table.sweep_left, SWEEP_PER_VISIT);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = usage_table.sweep;

		usage_table.sweep = at + 1 == usage_pools.states ? 0 : at + 1;
		if (usage_table.urr[at] != NULL && __atomic_load_n(&usage_table.limits[at].raised, __ATOMIC_RELAXED))
			look(usage_table.urr[at], now);
	}
	usage_table.sweep_left -= n;
}

static void look_activity(struct activity *a, uint64_t now)
{
	uint64_t packets = packets_of(a);

	if (packets != a->packets) {
		a->packets = packets;
		a->since = now;
		a->notified = 0;
	} else if (!a->notified && now - a->since >= a->set->inactivity * SECOND) {
		struct api_event e = {.type = API_EVENT_INACTIVE, .seid = a->set->seid};

		// TS 29.244 §5.11.2: reported once for each time that the session falls silent.
		memcpy(e.session, a->set->name, sizeof(e.session));
		a->notified = event_try(&e) == 0;
	}
	schedule_activity(a, now);
}

static void visit(uint64_t now)
{
	sweep(now);
	for (int i = 0; i < LOOKS_PER_VISIT; i++) {
		struct timer *t = timers_due(&usage_table.timers, now);

		if (t == NULL)
			break;
		if (((struct urr *)t)->kind == USAGE_TIMER_URR)
			look((struct urr *)t, now);
		else
			look_activity((struct activity *)t, now);
	}
}

// ---- set-up ---------------------------------------------------------------------------------------------------------

ENGINE_LIMIT(max_urrs, 1, 1u << 24)

static int start(const struct api_engine *e)
{
	uint32_t n = e->max_urrs ? e->max_urrs : e->max_sessions;

	n += n / 16 + API_MAX_URR; // a URR that changes its worker has two states for a while
	usage_pools.states = n;
	usage_pools.state = rte_zmalloc("usage-states", (size_t)n * sizeof(struct usage_state), CACHE_LINE);
	usage_table.limits = lazy_alloc((size_t)n * sizeof(struct usage_limits));
	usage_table.urr = calloc(n, sizeof(struct urr *));
	if (usage_pools.state == NULL || usage_table.limits == NULL || usage_table.urr == NULL ||
		index_pool_create(&states, n) != 0)
		return object_error(ENOMEM, "no memory for %u URRs", n);
	return 0;
}

RTE_INIT(usage_module)
{
	module_register(start);
	timer_register(1, visit);
	usage_table.news = event_notice_register(news, news_lost);
}
