// SPDX-License-Identifier: Apache-2.0
// GTSM: what passes and what is dropped, by distance; what it leaves alone; changes and refusals.
#include "ip/router_test.h"
#include "testkit/frame.h"
#include "testkit/reasons.h"

static struct frame f;

static int put_gtsm(const char *interface, uint32_t hops)
{
	struct api_gtsm want = {.hops = hops};

	return kit_change(API_GTSM, interface, &want, sizeof(want));
}

static void take_gtsm(const char *interface)
{
	kit_begin();
	kit_delete(API_GTSM, interface);
	assert_int_equal(kit_commit(), 0);
}

static struct api_gtsm_row row(const char *interface)
{
	uint32_t count;
	const struct api_gtsm_row *r = kit_rows(API_TABLE_GTSM, interface, sizeof(*r), &count);

	assert_int_equal(count, 1);
	return *r;
}

// The packet at f.at comes in by a port, with this TTL.
static void comes(const char *port, const char *from, const char *to, uint8_t protocol, uint8_t ttl)
{
	frame_ip(&f, from, to, protocol);
	f.at[f.at[0] >> 4 == 4 ? 8 : 7] = ttl;
	if (f.at[0] >> 4 == 4)
		frame_ip4_sum(&f);
	frame_ethernet(&f, port_by_name(port)->mac.addr_bytes, peer_north, f.at[0] >> 4 == 4 ? 0x0800 : 0x86dd);
	assert_int_equal(kit_send(port, f.at, f.length), 0);
	kit_run();
}

static void tcp(const char *port, const char *from, const char *to, uint16_t destination, uint8_t ttl)
{
	frame_payload(&f, 0);
	frame_tcp(&f, 33000, destination);
	comes(port, from, to, 6, ttl);
}

static void far_is_dropped(void **state)
{
	static const char *const peer[] = {"10.1.0.2", "2001:db8:1::2"}, *const ours[] = {"10.1.0.1", "2001:db8:1::1"};

	assert_int_equal(put_gtsm("north", 2), 0);
	for (int k = 0; k < 2; k++) {
		struct kit_reasons before = kit_reasons();

		tcp("north", peer[k], ours[k], 179, 255);
		tcp("north", peer[k], ours[k], 179, 254);
		kit_only_rose(&before, "routing", 2);
		before = kit_reasons();
		tcp("north", peer[k], ours[k], 179, 253);
		tcp("north", peer[k], ours[k], 179, 64);
		frame_payload(&f, 0); // an answer
		frame_tcp(&f, 179, 33000);
		comes("north", peer[k], ours[k], 6, 1);
		kit_only_rose(&before, "gtsm-ttl", 3);
	}
	assert_int_equal(row("north").passed, 4);
	assert_int_equal(row("north").dropped, 6);
	take_gtsm("north");
	assert_true(kit_balance());
}

// Other interfaces, ports, protocols, destinations; and what ip-input drops by its own name.
static void the_rest_is_left_alone(void **state)
{
	struct kit_reasons before;

	assert_int_equal(put_gtsm("north", 1), 0);
	before = kit_reasons();
	tcp("south", "10.2.0.2", "10.2.0.1", 179, 64);
	kit_only_rose(&before, "routing", 1);
	before = kit_reasons();
	tcp("north", "10.1.0.2", "10.1.0.1", 22, 64);
	frame_payload(&f, 20);
	frame_udp(&f, 33000, 179);
	comes("north", "10.1.0.2", "10.1.0.1", 17, 64);
	kit_only_rose(&before, "host", 2);
	before = kit_reasons();
	tcp("north", "10.1.0.2", "10.2.0.9", 179, 64); // through us
	kit_only_rose(&before, "neighbour-resolve", 1);
	before = kit_reasons();
	frame_payload(&f, 8); // cut within TCP
	comes("north", "10.1.0.2", "10.1.0.1", 6, 64);
	kit_only_rose(&before, "ip-transport-header", 1);
	assert_int_equal(row("north").passed + row("north").dropped, 0);
	take_gtsm("north");
}

// A changed guard keeps its counts; a removed one drops nothing, nor does another's after it.
static void changes(void **state)
{
	struct kit_reasons before;
	uint32_t count;

	assert_int_equal(put_gtsm("north", 1), 0);
	tcp("north", "10.1.0.2", "10.1.0.1", 179, 100);
	assert_int_equal(put_gtsm("north", 200), 0);
	assert_int_equal(put_gtsm("south", 1), 0);
	tcp("north", "10.1.0.2", "10.1.0.1", 179, 100);
	assert_int_equal(row("north").dropped, 1);
	assert_int_equal(row("north").passed, 1);
	take_gtsm("north");
	before = kit_reasons();
	tcp("north", "10.1.0.2", "10.1.0.1", 179, 1);
	kit_only_rose(&before, "routing", 1);
	take_gtsm("south");
	kit_rows(API_TABLE_GTSM, "", sizeof(struct api_gtsm_row), &count);
	assert_int_equal(count, 0);
}

static void refusals(void **state)
{
	static const struct {
		const char *interface;
		uint32_t hops;
		int error;
	} bad[] = {{"north", 0, EINVAL}, {"north", API_GTSM_HOPS + 1, EINVAL}, {"homes", 1, ENOENT},
		{"nobody", 1, ENOENT}};

	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(put_gtsm(bad[i].interface, bad[i].hops), bad[i].error);
		assert_int_equal(strncmp(kit_error(), "gtsm ", 5), 0);
	}
	assert_int_equal(put_gtsm("north.7", 1), 0);
	kit_begin();
	kit_delete(API_INTERFACE, "north.7");
	assert_int_equal(kit_commit(), ENOENT);
	take_gtsm("north.7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(far_is_dropped),
		cmocka_unit_test(the_rest_is_left_alone),
		cmocka_unit_test(changes),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, router_start, NULL);
}
