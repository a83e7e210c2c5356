// SPDX-License-Identifier: Apache-2.0
// The engine of the tester: ports, threads, streams; one trial at a time.
#ifndef TRAFFIC_TESTER_H
#define TRAFFIC_TESTER_H

#include "traffic/engine/histogram.h"
#include "traffic/engine/work.h"
#include <signal.h>
#include <stddef.h>

// Faults of a packet with a good tag. A packet counts once, under the first fault.
enum wrong { WRONG_PORT, WRONG_LENGTH, WRONG_HEADER, WRONG_CHECKSUM, WRONG_PAYLOAD, WRONG_STRUCTURE, WRONG_KINDS };
_Static_assert(WRONG_KINDS == JOB_WRONGS, "the job has room for each kind");

struct tester;

// Starts DPDK, opens every port, makes tables and threads. Everything that waits ends early once *stop is not 0,
// which a signal may set. Returns NULL after a sentence in `error`.
struct tester *tester_open(
	const struct work *w, int argc, char **argv, const volatile sig_atomic_t *stop, char *error, size_t n);
void tester_close(struct tester *t);
// Waits until every link is up, within the job's time for all of them. Returns 0, or -1 after a sentence that names the
// ports without a link.
int tester_wait_links(struct tester *t, char *error, size_t n);
// Runs one trial and waits for packets in flight. `count`: one for each stream. Returns 0, or -1 with a sentence when a
// port failed, which ends the trial too. *stop ends it early, with `interrupted` set.
int tester_trial(struct tester *t, const struct job_request *asked, struct trial *result, struct stream_count *count,
	char *error, size_t n);
// Waits for the rest of the last trial, which lost `lost` packets. Returns how many arrived.
uint64_t tester_end(struct tester *t, uint64_t lost);
// Writes each port's link speed in Mbit/s, 0 if unknown, to `mbps` (as many as ports).
void tester_speeds(const struct tester *t, uint32_t *mbps);
double tester_tsc_hz(const struct tester *t);

#endif
