// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.h"
#include "wire/ip.h"
#include "wire/wire_test.h"

// RFC 1071 as it is written, byte pair by byte pair.
static uint16_t slow(const uint8_t *p, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static uint64_t random_next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void against_the_slow_one(void **state)
{
	uint64_t s = 1234567;
	uint8_t p[1600];

	for (int round = 0; round < 2000; round++) {
		size_t n = random_next(&s) % sizeof(p);
		for (size_t i = 0; i < n; i++)
			p[i] = round % 3 ? random_next(&s) >> 32 : 0xff;
		uint8_t *exact = exact_copy(p, n);
		assert_int_equal(__builtin_bswap16(checksum_finish(checksum_add(0, exact, n))), slow(exact, n));
		// In two pieces, the first of even length.
		size_t cut = random_next(&s) % (n / 2 + 1) * 2;
		uint64_t sum = checksum_add(checksum_add(0, exact, cut), exact + cut, n - cut);
		assert_int_equal(__builtin_bswap16(checksum_finish(sum)), slow(exact, n));
		free(exact);
	}
}

static void header(void **state)
{
	uint8_t p[sizeof(packet_udp4)];

	memcpy(p, packet_udp4, sizeof(p));
	assert_true(ip4_checksum_ok(p));
	memset(p + 10, 0xee, 2);
	assert_false(ip4_checksum_ok(p));
	ip4_checksum_set(p);
	assert_memory_equal(p, packet_udp4, sizeof(p));
}

static void updates(void **state)
{
	uint64_t s = 99;
	uint8_t p[20], fresh[20];

	for (int round = 0; round < 20000; round++) {
		for (int i = 0; i < 20; i++)
			p[i] = round % 5 ? random_next(&s) >> 24 : 0;
		p[0] = 0x45;
		p[8] |= 1;
		ip4_checksum_set(p);
		uint32_t from, to = (uint32_t)random_next(&s);
		memcpy(&from, p + 12, 4);
		checksum_update32(p + 10, from, to);
		memcpy(p + 12, &to, 4);
		ip4_decrement_ttl(p);
		memcpy(fresh, p, 20);
		ip4_checksum_set(fresh);
		assert_memory_equal(p, fresh, 20);
	}
}

static void pseudo_header(void **state)
{
	struct ip_info i;

	assert_int_equal(ip_parse(packet_tcp6, sizeof(packet_tcp6), sizeof(packet_tcp6), &i), IP_OK);
	uint64_t sum = checksum_pseudo(6, i.source, i.destination, IP_PROTOCOL_TCP, i.length - i.l4);
	assert_int_equal(checksum_finish(checksum_add(sum, packet_tcp6 + i.l4, i.length - i.l4)), 0);
	assert_int_equal(ip_parse(packet_udp4, sizeof(packet_udp4), sizeof(packet_udp4), &i), IP_OK);
	sum = checksum_pseudo(4, i.source, i.destination, IP_PROTOCOL_UDP, i.length - i.l4);
	assert_int_equal(checksum_finish(checksum_add(sum, packet_udp4 + i.l4, i.length - i.l4)), 0);
}

int checksum_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(against_the_slow_one), cmocka_unit_test(header),
		cmocka_unit_test(updates), cmocka_unit_test(pseudo_header)};

	return cmocka_run_group_tests_name("checksum", tests, NULL, NULL);
}
