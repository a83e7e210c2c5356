// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.h"
#include "wire/ip.h"
#include "wire/wire_test.h"

static void known_packets(void **state)
{
	static const uint8_t source[] = {10, 1, 0, 7}, destination[] = {93, 184, 216, 34};
	struct ip_info p;

	assert_int_equal(ip_parse(packet_udp4, sizeof(packet_udp4), sizeof(packet_udp4), &p), IP_OK);
	assert_int_equal(p.version, 4);
	assert_int_equal(p.protocol, IP_PROTOCOL_UDP);
	assert_int_equal(p.dscp, 0xb8 >> 2);
	assert_int_equal(p.ttl, 63);
	assert_int_equal(p.fragment, 0);
	assert_int_equal(p.l4, 20);
	assert_int_equal(p.source_port, 5000);
	assert_int_equal(p.destination_port, 53);
	assert_int_equal(p.length, sizeof(packet_udp4));
	assert_memory_equal(p.source, source, 4);
	assert_memory_equal(p.destination, destination, 4);
	assert_true(ip4_checksum_ok(packet_udp4));

	assert_int_equal(
		ip_parse(packet_tcp6, sizeof(packet_tcp6), sizeof(packet_tcp6) + 9, &p), IP_OK); // 9 of padding
	assert_int_equal(p.version, 6);
	assert_int_equal(p.protocol, IP_PROTOCOL_TCP);
	assert_int_equal(p.dscp, 0x28 >> 2);
	assert_int_equal(p.ttl, 61);
	assert_int_equal(p.l4, 40);
	assert_int_equal(p.source_port, 40000);
	assert_int_equal(p.destination_port, 443);
	assert_int_equal(p.length, sizeof(packet_tcp6));

	assert_int_equal(ip_parse(packet_options4, sizeof(packet_options4), sizeof(packet_options4), &p), IP_OK);
	assert_int_equal(p.l4, 24);
	assert_int_equal(p.destination_port, 2);
	assert_true(ip4_checksum_ok(packet_options4));

	assert_int_equal(ip_parse(packet_sctp, sizeof(packet_sctp), sizeof(packet_sctp), &p), IP_OK);
	assert_int_equal(p.destination_port, 38412);

	assert_int_equal(
		ip_parse(packet_extensions6, sizeof(packet_extensions6), sizeof(packet_extensions6), &p), IP_OK);
	assert_int_equal(p.protocol, IP_PROTOCOL_UDP);
	assert_int_equal(p.l4, 40 + 24);
	assert_int_equal(p.fragment, IP_FRAGMENT_MORE);
	assert_int_equal(p.source_port, 7);

	assert_int_equal(ip_parse(packet_later6, sizeof(packet_later6), sizeof(packet_later6), &p), IP_OK);
	assert_int_equal(p.fragment, IP_FRAGMENT_LATER);
	assert_int_equal(p.protocol, IP_PROTOCOL_UDP);
	assert_int_equal(p.source_port, 0);
}

struct change {
	uint8_t at, value;
};

// A good packet, up to three changed bytes, and the result.
static const struct row {
	const char *name;
	const uint8_t *packet;
	size_t size;
	struct change change[3];
	enum ip_status status;
} rows[] = {
#define V4 packet_udp4, sizeof(packet_udp4)
#define V6 packet_tcp6, sizeof(packet_tcp6)
#define OPTIONS packet_options4, sizeof(packet_options4)
	{"G6: IHL 4", V4, {{0, 0x44}}, IP_HEADER},
	{"G6: IHL 0", V4, {{0, 0x40}}, IP_HEADER},
	{"G6: IHL 15, past the packet", V4, {{0, 0x4f}}, IP_HEADER},
	{"G6: total length above the frame", V4, {{3, 45}}, IP_LENGTH},
	{"G6: total length 65535", V4, {{2, 0xff}, {3, 0xff}}, IP_LENGTH},
	{"G6: total length below the header", V4, {{3, 19}}, IP_LENGTH},
	{"G6: total length 0", V4, {{3, 0}}, IP_LENGTH},
	{"G6: total length below the frame, UDP with it", V4, {{3, 36}, {25, 16}}, IP_OK},
	{"G7: payload length 0, next header TCP", V6, {{4, 0}, {5, 0}}, IP_LENGTH},
	{"G7: payload length 0, hop-by-hop (jumbogram)", V6, {{5, 0}, {6, 0}}, IP_LENGTH},
	{"G7: payload length 0, no next header", V6, {{5, 0}, {6, 59}}, IP_OK},
	{"G7: payload length above the frame", V6, {{5, 25}}, IP_LENGTH},
	{"G7: hop-by-hop runs past the packet", V6, {{6, 0}, {41, 3}}, IP_EXTENSIONS},
	{"G7: authentication header runs past the packet", V6, {{6, 51}, {41, 200}}, IP_EXTENSIONS},
	{"G8: version 0", V4, {{0, 0x05}}, IP_VERSION},
	{"G8: version 5", V6, {{0, 0x50}}, IP_VERSION},
	{"G8: version 15", V4, {{0, 0xf5}}, IP_VERSION},
	{"UDP length 7", V4, {{25, 7}}, IP_TRANSPORT},
	{"UDP length 8", V4, {{25, 8}}, IP_OK},
	{"UDP length past the packet", V4, {{25, 25}}, IP_TRANSPORT},
	{"UDP length past a first fragment", V4, {{6, 0x20}, {24, 0x10}}, IP_OK},
	{"UDP header cut", V4, {{3, 27}}, IP_TRANSPORT},
	{"later fragment of 1 byte", V4, {{3, 21}, {7, 1}}, IP_OK},
	{"G25: data offset 4", V6, {{52, 0x40}}, IP_TRANSPORT},
	{"G25: data offset 0", V6, {{52, 0x00}}, IP_TRANSPORT},
	{"G25: data offset past the packet", V6, {{52, 0xf0}}, IP_TRANSPORT},
	{"G25: the same behind options", OPTIONS, {{36, 0xf0}}, IP_TRANSPORT},
	{"G22: first fragment cuts the TCP header", OPTIONS, {{3, 40}, {6, 0x20}}, IP_TRANSPORT},
	{"unknown transport", V4, {{9, 200}}, IP_OK},
	{"ESP", V6, {{6, 50}}, IP_OK},
};

static void hostile(void **state)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t *p = exact_copy(rows[i].packet, rows[i].size);
		struct ip_info info;
		for (size_t c = 0; c < 3; c++)
			if (rows[i].change[c].at || rows[i].change[c].value)
				p[rows[i].change[c].at] = rows[i].change[c].value;
		enum ip_status status = ip_parse(p, rows[i].size, rows[i].size, &info);
		if (status != rows[i].status)
			fail_msg("%s: status %d", rows[i].name, status);
		free(p);
	}
}

static void short_packets(void **state)
{
	struct ip_info info;

	for (size_t n = 0; n < sizeof(packet_udp4); n++) {
		uint8_t *p = exact_copy(packet_udp4, n);
		assert_int_not_equal(ip_parse(p, n, n, &info), IP_OK);
		// The same bytes as the first segment of a longer frame: short only while a header is missing.
		enum ip_status status = ip_parse(p, n, sizeof(packet_udp4), &info);
		assert_int_equal(status, n < 28 ? IP_SHORT : IP_OK);
		free(p);
	}
}

// 40 bytes, `count` destination option headers of 8 bytes, UDP.
static enum ip_status chain(unsigned count, struct ip_info *info)
{
	uint8_t p[40 + 8 * 250 + 8] = {0x60};
	size_t size = 48 + 8 * count;

	store16(p + 4, 8 * count + 8);
	p[6] = count ? IP_PROTOCOL_DESTINATION : IP_PROTOCOL_UDP;
	for (unsigned i = 0; i < count; i++)
		p[40 + 8 * i] = i + 1 < count ? IP_PROTOCOL_DESTINATION : IP_PROTOCOL_UDP;
	store16(p + 40 + 8 * count + 4, 8);
	uint8_t *exact = exact_copy(p, size);
	enum ip_status status = ip_parse(exact, size, size, info);
	free(exact);
	return status;
}

static void extension_chains(void **state)
{
	struct ip_info info;

	for (unsigned n = 0; n <= IP_MAX_EXTENSIONS; n++) {
		assert_int_equal(chain(n, &info), IP_OK);
		assert_int_equal(info.l4, 40 + 8 * n);
		assert_int_equal(info.protocol, IP_PROTOCOL_UDP);
	}
	assert_int_equal(chain(IP_MAX_EXTENSIONS + 1, &info), IP_EXTENSIONS);
	assert_int_equal(chain(200, &info), IP_EXTENSIONS);
}

// Row G24.
static void martians(void **state)
{
	static const struct {
		uint8_t a[4];
		unsigned source, destination;
	} v4[] = {
		{{0, 0, 0, 0}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{0, 1, 2, 3}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{127, 0, 0, 1}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{224, 0, 0, 1}, IP_MARTIAN_SOURCE, IP_MULTICAST},
		{{239, 255, 255, 255}, IP_MARTIAN_SOURCE, IP_MULTICAST},
		{{240, 0, 0, 1}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{255, 255, 255, 255}, IP_MARTIAN_SOURCE, IP_MULTICAST},
		{{10, 0, 0, 1}, 0, 0},
		{{223, 255, 255, 255}, 0, 0},
		{{169, 254, 0, 1}, 0, 0},
	};
	static const struct {
		uint8_t a[16];
		unsigned source, destination;
	} v6[] = {
		{{0}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{[15] = 1}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{[10] = 0xff, 0xff, 10, 0, 0, 1}, IP_MARTIAN_SOURCE, IP_MARTIAN_DESTINATION},
		{{0xff, 2, [15] = 1}, IP_MARTIAN_SOURCE, IP_MULTICAST},
		{{0xfe, 0x80, [15] = 1}, 0, 0},
		{{0x20, 1, 0x0d, 0xb8}, 0, 0},
		{{[15] = 2}, 0, 0},
	};
	static const uint8_t good[16] = {0x20, 1};

	for (size_t i = 0; i < COUNT(v4); i++) {
		assert_int_equal(ip_martian(4, v4[i].a, good), v4[i].source);
		assert_int_equal(ip_martian(4, good, v4[i].a), v4[i].destination);
	}
	for (size_t i = 0; i < COUNT(v6); i++) {
		assert_int_equal(ip_martian(6, v6[i].a, good), v6[i].source);
		assert_int_equal(ip_martian(6, good, v6[i].a), v6[i].destination);
	}
}

static void mutations(void **state)
{
	mutate(check_ip, packet_udp4, sizeof(packet_udp4));
	mutate(check_ip, packet_tcp6, sizeof(packet_tcp6));
	mutate(check_ip, packet_options4, sizeof(packet_options4));
	mutate(check_ip, packet_extensions6, sizeof(packet_extensions6));
	mutate(check_ip, packet_later6, sizeof(packet_later6));
	mutate(check_ip, packet_sctp, sizeof(packet_sctp));
}

int ip_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_packets), cmocka_unit_test(hostile),
		cmocka_unit_test(short_packets), cmocka_unit_test(extension_chains), cmocka_unit_test(martians),
		cmocka_unit_test(mutations)};

	return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
