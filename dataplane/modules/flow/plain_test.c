// SPDX-License-Identifier: Apache-2.0
// G-PDUs on the fast path: which take it, how long entries last, and that order is kept.
#include "core/node.h"
#include "gtpu/tunnel_fixture.h"
#include "wire/gtpu.h"

// A stage on an arc that the fast path does not leave out.
static uint32_t to_homes;

static uint16_t count_to_homes(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	to_homes += n;
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static struct rte_node_register homes_node = {
	.name = "test-to-homes", .process = count_to_homes, .nb_edges = 1, .next_nodes = {"@output-access"}};
NODE_STAGE(homes_node, "output-access", .before = "scheduler")

static int setup(void **state)
{
	start_fixture(NULL);
	return 0;
}

// ---- which way ------------------------------------------------------------------------------------------------------

static const char *out_of(const struct tunnel_case *c)
{
	return c->mobile ? "internet" : "homes";
}

// Packets that take the full nodes while `times` copies of the frame enter by the port and leave.
static uint64_t full_nodes(const char *port, const struct frame *f, uint32_t times, const char *out)
{
	uint64_t before = kit_node_packets("core-input"), homes = to_homes;

	kit_clear();
	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(kit_send(port, f->at, f->length), 0);
	kit_run();
	assert_int_equal(kit_count(out), times);
	assert_int_equal(to_homes - homes, strcmp(out, "homes") == 0 ? times : 0);
	return kit_node_packets("core-input") - before;
}

static void fast_for_the_plain(void **state)
{
	static struct frame f;

	for (uint32_t i = 0; i < RTE_DIM(cases); i++)
		for (int k = 0; k < 4; k++) {
			gpdu(&f, &cases[i], k & 1 ? 6 : 4, k & 2 ? 9 : NO_QFI, 1, 40);
			full_nodes("ran", &f, 2, out_of(&cases[i])); // they make the entry
			assert_int_equal(full_nodes("ran", &f, 1, out_of(&cases[i])), 0);
			assert_int_equal(full_nodes("ran", &f, 64, out_of(&cases[i])), 0);
			// A wrong checksum or length is for the full nodes.
			f.at[(cases[i].vlan != 0 ? 18 : 14) + (i < 4 ? 10 : 5)] ^= 1;
			kit_clear();
			send_frame("ran", &f);
			assert_int_equal(all_out() + kit_count("homes"), 0);
		}
	gpdu(&f, &cases[1], 4, 9, 1, 40);
	f.at[14] |= 0xe0; // priority of the tag
	assert_int_equal(full_nodes("ran", &f, 2, "internet"), 0);
	gpdu(&f, &cases[0], 4, 9, 1, 40);
	frame_tag(&f, 0x8100, 0); // a priority tag is no VLAN
	assert_int_equal(full_nodes("ran", &f, 2, "internet"), 0);
}

static void full_nodes_for_others(void **state)
{
	static struct frame f;

	gpdu(&f, &cases[0], 4, 9, 1, 40);
	frame_append(&f, NULL, 1); // padding
	for (int i = 0; i < 2; i++)
		assert_int_equal(full_nodes("ran", &f, 2, "internet"), 2);
	// Behind IP packets of the same Ethernet header, G-PDUs are found all the same.
	gpdu(&f, &cases[0], 4, 9, 1, 40);
	kit_clear();
	uint64_t before = kit_node_packets("core-input");
	send_strays();
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("internet"), 1);
	assert_int_equal(kit_node_packets("core-input") - before, STRAYS);
}

// Of no session, by VLAN or not, where UEs are looked up and where not; as soon as a session has the address, the
// packet is its.
static void fast_for_the_routed(void **state)
{
	static struct frame f;

	for (int six = 0; six < 2; six++)
		for (int lookup = 0; lookup < 2; lookup++) {
			const char *from = lookup ? "internet" : "ran";

			ip_packet(&f, six ? FAR6 : FAR4, six ? "2001:db8:18::9" : "198.18.0.9", 40);
			link_layer(&f, from, 1);
			full_nodes(from, &f, 1, "internet"); // the first of all
			assert_int_equal(full_nodes(from, &f, 64, "internet"), 0);
		}
	frame_tag(&f, 0x8100, 0);
	assert_int_equal(full_nodes("internet", &f, 2, "internet"), 0);
	struct kit_mobile *k = upf_session(9);
	k->s.ue_ip4 = kit_address("198.18.0.9"); // of no pool
	put("s9", k);
	ip_packet(&f, FAR4, "198.18.0.9", 40);
	link_layer(&f, "internet", 1);
	assert_int_equal(full_nodes("internet", &f, 2, "ran"), 2);
	assert_int_equal(full_nodes("internet", &f, 2, "ran"), 0);
	gone("s9");
	assert_int_equal(full_nodes("internet", &f, 2, "internet"), 0);
	f.at[14 + 8] = 1;
	f.at = f.at + 14, frame_ip4_sum(&f), f.at = f.at - 14;
	uint64_t before = kit_node_packets("icmp-error");
	full_nodes("internet", &f, 1, "internet"); // time exceeded
	assert_int_equal(kit_node_packets("icmp-error") - before, 1);
}

// A plain G-PDU to a group's MAC address is no example for others and is dropped, by both ways (RFC 1122 §3.3.6).
static void none_to_groups(void **state)
{
	static struct frame f;
	uint64_t before = kit_reason("ethernet-group-unicast");

	for (uint32_t i = 0; i < RTE_DIM(cases); i++)
		for (int first = 0; first < 2; first++) {
			gpdu(&f, &cases[i], 4, 9, 1, 40);
			kit_clear();
			for (int k = 0; k < 3; k++) {
				f.at[0] = (uint8_t)((f.at[0] & 0xfe) | (k == first ? 1 : 0));
				assert_int_equal(kit_send("ran", f.at, f.length), 0);
			}
			kit_run();
			assert_int_equal(kit_count(out_of(&cases[i])), 2);
		}
	assert_int_equal(kit_reason("ethernet-group-unicast") - before, 2 * RTE_DIM(cases));
}

// Frames of a payload size that says their place in the vector.
static void in_order(const char *port, uint32_t step)
{
	for (uint32_t i = 1; i < kit_count(port); i++)
		assert_int_equal(kit_frame(port, i)->length, kit_frame(port, i - 1)->length + step);
}

static void two_endpoints(void **state)
{
	static struct frame f;

	for (int learnt = 0; learnt < 2; learnt++) {
		uint64_t before = kit_node_packets("core-input");

		kit_clear();
		for (uint32_t i = 0; i < 40; i++) {
			gpdu(&f, &cases[i % 2 ? 2 : 0], 4, 9, 1, 40 + i);
			assert_int_equal(kit_send("ran", f.at, f.length), 0);
		}
		kit_run();
		assert_int_equal(kit_count("internet"), 20);
		assert_int_equal(kit_count("homes"), 20);
		in_order("internet", 2);
		in_order("homes", 2);
		if (learnt)
			assert_int_equal(kit_node_packets("core-input") - before, 0);
	}
}

// A port that takes every frame: the example has another host's address, and so has its traffic. A frame equal in every
// byte does not match the example when it came by another port.
static void other_addresses(void **state)
{
	static const struct tunnel_case loose = {"", "10.6.0.1", "10.6.0.2", 0x103, 0, 1};
	static const uint8_t strange[6] = {2, 9, 9, 9, 9, 9};
	static struct frame f;

	gpdu(&f, &loose, 4, 9, 1, 40);
	memcpy(f.at, strange, 6);
	full_nodes("loose", &f, 1, "internet");
	assert_int_equal(full_nodes("loose", &f, 3, "internet"), 0);
	uint64_t before = kit_reason("mac-not-ours");
	gpdu(&f, &cases[0], 4, 9, 1, 40);
	kit_clear();
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
	memcpy(f.at, strange, 6);
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("internet"), 1);
	assert_int_equal(kit_reason("mac-not-ours") - before, 1);
	before = kit_reason("gtpu-not-endpoint"); // row G20
	gpdu(&f, &cases[0], 4, 9, 1, 40);
	kit_clear();
	assert_int_equal(kit_send("ran", f.at, f.length), 0);
	assert_int_equal(kit_send("loose", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("internet"), 1);
	assert_int_equal(kit_reason("gtpu-not-endpoint") - before, 1);
}

// ---- nothing is learnt for longer than a vector ---------------------------------------------------------------------

static uint64_t unknown_teids(const char *instance)
{
	uint32_t count;
	const struct api_instance_row *r = kit_rows(API_TABLE_INSTANCE, instance, sizeof(*r), &count);

	return count == 1 ? r->unknown_teid : 0;
}

struct counts {
	uint64_t not_endpoint, unknown, mobile, wireline;
};

// Counts of two G-PDUs to 10.5.0.1 without a session.
static struct counts two_for_nobody(void)
{
	static const struct tunnel_case nobody = {"", "10.5.0.1", "10.5.0.2", 0x999, 6, 1};
	static struct frame f;
	struct counts c = {kit_reason("gtpu-not-endpoint"), kit_reason("gtpu-teid-unknown"),
		kit_node_packets("session-tunnel"), kit_node_packets("session-downlink")};

	gpdu(&f, &nobody, 4, 9, 1, 40);
	for (int i = 0; i < 2; i++)
		assert_int_equal(kit_send("ran", f.at, f.length), 0);
	kit_run();
	kit_clear();
	return (struct counts){kit_reason("gtpu-not-endpoint") - c.not_endpoint,
		kit_reason("gtpu-teid-unknown") - c.unknown, kit_node_packets("session-tunnel") - c.mobile,
		kit_node_packets("session-downlink") - c.wireline};
}

static void expect_counts(uint64_t not_endpoint, uint64_t unknown, uint64_t tunnel, uint64_t downlink)
{
	struct counts c = two_for_nobody();

	assert_int_equal(c.not_endpoint, not_endpoint);
	assert_int_equal(c.unknown, unknown);
	assert_int_equal(c.mobile, tunnel);
	assert_int_equal(c.wireline, downlink);
}

static void endpoints_come_and_go(void **state)
{
	expect_counts(2, 0, 0, 0);
	kit_begin();
	kit_instance("late", "n3.6", "10.5.0.1", API_LOOKUP_NONE, NULL);
	commit();
	expect_counts(0, 2, 2, 0);
	assert_int_equal(unknown_teids("late"), 2);
	kit_begin();
	kit_delete(API_INSTANCE, "late");
	kit_instance("later", "n3.6", "10.5.0.1", API_LOOKUP_NONE, NULL);
	commit();
	expect_counts(0, 2, 2, 0);
	assert_int_equal(unknown_teids("later"), 2);
	kit_begin();
	kit_delete(API_INSTANCE, "later");
	commit();
	expect_counts(2, 0, 0, 0);
	kit_begin();
	kit_path("wire6", "10.5.0.1", "10.5.0.2");
	commit();
	expect_counts(0, 2, 0, 2);
	kit_begin(); // the endpoint's number stays, its address is no interface's any more
	put_interface("n3.6", "ran", 6, "10.5.0.7/24", NULL);
	commit();
	expect_counts(0, 0, 0, 0);
	kit_begin(); // row G20: now it is another interface's
	put_interface("n3b", "loose", 0, "10.6.0.1/24", "10.5.0.1/32");
	put_interface("n3.6", "ran", 6, "10.7.0.1/24", NULL);
	commit();
	expect_counts(2, 0, 0, 0);
	settle_fixture();
}

// ---- order ----------------------------------------------------------------------------------------------------------

// TS 29.281 §7.3.2: an End Marker is the last packet of its tunnel, also within a vector.
static void marker_behind_packets(uint64_t full)
{
	static const uint8_t marker[8] = {0x30, GTPU_END_MARKER, 0, 0, 0, 0, 3, 0};
	static struct frame f;
	uint64_t before = kit_node_packets("gtpu-input");

	kit_clear();
	ip_packet(&f, FAR4, UE4, 80);
	tunnel(&f, "10.9.0.2", "10.9.0.1", 0x300, NO_QFI, API_PDU_DL);
	link_layer(&f, "peers", 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(kit_send("peers", f.at, f.length), 0);
	frame_payload(&f, 0);
	frame_append(&f, marker, sizeof(marker));
	frame_udp(&f, 2152, 2152);
	frame_ip(&f, "10.9.0.2", "10.9.0.1", 17);
	link_layer(&f, "peers", 1);
	assert_int_equal(kit_send("peers", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("ran"), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(kit_frame("ran", i)->bytes[14 + 28 + 1], i < 3 ? GTPU_GPDU : GTPU_END_MARKER);
	assert_int_equal(kit_node_packets("gtpu-input") - before, full);
}

// By either way.
static void end_marker_is_last(void **state)
{
	struct kit_mobile k;

	kit_mobile(&k, 7, NULL, NULL);
	kit_pdr_fteid(&k, API_FROM_CORE, "10.9.0.1", 0x300, 1);
	kit_far_gtpu(&k, 1, API_FROM_ACCESS, "gnb", 0x400);
	put("bearer", &k);
	marker_behind_packets(4);
	marker_behind_packets(1);
	gone("bearer");
}

// Packets of several segments take the full nodes, and so do their session's behind them.
static void segments_in_order(void **state)
{
	static const struct tunnel_case through = {"", "10.6.0.1", "10.6.0.2", 0x105, 0, 1};
	static struct frame f;
	uint32_t length[6];

	for (int learnt = 0; learnt < 2; learnt++) {
		kit_clear();
		for (uint32_t i = 0; i < 6; i++) {
			gpdu(&f, &through, 4, NO_QFI, 1, i % 2 ? 40 + i : 6000 + i);
			length[i] = f.length;
			assert_int_equal(kit_send("loose", f.at, f.length), 0);
		}
		kit_run();
		assert_int_equal(kit_count("loose"), 6);
		for (uint32_t i = 0; i < 6; i++)
			assert_int_equal(kit_frame("loose", i)->length, length[i]);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(fast_for_the_plain),
		cmocka_unit_test(full_nodes_for_others),
		cmocka_unit_test(fast_for_the_routed),
		cmocka_unit_test(none_to_groups),
		cmocka_unit_test(two_endpoints),
		cmocka_unit_test(other_addresses),
		cmocka_unit_test(endpoints_come_and_go),
		cmocka_unit_test(segments_in_order),
		cmocka_unit_test(end_marker_is_last),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
