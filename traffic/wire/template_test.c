// SPDX-License-Identifier: Apache-2.0
// The writer of headers: against frames made by scapy, and against the independent decoder for every combination of
// layers.
#include "traffic/wire/decode.h"
#include "traffic/wire/stack_kit.h"
#include <pcap/pcap.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define FRAME_ROOM 9216

// Packets built by scapy 2.5 (Ether()/Dot1AD()/…/Raw(), GTP_U_Header of scapy.contrib.gtp). Checksums and lengths are
// scapy's, but for chksum=0 of UDP. The PPP protocol is Raw(), because scapy compresses it to one byte. Payload 0, 1,
// 2, … and 16 zeros.
struct literal {
	const char *name;
	void (*build)(struct stack *s);
	uint32_t flow;
	const char *hex;
};

static void build_qinq_pppoe(struct stack *s)
{
	struct layer *l;

	l = kit_layer(s, LAYER_ETHERNET);
	kit_set(l, "destination", 0x020000aa0001);
	kit_count(l, "source", 0x020100000000, 1, 1, 0);
	l = kit_layer(s, LAYER_VLAN);
	kit_count(l, "id", 100, 1, 1, 0);
	kit_set(l, "priority", 3);
	l = kit_layer(s, LAYER_VLAN);
	kit_count(l, "id", 1, 6, 4, 0); // flow 5: 7
	kit_set(l, "priority", 1);
	kit_set(l, "dei", 1);
	kit_count(kit_layer(s, LAYER_PPPOE), "session", 1, 1, 1, 0);
	l = kit_layer(s, LAYER_IPV4);
	kit_count(l, "source", 0x0a400000, 1, 1, 0);
	kit_set(l, "destination", 0xcb007150);
	kit_set(l, "ttl", 63);
	kit_set(l, "dscp", 46);
	kit_set(l, "df", 1);
	kit_count(l, "id", 0, 1, 1, 0);
	l = kit_layer(s, LAYER_UDP);
	kit_set(l, "source", 4000);
	kit_count(l, "destination", 5000, 1, 1, 4); // flow 5: 5001
	kit_set(l, "checksum", 1);
}

static void build_session_container(struct stack *s)
{
	struct layer *l;

	l = kit_layer(s, LAYER_ETHERNET);
	kit_set(l, "destination", 0x020000aa0001);
	kit_set(l, "source", 0x020100000000);
	l = kit_layer(s, LAYER_IPV4);
	kit_set(l, "source", 0xc0000201);
	kit_set(l, "destination", 0xc6336401);
	kit_layer(s, LAYER_UDP);
	l = kit_layer(s, LAYER_GTPU);
	kit_count(l, "teid", 0x10000000, 1, 4, 0);
	kit_extension(l, 0x85, (const uint8_t[]){0x10, 9}, 2);
	l = kit_layer(s, LAYER_IPV4);
	kit_count(l, "source", 0x0a400000, 1, 4, 0);
	kit_set(l, "destination", 0xcb007150);
	kit_set(l, "ttl", 63);
	kit_set(l, "df", 1);
	l = kit_layer(s, LAYER_UDP);
	kit_set(l, "source", 4000);
	kit_count(l, "destination", 5000, 1, 1, 4);
}

static void build_gtpu6_tcp(struct stack *s)
{
	struct layer *l;

	l = kit_layer(s, LAYER_ETHERNET);
	kit_set(l, "destination", 0x020000aa0001);
	kit_set(l, "source", 0x020100000000);
	kit_set(kit_layer(s, LAYER_VLAN), "id", 10);
	l = kit_layer(s, LAYER_IPV6);
	kit_ipv6_address(l, "source", 0x20010db800000000, 1);
	kit_ipv6_address(l, "destination", 0x20010db800000000, 2);
	kit_set(l, "traffic_class", 0xb8);
	kit_count(l, "flow_label", 0x12340, 1, 1, 0);
	kit_set(kit_layer(s, LAYER_UDP), "checksum", 1);
	l = kit_layer(s, LAYER_GTPU);
	kit_set(l, "teid", 7);
	kit_set(l, "sequence", 0x1234);
	kit_set(l, "npdu", 0x4d);
	l = kit_layer(s, LAYER_IPV6);
	kit_ipv6_address(l, "source", 0x20010db800010000, 0)->step = 1;
	kit_ipv6_address(l, "destination", 0x20010db800020000, 1);
	kit_set(l, "hop_limit", 63);
	l = kit_layer(s, LAYER_TCP);
	kit_set(l, "source", 4000);
	kit_set(l, "destination", 443);
	kit_set(l, "sequence", 0x01020304);
	kit_set(l, "acknowledgement", 0x05060708);
	kit_set(l, "flags", 0x18);
	kit_set(l, "window", 1000);
}

static struct layer *build_ip(struct stack *s, bool v6, bool pppoe)
{
	struct layer *l = kit_layer(s, LAYER_ETHERNET);

	kit_set(l, "destination", 0x020000aa0001);
	kit_set(l, "source", 0x020100000000);
	if (pppoe)
		kit_set(kit_layer(s, LAYER_PPPOE), "session", 1);
	l = kit_layer(s, v6 ? LAYER_IPV6 : LAYER_IPV4);
	if (v6) {
		kit_ipv6_address(l, "source", 0x20010db800000000, 1);
		kit_ipv6_address(l, "destination", 0x20010db800000000, 2);
	} else {
		kit_set(l, "source", 0xc0000201);
		kit_set(l, "destination", 0xc6336401);
	}
	return l;
}

static void build_icmpv6(struct stack *s)
{
	struct layer *l;

	build_ip(s, true, false);
	l = kit_layer(s, LAYER_ICMPV6);
	kit_set(l, "id", 3);
	kit_set(l, "sequence", 9);
}

static void build_icmp(struct stack *s)
{
	struct layer *l;

	build_ip(s, false, false);
	l = kit_layer(s, LAYER_ICMP);
	kit_set(l, "type", 0);
	kit_set(l, "id", 3);
	kit_set(l, "sequence", 9);
}

static void build_pppoe6(struct stack *s)
{
	struct layer *l;

	build_ip(s, true, true);
	l = kit_layer(s, LAYER_UDP);
	kit_set(l, "source", 4000);
	kit_set(l, "destination", 5000);
}

static const struct literal literals[] = {
	{"QinQ, PPPoE, IPv4, UDP", build_qinq_pppoe, 5,
		"020000aa000102010000000588a8606981003007886411000006003b002145b80039000540003f11f4610a400005cb007150"
		"0fa0138900256bc1000102030405060708090a0b0c00000000000000000000000000000000"},
	{"IPv4, GTP-U with PDU session container, IPv4, UDP", build_session_container, 8,
		"020000aa000102010000000008004500005c0000000040118e5bc0000201c6336401086808680048000034ff003810000002"
		"000000850110090045000030000040003f11f52a0a400002cb0071500fa01388001c00000001020300000000000000000000"
		"000000000000"},
	{"VLAN, IPv6, GTP-U with sequence number, IPv6, TCP", build_gtpu6_tcp, 5,
		"020000aa00010201000000008100000a86dd6b812345006b114020010db800000000000000000000000120010db800000000"
		"000000000000000208680868006b990433ff005b0000000712344d0060000000002f063f20010db800010000000000000000"
		"000520010db80002000000000000000000010fa001bb0102030405060708501803e810c70000000102030405060708090a00"
		"000000000000000000000000000000"},
	{"IPv6, ICMPv6", build_icmpv6, 0,
		"020000aa000102010000000086dd60000000001d3a4020010db800000000000000000000000120010db80000000000000000"
		"0000000280001e2300030009000102030400000000000000000000000000000000"},
	{"IPv4, ICMP", build_icmp, 0,
		"020000aa00010201000000000800450000330000000040018e94c0000201c63364010000f3ea000300090001020304050600"
		"000000000000000000000000000000"},
	{"PPPoE, IPv6, UDP", build_pppoe6, 0,
		"020000aa0001020100000000886411000001004a0057600000000020114020010db800000000000000000000000120010db8"
		"0000000000000000000000020fa0138800207501000102030405060700000000000000000000000000000000"},
};

static void test_scapy(void **state)
{
	struct template t;
	uint8_t want[256], got[256];

	for (uint32_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		uint32_t length = (uint32_t)strlen(literals[i].hex) / 2;
		struct stack s = {0};

		literals[i].build(&s);
		kit_compile(&s, 16, false, &t);
		for (uint32_t k = 0; k < length; k++) {
			char digits[3] = {literals[i].hex[2 * k], literals[i].hex[2 * k + 1], 0};

			want[k] = (uint8_t)strtoul(digits, NULL, 16);
		}
		kit_frame(&t, literals[i].flow, length, got);
		for (uint32_t k = 0; k < length; k++)
			if (want[k] != got[k]) {
				char name[64];

				template_name(&t, (uint16_t)k, name, sizeof(name));
				fail_msg("%s: byte %u (%s) is %02x, not %02x", literals[i].name, k, name, got[k],
					want[k]);
			}
	}
}

// A user's UDP over IPv6 without a checksum, which the profile can ask for and RFC 8200 §8.1 forbids.
static bool zero6(const struct stack *s)
{
	const struct layer *l = &s->layer[s->layers - 1];
	const struct value *v = l->kind == LAYER_UDP && l[-1].kind == LAYER_IPV6 ? layer_given(l, "checksum") : NULL;

	return v != NULL && v->bytes[15] == 0;
}

// STACK_TEST_PCAP=FILE in the environment: decoded packets are also written to FILE, for tshark.
static void test_combinations(void **state)
{
	static const uint32_t flows[] = {0, 1, 7, 199};
	const char *file = getenv("STACK_TEST_PCAP");
	pcap_dumper_t *dump = file != NULL ? pcap_dump_open(pcap_open_dead(DLT_EN10MB, FRAME_ROOM), file) : NULL;
	uint8_t *frame = malloc(FRAME_ROOM);
	struct template t;
	struct decoded d;
	struct stack s;

	for (uint32_t i = 0; i < KIT_STACKS; i++) {
		kit_stack(i, &s);
		kit_compile(&s, 200, false, &t);
		uint32_t sizes[] = {t.length + TAG_BYTES, t.length + TAG_BYTES + 1, 256, 1514, 9001};

		for (uint32_t k = 0; k < sizeof(flows) / sizeof(flows[0]) * 5; k++) {
			uint32_t length = sizes[k % 5];

			kit_frame(&t, flows[k / 5], length, frame);
			const char *fault = zero6(&s) ? "udp: no checksum over IPv6" : "";

			decode_frame(frame, (uint16_t)length, &d);
			if (strcmp(d.fault != NULL ? d.fault : "", fault) != 0)
				fail_msg("stack %u flow %u: %s", i, flows[k / 5], d.fault);
			assert_int_equal(d.end, length);
			assert_int_equal(d.inner_l3, t.inner_l3);
			assert_int_equal(d.layers, s.layers);
			assert_false(d.control);
			if (dump != NULL) {
				struct pcap_pkthdr h = {.caplen = length, .len = length};

				pcap_dump((u_char *)dump, &h, frame);
			}
		}
	}
	if (dump != NULL)
		pcap_dump_close(dump);
	free(frame);
}

// Outer checksums are the same for every payload, which template_payload_sum() promises; the innermost is not.
static void test_payload_sum(void **state)
{
	uint8_t a[300], b[300], payload[300];
	struct stack s = {0};
	struct template t;
	const struct template_sum *sum;

	kit_ethernet(&s);
	kit_tunnel(&s, KIT_GTPU6_CHECKSUM);
	kit_ip(&s, true, 0);
	kit_l4(&s, true, KIT_TCP);
	kit_compile(&s, 1, false, &t);
	sum = template_payload_sum(&t);
	assert_non_null(sum);
	assert_int_equal(sum->start, t.length - 20);
	assert_int_equal(t.sums, 2);
	memset(payload, 0xa5, sizeof(payload));
	template_write(&t, 0, 271, NULL, a);
	template_write(&t, 0, 271, payload, b);
	assert_memory_not_equal(a + sum->offset, b + sum->offset, 2);
	memcpy(b + sum->offset, a + sum->offset, 2);
	assert_memory_equal(a, b, t.length);
	// Bytes at the tag's place do not count.
	template_write(&t, 0, 271, payload, b);
	memset(payload + 271 - t.length - TAG_BYTES, 0, TAG_BYTES);
	template_write(&t, 0, 271, payload, a);
	assert_memory_equal(a, b, t.length);
	// Without a checksum of the innermost layer, the outer one depends on the payload.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	kit_tunnel(&s, KIT_GTPU6_CHECKSUM);
	kit_ip(&s, false, 0);
	kit_l4(&s, false, KIT_UDP);
	kit_compile(&s, 1, false, &t);
	assert_int_equal(template_payload_sum(&t)->start, 14 + 40);
	s.layers = 2; // ethernet, ipv6
	kit_compile(&s, 1, false, &t);
	assert_null(template_payload_sum(&t));
}

// A UDP checksum that comes out as 0 is sent as 0xffff (RFC 768).
static void test_udp_zero(void **state)
{
	uint8_t frame[100];
	struct stack s = {0};
	struct template t;
	struct decoded d;
	uint32_t zeros = 0;

	build_ip(&s, false, false);
	struct layer *l = kit_layer(&s, LAYER_UDP);

	kit_count(l, "source", 0, 1, 1, 0);
	kit_set(l, "checksum", 1);
	kit_compile(&s, 65536, false, &t);
	for (uint32_t flow = 0; flow < 65536; flow++) {
		kit_frame(&t, flow, t.length + TAG_BYTES, frame);
		assert_false(frame[t.length - 2] == 0 && frame[t.length - 1] == 0);
		assert_int_equal(decode_frame(frame, (uint16_t)(t.length + TAG_BYTES), &d), 0);
		zeros += frame[t.length - 2] == 0xff && frame[t.length - 1] == 0xff;
	}
	assert_in_range(zeros, 1, 2); // ports 0 and 65535 are the same to the sum
}

static void test_name(void **state)
{
	static const struct {
		uint16_t offset;
		const char *name;
	} want[] = {
		{0, "ethernet.destination"},
		{11, "ethernet.source"},
		{13, "ethernet.type"},
		{14, "vlan.priority/dei/id"},
		{15, "vlan.id"},
		{17, "vlan.type"},
		{18, "inner vlan.priority/dei/id"},
		{22, "ipv4.version/header_length"},
		{23, "ipv4.dscp/ecn"},
		{24, "ipv4.length"},
		{30, "ipv4.ttl"},
		{33, "ipv4.checksum"},
		{34, "ipv4.source"},
		{42, "udp.source"},
		{49, "udp.checksum"},
		{50, "gtpu.flags"},
		{57, "gtpu.teid"},
		{61, "gtpu.next_extension"},
		{62, "gtpu.extensions"},
		{65, "gtpu.extensions"},
		{66, "gtpu.extensions"},
		{73, "gtpu.extensions"},
		{74, "inner ipv4.version/header_length"},
		{93, "inner ipv4.destination"},
		{94, "inner udp.source"},
		{101, "inner udp.checksum"},
		{102, "payload"},
		{9000, "payload"},
	};
	struct stack s = {0};
	struct template t;
	char name[64], small[5];

	kit_ethernet(&s);
	kit_set(kit_layer(&s, LAYER_VLAN), "id", 1);
	kit_set(kit_layer(&s, LAYER_VLAN), "id", 2);
	kit_tunnel(&s, KIT_GTPU4_ALL);
	kit_ip(&s, false, 0);
	kit_l4(&s, false, KIT_UDP);
	kit_compile(&s, 1, false, &t);
	assert_int_equal(t.length, 102);
	for (uint32_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		template_name(&t, want[i].offset, name, sizeof(name));
		assert_string_equal(name, want[i].name);
	}
	template_name(&t, 24, small, sizeof(small));
	assert_string_equal(small, "ipv4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scapy),
		cmocka_unit_test(test_combinations),
		cmocka_unit_test(test_payload_sum),
		cmocka_unit_test(test_udp_zero),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
