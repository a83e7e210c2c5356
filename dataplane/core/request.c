// SPDX-License-Identifier: Apache-2.0
// Requests of the contract: one message in, replies out. Used by the socket and by replay's state file alike.
#include "core/engine.h"
#include "core/log.h"
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPLY_BYTES (64u << 10) // rows are sent in messages of about this size; malloc has it without a system call

static struct {
	struct {
		uint32_t row_length;
		void (*fn)(struct stats_sink *s, const char *key);
	} table[API_TABLE_COUNT];
	uint32_t owner; // client of the open transaction
	int open;
	int failed; // a PUT or DELETE was refused; told at COMMIT
	struct api_status failure;
	int (*stream)(const struct api_stream_command *c);
} requests;

struct stats_sink {
	struct reply_sink *reply;
	struct api_header head;
	uint8_t *bytes;
	uint32_t used, rows, limit;
	int gone;
};

void stats_table_register(uint32_t table, uint32_t row_length, void (*fn)(struct stats_sink *s, const char *key))
{
	requests.table[table].row_length = row_length;
	requests.table[table].fn = fn;
}

void stream_handler_register(int (*fn)(const struct api_stream_command *c))
{
	requests.stream = fn;
}

// ---- replies ---------------------------------------------------------------------------------------------------------

static int reply(
	struct reply_sink *sink, const struct api_header *request, uint16_t flags, const void *body, uint32_t n)
{
	struct api_header h = {
		.magic = API_MAGIC,
		.type = request->type,
		.flags = flags,
		.length = n,
		.sequence = request->sequence,
	};

	return sink->send(sink, &h, body);
}

static void reply_status(struct reply_sink *sink, const struct api_header *request, const struct api_status *s)
{
	reply(sink, request, API_F_LAST | (s->code ? API_F_ERROR : 0), s, sizeof(*s));
}

static void reply_error(struct reply_sink *sink, const struct api_header *request, uint32_t code, const char *text)
{
	struct api_status s = {.code = code};

	snprintf(s.text, sizeof(s.text), "%s", text);
	reply_status(sink, request, &s);
}

static void sink_flush(struct stats_sink *s, uint16_t flags)
{
	if (!s->gone && reply(s->reply, &s->head, flags, s->bytes, s->used) != 0)
		s->gone = 1;
	s->used = 0;
}

void stats_row(struct stats_sink *s, const void *row, uint32_t length)
{
	if (s->gone || (s->limit != 0 && s->rows >= s->limit))
		return;
	if (s->used + length > REPLY_BYTES)
		sink_flush(s, 0);
	memcpy(s->bytes + s->used, row, length);
	s->used += length;
	s->rows++;
}

static int sink_open(struct stats_sink *s, struct reply_sink *reply_sink, const struct api_header *h, uint32_t limit)
{
	*s = (struct stats_sink){.reply = reply_sink, .head = *h, .limit = limit, .bytes = malloc(REPLY_BYTES)};
	return s->bytes == NULL ? -1 : 0;
}

// ---- requests --------------------------------------------------------------------------------------------------------

static uint64_t start_ns(void)
{
	static uint64_t at;
	struct timespec t;

	if (at == 0) {
		clock_gettime(CLOCK_REALTIME, &t);
		at = (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
	}
	return at;
}

uint64_t engine_boot_id(void)
{
	return start_ns() ^ ((uint64_t)getpid() << 32);
}

static void cpu_model(char *to, size_t n)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
			colon[strcspn(colon, "\n")] = 0;
			snprintf(to, n, "%s", colon + 2);
			break;
		}
	}
	if (f != NULL)
		fclose(f);
}

static void hello(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_hello *peer = body;
	static struct api_hello me;

	if (h->length != sizeof(*peer)) {
		reply_error(sink, h, EPROTO,
			"HELLO of the wrong size: the other side speaks another version of the contract");
		return;
	}
	if (me.version == 0) {
		me.version = API_VERSION;
		me.start_ns = start_ns();
		me.boot_id = engine_boot_id();
		me.pid = (uint32_t)getpid();
		me.tsc_hz = rte_get_tsc_hz();
		me.flags = rte_eal_has_hugepages() ? API_HELLO_HUGE : 0;
		snprintf(me.build, sizeof(me.build), "%s", ISTHMUS_VERSION);
		cpu_model(me.cpu, sizeof(me.cpu));
	}
	me.objects = (uint32_t)object_totals.objects;
	if (peer->version != API_VERSION) {
		char text[API_TEXT];

		snprintf(text, sizeof(text), "contract version %u is spoken here, not %u", API_VERSION, peer->version);
		reply_error(sink, h, EPROTO, text);
		return;
	}
	reply(sink, h, API_F_LAST, &me, sizeof(me));
}

static void begin(struct reply_sink *sink, const struct api_header *h)
{
	struct api_status ok = {0};

	if (requests.open) {
		reply_error(sink, h, EBUSY, "another transaction is open");
		return;
	}
	object_begin();
	requests.open = 1;
	requests.failed = 0;
	requests.owner = sink->owner;
	reply_status(sink, h, &ok);
}

static void change(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_object_head *head = body;
	int error;

	if (!requests.open || requests.owner != sink->owner || requests.failed)
		return; // told at COMMIT
	if (h->length < sizeof(*head) || (h->type == API_PUT && head->length != h->length - sizeof(*head)))
		error = object_error(EPROTO, "a change whose lengths disagree");
	else
		error = h->type == API_PUT ? object_put(head, head + 1) : object_delete(head);
	if (error != 0) {
		requests.failed = 1;
		requests.failure = (struct api_status){.code = (uint32_t)error};
		if (h->length >= sizeof(*head)) {
			requests.failure.kind = head->kind;
			memcpy(requests.failure.key, head->key, API_NAME - 1);
		}
		object_error_text(requests.failure.text, sizeof(requests.failure.text));
	}
}

// Rows of reports before the status. What the client does not get any more becomes events: it is charged for.
static void reply_usage(struct reply_sink *sink, const struct api_header *h)
{
	const uint32_t most = REPLY_BYTES / sizeof(struct api_usage);
	uint32_t count, n;
	const struct api_usage *row = event_commit_rows(&count);

	for (uint32_t i = 0; i < count; i += n) {
		n = RTE_MIN(count - i, most);
		if (reply(sink, h, 0, row + i, n * (uint32_t)sizeof(*row)) != 0) {
			event_commit_unsent(i);
			return;
		}
	}
}

static void commit(struct reply_sink *sink, const struct api_header *h)
{
	struct api_status s;

	if (!requests.open || requests.owner != sink->owner) {
		reply_error(sink, h, EINVAL, "no transaction is open");
		return;
	}
	requests.open = 0;
	if (requests.failed) {
		object_abort();
		object_totals.refused++;
		reply_status(sink, h, &requests.failure);
		return;
	}
	object_commit(&s);
	reply_usage(sink, h);
	reply_status(sink, h, &s);
}

static void abort_open(struct reply_sink *sink, const struct api_header *h)
{
	struct api_status ok = {0};

	if (requests.open && requests.owner == sink->owner) {
		object_abort();
		requests.open = 0;
	}
	reply_status(sink, h, &ok);
}

void request_client_gone(uint32_t owner)
{
	event_client_gone(owner);
	if (requests.open && requests.owner == owner) {
		object_abort();
		requests.open = 0;
	}
}

static void list_row(const struct api_digest *d, void *arg)
{
	stats_row(arg, d, sizeof(*d));
}

static void list(struct reply_sink *sink, const struct api_header *h)
{
	struct stats_sink s;

	if (sink_open(&s, sink, h, 0) != 0) {
		reply_error(sink, h, ENOMEM, "no memory");
		return;
	}
	object_digests(list_row, &s);
	sink_flush(&s, API_F_LAST);
	free(s.bytes);
}

static void stats(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_stats_request *r = body;
	struct stats_sink s;

	if (h->length != sizeof(*r) || r->table >= API_TABLE_COUNT || requests.table[r->table].fn == NULL ||
		memchr(r->key, 0, API_NAME) == NULL) {
		reply_error(sink, h, EINVAL, "no such table");
		return;
	}
	if (sink_open(&s, sink, h, r->limit) != 0) {
		reply_error(sink, h, ENOMEM, "no memory");
		return;
	}
	requests.table[r->table].fn(&s, r->key);
	sink_flush(&s, API_F_LAST);
	free(s.bytes);
}

static void stream(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_stream_command *c = body;
	struct api_status s = {0};

	if (h->length != sizeof(*c) || memchr(c->name, 0, API_NAME) == NULL || requests.stream == NULL) {
		reply_error(sink, h, EINVAL, "a stream command of the wrong size");
		return;
	}
	s.code = (uint32_t)requests.stream(c);
	if (s.code != 0)
		object_error_text(s.text, sizeof(s.text));
	reply_status(sink, h, &s);
}

static void subscribe(struct reply_sink *sink, const struct api_header *h)
{
	if (sink->offer == NULL || h->length != 0)
		reply_error(sink, h, EINVAL, "events cannot be subscribed to like this");
	else
		event_subscribe(sink, h);
}

static void acknowledge(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_acknowledge *a = body;

	if (h->length != sizeof(*a))
		reply_error(sink, h, EPROTO, "an acknowledgement of the wrong size");
	else
		event_acknowledge(sink, a->sequence);
}

void request_handle(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	switch (h->type) {
	case API_HELLO:
		hello(sink, h, body);
		break;
	case API_BEGIN:
		begin(sink, h);
		break;
	case API_PUT:
	case API_DELETE:
		change(sink, h, body);
		break;
	case API_COMMIT:
		commit(sink, h);
		break;
	case API_ABORT:
		abort_open(sink, h);
		break;
	case API_LIST:
		list(sink, h);
		break;
	case API_STATS:
		stats(sink, h, body);
		break;
	case API_STREAM:
		stream(sink, h, body);
		break;
	case API_SUBSCRIBE:
		subscribe(sink, h);
		break;
	case API_ACKNOWLEDGE:
		acknowledge(sink, h, body);
		break;
	default:
		reply_error(sink, h, ENOSYS, "no such request");
	}
}
