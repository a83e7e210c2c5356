// SPDX-License-Identifier: Apache-2.0
#include "wire/eth.h"
#include "wire/wire_test.h"

static void known_frames(void **state)
{
	struct eth_info e;

	assert_int_equal(eth_parse(frame_plain, sizeof(frame_plain), &e), ETH_OK);
	assert_int_equal(e.tags, 0);
	assert_int_equal(e.length, 14);
	assert_int_equal(e.ethertype, ETH_TYPE_IP4);

	assert_int_equal(eth_parse(frame_qinq, sizeof(frame_qinq), &e), ETH_OK);
	assert_int_equal(e.tags, 2);
	assert_int_equal(e.length, 22);
	assert_int_equal(e.vlan[0], 100); // without the priority bits
	assert_int_equal(e.vlan[1], 2001);
	assert_int_equal(e.tpid[0], 0x88a8);
	assert_int_equal(e.tpid[1], 0x8100);
	assert_int_equal(e.ethertype, ETH_TYPE_IP4);

	assert_int_equal(eth_parse(frame_qinq_8100, sizeof(frame_qinq_8100), &e), ETH_OK);
	assert_int_equal(e.tpid[0], 0x8100);
	assert_int_equal(e.vlan[0], 100);
	assert_int_equal(e.vlan[1], 2001);
	assert_int_equal(e.ethertype, ETH_TYPE_IP6);

	assert_int_equal(eth_parse(frame_pppoe, sizeof(frame_pppoe), &e), ETH_OK);
	assert_int_equal(e.ethertype, ETH_TYPE_PPPOE_SESSION);
}

static void tags(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[30];
		uint8_t size;
		enum eth_status status;
		uint8_t tags;
		uint16_t outer, inner;
	} row[] = {
		{"13 bytes", {0}, 13, ETH_SHORT, 0, 0, 0},
		{"untagged", {[12] = 0x08, 0x00}, 14, ETH_OK, 0, 0, 0},
		{"tag cut", {[12] = 0x81, 0x00, 0, 1, 8}, 17, ETH_SHORT, 0, 0, 0},
		{"priority tag", {[12] = 0x81, 0x00, 0xe0, 0, 0x08, 0x00}, 18, ETH_OK, 1, 0, 0},
		{"old QinQ", {[12] = 0x91, 0x00, 0, 5, 0x81, 0x00, 0x1f, 0xff, 0x08, 0x00}, 22, ETH_OK, 2, 5, 0xfff},
		{"second tag cut", {[12] = 0x88, 0xa8, 0, 5, 0x81, 0x00, 0}, 21, ETH_SHORT, 0, 0, 0},
		{"three tags", {[12] = 0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x81, 0x00, 0, 7, 8, 0}, 26, ETH_TAGS, 0, 0,
			0},
		{"three tags, third cut", {[12] = 0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x81, 0x00}, 22, ETH_TAGS, 0, 0,
			0},
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(row[i].bytes, row[i].size);
		struct eth_info e;
		enum eth_status status = eth_parse(p, row[i].size, &e);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		if (status == ETH_OK) {
			assert_int_equal(e.tags, row[i].tags);
			assert_int_equal(e.vlan[0], row[i].outer);
			assert_int_equal(e.vlan[1], row[i].inner);
		}
		free(p);
	}
}

static void mutations(void **state)
{
	mutate(check_eth, frame_plain, sizeof(frame_plain));
	mutate(check_eth, frame_qinq, sizeof(frame_qinq));
}

int eth_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_frames), cmocka_unit_test(tags), cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("eth", tests, NULL, NULL);
}
