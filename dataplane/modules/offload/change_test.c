// SPDX-License-Identifier: Apache-2.0
// Entries and devices' counts after changes.
#include "core/event.h"
#include "offload/fixture_test.h"
#include "testkit/events.h"

static int setup(void **state)
{
	start_fixture(NULL);
	set_offload(API_OFFLOAD_AUTO);
	return 0;
}

// ---- changes --------------------------------------------------------------------------------------------------------

static void changes(void **state)
{
	static const uint8_t moved[6] = {2, 0, 0, 0, 0xee, 9};
	static struct frame f, want;
	struct kit_mobile *k = upf_session(0x21);

	put("u", k);
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	kit_begin();
	kit_neighbour("n3", "10.1.0.2", moved);
	commit();
	settle_entries();
	tunnelled_out(&want, FAR4, "10.45.0.33", 0x221, NO_QFI);
	memcpy(want.at, moved, 6);
	expect_out(INTERNET, &f, RAN, &want);
	kit_begin();
	kit_neighbour("n3", "10.1.0.2", mac_gnb);
	struct api_path path = {.local = kit_address("10.1.0.1"), .peer = kit_address("10.1.0.2"), .dscp = 46};
	kit_put(API_PATH, "gnb", &path, sizeof(path));
	commit();
	settle_entries();
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	assert_int_equal(recorder.frame[15], 46 << 2);
	assert_memory_equal(recorder.frame, mac_gnb, 6);
	kit_begin();
	kit_path("gnb", "10.1.0.1", "10.1.0.2");
	commit();
	k->far[1].teid = 0x777; // another version of the session: at once
	put("u", k);
	assert_int_equal(recorder.flows, 0);
	teach("internet", &f);
	expect_out(INTERNET, &f, RAN, tunnelled_out(&want, FAR4, "10.45.0.33", 0x777, NO_QFI));
	gone("u");
	assert_int_equal(recorder.flows, 0);
	nothing_left();
}

// Another destination: our address, a UE's, a guarded one.
static void destinations(void **state)
{
	static struct frame f;

	put("u", upf_session(0x21));
	teach("ran", uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9));
	for (int i = 0; i < 3; i++) {
		struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");

		assert_int_equal(recorder_receive(RAN, f.at, f.length), 1);
		core.pool[core.pools++] = kit_address("2001:db8:1::/48");
		if (i == 1)
			core.pool[core.pools++] = kit_address("198.51.100.0/24");
		if (i == 2)
			core.guard[core.guarded++] = kit_address(FAR4);
		kit_begin();
		struct api_interface n6 = {.port = "internet",
			.address = {kit_address("192.0.2.1/24"), kit_address("2001:db8:6::1/64"), kit_address(FAR4)},
			.count = i == 0 ? 3 : 2};
		kit_put(API_INTERFACE, "n6", &n6, sizeof(n6));
		kit_put(API_INSTANCE, "core", &core, sizeof(core));
		commit();
		settle_entries();
		assert_int_equal(recorder_receive(RAN, f.at, f.length), -2); // the software decides
		kit_begin();
		kit_interface("n6", "internet", "192.0.2.1/24", "2001:db8:6::1/64");
		fixture_instances(0, 0);
		commit();
		settle_entries();
	}
	gone("u");
	nothing_left();
}

// SYNs are the software's, of an instance and of a session.
static void limited(void **state)
{
	static struct frame up, down;
	struct kit_mobile *k = upf_session(0x21);

	put("u", k);
	teach("ran", uplink_of(&up, "10.45.0.33", FAR4, 0x121, 9));
	teach("internet", downlink_of(&down, FAR4, "10.45.0.33"));
	for (int i = 0; i < 2; i++) {
		struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");

		assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
		assert_int_equal(recorder_receive(INTERNET, down.at, down.length), 1);
		core.pool[core.pools++] = kit_address("2001:db8:1::/48");
		core.mss = i == 0 ? API_MSS_PATH : 0;
		k->s.mss = i == 1 ? 1300 : 0;
		kit_begin();
		kit_put(API_INSTANCE, "core", &core, sizeof(core));
		kit_put_mobile("u", k);
		commit();
		teach("ran", &up);
		teach("internet", &down);
		assert_int_equal(recorder_receive(RAN, up.at, up.length), -2);
		assert_int_equal(recorder_receive(INTERNET, down.at, down.length), -1);
		kit_begin();
		fixture_instances(0, 0);
		k->s.mss = 0;
		kit_put_mobile("u", k);
		commit();
		teach("ran", &up);
		teach("internet", &down);
	}
	gone("u");
	nothing_left();
}

static void set_flags(const char *interface, uint32_t flags)
{
	set_interface_flags(interface, flags);
	settle_entries();
}

// Checks of core-input, ip-input and gtpu-input on the received interface.
static void interfaces(void **state)
{
	static const uint32_t flags[] = {API_INTERFACE_DOWN, API_INTERFACE_RPF_STRICT};
	static struct frame up, down, home;

	put("u", upf_session(0x21));
	teach("ran", uplink_of(&up, "10.45.0.33", FAR4, 0x121, 9));
	teach("internet", downlink_of(&down, FAR4, "10.45.0.33"));
	gpdu(&home, &cases[2], 4, 9, 1, 40);
	for (int i = 0; i < 2; i++)
		teach("ran", &home);
	for (uint32_t i = 0; i < RTE_DIM(flags); i++) {
		assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
		assert_int_equal(recorder_receive(RAN, home.at, home.length), 1);
		assert_int_equal(recorder_receive(INTERNET, down.at, down.length), 1);
		set_flags("n3", flags[i]);
		assert_int_equal(recorder_receive(RAN, up.at, up.length), -1);
		assert_int_equal(recorder_receive(RAN, home.at, home.length), -1);
		set_flags("n3", 0);
		set_flags("n6", flags[i]);
		assert_int_equal(recorder_receive(INTERNET, down.at, down.length), -1);
		set_flags("n6", 0);
	}
	assert_int_equal(recorder_receive(RAN, home.at, home.length), 1);
	kit_begin(); // row G20: the endpoint is another interface's
	put_interface("n3", "ran", 0, "10.1.0.1/24", NULL);
	put_interface("n3b", "loose", 0, "10.6.0.1/24", "10.3.0.1/32");
	commit();
	settle_entries();
	assert_int_equal(recorder_receive(RAN, home.at, home.length), -1);
	assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
	kit_begin();
	put_interface("n3", "ran", 0, "10.1.0.1/24", "10.3.0.1/24");
	put_interface("n3b", "loose", 0, "10.6.0.1/24", NULL);
	commit();
	gone("u");
	gone("home-1");
	nothing_left();
}

static void lost_and_down(void **state)
{
	static struct frame f;

	put("u", upf_session(0x21));
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	recorder.down[INTERNET] = 1;
	settle_entries();
	nothing_left();
	recorder.down[INTERNET] = 0;
	settle_entries();
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	recorder_reset(INTERNET);
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), -1);
	settle_entries();
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	assert_int_equal(port("internet")->offload.entries, 1);
	gone("u");
	nothing_left();
}

// The port is deleted, the session stays: its entry is removed before the device is closed.
static void port_gone(void **state)
{
	static const struct tunnel_case spare = {"spare", "10.77.0.1", "10.77.0.2", 0x305, 0, 0};
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 5};
	static struct frame f;

	kit_begin();
	kit_port("spare", API_ROLE_CORE);
	commit();
	kit_begin();
	kit_interface("spare", "spare", "10.77.0.1/24", NULL);
	kit_path("spare", "10.77.0.1", "10.77.0.2");
	struct kit_session home = kit_session("homes", mac, 100, 5, 0, "100.64.0.6", NULL, "spare", 0x305);
	kit_put_session("home-5", &home);
	commit();
	struct port *p = port_by_name("spare");
	p->device = SPARE;
	p->want.offload = API_OFFLOAD_FULL;
	p->mtu = 1444;
	settle_entries();
	gpdu(&f, &spare, 4, 9, 1, 40);
	memcpy(f.at, p->mac.addr_bytes, 6);
	for (int i = 0; i < 2; i++)
		teach("spare", &f);
	assert_int_equal(recorder_receive(SPARE, f.at, f.length), 1);
	kit_begin();
	kit_delete(API_INTERFACE, "spare");
	kit_delete(API_PORT, "spare");
	commit();
	assert_int_equal(recorder.flows + recorder.counters, 0);
	assert_int_equal(kit_session_row("home-5").downlink_packets, 3);
	kit_begin();
	kit_delete(API_SESSION, "home-5");
	kit_delete(API_PATH, "spare");
	commit();
	nothing_left();
}

// ---- counters -------------------------------------------------------------------------------------------------------

// The URR's report in the reply to a change, in packets of 108 bytes.
static void expect_report(const struct kit_mobile *k, uint64_t up, uint64_t down)
{
	uint32_t n;

	if (k != NULL)
		put("u", k);
	else
		gone("u");
	const struct api_usage *row = event_commit_rows(&n);
	assert_int_equal(n, 1);
	assert_int_equal(row->bytes[API_UPLINK], up * 108);
	assert_int_equal(row->bytes[API_DOWNLINK], down * 108);
}

static void exact_counts(void **state)
{
	static struct frame up, down;
	struct kit_mobile *k = counted_session();

	put("u", k);
	teach("ran", uplink_of(&up, "10.45.0.33", FAR4, 0x121, 9));
	teach("internet", downlink_of(&down, FAR4, "10.45.0.33"));
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
		if (i % 3 == 0)
			assert_int_equal(recorder_receive(INTERNET, down.at, down.length), 1);
	}
	struct api_session_row row = kit_session_row("u");
	assert_int_equal(row.uplink_packets, 1001);
	assert_int_equal(row.uplink_bytes, 1001 * 108);
	assert_int_equal(row.downlink_packets, 335);
	assert_int_equal(row.downlink_bytes, 335 * 108);
	for (int i = 0; i < 10; i++)
		assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
	k->urr[0].query++; // asked, and counted on
	expect_report(k, 1011, 335);
	assert_int_equal(kit_session_row("u").uplink_packets, 1011);
	teach("ran", &up);
	assert_int_equal(recorder_receive(RAN, up.at, up.length), 1);
	expect_report(NULL, 2, 0);
	nothing_left();
}

// A periodic report has all that was counted until then.
static void periodic_report(void **state)
{
	static struct frame f;
	struct kit_mobile *k = counted_session();
	uint64_t bytes = 0;

	k->urr[0].triggers |= API_URR_PERIO;
	k->urr[0].period = 60;
	put("u", k);
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	kit_events_clear();
	kit_advance(59000000);
	for (int i = 0; i < 50; i++)
		assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	for (int i = 0; i < 200 && kit_events(API_EVENT_USAGE) == 0; i++) {
		kit_advance(9000);
		assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
		bytes = (uint64_t)(50 + i) * 108; // it is installed one step after it was made
	}
	assert_int_equal(kit_events(API_EVENT_USAGE), 1);
	assert_int_equal(kit_event(API_EVENT_USAGE, 0)->usage.bytes[API_DOWNLINK], bytes);
	gone("u");
	nothing_left();
}

// A session whose packets a device forwards is not silent.
static void not_inactive(void **state)
{
	static struct frame f;
	struct kit_mobile *k = upf_session(0x21);

	k->s.inactivity = 4;
	put("u", k);
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	kit_events_clear();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
		kit_advance(100000);
	}
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 0);
	for (int i = 0; i < 60; i++)
		kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 1);
	gone("u");
	nothing_left();
}

// Thresholds and quotas fire at a packet: such rules stay with the software.
static void not_where_packets_decide(void **state)
{
	static struct frame f;
	struct kit_mobile *k = counted_session();

	k->urr[0].triggers |= API_URR_VOLTH;
	k->urr[0].volume_threshold[0] = 1000;
	put("u", k);
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), -1);
	assert_non_null(strstr(port("internet")->offload.why, "thresholds"));
	k->urr[0].triggers &= ~(uint32_t)API_URR_VOLTH;
	memset(k->urr[0].volume_threshold, 0, sizeof(k->urr[0].volume_threshold));
	put("u", k);
	teach("internet", &f);
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	gone("u");
	nothing_left();
}

static void metered(void **state)
{
	static struct frame f;
	struct api_policer p = {.type = API_TRTCM,
		.cir = 1000000,
		.cbs = 20000,
		.pir = 2000000,
		.pbs = 40000,
		.action = {API_COLOUR_PASS, API_COLOUR_PASS, API_COLOUR_DROP}};
	struct kit_mobile *k = upf_session(0x21);

	kit_begin();
	kit_put(API_POLICER, "gold", &p, sizeof(p));
	commit();
	snprintf(kit_qer(k, 1, 9)->downlink_policer, API_NAME, "gold");
	kit_pdr_qer(&k->pdr[1], 1);
	put("u", k);
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	assert_string_equal(entry_flow_of(INTERNET)->actions, "mcdeo");
	assert_int_equal(recorder.profile.alg, RTE_MTR_TRTCM_RFC2698);
	assert_int_equal(recorder.profile.trtcm_rfc2698.pir, 2000000);
	assert_int_equal(recorder.profile.trtcm_rfc2698.cbs, 20000);
	assert_string_equal(recorder.colours, "ppd");
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	recorder.red = 1;
	for (int i = 0; i < 7; i++)
		assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 0);
	recorder.red = 0;
	assert_int_equal(kit_session_row("u").downlink_dropped, 7);
	assert_int_equal(kit_session_row("u").downlink_packets, 2);
	p.pir = 3000000;
	kit_begin();
	kit_put(API_POLICER, "gold", &p, sizeof(p));
	commit();
	settle_entries();
	assert_int_equal(recorder.profile.trtcm_rfc2698.pir, 3000000);
	assert_int_equal(recorder.meters, 1);
	gone("u");
	nothing_left();
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(changes),
		cmocka_unit_test(destinations),
		cmocka_unit_test(limited),
		cmocka_unit_test(interfaces),
		cmocka_unit_test(lost_and_down),
		cmocka_unit_test(port_gone),
		cmocka_unit_test(exact_counts),
		cmocka_unit_test(periodic_report),
		cmocka_unit_test(not_inactive),
		cmocka_unit_test(not_where_packets_decide),
		cmocka_unit_test(metered),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
