// SPDX-License-Identifier: Apache-2.0
// Access lists against a slow, simple matcher: random rules and packets of both IP versions, with options, extension
// headers, fragments and protocols without ports; priorities; bad lists, truncated packets. Packets pass the nodes in
// front of the lists, by four ways. A stage in front of each list asks for the verdicts.
#include "core/node.h"
#include "firewall/firewall.h"
#include "reassembly/follow.h"
#include "session/mobile_fixture.h"
#include "wire/ip.h"
#include <errno.h>
#include <netinet/in.h>
#include <rte_vect.h>

#define UDP_TUNNEL 7000

// What the matcher looks at.
struct flow {
	uint8_t family, protocol;
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port; // 0 when there are none
	uint8_t is_hiding; // a fragment that hides or overwrites ports or flags
};

static uint64_t random_state = 88172645463325252u;

static uint32_t pick(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % n;
}

static struct {
	const struct acl *list;
	const struct flow *flow; // of packets whose ports are known in fragments, too; NULL: unknown
	uint32_t verdict[ACL_VECTOR], count;
} asked;

DROP_REASON(drop_asked, "test-asked", "the test has its verdict")

enum { EDGE_ON, EDGE_DROP, EDGE_COUNT }; // a stage leads on

static void know(struct rte_mbuf *m, const struct flow *f)
{
	struct packet *pkt = packet_of(m);

	if (pkt->fragment == 0)
		return;
	pkt->fragment |= IP_FRAGMENT_FOLLOWS;
	store16(follow_head(m), f->source_port);
	store16(follow_head(m) + 2, f->destination_port);
}

static uint16_t ask(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	assert_true(asked.count + n <= ACL_VECTOR);
	for (uint16_t i = 0; i < n && asked.flow != NULL; i++)
		know(objs[i], &asked.flow[asked.count + i]);
	acl_classify(asked.list, (struct rte_mbuf **)objs, n, &asked.verdict[asked.count]);
	asked.count += n;
	for (uint16_t i = 0; i < n; i++)
		packet_leave(objs[i], &drop_asked, EDGE_DROP);
	rte_node_next_stream_move(graph, node, EDGE_DROP);
	return n;
}

#define ASKING(var, arc, list)                                                                                         \
	static struct rte_node_register var = {.name = "test-" arc,                                                    \
		.process = ask,                                                                                        \
		.nb_edges = EDGE_COUNT,                                                                                \
		.next_nodes = {[EDGE_ON] = "@" arc, [EDGE_DROP] = "drop"}};                                            \
	NODE_STAGE(var, arc, .before = list)
ASKING(uplink_node, "lookup-uplink", "firewall-uplink")
ASKING(tunnel_node, "lookup-tunnel", "firewall-tunnel")
ASKING(ue_node, "lookup-ue", "firewall-ue")

enum way { FROM_HOME, OUT_OF_GTPU, TO_UE, OUT_OF_UDP, WAYS };

static int setup(void **state)
{
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");

	core.udp_port = UDP_TUNNEL;
	fixture_start(NULL);
	kit_begin();
	kit_port("access", API_ROLE_ACCESS);
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	commit();
	return 0;
}

// The way's encapsulation around the IP packet at f->at; padding may follow.
static void send_by(enum way way, struct frame *f)
{
	static const uint8_t home[6] = {2, 0, 0, 0, 0, 1}, access[6] = {2, 0, 0, 0, 0x99, 3};
	const char *port = way == FROM_HOME ? "access" : way == OUT_OF_GTPU ? "ran" : "internet";

	if (way == OUT_OF_GTPU) {
		tunnel(f, "10.1.0.2", "10.1.0.1", 0x102, 9, API_PDU_UL);
	} else if (way == OUT_OF_UDP) {
		frame_udp(f, 5555, UDP_TUNNEL);
		frame_ip(f, "192.0.2.2", "192.0.2.1", IPPROTO_UDP);
	}
	if (way == FROM_HOME) {
		frame_ethernet(f, access, home, f->at[0] >> 4 == 6 ? 0x86dd : 0x0800);
		frame_tag(f, 0x8100, 1);
		frame_tag(f, 0x88a8, 100);
	} else {
		link_layer(f, port, 1);
	}
	for (uint32_t n = pick(4) ? 0 : pick(20); n > 0; n--)
		frame_append(f, "\x00\x19", 1 + pick(2));
	assert_int_equal(kit_send(port, f->at, f->length), 0);
}

// Verdicts on what was sent since the last call.
static const uint32_t *verdicts(const struct acl *a, uint32_t count, const struct flow *flow)
{
	asked.list = a;
	asked.flow = flow;
	asked.count = 0;
	kit_run();
	assert_int_equal(asked.count, count);
	return asked.verdict;
}

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

static int is_of(const struct api_acl_rule *r, uint8_t family)
{
	return (r->source.family == 0 || r->source.family == family) &&
	       (r->destination.family == 0 || r->destination.family == family);
}

static uint32_t expected_verdict(const struct api_acl *list, const struct flow *f)
{
	const struct api_acl_rule *rule = (const struct api_acl_rule *)(list + 1), *best = NULL;
	for (uint32_t i = 0; i < list->count; i++) {
		if (f->is_hiding && is_of(&rule[i], f->family))
			return ACL_TOO_SHORT;
		if (rule_matches(&rule[i], f) && (best == NULL || rule[i].priority > best->priority))
			best = &rule[i];
	}
	return best ? ((uint32_t)(best - rule) + 1) << 1 | best->action : list->default_action;
}

static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_SCTP, IPPROTO_DCCP, 47};

static int with_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_DCCP;
}

// Addresses from few values, so that rules overlap and packets hit them.
static void random_address(uint8_t *to, uint8_t family)
{
	memset(to, 0, 16);
	to[0] = family == 4 ? 11 : 0x20;
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

enum piece { WHOLE, FIRST, LATER };

// The flow as an IP packet. `options`: bytes of options or extension headers. `offset`: of a later fragment; `cut`: so
// many bytes of the transport header are left, of a protocol where nothing else checks that; 0: all.
static void make_packet(
	struct frame *f, const struct flow *flow, uint32_t options, enum piece piece, uint16_t offset, uint32_t cut)
{
	static const char *const any[2] = {"192.0.2.9", "2001:db8::9"};
	uint32_t header = flow->family == 4 ? 20 : 40, size = flow->family == 4 ? 4 : 16;

	frame_payload(f, cut != 0 ? cut : 8 + pick(64));
	for (uint32_t i = 0; i < f->length; i++)
		f->at[i] = (uint8_t)pick(256);
	if (piece != LATER && cut == 0) {
		if (flow->protocol == IPPROTO_UDP)
			frame_udp(f, 0, 0);
		else if (flow->protocol == IPPROTO_TCP)
			frame_tcp(f, 0, 0);
		else
			frame_push(f, 12);
		if (with_ports(flow->protocol)) {
			store16(f->at, flow->source_port);
			store16(f->at + 2, flow->destination_port);
		}
	}
	frame_ip(f, any[flow->family == 6], any[flow->family == 6], flow->protocol);
	memcpy(f->at + header - 2 * size, flow->source, size);
	memcpy(f->at + header - size, flow->destination, size);
	if (piece != WHOLE)
		frame_fragment(f, piece == FIRST ? 0 : offset, piece == FIRST || pick(2));
	if (options != 0)
		frame_options(f, options);
	if (flow->family == 4)
		frame_ip4_sum(f);
}

static void random_packet(struct frame *f, struct flow *flow)
{
	static const uint16_t offsets[] = {1, 2, 100};
	enum piece piece = pick(4) ? WHOLE : pick(2) ? FIRST : LATER;
	uint16_t offset = offsets[pick(RTE_DIM(offsets))];
	uint32_t cut = 0;

	memset(flow, 0, sizeof(*flow));
	flow->family = pick(2) ? 4 : 6;
	flow->protocol = protocols[pick(RTE_DIM(protocols))];
	random_address(flow->source, flow->family);
	random_address(flow->destination, flow->family);
	if (piece != LATER && flow->protocol == IPPROTO_DCCP && pick(4) == 0)
		cut = 1 + pick(3);
	if (with_ports(flow->protocol)) {
		flow->source_port = (uint16_t)pick(60);
		flow->destination_port = (uint16_t)pick(60);
	}
	flow->is_hiding = cut != 0 || (piece == LATER && flow->protocol == IPPROTO_TCP && offset == 1);
	make_packet(f, flow, pick(4) ? 0 : 8 * (1 + pick(4)), piece, offset, cut);
}

static void compare_list(uint32_t rules, uint32_t packets)
{
	struct api_acl *list = random_list(rules);
	struct flow flow[ACL_VECTOR];
	static struct frame f;
	int error;

	assert_int_equal(acl_check(list, (uint32_t)(sizeof(*list) + rules * sizeof(struct api_acl_rule))), 0);
	struct acl *a = acl_build(list, 1, &error);
	assert_non_null(a);
	for (uint32_t done = 0; done < packets;) {
		uint32_t n = 1 + pick(ACL_VECTOR);
		enum way way = pick(WAYS);

		for (uint32_t i = 0; i < n; i++) {
			random_packet(&f, &flow[i]);
			send_by(way, &f);
		}
		const uint32_t *verdict = verdicts(a, n, flow);
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

// The size of the vAGF paper: 4 K rules.

// Allowlist of 4,096 flows, with wildcards for fields that the subscriber leaves open; each is found.
static void test_allowlist(void **unused)
{
	enum { RULES = 4096 };
	static struct frame frame;
	struct api_acl *list = calloc(1, sizeof(*list) + RULES * sizeof(struct api_acl_rule));
	struct api_acl_rule *r = (struct api_acl_rule *)(list + 1);
	int error;

	list->count = RULES;
	for (uint32_t i = 0; i < RULES; i++)
		r[i] = (struct api_acl_rule){.destination = {.family = 4, .prefix = 32, .bytes = {11, 0, i >> 8, i}},
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
			.destination = {11, 0, i >> 8, i},
			.source_port = 53,
			.destination_port = 4000};
		make_packet(&frame, &f, 0, WHOLE, 0, 0);
		send_by(TO_UE, &frame);
		assert_int_equal(*verdicts(a, 1, NULL), i < RULES ? (i + 1) << 1 | 1 : 0);
	}
	acl_free(a);
	free(list);
}

// RFC 1858, RFC 3128: a list on ports judges the fragment that has them. A fragment that hides ports, or overwrites
// checked bytes, is dropped.
static void test_fragments(void **unused)
{
	static struct frame f;
	struct {
		struct api_acl head;
		struct api_acl_rule rule;
	} list = {{API_PERMIT, 1}, {.source_port = {0, UINT16_MAX},
					   .destination_port = {25, 25},
					   .protocol = IPPROTO_TCP,
					   .protocol_mask = 0xff}};
	static const struct {
		enum piece piece;
		uint16_t offset, port;
		uint32_t options, verdict;
	} row[] = {{WHOLE, 0, 25, 0, 2 | API_DENY}, {WHOLE, 0, 25, 8, 2 | API_DENY}, {WHOLE, 0, 26, 0, API_PERMIT},
		{FIRST, 0, 25, 0, 2 | API_DENY}, {FIRST, 0, 25, 8, 2 | API_DENY}, {FIRST, 0, 26, 0, API_PERMIT},
		{LATER, 1, 26, 0, ACL_TOO_SHORT}, {LATER, 1, 26, 8, ACL_TOO_SHORT}, {LATER, 100, 25, 0, 2 | API_DENY},
		{LATER, 100, 25, 8, 2 | API_DENY}, {LATER, 100, 26, 0, API_PERMIT}};
	int error;
	struct acl *a = acl_build(&list.head, 1, &error);

	assert_non_null(a);
	for (enum way way = 0; way < WAYS; way++)
		for (uint8_t family = 4; family <= 6; family += 2)
			for (uint32_t i = 0; i < RTE_DIM(row); i++) {
				struct flow flow = {
					.family = family, .protocol = IPPROTO_TCP, .destination_port = row[i].port};

				random_address(flow.source, family);
				random_address(flow.destination, family);
				for (int known = 0; known < 2; known++) {
					int asks = row[i].piece != WHOLE && row[i].verdict != ACL_TOO_SHORT && !known;

					make_packet(&f, &flow, row[i].options, row[i].piece, row[i].offset, 0);
					send_by(way, &f);
					assert_int_equal(*verdicts(a, 1, known ? &flow : NULL),
						asks ? ACL_FRAGMENT : row[i].verdict);
				}
			}
	acl_free(a);
}

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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_model_wide),
		cmocka_unit_test(test_allowlist),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
