// SPDX-License-Identifier: Apache-2.0
// ICMP errors and echo replies through the whole graph: plain, from subscribers, and through tunnels.
#include "icmp/fixture_test.h"
#include "testkit/reasons.h"

static const struct family {
	const char *north, *south, *ours_north, *nowhere;
	uint8_t ttl_type, unreachable_type, big_type, big_code;
} families[] = {
	{"10.1.0.9", "10.2.0.9", "10.1.0.1", "198.51.100.1", ICMP4_TIME_EXCEEDED, ICMP4_UNREACHABLE, ICMP4_UNREACHABLE,
		ICMP4_CODE_TOO_BIG},
	{"2001:db8:1::9", "2001:db8:2::9", "2001:db8:1::1", "2001:db8:ffff::1", ICMP6_TIME_EXCEEDED, ICMP6_UNREACHABLE,
		ICMP6_TOO_BIG, 0},
};

// One frame left by north: our address's error to the host, with the packet quoted.
static const uint8_t *plain_error(
	const struct family *f, const uint8_t *quoted, uint32_t quote, uint8_t type, uint8_t code)
{
	static struct fixture_packet x;

	assert_int_equal(fixture_outs(), 1);
	x = fixture_out(0, "north");
	fixture_address_is(x.ip.source, f->ours_north);
	fixture_address_is(x.ip.destination, f->north);
	const uint8_t *icmp = fixture_icmp(x.p, &x.ip, type, code);
	assert_memory_equal(kit_frame("north", 0)->bytes, peer_north, 6);
	assert_int_equal(x.length - x.ip.l4 - 8, quote);
	assert_memory_equal(icmp + 8, quoted, quote);
	fixture_balance();
	return icmp;
}

static void ttl_runs_out(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;

		fixture_fresh(state);
		const uint8_t *ip = fixture_plain(&f, "north", families[i].north, families[i].south, 1, 120, 0);
		fixture_receive("north", &f);
		plain_error(&families[i], ip, 120, families[i].ttl_type, 0);
	}
}

static void no_route(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;

		fixture_fresh(state);
		fixture_plain(&f, "north", families[i].north, families[i].nowhere, 9, 120, 0);
		uint8_t *ip = f.bytes + 14;
		fixture_receive("north", &f);
		if (i == 0)
			ip4_decrement_ttl(ip); // the quote is as it was when the error arose
		else
			ip[7]--;
		plain_error(&families[i], ip, 120, families[i].unreachable_type, 0);
	}
}

// Row G23. The quote is cut at 576 and 1280 bytes.
static void too_big(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;

		fixture_fresh(state);
		uint8_t *ip = fixture_plain(&f, "north", families[i].north, families[i].south, 9, 1600, i == 0);
		fixture_receive("north", &f);
		if (i == 0)
			ip4_decrement_ttl(ip);
		else
			ip[7]--;
		const uint8_t *icmp =
			plain_error(&families[i], ip, i == 0 ? 548 : 1232, families[i].big_type, families[i].big_code);
		assert_int_equal(load32(icmp + 4), 1500);
	}
}

static void unanswerable(void **state)
{
	struct kit_reasons before = kit_reasons();
	struct fixture_frame f;
	uint8_t *ip;

	ip = fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 1, 120, 0); // an ICMP error
	ip[9] = IP_PROTOCOL_ICMP;
	ip[20] = ICMP4_UNREACHABLE;
	ip4_checksum_set(ip);
	fixture_receive("north", &f);
	ip = fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 1, 120, 0); // a later fragment
	ip[7] = 9;
	ip4_checksum_set(ip);
	fixture_receive("north", &f);
	ip = fixture_plain(&f, "north", "2001:db8:1::9", "2001:db8:2::9", 1, 120, 0);
	ip[6] = IP_PROTOCOL_ICMP6;
	ip[40] = ICMP6_TOO_BIG;
	fixture_receive("north", &f);
	kit_only_rose(&before, "icmp-not-answerable", 3);
	assert_int_equal(fixture_outs(), 0);
	fixture_balance();
}

// The router's limit is 1000 a second, with a burst of a tenth of a second.
static void rate_limit(void **state)
{
	struct kit_reasons before = kit_reasons();
	struct fixture_frame f;

	for (int i = 0; i < 250; i++) {
		fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 1, 120, 0);
		fixture_receive("north", &f);
	}
	assert_in_range(fixture_outs(), 98, 101);
	kit_only_rose(&before, "icmp-rate-limit", 250 - fixture_outs());
	kit_clear();
	fixture_wait(0.1);
	fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 1, 120, 0);
	fixture_receive("north", &f);
	assert_int_equal(fixture_outs(), 1);
	fixture_balance();
}

static void echo_to_us(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;

		fixture_fresh(state);
		uint8_t *ip = fixture_plain(&f, "north", families[i].north, families[i].ours_north, 3, 99, 0);
		fixture_echo(&f, ip, 99);
		fixture_receive("north", &f);
		assert_int_equal(fixture_outs(), 1);
		struct fixture_packet x = fixture_out(0, "north");
		fixture_address_is(x.ip.source, families[i].ours_north);
		fixture_address_is(x.ip.destination, families[i].north);
		assert_int_equal(x.ip.ttl, 64);
		assert_int_equal(x.length, 99);
		const uint8_t *icmp = fixture_icmp(x.p, &x.ip, i == 0 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY, 0);
		assert_memory_equal(icmp + 4, ip + x.ip.l4 + 4, x.length - x.ip.l4 - 4);
		fixture_balance();
	}
}

static void echo_limit_and_other_icmp(void **state)
{
	uint64_t host = kit_reason("icmp-to-host");
	struct kit_reasons before = kit_reasons();
	struct fixture_frame f;
	uint8_t *ip = fixture_plain(&f, "north", "10.1.0.9", "10.1.0.1", 3, 99, 0);

	fixture_echo(&f, ip, 99);
	for (int i = 0; i < 250; i++)
		fixture_receive("north", &f);
	assert_in_range(fixture_outs(), 98, 101);
	kit_only_rose(&before, "echo-rate-limit", 250 - fixture_outs());
	ip[20] = ICMP4_ECHO_REPLY;
	fixture_receive("north", &f);
	assert_int_equal(kit_reason("icmp-to-host") - host, 1);
	fixture_balance();
}

// A frame towards a subscriber: the right tags and MAC addresses.
static struct fixture_packet home_out(uint32_t n, uint16_t c_tag)
{
	struct fixture_packet x = fixture_out(n, "homes");

	assert_memory_equal(kit_frame("homes", n)->bytes, fixture_home, 6);
	assert_int_equal(x.eth.tags, 2);
	assert_int_equal(x.eth.tpid[0], 0x88a8);
	assert_int_equal(x.eth.vlan[0], 100);
	assert_int_equal(x.eth.vlan[1], c_tag);
	return x;
}

static void subscriber_pings_gateway(void **state)
{
	static const char *const ends[2][2] = {{"100.64.0.5", "100.64.0.1"}, {"2001:db8:a:5::77", "2001:db8:a::1"}};

	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;

		fixture_fresh(state);
		uint8_t *ip = fixture_from_home(&f, 1, ends[i][0], ends[i][1], 3, 300, 0);
		fixture_echo(&f, ip, 300);
		fixture_receive("homes", &f);
		kit_run();
		assert_int_equal(fixture_outs(), 1);
		struct fixture_packet x = home_out(0, 1);
		fixture_address_is(x.ip.source, ends[i][1]);
		fixture_address_is(x.ip.destination, ends[i][0]);
		assert_int_equal(x.length, 300);
		fixture_icmp(x.p, &x.ip, i == 0 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY, 0);
		fixture_balance();
	}
}

// The subscriber without a tunnel is routed, so errors about his packets go back in his encapsulation.
static void error_to_subscriber(void **state)
{
	struct fixture_frame f;

	fixture_from_home(&f, 3, "100.64.0.7", "198.51.100.1", 9, 300, 0);
	fixture_receive("homes", &f);
	assert_int_equal(fixture_outs(), 1);
	struct fixture_packet x = home_out(0, 3);
	fixture_address_is(x.ip.source, "100.64.0.1");
	fixture_address_is(x.ip.destination, "100.64.0.7");
	fixture_icmp(x.p, &x.ip, ICMP4_UNREACHABLE, ICMP4_CODE_NET);
	fixture_balance();
}

// Too big for the subscriber: the gateway's error reaches the far host through the tunnel.
static void error_into_tunnel(void **state)
{
	static const struct {
		const char *far, *ue, *gateway;
		uint8_t type, code;
	} row[] = {{"198.51.100.7", "100.64.0.5", "100.64.0.1", ICMP4_UNREACHABLE, ICMP4_CODE_TOO_BIG},
		{"2001:db8:ffff::7", "2001:db8:a:5::77", "2001:db8:a::1", ICMP6_TOO_BIG, 0}};

	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;
		struct gtpu_info g;
		struct ip_info ip;

		fixture_fresh(state);
		const uint8_t *inner = fixture_from_tunnel(&f, 1, row[i].far, row[i].ue, 1430, i == 0);
		fixture_receive("south", &f);
		assert_int_equal(fixture_outs(), 1);
		struct fixture_packet x = fixture_out(0, "south");
		fixture_address_is(x.ip.destination, "10.2.0.9");
		assert_int_equal(x.ip.destination_port, GTPU_PORT);
		const uint8_t *gtpu = x.p + x.ip.l4 + 8;
		uint32_t size = x.length - x.ip.l4 - 8;
		assert_int_equal(gtpu_parse(gtpu, size, size, &g), GTPU_OK);
		assert_int_equal(g.teid, FIXTURE_TEID_UP + 1);
		assert_int_equal(g.qfi, 9);
		assert_int_equal(g.pdu_type, GTPU_PDU_UL);
		const uint8_t *p = gtpu + g.header_length;
		assert_int_equal(ip_parse(p, size - g.header_length, size - g.header_length, &ip), IP_OK);
		fixture_address_is(ip.source, row[i].gateway);
		fixture_address_is(ip.destination, row[i].far);
		const uint8_t *icmp = fixture_icmp(p, &ip, row[i].type, row[i].code);
		assert_int_equal(load32(icmp + 4), 1400);
		assert_memory_equal(icmp + 8, inner, 200);
		fixture_balance();
	}
}

// The same for the subscriber whose uplink has no tunnel: the answer is routed.
static void error_without_tunnel(void **state)
{
	struct fixture_frame f;

	fixture_from_tunnel(&f, 3, "10.1.0.9", "100.64.0.7", 1430, 1);
	fixture_receive("south", &f);
	assert_int_equal(fixture_outs(), 1);
	struct fixture_packet x = fixture_out(0, "north");
	fixture_address_is(x.ip.source, "100.64.0.1");
	fixture_address_is(x.ip.destination, "10.1.0.9");
	fixture_icmp(x.p, &x.ip, ICMP4_UNREACHABLE, ICMP4_CODE_TOO_BIG);
	fixture_balance();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ttl_runs_out, fixture_fresh),
		cmocka_unit_test_setup(no_route, fixture_fresh),
		cmocka_unit_test_setup(too_big, fixture_fresh),
		cmocka_unit_test_setup(unanswerable, fixture_fresh),
		cmocka_unit_test_setup(rate_limit, fixture_fresh),
		cmocka_unit_test_setup(echo_to_us, fixture_fresh),
		cmocka_unit_test_setup(echo_limit_and_other_icmp, fixture_fresh),
		cmocka_unit_test_setup(subscriber_pings_gateway, fixture_fresh),
		cmocka_unit_test_setup(error_to_subscriber, fixture_fresh),
		cmocka_unit_test_setup(error_into_tunnel, fixture_fresh),
		cmocka_unit_test_setup(error_without_tunnel, fixture_fresh),
	};

	fixture_start(1);
	return cmocka_run_group_tests_name("icmp", tests, NULL, NULL);
}
