// SPDX-License-Identifier: Apache-2.0
// Explicit congestion notification at both ends of tunnels (RFC 6040, normal mode): mobile and wireline, each
// direction, on the fast path and through the full nodes.
#include "gtpu/tunnel_fixture.h"

enum { NOT_ECT, ECT1, ECT0, CE, DROPPED };

// RFC 6040 §4.2, figure 4: by outer and inner ECN.
static const uint8_t leaves[4][4] = {
	[NOT_ECT] = {[NOT_ECT] = NOT_ECT, [ECT0] = ECT0, [ECT1] = ECT1, [CE] = CE},
	[ECT0] = {[NOT_ECT] = NOT_ECT, [ECT0] = ECT0, [ECT1] = ECT1, [CE] = CE},
	[ECT1] = {[NOT_ECT] = NOT_ECT, [ECT0] = ECT1, [ECT1] = ECT1, [CE] = CE},
	[CE] = {[NOT_ECT] = DROPPED, [ECT0] = CE, [ECT1] = CE, [CE] = CE},
};

static int setup(void **state)
{
	start_fixture(NULL);
	return 0;
}

static uint8_t class_of(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
}

static void set_class(uint8_t *ip, uint8_t class)
{
	if (ip[0] >> 4 == 4) {
		ip[1] = class;
		ip4_checksum_set(ip);
		return;
	}
	ip[0] = (uint8_t)(0x60 | class >> 4);
	ip[1] = (uint8_t)(class << 4 | (ip[1] & 0x0f));
}

// After a change behind the outer header.
static void outer_sum(uint8_t *ip)
{
	if (ip[0] >> 4 == 6)
		frame_udp6_sum(ip);
}

static const char *out_of(const struct tunnel_case *c)
{
	return c->mobile ? "internet" : "homes";
}

// The output equals that without ECN, except for its traffic class.
static void one_pair(const struct tunnel_case *c, int family, int padded, uint8_t outer, uint8_t inner)
{
	static struct frame f;
	static uint8_t plain[256];
	uint32_t l3 = c->vlan != 0 ? 18 : 14, length, at;
	uint8_t class = 46 << 2;

	gpdu(&f, c, family, 9, 1, 60);
	uint8_t *ip = f.at + l3, *user = ip + (ip[0] >> 4 == 4 ? 20 : 40) + 8 + 16;
	if (padded) // the full parse
		frame_append(&f, NULL, 4);
	set_class(user, class);
	outer_sum(ip);
	send_frame("ran", &f);
	assert_int_equal(kit_count(out_of(c)), 1);
	length = kit_frame(out_of(c), 0)->length;
	assert_true(length <= sizeof(plain));
	memcpy(plain, kit_frame(out_of(c), 0)->bytes, length);
	at = c->mobile ? 14 : 22;
	set_class(ip, outer);
	set_class(user, class | inner);
	outer_sum(ip);
	struct kit_reasons before = kit_reasons();
	send_frame("ran", &f);
	uint8_t want = leaves[outer][inner];
	kit_only_rose(&before, "gtpu-inner-ecn", want == DROPPED);
	assert_int_equal(kit_count(out_of(c)), want != DROPPED);
	assert_true(kit_balance());
	if (want == DROPPED)
		return;
	assert_int_equal(kit_frame(out_of(c), 0)->length, length);
	set_class(plain + at, class | want);
	assert_memory_equal(kit_frame(out_of(c), 0)->bytes, plain, length);
}

static void out_of_tunnels(void **state)
{
	static const struct tunnel_case six = {"IPv6", "fd00:1::1", "fd00:1::2", 0x104, 0, 1};

	for (uint32_t i = 0; i <= RTE_DIM(cases); i++)
		for (uint8_t pair = 0; pair < 16; pair++)
			for (int k = 0; k < 4; k++)
				one_pair(i < RTE_DIM(cases) ? &cases[i] : &six, k & 1 ? 6 : 4, k & 2, pair >> 2,
					pair & 3);
}

// A vector of marks keeps its order: packets that the fast path changes stay on it.
static void marks_in_a_vector(void **state)
{
	static struct frame f;
	uint64_t before = kit_node_packets("ip-input");

	kit_clear();
	for (uint32_t i = 0; i < 64; i++) {
		gpdu(&f, &cases[0], 4, 9, 1, 40 + i);
		set_class(f.at + 14 + 20 + 8 + 16, ECT0);
		set_class(f.at + 14, i % 3 == 0 ? CE : ECT0);
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	}
	kit_run();
	assert_int_equal(kit_count("internet"), 64);
	assert_int_equal(kit_node_packets("ip-input") - before, 0);
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(class_of(kit_frame("internet", i)->bytes + 14), i % 3 == 0 ? CE : ECT0);
}

// The outer header gets the inner ECN and the DSCP of the path or FAR (transport level marking).
static void into_tunnels(void **state)
{
	static struct frame f;

	for (uint32_t i = 0; i < 32; i++) {
		uint8_t ecn = i & 3, marked = i & 16 ? 46 : 0xff;
		const char *path = i & 8 ? "gnb6" : "gnb";
		struct kit_mobile *k = upf_session(1);

		snprintf(k->far[1].path, sizeof(k->far[1].path), "%s", path);
		k->far[1].dscp = marked;
		put("s1", k);
		ip_packet(&f, i & 4 ? FAR6 : FAR4, i & 4 ? "2001:db8:1:1::77" : "10.45.0.1", 60);
		set_class(f.at, 10 << 2 | ecn);
		link_layer(&f, "internet", 1);
		send_frame("internet", &f);
		assert_int_equal(kit_count("ran"), 1);
		const uint8_t *ip = kit_frame("ran", 0)->bytes + 14, *user = ip + (i & 8 ? 40 : 20) + 8 + 8;
		assert_int_equal(class_of(ip), (marked == 0xff ? 0 : marked << 2) | ecn);
		assert_int_equal(class_of(user), 10 << 2 | ecn);
		assert_true(i & 8 || ip4_checksum_ok(ip));
	}
	put("s1", upf_session(1));
}

// From tunnel to tunnel: out of the first, into the second.
static void through_tunnels(void **state)
{
	static const struct tunnel_case loose = {"", "10.6.0.1", "10.6.0.2", 0x105, 0, 1};
	static struct frame f;

	for (uint8_t pair = 0; pair < 16; pair++) {
		uint8_t want = leaves[pair >> 2][pair & 3];

		gpdu(&f, &loose, 4, NO_QFI, 1, 60);
		memcpy(f.at, (const uint8_t[]){2, 0, 0, 0, 0x99, 4}, 6);
		set_class(f.at + 14, pair >> 2);
		set_class(f.at + 14 + 20 + 8 + 8, pair & 3);
		send_frame("loose", &f);
		assert_int_equal(kit_count("loose"), want != DROPPED);
		if (want == DROPPED)
			continue;
		const uint8_t *ip = kit_frame("loose", 0)->bytes + 14;
		assert_int_equal(class_of(ip), want);
		assert_int_equal(class_of(ip + 20 + 8 + 8), want);
		assert_true(ip4_checksum_ok(ip) && ip4_checksum_ok(ip + 20 + 8 + 8));
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(out_of_tunnels),
		cmocka_unit_test(marks_in_a_vector),
		cmocka_unit_test(into_tunnels),
		cmocka_unit_test(through_tunnels),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
