// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.h"
#include "wire/tcp.h"
#include "wire/wire_test.h"

#define MOST 1400

// A SYN with these options, padded with 0 to whole words, and the checksum of a pseudo-header of 0.
static uint32_t make_syn(uint8_t *tcp, const void *options, uint32_t length)
{
	uint32_t header = TCP_HEADER + (length + 3) / 4 * 4;

	memset(tcp, 0, header);
	store16(tcp, 40000);
	store16(tcp + 2, 443);
	tcp[12] = (uint8_t)(header / 4 << 4);
	tcp[13] = TCP_SYN;
	memcpy(tcp + TCP_HEADER, options, length);
	uint16_t sum = checksum_finish(checksum_add(0, tcp, header));
	memcpy(tcp + 16, &sum, 2);
	return header;
}

#define M(value) 2, 4, (value) >> 8, (value)&255
#define O(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

static void options(void **state)
{
	static const struct {
		uint8_t before[40];
		uint32_t length;
		uint8_t after[40];
		uint32_t same;
		unsigned done;
	} cases[] = {
		{O(M(1460)), O(M(MOST)), TCP_MSS_LOWERED},
		{O(M(1400)), O(M(1400)), 0},
		{O(M(536)), O(M(536)), 0}, // never raised
		{O(M(0)), O(M(0)), 0},
		{O(M(65535)), O(M(MOST)), TCP_MSS_LOWERED},
		{O(1, M(1460)), O(1, M(MOST)), TCP_MSS_LOWERED}, // across two words
		{O(1, 1, M(1460), 1, 3, 3, 7), O(1, 1, M(MOST), 1, 3, 3, 7), TCP_MSS_LOWERED},
		{O(4, 2, 3, 3, 7, M(9000)), O(4, 2, 3, 3, 7, M(MOST)), TCP_MSS_LOWERED},
		{O(M(1460), M(1500)), O(M(MOST), M(MOST)), TCP_MSS_LOWERED}, // whichever its receiver takes
		{O(8, 10, 0, 0, 0, 0, 0, 0, 0, 0), O(8, 10, 0, 0, 0, 0, 0, 0, 0, 0), 0},
		{O(0, M(1460)), O(0, M(1460)), 0}, // behind the end
		{O(2, 3, 1, 1), O(2, 3, 1, 1), TCP_MSS_MALFORMED},
		{O(2, 0, 5, 180), O(2, 0, 5, 180), TCP_MSS_MALFORMED},
		{O(2, 1, 5, 180), O(2, 1, 5, 180), TCP_MSS_MALFORMED},
		{O(2, 5, 5, 180, 0), O(2, 5, 5, 180, 0), TCP_MSS_MALFORMED},
		{O(1, 1, 1, 2), O(1, 1, 1, 2), TCP_MSS_MALFORMED}, // the header ends behind the kind,
		{O(1, 1, 2, 4), O(1, 1, 2, 4), TCP_MSS_MALFORMED}, // behind the length,
		{O(1, 2, 4, 5), O(1, 2, 4, 5), TCP_MSS_MALFORMED}, // within the value
		{O(3, 0, M(1460)), O(3, 0, M(1460)), TCP_MSS_MALFORMED},
		{O(3, 255, M(1460)), O(3, 255, M(1460)), TCP_MSS_MALFORMED},
		{O(M(1460), 3, 1), O(M(MOST), 3, 1), TCP_MSS_LOWERED | TCP_MSS_MALFORMED},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		uint8_t tcp[60], want[60];
		uint32_t header = make_syn(tcp, cases[i].before, cases[i].length);

		make_syn(want, cases[i].after, cases[i].same);
		uint8_t *exact = exact_copy(tcp, header);
		if (tcp_clamp_mss(exact, header, MOST) != cases[i].done || memcmp(exact, want, header) != 0)
			fail_msg("case %zu", i);
		free(exact);
	}
}

// The header is longer than the packet, or shorter than any.
static void headers(void **state)
{
	for (uint32_t words = 0; words < 16; words++)
		for (uint32_t readable = TCP_HEADER; readable <= 60; readable++) {
			uint8_t tcp[60] = {0};

			make_syn(tcp, (uint8_t[]){M(1460)}, 4);
			tcp[12] = (uint8_t)(words << 4);
			uint8_t *exact = exact_copy(tcp, readable);
			unsigned done = tcp_clamp_mss(exact, readable, MOST);
			int good = words >= 5 && words * 4 <= readable;
			assert_int_equal(done, !good ? TCP_MSS_MALFORMED : words == 5 ? 0 : TCP_MSS_LOWERED);
			free(exact);
		}
}

static void hostile(void **state)
{
	static const uint8_t seed[] = {1, M(1460), 4, 2, 3, 3, 7, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, M(1500)};
	uint8_t tcp[60];
	uint32_t header = make_syn(tcp, seed, sizeof(seed));

	mutate(check_tcp, tcp, header);
}

int tcp_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options), cmocka_unit_test(headers), cmocka_unit_test(hostile)};

	return cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
}
