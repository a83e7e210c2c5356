// SPDX-License-Identifier: Apache-2.0
// The ways of drops_test.h: their sessions and good packets. What tunnel_fixture.h has, and beside it
//
//   `n6.8`   internet, VLAN 8: instance nat, pool 10.46.0.0/16, NAT44; 203.0.113.128/25 is behind it.
//   `n6.9`   internet, VLAN 9: instance fixed, pool 10.47.0.0/16, whose UE is a wireline subscriber.
//   `f1`, `f2` loose, VLANs 21 and 22: VRF far
#include "flow/drops_test.h"

#define PAYLOAD 60
#define BEHIND_NAT "203.0.113.200"

static const uint8_t mac_homes[6] = {2, 0, 0, 0, 0x99, 3}, mac_loose[6] = {2, 0, 0, 0, 0x99, 4};

// ---- sessions -------------------------------------------------------------------------------------------------------

static void mobile(struct kit_mobile *k, uint32_t n, const char *local)
{
	*k = *upf_session(n);
	k->pdr[0].local = kit_address(local);
}

static void session_up(struct kit_mobile *k)
{
	mobile(k, 1, "10.1.0.1");
}

static void session_vlan(struct kit_mobile *k)
{
	mobile(k, 2, "10.2.0.1");
}

static void session_outer6(struct kit_mobile *k)
{
	mobile(k, 4, "fd00:1::1");
}

static void add_sdf(struct kit_mobile *k, struct api_pdr *pdr, uint16_t local, uint16_t remote)
{
	struct api_sdf *f = kit_sdf(k, pdr);

	f->flags = API_SDF_PROTOCOL;
	f->protocol = 17;
	f->local_port[0] = f->local_port[1] = local;
	f->remote_port[0] = f->remote_port[1] = remote;
}

// Two flows each way: of the frames' ports, and of others.
static void session_flow(struct kit_mobile *k)
{
	mobile(k, 7, "10.1.0.1");
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x107, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(k, API_FROM_CORE, "core", 2);
	add_sdf(k, &k->pdr[0], 4000, 5000);
	add_sdf(k, &k->pdr[1], 5000, 4000);
	add_sdf(k, &k->pdr[2], 4000, 5001);
	add_sdf(k, &k->pdr[3], 5001, 4000);
}

static void session_sgw(struct kit_mobile *k)
{
	kit_mobile(k, 5, NULL, NULL);
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.6.0.1", 0x105, 1);
	kit_far_gtpu(k, 1, API_FROM_CORE, "loose", 0x205);
}

static void session_nat_of(struct kit_mobile *k, uint32_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "10.46.0.%u", n);
	kit_mobile(k, 0x10 + n, text, NULL);
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.1.0.1", 0x110 + n, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(k, API_FROM_CORE, "nat", 2);
	kit_far_ip(k, 1, API_FROM_CORE, "nat");
	kit_far_gtpu(k, 2, API_FROM_ACCESS, "gnb", 0x210 + n);
}

static void session_nat(struct kit_mobile *k)
{
	session_nat_of(k, 1);
}

static void agf(struct kit_mobile *k, uint16_t home, uint16_t pppoe, const char *ue6)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, pppoe ? (uint8_t)home : 1};
	char ue4[32];

	snprintf(ue4, sizeof(ue4), "100.64.0.%u", home + 1);
	struct kit_session s = kit_session("homes", mac, 100, home, pppoe, ue4, ue6, "wire", 0x300 + home);
	memset(k, 0, sizeof(*k));
	k->s = s.s;
	memcpy(k->pdr, s.pdr, sizeof(s.pdr));
	memcpy(k->far, s.far, sizeof(s.far));
	memcpy(k->qer, s.qer, sizeof(s.qer));
}

static void session_agf(struct kit_mobile *k)
{
	agf(k, 1, 0, "2001:db8:7:1::/64");
}

static void session_pppoe(struct kit_mobile *k)
{
	agf(k, 5, 5, NULL);
}

static void session_bng(struct kit_mobile *k)
{
	kit_mobile(k, 0x509, "10.47.0.1", NULL);
	k->s.encap = API_ENCAP_QINQ;
	k->s.outer_tpid = 0x88a8;
	k->s.s_tag = 100;
	k->s.c_tag = 9;
	memcpy(k->s.mac, (const uint8_t[]){2, 0, 0, 0, 0, 9}, 6);
	snprintf(k->s.port, API_NAME, "homes");
	kit_pdr_ue(k, API_FROM_ACCESS, NULL, 1)->match |= API_PDR_ENDPOINT;
	kit_pdr_ue(k, API_FROM_CORE, "fixed", 2)->outer_header_removal = API_REMOVAL_NOTHING;
	kit_far_ip(k, 1, API_FROM_CORE, "fixed");
	kit_far(k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
}

void drops_put_session(const struct way *w, void (*alter)(struct kit_mobile *k))
{
	static struct kit_mobile k;

	w->make_session(&k);
	if (alter != NULL)
		alter(&k);
	put(w->session, &k);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

static void frame_up(struct frame *f)
{
	gpdu(f, &cases[0], 4, 9, 1, PAYLOAD);
}

static void frame_vlan(struct frame *f)
{
	gpdu(f, &cases[1], 4, 9, 1, PAYLOAD);
}

static void frame_outer6(struct frame *f)
{
	gpdu(f, &cases[4], 4, 9, 1, PAYLOAD);
}

static void frame_inner6(struct frame *f)
{
	gpdu(f, &cases[0], 6, 9, 1, PAYLOAD);
}

static void frame_flow(struct frame *f)
{
	static const struct tunnel_case flow = {"", "10.1.0.1", "10.1.0.2", 0x107, 0, 1};

	gpdu(f, &flow, 4, 9, 1, PAYLOAD);
}

static void frame_sgw(struct frame *f)
{
	static const struct tunnel_case loose = {"", "10.6.0.1", "10.6.0.2", 0x105, 0, 1};

	gpdu(f, &loose, 4, 9, 1, PAYLOAD);
}

static void frame_agf_down(struct frame *f)
{
	gpdu(f, &cases[2], 4, 9, 1, PAYLOAD);
}

static void plain(struct frame *f, const char *port, const char *from, const char *to)
{
	ip_packet(f, from, to, PAYLOAD);
	link_layer(f, port, 1);
}

static void frame_down(struct frame *f)
{
	plain(f, "internet", FAR4, "10.45.0.1");
}

static void frame_down6(struct frame *f)
{
	plain(f, "internet", FAR6, "2001:db8:1:1::77");
}

static void frame_down_flow(struct frame *f)
{
	plain(f, "internet", FAR4, "10.45.0.7");
}

static void frame_routed(struct frame *f)
{
	plain(f, "ran", FAR4, "198.18.0.9");
}

static void frame_routed6(struct frame *f)
{
	plain(f, "ran", FAR6, "2001:db8:18::9");
}

static void frame_routed_ue(struct frame *f)
{
	plain(f, "internet", FAR4, "198.18.0.9");
}

static void frame_vrf(struct frame *f)
{
	ip_packet(f, "10.21.0.2", "10.22.0.2", PAYLOAD);
	frame_ethernet(f, mac_loose, mac_router, 0x0800);
	frame_tag(f, 0x8100, 21);
}

static void nat_up(struct frame *f, uint32_t n, uint16_t port)
{
	char ue[32];

	snprintf(ue, sizeof(ue), "10.46.0.%u", n);
	frame_payload(f, PAYLOAD);
	frame_udp(f, port, 5000);
	frame_ip(f, ue, BEHIND_NAT, 17);
	tunnel(f, "10.1.0.2", "10.1.0.1", 0x110 + n, 9, API_PDU_UL);
	link_layer(f, "ran", 1);
}

static void frame_nat_up(struct frame *f)
{
	nat_up(f, 1, 4000);
}

// To the external address of the subscriber's packet, now or the last time.
static void frame_nat_down(struct frame *f)
{
	static char address[16] = "203.0.113.4";
	static uint16_t port = 1024;

	kit_clear();
	frame_nat_up(f);
	send_frame("ran", f);
	if (kit_count("internet") == 1) {
		const uint8_t *ip = kit_frame("internet", 0)->bytes + 18;

		snprintf(address, sizeof(address), "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
		port = load16(ip + 20);
	}
	kit_clear();
	frame_payload(f, PAYLOAD);
	frame_udp(f, 5000, port);
	frame_ip(f, BEHIND_NAT, address, 17);
	link_layer(f, "internet", 1);
	frame_tag(f, 0x8100, 8);
}

static void frame_bng_down(struct frame *f)
{
	plain(f, "internet", FAR4, "10.47.0.1");
	frame_tag(f, 0x8100, 9);
}

static void from_home(struct frame *f, const char *ue, uint8_t home, uint16_t pppoe)
{
	const uint8_t mac[6] = {2, 0, 0, 0, 0, home};

	ip_packet(f, ue, FAR4, PAYLOAD);
	if (pppoe != 0)
		frame_pppoe(f, pppoe, 0x21);
	frame_ethernet(f, mac_homes, mac, pppoe != 0 ? 0x8864 : 0x0800);
	frame_tag(f, 0x8100, home);
	frame_tag(f, 0x88a8, 100);
}

static void frame_agf_up(struct frame *f)
{
	from_home(f, "100.64.0.2", 1, 0);
}

static void frame_pppoe_up(struct frame *f)
{
	from_home(f, "100.64.0.6", 5, 5);
}

static void frame_bng_up(struct frame *f)
{
	from_home(f, "10.47.0.1", 9, 0);
}

struct way drops_ways[WAYS] = {
	[UP] = {"UPF uplink", "ran", "internet", "n3", "n6", "access", "s1", session_up, .make_frame = frame_up},
	[UP_VLAN] = {"uplink by VLAN", "ran", "internet", "n3.7", "n6", "access7", "s2", session_vlan,
		.make_frame = frame_vlan},
	[UP_OUTER6] = {"uplink over IPv6", "ran", "internet", "n3", "n6", "access", "s4", session_outer6,
		.make_frame = frame_outer6},
	[UP_INNER6] = {"uplink of IPv6", "ran", "internet", "n3", "n6", "access", "s1", session_up,
		.make_frame = frame_inner6},
	[UP_FLOW] = {"uplink with filters", "ran", "internet", "n3", "n6", "access", "s7", session_flow,
		.make_frame = frame_flow},
	[SGW] = {"SGW-U", "loose", "loose", "n3b", "n3b", "loose", "s5", session_sgw, .make_frame = frame_sgw},
	[DOWN] = {"UPF downlink", "internet", "ran", "n6", "n3", "core", "s1", session_up, .make_frame = frame_down},
	[DOWN6] = {"downlink of IPv6", "internet", "ran", "n6", "n3", "core", "s1", session_up,
		.make_frame = frame_down6},
	[DOWN_FLOW] = {"downlink with filters", "internet", "ran", "n6", "n3", "core", "s7", session_flow,
		.make_frame = frame_down_flow},
	[ROUTED] = {"routed", "ran", "internet", "n3", "n6", .make_frame = frame_routed},
	[ROUTED6] = {"routed, IPv6", "ran", "internet", "n3", "n6", .make_frame = frame_routed6},
	[ROUTED_UE] = {"routed beside UEs", "internet", "internet", "n6", "n6", .make_frame = frame_routed_ue},
	[ROUTED_VRF] = {"routed in a VRF", "loose", "loose", "f1", "f2", .make_frame = frame_vrf},
	[NAT_UP] = {"NAT44 uplink", "ran", "internet", "n3", "n6.8", "access", "n1", session_nat,
		.make_frame = frame_nat_up},
	[NAT_DOWN] = {"NAT44 downlink", "internet", "ran", "n6.8", "n3", "nat", "n1", session_nat,
		.make_frame = frame_nat_down},
	[AGF_DOWN] = {"AGF downlink", "ran", "homes", "n3", NULL, NULL, "home-1", session_agf,
		.make_frame = frame_agf_down},
	[BNG_DOWN] = {"BNG downlink", "internet", "homes", "n6.9", NULL, "fixed", "bng", session_bng,
		.make_frame = frame_bng_down},
	[AGF_UP] = {"AGF uplink", "homes", "ran", NULL, "n3", NULL, "home-1", session_agf, .make_frame = frame_agf_up},
	[PPPOE_UP] = {"AGF uplink, PPPoE", "homes", "ran", NULL, "n3", NULL, "home-5", session_pppoe,
		.make_frame = frame_pppoe_up},
	[BNG_UP] = {"BNG uplink", "homes", "internet", NULL, "n6", NULL, "bng", session_bng,
		.make_frame = frame_bng_up},
};

// ---- the fixture ----------------------------------------------------------------------------------------------------

static uint16_t header_behind(const uint8_t *ip)
{
	return ip[0] >> 4 == 6 ? 40 : 20;
}

static void find_places(struct way *w)
{
	static struct frame f;

	w->make_frame(&f);
	uint16_t l3 = 14;
	while (load16(f.at + l3 - 2) == 0x8100 || load16(f.at + l3 - 2) == 0x88a8)
		l3 += 4;
	l3 += load16(f.at + l3 - 2) == 0x8864 ? 8 : 0;
	uint16_t l4 = l3 + header_behind(f.at + l3), user = l3;
	if (load16(f.at + l4 + 2) == 2152)
		user = l4 + 8 + 16;
	const uint16_t at[PLACES] = {0, l3, l4, l4 + 8, user, user + header_behind(f.at + user)};
	memcpy(w->at, at, sizeof(at));
}

static void put_vrf(const char *name, uint16_t vlan, const char *address)
{
	struct api_interface i = {
		.port = "loose", .outer_vlan = vlan, .address = {kit_address(address)}, .count = 1, .vrf = "far"};

	kit_put(API_INTERFACE, name, &i, sizeof(i));
}

static void put_nat(uint16_t ports, uint32_t mappings, uint32_t pairs, uint32_t of_subscriber)
{
	struct api_nat n = kit_nat("10.46.0.0/16", "203.0.113.4");

	n.port[1] = (uint16_t)(n.port[0] + ports - 1);
	n.block = 16;
	n.blocks = 1;
	n.mappings = mappings;
	n.pairs = pairs;
	n.pairs_of_subscriber = of_subscriber;
	n.pair_protocols = pairs != 0 ? API_NAT_GRE | API_NAT_ESP | API_NAT_6IN4 : 0;
	n.pair_timeout = pairs != 0 ? 300 : 0;
	assert_int_equal(kit_change(API_NAT, "nat", &n, sizeof(n)), 0);
}

void drops_put_nat(uint16_t ports, uint32_t mappings)
{
	put_nat(ports, mappings, 0, 0);
}

void drops_put_pairs(uint32_t most, uint32_t of_subscriber, uint32_t subscriber, uint8_t to)
{
	static struct frame f;

	put_nat(16 * 16, 0, most, of_subscriber);
	if (subscriber == 0)
		return;
	nat_up(&f, subscriber, 4000);
	uint8_t *ip = f.at + drops_ways[NAT_UP].at[USER];
	ip[9] = 41;
	ip[19] = to;
	frame_ip4_sum(&(struct frame){.at = ip});
	send_frame("ran", &f);
	assert_int_equal(kit_count("internet"), 1);
	kit_clear();
}

int drops_exhaust_nat(uint32_t subscriber)
{
	static struct frame f;
	uint32_t left = 0;

	for (uint16_t i = 0; i < 16; i++) {
		nat_up(&f, subscriber, (uint16_t)(7000 + i));
		send_frame("ran", &f);
		left += kit_count("internet");
	}
	kit_clear();
	return left != 0;
}

static void put_interfaces(void)
{
	struct api_route r = {.prefix = kit_address("203.0.113.128/25"), .via = kit_address("192.0.8.2")};

	put_interface("n6.8", "internet", 8, "192.0.8.1/24", NULL);
	put_interface("n6.9", "internet", 9, "192.0.9.1/24", NULL);
	put_vrf("f1", 21, "10.21.0.1/24");
	put_vrf("f2", 22, "10.22.0.1/24");
	kit_neighbour("n6.8", "192.0.8.2", mac_router);
	kit_neighbour("n3", "10.3.0.2", mac_gnb);
	kit_neighbour("n3.7", "10.2.0.2", mac_gnb);
	kit_neighbour("f2", "10.22.0.2", mac_router);
	kit_put(API_ROUTE, "203.0.113.128/25", &r, sizeof(r));
	kit_instance("nat", "n6.8", NULL, API_LOOKUP_DESTINATION, "10.46.0.0/16");
	kit_instance("fixed", "n6.9", NULL, API_LOOKUP_DESTINATION, "10.47.0.0/16");
	commit();
}

void drops_start(void)
{
	static struct kit_mobile second;
	struct api_engine e = kit_engine();
	struct api_policer none = {
		.type = API_TRTCM, .cir = 1, .cbs = 40, .pir = 1, .pbs = 40, .action = {[2] = API_COLOUR_DROP}};

	e.flags |= API_ENGINE_DROP_UE_GTPU;
	e.icmp_error_rate = e.error_indication_rate = e.echo_rate = e.punt_rate = 1000000;
	start_fixture(&e);
	kit_begin();
	put_interfaces();
	assert_int_equal(kit_change(API_POLICER, "none", &none, sizeof(none)), 0);
	drops_put_nat(16 * 16, 0);
	session_nat_of(&second, 2);
	put("n2", &second);
	for (uint32_t i = 0; i < WAYS; i++)
		if (drops_ways[i].session != NULL)
			drops_put_session(&drops_ways[i], NULL);
	kit_run();
	for (uint32_t i = 0; i < WAYS; i++)
		find_places(&drops_ways[i]);
	kit_clear();
}
