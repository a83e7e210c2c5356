// SPDX-License-Identifier: Apache-2.0
// An access gateway for tests.
#include "testkit/gateway.h"
#include "wire/bytes.h"
#include "wire/checksum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const uint8_t gateway_upf[6] = {2, 0, 0, 0, 0xff, 1}, gateway_router[6] = {2, 0, 0, 0, 0xff, 2};
const uint8_t gateway_mac[3][6] = {{2, 0, 0, 0, 0x99, 0}, {2, 0, 0, 0, 0x99, 1}, {2, 0, 0, 0, 0x99, 2}};

static int is_pppoe(uint32_t home)
{
	return home % 2 == 0;
}

const char *gateway_home_name(uint32_t home)
{
	static char name[16];

	snprintf(name, sizeof(name), "home-%u", home);
	return name;
}

const uint8_t *gateway_home_mac(uint32_t home)
{
	static uint8_t mac[6] = {2};

	mac[4] = (uint8_t)(home >> 8);
	mac[5] = (uint8_t)home;
	return mac;
}

const char *gateway_ue(uint32_t home, int family)
{
	static char text[4][64];
	static unsigned next;
	char *t = text[next++ % 4];

	if (family == 4)
		snprintf(t, 64, "100.64.%u.%u", (home + 1) >> 8, (home + 1) & 255);
	else
		snprintf(t, 64, "2001:db8:1:%x::77", home);
	return t;
}

struct kit_session gateway_home(uint32_t home)
{
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "2001:db8:1:%x::/64", home);
	return kit_session("access", gateway_home_mac(home), 100, (uint16_t)home, is_pppoe(home) ? (uint16_t)home : 0,
		gateway_ue(home, 4), prefix, is_pppoe(home) ? "upf6" : "upf4", 0x200 + home);
}

static void commit(void)
{
	if (kit_commit() == 0)
		return;
	fprintf(stderr, "gateway: %s\n", kit_error());
	exit(99);
}

void gateway_homes(uint32_t first, uint32_t last)
{
	kit_begin();
	for (uint32_t home = first; home <= last; home++) {
		struct kit_session k = gateway_home(home);

		kit_put_session(gateway_home_name(home), &k);
	}
	commit();
}

void gateway_start(const struct api_engine *engine)
{
	kit_start(engine);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_port("core", API_ROLE_CORE);
	kit_port("internet", API_ROLE_CORE);
	kit_interface("homes", "access", "100.64.0.1/16", "2001:db8:1::1/48");
	kit_interface("n3", "core", "10.0.0.1/24", "fd00::1/64");
	kit_interface("n6", "internet", "192.0.2.1/24", "2001:db8:6::1/64");
	kit_neighbour("n3", "10.0.0.2", gateway_upf);
	kit_neighbour("n3", "fd00::2", gateway_upf);
	kit_neighbour("n6", "192.0.2.2", gateway_router);
	kit_neighbour("n6", "2001:db8:6::2", gateway_router);
	kit_path("upf4", "10.0.0.1", "10.0.0.2");
	kit_path("upf6", "fd00::1", "fd00::2");
	commit();
	kit_run(); // announcements of our addresses
	kit_clear();
}

static void access_header(struct frame *f, uint32_t home, const uint8_t *to, const uint8_t *from)
{
	uint16_t type = f->at[0] >> 4 == 6 ? 0x86dd : 0x0800;

	if (is_pppoe(home)) {
		frame_pppoe(f, (uint16_t)home, type == 0x0800 ? 0x21 : 0x57);
		type = 0x8864;
	}
	frame_ethernet(f, to, from, type);
	frame_tag(f, 0x8100, (uint16_t)home);
	frame_tag(f, 0x88a8, 100);
}

void gateway_from_home(struct frame *f, uint32_t home)
{
	access_header(f, home, gateway_mac[0], gateway_home_mac(home));
}

void gateway_to_home(struct frame *f, uint32_t home)
{
	access_header(f, home, gateway_home_mac(home), gateway_mac[0]);
}

void gateway_outer(struct frame *f, int family, int from_us)
{
	const char *us = family == 4 ? "10.0.0.1" : "fd00::1", *upf = family == 4 ? "10.0.0.2" : "fd00::2";

	frame_udp(f, 2152, 2152);
	frame_ip(f, from_us ? us : upf, from_us ? upf : us, 17);
	frame_ethernet(f, from_us ? gateway_upf : gateway_mac[1], from_us ? gateway_mac[1] : gateway_upf,
		family == 4 ? 0x0800 : 0x86dd);
}

void gateway_from_upf(struct frame *f, uint32_t home)
{
	frame_gtpu(f, 0x200 + home, 9);
	gateway_outer(f, is_pppoe(home) ? 6 : 4, 0);
}

void gateway_to_upf(struct frame *f, uint32_t home)
{
	frame_gtpu(f, 0x10200 + home, 9);
	f->at[13] = 1 << 4; // PDU type: uplink
	gateway_outer(f, is_pppoe(home) ? 6 : 4, 1);
}

// Copies from `want` the outer fields that the gateway may choose, after a check.
static int settle_outer(uint8_t *got, const struct frame *want)
{
	uint8_t *ip = got + 14;

	if (load16(got + 12) == 0x0800 && want->length > 42 && load16(want->at + 36) == 2152) {
		if (!ip4_checksum_ok(ip))
			return 0;
		memcpy(ip + 4, want->at + 18, 2);
		memcpy(ip + 10, want->at + 24, 2);
	} else if (load16(got + 12) == 0x86dd && want->length > 62 && load16(want->at + 56) == 2152) {
		uint32_t n = want->length - 54;

		if (checksum_finish(checksum_add(checksum_pseudo(6, ip + 8, ip + 24, 17, n), ip + 40, n)) != 0)
			return 0;
		memcpy(ip + 46, want->at + 60, 2);
	}
	return 1;
}

int gateway_same(const char *port, uint32_t i, const struct frame *f)
{
	static uint8_t got[FRAME_ROOM + FRAME_MAX];
	const struct kit_frame *k = kit_frame(port, i);

	if (k->length != f->length || k->length > sizeof(got)) {
		fprintf(stderr, "a frame of %u bytes left by %s, expected %u\n", k->length, port, f->length);
		return 0;
	}
	memcpy(got, k->bytes, k->length);
	if (strcmp(port, "core") == 0 && !settle_outer(got, f)) {
		fprintf(stderr, "a frame left by %s with a wrong checksum\n", port);
		return 0;
	}
	for (uint32_t b = 0; b < k->length; b++)
		if (got[b] != f->at[b]) {
			fprintf(stderr, "a frame left by %s with 0x%02x at %u, expected 0x%02x\n", port, got[b], b,
				f->at[b]);
			return 0;
		}
	return 1;
}

static int one_way(uint32_t home, int family, int uplink)
{
	static struct frame in, out;
	const char *ue = gateway_ue(home, family), *far = family == 4 ? "198.51.100.9" : "2001:db8:ffff::9";

	frame_payload(&in, 90);
	frame_udp(&in, 4000, 5000);
	frame_ip(&in, uplink ? ue : far, uplink ? far : ue, 17);
	frame_payload(&out, 90);
	frame_udp(&out, 4000, 5000);
	frame_ip(&out, uplink ? ue : far, uplink ? far : ue, 17);
	uplink ? gateway_from_home(&in, home) : gateway_from_upf(&in, home);
	uplink ? gateway_to_upf(&out, home) : gateway_to_home(&out, home);
	kit_clear();
	if (kit_send(uplink ? "access" : "core", in.at, in.length) != 0)
		return 0;
	kit_run();
	if (kit_count(uplink ? "core" : "access") != 1) {
		fprintf(stderr, "home %u, IPv%d, %s: nothing left\n", home, family, uplink ? "uplink" : "downlink");
		return 0;
	}
	return gateway_same(uplink ? "core" : "access", 0, &out);
}

int gateway_undisturbed(void)
{
	int good = 1;

	for (uint32_t home = HOME_QINQ_OTHER; home <= HOME_PPPOE_OTHER; home++)
		for (int way = 0; way < 4; way++)
			good &= one_way(home, way & 1 ? 6 : 4, way >> 1);
	kit_clear();
	return good;
}
