// SPDX-License-Identifier: Apache-2.0
// Inside of core: what the parts of the engine share. Modules include control.h, not this.
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "core/contract.h"
#include "core/control.h"
#include "core/node.h"
#include "core/object.h"
#include "core/port.h"
#include "core/sleeper.h"

#define MAX_NODES 128
#define MAX_QUEUES (MAX_PORTS * API_MAX_WORKERS) // of one worker: all of them, at worst
#define HOLD_RECEIVE 256 // buffers that the packets of one walk of a worker need

// Receive queues of one worker; immutable once a worker can see it.
struct port_queues {
	uint16_t count;
	struct {
		uint16_t port, queue;
	} entry[MAX_QUEUES];
};

// How the engine runs. Threads: the daemon. No threads: replay, unit tests and fuzzing call engine_walk themselves and
// move the clock.
struct engine_mode {
	int threads;
	uint64_t virtual_now; // of the TSC, ticks; used when threads == 0
	uint64_t stepped; // ticks of it that the control thread's clock has not seen, which does not step; may wrap
};
extern struct engine_mode engine_mode;

void engine_walk(void); // one walk of every worker, no-thread mode
void engine_run(void); // walks until nothing moves, no-thread mode
void engine_advance(uint64_t ticks); // moves the clock and runs timers, no-thread mode
void engine_step(int64_t ticks); // the TSC jumps, no-thread mode
int engine_eal_init(const char *program, int huge, uint32_t memory_mb, int argc, char **argv);
int replay_main(int argc, char **argv);
void engine_stop_workers(void); // joins the threads
int engine_started(void);
int engine_failed(
	void); // the engine could not start: the process answers and ends, for a supervisor to start it afresh
uint64_t engine_boot_id(void);
struct rte_mempool *engine_pool(void);
int worker_create_all(const struct api_engine *e);
int worker_start_all(void);
extern struct worker control_worker;
void worker_give_all(struct worker *w); // what it hands over goes to its owners: at the end of each walk
uint64_t workers_done(int *all_idle); // changes when a worker did something; all_idle: each sleeps, or is about to

// Node registry (node.c)
int graph_register_nodes(void);
struct rte_graph *graph_create(uint32_t worker);
uint32_t graph_nodes(struct rte_node_register *const **list);
struct rte_node *graph_node(uint32_t worker, uint32_t number); // by its place in that list

// Traces (trace_control.c); edges: packets from node to node while somebody watches
uint64_t trace_edge_packets(uint32_t node, uint16_t edge);
void trace_edges_changed(const struct worker *w); // of its graph; by w itself

// Host path (host_path.c)
int host_path_start(const struct api_engine *e);
int nodes_io_start(void); // makes handover-rx, once all modules have asked for resume edges
void host_path_poll(void);
int host_path_push(enum host_queue queue, struct rte_mbuf *m); // worker: 0, or -1 when the queue is full
const char *const *resume_names(uint16_t *count);
int inboxes_crowded(void); // more than half of one is taken
void control_run_timers(void);
extern struct sleeper control_sleeper; // of the control thread; workers that leave their sleep wake it
uint64_t control_rest(void); // the control thread listens from here on; how long it may sleep, ns

// Commits (object.c)
struct object_totals {
	uint64_t objects, commits, refused;
};
extern struct object_totals object_totals;
int object_begin(void);
int object_put(const struct api_object_head *head, const void *body, uint32_t length);
int object_put_parts(const struct api_object_head *head, struct part_reader *r); // as they were received
int object_delete(const struct api_object_head *head);
void object_commit(struct api_status *status);
void object_abort(void);
void object_error_text(char *to, size_t n); // what object_error() was last told
// Calls fn for what is held from the order `from` on, ascending, to the end of its bucket or of l's range. Returns
// where the next bucket begins; 0: that was all, or *room, which counts down, left something out, which sets *more.
uint64_t object_list(const struct api_list *l, uint64_t from, uint32_t *room, int *more,
	void (*fn)(const struct api_digest *d, void *arg), void *arg);

// Requests (request.c): one message in, replies through fn; the same for the socket and for replay's state file.
struct stats_sink;
struct reply_sink {
	// Sends one reply, a part, or keeps a copy: it never waits. Returns 0, or -1 when the client is gone.
	int (*send)(
		struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows);
	// The same without waiting: 1 when the client has not read enough yet (nothing was sent). Behind `part` come
	// h->length bytes less its own: its rows, and what further parts there are. NULL: cannot subscribe.
	int (*offer)(
		struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows);
	uint32_t owner; // identifies the client: a transaction belongs to it
	uint32_t version; // of the contract, agreed by HELLO; 0: not yet
	int paced; // its owner calls request_continue(); 0: request_handle() replies to the end
	struct stats_sink *rest; // the reply that is under way, of many rows
};
// Not while a reply is under way.
void request_handle(struct reply_sink *sink, const struct api_header *h, const void *body);
// Of a reply that is under way: goes on until a message was sent or time is up (control_now_ns()).
void request_continue(struct reply_sink *sink, uint64_t until_ns);
void request_forget(struct reply_sink *sink, int all_taken); // ends it; all_taken: nothing sent waits for the client
uint64_t request_open_since(const struct reply_sink *sink); // when its transaction began; 0: none is open
void request_client_gone(uint32_t owner);
void stream_handler_register(int (*fn)(const struct api_stream_command *c)); // synth

// Events (event.c): requests of a subscriber, and the reports that the reply of a commit carries
void event_subscribe(struct reply_sink *sink, const struct api_header *h);
void event_acknowledge(const struct reply_sink *sink, uint64_t sequence);
void event_client_gone(uint32_t owner);
void event_commit_begin(void);
const struct api_usage *event_commit_rows(uint32_t *count);
struct api_usage *event_commit_take(uint32_t *count); // the same, the caller's from now on; NULL: none
void event_commit_unsent(const struct api_usage *row, uint32_t count); // the client is gone: they become events

// Channel (channel.c)
void channel_open(struct reply_sink *sink, const struct api_header *h);
int channel_send(const struct reply_sink *sink, const struct api_header *h, const void *body); // as object_error()
void channel_client_gone(uint32_t owner);
void channel_flush(void); // what waits, as far as the reader takes it

// Socket (socket.c)
int socket_open(const char *path);
void socket_poll(uint64_t timeout_ns); // sleeps, as long as nothing comes
void socket_close(void);
uint32_t socket_clients(uint64_t *closed); // now; those that were closed because of what they did, or turned away

#endif
