// SPDX-License-Identifier: Apache-2.0
// Translation between two prefixes: examples, and random pairs against RFC 6296.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "nptv6/translate.h"
#include <arpa/inet.h>

static void address(const char *text, uint8_t to[16])
{
	assert_int_equal(inet_pton(AF_INET6, text, to), 1);
}

static struct nptv6_pair pair(const char *inside, const char *outside, uint32_t length)
{
	struct nptv6_pair p;
	uint8_t a[16], b[16];

	address(inside, a);
	address(outside, b);
	nptv6_pair_set(&p, a, b, length);
	return p;
}

static void becomes(const struct nptv6_pair *p, enum nptv6_direction d, const char *from, const char *to)
{
	uint8_t a[16], want[16];

	address(from, a);
	address(to, want);
	assert_int_equal(nptv6_find(p, 1, d, a), 0);
	assert_int_equal(nptv6_map(p, d, a), 1);
	assert_memory_equal(a, want, 16);
}

static void each_way(const struct nptv6_pair *p, const char *inside, const char *outside)
{
	becomes(p, NPTV6_OUT, inside, outside);
	becomes(p, NPTV6_IN, outside, inside);
}

static void has_none(const struct nptv6_pair *p, enum nptv6_direction d, const char *text)
{
	uint8_t a[16], before[16];

	address(text, a);
	memcpy(before, a, 16);
	assert_int_equal(nptv6_find(p, 1, d, a), 0);
	assert_int_equal(nptv6_map(p, d, a), 0);
	assert_memory_equal(a, before, 16);
}

// RFC 6296 §3.6, with erratum 3033.
static void example_of_the_rfc(void **state)
{
	struct nptv6_pair p = pair("fd01:203:405::", "2001:db8:1::", 48);

	each_way(&p, "fd01:203:405:1::1234", "2001:db8:1:d550::1234");
	each_way(&p, "fd01:203:405::", "2001:db8:1:d54f::");
	has_none(&p, NPTV6_OUT, "fd01:203:405:ffff::1234");
	has_none(&p, NPTV6_IN, "2001:db8:1:ffff::1234");
	each_way(&p, "fd01:203:405:2ab0::1", "2001:db8:1::1"); // 0xffff is written as 0
}

// §3.5, and the example of Linux' ip6t_NPT.
static void longer_prefixes(void **state)
{
	struct nptv6_pair p = pair("1:2:3:4::", "5:6:7:8::", 64);

	each_way(&p, "1:2:3:4::1", "5:6:7:8:ffef::1");
	each_way(&p, "1:2:3:4:ffff::1", "5:6:7:8:ffff:ffef:0:1");
	each_way(&p, "1:2:3:4:ffff:ffff:ffff:fffe", "5:6:7:8:ffff:ffff:ffff:ffee");
	each_way(&p, "1:2:3:4::", "5:6:7:8:ffef::"); // erratum 8757
	has_none(&p, NPTV6_OUT, "1:2:3:4:ffff:ffff:ffff:ffff");
	has_none(&p, NPTV6_IN, "5:6:7:8:ffff:ffff:ffff:ffff");
	p = pair("fd00:0:0:a0::", "2001:db8:0:5b0::", 60); // bits behind the prefix stay
	each_way(&p, "fd00:0:0:af:1::1", "2001:db8:0:5bf:ca38::1");
	p = pair("fd00::", "fd00::", 48); // nothing to do
	each_way(&p, "fd00::1", "fd00::1");
}

static void prefixes_are_told_apart(void **state)
{
	struct nptv6_pair p[2] = {pair("fd00:0:0:10::", "2001:db8:0:10::", 60), pair("fd00:1::", "2001:db8:1::", 48)};
	uint8_t a[16];

	address("fd00:0:0:1f::1", a);
	assert_int_equal(nptv6_find(p, 2, NPTV6_OUT, a), 0);
	assert_int_equal(nptv6_find(p, 2, NPTV6_IN, a), -1);
	address("fd00:0:0:20::1", a);
	assert_int_equal(nptv6_find(p, 2, NPTV6_OUT, a), -1);
	address("2001:db8:1:ffff::1", a);
	assert_int_equal(nptv6_find(p, 2, NPTV6_IN, a), 1);
	assert_int_equal(nptv6_find(p, 1, NPTV6_IN, a), -1);
}

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static void draw_bytes(uint8_t *to, uint32_t n)
{
	for (uint32_t i = 0; i < n; i += 2)
		store16(to + i, (uint16_t)(draw(3) ? draw(65536) : draw(2) ? 0xffff : draw(2) ? 0 : 0xfffe));
}

static void cut(uint8_t *prefix, uint32_t bits)
{
	for (uint32_t i = bits; i < 128; i++)
		prefix[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
}

static uint32_t words(const uint8_t *a)
{
	uint32_t sum = 0;

	for (int i = 0; i < 16; i += 2)
		sum += load16(a + i);
	return sum % 0xffff;
}

static int has_room(const uint8_t *a, uint32_t length)
{
	if (length <= 48)
		return load16(a + 6) != 0xffff;
	return load16(a + 8) != 0xffff || load16(a + 10) != 0xffff || load16(a + 12) != 0xffff ||
	       load16(a + 14) != 0xffff;
}

static void is_neutral_and_its_own_inverse(void **state)
{
	for (int round = 0; round < 1000000; round++) {
		uint8_t prefix[2][16], a[16], b[16];
		uint32_t length = 16 + draw(49);
		struct nptv6_pair p;

		for (int i = 0; i < 2; i++) {
			draw_bytes(prefix[i], 16);
			cut(prefix[i], length);
		}
		nptv6_pair_set(&p, prefix[0], prefix[1], length);
		int d = (int)draw(2);
		draw_bytes(a, 16);
		for (uint32_t i = 0; i < length; i++)
			a[i / 8] = (uint8_t)((a[i / 8] & ~(0x80 >> i % 8)) | (prefix[d][i / 8] & (0x80 >> i % 8)));
		memcpy(b, a, 16);
		assert_int_equal(nptv6_find(&p, 1, d, a), 0);
		assert_int_equal(nptv6_map(&p, d, b), has_room(a, length));
		if (!has_room(a, length)) {
			assert_memory_equal(a, b, 16);
			continue;
		}
		assert_int_equal(words(a), words(b));
		assert_int_equal(nptv6_find(&p, 1, (enum nptv6_direction) !d, b), 0);
		if (length <= 48)
			assert_memory_equal(a + 8, b + 8, 8); // §3.4: interface identifiers stay
		assert_int_equal(nptv6_map(&p, (enum nptv6_direction) !d, b), 1);
		assert_memory_equal(a, b, 16);
	}
}

static void quoted_packets(void **state)
{
	uint8_t icmp[48] = {1};

	icmp[8] = 0x60;
	assert_ptr_equal(nptv6_quoted(icmp, 48, NPTV6_OUT), icmp + 32);
	assert_ptr_equal(nptv6_quoted(icmp, 48, NPTV6_IN), icmp + 16);
	assert_null(nptv6_quoted(icmp, 47, NPTV6_IN));
	icmp[8] = 0x40;
	assert_null(nptv6_quoted(icmp, 48, NPTV6_IN));
	icmp[8] = 0x60;
	icmp[0] = 128; // echo
	assert_null(nptv6_quoted(icmp, 48, NPTV6_IN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_of_the_rfc),
		cmocka_unit_test(longer_prefixes),
		cmocka_unit_test(prefixes_are_told_apart),
		cmocka_unit_test(is_neutral_and_its_own_inverse),
		cmocka_unit_test(quoted_packets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
