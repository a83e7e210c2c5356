// SPDX-License-Identifier: Apache-2.0
// SYNs of wireline subscribers: by IP (bng_test.h, homes 1 and 2) and into tunnels (homes 3 and 4, testkit/gateway.h).
#include "access/bng_test.h"
#include "mss/syn_test.h"

static const struct bng ipoe = {1, BNG_QINQ, 0}, pppoe = {2, BNG_QINQ, 1};

static void put_bng(const struct bng *b, uint16_t mss)
{
	static struct kit_mobile k;

	bng_session(&k, b);
	k.s.mss = mss;
	bng_commit(gateway_home_name(b->home), &k);
}

static void put_agf(uint32_t home, uint16_t mss)
{
	struct kit_session k = gateway_home(home);

	k.s.mss = mss;
	put(gateway_home_name(home), &k);
}

// Adds the way's encapsulation: of homes 1 and 2 as bng_way(), of 3 and 4 with tunnels.
static void wrap(struct frame *f, uint32_t home, int uplink, int out)
{
	const struct bng *b = home == 1 ? &ipoe : &pppoe;

	if (home <= 2 && out)
		bng_ttl(f, 63);
	if (home <= 2 && uplink)
		out ? bng_internet(f, 1) : bng_access(f, b, 1);
	else if (home <= 2)
		out ? bng_access(f, b, 0) : bng_internet(f, 0);
	else if (uplink)
		out ? gateway_to_upf(f, home) : gateway_from_home(f, home);
	else
		out ? gateway_to_home(f, home) : gateway_from_upf(f, home);
}

static const char *port_of(uint32_t home, int uplink, int out)
{
	return uplink != out ? "access" : home <= 2 ? "internet" : "core";
}

// One TCP packet of each direction and family arrives with `mss` and leaves with `want`.
static void pass(uint32_t home, uint8_t flags, uint32_t mss, uint32_t want4, uint32_t want6)
{
	static struct frame in, out;

	for (int way = 0; way < 4; way++) {
		int family = way & 1 ? 6 : 4, uplink = way >> 1;
		const char *ue = gateway_ue(home, family), *far = family == 4 ? FAR4 : FAR6;
		const char *from = uplink ? ue : far, *to = uplink ? far : ue;

		tcp_packet(&in, from, to, flags, mss);
		wrap(&in, home, uplink, 0);
		tcp_packet(&out, from, to, flags, family == 4 ? want4 : want6);
		wrap(&out, home, uplink, 1);
		expect(port_of(home, uplink, 0), &in, port_of(home, uplink, 1), &out);
	}
}

static uint64_t full_packets(void)
{
	return kit_node_packets("access-input") + kit_node_packets("core-input");
}

// SYNs, then later packets, which the fast path takes; then a new connection with the same ports.
static void connect(uint32_t home, uint32_t mss, uint32_t want4, uint32_t want6)
{
	pass(home, TCP_SYN, mss, want4, want6);
	pass(home, TCP_SYN | ACK, mss, want4, want6);
	for (int i = 0; i < 3; i++)
		pass(home, ACK, 0, 0, 0);
	uint64_t full = full_packets();
	for (int i = 0; i < 3; i++)
		pass(home, ACK, 0, 0, 0);
	assert_int_equal(full_packets() - full, 0);
	for (int i = 0; i < 3; i++) {
		pass(home, TCP_SYN, mss, want4, want6);
		pass(home, TCP_SYN | ACK, mss, want4, want6);
	}
}

// From a port's MTU of 1500, PPPoE takes 8, tunnels 44 (IPv4) and 64 (IPv6).
static void path(void **state)
{
	put_bng(&ipoe, API_MSS_PATH);
	put_bng(&pppoe, API_MSS_PATH);
	put_agf(3, API_MSS_PATH);
	put_agf(4, API_MSS_PATH);
	connect(1, 1460, 1460, 1440);
	connect(1, 9000, 1460, 1440);
	connect(2, 1460, 1452, 1432);
	connect(3, 1460, 1416, 1396);
	connect(4, 1460, 1396, 1376);
	for (uint32_t home = 1; home <= 4; home++) {
		connect(home, 1376, 1376, 1376); // never raised
		connect(home, 536, 536, 536);
		connect(home, NO_MSS, NO_MSS, NO_MSS);
	}
}

static void number(void **state)
{
	put_bng(&pppoe, 1300);
	put_agf(3, 1300);
	connect(2, 1460, 1300, 1280);
	connect(3, 1460, 1300, 1280);
	put_bng(&pppoe, API_MSS_MIN);
	connect(2, 1460, API_MSS_MIN, API_MSS_MIN - 20);
}

static void set_instance(uint16_t mss)
{
	struct api_instance n = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "100.64.0.0/16");

	n.mss = mss;
	assert_int_equal(kit_change(API_INSTANCE, "internet", &n, sizeof(n)), 0);
}

static void none(void **state)
{
	put_bng(&pppoe, 0);
	put_agf(3, 0);
	set_instance(0);
	connect(2, 9000, 9000, 9000);
	connect(3, 9000, 9000, 9000);
}

// The smallest of several; a change is there at once, for flows that are known too.
static void of_instance(void **state)
{
	put_bng(&pppoe, API_MSS_PATH);
	connect(2, 1460, 1452, 1432);
	set_instance(1200);
	connect(2, 1460, 1200, 1180);
	put_bng(&pppoe, 1000);
	connect(2, 1460, 1000, 980);
	put_bng(&pppoe, 0);
	connect(2, 1460, 1200, 1180);
	set_instance(API_MSS_PATH);
	connect(2, 1460, 1452, 1432);
	set_instance(0);
	connect(2, 1460, 1460, 1460);
}

static void refused(void **state)
{
	struct kit_session k = gateway_home(3);
	struct api_instance n = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "100.64.0.0/16");

	k.s.mss = n.mss = API_MSS_MIN - 1;
	kit_begin();
	kit_put_session("home-3", &k);
	assert_int_equal(kit_commit(), EINVAL);
	assert_int_equal(kit_change(API_INSTANCE, "internet", &n, sizeof(n)), EINVAL);
}

static void counted(void **state)
{
	static struct frame f;

	put_bng(&pppoe, API_MSS_PATH);
	put_agf(3, API_MSS_PATH);
	struct api_mss_row internet = mss_row("internet"), nameless = mss_row("");
	pass(2, TCP_SYN, 1460, 1452, 1432);
	pass(2, TCP_SYN, 1432, 1432, 1432);
	pass(2, ACK, 0, 0, 0);
	pass(3, TCP_SYN, 1460, 1416, 1396);
	assert_int_equal(mss_row("internet").uplink - internet.uplink, 2);
	assert_int_equal(mss_row("internet").downlink - internet.downlink, 2);
	assert_int_equal(mss_row("").uplink - nameless.uplink, 2);
	assert_int_equal(mss_row("").downlink - nameless.downlink, 2);
	assert_int_equal(mss_row("internet").malformed - internet.malformed, 0);
	tcp_packet_with(&f, gateway_ue(2, 4), FAR4, TCP_SYN, (const uint8_t[]){3, 0, 2, 4}, 4, 0);
	bng_access(&f, &pppoe, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
	assert_int_equal(mss_row("internet").malformed - internet.malformed, 1);
	assert_int_equal(mss_row("internet").uplink - internet.uplink, 2);
}

// Unreadable options leave unchanged, and so do fragments.
static void left_alone(void **state)
{
	static const uint8_t bad[][8] = {{2, 0, 5, 180}, {2, 1, 5, 180}, {2, 3, 5, 180}, {2, 5, 5, 180, 1},
		{1, 1, 1, 1, 1, 1, 1, 2}, {1, 1, 1, 1, 1, 2, 4, 5}, {3, 0, 2, 4, 5, 180}, {254, 255, 2, 4, 5, 180},
		{0, 2, 4, 5, 180}};
	static struct frame in, out;

	put_bng(&pppoe, API_MSS_PATH);
	for (uint32_t i = 0; i < RTE_DIM(bad) + 1; i++) {
		struct frame *const both[] = {&in, &out};

		for (int k = 0; k < 2; k++) {
			if (i < RTE_DIM(bad))
				tcp_packet_with(both[k], gateway_ue(2, 4), FAR4, TCP_SYN, bad[i], sizeof(bad[i]), 0);
			else
				tcp_packet_with(both[k], gateway_ue(2, 4), FAR4, TCP_SYN,
					(const uint8_t[]){2, 4, 5, 180}, 4, 64);
			if (i == RTE_DIM(bad))
				frame_fragment(both[k], 0, 1);
		}
		wrap(&in, 2, 1, 0);
		wrap(&out, 2, 1, 1);
		expect("access", &in, "internet", &out);
	}
}

static int begin(void **state)
{
	bng_start(NULL);
	gateway_homes(3, 4);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(path),
		cmocka_unit_test(number),
		cmocka_unit_test(none),
		cmocka_unit_test(of_instance),
		cmocka_unit_test(refused),
		cmocka_unit_test(counted),
		cmocka_unit_test(left_alone),
	};

	return cmocka_run_group_tests(list, begin, NULL);
}
