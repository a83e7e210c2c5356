// SPDX-License-Identifier: Apache-2.0
// The DSCP of packets that come in by a boundary; what it leaves alone, and costs without one; changes and refusals.
#include "ip/router_test.h"
#include "testkit/reasons.h"
#include "wire/ecn.h"

#define EF (46 << 2) // expedited forwarding (RFC 3246), as traffic class

static struct router_frame f;

static int put_remark(const char *interface, uint32_t dscp)
{
	struct api_remark want = {.dscp = dscp};

	return kit_change(API_REMARK, interface, &want, sizeof(want));
}

static void take_remark(const char *interface)
{
	kit_begin();
	kit_delete(API_REMARK, interface);
	assert_int_equal(kit_commit(), 0);
}

static struct api_remark_row row(const char *interface)
{
	uint32_t count;
	const struct api_remark_row *r = kit_rows(API_TABLE_REMARK, interface, sizeof(*r), &count);

	assert_int_equal(count, 1);
	return *r;
}

// The traffic class with which a packet leaves that came in with `class` by north, VLAN `vlan`.
static uint8_t passes(uint16_t vlan, const char *from, const char *to, uint8_t class)
{
	uint8_t version = strchr(from, ':') != NULL ? 6 : 4, *ip;

	router_ethernet(&f, "north", peer_north, vlan, 0, version == 6 ? 0x86dd : 0x0800);
	ip = router_udp(&f, from, to, 64, 20);
	ip_traffic_class_set(version, ip, class);
	kit_clear();
	router_receive("north", &f);
	assert_int_equal(router_count(), 1);
	ip = router_out(0)->bytes + 14;
	assert_true(version == 6 || ip4_checksum_ok(ip));
	return ip_traffic_class(version, ip);
}

static uint8_t passes4(uint8_t class)
{
	return passes(0, "10.1.0.9", "10.2.0.9", class);
}

static uint8_t passes6(uint8_t class)
{
	return passes(0, "2001:db8:1::9", "2001:db8:2::9", class);
}

// More than once: the fast path has what the full nodes have. ECN stays (RFC 3168 §5).
static void every_packet_gets_it(void **state)
{
	assert_int_equal(put_remark("north", 0), 0);
	for (int k = 0; k < 4; k++) {
		assert_int_equal(passes4(EF | ECN_CE), ECN_CE);
		assert_int_equal(passes6(EF | ECN_ECT0), ECN_ECT0);
		assert_int_equal(passes4(ECN_ECT1), ECN_ECT1); // has it
	}
	assert_int_equal(row("north").packets, 12);
	assert_int_equal(row("north").remarked, 8);
	assert_int_equal(put_remark("north", 10), 0); // the counts stay
	assert_int_equal(passes4(0), 10 << 2);
	assert_int_equal(passes6(EF), 10 << 2);
	assert_int_equal(row("north").dscp, 10);
	assert_int_equal(row("north").remarked, 10);
	take_remark("north");
	assert_int_equal(passes4(EF), EF);
	assert_true(kit_balance());
}

// Other interfaces, of the same port too; what is no IP packet, or ends within its header.
static void the_rest_is_left_alone(void **state)
{
	static const uint16_t lengths[] = {8, 13, 14 + 19, 16};
	static const char *const reasons[] = {"ethernet-short", "ethernet-short", "ip-short", "ethernet-short"};

	assert_int_equal(put_remark("north.7", 0), 0);
	assert_int_equal(passes4(EF), EF);
	assert_int_equal(passes(7, "10.7.0.9", "10.2.0.9", EF), 0);
	take_remark("north.7");
	assert_int_equal(put_remark("north", 0), 0);
	assert_int_equal(passes(7, "10.7.0.9", "10.2.0.9", EF), EF);
	for (uint32_t k = 0; k < RTE_DIM(lengths); k++) {
		router_ethernet(&f, "north", peer_north, lengths[k] == 16 ? 7 : 0, 0, 0x0800);
		router_udp(&f, "10.1.0.9", "10.2.0.9", 64, 20);
		f.length = lengths[k];
		struct kit_reasons before = kit_reasons();
		router_receive("north", &f);
		kit_only_rose(&before, reasons[k], 1);
	}
	router_ethernet(&f, "north", peer_north, 0, 0, 0x0800);
	router_udp(&f, "10.1.0.9", "10.2.0.9", 64, 20)[0] = 0x55; // says another version
	struct kit_reasons before = kit_reasons();
	router_receive("north", &f);
	kit_only_rose(&before, "ip-version", 1);
	assert_int_equal(row("north").packets, 0);
	take_remark("north");
}

static void costs_nothing_without_one(void **state)
{
	uint64_t seen = kit_node_packets("remark");

	passes4(EF);
	assert_int_equal(kit_node_packets("remark"), seen);
	assert_int_equal(put_remark("south", 0), 0);
	passes4(EF);
	assert_int_equal(kit_node_packets("remark"), seen + 1);
	take_remark("south");
}

static void refusals(void **state)
{
	static const struct {
		const char *interface;
		uint32_t dscp;
		int error;
	} bad[] = {{"north", 64, EINVAL}, {"north", UINT32_MAX, EINVAL}, {"homes", 0, ENOENT}, {"nobody", 0, ENOENT}};

	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		assert_int_equal(put_remark(bad[i].interface, bad[i].dscp), bad[i].error);
		assert_int_equal(strncmp(kit_error(), "remark ", 7), 0);
	}
	assert_int_equal(put_remark("north.7", 1), 0);
	kit_begin();
	kit_delete(API_INTERFACE, "north.7");
	assert_int_equal(kit_commit(), ENOENT);
	take_remark("north.7");
}

static int start(void **state)
{
	if (router_start(state) != 0)
		return -1;
	kit_begin();
	kit_neighbour("south", "10.2.0.9", peer_south);
	kit_neighbour("south", "2001:db8:2::9", peer_south);
	return router_commit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_gets_it),
		cmocka_unit_test(the_rest_is_left_alone),
		cmocka_unit_test(costs_nothing_without_one),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
