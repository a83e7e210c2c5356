// SPDX-License-Identifier: Apache-2.0
// The channel: frames of subscribers between the host path and the control plane, over one connection of the control
// socket (API_CHANNEL). Control thread.
#ifndef CORE_CHANNEL_H
#define CORE_CHANNEL_H

#include "isthmus_api.h"
#include <stdint.h>

struct port;
struct reply_sink;
struct rte_mbuf;

enum channel_result {
	CHANNEL_TAKEN,
	CHANNEL_FULL, // the control plane reads more slowly than frames come
	CHANNEL_CLOSED, // there is none that reads
};

// Copies h, and h->length octets of m from `offset` on, which m must have: at most API_FRAME_MOST.
enum channel_result channel_put(const struct api_frame *h, const struct rte_mbuf *m, uint32_t offset);

// 1 while more of the reader's frames would find no room in the workers' inboxes: they wait in its connection.
int channel_holds(const struct reply_sink *sink);

// fn fills in an access port's addresses. From a constructor; one function.
void channel_port_register(void (*fn)(const struct port *p, struct api_frame_port *row));

// fn gets the control plane's frames, checked for form alone: octets has h->length bytes, the port's name is
// terminated. From a constructor; one function.
void channel_handler_register(void (*fn)(const struct api_frame *h, const uint8_t *octets));

// Of core.
void channel_open(struct reply_sink *sink, const struct api_header *h);
int channel_send(const struct reply_sink *sink, const struct api_header *h, const void *body); // as object_error()
void channel_client_gone(uint32_t owner);
void channel_flush(void); // what waits, as far as the reader takes it

#endif
