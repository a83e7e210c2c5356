// SPDX-License-Identifier: Apache-2.0
// The control socket waits for no client: not for a silent, a slow or a surplus one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/event.h"
#include "testkit/socket.h"
#include <rte_cycles.h>
#include <stdlib.h>

#define SESSIONS 8192u // two megabytes of rows, ten times the kernel's buffer for a client
#define SECOND 1000000u

static const uint8_t home[6] = {2, 0, 0, 0, 5, 1};
static uint8_t body[KIT_MESSAGE];
static uint32_t slow_table; // no module's

struct with_urr {
	struct kit_session k;
	struct api_urr urr;
};

static const char *name_of(uint32_t i)
{
	static char name[API_NAME];

	snprintf(name, sizeof(name), "s%u", i);
	return name;
}

static void put_sessions(void)
{
	kit_begin();
	for (uint32_t i = 0; i < SESSIONS; i++) {
		char ue[32];
		struct with_urr s;

		snprintf(ue, sizeof(ue), "100.64.%u.%u", i >> 8, i & 255);
		s.k = kit_session("access", home, (uint16_t)(1 + i / 4000), (uint16_t)(1 + i % 4000), 0, ue, NULL,
			"upf", 0x1000 + i);
		s.urr = (struct api_urr){.id = 1, .method = API_URR_VOLUME, .triggers = API_URR_VOLTH};
		s.k.s.urrs = 1;
		s.k.pdr[0].urrs = 1;
		s.k.pdr[0].urr[0] = 1;
		kit_put(API_SESSION, name_of(i), &s, sizeof(s));
	}
	assert_int_equal(kit_commit(), 0);
}

// A thousand rows, each of which takes a tenth of a millisecond to make.
static uint64_t slow_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	struct api_total_row row = {.in = place};

	engine_mode.virtual_now += rte_get_tsc_hz() / 10000;
	stats_row(s, &row, sizeof(row));
	return stats_next(place, 1000);
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_sessions = SESSIONS;
	e.max_events = 2 * SESSIONS;
	stats_table_register(slow_table, sizeof(struct api_total_row), slow_rows);
	kit_start(&e);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_interface("n3", "core", "10.0.0.1/24", NULL);
	kit_path("upf", "10.0.0.1", "10.0.0.2");
	assert_int_equal(kit_commit(), 0);
	put_sessions();
	return 0;
}

static int open_socket(void **state)
{
	return kit_socket_open();
}

static int shut_socket(void **state)
{
	for (int i = 0; i < 64; i++)
		socket_poll(0);
	uint64_t closed;
	assert_int_equal(socket_clients(&closed), 0);
	socket_close();
	return 0;
}

static uint64_t closed(void)
{
	uint64_t n;

	socket_clients(&n);
	return n;
}

static void visits(int n)
{
	while (n-- > 0)
		socket_poll(0);
}

// A second each, including one visit's work.
static void seconds(int n)
{
	while (n-- > 0) {
		kit_advance(SECOND);
		visits(1);
	}
}

static void ask_rows(int fd, uint32_t table)
{
	struct api_stats_request q = {.table = table};

	kit_ask(fd, API_STATS, API_PART_STATS_REQUEST, &q, sizeof(q));
}

static void ask_list(int fd, uint32_t kind)
{
	struct api_list l = {.kind = kind, .last = UINT64_MAX};

	kit_ask(fd, API_LIST, API_PART_LIST, &l, sizeof(l));
}

// Reads one reply to its end. Returns its rows; *sum: of the numbers at `offset` in rows with a session.
static uint32_t read_rows(int fd, uint32_t name_at, uint64_t *sum)
{
	struct api_header h = {0};
	struct api_part_head part;
	uint32_t rows = 0;

	*sum = 0;
	while (!(h.flags & API_F_LAST)) {
		h = kit_answer(fd, body);
		assert_false(h.flags & API_F_ERROR);
		memcpy(&part, body, sizeof(part));
		for (uint32_t i = 0; i < part.count; i++)
			*sum += strtoull((char *)body + sizeof(part) + i * part.size + name_at + 1, NULL, 10);
		rows += part.count;
	}
	return rows;
}

static void all_there(int fd, uint32_t name_at, uint32_t each)
{
	uint64_t sum;

	assert_int_equal(read_rows(fd, name_at, &sum), each * SESSIONS);
	assert_int_equal(sum, (uint64_t)each * SESSIONS * (SESSIONS - 1) / 2);
}

static uint32_t begin(int fd)
{
	kit_ask(fd, API_BEGIN, 0, NULL, 0);
	return kit_status_of(fd).code;
}

static void put_path(int fd, const char *name)
{
	uint8_t bytes[2048];
	struct api_path p = {.local = kit_address("10.0.0.1"), .peer = kit_address("10.0.0.7")};
	struct api_object_head o = {.kind = API_PATH};
	struct api_part_head part = {.part = API_PART_PATH, .size = sizeof(p), .count = 1};
	struct api_header h;

	snprintf(o.key, sizeof(o.key), "%s", name);
	uint32_t n = kit_message(bytes, API_PUT, API_PART_OBJECT_HEAD, &o, sizeof(o));
	memcpy(&h, bytes, sizeof(h));
	h.length += (uint32_t)(sizeof(part) + part_padded(sizeof(p)));
	memcpy(bytes, &h, sizeof(h));
	memset(bytes + n, 0, sizeof(part) + part_padded(sizeof(p)));
	memcpy(bytes + n, &part, sizeof(part));
	memcpy(bytes + n + sizeof(part), &p, sizeof(p));
	kit_write(fd, bytes, sizeof(h) + h.length);
}

static uint32_t commit(int fd)
{
	kit_ask(fd, API_COMMIT, 0, NULL, 0);
	return kit_status_of(fd).code;
}

// Three replies wait for their readers; others are served, without elapsed time, and then the three get all.
static void others_go_on(void **state)
{
	int rows = kit_dial_hello(), rules = kit_dial_hello(), list = kit_dial_hello(), other = kit_dial_hello();
	uint64_t before = control_now_ns(), sum;

	ask_rows(rows, API_TABLE_SESSION);
	ask_rows(rules, API_TABLE_RULE);
	ask_list(list, API_SESSION);
	visits(100);
	ask_rows(other, API_TABLE_TOTAL);
	visits(2);
	assert_int_equal(control_now_ns(), before);
	assert_int_equal(read_rows(other, 0, &sum), 1);
	assert_int_equal(begin(other), 0);
	put_path(other, "meanwhile");
	assert_int_equal(commit(other), 0);
	assert_int_equal(control_now_ns(), before);
	all_there(rows, offsetof(struct api_session_row, name), 1);
	all_there(rules, offsetof(struct api_rule_row, session), 2);
	all_there(list, offsetof(struct api_digest, key), 1);
	// And what they ask then.
	ask_list(rows, API_SESSION);
	all_there(rows, offsetof(struct api_digest, key), 1);
	kit_hang_up(rows), kit_hang_up(rules), kit_hang_up(list), kit_hang_up(other);
}

// A table of a tenth of a second is made a millisecond at a time, and another request is answered in between.
static void rows_have_a_budget(void **state)
{
	int slow = kit_dial_hello(), other = kit_dial_hello(), turns = 0;
	uint64_t sum;

	ask_rows(slow, slow_table);
	for (struct pollfd p = {.fd = slow, .events = POLLIN}; poll(&p, 1, 0) == 0; turns++) {
		uint64_t before = control_now_ns();

		ask_rows(other, API_TABLE_TOTAL); // has a visit
		visits(1);
		uint64_t took = control_now_ns() - before;
		assert_in_range(took, 0, 2 * 2600000); // each a millisecond, and at most sixteen rows more
		assert_int_equal(recv(other, body, sizeof(body), MSG_DONTWAIT) > 0, 1);
	}
	assert_in_range(turns, 10, 60); // half of them fill the first message
	assert_int_equal(read_rows(slow, 0, &sum), 1000);
	kit_hang_up(slow), kit_hang_up(other);
}

static void reader_is_closed(void **state)
{
	int fd = kit_dial_hello();
	uint64_t before = closed();

	ask_rows(fd, API_TABLE_SESSION);
	seconds(9);
	assert_int_equal(closed(), before);
	seconds(2);
	assert_int_equal(closed(), before + 1);
	assert_true(kit_is_closed(fd));
	close(fd);
}

// The time limit is for a whole reply, however many pieces the client reads it in.
static void trickling_reader_is_closed(void **state)
{
	int fd = kit_dial_hello(), turns = 0;
	uint64_t before = closed();

	ask_rows(fd, API_TABLE_SESSION);
	for (; closed() == before && turns < 100; turns++) {
		assert_true(recv(fd, body, 16384, MSG_DONTWAIT) > 0);
		seconds(1);
	}
	assert_in_range(turns, 10, 20);
	close(fd);
}

static void deaf_subscriber_is_closed(void **state)
{
	int fd = kit_dial_hello();
	uint64_t before = closed();
	uint32_t got = 0;

	kit_ask(fd, API_SUBSCRIBE, 0, NULL, 0);
	for (uint32_t i = 0; i < SESSIONS; i++)
		assert_int_equal(event_raise(&(struct api_event){.type = API_EVENT_USAGE, .seid = i}), 0);
	seconds(13);
	assert_int_equal(closed(), before + 1);
	close(fd);
	fd = kit_dial_hello(); // nothing is lost
	kit_ask(fd, API_SUBSCRIBE, 0, NULL, 0);
	for (struct api_part_head part; got < SESSIONS; got += part.count) {
		kit_answer(fd, body);
		memcpy(&part, body, sizeof(part));
		struct api_acknowledge a = {.sequence = UINT64_MAX};
		kit_ask(fd, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
	}
	assert_int_equal(got, SESSIONS);
	kit_hang_up(fd);
}

// Requests of a client that does not read wait in its connection, not in our memory.
static void requests_without_reading(void **state)
{
	struct api_stats_request q = {.table = API_TABLE_DROP};
	int fd = kit_dial_hello();
	uint32_t n = kit_message(body, API_STATS, API_PART_STATS_REQUEST, &q, sizeof(q)), asked = 0;
	uint64_t sum;

	for (int stuck = 0; stuck < 100; stuck++) {
		for (; send(fd, body, n, MSG_NOSIGNAL) == (ssize_t)n; stuck = 0)
			asked++;
		visits(1);
	}
	assert_in_range(asked, 10, 10000);
	for (uint32_t i = 0; i < asked; i++)
		assert_true(read_rows(fd, 0, &sum) > 50);
	kit_hang_up(fd);
}

// Who does not end a transaction.

static void silent_transaction(void **state)
{
	int fd = kit_dial_hello(), other = kit_dial_hello();
	uint64_t before = closed();

	assert_int_equal(begin(fd), 0);
	put_path(fd, "never");
	seconds(1);
	assert_int_equal(begin(other), EBUSY);
	seconds(2);
	assert_int_equal(closed(), before + 1);
	assert_true(kit_is_closed(fd));
	assert_int_equal(begin(other), 0);
	put_path(other, "after");
	assert_int_equal(commit(other), 0);
	assert_false(object_is_there(API_PATH, "never"));
	assert_true(object_is_there(API_PATH, "after"));
	kit_hang_up(other);
	close(fd);
}

static void endless_transaction(void **state)
{
	int fd = kit_dial_hello(), turns = 0;
	uint64_t before = closed();
	char name[API_NAME];

	assert_int_equal(begin(fd), 0);
	for (; closed() == before && turns < 100; turns++) {
		snprintf(name, sizeof(name), "never-%d", turns);
		put_path(fd, name);
		seconds(1);
	}
	assert_in_range(turns, 28, 31);
	assert_false(object_is_there(API_PATH, "never-0"));
	close(fd);
}

static void slow_transaction(void **state)
{
	int fd = kit_dial_hello();
	char name[API_NAME];

	assert_int_equal(begin(fd), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "slow-%d", i);
		put_path(fd, name);
		seconds(1);
	}
	assert_int_equal(commit(fd), 0);
	assert_true(object_is_there(API_PATH, "slow-19"));
	seconds(60); // none is open
	assert_false(kit_is_closed(fd));
	kit_hang_up(fd);
}

static void strangers(void **state)
{
	int fd[64], friends[16];
	uint64_t before = closed();

	for (int i = 0; i < 64; i++)
		fd[i] = kit_dial();
	visits(1);
	assert_int_equal(closed(), before + 60);
	int friend = kit_dial_hello();
	assert_true(kit_is_closed(fd[0]));
	assert_false(kit_is_closed(fd[63]));
	assert_false(kit_is_closed(friend));
	kit_hang_up(friend);
	for (int i = 0; i < 64; i++)
		kit_hang_up(fd[i]);
	// Those with a HELLO stay; a newcomer is turned away while they have all places.
	before = closed();
	for (int i = 0; i < 16; i++)
		friends[i] = kit_dial_hello();
	fd[0] = kit_dial();
	visits(1);
	assert_int_equal(closed(), before + 1);
	assert_true(kit_is_closed(fd[0]));
	for (int i = 0; i < 16; i++) {
		assert_false(kit_is_closed(friends[i]));
		kit_hang_up(friends[i]);
	}
	close(fd[0]);
}

static void long_hello(void **state)
{
	struct api_header h = {.magic = API_MAGIC, .type = API_HELLO, .length = API_MAX_BODY};
	int fd = kit_dial();

	kit_write(fd, &h, sizeof(h));
	visits(1);
	assert_true(kit_is_closed(fd));
	close(fd);
}

// A socket whose last close(2) would block for an hour arrives without SO_LINGER or not at all. (This one is not the
// last.)
static void lingering_descriptor(void **state)
{
	struct linger l = {.l_onoff = 1, .l_linger = 3600};
	int fd = kit_dial(), file = socket(AF_INET, SOCK_STREAM, 0);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec part = {body, 1};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	socklen_t n = sizeof(l);

	memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	assert_int_equal(setsockopt(file, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
	ssize_t k = sendmsg(fd, &m, MSG_NOSIGNAL);
	assert_true(k == 1 || errno == EPERM); // kernels before 6.16, others
	visits(2);
	assert_int_equal(getsockopt(file, SOL_SOCKET, SO_LINGER, &l, &n), 0);
	assert_true(k != 1 || l.l_onoff == 0);
	close(file);
	close(fd);
}

// Reports in a commit's reply.

// Until no more come.
static uint32_t count_events(int fd)
{
	struct api_part_head part;
	uint32_t n = 0;

	for (int quiet = 0; quiet < 64;) {
		if (recv(fd, body, 1, MSG_PEEK | MSG_DONTWAIT) < 0) {
			kit_advance(1000);
			visits(1);
			quiet++;
			continue;
		}
		kit_answer(fd, body);
		memcpy(&part, body, sizeof(part));
		n += part.count;
		quiet = 0;
	}
	return n;
}

// Each of the sessions that go has a report: in a message that the client has, or as an event. The client reads
// nothing until it has lost its connection, also by itself.
static void lose_reader_of_reports(int by_itself)
{
	struct api_object_head o = {.kind = API_SESSION};
	int fd = kit_dial_hello(), events = kit_dial_hello();
	struct api_acknowledge all = {.sequence = UINT64_MAX};
	uint32_t in_reply = 0, used = 0, count;
	static uint8_t left[1 << 20];
	ssize_t k;

	kit_ask(events, API_SUBSCRIBE, 0, NULL, 0);
	assert_int_equal(begin(fd), 0);
	for (uint32_t i = 0; i < SESSIONS; i++) {
		snprintf(o.key, sizeof(o.key), "%s", name_of(i));
		kit_ask(fd, API_DELETE, API_PART_OBJECT_HEAD, &o, sizeof(o));
	}
	kit_ask(fd, API_COMMIT, 0, NULL, 0);
	visits(64);
	if (by_itself)
		assert_int_equal(shutdown(fd, SHUT_RD), 0);
	seconds(by_itself ? 1 : 12);
	while ((k = recv(fd, left + used, sizeof(left) - used, MSG_DONTWAIT)) > 0)
		used += (uint32_t)k;
	assert_int_equal(k, 0);
	struct api_header h;
	for (uint32_t at = 0; at + sizeof(h) <= used; at += (uint32_t)sizeof(h) + h.length) {
		memcpy(&h, left + at, sizeof(h));
		if (at + sizeof(h) + h.length > used)
			break; // it has a part of the message
		memcpy(&count, left + at + sizeof(h) + offsetof(struct api_part_head, count), sizeof(count));
		in_reply += count;
	}
	assert_in_range(in_reply, 1, SESSIONS - 1);
	assert_int_equal(in_reply + count_events(events), SESSIONS);
	kit_ask(events, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &all, sizeof(all));
	kit_hang_up(events);
	close(fd);
}

static void reports_that_nobody_reads(void **state)
{
	lose_reader_of_reports(0);
}

static void reports_of_a_reader_that_goes(void **state)
{
	put_sessions();
	lose_reader_of_reports(1);
}

#define SOCKET_TEST(fn) cmocka_unit_test_setup_teardown(fn, open_socket, shut_socket)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SOCKET_TEST(others_go_on),
		SOCKET_TEST(rows_have_a_budget),
		SOCKET_TEST(reader_is_closed),
		SOCKET_TEST(trickling_reader_is_closed),
		SOCKET_TEST(deaf_subscriber_is_closed),
		SOCKET_TEST(requests_without_reading),
		SOCKET_TEST(silent_transaction),
		SOCKET_TEST(endless_transaction),
		SOCKET_TEST(slow_transaction),
		SOCKET_TEST(strangers),
		SOCKET_TEST(long_hello),
		SOCKET_TEST(lingering_descriptor),
		SOCKET_TEST(reports_that_nobody_reads),
		SOCKET_TEST(reports_of_a_reader_that_goes),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
