// SPDX-License-Identifier: Apache-2.0
// Requests of the contract: one message in, replies out. Used by the socket and by replay's state file alike.
#include "core/engine.h"
#include "core/log.h"
#include "core/trace_inside.h"
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
	int failed; // a PUT or DELETE was refused; reported at COMMIT
	struct api_status failure;
	int (*stream)(const struct api_stream_command *c);
} requests;

struct stats_sink {
	struct reply_sink *reply;
	struct api_header head;
	struct api_part_head part; // count: rows in `bytes`
	uint8_t *bytes;
	uint32_t rows, limit;
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

// ---- replies
// ---------------------------------------------------------------------------------------------------------

static int reply(struct reply_sink *sink, const struct api_header *request, uint16_t flags,
	const struct api_part_head *part, const void *rows)
{
	struct api_header h = {
		.magic = API_MAGIC,
		.type = request->type,
		.flags = flags,
		.length = (uint32_t)(sizeof(*part) + part_padded((uint64_t)part->size * part->count)),
		.sequence = request->sequence,
	};

	return sink->send(sink, &h, part, rows);
}

static void reply_status(struct reply_sink *sink, const struct api_header *request, const struct api_status *s)
{
	const struct api_part_head part = {.part = API_PART_STATUS, .size = sizeof(*s), .count = 1};

	reply(sink, request, API_F_LAST | (s->code ? API_F_ERROR : 0), &part, s);
}

static void reply_error(struct reply_sink *sink, const struct api_header *request, uint32_t code, const char *text)
{
	struct api_status s = {.code = code};

	snprintf(s.text, sizeof(s.text), "%s", text);
	reply_status(sink, request, &s);
}

// Refuses a request in the words of the last object_error().
static void reply_refusal(struct reply_sink *sink, const struct api_header *request, int code)
{
	char text[API_TEXT];

	object_error_text(text, sizeof(text));
	reply_error(sink, request, (uint32_t)code, text);
}

static void sink_flush(struct stats_sink *s, uint16_t flags)
{
	if (!s->gone && reply(s->reply, &s->head, flags, &s->part, s->bytes) != 0)
		s->gone = 1;
	s->part.count = 0;
}

void stats_row(struct stats_sink *s, const void *row, uint32_t length)
{
	if (s->gone || (s->limit != 0 && s->rows >= s->limit))
		return;
	if ((s->part.count + 1) * length > REPLY_BYTES)
		sink_flush(s, 0);
	memcpy(s->bytes + s->part.count * length, row, length);
	s->part.count++;
	s->rows++;
}

static int sink_open(struct stats_sink *s, struct reply_sink *reply_sink, const struct api_header *h, uint16_t part,
	uint32_t row_length, uint32_t limit)
{
	*s = (struct stats_sink){.reply = reply_sink,
		.head = *h,
		.part = {.part = part, .size = (uint16_t)row_length},
		.limit = limit,
		.bytes = malloc(REPLY_BYTES)};
	if (s->bytes == NULL)
		reply_error(reply_sink, h, ENOMEM, "no memory");
	return s->bytes == NULL ? -1 : 0;
}

// ---- requests
// --------------------------------------------------------------------------------------------------------

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

static const struct api_hello *our_hello(void)
{
	static struct api_hello me;

	if (me.version == 0) {
		me.version = API_VERSION;
		me.oldest = API_VERSION_OLDEST;
		me.start_ns = start_ns();
		me.boot_id = engine_boot_id();
		me.pid = (uint32_t)getpid();
		me.tsc_hz = rte_get_tsc_hz();
		me.flags = rte_eal_has_hugepages() ? API_HELLO_HUGE : 0;
		snprintf(me.build, sizeof(me.build), "%s", ISTHMUS_VERSION);
		cpu_model(me.cpu, sizeof(me.cpu));
	}
	me.objects = (uint32_t)object_totals.objects;
	return &me;
}

// What a peer says of itself that we do not know is no order: the tail of HELLO and of a layout is not looked at.
static void read_known(const struct part *p, uint32_t row, void *to, uint32_t size)
{
	memset(to, 0, size);
	memcpy(to, p->rows + (size_t)row * p->size, RTE_MIN(p->size, size));
}

static int agree(const struct api_header *h, const void *body, uint32_t *version)
{
	struct part_reader r = {.at = body, .left = h->length};
	struct api_hello peer;
	struct part p;
	int more = part_next(&r, &p);

	if (more != 1 || p.number != API_PART_HELLO || p.count != 1)
		return object_error(EPROTO,
			"this HELLO is not of contract version %u or later: install both programs from one release",
			API_VERSION_OLDEST);
	read_known(&p, 0, &peer, sizeof(peer));
	*version = contract_version(API_VERSION_OLDEST, API_VERSION, peer.oldest, peer.version);
	if (*version == 0)
		return object_error(EPROTO,
			"the data plane speaks contract versions %u to %u and the control plane %u to %u: install both "
			"programs from releases that have one in common",
			API_VERSION_OLDEST, API_VERSION, peer.oldest, peer.version);
	while ((more = part_next(&r, &p)) == 1)
		for (uint32_t i = 0; p.number == API_PART_LAYOUT && i < p.count; i++) {
			struct api_layout theirs;

			read_known(&p, i, &theirs, sizeof(theirs));
			int error = contract_compare(&theirs, 1, *version);
			if (error != 0)
				return error;
		}
	return more;
}

static void hello(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	const struct api_part_head one = {.part = API_PART_HELLO, .size = sizeof(struct api_hello), .count = 1};
	struct api_part_head list = {.part = API_PART_LAYOUT, .size = sizeof(struct api_layout)};
	const struct api_layout *mine = contract_layouts(&list.count);
	uint32_t version = 0;
	int error = agree(h, body, &version);

	sink->version = error == 0 ? version : 0;
	if (error != 0) {
		char text[API_TEXT];

		object_error_text(text, sizeof(text));
		LOG(WARNING, "a control plane is turned away: %s\n", text);
		reply_error(sink, h, (uint32_t)error, text);
		return;
	}
	if (reply(sink, h, 0, &one, our_hello()) == 0)
		reply(sink, h, API_F_LAST, &list, mine);
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

static int read_change(const struct api_header *h, const void *body, struct api_object_head *head)
{
	struct part_reader r = {.at = body, .left = h->length};
	struct part p;
	int more = part_next(&r, &p);

	if (more == EPROTO)
		return EPROTO;
	if (more == 0 || p.number != API_PART_OBJECT_HEAD || p.count != 1)
		return object_error(EPROTO, "a change does not begin with one %s", part_name(API_PART_OBJECT_HEAD));
	int error = part_fit(&p, sizeof(*head), head, "a change");
	if (error != 0)
		return error;
	if (h->type == API_PUT)
		return object_put_parts(head, &r);
	return r.left == 0 ? object_delete(head) : object_error(EPROTO, "a deletion has a body");
}

static void change(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_object_head head = {0};

	if (!requests.open || requests.owner != sink->owner || requests.failed)
		return; // reported at COMMIT
	int error = read_change(h, body, &head);
	if (error != 0) {
		requests.failed = 1;
		requests.failure = (struct api_status){.code = (uint32_t)error, .kind = head.kind};
		memcpy(requests.failure.key, head.key, API_NAME - 1);
		object_error_text(requests.failure.text, sizeof(requests.failure.text));
	}
}

// Rows of reports before the status. What the client does not get any more becomes events: it is charged for.
static void reply_usage(struct reply_sink *sink, const struct api_header *h)
{
	const uint32_t most = REPLY_BYTES / sizeof(struct api_usage);
	struct api_part_head part = {.part = API_PART_USAGE, .size = sizeof(struct api_usage)};
	uint32_t count;
	const struct api_usage *row = event_commit_rows(&count);

	for (uint32_t i = 0; i < count; i += part.count) {
		part.count = RTE_MIN(count - i, most);
		if (reply(sink, h, 0, &part, row + i) != 0) {
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
	channel_client_gone(owner);
	if (requests.open && requests.owner == owner) {
		object_abort();
		requests.open = 0;
	}
}

static void list_row(const struct api_digest *d, void *arg)
{
	stats_row(arg, d, sizeof(*d));
}

static void list(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_list l;
	struct stats_sink s;
	int error = part_only(body, h->length, API_PART_LIST, &l, sizeof(l), "a LIST");

	if (error == 0 && (l.kind == 0 || l.kind >= API_KIND_COUNT))
		error = object_error(EINVAL, "a LIST of kind %u, which is not known", l.kind);
	if (error == 0 && l.first > l.last)
		error = object_error(EINVAL, "a LIST that runs backwards, from %#lx to %#lx", l.first, l.last);
	if (error != 0) {
		reply_refusal(sink, h, error);
		return;
	}
	if (l.limit == 0 || l.limit > API_LIST_MOST)
		l.limit = API_LIST_MOST;
	if (sink_open(&s, sink, h, API_PART_DIGEST, sizeof(struct api_digest), 0) != 0)
		return;
	int more = object_list(&l, list_row, &s);
	sink_flush(&s, API_F_LAST | (more ? API_F_MORE : 0));
	free(s.bytes);
}

// The rows of a table are the part of its number; punted packets are counted by reasons, as dropped ones are.
static uint16_t rows_of(uint32_t table)
{
	return (uint16_t)(128 + (table == API_TABLE_PUNT ? API_TABLE_DROP : table));
}

static void stats(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_stats_request q;
	struct stats_sink s;
	int error = part_only(body, h->length, API_PART_STATS_REQUEST, &q, sizeof(q), "a request for rows");

	if (error == 0 && (q.table >= API_TABLE_COUNT || requests.table[q.table].fn == NULL ||
				  memchr(q.key, 0, API_NAME) == NULL))
		error = object_error(EINVAL, "no such table");
	if (error != 0) {
		reply_refusal(sink, h, error);
		return;
	}
	if (sink_open(&s, sink, h, rows_of(q.table), requests.table[q.table].row_length, q.limit) != 0)
		return;
	requests.table[q.table].fn(&s, q.key);
	sink_flush(&s, API_F_LAST);
	free(s.bytes);
}

static void stream(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_stream_command c;
	struct api_status s = {0};
	int error = part_only(body, h->length, API_PART_STREAM_COMMAND, &c, sizeof(c), "a stream command");

	if (error == 0 && (memchr(c.name, 0, API_NAME) == NULL || requests.stream == NULL))
		error = object_error(EINVAL, "no such stream");
	if (error == 0)
		error = requests.stream(&c);
	if (error != 0)
		reply_refusal(sink, h, error);
	else
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
	struct api_acknowledge a;
	int error = part_only(body, h->length, API_PART_ACKNOWLEDGE, &a, sizeof(a), "an acknowledgement");

	if (error != 0)
		reply_refusal(sink, h, error);
	else
		event_acknowledge(sink, a.sequence);
}

static void open_channel(struct reply_sink *sink, const struct api_header *h)
{
	if (sink->offer == NULL || h->length != 0)
		reply_error(sink, h, EINVAL, "the channel cannot be opened like this");
	else
		channel_open(sink, h);
}

static void send_frames(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	int error = channel_send(sink, h, body);

	if (error != 0)
		reply_refusal(sink, h, error);
}

// ---- traces
// ----------------------------------------------------------------------------------------------------------

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

static void trace(struct reply_sink *sink, const struct api_header *h, const void *body)
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

static void trace_row(void *arg, const struct api_trace_row *row)
{
	stats_row(arg, row, sizeof(*row));
}

#define TRACE_ROWS_OF_POLL 2048 // of each worker

static void poll_trace(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_trace_state state;
	struct api_trace_poll p;
	struct stats_sink s;
	int error = part_only(body, h->length, API_PART_TRACE_POLL, &p, sizeof(p), "a poll of a trace");

	if (error == 0) {
		if (sink_open(&s, sink, h, API_PART_TRACE_ROW, sizeof(struct api_trace_row), 0) != 0)
			return;
		error = trace_poll(&p, TRACE_ROWS_OF_POLL, trace_row, &s, &state);
		if (error == 0)
			sink_flush(&s, 0);
		free(s.bytes);
	}
	if (error != 0)
		reply_refusal(sink, h, error);
	else
		reply_trace(sink, h, &state);
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
		list(sink, h, body);
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
	case API_CHANNEL:
		open_channel(sink, h);
		break;
	case API_CHANNEL_SEND:
		send_frames(sink, h, body);
		break;
	case API_TRACE:
		trace(sink, h, body);
		break;
	case API_TRACE_POLL:
		poll_trace(sink, h, body);
		break;
	default:
		reply_error(sink, h, ENOSYS, "no such request");
	}
}
