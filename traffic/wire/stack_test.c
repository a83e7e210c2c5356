// SPDX-License-Identifier: Apache-2.0
// The compiler of stacks: counted, masked, computed and refused fields.
#include "traffic/wire/decode.h"
#include "traffic/wire/stack_kit.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

// The value of a field of a layer, as the flow has it, from the bytes that were written.
static uint64_t read_bits(const uint8_t *frame, uint32_t bit, uint32_t bits)
{
	uint64_t number = 0;

	for (uint32_t i = bit; i < bit + bits; i++)
		number = number << 1 | (frame[i / 8] >> (7 - i % 8) & 1);
	return number;
}

// Each counted field has its own value for each flow, computed here from the words of the profile.
static void test_counting(void **state)
{
	uint8_t frame[512];
	struct template t;
	struct stack s;

	for (uint32_t i = 0; i < KIT_STACKS; i++) {
		kit_stack(i, &s);
		kit_compile(&s, 200, false, &t);
		for (uint32_t flow = 0; flow < 200; flow += 13) {
			uint32_t start = 0, counted = 0;

			kit_frame(&t, flow, t.length + TAG_BYTES, frame);
			for (uint32_t k = 0; k < s.layers; start += layer_bytes(&s.layer[k++])) {
				const struct layer *l = &s.layer[k];
				const struct layer_form *form = layer_form(l->kind);

				for (uint32_t j = 0; j < form->fields; j++) {
					const struct value *v = &l->field[j];
					uint32_t bit = start * 8 + (uint32_t)form->field[j].bit,
						 bits = form->field[j].bits;
					uint32_t n = v->given ? flow / v->each : 0, word;

					if (!v->given || v->step == 0)
						continue;
					memcpy(&word, v->bytes + v->word * 4, 4);
					word = ntohl(word) + v->step * (v->count ? n % v->count : n);
					bits -= 32 * (3 - v->word);
					if (bits > 32) {
						bit += bits - 32;
						bits = 32;
					}
					assert_int_equal(read_bits(frame, bit, bits), word);
					counted++;
				}
			}
			assert_int_equal(counted, t.fields);
		}
	}
}

// A receiver's checks: bytes under the mask, then the decoder.
static bool noticed(const struct template *t, const uint8_t *want, const uint8_t *got, uint32_t length)
{
	struct decoded d;

	for (uint32_t i = 0; i < t->length; i++)
		if ((want[i] ^ got[i]) & t->mask[i])
			return true;
	return decode_frame(got, (uint16_t)length, &d) != 0;
}

// Any single wrong bit of the headers is noticed, unless the profile allows any value and no checksum covers it. With
// `any` for an IPv4 id, its header's checksum is masked off too, yet must hold.
static void test_flipped_bits(void **state)
{
	uint8_t want[512], got[512];
	struct template t;
	struct stack s;

	for (uint32_t i = 0; i < KIT_STACKS; i++) {
		uint32_t v4 = 0, start = 0;

		kit_stack(i, &s);
		for (uint32_t k = 0; k < s.layers; k++)
			if (s.layer[k].kind == LAYER_IPV4) {
				kit_any(&s.layer[k], "id");
				v4++;
			}
		kit_compile(&s, 200, true, &t);
		uint32_t length = t.length + TAG_BYTES + 3;

		kit_frame(&t, 77, length, want);
		memcpy(got, want, sizeof(got));
		for (uint32_t bit = 0; bit < t.length * 8u; bit++) {
			got[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			if (!noticed(&t, want, got, length))
				fail_msg("stack %u: bit %u of byte %u", i, bit % 8, bit / 8);
			got[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		}
		for (uint32_t k = 0; k < s.layers; start += layer_bytes(&s.layer[k++]))
			if (s.layer[k].kind == LAYER_IPV4) {
				assert_int_equal(t.mask[start + 4] | t.mask[start + 5], 0);
				assert_int_equal(t.mask[start + 10] | t.mask[start + 11], 0);
				assert_int_equal(t.mask[start + 3] & t.mask[start + 6], 0xff);
				v4--;
			}
		assert_int_equal(v4, 0);
	}
}

// A UDP port that may be anything also masks the checksums that cover it, outer ones too, and no others.
static void test_any_port(void **state)
{
	struct stack s = {0};
	struct template t;
	struct layer *l;
	uint32_t sums = 0;

	kit_ethernet(&s);
	kit_tunnel(&s, KIT_GTPU6_CHECKSUM);
	kit_ip(&s, false, 0);
	l = kit_layer(&s, LAYER_UDP);
	kit_any(l, "source");
	kit_set(l, "checksum", 1);
	kit_compile(&s, 1, true, &t);
	for (uint32_t i = 0; i < t.sums; i++) {
		uint8_t want = t.sum[i].kind == SUM_IPV4_HEADER ? 0xff : 0;

		assert_int_equal(t.mask[t.sum[i].offset], want);
		assert_int_equal(t.mask[t.sum[i].offset + 1], want);
		sums++;
	}
	assert_int_equal(sums, 3);
	assert_int_equal(t.mask[t.length - 8] | t.mask[t.length - 7], 0);
	assert_int_equal(t.mask[t.length - 6], 0xff);
	// A checksum that may be anything is not verified at all.
	kit_any(l, "checksum");
	kit_compile(&s, 1, true, &t);
	assert_int_equal(t.sums, 2);
	assert_int_equal(t.mask[t.length - 2], 0);
	// A tag's TPID stands in the header before it.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	l = kit_layer(&s, LAYER_VLAN);
	kit_set(l, "id", 5);
	kit_any(l, "tpid");
	kit_compile(&s, 1, true, &t);
	assert_int_equal(t.mask[12] | t.mask[13], 0);
	assert_int_equal(t.mask[11] & t.mask[14], 0xff);
}

static void test_presets(void **state)
{
	struct stack s = {0};
	struct template t;

	// One tag: 0x8100. The outer of two: 0x88a8. The profile's value has priority.
	kit_ethernet(&s);
	kit_set(kit_layer(&s, LAYER_VLAN), "id", 1);
	kit_compile(&s, 1, false, &t);
	assert_memory_equal(t.bytes + 12, "\x81\x00\x00\x01\x88\xb5", 6);
	assert_int_equal(t.inner_l3, 0);
	kit_set(kit_layer(&s, LAYER_VLAN), "id", 2);
	kit_compile(&s, 1, false, &t);
	assert_memory_equal(t.bytes + 12, "\x88\xa8\x00\x01\x81\x00\x00\x02\x88\xb5", 10);
	kit_set(&s.layer[1], "tpid", 0x9100);
	kit_set(&s.layer[2], "type", 0x1234);
	kit_compile(&s, 1, false, &t);
	assert_memory_equal(t.bytes + 12, "\x91\x00\x00\x01\x81\x00\x00\x02\x12\x34", 10);
	// Ports of GTP-U, and of others.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	kit_tunnel(&s, KIT_GTPU6);
	kit_ip(&s, false, 0);
	kit_layer(&s, LAYER_UDP);
	kit_compile(&s, 1, false, &t);
	assert_memory_equal(t.bytes + 54, "\x08\x68\x08\x68", 4);
	assert_memory_equal(t.bytes + t.length - 8, "\xc0\x00\x00\x09", 4);
	assert_int_equal(t.inner_l3, t.length - 28);
	// Over IPv6 there is a checksum unless the profile says 0 (RFC 8200 §8.1).
	assert_int_equal(t.sums, 2);
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	kit_ip(&s, true, 0);
	kit_layer(&s, LAYER_UDP);
	kit_compile(&s, 1, false, &t);
	assert_int_equal(t.sums, 1);
	kit_set(&s.layer[2], "checksum", 0);
	kit_compile(&s, 1, false, &t);
	assert_int_equal(t.sums, 0);
}

// Lengths and checksums that the profile gives are sent as they are, and the decoder finds them wrong.
static void test_given(void **state)
{
	static const struct {
		uint32_t layer;
		const char *field, *fault;
	} wrong[] = {
		{1, "length", "ipv4: length beyond the packet"},
		{1, "checksum", "ipv4: header checksum"},
		{1, "version", "ipv4: version"},
		{2, "length", "udp: length beyond the packet"},
		{3, "length", "gtpu: length beyond the packet"},
		{3, "flags", "gtpu: version or protocol type"},
		{4, "length", "ipv6: length beyond the packet"},
		{5, "checksum", "tcp: checksum"},
		{5, "data_offset", "tcp: data offset"},
	};
	uint8_t frame[256];
	struct template t;
	struct decoded d;

	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct stack s = {0};

		kit_ethernet(&s);
		kit_tunnel(&s, KIT_GTPU4);
		kit_ip(&s, true, 0);
		kit_l4(&s, true, KIT_TCP);
		const struct layer *l = &s.layer[wrong[i].layer];
		uint32_t bits = layer_form(l->kind)->field[layer_field(l->kind, wrong[i].field)].bits;

		kit_set(&s.layer[wrong[i].layer], wrong[i].field, (1u << bits) - 1);
		kit_compile(&s, 1, false, &t);
		kit_frame(&t, 0, t.length + TAG_BYTES, frame);
		assert_int_equal(decode_frame(frame, (uint16_t)(t.length + TAG_BYTES), &d), -1);
		assert_string_equal(d.fault, wrong[i].fault);
	}
}

static void refused(const struct stack *s, uint32_t flows, bool received, int line, const char *sentence)
{
	char error[256] = "";
	struct template t;
	int at = -1;

	assert_int_equal(stack_compile(s, flows, received, &t, error, sizeof(error), &at), -1);
	assert_string_equal(error, sentence);
	assert_int_equal(at, line);
	// A short buffer ends within it.
	memset(error, 'x', sizeof(error));
	assert_int_equal(stack_compile(s, flows, received, &t, error, 6, &at), -1);
	assert_memory_equal(error, sentence, 5);
	assert_int_equal(error[5], 0);
	assert_int_equal(error[6], 'x');
}

static void test_orders(void **state)
{
	static const struct {
		enum layer_kind kind[6];
		int line;
		const char *error;
	} bad[] = {
		{{LAYER_IPV4}, 10, "ipv4: a stack begins with ethernet"},
		{{LAYER_ETHERNET, LAYER_UDP}, 20, "udp: cannot follow ethernet"},
		{{LAYER_ETHERNET, LAYER_ETHERNET}, 20, "inner ethernet: cannot follow ethernet"},
		{{LAYER_ETHERNET, LAYER_IPV4, LAYER_VLAN}, 30, "vlan: cannot follow ipv4"},
		{{LAYER_ETHERNET, LAYER_IPV4, LAYER_GTPU}, 30, "gtpu: cannot follow ipv4"},
		{{LAYER_ETHERNET, LAYER_IPV4, LAYER_ICMPV6}, 30, "icmpv6: cannot follow ipv4"},
		{{LAYER_ETHERNET, LAYER_IPV6, LAYER_ICMP}, 30, "icmp: cannot follow ipv6"},
		{{LAYER_ETHERNET, LAYER_IPV6, LAYER_TCP, LAYER_GTPU}, 40, "gtpu: cannot follow tcp"},
		{{LAYER_ETHERNET, LAYER_PPPOE, LAYER_VLAN}, 30, "vlan: cannot follow pppoe"},
		{{LAYER_ETHERNET, LAYER_PPPOE}, 20, "pppoe: ipv4 or ipv6 must follow"},
		{{LAYER_ETHERNET, LAYER_IPV4, LAYER_UDP, LAYER_GTPU}, 40,
			"gtpu: ipv4 or ipv6 must follow, this is a G-PDU (type 255)"},
		{{LAYER_ETHERNET, LAYER_IPV4, LAYER_UDP, LAYER_GTPU, LAYER_UDP}, 50, "inner udp: cannot follow gtpu"},
	};
	struct stack s = {0};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&s, 0, sizeof(s));
		for (uint32_t k = 0; k < 6 && (k == 0 || bad[i].kind[k] != LAYER_ETHERNET || i == 2); k++) {
			struct layer *l = kit_layer(&s, bad[i].kind[k]);

			for (uint32_t f = 0; f < layer_form(l->kind)->fields; f++)
				if (layer_form(l->kind)->field[f].role == ROLE_REQUIRED)
					kit_set(l, layer_form(l->kind)->field[f].name, 1);
		}
		refused(&s, 1, false, bad[i].line, bad[i].error);
	}
	memset(&s, 0, sizeof(s));
	refused(&s, 1, false, 0, "no layers");
	s.layers = JOB_LAYERS + 1;
	refused(&s, 1, false, 0, "more than 16 layers");
	// A message of GTP-U that is no G-PDU carries no packet.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	kit_tunnel(&s, KIT_GTPU4);
	kit_set(&s.layer[3], "type", 1);
	kit_ip(&s, false, 0);
	refused(&s, 1, false, 40, "gtpu: nothing can follow, this is no G-PDU (type 255)");
}

static void test_values(void **state)
{
	struct stack good = {0}, s;

	kit_ethernet(&good);
	kit_set(kit_layer(&good, LAYER_VLAN), "id", 1);
	kit_tunnel(&good, KIT_GTPU4_ALL);
	kit_ip(&good, false, 0);
	kit_l4(&good, false, KIT_UDP);
	s = good;
	kit_set(&s.layer[1], "id", 4096);
	refused(&s, 1, false, 20, "vlan.id: does not fit in 12 bits");
	kit_set(&s.layer[0], "type", 5);
	refused(&s, 1, false, 10, "ethernet.type: the vlan that follows says it, as its tpid");
	s = good;
	s.layer[4].field[layer_field(LAYER_GTPU, "teid")].given = false;
	refused(&s, 1, false, 50, "gtpu.teid: must be given");
	s = good;
	kit_any(&s.layer[5], "source");
	refused(&s, 1, false, 60, "inner ipv4.source: `any` is for what is received");
	s = good;
	kit_set(&s.layer[6], "checksum", 2);
	refused(&s, 1, true, 70, "inner udp.checksum: 0 (none) or 1 (computed)");
	s = good;
	kit_count(&s.layer[6], "destination", 2000, 8, 5, 20);
	refused(&s, 96, true, 70, "inner udp.destination: 2152 is the port of GTP-U, and no gtpu follows (flow 95)");
	kit_count(&s.layer[6], "destination", 2000, 8, 5, 19);
	struct template t;

	kit_compile(&s, 96, false, &t);
	kit_count(&s.layer[6], "destination", 2000, 8, 5, 20);
	kit_compile(&s, 95, false, &t);
	// Extensions.
	s = good;
	s.layer[4].extension[1].length = 4;
	refused(&s, 1, false, 50, "gtpu.extensions: content of 4 bytes; it must be 2, 6, 10, … up to 30");
	s.layer[4].extension[1].length = 34;
	refused(&s, 1, false, 50, "gtpu.extensions: content of 34 bytes; it must be 2, 6, 10, … up to 30");
	s.layer[4].extension[1].length = 6;
	s.layer[4].extension[0].type = 0;
	refused(&s, 1, false, 50, "gtpu.extensions: type 0 says that there is none");
	s.layer[4].extensions = 200;
	refused(&s, 1, false, 50, "gtpu: more than 4 extensions");
	s = good;
	s.layer[1].extensions = 1;
	refused(&s, 1, false, 20, "vlan: has no extensions");
}

// The first flow whose value does not fit is named; one flow less is valid.
static void test_overflow(void **state)
{
	static const struct {
		enum layer_kind kind;
		const char *field;
		uint64_t base;
		uint32_t word, step, each, count, flow;
		const char *error;
	} bad[] = {
		{LAYER_VLAN, "id", 4000, 3, 1, 1, 0, 96, "vlan.id: leaves its 12 bits at flow 96"},
		{LAYER_VLAN, "id", 4000, 3, 10, 7, 0, 70, "vlan.id: leaves its 12 bits at flow 70"},
		{LAYER_VLAN, "priority", 6, 3, 1, 3, 3, 6, "vlan.priority: leaves its 3 bits at flow 6"},
		{LAYER_ETHERNET, "source", 0x02ffffffff00, 3, 1, 1, 0, 256,
			"ethernet.source: leaves its 32 bits at flow 256"},
		{LAYER_ETHERNET, "source", 0xffff00000000, 2, 1, 1, 0, 1,
			"ethernet.source: leaves its 16 bits at flow 1"},
		{LAYER_IPV4, "source", 0xffffff00, 3, 128, 2, 0, 4, "ipv4.source: leaves its 32 bits at flow 4"},
	};
	struct stack s = {0};
	struct template t;

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&s, 0, sizeof(s));
		kit_ethernet(&s);
		kit_set(kit_layer(&s, LAYER_VLAN), "id", 1);
		kit_ip(&s, false, 0);
		kit_set(&s.layer[2], "id", 0);
		struct layer *l = &s.layer[bad[i].kind == LAYER_IPV4 ? 2 : bad[i].kind];

		kit_count(l, bad[i].field, bad[i].base, bad[i].step, bad[i].each, bad[i].count)->word =
			(uint8_t)bad[i].word;
		refused(&s, bad[i].flow + 1, false, l->line, bad[i].error);
		kit_compile(&s, bad[i].flow, false, &t);
		kit_value(l, bad[i].field)->each = 0;
		assert_int_equal(stack_compile(&s, 5, false, &t, (char[80]){0}, 80, &(int){0}), -1);
	}
	kit_count(&s.layer[2], "source", 1, 1, 1, 0)->word = 2;
	refused(&s, 5, false, 30, "ipv4.source: the step does not fit in 32 bits");
}

static void test_room(void **state)
{
	struct stack s = {0};

	kit_ethernet(&s);
	for (uint32_t i = 0; i < 4; i++)
		kit_tunnel(&s, KIT_GTPU6);
	kit_ip(&s, true, 0);
	refused(&s, 1, false, 140, "deeper ipv6: more than 256 bytes of headers");
	// Fifteen tags with a counted priority, id and dei each are more than 32 fields.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	while (s.layers < JOB_LAYERS) {
		struct layer *l = kit_layer(&s, LAYER_VLAN);

		kit_count(l, "id", 0, 1, 1, 0);
		kit_count(l, "priority", 0, 1, 1, 2);
		kit_count(l, "dei", 0, 1, 1, 2);
	}
	refused(&s, 8, false, 120, "deeper vlan.dei: more than 32 fields that count");
	// Four tunnels over IPv4 have twelve lengths and eight checksums; the inner packet adds one of each.
	memset(&s, 0, sizeof(s));
	kit_ethernet(&s);
	for (uint32_t i = 0; i < 4; i++)
		kit_tunnel(&s, KIT_GTPU4_CHECKSUM);
	kit_ip(&s, false, 0);
	refused(&s, 1, false, 140, "deeper ipv4.length: more than 12 lengths");
	kit_set(&s.layer[1], "length", 500);
	refused(&s, 1, false, 20, "ipv4.checksum: more than 8 checksums");
}

static void test_forms(void **state)
{
	enum layer_kind kind;

	for (uint32_t i = 0; i < LAYER_KINDS; i++) {
		const struct layer_form *form = layer_form((enum layer_kind)i);

		assert_ptr_equal(layer_form_by_name(form->name, &kind), form);
		assert_int_equal(kind, i);
		for (int k = 0; k < form->fields; k++)
			assert_int_equal(layer_field(kind, form->field[k].name), k);
		assert_int_equal(layer_field(kind, "colour"), -1);
	}
	assert_null(layer_form_by_name("mpls", &kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_any_port),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_given),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
