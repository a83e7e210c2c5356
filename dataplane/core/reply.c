// SPDX-License-Identifier: Apache-2.0
// Replies, and the steps of those of many rows.
#include "core/reply.h"
#include "core/contract.h"
#include "core/error.h"
#include "core/worker.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 16 // between two looks at the clock

static struct {
	uint32_t row_length;
	stats_fn fn;
} tables[API_TABLE_COUNT];

void stats_table_register(uint32_t table, uint32_t row_length, stats_fn fn)
{
	tables[table].row_length = row_length;
	tables[table].fn = fn;
}

stats_fn stats_table(uint32_t table, uint32_t *row_length)
{
	if (table >= API_TABLE_COUNT)
		return NULL;
	*row_length = tables[table].row_length;
	return tables[table].fn;
}

static struct api_header head_of(const struct api_header *request, uint16_t flags, uint64_t rest)
{
	return (struct api_header){.magic = API_MAGIC,
		.type = request->type,
		.flags = flags,
		.length = (uint32_t)(sizeof(struct api_part_head) + rest),
		.sequence = request->sequence};
}

int reply(struct reply_sink *to, const struct api_header *request, uint16_t flags, const struct api_part_head *part,
	const void *rows)
{
	struct api_header h = head_of(request, flags, part_padded((uint64_t)part->size * part->count));

	return to->send(to, &h, part, rows);
}

int stream_offer(struct reply_stream *s, const struct api_part_head *part, const void *rest, uint64_t length)
{
	struct api_header h = head_of(&s->request, 0, length);

	return s->to->offer(s->to, &h, part, rest);
}

void stream_take(struct reply_stream *s, struct reply_sink *to, const struct api_header *request, const char *text)
{
	struct api_header h = head_of(&s->request, API_F_LAST | API_F_ERROR, sizeof(struct api_status));
	const struct api_part_head part = {.part = API_PART_STATUS, .size = sizeof(struct api_status), .count = 1};
	struct api_status taken = {.code = ECANCELED};

	snprintf(taken.text, sizeof(taken.text), "%s", text);
	if (s->to != NULL && s->to != to)
		s->to->offer(s->to, &h, &part, &taken);
	*s = (struct reply_stream){to, *request};
}

int stream_gone(struct reply_stream *s, uint32_t owner)
{
	if (s->to == NULL || s->to->owner != owner)
		return 0;
	s->to = NULL;
	return 1;
}

void reply_status(struct reply_sink *to, const struct api_header *request, const struct api_status *s)
{
	const struct api_part_head part = {.part = API_PART_STATUS, .size = sizeof(*s), .count = 1};

	reply(to, request, API_F_LAST | (s->code ? API_F_ERROR : 0), &part, s);
}

void reply_error(struct reply_sink *to, const struct api_header *request, uint32_t code, const char *text)
{
	struct api_status s = {.code = code};

	snprintf(s.text, sizeof(s.text), "%s", text);
	reply_status(to, request, &s);
}

void reply_refusal(struct reply_sink *to, const struct api_header *request, int code)
{
	struct api_status s = {.code = (uint32_t)code};

	object_error_status(&s);
	reply_status(to, request, &s);
}

struct stats_sink *rows_open(struct reply_sink *to, const struct api_header *h, uint16_t part, uint32_t row_length)
{
	struct stats_sink *s = calloc(1, sizeof(*s));
	uint8_t *bytes = s != NULL ? malloc(REPLY_BYTES) : NULL;

	if (bytes == NULL) {
		free(s);
		reply_error(to, h, ENOMEM, "no memory");
		return NULL;
	}
	s->to = to;
	s->request = *h;
	s->part = (struct api_part_head){.part = part, .size = (uint16_t)row_length};
	s->bytes = bytes;
	to->rest = s;
	return s;
}

void rows_send(struct stats_sink *s, uint16_t flags)
{
	if (!s->gone && reply(s->to, &s->request, flags, &s->part, s->bytes) != 0)
		s->gone = 1;
	s->sent = 1;
	s->part.count = 0;
}

static int is_full(const struct stats_sink *s)
{
	return s->limit != 0 && s->rows >= s->limit;
}

void stats_row(struct stats_sink *s, const void *row, uint32_t length)
{
	if (s->gone || is_full(s))
		return;
	if ((s->part.count + 1) * length > REPLY_BYTES)
		rows_send(s, 0);
	memcpy(s->bytes + s->part.count * length, row, length);
	s->part.count++;
	s->rows++;
}

void *stats_keep(struct stats_sink *s)
{
	return s->table.keep;
}

void request_forget(struct reply_sink *sink, int all_taken)
{
	struct stats_sink *s = sink->rest;

	sink->rest = NULL;
	if (s != NULL && s->forget != NULL)
		s->forget(s, all_taken);
	if (s != NULL)
		free(s->bytes);
	free(s);
}

void request_continue(struct reply_sink *sink, uint64_t until_ns)
{
	struct stats_sink *s = sink->rest;
	uint32_t steps = 0;

	s->sent = 0;
	do {
		s->place = s->step(s);
		if (s->gone || s->place == 0 || is_full(s)) {
			if (!s->gone)
				s->end(s);
			request_forget(sink, 1);
			return;
		}
	} while (!s->sent && (++steps % STEPS != 0 || control_now_ns() < until_ns));
}
