// SPDX-License-Identifier: Apache-2.0
// Messages between the office (lab/tester, Go) and the engine (C): first the job, then requests and their answers. Each
// is a struct job_head and the bytes that it announces, in host byte order. Padding is spelled out: api/check.sh makes
// the Go types of this header.
#ifndef TRAFFIC_JOB_H
#define TRAFFIC_JOB_H

#include <stdint.h>

#define JOB_VERSION 1
#define JOB_DESCRIPTOR 3 // of the engine: the socket to the office
#define JOB_NAME 32
#define JOB_TEXT 256
#define JOB_SENTENCE 1024
#define JOB_PORTS 96 // 40 instances with two each
#define JOB_STREAMS 256
#define JOB_FLOWS (1u << 26) // of all streams together
#define JOB_SIZES 16
#define JOB_CPUS 64
#define JOB_NO_CPU UINT32_MAX
#define JOB_ADDRESSES 8
#define JOB_FAULTS 50
#define JOB_LAYERS 16
#define JOB_FIELDS 16
#define JOB_EXTENSIONS 4
#define JOB_WRONGS 6 // kinds
#define JOB_WRONG_KEPT 4 // frames of a stream
#define JOB_WRONG_BYTES 256
#define JOB_BUCKETS (64 + (40 - 6) * 32) // of a histogram: up to 2^40 ticks, minutes

// ---- the job: struct job, then its ports, then of each stream struct job_stream and two stacks, send and receive ----

// A header field's value: constant, counted by flow, or any (received only). value(flow) = bytes + step * ((flow /
// each) % count).
struct value {
	uint8_t given; // the profile names it; else the layer's default counts
	uint8_t any;
	uint8_t bytes[16]; // right-aligned: the last bits of the array, e.g. an IPv4 address in bytes[12..15]
	uint8_t word; // of 32 bits of `bytes`, to which the step is added: 3 the lowest; 0:0:0:1:: is 1 in word 1
	uint8_t pad;
	uint32_t step, each, count; // step 0: constant; each >= 1; count 0: never wraps
};

// GTP-U extension header (TS 29.281 §5.2): type and content without length and next-type; PDU Session Container is
// 0x85.
struct extension {
	uint8_t type, length; // content bytes: 4n + 2
	uint8_t content[30];
};

struct layer {
	uint32_t kind; // place in layers.inc
	uint32_t line; // of the profile, for error messages
	struct value field[JOB_FIELDS]; // by place of the layer's field in layers.inc
	uint32_t extensions;
	struct extension extension[JOB_EXTENSIONS];
};

struct stack {
	uint32_t layers; // 0: not given
	struct layer layer[JOB_LAYERS];
};

struct job_size {
	uint16_t bytes; // of the frame as sent, with FCS
	uint16_t weight;
};

struct job_address {
	uint8_t version; // 4, 6
	uint8_t bytes[16]; // IPv4 in the first four
	uint8_t pad[3];
};

// A port of the tester, a DPDK device as in the gateway's configuration.
struct job_port {
	char name[JOB_NAME];
	char driver[JOB_NAME]; // pci, net_memif, net_af_packet, net_af_xdp, net_tap, net_ring, net_pcap, …
	char device[JOB_TEXT]; // socket, interface or PCI address
	char args[JOB_TEXT]; // more device arguments; net_memif: role=client,zero-copy=yes unless given
	uint32_t mtu, descriptors; // net_memif: the ring's size too
	uint32_t queues; // each way; a flow stays on one of them
	uint32_t addresses; // ARP and ND are answered for these
	uint8_t mac[6]; // zeros: the device's own
	uint8_t pad[2];
	struct job_address address[JOB_ADDRESSES];
};

struct job_stream {
	char name[JOB_NAME];
	uint64_t seed;
	double own_pps; // its own rate, packets per second; INFINITY: as fast as the port takes them; 0: it has none
	double zipf; // exponent
	uint32_t port, sink; // index: where it is sent, where it must arrive
	int32_t answers; // index of the stream whose arriving packets it answers, with their time stamp; -1
	uint32_t share; // weight in packets; 0 when it has a rate or answers
	uint32_t flows;
	uint32_t block; // consecutive flows that stay on one queue, as RSS would keep a subscriber's
	uint32_t order; // enum flow_order
	uint32_t check_payload; // compare the whole payload of one packet in this many; 0 never
	uint32_t sizes;
	uint8_t receive_any; // no stack of what must arrive: only tag, payload and port are checked
	uint8_t judged; // by the run's loss goal: it has no expectation of its own
	uint8_t pad[2];
	struct job_size size[JOB_SIZES];
};

struct job_capture {
	uint32_t every, count; // one received packet in `every`, at most `count`
	char file[JOB_TEXT]; // empty: none
};

struct job {
	uint32_t number, bytes; // JOB_VERSION; the sizes of all structs here that are sent, added up
	uint32_t ports, streams;
	uint32_t cpus; // one thread each; none: one thread, not pinned
	uint32_t gateway_cpu; // of its worker, to see how far it is; JOB_NO_CPU
	uint32_t huge_pages, memory_mb; // the latter without the former
	double drain; // longest wait for packets after a trial, seconds
	double link_wait; // longest wait for the ports' links, seconds
	double steal_max; // part of the CPU time of a trial that may be stolen
	struct job_capture capture;
	uint16_t cpu[JOB_CPUS];
	uint32_t check; // not 0: JOB_HELLO, and no more
	uint32_t pad;
};

// ---- requests -------------------------------------------------------------------------------------------------------

enum job_ask {
	JOB_ASK_TRIAL = 1, // answered with JOB_ANSWER_TRIAL or JOB_ANSWER_FAILED
	JOB_ASK_END, // answered with JOB_ANSWER_END
};

struct job_request {
	uint32_t kind, pad;
	double rate; // packets per second of all streams with a share; INFINITY: as fast as the ports take them
	double seconds;
};

// ---- answers --------------------------------------------------------------------------------------------------------

struct job_head {
	uint32_t kind, bytes; // enum job_answer; of what follows. Before the job: 0
};

enum job_answer {
	JOB_ANSWER_HELLO = 1, // struct job_hello, then its faults; the engine ends when there are any
	JOB_ANSWER_READY, // struct job_ready: the links are up
	JOB_ANSWER_TRIAL, // struct trial, then a struct stream_count of each stream
	JOB_ANSWER_END, // struct job_end
	JOB_ANSWER_FAILED, // a sentence
};

enum job_part { JOB_PART_SEND, JOB_PART_RECEIVE, JOB_PART_SIZE };

struct job_fault {
	uint32_t stream, part, line, pad; // enum job_part; line of a layer, 0: of the part
	char text[JOB_TEXT];
};

struct job_hello {
	char dpdk[JOB_TEXT], cpu[JOB_TEXT], kernel[JOB_TEXT];
	uint32_t faults, pad;
};

struct job_ready {
	double tsc_hz;
	uint32_t huge_pages, pad; // whether it has them
	uint32_t speed_mbps[JOB_PORTS];
};

struct job_end {
	uint64_t stray; // packets that came when the last trial was over
	double clock_ghz;
};

enum job_disturbed {
	JOB_DISTURBED_STEAL = 1,
	JOB_DISTURBED_SWITCHED = 2,
	JOB_DISTURBED_GAP = 4,
	JOB_DISTURBED_MISSED = 8,
	JOB_DISTURBED_FAR = 16,
};

struct trial {
	double seconds; // that it really took to send
	double loss_ratio; // of streams that are judged
	double offered_pps; // really sent, streams with a share
	double steal; // part of CPU time
	double gap_us; // longest pause of a tester's thread
	double busy_ticks; // of the tester's threads, per packet sent and received (mean): what the tester itself costs
	double round_trip_ns; // of a cache line to the gateway's CPU, the longer of before and after; 0: unknown
	double clock_ghz; // core clock estimated before the trial (a chain of dependent additions)
	uint64_t sent, received, lost, duplicate, reordered, stale, wrong; // sums over the streams
	uint64_t foreign; // frames without a tag: no stream's packet, or a damaged tag
	uint64_t control; // ARP, ND, LLDP and the like: counted, answered where we can
	uint64_t stray; // packets that came when their trial was over
	uint64_t switches; // involuntary context switches of the tester's threads
	uint64_t missed; // frames that the tester's ports dropped because they were not fetched in time
	uint32_t disturbed; // enum job_disturbed, or 0
	uint8_t tester_limited; // a port or a stream with a rate of its own got less than 99.5 % of its schedule
	uint8_t interrupted;
	uint8_t pad[2];
};

// Durations in ticks. Written by one thread. Read when that thread is at rest.
struct histogram {
	uint64_t bucket[JOB_BUCKETS];
	uint64_t count, max, min; // min of an empty one: UINT64_MAX
	uint64_t sum;
};

struct wrong_frame {
	uint32_t flow;
	uint16_t offset, length; // first difference; bytes of the frame
	uint16_t kept; // valid bytes of each
	uint8_t kind; // enum wrong
	uint8_t pad;
	char where[64]; // "gtpu.teid", or what the decoder said
	uint8_t frame[JOB_WRONG_BYTES], expected[JOB_WRONG_BYTES]; // the beginning of both
};

// Of one stream and one trial: sent = received + lost; received counts each packet once.
struct stream_count {
	uint64_t sent, sent_bytes; // offered to the link; L2 bytes with FCS
	uint64_t refused; // of `sent`: the link's transmit queue was full, so the packet was lost at the gateway's door
	uint64_t received, received_bytes; // L2 with FCS as received
	uint64_t received_l3_bytes; // from the innermost IP header as received
	uint64_t lost;
	uint64_t duplicate; // came twice
	uint64_t reordered; // overtaken by a later packet of its flow, within 32
	uint64_t stale; // more than 32 behind: reordered, or twice
	uint64_t wrong[JOB_WRONGS]; // by enum wrong
	uint64_t decoded; // went through the independent decoder (decode.h)
	uint32_t wrong_kept, pad;
	struct wrong_frame wrong_frame[JOB_WRONG_KEPT];
	struct histogram latency; // of every packet received
};

#endif
