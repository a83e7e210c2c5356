// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the access gateway: known homes, and a packet with its exact output.
#ifndef ACCESS_AGF_TEST_H
#define ACCESS_AGF_TEST_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "testkit/gateway.h"
#include "testkit/reasons.h"
#include "wire/bytes.h"
#include <stdio.h>
#include <string.h>

#define FAR4 "198.51.100.9"
#define FAR6 "2001:db8:ffff::9"

static inline void commit(void)
{
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
}

static inline void put(const char *name, const struct kit_session *k)
{
	kit_begin();
	kit_put_session(name, k);
	commit();
}

static inline int setup(void **state)
{
	gateway_start(NULL);
	gateway_homes(1, GATEWAY_HOMES);
	return 0;
}

// Homes as they were, for the next test.
static inline int restore(void **state)
{
	gateway_homes(1, GATEWAY_HOMES);
	assert_true(gateway_undisturbed());
	assert_true(kit_balance());
	return 0;
}

static inline uint32_t all_out(void)
{
	return kit_count("access") + kit_count("core") + kit_count("internet");
}

static inline void inner(struct frame *f, const char *from, const char *to, uint32_t payload)
{
	frame_payload(f, payload);
	frame_udp(f, 4000, 5000);
	frame_ip(f, from, to, 17);
}

// The frame leaves `port` as `want`, alone.
static inline void expect(const char *from, const struct frame *f, const char *port, const struct frame *want)
{
	kit_clear();
	assert_int_equal(kit_send(from, f->at, f->length), 0);
	kit_run();
	assert_int_equal(all_out(), 1);
	assert_true(gateway_same(port, 0, want));
	assert_true(kit_balance());
}

static inline void expect_drop(const char *from, const struct frame *f, const char *reason)
{
	uint64_t dropped = kit_totals().dropped;
	struct kit_reasons before = kit_reasons();

	kit_clear();
	assert_int_equal(kit_send(from, f->at, f->length), 0);
	kit_run();
	kit_only_rose(&before, reason, 1);
	assert_int_equal(kit_totals().dropped - dropped, 1);
	assert_int_equal(all_out(), 0);
	assert_true(kit_balance());
}

static inline void up_and_down(struct frame *up, struct frame *down)
{
	inner(up, gateway_ue(1, 4), FAR4, 60);
	gateway_from_home(up, 1);
	inner(down, FAR4, gateway_ue(1, 4), 60);
	gateway_from_upf(down, 1);
}

#endif
