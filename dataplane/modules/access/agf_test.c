// SPDX-License-Identifier: Apache-2.0
// The access gateway through the real graph: every encapsulation in both directions, and sessions' effects on packets.
#include "access/agf_test.h"
#include "wire/checksum.h"

struct fixture {
	int pppoe, inner, outer; // IP versions
	uint16_t tpid, priority; // of the tags
	uint32_t payload;
};

#define MATRIX_TEID 0x4321
static const uint8_t matrix_mac[6] = {2, 0, 0, 0, 1, 0x42};

static const char *ue_of(const struct fixture *x)
{
	return x->inner == 4 ? "100.64.7.7" : "2001:db8:1:777::7";
}

static const char *far_of(const struct fixture *x)
{
	return x->inner == 4 ? FAR4 : FAR6;
}

static struct kit_session matrix_session(const struct fixture *x)
{
	struct kit_session k = kit_session("access", matrix_mac, 200, 42, x->pppoe ? 7 : 0, "100.64.7.7",
		"2001:db8:1:777::/64", x->outer == 4 ? "upf4" : "upf6", MATRIX_TEID);

	k.s.outer_tpid = x->tpid;
	return k;
}

static void access_header(struct frame *f, const struct fixture *x, int uplink)
{
	uint16_t type = x->inner == 4 ? 0x0800 : 0x86dd, priority = uplink ? x->priority : 0;

	if (x->pppoe) {
		frame_pppoe(f, 7, x->inner == 4 ? 0x21 : 0x57);
		type = 0x8864;
	}
	frame_ethernet(f, uplink ? gateway_mac[0] : matrix_mac, uplink ? matrix_mac : gateway_mac[0], type);
	frame_tag(f, 0x8100, 42 | priority);
	frame_tag(f, x->tpid, 200 | priority);
}

static void tunnel_header(struct frame *f, const struct fixture *x, int uplink)
{
	frame_gtpu(f, MATRIX_TEID + (uplink ? 0x10000 : 0), 9);
	if (uplink)
		f->at[13] = 0x10;
	gateway_outer(f, x->outer, uplink);
}

static void one_fixture(const struct fixture *x)
{
	static struct frame in, out;

	inner(&in, ue_of(x), far_of(x), x->payload);
	access_header(&in, x, 1);
	inner(&out, ue_of(x), far_of(x), x->payload);
	tunnel_header(&out, x, 1);
	if (in.length < 60)
		frame_append(&in, NULL, 60 - in.length); // as Ethernet does; not to be forwarded
	expect("access", &in, "core", &out);

	inner(&in, far_of(x), ue_of(x), x->payload);
	tunnel_header(&in, x, 0);
	inner(&out, far_of(x), ue_of(x), x->payload);
	access_header(&out, x, 0);
	expect("core", &in, "access", &out);
}

// Encapsulation x inner x outer x TPID x priority bits x size, both directions each.
static void matrix(void **state)
{
	static const uint16_t tpid[] = {0x8100, 0x88a8}, priority[] = {0, 0xf000};
	static const uint32_t payload[] = {0, 1, 100, 1300};

	for (unsigned i = 0; i < 128; i++) {
		struct fixture x = {.pppoe = i & 1,
			.inner = i & 2 ? 6 : 4,
			.outer = i & 4 ? 6 : 4,
			.tpid = tpid[i >> 3 & 1],
			.priority = priority[i >> 4 & 1],
			.payload = payload[i >> 5]};
		struct kit_session k = matrix_session(&x);

		put("matrix", &k);
		one_fixture(&x);
	}
	kit_begin();
	kit_delete(API_SESSION, "matrix");
	commit();
}

// What a session does to a packet.

static void uplink_from(struct frame *f, uint32_t home, const char *source)
{
	inner(f, source, strchr(source, ':') ? FAR6 : FAR4, 60);
	gateway_from_home(f, home);
}

static void anti_spoofing(void **state)
{
	static const char *const sources[] = {"100.64.0.9", "8.8.8.8", "10.0.0.2", "169.254.1.1", "2001:db8:1:9::77",
		"2001:db8::1", "fe80::1", "fd00::2"};
	static struct frame f;

	for (uint32_t home = 1; home <= 2; home++)
		for (unsigned i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
			uplink_from(&f, home, sources[i]);
			expect_drop("access", &f, "source-spoofed");
		}
}

static void gates_and_far_drop(void **state)
{
	static struct frame up, down;
	struct kit_session k = gateway_home(1);

	up_and_down(&up, &down);
	k.qer[0].gate_uplink = 1;
	k.qer[1].gate_downlink = 1;
	put("home-1", &k);
	expect_drop("access", &up, "uplink-gate-closed");
	expect_drop("core", &down, "downlink-gate-closed");
	k = gateway_home(1);
	k.far[0].action = k.far[1].action = API_FAR_DROP;
	put("home-1", &k);
	expect_drop("access", &up, "uplink-far-drop");
	expect_drop("core", &down, "downlink-far-drop");
}

static void qfi_and_dscp(void **state)
{
	static struct frame up, want;

	for (uint32_t home = 1; home <= 2; home++)
		for (uint8_t dscp = 0; dscp < 63; dscp += 9) {
			struct kit_session k = gateway_home(home);
			const char *ue = gateway_ue(home, 4);

			k.qer[0].qfi = dscp + 1;
			k.far[0].dscp = dscp;
			put(gateway_home_name(home), &k);
			inner(&up, ue, FAR4, 60);
			gateway_from_home(&up, home);
			inner(&want, ue, FAR4, 60);
			gateway_to_upf(&want, home);
			uint8_t *ip = want.at + 14, *container = want.at + (home == 1 ? 54 : 74);
			assert_int_equal(container[0], 1);
			container[2] = dscp + 1;
			if (home == 1) {
				ip[1] = (uint8_t)(dscp << 2);
			} else {
				ip[0] = (uint8_t)(0x60 | dscp >> 2);
				ip[1] = (uint8_t)(dscp << 6);
			}
			kit_clear();
			assert_int_equal(kit_send("access", up.at, up.length), 0);
			kit_run();
			assert_int_equal(kit_count("core"), 1);
			// gateway_same() accepts any IPv4 checksum; the rest must be equal.
			assert_true(gateway_same("core", 0, &want));
		}
}

// RFC 6040 §4.1: a home's ECN, in QinQ and PPPoE, is in the outer header too. Down, a mark on the way to us reaches the
// home.
static void ecn(void **state)
{
	static struct frame f, want;

	for (uint32_t i = 0; i < 16; i++) {
		uint32_t home = 1 + (i & 1); // QinQ in a tunnel over IPv4, PPPoE over IPv6
		int family = i & 2 ? 6 : 4, mark = i >> 2;

		inner(&f, gateway_ue(home, family), family == 4 ? FAR4 : FAR6, 60);
		f.at[1] |= (uint8_t)(family == 4 ? mark : mark << 4);
		if (family == 4)
			frame_ip4_sum(&f);
		want = f;
		want.at = want.room + (f.at - f.room);
		gateway_from_home(&f, home);
		gateway_to_upf(&want, home);
		want.at[14 + 1] |= (uint8_t)(home == 1 ? mark : mark << 4);
		expect("access", &f, "core", &want);

		inner(&f, family == 4 ? FAR4 : FAR6, gateway_ue(home, family), 60);
		f.at[1] |= family == 4 ? 2 : 2 << 4; // ECT(0)
		if (family == 4)
			frame_ip4_sum(&f);
		gateway_from_upf(&f, home);
		f.at[14 + 1] |= (uint8_t)(home == 1 ? 3 : 3 << 4); // CE
		if (home == 1)
			ip4_checksum_set(f.at + 14);
		kit_clear();
		assert_int_equal(kit_send("core", f.at, f.length), 0);
		kit_run();
		assert_int_equal(kit_count("access"), 1);
		const uint8_t *ip = kit_frame("access", 0)->bytes + (home == 1 ? 22 : 30);
		assert_int_equal(family == 4 ? ip[1] & 3 : ip[1] >> 4 & 3, 3);
		assert_true(family == 6 || ip4_checksum_ok(ip));
	}
}

// MAC addresses distinguish two homes behind the same tags.
static void same_tags_other_mac(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 7, 7};
	static struct frame f, want;
	struct kit_session k = kit_session("access", mac, 100, 1, 0, "100.64.0.77", NULL, "upf4", 0x777);

	put("neighbour", &k);
	inner(&f, "100.64.0.77", FAR4, 60);
	frame_ethernet(&f, gateway_mac[0], mac, 0x0800);
	frame_tag(&f, 0x8100, 1);
	frame_tag(&f, 0x88a8, 100);
	inner(&want, "100.64.0.77", FAR4, 60);
	frame_gtpu(&want, 0x10777, 9);
	want.at[13] = 0x10;
	gateway_outer(&want, 4, 1);
	expect("access", &f, "core", &want);
	memcpy(f.at + 6, gateway_home_mac(1), 6); // the other home's MAC: not its address
	expect_drop("access", &f, "source-spoofed");
	kit_begin();
	kit_delete(API_SESSION, "neighbour");
	commit();
	memcpy(f.at + 6, mac, 6);
	expect_drop("access", &f, "subscriber-unknown");
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(matrix),
		cmocka_unit_test(anti_spoofing),
		cmocka_unit_test_teardown(gates_and_far_drop, restore),
		cmocka_unit_test_teardown(qfi_and_dscp, restore),
		cmocka_unit_test(ecn),
		cmocka_unit_test_teardown(same_tags_other_mac, restore),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
