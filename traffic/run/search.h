// SPDX-License-Identifier: Apache-2.0
// The search for the highest rate at a loss goal: MLRsearch (RFC 9971), with bisection in logarithmic space. Pure: it
// is told what each trial gave, and says what to try next.
//
//   struct search s; search_init(&s, …);
//   while (search_next(&s, &rate, &seconds)) { run a trial; search_add(&s, &what_it_gave); }
#ifndef TRAFFIC_SEARCH_H
#define TRAFFIC_SEARCH_H

#include "traffic/profile/profile.h"

#define SEARCH_TRIALS 200 // a search that needs more gives up with what it has
#define SEARCH_PHASES 3 // of each goal: short trials and a wide interval first, then longer and narrower

// What a trial gave. RFC 9971 "Trial Result"; the effective duration is the duration asked for.
struct search_trial {
	double rate, seconds; // packets per second
	double loss_ratio;
	double received_pps; // RFC 9971 "Trial Forwarding Rate"
	bool tester_limited; // the tester offered less than `rate`: a low loss proves nothing about the gateway
	bool disturbed; // by the machine: a high loss proves nothing about the gateway
};

// RFC 9971 appendix A: sums of the durations of the trials at one load, as one goal sees them.
struct search_sums {
	double full_low, full_high; // trials of the goal's final duration or longer, with low and high loss
	double short_low, short_high;
};

enum bound { BOUND_UNDECIDED, BOUND_LOWER, BOUND_UPPER };

struct search_result {
	bool found; // a lower bound exists
	double lower, upper; // "Relevant Lower Bound", "Relevant Upper Bound" in packets per second; upper 0: none met
	double conditional; // "Conditional Throughput": packets per second forwarded at the lower bound
	bool at_maximum; // the highest load allowed was good: no upper bound
	bool tester_limited; // what stopped the search was the tester, not the gateway
	bool disturbed; // what stopped the search were disturbed trials: the gateway may do more
	bool gave_up; // without an interval as narrow as asked for: SEARCH_TRIALS were used up, or no load was good
	const char *reason; // static text, why it gave up; NULL when it did not
};

// What a load must fulfil in a phase of a goal; in the last phase it is the goal itself.
struct search_target {
	double loss, exceed; // ratios
	double seconds, sum; // of a trial; of all trials at a load ("Goal Duration Sum")
	double width; // natural logarithm of the highest ratio of upper to lower bound
};

struct search {
	double min, max; // packets per second
	uint32_t goals;
	struct search_goal goal[PROFILE_GOALS];
	uint32_t order[PROFILE_GOALS]; // goals from the strictest to the loosest
	uint32_t trials;
	struct search_trial trial[SEARCH_TRIALS];
	struct search_result result[PROFILE_GOALS]; // by index of goal; valid after search_conclude()
	// State of the search: which goal (place in `order`) and phase it is at, and what the phase before has found.
	uint32_t initial; // trials of the initial phase that are done
	uint32_t current, phase;
	bool again; // all goals had their results; now each is looked at again,
	uint32_t pass_trials; // until no trial came since this many
	double hint_lower, hint_upper; // bounds of the phase before; 0 none
	double pending; // load that is being decided; 0 none
	double expand; // how many widths the next step outwards goes
	double refuted[PROFILE_GOALS]; // loads from here upwards are bad whatever trials said; 0: none
	struct search_trial refuted_by[PROFILE_GOALS];
};

// `min` <= `max` in packets per second; goals as in the profile (loss and exceed below 1, width above 0), at most
// PROFILE_GOALS. They are served from the strictest to the loosest; every trial counts for all of them.
void search_init(struct search *s, double min, double max, const struct search_goal *goals, uint32_t n);

// What to try next; false, after search_conclude(), when every goal has its result, or no trial is left. May be called
// again after more trials were added or a result was refuted.
bool search_next(struct search *s, double *rate, double *seconds);

// What a trial gave; trials that search_next() did not ask for are welcome too. Beyond SEARCH_TRIALS nothing is kept.
void search_add(struct search *s, const struct search_trial *t);

// Sets the results from what is known by now, for a search that ends early.
void search_conclude(struct search *s);

// A trial for confirmation failed: for `goal`, loads from `from` upwards count as upper bounds, and search_next() goes
// on below.
void search_refute(struct search *s, uint32_t goal, double from, const struct search_trial *failed);

// Sums for the load `rate`, as a goal with this loss ratio and final duration sees them.
struct search_sums search_sums(const struct search *s, double rate, double loss, double final_seconds);

// RFC 9971 appendix A: what these sums make of a load, for a goal with this duration sum and exceed ratio (< 1).
enum bound search_classify(const struct search_sums *sums, double duration_sum, double exceed);

// RFC 9971 appendix B: "Conditional Throughput" of a load for a goal in packets per second. 0 without a trial of full
// length.
double search_conditional(const struct search *s, double rate, const struct search_goal *goal);

#endif
