// SPDX-License-Identifier: Apache-2.0
// Requests of the contract.
#include "core/request.h"
#include "core/channel.h"
#include "core/contract.h"
#include "core/event.h"
#include "core/log.h"
#include "core/object.h"
#include "core/reply.h"
#include "core/trace_inside.h"
#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	uint32_t owner; // client of the open transaction
	int open;
	uint64_t since_ns; // it is open
	int failed; // a PUT or DELETE was refused; reported at COMMIT
	struct api_status failure;
	int (*stream)(const struct api_stream_command *c);
} requests;

void stream_handler_register(int (*fn)(const struct api_stream_command *c))
{
	requests.stream = fn;
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
		me.start_ns = engine_start_ns();
		me.boot_id = engine_boot_id();
		me.pid = (uint32_t)getpid();
		me.tsc_hz = rte_get_tsc_hz();
		me.flags = rte_eal_has_hugepages() ? API_HELLO_HUGE : 0;
		snprintf(me.build, sizeof(me.build), "%s (%s)", ISTHMUS_VERSION, ISTHMUS_LEVEL);
		cpu_model(me.cpu, sizeof(me.cpu));
	}
	me.objects = (uint32_t)object_totals.objects;
	return &me;
}

// Unknown fields of a peer's HELLO and layouts are no orders: the tail is ignored.
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
		struct api_status s = {.code = (uint32_t)error};

		object_error_status(&s);
		LOG(WARNING, "a control plane is turned away: %s\n", s.text);
		reply_status(sink, h, &s);
		return;
	}
	if (reply(sink, h, 0, &one, our_hello()) == 0)
		reply(sink, h, API_F_LAST, &list, mine);
}

static void begin(struct reply_sink *sink, const struct api_header *h, const void *body)
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
	requests.since_ns = control_now_ns();
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
		object_error_status(&requests.failure);
	}
}

// Rows of reports before the status. Undelivered ones become events, because they are charged for.
static uint64_t usage_step(struct stats_sink *s)
{
	const uint32_t most = REPLY_BYTES / sizeof(struct api_usage);
	const uint32_t left = s->commit.count - (uint32_t)s->place;

	s->commit.taken = (uint32_t)s->place;
	if (left == 0)
		return 0;
	memcpy(s->bytes, s->commit.row + s->place, RTE_MIN(left, most) * sizeof(struct api_usage));
	s->part.count = RTE_MIN(left, most);
	rows_send(s, 0);
	return s->gone ? s->place : s->place + RTE_MIN(left, most);
}

static void usage_end(struct stats_sink *s)
{
	s->commit.taken = s->commit.count;
	reply_status(s->to, &s->request, &s->commit.status);
}

static void usage_forget(struct stats_sink *s, int all_taken)
{
	uint32_t from = all_taken ? RTE_MAX(s->commit.taken, (uint32_t)s->place) : s->commit.taken;

	event_commit_unsent(s->commit.row + from, s->commit.count - from);
	free(s->commit.row);
}

static void reply_commit(struct reply_sink *sink, const struct api_header *h, const struct api_status *status)
{
	uint32_t count;
	struct api_usage *row = event_commit_take(&count);
	struct stats_sink *s = row != NULL ? rows_open(sink, h, API_PART_USAGE, sizeof(*row)) : NULL;

	if (s != NULL) {
		s->commit.row = row;
		s->commit.count = count;
		s->commit.status = *status;
		s->step = usage_step;
		s->end = usage_end;
		s->forget = usage_forget;
		return;
	}
	event_commit_unsent(row, count);
	free(row);
	if (row == NULL)
		reply_status(sink, h, status);
}

static void commit(struct reply_sink *sink, const struct api_header *h, const void *body)
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
	reply_commit(sink, h, &s);
}

static void abort_open(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_status ok = {0};

	if (requests.open && requests.owner == sink->owner) {
		object_abort();
		requests.open = 0;
	}
	reply_status(sink, h, &ok);
}

uint64_t request_open_since(const struct reply_sink *sink)
{
	return requests.open && requests.owner == sink->owner ? requests.since_ns : 0;
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

static uint64_t list_step(struct stats_sink *s)
{
	const struct api_list *l = &s->list.want;

	return object_list(l, s->place != 0 ? s->place : l->first, &s->list.room, &s->list.more, list_row, s);
}

static void list_end(struct stats_sink *s)
{
	rows_send(s, API_F_LAST | (s->list.more ? API_F_MORE : 0));
}

static void list(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_list l;
	int error = part_only(body, h->length, API_PART_LIST, &l, sizeof(l), "a LIST");

	if (error == 0 && (l.kind == 0 || l.kind >= API_KIND_COUNT))
		error = object_error(EINVAL, "a LIST of kind %u, which is not known", l.kind);
	if (error == 0 && l.first > l.last)
		error = object_error(EINVAL, "a LIST that runs backwards, from %#lx to %#lx", l.first, l.last);
	if (error != 0) {
		reply_refusal(sink, h, error);
		return;
	}
	struct stats_sink *s = rows_open(sink, h, API_PART_DIGEST, sizeof(struct api_digest));
	if (s == NULL)
		return;
	s->list.want = l;
	s->list.room = l.limit == 0 ? API_LIST_MOST : RTE_MIN(l.limit, API_LIST_MOST);
	s->step = list_step;
	s->end = list_end;
}

// The rows of a table are the part of its number; punted packets are counted by reasons, as dropped ones are.
static uint16_t rows_of(uint32_t table)
{
	return (uint16_t)(128 + (table == API_TABLE_PUNT ? API_TABLE_DROP : table));
}

static uint64_t table_step(struct stats_sink *s)
{
	return s->table.fn(s, s->table.key, s->place);
}

static void table_end(struct stats_sink *s)
{
	rows_send(s, API_F_LAST);
}

static void stats(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct api_stats_request q;
	int error = part_only(body, h->length, API_PART_STATS_REQUEST, &q, sizeof(q), "a request for rows");
	uint32_t length = 0;
	stats_fn fn = error == 0 ? stats_table(q.table, &length) : NULL;

	if (error == 0 && (fn == NULL || memchr(q.key, 0, API_NAME) == NULL))
		error = object_error(EINVAL, "no such table");
	if (error != 0) {
		reply_refusal(sink, h, error);
		return;
	}
	struct stats_sink *s = rows_open(sink, h, rows_of(q.table), length);
	if (s == NULL)
		return;
	s->limit = q.limit;
	s->table.fn = fn;
	memcpy(s->table.key, q.key, API_NAME);
	s->step = table_step;
	s->end = table_end;
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

static void subscribe(struct reply_sink *sink, const struct api_header *h, const void *body)
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

static void open_channel(struct reply_sink *sink, const struct api_header *h, const void *body)
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

static void (*const handlers[])(struct reply_sink *sink, const struct api_header *h, const void *body) = {
	[API_HELLO] = hello,
	[API_BEGIN] = begin,
	[API_PUT] = change,
	[API_DELETE] = change,
	[API_COMMIT] = commit,
	[API_ABORT] = abort_open,
	[API_LIST] = list,
	[API_STATS] = stats,
	[API_STREAM] = stream,
	[API_SUBSCRIBE] = subscribe,
	[API_ACKNOWLEDGE] = acknowledge,
	[API_CHANNEL] = open_channel,
	[API_CHANNEL_SEND] = send_frames,
	[API_TRACE] = request_trace,
	[API_TRACE_POLL] = request_trace_poll,
};

void request_handle(struct reply_sink *sink, const struct api_header *h, const void *body)
{
	if (h->type < RTE_DIM(handlers) && handlers[h->type] != NULL)
		handlers[h->type](sink, h, body);
	else
		reply_error(sink, h, ENOSYS, "no such request");
	while (sink->rest != NULL && !sink->paced)
		request_continue(sink, UINT64_MAX);
}
