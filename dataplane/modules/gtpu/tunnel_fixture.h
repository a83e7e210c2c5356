// SPDX-License-Identifier: Apache-2.0
// For tests of tunnels: mobile_fixture.h, and tunnels of wireline sessions and on VLANs of its port "ran".
#ifndef GTPU_TUNNEL_FIXTURE_H
#define GTPU_TUNNEL_FIXTURE_H

#include "core/engine.h"
#include "core/object.h"
#include "session/mobile_fixture.h"

struct tunnel_case {
	const char *name, *local, *peer;
	uint32_t teid;
	uint16_t vlan;
	uint8_t mobile; // uplink of a UE, else downlink to a home
};

static const struct tunnel_case cases[] = {
	{"mobile", "10.1.0.1", "10.1.0.2", 0x101, 0, 1},
	{"mobile, VLAN", "10.2.0.1", "10.2.0.2", 0x102, 7, 1},
	{"wireline", "10.3.0.1", "10.3.0.2", 0x301, 0, 0},
	{"wireline, VLAN", "10.4.0.1", "10.4.0.2", 0x302, 7, 0},
	{"mobile over IPv6", "fd00:1::1", "fd00:1::2", 0x104, 0, 1},
	{"mobile over IPv6, VLAN", "fd00:2::1", "fd00:2::2", 0x106, 7, 1},
	{"wireline over IPv6", "fd00:3::1", "fd00:3::2", 0x303, 0, 0},
	{"wireline over IPv6, VLAN", "fd00:4::1", "fd00:4::2", 0x304, 7, 0},
};

// An existing interface, with these flags.
static inline void set_interface_flags(const char *name, uint32_t flags)
{
	uint32_t length;
	struct api_interface i = *(const struct api_interface *)object_find(API_INTERFACE, name, &length);

	i.flags = flags;
	if (kit_change(API_INTERFACE, name, &i, sizeof(i)) != 0)
		fail_msg("interface %s: %s", name, kit_error());
}

static inline void put_interface(const char *name, const char *port, uint16_t vlan, const char *a, const char *b)
{
	struct api_interface i = {.outer_vlan = vlan};

	snprintf(i.port, sizeof(i.port), "%s", port);
	i.address[i.count++] = kit_address(a);
	if (b != NULL)
		i.address[i.count++] = kit_address(b);
	for (uint32_t k = 4; k < RTE_DIM(cases); k++)
		if (strcmp(name, cases[k].vlan ? "n3.7" : "n3") == 0) {
			i.address[i.count] = kit_address(cases[k].local);
			i.address[i.count++].prefix = 64;
		}
	kit_put(API_INTERFACE, name, &i, sizeof(i));
}

// Also accepts frames for other MAC addresses, and long ones. Its own address is 02:00:00:00:99:04.
static inline void put_loose_port(void)
{
	struct api_port p = {.role = API_ROLE_CORE, .mtu = 9000, .promiscuous = 1};

	snprintf(p.driver, sizeof(p.driver), "inject");
	kit_put(API_PORT, "loose", &p, sizeof(p));
}

static inline void put_homes(void)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct kit_session one = kit_session("homes", mac, 100, 1, 0, "100.64.0.2", "2001:db8:7:1::/64", "wire", 0x301);
	struct kit_session two =
		kit_session("homes", mac, 100, 2, 0, "100.64.0.3", "2001:db8:7:2::/64", "wire7", 0x302);

	kit_put_session("home-1", &one);
	kit_put_session("home-2", &two);
	struct kit_session three =
		kit_session("homes", mac, 100, 3, 0, "100.64.0.4", "2001:db8:7:3::/64", "wire-six", 0x303);
	struct kit_session four =
		kit_session("homes", mac, 100, 4, 0, "100.64.0.5", "2001:db8:7:4::/64", "wire7-six", 0x304);
	kit_put_session("home-3", &three);
	kit_put_session("home-4", &four);
}

static inline void put_ues(void)
{
	struct kit_mobile *k = upf_session(1);

	kit_put_mobile("s1", k);
	k = upf_session(2);
	k->pdr[0].local = kit_address("10.2.0.1");
	kit_put_mobile("s2", k);
	k = upf_session(3);
	k->pdr[0].local = kit_address("10.6.0.1");
	kit_put_mobile("s3", k);
	k = upf_session(4);
	k->pdr[0].local = kit_address("fd00:1::1");
	kit_put_mobile("s4", k);
	k = upf_session(6);
	k->pdr[0].local = kit_address("fd00:2::1");
	kit_put_mobile("s6", k);
	kit_mobile(k, 5, NULL, NULL); // from tunnel to tunnel
	kit_pdr_fteid(k, API_FROM_ACCESS, "10.6.0.1", 0x105, 1);
	kit_far_gtpu(k, 1, API_FROM_CORE, "loose", 0x205);
	kit_put_mobile("s5", k);
}

static inline void start_fixture(const struct api_engine *engine)
{
	fixture_start(engine);
	kit_begin();
	kit_port("homes", API_ROLE_ACCESS);
	put_loose_port();
	commit();
	kit_begin();
	put_interface("n3", "ran", 0, "10.1.0.1/24", "10.3.0.1/24");
	put_interface("n3.7", "ran", 7, "10.2.0.1/24", "10.4.0.1/24");
	put_interface("n3.6", "ran", 6, "10.5.0.1/24", NULL); // VLAN 7 but for one bit
	put_interface("n3b", "loose", 0, "10.6.0.1/24", NULL);
	kit_interface("homes", "homes", "100.64.0.1/16", "2001:db8:7::1/48");
	struct api_instance access7 = kit_instance_body("n3.7", "10.2.0.1", API_LOOKUP_NONE, NULL);
	access7.endpoint[access7.endpoints++] = kit_address("fd00:2::1");
	kit_put(API_INSTANCE, "access7", &access7, sizeof(access7));
	kit_instance("loose", "n3b", "10.6.0.1", API_LOOKUP_NONE, NULL);
	kit_path("wire", "10.3.0.1", "10.3.0.2");
	kit_path("wire7", "10.4.0.1", "10.4.0.2");
	kit_path("wire-six", "fd00:3::1", "fd00:3::2");
	kit_path("wire7-six", "fd00:4::1", "fd00:4::2");
	kit_path("loose", "10.6.0.1", "10.6.0.2");
	kit_neighbour("n3b", "10.6.0.2", mac_peer);
	commit();
	kit_begin();
	put_homes();
	put_ues();
	commit();
	kit_run();
	kit_clear();
}

#define NO_QFI 0xff

// A G-PDU of the case with `payload` bytes of user data. `own` 0: the inner packet is of an address that
// is no UE's, and is dropped.
static inline struct frame *gpdu(
	struct frame *f, const struct tunnel_case *c, int family, uint8_t qfi, int own, uint32_t payload)
{
	uint32_t n = c->teid & 0xff;
	char ue[64];

	if (family == 4)
		snprintf(ue, sizeof(ue), c->mobile ? "10.45.0.%u" : "100.64.0.%u", own ? n + (c->mobile ? 0 : 1) : 99);
	else
		snprintf(ue, sizeof(ue), c->mobile ? "2001:db8:1:%x::77" : "2001:db8:7:%x::77", own ? n : 0x99);
	const char *far = family == 4 ? FAR4 : FAR6;
	ip_packet(f, c->mobile ? ue : far, c->mobile ? far : ue, payload);
	tunnel(f, c->peer, c->local, c->teid, qfi, c->mobile ? API_PDU_UL : API_PDU_DL);
	frame_ethernet(f, mac_ours[0], mac_gnb, f->at[0] >> 4 == 6 ? 0x86dd : 0x0800);
	if (c->vlan != 0)
		frame_tag(f, 0x8100, c->vlan);
	return f;
}

// An IP packet that core-input does not match, and that ip-input drops.
static inline struct frame *stray(struct frame *f)
{
	ip_packet(f, "198.51.100.1", "10.1.0.1", 40);
	f->at[10] ^= 0x55;
	frame_ethernet(f, mac_ours[0], mac_gnb, 0x0800);
	return f;
}

#define STRAYS 8
static inline void send_strays(void)
{
	static struct frame f;

	stray(&f);
	for (int i = 0; i < STRAYS; i++)
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
}

// Releases packets that wait for neighbours or fragments, and refills rate limits.
static inline void settle_fixture(void)
{
	for (int i = 0; i < 12; i++)
		kit_advance(1000000);
	kit_clear();
}

#endif
