// SPDX-License-Identifier: Apache-2.0
// Hostile IP on the core side: fragments (row G22), TTL and size (row G23), malformed and stray packets.
#include "hostile/hostile.h"
#include "testkit/reasons.h"
#include <errno.h>

#define FLOOD 100000

// A fragment of `length` payload bytes at byte `offset` of packet `id` to our tunnel address.
static void fragment(struct frame *f, int family, uint32_t id, uint32_t offset, uint32_t length, int more)
{
	frame_payload(f, length);
	if (family == 6) {
		uint8_t *p = frame_push(f, 8);

		p[0] = 17;
		store16(p + 2, (uint16_t)(offset | (uint32_t)more));
		store32(p + 4, id);
		frame_ip(f, "fd00::2", "fd00::1", 44);
	} else {
		frame_ip(f, "10.0.0.2", "10.0.0.1", 17);
		store16(f->at + 4, (uint16_t)id);
		store16(f->at + 6, (uint16_t)(offset / 8 | (more ? 0x2000 : 0)));
		f->at[15] = (uint8_t)(id >> 16); // another peer for another 65536
		frame_ip4_sum(f);
	}
	if (offset == 0) { // the first one begins with a UDP header
		uint8_t *udp = f->at + (family == 6 ? 48 : 20);

		store16(udp, 2152);
		store16(udp + 2, 2152);
		store16(udp + 4, 2000);
		if (family == 4)
			frame_ip4_sum(f);
	}
	frame_ethernet(f, gateway_mac[1], gateway_upf, family == 6 ? 0x86dd : 0x0800);
}

// 10^5 packets of one source with their first fragment alone: at most its part of max_fragments wait, and none a second
// later.
static void never_completed(int family, uint32_t offset, uint32_t length)
{
	static struct frame f;
	uint32_t limit = engine_get()->max_fragments;
	struct api_total_row before;
	uint64_t full = kit_reason("reassembly-source"), late = kit_reason("reassembly-timeout");

	kit_advance(2000003);
	uint32_t buffers = kit_buffers_in_use();
	kit_clear();
	before = kit_totals();
	for (uint32_t i = 0; i < FLOOD; i++) {
		fragment(&f, family, i, offset, length, 1);
		assert_int_equal(kit_send("core", f.at, f.length), 0);
		if (i % 64 == 63)
			kit_run();
		if (i % 10000 == 9999) {
			kit_run();
			assert_true(kit_totals().held <= limit);
			assert_true(kit_buffers_in_use() <= buffers + limit);
			assert_true(gateway_undisturbed());
		}
	}
	kit_run();
	assert_int_equal(all_out(), 0);
	assert_true(kit_balance());
	assert_true(kit_reason("reassembly-source") - full >= FLOOD - limit);
	assert_int_equal(kit_reason("reassembly-source") - full + kit_totals().held, FLOOD);
	uint64_t held = kit_totals().held;
	assert_in_range(held, 1, limit / 2); // of two workers, 16 each
	kit_advance(2000003);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_reason("reassembly-timeout") - late, held);
	assert_int_equal(kit_buffers_in_use(), buffers);
	assert_int_equal(kit_totals().dropped - before.dropped, FLOOD);
	assert_true(kit_balance());
	assert_true(gateway_undisturbed());
}

static void g22_fragments_never_completed(void **state)
{
	never_completed(4, 0, 64);
	never_completed(6, 0, 64);
}

// Later fragments alone, 8 bytes each.
static void g22_tiny_fragments(void **state)
{
	never_completed(4, 8, 8);
	never_completed(6, 800, 8);
}

// Two that overlap, and then the rest: nothing is put together from them (RFC 5722, RFC 8200 §4.5).
static void g22_overlapping_fragments(void **state)
{
	static struct frame f;

	for (int family = 4; family <= 6; family += 2)
		for (uint32_t n = 0; n < 50; n++) {
			uint64_t gone, in = kit_totals().in;

			kit_advance(2000003);
			gone = kit_totals().dropped;
			uint32_t buffers = kit_buffers_in_use();
			kit_clear();
			fragment(&f, family, 500 + n, 0, 64, 1);
			send_one("core", &f);
			fragment(&f, family, 500 + n, 64 - 8 * (1 + n % 7), 64, 1); // begins before the first one's end
			send_one("core", &f);
			fragment(&f, family, 500 + n, 64 - 8 * (1 + n % 7) + 64, 40, 0);
			send_one("core", &f);
			kit_advance(2000003);
			assert_int_equal(kit_totals().in - in, 3);
			assert_int_equal(kit_totals().dropped - gone + 0, 3);
			assert_int_equal(all_out(), 0);
			assert_int_equal(kit_buffers_in_use(), buffers);
			assert_true(kit_balance());
		}
	assert_true(gateway_undisturbed());
}

static void broken_fragment(struct frame *f, uint32_t i, uint32_t variant)
{
	int family = variant & PPPOE ? 6 : 4;

	switch (i % 3) {
	case 0: // not a multiple of 8, and more follow
		fragment(f, family, i, 8, 61, 1);
		break;
	case 1: // past 65535 ("ping of death")
		fragment(f, family, i, 65528, 64, 0);
		break;
	default: // empty
		fragment(f, family, i, 64, 0, 0);
	}
}

static void g22_impossible_fragments(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G22", "core", broken_fragment, 30, "reassembly-malformed", 1}}));
}

// Fragments inside the tunnel and from subscribers are user data like any other.
static void g22_inner_fragments_pass(void **state)
{
	static struct frame f, want;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++)
		for (int k = 0; k < 8; k++) {
			struct frame *both[] = {&f, &want};
			int uplink = k & 1, later = k & 2, family = family_of(variant);

			for (int n = 0; n < 2; n++) {
				frame_payload(both[n], k & 4 ? 8 : 64);
				if (!later)
					frame_udp(
						both[n], 2152, 67); // port of a control protocol, cut off from its end
				if (family == 6) {
					uint8_t *p = frame_push(both[n], 8);

					p[0] = 17;
					store16(p + 2, later ? 0x10 : 1);
				}
				frame_ip(both[n], uplink ? ue_of(variant) : far_of(variant),
					uplink ? far_of(variant) : ue_of(variant), family == 6 ? 44 : 17);
				if (family == 4) {
					store16(both[n]->at + 6, later ? 2 : 0x2000);
					frame_ip4_sum(both[n]);
				}
			}
			uplink ? gateway_from_home(&f, home_of(variant)) : gateway_from_upf(&f, home_of(variant));
			uplink ? gateway_to_upf(&want, home_of(variant)) : gateway_to_home(&want, home_of(variant));
			kit_clear();
			send_one(uplink ? "access" : "core", &f);
			assert_int_equal(all_out(), 1);
			assert_true(gateway_same(uplink ? "core" : "access", 0, &want));
		}
	snapshot_compare(&b, NULL, 0);
}

// From the UPF's network to the Internet: a packet that is routed.
static void routed(struct frame *f, int family, uint8_t ttl, uint32_t payload, int df)
{
	frame_payload(f, payload);
	frame_udp(f, 4000, 5000);
	frame_ip(f, family == 4 ? "10.0.0.2" : "fd00::2", family == 4 ? FAR4 : FAR6, 17);
	f->at[family == 4 ? 8 : 7] = ttl;
	if (family == 4) {
		f->at[6] = df ? 0x40 : 0;
		frame_ip4_sum(f);
	}
	frame_ethernet(f, gateway_mac[1], gateway_upf, family == 4 ? 0x0800 : 0x86dd);
}

// `count` packets, of which the limit lets `burst` be answered; no answer is longer than its packet or than allowed.
static void rate_limited(int family, uint8_t ttl, uint32_t payload, int df, uint8_t type)
{
	static struct frame f;
	uint32_t count = 1000, burst = burst_of(100);
	struct snapshot b;

	kit_advance(1000003);
	snapshot_take(&b);
	kit_clear();
	for (uint32_t i = 0; i < count; i++) {
		routed(&f, family, ttl, payload, df);
		send_one("core", &f);
	}
	assert_int_equal(kit_count("internet") + kit_count("access"), 0);
	assert_int_equal(kit_count("core"), burst);
	for (uint32_t i = 0; i < burst; i++) {
		struct ip_info ip;
		const uint8_t *p = out_ip("core", i, &ip);

		assert_int_equal(p[ip.l4], type);
		assert_true(ip.length <= (family == 4 ? 576u : 1280u));
		if (payload > 1400)
			assert_true(kit_frame("core", i)->length <= f.length);
	}
	snapshot_compare(&b, "icmp-rate-limit", count - burst);
	assert_true(gateway_undisturbed());
}

static void g23_ttl_and_size(void **state)
{
	rate_limited(4, 1, 60, 0, ICMP4_TIME_EXCEEDED);
	rate_limited(6, 1, 60, 0, ICMP6_TIME_EXCEEDED);
	rate_limited(4, 0, 60, 0, ICMP4_TIME_EXCEEDED);
	rate_limited(6, 0, 60, 0, ICMP6_TIME_EXCEEDED);
	rate_limited(4, 9, 1600, 1, ICMP4_UNREACHABLE);
	rate_limited(6, 9, 1600, 0, ICMP6_TOO_BIG);
	rate_limited(4, 9, 9000, 1, ICMP4_UNREACHABLE); // a jumbo frame, in several buffers
	rate_limited(6, 9, 9000, 0, ICMP6_TOO_BIG);
}

// Larger than the subscriber's MTU: the sender gets an ICMP error through the tunnel, within the limit.
static void g23_too_big_for_subscriber(void **state)
{
	static struct frame f;

	for (uint32_t variant = 0; variant < VARIANTS; variant++) {
		uint32_t burst = burst_of(100);
		struct snapshot b;

		kit_advance(1000003);
		snapshot_take(&b);
		kit_clear();
		for (uint32_t i = 0; i < 200; i++) {
			frame_payload(&f, 1600 + i * 30);
			frame_udp(&f, 4000, 5000);
			frame_ip(&f, far_of(variant), ue_of(variant), 17);
			if (!(variant & INNER6)) {
				f.at[6] = 0x40;
				frame_ip4_sum(&f);
			}
			gateway_from_upf(&f, home_of(variant));
			send_one("core", &f);
		}
		assert_int_equal(kit_count("access") + kit_count("internet"), 0);
		assert_int_equal(kit_count("core"), burst);
		for (uint32_t i = 0; i < burst; i++)
			assert_true(kit_frame("core", i)->length < 1600);
		snapshot_compare(&b, "icmp-rate-limit", 200 - burst);
		assert_true(gateway_undisturbed());
	}
}

// Up to 12 KB from a subscriber, towards a core link of 1500 bytes: outer fragments, each of which fits.
static void g23_jumbo_uplink(void **state)
{
	static struct frame f;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++)
		for (uint32_t size = 1460; size < 11500; size += 1233) {
			frame_payload(&f, size);
			frame_udp(&f, 4000, 5000);
			frame_ip(&f, ue_of(variant), far_of(variant), 17);
			gateway_from_home(&f, home_of(variant));
			kit_clear();
			send_one("access", &f);
			assert_in_range(all_out(), 2, 10);
			for (uint32_t i = 0; i < kit_count("core"); i++)
				assert_true(kit_frame("core", i)->length <= 1514);
			kit_clear();
		}
	snapshot_compare(&b, NULL, 0);
}

static void core_martian(struct frame *f, uint32_t i, uint32_t variant)
{
	static const char *const bad4[] = {"0.0.0.0", "127.0.0.1", "224.0.0.9", "240.1.1.1", "255.255.255.255"};
	static const char *const bad6[] = {"::", "::1", "ff02::9", "::ffff:1.2.3.4", "ff0e::1"};
	int six = variant & PPPOE;

	frame_payload(f, 40);
	frame_udp(f, 4000, 5000);
	frame_ip(f, six ? bad6[i % 5] : bad4[i % 5], six ? FAR6 : FAR4, 17);
	frame_ethernet(f, gateway_mac[1], gateway_upf, six ? 0x86dd : 0x0800);
}

static void core_checksum(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, 0, 0);
	f->at[10] ^= (uint8_t)(1 + i);
	frame_ethernet(f, gateway_mac[1], gateway_upf, 0x0800);
}

static void core_short(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, 0, 0);
	frame_ethernet(f, gateway_mac[1], gateway_upf, 0x0800);
	f->length = 1 + i % 13; // within the Ethernet header
}

static void core_cut(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_ethernet(f, gateway_mac[1], gateway_upf, variant & INNER6 ? 0x86dd : 0x0800);
	f->length = 14 + i % 20; // within the IP header
}

static void core_other_mac(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_ethernet(f, gateway_router, gateway_upf, variant & INNER6 ? 0x86dd : 0x0800);
}

// RFC 1122 §3.3.6, RFC 1812 §5.3.4: to a broadcast or multicast MAC address, and to one IP address. Plain IP, and a
// tunnel's packet.
static void to_group(struct frame *f, uint32_t i)
{
	static const uint8_t group[3][6] = {
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 9}, {0x33, 0x33, 0, 0, 0, 1}};

	memcpy(f->at, group[i % 3], 6);
}

static void core_group(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 1);
	frame_ethernet(f, gateway_mac[1], gateway_upf, variant & INNER6 ? 0x86dd : 0x0800);
	to_group(f, i);
}

static void core_group_tunnel(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	gateway_from_upf(f, home_of(variant));
	to_group(f, i);
}

static void core_ethernet_and_ip(void **state)
{
	BAD_ROWS(((const struct bad[]){{"core martian", "core", core_martian, 20, "ip-martian-source", 1},
		{"core checksum", "core", core_checksum, 20, "ip-checksum", 1},
		{"core Ethernet", "core", core_short, 13, "ethernet-short", 1},
		{"core IP", "core", core_cut, 20, "ip-short", 0},
		{"core MAC", "core", core_other_mac, 20, "mac-not-ours", 0},
		{"core group MAC", "core", core_group, 18, "ethernet-group-unicast", 0},
		{"core group MAC, tunnel", "core", core_group_tunnel, 18, "ethernet-group-unicast", 0}}));
}

// Jumbo frames until no buffer is left, each of which needs more buffers for its fragments.
static void buffers_run_out(void **state)
{
	static struct frame f;
	struct kit_reasons before = kit_reasons();
	uint64_t in = kit_totals().in;
	uint32_t buffers = kit_buffers_in_use(), sent = 0;
	int error = 0;

	frame_payload(&f, 11000);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, gateway_ue(HOME_QINQ, 4), FAR4, 17);
	gateway_from_home(&f, HOME_QINQ);
	while (error == 0 && sent < 2000) {
		error = kit_send("access", f.at, f.length);
		sent += error == 0;
	}
	assert_int_equal(error, ENOMEM);
	kit_only_rose(&before, "receive-no-buffer", 1);
	before = kit_reasons();
	uint64_t dropped = kit_totals().dropped;
	kit_clear();
	kit_run();
	// The frame that found no buffer was not received: named, and no part of the sum.
	assert_int_equal(kit_totals().in - in, sent);
	uint32_t count;
	const struct api_port_row *row = kit_rows(API_TABLE_PORT, "access", sizeof(*row), &count);
	assert_in_range(row->rx_no_buffer, 1, 10);
	dropped = kit_totals().dropped - dropped;
	assert_in_range(dropped, 1, sent - 1);
	kit_only_rose(&before, "fragment-no-buffer", dropped);
	assert_true(kit_balance());
	assert_int_equal(kit_buffers_in_use(), buffers);
	kit_clear();
	assert_true(gateway_undisturbed());
}

const struct CMUnitTest ip_rows[] = {
	cmocka_unit_test(g22_fragments_never_completed),
	cmocka_unit_test(g22_tiny_fragments),
	cmocka_unit_test(g22_overlapping_fragments),
	cmocka_unit_test(g22_impossible_fragments),
	cmocka_unit_test(g22_inner_fragments_pass),
	cmocka_unit_test(g23_ttl_and_size),
	cmocka_unit_test(g23_too_big_for_subscriber),
	cmocka_unit_test(g23_jumbo_uplink),
	cmocka_unit_test(core_ethernet_and_ip),
	cmocka_unit_test(buffers_run_out),
};
const size_t ip_row_count = sizeof(ip_rows) / sizeof(ip_rows[0]);
