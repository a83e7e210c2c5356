// SPDX-License-Identifier: Apache-2.0
// Inside of usage: the cold part that workers see, and a URR as the control thread keeps it.
#ifndef USAGE_URR_H
#define USAGE_URR_H

#include "usage/timers.h"
#include "usage/usage.h"
#include "wire/cache_line.h"

#define USAGE_NO_LIMIT UINT64_MAX
#define USAGE_STOP_S                                                                                                   \
	60 // without a packet for so long, traffic has stopped, where the URR has no inactivity detection time
#define USAGE_QUIET_NS                                                                                                 \
	100000000ull // between two reports of a URR that packets trigger, so that no threshold causes a storm

// raised: a worker's observations. Hints: the control thread compares its own figures.
#define USAGE_RAISED_LIMIT 1u // a threshold or quota is reached
#define USAGE_RAISED_FIRST 2u // the packet that was asked for came
#define USAGE_RAISED_DROPPED 4u

// Two lines that a worker reads when a mark is reached. Counts are those of the usage_state.
struct usage_limits {
	// written by the control thread
	uint64_t threshold[3], quota[3]; // USAGE_NO_LIMIT: none
	uint64_t drop_mark[2]; // of dropped[]; USAGE_NO_LIMIT: none
	uint32_t version; // rises after each change of what the control thread writes here
	uint32_t asked; // rises when the next packet is to be notified
	uint8_t stopped; // nothing passes
	uint8_t before_qos; // MBQE
	uint32_t session; // its index
	uint8_t counts6; // what rules counted of IPv6 (rule_account.six)
	// The packet that was asked for is news at once; else it is found in `first` when a report is made
	uint8_t tell_first;
	// written by the owner worker
	uint32_t answered __attribute__((aligned(8))); // follows `asked`
	uint32_t raised; // USAGE_RAISED_*; the control thread takes them
	uint64_t first; // worker.now of the packet that was asked for
	uint64_t dropped[2]; // downlink packets, bytes; also by the control thread (atomic)
	uint64_t lent; // bytes that rules of it have on loan, used or not (credit.c), or returned since; 0: none
} cache_aligned;
static_assert(sizeof(struct usage_limits) == 128, "two cache lines");

// Why nothing passes.
#define USAGE_OUT_OF_VOLUME 1u
#define USAGE_OUT_OF_TIME 2u
#define USAGE_OUT_OF_EVENTS 4u
#define USAGE_HELD_TOO_LONG 8u // quota holding time
#define USAGE_NOT_VALID 16u // quota validity time

struct usage_totals { // since the URR was made
	uint64_t bytes[2], packets[2];
	uint64_t active_ns; // time measured
	uint64_t events;
	uint64_t dropped[2];
};

struct urr {
	struct timer timer; // first
	uint8_t kind; // USAGE_TIMER_URR
	uint8_t out; // USAGE_OUT_OF_*
	uint8_t running, flowing; // time is measured; traffic was seen and has not stopped
	uint8_t monitored; // the monitoring time is behind us
	uint8_t since_monitoring; // the measurement that is under way began at the monitoring time
	uint8_t far_news; // the session module is to be notified that the quota FAR is in force
	uint8_t validity_reported; // the quota validity time has ended and was reported
	uint32_t state, old_state; // RULE_NONE; the latter while its worker may still be in a walk
	uint32_t sequence;
	uint32_t pending; // API_USAGE_*: reports that found the queue full
	struct usage_set *set;
	const struct api_urr *c; // in force (config.c)
	// Of earlier owners and of devices; dropped by them too; active_ns and events of past stretches.
	struct usage_totals base;
	struct usage_totals reported; // at the last report
	uint64_t threshold[3], quota[3]; // totals; USAGE_NO_LIMIT: none
	uint64_t time_threshold, time_quota; // of active_ns
	uint64_t event_threshold, event_quota;
	uint64_t running_since, granted, next_period, quiet_until; // control_now_ns()
	uint64_t start_ns; // CLOCK_REALTIME
	// worker.now of the first packet since the last report, where the limits do not know it any more
	uint64_t first;
	uint64_t last; // usage_state.last of an earlier owner
};
static_assert(sizeof(struct urr) <= 312, "a million are idle");

// A session's inactivity timer.
struct activity {
	struct timer timer; // first
	uint8_t kind; // USAGE_TIMER_ACTIVITY
	uint8_t notified;
	struct usage_set *set;
	uint64_t packets, since; // count when last looked, and since when it stands still
};

enum { USAGE_TIMER_URR, USAGE_TIMER_ACTIVITY };

struct usage_entry {
	struct urr *urr;
	const struct api_urr *want; // until the commit, which takes it over
	uint32_t new_state; // for a URR that is new or changes its worker; else RULE_NONE
	uint8_t created, queried;
};

struct usage_set {
	const char *name; // key of the session object, API_NAME bytes
	uint64_t seid;
	uint32_t session, inactivity;
	uint8_t worker;
	uint16_t count;
	struct activity *activity;
	uint8_t activity_created;
	struct usage_entry entry[];
};

struct usage_table {
	struct usage_limits *limits; // by state
	struct urr **urr; // by state; NULL: free
	struct timers timers;
	uint32_t live; // URRs and activities: as many timers at most
	uint32_t sweep, sweep_left; // states still to be looked at after news was lost
	uint16_t news; // number of event_notify
	void (*quota_changed)(uint32_t session);
	uint64_t (*activity)(uint32_t session);
};
extern struct usage_table usage_table;

// usage_count.c: the next counts at which there is something to decide. Where a quota is used up, each packet asks.
void usage_marks(const struct usage_state *u, const struct usage_limits *l, uint64_t to[3]);
// Writes them. `version`: of the limits, read before anything that they were computed from.
void usage_set_marks(uint32_t index, uint32_t version);
// credit.c, control thread: a state's counts, including loans, and usage_state.last; borrowers check the limits again.
struct usage_totals usage_counted(uint32_t state, uint64_t *last);
void usage_look_again(uint32_t state);
// urr.c: counts, limits, times
struct usage_totals urr_totals(const struct urr *u, uint64_t now_ns);
uint64_t urr_last(const struct urr *u); // worker.now of the last packet; 0: none yet
uint64_t urr_monotonic_of(uint64_t ticks);
int urr_has_quota(const struct api_urr *c);
uint8_t urr_out_with(const struct urr *u, const struct api_urr *want); // u->out as it will be; u may be NULL
void urr_arm(struct urr *u); // writes the limits that its worker sees
void urr_ask(struct urr *u); // the next packet is to be noticed
void urr_schedule(struct urr *u, const struct usage_totals *t, uint64_t now_ns);
void urr_run(struct urr *u, int running, uint64_t at_ns);
void urr_thresholds(struct urr *u, const struct usage_totals *t); // start again from here
void urr_begin(struct urr *u, uint64_t now_ns); // after it got its configuration and state
// Takes over one reference to `want`, and drops that to the old configuration.
void urr_change(struct urr *u, const struct api_urr *want, uint64_t now_ns);

// config.c: one copy for all equally configured URRs, with one address.
const struct api_urr *urr_config_take(const struct api_urr *want); // NULL: no memory
void urr_config_give(const struct api_urr *config); // may be NULL

// report.c: what is due, and reports
void urr_look(struct urr *u, uint64_t now_ns);
void urr_answer(struct urr *u, uint32_t trigger, uint64_t now_ns); // a report in the reply of the running commit
#endif
