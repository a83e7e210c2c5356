// SPDX-License-Identifier: Apache-2.0
// SYNs of mobile sessions: UPF, and from tunnel to tunnel.
#include "mss/syn_test.h"
#include "session/mobile_fixture.h"

static void set_core(uint16_t mss, uint16_t access)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_instance ran = kit_instance_body("n3", "10.1.0.1", API_LOOKUP_NONE, NULL);

	core.pool[core.pools++] = kit_address("2001:db8:1::/48");
	core.mss = mss;
	ran.endpoint[ran.endpoints++] = kit_address("fd00:1::1");
	ran.mss = access;
	kit_begin();
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_INSTANCE, "access", &ran, sizeof(ran));
	commit();
}

static void set_path_mtu(const char *interface, const char *port, const char *a4, const char *a6, uint32_t mtu)
{
	struct api_interface i = {.address = {kit_address(a4), kit_address(a6)}, .count = 2, .mtu = mtu};

	snprintf(i.port, sizeof(i.port), "%s", port);
	assert_int_equal(kit_change(API_INTERFACE, interface, &i, sizeof(i)), 0);
}

static void pass(uint8_t flags, uint32_t mss, uint32_t want4, uint32_t want6)
{
	static struct frame in, out;

	for (int way = 0; way < 4; way++) {
		int family = way & 1 ? 6 : 4, uplink = way >> 1;
		const char *ue = family == 4 ? UE4 : UE6, *far = family == 4 ? FAR4 : FAR6;
		const char *from = uplink ? ue : far, *to = uplink ? far : ue;

		tcp_packet(&in, from, to, flags, mss);
		tcp_packet(&out, from, to, flags, family == 4 ? want4 : want6);
		if (uplink) {
			tunnel(&in, "10.1.0.2", "10.1.0.1", 0x102, 9, API_PDU_UL);
			hop(&out);
		} else {
			tunnel(&out, "10.1.0.1", "10.1.0.2", 0x202, 0xff, API_PDU_DL);
		}
		link_layer(&in, uplink ? "ran" : "internet", 1);
		link_layer(&out, uplink ? "internet" : "ran", 0);
		expect(uplink ? "ran" : "internet", &in, uplink ? "internet" : "ran", &out);
	}
}

static void connect(uint32_t mss, uint32_t want4, uint32_t want6)
{
	for (int i = 0; i < 2; i++) {
		pass(TCP_SYN, mss, want4, want6);
		pass(TCP_SYN | ACK, mss, want4, want6);
		pass(ACK, 0, 0, 0);
		pass(ACK, 0, 0, 0);
	}
	uint64_t full = kit_node_packets("core-input");
	pass(ACK, 0, 0, 0);
	assert_int_equal(kit_node_packets("core-input") - full, 0);
}

static void upf(void **state)
{
	put("u", upf_session(2));
	connect(9000, 9000, 9000);
	set_core(API_MSS_PATH, 0);
	connect(1460, 1416, 1396);
	connect(1300, 1300, 1300);
	connect(NO_MSS, NO_MSS, NO_MSS);
	set_core(1300, 0);
	connect(1460, 1300, 1280);
	set_core(0, 1280);
	connect(1460, 1280, 1260);
	set_core(API_MSS_PATH, 1280);
	connect(1460, 1280, 1260);
	// The narrower of both sides counts, both ways.
	set_core(API_MSS_PATH, 0);
	set_path_mtu("n6", "internet", "192.0.2.1/24", "2001:db8:6::1/64", 1400);
	connect(1460, 1360, 1340);
	set_path_mtu("n6", "internet", "192.0.2.1/24", "2001:db8:6::1/64", 0);
	set_path_mtu("n3", "ran", "10.1.0.1/24", "fd00:1::1/64", 1350);
	connect(1460, 1266, 1246);
	set_path_mtu("n3", "ran", "10.1.0.1/24", "fd00:1::1/64", 0);
	set_core(0, 0);
	uint64_t full = kit_node_packets("core-input");
	pass(TCP_SYN, 9000, 9000, 9000); // nothing is limited: the fast path takes SYNs too
	assert_int_equal(kit_node_packets("core-input") - full, 0);
}

// S5 over IPv6 is narrower than S1 over IPv4.
static void tunnel_to_tunnel(void **state)
{
	static struct kit_mobile k;
	static struct frame in, out;

	set_core(0, API_MSS_PATH);
	kit_mobile(&k, 7, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.1.0.1", 0x107, 1);
	kit_pdr_fteid(&k, API_FROM_CORE, "fd00:9::1", 0x207, 2);
	kit_far_gtpu(&k, 1, API_FROM_CORE, "peer6", 0x307);
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x407);
	snprintf(k.s.instance[0], API_NAME, "access");
	k.far[1].instance = 0;
	put("s", &k);
	for (int i = 0; i < 6; i++) {
		tcp_packet(&in, UE4, FAR4, TCP_SYN, 1460);
		tunnel(&in, "10.1.0.2", "10.1.0.1", 0x107, 0xff, API_PDU_UL);
		link_layer(&in, "ran", 1);
		tcp_packet(&out, UE4, FAR4, TCP_SYN, 1396);
		tunnel(&out, "fd00:9::1", "fd00:9::2", 0x307, 0xff, API_PDU_UL);
		link_layer(&out, "peers", 0);
		expect("ran", &in, "peers", &out);
		tcp_packet(&in, FAR4, UE4, TCP_SYN | ACK, 1460);
		tunnel(&in, "fd00:9::2", "fd00:9::1", 0x207, 0xff, API_PDU_DL);
		link_layer(&in, "peers", 1);
		tcp_packet(&out, FAR4, UE4, TCP_SYN | ACK, 1396);
		tunnel(&out, "10.1.0.1", "10.1.0.2", 0x407, 0xff, API_PDU_DL);
		link_layer(&out, "ran", 0);
		expect("peers", &in, "ran", &out);
	}
	gone("s");
	set_core(0, 0);
}

static void counted(void **state)
{
	set_core(API_MSS_PATH, 0);
	struct api_mss_row core = mss_row("core"), access = mss_row("access");
	pass(TCP_SYN, 1460, 1416, 1396);
	pass(TCP_SYN, 1300, 1300, 1300);
	assert_int_equal(mss_row("core").uplink - core.uplink, 2);
	assert_int_equal(mss_row("core").downlink - core.downlink, 2);
	assert_int_equal(mss_row("access").uplink - access.uplink, 0);
	set_core(0, 0);
}

static int begin(void **state)
{
	fixture_start(NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(upf), cmocka_unit_test(tunnel_to_tunnel), cmocka_unit_test(counted)};

	return cmocka_run_group_tests(list, begin, NULL);
}
