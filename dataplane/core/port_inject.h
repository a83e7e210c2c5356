// SPDX-License-Identifier: Apache-2.0
// The other side of an `inject` port: frames in from memory, frames out to a callback. One thread, which also walks the
// graph (engine_walk).
#ifndef CORE_PORT_INJECT_H
#define CORE_PORT_INJECT_H

#include "core/port.h"

#define INJECT_QUEUE 1024
#define INJECT_FRAME_MAX 16384

// Called for each frame that leaves; the frame is freed afterwards.
typedef void (*inject_output_fn)(struct port *p, struct rte_mbuf *m, void *arg);

// Copies a frame (without FCS) into the port's receive queue. Returns 0, EINVAL, ENOBUFS (queue full) or ENOMEM.
int inject_packet(struct port *p, const void *frame, uint32_t length);
// Sets the link up or down. Returns 0, or EINVAL when the port is not of this driver.
int inject_link(struct port *p, int up);
// Returns 0, or EINVAL when the port is not of this driver.
int inject_on_output(struct port *p, inject_output_fn fn, void *arg);

#endif
