// SPDX-License-Identifier: Apache-2.0
// Time that the control thread is held while a client reads a table of a million rows, slowly or fast, and the latency
// of another client's request.
#include "core/engine.h"
#include "testkit/testkit.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ROWS 1000000u
#define SECONDS 5

static char path[64];
static uint32_t table; // no module's
static volatile int over;

struct reader {
	int asks;
	uint32_t pause_us; // between two reads of 64 KiB
	uint64_t bytes;
	double seconds;
};

static uint64_t million_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	static struct api_session_row row;

	row.seid = place;
	stats_row(s, &row, sizeof(row));
	return place + 1 < ROWS ? place + 1 : 0;
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ask(int fd, uint16_t type, uint16_t number, const void *body, uint16_t size)
{
	struct {
		struct api_header h;
		struct api_part_head part;
		uint8_t body[256];
	} m = {{.magic = API_MAGIC, .type = type, .length = sizeof(m.part) + (size + 7u) / 8 * 8},
		{.part = number, .size = size, .count = 1}, {0}};

	memcpy(m.body, body, size);
	if (write(fd, &m, sizeof(m.h) + m.h.length) < 0)
		exit(1);
}

// Reads one reply to its end. Returns its bytes, 0 when the connection has ended.
static uint64_t answer(int fd, uint32_t pause_us)
{
	static __thread uint8_t body[1 << 17];
	struct api_header h = {0};
	uint64_t bytes = 0;

	while (!(h.flags & API_F_LAST) && !over) {
		if (recv(fd, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.length > sizeof(body) ||
			recv(fd, body, h.length, MSG_WAITALL) != (ssize_t)h.length)
			return 0;
		bytes += sizeof(h) + h.length;
		if (pause_us != 0)
			usleep(pause_us);
	}
	return bytes;
}

static int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct api_hello me = {.version = API_VERSION, .oldest = API_VERSION_OLDEST};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		exit(1);
	ask(fd, API_HELLO, API_PART_HELLO, &me, sizeof(me));
	answer(fd, 0);
	return fd;
}

static void *read_table(void *arg)
{
	struct reader *r = arg;
	struct api_stats_request q = {.table = table};
	int fd = dial();
	double start = now(CLOCK_MONOTONIC);

	if (r->asks) {
		ask(fd, API_STATS, API_PART_STATS_REQUEST, &q, sizeof(q));
		r->bytes = answer(fd, r->pause_us);
	}
	r->seconds = now(CLOCK_MONOTONIC) - start;
	close(fd);
	return NULL;
}

static void *ask_totals(void *arg)
{
	struct api_stats_request q = {.table = API_TABLE_TOTAL};
	double *longest = arg;
	int fd = dial();

	while (!over) {
		double start = now(CLOCK_MONOTONIC);

		ask(fd, API_STATS, API_PART_STATS_REQUEST, &q, sizeof(q));
		if (answer(fd, 0) == 0)
			break;
		*longest = RTE_MAX(*longest, now(CLOCK_MONOTONIC) - start);
		usleep(1000);
	}
	close(fd);
	return NULL;
}

static void run(const char *name, struct reader r)
{
	double longest_answer = 0, longest_turn = 0, longest_work = 0, end = now(CLOCK_MONOTONIC) + SECONDS;
	pthread_t a, b;

	over = 0;
	pthread_create(&a, NULL, read_table, &r);
	pthread_create(&b, NULL, ask_totals, &longest_answer);
	while (now(CLOCK_MONOTONIC) < end) {
		uint64_t rest = control_rest();
		double start = now(CLOCK_MONOTONIC), work = now(CLOCK_THREAD_CPUTIME_ID);

		socket_poll(rest);
		host_path_poll();
		control_run_timers();
		longest_turn = RTE_MAX(longest_turn, now(CLOCK_MONOTONIC) - start - (double)rest / 1e9);
		longest_work = RTE_MAX(longest_work, now(CLOCK_THREAD_CPUTIME_ID) - work);
	}
	over = 1;
	for (int i = 0; i < 2000; i++)
		socket_poll(1000000);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	printf("%-20s a turn of the control thread %8.1f ms at most, its own time %6.2f ms; another's request %6.1f "
	       "ms; "
	       "%.0f MB in %.2f s\n",
		name, 1e3 * longest_turn, 1e3 * longest_work, 1e3 * longest_answer, (double)r.bytes / 1e6, r.seconds);
}

int main(void)
{
	struct api_engine e = kit_engine();

	e.flags = API_ENGINE_IDLE_SLEEP;
	engine_mode.threads = 1;
	stats_table_register(table, sizeof(struct api_session_row), million_rows);
	sleeper_open(&control_sleeper);
	kit_start(&e);
	snprintf(path, sizeof(path), "/tmp/socket-bench-%d.sock", getpid());
	if (socket_open(path) != 0)
		return 1;
	run("no reader of tables", (struct reader){0});
	run("a fast one", (struct reader){.asks = 1});
	run("64 KiB in 100 ms", (struct reader){.asks = 1, .pause_us = 100000});
	run("64 KiB in 900 ms", (struct reader){.asks = 1, .pause_us = 900000});
	socket_close();
	engine_stop_workers();
	return 0;
}
