// SPDX-License-Identifier: Apache-2.0
// Hostile input for mobile sessions: rows G1 to G25 and G27, over IPv4 and IPv6, inside and outside. Paths: a UPF
// (GTP-U to IP, IP to GTP-U) and an SGW-U (GTP-U to GTP-U). Packets of two other sessions pass unchanged meanwhile.
#include "hostile/snapshot.h"
#include "session/mobile_fixture.h"
#include "wire/gtpu.h"

// Paths of a packet, and which parts are IPv6.
#define UPF_UP 1u
#define SGW_UP 2u
#define SGW_DOWN 4u
#define TUNNELS (UPF_UP | SGW_UP | SGW_DOWN)
#define UPF_DOWN 8u // IP comes in
#define INNER6 16u
#define OUTER6 32u
#define VARIANTS 64u

#define BAD_TEID 0x102 // of the UPF's session that rows are sent to; the others' are 0x103
static const char ue4[] = "10.45.0.2", ue6[] = "2001:db8:1:2::77";

struct way {
	const char *port, *ours[2], *peer[2];
	uint32_t teid;
};

static const struct way *way_of(uint32_t v)
{
	static const struct way ways[] = {
		{"ran", {"10.1.0.1", "fd00:1::1"}, {"10.1.0.2", "fd00:1::2"}, BAD_TEID},
		{"ran", {"10.1.0.1", "fd00:1::1"}, {"10.1.0.2", "fd00:1::2"}, 0x700},
		{"peers", {"10.9.0.1", "fd00:9::1"}, {"10.9.0.2", "fd00:9::2"}, 0x701},
		{"internet", {NULL}, {NULL}, 0},
	};

	return &ways[v & UPF_UP ? 0 : v & SGW_UP ? 1 : v & SGW_DOWN ? 2 : 3];
}

static int is_up(uint32_t v)
{
	return (v & (UPF_UP | SGW_UP)) != 0;
}

static const char *ue_of(uint32_t v)
{
	return v & INNER6 ? ue6 : ue4;
}

static const char *far_of(uint32_t v)
{
	return v & INNER6 ? FAR6 : FAR4;
}

static void addressed(struct frame *f, uint32_t v, uint8_t protocol)
{
	frame_ip(f, is_up(v) ? ue_of(v) : far_of(v), is_up(v) ? far_of(v) : ue_of(v), protocol);
}

static void inner_udp(struct frame *f, uint32_t v)
{
	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	addressed(f, v, 17);
}

// UDP, IP and Ethernet in front of a GTP-U message.
static void outer(struct frame *f, uint32_t v)
{
	const struct way *w = way_of(v);
	int six = (v & OUTER6) != 0;

	frame_udp(f, 2152, 2152);
	frame_ip(f, w->peer[six], w->ours[six], 17);
	link_layer(f, w->port, 1);
}

// Encapsulation of the IP packet in f on this path.
static void carried(struct frame *f, uint32_t v)
{
	if (v & UPF_DOWN) {
		link_layer(f, "internet", 1);
		return;
	}
	frame_gtpu(f, way_of(v)->teid, 0xff);
	outer(f, v);
}

static void bearer(const char *name, uint32_t teid)
{
	struct kit_mobile k;

	kit_mobile(&k, teid, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", teid, 1);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "fd00:1::1", teid, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", teid + 1, 2);
	kit_pdr_fteid(&k, API_FROM_CORE, "fd00:9::1", teid + 1, 2);
	kit_far_gtpu(&k, 1, API_FROM_CORE, "peer6", teid + 0x10);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", teid + 0x11);
	kit_put_mobile(name, &k);
}

static struct kit_mobile *upf(uint32_t n)
{
	struct kit_mobile *k = upf_session(n);

	kit_pdr_fteid(k, API_FROM_ACCESS, "fd00:1::1", 0x100 + n, 1)->match |= API_PDR_UE_IP;
	return k;
}

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.max_fragments = 16;
	fixture_start(&e);
	kit_begin();
	for (uint32_t n = 2; n <= 3; n++) {
		char name[8];

		snprintf(name, sizeof(name), "s%u", n);
		kit_put_mobile(name, upf(n));
	}
	bearer("bearer", 0x700);
	bearer("other-bearer", 0x780);
	commit();
	return 0;
}

static int passes(const char *from, const struct frame *in, const char *to, const struct frame *out)
{
	kit_clear();
	if (kit_send(from, in->at, in->length) != 0)
		return 0;
	kit_run();
	return all_out() == 1 && kit_count(to) == 1 && same_frame(to, 0, out);
}

static int undisturbed(void)
{
	static const char *const ue[2] = {"10.45.0.3", "2001:db8:1:3::1"}, *const far[2] = {FAR4, FAR6};
	static struct frame in, out;
	int good = 1;

	for (int six = 0; six < 2; six++) {
		good &= passes("ran", uplink_of(&in, ue[six], far[six], 0x103, 0xff), "internet",
			routed_out(&out, ue[six], far[six]));
		good &= passes("internet", downlink_of(&in, far[six], ue[six]), "ran",
			tunnelled_out(&out, far[six], ue[six], 0x203, 0xff));
		uplink_of(&in, ue[six], far[six], 0x780, 0xff);
		ip_packet(&out, ue[six], far[six], 80);
		tunnel(&out, "fd00:9::1", "fd00:9::2", 0x790, 0xff, 0);
		link_layer(&out, "peers", 0);
		good &= passes("ran", &in, "peers", &out);
	}
	kit_clear();
	return good;
}

struct bad {
	const char *row;
	void (*build)(struct frame *f, uint32_t i, uint32_t v);
	uint32_t count, ways;
	const char *reason;
	uint32_t without; // INNER6, OUTER6: the variant makes no sense
};

static void one_variant(const struct bad *row, uint32_t v)
{
	static struct frame f;
	struct snapshot b;

	kit_advance(1000003); // limits are fresh
	snapshot_take(&b);
	for (uint32_t i = 0; i < row->count; i++) {
		row->build(&f, i, v);
		kit_clear();
		assert_int_equal(kit_send(way_of(v)->port, f.at, f.length), 0);
		kit_run();
		if (all_out() != 0)
			fail_msg("%s, variant %#x: packet %u made %u frames leave", row->row, v, i, all_out());
		if (i % 16 == 0 && !undisturbed())
			fail_msg("%s, variant %#x: others were disturbed", row->row, v);
	}
	print_message("  %s, variant %#x\n", row->row, v);
	snapshot_compare(&b, row->reason, row->count);
	assert_true(undisturbed());
}

static void bad_rows(const struct bad *list, uint32_t rows)
{
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t way = UPF_UP; way <= UPF_DOWN; way <<= 1)
			for (uint32_t six = 0; six < VARIANTS; six += INNER6)
				if ((list[r].ways & way) && !(list[r].without & six) &&
					!(way == UPF_DOWN && (six & OUTER6)))
					one_variant(&list[r], way | six);
}
#define BAD_ROWS(...)                                                                                                  \
	bad_rows((const struct bad[]){__VA_ARGS__}, sizeof((const struct bad[]){__VA_ARGS__}) / sizeof(struct bad))

// G1 to G5: the tunnel header.

static void with_options(struct frame *f, uint32_t v, uint8_t flags, const void *options, uint32_t length)
{
	inner_udp(f, v);
	memcpy(frame_push(f, length), options, length);
	uint32_t size = f->length;
	uint8_t *p = frame_push(f, 8);
	p[0] = flags;
	p[1] = GTPU_GPDU;
	store16(p + 2, (uint16_t)size);
	store32(p + 4, way_of(v)->teid);
	outer(f, v);
}

static void g1(struct frame *f, uint32_t i, uint32_t v)
{
	with_options(f, v, 0x34, (uint8_t[]){0, 0, 0, i % 2 ? 0x85 : 0x40, 0, 0, 0, 0}, 8);
}

static void g2(struct frame *f, uint32_t i, uint32_t v)
{
	uint8_t options[12] = {0, 0, 0, 0x85, (uint8_t)(60 + i), 0, 9, 0, 0xff, 0xff, 0xff, 0xff};

	with_options(f, v, 0x34, options, 12);
}

static void g2_cut(struct frame *f, uint32_t i, uint32_t v)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x36, 0xff, 0, 4, 0, 0, 0, 0, 0, 0, 0, (uint8_t)(0xff - i)}, 12);
	store32(f->at + 4, way_of(v)->teid);
	outer(f, v);
}

static void g3(struct frame *f, uint32_t i, uint32_t v)
{
	uint32_t n = i == 0 ? GTPU_MAX_EXTENSIONS + 1 : 200;
	uint8_t options[4 + 200 * 4] = {0, 0, 0, 0x40};

	for (uint32_t k = 0; k < n; k++)
		memcpy(options + 4 + 4 * k, (uint8_t[]){1, 8, 104, k + 1 < n ? 0x40 : 0}, 4);
	with_options(f, v, 0x34, options, 4 + 4 * n);
}

static void g4_length(struct frame *f, uint32_t i, uint32_t v)
{
	static const int by[] = {1, -1, 100, -60, 60000};

	inner_udp(f, v);
	uint32_t n = f->length;
	frame_gtpu(f, way_of(v)->teid, i % 2 ? 9 : 0xff);
	store16(f->at + 2, (uint16_t)((int)(n + (i % 2 ? 8 : 0)) + by[i % 5]));
	outer(f, v);
}

static void g4_version(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	frame_gtpu(f, way_of(v)->teid, 9);
	f->at[0] = (uint8_t)(i % 3 == 0 ? 0x14 : i % 3 == 1 ? 0x54 : 0x24);
	outer(f, v);
}

static void g4_short(struct frame *f, uint32_t i, uint32_t v)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x30, 0xff, 0, 0, 0, 0, 1}, i % 8);
	outer(f, v);
}

static void g5(struct frame *f, uint32_t i, uint32_t v)
{
	static const uint8_t bad[][8] = {
		{0, 0, 0, 0x85, 1, 0x20, 9, 0}, // PDU type 2
		{0, 0, 0, 0x85, 1, 0x00, 0x89, 0}, // PPP announced, no room
		{0, 0, 0, 0x85, 1, 0x18, 9, 0}, // uplink, QMP announced, no room
		{0, 0, 0, 0x85, 1, 0x11, 9, 0}, // uplink, SNP announced, no room
		{0, 0, 0, 0x40, 2, 0, 9, 0}, // a UDP port of two units
	};

	with_options(f, v, 0x34, bad[i % 5], 8);
}

static void g1_to_g5_tunnel_headers(void **state)
{
	BAD_ROWS({"G1", g1, 20, TUNNELS, "gtpu-extension", 0}, {"G2", g2, 16, TUNNELS, "gtpu-extension", 0},
		{"G2 cut", g2_cut, 16, TUNNELS, "gtpu-extension", 0}, {"G3", g3, 8, TUNNELS, "gtpu-extension", 0},
		{"G4 length", g4_length, 20, TUNNELS, "gtpu-length", 0},
		{"G4 version", g4_version, 18, TUNNELS, "gtpu-version", 0},
		{"G4 short", g4_short, 16, TUNNELS, "gtpu-short", 0}, {"G5", g5, 20, TUNNELS, "gtpu-extension", 0});
}

static void g5_qfi(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	frame_gtpu(f, way_of(v)->teid, i % 2 ? 0xff : (uint8_t)(10 + i % 50)); // not 9
	outer(f, v);
}

static void g16(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	carried(f, v);
}

// Known tunnels and addresses without a PDR for the packet: no Error Indication (row G16).
static void g5_g16_no_pdr(void **state)
{
	struct kit_mobile *k = upf(2);

	for (int i = 0; i < 3; i += 2) {
		k->pdr[i].match |= API_PDR_QFI;
		k->pdr[i].qfis = 1ull << 9;
	}
	put("s2", k);
	BAD_ROWS({"G5 QFI", g5_qfi, 20, UPF_UP, "uplink-no-pdr", 0});
	k = upf(2);
	for (int i = 0; i < 2; i++) {
		struct api_sdf *f = kit_sdf(k, &k->pdr[i]);

		f->flags = API_SDF_PROTOCOL;
		f->protocol = 6;
	}
	k->s.pdrs = 2;
	put("s2", k);
	BAD_ROWS({"G16", g16, 20, UPF_UP, "uplink-no-pdr", OUTER6}, {"G16", g16, 20, UPF_DOWN, "downlink-no-pdr", 0});
	put("s2", upf(2));
}

// G6 to G9, G24, G25: the inner packet.

static void g6_ihl(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	if (i % 6 == 5) { // IHL 15 in a packet of 40 bytes
		f->length = 40;
		store16(f->at + 2, 40);
		f->at[0] = 0x4f;
	} else {
		f->at[0] = (uint8_t)(0x40 | i % 5);
	}
	carried(f, v);
}

static void g6_long(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	uint8_t *length = f->at + (v & INNER6 ? 4 : 2);
	store16(length, (uint16_t)(i % 4 == 3 ? 0xffff : load16(length) + 1 + i));
	carried(f, v);
}

static void g6_short(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	uint8_t *udp = f->at + (v & INNER6 ? 40 : 20), *length = f->at + (v & INNER6 ? 4 : 2);
	store16(udp + 4, (uint16_t)(load16(udp + 4) - 1 - i));
	store16(length, (uint16_t)(load16(length) - 1 - i));
	if (!(v & INNER6))
		frame_ip4_sum(f);
	carried(f, v);
}

static void g7(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v | INNER6);
	if (i % 3 == 0) {
		store16(f->at + 4, 0); // a packet without content, or a jumbogram
		f->at[6] = i % 2 ? 0 : 17;
	} else { // a chain that goes on past the packet
		f->at[6] = i % 3 == 1 ? 0 : 60;
		f->at[40] = 60;
		f->at[41] = (uint8_t)(8 + i);
	}
	carried(f, v);
}

static void g8(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	f->at[0] = (uint8_t)((i % 14 + (i % 14 > 3) + (i % 14 > 4)) << 4 | 5); // neither 4 nor 6
	carried(f, v);
}

static void g9_empty(struct frame *f, uint32_t i, uint32_t v)
{
	frame_payload(f, i % 20);
	memset(f->at, v & INNER6 ? 0x60 : 0x45, f->length);
	carried(f, v);
}

static void g25(struct frame *f, uint32_t i, uint32_t v)
{
	frame_payload(f, 10);
	frame_tcp(f, 4000, 80);
	f->at[12] = (uint8_t)((i % 2 ? i % 5 : 8 + i % 8) << 4); // below 5, or beyond the packet
	addressed(f, v, 6);
	carried(f, v);
}

static void g6_to_g9_g25_inner_packets(void **state)
{
	BAD_ROWS({"G6 IHL", g6_ihl, 18, TUNNELS, "gtpu-inner-malformed", INNER6},
		{"G6 IHL", g6_ihl, 18, UPF_DOWN, "ip-header-length", INNER6},
		{"G6 too long", g6_long, 20, TUNNELS, "gtpu-inner-malformed", 0},
		{"G6 too long", g6_long, 20, UPF_DOWN, "ip-length", 0},
		{"G6 too short", g6_short, 20, TUNNELS, "gtpu-inner-malformed", 0},
		{"G7", g7, 18, TUNNELS, "gtpu-inner-malformed", INNER6},
		{"G8", g8, 14, TUNNELS, "gtpu-inner-version", 0},
		{"G9 empty", g9_empty, 20, TUNNELS, "gtpu-inner-malformed", 0},
		{"G25", g25, 20, TUNNELS, "gtpu-inner-malformed", 0},
		{"G25", g25, 20, UPF_DOWN, "ip-transport-header", 0});
}

static void other_family(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v | INNER6);
	carried(f, v);
}

static void g8_ip_type_of_session(void **state)
{
	struct kit_mobile *k = upf(2);

	memset(&k->s.ue_ip6, 0, sizeof(k->s.ue_ip6));
	put("s2", k);
	BAD_ROWS({"G8 type", other_family, 8, UPF_UP, "source-spoofed", INNER6},
		{"G8 type", other_family, 8, UPF_DOWN, "ue-unknown", INNER6});
	put("s2", upf(2));
}

static void g9(struct frame *f, uint32_t i, uint32_t v)
{
	int six = (v & INNER6) != 0;

	inner_udp(f, v);
	for (uint32_t deep = 0; deep <= i % 3; deep++) { // to our own tunnel address, with our own TEID
		frame_gtpu(f, way_of(v)->teid, 0xff);
		frame_udp(f, 2152, 2152);
		frame_ip(f, ue_of(v), six ? "fd00:1::1" : i % 2 ? "10.9.0.1" : "10.1.0.1", 17);
	}
	carried(f, v);
}

// Row A11: PFCP, SCTP, ssh, at each address of ours.
static void a11(struct frame *f, uint32_t i, uint32_t v)
{
	static const char *const ours[2][4] = {{"10.1.0.1", "10.9.0.1", "192.0.2.1", "192.0.2.1"},
		{"fd00:1::1", "fd00:9::1", "2001:db8:6::1", "2001:db8:6::1"}};
	static const uint16_t port[] = {8805, 2152, 2123, 53};

	frame_payload(f, 30);
	frame_udp(f, 4000, port[i / 4 % 4]);
	frame_ip(f, ue_of(v), ours[(v & INNER6) != 0][i % 4], 17);
	carried(f, v);
}

static void spoofed(struct frame *f, uint32_t i, uint32_t v)
{
	static const char *const from[2][5] = {{"10.45.0.3", "8.8.8.8", "10.1.0.2", "192.0.2.2", "169.254.1.1"},
		{"2001:db8:1:3::1", "2001:db8::1", "fe80::1", "fd00:1::2"}};
	const char *source = from[(v & INNER6) != 0][i % ((v & INNER6) ? 4 : 5)];

	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, source, far_of(v), 17);
	carried(f, v);
}

static void martian(struct frame *f, uint32_t i, uint32_t v)
{
	static const char *const nobody[2][5] = {{"0.0.0.0", "127.0.0.1", "240.0.0.1", "0.1.2.3", "255.1.1.1"},
		{"::", "::1", "::ffff:1.2.3.4", "::", "::1"}};
	const char *it = nobody[(v & INNER6) != 0][i % 5];

	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, i / 5 % 2 ? it : is_up(v) ? ue_of(v) : far_of(v), i / 5 % 2 ? far_of(v) : it, 17);
	carried(f, v);
}

static void martian_source(struct frame *f, uint32_t i, uint32_t v)
{
	martian(f, i % 5 + 5, v);
}

static void martian_destination(struct frame *f, uint32_t i, uint32_t v)
{
	martian(f, i % 5, v);
}

static void multicast(struct frame *f, uint32_t i, uint32_t v)
{
	static const char *const to[2][3] = {
		{"224.0.0.5", "239.1.2.3", "255.255.255.255"}, {"ff02::2", "ff05::1:3", "ff0e::1"}};

	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, is_up(v) ? ue_of(v) : far_of(v), to[(v & INNER6) != 0][i % 3], 17);
	carried(f, v);
}

static void g9_to_g12_g24_addresses(void **state)
{
	BAD_ROWS({"G9, G10", g9, 18, UPF_UP | SGW_UP, "subscriber-to-gateway", 0},
		{"A11", a11, 32, UPF_UP | SGW_UP, "subscriber-to-gateway", 0},
		{"G11, G12", spoofed, 20, UPF_UP, "source-spoofed", 0},
		{"G24", martian, 20, TUNNELS, "gtpu-inner-martian", 0},
		{"G24", martian_source, 10, UPF_DOWN, "ip-martian-source", 0},
		{"G24", martian_destination, 10, UPF_DOWN, "ip-martian-destination", 0},
		{"G24 multicast", multicast, 9, UPF_UP, "tunnel-multicast", 0},
		{"G24 multicast", multicast, 9, UPF_DOWN, "ip-multicast", 0});
}

// G13 to G20: tunnels and messages.

static void unknown_peer(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	frame_gtpu(f, way_of(v)->teid, 0xff);
	frame_udp(f, 2152, 2152);
	frame_ip(f, v & OUTER6 ? "fd00:1::66" : "10.1.0.66", way_of(v)->ours[(v & OUTER6) != 0], 17);
	link_layer(f, way_of(v)->port, 1);
}

static void g13_pinned_peer(void **state)
{
	kit_begin();
	fixture_instances(0, API_INSTANCE_PIN_PEER);
	kit_put_mobile("s2", upf(2));
	commit();
	BAD_ROWS({"G13", unknown_peer, 20, UPF_UP, "tunnel-peer", 0});
	kit_begin();
	fixture_instances(0, 0);
	kit_put_mobile("s2", upf(2));
	commit();
}

#define STORM 3000

static void g14_storm(void **state)
{
	static struct frame f;

	for (uint32_t v = UPF_UP; v <= SGW_DOWN; v <<= 1)
		for (uint32_t six = 0; six < 2; six++) {
			struct snapshot b;

			kit_advance(1000003);
			snapshot_take(&b);
			kit_clear();
			for (uint32_t i = 0; i < STORM; i++) {
				inner_udp(&f, v);
				frame_gtpu(&f, 0x80000000 + i * 7, 0xff);
				outer(&f, v | (six ? OUTER6 : 0));
				assert_int_equal(kit_send(way_of(v)->port, f.at, f.length), 0);
				kit_run();
			}
			assert_int_equal(all_out(), burst_of(100));
			snapshot_compare(&b, "gtpu-teid-unknown", STORM);
			assert_true(undisturbed());
		}
}

// Unknown extension headers that every receiver must understand (TS 29.281 §5.2.1): answered within the limit of such
// messages.
static void g5_storm_of_unknown_extensions(void **state)
{
	static struct frame f;

	for (uint32_t v = UPF_UP; v <= SGW_DOWN; v <<= 1) {
		struct snapshot b;

		kit_advance(1000003);
		snapshot_take(&b);
		kit_clear();
		for (uint32_t i = 0; i < STORM; i++) {
			with_options(&f, v | (i % 2 ? OUTER6 : 0), 0x34, (uint8_t[]){0, 0, 0, 0xc1, 1, 0, 9, 0}, 8);
			assert_int_equal(kit_send(way_of(v)->port, f.at, f.length), 0);
			kit_run();
		}
		assert_int_equal(all_out(), burst_of(100));
		snapshot_compare(&b, "gtpu-extension-unknown", STORM);
		assert_true(undisturbed());
	}
}

static void teid_zero(struct frame *f, uint32_t i, uint32_t v)
{
	inner_udp(f, v);
	frame_gtpu(f, 0, 9);
	outer(f, v);
}

static void forged(struct frame *f, uint32_t i, uint32_t v)
{
	uint8_t message[GTPU_MESSAGE_MAX];
	struct api_address peer = kit_address(way_of(v)->peer[(v & OUTER6) != 0]);
	uint32_t n = gtpu_put_error_indication(message, 0x202, peer.family, peer.bytes);

	frame_payload(f, 0);
	frame_append(f, message, i % 2 ? n : 12 + i % 5);
	store16(f->at + 2, (uint16_t)(f->length - 8));
	store32(f->at + 4, i % 2 ? way_of(v)->teid : 0); // a TEID in the header, or cut
	outer(f, v);
}

static void forged_unknown(struct frame *f, uint32_t i, uint32_t v)
{
	uint8_t message[GTPU_MESSAGE_MAX];
	int six = (v & OUTER6) != 0;
	// From an unknown peer; then from a peer, about an address that is none.
	struct api_address peer = kit_address(i % 2 ? way_of(v)->peer[six] : six ? "fd00:77::1" : "10.77.0.1");

	frame_payload(f, 0);
	frame_append(f, message, gtpu_put_error_indication(message, 0x202, peer.family, peer.bytes));
	frame_udp(f, 2152, 2152);
	frame_ip(f, i % 2 ? (six ? "fd00:1::66" : "10.1.0.66") : way_of(v)->peer[six], way_of(v)->ours[six], 17);
	link_layer(f, way_of(v)->port, 1);
}

static void end_marker(struct frame *f, uint32_t i, uint32_t v)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x30, GTPU_END_MARKER, 0, 0, 0x77, 0, (uint8_t)i, 1}, 8);
	outer(f, v);
}

static void g15_g17_g18_messages(void **state)
{
	BAD_ROWS({"G15", teid_zero, 20, TUNNELS, "gtpu-teid-zero", 0},
		{"G17 malformed", forged, 20, TUNNELS, "gtpu-error-indication-malformed", INNER6},
		{"G17 stranger", forged_unknown, 20, TUNNELS, "gtpu-error-indication-stranger", INNER6},
		{"G18 end marker", end_marker, 20, TUNNELS, "gtpu-end-marker-unknown", INNER6});
}

static void g18_echo_flood(void **state)
{
	static struct frame f;

	for (uint32_t v = UPF_UP; v <= SGW_DOWN; v <<= 1) {
		struct snapshot b;
		uint32_t burst = burst_of(100);

		kit_advance(1000003);
		kit_clear();
		snapshot_take(&b);
		for (uint32_t i = 0; i < 1000; i++) {
			uint8_t head[12] = {0x32, GTPU_ECHO_REQUEST};

			store16(head + 2, (uint16_t)(4 + i % 300));
			frame_payload(&f, i % 300); // IEs 0, 1, 2, ...: nonsense
			memcpy(frame_push(&f, 12), head, 12);
			outer(&f, v | (i % 2 ? OUTER6 : 0));
			assert_int_equal(kit_send(way_of(v)->port, f.at, f.length), 0);
			kit_run();
		}
		assert_int_equal(all_out(), burst);
		snapshot_compare(&b, "gtpu-echo-rate-limit", 1000 - burst);
		assert_true(undisturbed());
	}
}

// User data that looks like a tunnel is user data, up and down.
static void g19_user_data_to_port_2152(void **state)
{
	static struct frame in, out;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t six = 0; six <= INNER6; six += INNER6)
		for (int k = 0; k < 4; k++) {
			struct frame *f = k % 2 ? &out : &in;
			uint32_t v = six | (k < 2 ? UPF_DOWN : UPF_UP);

			frame_payload(f, 0);
			frame_append(f, (uint8_t[]){0x30, 0xff, 0, 0, 0, 0, 2, 1}, 8); // a G-PDU of length 0
			frame_udp(f, 2152, 2152);
			addressed(f, v, 17);
			if (k == 1) {
				tunnel(f, "10.1.0.1", "10.1.0.2", 0x202, 0xff, 0);
				link_layer(f, "ran", 0);
			} else if (k == 3) {
				hop(f);
				link_layer(f, "internet", 0);
			} else {
				carried(f, v);
			}
			if (k == 1)
				assert_true(passes("internet", &in, "ran", &out));
			if (k != 3)
				continue;
			kit_clear();
			assert_int_equal(kit_send("ran", in.at, in.length), 0);
			kit_run();
			assert_int_equal(kit_count("internet"), 1);
			assert_int_equal(kit_frame("internet", 0)->length, out.length);
			assert_memory_equal(kit_frame("internet", 0)->bytes, out.at, out.length);
		}
	snapshot_compare(&b, NULL, 0);
}

static void wrong_side(struct frame *f, uint32_t i, uint32_t v)
{
	static const char *const to[2][3] = {
		{"10.1.0.1", "10.9.0.1", "192.0.2.1"}, {"fd00:1::1", "fd00:9::1", "2001:db8:6::1"}};

	inner_udp(f, v | UPF_UP);
	frame_gtpu(f, i % 2 ? BAD_TEID : 0x700, 0xff);
	frame_udp(f, 2152, 2152);
	frame_ip(f, far_of(v), to[(v & INNER6) != 0][i % 3], 17);
	link_layer(f, "internet", 1);
}

// N3 and N9 are each other's wrong side as well.
static void wrong_tunnel_side(struct frame *f, uint32_t i, uint32_t v)
{
	int six = (v & OUTER6) != 0;
	const char *n3 = six ? "fd00:1::1" : "10.1.0.1", *n9 = six ? "fd00:9::1" : "10.9.0.1";

	inner_udp(f, v);
	frame_gtpu(f, v & SGW_DOWN ? 0x700 : 0x701, 0xff);
	frame_udp(f, 2152, 2152);
	frame_ip(f, way_of(v)->peer[six], v & SGW_DOWN ? n3 : n9, 17);
	link_layer(f, way_of(v)->port, 1);
}

static void g20_on_the_wrong_side(void **state)
{
	BAD_ROWS({"G20 N6", wrong_side, 18, UPF_DOWN, "gtpu-not-endpoint", 0},
		{"G20 N3, N9", wrong_tunnel_side, 18, SGW_UP | SGW_DOWN, "gtpu-not-endpoint", 0});
}

static void to_other_ue(struct frame *f, uint32_t i, uint32_t v)
{
	const char *other = v & INNER6 ? "2001:db8:1:3::1" : "10.45.0.3";

	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, ue_of(v), i % 2 ? other : ue_of(v), 17); // or to himself
	carried(f, v);
}

static void g21_ue_to_ue(void **state)
{
	static struct frame in, out;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t six = 0; six <= INNER6; six += INNER6)
		for (uint32_t i = 0; i < 2; i++) {
			to_other_ue(&in, i, UPF_UP | six);
			frame_payload(&out, 60);
			frame_udp(&out, 4000, 5000);
			frame_ip(&out, ue_of(six), i ? (six ? "2001:db8:1:3::1" : "10.45.0.3") : ue_of(six), 17);
			hop(&out);
			tunnel(&out, "10.1.0.1", "10.1.0.2", i ? 0x203 : 0x202, 0xff, 0);
			link_layer(&out, "ran", 0);
			assert_true(passes("ran", &in, "ran", &out));
		}
	snapshot_compare(&b, NULL, 0);
	kit_begin();
	fixture_instances(API_INSTANCE_NO_UE_TO_UE, 0);
	commit();
	BAD_ROWS({"G21", to_other_ue, 20, UPF_UP, "ue-to-ue", 0});
	kit_begin();
	fixture_instances(0, 0);
	commit();
}

static void outer_fragment(struct frame *f, uint32_t v, uint16_t id, uint16_t offset)
{
	uint8_t piece[64] = {0x08, 0x68, 0x08, 0x68, 4, 0}; // UDP, of 1024 bytes

	frame_payload(f, 0);
	frame_append(f, piece, 64);
	frame_ip(f, way_of(v)->peer[0], way_of(v)->ours[0], 17);
	store16(f->at + 4, id);
	store16(f->at + 6, offset);
	frame_ip4_sum(f);
	link_layer(f, way_of(v)->port, 1);
}

// Never completed, 10,000 times: as many as the limit wait, for a second.
static void g22_outer_fragments(void **state)
{
	static struct frame f;

	for (uint32_t v = UPF_UP; v <= SGW_DOWN; v <<= 1) {
		uint64_t full = kit_reason("reassembly-source"), timeout = kit_reason("reassembly-timeout");
		uint32_t buffers = kit_buffers_in_use();

		for (uint32_t i = 0; i < 10000; i++) {
			outer_fragment(&f, v, (uint16_t)i, (uint16_t)(0x2000 | i % 8));
			assert_int_equal(kit_send(way_of(v)->port, f.at, f.length), 0);
			kit_run();
			assert_true(kit_totals().held <= 16);
			if (i % 500 == 0)
				assert_true(undisturbed());
		}
		for (int s = 0; s < 4; s++)
			kit_advance(1000003);
		assert_int_equal(
			kit_reason("reassembly-source") - full + kit_reason("reassembly-timeout") - timeout, 10000);
		assert_int_equal(kit_totals().held, 0);
		assert_int_equal(kit_buffers_in_use(), buffers);
		assert_true(kit_balance());
	}
}

// A UE's own fragments pass, also later ones, which have no ports, and in any order.
static void g22_inner_fragments_pass(void **state)
{
	static struct frame in, out;

	for (uint32_t v = UPF_UP; v <= UPF_DOWN; v <<= 3)
		for (uint16_t n = 0; n < 6; n++) {
			uint16_t offset = (uint16_t)((5 - n) * 8 | (n ? 0x2000 : 0));

			for (int k = 0; k < 2; k++) {
				struct frame *f = k ? &out : &in;

				frame_payload(f, 64);
				addressed(f, v, 17);
				store16(f->at + 20 + 4, 64); // where it is the first one: UDP's length
				store16(f->at + 6, offset);
				frame_ip4_sum(f);
			}
			carried(&in, v);
			if (v == UPF_UP)
				hop(&out);
			else
				tunnel(&out, "10.1.0.1", "10.1.0.2", 0x202, 0xff, 0);
			link_layer(&out, v == UPF_UP ? "internet" : "ran", 0);
			assert_true(passes(way_of(v)->port, &in, v == UPF_UP ? "internet" : "ran", &out));
		}
}

// TTL 1 from the UE: ICMP errors return in the tunnel, within their limit, and no larger than the original packets.
static void g23_ttl(void **state)
{
	static struct frame f;

	for (uint32_t six = 0; six < VARIANTS; six += INNER6) {
		struct snapshot b;
		uint32_t burst = burst_of(100);

		kit_advance(1000003);
		kit_clear();
		snapshot_take(&b);
		for (uint32_t i = 0; i < 1000; i++) {
			inner_udp(&f, UPF_UP | six);
			f.at[six & INNER6 ? 7 : 8] = (uint8_t)(i % 2);
			if (!(six & INNER6))
				frame_ip4_sum(&f);
			carried(&f, UPF_UP | six);
			assert_int_equal(kit_send("ran", f.at, f.length), 0);
			kit_run();
		}
		assert_int_equal(all_out(), burst);
		assert_int_equal(kit_count("ran"), burst);
		snapshot_compare(&b, "icmp-rate-limit", 1000 - burst);
		assert_true(undisturbed());
	}
}

// With a tunnel header, IP of 1500 bytes exceeds the MTU to the gNB: we fragment the packets we send (TS 29.281
// §4.2.2), into two at most. A jumbo frame never grows beyond its bytes and headers.
static void g23_size(void **state)
{
	static struct frame f;

	for (uint32_t size = 1400; size < 9000; size += 700) {
		uint64_t bytes = 0, room = size;

		frame_payload(&f, size - 28);
		frame_udp(&f, 4000, 5000);
		addressed(&f, UPF_DOWN, 17);
		carried(&f, UPF_DOWN);
		kit_clear();
		assert_int_equal(kit_send("internet", f.at, f.length), 0);
		kit_run();
		for (uint32_t i = 0; i < kit_count("ran"); i++) {
			assert_true(kit_frame("ran", i)->length <= 1514);
			bytes += kit_frame("ran", i)->length;
			room += 14 + 20 + 16;
		}
		assert_true(bytes <= room);
		assert_int_equal(kit_count("ran"), all_out());
		assert_true(kit_balance());
	}
	assert_true(undisturbed());
}

static void router_tunnel(struct frame *f, uint32_t i, uint32_t v)
{
	static const uint8_t protocol[] = {4, 41, 47, 97, 94};
	int six = (v & OUTER6) != 0;

	inner_udp(f, v);
	frame_ip(f, way_of(v)->peer[six], way_of(v)->ours[six], protocol[i % 5]);
	link_layer(f, way_of(v)->port, 1);
}

static void g27_tunnels_to_the_router(void **state)
{
	BAD_ROWS({"G27", router_tunnel, 20, TUNNELS, "ip-protocol-unreachable", 0});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g1_to_g5_tunnel_headers),
		cmocka_unit_test(g5_g16_no_pdr),
		cmocka_unit_test(g6_to_g9_g25_inner_packets),
		cmocka_unit_test(g8_ip_type_of_session),
		cmocka_unit_test(g9_to_g12_g24_addresses),
		cmocka_unit_test(g13_pinned_peer),
		cmocka_unit_test(g14_storm),
		cmocka_unit_test(g5_storm_of_unknown_extensions),
		cmocka_unit_test(g15_g17_g18_messages),
		cmocka_unit_test(g18_echo_flood),
		cmocka_unit_test(g19_user_data_to_port_2152),
		cmocka_unit_test(g20_on_the_wrong_side),
		cmocka_unit_test(g21_ue_to_ue),
		cmocka_unit_test(g22_outer_fragments),
		cmocka_unit_test(g22_inner_fragments_pass),
		cmocka_unit_test(g23_ttl),
		cmocka_unit_test(g23_size),
		cmocka_unit_test(g27_tunnels_to_the_router),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
