// SPDX-License-Identifier: Apache-2.0
// Services of the control thread: grace periods, the host path, timers and rows for `show`.
#ifndef CORE_CONTROL_H
#define CORE_CONTROL_H

#include "core/node.h"
#include "isthmus_api.h"

// Waits until every worker finished the walk that it is in. Control thread only. Returns at once when none runs.
void control_synchronize(void);

// A packet that took the edge to `punt` with this reason is given to fn on the control thread, which then owns it:
// it frees it, or gives it back to the graph with control_inject. Without a handler it is counted and freed. One
// handler a reason.
typedef void (*punt_fn)(struct rte_mbuf *m);
void punt_handler_register(const struct reason *r, punt_fn fn); // at any time on the control thread
void punt_access_handler_register(const struct reason *r, punt_fn fn); // of those from access ports alone
// 1 when more than half of the room for control protocols (CONTROL_OTHER) is taken. Workers.
int host_path_crowded(void);

// Gives a packet back to worker `id` on the edge of handover-rx that leads to `node`. Frees it (counted as dropped,
// reason inject-full) when the worker's inbox is full, and returns 0. The packet must have been punted, held or
// originated.
int control_inject(uint32_t worker, const char *node, struct rte_mbuf *m);

// A packet made by the control thread, counted as originated. NULL when the pool is empty.
struct rte_mbuf *control_originate(void);
// Counts and frees a packet that the control thread gives up.
void control_drop(struct rte_mbuf *m, const struct reason *r);
// Moves a packet from "punted" to "held" (a punt_fn that keeps it), and back before control_inject or control_drop.
void control_hold(struct rte_mbuf *m);
void control_unhold(struct rte_mbuf *m);
// Counts packets that a freed queue still held (the queue freed them itself).
void control_drop_held(uint32_t packets, const struct reason *r);
// 1 in replay, unit tests and fuzzing: the control thread walks the graph itself.
int engine_without_threads(void);

// Lets nodes receive packets from handover-rx (handed over by a worker, or injected by the control thread). Returns the
// edge number to put into packet.resume. From constructors only.
uint16_t resume_register(const char *node);
// Worker: hands a packet to another worker. Takes the edge that `resume` names there. Always consumes it. `order`:
// the same for all packets that keep their order, below ORDERS.
void worker_hand_over(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m);
// The same of a frame that no node of the full ones has seen yet (packet.handed).
void worker_hand_over_as_it_came(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m);
// Worker: counts and frees a packet of its own where no edge leads to `drop`.
void worker_drop(struct worker *w, struct rte_mbuf *m, const struct reason *r);

// fn runs on the control thread about every `interval_ms`; while neither workers nor the control thread have done
// anything for a while, every 20 ms if that is more. From constructors only. now_ns is CLOCK_MONOTONIC, or the
// replay's clock.
void timer_register(const char *name, uint32_t interval_ms, void (*fn)(uint64_t now_ns));
// Timers have their own intervals for a while from now on: one of them has something to do. Control thread.
void control_stir(void);
uint64_t control_now_ns(void);

// fn runs on the control thread when fd can be read; one descriptor (epoll(7) makes one of many). Negative: none.
void control_listen(int fd, void (*fn)(void));

// Called on the control thread after the ENGINE object was applied, before the first walk: allocate tables here.
// Returns 0, or a positive errno after object_error(). From constructors only.
void module_register(const char *name, int (*start)(const struct api_engine *engine));
const struct api_engine *engine_get(void); // NULL before the ENGINE object was applied
// fn is told the rates when an ENGINE object was committed: at the start, and when they change. From constructors only.
void engine_watch(void (*fn)(const struct api_engine *engine));

// What a field of ENGINE may be beside 0, which its module gives a meaning: all else is refused before anything starts.
struct engine_limit {
	const char *name;
	size_t field; // of struct api_engine, 32 bits
	uint32_t least, most;
};
void engine_limit_register(const struct engine_limit *l);

#define ENGINE_LIMIT(engine_field, lowest, highest)                                                                    \
	RTE_INIT(engine_limit_##engine_field)                                                                          \
	{                                                                                                              \
		static const struct engine_limit l = {                                                                 \
			#engine_field, offsetof(struct api_engine, engine_field), lowest, highest};                    \
		engine_limit_register(&l);                                                                             \
	}

// Writes rows of one table from a place on, at first 0, each with stats_row; returns the next place, 0: that was all.
// A call is a bounded step: between two of them packets, timers and other clients have their turn, and the table may
// change. What is there throughout is given once. `key` may be empty.
struct stats_sink;
typedef uint64_t (*stats_fn)(struct stats_sink *s, const char *key, uint64_t place);
void stats_row(struct stats_sink *s, const void *row, uint32_t length);
void *stats_keep(struct stats_sink *s); // 64 bytes that stay for the next step, zeros at first
void stats_table_register(uint32_t table, uint32_t row_length, stats_fn fn);
// The place behind one of `places`; 0 behind the last.
static inline uint64_t stats_next(uint64_t place, uint64_t places)
{
	return place + 1 < places ? place + 1 : 0;
}

#endif
