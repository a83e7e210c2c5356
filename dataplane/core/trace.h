// SPDX-License-Identifier: Apache-2.0
// Traces: the way of chosen packets through the graph, in the words of its stages.
//
// A traced packet is marked in its metadata (packet.traced, packet.trace), which follow it from node to node and worker
// to worker. Without traces nodes do nothing for it. Each node's function is replaced when the first trace begins, and
// restored after the last (trace_follow.c). A TRACE_STAGE says what a stage decided.
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include "core/node.h"

#define TRACED_BY 0x0fu // of packet.traced: bits of the traces that follow the packet
#define TRACED_NUMBER 0x30u // the highest bits of its number
#define TRACED_ASKED 0x10u // without TRACED_BY: the traces behind the fast path saw it, and left it
#define TRACED_AWAY 0x40u // followed by none: only kept from the fast path, with others of its session
#define TRACED_HYPOTHETICAL 0x80u // of `isthmus explain`: it is not sent, and nothing is counted for it
#define TRACE_ENDS (-1)
#define TRACE_LOST (-2) // it ends, and its onward packet is lost

// Words of a stage about one packet; too many are cut.
struct trace_text {
	uint32_t used;
	char text[sizeof(((struct api_trace_row *)0)->data)];
};
void trace_say(struct trace_text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_say_address(struct trace_text *to, uint8_t version, const uint8_t *address);

// A node's words about a packet. Worker, inside a walk; only for marked packets.
struct trace_stage {
	const char *node;
	// Before the node sees it; complete if the packet does not go on.
	void (*before)(struct trace_text *to, struct worker *w, struct rte_mbuf *m);
	// Behind the node, of a packet that went on (to `next`, a node's name).
	void (*after)(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next);
	// For a hypothetical packet, which the node does not see. Writes what the node would do, changes only the
	// packet, and returns the edge that it takes, TRACE_ENDS or TRACE_LOST.
	int (*foresee)(struct trace_text *to, struct worker *w, struct rte_mbuf *m);
	uint8_t single; // its decision depends on earlier packets of the vector (node_each() runs it)
	uint8_t pure; // it may see hypothetical packets, of which it changes nothing but them (trace_is_hypothetical())
	uint8_t inside; // behind it the packet is without the encapsulation that it came with
	uint8_t fast; // a fast path, which leaves marked packets and those behind them to the edge `full`
	rte_edge_t full;
	enum { TRACE_GOES, TRACE_SENDS, TRACE_DROPS, TRACE_PUNTS } end; // fate of a packet that does not go on
	struct trace_stage *next;
};

void trace_stage_register(struct trace_stage *s); // from constructors

#define TRACE_STAGE(node_name, ...) TRACE_STAGE_(__COUNTER__, node_name, __VA_ARGS__)
#define TRACE_STAGE_(n, node_name, ...) TRACE_STAGE__(n, node_name, __VA_ARGS__)
#define TRACE_STAGE__(n, node_name, ...)                                                                               \
	RTE_INIT(trace_stage_register_##n)                                                                             \
	{                                                                                                              \
		static struct trace_stage stage = {.node = (node_name), __VA_ARGS__};                                  \
		trace_stage_register(&stage);                                                                          \
	}

// Where hypothetical frames of ports of a role enter the graph: a node. From constructors.
void trace_entry_register(enum api_role role, const char *node);

#define TRACE_KEYS 1u // one of the keys matches, or there are none
#define TRACE_ALL 2u // and one of the programs takes it

// Chooses packets: keys and programs of a trace. From a constructor; one.
struct trace_filter;
struct trace_chooser {
	// Returns 0 and *to, or a positive errno after object_error(). Control thread.
	int (*make)(struct trace_filter **to, const struct api_trace *want, const struct api_trace_key *keys,
		const struct api_trace_instruction *frame, const struct api_trace_instruction *packet);
	void (*free)(struct trace_filter *f);
	// Bits of the received frames, of n <= 64, that takes() may accept. Workers.
	uint64_t (*sieve)(const struct trace_filter *f, void *const *mbufs, uint32_t n);
	// TRACE_KEYS, and TRACE_ALL when a frame as it was received is to be followed. Workers.
	uint32_t (*takes)(const struct trace_filter *f, struct rte_mbuf *m);
	// Called for a vector whose marked packets leave the fast path. Notes a packet's flow (`first`: forgets earlier
	// ones) and returns whether a packet may be of a noted flow. Workers.
	void (*note_flow)(const struct worker *w, const struct rte_mbuf *m, int first);
	int (*may_be_noted)(const struct worker *w, const struct rte_mbuf *m);
	// Takes the sessions with the keys from the fast path. Returns 1 when each key is a session's: then their
	// packets stay behind the fast path as long as none of them makes an entry. Control thread.
	int (*withdraw)(const struct trace_filter *f);
};
void trace_chooser_register(const struct trace_chooser *c);

// Packet marks for modules. The build without these hooks (meson -Dtrace=false) refuses traces; it is the reference for
// their cost.
static inline uint8_t trace_marks(struct rte_mbuf *m)
{
	return TRACE_HOOKS ? packet_of(m)->traced : 0;
}

static inline int trace_is_hypothetical(struct rte_mbuf *m)
{
	return (trace_marks(m) & TRACED_HYPOTHETICAL) != 0;
}

// Makes no entry in the fast path, so that the session's next packet can be traced, too.
static inline int trace_keeps(struct rte_mbuf *m)
{
	return (trace_marks(m) & (TRACED_BY | TRACED_AWAY)) != 0;
}

// A packet is dropped elsewhere than in the node `drop`: its way ends. Workers, the control thread.
void trace_dropped_marked(struct worker *w, struct rte_mbuf *m, const struct reason *r);
static inline void trace_dropped(struct worker *w, struct rte_mbuf *m, const struct reason *r)
{
	if (unlikely(trace_marks(m) != 0))
		trace_dropped_marked(w, m, r);
}

#endif
