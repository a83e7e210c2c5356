// SPDX-License-Identifier: Apache-2.0
// See work.h. The office has read the profile, but its message is trusted no more than a file.
#include "traffic/engine/work.h"
#include "traffic/engine/order.h"
#include "traffic/wire/tag.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MTU_MIN 256
#define DESCRIPTORS_MIN 64
#define DESCRIPTORS_MAX 32768
#define QUEUES_MAX 16
#define SECONDS_MAX 86400.0

// What is left of the job's bytes.
struct cursor {
	const uint8_t *at;
	size_t left;
};

static bool take(struct cursor *c, void *to, size_t n)
{
	if (c->left < n)
		return false;
	memcpy(to, c->at, n);
	c->at += n;
	c->left -= n;
	return true;
}

static bool ends(const char *text, size_t n)
{
	return memchr(text, 0, n) != NULL;
}

static bool within(double value, double low, double high)
{
	return value >= low && value <= high; // false for what is no number
}

static const char *check_job(const struct job *j)
{
	const uint32_t bytes = sizeof(*j) + sizeof(struct job_port) + sizeof(struct job_stream) + sizeof(struct stack) +
			       sizeof(struct trial) + sizeof(struct stream_count);

	if (j->number != JOB_VERSION || j->bytes != bytes)
		return "isthmus-traffic and its engine are of different builds";
	if (j->ports == 0 || j->ports > JOB_PORTS || j->streams == 0 || j->streams > JOB_STREAMS || j->cpus > JOB_CPUS)
		return "too many ports, streams or CPUs, or none";
	if (j->gateway_cpu > UINT16_MAX && j->gateway_cpu != JOB_NO_CPU)
		return "a gateway's CPU out of bounds";
	if (!within(j->drain, 0.001, SECONDS_MAX) || !within(j->link_wait, 0.001, SECONDS_MAX) ||
		!within(j->steal_max, 0, 1) || !ends(j->capture.file, sizeof(j->capture.file)))
		return "a time or part out of bounds";
	return NULL;
}

static const char *check_port(const struct job_port *p)
{
	if (!ends(p->name, sizeof(p->name)) || !ends(p->driver, sizeof(p->driver)) ||
		!ends(p->device, sizeof(p->device)) || !ends(p->args, sizeof(p->args)))
		return "a text without end";
	if (!within(p->mtu, MTU_MIN, FRAME_MAX) || !within(p->descriptors, DESCRIPTORS_MIN, DESCRIPTORS_MAX) ||
		!within(p->queues, 1, QUEUES_MAX) || p->addresses > JOB_ADDRESSES)
		return "a port out of bounds";
	return NULL;
}

static const char *check_stream(const struct work *w, const struct job_stream *s)
{
	if (!ends(s->name, sizeof(s->name)))
		return "a text without end";
	if (s->port >= w->job.ports || s->sink >= w->job.ports || s->answers < -1 ||
		s->answers >= (int32_t)w->job.streams || s->flows == 0 || s->flows > TAG_FLOWS || s->block == 0 ||
		s->order > ORDER_ZIPF || !within(s->zipf, 0.01, 4) || s->sizes == 0 || s->sizes > JOB_SIZES)
		return "a stream out of bounds";
	if (s->share > UINT16_MAX || !(s->own_pps >= 0) || (s->share != 0) + (s->own_pps > 0) + (s->answers >= 0) != 1)
		return "a stream without one of share, rate and answers";
	for (uint32_t i = 0; i < s->sizes; i++)
		if (!within(s->size[i].bytes, FRAME_MIN, FRAME_MAX) || s->size[i].weight == 0)
			return "a size out of bounds";
	return NULL;
}

static bool stack_within(const struct stack *s)
{
	if (s->layers > JOB_LAYERS)
		return false;
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct layer *l = &s->layer[i];

		if (l->kind >= LAYER_KINDS || l->extensions > JOB_EXTENSIONS)
			return false;
		for (uint32_t k = 0; k < JOB_EXTENSIONS; k++)
			if (l->extension[k].length > sizeof(l->extension[k].content))
				return false;
		for (uint32_t k = 0; k < JOB_FIELDS; k++)
			if (l->field[k].word > 3 || (l->field[k].given && l->field[k].each == 0))
				return false;
	}
	return true;
}

__attribute__((format(printf, 5, 6))) static void fault(
	struct work_faults *f, uint32_t stream, enum job_part part, uint32_t line, const char *format, ...)
{
	va_list args;

	if (f->n >= JOB_FAULTS)
		return;
	struct job_fault *one = &f->fault[f->n++];

	*one = (struct job_fault){.stream = stream, .part = part, .line = line};
	va_start(args, format);
	vsnprintf(one->text, sizeof(one->text), format, args);
	va_end(args);
}

// Bytes before those that an MTU limits: Ethernet and VLAN tags. PPPoE is inside (RFC 2516 §7).
static uint32_t l2_bytes(const struct template *t)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < t->stack.layers; i++) {
		enum layer_kind kind = t->stack.layer[i].kind;

		if (kind != LAYER_ETHERNET && kind != LAYER_VLAN)
			break;
		bytes += layer_form(kind)->bytes;
	}
	return bytes;
}

static void check_mtu(struct work_faults *f, uint32_t stream, const struct job_port *port, const struct template *t,
	uint32_t frame, const char *how)
{
	uint32_t need = frame - FCS - l2_bytes(t);

	if (need > port->mtu)
		fault(f, stream, JOB_PART_SIZE, 0,
			"a frame %s with %u bytes needs an mtu of %u, and port \"%s\" has %u", how, frame, need,
			port->name, port->mtu);
}

static void check_sizes(struct work_faults *f, uint32_t index, const struct work *w)
{
	const struct work_stream *s = &w->stream[index];
	uint32_t most = 0, least = (uint32_t)s->send.length + TAG_BYTES + FCS;

	for (uint32_t i = 0; i < s->job.sizes; i++) {
		if (s->job.size[i].bytes < least)
			fault(f, index, JOB_PART_SIZE, 0,
				"%u bytes are too few: headers %u, the tester's tag %d and FCS %d take %u",
				s->job.size[i].bytes, s->send.length, TAG_BYTES, FCS, least);
		if (s->job.size[i].bytes > most)
			most = s->job.size[i].bytes;
	}
	if (most < least)
		return;
	check_mtu(f, index, &w->port[s->job.port], &s->send, most, "sent");
	if (s->job.receive_any)
		return;
	uint32_t arriving = most - s->send.length + s->receive.length;
	if (arriving > FRAME_MAX)
		fault(f, index, JOB_PART_SIZE, 0,
			"a frame sent with %u bytes would arrive with %u, and at most %d are possible", most, arriving,
			FRAME_MAX);
	else
		check_mtu(f, index, &w->port[s->job.sink], &s->receive, arriving, "received");
}

static bool compile(
	struct work_faults *f, uint32_t index, enum job_part part, const struct stack *stack, struct work_stream *s)
{
	char why[JOB_TEXT];
	int line;

	if (stack_compile(stack, s->job.flows, part == JOB_PART_RECEIVE,
		    part == JOB_PART_RECEIVE ? &s->receive : &s->send, why, sizeof(why), &line) == 0)
		return true;
	fault(f, index, part, (uint32_t)line, "%s", why);
	return false;
}

static const char *take_stream(
	struct cursor *c, struct work *w, uint32_t index, struct stack *stack, struct work_faults *f)
{
	struct work_stream *s = &w->stream[index];
	const char *why;

	if (!take(c, &s->job, sizeof(s->job)))
		return "it is cut off";
	if ((why = check_stream(w, &s->job)) != NULL)
		return why;
	if (!take(c, stack, 2 * sizeof(*stack)))
		return "it is cut off";
	if (!stack_within(&stack[0]) || !stack_within(&stack[1]))
		return "a layer out of bounds";
	bool good = compile(f, index, JOB_PART_SEND, &stack[0], s);

	if (!s->job.receive_any)
		good &= compile(f, index, JOB_PART_RECEIVE, &stack[1], s);
	if (good)
		check_sizes(f, index, w);
	return NULL;
}

// An answer leaves by its question's port, to the same flow; each question gets one.
static const char *check_answers(const struct work *w)
{
	bool answered[JOB_STREAMS] = {false};
	uint64_t flows = 0;

	for (uint32_t i = 0; i < w->job.streams; i++) {
		const struct job_stream *s = &w->stream[i].job;

		flows += s->flows;
		if (s->answers < 0)
			continue;
		const struct job_stream *of = &w->stream[s->answers].job;

		if (of->answers >= 0 || of->flows != s->flows || of->sink != s->port || answered[s->answers])
			return "a stream that cannot answer";
		answered[s->answers] = true;
	}
	return flows > JOB_FLOWS ? "too many flows" : NULL;
}

static const char *take_all(struct cursor *c, struct work *w, struct stack *stack, struct work_faults *f)
{
	const char *why;

	if (!take(c, &w->job, sizeof(w->job)))
		return "it is cut off";
	if ((why = check_job(&w->job)) != NULL)
		return why;
	for (uint32_t i = 0; i < w->job.ports; i++) {
		if (!take(c, &w->port[i], sizeof(w->port[i])))
			return "it is cut off";
		if ((why = check_port(&w->port[i])) != NULL)
			return why;
	}
	w->stream = calloc(w->job.streams, sizeof(*w->stream));
	if (w->stream == NULL)
		return "no memory";
	for (uint32_t i = 0; i < w->job.streams; i++)
		if ((why = take_stream(c, w, i, stack, f)) != NULL)
			return why;
	return c->left != 0 ? "more follows than it says" : check_answers(w);
}

struct work *work_parse(const uint8_t *bytes, size_t n, struct work_faults *faults, char *error, size_t room)
{
	struct cursor c = {bytes, n};
	struct work *w = calloc(1, sizeof(*w));
	struct stack *stack = malloc(2 * sizeof(*stack));
	const char *why = w == NULL || stack == NULL ? "no memory" : NULL;

	memset(faults, 0, sizeof(*faults));
	if (why == NULL)
		why = take_all(&c, w, stack, faults);
	free(stack);
	if (why == NULL)
		return w;
	work_free(w);
	snprintf(error, room, "a bad job: %s", why);
	return NULL;
}

void work_free(struct work *w)
{
	if (w != NULL)
		free(w->stream);
	free(w);
}
