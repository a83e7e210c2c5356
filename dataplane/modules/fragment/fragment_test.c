// SPDX-License-Identifier: Apache-2.0
// Fragmentation and reassembly through the whole graph, against a simple model that puts fragments together by offset.
#include "icmp/fixture_test.h"
#include "testkit/reasons.h"
#include "wire/ecn.h"
#include <stdlib.h>

struct whole {
	uint8_t p[4096]; // IP packet without fragment header
	uint8_t seen[4096];
	uint32_t length;
	uint8_t next_header; // IPv6
};

// Adds a fragment to the model.
static void model_add(struct whole *w, const uint8_t *p, const struct ip_info *ip)
{
	uint32_t header = ip->version == 4 ? (p[0] & 15) * 4u : 40;
	uint32_t data = ip->version == 4 ? header : 48;
	uint32_t offset = ip->version == 4 ? (load16(p + 6) & 0x1fff) * 8 : load16(p + 42) & 0xfff8;
	uint32_t size = ip->length - data;

	assert_in_range(header + offset + size, 1, sizeof(w->p));
	if (!(ip->fragment & IP_FRAGMENT_MORE))
		w->length = header + offset + size;
	else
		assert_int_equal(size % 8, 0);
	if (offset == 0) {
		memcpy(w->p, p, header);
		w->next_header = p[40];
	}
	for (uint32_t i = 0; i < size; i++)
		assert_int_equal(w->seen[header + offset + i]++, 0); // no overlap
	memcpy(w->p + header + offset, p + data, size);
}

// The frames sent by `port` are fragments of one packet, at most `mtu` bytes each; returns it whole.
static void collect(struct whole *w, const char *port, uint32_t count, uint32_t mtu)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(fixture_outs(), count);
	for (uint32_t i = 0; i < count; i++) {
		struct fixture_packet x = fixture_out(i, port);
		assert_in_range(x.length, 1, mtu);
		assert_int_not_equal(x.ip.fragment, 0);
		if (x.ip.version == 6)
			assert_int_equal(load32(x.p + 44), load32(fixture_out(0, port).p + 44));
		else
			assert_int_equal(load16(x.p + 4), load16(fixture_out(0, port).p + 4));
		model_add(w, x.p, &x.ip);
	}
	uint32_t header = w->p[0] >> 4 == 4 ? 20 : 40;
	assert_int_not_equal(w->length, 0);
	for (uint32_t i = header; i < w->length; i++)
		assert_int_equal(w->seen[i], 1); // no hole
	if (header == 20) {
		store16(w->p + 2, (uint16_t)w->length);
		store16(w->p + 6, 0);
		ip4_checksum_set(w->p);
	} else {
		store16(w->p + 4, (uint16_t)(w->length - 40));
		w->p[6] = w->next_header;
	}
}

// Cuts the packet at `ip` into frames of at most `size` bytes of data each. Returns how many.
static int cut(struct fixture_frame *out, const struct fixture_frame *f, const uint8_t *ip, uint32_t size, uint32_t id)
{
	uint32_t l2 = (uint32_t)(ip - f->bytes), header = ip[0] >> 4 == 4 ? 20 : 40;
	uint32_t length = header == 20 ? load16(ip + 2) : 40u + load16(ip + 4);
	int n = 0;

	for (uint32_t at = header; at < length; at += size, n++) {
		uint32_t part = RTE_MIN(size, length - at), more = at + part < length;
		uint8_t *p = out[n].bytes + l2;
		memcpy(out[n].bytes, f->bytes, l2 + header);
		if (header == 20) {
			store16(p + 2, (uint16_t)(20 + part));
			store16(p + 4, (uint16_t)id);
			store16(p + 6, (uint16_t)((at - header) / 8 | more << 13));
			ip4_checksum_set(p);
			memcpy(p + 20, ip + at, part);
			out[n].length = l2 + 20 + part;
		} else {
			store16(p + 4, (uint16_t)(8 + part));
			p[40] = p[6];
			p[6] = IP_PROTOCOL_FRAGMENT;
			p[41] = 0;
			store16(p + 42, (uint16_t)((at - header) | more));
			store32(p + 44, id);
			memcpy(p + 48, ip + at, part);
			out[n].length = l2 + 48 + part;
		}
	}
	return n;
}

static void forwarded_without_df(void **state)
{
	struct fixture_frame f;
	struct whole w;
	uint8_t *ip = fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 9, 1900, 0);

	store16(ip + 4, 0xbeef);
	ip4_checksum_set(ip);
	fixture_receive("north", &f);
	collect(&w, "south", 2, 1500);
	assert_int_equal(w.length, 1900);
	assert_int_equal(load16(w.p + 4), 0xbeef);
	assert_memory_equal(w.p + 20, ip + 20, 1880);
	fixture_balance();
}

// A fragment that is fragmented again keeps its place in the packet.
static void fragment_of_a_fragment(void **state)
{
	struct fixture_frame f;
	uint8_t *ip = fixture_plain(&f, "north", "10.1.0.9", "10.2.0.9", 9, 1900, 0);

	store16(ip + 6, 0x2000 | 100);
	ip4_checksum_set(ip);
	fixture_receive("north", &f);
	assert_int_equal(fixture_outs(), 2);
	struct fixture_packet a = fixture_out(0, "south");
	assert_int_equal(load16(a.p + 6), 0x2000 | 100);
	uint32_t first = a.length - 20;
	struct fixture_packet b = fixture_out(1, "south");
	assert_int_equal(load16(b.p + 6), 0x2000 | (100 + first / 8));
	fixture_balance();
}

// The outer packet is ours, so it is fragmented regardless of the subscriber's DF.
static void tunnel(void **state)
{
	static const char *const ue[] = {NULL, "100.64.0.5", "100.64.0.6"};

	for (uint16_t c_tag = 1; c_tag <= 2; c_tag++) {
		struct fixture_frame f;
		struct gtpu_info g;
		struct ip_info ip;
		struct whole w;

		fixture_fresh(state);
		const uint8_t *inner = fixture_from_home(&f, c_tag, ue[c_tag], "198.51.100.7", 64, 1490, 1);
		fixture_receive("homes", &f);
		collect(&w, "south", 2, 1500);
		assert_int_equal(ip_parse(w.p, w.length, w.length, &ip), IP_OK);
		fixture_address_is(ip.destination, c_tag == 1 ? "10.2.0.9" : "2001:db8:2::9");
		uint64_t sum =
			checksum_pseudo(ip.version, ip.source, ip.destination, IP_PROTOCOL_UDP, w.length - ip.l4);
		if (c_tag == 2)
			assert_int_equal(checksum_finish(checksum_add(sum, w.p + ip.l4, w.length - ip.l4)), 0);
		uint32_t at = ip.l4 + 8u;
		assert_int_equal(gtpu_parse(w.p + at, w.length - at, w.length - at, &g), GTPU_OK);
		assert_int_equal(g.teid, FIXTURE_TEID_UP + c_tag);
		assert_memory_equal(w.p + at + g.header_length, inner, 1490);
		fixture_balance();
	}
}

static void towards_subscriber(void **state)
{
	struct fixture_frame f;
	struct whole w;
	const uint8_t *inner = fixture_from_tunnel(&f, 1, "198.51.100.7", "100.64.0.5", 1450, 0);

	fixture_receive("south", &f);
	collect(&w, "homes", 2, 1400);
	assert_int_equal(w.length, 1450);
	assert_memory_equal(w.p + 20, inner + 20, 1430);
	for (uint32_t i = 0; i < 2; i++) {
		struct fixture_packet x = fixture_out(i, "homes");
		assert_int_equal(x.eth.vlan[0], 100);
		assert_int_equal(x.eth.vlan[1], 1);
	}
	fixture_balance();
}

// Our own large answer towards a subscriber: fragmented by us, IPv6 too.
static void echo_reply_to_subscriber(void **state)
{
	static const char *const ends[2][2] = {{"100.64.0.5", "100.64.0.1"}, {"2001:db8:a:5::77", "2001:db8:a::1"}};

	for (int i = 0; i < 2; i++) {
		struct fixture_frame f;
		struct whole w;

		fixture_fresh(state);
		uint8_t *ip = fixture_from_home(&f, 1, ends[i][0], ends[i][1], 64, 1450, 0);
		fixture_echo(&f, ip, 1450);
		fixture_receive("homes", &f);
		collect(&w, "homes", 2, 1400);
		assert_int_equal(w.length, 1450);
		assert_memory_equal(w.p + (i == 0 ? 28 : 48), ip + (i == 0 ? 28 : 48), 1400);
		fixture_balance();
	}
}

static uint64_t waiting(void)
{
	return kit_totals().held;
}

static uint64_t merged(void)
{
	return kit_totals().merged;
}

static struct fixture_frame piece[64];

static const char *const host[] = {"10.1.0.9", "2001:db8:1::9"}, *const ours[] = {"10.1.0.1", "2001:db8:1::1"};

// An echo request of `length` bytes to us, cut into piece[].
static int echo_pieces(struct fixture_frame *f, int family, uint32_t length, uint32_t size, uint32_t id)
{
	uint8_t *ip = fixture_plain(f, "north", host[family], ours[family], 64, length, 0);

	fixture_echo(f, ip, length);
	return cut(piece, f, ip, size, id);
}

// The one frame that left answers the request.
static void answered(const struct fixture_frame *f, int family, uint32_t length)
{
	uint32_t header = family == 0 ? 20 : 40;

	assert_int_equal(fixture_outs(), 1);
	struct fixture_packet x = fixture_out(0, "north");
	assert_int_equal(x.length, length);
	fixture_icmp(x.p, &x.ip, family == 0 ? ICMP4_ECHO_REPLY : ICMP6_ECHO_REPLY, 0);
	assert_memory_equal(x.p + header + 4, f->bytes + 14 + header + 4, length - header - 4);
}

static void any_order(void **state)
{
	static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (int family = 0; family < 2; family++)
		for (int k = 0; k < 6; k++) {
			uint64_t before = merged();
			struct fixture_frame f;

			fixture_fresh(state);
			assert_int_equal(echo_pieces(&f, family, 1300, 480, 77 + k), 3);
			for (int i = 0; i < 3; i++) {
				assert_int_equal(fixture_outs(), 0);
				assert_int_equal(waiting(), i);
				fixture_receive("north", &piece[order[k][i]]);
				fixture_balance();
			}
			answered(&f, family, 1300);
			assert_int_equal(waiting(), 0);
			assert_int_equal(merged() - before, 2);
		}
}

// G-PDUs whose outer packet was fragmented on the way to us reach the subscriber.
static void fragmented_tunnel(void **state)
{
	struct fixture_frame f;
	const uint8_t *inner = fixture_from_tunnel(&f, 1, "198.51.100.7", "100.64.0.5", 1300, 1);

	assert_int_equal(cut(piece, &f, f.bytes + 14, 800, 5), 2);
	fixture_receive("south", &piece[1]);
	fixture_receive("south", &piece[0]);
	assert_int_equal(fixture_outs(), 1);
	struct fixture_packet x = fixture_out(0, "homes");
	assert_int_equal(x.length, 1300);
	assert_memory_equal(x.p, inner, 1300);
	fixture_balance();
}

// RFC 3168 §5.3: all pairs of codepoints of two fragments, in both orders.
static void congestion_marks(void **state)
{
	for (int i = 0; i < 64; i++) {
		uint8_t ecn[2] = {i & 3, i >> 2 & 3}, both = (uint8_t)(1 << ecn[0] | 1 << ecn[1]);
		int family = i >> 4 & 1, marked = (both & 1 << ECN_CE) != 0, bad = marked && (both & 1 << ECN_NOT_ECT);
		struct kit_reasons before = kit_reasons();
		struct fixture_frame f;

		fixture_fresh(state);
		assert_int_equal(echo_pieces(&f, family, 900, 480, 300 + i), 2);
		for (int k = 0; k < 2; k++)
			ip_traffic_class_set(family == 0 ? 4 : 6, piece[k].bytes + 14, (uint8_t)(10 << 2 | ecn[k]));
		fixture_receive("north", &piece[i >> 5]);
		fixture_receive("north", &piece[1 - (i >> 5)]);
		fixture_balance();
		assert_int_equal(waiting(), 0);
		if (bad) {
			assert_int_equal(fixture_outs(), 0);
			kit_only_rose(&before, "reassembly-ecn", 2);
			continue;
		}
		answered(&f, family, 900);
		struct fixture_packet x = fixture_out(0, "north");
		assert_int_equal(ip_traffic_class(x.ip.version, x.p), 10 << 2 | (marked ? ECN_CE : ecn[0]));
	}
}

// Row G22: never completed.
static void time_out(void **state)
{
	uint64_t before = kit_reason("reassembly-timeout");
	struct fixture_frame f;

	for (int family = 0; family < 2; family++) {
		echo_pieces(&f, family, 1300, 480, 99);
		fixture_receive("north", &piece[0]);
		fixture_receive("north", &piece[2]);
	}
	assert_int_equal(waiting(), 4);
	fixture_wait(0.9);
	assert_int_equal(waiting(), 4);
	fixture_wait(0.3);
	assert_int_equal(waiting(), 0);
	assert_int_equal(kit_reason("reassembly-timeout") - before, 4);
	fixture_receive("north", &piece[1]); // too late, alone
	assert_int_equal(fixture_outs(), 0);
	fixture_balance();
}

// Row G22: a flood of first fragments from two sources takes each source's part of our 64 buffers and no more; other
// packets pass.
static void flood(void **state)
{
	uint64_t late = kit_reason("reassembly-timeout");
	struct kit_reasons before = kit_reasons();
	struct fixture_frame f;

	for (uint32_t id = 0; id < 5000; id++) {
		echo_pieces(&f, (int)(id & 1), 1300, 480, id);
		fixture_receive("north", &piece[0]);
	}
	assert_in_range(waiting(), 2 * 16, 2 * 2 * 16);
	kit_only_rose(&before, "reassembly-source", 5000 - waiting());
	fixture_balance();
	uint64_t held = waiting();
	fixture_wait(1.2);
	assert_int_equal(waiting(), 0);
	assert_int_equal(kit_reason("reassembly-timeout") - late, held);
	kit_clear();
	echo_pieces(&f, 0, 1300, 480, 1);
	for (int i = 0; i < 3; i++)
		fixture_receive("north", &piece[i]);
	answered(&f, 0, 1300);
	fixture_balance();
}

// Row G22: buffers count, not packets. Seven of the nine fragments of each packet, from many sources, hold all of the
// limit and not seven times as much. A new packet still gets through, because the oldest is removed.
static void flood_of_many(void **state)
{
	struct kit_reasons reasons = kit_reasons();
	uint32_t before = kit_buffers_in_use();
	struct fixture_frame f;

	for (uint32_t id = 0; id < 2000; id++) {
		char from[32];

		snprintf(from, sizeof(from), "10.1.0.%u", 10 + id % 200);
		uint8_t *ip = fixture_plain(&f, "north", from, ours[0], 64, 1300, 0);
		assert_int_equal(cut(piece, &f, ip, 152, id), 9);
		for (int i = 0; i < 7; i++)
			fixture_receive("north", &piece[i]);
		assert_in_range(kit_buffers_in_use() - before, 1, 64);
	}
	assert_in_range(waiting(), 32, 64);
	kit_only_rose(&reasons, "reassembly-full", 2000 * 7 - waiting());
	fixture_balance();
	echo_pieces(&f, 0, 1300, 480, 1);
	for (int i = 0; i < 3; i++)
		fixture_receive("north", &piece[i]);
	answered(&f, 0, 1300);
	fixture_wait(1.2);
	assert_int_equal(kit_buffers_in_use(), before);
	fixture_balance();
}

// A source at its share pushes out only its own fragments.
static void share_of_a_source(void **state)
{
	uint64_t source = kit_reason("reassembly-source"), full = kit_reason("reassembly-full");
	struct fixture_frame f, first;

	echo_pieces(&first, 1, 1300, 480, 7);
	struct fixture_frame rest[2] = {piece[1], piece[2]};
	fixture_receive("north", &piece[0]);
	for (uint32_t id = 0; id < 500; id++) {
		echo_pieces(&f, 0, 1300, 480, id);
		fixture_receive("north", &piece[0]);
	}
	assert_in_range(kit_reason("reassembly-source") - source, 500 - 2 * 16, 499);
	assert_int_equal(kit_reason("reassembly-full"), full);
	kit_clear();
	fixture_receive("north", &rest[0]);
	fixture_receive("north", &rest[1]);
	answered(&first, 1, 1300);
	fixture_balance();
}

// Row G22: overlaps, duplicates and too many pieces never make a packet, and all their fragments are accounted for.
static void conflicts(void **state)
{
	uint64_t before = kit_reason("reassembly-overlap");
	struct fixture_frame f;

	for (int family = 0; family < 2; family++) {
		uint32_t id = 1000;
		// Twice the first.
		struct kit_reasons twice = kit_reasons();
		echo_pieces(&f, family, 1300, 480, id++);
		fixture_receive("north", &piece[0]);
		fixture_receive("north", &piece[0]);
		kit_only_rose(&twice, "reassembly-overlap", 2);
		// The middle one moved back by 8 bytes: a hole behind it, found when the sizes add up.
		echo_pieces(&f, family, 1300, 480, id++);
		uint8_t *p = piece[1].bytes + 14;
		if (family == 0) {
			store16(p + 6, load16(p + 6) - 1);
			ip4_checksum_set(p);
		} else {
			store16(p + 42, load16(p + 42) - 8);
		}
		for (int i = 0; i < 3; i++)
			fixture_receive("north", &piece[i]);
		// Nine pieces.
		assert_int_equal(echo_pieces(&f, family, 1300, 152, id++), 9);
		for (int i = 0; i < 9; i++)
			fixture_receive("north", &piece[i]);
		fixture_balance();
	}
	assert_int_equal(fixture_outs(), 0);
	fixture_wait(1.2); // fragments after the conflict wait in vain
	assert_int_equal(waiting(), 0);
	assert_in_range(kit_reason("reassembly-overlap") - before, 2 * (2 + 3), 2 * (2 + 3 + 9));
	fixture_balance();
}

static void malformed(void **state)
{
	struct kit_reasons before = kit_reasons();
	struct fixture_frame f;
	uint8_t *p;

	echo_pieces(&f, 0, 1300, 480, 1); // not a multiple of 8
	p = piece[0].bytes + 14;
	store16(p + 2, load16(p + 2) - 1);
	ip4_checksum_set(p);
	fixture_receive("north", &piece[0]);
	echo_pieces(&f, 0, 1300, 480, 2); // past 65535
	p = piece[2].bytes + 14;
	store16(p + 6, 0x1fff);
	ip4_checksum_set(p);
	fixture_receive("north", &piece[2]);
	echo_pieces(&f, 0, 1300, 480, 3); // empty
	p = piece[2].bytes + 14;
	store16(p + 2, 20);
	ip4_checksum_set(p);
	fixture_receive("north", &piece[2]);
	echo_pieces(&f, 1, 1300, 480, 4); // past 65535
	store16(piece[2].bytes + 14 + 42, 0xfff8);
	fixture_receive("north", &piece[2]);
	kit_only_rose(&before, "reassembly-malformed", 4);
	assert_int_equal(waiting(), 0);
	assert_int_equal(fixture_outs(), 0);
	fixture_balance();
}

// Random packets, cut at random, in random order, with losses, repetitions and damage: answers are correct, and the
// counters add up after every frame.
static void random_fragments(void **state)
{
	static struct fixture_frame frame[64];
	uint32_t answers = 0;

	srand(42);
	for (int round = 0; round < 600; round++) {
		int family = rand() % 2, damage = rand() % 4;
		uint32_t length = 700 + (uint32_t)rand() % 700, size = 8 * (20 + (uint32_t)rand() % 60);
		struct fixture_frame f;
		int n = echo_pieces(&f, family, length, size, 5000 + (uint32_t)round);

		memcpy(frame, piece, sizeof(piece[0]) * (size_t)n);
		kit_clear();
		for (int i = n - 1; i > 0; i--) { // shuffle
			int k = rand() % (i + 1);
			struct fixture_frame t = frame[i];
			frame[i] = frame[k];
			frame[k] = t;
		}
		if (damage == 1)
			n--;
		if (damage == 2 && n > 0)
			frame[rand() % n] = frame[rand() % n];
		if (damage == 3 && n > 0)
			frame[rand() % n].bytes[14 + (family ? 40 + rand() % 8 : rand() % 20)] ^=
				(uint8_t)(1 << rand() % 8);
		for (int i = 0; i < n; i++) {
			fixture_receive("north", &frame[i]);
			fixture_balance();
		}
		if (fixture_outs() > 0 && damage != 3) {
			answered(&f, family, length);
			answers++;
		}
		if (round % 20 == 19)
			fixture_wait(1.2);
	}
	assert_in_range(answers, 100, 600);
	fixture_wait(1.2);
	assert_int_equal(waiting(), 0);
	fixture_balance();
}

// Nothing leaked: all buffers but those in caches are back.
static void buffers_are_back(void **state)
{
	assert_int_equal(kit_buffers_in_use(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(forwarded_without_df, fixture_fresh),
		cmocka_unit_test_setup(fragment_of_a_fragment, fixture_fresh),
		cmocka_unit_test_setup(tunnel, fixture_fresh),
		cmocka_unit_test_setup(towards_subscriber, fixture_fresh),
		cmocka_unit_test_setup(echo_reply_to_subscriber, fixture_fresh),
		cmocka_unit_test_setup(any_order, fixture_fresh),
		cmocka_unit_test_setup(fragmented_tunnel, fixture_fresh),
		cmocka_unit_test_setup(congestion_marks, fixture_fresh),
		cmocka_unit_test_setup(time_out, fixture_fresh),
		cmocka_unit_test_setup(flood, fixture_fresh),
		cmocka_unit_test_setup(flood_of_many, fixture_fresh),
		cmocka_unit_test_setup(share_of_a_source, fixture_fresh),
		cmocka_unit_test_setup(conflicts, fixture_fresh),
		cmocka_unit_test_setup(malformed, fixture_fresh),
		cmocka_unit_test_setup(random_fragments, fixture_fresh),
		cmocka_unit_test_setup(buffers_are_back, fixture_fresh),
	};

	fixture_start(2); // so that reassembly hands over between them
	return cmocka_run_group_tests_name("fragment", tests, NULL, NULL);
}
