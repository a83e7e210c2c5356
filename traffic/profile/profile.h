// SPDX-License-Identifier: Apache-2.0
// A test profile: ports, streams and what to do with them, read from one YAML file. Every fault of a file is told
// with file, line and reason, all at once; unknown keys are faults. docs/traffic.md describes the file for people.
#ifndef TRAFFIC_PROFILE_H
#define TRAFFIC_PROFILE_H

#include "traffic/wire/stack.h"
#include "traffic/wire/tag.h"
#include <stdio.h>

#define NAME_BYTES 32
#define TEXT_BYTES 256
#define PROFILE_PORTS 96 // 40 instances with two each
#define PROFILE_STREAMS TAG_STREAMS
#define PROFILE_SIZES 16
#define PROFILE_STEPS 64
#define PROFILE_NO_CPU UINT32_MAX
#define PROFILE_CPUS 64
#define PROFILE_ADDRESSES 8
#define PROFILE_GOALS 4
#define FRAME_MIN 64 // bytes with FCS
#define FRAME_MAX 9216
#define PROFILE_FLOWS (1u << 26) // of all streams together

enum rate_unit {
	RATE_NONE, // not given
	RATE_PPS, // packets per second: 100kpps, 1.5Mpps
	RATE_BIT, // bits per second of frames with FCS (L2): 10Gbit
	RATE_PART, // of the rate that the run refers to: 50%
	RATE_MAX, // as fast as the port takes them: max
};
struct rate {
	enum rate_unit unit;
	double value; // packets or bits per second, or a part (0.5)
};

struct profile_address {
	uint8_t version; // 4, 6
	uint8_t bytes[16]; // IPv4 in the first four
};

// A port of the tester, a DPDK device as in the gateway's configuration.
struct profile_port {
	char name[NAME_BYTES];
	int line;
	char driver[NAME_BYTES]; // pci, net_memif, net_af_packet, net_af_xdp, net_tap, net_ring, net_pcap, …
	char device[TEXT_BYTES]; // socket, interface or PCI address
	char args[TEXT_BYTES]; // more device arguments; net_memif: role=client,zero-copy=yes unless given
	uint32_t mtu, descriptors; // presets: 1500, 1024 (net_memif: the ring's size too)
	uint32_t queues; // each way, preset 1; a flow stays on one of them
	uint8_t mac[6]; // zeros: the device's own
	uint32_t addresses; // ARP and ND are answered for these
	struct profile_address address[PROFILE_ADDRESSES];
};

struct profile_size {
	uint16_t bytes; // of the frame as sent, with FCS
	uint16_t weight;
};

enum flow_order { ORDER_TURN, ORDER_RANDOM, ORDER_ZIPF };

// What a stream's own results must be, beside the loss goal of the run, from which a stream with `expect` is left out.
struct profile_expect {
	bool given;
	struct rate rate; // that is received; RATE_PART: of what was sent
	bool rate_l3; // bits are counted from the innermost IP header as received, as policers and GTP-U do; else L2 with FCS
	double tolerance; // preset 0.01
	double loss_max; // < 0: not asked
	double p99_us_max; // 0: not asked
};

struct profile_stream {
	char name[NAME_BYTES];
	int line;
	uint16_t port, sink; // index: where it is sent, where it must arrive
	int32_t answers; // index of the stream whose arriving packets it answers (ICMP echo replies), with their time stamp; -1
	struct rate rate; // of its own; RATE_NONE: it has a share of the trial's rate
	uint32_t share; // weight in packets, preset 1; 0 when it has a rate or answers
	uint32_t flows; // 1 .. TAG_FLOWS
	uint32_t block; // consecutive flows that stay on one queue, as RSS would keep a subscriber's; preset 1
	enum flow_order order;
	double zipf; // exponent, preset 1
	uint64_t seed;
	uint16_t sizes;
	struct profile_size size[PROFILE_SIZES];
	uint32_t check_payload; // compare the whole payload of one packet in this many; 0 never; preset 1
	bool receive_any; // no `receive` given: only tag, payload and port are checked
	struct template send, receive; // compiled
	struct profile_expect expect;
};

enum run_mode { RUN_FIXED, RUN_SEARCH, RUN_STEPS };

struct search_goal {
	double loss; // highest loss ratio of a trial that counts as good
	double exceed; // part of the trials' time that may be bad (MLRsearch "goal exceed ratio"), preset 0.5
	double width; // relative width of the result's interval, preset 0.005
	double initial_seconds, final_seconds, sum_seconds; // presets 0.5, 1, 3
};

struct profile_run {
	enum run_mode mode;
	struct rate rate; // fixed: sum of all streams with a share; steps: what the percentages refer to
	double seconds; // of a fixed trial and of a step, preset 10 and 1
	double warmup; // seconds before the first trial, at a tenth of the rate; preset 0.2
	double drain; // longest wait for packets after a trial, preset 0.5
	double link_wait; // longest wait for the ports' links, preset 10
	uint32_t repeats; // how often a disturbed trial is tried again, preset 3
	double steal_max; // part of the CPU time of a trial that may be stolen, preset 0.001
	uint32_t steps;
	struct rate step[PROFILE_STEPS];
	struct rate search_min, search_max; // presets 1kpps, and the highest that the tester itself can offer
	uint32_t goals; // preset: one, without loss
	struct search_goal goal[PROFILE_GOALS];
	double confirm_seconds; // a last trial at the rate found; it must hold, or the search goes on below; preset 2; 0 none
	uint32_t latency_points; // parts of the found (or fixed) rate, presets 10%, 50%, 90%
	double latency_at[PROFILE_STEPS];
	double latency_seconds; // preset 1; 0: no latency trials
};

struct profile_capture {
	char file[TEXT_BYTES]; // empty: none
	uint32_t every, count; // one received packet in `every`, at most `count`; presets 1024, 1000
};

struct profile {
	char file[TEXT_BYTES], name[NAME_BYTES], title[TEXT_BYTES];
	uint32_t gateway_cpu; // of its worker, when it runs on this machine, to see how far it is; PROFILE_NO_CPU
	uint32_t cpus;
	uint16_t cpu[PROFILE_CPUS]; // one thread each; none: one thread, not pinned
	bool huge_pages; // preset true, when there are
	uint32_t memory_mb; // without huge pages
	uint32_t ports;
	struct profile_port port[PROFILE_PORTS];
	uint32_t streams;
	struct profile_stream *stream; // allocated
	struct profile_run run;
	struct profile_capture capture;
};

// Reads, checks and compiles a file. On success returns the profile, else NULL after every fault was written to
// `errors` as "FILE:LINE: reason" lines.
struct profile *profile_load(const char *file, FILE *errors);
// The same for a text of `n` bytes that is called `file` in errors.
struct profile *profile_parse(const char *file, const char *text, size_t n, FILE *errors);
void profile_free(struct profile *p);

// Whether mode, rate, steps and search go together; profile_load() has asked, whoever changes one of them asks again.
// Returns 0, or -1 with a sentence in `error` and the name of the key of `run` that is wrong in `key`.
int profile_check_run(const struct profile *p, const char **key, char *error, size_t n);
// Packets per second of a rate of the run, all streams with a share together: bits by the mean size of their frames,
// parts of run.rate. 0 for RATE_NONE, infinity for RATE_MAX.
double profile_pps(const struct profile *p, const struct rate *r);

// "1.5Mpps", "10Gbit", "50%", "max" and plain numbers (packets per second). Returns 0; -1 for anything else and for
// what no tester can send (0, above 200 Mpps or 400 Gbit).
int rate_parse(const char *text, struct rate *r);
// Mean L2 bytes of a stream's frames, with FCS.
double stream_mean_bytes(const struct profile_stream *s);
// Packets per second of a stream with a rate of its own; 0 for RATE_NONE, infinity for RATE_MAX.
double stream_own_pps(const struct profile_stream *s);

#endif
