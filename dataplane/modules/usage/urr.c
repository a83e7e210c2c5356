// SPDX-License-Identifier: Apache-2.0
// One URR: its totals, its worker's limits, and the times of its checks.
#include "usage/urr.h"
#include "core/control.h"
#include "core/event.h"
#include <rte_cycles.h>
#include <string.h>

#define NEVER UINT64_MAX
#define SECOND 1000000000ull
#define RETRY_NS 100000000ull // after the event queue was full
#define CLOCK_LOOK_S 600 // a monitoring time is looked at so often: CLOCK_REALTIME may be set
#define SHORTEST_NS 1000000ull

// Totals never wrap: a limit beyond the end is none.
static uint64_t beyond(uint64_t from, uint64_t by)
{
	uint64_t sum;

	return __builtin_add_overflow(from, by, &sum) ? USAGE_NO_LIMIT : sum;
}

// ---- counts ---------------------------------------------------------------------------------------------------------

static void add_state(struct usage_totals *t, uint32_t state)
{
	uint64_t last;

	if (state == RULE_NONE)
		return;
	struct usage_totals s = usage_counted(state, &last);
	for (int d = 0; d < 2; d++) {
		t->bytes[d] += s.bytes[d];
		t->packets[d] += s.packets[d];
		t->dropped[d] += s.dropped[d];
	}
}

struct usage_totals urr_totals(const struct urr *u, uint64_t now_ns)
{
	struct usage_totals t = u->base;

	add_state(&t, u->state);
	add_state(&t, u->old_state);
	if (u->running && now_ns > u->running_since)
		t.active_ns += now_ns - u->running_since;
	return t;
}

uint64_t urr_last(const struct urr *u)
{
	uint64_t last, before = 0;

	usage_counted(u->state, &last);
	if (u->old_state != RULE_NONE)
		usage_counted(u->old_state, &before);
	return RTE_MAX(RTE_MAX(last, before), u->last);
}

uint64_t urr_monotonic_of(uint64_t ticks)
{
	uint64_t age = event_age_ns(ticks), now = control_now_ns();

	return now > age ? now - age : 0;
}

void urr_run(struct urr *u, int running, uint64_t at_ns)
{
	if (u->running == running)
		return;
	if (!running && at_ns > u->running_since)
		u->base.active_ns += at_ns - u->running_since;
	u->running = (uint8_t)running;
	u->running_since = at_ns;
}

// ---- limits ---------------------------------------------------------------------------------------------------------

int urr_has_quota(const struct api_urr *c)
{
	return (c->flags & (API_URR_HAS_VOLUME_QUOTA | API_URR_HAS_TIME_QUOTA | API_URR_HAS_EVENT_QUOTA)) != 0;
}

static int any(const uint64_t v[3])
{
	return (v[0] | v[1] | v[2]) != 0;
}

// A quota of 0 is used up at once.
static uint8_t out_at_once(const struct api_urr *c)
{
	return (uint8_t)(((c->flags & API_URR_HAS_VOLUME_QUOTA) && !any(c->volume_quota) ? USAGE_OUT_OF_VOLUME : 0) |
			 ((c->flags & API_URR_HAS_TIME_QUOTA) && c->time_quota == 0 ? USAGE_OUT_OF_TIME : 0) |
			 ((c->flags & API_URR_HAS_EVENT_QUOTA) && c->event_quota == 0 ? USAGE_OUT_OF_EVENTS : 0));
}

// Which quotas start again when a URR changes (USAGE_OUT_OF_*).
static uint8_t regranted(const struct api_urr *have, const struct api_urr *want)
{
	uint8_t anew = 0;

	if (have->grant != want->grant)
		return USAGE_OUT_OF_VOLUME | USAGE_OUT_OF_TIME | USAGE_OUT_OF_EVENTS | USAGE_HELD_TOO_LONG |
		       USAGE_NOT_VALID;
	if (((have->flags ^ want->flags) & API_URR_HAS_VOLUME_QUOTA) ||
		memcmp(have->volume_quota, want->volume_quota, sizeof(have->volume_quota)) != 0)
		anew |= USAGE_OUT_OF_VOLUME;
	if (((have->flags ^ want->flags) & API_URR_HAS_TIME_QUOTA) || have->time_quota != want->time_quota)
		anew |= USAGE_OUT_OF_TIME;
	if (((have->flags ^ want->flags) & API_URR_HAS_EVENT_QUOTA) || have->event_quota != want->event_quota)
		anew |= USAGE_OUT_OF_EVENTS;
	if (anew != 0 || have->holding_time != want->holding_time || have->validity_time != want->validity_time)
		anew |= USAGE_HELD_TOO_LONG | USAGE_NOT_VALID;
	return anew;
}

uint8_t urr_out_with(const struct urr *u, const struct api_urr *want)
{
	uint8_t anew = u == NULL ? UINT8_MAX : regranted(u->c, want);

	return (uint8_t)((u == NULL ? 0 : u->out & ~anew) | (out_at_once(want) & anew));
}

static void volume_quota(struct urr *u, const struct usage_totals *t)
{
	const struct api_urr *c = u->c;
	uint64_t have[3] = {t->bytes[0] + t->bytes[1], t->bytes[0], t->bytes[1]};

	for (int i = 0; i < 3; i++)
		u->quota[i] = (c->flags & API_URR_HAS_VOLUME_QUOTA) && c->volume_quota[i] != 0
				      ? beyond(have[i], c->volume_quota[i])
				      : USAGE_NO_LIMIT;
}

static void quotas(struct urr *u, const struct usage_totals *t, uint8_t which)
{
	const struct api_urr *c = u->c;

	if (which & USAGE_OUT_OF_VOLUME)
		volume_quota(u, t);
	if (which & USAGE_OUT_OF_TIME)
		u->time_quota = (c->flags & API_URR_HAS_TIME_QUOTA) ? beyond(t->active_ns, c->time_quota * SECOND)
								    : USAGE_NO_LIMIT;
	if (which & USAGE_OUT_OF_EVENTS)
		u->event_quota =
			(c->flags & API_URR_HAS_EVENT_QUOTA) ? beyond(t->events, c->event_quota) : USAGE_NO_LIMIT;
}

static void volume_thresholds(struct urr *u, const struct usage_totals *t)
{
	const struct api_urr *c = u->c;
	const uint64_t *by = u->monitored && any(c->subsequent_volume_threshold) ? c->subsequent_volume_threshold
										 : c->volume_threshold;
	uint64_t have[3] = {t->bytes[0] + t->bytes[1], t->bytes[0], t->bytes[1]};

	for (int i = 0; i < 3; i++)
		u->threshold[i] = (c->triggers & API_URR_VOLTH) && by[i] != 0 ? beyond(have[i], by[i]) : USAGE_NO_LIMIT;
}

static void time_threshold(struct urr *u, const struct usage_totals *t)
{
	const struct api_urr *c = u->c;
	uint64_t s = u->monitored && c->subsequent_time_threshold ? c->subsequent_time_threshold : c->time_threshold;

	u->time_threshold = (c->triggers & API_URR_TIMTH) && s != 0 ? beyond(t->active_ns, s * SECOND) : USAGE_NO_LIMIT;
}

static void event_threshold(struct urr *u, const struct usage_totals *t)
{
	u->event_threshold = (u->c->triggers & API_URR_EVETH) && u->c->event_threshold != 0
				     ? beyond(t->events, u->c->event_threshold)
				     : USAGE_NO_LIMIT;
}

void urr_thresholds(struct urr *u, const struct usage_totals *t)
{
	volume_thresholds(u, t);
	time_threshold(u, t);
	event_threshold(u, t);
}

// A limit of totals in the worker's counts, which began at 0 when the state was taken.
static uint64_t of_state(uint64_t limit, uint64_t before)
{
	if (limit == USAGE_NO_LIMIT)
		return limit;
	return limit > before ? limit - before : 0;
}

static void publish(struct urr *u)
{
	struct usage_limits *l = &usage_table.limits[u->state];

	__atomic_store_n(&l->version, l->version + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&usage_pools.state[u->state].mark[API_TOTAL], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	usage_look_again(u->state);
}

// Whether the first packet after a pause is news at once.
static int watches_starts(const struct urr *u)
{
	return (u->c->triggers & (API_URR_START | API_URR_STOPT)) ||
	       (u->c->method & (API_URR_EVENT | API_URR_DURATION));
}

void urr_arm(struct urr *u)
{
	struct usage_limits *l = &usage_table.limits[u->state];
	struct usage_totals before = u->base;

	add_state(&before, u->old_state);
	uint64_t bytes[3] = {before.bytes[0] + before.bytes[1], before.bytes[0], before.bytes[1]};
	for (int i = 0; i < 3; i++) {
		__atomic_store_n(&l->threshold[i], of_state(u->threshold[i], bytes[i]), __ATOMIC_RELAXED);
		__atomic_store_n(&l->quota[i], of_state(u->quota[i], bytes[i]), __ATOMIC_RELAXED);
	}
	int watched = (u->c->triggers & API_URR_DROTH) != 0;
	uint64_t by[2] = {u->c->dropped_packets, u->c->dropped_bytes};
	for (int i = 0; i < 2; i++)
		l->drop_mark[i] = watched && by[i] != 0
					  ? of_state(beyond(u->reported.dropped[i], by[i]), before.dropped[i])
					  : USAGE_NO_LIMIT;
	l->stopped = u->out != 0;
	l->before_qos = (u->c->flags & API_URR_BEFORE_QOS) != 0;
	l->counts6 = (u->c->flags & API_URR_IP6) != 0;
	l->tell_first = (uint8_t)watches_starts(u);
	publish(u);
}

void urr_ask(struct urr *u)
{
	struct usage_limits *l = &usage_table.limits[u->state];

	if (u->first == 0 && l->answered == l->asked)
		u->first = l->first;
	__atomic_store_n(&l->asked, l->asked + 1, __ATOMIC_RELAXED);
	publish(u);
}

// ---- times ----------------------------------------------------------------------------------------------------------

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return RTE_MIN(a, b);
}

static uint64_t quota_times(const struct urr *u, const struct usage_totals *t, uint64_t now_ns)
{
	const struct api_urr *c = u->c;
	uint64_t due = c->validity_time != 0 && !u->validity_reported ? u->granted + c->validity_time * SECOND : NEVER;

	if (!urr_has_quota(c))
		return due;
	if (u->running && u->out == 0 && u->time_quota != USAGE_NO_LIMIT)
		due = earlier(due, now_ns + u->time_quota - t->active_ns);
	if (c->holding_time != 0 && u->out == 0) {
		uint64_t last = urr_last(u);
		uint64_t since = last ? urr_monotonic_of(last) : 0;

		due = earlier(due, RTE_MAX(since, u->granted) + c->holding_time * SECOND);
	}
	return due;
}

void urr_schedule(struct urr *u, const struct usage_totals *t, uint64_t now_ns)
{
	const struct api_urr *c = u->c;
	uint64_t due = quota_times(u, t, now_ns);

	if (u->pending != 0)
		due = earlier(due, u->quiet_until > now_ns ? u->quiet_until : now_ns + RETRY_NS);
	if ((c->triggers & API_URR_PERIO) && c->period != 0)
		due = earlier(due, u->next_period);
	if (u->running && u->time_threshold != USAGE_NO_LIMIT)
		due = earlier(due, now_ns + (u->time_threshold > t->active_ns ? u->time_threshold - t->active_ns : 0));
	if (c->monitoring_time != 0 && !u->monitored) {
		uint64_t real = event_realtime_ns() / SECOND, at = c->monitoring_time;
		uint64_t wait = at > real ? RTE_MIN(at - real, (uint64_t)CLOCK_LOOK_S) : 0;

		due = earlier(due, now_ns + wait * SECOND);
	}
	if (u->flowing || (u->running && c->inactivity != 0))
		due = earlier(
			due, urr_monotonic_of(urr_last(u)) + (c->inactivity ? c->inactivity : USAGE_STOP_S) * SECOND);
	if (u->far_news)
		due = now_ns;
	if (due == NEVER)
		timers_clear(&usage_table.timers, &u->timer);
	else
		timers_set(&usage_table.timers, &u->timer, RTE_MAX(due, now_ns + SHORTEST_NS));
}

// ---- configuration --------------------------------------------------------------------------------------------------

// A monitoring time in the past has no usage before it: the values after it apply.
static void set_monitoring(struct urr *u)
{
	u->monitored = u->c->monitoring_time != 0 && u->c->monitoring_time <= event_realtime_ns() / SECOND;
}

static void set_granted(struct urr *u, uint64_t now_ns)
{
	u->granted = now_ns;
	u->validity_reported = 0;
}

static void set_running(struct urr *u, uint64_t now_ns)
{
	int measured = (u->c->method & API_URR_DURATION) && !(u->c->flags & API_URR_INACTIVE) && u->out == 0;

	if (!measured)
		urr_run(u, 0, now_ns);
	else if (u->c->flags & API_URR_START_OF_TRAFFIC) // ISTM (TS 29.244 §8.2.68)
		urr_run(u, 1, now_ns);
}

void urr_begin(struct urr *u, uint64_t now_ns)
{
	struct usage_totals t = urr_totals(u, now_ns);

	set_monitoring(u);
	set_granted(u, now_ns);
	u->start_ns = event_realtime_ns();
	u->next_period = beyond(now_ns, u->c->period * SECOND);
	u->out = out_at_once(u->c);
	set_running(u, now_ns);
	urr_thresholds(u, &t);
	quotas(u, &t, UINT8_MAX);
	urr_arm(u);
	urr_ask(u);
	urr_schedule(u, &t, now_ns);
}

void urr_change(struct urr *u, const struct api_urr *want, uint64_t now_ns)
{
	struct usage_totals t = urr_totals(u, now_ns);
	const struct api_urr *had = u->c;
	uint8_t anew = regranted(had, want), out = urr_out_with(u, want);
	int all = had->grant != want->grant;

	u->c = want;
	if (had->monitoring_time != want->monitoring_time)
		set_monitoring(u);
	if (all || ((had->triggers ^ want->triggers) & API_URR_VOLTH) ||
		memcmp(had->volume_threshold, want->volume_threshold, sizeof(had->volume_threshold)) != 0 ||
		memcmp(had->subsequent_volume_threshold, want->subsequent_volume_threshold,
			sizeof(had->subsequent_volume_threshold)) != 0)
		volume_thresholds(u, &t);
	if (all || ((had->triggers ^ want->triggers) & API_URR_TIMTH) || had->time_threshold != want->time_threshold ||
		had->subsequent_time_threshold != want->subsequent_time_threshold)
		time_threshold(u, &t);
	if (all || ((had->triggers ^ want->triggers) & API_URR_EVETH) || had->event_threshold != want->event_threshold)
		event_threshold(u, &t);
	if (anew != 0)
		set_granted(u, now_ns);
	quotas(u, &t, anew);
	u->out = out;
	if (all || had->period != want->period || !(had->triggers & API_URR_PERIO))
		u->next_period = beyond(now_ns, want->period * SECOND);
	set_running(u, now_ns);
	urr_arm(u);
	if (!u->running || !u->flowing)
		urr_ask(u);
	t = urr_totals(u, now_ns);
	urr_schedule(u, &t, now_ns);
	urr_config_give(had);
}

// ---- counted elsewhere ----------------------------------------------------------------------------------------------

int usage_may_count_elsewhere(uint32_t index)
{
	const struct urr *u = usage_table.urr[index];

	return u != NULL && (u->c->method & ~API_URR_VOLUME) == 0 &&
	       (u->c->triggers & ~(API_URR_PERIO | API_URR_LIUSA)) == 0 && !urr_has_quota(u->c) &&
	       u->c->monitoring_time == 0 && u->c->inactivity == 0;
}

void usage_count_elsewhere(uint32_t index, uint64_t packets, uint64_t bytes, int uplink)
{
	struct urr *u = usage_table.urr[index];

	if (u == NULL)
		return;
	u->base.packets[!uplink] += packets;
	u->base.bytes[!uplink] += bytes;
	u->last = worker_get(u->set->worker)->now;
}
