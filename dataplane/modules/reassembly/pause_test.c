// SPDX-License-Identifier: Apache-2.0
// Reassembly with room for many. A worker returns to its CPU after a pause longer than fragments may wait. What a walk
// times out is bounded: a stream of rte_graph holds 65535 packets, and one more ends the process.
#include "core/engine.h"
#include "icmp/fixture_test.h"

#define PACKETS 9600u
#define PIECES 7u

static void everything_expires_at_once(void **state)
{
	static struct fixture_frame f;
	uint64_t before = kit_reason("reassembly-timeout");

	for (uint32_t id = 0; id < PACKETS * PIECES; id++) {
		char from[32];

		snprintf(from, sizeof(from), "10.1.0.%u", 10 + id / PIECES % 200);
		uint8_t *ip = fixture_plain(&f, "north", from, "10.1.0.1", 64, 60, 0);
		store16(ip + 4, (uint16_t)(id / PIECES));
		store16(ip + 6, (uint16_t)(id % PIECES * 5 | 0x2000));
		ip4_checksum_set(ip);
		assert_int_equal(kit_send("north", f.bytes, f.length), 0);
		if (id % 512 == 511)
			kit_run();
	}
	kit_run();
	assert_int_equal(kit_totals().held, PACKETS * PIECES);
	engine_advance(rte_get_tsc_hz() * 3 / 2);
	for (uint32_t walks = 0; kit_totals().held > 0; walks++) {
		uint64_t dropped = kit_totals().dropped;

		assert_in_range(walks, 0, 1000);
		engine_walk();
		assert_in_range(kit_totals().dropped - dropped, 1, 8192);
	}
	assert_int_equal(kit_reason("reassembly-timeout") - before, PACKETS * PIECES);
	assert_int_equal(kit_buffers_in_use(), 0);
	fixture_balance();
}

// An IPv4 header with options, and data that fill the 65535 bytes beside a shorter header: the sum exceeds the length
// field.
static void too_long_with_options(void **state)
{
	uint64_t before = kit_reason("reassembly-overlap");
	struct fixture_frame f;
	static const uint16_t offset[] = {0, 8000, 16000, 24000, 32000, 40000, 48000, 56000};

	for (int i = 0; i < 8; i++) {
		uint32_t size = i < 7 ? 8000 : 65535 - 20 - 56000, header = i == 0 ? 60 : 20;
		static uint8_t frame[16384];
		uint8_t *ip = fixture_plain(&f, "north", "10.1.0.9", "10.1.0.1", 64, 60, 0);

		memcpy(frame, f.bytes, 14);
		memset(frame + 14, 1, header); // no-operation options
		memcpy(frame + 14, ip, 20);
		ip = frame + 14;
		ip[9] = 253; // RFC 3692: no transport header to look into
		ip[0] = (uint8_t)(0x40 | header / 4);
		store16(ip + 2, (uint16_t)(header + size));
		store16(ip + 4, 0x4444);
		store16(ip + 6, (uint16_t)(offset[i] / 8 | (i < 7 ? 0x2000 : 0)));
		memset(ip + 10, 0, 2);
		uint16_t sum = checksum_finish(checksum_add(0, ip, header));
		memcpy(ip + 10, &sum, 2);
		assert_int_equal(kit_send("north", frame, 14 + header + size), 0);
		kit_run();
	}
	assert_int_equal(kit_reason("reassembly-overlap") - before, 8);
	assert_int_equal(fixture_outs(), 0);
	assert_int_equal(kit_totals().held, 0);
	fixture_balance();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(everything_expires_at_once, fixture_fresh),
		cmocka_unit_test_setup(too_long_with_options, fixture_fresh),
	};
	struct api_engine e = kit_engine();

	e.buffer_size = 512;
	e.max_fragments = 2 * PACKETS * PIECES; // half of them of packets to us
	e.packet_buffers = e.max_fragments + 10000;
	fixture_start_with(&e);
	return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
