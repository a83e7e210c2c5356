// SPDX-License-Identifier: Apache-2.0
// Shares of the packet buffers, and rings that count buffers.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/engine.h"
#include "core/hold.h"
#include "testkit/testkit.h"
#include <errno.h>
#include <rte_ring.h>
#include <string.h>

static struct api_holder_row row_of(const char *name)
{
	uint32_t count;
	const struct api_holder_row *rows = kit_rows(API_TABLE_HOLDER, "", sizeof(*rows), &count);

	for (uint32_t i = 0; i < count; i++)
		if (strcmp(rows[i].name, name) == 0)
			return rows[i];
	fail_msg("no holder %s", name);
	return rows[0];
}

// Holders and receiving together need at most all buffers, or the engine does not start.
static void sum_is_checked(void **state)
{
	struct api_engine e = kit_engine();
	// Twice max_punted: the holder of this test has it too.
	uint32_t least = e.max_held + e.max_fragments + e.max_buffered + e.max_scheduled + e.max_handed_over +
			 2 * e.max_punted + e.workers * HOLD_RECEIVE;
	struct api_status s;

	e.packet_buffers = least - 1;
	assert_int_equal(hold_start(&e), EINVAL);
	object_error_status(&s);
	assert_non_null(strstr(s.text, "receiving needs 256"));
	e.packet_buffers = least;
	assert_int_equal(hold_start(&e), 0);
	e.max_buffered = UINT32_MAX; // the sum has more than 32 bits
	assert_int_equal(hold_start(&e), EINVAL);
	assert_int_equal(row_of("punt").limit, e.max_punted);
}

static struct rte_mbuf *chain(uint16_t segments)
{
	struct rte_mbuf *first = rte_pktmbuf_alloc(engine_pool());

	for (uint16_t i = 1; i < segments; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(engine_pool());

		assert_non_null(m);
		assert_int_equal(rte_pktmbuf_chain(first, m), 0);
	}
	return first;
}

// A ring of 10 buffers takes two chains of four and two single ones, in order, and no more.
static void ring_counts_buffers(void **state)
{
	static const uint16_t segments[] = {4, 1, 4, 1};
	struct rte_ring *r = hold_ring_create("test", 10);
	struct rte_mbuf *in[4], *out[3], *more = chain(1), *most = chain(HOLD_RING_CHAIN + 1);
	uint32_t seen = 0;

	for (int i = 0; i < 4; i++) {
		in[i] = chain(segments[i]);
		assert_int_equal(hold_ring_put(r, in[i]), 1);
	}
	assert_int_equal(rte_ring_count(r), 10);
	assert_int_equal(hold_ring_put(r, more), 0);
	assert_int_equal(hold_ring_put(r, most), 0);
	for (int visit = 0; visit < 4; visit++) {
		uint32_t n = hold_ring_take(r, out, 3);

		for (uint32_t i = 0; i < n; i++, seen++)
			assert_ptr_equal(out[i], in[seen]);
	}
	assert_int_equal(seen, 4);
	assert_int_equal(hold_ring_put(r, most), 0); // longer than any ring takes
	assert_int_equal(hold_ring_put(r, more), 1);
	assert_int_equal(hold_ring_take(r, out, 3), 1);
	rte_pktmbuf_free_bulk(in, 4);
	rte_pktmbuf_free(more);
	rte_pktmbuf_free(most);
	rte_ring_free(r);
	assert_int_equal(kit_buffers_in_use(), 0);
}

// A burst of packets and chains goes in order, up to the first that has no room.
static void burst_keeps_order(void **state)
{
	static const uint16_t segments[] = {1, 1, 4, 1, 4};
	struct rte_ring *r = hold_ring_create("burst", 10);
	struct rte_mbuf *in[5], *out[5];
	uint32_t seen = 0;

	for (int i = 0; i < 5; i++)
		in[i] = chain(segments[i]);
	assert_int_equal(hold_ring_put_burst(r, in, 5), 4);
	assert_int_equal(hold_ring_put_burst(r, in + 4, 1), 0);
	for (int visit = 0; visit < 4; visit++) {
		uint32_t n = hold_ring_take(r, out, 5);

		for (uint32_t i = 0; i < n; i++, seen++)
			assert_ptr_equal(out[i], in[seen]);
	}
	assert_int_equal(seen, 4);
	assert_int_equal(hold_ring_put_burst(r, in + 3, 2), 2);
	assert_int_equal(hold_ring_take(r, out, 5), 2);
	rte_pktmbuf_free_bulk(in, 5);
	rte_ring_free(r);
	assert_int_equal(kit_buffers_in_use(), 0);
}

HOLDER(test_holder, "test", max_punted)

static void share_is_kept(void **state)
{
	struct worker *w = worker_get(0);
	uint32_t share = test_holder.share;

	assert_int_equal(share, test_holder.limit / worker_count());
	assert_int_equal(hold_take(w, &test_holder, share - 1), 1);
	assert_int_equal(hold_take(w, &test_holder, 2), 0);
	assert_int_equal(hold_take(w, &test_holder, 1), 1);
	assert_int_equal(row_of("test").held, share);
	assert_int_equal(hold_room(w, &test_holder), 0);
	assert_int_equal(hold_take(worker_get(1), &test_holder, 1), 1); // one worker's share is no other's
	hold_give(w, &test_holder, share);
	hold_give(worker_get(1), &test_holder, 1);
	assert_int_equal(row_of("test").held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_is_kept),
		cmocka_unit_test(burst_keeps_order),
		cmocka_unit_test(ring_counts_buffers),
		cmocka_unit_test(sum_is_checked),
	};
	struct api_engine e = kit_engine();

	e.workers = 2;
	kit_start(&e);
	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
