// SPDX-License-Identifier: Apache-2.0
// Requests made by scapy and their answers; then every malformed request.
#include "traffic/engine/neighbour.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROOM NEIGHBOUR_ANSWER_BYTES

static const uint8_t our_mac[6] = {2, 0, 0, 0, 1, 0};
static const uint8_t our6[16] = {0xfd, [15] = 2}, their6[16] = {0xfd, [15] = 1};
static const struct job_port port = {.name = "core",
	.addresses = 3,
	.address = {{.version = 4, .bytes = {198, 51, 100, 9}}, {.version = 4, .bytes = {192, 0, 2, 2}},
		{.version = 6, .bytes = {0xfd, [15] = 2}}}};

// Ether(src="02:00:00:00:00:01", dst=BROADCAST) / ARP(psrc="192.0.2.1", pdst="192.0.2.2", hwsrc="02:00:00:00:00:01")
static const uint8_t arp_request[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0,
	1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2};
static const uint8_t arp_reply[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 1,
	0, 192, 0, 2, 2, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1};

// Ether(src="02:00:00:00:00:01", dst="33:33:ff:00:00:02") / IPv6(src="fd00::1", dst="ff02::1:ff00:2", hlim=255) /
// ICMPv6ND_NS(tgt="fd00::2") / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:01")
static const uint8_t nd_request[86] = {0x33, 0x33, 0xff, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0x20,
	0x3a, 0xff, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0,
	0, 2, 0x87, 0, 0x7d, 0x97, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 2, 0, 0, 0, 0,
	1};
// Ether(src=ours, dst=theirs) / IPv6(src="fd00::2", dst="fd00::1", hlim=255) / ICMPv6ND_NA(tgt="fd00::2", R=0, S=1,
// O=1) / ICMPv6NDOptDstLLAddr(lladdr="02:00:00:00:01:00")
static const uint8_t nd_reply[86] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0x20, 0x3a, 0xff,
	0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x88, 0,
	0x1b, 0x9c, 0x60, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 2, 0, 0, 0, 1, 0};
// The same question from :: without option (RFC 4862), and its answer to ff02::1.
static const uint8_t nd_probe[78] = {0x33, 0x33, 0xff, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0x18,
	0x3a, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0,
	2, 0x87, 0, 0x7d, 0xa3, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
static const uint8_t nd_probe_reply[86] = {0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0x20,
	0x3a, 0xff, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	1, 0x88, 0, 0x59, 0x9a, 0x20, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 2, 0, 0, 0, 1,
	0};

// Copies of exact size: a sanitizer sees every byte beyond.
static uint16_t answer(const void *frame, size_t length, uint8_t *to, uint16_t room)
{
	uint8_t *in = malloc(length ? length : 1), *out = malloc(room ? room : 1);

	assert_non_null(in);
	assert_non_null(out);
	memcpy(in, frame, length);
	uint16_t n = neighbour_answer(&port, our_mac, in, (uint16_t)length, out, room);
	assert_true(n <= room);
	memcpy(to, out, n);
	free(in);
	free(out);
	return n;
}

static void arp_is_answered(void **state)
{
	uint8_t to[ROOM], padded[64] = {0};

	assert_int_equal(answer(arp_request, sizeof(arp_request), to, ROOM), 60);
	assert_memory_equal(to, arp_reply, 60);
	memcpy(padded, arp_request, sizeof(arp_request));
	assert_int_equal(answer(padded, sizeof(padded), to, 60), 60);
	assert_memory_equal(to, arp_reply, 60);
	memcpy(padded, our_mac, 6); // a neighbour that checks whether we are still there
	assert_int_equal(answer(padded, sizeof(padded), to, 60), 60);
	assert_memory_equal(to, arp_reply, 60);
	memset(padded + 28, 0, 4); // a probe (RFC 5227)
	assert_int_equal(answer(padded, sizeof(padded), to, 60), 60);
	assert_memory_equal(to + 38, "\0\0\0\0", 4);
}

static void nd_is_answered(void **state)
{
	uint8_t to[ROOM];

	assert_int_equal(answer(nd_request, sizeof(nd_request), to, ROOM), 86);
	assert_memory_equal(to, nd_reply, 86);
	assert_int_equal(answer(nd_probe, sizeof(nd_probe), to, ROOM), 86);
	assert_memory_equal(to, nd_probe_reply, 86);
}

// The answer has the question's tags.
static void tags_are_kept(void **state)
{
	static const uint8_t tag[16] = {0x88, 0xa8, 0x60, 100, 0x81, 0, 0, 60, 0x91, 0, 0, 1, 0x81, 0, 0, 2};
	uint8_t in[120], to[ROOM];

	for (size_t bytes = 4; bytes <= sizeof(tag); bytes += 4) {
		memcpy(in, nd_request, 12);
		memcpy(in + 12, tag, bytes);
		memcpy(in + 12 + bytes, nd_request + 12, sizeof(nd_request) - 12);
		assert_int_equal(answer(in, sizeof(nd_request) + bytes, to, ROOM), 86 + bytes);
		assert_memory_equal(to, nd_reply, 12);
		assert_memory_equal(to + 12, tag, bytes);
		assert_memory_equal(to + 12 + bytes, nd_reply + 12, sizeof(nd_reply) - 12);
		memcpy(in + 12 + bytes, arp_request + 12, sizeof(arp_request) - 12);
		assert_int_equal(answer(in, sizeof(arp_request) + bytes, to, ROOM), 60);
		assert_memory_equal(to + 12, tag, bytes);
		assert_memory_equal(to + 12 + bytes, arp_reply + 12, sizeof(arp_request) - 12);
	}
	memcpy(in, nd_request, 12);
	memcpy(in + 12, tag, 16);
	memcpy(in + 28, tag, 4);
	memcpy(in + 32, arp_request + 12, sizeof(arp_request) - 12);
	assert_int_equal(answer(in, sizeof(arp_request) + 20, to, ROOM), 0); // five are too many
}

static void short_frames_and_rooms(void **state)
{
	uint8_t to[ROOM];

	for (size_t n = 0; n < sizeof(arp_request); n++)
		assert_int_equal(answer(arp_request, n, to, ROOM), 0);
	for (size_t n = 0; n < sizeof(nd_request); n++)
		assert_int_equal(answer(nd_request, n, to, ROOM), 0);
	for (uint16_t room = 0; room < 60; room++)
		assert_int_equal(answer(arp_request, sizeof(arp_request), to, room), 0);
	for (uint16_t room = 0; room < 86; room++)
		assert_int_equal(answer(nd_request, sizeof(nd_request), to, room), 0);
}

static void bad_arp_is_silent(void **state)
{
	static const struct {
		const char *name;
		uint8_t at, value;
	} row[] = {
		{"to another station", 0, 0x04},
		{"from a group", 6, 3},
		{"ether type", 13, 5},
		{"hardware", 15, 6},
		{"protocol", 16, 0x86},
		{"hardware length", 18, 8},
		{"protocol length", 19, 16},
		{"a reply", 21, 2},
		{"sender's MAC a group", 22, 1},
		{"another's address", 41, 3},
	};
	uint8_t to[ROOM], in[sizeof(arp_request)];

	for (size_t i = 0; i < COUNT(row); i++) {
		memcpy(in, arp_request, sizeof(in));
		in[row[i].at] = row[i].value;
		if (answer(in, sizeof(in), to, ROOM) != 0)
			fail_msg("%s was answered", row[i].name);
	}
	struct job_port none = port;
	none.addresses = 0;
	assert_int_equal(neighbour_answer(&none, our_mac, arp_request, sizeof(arp_request), to, ROOM), 0);
	none.addresses = 1;
	assert_int_equal(neighbour_answer(&none, our_mac, arp_request, sizeof(arp_request), to, ROOM), 0);
	memcpy(in, arp_request, sizeof(in));
	memcpy(in + 22, our_mac, 6);
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 0); // our own question come back
	memcpy(in, arp_request, sizeof(in));
	memcpy(in + 6, our_mac, 6);
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 0);
	// The first four bytes of an IPv6 address are no IPv4 address.
	memcpy(in, arp_request, sizeof(in));
	memcpy(in + 38, our6, 4);
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 0);
}

// As RFC 1071 has it, over the pseudo header of a solicitation at 14 and its message of `bytes`.
static void fix_sum(uint8_t *frame, uint16_t bytes)
{
	uint32_t sum = bytes + 58u;

	frame[56] = frame[57] = 0;
	for (uint32_t i = 22; i < 54u + bytes; i++)
		sum += i & 1 ? frame[i] : (uint32_t)frame[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	frame[56] = (uint8_t)(~sum >> 8);
	frame[57] = (uint8_t)~sum;
}

static void bad_nd_is_silent(void **state)
{
	static const struct {
		const char *name;
		uint8_t at, value;
		bool probe;
	} row[] = {
		{"version", 14, 0x40, false},
		{"length beyond the frame", 19, 33, false},
		{"next header", 20, 17, false},
		{"hop limit", 21, 254, false},
		{"group as source", 22, 0xff, false},
		{"an advertisement", 54, 136, false},
		{"code", 55, 1, false},
		{"group as target", 62, 0xff, false},
		{"another's address", 77, 3, false},
		{"option of no length", 79, 0, false},
		{"option beyond the message", 79, 2, false},
		{"group as link-layer address", 80, 1, false},
		{"probe to a unicast address", 38, 0xfd, true},
	};
	uint8_t to[ROOM], in[sizeof(nd_request)];

	for (size_t i = 0; i < COUNT(row); i++) {
		uint16_t length = row[i].probe ? sizeof(nd_probe) : sizeof(nd_request);
		memcpy(in, row[i].probe ? nd_probe : nd_request, length);
		in[row[i].at] = row[i].value;
		fix_sum(in, (uint16_t)(length - 54));
		if (answer(in, length, to, ROOM) != 0)
			fail_msg("%s was answered", row[i].name);
	}
	memcpy(in, nd_request, sizeof(in));
	in[57] ^= 1;
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 0);
	fix_sum(in, 32); // the same with a correct checksum: the rows above fail for their own reason
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 86);
	memset(in + 22, 0, 16); // a probe may not say who asks
	fix_sum(in, 32);
	assert_int_equal(answer(in, sizeof(in), to, ROOM), 0);
}

// Without the option, the answer goes to the frame's source; other options are skipped.
static void options_of_nd(void **state)
{
	static const uint8_t nonce[8] = {14, 1, 1, 2, 3, 4, 5, 6}; // RFC 3971 §5.3.2
	static const uint8_t source[8] = {1, 1, 2, 0, 0, 0, 0, 1}, target[8] = {2, 1, 2, 0, 0, 0, 0, 9};
	uint8_t to[ROOM], in[102];

	memcpy(in, nd_request, 78);
	in[19] = 24;
	fix_sum(in, 24);
	in[11] = 7;
	assert_int_equal(answer(in, 78, to, ROOM), 86);
	assert_memory_equal(to, in + 6, 6);
	memcpy(in + 78, nonce, 8);
	memcpy(in + 86, source, 8);
	memcpy(in + 94, target, 8); // means nothing in a solicitation
	in[19] = 48;
	fix_sum(in, 48);
	assert_int_equal(answer(in, 102, to, ROOM), 86);
	assert_memory_equal(to, source + 2, 6);
	assert_memory_equal(to + 38, their6, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_is_answered),
		cmocka_unit_test(nd_is_answered),
		cmocka_unit_test(tags_are_kept),
		cmocka_unit_test(short_frames_and_rooms),
		cmocka_unit_test(bad_arp_is_silent),
		cmocka_unit_test(bad_nd_is_silent),
		cmocka_unit_test(options_of_nd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
