// SPDX-License-Identifier: Apache-2.0
// Requests of traces: what is to be followed, and polls.
#include "core/contract.h"
#include "core/error.h"
#include "core/reply.h"
#include "core/trace_inside.h"
#include <errno.h>
#include <stdlib.h>

// The part that is to be next: `count` structs of at most `room`.
static int read_array(struct part_reader *r, uint16_t number, uint32_t count, uint32_t room, uint32_t size, void *to)
{
	struct part p;

	if (count == 0)
		return 0;
	if (count > room)
		return object_error(
			EINVAL, "%u of %s in a trace, at most %u are possible", count, part_name(number), room);
	int more = part_next(r, &p);
	if (more == EPROTO)
		return EPROTO;
	if (more == 0 || p.number != number || p.count != count)
		return object_error(EPROTO, "a trace has not the %u of %s that it says", count, part_name(number));
	return part_fit(&p, size, to, "a trace");
}

static int read_trace(const struct api_header *h, const void *body, struct trace_order *o)
{
	struct part_reader r = {.at = body, .left = h->length};
	struct api_trace *w = &o->want;
	int error = read_array(&r, API_PART_TRACE, 1, 1, sizeof(*w), w);

	if (error == 0)
		error = read_array(&r, API_PART_TRACE_KEY, w->keys, RTE_DIM(o->key), sizeof(o->key[0]), o->key);
	if (error == 0)
		error = read_array(&r, API_PART_TRACE_INSTRUCTION, w->frame_code, RTE_DIM(o->frame),
			sizeof(o->frame[0]), o->frame);
	if (error == 0)
		error = read_array(&r, API_PART_TRACE_INSTRUCTION, w->packet_code, RTE_DIM(o->packet),
			sizeof(o->packet[0]), o->packet);
	if (error == 0 && w->octets > API_TRACE_FRAME)
		error = object_error(EINVAL, "a hypothetical packet of %u bytes", w->octets);
	if (error == 0)
		error = read_array(&r, API_PART_TRACE_OCTETS,
			(w->octets + sizeof(o->octets[0]) - 1) / sizeof(o->octets[0]), RTE_DIM(o->octets),
			sizeof(o->octets[0]), o->octets);
	return error == 0 && r.left != 0 ? object_error(EPROTO, "a trace with more parts than it says") : error;
}

static void reply_trace(struct reply_sink *sink, const struct api_header *h, const struct api_trace_state *s)
{
	const struct api_part_head part = {.part = API_PART_TRACE_STATE, .size = sizeof(*s), .count = 1};

	reply(sink, h, API_F_LAST, &part, s);
}

void request_trace(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct trace_order *o = calloc(1, sizeof(*o));
	struct api_trace_state s;
	int error = o == NULL ? object_error(ENOMEM, "no memory for a trace") : read_trace(h, body, o);

	if (error == 0)
		error = trace_begin(o, &s);
	free(o);
	if (error != 0)
		reply_refusal(sink, h, error);
	else
		reply_trace(sink, h, &s);
}

static uint64_t poll_step(struct stats_sink *s)
{
	return trace_rows(s->trace.number, s->trace.end, s->place, s);
}

static void poll_end(struct stats_sink *s)
{
	struct api_trace_state state;
	int error = trace_polled(s->trace.number, s->trace.end, &state);

	if (s->part.count != 0)
		rows_send(s, 0);
	if (error != 0)
		reply_refusal(s->to, &s->request, error);
	else
		reply_trace(s->to, &s->request, &state);
}

void request_trace_poll(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	enum api_trace_end end;
	struct api_trace_poll p;
	int error = part_only(body, h->length, API_PART_TRACE_POLL, &p, sizeof(p), "a poll of a trace");

	if (error == 0)
		error = trace_poll(&p, &end);
	if (error != 0) {
		reply_refusal(sink, h, error);
		return;
	}
	struct stats_sink *s = rows_open(sink, h, API_PART_TRACE_ROW, sizeof(struct api_trace_row));
	if (s == NULL)
		return;
	s->trace.number = p.trace;
	s->trace.end = end;
	s->step = poll_step;
	s->end = poll_end;
}
