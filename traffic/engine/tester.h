// SPDX-License-Identifier: Apache-2.0
// The engine of the tester: ports, threads, streams; one trial at a time.
#ifndef TRAFFIC_TESTER_H
#define TRAFFIC_TESTER_H

#include "traffic/engine/histogram.h"
#include "traffic/profile/profile.h"
#include <signal.h>

#define WRONG_KEPT 4 // frames of a stream
#define WRONG_BYTES 256

// What was wrong with a packet whose tag was good. A packet counts once, under the first that applies.
enum wrong { WRONG_PORT, WRONG_LENGTH, WRONG_HEADER, WRONG_CHECKSUM, WRONG_PAYLOAD, WRONG_STRUCTURE, WRONG_KINDS };
extern const char *const wrong_name[WRONG_KINDS]; // "port", "length", …

struct wrong_frame {
	uint8_t kind; // enum wrong
	uint16_t offset, length; // first difference; bytes of the frame
	uint32_t flow;
	char where[64]; // "gtpu.teid", or what the decoder said
	uint8_t frame[WRONG_BYTES], expected[WRONG_BYTES]; // the beginning of both
	uint16_t kept; // valid bytes of each
};

// Of one stream and one trial. sent = received + lost; received counts each packet once.
struct stream_count {
	uint64_t sent, sent_bytes; // offered to the link; L2 bytes with FCS
	uint64_t refused; // of `sent`: the link's transmit queue was full, so the packet was lost at the gateway's door
	uint64_t received, received_bytes; // L2 with FCS as received
	uint64_t received_l3_bytes; // from the innermost IP header as received
	uint64_t lost;
	uint64_t duplicate; // came twice
	uint64_t reordered; // overtaken by a later packet of its flow, within 32
	uint64_t stale; // more than 32 behind: reordered, or twice
	uint64_t wrong[WRONG_KINDS];
	uint64_t decoded; // went through the independent decoder (decode.h)
	uint32_t wrong_kept;
	struct wrong_frame wrong_frame[WRONG_KEPT];
	struct histogram latency; // ticks, of every packet received
};

struct trial_request {
	double rate; // packets per second, sum of all streams with a share; INFINITY: as fast as the ports take them
	double seconds;
};

enum disturbance {
	DISTURBED_STEAL = 1,
	DISTURBED_SWITCHED = 2,
	DISTURBED_GAP = 4,
	DISTURBED_MISSED = 8,
	DISTURBED_FAR = 16
};

struct trial {
	struct trial_request asked;
	double seconds; // that it really took to send
	uint64_t sent, received, lost, duplicate, reordered, stale, wrong; // sums over the streams
	uint64_t judged_sent, judged_lost; // of streams without `expect`
	double loss_ratio; // judged_lost / judged_sent
	uint64_t
		foreign; // frames without a tag that nobody asked for: no stream's packet, or one that was damaged in its tag
	uint64_t control; // ARP, ND, LLDP and the like: counted, answered where we can
	uint64_t stray; // packets that came when their trial was over; at the end of a run, its own too
	double offered_pps; // really sent, streams with a share
	bool tester_limited; // the tester fell behind its schedule: a port or a stream with a rate of its own got less than 99.5 %
	uint32_t disturbed; // enum disturbance, or 0
	double steal; // part of CPU time
	uint64_t switches; // involuntary context switches of the tester's threads
	double gap_us; // longest pause of a tester's thread
	uint64_t missed; // frames that the tester's ports dropped because nobody fetched them: no loss of the gateway's
	bool interrupted;
	double busy_ticks; // of the tester's threads, per packet sent and received (mean): what the tester itself costs
	double round_trip_ns; // of a cache line between our CPU and the gateway's, the longer of before and after; 0 unknown
	double clock_ghz; // core clock estimated before the trial (a chain of dependent additions)
	uint32_t streams;
	struct stream_count *stream; // streams of them, owned by the trial
};

struct tester;

// Starts DPDK, opens every port, makes tables and threads. Everything that waits ends early once *stop is not 0,
// which a signal may set. Returns NULL after a sentence in `error`.
struct tester *tester_open(
	const struct profile *p, int argc, char **argv, const volatile sig_atomic_t *stop, char *error, size_t n);
void tester_close(struct tester *t);
// Waits until every link is up, for what is left of the profile's time for all of them. Returns 0, or -1 after a
// sentence that names the ports without a link.
int tester_wait_links(struct tester *t, char *error, size_t n);
// Runs one trial and waits for what is still under way. Returns 0, or -1 with a sentence when a port has failed,
// which ends the trial too. *stop ends it early, with `interrupted` set.
int tester_trial(struct tester *t, const struct trial_request *asked, struct trial *result, char *error, size_t n);
// Waits for what the last trial has not waited for, and counts it there as stray.
void tester_end(struct tester *t, struct trial *last);
// Speed of each port's link in Mbit/s, 0 where it has none to tell, to `mbps` (as many as ports).
void tester_speeds(const struct tester *t, uint32_t *mbps);
void trial_free(struct trial *t);
double tester_tsc_hz(const struct tester *t);
// Pre-allocates nothing and may be called with any trial: which expectation of a stream does not hold, or NULL when
// all do. Returns the number of streams whose expectation fails and writes the first as a sentence.
uint32_t trial_expectations(const struct profile *p, const struct trial *t, double tsc_hz, char *text, size_t n);

#endif
