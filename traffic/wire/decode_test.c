// SPDX-License-Identifier: Apache-2.0
// The decoder: control traffic, every fault by name, padding. Every bit under a checksum and every truncation is
// noticed.
#include "traffic/wire/decode.h"
#include "traffic/wire/stack_kit.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

// Decodes a copy of exactly `length` bytes, so that a sanitizer sees a look past the end.
static const char *fault_of(const uint8_t *frame, uint32_t length, struct decoded *d)
{
	uint8_t *copy = malloc(length ? length : 1);
	int result;

	memcpy(copy, frame, length);
	result = decode_frame(copy + (length ? 0 : 1), (uint16_t)length, d);
	free(copy);
	assert_int_equal(result, d->fault != NULL ? -1 : 0);
	return d->fault != NULL ? d->fault : "";
}

static uint32_t from_hex(const char *hex, uint8_t *to)
{
	uint32_t n = 0;

	for (; *hex != 0; hex++) {
		char digits[3] = {hex[0], hex[0] == ' ' ? 0 : hex[1], 0};

		if (*hex == ' ')
			continue;
		to[n++] = (uint8_t)strtoul(digits, NULL, 16);
		hex++;
	}
	return n;
}

// One's complement checksum of `n` bytes begun with `sum`; the tests' own, for repairs.
static uint16_t checksum(uint32_t sum, const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void put16(uint8_t *to, uint32_t number)
{
	to[0] = (uint8_t)(number >> 8);
	to[1] = (uint8_t)number;
}

#define MACS "020000aa0001 020100000000 "
// IPv4 without its checksum: put in by the test. Source 192.0.2.1, destination 198.51.100.1.
#define IP4(length, protocol) "4500" length "00000000 40" protocol "0000 c0000201 c6336401 "
#define IP6(length, next) "60000000" length next "ff 20010db8000000000000000000000001 20010db8000000000000000000000002 "
#define UDP_GTPU(length) "08680868" length "0000 "

struct frame_case {
	const char *hex;
	const char *fault; // "": none
	uint32_t at;
	bool control;
};

// IPv4 header checksums are put in before decoding where `at` says 0 and "0800" is the EtherType: see repair().
static void repair(uint8_t *frame, uint32_t n)
{
	uint32_t header = n >= 34 && frame[12] == 8 && frame[13] == 0 ? (frame[14] & 15u) * 4 : 0;

	if (header >= 20 && 14 + header <= n) {
		put16(frame + 24, 0);
		put16(frame + 24, checksum(0, frame + 14, header));
	}
}

static const struct frame_case cases[] = {
	// link
	{"", "ethernet: too short", 0, false},
	{"020000aa0001 0201000000 08", "ethernet: too short", 0, false},
	{MACS "88b5", "", 0, false},
	{MACS "0806 0001", "", 0, true},
	{MACS "88cc 0207", "", 0, true},
	{MACS "8809 0101", "", 0, true},
	{MACS "8808 0001", "", 0, true},
	{MACS "8863 11090000 0000", "", 0, true},
	{MACS "0003 424203", "", 0, true},
	{MACS "0004 424203", "ethernet: 802.3 length beyond the frame", 14, false},
	{MACS "05dd", "ethernet: neither a type nor a length", 14, false},
	{MACS "8100 0064", "vlan: too short", 14, false},
	{MACS "8100 0064 88b5", "", 0, false},
	{MACS "8100 0064 0806", "", 0, true},
	{MACS "88a8 0064 9100 0001 8100 0001 8100 0001 88b5", "", 0, false},
	{MACS "88a8 0064 9100 0001 8100 0001 8100 0001 8100 0001 88b5", "vlan: more than 4 tags", 30, false},
	// pppoe
	{MACS "8864 11000001 0002 00", "pppoe: too short", 14, false},
	{MACS "8864 21000001 0002 0021", "pppoe: version or type", 14, false},
	{MACS "8864 12000001 0002 0021", "pppoe: version or type", 14, false},
	{MACS "8864 11010001 0002 0021", "pppoe: code", 14, false},
	{MACS "8864 11000000 0002 0021", "pppoe: reserved session id", 14, false},
	{MACS "8864 1100ffff 0002 0021", "pppoe: reserved session id", 14, false},
	{MACS "8864 11000001 0001 0021", "pppoe: length below the PPP protocol", 14, false},
	{MACS "8864 11000001 0003 0021", "pppoe: length beyond the frame", 14, false},
	{MACS "8864 11000001 0002 0021 00", "pppoe: length ends before the frame", 14, false},
	{MACS "8864 11000001 0006 c021 09010004", "", 0, true},
	{MACS "8864 11000001 0006 8021 09010004", "", 0, true},
	{MACS "8864 11000001 0004 0123 0000", "pppoe: unknown PPP protocol", 14, false},
	{MACS "8864 11000001 0002 0021", "ipv4: too short", 22, false},
	{MACS "8864 11000001 0002 0057", "ipv6: too short", 22, false},
	// ipv4
	{MACS "0800 " IP4("0014", "fd"), "", 0, false},
	{MACS "0800 4500001400000000", "ipv4: too short", 14, false},
	{MACS "0800 5500001400000000 40fd0000 c0000201 c6336401", "ipv4: version", 14, false},
	{MACS "0800 4400001400000000 40fd0000 c0000201 c6336401", "ipv4: header length", 14, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401", "ipv4: header length", 14, false},
	{MACS "0800 " IP4("0013", "fd"), "ipv4: length below the header", 14, false},
	{MACS "0800 " IP4("0015", "fd"), "ipv4: length beyond the packet", 14, false},
	{MACS "0800 " IP4("0014", "fd") "00", "ipv4: length ends before the packet", 14, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 01010101", "", 0, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 94040000", "", 0, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 00ffffff", "", 0, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 94050000", "ipv4: options", 14, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 94010101", "ipv4: options", 14, false},
	{MACS "0800 4600001800000000 40fd0000 c0000201 c6336401 01010194", "ipv4: options", 14, false},
	{MACS "0800 4500001400008000 40fd0000 c0000201 c6336401", "ipv4: reserved flag", 14, false},
	{MACS "0800 " IP4("0014", "02"), "", 0, true},
	// Fragments: what follows is no header.
	{MACS "0800 4500001600002000 40110000 c0000201 c6336401 ffff", "", 0, false},
	{MACS "0800 4500001600000001 40110000 c0000201 c6336401 ffff", "", 0, false},
	{MACS "0800 " IP4("0016", "11") "ffff", "udp: too short", 34, false},
	// ipv6
	{MACS "86dd " IP6("0000", "3b"), "", 0, false},
	{MACS "86dd 60000000 0000 3bff", "ipv6: too short", 14, false},
	{MACS "86dd 50000000 0000 3bff 20010db8000000000000000000000001 20010db8000000000000000000000002",
		"ipv6: version", 14, false},
	{MACS "86dd " IP6("0001", "3b"), "ipv6: length beyond the packet", 14, false},
	{MACS "86dd " IP6("0000", "3b") "00", "ipv6: length ends before the packet", 14, false},
	{MACS "86dd " IP6("0010", "00") "3c00010400000000 3b00010400000000", "", 0, false},
	{MACS "86dd " IP6("0010", "3c") "0000010400000000 3b00010400000000", "ipv6: hop-by-hop options not first", 62,
		false},
	{MACS "86dd " IP6("0008", "3c") "3b01010400000000", "ipv6: extension header beyond the packet", 54, false},
	{MACS "86dd " IP6("0007", "3c") "3b010104000000", "ipv6: extension header beyond the packet", 54, false},
	{MACS "86dd " IP6("000c", "33") "3b01000000000000 00000000", "", 0, false},
	{MACS "86dd " IP6("000a", "2c") "1100000100000000 ffff", "", 0, false},
	{MACS "86dd " IP6("000a", "2c") "1100000800000000 ffff", "", 0, false},
	{MACS "86dd " IP6("000a", "2c") "1100000000000000 ffff", "udp: too short", 62,
		false}, // atomic fragment, RFC 6946
	{MACS "86dd " IP6("000a", "2b") "1100000100000000 ffff", "", 0, false},
	{MACS "86dd " IP6("000a", "2b") "1100000000000000 ffff", "udp: too short", 62, false},
	{MACS "86dd " IP6("0048", "3c") "3c00010400000000 3c00010400000000 3c00010400000000 3c00010400000000"
					"3c00010400000000 3c00010400000000 3c00010400000000 3c00010400000000"
					"3b00010400000000",
		"ipv6: more than 8 extension headers", 118, false},
	// transport
	{MACS "0800 " IP4("001c", "11") "0fa01388 0007 0000", "udp: length below the header", 34, false},
	{MACS "0800 " IP4("001c", "11") "0fa01388 0009 0000", "udp: length beyond the packet", 34, false},
	{MACS "0800 " IP4("001d", "11") "0fa01388 0008 0000 00", "udp: length ends before the packet", 34, false},
	{MACS "0800 " IP4("001c", "11") "0fa01388 0008 0000", "", 0, false},
	{MACS "0800 " IP4("001c", "11") "0fa01388 0008 1234", "udp: checksum", 34, false},
	{MACS "86dd " IP6("0008", "11") "0fa01388 0008 0000", "udp: no checksum over IPv6", 54, false},
	{MACS "0800 " IP4("0027", "06") "0fa001bb 00000001 00000002 5010ffff 000000", "tcp: too short", 34, false},
	{MACS "0800 " IP4("0028", "06") "0fa001bb 00000001 00000002 4010ffff 00000000", "tcp: data offset", 34, false},
	{MACS "0800 " IP4("0028", "06") "0fa001bb 00000001 00000002 6010ffff 00000000", "tcp: data offset", 34, false},
	{MACS "0800 " IP4("0028", "06") "0fa001bb 00000001 00000002 5010ffff 00000000", "tcp: checksum", 34, false},
	{MACS "0800 " IP4("001b", "01") "0800f7ff 000000", "icmp: too short", 34, false},
	{MACS "0800 " IP4("001c", "01") "0800f7ff 00000000", "", 0, false},
	{MACS "0800 " IP4("001c", "01") "0800f7fe 00000000", "icmp: checksum", 34, false},
	{MACS "86dd " IP6("0007", "3a") "80000000 000000", "icmpv6: too short", 54, false},
	{MACS "86dd " IP6("0008", "3a") "80000000 00000000", "icmpv6: checksum", 54, false},
	// gtpu
	{MACS "0800 " IP4("0020", "11") UDP_GTPU("000c") "30ff0000", "gtpu: too short", 42, false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "50010000 00000000", "gtpu: version or protocol type", 42,
		false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "20010000 00000000", "gtpu: version or protocol type", 42,
		false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "38010000 00000000", "gtpu: spare bit", 42, false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "30010001 00000000", "gtpu: length beyond the packet", 42,
		false},
	{MACS "0800 " IP4("0025", "11") UDP_GTPU("0011") "30010000 00000000 00", "gtpu: length ends before the packet",
		42, false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "30010000 00000000", "", 0, true}, // echo request
	{MACS "0800 " IP4("0028", "11") UDP_GTPU("0014") "32020004 00000000 00010000", "", 0, true},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "30fe0000 00000007", "", 0, true}, // end marker
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "301a0000 00000000", "", 0, true}, // error indication
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "30070000 00000000", "gtpu: message type", 42, false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "32020000 00000000", "gtpu: length below the optional octets",
		42, false},
	{MACS "0800 " IP4("002c", "11") UDP_GTPU("0018") "34fe0008 00000000 00000085 01100900", "", 0, true},
	{MACS "0800 " IP4("0028", "11") UDP_GTPU("0014") "34fe0004 00000000 00000085",
		"gtpu: extension header beyond the packet", 54, false},
	{MACS "0800 " IP4("002c", "11") UDP_GTPU("0018") "34fe0008 00000000 00000085 02100900",
		"gtpu: extension header beyond the packet", 54, false},
	{MACS "0800 " IP4("002c", "11") UDP_GTPU("0018") "34fe0008 00000000 00000085 01100985",
		"gtpu: extension header beyond the packet", 58, false},
	{MACS "0800 " IP4("002c", "11") UDP_GTPU("0018") "34fe0008 00000000 00000085 00100900",
		"gtpu: extension header of length 0", 54, false},
	{MACS "0800 " IP4("0024", "11") UDP_GTPU("0010") "30ff0000 00000007", "gtpu: no IP packet in a G-PDU", 50,
		false},
	{MACS "0800 " IP4("0025", "11") UDP_GTPU("0011") "30ff0001 00000007 50", "gtpu: no IP packet in a G-PDU", 50,
		false},
	{MACS "0800 " IP4("0025", "11") UDP_GTPU("0011") "30ff0001 00000007 45", "ipv4: too short", 50, false},
	{MACS "0800 " IP4("0025", "11") UDP_GTPU("0011") "30ff0001 00000007 60", "ipv6: too short", 50, false},
	// Over IPv6, GTP-U needs no checksum (RFC 6935).
	{MACS "86dd " IP6("0010", "11") UDP_GTPU("0010") "30010000 00000000", "", 0, true},
};

static void test_cases(void **state)
{
	uint8_t frame[512];
	struct decoded d;

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct frame_case *c = &cases[i];
		uint32_t n = from_hex(c->hex, frame);

		repair(frame, n);
		fault_of(frame, n, &d);
		if (strcmp(d.fault != NULL ? d.fault : "", c->fault) != 0)
			fail_msg("case %u: \"%s\", not \"%s\"", i, d.fault, c->fault);
		assert_int_equal(d.at, c->at);
		assert_int_equal(d.control, c->control);
	}
}

// Neighbour discovery and MLD are control traffic, echo is not.
static void test_icmpv6(void **state)
{
	static const uint8_t control[] = {130, 131, 132, 133, 134, 135, 136, 137, 143};
	uint8_t frame[128], pseudo[40];
	struct decoded d;

	for (uint32_t type = 0; type < 256; type++) {
		uint32_t n = from_hex(MACS "86dd " IP6("0010", "3a") "80000000 00000000 20010db800000000", frame);

		frame[54] = (uint8_t)type;
		memcpy(pseudo, frame + 22, 32);
		from_hex("00000010 0000003a", pseudo + 32); // length, next header
		put16(frame + 56, checksum((uint16_t)~checksum(0, pseudo, 40), frame + 54, 16));
		assert_string_equal(fault_of(frame, n, &d), "");
		assert_int_equal(d.control, memchr(control, (int)type, sizeof(control)) != NULL);
	}
}

// Bytes may follow the outermost packet only in a frame of 60 bytes, and never an inner one.
static void test_padding(void **state)
{
	uint8_t frame[128];
	struct stack s = {0};
	struct template t;
	struct decoded d;

	for (int pppoe = 0; pppoe < 2; pppoe++) {
		memset(&s, 0, sizeof(s));
		memset(frame, 0x55, sizeof(frame));
		kit_ethernet(&s);
		if (pppoe)
			kit_set(kit_layer(&s, LAYER_PPPOE), "session", 1);
		kit_ip(&s, false, 0);
		kit_l4(&s, false, KIT_UDP_CHECKSUM);
		kit_compile(&s, 1, false, &t);
		kit_frame(&t, 0, t.length, frame);
		assert_string_equal(fault_of(frame, t.length, &d), "");
		assert_string_equal(fault_of(frame, 60, &d), "");
		assert_int_equal(d.end, t.length);
		assert_int_equal(d.inner_l3, t.inner_l3);
		for (uint32_t n = t.length + 1u; n <= 64; n++)
			if (n != 60)
				assert_string_equal(
					fault_of(frame, n, &d), pppoe ? "pppoe: length ends before the frame"
								      : "ipv4: length ends before the packet");
	}
	// PPPoE fills the frame of 60 bytes, the IP packet in it does not fill PPPoE.
	put16(frame + 18, 60 - 20);
	assert_string_equal(fault_of(frame, 60, &d), "ipv4: length ends before the packet");
	// UDP must fill its packet, padding or not.
	uint32_t n = from_hex(MACS "0800 " IP4("001d", "11") "0fa01388 0008 0000 00", frame);

	repair(frame, n);
	assert_string_equal(fault_of(frame, 60, &d), "udp: length ends before the packet");
}

// Which bytes of a frame a checksum covers: an IPv4 header, or everything from an L4 header on, and its pseudo header.
static void covered(const struct template *t, uint32_t length, uint8_t *cover)
{
	memset(cover, 0, length);
	for (uint32_t i = 0; i < t->sums; i++) {
		const struct template_sum *s = &t->sum[i];

		memset(cover + s->start, 1, s->kind == SUM_IPV4_HEADER ? 20 : length - s->start);
		memset(cover + s->addresses, 1, s->address_bytes);
	}
}

// Any single wrong bit under a checksum is a fault, and so is any that makes the rest unreadable.
static void test_flipped_bits(void **state)
{
	uint8_t frame[512], cover[512];
	struct stack s;
	struct template t;
	struct decoded d;

	for (uint32_t i = 0; i < KIT_STACKS; i++) {
		kit_stack(i, &s);
		kit_compile(&s, 200, false, &t);
		uint32_t length = t.length + TAG_BYTES + 3;

		kit_frame(&t, 33, length, frame);
		if (decode_frame(frame, (uint16_t)length, &d) != 0)
			continue; // UDP over IPv6 without a checksum, on purpose
		covered(&t, length, cover);
		for (uint32_t bit = 0; bit < length * 8; bit++) {
			if (!cover[bit / 8])
				continue;
			frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			if (decode_frame(frame, (uint16_t)length, &d) == 0)
				fail_msg("stack %u: bit %u of byte %u of %u", i, bit % 8, bit / 8, length);
			frame[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
}

// A frame cut short anywhere behind its Ethernet header and tags, or longer than its packet, is a fault.
static void test_cut(void **state)
{
	uint8_t frame[512];
	struct stack s;
	struct template t;
	struct decoded d;

	for (uint32_t i = 0; i < KIT_STACKS; i++) {
		kit_stack(i, &s);
		kit_compile(&s, 200, false, &t);
		uint32_t length = t.length + TAG_BYTES + 60;

		memset(frame, 0, sizeof(frame));
		kit_frame(&t, 99, length, frame);
		for (uint32_t n = 0; n <= length + 4; n++)
			if (n != length)
				assert_string_not_equal(fault_of(frame, n, &d), "");
	}
}

// Options of TCP are walked like those of IPv4.
static void test_tcp_options(void **state)
{
	static const struct {
		const char *options, *fault;
	} rows[] = {
		{"020405b4 01010402", ""},
		{"01010101 01010101", ""},
		{"00ffffff ffffffff", ""},
		{"01010101 01010101", ""},
		{"020405b4 01010403", "tcp: options"},
		{"02000000 00000000", "tcp: options"},
		{"01010101 01010102", "tcp: options"},
	};
	uint8_t frame[128], payload[64];
	struct stack s = {0};
	struct template t;
	struct decoded d;

	kit_ethernet(&s);
	kit_ip(&s, true, 0);
	kit_l4(&s, true, KIT_TCP);
	kit_set(&s.layer[2], "data_offset", 7);
	kit_compile(&s, 1, false, &t);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t length = t.length + 8u + TAG_BYTES;

		memset(payload, 0, sizeof(payload));
		from_hex(rows[i].options, payload);
		template_write(&t, 0, length, payload, frame);
		memcpy(frame + t.length, payload, 8 + TAG_BYTES);
		assert_string_equal(fault_of(frame, length, &d), rows[i].fault);
	}
}

static void test_many_headers(void **state)
{
	uint8_t frame[2048];
	uint32_t n = from_hex(MACS "0800", frame), at = n;
	struct decoded d;

	// Fifteen tunnels, one in another: 1 + 15 * 3 headers.
	for (uint32_t i = 0; i < 15; i++, at += 36) {
		uint32_t rest = (15 - i) * 36 + 20;

		from_hex(IP4("0000", "11") UDP_GTPU("0000") "30ff0000 00000001", frame + at);
		put16(frame + at + 2, rest);
		put16(frame + at + 10, checksum(0, frame + at, 20));
		put16(frame + at + 24, rest - 20);
		put16(frame + at + 30, rest - 36);
	}
	from_hex(IP4("0014", "fd"), frame + at);
	put16(frame + at + 10, checksum(0, frame + at, 20));
	assert_string_equal(fault_of(frame, at + 20, &d), "frame: more than 32 headers");
	assert_int_equal(d.layers, 32);
}

static void test_many_extensions(void **state)
{
	uint8_t frame[256];
	struct decoded d;

	for (uint32_t extensions = 16; extensions <= 17; extensions++) {
		uint32_t n =
			from_hex(MACS "0800 " IP4("0000", "11") UDP_GTPU("0000") "34fe0000 00000001 00000085", frame);

		for (uint32_t i = 1; i <= extensions; i++)
			n += from_hex(i < extensions ? "01000085" : "01000000", frame + n);
		put16(frame + 16, n - 14);
		put16(frame + 38, n - 34);
		put16(frame + 44, n - 50);
		repair(frame, n);
		assert_string_equal(
			fault_of(frame, n, &d), extensions == 16 ? "" : "gtpu: more than 16 extension headers");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_icmpv6),
		cmocka_unit_test(test_padding),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_tcp_options),
		cmocka_unit_test(test_many_headers),
		cmocka_unit_test(test_many_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
