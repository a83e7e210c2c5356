// SPDX-License-Identifier: Apache-2.0
// Frames offered by several threads are in the file, read back through libpcap: every Nth, whole, in order.
#include "traffic/engine/capture.h"
#include <pcap/pcap.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ull
#define START (1700000000 * SECOND + 123456789) // in nanoseconds since 1970

static char path[] = "/tmp/capture-test-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	return unlink(path);
}

static struct capture *open_it(uint32_t every, uint32_t count, uint32_t threads)
{
	struct job_capture want = {.every = every, .count = count};
	char error[200] = "";

	snprintf(want.file, sizeof(want.file), "%s", path);
	struct capture *c = capture_open(&want, threads, error, sizeof(error));
	if (c == NULL)
		fail_msg("%s", error);
	return c;
}

// A frame that names its thread and number; its length follows from these.
static uint16_t make(uint8_t *frame, uint32_t thread, uint32_t number)
{
	uint16_t length = (uint16_t)(60 + (number * 2654435761u >> 8) % (FRAME_MAX - 59));

	memset(frame, (int)(number % 251), length);
	memcpy(frame, &thread, 4);
	memcpy(frame + 4, &number, 4);
	return length;
}

// Reads the file and checks every frame whole and the order of each thread. Returns how many; *last: the last number.
static uint32_t read_back(uint32_t *last)
{
	static uint8_t want[FRAME_MAX];
	char error[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
	uint32_t n = 0, next[4] = {0};
	struct pcap_pkthdr *head;
	const uint8_t *frame;

	if (p == NULL)
		fail_msg("%s", error);
	assert_int_equal(pcap_datalink(p), DLT_EN10MB);
	for (; pcap_next_ex(p, &head, &frame) == 1; n++) {
		uint32_t thread, number;
		memcpy(&thread, frame, 4);
		memcpy(&number, frame + 4, 4);
		assert_in_range(thread, 0, 3);
		assert_true(number >= next[thread]);
		next[thread] = number + 1;
		uint16_t length = make(want, thread, number);
		assert_int_equal(head->len, length);
		assert_int_equal(head->caplen, length);
		assert_memory_equal(frame, want, length);
		assert_true((uint64_t)head->ts.tv_sec * SECOND + (uint64_t)head->ts.tv_usec == START + number);
		if (last != NULL)
			*last = number;
	}
	pcap_close(p);
	return n;
}

static void one_in_so_many(void **state)
{
	static uint8_t frame[FRAME_MAX];
	struct capture *c = open_it(10, 1000, 1);
	uint32_t last = 0;

	for (uint32_t i = 0; i < 95; i++) {
		uint16_t length = make(frame, 0, i);
		assert_int_equal(capture_wants(c, 0), i % 10 == 0);
		capture_offer(c, 0, frame, length, START + i);
	}
	assert_int_equal(capture_close(c), 10);
	assert_int_equal(read_back(&last), 10);
	assert_int_equal(last, 90);
}

static void at_most_count(void **state)
{
	static uint8_t frame[FRAME_MAX];
	struct capture *c = open_it(1, 7, 2);
	uint32_t last = 0;

	for (uint32_t i = 0; i < 100; i++) {
		uint16_t length = make(frame, i & 1, i);
		capture_offer(c, i & 1, frame, length, START + i);
		capture_poll(c);
	}
	assert_false(capture_wants(c, 0));
	assert_int_equal(read_back(&last), 7); // before the file is closed
	assert_int_equal(last, 6);
	assert_int_equal(capture_close(c), 7);
}

// Wrong frames are taken all, and still when the samples are complete.
static void wrong_frames_are_kept(void **state)
{
	static uint8_t frame[FRAME_MAX];
	struct capture *c = open_it(1000, 3, 1);

	for (uint32_t i = 0; i < 5; i++) {
		uint16_t length = make(frame, 0, i);
		capture_keep(c, 0, frame, length, START + i);
		capture_poll(c);
	}
	capture_offer(c, 0, frame, make(frame, 0, 9), START + 9);
	assert_int_equal(capture_close(c), 4);
	assert_int_equal(read_back(NULL), 4);
	capture_keep(NULL, 0, frame, 60, 0); // no capture asked for
	capture_offer(NULL, 0, frame, 60, 0);
	capture_poll(NULL);
	assert_int_equal(capture_close(NULL), 0);
}

// A full ring loses samples and nothing else: earlier ones are whole, and later ones are taken again.
static void full_ring_loses_samples(void **state)
{
	static uint8_t frame[FRAME_MAX];
	struct capture *c = open_it(1, 100000, 1);
	uint32_t last = 0;

	for (uint32_t i = 0; i < 5000; i++)
		capture_offer(c, 0, frame, make(frame, 0, i), START + i);
	capture_poll(c);
	for (uint32_t i = 5000; i < 5010; i++)
		capture_offer(c, 0, frame, make(frame, 0, i), START + i);
	uint32_t n = capture_close(c);
	assert_in_range(n, 100, 4999);
	assert_int_equal(read_back(&last), n);
	assert_int_equal(last, 5009);
}

struct sender {
	struct capture *c;
	uint32_t thread, frames;
	atomic_uint *ended;
};

static void *offer_all(void *arg)
{
	const struct sender *s = arg;
	uint8_t *frame = malloc(FRAME_MAX);

	for (uint32_t i = 0; frame != NULL && i < s->frames; i++) {
		uint16_t length = make(frame, s->thread, i);
		capture_offer(s->c, s->thread, frame, length, START + i);
	}
	free(frame);
	atomic_fetch_add(s->ended, 1);
	return NULL;
}

// Three threads go round their rings many times while the main thread writes.
static void threads_go_round(void **state)
{
	struct capture *c = open_it(1, UINT32_MAX, 3);
	atomic_uint ended = 0;
	struct sender s[3];
	pthread_t thread[3];

	for (uint32_t i = 0; i < 3; i++) {
		s[i] = (struct sender){.c = c, .thread = i, .frames = 3000, .ended = &ended};
		assert_int_equal(pthread_create(&thread[i], NULL, offer_all, &s[i]), 0);
	}
	while (atomic_load(&ended) < 3)
		capture_poll(c);
	for (uint32_t i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	uint32_t n = capture_close(c);
	assert_in_range(n, 300, 9000);
	assert_int_equal(read_back(NULL), n);
}

static void errors_are_reported(void **state)
{
	struct job_capture want = {.file = "/nowhere/sample.pcap", .every = 1, .count = 100};
	static uint8_t frame[FRAME_MAX];
	char error[200] = "";

	assert_null(capture_open(&want, 1, error, sizeof(error)));
	assert_non_null(strstr(error, "/nowhere/sample.pcap"));
	snprintf(want.file, sizeof(want.file), "/dev/full");
	struct capture *c = capture_open(&want, 1, error, sizeof(error));
	if (c == NULL)
		fail_msg("%s", error);
	assert_null(capture_error(c));
	capture_offer(c, 0, frame, 9000, START);
	capture_poll(c);
	assert_non_null(capture_error(c));
	assert_non_null(strstr(capture_error(c), "/dev/full"));
	capture_offer(c, 0, frame, 9000, START);
	capture_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_in_so_many),
		cmocka_unit_test(at_most_count),
		cmocka_unit_test(wrong_frames_are_kept),
		cmocka_unit_test(full_ring_loses_samples),
		cmocka_unit_test(threads_go_round),
		cmocka_unit_test(errors_are_reported),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
