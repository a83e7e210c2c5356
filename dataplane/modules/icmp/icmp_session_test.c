// SPDX-License-Identifier: Apache-2.0
// ICMP errors about mobile sessions' packets: they follow the session's reverse rule, or are not sent.
#include "session/mobile_fixture.h"
#include "wire/icmp.h"

#define UE_B "10.45.0.3"

static int setup(void **state)
{
	struct api_engine e = kit_engine();

	e.icmp_error_rate = 1000000;
	fixture_start(&e);
	return 0;
}

static int clean(void **state)
{
	kit_begin();
	kit_delete(API_SESSION, "s2");
	kit_delete(API_SESSION, "s3");
	commit();
	kit_run();
	assert_int_equal(kit_buffers_in_use(), 0);
	return 0;
}

// A packet whose hop limit ends here.
static struct frame *last_hop(struct frame *f, const char *from, const char *to)
{
	ip_packet(f, from, to, 80);
	if (f->at[0] >> 4 == 6) {
		f->at[7] = 1;
		return f;
	}
	f->at[8] = 1;
	frame_ip4_sum(f);
	return f;
}

static struct frame *from_ue(struct frame *f, const char *ue, const char *far, uint32_t teid)
{
	last_hop(f, ue, far);
	tunnel(f, "10.1.0.2", "10.1.0.1", teid, 0xff, API_PDU_UL);
	link_layer(f, "ran", 1);
	return f;
}

// One frame left towards the gNB: an error to this address behind `outer` bytes of headers. Returns the bytes behind
// its outer UDP header.
static const uint8_t *error_left(uint32_t outer, int six, const char *to)
{
	struct api_address a = kit_address(to);

	if (all_out() != 1)
		kit_print();
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *ip = kit_frame("ran", 0)->bytes + 14 + outer;
	assert_int_equal(ip[0], six ? 0x60 : 0x45);
	assert_memory_equal(ip + (six ? 24 : 16), a.bytes, six ? 16 : 4);
	assert_int_equal(ip[six ? 6 : 9], six ? 58 : 1);
	assert_int_equal(ip[six ? 40 : 20], six ? ICMP6_TIME_EXCEEDED : ICMP4_TIME_EXCEEDED);
	assert_true(kit_balance());
	return kit_frame("ran", 0)->bytes + 14 + 20 + 8; // behind IPv4 and UDP
}

static void by_the_tunnel(void **state)
{
	static struct frame f;

	put("s2", upf_session(2));
	send_frame("ran", from_ue(&f, UE4, FAR4, 0x102));
	assert_int_equal(load32(error_left(36, 0, UE4) + 4), 0x202);
	send_frame("ran", from_ue(&f, UE6, FAR6, 0x102));
	error_left(36, 1, UE6);
}

// A tunnel of UDP without GTP (TS 29.244 §8.2.56) is a tunnel too.
static void by_udp(void **state)
{
	struct kit_mobile *k = upf_session(2);
	static struct frame f;

	k->far[1].outer = API_OUTER_UDP;
	k->far[1].port = 6000;
	put("s2", k);
	send_frame("ran", from_ue(&f, UE4, FAR4, 0x102));
	assert_int_equal(load16(error_left(28, 0, UE4) - 6), 6000);
}

// The UE is idle, its downlink is closed, or the gNB's tunnel is not known yet. As IP the error would go by the default
// route.
static void no_way_back(void **state)
{
	static const uint8_t action[] = {
		API_FAR_DROP, API_FAR_BUFFER, API_FAR_BUFFER | API_FAR_NOTIFY, API_FAR_DROP | API_FAR_NOTIFY};
	struct kit_mobile *k;
	static struct frame f;

	for (int tunnel = 0; tunnel < 2; tunnel++)
		for (unsigned i = 0; i < sizeof(action); i++) {
			k = upf_session(2);
			k->far[1].action = action[i];
			if (!tunnel)
				k->far[1].outer = API_OUTER_NONE;
			put("s2", k);
			expect_drop("ran", from_ue(&f, UE4, FAR4, 0x102), "icmp-no-way");
			expect_drop("ran", from_ue(&f, UE6, FAR6, 0x102), "icmp-no-way");
		}
	k = upf_session(2);
	kit_qer(k, 1, 0)->gate_downlink = 1;
	kit_pdr_qer(&k->pdr[1], 1);
	put("s2", k);
	expect_drop("ran", from_ue(&f, UE4, FAR4, 0x102), "icmp-no-way");
}

// One flow is dropped; the session's tunnel is there.
static void by_the_rule_that_forwards(void **state)
{
	struct kit_mobile *k = upf_session(2);
	static struct frame f;

	kit_pdr_ue(k, API_FROM_CORE, "core", 3)->precedence = 1;
	kit_sdf(k, &k->pdr[2])->remote = kit_address("203.0.113.0/24");
	kit_far(k, 3, API_FAR_DROP, API_FROM_ACCESS);
	put("s2", k);
	send_frame("ran", from_ue(&f, UE4, FAR4, 0x102));
	error_left(36, 0, UE4);
}

// The packet came from another UE: the error enters that UE's tunnel, not the data network.
static void back_to_the_other_ue(void **state)
{
	struct kit_mobile *k;
	static struct frame f;

	put("s2", upf_session(2));
	k = upf_session(3);
	kit_far_ip(k, 3, API_FROM_CORE, "core"); // sends it on by the routes, where there is none
	k->far[1] = k->far[2];
	k->far[1].id = 2;
	k->s.fars = 2;
	put("s3", k);
	last_hop(&f, UE4, UE_B);
	f.at[8] = 2; // the second hop is behind the other UE's rule
	frame_ip4_sum(&f);
	tunnel(&f, "10.1.0.2", "10.1.0.1", 0x102, 0xff, API_PDU_UL);
	link_layer(&f, "ran", 1);
	send_frame("ran", &f);
	assert_int_equal(load32(error_left(36, 0, UE4) + 4), 0x202);
	// Where UEs do not reach each other, neither do such errors.
	kit_begin();
	fixture_instances(API_INSTANCE_NO_UE_TO_UE, 0);
	commit();
	expect_drop("ran", &f, "ue-to-ue");
	kit_begin();
	fixture_instances(0, 0);
	commit();
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(by_the_tunnel, clean),
		cmocka_unit_test_teardown(by_udp, clean),
		cmocka_unit_test_teardown(no_way_back, clean),
		cmocka_unit_test_teardown(by_the_rule_that_forwards, clean),
		cmocka_unit_test_teardown(back_to_the_other_ue, clean),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
