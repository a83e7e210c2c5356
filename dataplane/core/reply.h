// SPDX-License-Identifier: Apache-2.0
// Replies to requests, and replies of many rows, made as their client reads them.
#ifndef CORE_REPLY_H
#define CORE_REPLY_H

#include "isthmus_api.h"

// Writes rows of one table from a place on (first 0), each with stats_row; returns the next place, 0 at the end. A call
// is a bounded step: in between, packets, timers and other clients have their turn, and the table may change. Rows that
// exist throughout are given once. `key` may be empty.
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

// The rest is core's.

// Where replies go: a client of the socket, or replay's state file.
struct reply_sink {
	// Sends one reply, a part, or keeps a copy; never waits. Returns 0, or -1 when the client is gone.
	int (*send)(
		struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows);
	// The same without waiting: 1 when the client has not read enough yet (nothing was sent). h->length less its
	// own bytes follow `part`: rows and further parts. NULL: cannot subscribe.
	int (*offer)(
		struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows);
	uint32_t owner; // identifies the client: a transaction belongs to it
	uint32_t version; // of the contract, agreed by HELLO; 0: not yet
	int paced; // its owner calls request_continue(); 0: request_handle() replies to the end
	struct stats_sink *rest; // the reply that is under way, of many rows
};

#define REPLY_BYTES (64u << 10) // of rows in a message, about; malloc has it without a system call

// Returns 0, or -1 when the client is gone.
int reply(struct reply_sink *to, const struct api_header *request, uint16_t flags, const struct api_part_head *part,
	const void *rows);
void reply_status(struct reply_sink *to, const struct api_header *request, const struct api_status *s);
void reply_error(struct reply_sink *to, const struct api_header *request, uint32_t code, const char *text);
void reply_refusal(struct reply_sink *to, const struct api_header *request, int code); // in object_error()'s words

// An answer without end, which one client has.
struct reply_stream {
	struct reply_sink *to; // NULL: no reader
	struct api_header request;
};
// As offer(): behind `part` come `length` bytes.
int stream_offer(struct reply_stream *s, const struct api_part_head *part, const void *rest, uint64_t length);
// `to` becomes the reader; the former reader gets `text`.
void stream_take(struct reply_stream *s, struct reply_sink *to, const struct api_header *request, const char *text);
int stream_gone(struct reply_stream *s, uint32_t owner); // 1: it was this client's, who is gone

// A reply of many rows. request_continue() takes steps while the client reads, so the reply takes one message's memory,
// however large the table is.
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
	// May be NULL; all_taken: nothing sent waits for the client
	void (*forget)(struct stats_sink *s, int all_taken);
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
// Continues a reply until a message was sent or time is up (control_now_ns()).
void request_continue(struct reply_sink *sink, uint64_t until_ns);
void request_forget(struct reply_sink *sink, int all_taken); // ends it; all_taken: nothing sent waits for the client
stats_fn stats_table(uint32_t table, uint32_t *row_length); // NULL: there is none

#endif
