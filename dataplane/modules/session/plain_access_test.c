// SPDX-License-Identifier: Apache-2.0
// An access side of plain IP (a TDF): UEs are found by source and by destination, there is no tunnel, no endpoint and
// no pool.
#include "session/mobile_fixture.h"

#define UE_A "10.45.0.2"
#define UE_B "10.45.0.3"

static int setup(void **state)
{
	struct api_instance access = kit_instance_body("n3", NULL, API_LOOKUP_SOURCE, NULL);
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, NULL);
	struct api_route r = {.prefix = kit_address("10.45.0.0/16"), .via = kit_address("10.1.0.2")};

	fixture_start(NULL);
	kit_begin();
	kit_put(API_INSTANCE, "access", &access, sizeof(access));
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_ROUTE, "10.45.0.0/16", &r, sizeof(r));
	commit();
	return 0;
}

static struct kit_mobile *tdf_session(uint32_t n, const char *ue)
{
	static struct kit_mobile k;

	kit_mobile(&k, n, ue, NULL);
	kit_pdr_ue(&k, API_FROM_ACCESS, "access", 1);
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_far_ip(&k, 2, API_FROM_ACCESS, "access");
	return &k;
}

static struct frame *plain(struct frame *f, const char *from, const char *to, const char *port, int in, int hops)
{
	ip_packet(f, from, to, 80);
	while (hops-- > 0)
		hop(f);
	link_layer(f, port, in);
	return f;
}

static void both_ways(void **state)
{
	static struct frame in, out;

	put("a", tdf_session(1, UE_A));
	expect("ran", plain(&in, UE_A, FAR4, "ran", 1, 0), "internet", plain(&out, UE_A, FAR4, "internet", 0, 1));
	expect("internet", plain(&in, FAR4, UE_A, "internet", 1, 0), "ran", plain(&out, FAR4, UE_A, "ran", 0, 1));
	gone("a");
}

// A route leads straight to the other UE; its downlink rules count all the same.
static void between_ues(void **state)
{
	static struct frame in, out;
	struct kit_mobile *k;

	put("a", tdf_session(1, UE_A));
	put("b", tdf_session(2, UE_B));
	expect("ran", plain(&in, UE_A, UE_B, "ran", 1, 0), "ran", plain(&out, UE_A, UE_B, "ran", 0, 2));
	assert_int_equal(kit_session_row("b").downlink_packets, 1);
	k = tdf_session(2, UE_B);
	k->far[1].action = API_FAR_DROP;
	put("b", k);
	expect_drop("ran", &in, "downlink-far-drop");
	k = tdf_session(2, UE_B);
	kit_qer(k, 1, 0)->gate_downlink = 1;
	kit_pdr_qer(&k->pdr[1], 1);
	put("b", k);
	expect_drop("ran", &in, "downlink-gate-closed");
	gone("b");
	expect("ran", &in, "ran", plain(&out, UE_A, UE_B, "ran", 0, 1)); // no session's: routed
	gone("a");
}

static void redirected(void **state)
{
	struct api_address from = kit_address(UE_A), to = kit_address(FAR4);
	struct kit_mobile *k = tdf_session(1, UE_A);
	struct api_far_more *more = kit_far_more(k, &k->far[0]);
	static struct frame f;

	more->redirect = API_REDIRECT_URL;
	strcpy(more->redirect_to, "http://portal.test/");
	put("a", k);
	frame_payload(&f, 0);
	frame_tcp(&f, 40000, 80);
	uint16_t sum =
		checksum_finish(checksum_add(checksum_pseudo(4, from.bytes, to.bytes, 6, f.length), f.at, f.length));
	memcpy(f.at + 16, &sum, 2);
	frame_ip(&f, UE_A, FAR4, 6);
	link_layer(&f, "ran", 1);
	send_frame("ran", &f);
	assert_int_equal(all_out(), 1);
	assert_int_equal(kit_count("ran"), 1);
	const uint8_t *ip = kit_frame("ran", 0)->bytes + 14;
	assert_memory_equal(ip + 12, to.bytes, 4);
	assert_memory_equal(ip + 16, from.bytes, 4);
	assert_int_equal(ip[20 + 13], 0x12); // SYN, ACK
	assert_true(kit_balance());
	assert_int_equal(kit_session_row("a").downlink_packets, 1);
	gone("a");
}

static struct api_rule_row rule_row(uint16_t pdr)
{
	uint32_t count;
	const struct api_rule_row *row = kit_rows(API_TABLE_RULE, "a", sizeof(*row), &count);

	for (uint32_t i = 0; i < count; i++)
		if (row[i].pdr == pdr)
			return row[i];
	fail_msg("no PDR %u", pdr);
	return (struct api_rule_row){0};
}

// `show rule`: a closed gate, the lowest rate of the meters, a redirection, a quota that is used up.
static void shown(void **state)
{
	struct api_policer p = {.type = API_TRTCM, .cir = 1000, .cbs = 1500, .pir = 2000, .pbs = 1500};
	struct kit_mobile *k = tdf_session(1, UE_A);

	put("a", k);
	assert_int_equal(rule_row(1).mbr, 0);
	assert_int_equal(rule_row(1).flags, 0);
	p.action[2] = API_COLOUR_DROP;
	kit_begin();
	kit_put(API_POLICER, "peak", &p, sizeof(p));
	p.action[1] = API_COLOUR_DROP;
	kit_put(API_POLICER, "committed", &p, sizeof(p));
	memset(p.action, API_COLOUR_PASS, sizeof(p.action));
	p.cir = 500;
	kit_put(API_POLICER, "colours", &p, sizeof(p));
	commit();
	for (uint32_t id = 1; id <= 3; id++) {
		struct api_qer *q = kit_qer(k, id, 0);

		kit_pdr_qer(&k->pdr[0], id);
		strcpy(q->uplink_policer, id == 1 ? "peak" : id == 2 ? "colours" : "");
		q->gate_downlink = id == 3;
		kit_pdr_qer(&k->pdr[1], id);
		strcpy(q->downlink_policer, id == 1 ? "peak" : id == 2 ? "committed" : "");
	}
	strcpy(kit_far_more(k, &k->far[0])->redirect_to, "http://portal.test/");
	k->more[0].redirect = API_REDIRECT_URL;
	put("a", k);
	assert_int_equal(rule_row(1).mbr, 2000);
	assert_int_equal(rule_row(1).flags, API_ROW_REDIRECTS);
	assert_int_equal(rule_row(2).mbr, 1000);
	assert_int_equal(rule_row(2).flags, API_ROW_GATE_CLOSED);
	kit_urr(k, 1)->flags = API_URR_HAS_VOLUME_QUOTA;
	kit_pdr_urr(&k->pdr[0], 1);
	put("a", k);
	assert_int_equal(rule_row(1).flags, API_ROW_REDIRECTS | API_ROW_QUOTA_USED);
	assert_int_equal(rule_row(2).flags, API_ROW_GATE_CLOSED);
	gone("a");
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(between_ues),
		cmocka_unit_test(redirected),
		cmocka_unit_test(shown),
	};

	return cmocka_run_group_tests(list, setup, NULL);
}
