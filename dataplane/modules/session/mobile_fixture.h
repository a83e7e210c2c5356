// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of mobile sessions: a UPF with three interfaces, and packets through it.
//
//   `ran`       n3: 10.1.0.1/24, fd00:1::1/64; gNB 10.1.0.2, fd00:1::2; instance access.
//   `peers`     n9: 10.9.0.1/24, fd00:9::1/64; UPF or PGW-U 10.9.0.2, fd00:9::2; instance peers.
//   `internet`  n6: 192.0.2.1/24, 2001:db8:6::1/64; router .2; core looks UEs up, pools 10.45.0.0/16, 2001:db8:1::/48
#ifndef SESSION_MOBILE_FIXTURE_H
#define SESSION_MOBILE_FIXTURE_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "testkit/frame.h"
#include "testkit/mobile.h"
#include "testkit/reasons.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UE4 "10.45.0.2"
#define UE6 "2001:db8:1:2::77"
#define UE6_PREFIX "2001:db8:1:2::/64"
#define FAR4 "198.51.100.9"
#define FAR6 "2001:db8:ffff::9"

static const uint8_t mac_gnb[6] = {2, 0, 0, 0, 0xee, 1}, mac_peer[6] = {2, 0, 0, 0, 0xee, 2},
		     mac_router[6] = {2, 0, 0, 0, 0xee, 3};
static const uint8_t mac_ours[3][6] = {{2, 0, 0, 0, 0x99, 0}, {2, 0, 0, 0, 0x99, 1}, {2, 0, 0, 0, 0x99, 2}};
static const char *const fixture_port[3] = {"ran", "peers", "internet"};

static inline void commit(void)
{
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
}

static inline void fixture_instances(uint32_t core_flags, uint32_t access_flags)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_instance access = kit_instance_body("n3", "10.1.0.1", API_LOOKUP_NONE, NULL);
	struct api_instance peers = kit_instance_body("n9", "10.9.0.1", API_LOOKUP_NONE, NULL);

	peers.guard[peers.guarded++] = kit_address("10.40.0.1"); // N4, which is the host's
	peers.guard[peers.guarded++] = kit_address("2001:db8:40::1");

	core.pool[core.pools++] = kit_address("2001:db8:1::/48");
	core.flags = core_flags;
	access.endpoint[access.endpoints++] = kit_address("fd00:1::1");
	access.flags = access_flags;
	peers.endpoint[peers.endpoints++] = kit_address("fd00:9::1");
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_INSTANCE, "access", &access, sizeof(access));
	kit_put(API_INSTANCE, "peers", &peers, sizeof(peers));
}

static inline void fixture_start(const struct api_engine *engine)
{
	kit_start(engine);
	kit_begin();
	for (int i = 0; i < 3; i++)
		kit_port(fixture_port[i], API_ROLE_CORE);
	kit_interface("n3", "ran", "10.1.0.1/24", "fd00:1::1/64");
	kit_interface("n9", "peers", "10.9.0.1/24", "fd00:9::1/64");
	kit_interface("n6", "internet", "192.0.2.1/24", "2001:db8:6::1/64");
	kit_neighbour("n3", "10.1.0.2", mac_gnb);
	kit_neighbour("n3", "fd00:1::2", mac_gnb);
	kit_neighbour("n9", "10.9.0.2", mac_peer);
	kit_neighbour("n9", "fd00:9::2", mac_peer);
	kit_neighbour("n6", "192.0.2.2", mac_router);
	kit_neighbour("n6", "2001:db8:6::2", mac_router);
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};
	kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
	r = (struct api_route){.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
	kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	fixture_instances(0, 0);
	kit_path("gnb", "10.1.0.1", "10.1.0.2");
	kit_path("gnb6", "fd00:1::1", "fd00:1::2");
	kit_path("peer", "10.9.0.1", "10.9.0.2");
	kit_path("peer6", "fd00:9::1", "fd00:9::2");
	kit_path("self9", "10.1.0.1", "10.9.0.1"); // from our access side to our own peers' side
	kit_path("self3", "10.9.0.1", "10.1.0.1");
	commit();
	kit_run();
	kit_clear();
}

static inline void ip_packet(struct frame *f, const char *from, const char *to, uint32_t payload)
{
	frame_payload(f, payload);
	frame_udp(f, 4000, 5000);
	frame_ip(f, from, to, 17);
}

static inline int port_number(const char *port)
{
	for (int i = 0; i < 3; i++)
		if (strcmp(port, fixture_port[i]) == 0)
			return i;
	return -1;
}

// The IP packet at f->at enters or leaves by a port.
static inline void link_layer(struct frame *f, const char *port, int in)
{
	static const uint8_t *const other[3] = {mac_gnb, mac_peer, mac_router};
	int i = port_number(port);
	uint16_t type = f->at[0] >> 4 == 6 ? 0x86dd : 0x0800;

	frame_ethernet(f, in ? mac_ours[i] : other[i], in ? other[i] : mac_ours[i], type);
}

// G-PDU around the IP packet at f->at. qfi 0xff: without container; type: enum api_pdu_type.
static inline void tunnel(struct frame *f, const char *from, const char *to, uint32_t teid, uint8_t qfi, uint8_t type)
{
	frame_gtpu(f, teid, qfi);
	if (qfi != 0xff && type == API_PDU_UL)
		f->at[13] = 0x10;
	frame_udp(f, 2152, 2152);
	frame_ip(f, from, to, 17);
}

// One hop further: ip-forward's change to the packet at f->at.
static inline void hop(struct frame *f)
{
	if (f->at[0] >> 4 == 6) {
		f->at[7]--;
		return;
	}
	f->at[8]--;
	frame_ip4_sum(f);
}

static inline uint32_t all_out(void)
{
	return kit_count("ran") + kit_count("peers") + kit_count("internet");
}

static inline void send_frame(const char *port, const struct frame *f)
{
	kit_clear();
	assert_int_equal(kit_send(port, f->at, f->length), 0);
	kit_run();
}

// Copies from `want` the outer fields that a sender may choose, after a check of the checksum.
static inline void settle(uint8_t *got, const struct frame *want)
{
	uint8_t *ip = got + 14;
	int six = load16(got + 12) == 0x86dd;
	uint32_t header = six ? 40 : 20;

	if (want->length < 14 + header + 8 || load16(want->at + 14 + header + 2) != 2152)
		return;
	if (six) {
		uint32_t n = want->length - 54;

		assert_int_equal(
			checksum_finish(checksum_add(checksum_pseudo(6, ip + 8, ip + 24, 17, n), ip + 40, n)), 0);
		memcpy(ip + 46, want->at + 60, 2);
		return;
	}
	assert_true(ip4_checksum_ok(ip));
	memcpy(ip + 4, want->at + 18, 2);
	memcpy(ip + 10, want->at + 24, 2);
}

static inline int same_frame(const char *port, uint32_t i, const struct frame *want)
{
	static uint8_t got[FRAME_ROOM + FRAME_MAX];
	const struct kit_frame *k = kit_frame(port, i);

	if (k->length != want->length) {
		fprintf(stderr, "a frame of %u bytes left by %s, expected %u\n", k->length, port, want->length);
		return 0;
	}
	memcpy(got, k->bytes, k->length);
	settle(got, want);
	for (uint32_t b = 0; b < k->length; b++)
		if (got[b] != want->at[b]) {
			fprintf(stderr, "left by %s with 0x%02x at %u, expected 0x%02x\n", port, got[b], b,
				want->at[b]);
			return 0;
		}
	return 1;
}

static inline void expect(const char *from, const struct frame *f, const char *port, const struct frame *want)
{
	send_frame(from, f);
	if (all_out() != 1)
		kit_print();
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_count(port), 1);
	assert_true(same_frame(port, 0, want));
	assert_true(kit_balance());
}

static inline void expect_drop(const char *from, const struct frame *f, const char *reason)
{
	uint64_t dropped = kit_totals().dropped;
	struct kit_reasons before = kit_reasons();

	send_frame(from, f);
	kit_only_rose(&before, reason, 1);
	assert_int_equal(kit_totals().dropped - dropped, 1);
	assert_int_equal(all_out(), 0);
	assert_true(kit_balance());
}

// A UPF's session: TEID 0x100 + n from the gNB, 0x200 + n to it; UE 10.45.0.n and 2001:db8:1:n::/64.
static inline struct kit_mobile *upf_session(uint32_t n)
{
	static struct kit_mobile k;
	char ue4[32], ue6[64];

	snprintf(ue4, sizeof(ue4), "10.45.%u.%u", n >> 8, n & 255);
	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::/64", n);
	kit_mobile(&k, n, ue4, ue6);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x100 + n, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200 + n);
	return &k;
}

static inline void put(const char *name, const struct kit_mobile *k)
{
	kit_begin();
	kit_put_mobile(name, k);
	commit();
}

static inline int refused(const char *name, const struct kit_mobile *k)
{
	kit_begin();
	kit_put_mobile(name, k);
	return kit_commit();
}

static inline void gone(const char *name)
{
	kit_begin();
	kit_delete(API_SESSION, name);
	commit();
}

static inline struct frame *uplink_of(struct frame *f, const char *ue, const char *far, uint32_t teid, uint8_t qfi)
{
	ip_packet(f, ue, far, 80);
	tunnel(f, "10.1.0.2", "10.1.0.1", teid, qfi, API_PDU_UL);
	link_layer(f, "ran", 1);
	return f;
}

static inline struct frame *routed_out(struct frame *f, const char *ue, const char *far)
{
	ip_packet(f, ue, far, 80);
	hop(f);
	link_layer(f, "internet", 0);
	return f;
}

static inline struct frame *downlink_of(struct frame *f, const char *far, const char *ue)
{
	ip_packet(f, far, ue, 80);
	link_layer(f, "internet", 1);
	return f;
}

static inline struct frame *tunnelled_out(struct frame *f, const char *far, const char *ue, uint32_t teid, uint8_t qfi)
{
	ip_packet(f, far, ue, 80);
	tunnel(f, "10.1.0.1", "10.1.0.2", teid, qfi, API_PDU_DL);
	link_layer(f, "ran", 0);
	return f;
}

#endif
