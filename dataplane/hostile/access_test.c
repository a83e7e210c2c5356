// SPDX-License-Identifier: Apache-2.0
// Hostile subscribers: rows G6, G7, G25 (either side), G8 to G10, G21, G24, G27, B1 and B4.
#include "hostile/hostile.h"

// A bad inner packet goes either up, behind the access encapsulation, or down, in the tunnel.
typedef void (*inner_fn)(struct frame *f, uint32_t i, uint32_t variant, int uplink);

static void either_way(struct frame *f, inner_fn inner, uint32_t i, uint32_t variant, int uplink)
{
	inner(f, i, variant, uplink);
	uplink ? gateway_from_home(f, home_of(variant)) : gateway_from_upf(f, home_of(variant));
}

#define DOWN(name)                                                                                                     \
	static void name##_down(struct frame *f, uint32_t i, uint32_t variant)                                         \
	{                                                                                                              \
		either_way(f, name, i, variant, 0);                                                                    \
	}
#define EITHER_WAY(name)                                                                                               \
	static void name##_up(struct frame *f, uint32_t i, uint32_t variant)                                           \
	{                                                                                                              \
		either_way(f, name, i, variant, 1);                                                                    \
	}                                                                                                              \
	DOWN(name)

static void bad_ihl(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	inner_udp(f, variant & ~INNER6, uplink);
	if (i % 6 == 5) { // IHL 15 in a packet of 40 bytes
		f->length = 40;
		store16(f->at + 2, 40);
		f->at[0] = 0x4f;
	} else {
		f->at[0] = (uint8_t)(0x40 | i % 6);
	}
}
EITHER_WAY(bad_ihl)

static void total_long(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	uint8_t *length;

	inner_udp(f, variant, uplink);
	length = f->at + (variant & INNER6 ? 4 : 2);
	store16(length, (uint16_t)(i % 4 == 3 ? 0xffff : load16(length) + 1 + i));
}
EITHER_WAY(total_long)

// Shorter than the tunnel packet: in a tunnel there is no padding. (On the access side the rest is Ethernet padding.)
static void total_short(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	inner_udp(f, variant, uplink);
	uint8_t *udp = f->at + (variant & INNER6 ? 40 : 20), *length = f->at + (variant & INNER6 ? 4 : 2);
	store16(udp + 4, (uint16_t)(load16(udp + 4) - 1 - i));
	store16(length, (uint16_t)(load16(length) - 1 - i));
	if (!(variant & INNER6))
		frame_ip4_sum(f);
}
DOWN(total_short)

static void total_tiny(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	inner_udp(f, variant & ~INNER6, uplink);
	store16(f->at + 2, (uint16_t)(i % 20)); // below the header
}
EITHER_WAY(total_tiny)

static void wrong_sum(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	inner_udp(f, variant & ~INNER6, uplink);
	f->at[10 + i % 2] ^= (uint8_t)(1u << i / 2 % 8);
}
EITHER_WAY(wrong_sum)

static void g6_inner_ipv4_header(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G6 IHL up", "access", bad_ihl_up, 18, "access-ip-malformed", 1},
		{"G6 checksum up", "access", wrong_sum_up, 16, "access-ip-checksum", 1},
		{"G6 checksum down", "core", wrong_sum_down, 16, "gtpu-inner-checksum", 1},
		{"G6 IHL down", "core", bad_ihl_down, 18, "gtpu-inner-malformed", 1},
		{"G6 too long up", "access", total_long_up, 20, "access-ip-malformed", 0},
		{"G6 too long down", "core", total_long_down, 20, "gtpu-inner-malformed", 0},
		{"G6 too short down", "core", total_short_down, 20, "gtpu-inner-malformed", 0},
		{"G6 tiny up", "access", total_tiny_up, 20, "access-ip-malformed", 1},
		{"G6 tiny down", "core", total_tiny_down, 20, "gtpu-inner-malformed", 1}}));
}

// Bytes behind a valid packet on the access side are padding and are not forwarded.
static void g6_padding_is_removed(void **state)
{
	static struct frame f, want;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++)
		for (uint32_t padding = 1; padding < 64; padding += 9) {
			inner_udp(&f, variant, 1);
			gateway_from_home(&f, home_of(variant));
			frame_append(&f, NULL, padding);
			inner_udp(&want, variant, 1);
			gateway_to_upf(&want, home_of(variant));
			kit_clear();
			send_one("access", &f);
			assert_int_equal(all_out(), 1);
			assert_true(gateway_same("core", 0, &want));
		}
	snapshot_compare(&b, NULL, 0);
}

static void ip6(struct frame *f, uint32_t variant, int uplink, uint8_t next)
{
	frame_ip(f, uplink ? gateway_ue(home_of(variant), 6) : FAR6, uplink ? FAR6 : gateway_ue(home_of(variant), 6),
		next);
}

static void payload_zero(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	static const uint8_t next[] = {17, 6, 58, 0, 44, 50};

	frame_payload(f, 0);
	ip6(f, variant, uplink, next[i % 6]);
}
EITHER_WAY(payload_zero)

static void jumbogram(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	uint8_t hop[8] = {17, 0, 0xc2, 4, 0, 1, 0, 0}; // RFC 2675: 65536 bytes

	frame_payload(f, 100);
	memcpy(frame_push(f, 8), hop, 8);
	ip6(f, variant, uplink, 0);
	store16(f->at + 4, 0);
}
EITHER_WAY(jumbogram)

static void chain_broken(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	static const uint8_t types[] = {0, 43, 60, 51, 135};
	uint8_t type = types[i % 5];

	frame_payload(f, 8 + i % 8);
	memset(f->at, 0, f->length);
	f->at[0] = 17;
	f->at[1] = (uint8_t)(i % 2 ? 255 : 9); // past the packet
	if (i % 3 == 2)
		f->length = 1 + i % 7; // cut within the header's first 8 bytes
	ip6(f, variant, uplink, type);
}
EITHER_WAY(chain_broken)

static void chain_long(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	frame_payload(f, 40);
	frame_udp(f, 4000, 5000);
	for (uint32_t k = 0; k < IP_MAX_EXTENSIONS + 1 + i; k++)
		frame_push(f, 8)[0] = k == 0 ? 17 : 60;
	ip6(f, variant, uplink, 60);
}
EITHER_WAY(chain_long)

static void hop_by_hop_late(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	frame_payload(f, 40);
	frame_udp(f, 4000, 5000);
	frame_push(f, 8)[0] = 17;
	frame_push(f, 8)[0] = 0; // hop-by-hop behind destination options
	ip6(f, variant, uplink, 60);
}
EITHER_WAY(hop_by_hop_late)

static void g7_inner_ipv6_header(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G7 payload 0 up", "access", payload_zero_up, 18, "access-ip-malformed", 1},
		{"G7 payload 0 down", "core", payload_zero_down, 18, "gtpu-inner-malformed", 1},
		{"G7 jumbo up", "access", jumbogram_up, 8, "access-ip-malformed", 1},
		{"G7 jumbo down", "core", jumbogram_down, 8, "gtpu-inner-malformed", 1},
		{"G7 chain up", "access", chain_broken_up, 30, "access-ip-malformed", 1},
		{"G7 chain down", "core", chain_broken_down, 30, "gtpu-inner-malformed", 1},
		{"G7 long chain up", "access", chain_long_up, 20, "access-ip-malformed", 1},
		{"G7 long chain down", "core", chain_long_down, 20, "gtpu-inner-malformed", 1},
		{"G7 order up", "access", hop_by_hop_late_up, 8, "access-ip-malformed", 1},
		{"G7 order down", "core", hop_by_hop_late_down, 8, "gtpu-inner-malformed", 1}}));
}

static void tcp_offset(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	frame_payload(f, i % 20);
	frame_tcp(f, 4000, 5000);
	uint32_t room = f->length / 4;
	f->at[12] = (uint8_t)((i % 2 ? i / 2 % 5 : room + 1 + i % 3 > 15 ? 15 : room + 1 + i % 3) << 4);
	frame_ip(f, uplink ? ue_of(variant) : far_of(variant), uplink ? far_of(variant) : ue_of(variant), 6);
}
EITHER_WAY(tcp_offset)

static void g25_tcp_data_offset(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G25 up", "access", tcp_offset_up, 40, "access-ip-malformed", 0},
		{"G25 down", "core", tcp_offset_down, 40, "gtpu-inner-malformed", 0}}));
}

// G8, G9, G10 on the access side.

static void wrong_ethertype(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 1);
	gateway_from_home(f, home_of(variant));
	uint32_t at = variant & PPPOE ? 28 : 20; // ethertype, or PPP protocol
	store16(f->at + at, variant & PPPOE ? (variant & INNER6 ? 0x21 : 0x57) : (variant & INNER6 ? 0x0800 : 0x86dd));
}

static void g8_ethertype_lies(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G8 ethertype", "access", wrong_ethertype, 20, "access-ip-version", 0}}));
}

static void to_gateway(struct frame *f, uint32_t variant, uint16_t port)
{
	frame_udp(f, 2152, port);
	frame_ip(f, ue_of(variant), variant & INNER6 ? "fd00::1" : "10.0.0.1", 17);
}

static void empty_gtpu(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	if (i % 2)
		frame_gtpu(f, 0x201, 0xff);
	to_gateway(f, variant, 2152);
	gateway_from_home(f, home_of(variant));
}

// Nested `deep` times, all to our tunnel address.
static void nested(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	for (uint32_t deep = 0; deep < 2 + i % 2; deep++) {
		frame_gtpu(f, 0x200 + HOME_QINQ_OTHER, 9);
		to_gateway(f, variant, 2152);
	}
	gateway_from_home(f, home_of(variant));
}

// Row A11: our other addresses and ports are no business of a subscriber's either.
static void infrastructure(struct frame *f, uint32_t i, uint32_t variant)
{
	static const uint16_t ports[] = {8805, 22, 179, 80, 2152, 3868};
	const char *to = variant & INNER6 ? (i % 2 ? "2001:db8:6::1" : "fd00::1") : (i % 2 ? "192.0.2.1" : "10.0.0.1");

	frame_payload(f, 40);
	if (i % 3 == 0)
		frame_tcp(f, 4000, ports[i % 6]);
	else
		frame_udp(f, 4000, ports[i % 6]);
	frame_ip(f, ue_of(variant), to, i % 3 == 0 ? 6 : 17);
	gateway_from_home(f, home_of(variant));
}

static void g9_g10_tunnel_in_tunnel(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G9", "access", empty_gtpu, 20, "subscriber-to-gateway", 0},
		{"G10", "access", nested, 20, "subscriber-to-gateway", 0},
		{"A11", "access", infrastructure, 24, "subscriber-to-gateway", 0}}));
}

// Through the tunnel unchanged: the packet at f->at, in `variant`'s home.
static void forwarded_up(struct frame *f, uint32_t variant)
{
	static struct frame in;

	frame_payload(&in, 0);
	frame_append(&in, f->at, f->length);
	gateway_from_home(&in, home_of(variant));
	gateway_to_upf(f, home_of(variant));
	kit_clear();
	send_one("access", &in);
	assert_int_equal(all_out(), 1);
	assert_true(gateway_same("core", 0, f));
}

// GTP-U to other addresses is user data, unless the engine must drop it (workers_test.c).
static void g10_tunnel_to_elsewhere(void **state)
{
	static struct frame f;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++) {
		inner_udp(&f, variant, 1);
		frame_gtpu(&f, 0x1234, 9);
		frame_udp(&f, 2152, 2152);
		frame_ip(&f, ue_of(variant), far_of(variant), 17);
		forwarded_up(&f, variant);
	}
	snapshot_compare(&b, NULL, 0);
}

// Row G21: the UPF decides; here the packet enters the tunnel like any other.
static void g21_ue_to_ue(void **state)
{
	static struct frame f;
	struct snapshot b;

	snapshot_take(&b);
	for (uint32_t variant = 0; variant < VARIANTS; variant++)
		for (uint32_t to = 1; to <= GATEWAY_HOMES; to++) { // itself among them
			frame_payload(&f, 50);
			frame_icmp_echo(&f, ue_of(variant), gateway_ue(to, family_of(variant)));
			forwarded_up(&f, variant);
		}
	snapshot_compare(&b, NULL, 0);
}

static const char *const martian4[] = {
	"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.9", "240.0.0.1", "255.255.255.254"};
static const char *const martian6[] = {"::", "::1", "::ffff:10.0.0.1"};
static const char *const group4[] = {"224.0.0.1", "239.255.255.250", "255.255.255.255"};
static const char *const group6[] = {"ff02::1", "ff0e::1234", "ff05::2"};

static void martian(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	const char *bad = variant & INNER6 ? martian6[i % 3] : martian4[i % 6];
	const char *source = i < 12 ? bad : uplink ? ue_of(variant) : far_of(variant);
	const char *destination = i < 12 ? (uplink ? far_of(variant) : ue_of(variant)) : bad;

	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, source, destination, 17);
}
EITHER_WAY(martian)

static void group_source(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, variant & INNER6 ? group6[i % 3] : group4[i % 3], uplink ? far_of(variant) : ue_of(variant), 17);
}
EITHER_WAY(group_source)

static void group(struct frame *f, uint32_t i, uint32_t variant, int uplink)
{
	frame_payload(f, 60);
	frame_udp(f, 4000, 5000);
	frame_ip(f, uplink ? ue_of(variant) : far_of(variant), variant & INNER6 ? group6[i % 3] : group4[i % 3], 17);
}
EITHER_WAY(group)

static void g24_addresses_that_nobody_has(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G24 up", "access", martian_up, 24, "access-martian", 0},
		{"G24 down", "core", martian_down, 24, "gtpu-inner-martian", 0},
		{"G24 group source up", "access", group_source_up, 6, "access-martian", 0},
		{"G24 group source down", "core", group_source_down, 6, "gtpu-inner-martian", 0},
		{"G24 group up", "access", group_up, 6, "access-multicast", 0},
		{"G24 group down", "core", group_down, 6, "gtpu-inner-martian", 0}}));
}

static const uint8_t tunnels[] = {4, 41, 47, 50, 94, 97, 115, 137};

static void tunnel_from_core(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	inner_udp(f, variant, 0);
	if (tunnels[i % 8] == 47)
		store16(frame_push(f, 4) + 2, variant & INNER6 ? 0x86dd : 0x0800);
	if (variant & PPPOE)
		frame_ip(f, "fd00::2", "fd00::1", tunnels[i % 8]);
	else
		frame_ip(f, "10.0.0.2", "10.0.0.1", tunnels[i % 8]);
	frame_ethernet(f, gateway_mac[1], gateway_upf, variant & PPPOE ? 0x86dd : 0x0800);
}

static void tunnel_from_home(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 0);
	frame_ip(f, ue_of(variant), variant & INNER6 ? "2001:db8:1::1" : "100.64.0.1", tunnels[i % 8]);
	gateway_from_home(f, home_of(variant));
}

static void g27_tunnels_to_the_router(void **state)
{
	BAD_ROWS(((const struct bad[]){{"G27 core", "core", tunnel_from_core, 16, "ip-protocol-unreachable", 0},
		{"G27 access", "access", tunnel_from_home, 16, "subscriber-to-gateway", 0}}));
}

static void discovery(struct frame *f, uint8_t code, uint16_t session, uint16_t length)
{
	uint8_t *p = frame_push(f, 6);

	p[0] = 0x11;
	p[1] = code;
	store16(p + 2, session);
	store16(p + 4, length);
}

static void tagged(struct frame *f, uint32_t home, uint16_t c_tag, uint16_t type)
{
	frame_ethernet(f, gateway_mac[0], gateway_home_mac(home), type);
	frame_tag(f, 0x8100, c_tag);
	frame_tag(f, 0x88a8, 100);
}

static void bad_discovery(struct frame *f, uint32_t i, uint32_t variant)
{
	uint8_t code = i % 2 ? 0x09 : 0x19; // PADI, PADR
	uint8_t tags[400] = {1, 1, 0, 0};

	frame_payload(f, 0);
	switch (i / 2 % 5) {
	case 0: // a tag past the payload
		store16(tags + 2, (uint16_t)(1 + i));
		frame_append(f, tags, 4);
		discovery(f, code, 0, 4);
		break;
	case 1: // the payload past the frame
		frame_append(f, tags, 4);
		discovery(f, code, 0, (uint16_t)(i % 4 ? 0xffff : 5));
		break;
	case 2: // no tag at all
		discovery(f, code, 0, 0);
		break;
	case 3: // 100 tags
		for (int k = 0; k < 100; k++)
			memcpy(tags + 4 * k, (uint8_t[]){1, 3, 0, 0}, 4);
		frame_append(f, tags, 400);
		discovery(f, code, 0, 400);
		break;
	default: // a tag without length
		frame_append(f, tags, 7);
		discovery(f, code, 0, 7);
	}
	tagged(f, home_of(variant), (uint16_t)home_of(variant), 0x8863);
}

static void b1_discovery(void **state)
{
	BAD_ROWS(((const struct bad[]){{"B1", "access", bad_discovery, 40, "pppoe-discovery-malformed", 1}}));
}

// The right session id (2) from the wrong MAC or the wrong tag.
static void stray_padt(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 0);
	discovery(f, 0xa7, HOME_PPPOE, 0);
	tagged(f, i % 2 ? HOME_PPPOE : HOME_PPPOE_OTHER, i % 2 ? HOME_PPPOE_OTHER : HOME_PPPOE, 0x8863);
}

static void stray_lcp(struct frame *f, uint32_t i, uint32_t variant)
{
	frame_payload(f, 10);
	frame_pppoe(f, HOME_PPPOE, i % 4 < 2 ? 0xc021 : 0x8021);
	tagged(f, i % 2 ? HOME_PPPOE : HOME_PPPOE_OTHER, i % 2 ? HOME_PPPOE_OTHER : HOME_PPPOE, 0x8864);
}

static void stray_data(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant | PPPOE, 1);
	frame_pppoe(f, HOME_PPPOE, variant & INNER6 ? 0x57 : 0x21);
	tagged(f, i % 2 ? HOME_PPPOE : HOME_PPPOE_OTHER, i % 2 ? HOME_PPPOE_OTHER : HOME_PPPOE, 0x8864);
}

// A QinQ home's packet with a PPPoE header, and the other way round.
static void stray_encapsulation(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant, 1);
	if (!(variant & PPPOE))
		frame_pppoe(f, 7, variant & INNER6 ? 0x57 : 0x21);
	tagged(f, home_of(variant), (uint16_t)home_of(variant),
		variant & PPPOE ? (variant & INNER6 ? 0x86dd : 0x0800) : 0x8864);
}

static void pppoe_length(struct frame *f, uint32_t i, uint32_t variant)
{
	inner_udp(f, variant | PPPOE, 1);
	gateway_from_home(f, HOME_PPPOE);
	store16(f->at + 22 + 4, (uint16_t)(i % 3 == 0 ? 0xffffu : i % 3 == 1 ? i % 2 : load16(f->at + 22 + 4) + 1u));
}

// RFC 1122 §3.3.6, RFC 1812 §5.3.4: a home's packet to one IP address, sent to every gateway of its link.
static void group_mac(struct frame *f, uint32_t i, uint32_t variant)
{
	static const uint8_t group[3][6] = {
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 9}, {0x33, 0x33, 0, 0, 0, 1}};

	inner_udp(f, variant, 1);
	gateway_from_home(f, home_of(variant));
	memcpy(f->at, group[i % 3], 6);
}

static void unicast_to_group(void **state)
{
	BAD_ROWS(((const struct bad[]){{"group MAC", "access", group_mac, 18, "access-group-unicast", 0}}));
}

static void b4_sessions_of_others(void **state)
{
	BAD_ROWS(((const struct bad[]){{"B4 PADT", "access", stray_padt, 20, "pppoe-padt-unknown", 1},
		{"B4 LCP", "access", stray_lcp, 20, "ppp-unknown-subscriber", 1},
		{"B4 data", "access", stray_data, 20, "subscriber-unknown", 0},
		{"B4 encapsulation", "access", stray_encapsulation, 20, "subscriber-unknown", 0},
		{"B4 length", "access", pppoe_length, 18, "pppoe-malformed", 0}}));
}

const struct CMUnitTest access_rows[] = {
	cmocka_unit_test(g6_inner_ipv4_header),
	cmocka_unit_test(g6_padding_is_removed),
	cmocka_unit_test(g7_inner_ipv6_header),
	cmocka_unit_test(g8_ethertype_lies),
	cmocka_unit_test(g9_g10_tunnel_in_tunnel),
	cmocka_unit_test(g10_tunnel_to_elsewhere),
	cmocka_unit_test(g21_ue_to_ue),
	cmocka_unit_test(g24_addresses_that_nobody_has),
	cmocka_unit_test(g25_tcp_data_offset),
	cmocka_unit_test(g27_tunnels_to_the_router),
	cmocka_unit_test(b1_discovery),
	cmocka_unit_test(unicast_to_group),
	cmocka_unit_test(b4_sessions_of_others),
};
const size_t access_row_count = sizeof(access_rows) / sizeof(access_rows[0]);
