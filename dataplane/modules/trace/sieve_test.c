// SPDX-License-Identifier: Apache-2.0
// The sieve against the full examination: random expressions, programs, keys and frames. The sieve passes all that the
// examination takes, and skips frames that plain filters do not want.

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "core/trace_inside.h"
#include "testkit/frame.h"
#include "testkit/testkit.h"
#include "trace/compile.h"
#include "trace/filter.h"
#include "wire/bytes.h"
#include <pcap/dlt.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 1500
#define FRAMES 60

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

#define ONE_OF(list) ((list)[draw(RTE_DIM(list))])

// What packets have and filters ask for.
static const char *const address4[] = {"10.45.0.7", "10.45.0.8", "10.46.0.7", "192.0.2.1"};
static const char *const address6[] = {"2001:db8:1::7", "2001:db8:1::8", "2001:db8:2::7", "fe80::1"};
static const uint16_t port[] = {53, 80, 2152, 5000};
static const uint8_t protocol[] = {1, 6, 17, 17, 17, 47, 58, 132};
static const uint8_t mac[][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 1, 1}};
static const uint16_t tpid[] = {0x8100, 0x88a8, 0x9100};

static void put_ip(struct frame *f, uint8_t by)
{
	if (draw(3) == 0)
		frame_ip(f, ONE_OF(address6), ONE_OF(address6), by);
	else
		frame_ip(f, ONE_OF(address4), ONE_OF(address4), by);
	if (f->at[0] == 0x45 && draw(8) == 0) { // options
		uint8_t header[20];
		uint32_t words = 1 + draw(10);

		memcpy(header, f->at, sizeof(header));
		memset(frame_push(f, 4 * words), 1, 4 * words + 20);
		memcpy(f->at, header, sizeof(header));
		f->at[0] += (uint8_t)words;
	}
	if (f->at[0] >> 4 == 4 && draw(8) == 0)
		f->at[6 + draw(2)] |= (uint8_t)(1 + draw(32)); // fragments
}

static void put_packet(struct frame *f)
{
	uint8_t by = ONE_OF(protocol);

	if (by == 6)
		frame_tcp(f, ONE_OF(port), ONE_OF(port));
	else
		frame_udp(f, ONE_OF(port), ONE_OF(port));
	put_ip(f, by);
}

// With optional fields and extension headers that any may be.
static void put_tunnel(struct frame *f)
{
	uint32_t length, extensions = draw(3) == 0 ? draw(4) : 0;

	if (draw(2) == 0) {
		frame_gtpu(f, 0x100 + draw(3), draw(2) == 0 ? 0xff : 9);
	} else {
		uint8_t flags = 0x30 | (uint8_t)draw(4) | (extensions != 0 ? 4 : 0), next = 0;

		for (uint32_t i = 0; i < extensions; i++) {
			uint32_t size = 4 * (1 + draw(3));
			uint8_t *p = frame_push(f, size);

			p[0] = (uint8_t)(size / 4);
			p[size - 1] = next;
			next = 0x40 + (uint8_t)draw(2) * 0x20;
		}
		length = f->length;
		uint8_t *p = frame_push(f, flags & 7 ? 12 : 8);
		if (flags & 7)
			p[11] = next;
		p[0] = flags;
		p[1] = draw(8) == 0 ? 254 : 255;
		store16(p + 2, (uint16_t)(length + (flags & 7 ? 4 : 0)));
		store32(p + 4, 0x100 + draw(3));
	}
	frame_udp(f, 2152, draw(8) == 0 ? 2153 : 2152);
	put_ip(f, 17);
}

static void put_link(struct frame *f)
{
	uint16_t type = f->at[0] >> 4 == 6 ? 0x86dd : 0x0800;
	uint32_t tags = draw(2) == 0 ? 0 : draw(4);

	if (draw(6) == 0) {
		frame_pppoe(f, (uint16_t)(1 + draw(2)), type == 0x0800 ? 0x21 : 0x57);
		type = 0x8864;
	} else if (draw(20) == 0) {
		type = 0x0806;
	}
	frame_ethernet(f, ONE_OF(mac), ONE_OF(mac), type);
	while (tags-- > 0)
		frame_tag(f, ONE_OF(tpid), (uint16_t)(100 + draw(2)));
}

static void random_frame(struct frame *f)
{
	frame_payload(f, draw(40));
	put_packet(f);
	if (draw(2) == 0)
		put_tunnel(f);
	put_link(f);
	for (uint32_t i = draw(4) == 0 ? 1 + draw(3) : 0; i > 0; i--)
		f->at[draw(f->length)] = (uint8_t)draw(256);
}

static void random_word(char *to, size_t room)
{
	static const char *const which[] = {"", "src ", "dst "}, *const plain[] = {"udp", "tcp", "ip", "ip6", "icmp",
									 "arp", "greater 100", "less 90",
									 "ip[6] & 0x20 != 0", "udp[12:4] = 0x101",
									 "tcp[13] & 2 != 0", "ip[2:2] > 80",
									 "ip6[6] = 17", "ether[12:2] = 0x88a8",
									 "ip[8] - 1 = 63", "ip[0] >> 4 = 4",
									 "ip proto 47", "vlan", "vlan 100", "pppoes",
									 "gre", "portrange 50-90", "len != 77",
									 "ip multicast"};
	const char *at = ONE_OF(which);

	switch (draw(6)) {
	case 0:
		snprintf(to, room, "%shost %s", at, draw(3) == 0 ? ONE_OF(address6) : ONE_OF(address4));
		break;
	case 1:
		snprintf(to, room, "%snet %s", at, draw(3) == 0 ? "2001:db8:1::/48" : "10.45.0.0/16");
		break;
	case 2:
		snprintf(to, room, "%s%sport %u", draw(2) == 0 ? "udp " : "", at, ONE_OF(port));
		break;
	case 3:
		snprintf(to, room, "ether %shost 02:00:00:00:%02x:01", at, draw(2));
		break;
	default:
		snprintf(to, room, "%s", ONE_OF(plain));
	}
}

static void random_expression(char *to, size_t room)
{
	size_t used = 0;

	for (uint32_t words = 1 + draw(4); words > 0; words--) {
		char word[64];

		random_word(word, sizeof(word));
		used += (size_t)snprintf(to + used, room - used, "%s%s%s",
			used == 0 ? ""
			: draw(2) ? " and "
				  : " or ",
			draw(5) == 0 ? "not " : "", word);
	}
}

static uint32_t compiled(const char *text, int link, struct api_trace_instruction *to)
{
	char error[256], *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	uint32_t count = 0;

	assert_non_null(f);
	filter_compile(text, link, f, error, sizeof(error));
	fclose(f);
	char *at = out;
	uint32_t said = (uint32_t)strtoul(at, &at, 10);
	for (; count < said; count++) {
		to[count].code = (uint16_t)strtoul(at, &at, 10);
		to[count].jt = (uint8_t)strtoul(at, &at, 10);
		to[count].jf = (uint8_t)strtoul(at, &at, 10);
		to[count].k = (uint32_t)strtoul(at, &at, 10);
	}
	free(out);
	return count;
}

// An instruction changes to another, or to another program's.
static void change(struct api_trace_instruction *code, uint32_t count)
{
	static const uint16_t codes[] = {0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x81, 0xb1, 0x01, 0x61,
		0x02, 0x03, 0x84, 0x16, 0x07, 0x87, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x04, 0x0c, 0x14,
		0x1c, 0x24, 0x34, 0x3c, 0x44, 0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x94, 0xa4};
	static const uint32_t k[] = {0, 1, 2, 4, 9, 12, 14, 15, 16, 20, 22, 0xf0, 0x45, 17, 53, 0x1fff, 0xffff};

	for (uint32_t n = 1 + draw(3); n > 0 && count != 0; n--) {
		struct api_trace_instruction *i = &code[draw(count)];

		if (draw(2) == 0)
			i->code = ONE_OF(codes);
		if (draw(2) == 0)
			i->k = ONE_OF(k);
		if (draw(3) == 0)
			RTE_SWAP(i->jt, i->jf);
	}
}

static void random_key(struct api_trace_key *k)
{
	*k = (struct api_trace_key){.by = API_TRACE_BY_ADDRESS + draw(3), .teid = 0x100 + draw(3)};
	memcpy(k->mac, ONE_OF(mac), sizeof(k->mac));
	k->s_tag = draw(2) == 0 ? 0 : 100;
	k->address = kit_address(draw(3) == 0 ? ONE_OF(address6) : ONE_OF(address4));
	if (draw(2) == 0)
		k->address.prefix = (uint8_t)draw(k->address.prefix + 1u);
}

// NULL: the programs are none.
static struct trace_filter *random_filter(char text[512], uint32_t *keys)
{
	static struct api_trace_instruction frame[API_TRACE_INSTRUCTIONS], packet[API_TRACE_INSTRUCTIONS];
	struct api_trace_key key[12];
	struct api_trace want = {.keys = draw(3) == 0 ? 1 + draw(RTE_DIM(key)) : 0};
	struct trace_filter *f;

	random_expression(text, 512);
	want.frame_code = compiled(text, DLT_EN10MB, frame);
	want.packet_code = compiled(text, DLT_RAW, packet);
	if (draw(2) == 0) {
		change(frame, want.frame_code);
		change(packet, want.packet_code);
	}
	for (uint32_t i = 0; i < want.keys; i++)
		random_key(&key[i]);
	*keys = want.keys;
	if ((want.keys | want.frame_code | want.packet_code) == 0 ||
		trace_chooser->make(&f, &want, key, frame, packet) != 0)
		return NULL;
	return f;
}

static struct rte_mbuf *mbuf_of(struct frame *f)
{
	static struct rte_mbuf m;
	static uint8_t buffer[2048];

	memcpy(buffer, f->at, f->length);
	m = (struct rte_mbuf){.buf_addr = buffer, .buf_len = sizeof(buffer), .pkt_len = f->length};
	m.data_len = (uint16_t)(draw(8) == 0 ? draw(f->length + 1) : f->length);
	return &m;
}

static void never_too_few(void **unused)
{
	uint32_t keys, filters = 0, taken = 0, kept_back = 0;
	char text[512];

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct trace_filter *t = random_filter(text, &keys);

		if (t == NULL)
			continue;
		filters++;
		for (uint32_t i = 0; i < FRAMES; i++) {
			struct frame f;

			random_frame(&f);
			void *m = mbuf_of(&f);
			uint32_t looked = filter_look(t, m);
			int passed = trace_chooser->sieve(t, &m, 1) != 0;

			if ((keys != 0 ? looked : looked & TRACE_ALL) != 0 && !passed)
				fail_msg("round %u, frame %u: \"%s\"", round, i, text);
			taken += (looked & TRACE_ALL) != 0;
			kept_back += !passed;
		}
		trace_chooser->free(t);
	}
	print_message("%u filters, %u frames taken, %u kept back\n", filters, taken, kept_back);
	assert_true(filters > ROUNDS / 2 && taken > 5000 && kept_back > 5000);
}

// Purpose of each: one word of a plain packet shows that it is not wanted.
static void keeps_back(void **unused)
{
	static const char *const text[] = {"host 10.45.0.8", "udp port 80", "port 80", "host 2001:db8:1::8", "icmp",
		"net 10.46.0.0/16", "tcp and dst host 10.45.0.7", "udp[12:4] = 0x101", "src host 10.45.0.8 and port 53",
		"ether host 02:00:00:00:01:01", "ip6", "host 10.46.0.7 or host 10.46.0.8", "vlan 101", "arp"};
	static struct api_trace_instruction frame[API_TRACE_INSTRUCTIONS], packet[API_TRACE_INSTRUCTIONS];

	for (uint32_t i = 0; i < RTE_DIM(text); i++)
		for (uint32_t how = 0; how < 3; how++) {
			struct api_trace want = {.frame_code = compiled(text[i], DLT_EN10MB, frame),
				.packet_code = compiled(text[i], DLT_RAW, packet)};
			struct trace_filter *t;
			struct frame f;

			assert_int_equal(trace_chooser->make(&t, &want, NULL, frame, packet), 0);
			frame_payload(&f, 40);
			frame_udp(&f, 4001, 53);
			frame_ip(&f, "10.45.0.7", "192.0.2.1", 17);
			if (how == 1) {
				frame_gtpu(&f, 0x100, 9);
				frame_udp(&f, 2152, 2152);
				frame_ip(&f, "10.1.0.2", "10.1.0.1", 17);
			}
			frame_ethernet(&f, mac[0], mac[1], 0x0800);
			if (how == 2)
				frame_tag(&f, 0x88a8, 100);
			void *m = mbuf_of(&f);
			if (trace_chooser->sieve(t, &m, 1) != 0)
				fail_msg("\"%s\", frame %u", text[i], how);
			trace_chooser->free(t);
		}
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(never_too_few), cmocka_unit_test(keeps_back)};

	return cmocka_run_group_tests(all, NULL, NULL);
}
