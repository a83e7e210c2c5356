// SPDX-License-Identifier: Apache-2.0
// Replies, and the steps of those of many rows.
#include "core/reply.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 16 // between two looks at the clock

int reply(struct reply_sink *to, const struct api_header *request, uint16_t flags, const struct api_part_head *part,
	const void *rows)
{
	struct api_header h = {
		.magic = API_MAGIC,
		.type = request->type,
		.flags = flags,
		.length = (uint32_t)(sizeof(*part) + part_padded((uint64_t)part->size * part->count)),
		.sequence = request->sequence,
	};

	return to->send(to, &h, part, rows);
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
	char text[API_TEXT];

	object_error_text(text, sizeof(text));
	reply_error(to, request, (uint32_t)code, text);
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
