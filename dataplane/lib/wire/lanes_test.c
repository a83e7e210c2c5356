// SPDX-License-Identifier: Apache-2.0
// Packets accepted by lanes are good field by field; of plain UDP and TCP packets only SYNs are not accepted.
#include "wire/lanes.h"
#include "wire/plain.h"
#include "wire/wire_test.h"

#define ROOM 160u

static uint64_t seed = 0x1234567;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % below;
}

// An octet that decides something, or any.
static uint8_t octet(void)
{
	static const uint8_t edges[] = {0, 1, 126, 127, 128, 223, 224, 255};

	return draw(2) ? edges[draw(COUNT(edges))] : (uint8_t)draw(256);
}

// IPv4 of `rest` bytes at ip, with UDP or TCP.
static void make_packet(uint8_t *ip, uint32_t rest, int udp)
{
	memset(ip, 0, rest);
	ip[0] = 0x45;
	store16(ip + 2, (uint16_t)rest);
	ip[9] = udp ? IP_PROTOCOL_UDP : IP_PROTOCOL_TCP;
	store32(ip + 12, 0x0a000001 + draw(1000));
	store32(ip + 16, 0x0a000001 + draw(1000));
	if (udp)
		store16(ip + 24, (uint16_t)(8 + draw(rest - 27)));
	else
		ip[32] = 5 << 4, ip[33] = (uint8_t)draw(4);
}

// Changes one field, in every third packet.
static void change(uint8_t *ip, uint32_t fields)
{
	static const uint8_t at[] = {2, 3, 6, 7, 9, 12, 16, 24, 25, 32};

	if (draw(3) == 0)
		ip[at[draw(fields)]] = octet();
}

static int is_good(const uint8_t *ip, uint32_t rest)
{
	struct ip_info info;

	return ip_parse(ip, rest, rest, &info) == IP_OK && info.length == rest && info.fragment == 0 &&
	       ip_martian(4, info.source, info.destination) == IP_MARTIAN_NONE &&
	       (info.protocol == IP_PROTOCOL_UDP || info.protocol == IP_PROTOCOL_TCP);
}

static int is_syn(const uint8_t *ip)
{
	return ip[9] == IP_PROTOCOL_TCP && tcp_is_syn(ip + IP4_HEADER);
}

#define FOUND_LEAST 50000

static uint32_t judged(int round, int good, int lanes)
{
	if (lanes && !good)
		fail_msg("round %d: bad, and found good", round);
	if (good && !lanes)
		fail_msg("round %d: good, and not found", round);
	return (uint32_t)lanes;
}

static void user_packets(void **unused)
{
	uint8_t buffer[ROOM];
	uint32_t found = 0;

	for (int i = 0; i < 200000; i++) {
		int udp = (int)draw(2);
		uint32_t rest = (udp ? 28 : 40) + draw(60);

		make_packet(buffer, rest, udp);
		change(buffer, 10);
		rest -= draw(10) == 0 ? draw(rest - 20) : 0;
		int good = is_good(buffer, rest) && !is_syn(buffer), lanes = lanes_ip4_good(buffer, rest);
		found += judged(i, good, lanes);
	}
	assert_in_range(found, FOUND_LEAST, 190000);
}

static void g_pdus(void **unused)
{
	uint8_t outer[ROOM];
	uint32_t found = 0;

	for (int i = 0; i < 200000; i++) {
		int udp = (int)draw(2);
		uint32_t rest = (udp ? 28 : 40) + draw(50), gtpu = draw(2) ? 8 : 16, length = 28 + gtpu + rest;
		uint8_t *ip = outer + length - rest;

		make_packet(outer, length, 1);
		store16(outer + 24, (uint16_t)(length - 20));
		store16(outer + 30, (uint16_t)(length - 36));
		make_packet(ip, rest, udp);
		if (draw(3) == 0)
			outer[(uint8_t[]){2, 3, 12, 24, 25, 30, 31}[draw(7)]] = octet();
		else
			change(ip, 10);
		ip4_checksum_set(outer);
		int good = is_good(ip, rest) && plain_outer_good(4, outer, length) && load16(outer + 30) == length - 36;
		int lanes = lanes_gpdu_good(outer, length, ip);
		found += judged(i, good && !is_syn(ip), lanes);
	}
	assert_in_range(found, FOUND_LEAST, 190000);
}

// IPv6: accepted packets are good, and good ones from 2001 or fd00 are accepted.
static void packets_of_ip6(void **unused)
{
	static const uint8_t at[] = {0, 4, 5, 6, 8, 17, 18, 23, 24, 39, 44, 45, 52};
	uint8_t ip[ROOM];
	uint32_t found = 0;

	for (int i = 0; i < 200000; i++) {
		int udp = (int)draw(2);
		uint32_t rest = IP6_HEADER + (udp ? 8 : 20) + draw(60);
		struct ip_info info;

		memset(ip, 0, sizeof(ip));
		ip[0] = 0x60;
		store16(ip + 4, (uint16_t)(rest - IP6_HEADER));
		ip[6] = udp ? IP_PROTOCOL_UDP : IP_PROTOCOL_TCP;
		ip[8] = draw(8) ? 0x20 : octet();
		ip[24] = draw(8) ? 0xfd : octet();
		ip[23] = ip[39] = (uint8_t)draw(3);
		if (udp)
			store16(ip + 44, (uint16_t)(8 + draw(rest - IP6_HEADER - 7)));
		else
			ip[52] = 5 << 4, ip[53] = (uint8_t)draw(4);
		if (draw(3) == 0)
			ip[at[draw(COUNT(at))]] = octet();
		int good = ip_parse(ip, rest, rest, &info) == IP_OK && info.length == rest && info.version == 6 &&
			   ip_martian(6, info.source, info.destination) == IP_MARTIAN_NONE && info.l4 == IP6_HEADER &&
			   info.protocol == ip[6] && (ip[6] == IP_PROTOCOL_UDP || ip[6] == IP_PROTOCOL_TCP);
		int syn = ip[6] == IP_PROTOCOL_TCP && tcp_is_syn(ip + IP6_HEADER);
		int plain = ip6_plain_good(ip, rest);
		if (plain && (!good || syn))
			fail_msg("round %d: bad, and found good", i);
		if (good && !plain && !syn && ip[8] != 0 && ip[24] != 0)
			fail_msg("round %d: good, and not found", i);
		found += (uint32_t)plain;
	}
	assert_in_range(found, 50000, 190000);
}

int lanes_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_packets),
		cmocka_unit_test(g_pdus),
		cmocka_unit_test(packets_of_ip6),
	};

	return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
