// SPDX-License-Identifier: Apache-2.0
// Hostile GTP-U: rows G1 to G5, G8 to G10 (tunnel side), G14 to G20.
#include "hostile/hostile.h"

// A frame around the GTP-U message in f: outer headers of the variant's tunnel.
static void outer(struct frame *f, uint32_t variant)
{
	gateway_outer(f, variant & PPPOE ? 6 : 4, 0);
}

// A G-PDU of the home with these bytes for optional fields and extension headers in front of a good packet.
static void with_options(struct frame *f, uint32_t variant, uint8_t flags, const void *options, uint32_t length)
{
	inner_udp(f, variant, 0);
	memcpy(frame_push(f, length), options, length);
	uint32_t size = f->length;
	uint8_t *p = frame_push(f, 8);
	p[0] = flags;
	p[1] = GTPU_GPDU;
	store16(p + 2, (uint16_t)size);
	store32(p + 4, 0x200 + home_of(variant));
	outer(f, variant);
}

static void extension_zero(struct frame *f, uint32_t i, uint32_t variant)
{
	with_options(f, variant, 0x34, (uint8_t[]){0, 0, 0, i % 2 ? 0x85 : 0x40, 0, 0, 0, 0}, 8);
}

static void g1_extension_length_zero(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G1", "core", extension_zero, 20, "gtpu-extension", 0}}));
}

static void chain_past_end(struct frame *f, uint32_t i, uint32_t variant)
{
	uint8_t message[60] = {0x36, 0xff, 0x00, 0x34, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xff};

	memset(message + 12, (int)(0x10 + i), sizeof(message) - 12);
	frame_payload(f, 0);
	frame_append(f, message, sizeof(message));
	outer(f, variant);
}

// The packet as it was reported, cut to 12 bytes.
static void chain_cut(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x36, 0xff, 0x00, 0x04, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xff}, 12);
	outer(f, variant);
}

static void chain_cut_length(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x36, 0xff, 0x00, 0x34, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xff}, 12);
	outer(f, variant);
}

static void g2_chain_past_the_end(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G2", "core", chain_past_end, 16, "gtpu-extension", 0},
		{"G2 cut", "core", chain_cut, 16, "gtpu-extension", 0},
		{"G2 cut, length", "core", chain_cut_length, 16, "gtpu-length", 0}}));
}

static void many_extensions(struct frame *f, uint32_t i, uint32_t variant)
{
	uint32_t n = i == 0 ? GTPU_MAX_EXTENSIONS + 1 : 200;
	uint8_t options[4 + 200 * 4] = {0, 0, 0, 0x40};

	for (uint32_t k = 0; k < n; k++)
		memcpy(options + 4 + 4 * k, (uint8_t[]){1, 8, 104, k + 1 < n ? 0x40 : 0}, 4);
	with_options(f, variant, 0x34, options, 4 + 4 * n);
}

static void g3_many_extensions(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G3", "core", many_extensions, 8, "gtpu-extension", 0}}));
}

static void wrong_length(struct frame *f, uint32_t i, uint32_t variant)
{
	static const int by[] = {1, -1, 100, -60, 60000};

	inner_udp(f, variant, 0);
	uint32_t n = f->length;
	frame_gtpu(f, 0x200 + home_of(variant), i % 2 ? 9 : 0xff);
	store16(f->at + 2, (uint16_t)((int)(n + (i % 2 ? 8 : 0)) + by[i % 5]));
	outer(f, variant);
}

static void wrong_version(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, 0x200 + home_of(variant), 9);
	f->at[0] = (uint8_t)(i % 3 == 0 ? 0x14 : i % 3 == 1 ? 0x54 : 0x24); // versions 0 and 2, PT = 0
	outer(f, variant);
}

static void seven_bytes(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x30, 0xff, 0, 0, 0, 0, 2}, i % 8);
	outer(f, variant);
}

static void udp_length(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, 0x200 + home_of(variant), 9);
	outer(f, variant);
	uint8_t *udp = f->at + (variant & PPPOE ? 54 : 34);
	store16(udp + 4, (uint16_t)(load16(udp + 4) - 1 - i % 20));
}

static void udp_checksum(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, 0x200 + home_of(variant), 9);
	outer(f, variant);
	uint8_t *udp = f->at + (variant & PPPOE ? 54 : 34);
	udp[6 + i % 2] ^= (uint8_t)(1u << i / 2 % 8); // of zero over IPv4: a wrong checksum
	if (variant & PPPOE && i == 0)
		memset(udp + 6, 0, 2);
}

static void g4_lengths_and_versions(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G4 length", "core", wrong_length, 20, "gtpu-length", 0},
		{"G4 version", "core", wrong_version, 18, "gtpu-version", 0},
		{"G4 short", "core", seven_bytes, 16, "gtpu-short", 0},
		{"G4 UDP checksum", "core", udp_checksum, 16, "gtpu-udp-checksum", 0},
		{"G4 UDP length", "core", udp_length, 20, "gtpu-udp-length", 0}}));
}

// Every combination of E, S and PN that is whole is user data (TS 29.281 §5.1).
static void g4_every_flag(void **state)
{
	static struct frame f, want;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++)
		for (uint8_t flags = 1; flags < 8; flags++) {
			// The next-type byte counts only with E; here it is set to something that would have to be
			// understood.
			uint8_t options[12] = {0x12, 0x34, 7, 0x85, 1, 0, 9, 0};
			int extension = flags & 4;

			with_options(&f, variant, 0x30 | flags, options, extension ? 8 : 4);
			inner_udp(&want, variant, 0);
			gateway_to_home(&want, home_of(variant));
			kit_clear();
			send_one("core", &f);
			assert_int_equal(all_out(), 1);
			assert_true(gateway_same("access", 0, &want));
		}
	snapshot_compare(&b, NULL, 0);
}

static void container(struct frame *f, uint32_t i, uint32_t variant)
{
	static const uint8_t bad[][8] = {
		{0, 0, 0, 0x85, 1, 0x20, 9, 0}, // PDU type 2
		{0, 0, 0, 0x85, 1, 0xf0, 9, 0}, // PDU type 15
		{0, 0, 0, 0x85, 1, 0x00, 0x89, 0}, // PPP announced, no room
		{0, 0, 0, 0x85, 1, 0x08, 9, 0}, // QMP announced, no room
		{0, 0, 0, 0x85, 1, 0x04, 9, 0}, // SNP announced, no room
		{0, 0, 0, 0x85, 200, 0, 9, 0}, // past the packet
		{0, 0, 0, 0x40, 2, 0, 9, 0}, // a UDP port of two units (§5.2.2.1)
		{0, 0, 0, 0x85, 1, 0, 9, 0x85}, // announces another one, which the payload is not
	};

	with_options(f, variant, 0x34, bad[i % 8], 8);
	if (i % 8 != 7)
		return;
	// "another one": the IP header's first byte as a length in 4-byte units
	f->at[f->length - (variant & INNER6 ? 108 : 88)] = 0;
	if (variant & PPPOE)
		frame_udp6_sum(f->at + 14);
}

static void g5_container(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G5", "core", container, 16, "gtpu-extension", 0}}));
}

static void other_qfi(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, 0x200 + home_of(variant), i % 2 ? 0xff : (uint8_t)(10 + i % 50)); // not 9
	outer(f, variant);
}

static void match_qfi(int on)
{
	kit_begin();
	for (uint32_t home = HOME_QINQ; home <= HOME_PPPOE; home++) {
		struct kit_session k = gateway_home(home);

		if (on)
			k.pdr[1].match |= API_PDR_QFI;
		k.pdr[1].qfis = 1ull << 9;
		kit_put_session(gateway_home_name(home), &k);
	}
	assert_int_equal(kit_commit(), 0);
}

static void g5_qfi_of_no_pdr(void **state)
{
	match_qfi(1);
	BAD_ROWS(((const struct bad[]){{"G5 QFI", "core", other_qfi, 20, "downlink-no-pdr", 0}}));
	match_qfi(0);
}

static void inner_version(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	f->at[0] = (uint8_t)((i % 14 + (i % 14 > 3) + (i % 14 > 4)) << 4 | 5); // neither 4 nor 6
	frame_gtpu(f, 0x200 + home_of(variant), 9);
	outer(f, variant);
}

static void g8_inner_version(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G8", "core", inner_version, 14, "gtpu-inner-version", 0}}));
}

// Sessions of one IP version get packets of the other.
static void wrong_type_down(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	gateway_from_upf(f, home_of(variant));
}

static void wrong_type_up(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 1);
	gateway_from_home(f, home_of(variant));
}

static void one_family(int family)
{
	kit_begin();
	for (uint32_t home = HOME_QINQ; home <= HOME_PPPOE; home++) {
		struct kit_session k = gateway_home(home);

		if (family == 4)
			memset(&k.s.ue_ip6, 0, sizeof(k.s.ue_ip6));
		if (family == 6)
			memset(&k.s.ue_ip4, 0, sizeof(k.s.ue_ip4));
		kit_put_session(gateway_home_name(home), &k);
	}
	assert_int_equal(kit_commit(), 0);
}

static void down4(struct frame *f, uint32_t i, uint32_t variant)
{
	wrong_type_down(f, i, variant & ~INNER6);
}

static void up4(struct frame *f, uint32_t i, uint32_t variant)
{
	wrong_type_up(f, i, variant & ~INNER6);
}

static void down6(struct frame *f, uint32_t i, uint32_t variant)
{
	wrong_type_down(f, i, variant | INNER6);
}

static void up6(struct frame *f, uint32_t i, uint32_t variant)
{
	wrong_type_up(f, i, variant | INNER6);
}

static void g8_ip_type_of_session(void **state)
{
	one_family(4);
	BAD_ROWS(((const struct bad[]){{"G8 v6 to v4 session", "core", down6, 8, "destination-not-ue", 1},
		{"G8 v6 from v4 session", "access", up6, 8, "source-spoofed", 1}}));
	one_family(6);
	BAD_ROWS(((const struct bad[]){{"G8 v4 to v6 session", "core", down4, 8, "destination-not-ue", 1},
		{"G8 v4 from v6 session", "access", up4, 8, "source-spoofed", 1}}));
	one_family(0);
}

static void empty_inner(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, i % 20); // never a whole IP header
	memset(f->at, variant & INNER6 ? 0x60 : 0x45, f->length);
	frame_gtpu(f, 0x200 + home_of(variant), i % 2 ? 9 : 0xff);
	outer(f, variant);
}

static void g9_inner_length_zero(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G9", "core", empty_inner, 20, "gtpu-inner-malformed", 0}}));
}

// Tunnels that are not there.

static void unknown_teid(struct frame *f, uint32_t teid, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, teid, 9);
	outer(f, variant);
}

// TS 29.281 §7.3.1: TEID 0 in the header; the tunnel's TEID and our address in IEs. Row G17.
static void is_error_indication(uint32_t i, uint32_t teid, int outer6)
{
	static const uint8_t ours4[] = {10, 0, 0, 1};
	struct ip_info ip;
	struct gtpu_info g;
	struct gtpu_ies ies;
	const uint8_t *p = out_ip("core", i, &ip), *message = p + ip.l4 + 8;
	uint32_t n = ip.length - ip.l4 - 8;

	assert_int_equal(ip.version, outer6 ? 6 : 4);
	assert_int_equal(ip.destination_port, GTPU_PORT);
	assert_int_equal(gtpu_parse(message, n, n, &g), GTPU_OK);
	assert_int_equal(g.message, GTPU_ERROR_INDICATION);
	assert_int_equal(g.teid, 0);
	assert_int_equal(gtpu_ies_parse(message + g.header_length, n - g.header_length, &ies), GTPU_OK);
	assert_int_equal(ies.teid, teid);
	assert_int_equal(ies.family, outer6 ? 6 : 4);
	assert_memory_equal(ies.address, outer6 ? kit_address("fd00::1").bytes : ours4, outer6 ? 16 : 4);
}

#define STORM 3000

static void g14_storm_of_unknown_teids(void **state)
{
	static struct frame f;

	for (uint32_t variant = 0; variant < VARIANTS; variant++) {
		struct snapshot b;

		kit_advance(1000003);
		snapshot_take(&b);
		kit_clear();
		uint32_t burst = burst_of(100);
		for (uint32_t i = 0; i < STORM; i++) {
			unknown_teid(&f, 0x80000000 + i * 7, variant);
			send_one("core", &f);
		}
		assert_int_equal(all_out(), burst);
		for (uint32_t i = 0; i < burst; i++)
			is_error_indication(i, 0x80000000 + i * 7, variant & PPPOE);
		snapshot_compare(&b, "gtpu-teid-unknown", STORM);
		assert_int_equal(kit_totals().originated - b.total.originated, burst);
		// Half a burst's time later: half a burst.
		kit_clear();
		kit_advance(50000);
		for (uint32_t i = 0; i < 100; i++) {
			unknown_teid(&f, 0x90000000 + i, variant);
			send_one("core", &f);
		}
		assert_in_range(all_out(), burst / 2, burst / 2 + 1);
		assert_true(gateway_undisturbed());
	}
}

static void teid_zero(struct frame *f, uint32_t i, uint32_t variant)
{
	unknown_teid(f, 0, variant);
}

static void g15_teid_zero(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G15", "core", teid_zero, 20, "gtpu-teid-zero", 0}}));
}

static void no_pdr(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, far_of(variant), variant & INNER6 ? "2001:db8:2::5" : i % 2 ? "100.64.0.99" : gateway_ue(3, 4), 17);
	gateway_from_upf(f, home_of(variant));
}

static void g16_no_pdr_matches(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G16", "core", no_pdr, 20, "destination-not-ue", 0}}));
}

static void indication(struct frame *f, uint32_t header_teid, uint32_t length, int family, const char *from)
{
	uint8_t message[GTPU_MESSAGE_MAX];
	struct api_address peer = kit_address(family == 4 ? "10.0.0.2" : "fd00::2");
	uint32_t n = gtpu_put_error_indication(message, 0x201, (uint8_t)family, peer.bytes);

	n = length < n ? length : n;
	store16(message + 2, (uint16_t)(n - 8));
	store32(message + 4, header_teid);
	frame_payload(f, 0);
	frame_append(f, message, n);
	frame_udp(f, 2152, 2152);
	frame_ip(f, from, family == 4 ? "10.0.0.1" : "fd00::1", 17);
	frame_ethernet(f, gateway_mac[1], gateway_upf, family == 4 ? 0x0800 : 0x86dd);
}

static void forged_unknown(struct frame *f, uint32_t i, uint32_t variant)
{
	indication(f, 0, 100, variant & PPPOE ? 6 : 4, variant & PPPOE ? "fd00::66" : "10.0.0.66");
}

static void forged_header(struct frame *f, uint32_t i, uint32_t variant)
{
	indication(f, 0x201, 100, variant & PPPOE ? 6 : 4, variant & PPPOE ? "fd00::2" : "10.0.0.2");
}

static void forged_short(struct frame *f, uint32_t i, uint32_t variant)
{
	indication(f, 0, 12 + i % 12, variant & PPPOE ? 6 : 4, variant & PPPOE ? "fd00::2" : "10.0.0.2");
}

static void real(struct frame *f, uint32_t i, uint32_t variant)
{
	indication(f, 0, 100, variant & PPPOE ? 6 : 4, variant & PPPOE ? "fd00::2" : "10.0.0.2");
}

static void g17_error_indications(void **state)
{
	BAD_ROWS(
		((const struct bad[]){{"G17 stranger", "core", forged_unknown, 20, "gtpu-error-indication-stranger", 1},
			{"G17 TEID in header", "core", forged_header, 20, "gtpu-error-indication-malformed", 1},
			{"G17 cut", "core", forged_short, 12, "gtpu-error-indication-malformed", 1},
			{"G17 a peer's", "core", real, 20, "gtpu-error-indication", 1}}));
}

static void echo(struct frame *f, uint32_t variant, uint16_t sequence, uint32_t junk)
{
	uint8_t head[12] = {0x32, GTPU_ECHO_REQUEST};

	store16(head + 2, (uint16_t)(4 + junk));
	store16(head + 8, sequence);
	frame_payload(f, junk); // IEs 0, 1, 2, ...: nonsense
	memcpy(frame_push(f, 12), head, 12);
	outer(f, variant);
}

static void g18_echo_flood(void **state)
{
	static struct frame f;

	for (uint32_t variant = 0; variant < VARIANTS; variant += PPPOE) {
		uint32_t burst = burst_of(100);
		struct snapshot b;

		kit_advance(1000003);
		kit_clear();
		snapshot_take(&b);
		for (uint32_t i = 0; i < 1000; i++) {
			echo(&f, variant, (uint16_t)i, i % 300);
			send_one("core", &f);
		}
		assert_int_equal(all_out(), burst);
		for (uint32_t i = 0; i < burst; i++) {
			struct ip_info ip;
			const uint8_t *p = out_ip("core", i, &ip) + ip.l4;

			assert_int_equal(p[9], GTPU_ECHO_RESPONSE);
			assert_int_equal(load16(p + 16), i);
			assert_int_equal(ip.length - ip.l4 - 8, 14);
		}
		snapshot_compare(&b, "gtpu-echo-rate-limit", 1000 - burst);
		assert_true(gateway_undisturbed());
	}
}

static void end_marker(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	frame_append(f, (uint8_t[]){0x30, GTPU_END_MARKER, 0, 0, 0x77, 0, (uint8_t)i, 1}, 8);
	outer(f, variant);
}

static void unknown_message(struct frame *f, uint32_t i, uint32_t variant)
{
	static const uint8_t types[] = {3, 4, 16, 21, 31, 100, 253};

	frame_payload(f, i % 40);
	frame_gtpu(f, 0, 0xff);
	f->at[1] = types[i % 7];
	outer(f, variant);
}

// A request without sequence number, and an answer from a stranger.
static void echo_not_answerable(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	if (i % 2 == 0) {
		frame_append(f, (uint8_t[]){0x30, GTPU_ECHO_REQUEST, 0, 0, 0, 0, 0, 0}, 8);
		outer(f, variant);
		return;
	}
	frame_append(f, (uint8_t[]){0x32, GTPU_ECHO_RESPONSE, 0, 4, 0, 0, 0, 0, 0, (uint8_t)i, 0, 0}, 12);
	frame_udp(f, 2152, 2152);
	frame_ip(f, "10.0.0.77", "10.0.0.1", 17);
	frame_ethernet(f, gateway_mac[1], gateway_upf, 0x0800);
}

static void g18_end_markers_and_others(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G18 end marker", "core", end_marker, 20, "gtpu-end-marker-unknown", 1},
		{"G18 message types", "core", unknown_message, 28, "gtpu-message-unknown", 1},
		{"G18 echo", "core", echo_not_answerable, 10, "gtpu-echo-malformed", 1}}));
}

// User data that looks like a tunnel, tunnels in the wrong place.

static void g19_user_data_to_port_2152(void **state)
{
	static struct frame f, want;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++) {
		struct frame *both[] = {&f, &want};

		for (int k = 0; k < 2; k++) {
			frame_payload(both[k], 0);
			frame_append(both[k], (uint8_t[]){0x30, 0xff, 0, 0, 0, 0, 2, 1}, 8); // a G-PDU of length 0
			frame_udp(both[k], 2152, 2152);
			frame_ip(both[k], far_of(variant), ue_of(variant), 17);
		}
		gateway_from_upf(&f, home_of(variant));
		gateway_to_home(&want, home_of(variant));
		kit_clear();
		send_one("core", &f);
		assert_int_equal(all_out(), 1);
		assert_true(gateway_same("access", 0, &want));
	}
	snapshot_compare(&b, NULL, 0);
}

static void on_n6(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	gateway_from_upf(f, home_of(variant));
	memcpy(f->at, gateway_mac[2], 6);
}

// To the address of the N6 interface itself, where no tunnel ends.
static void to_n6(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_gtpu(f, 0x201, 9);
	frame_udp(f, 2152, 2152);
	frame_ip(f, variant & PPPOE ? FAR6 : FAR4, variant & PPPOE ? "2001:db8:6::1" : "192.0.2.1", 17);
	frame_ethernet(f, gateway_mac[2], gateway_router, variant & PPPOE ? 0x86dd : 0x0800);
}

static void g20_gtpu_on_n6(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G20 to N3", "internet", on_n6, 20, "gtpu-not-endpoint", 0},
		{"G20 to N6", "internet", to_n6, 20, "gtpu-not-endpoint", 0}}));
}

const struct CMUnitTest gtpu_rows[] = {
	cmocka_unit_test(g1_extension_length_zero),
	cmocka_unit_test(g2_chain_past_the_end),
	cmocka_unit_test(g3_many_extensions),
	cmocka_unit_test(g4_lengths_and_versions),
	cmocka_unit_test(g4_every_flag),
	cmocka_unit_test(g5_container),
	cmocka_unit_test(g5_qfi_of_no_pdr),
	cmocka_unit_test(g8_inner_version),
	cmocka_unit_test(g8_ip_type_of_session),
	cmocka_unit_test(g9_inner_length_zero),
	cmocka_unit_test(g14_storm_of_unknown_teids),
	cmocka_unit_test(g15_teid_zero),
	cmocka_unit_test(g16_no_pdr_matches),
	cmocka_unit_test(g17_error_indications),
	cmocka_unit_test(g18_echo_flood),
	cmocka_unit_test(g18_end_markers_and_others),
	cmocka_unit_test(g19_user_data_to_port_2152),
	cmocka_unit_test(g20_gtpu_on_n6),
};
const size_t gtpu_row_count = sizeof(gtpu_rows) / sizeof(gtpu_rows[0]);
