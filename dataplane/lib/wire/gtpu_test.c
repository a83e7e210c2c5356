// SPDX-License-Identifier: Apache-2.0
#include "wire/gtpu.h"
#include "wire/wire_test.h"

static void known_packets(void **state)
{
	struct gtpu_info g;

	assert_int_equal(gtpu_parse(gtpu_plain, sizeof(gtpu_plain), sizeof(gtpu_plain), &g), GTPU_OK);
	assert_int_equal(g.teid, 0x01020304);
	assert_int_equal(g.message, GTPU_GPDU);
	assert_int_equal(g.header_length, 8);
	assert_int_equal(g.qfi, GTPU_NO_QFI);
	assert_false(g.has_sequence);

	assert_int_equal(gtpu_parse(gtpu_ul, sizeof(gtpu_ul), sizeof(gtpu_ul), &g), GTPU_OK);
	assert_int_equal(g.teid, 0xdeadbeef);
	assert_int_equal(g.header_length, 16);
	assert_int_equal(g.qfi, 9);
	assert_int_equal(g.pdu_type, GTPU_PDU_UL);

	assert_int_equal(gtpu_parse(gtpu_dl, sizeof(gtpu_dl), sizeof(gtpu_dl), &g), GTPU_OK);
	assert_int_equal(g.qfi, 5); // without the reflective QoS bit
	assert_int_equal(g.pdu_type, GTPU_PDU_DL);
	assert_int_equal(g.header_length, 16);

	assert_int_equal(gtpu_parse(gtpu_dl_ppi, sizeof(gtpu_dl_ppi), sizeof(gtpu_dl_ppi), &g), GTPU_OK);
	assert_int_equal(g.qfi, 5);
	assert_int_equal(g.header_length, 20);

	assert_int_equal(
		gtpu_parse(gtpu_echo_request, sizeof(gtpu_echo_request), sizeof(gtpu_echo_request), &g), GTPU_OK);
	assert_int_equal(g.message, GTPU_ECHO_REQUEST);
	assert_true(g.has_sequence);
	assert_int_equal(g.sequence, 0x4242);
	assert_int_equal(g.header_length, 12);
}

static void encoders(void **state)
{
	static const uint8_t address4[] = {192, 0, 2, 1}, address6[16] = {0x20, 1, 0x0d, 0xb8, [15] = 9};
	uint8_t to[GTPU_MESSAGE_MAX];
	struct gtpu_info g;
	struct gtpu_ies ies;
	unsigned n;

	assert_int_equal(gtpu_put_gpdu(to, 0x01020304, GTPU_NO_QFI, 0, sizeof(packet_udp4)), 8);
	assert_memory_equal(to, gtpu_plain, 8);
	assert_int_equal(gtpu_put_gpdu(to, 0xdeadbeef, 9, GTPU_PDU_UL, sizeof(packet_udp4)), 16);
	assert_memory_equal(to, gtpu_ul, 16);
	assert_int_equal(gtpu_put_echo_request(to, 0x4242), sizeof(gtpu_echo_request));
	assert_memory_equal(to, gtpu_echo_request, sizeof(gtpu_echo_request));
	assert_int_equal(gtpu_put_echo_response(to, 0x4242), sizeof(gtpu_echo_response));
	assert_memory_equal(to, gtpu_echo_response, sizeof(gtpu_echo_response));
	assert_int_equal(gtpu_put_error_indication(to, 0xcafe0001, 4, address4), sizeof(gtpu_error4));
	assert_memory_equal(to, gtpu_error4, sizeof(gtpu_error4));
	assert_int_equal(gtpu_put_end_marker(to, 0x99, GTPU_NO_QFI, 0), sizeof(gtpu_end_marker));
	assert_memory_equal(to, gtpu_end_marker, sizeof(gtpu_end_marker));

	static const uint8_t supported[] = {0x32, 31, 0, 8, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 141, 2, 0x40, 0x85};
	n = gtpu_put_supported_extensions(to, 0x1234);
	assert_int_equal(n, sizeof(supported));
	assert_memory_equal(to, supported, sizeof(supported));
	assert_int_equal(gtpu_parse(to, n, n, &g), GTPU_OK);
	assert_int_equal(gtpu_ies_parse(to + g.header_length, n - g.header_length, &ies), GTPU_OK);

	// Row G17: TEID 0 in the header, the real one in the IE.
	n = gtpu_put_error_indication(to, 77, 6, address6);
	assert_true(n <= GTPU_MESSAGE_MAX);
	assert_int_equal(gtpu_parse(to, n, n, &g), GTPU_OK);
	assert_int_equal(g.message, GTPU_ERROR_INDICATION);
	assert_int_equal(g.teid, 0);
	assert_int_equal(gtpu_ies_parse(to + g.header_length, n - g.header_length, &ies), GTPU_OK);
	assert_true(ies.has_teid);
	assert_int_equal(ies.teid, 77);
	assert_int_equal(ies.family, 6);
	assert_memory_equal(ies.address, address6, 16);

	n = gtpu_put_end_marker(to, 5, 1, GTPU_PDU_DL);
	assert_int_equal(gtpu_parse(to, n, n, &g), GTPU_OK);
	assert_int_equal(g.message, GTPU_END_MARKER);
	assert_int_equal(g.qfi, 1);
}

// Rows G1 to G5.
static void hostile(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[24];
		uint8_t size;
		enum gtpu_status status;
	} row[] = {
		{"G1: extension length 0", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0}, 16,
			GTPU_EXTENSION},
		{"G2: chain past the end", {0x36, 255, 0, 0x34, 0, 0, 0, 1, 0, 0, 0, 255}, 12, GTPU_LENGTH},
		{"G2: the same with a fitting length", {0x36, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 255}, 12, GTPU_EXTENSION},
		{"G2: extension of 1020 bytes", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 255, 0, 0, 0}, 16,
			GTPU_EXTENSION},
		{"G2: next type without a header", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 1, 0x85}, 16,
			GTPU_EXTENSION},
		{"G4: length field one more", {0x30, 255, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_LENGTH},
		{"G4: length field one less", {0x30, 255, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_LENGTH},
		{"G4: version 0", {0x10, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_VERSION},
		{"G4: version 2", {0x50, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_VERSION},
		{"G4: GTP'", {0x20, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_VERSION},
		{"G4: 7 bytes", {0x30, 255, 0, 0, 0, 0, 0}, 7, GTPU_SHORT},
		{"G4: S without the field", {0x32, 255, 0, 0, 0, 0, 0, 1}, 8, GTPU_LENGTH},
		{"spare bit is ignored", {0x38, 255, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}, 12, GTPU_OK},
		{"G9: nothing inside", {0x30, 255, 0, 0, 0, 0, 0, 1}, 8, GTPU_OK},
		{"G5: container type 2", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x20, 1, 0}, 16,
			GTPU_EXTENSION},
		{"G5: paging policy without room", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0x81, 0}, 16,
			GTPU_EXTENSION},
		{"G5: time stamps without room", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x18, 1, 0}, 16,
			GTPU_EXTENSION},
		{"G5: two containers", {0x34, 255, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 1, 0x85, 1, 0x10, 2, 0},
			20, GTPU_EXTENSION},
		{"unknown, required", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0xc1, 1, 0, 0, 0}, 16, GTPU_REQUIRED},
		{"PDCP number", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0xc0, 1, 0, 0, 0}, 16, GTPU_OK},
		{"unknown, an end point's", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x84, 1, 0, 0, 0}, 16, GTPU_OK},
		{"unknown, not required", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x01, 1, 0, 0, 0}, 16, GTPU_OK},
		{"UDP port", {0x34, 255, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0x40, 1, 8, 0x68, 0}, 16, GTPU_OK},
		{"UDP port, two units", {0x34, 255, 0, 12, 0, 0, 0, 1, 0, 0, 0, 0x40, 2, 8, 0x68, 0, 0, 0, 0, 0}, 20,
			GTPU_EXTENSION},
	};

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(row[i].bytes, row[i].size);
		struct gtpu_info g;
		enum gtpu_status status = gtpu_parse(p, row[i].size, row[i].size, &g);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		free(p);
	}
}

// Row G4: every combination of E, S and PN. The next-type byte counts with E only (§5.1).
static void flag_combinations(void **state)
{
	uint8_t p[] = {0x30, 255, 0, 12, 0, 0, 0, 1, 0x12, 0x34, 0x56, 0x85, 1, 0x10, 7, 0, 0x45, 0, 0, 0};

	for (unsigned flags = 0; flags < 8; flags++) {
		struct gtpu_info g;
		p[0] = 0x30 | flags;
		assert_int_equal(gtpu_parse(p, sizeof(p), sizeof(p), &g), GTPU_OK);
		assert_int_equal(g.header_length, flags == 0 ? 8 : flags & 4 ? 16 : 12);
		assert_int_equal(g.qfi, flags & 4 ? 7 : GTPU_NO_QFI);
		assert_int_equal(g.has_sequence, !!(flags & 2));
		assert_int_equal(g.sequence, flags & 2 ? 0x1234 : 0);
	}
}

// Row G3: `count` extension headers that need not be understood.
static enum gtpu_status chain(unsigned count)
{
	uint8_t p[12 + 4 * 200] = {0x34, 255};
	size_t size = 12 + 4 * count;
	struct gtpu_info g;

	store16(p + 2, size - 8);
	p[11] = count ? 1 : 0;
	for (unsigned i = 0; i < count; i++) {
		p[12 + 4 * i] = 1;
		p[15 + 4 * i] = i + 1 < count ? 1 : 0;
	}
	uint8_t *exact = exact_copy(p, size);
	enum gtpu_status status = gtpu_parse(exact, size, size, &g);
	free(exact);
	return status;
}

static void extension_chains(void **state)
{
	for (unsigned n = 0; n <= GTPU_MAX_EXTENSIONS; n++)
		assert_int_equal(chain(n), GTPU_OK);
	assert_int_equal(chain(GTPU_MAX_EXTENSIONS + 1), GTPU_EXTENSION);
	assert_int_equal(chain(200), GTPU_EXTENSION);
}

static void elements(void **state)
{
	static const struct {
		const char *name;
		uint8_t bytes[12];
		uint8_t size;
		enum gtpu_status status;
	} row[] = {
		{"none", {0}, 0, GTPU_OK},
		{"recovery", {14, 3}, 2, GTPU_OK},
		{"recovery cut", {14}, 1, GTPU_SHORT},
		{"TEID cut", {16, 1, 2, 3}, 4, GTPU_SHORT},
		{"address of 5 bytes", {133, 0, 5, 1, 2, 3, 4, 5}, 8, GTPU_LENGTH},
		{"address past the end", {133, 0, 16, 1, 2, 3, 4}, 7, GTPU_SHORT},
		{"length cut", {133, 0}, 2, GTPU_SHORT},
		{"private extension", {255, 0, 2, 1, 2, 14, 9}, 7, GTPU_OK},
		{"type list with a one-byte length", {141, 2, 0x85, 0x40, 14, 9}, 6, GTPU_OK},
		{"type list past the end", {141, 3, 0x85, 0x40}, 4, GTPU_SHORT},
		{"unknown type and value", {99, 1, 2}, 3, GTPU_EXTENSION},
	};
	uint8_t many[64];
	struct gtpu_ies ies;

	for (size_t i = 0; i < COUNT(row); i++) {
		uint8_t *p = exact_copy(row[i].bytes, row[i].size);
		enum gtpu_status status = gtpu_ies_parse(p, row[i].size, &ies);
		if (status != row[i].status)
			fail_msg("%s: status %d", row[i].name, status);
		free(p);
	}
	memset(many, 14, sizeof(many));
	assert_int_equal(gtpu_ies_parse(many, 32, &ies), GTPU_OK);
	assert_int_equal(gtpu_ies_parse(many, 64, &ies), GTPU_LENGTH);
}

static void mutations(void **state)
{
	mutate(check_gtpu, gtpu_plain, 16);
	mutate(check_gtpu, gtpu_ul, 20);
	mutate(check_gtpu, gtpu_dl, 20);
	mutate(check_gtpu, gtpu_dl_ppi, 24);
	mutate(check_gtpu, gtpu_echo_response, sizeof(gtpu_echo_response));
	mutate(check_gtpu, gtpu_error4, sizeof(gtpu_error4));
}

int gtpu_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_packets), cmocka_unit_test(encoders),
		cmocka_unit_test(hostile), cmocka_unit_test(flag_combinations), cmocka_unit_test(extension_chains),
		cmocka_unit_test(elements), cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("gtpu", tests, NULL, NULL);
}
