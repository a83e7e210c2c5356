// SPDX-License-Identifier: Apache-2.0
// A card's verdict on a fragment's UDP checksum does not hold for the reassembled packet.
#include "core/node.h"
#include "gtpu/tunnel_fixture.h"

// A card that reports good checksums for every frame.
static uint16_t find_good(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		((struct rte_mbuf *)objs[i])->ol_flags |=
			RTE_MBUF_F_RX_L4_CKSUM_GOOD | RTE_MBUF_F_RX_OUTER_L4_CKSUM_GOOD;
	rte_node_next_stream_move(graph, node, 0);
	return n;
}

static struct rte_node_register card_node = {
	.name = "test-card", .process = find_good, .nb_edges = 1, .next_nodes = {"@input-core"}};
NODE_STAGE(card_node, "input-core", .before = "flow-input")

static int setup(void **state)
{
	start_fixture(NULL);
	return 0;
}

// The G-PDU in two fragments, whose UDP checksum is off by `wrong`.
static void send_fragments(uint8_t wrong)
{
	static struct frame f, part;
	const uint32_t cut = 56; // behind all headers

	gpdu(&f, &cases[0], 4, 9, 1, 41);
	const uint8_t *ip = f.at + 14;
	uint8_t *udp = f.at + 34;
	uint32_t n = f.length - 34;
	uint16_t sum = checksum_finish(checksum_add(checksum_pseudo(4, ip + 12, ip + 16, 17, n), udp, n));
	memcpy(udp + 6, &sum, 2);
	udp[6] ^= wrong;
	kit_clear();
	for (uint32_t at = 0; at < n; at = at == 0 ? cut : n) {
		frame_payload(&part, 0);
		frame_append(&part, udp + at, at == 0 ? cut : n - cut);
		frame_ip(&part, cases[0].peer, cases[0].local, 17);
		frame_fragment(&part, (uint16_t)(at / 8), at == 0);
		frame_ethernet(&part, mac_ours[0], mac_gnb, 0x0800);
		assert_int_equal(kit_send("ran", part.at, part.length), 0);
	}
	kit_run();
}

static void the_whole_is_summed(void **state)
{
	uint64_t before = kit_reason("gtpu-udp-checksum");

	send_fragments(0);
	assert_int_equal(kit_count("internet"), 1);
	send_fragments(1);
	assert_int_equal(kit_count("internet"), 0);
	assert_int_equal(kit_reason("gtpu-udp-checksum") - before, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_whole_is_summed)};

	return cmocka_run_group_tests(tests, setup, NULL);
}
