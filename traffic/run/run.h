// SPDX-License-Identifier: Apache-2.0
// What a profile asks for, trial by trial: a fixed rate, a search, steps, and latency at parts of the rate found.
// Independent of DPDK: trials go through a function, so that the unit tests run it against a model of a gateway.
#ifndef TRAFFIC_RUN_H
#define TRAFFIC_RUN_H

#include "traffic/engine/tester.h"
#include "traffic/run/search.h"
#include <time.h>

#define RUN_DISCARDS 60 // disturbed trials that are repeated in a run; later ones count with their mark
#define CONFIRM_TRIALS 24 // in a run
#define WRONG_PART 0.01 // of the packets, in two trials one after the other, ends a search
#define SENTENCE_BYTES 1024
#define WIRE_BYTES 20 // preamble, start of frame and gap: what a frame takes on the wire (L1) beside itself

struct trial_source {
	int (*trial)(void *arg, const struct trial_request *asked, struct trial *result, char *error, size_t n);
	void *arg;
	double tsc_hz;
};

enum trial_purpose {
	TRIAL_WARMUP, // not judged, but for whether anything arrives
	TRIAL_MAXIMUM, // what the tester itself can offer
	TRIAL_FIXED,
	TRIAL_SEARCH,
	TRIAL_CONFIRM, // of a search's result
	TRIAL_STEP,
	TRIAL_LATENCY,
	TRIAL_PURPOSES
};
extern const char *const trial_purpose_name[TRIAL_PURPOSES];

// A trial with why it was run. `used`: 0 when it was disturbed and repeated, or interrupted.
struct run_trial {
	enum trial_purpose purpose;
	bool used;
	double part; // steps and latency: of the rate that it refers to; 0: it does not
	struct trial trial;
};

struct run_result {
	bool complete, interrupted;
	char error[SENTENCE_BYTES]; // why it is not complete
	bool searched; // `search` is valid
	struct search search;
	bool confirmed[PROFILE_GOALS]; // by index of goal
	double maximum_pps; // what the tester offered at most; 0 when that was not asked for
	double reference_pps; // what `part` of steps and latency refers to; 0 none
	int32_t reference_goal; // index of the goal that it is the result of; -1: it is the profile's rate
	uint32_t trials, discarded; // discarded: disturbed ones that were repeated
	struct run_trial *trial; // all of them, in order; allocated
	uint32_t confirms, fixed, latency, steps; // trials of each kind that count
	// For the report, filled in by the caller of run_profile().
	time_t started;
	double seconds; // from the start to the end
	int argc; // command line, argv[0] first; not owned
	char **argv;
	char dpdk[64]; // its version; empty: unknown
	const uint32_t *speed_mbps; // of each port's link, or NULL; not owned
};

// Is told about each trial as it begins (`ended` NULL) and ends.
typedef void (*run_progress)(
	void *arg, enum trial_purpose why, const struct trial_request *asked, const struct run_trial *ended);

// Runs everything. Returns 0 when complete; else -1, with what was measured in *r. *r must be zeros, or filled in by
// the caller as told above; run_free() frees it in any case. One thread.
int run_profile(
	const struct profile *p, const struct trial_source *source, run_progress fn, void *arg, struct run_result *r);
void run_free(struct run_result *r);

// ---- between run.c and run_search.c ---------------------------------------------------------------------------------

struct runner {
	const struct profile *p;
	const struct trial_source *source;
	run_progress fn;
	void *arg;
	struct run_result *r;
	bool arrived; // that something arrives has been seen
	double offered; // highest rate that the tester has offered so far
	uint32_t wrong_in_row; // trials with more than WRONG_PART wrong packets
};
// Writes why the run cannot go on. Always returns -1.
int run_fail(struct runner *u, const char *format, ...) __attribute__((format(printf, 2, 3)));
// One trial, repeated while it is disturbed and lost more than `loss`. Returns its index in r->trial, or -1 when the
// run ends.
int run_judged(struct runner *u, enum trial_purpose why, double rate, double seconds, double loss, double part);
// The highest rate that the tester offers, in r->maximum_pps. Returns 0 or -1.
int run_maximum(struct runner *u);
// The search with its confirmations. Returns 0 or -1.
int run_search(struct runner *u);

// ---- rates ----------------------------------------------------------------------------------------------------------

// Mean bytes with FCS of a packet of the streams with a share; 0 when there is none.
double run_mean_bytes(const struct profile *p);
// Packets per second of all streams with a share; `reference` is what RATE_PART refers to. RATE_MAX: infinity;
// RATE_NONE: 0.
double run_rate_pps(const struct profile *p, const struct rate *rate, double reference);
// Lowest loss ratio of the profile's goals, 0 without goals: what fixed trials are judged by.
double run_strictest(const struct profile *p);
// Whether a stream has a share of the trial's rate, and no rate of its own.
bool run_has_share(const struct profile_stream *s);

// ---- expect.c -------------------------------------------------------------------------------------------------------

// Whether a stream's expectation is judged in a trial of this kind: a stream that has a share of the trial's rate in
// fixed and confirming trials only, where that rate is the run's own; others in all that are measured on purpose.
bool expectation_judged(const struct profile *p, uint32_t stream, enum trial_purpose why);
// Whether a stream did what its `expect` says (true without one); else a sentence in `text`.
bool stream_expectation(
	const struct profile *p, uint32_t stream, const struct trial *t, double tsc_hz, char *text, size_t n);

// ---- result.c, result_json.c ----------------------------------------------------------------------------------------

// Result as text and as JSON (docs/traffic.md lists the fields). `file` NULL or "-": standard output. Returns 0 or -1.
void result_print(FILE *to, const struct profile *p, const struct run_result *r, double tsc_hz);
int result_write_json(const char *file, const struct profile *p, const struct run_result *r, double tsc_hz);
// One line of JSON for a trial that begins (`ended` NULL) or ends (option --events).
void result_event(FILE *to, const struct profile *p, enum trial_purpose why, const struct trial_request *asked,
	const struct run_trial *ended, double tsc_hz);
// Exit status: 0 good; 1 something was wrong, lost above the goal, or an expectation failed; 2 not complete. `text`:
// why.
int result_status(const struct profile *p, const struct run_result *r, double tsc_hz, char *text, size_t n);
// Latency of all streams of a trial together, without those that answer (theirs is a round trip).
void result_latency(const struct profile *p, const struct trial *t, struct histogram *h);
// Whether a trial says something about the result: it was not discarded, nor a confirmation that failed (which is
// overload).
bool result_counts(const struct run_result *r, const struct run_trial *t);
// The trial whose streams the report shows, or NULL: the fixed one, the last confirmation, or the last that counts.
const struct run_trial *result_main_trial(const struct run_result *r);

#endif
