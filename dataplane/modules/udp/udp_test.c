// SPDX-License-Identifier: Apache-2.0
// UDP/IP tunnels both ways, and copies of a session's packets.
#include "session/mobile_fixture.h"

static int setup(void **state)
{
	fixture_start(NULL);
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s1");
	fixture_instances(0, 0);
	commit();
	kit_run();
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

static void outer_udp(struct frame *f, const char *from, const char *to, uint16_t source, uint16_t destination)
{
	frame_udp(f, source, destination);
	frame_ip(f, from, to, 17);
}

static void created(void **state)
{
	struct kit_mobile *k = upf_session(1);
	static struct frame f, want;

	k->far[1].outer = API_OUTER_UDP;
	k->far[1].port = 6000;
	k->far[1].dscp = 46;
	put("s1", k);
	downlink_of(&f, FAR4, "10.45.0.1");
	ip_packet(&want, FAR4, "10.45.0.1", 80);
	outer_udp(&want, "10.1.0.1", "10.1.0.2", 6000, 6000);
	want.at[1] = 46 << 2;
	link_layer(&want, "ran", 0);
	send_frame("internet", &f);
	assert_int_equal(kit_count("ran"), 1);
	uint8_t *got = kit_frame("ran", 0)->bytes;
	assert_true(ip4_checksum_ok(got + 14));
	memcpy(got + 18, want.at + 18, 2); // identification and its checksum
	memcpy(got + 24, want.at + 24, 2);
	assert_int_equal(kit_frame("ran", 0)->length, want.length);
	assert_memory_equal(got, want.at, want.length);
	assert_true(kit_balance());
	// Over IPv6 with its checksum.
	strcpy(k->far[1].path, "gnb6");
	put("s1", k);
	send_frame("internet", &f);
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *ip = kit_frame("ran", 0)->bytes + 14;
	assert_int_equal(kit_frame("ran", 0)->length, 14 + 40 + 8 + 108);
	assert_int_equal(checksum_finish(checksum_add(checksum_pseudo(6, ip + 8, ip + 24, 17, 116), ip + 40, 116)), 0);
}

static void removed(void **state)
{
	struct api_instance n = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	static struct frame f, want;

	put("s1", upf_session(1));
	n.udp_port = 7000;
	kit_begin();
	kit_put(API_INSTANCE, "core", &n, sizeof(n));
	commit();
	ip_packet(&f, FAR4, "10.45.0.1", 80);
	outer_udp(&f, "192.0.2.2", "192.0.2.1", 5555, 7000);
	link_layer(&f, "internet", 1);
	expect("internet", &f, "ran", tunnelled_out(&want, FAR4, "10.45.0.1", 0x201, 0xff));
	// The port is of that instance's interface only.
	ip_packet(&f, FAR4, "10.45.0.1", 80);
	outer_udp(&f, "10.1.0.2", "10.1.0.1", 5555, 7000);
	link_layer(&f, "ran", 1);
	expect_drop("ran", &f, "udp-not-endpoint");
	ip_packet(&f, FAR4, "10.45.0.1", 80);
	f.at[3]++; // longer than the tunnel packet
	frame_ip4_sum(&f);
	outer_udp(&f, "192.0.2.2", "192.0.2.1", 5555, 7000);
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "udp-inner-malformed");
	ip_packet(&f, FAR4, "10.45.0.1", 80);
	outer_udp(&f, "192.0.2.2", "192.0.2.1", 5555, 7000);
	store16(f.at + 24, (uint16_t)(load16(f.at + 24) - 4)); // UDP ends before the IP packet does
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "udp-length");
	ip_packet(&f, "127.0.0.1", "10.45.0.1", 80);
	outer_udp(&f, "192.0.2.2", "192.0.2.1", 5555, 7000);
	link_layer(&f, "internet", 1);
	expect_drop("internet", &f, "udp-inner-martian");
}

static void only_drops(const struct frame *f, const char *reason)
{
	struct kit_reasons before = kit_reasons();

	send_frame("internet", f);
	kit_only_rose(&before, reason, 1);
	assert_int_equal(all_out(), 0);
}

// RFC 1122 §4.1.3.4, RFC 1812 §5.2.2.
static void checksums(void **state)
{
	struct api_instance n = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	static struct frame f, want;

	put("s1", upf_session(1));
	n.udp_port = 7000;
	kit_begin();
	kit_put(API_INSTANCE, "core", &n, sizeof(n));
	commit();
	for (int six = 0; six < 2; six++) {
		const char *from = six ? "2001:db8:6::2" : "192.0.2.2", *to = six ? "2001:db8:6::1" : "192.0.2.1";
		uint32_t udp = six ? 54 : 34;

		for (int inner = 0; inner < 2; inner++) {
			ip_packet(&f, FAR4, "10.45.0.1", 80);
			f.at[10] ^= (uint8_t)inner;
			outer_udp(&f, from, to, 5555, 7000);
			link_layer(&f, "internet", 1);
			if (inner)
				only_drops(&f, "udp-inner-checksum");
			else
				expect("internet", &f, "ran", tunnelled_out(&want, FAR4, "10.45.0.1", 0x201, 0xff));
		}
		f.at[udp + 6] ^= 0x10;
		only_drops(&f, "udp-checksum");
	}
	memset(f.at + 60, 0, 2); // none over IPv6
	only_drops(&f, "udp-checksum");
}

// RFC 6040 §4: congestion marks enter and leave the tunnel. 9: dropped.
static void ecn(void **state)
{
	static const uint8_t leaves[4][4] = {{0, 1, 2, 3}, {0, 1, 1, 3}, {0, 1, 2, 3}, {9, 3, 3, 3}};
	struct api_instance n = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct kit_mobile *k = upf_session(1);
	static struct frame f;

	n.udp_port = 7000;
	k->far[1].outer = API_OUTER_UDP;
	k->far[1].port = 6000;
	k->far[1].dscp = 46;
	put("s1", k);
	kit_begin();
	kit_put(API_INSTANCE, "core", &n, sizeof(n));
	commit();
	for (uint8_t pair = 0; pair < 16; pair++) {
		uint8_t outer = pair >> 2, inner = pair & 3;
		uint8_t want = leaves[outer][inner];
		int dropped = want == 9;
		struct kit_reasons before = kit_reasons();

		ip_packet(&f, FAR4, "10.45.0.1", 80);
		f.at[1] = inner;
		frame_ip4_sum(&f);
		outer_udp(&f, "192.0.2.2", "192.0.2.1", 5555, 7000);
		f.at[1] = outer;
		frame_ip4_sum(&f);
		link_layer(&f, "internet", 1);
		send_frame("internet", &f);
		kit_only_rose(&before, "udp-inner-ecn", (uint64_t)dropped);
		assert_int_equal(kit_count("ran"), !dropped);
		if (dropped)
			continue;
		const uint8_t *ip = kit_frame("ran", 0)->bytes + 14;
		assert_int_equal(ip[1], 46 << 2 | want);
		assert_int_equal(ip[28 + 1], want);
		assert_true(ip4_checksum_ok(ip) && ip4_checksum_ok(ip + 28));
	}
}

static void copies(void **state)
{
	struct kit_mobile *k = upf_session(1);
	struct api_far_more *more = kit_far_more(k, &k->far[1]);
	static struct frame f, want, copy;

	k->far[1].action |= API_FAR_DUPLICATE;
	more->duplicate_outer = API_OUTER_GTPU;
	more->duplicate_teid = 0xabcd;
	strcpy(more->duplicate_path, "peer");
	put("s1", k);
	uint64_t originated = kit_totals().originated;
	send_frame("internet", downlink_of(&f, FAR4, "10.45.0.1"));
	assert_int_equal(all_out(), 2);
	assert_int_equal(kit_totals().originated - originated, 1);
	assert_true(same_frame("ran", 0, tunnelled_out(&want, FAR4, "10.45.0.1", 0x201, 0xff)));
	ip_packet(&copy, FAR4, "10.45.0.1", 80);
	tunnel(&copy, "10.9.0.1", "10.9.0.2", 0xabcd, 0xff, API_PDU_NONE);
	link_layer(&copy, "peers", 0);
	assert_true(same_frame("peers", 0, &copy));
	ip_packet(&f, FAR4, "10.45.0.1", 80);
	f.at[1] = 2; // ECT(0), of the copy's outer header too
	frame_ip4_sum(&f);
	link_layer(&f, "internet", 1);
	send_frame("internet", &f);
	assert_int_equal(kit_frame("peers", 0)->bytes[14 + 1], 2);
	assert_true(kit_balance());
	// What cannot be done is refused.
	strcpy(more->duplicate_path, "nowhere");
	assert_int_not_equal(refused("s1", k), 0);
	k->far[1].more = 0;
	assert_int_not_equal(refused("s1", k), 0);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(created, clean),
		cmocka_unit_test_teardown(removed, clean),
		cmocka_unit_test_teardown(checksums, clean),
		cmocka_unit_test_teardown(ecn, clean),
		cmocka_unit_test_teardown(copies, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
