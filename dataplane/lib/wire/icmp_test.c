// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.h"
#include "wire/icmp.h"
#include "wire/wire_test.h"

static void known_errors(void **state)
{
	static const uint8_t ours4[] = {10, 1, 0, 1}, host4[] = {10, 1, 0, 7};
	static const uint8_t ours6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 1},
			     host6[16] = {0x20, 1, 0x0d, 0xb8, 0, 1, [15] = 7};
	uint8_t to[256];
	struct icmp_error e = {4, 3, 4, 1400, ours4, host4};

	memcpy(to + ICMP4_ERROR_HEADER, packet_udp4, sizeof(packet_udp4));
	assert_int_equal(icmp_put_error(to, &e, sizeof(packet_udp4)), sizeof(error_too_big4));
	assert_memory_equal(to, error_too_big4, sizeof(error_too_big4));
	e = (struct icmp_error){6, ICMP6_TIME_EXCEEDED, 0, 0, ours6, host6};
	memcpy(to + ICMP6_ERROR_HEADER, packet_tcp6, sizeof(packet_tcp6));
	assert_int_equal(icmp_put_error(to, &e, sizeof(packet_tcp6)), sizeof(error_ttl6));
	assert_memory_equal(to, error_ttl6, sizeof(error_ttl6));
}

static void known_replies(void **state)
{
	uint8_t p[sizeof(packet_echo6)];
	struct ip_info i;

	memcpy(p, packet_echo4, sizeof(packet_echo4));
	assert_int_equal(ip_parse(p, sizeof(packet_echo4), sizeof(packet_echo4), &i), IP_OK);
	assert_true(icmp_is_echo(p, &i));
	icmp_make_echo_reply(p, &i);
	assert_memory_equal(p, packet_echo_reply4, sizeof(packet_echo_reply4));
	memcpy(p, packet_echo6, sizeof(packet_echo6));
	assert_int_equal(ip_parse(p, sizeof(packet_echo6), sizeof(packet_echo6), &i), IP_OK);
	assert_true(icmp_is_echo(p, &i));
	icmp_make_echo_reply(p, &i);
	assert_memory_equal(p, packet_echo_reply6, sizeof(packet_echo_reply6));
}

static enum icmp_answer ask(const uint8_t *packet, size_t size, uint8_t type)
{
	struct ip_info i;

	assert_int_equal(ip_parse(packet, size, size, &i), IP_OK);
	return icmp_answerable(packet, &i, type);
}

// Row G23: never amplification, never a loop.
static void what_may_be_answered(void **state)
{
	uint8_t p[128];

	assert_int_equal(ask(packet_udp4, sizeof(packet_udp4), 11), ICMP_ANSWER_OK);
	assert_int_equal(ask(packet_tcp6, sizeof(packet_tcp6), 3), ICMP_ANSWER_OK);
	assert_int_equal(ask(packet_echo4, sizeof(packet_echo4), 11), ICMP_ANSWER_OK);
	assert_int_equal(ask(packet_echo6, sizeof(packet_echo6), 3), ICMP_ANSWER_OK);
	assert_int_equal(ask(packet_echo_reply6, sizeof(packet_echo_reply6), 3), ICMP_ANSWER_OK);
	assert_int_equal(ask(error_too_big4, sizeof(error_too_big4), 11), ICMP_ANSWER_ERROR);
	assert_int_equal(ask(error_ttl6, sizeof(error_ttl6), 3), ICMP_ANSWER_ERROR);
	assert_int_equal(ask(packet_later6, sizeof(packet_later6), 3), ICMP_ANSWER_FRAGMENT);
	memcpy(p, packet_udp4, sizeof(packet_udp4));
	memset(p + 12, 0, 4);
	assert_int_equal(ask(p, sizeof(packet_udp4), 11), ICMP_ANSWER_SOURCE);
	memset(p + 12, 0xff, 4);
	assert_int_equal(ask(p, sizeof(packet_udp4), 11), ICMP_ANSWER_SOURCE);
	memcpy(p, packet_udp4, sizeof(packet_udp4));
	p[16] = 224;
	assert_int_equal(ask(p, sizeof(packet_udp4), 11), ICMP_ANSWER_DESTINATION);
	memcpy(p, packet_tcp6, sizeof(packet_tcp6));
	p[24] = 0xff;
	assert_int_equal(ask(p, sizeof(packet_tcp6), ICMP6_TIME_EXCEEDED), ICMP_ANSWER_DESTINATION);
	assert_int_equal(ask(p, sizeof(packet_tcp6), ICMP6_TOO_BIG), ICMP_ANSWER_OK); // RFC 4443 §2.4 (e.3)
	memcpy(p, packet_tcp6, sizeof(packet_tcp6));
	memset(p + 8, 0, 16);
	assert_int_equal(ask(p, sizeof(packet_tcp6), ICMP6_TOO_BIG), ICMP_ANSWER_SOURCE);
}

static void echo_needs_a_whole_icmp(void **state)
{
	uint8_t p[sizeof(packet_udp4)];
	struct ip_info i;

	memcpy(p, packet_udp4, sizeof(p));
	p[9] = IP_PROTOCOL_ICMP6; // ICMPv6 in IPv4 means nothing
	p[20] = ICMP6_ECHO;
	assert_int_equal(ip_parse(p, sizeof(p), sizeof(p), &i), IP_OK);
	assert_false(icmp_is_echo(p, &i));
	p[9] = IP_PROTOCOL_ICMP;
	p[20] = ICMP4_ECHO;
	p[21] = 0;
	assert_int_equal(ip_parse(p, sizeof(p), sizeof(p), &i), IP_OK);
	assert_true(icmp_is_echo(p, &i));
	p[6] = 0x20; // first fragment
	assert_int_equal(ip_parse(p, sizeof(p), sizeof(p), &i), IP_OK);
	assert_false(icmp_is_echo(p, &i));
}

static void quotes(void **state)
{
	assert_int_equal(icmp_quote(4, 9000, 9000), 548);
	assert_int_equal(icmp_quote(6, 9000, 9000), 1232);
	assert_int_equal(icmp_quote(4, 100, 200), 100);
	assert_int_equal(icmp_quote(4, 200, 100), 100);
}

static void mutations(void **state)
{
	mutate(check_icmp, packet_echo4, sizeof(packet_echo4));
	mutate(check_icmp, packet_echo6, sizeof(packet_echo6));
	mutate(check_icmp, error_too_big4, sizeof(error_too_big4));
	mutate(check_icmp, error_ttl6, sizeof(error_ttl6));
	mutate(check_icmp, packet_udp4, sizeof(packet_udp4));
}

int icmp_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_errors), cmocka_unit_test(known_replies),
		cmocka_unit_test(what_may_be_answered), cmocka_unit_test(echo_needs_a_whole_icmp),
		cmocka_unit_test(quotes), cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("icmp", tests, NULL, NULL);
}
