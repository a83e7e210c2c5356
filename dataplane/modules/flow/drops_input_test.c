// SPDX-License-Identifier: Apache-2.0
// Rows of core-input, ip-input, gtsm, gtpu-input, access-input, ip-forward and ip-output.
#include "flow/drops_test.h"

// ---- what is configured ---------------------------------------------------------------------------------------------

static struct api_interface body_of(const char *interface)
{
	uint32_t length;
	const void *body = object_find(API_INTERFACE, interface, &length);
	struct api_interface i;

	assert_non_null(body);
	memcpy(&i, body, sizeof(i));
	return i;
}

static void put_body(const char *name, const struct api_interface *i)
{
	if (kit_change(API_INTERFACE, name, i, sizeof(*i)) != 0)
		fail_msg("interface %s: %s", name, kit_error());
}

static void down(const struct way *w, int on)
{
	set_interface_flags(w->interface, on ? API_INTERFACE_DOWN : 0);
}

static void strict(const struct way *w, int on)
{
	set_interface_flags(w->interface, on ? API_INTERFACE_RPF_STRICT : 0);
}

static void loose(const struct way *w, int on)
{
	set_interface_flags(w->interface, on ? API_INTERFACE_RPF_LOOSE : 0);
}

static void other_vlan(const struct way *w, int on)
{
	static uint16_t vlan;
	struct api_interface i = body_of(w->interface);

	vlan = on ? i.outer_vlan : vlan;
	i.outer_vlan = on ? 99 : vlan;
	put_body(w->interface, &i);
}

static void small_mtu(const struct way *w, int on)
{
	struct api_interface i = body_of(w->interface_out);

	i.mtu = on ? 68 : 0;
	put_body(w->interface_out, &i);
}

static void set_default_routes(int there)
{
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};

	kit_begin();
	if (there) {
		kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
		r = (struct api_route){.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
		kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	} else {
		kit_delete(API_ROUTE, "0.0.0.0/0");
		kit_delete(API_ROUTE, "::/0");
	}
	commit();
}

// The outgoing interface is down, and no other leads there.
static void no_way_out(const struct way *w, int on)
{
	set_default_routes(!on);
	set_interface_flags(w->interface_out, on ? API_INTERFACE_DOWN : 0);
}

// Routes that discard: to destinations of UEs, and to peers.
static void discard(uint32_t how, int on)
{
	static const char *const peers[] = {"10.1.0.2/32", "10.3.0.2/32"};
	struct api_route r = {.discard = how};

	kit_begin();
	for (uint32_t i = 0; i < RTE_DIM(peers) + 1; i++) {
		const char *key = i < RTE_DIM(peers) ? peers[i] : "198.0.0.0/8";

		r.prefix = kit_address(key);
		if (on)
			kit_put(API_ROUTE, key, &r, sizeof(r));
		else
			kit_delete(API_ROUTE, key);
	}
	commit();
}

static void blackhole(const struct way *w, int on)
{
	discard(API_DISCARD_BLACKHOLE, on);
}

static void unreachable(const struct way *w, int on)
{
	discard(API_DISCARD_UNREACHABLE, on);
}

static void prohibited(const struct way *w, int on)
{
	discard(API_DISCARD_PROHIBIT, on);
}

static void unassigned(const struct way *w, int on)
{
	discard(API_DISCARD_UNASSIGNED, on);
}

static void near_bgp(const struct way *w, int on)
{
	struct api_gtsm g = {.hops = 1};

	kit_begin();
	if (on)
		kit_put(API_GTSM, w->interface, &g, sizeof(g));
	else
		kit_delete(API_GTSM, w->interface);
	commit();
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static void third_tag(struct frame *f, const struct way *w)
{
	for (uint32_t l2 = w->at[L3]; l2 < 14 + 3 * 4; l2 += 4)
		frame_tag(f, 0x8100, 5);
}

static void bgp(struct frame *f, const struct way *w)
{
	frame_payload(f, 60);
	frame_tcp(f, 4000, 179);
	frame_ip(f, FAR4, "10.1.0.1", 6);
	link_layer(f, w->in, 1);
}

static void redirect(struct frame *f, const struct way *w)
{
	frame_payload(f, 60);
	f->at[0] = 137;
	frame_ip(f, "fd00:1::2", "fd00:1::1", 58);
	f->at[7] = 255;
	link_layer(f, w->in, 1);
}

static void four_bytes(struct frame *f, const struct way *w)
{
	uint8_t outer[2 + 54], n = (uint8_t)(w->at[GTPU]);

	memcpy(outer, f->at, n);
	frame_payload(f, 4);
	frame_udp(f, 2152, 2152);
	frame_ip(f, "10.1.0.2", "10.1.0.1", 17);
	link_layer(f, w->in, 1);
}

static void padt(struct frame *f, const struct way *w)
{
	uint8_t *at = f->at + w->at[L3] - 10;

	at[0] = 0x88, at[1] = 0x63, at[3] = 0xa7;
	store16(at + 6, 0);
}

#define LOOPBACK "\x7f"
#define FRAGMENT "\x00\x08"

const struct row drops_input_rows[] = {
	// core-input
	{"interface-down", CORE, .change = down},
	{"interface-unknown", CORE & ~BIT(SGW), .change = other_vlan},
	{"interface-unknown", BIT(UP_VLAN) | BIT(NAT_DOWN) | BIT(BNG_DOWN) | BIT(ROUTED_VRF), PUT(FRAME, 15, "\x63")},
	{"ethernet-short", CORE, FRAME, .end = 13},
	{"ethernet-tags", CORE, .make = third_tag},
	{"mac-not-ours", CORE & ~(BIT(SGW) | BIT(ROUTED_VRF)), PUT(FRAME, 5, "\x77")},
	{"ethernet-group-unicast", CORE, PUT(FRAME, 0, "\x03")},
	{"ethertype-unknown", CORE, PUT(L3, -2, "\x88\x99")},
	// ip-input
	{"ip-short", CORE, L3, .end = 10},
	{"ip-version", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, -2, "\x86\xdd")},
	{"ip-header-length", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 0, "\x44")},
	{"ip-length", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 2, "\xff\xff"), .sum = L3},
	{"ip-length", BIT(UP_OUTER6) | PLAIN6, PUT(L3, 4, "\xff\xff")},
	{"ip-extension-headers", BIT(UP_OUTER6) | PLAIN6, PUT(L3, 6, "\x3c")},
	{"ip-transport-header", CORE, PUT(L4, 4, "\xff\xff")},
	{"ip-checksum", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 10, "\xde\xad")},
	{"ip-martian-source", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 12, LOOPBACK), .sum = L3},
	{"ip-martian-source", BIT(UP_OUTER6) | PLAIN6, PUT(L3, 8, "\xff\x02")},
	{"ip-martian-destination", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 16, LOOPBACK), .sum = L3},
	{"ip-martian-destination", BIT(UP_OUTER6) | PLAIN6, PUT(L3, 24, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1")},
	{"ip-reverse-path", BIT(ROUTED) | BIT(ROUTED6), .change = strict},
	{"ip-reverse-path", BIT(UP) | BIT(UP_INNER6) | BIT(NAT_UP) | BIT(AGF_DOWN), PUT(L3, 12, "\xc6\x33\x64\x09"),
		.sum = L3, .change = strict},
	{"ip-reverse-path", BIT(DOWN) | BIT(DOWN_FLOW) | BIT(ROUTED_UE), PUT(L3, 12, "\x0a\x01\x00\x02"), .sum = L3,
		.change = strict},
	{"ip-reverse-path", BIT(ROUTED_VRF), PUT(L3, 12, "\xc6\x33\x64\x09"), .sum = L3, .change = loose},
	{"ip-multicast", TUNNELS4 | PLAIN4 | BIT(SGW), PUT(L3, 16, "\xe0\x00\x00\x09"), .sum = L3},
	{"ip-protocol-unreachable", TUNNELS4 | BIT(SGW), PUT(L3, 9, "\x2f"), .sum = L3},
	{"ip-redirect", BIT(ROUTED6), .make = redirect},
	{"gtsm-ttl", BIT(UP) | BIT(ROUTED) | BIT(AGF_DOWN), .make = bgp, .change = near_bgp},
	// gtpu-input, gtpu-control
	{"gtpu-not-endpoint", TUNNELS4, PUT(L3, 16, "\x0a\x05\x00\x01"), .sum = L3},
	{"gtpu-udp-length", TUNNELS | BIT(SGW), PUT(L4, 4, "\x00\x30")},
	{"gtpu-udp-checksum", TUNNELS | BIT(SGW), PUT(L4, 6, "\x12\x34")},
	{"gtpu-udp-checksum", BIT(UP_OUTER6), PUT(L4, 6, "\x00\x00")},
	{"gtpu-short", BIT(UP) | BIT(UP_INNER6) | BIT(UP_FLOW) | BIT(NAT_UP), .make = four_bytes},
	{"gtpu-version", TUNNELS | BIT(SGW), PUT(GTPU, 0, "\x74")},
	{"gtpu-version", TUNNELS | BIT(SGW), PUT(GTPU, 0, "\x24")},
	{"gtpu-length", TUNNELS | BIT(SGW), PUT(GTPU, 2, "\x00\x10")},
	{"gtpu-extension", TUNNELS | BIT(SGW), PUT(GTPU, 12, "\x00")},
	{"gtpu-extension-unknown", TUNNELS, PUT(GTPU, 11, "\xc1"), .answered = 1},
	{"gtpu-message-unknown", TUNNELS | BIT(SGW), PUT(GTPU, 1, "\x42")},
	{"gtpu-teid-unknown", TUNNELS | BIT(SGW), PUT(GTPU, 4, "\x00\x00\x09\x99"), .answered = 1},
	{"gtpu-teid-zero", TUNNELS | BIT(SGW), PUT(GTPU, 4, "\x00\x00\x00\x00")},
	{"gtpu-inner-version", TUNNELS | BIT(SGW), PUT(USER, 0, "\x55")},
	{"gtpu-inner-malformed", (TUNNELS & ~BIT(UP_INNER6)) | BIT(SGW), PUT(USER, 2, "\x00\x40"), .sum = USER},
	{"gtpu-inner-malformed", (TUNNELS & ~BIT(UP_INNER6)) | BIT(SGW), PUT(USER, 0, "\x44")},
	{"gtpu-inner-malformed", BIT(UP_INNER6), PUT(USER, 4, "\x00\x40")},
	{"gtpu-inner-malformed", TUNNELS | BIT(SGW), PUT(USER_L4, 4, "\xff\xff")},
	{"gtpu-inner-checksum", (TUNNELS & ~BIT(UP_INNER6)) | BIT(SGW), PUT(USER, 10, "\xde\xad")},
	{"gtpu-inner-ecn", TUNNELS4 | BIT(SGW), PUT(L3, 1, "\x03"), .sum = L3},
	{"gtpu-inner-ecn", BIT(UP_OUTER6), PUT(L3, 1, "\x30")},
	{"gtpu-inner-martian", (TUNNELS & ~BIT(UP_INNER6)) | BIT(SGW), PUT(USER, 12, LOOPBACK), .sum = USER},
	{"gtpu-inner-martian", (TUNNELS & ~BIT(UP_INNER6)) | BIT(SGW), PUT(USER, 16, LOOPBACK), .sum = USER},
	{"gtpu-inner-martian", BIT(UP_INNER6), PUT(USER, 8, "\xff\x02")},
	{"gtpu-inner-martian", BIT(AGF_DOWN), PUT(USER, 16, "\xe0\x00\x00\x09"), .sum = USER},
	// access-input
	{"access-ethernet", ACCESS, FRAME, .end = 13},
	{"access-tags", BIT(AGF_UP) | BIT(BNG_UP), .make = third_tag},
	{"access-mac-not-ours", ACCESS, PUT(FRAME, 5, "\x77")},
	{"access-group-unicast", ACCESS, PUT(FRAME, 0, "\x03")},
	{"access-source-mac", ACCESS, PUT(FRAME, 6, "\x03")},
	{"access-ethertype", BIT(AGF_UP) | BIT(BNG_UP), PUT(L3, -2, "\x88\x99")},
	{"access-ip-malformed", ACCESS, PUT(L3, 0, "\x44")},
	{"access-ip-malformed", ACCESS, PUT(L3, 2, "\xff\xff"), .sum = L3},
	{"access-ip-malformed", ACCESS, PUT(L4, 4, "\xff\xff")},
	{"access-ip-checksum", ACCESS, PUT(L3, 10, "\xde\xad")},
	{"access-ip-version", BIT(AGF_UP) | BIT(BNG_UP), PUT(L3, -2, "\x86\xdd")},
	{"access-ip-version", BIT(PPPOE_UP), PUT(L3, -2, "\x00\x57")},
	{"access-martian", ACCESS, PUT(L3, 12, LOOPBACK), .sum = L3},
	{"access-martian", ACCESS, PUT(L3, 16, LOOPBACK), .sum = L3},
	{"access-multicast", ACCESS, PUT(L3, 16, "\xe0\x00\x00\x09"), .sum = L3},
	{"pppoe-malformed", BIT(PPPOE_UP), PUT(L3, -8, "\x21")},
	{"pppoe-malformed", BIT(PPPOE_UP), PUT(L3, -4, "\xff\xff")},
	{"pppoe-padt-unknown", BIT(PPPOE_UP), PUT(L3, -6, "\x00\x99"), .make = padt},
	{"ppp-unknown-subscriber", BIT(PPPOE_UP), PUT(L3, -6, "\x00\x99\x00\x5a\xc0\x21")},
	// ip-forward, ip-output, and their ICMP errors
	{"forward-link-local", MOBILE_UP | BIT(BNG_UP) | BIT(ROUTED) | BIT(ROUTED_UE) | BIT(ROUTED_VRF),
		PUT(USER, 16, "\xa9\xfe\x01\x01"), .sum = USER},
	{"forward-link-local", BIT(ROUTED) | BIT(ROUTED_UE) | BIT(ROUTED_VRF), PUT(USER, 12, "\xa9\xfe\x01\x01"),
		.sum = USER},
	{"neighbour-no-host", MOBILE_UP | BIT(BNG_UP) | BIT(ROUTED) | BIT(ROUTED_UE), PUT(USER, 16, "\xc0\x00\x02\xff"),
		.sum = USER},
	{"no-route", BIT(DOWN) | BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN) | BIT(AGF_UP) | BIT(PPPOE_UP),
		.change = no_way_out},
	{"route-blackhole",
		BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(UP_FLOW) | BIT(ROUTED) | BIT(BNG_UP) | BIT(DOWN) |
			BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN) | BIT(AGF_UP) | BIT(PPPOE_UP),
		.change = blackhole},
	{"route-unassigned",
		BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(UP_FLOW) | BIT(ROUTED) | BIT(BNG_UP) | BIT(DOWN) |
			BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN) | BIT(AGF_UP) | BIT(PPPOE_UP),
		.change = unassigned},
	{"route-unreachable", BIT(DOWN) | BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN) | BIT(AGF_UP) | BIT(PPPOE_UP),
		.change = unreachable},
	{"route-prohibit", BIT(DOWN) | BIT(DOWN6) | BIT(DOWN_FLOW) | BIT(NAT_DOWN) | BIT(AGF_UP) | BIT(PPPOE_UP),
		.change = prohibited},
	{"icmp-not-answerable", BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(ROUTED) | BIT(BNG_UP),
		PUT(USER, 6, FRAGMENT), .sum = USER, .change = no_way_out},
	{"icmp-not-answerable",
		BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(ROUTED) | BIT(ROUTED_UE) | BIT(ROUTED_VRF) | BIT(BNG_UP),
		PUT(USER, 6, "\x40\x08"), .sum = USER, .change = small_mtu},
	{"icmp-not-answerable",
		BIT(UP) | BIT(UP_VLAN) | BIT(UP_OUTER6) | BIT(ROUTED) | BIT(ROUTED_UE) | BIT(ROUTED_VRF) | BIT(BNG_UP) |
			BIT(BNG_DOWN),
		PUT(USER, 6, FRAGMENT "\x01"), .sum = USER},
};
const size_t drops_input_count = sizeof(drops_input_rows) / sizeof(drops_input_rows[0]);
