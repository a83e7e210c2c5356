// SPDX-License-Identifier: Apache-2.0
#include "wire/pppoe.h"
#include "wire/wire_test.h"

static void known_session(void **state)
{
	struct pppoe_info s;
	uint8_t to[PPPOE_HEADER];

	assert_int_equal(pppoe_session_parse(frame_pppoe + 22, sizeof(frame_pppoe) - 22, sizeof(frame_pppoe) - 22, &s),
		PPPOE_OK);
	assert_int_equal(s.session, 0x1234);
	assert_int_equal(s.protocol, PPP_IP4);
	assert_int_equal(s.payload, sizeof(packet_udp4));
	pppoe_put_session(to, 0x1234, PPP_IP4, sizeof(packet_udp4));
	assert_memory_equal(to, frame_pppoe + 22, PPPOE_HEADER);

	assert_int_equal(pppoe_session_parse(pppoe_ip6, sizeof(pppoe_ip6), sizeof(pppoe_ip6), &s), PPPOE_OK);
	assert_int_equal(s.protocol, PPP_IP6);
	assert_int_equal(s.payload, sizeof(packet_tcp6));
}

static void session_lengths(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[10];
		uint8_t size;
		enum pppoe_status status;
	} row[] = {
		{"7 bytes", {0x11, 0, 0, 1, 0, 1, 0}, 7, PPPOE_SHORT},
		{"no payload", {0x11, 0, 0, 1, 0, 2, 0, 0x21}, 8, PPPOE_OK},
		{"padded", {0x11, 0, 0, 1, 0, 2, 0, 0x21, 0xee, 0xee}, 10, PPPOE_OK},
		{"length 1", {0x11, 0, 0, 1, 0, 1, 0, 0x21}, 8, PPPOE_LENGTH},
		{"length 0", {0x11, 0, 0, 1, 0, 0, 0, 0x21}, 8, PPPOE_LENGTH},
		{"past the frame", {0x11, 0, 0, 1, 0, 3, 0, 0x21}, 8, PPPOE_LENGTH},
		{"far past the frame", {0x11, 0, 0, 1, 0xff, 0xff, 0, 0x21}, 8, PPPOE_LENGTH},
		{"version 2", {0x21, 0, 0, 1, 0, 2, 0, 0x21}, 8, PPPOE_VERSION},
		{"type 2", {0x12, 0, 0, 1, 0, 2, 0, 0x21}, 8, PPPOE_VERSION},
		{"code of discovery", {0x11, 9, 0, 1, 0, 2, 0, 0x21}, 8, PPPOE_VERSION},
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(row[i].bytes, row[i].size);
		struct pppoe_info s;
		enum pppoe_status status = pppoe_session_parse(p, row[i].size, row[i].size, &s);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		free(p);
	}
}

// Row B1 of the hostile inputs.
static void discovery(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[16];
		uint8_t size;
		enum pppoe_status status;
	} row[] = {
		{"PADI, empty service name", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0}, 10, PPPOE_OK},
		{"padded", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0, 0, 0}, 14, PPPOE_OK},
		{"PADI without tags", {0x11, 9, 0, 0, 0, 0}, 6, PPPOE_TAG},
		{"PADR without tags", {0x11, 0x19, 0, 0, 0, 0}, 6, PPPOE_TAG},
		{"PADT without tags", {0x11, 0xa7, 0, 1, 0, 0}, 6, PPPOE_OK},
		{"tag past payload", {0x11, 9, 0, 0, 0, 4, 1, 1, 0, 1, 0xaa}, 11, PPPOE_TAG},
		{"tag length 65535", {0x11, 9, 0, 0, 0, 4, 1, 1, 0xff, 0xff}, 10, PPPOE_TAG},
		{"half a tag", {0x11, 9, 0, 0, 0, 3, 1, 1, 0}, 9, PPPOE_TAG},
		{"payload past frame", {0x11, 9, 0, 0, 0, 5, 1, 1, 0, 0}, 10, PPPOE_LENGTH},
		{"payload 65535", {0x11, 9, 0, 0, 0xff, 0xff, 1, 1, 0, 0}, 10, PPPOE_LENGTH},
		{"unknown code", {0x11, 0x55, 0, 0, 0, 0}, 6, PPPOE_VERSION},
		{"version 0", {0x01, 9, 0, 0, 0, 0}, 6, PPPOE_VERSION},
		{"5 bytes", {0x11, 9, 0, 0, 0}, 5, PPPOE_SHORT},
		{"junk behind the end of the list", {0x11, 9, 0, 0, 0, 7, 0, 0, 0, 0, 0xff, 0xff, 0xff}, 13, PPPOE_OK},
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(row[i].bytes, row[i].size);
		enum pppoe_status status = pppoe_discovery_check(p, row[i].size, row[i].size);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		free(p);
	}
	assert_int_equal(pppoe_discovery_check(padi, sizeof(padi), sizeof(padi)), PPPOE_OK);
}

static void hundred_tags(void **state)
{
	uint8_t p[6 + 400] = {0x11, 9, 0, 0};

	for (int i = 0; i < 100; i++)
		store16(p + 6 + 4 * i, 0x0101);
	store16(p + 4, 400);
	assert_int_equal(pppoe_discovery_check(p, sizeof(p), sizeof(p)), PPPOE_TAG);
	store16(p + 4, 4 * PPPOE_MAX_TAGS);
	assert_int_equal(pppoe_discovery_check(p, sizeof(p), sizeof(p)), PPPOE_OK);
}

static void mutations(void **state)
{
	mutate(check_pppoe, pppoe_ip6, sizeof(pppoe_ip6));
	mutate(check_pppoe, padi, sizeof(padi));
}

int pppoe_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_session), cmocka_unit_test(session_lengths),
		cmocka_unit_test(discovery), cmocka_unit_test(hundred_tags), cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("pppoe", tests, NULL, NULL);
}
