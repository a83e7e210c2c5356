// SPDX-License-Identifier: Apache-2.0
// Events: sequence, acknowledgement, resubscription, take-over, limits; through the request layer and a real socket
// whose client does not read. Reports in a commit's reply, and workers' notices.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/engine.h"
#include "core/event.h"
#include "testkit/socket.h"
#include <stdlib.h>

#define EVENTS 256u // engine.max_events
#define RATE 50u // engine.event_rate

// A client in this process.
struct client {
	struct reply_sink sink; // first
	uint64_t got[1024]; // sequences of events
	uint32_t types[1024];
	uint32_t count;
	uint32_t usages, replies; // rows and statuses of a commit
	uint32_t last_type, last_flags;
	struct api_status status;
	int refuses; // offers: does not read
	int fails; // sends: is gone
};

static int offer(struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct client *c = (struct client *)s;
	const struct api_event *e = rows;

	if (c->refuses)
		return 1;
	c->last_type = h->type;
	c->last_flags = h->flags;
	if (h->flags & API_F_LAST) {
		memcpy(&c->status, rows, sizeof(c->status));
		return 0;
	}
	assert_int_equal(part->part, API_PART_EVENT);
	assert_int_equal(part->size, sizeof(*e));
	for (uint32_t i = 0; i < part->count; i++) {
		assert_int_equal(e[i].boot_id, engine_boot_id());
		c->got[c->count] = e[i].sequence;
		c->types[c->count++] = e[i].type;
	}
	return 0;
}

static int answer(struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct client *c = (struct client *)s;

	if (c->fails)
		return -1;
	c->last_flags = h->flags;
	if (h->flags & API_F_LAST)
		memcpy(&c->status, rows, sizeof(c->status));
	else
		c->usages += part->count;
	c->replies++;
	return 0;
}

static struct client client(uint32_t owner)
{
	return (struct client){.sink = {.send = answer, .offer = offer, .owner = owner}};
}

static void request(struct client *c, uint16_t type, uint16_t part, const void *body, uint32_t length)
{
	kit_request(&c->sink, type, part, body, length);
}

static void acknowledge(struct client *c, uint64_t sequence)
{
	struct api_acknowledge a = {.sequence = sequence};

	request(c, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
}

static int raise(uint32_t type)
{
	struct api_event e = {.type = type, .seid = 1};

	return event_raise(&e);
}

static uint64_t newest; // last sequence given

// Leaves the queue empty, with nothing suppressed unnotified.
static void drain_all(void)
{
	static struct client c;

	for (int i = 0; i < 3; i++) {
		c = client(99);
		request(&c, API_SUBSCRIBE, 0, NULL, 0);
		kit_advance(2000000);
		if (c.count > 0)
			newest = c.got[c.count - 1];
		acknowledge(&c, UINT64_MAX);
		request_client_gone(99);
	}
}

static uint16_t news_number;
static uint32_t news_count, news_lost;
static uint64_t news_last;

static void on_news(uint32_t worker, uint32_t index, uint64_t argument)
{
	assert_int_equal(worker, 0);
	assert_int_equal(index, news_count % EVENT_RING);
	news_last = argument;
	news_count++;
}

static void on_lost(void)
{
	news_lost++;
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_events = EVENTS;
	e.event_rate = RATE;
	news_number = event_notice_register(on_news, on_lost);
	kit_start(&e);
	return 0;
}

static void sequence_and_acknowledgement(void **state)
{
	struct client c = client(1);

	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(raise(API_EVENT_USAGE), 0);
	kit_advance(1000);
	assert_int_equal(c.count, 5);
	assert_int_equal(c.last_type, API_SUBSCRIBE);
	assert_int_equal(c.last_flags, 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(c.got[i], i + 1);
	acknowledge(&c, 3);
	// The same client returns: unacknowledged events are sent again, in order.
	request_client_gone(1);
	struct client again = client(2);
	request(&again, API_SUBSCRIBE, 0, NULL, 0);
	assert_int_equal(again.count, 2);
	assert_int_equal(again.got[0], 4);
	assert_int_equal(raise(API_EVENT_USAGE), 0);
	kit_advance(1000);
	assert_int_equal(again.got[2], 6);
	acknowledge(&again, 1000); // more than it was sent
	assert_int_equal(raise(API_EVENT_USAGE), 0);
	kit_advance(1000);
	assert_int_equal(again.got[3], 7);
	acknowledge(&again, 7);
	request_client_gone(2);
}

static void take_over(void **state)
{
	struct client a = client(1), b = client(2);

	drain_all();
	request(&a, API_SUBSCRIBE, 0, NULL, 0);
	raise(API_EVENT_USAGE);
	kit_advance(1000);
	assert_int_equal(a.count, 1);
	request(&b, API_SUBSCRIBE, 0, NULL, 0);
	assert_int_equal(a.last_flags, API_F_LAST | API_F_ERROR);
	assert_int_equal(a.status.code, ECANCELED);
	assert_int_equal(b.count, 1);
	assert_int_equal(b.got[0], a.got[0]);
	acknowledge(&a, UINT64_MAX); // it has no say any more
	raise(API_EVENT_USAGE);
	kit_advance(1000);
	assert_int_equal(a.count, 1);
	assert_int_equal(b.count, 2);
	request_client_gone(1); // nor does its end matter
	raise(API_EVENT_USAGE);
	kit_advance(1000);
	assert_int_equal(b.count, 3);
	request_client_gone(2);
	struct client c = client(3);
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	assert_int_equal(c.count, 3);
	request_client_gone(3);
}

static void overflow(void **state)
{
	static struct client c;

	drain_all();
	c = client(1);
	for (uint32_t i = 0; i < EVENTS; i++)
		assert_int_equal(raise(API_EVENT_USAGE), 0);
	assert_int_equal(raise(API_EVENT_USAGE), ENOSPC); // the reporter keeps it
	assert_int_equal(raise(API_EVENT_PATH_DOWN), EAGAIN);
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	kit_advance(1000);
	assert_int_equal(c.count, EVENTS);
	acknowledge(&c, c.got[0]);
	kit_advance(1000);
	assert_int_equal(c.count, EVENTS + 1); // and there is word of the other
	assert_int_equal(c.types[EVENTS], API_EVENT_MISSED);
	assert_int_equal(raise(API_EVENT_USAGE), ENOSPC);
	for (uint32_t i = 1; i <= EVENTS; i++)
		assert_int_equal(c.got[i], c.got[i - 1] + 1);
	acknowledge(&c, UINT64_MAX);
	assert_int_equal(raise(API_EVENT_USAGE), 0);
	acknowledge(&c, UINT64_MAX); // not sent yet, so not acknowledged
	kit_advance(1000);
	assert_int_equal(c.count, EVENTS + 2);
	request_client_gone(1);
}

static void rate_limit(void **state)
{
	struct client c = client(1);
	uint32_t passed = 0, missed = 0;

	drain_all();
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	for (int ms = 0; ms < 2000; ms++) {
		passed += raise(API_EVENT_DOWNLINK_DATA) == 0;
		kit_advance(1000);
	}
	assert_in_range(passed, 2 * RATE - 2, 2 * RATE + RATE / 10 + 2);
	assert_int_equal(raise(API_EVENT_ERROR_INDICATION), 0); // another kind has its own limit
	assert_int_equal(raise(API_EVENT_USAGE), 0);
	kit_advance(2000000);
	for (uint32_t i = 0; i < c.count; i++)
		missed += c.types[i] == API_EVENT_MISSED;
	assert_in_range(missed, 1, 4); // once a second at most
	assert_int_equal(c.count, passed + missed + 2);
	assert_int_equal(event_raise(&(struct api_event){.type = 77}), EINVAL);
	// A client that returns is within the same rate, and misses nothing.
	acknowledge(&c, UINT64_MAX);
	uint32_t before = c.count;
	passed = 0;
	for (int ms = 0; ms < 2000; ms++) {
		passed += event_try(&(struct api_event){.type = API_EVENT_DOWNLINK_DATA, .seid = 1}) == 0;
		kit_advance(1000);
	}
	assert_in_range(passed, 2 * RATE - 2, 2 * RATE + RATE / 10 + 2);
	kit_advance(2000000);
	assert_int_equal(c.count, before + passed);
	request_client_gone(1);
}

static void a_client_that_does_not_read(void **state)
{
	struct client c = client(1);

	drain_all();
	c.refuses = 1;
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(raise(API_EVENT_USAGE), 0);
		kit_advance(1000);
	}
	assert_int_equal(c.count, 0);
	c.refuses = 0;
	kit_advance(1000);
	assert_int_equal(c.count, 100);
	request_client_gone(1);
}

static void refused_requests(void **state)
{
	struct client c = client(1);

	c.sink.offer = NULL;
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	assert_int_equal(c.status.code, EINVAL);
	c = client(1);
	request(&c, API_SUBSCRIBE, API_PART_ACKNOWLEDGE, "x", 1);
	assert_int_equal(c.status.code, EINVAL);
	request(&c, API_ACKNOWLEDGE, 0, NULL, 0);
	assert_int_equal(c.status.code, EPROTO);
	acknowledge(&c, 5); // an acknowledgement without a client
}

// The client reads nothing while the queue fills, then everything, across messages that went out in pieces.
static void slow_socket(void **state)
{
	int small = 4096;
	uint64_t next;

	drain_all();
	next = newest + 1;
	assert_int_equal(kit_socket_open(), 0);
	int fd = kit_dial_hello();
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	kit_ask(fd, API_SUBSCRIBE, 0, NULL, 0);
	for (int round = 0; round < 20; round++) {
		uint32_t raised = 0;

		while (raise(API_EVENT_USAGE) == 0)
			raised++;
		assert_int_equal(raised, EVENTS);
		for (int i = 0; i < 10; i++) {
			kit_advance(1000); // returns although the client does not read
			socket_poll(0);
		}
		for (uint32_t got = 0; got < raised;) {
			struct api_header h;
			struct api_part_head part;
			struct api_event e[64];

			kit_read(fd, &h, sizeof(h));
			assert_int_equal(h.type, API_SUBSCRIBE);
			assert_in_range(h.length, sizeof(part) + sizeof(e[0]), sizeof(part) + sizeof(e));
			kit_read(fd, &part, sizeof(part));
			assert_int_equal(part.count * sizeof(e[0]), h.length - sizeof(part));
			kit_read(fd, e, h.length - sizeof(part));
			for (uint32_t i = 0; i < part.count; i++, got++)
				assert_int_equal(e[i].sequence, next++);
		}
		struct api_acknowledge a = {.sequence = next - 1};
		kit_ask(fd, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
	}
	kit_hang_up(fd);
	socket_close();
	drain_all();
}

// Reports in a commit's reply.

static void commit_rows(void **state)
{
	static struct client c;
	struct api_usage u = {.seid = 5, .urr = 1};

	drain_all();
	c = client(1);
	event_commit_begin();
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(event_commit_usage(&u), 0);
	uint32_t n;
	assert_int_equal(event_commit_rows(&n)[0].seid, 5);
	assert_int_equal(n, 5000);
	request(&c, API_BEGIN, 0, NULL, 0);
	request(&c, API_COMMIT, 0, NULL, 0); // begins with none
	assert_int_equal(c.usages, 0);
	assert_int_equal(c.status.code, 0);
	// Reports that a client does not get become events, as the queue takes them.
	event_commit_begin();
	for (uint32_t i = 0; i < 1000; i++)
		event_commit_usage(&u);
	struct api_usage *row = event_commit_take(&n);
	assert_int_equal(n, 1000);
	event_commit_unsent(row + 400, n - 400);
	free(row);
	request(&c, API_SUBSCRIBE, 0, NULL, 0);
	uint32_t got = 0;
	for (int i = 0; i < 100 && got < 600; i++) {
		c.count = 0;
		kit_advance(1000);
		for (uint32_t k = 0; k < c.count; k++)
			assert_int_equal(c.types[k], API_EVENT_USAGE);
		got += c.count;
		acknowledge(&c, UINT64_MAX);
	}
	assert_int_equal(got, 600);
	request_client_gone(1);
}

static void ring(void **state)
{
	struct worker *w = worker_get(0);

	for (uint32_t i = 0; i < EVENT_RING; i++)
		assert_int_equal(event_notify(w, news_number, i, 1000 + i), 0);
	assert_int_equal(event_notify(w, news_number, 9, 9), -1);
	kit_advance(1000);
	assert_int_equal(news_count, EVENT_RING);
	assert_int_equal(news_last, 1000 + EVENT_RING - 1);
	assert_int_equal(news_lost, 1);
	assert_int_equal(event_notify(w, news_number, 0, 5), 0);
	kit_advance(1000);
	assert_int_equal(news_count, EVENT_RING + 1);
	assert_int_equal(news_lost, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_and_acknowledgement),
		cmocka_unit_test(take_over),
		cmocka_unit_test(overflow),
		cmocka_unit_test(rate_limit),
		cmocka_unit_test(a_client_that_does_not_read),
		cmocka_unit_test(refused_requests),
		cmocka_unit_test(slow_socket),
		cmocka_unit_test(commit_rows),
		cmocka_unit_test(ring),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
