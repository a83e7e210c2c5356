// SPDX-License-Identifier: Apache-2.0
// Access lists against a slow, obvious matcher: random rules and packets of both IP versions, with options, extension
// headers, fragments and protocols without ports; priorities; what a bad list and a cut packet lead to.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/packet.h"
#include "firewall/firewall.h"
#include <errno.h>
#include <netinet/in.h>
#include <rte_eal.h>
#include <rte_vect.h>
#include <stdlib.h>
#include <string.h>

#define FRAME 128

// A packet without a pool: enough for code that only reads it.
struct frame {
	struct rte_mbuf m;
	struct packet p;
	uint8_t bytes[FRAME];
};
static_assert(offsetof(struct frame, p) == sizeof(struct rte_mbuf), "metadata follows the mbuf");

// What the matcher looks at.
struct flow {
	uint8_t family, protocol;
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port; // 0 when there are none
};

static uint64_t random_state = 88172645463325252u;

static uint32_t pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % n;
}

// ---- the matcher -----------------------------------------------------------------------------------------------------

static int prefix_matches(const struct api_address *a, const struct flow *f, const uint8_t *address)
{
	if (a->family == 0)
		return 1;
	for (uint32_t bit = 0; bit < a->prefix; bit++)
		if ((a->bytes[bit / 8] ^ address[bit / 8]) >> (7 - bit % 8) & 1)
			return 0;
	return a->family == f->family;
}

static int rule_matches(const struct api_acl_rule *r, const struct flow *f)
{
	return prefix_matches(&r->source, f, f->source) && prefix_matches(&r->destination, f, f->destination) &&
	       (r->protocol_mask == 0 || r->protocol == f->protocol) && f->source_port >= r->source_port[0] &&
	       f->source_port <= r->source_port[1] && f->destination_port >= r->destination_port[0] &&
	       f->destination_port <= r->destination_port[1];
}

static uint32_t expected_verdict(const struct api_acl *list, const struct flow *f)
{
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(list + 1), *best = NULL;
	for (uint32_t i = 0; i < list->count; i++)
		if (rule_matches(&rule[i], f) && (best == NULL || rule[i].priority > best->priority))
			best = &rule[i];
	return best ? ((uint32_t)(best - rule) + 1) << 1 | best->action : list->default_action;
}

// ---- random rules and packets ----------------------------------------------------------------------------------------

static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_SCTP, 47};

static int with_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

// Addresses from few values, so that rules overlap and packets hit them.
static void random_address(uint8_t *to, uint8_t family)
{
	memset(to, 0, 16);
	to[0] = family == 4 ? 10 : 0x20;
	for (uint32_t i = 1; i < (family == 4 ? 4u : 16u); i++)
		to[i] = (uint8_t)pick(i % 4 == 3 ? 16 : 2);
}

static void random_ports(uint16_t range[2])
{
	range[0] = (uint16_t)(pick(2) ? pick(30) : 0);
	range[1] = (uint16_t)(pick(2) ? range[0] + pick(30) : UINT16_MAX);
}

static struct api_address random_prefix(uint8_t family)
{
	struct api_address a = {0};
	if (family == 0 || pick(5) == 0)
		return a;
	a.family = family;
	a.prefix = (uint8_t)(pick(2) ? (family == 4 ? 32 : 128) : pick(family == 4 ? 33 : 129));
	random_address(a.bytes, family);
	return a;
}

static struct api_acl *random_list(uint32_t count)
{
	static const uint8_t families[] = {0, 4, 4, 4, 6, 6, 6};
	struct api_acl *list = calloc(1, sizeof(*list) + count * sizeof(struct api_acl_rule));
	struct api_acl_rule *r = (struct api_acl_rule *)(list + 1);

	list->count = count;
	list->default_action = pick(2);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t family = families[pick(RTE_DIM(families))];
		r[i].source = random_prefix(family);
		r[i].destination = random_prefix(family);
		r[i].action = (uint8_t)pick(2);
		r[i].priority = pick(3) ? pick(8) : UINT32_MAX - pick(8);
		r[i].protocol = protocols[pick(RTE_DIM(protocols))];
		r[i].protocol_mask = pick(3) ? 0xff : 0;
		r[i].source_port[1] = r[i].destination_port[1] = UINT16_MAX;
		if (r[i].protocol_mask == 0 || with_ports(r[i].protocol)) {
			random_ports(r[i].source_port);
			random_ports(r[i].destination_port);
		}
	}
	return list;
}

// Lays the flow out as a packet. `extra`: bytes of options or extension headers. `fragment`: a later one.
static void make_frame(struct frame *f, const struct flow *flow, uint16_t extra, int fragment)
{
	uint16_t l3 = (uint16_t)pick(20), header = flow->family == 4 ? 20 : 40, l4 = l3 + header + extra;
	uint8_t *ip = f->bytes + l3;
	uint16_t size = flow->family == 4 ? 4 : 16;

	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < FRAME; i++)
		f->bytes[i] = (uint8_t)pick(256);
	memcpy(ip + header - 2 * size, flow->source, size);
	memcpy(ip + header - size, flow->destination, size);
	ip[0] = (uint8_t)(flow->family == 4 ? 0x40 | (header + extra) / 4 : 0x60);
	ip[flow->family == 4 ? 9 : 6] = flow->family == 4 || extra == 0 ? flow->protocol : IPPROTO_DSTOPTS;
	if (flow->family == 4) {
		ip[6] = 0;
		ip[7] = fragment ? 100 : 0;
	}
	if (with_ports(flow->protocol) && !fragment) {
		f->bytes[l4] = (uint8_t)(flow->source_port >> 8);
		f->bytes[l4 + 1] = (uint8_t)flow->source_port;
		f->bytes[l4 + 2] = (uint8_t)(flow->destination_port >> 8);
		f->bytes[l4 + 3] = (uint8_t)flow->destination_port;
	}
	f->m.buf_addr = f->bytes;
	f->m.data_len = l4 + 4;
	f->m.pkt_len = f->m.data_len;
	f->p = (struct packet){.l3 = l3,
		.l4 = l4,
		.ip_version = flow->family,
		.protocol = flow->protocol,
		.fragment = (uint8_t)fragment,
		.length = l4 + 4u - l3};
}

static void random_packet(struct frame *f, struct flow *flow)
{
	int fragment = pick(8) == 0;

	memset(flow, 0, sizeof(*flow));
	flow->family = pick(2) ? 4 : 6;
	flow->protocol = protocols[pick(RTE_DIM(protocols))];
	random_address(flow->source, flow->family);
	random_address(flow->destination, flow->family);
	if (with_ports(flow->protocol) && !fragment) {
		flow->source_port = (uint16_t)pick(60);
		flow->destination_port = (uint16_t)pick(60);
	}
	make_frame(f, flow, pick(4) ? 0 : 8, fragment);
}

// ---- against the matcher ---------------------------------------------------------------------------------------------

static void compare_list(uint32_t rules, uint32_t packets)
{
	static struct frame frame[ACL_VECTOR];
	struct api_acl *list = random_list(rules);
	struct rte_mbuf *m[ACL_VECTOR];
	struct flow flow[ACL_VECTOR];
	uint32_t verdict[ACL_VECTOR];
	int error;

	assert_int_equal(acl_check(list, (uint32_t)(sizeof(*list) + rules * sizeof(struct api_acl_rule))), 0);
	struct acl *a = acl_build(list, 1, &error);
	assert_non_null(a);
	for (uint32_t done = 0; done < packets;) {
		uint32_t n = 1 + pick(ACL_VECTOR);
		for (uint32_t i = 0; i < n; i++) {
			random_packet(&frame[i], &flow[i]);
			m[i] = &frame[i].m;
		}
		acl_classify(a, m, n, verdict);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(verdict[i], expected_verdict(list, &flow[i]));
		done += n;
	}
	acl_free(a);
	free(list);
}

static void test_model(void **unused)
{
	for (uint32_t i = 0; i < 20; i++)
		compare_list(1 + pick(10), 2000);
	compare_list(0, 100);
	compare_list(150, 20000);
	compare_list(600, 5000);
}

// The widest search gives the same answers.
static void test_model_wide(void **unused)
{
	uint16_t before = rte_vect_get_max_simd_bitwidth();
	assert_int_equal(rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512), 0);
	compare_list(150, 20000);
	assert_int_equal(rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_128), 0);
	compare_list(150, 20000);
	rte_vect_set_max_simd_bitwidth(before);
}

// ---- the size of the vAGF paper: 4 K rules ----------------------------------------------------------------------------

// Allowlist of 4,096 flows with wildcards for what the subscriber does not fix, each one found.
static void test_allowlist(void **unused)
{
	enum { RULES = 4096 };
	static struct frame frame;
	struct rte_mbuf *m = &frame.m;
	struct api_acl *list = calloc(1, sizeof(*list) + RULES * sizeof(struct api_acl_rule));
	struct api_acl_rule *r = (struct api_acl_rule *)(list + 1);
	uint32_t verdict;
	int error;

	list->count = RULES;
	for (uint32_t i = 0; i < RULES; i++)
		r[i] = (struct api_acl_rule){.destination = {.family = 4, .prefix = 32, .bytes = {10, 0, i >> 8, i}},
			.source_port = {0, UINT16_MAX},
			.destination_port = {0, UINT16_MAX},
			.action = API_PERMIT,
			.protocol = IPPROTO_UDP,
			.protocol_mask = 0xff,
			.priority = 1};
	struct acl *a = acl_build(list, 4, &error);
	assert_non_null(a);
	for (uint32_t i = 0; i < RULES + 100; i++) {
		struct flow f = {.family = 4,
			.protocol = IPPROTO_UDP,
			.source = {192, 0, 2, 1},
			.destination = {10, 0, i >> 8, i},
			.source_port = 53,
			.destination_port = 4000};
		make_frame(&frame, &f, 0, 0);
		acl_classify(a, &m, 1, &verdict);
		assert_int_equal(verdict, i < RULES ? (i + 1) << 1 | 1 : 0);
	}
	acl_free(a);
	free(list);
}

// ---- cut packets -----------------------------------------------------------------------------------------------------

static void test_too_short(void **unused)
{
	static struct frame frame;
	struct rte_mbuf *m = &frame.m;
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} list = {{API_PERMIT, 1}, {.source_port = {0, UINT16_MAX},
					   .destination_port = {25, 25},
					   .protocol = IPPROTO_TCP,
					   .protocol_mask = 0xff}};
	uint32_t verdict;
	int error;
	struct acl *a = acl_build(&list.head, 1, &error);

	for (uint8_t family = 4; family <= 6; family += 2) {
		struct flow f = {.family = family, .protocol = IPPROTO_TCP, .source_port = 1, .destination_port = 25};
		make_frame(&frame, &f, 0, 0);
		acl_classify(a, &m, 1, &verdict);
		assert_int_equal(verdict, 2 | API_DENY);
		// The frame ends within the ports; then the IP packet does, with padding behind it.
		frame.m.data_len--;
		acl_classify(a, &m, 1, &verdict);
		assert_int_equal(verdict, ACL_TOO_SHORT);
		frame.m.data_len++;
		frame.p.length--;
		acl_classify(a, &m, 1, &verdict);
		assert_int_equal(verdict, ACL_TOO_SHORT);
		// Not even the IP header lies in the first segment.
		frame.m.data_len = 3;
		acl_classify(a, &m, 1, &verdict);
		assert_int_equal(verdict, ACL_TOO_SHORT);
	}
	// A TCP fragment at offset 1 would overwrite the flags (RFC 1858 §4); one at offset 100 is matched without
	// ports.
	struct flow f = {.family = 4, .protocol = IPPROTO_TCP};
	make_frame(&frame, &f, 0, 1);
	acl_classify(a, &m, 1, &verdict);
	assert_int_equal(verdict, API_PERMIT);
	frame.bytes[frame.p.l3 + 7] = 1;
	acl_classify(a, &m, 1, &verdict);
	assert_int_equal(verdict, ACL_TOO_SHORT);
	acl_free(a);
}

// ---- refused lists ---------------------------------------------------------------------------------------------------

static void test_check(void **unused)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} good = {{API_PERMIT, 1}, {.source = {.family = 4, .prefix = 8},
					   .source_port = {0, UINT16_MAX},
					   .destination_port = {0, 9},
					   .protocol = IPPROTO_UDP,
					   .protocol_mask = 0xff}},
	  bad;
	assert_int_equal(acl_check(&good, sizeof(good)), 0);
	assert_int_equal(acl_check(&good, sizeof(good) - 1), EINVAL);
	assert_int_equal(acl_check(&good, sizeof(good.head)), EINVAL);
	bad = good, bad.head.default_action = 2;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.head.count = UINT32_MAX;
	assert_int_equal(acl_check(&bad, sizeof(bad)), E2BIG);
	bad = good, bad.rule.source.prefix = 33;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.source.family = 5;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.destination.family = 6;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.destination_port[0] = 10;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.protocol = IPPROTO_ICMP;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.protocol_mask = 0xf0;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
	bad = good, bad.rule.action = 2;
	assert_int_equal(acl_check(&bad, sizeof(bad)), EINVAL);
}

int main(void)
{
	char *args[] = {"firewall-test", "--no-huge", "--no-shconf", "-m", "512", "--no-pci", "--no-telemetry", "-l",
		"0", "--log-level", "lib.eal:error"};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_model_wide),
		cmocka_unit_test(test_allowlist),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_check),
	};
	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
