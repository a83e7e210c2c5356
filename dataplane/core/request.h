// SPDX-License-Identifier: Apache-2.0
// Requests of the contract: one message in, replies out; the same for the socket and for replay's state file.
#ifndef CORE_REQUEST_H
#define CORE_REQUEST_H

#include "isthmus_api.h"

struct reply_sink;

// Not while a reply is under way.
void request_handle(struct reply_sink *sink, const struct api_header *h, const void *body);
uint64_t request_open_since(const struct reply_sink *sink); // when its transaction began; 0: none is open
void request_client_gone(uint32_t owner);
void stream_handler_register(int (*fn)(const struct api_stream_command *c)); // synth

#endif
