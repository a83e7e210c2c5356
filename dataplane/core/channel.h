// SPDX-License-Identifier: Apache-2.0
// The channel: frames of subscribers between the host path and the control plane, over one connection of the control
// socket (API_CHANNEL). Control thread.
#ifndef CORE_CHANNEL_H
#define CORE_CHANNEL_H

#include "isthmus_api.h"
#include <stdint.h>

struct rte_mbuf;

enum channel_result {
	CHANNEL_TAKEN,
	CHANNEL_FULL, // the control plane reads more slowly than frames come
	CHANNEL_CLOSED, // there is none that reads
};

// Copies h, and h->length octets of m from `offset` on, which m must have: at most API_FRAME_MOST.
enum channel_result channel_put(const struct api_frame *h, const struct rte_mbuf *m, uint32_t offset);

// 1 while more of the reader's frames would find no room in the workers' inboxes: they wait in its connection.
struct reply_sink;
int channel_holds(const struct reply_sink *sink);

// fn fills in what modules know of an access port. From a constructor; one.
struct port;
void channel_port_register(void (*fn)(const struct port *p, struct api_frame_port *row));

// fn is given what the control plane sends, checked for its form alone: octets has h->length bytes, the port's name
// ends. From a constructor; one.
void channel_handler_register(void (*fn)(const struct api_frame *h, const uint8_t *octets));

#endif
