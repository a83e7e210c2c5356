// SPDX-License-Identifier: Apache-2.0
// Exits of a worker's graph beside its ports, and the ways back: to and from the control thread (host_path.c), to
// another worker (nodes_io.c).
#ifndef CORE_HOST_PATH_H
#define CORE_HOST_PATH_H

#include "core/reason.h"
#include "core/worker.h"

// A packet punted with this reason is given to fn on the control thread. fn owns it: it frees it, or returns it to the
// graph with control_inject. Without a handler it is counted and freed. One handler per reason.
typedef void (*punt_fn)(struct rte_mbuf *m);
void punt_handler_register(const struct reason *r, punt_fn fn); // at any time on the control thread
void punt_access_handler_register(const struct reason *r, punt_fn fn); // of those from access ports alone
// 1 when more than half of the room for control protocols (CONTROL_OTHER) is taken. Workers.
int host_path_crowded(void);

// Returns a packet to worker `id` on the edge of handover-rx to `node`. Returns 0 and frees it (dropped, reason
// inject-full) when the worker's inbox is full. The packet must have been punted, held or originated.
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

// Lets nodes receive packets from handover-rx (handed over by a worker, or injected by the control thread). Returns the
// edge number to put into packet.resume. From constructors only.
uint16_t resume_register(const char *node);
// Worker: hands a packet to another worker, where it takes the edge named by `resume`. Always consumes it. `order`,
// below ORDERS: packets with the same value keep their order.
void worker_hand_over(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m);
// The same for a frame that passed no full node yet (packet.handed).
void worker_hand_over_as_it_came(struct worker *w, uint32_t to, uint16_t resume, uint16_t order, struct rte_mbuf *m);
// Worker: counts and frees a packet of its own where no edge leads to `drop`.
void worker_drop(struct worker *w, struct rte_mbuf *m, const struct reason *r);

// Of core.
int host_path_start(const struct api_engine *e);
int nodes_io_start(void); // registers handover-rx, behind all other nodes
void host_path_poll(void);
int host_path_push(enum host_queue queue, struct rte_mbuf *m); // worker: 0, or -1 when the queue is full
int inboxes_crowded(void); // more than half of one is taken
void worker_give_all(struct worker *w); // sends handed-over packets to their owners: at the end of each walk

#endif
