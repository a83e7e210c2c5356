// SPDX-License-Identifier: Apache-2.0
// Inside of traces: what the control thread (trace_control.c) and the workers (trace_follow.c, trace_record.c) share.
//
//   struct trace: made by the control thread, published in traces.of, freed after a grace period
//   struct tracer: its worker's; the control thread reads counts, and takes rows from the ring
#ifndef CORE_TRACE_INSIDE_H
#define CORE_TRACE_INSIDE_H

#include "core/trace.h"
#include "wire/cache_line.h"
#include <rte_ring_elem.h>

struct reply_sink;
struct stats_sink;

#define TRACE_NODES 256 // highest number of a node that rte_graph gives, + 1
#define TRACE_EDGES 40 // of one node
#define TRACE_ROWS 4096 // of a worker's ring
#define TRACE_FOLLOWED 64 // packets of one vector

struct trace {
	struct api_trace want;
	uint32_t number; // api_trace_state.trace
	uint16_t port; // PORT_NONE: any
	uint8_t away; // its packets are kept from the fast path: it chooses behind that
	uint64_t ends_ns, polled_ns;
	struct trace_filter *filter; // NULL: every packet
	uint64_t followed; // atomic, workers add
	uint64_t lost_before; // rows that the queue had no room for
	// Rows taken from rings while another trace was polled.
	struct api_trace_row *queue;
	uint32_t queued, given; // given: rows of the queue that the poll under way has
};

struct trace_packet {
	struct rte_mbuf *m;
	uint32_t number;
	uint16_t at; // in the vector
	uint8_t traced;
	uint8_t went_on;
	uint16_t outcome; // enum api_trace_outcome
	char port[API_NAME];
	struct trace_text text;
};

struct trace_node {
	uint16_t (*process)(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n); // its own
	const struct trace_stage *stage; // never NULL
	uint8_t source;
	uint8_t entry; // port-rx
	uint64_t twice; // bits: edges that lead where an earlier one leads
};

struct tracer {
	struct rte_ring *ring; // of struct api_trace_row; single producer, single consumer
	uint64_t live; // walk (worker.walks) in which some packet may be marked
	uint32_t sequence;
	uint32_t linked; // worker.linked + 1 when trace_node.twice was noted
	// Bits: traces that choose at port-rx; behind the fast path; nothing but their own frame
	uint8_t early, late, only;
	uint8_t edges; // counts are kept
	struct {
		uint64_t missed, lost, seen;
		struct limiter limiter;
	} of[API_MAX_TRACES];
	struct trace_node node[TRACE_NODES];
	uint64_t (*edge)[TRACE_EDGES]; // packets, by node
	struct trace_packet packet[TRACE_FOLLOWED]; // of the vector that a node has now
	uint32_t packets;
} cache_aligned;

extern struct tracer *tracers; // API_MAX_WORKERS, and the control thread's; NULL until the first trace
extern struct trace *traces_now[API_MAX_TRACES]; // published
// Hypothetical packets in flight; atomic. While there are some, every node's function stays replaced, even after their
// traces: else nodes would send and count them.
extern uint32_t trace_hypothetical;
extern const struct trace_chooser *trace_chooser;

static inline struct tracer *tracer_of(const struct worker *w)
{
	return tracers == NULL ? NULL : &tracers[w->id < API_MAX_WORKERS ? w->id : API_MAX_WORKERS];
}

static inline uint32_t trace_number(const struct packet *pkt)
{
	return (uint32_t)(pkt->traced & TRACED_NUMBER) << 12 | pkt->trace;
}

// Requests (trace_request.c). `keys` and so on as api_trace says.
void request_trace(struct reply_sink *sink, const struct api_header *h, const void *body);
void request_trace_poll(struct reply_sink *sink, const struct api_header *h, const void *body);
struct trace_order {
	struct api_trace want;
	struct api_trace_key key[API_TRACE_KEYS];
	struct api_trace_instruction frame[API_TRACE_INSTRUCTIONS], packet[API_TRACE_INSTRUCTIONS];
	struct api_trace_octets octets[API_TRACE_FRAME / sizeof(struct api_trace_octets)];
};
// Returns 0, or a positive errno after object_error().
int trace_begin(const struct trace_order *o, struct api_trace_state *to);
// Polls: notes the poll, writes the trace's state, its rows in steps (stats_fn; at most TRACE_ROWS_OF_POLL of each
// worker, all at the last poll), and the state again. An ended trace is then forgotten. Returns 0, or as above.
#define TRACE_ROWS_OF_POLL 2048
int trace_poll(const struct api_trace_poll *p, enum api_trace_end *end);
uint64_t trace_rows(uint32_t number, enum api_trace_end end, uint64_t place, struct stats_sink *to);
int trace_polled(uint32_t number, enum api_trace_end end, struct api_trace_state *to);

// Marks a packet, and gives it a number of its own.
void trace_mark(struct tracer *t, const struct worker *w, struct packet *pkt, uint8_t traces);
uint16_t trace_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n);

// One row, followed by up to `snap` bytes of a frame if a trace wants it; without room it is counted as lost.
struct trace_row {
	uint8_t what;
	uint16_t outcome;
	uint32_t ticks;
	const char *node, *next, *port;
	const struct trace_text *text;
	struct rte_mbuf *frame; // NULL: none
	uint16_t of; // what of API_TRACE_RECEIVED, _INSIDE, _SENT the frame is
	uint32_t from; // offset in it
};
void trace_record(struct tracer *t, const struct worker *w, uint32_t number, uint8_t traced, const struct trace_row *r);

#endif
