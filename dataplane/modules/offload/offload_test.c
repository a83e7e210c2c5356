// SPDX-License-Identifier: Apache-2.0
// What devices get of sessions, with a recording device in place of DPDK's.
#include "offload/fixture_test.h"

static const struct port_driver *unmarked;
static struct port_driver marking;
static uint16_t receive_marked(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

static int setup(void **state)
{
	start_fixture(NULL);
	unmarked = port_by_name("ran")->driver;
	marking = *unmarked;
	marking.rx = receive_marked;
	set_offload(API_OFFLOAD_AUTO);
	return 0;
}

// After a change of IPv4 headers.
static void frame_sums(struct frame *f)
{
	ip4_checksum_set(f->at + 14);
	ip4_checksum_set(f->at + 14 + 44);
}

static void hex(const uint8_t *bytes, uint32_t length, char *to)
{
	for (uint32_t i = 0; i < length; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
}

static void expect_bytes(const uint8_t *bytes, uint32_t length, const char *want)
{
	char got[400] = "";

	hex(bytes, length, got);
	assert_string_equal(got, want);
}

// Receives as the port does, and marks as the device.
static uint16_t receive_marked(struct port *p, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t count = unmarked->rx(p, queue, pkts, n);

	for (uint16_t i = 0; i < count; i++) {
		pkts[i]->ol_flags |= RTE_MBUF_F_RX_FDIR_ID;
		pkts[i]->hash.fdir.hi = recorder.mark;
	}
	return count;
}

// ---- what is installed  ---------------------------------------------------------------------------------------------

static void uplink(void **state)
{
	static struct frame f, want, other;

	put("u", upf_session(0x21));
	teach("ran", uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9));
	const struct rte_flow *e = entry_flow_of(RAN);
	assert_string_equal(e->items, "PIIE4UGC4");
	assert_string_equal(e->actions, "cdteo");
	assert_true(e->attr.transfer && !e->attr.ingress);
	assert_int_equal(e->integrity, 1 << 1 | 1 << 2);
	expect_bytes(e->spec, e->length,
		"020000009900"
		"000000000000"
		"0800"
		"45000000"
		"00000000"
		"00110000"
		"00000000"
		"0a010001"
		"0000"
		"0868"
		"00000000"
		"34ff0000"
		"00000121"
		"00000000"
		"01100000"
		"45000000"
		"00000000"
		"00000000"
		"0a2d0021"
		"c6336409");
	expect_bytes(e->mask, e->length,
		"ffffffffffff"
		"000000000000"
		"ffff"
		"ff010000"
		"00003fff"
		"00ff0000"
		"00000000"
		"ffffffff"
		"0000"
		"ffff"
		"00000000"
		"ffff0000"
		"ffffffff"
		"00000000"
		"ffffc000"
		"ff000000"
		"00000000"
		"00000000"
		"ffffffff"
		"ffffffff");
	expect_bytes(e->goes, e->encap,
		"02000000ee03"
		"020000009902"
		"0800");
	assert_int_equal(e->decap, 14 + 20 + 8 + 16);
	expect_out(RAN, &f, INTERNET, routed_out(&want, "10.45.0.33", FAR4));
	// Another destination may be a UE, or us; a congestion mark, a fragment and an old packet are the software's.
	assert_int_equal(recorder_receive(RAN, other.at = uplink_of(&other, "10.45.0.33", "10.45.0.1", 0x121, 9)->at,
				 other.length),
		-1);
	f.at[15] = 3;
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -1);
	f.at[15] = 0, f.at[20] = 0x20;
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -1);
	f.at[20] = 0, f.at[14 + 44 + 8] = 1;
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -1);
	gone("u");
	nothing_left();
}

static void downlink(void **state)
{
	static struct frame f, want;

	put("u", upf_session(0x21));
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	const struct rte_flow *e = entry_flow_of(INTERNET);
	assert_string_equal(e->items, "PIE4");
	assert_string_equal(e->actions, "cdeo");
	expect_bytes(e->mask, e->length,
		"ffffffffffff"
		"000000000000"
		"ffff"
		"ff030000"
		"00000000"
		"00000000"
		"00000000"
		"ffffffff");
	expect_bytes(e->goes, e->encap,
		"02000000ee01"
		"020000009900"
		"0800"
		"45000024"
		"00000000"
		"401166c5"
		"0a010001"
		"0a010002"
		"0868"
		"0868"
		"0010"
		"0000"
		"30ff0000"
		"00000221");
	expect_out(INTERNET, &f, RAN, tunnelled_out(&want, FAR4, "10.45.0.33", 0x221, NO_QFI));
	downlink_of(&f, "192.0.2.77", "10.45.0.33"); // from any source
	expect_out(INTERNET, &f, RAN, tunnelled_out(&want, "192.0.2.77", "10.45.0.33", 0x221, NO_QFI));
	ip_packet(&f, FAR4, "10.45.0.33", 10); // its frame is padded
	link_layer(&f, "internet", 1);
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), -1);
	gone("u");
	nothing_left();
}

// SGW-U, UPF on N9; another QFI has its own container.
static void tunnel_to_tunnel(void **state)
{
	static struct frame f, want;
	static struct kit_mobile k;

	kit_mobile(&k, 9, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x300, 1);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "gnb", 0x400)->pdu_type = API_PDU_DL;
	put("bearer", &k);
	for (uint8_t qfi = 5; qfi < 7; qfi++) {
		ip_packet(&f, FAR4, UE4, 80);
		tunnel(&f, "10.9.0.2", "10.9.0.1", 0x300, qfi, API_PDU_DL);
		link_layer(&f, "peers", 1);
		assert_int_equal(recorder_receive(PEERS, f.at, f.length), -1);
		if (qfi == 6) // the rule's packets pass flow-input now
			break;
		teach("peers", &f);
		assert_string_equal(entry_flow_of(PEERS)->items, "PIIE4UGC4");
		assert_string_equal(entry_flow_of(PEERS)->actions, "cdeo");
		expect_out(PEERS, &f, RAN, tunnelled_out(&want, FAR4, UE4, 0x400, qfi));
	}
	gone("bearer");
	nothing_left();
}

// The first packet of a flow may itself be the software's.
static void bad_examples(void **state)
{
	static struct frame f;

	put("u", upf_session(0x21));
	uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9);
	f.at[15] = 1; // ECT(1)
	f.at[14 + 44 + 1] = 2; // of an ECN-capable transport
	frame_sums(&f);
	teach("ran", &f);
	assert_int_equal(kit_count("internet"), 1);
	nothing_left();
	f.at[15] = 0;
	frame_sums(&f);
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -1);
	gone("u");
	nothing_left();
}

// The network behind a wireline subscriber is in no pool; a UE's packets to it do not leave by the route.
static void to_network_of_subscriber(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	static struct kit_mobile k;
	static struct frame f;

	kit_mobile(&k, 0x55, "10.45.0.99", NULL);
	k.s.encap = API_ENCAP_QINQ;
	k.s.outer_tpid = 0x88a8;
	k.s.s_tag = 100;
	k.s.c_tag = 9;
	memcpy(k.s.mac, mac, 6);
	snprintf(k.s.port, API_NAME, "homes");
	kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1)->match |= API_PDR_ENDPOINT | API_PDR_FRAMED;
	struct api_pdr *down = kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	down->match |= API_PDR_FRAMED;
	down->outer_header_removal = API_REMOVAL_NOTHING;
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	kit_framed_route(&k, "198.51.100.64/28");
	put("home", &k);
	put("u", upf_session(0x21));
	teach("ran", uplink_of(&f, "10.45.0.33", "198.51.100.70", 0x121, 9));
	assert_int_equal(kit_count("homes"), 1);
	assert_string_equal(entry_flow_of(RAN)->actions, "dekq"); // the software says where it goes
	gone("u");
	gone("home");
	nothing_left();
}

static void home_goes_and_comes(void)
{
	kit_begin();
	kit_delete(API_SESSION, "home-1");
	commit();
	nothing_left();
	kit_begin();
	put_homes();
	commit();
}

// More 5-tuples at once than are requested, and than a rule may have.
static void too_many(void **state)
{
	enum { FLOWS = 2500 };
	static struct frame f;
	uint64_t refused = port("ran")->offload.refused;

	for (uint32_t i = 0; i < 2 * FLOWS; i++) {
		gpdu(&f, &cases[2], 4, 9, 1, 40);
		store16(f.at + 14 + 44 + 20, (uint16_t)(i / 2 + 1));
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
		if (i % 32 == 31)
			kit_run(), kit_clear();
	}
	kit_run();
	for (int i = 0; i < 20; i++)
		settle_entries();
	assert_int_equal(port("ran")->offload.entries, 64);
	assert_int_equal(port("ran")->offload.refused - refused, 2 * FLOWS - 2 * 64);
	home_goes_and_comes();
}

static void to_home(void **state)
{
	static struct frame f, first;

	gpdu(&f, &cases[2], 4, 9, 1, 40);
	for (int i = 0; i < 2; i++) // the second packet of a 5-tuple makes its entry
		teach("ran", &f);
	const struct rte_flow *e = entry_flow_of(RAN);
	assert_string_equal(e->items, "PIIE4UGC4U");
	assert_string_equal(e->actions, "cdeo");
	const struct kit_frame *k = kit_frame("homes", 0);
	memcpy(first.room, k->bytes, k->length);
	first.at = first.room, first.length = k->length;
	expect_out(RAN, &f, HOMES, &first);
	gpdu(&f, &cases[2], 4, 9, 1, 40);
	f.at[14 + 44 + 20 + 1] ^= 1; // another source port
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -1);
	home_goes_and_comes();
}

static void from_home(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	static struct frame f, want;

	kit_begin();
	kit_neighbour("n3", "10.3.0.2", mac_gnb);
	commit();
	for (int i = 0; i < 3; i++) {
		ip_packet(&f, "100.64.0.2", FAR4, 80);
		frame_ethernet(&f, port("homes")->mac.addr_bytes, mac, 0x0800);
		frame_tag(&f, 0x8100, 1);
		frame_tag(&f, 0x88a8, 100);
		if (i < 2)
			teach("homes", &f);
	}
	const struct rte_flow *e = entry_flow_of(HOMES);
	assert_string_equal(e->items, "PIEVV4U");
	assert_string_equal(e->actions, "cdeo");
	ip_packet(&want, "100.64.0.2", FAR4, 80);
	tunnel(&want, "10.3.0.1", "10.3.0.2", 0x10301, 9, API_PDU_UL);
	link_layer(&want, "ran", 0);
	expect_out(HOMES, &f, RAN, &want);
	f.at[11] ^= 1; // another home router
	assert_int_equal(recorder_receive(HOMES, f.at, f.length), -1);
	home_goes_and_comes();
}

// ---- what devices take ----------------------------------------------------------------------------------------------

static void by_what_it_takes(void **state)
{
	static struct frame f;

	recorder.refuses[RTE_FLOW_ACTION_TYPE_DEC_TTL] = 1;
	set_offload(API_OFFLOAD_AUTO);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_ENCAPSULATION);
	assert_string_equal(port("ran")->offload.why, "full: the action is not supported");
	put("u", upf_session(0x21));
	teach("ran", uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9));
	const struct rte_flow *e = entry_flow_of(RAN);
	assert_string_equal(e->items, "IIE4UGC4");
	assert_string_equal(e->actions, "dekq");
	assert_true(e->attr.ingress && !e->attr.transfer);
	expect_bytes(e->goes, e->encap,
		"020000009900"
		"02000000ee01"
		"0800");
	set_offload(API_OFFLOAD_FULL);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_NONE);
	nothing_left();
	recorder.refuses[RTE_FLOW_ACTION_TYPE_MARK] = 1;
	set_offload(API_OFFLOAD_AUTO);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_NONE);
	nothing_left();
	memset(recorder.refuses, 0, sizeof(recorder.refuses));
	set_offload(API_OFFLOAD_ENCAPSULATION);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_ENCAPSULATION);
	set_offload(API_OFFLOAD_NONE);
	nothing_left();
	set_offload(API_OFFLOAD_AUTO);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_FULL);
	gone("u");
	nothing_left();
}

// A frame as the device gives it to the software.
static void send_marked(const uint8_t *frame, uint32_t length, uint32_t mark)
{
	struct port *p = port_by_name("ran");

	kit_clear();
	assert_int_equal(kit_send("ran", frame, length), 0);
	recorder.mark = mark;
	p->driver = &marking;
	kit_run();
	p->driver = unmarked;
}

// The device takes the outer header off; the software does the rest, counts and thresholds too.
static void decapsulated(void **state)
{
	static struct frame f, want;
	struct kit_mobile *k = counted_session();

	set_offload(API_OFFLOAD_ENCAPSULATION);
	k->urr[0].triggers |= API_URR_VOLTH;
	k->urr[0].volume_threshold[0] = 100000;
	put("u", k);
	teach("ran", uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9));
	for (int i = 1; i < 3; i++) {
		uplink_of(&f, "10.45.0.33", i == 1 ? FAR4 : "198.51.100.77", 0x121, 9);
		assert_int_equal(recorder_receive(RAN, f.at, f.length), -2);
		uint64_t before = kit_node_packets("gtpu-input");
		send_marked(recorder.frame, recorder.frame_length, recorder.mark);
		assert_int_equal(kit_node_packets("gtpu-input") - before, 0);
		assert_int_equal(kit_count("internet"), 1);
		assert_true(
			same_frame("internet", 0, routed_out(&want, "10.45.0.33", i == 1 ? FAR4 : "198.51.100.77")));
		assert_int_equal(kit_session_row("u").uplink_bytes, (i + 1) * 108);
	}
	// The interface went down behind the device.
	struct kit_reasons before = kit_reasons();
	set_interface_flags("n3", API_INTERFACE_DOWN);
	send_marked(recorder.frame, recorder.frame_length, recorder.mark);
	kit_only_rose(&before, "interface-down", 1);
	assert_int_equal(all_out(), 0);
	set_interface_flags("n3", 0);
	// Cut short by the device; longer than its packet (row G6); a mark of the past.
	before = kit_reasons();
	send_marked(recorder.frame, 40, recorder.mark);
	send_marked(recorder.frame, recorder.frame_length + 4, recorder.mark);
	kit_only_rose(&before, "offload-inner", 2);
	gone("u");
	before = kit_reasons();
	send_marked(recorder.frame, recorder.frame_length, recorder.mark);
	kit_only_rose(&before, "offload-mark", 1);
	assert_true(kit_balance());
	set_offload(API_OFFLOAD_AUTO);
	nothing_left();
}

// A device that takes the example, and then not an entry: the next level, and not again for a while.
static void less_for_an_entry(void **state)
{
	static struct frame f;

	recorder.refuses[RTE_FLOW_ACTION_TYPE_DEC_TTL] = 1;
	put("u", upf_session(0x21));
	teach("ran", uplink_of(&f, "10.45.0.33", FAR4, 0x121, 9));
	assert_int_equal(recorder_receive(RAN, f.at, f.length), -2);
	assert_int_equal(port("ran")->offload.level, API_OFFLOAD_FULL);
	uint32_t created = recorder.created;
	kit_advance(1000000);
	assert_int_equal(recorder.created, created);
	memset(recorder.refuses, 0, sizeof(recorder.refuses));
	kit_advance(10000000);
	settle_entries();
	assert_int_equal(recorder_receive(RAN, f.at, f.length), 1);
	gone("u");
	nothing_left();
}

static void full_table(void **state)
{
	static struct frame f;
	uint64_t refused = port("internet")->offload.refused;

	put("a", upf_session(0x21));
	put("b", upf_session(0x22));
	recorder.room = recorder.flows + 2; // an entry and its guard
	teach("internet", downlink_of(&f, FAR4, "10.45.0.33"));
	teach("internet", downlink_of(&f, FAR4, "10.45.0.34"));
	assert_int_equal(port("internet")->offload.entries, 1);
	assert_int_equal(port("internet")->offload.refused - refused, 1);
	assert_string_equal(port("internet")->offload.why, "an entry: the table is full");
	assert_int_equal(recorder.counters, 1);
	gone("a");
	kit_advance(11000000); // it is tried again
	settle_entries();
	assert_int_equal(port("internet")->offload.entries, 1);
	assert_int_equal(recorder_receive(INTERNET, f.at, f.length), 1);
	recorder.room = UINT32_MAX;
	gone("b");
	nothing_left();
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(uplink),
		cmocka_unit_test(downlink),
		cmocka_unit_test(tunnel_to_tunnel),
		cmocka_unit_test(bad_examples),
		cmocka_unit_test(to_network_of_subscriber),
		cmocka_unit_test(to_home),
		cmocka_unit_test(too_many),
		cmocka_unit_test(from_home),
		cmocka_unit_test(by_what_it_takes),
		cmocka_unit_test(decapsulated),
		cmocka_unit_test(less_for_an_entry),
		cmocka_unit_test(full_table),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
