// SPDX-License-Identifier: Apache-2.0
// Shared by the test files of lib/hqos, which form one program.
#ifndef HQOS_TEST_H
#define HQOS_TEST_H

#include "hqos/hqos.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TEST_HZ 1000000000ull // the virtual clock counts nanoseconds
#define TEST_START 5000000ull
#define TEST_STEP 10000ull // ns between two walks of the worker
#define MBIT 125000ull // bytes per second

extern struct rte_mempool *test_pool;

// One port of 10 Gbit/s, `subports` of 1 Gbit/s with `pipes` each; all profiles 100 Mbit/s without class caps. From
// test_calloc.
struct api_scheduler *test_scheduler(uint32_t subports, uint32_t pipes);
// An instance with all subports, buckets full at TEST_START; fails the test when refused.
struct hqos *test_make(const struct api_scheduler *s);
// A packet of `length` bytes by its own account; it has no data, since nothing here reads any.
struct rte_mbuf *test_packet(uint32_t place, uint32_t length);

// The tests themselves.
void test_places(void **state);
void test_refused_parameters(void **state);
void test_workers(void **state);
void test_pipe_counters(void **state);
void test_overflow(void **state);
void test_free_with_packets(void **state);
void test_clock_oddities(void **state);
void test_red_average(void **state);
void test_red_marks(void **state);
void test_red_idle(void **state);
void test_red_long_queue(void **state);
void test_red_refused(void **state);
void test_differential(void **state);

#endif
