// SPDX-License-Identifier: Apache-2.0
// Inside of core: replies to requests, and those of many rows, which are made as their client reads them.
#ifndef CORE_REPLY_H
#define CORE_REPLY_H

#include "core/engine.h"

#define REPLY_BYTES (64u << 10) // of rows in a message, about; malloc has it without a system call

// Returns 0, or -1 when the client is gone.
int reply(struct reply_sink *to, const struct api_header *request, uint16_t flags, const struct api_part_head *part,
	const void *rows);
void reply_status(struct reply_sink *to, const struct api_header *request, const struct api_status *s);
void reply_error(struct reply_sink *to, const struct api_header *request, uint32_t code, const char *text);
void reply_refusal(struct reply_sink *to, const struct api_header *request, int code); // in object_error()'s words

// A reply of many rows. request_continue() takes steps as long as the client reads, and so does the memory of the reply
// stay at one message, whatever the table has.
struct stats_sink {
	struct reply_sink *to;
	struct api_header request;
	struct api_part_head part; // count: rows in `bytes`
	uint8_t *bytes;
	uint32_t rows, limit; // limit 0: none
	uint8_t sent, gone; // a message in this step; the client
	uint64_t place; // where the next step begins
	// Gives a bounded number of rows from `place` on, and returns the next place, 0: that was all.
	uint64_t (*step)(struct stats_sink *s);
	void (*end)(struct stats_sink *s); // sends what is left, and the last message
	void (*forget)(
		struct stats_sink *s, int all_taken); // may be NULL; all_taken: nothing sent waits for the client
	union {
		struct {
			stats_fn fn;
			char key[API_NAME];
			uint64_t keep[8];
		} table;
		struct {
			struct api_list want;
			uint32_t room; // digests
			int more;
		} list;
		struct {
			struct api_usage *row;
			uint32_t count, taken; // taken: rows that left for the client before this step
			struct api_status status;
		} commit;
		struct {
			uint32_t number, end; // enum api_trace_end
		} trace;
	};
};

// Returns NULL after reply_error(). With its step and end set it is begun; rows_send() is for end().
struct stats_sink *rows_open(struct reply_sink *to, const struct api_header *h, uint16_t part, uint32_t row_length);
void rows_send(struct stats_sink *s, uint16_t flags);

// Requests of traces (trace_request.c)
void request_trace(struct reply_sink *sink, const struct api_header *h, const void *body);
void request_trace_poll(struct reply_sink *sink, const struct api_header *h, const void *body);

#endif
