// SPDX-License-Identifier: Apache-2.0
// Subscribers behind no, one and two tags, with and without PPPoE, with one family or both, on one port.
#include "access/agf_test.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 5, 5}; // the same for all: they differ in port, tags and PPPoE id
static const uint16_t tags[][2] = {{0, 0}, {7, 0}, {7, 8}};

#define SUBSCRIBERS 6

static const char *name_of(uint32_t i)
{
	static const char *const name[SUBSCRIBERS] = {"tags-0", "tags-1", "tags-2", "tags-3", "tags-4", "tags-5"};

	return name[i];
}

static const char *address(uint32_t i, int family)
{
	static const char *const address4[SUBSCRIBERS] = {
		"100.64.9.1", "100.64.9.2", NULL, "100.64.9.4", NULL, "100.64.9.6"};
	static const char *const address6[SUBSCRIBERS] = {
		"2001:db8:9:1::7", NULL, "2001:db8:9:3::7", NULL, "2001:db8:9:5::7", "2001:db8:9:6::7"};

	return family == 4 ? address4[i] : address6[i];
}

static uint16_t pppoe_of(uint32_t i)
{
	return i >= SUBSCRIBERS / 2 ? 9 : 0;
}

static struct kit_session subscriber(uint32_t i)
{
	const uint16_t *t = tags[i % RTE_DIM(tags)];
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "2001:db8:9:%u::/64", i + 1);
	struct kit_session k = kit_session("access", mac, t[0], t[1], pppoe_of(i), address(i, 4),
		address(i, 6) != NULL ? prefix : NULL, "upf4", 0x900 + i);
	k.s.outer_tpid = t[0] != 0 ? 0x88a8 : 0;
	return k;
}

static void access_header(struct frame *f, uint32_t i, int family, int uplink)
{
	const uint16_t *t = tags[i % RTE_DIM(tags)];
	uint16_t type = family == 4 ? 0x0800 : 0x86dd;

	if (pppoe_of(i) != 0) {
		frame_pppoe(f, pppoe_of(i), family == 4 ? 0x21 : 0x57);
		type = 0x8864;
	}
	frame_ethernet(f, uplink ? gateway_mac[0] : mac, uplink ? mac : gateway_mac[0], type);
	if (t[1] != 0)
		frame_tag(f, 0x8100, t[1]);
	if (t[0] != 0)
		frame_tag(f, 0x88a8, t[0]);
}

static void tunnel_header(struct frame *f, uint32_t i, int uplink)
{
	frame_gtpu(f, 0x900 + i + (uplink ? 0x10000 : 0), 9);
	if (uplink)
		f->at[13] = 0x10;
	gateway_outer(f, 4, uplink);
}

static void pass(uint32_t i, int family)
{
	const char *ue = address(i, family), *far = family == 4 ? FAR4 : FAR6;
	static struct frame in, out;

	inner(&in, ue, far, 60);
	access_header(&in, i, family, 1);
	inner(&out, ue, far, 60);
	tunnel_header(&out, i, 1);
	expect("access", &in, "core", &out);
	inner(&in, far, ue, 60);
	tunnel_header(&in, i, 0);
	inner(&out, far, ue, 60);
	access_header(&out, i, family, 0);
	expect("core", &in, "access", &out);
}

static void side_by_side(void **state)
{
	static struct frame f;

	for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
		struct kit_session k = subscriber(i);
		put(name_of(i), &k);
	}
	for (int again = 0; again < 3; again++) // by the full nodes, then by the fast path where it takes them
		for (uint32_t i = 0; i < SUBSCRIBERS; i++)
			for (int family = 4; family <= 6; family += 2)
				if (address(i, family) != NULL)
					pass(i, family);
	// Another subscriber's addresses, or a family that was not assigned, are refused.
	for (uint32_t i = 0; i < SUBSCRIBERS; i++)
		for (int family = 4; family <= 6; family += 2) {
			uint32_t other = address(5, family) != NULL && i != 5 ? 5 : 0;

			inner(&f, address(other, family), family == 4 ? FAR4 : FAR6, 60);
			access_header(&f, i, family, 1);
			expect_drop("access", &f, "source-spoofed");
		}
	for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
		kit_begin();
		kit_delete(API_SESSION, name_of(i));
		commit();
		inner(&f, FAR4, FAR4, 60);
		access_header(&f, i, 4, 1);
		expect_drop("access", &f, "subscriber-unknown");
	}
}

int main(void)
{
	const struct CMUnitTest list[] = {cmocka_unit_test_teardown(side_by_side, restore)};

	return cmocka_run_group_tests(list, setup, NULL);
}
