// SPDX-License-Identifier: Apache-2.0
// Due work of a URR, and its reports (TS 29.244 §5.2.2.3).
//
// A report has the measurement since the last one and starts it again: thresholds count from there, quotas go on. When
// the event queue is full the counts stay, and the triggers wait in `pending`.
#include "core/control.h"
#include "core/event.h"
#include "rule/engine.h"
#include "usage/urr.h"
#include <stdio.h>

#define SECOND 1000000000ull

// Reports that packets provoke, which a small threshold would make as many as there are packets.
#define OF_PACKETS (API_USAGE_VOLTH | API_USAGE_EVETH | API_USAGE_START | API_USAGE_STOPT | API_USAGE_DROTH)

// ---- what is due ----------------------------------------------------------------------------------------------------

static int reached(const struct usage_totals *t, const uint64_t limit[3])
{
	return t->bytes[0] + t->bytes[1] >= limit[API_TOTAL] || t->bytes[0] >= limit[API_UPLINK] ||
	       t->bytes[1] >= limit[API_DOWNLINK];
}

static uint32_t if_wanted(const struct urr *u, uint32_t trigger, uint32_t report)
{
	return u->c->triggers & trigger ? report : 0;
}

// A quota that was 0 from the start is not reported: nothing was used of it.
static uint32_t run_out(struct urr *u, uint8_t of, uint32_t report)
{
	if (u->out & of)
		return 0;
	u->out |= of;
	return report;
}

static uint32_t holding_time(struct urr *u, uint64_t now_ns)
{
	uint64_t last = urr_last(u), since = last ? urr_monotonic_of(last) : 0;

	// TS 29.244 table 7.5.2.4-1, Quota Holding Time: packets are no longer permitted to pass on after it.
	if (u->c->holding_time == 0 || !urr_has_quota(u->c) || u->out != 0 ||
		now_ns < RTE_MAX(since, u->granted) + u->c->holding_time * SECOND)
		return 0;
	return run_out(u, USAGE_HELD_TOO_LONG, if_wanted(u, API_URR_QUHTI, API_USAGE_QUHTI));
}

// TS 29.244 §5.2.2.2, Quota Validity Time: at its end the URR reports, and the rest of its quota expires: packets are
// dropped or follow the quota FAR. Without a quota it only reports.
static uint32_t validity_time(struct urr *u, uint64_t now_ns)
{
	if (u->c->validity_time == 0 || u->validity_reported || now_ns < u->granted + u->c->validity_time * SECOND)
		return 0;
	u->validity_reported = 1;
	if (urr_has_quota(u->c))
		u->out |= USAGE_NOT_VALID;
	return if_wanted(u, API_URR_QUVTI, API_USAGE_QUVTI);
}

static uint32_t quotas(struct urr *u, const struct usage_totals *t, uint64_t now_ns)
{
	uint32_t due = holding_time(u, now_ns);

	if (reached(t, u->quota))
		due |= run_out(u, USAGE_OUT_OF_VOLUME, if_wanted(u, API_URR_VOLQU, API_USAGE_VOLQU));
	if (t->active_ns >= u->time_quota)
		due |= run_out(u, USAGE_OUT_OF_TIME, if_wanted(u, API_URR_TIMQU, API_USAGE_TIMQU));
	// The event that uses up the quota runs to its end; the next is stopped.
	if (t->events >= u->event_quota && !u->flowing)
		due |= run_out(u, USAGE_OUT_OF_EVENTS, if_wanted(u, API_URR_EVEQU, API_USAGE_EVEQU));
	return due | validity_time(u, now_ns);
}

static uint32_t thresholds(const struct urr *u, const struct usage_totals *t)
{
	uint32_t due = 0;

	if (reached(t, u->threshold))
		due |= API_USAGE_VOLTH;
	if (t->active_ns >= u->time_threshold)
		due |= API_USAGE_TIMTH;
	if (t->events >= u->event_threshold)
		due |= API_USAGE_EVETH;
	if ((u->c->triggers & API_URR_DROTH) &&
		((u->c->dropped_packets != 0 && t->dropped[0] - u->reported.dropped[0] >= u->c->dropped_packets) ||
			(u->c->dropped_bytes != 0 && t->dropped[1] - u->reported.dropped[1] >= u->c->dropped_bytes)))
		due |= API_USAGE_DROTH;
	return due;
}

static uint32_t clocks(struct urr *u, uint64_t now_ns)
{
	uint32_t due = 0;

	if ((u->c->triggers & API_URR_PERIO) && u->c->period != 0 && now_ns >= u->next_period) {
		uint64_t period = u->c->period * SECOND;

		u->next_period += (1 + (now_ns - u->next_period) / period) * period;
		due |= API_USAGE_PERIO;
	}
	if (u->c->monitoring_time != 0 && !u->monitored && event_realtime_ns() / SECOND >= u->c->monitoring_time) {
		u->monitored = 1;
		due |= API_USAGE_MONIT;
	}
	return due;
}

// The awaited packet came: time runs, traffic has started.
static uint32_t started(struct urr *u, uint64_t now_ns)
{
	const struct usage_limits *l = &usage_table.limits[u->state];
	uint64_t at = urr_monotonic_of(l->first);

	if ((u->c->method & API_URR_DURATION) && u->out == 0)
		urr_run(u, 1, RTE_MIN(at, now_ns));
	if (u->flowing || !((u->c->triggers & (API_URR_START | API_URR_STOPT)) || (u->c->method & API_URR_EVENT)))
		return 0;
	u->flowing = 1;
	u->base.events++;
	return if_wanted(u, API_URR_START, API_USAGE_START);
}

// No packet for the inactivity detection time: time is suspended (TS 29.244 §8.2.18), and traffic has stopped.
static uint32_t paused(struct urr *u, uint64_t now_ns)
{
	uint64_t pause = (u->c->inactivity ? u->c->inactivity : USAGE_STOP_S) * SECOND, last = urr_last(u);
	uint64_t end = (last ? urr_monotonic_of(last) : u->granted) + pause;

	if (!(u->flowing || (u->running && u->c->inactivity != 0)) || now_ns < end)
		return 0;
	if (u->c->inactivity != 0)
		urr_run(u, 0, RTE_MAX(end, u->running_since));
	int stopped = u->flowing;
	u->flowing = 0;
	urr_ask(u);
	return stopped ? if_wanted(u, API_URR_STOPT, API_USAGE_STOPT) : 0;
}

// ---- reports --------------------------------------------------------------------------------------------------------

static uint64_t whole_seconds(uint64_t to_ns, uint64_t from_ns)
{
	return to_ns / SECOND - from_ns / SECOND; // so that the durations of all reports add up
}

// TS 29.244 table 7.5.8.3-1: the report at the monitoring time has the usage before it, the next report the usage after
// it. UBE and UAE are not set. A URR measures on one side of QoS enforcement only, chosen by the CP function (MBQE),
// and free5GC's codec refuses a message with this IE.
static uint32_t information(const struct urr *u, uint32_t triggers)
{
	return triggers & API_USAGE_MONIT ? API_USAGE_BEFORE : u->since_monitoring ? API_USAGE_AFTER : 0;
}

static struct api_usage row_of(const struct urr *u, const struct usage_totals *t, uint32_t triggers)
{
	const struct usage_limits *l = &usage_table.limits[u->state];
	struct api_usage row = {
		.seid = u->set->seid,
		.urr = u->c->id,
		.sequence = u->sequence,
		.triggers = triggers,
		.query = triggers & API_USAGE_IMMER ? u->c->query : 0,
		.information = information(u, triggers),
		.start_ns = u->start_ns,
		.end_ns = event_realtime_ns(),
	};
	uint64_t packets = 0;

	for (int d = 0; d < 2; d++) {
		packets += t->packets[d] - u->reported.packets[d];
		if (u->c->method & API_URR_VOLUME)
			row.bytes[API_UPLINK + d] = t->bytes[d] - u->reported.bytes[d];
		if (u->c->flags & API_URR_COUNT_PACKETS)
			row.packets[API_UPLINK + d] = t->packets[d] - u->reported.packets[d];
	}
	row.bytes[API_TOTAL] = row.bytes[API_UPLINK] + row.bytes[API_DOWNLINK];
	row.packets[API_TOTAL] = row.packets[API_UPLINK] + row.packets[API_DOWNLINK];
	if (u->c->method & API_URR_DURATION)
		row.duration = (uint32_t)whole_seconds(t->active_ns, u->reported.active_ns);
	if (u->c->method & API_URR_EVENT)
		row.events = (uint32_t)(t->events - u->reported.events);
	if (packets != 0) {
		row.last_ns = event_realtime_of(urr_last(u));
		uint64_t first = u->first ? u->first : l->answered == l->asked ? l->first : 0;

		row.first_ns = first ? RTE_MIN(event_realtime_of(first), row.last_ns) : row.last_ns;
	}
	return row;
}

static void begin_anew(struct urr *u, const struct usage_totals *t, uint32_t triggers, uint64_t end_ns)
{
	struct usage_totals reported = *t;
	const struct api_urr *c = u->c;

	u->sequence++;
	if (!(triggers & API_USAGE_DROTH)) { // dropped traffic is no usage: other reports do not reset it
		reported.dropped[0] = u->reported.dropped[0];
		reported.dropped[1] = u->reported.dropped[1];
	}
	u->reported = reported;
	u->start_ns = end_ns;
	u->since_monitoring = (triggers & API_USAGE_MONIT) != 0;
	// Without subsequent thresholds, the rest of the thresholds continues after the monitoring time.
	int goes_on = (triggers & ~API_USAGE_LIUSA) == API_USAGE_MONIT && c->subsequent_time_threshold == 0 &&
		      (c->subsequent_volume_threshold[0] | c->subsequent_volume_threshold[1] |
			      c->subsequent_volume_threshold[2]) == 0;
	if (!goes_on)
		urr_thresholds(u, t);
	urr_arm(u);
	urr_ask(u);
	u->first = 0;
}

static int tell(struct urr *u, uint32_t triggers, uint64_t now_ns)
{
	engines_read(u->set->session);
	struct usage_totals t = urr_totals(u, now_ns);
	struct api_event e = {.type = API_EVENT_USAGE, .seid = u->set->seid, .usage = row_of(u, &t, triggers)};

	snprintf(e.session, sizeof(e.session), "%s", u->set->name);
	if (event_raise(&e) != 0) {
		u->pending |= triggers;
		return -1;
	}
	u->pending = 0;
	begin_anew(u, &t, triggers, e.usage.end_ns);
	return 0;
}

static int is_linked(const struct urr *u, uint32_t to)
{
	return (u->c->triggers & API_URR_LIUSA) && to != 0 && (u->c->linked[0] == to || u->c->linked[1] == to);
}

// TS 29.244 §5.2.2.4: a URR reports when a URR that it is linked to does. One step: a linked report triggers no other.
static void tell_linked(const struct urr *to, uint64_t now_ns)
{
	for (uint16_t i = 0; i < to->set->count; i++) {
		struct urr *u = to->set->entry[i].urr;

		if (u == to || !is_linked(u, to->c->id))
			continue;
		tell(u, API_USAGE_LIUSA, now_ns);
		struct usage_totals t = urr_totals(u, now_ns);
		urr_schedule(u, &t, now_ns);
	}
}

void urr_look(struct urr *u, uint64_t now_ns)
{
	uint32_t raised = __atomic_exchange_n(&usage_table.limits[u->state].raised, 0, __ATOMIC_ACQ_REL);
	uint8_t was_out = u->out;
	uint32_t due = u->pending;

	if (raised & USAGE_RAISED_FIRST)
		due |= started(u, now_ns);
	due |= paused(u, now_ns);
	struct usage_totals t = urr_totals(u, now_ns);
	due |= quotas(u, &t, now_ns) | thresholds(u, &t) | clocks(u, now_ns);
	if (u->out != was_out) {
		urr_run(u, 0, now_ns);
		urr_arm(u);
		u->far_news |= was_out == 0 && u->c->quota_far != 0;
	}
	if (due != 0 && ((due & ~OF_PACKETS) != 0 || now_ns >= u->quiet_until)) {
		if (tell(u, due, now_ns) == 0) {
			u->quiet_until = due & OF_PACKETS ? now_ns + USAGE_QUIET_NS : u->quiet_until;
			tell_linked(u, now_ns);
		}
	} else {
		u->pending = due;
	}
	t = urr_totals(u, now_ns);
	urr_schedule(u, &t, now_ns);
}

void urr_answer(struct urr *u, uint32_t trigger, uint64_t now_ns)
{
	engines_read(u->set->session);
	struct usage_totals t = urr_totals(u, now_ns);
	struct api_usage row = row_of(u, &t, trigger | u->pending);

	if (event_commit_usage(&row) != 0) {
		tell(u, trigger, now_ns);
		return;
	}
	u->pending = 0;
	begin_anew(u, &t, row.triggers, row.end_ns);
	if (trigger != API_USAGE_TERMR) {
		t = urr_totals(u, now_ns);
		urr_schedule(u, &t, now_ns);
	}
}
