// SPDX-License-Identifier: Apache-2.0
// The fast path decides as the full nodes do, for every frame. Each is sent right behind a plain G-PDU of its session:
// once with all entries forgotten, once when both have one. All counters are equal, and the same frames leave.
#include "flow/flow.h"
#include "gtpu/tunnel_fixture.h"

// ---- what became of a vector ----------------------------------------------------------------------------------------

#define WORDS 2048
#define MOST_OUT 64

static struct outcome {
	uint64_t words[WORDS]; // differences of counters
	uint32_t counters, out;
	struct left {
		uint32_t port, length;
		uint8_t bytes[9216];
	} left[MOST_OUT];
} full, fast;

struct subject {
	char name[64];
	const struct tunnel_case *c;
	const char *port;
	struct frame valid, example;
	uint32_t l3, gtpu, inner; // offsets
	int six; // the outer header's family
	uint32_t fasts; // frames that took the fast path
};

static int setup(void **state)
{
	start_fixture(NULL);
	return 0;
}

static void keep_frames(struct outcome *o)
{
	static const char *const ports[] = {"ran", "peers", "internet", "homes", "loose"};

	for (uint32_t p = 0; p < RTE_DIM(ports); p++)
		for (uint32_t i = 0; i < kit_count(ports[p]); i++) {
			const struct kit_frame *k = kit_frame(ports[p], i);
			struct left *l = &o->left[o->out++];

			assert_true(o->out < MOST_OUT && k->length <= sizeof(l->bytes));
			l->port = p;
			l->length = k->length;
			memcpy(l->bytes, k->bytes, k->length);
		}
}

static int same(const struct left *a, const struct left *b)
{
	return a->port == b->port && a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

// Those of different flows may overtake each other.
static int same_frames(void)
{
	for (uint32_t i = 0; i < full.out; i++) {
		uint32_t in_full = 0, in_fast = 0;

		for (uint32_t k = 0; k < full.out; k++) {
			in_full += (uint32_t)same(&full.left[i], &full.left[k]);
			in_fast += k < fast.out && same(&full.left[i], &fast.left[k]);
		}
		if (in_full != in_fast)
			return 0;
	}
	return full.out == fast.out;
}

// Returns how many packets took the full nodes.
static uint64_t run(struct outcome *o, const char *port, const struct frame *example, const uint8_t *bytes, uint32_t n)
{
	struct api_total_row before = kit_totals(), after;
	uint64_t packets = kit_node_packets("core-input");

	memset(o->words, 0, sizeof(o->words));
	o->out = 0;
	worker_identify_from(worker_get(0), 1, 1);
	kit_clear();
	kit_count_words(o->words, WORDS, -1ull);
	assert_int_equal(kit_send(port, example->at, example->length), 0);
	assert_int_equal(kit_send(port, bytes, n), 0);
	kit_run();
	o->counters = kit_count_words(o->words, WORDS, 1);
	packets = kit_node_packets("core-input") - packets;
	keep_frames(o);
	assert_true(kit_balance());
	after = kit_totals();
	if (after.held != before.held || after.originated != before.originated || after.punted != before.punted)
		settle_fixture();
	return packets;
}

static void forget_all(void)
{
	for (uint32_t i = 0; i < session_pools.rules; i++)
		session_pools.state[i].key = 0;
	flow_routed[0].of_vrf[0].key = 0;
}

// Returns 1 when the frame took the fast path, once it had an entry.
static int as_the_full_nodes(const struct subject *s, const char *what, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	const char *name = s->name;

	forget_all();
	assert_int_equal(run(&full, s->port, &s->example, bytes, n), 2);
	uint64_t packets = run(&fast, s->port, &s->example, bytes, n);
	if (packets > 1)
		fail_msg("%s, %s %u: the example took the full nodes", name, what, at);
	assert_int_equal(full.counters, fast.counters);
	for (uint32_t i = 0; i < full.counters; i++)
		if (full.words[i] != fast.words[i])
			fail_msg("%s, %s %u: %s (word %u) rose by %ld, by the full nodes %ld", name, what, at,
				i < reason_count() ? reason_get((uint16_t)i)->name : "a counter", i, fast.words[i],
				full.words[i]);
	if (!same_frames())
		fail_msg("%s, %s %u: other frames left", name, what, at);
	return packets == 0;
}

// ---- the frames -----------------------------------------------------------------------------------------------------

static void make_subject(struct subject *s, const struct tunnel_case *c, int family, uint8_t qfi)
{
	snprintf(s->name, sizeof(s->name), "%s, IPv%d%s", c->name, family, qfi == NO_QFI ? "" : ", container");
	s->c = c;
	s->port = "ran";
	gpdu(&s->valid, c, family, qfi, 1, 40);
	gpdu(&s->example, c, family, qfi, 1, 40);
	for (int k = 0; k < 2; k++) // a 5-tuple's second packet makes its entry
		kit_send("ran", s->example.at, s->example.length);
	kit_run();
	s->l3 = c->vlan != 0 ? 18 : 14;
	s->six = strchr(c->local, ':') != NULL;
	s->gtpu = s->l3 + (s->six ? 48 : 28);
	s->inner = s->gtpu + (qfi == NO_QFI ? 8 : 16);
	s->fasts = 0;
}

// A packet of no session; from "internet" where UEs are looked up.
static void make_routed(struct subject *s, const char *port, int family)
{
	snprintf(s->name, sizeof(s->name), "routed from %s, IPv%d", port, family);
	s->port = port;
	ip_packet(&s->valid, family == 4 ? FAR4 : FAR6, family == 4 ? "198.18.0.9" : "2001:db8:18::9", 40);
	link_layer(&s->valid, s->port, 1);
	s->example = s->valid;
	s->example.at = s->example.room + (s->valid.at - s->valid.room);
	s->l3 = s->inner = 14;
	s->gtpu = UINT16_MAX; // none
	s->six = family == 6;
	s->fasts = 0;
}

static void try(struct subject *s, const char *what, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	s->fasts += (uint32_t)as_the_full_nodes(s, what, at, bytes, n);
}

// Of IPv4 headers, and of UDP over IPv6.
static void sum_right(const struct subject *s, uint8_t *bytes, uint32_t n)
{
	if (n >= s->inner + 20 && bytes[s->inner] == 0x45)
		ip4_checksum_set(bytes + s->inner);
	if (n >= s->l3 + 20 && !s->six)
		ip4_checksum_set(bytes + s->l3);
	if (s->six && s->gtpu < n && s->gtpu - 8 + load16(bytes + s->gtpu - 4) <= n)
		frame_udp6_sum(bytes + s->l3);
}

// Makes the lengths of the headers outside fit a frame of n bytes.
static void lengths_right(const struct subject *s, uint8_t *bytes, uint32_t n)
{
	if (n < s->gtpu + 8)
		return;
	store16(bytes + s->l3 + (s->six ? 4 : 2), (uint16_t)(n - s->l3 - (s->six ? 40 : 0)));
	store16(bytes + s->gtpu - 4, (uint16_t)(n - s->gtpu + 8));
	store16(bytes + s->gtpu + 2, (uint16_t)(n - s->gtpu - 8));
	sum_right(s, bytes, n);
}

static void inner_lengths_right(const struct subject *s, uint8_t *bytes, uint32_t n)
{
	uint32_t header = bytes[s->inner] >> 4 == 6 ? 40 : 20, length = n - s->inner;

	if (n < s->inner + header + 8)
		return;
	store16(bytes + s->inner + (header == 40 ? 4 : 2), (uint16_t)(header == 40 ? length - 40 : length));
	store16(bytes + s->inner + header + 4, (uint16_t)(length - header));
	sum_right(s, bytes, n);
}

static void flip_byte(struct subject *s, uint32_t at)
{
	uint8_t bytes[512];
	uint32_t n = s->valid.length;
	int in_header = (at >= s->l3 && at < s->l3 + 20) || (at >= s->inner && at < s->inner + 20) || s->six;

	for (int i = 0; i < 10; i++) {
		memcpy(bytes, s->valid.at, n);
		bytes[at] = i < 8 ? bytes[at] ^ (uint8_t)(1 << i) : i == 8 ? 0 : 0xff;
		try(s, "byte", at, bytes, n);
		if (!in_header)
			continue;
		sum_right(s, bytes, n);
		try(s, "byte with its checksum", at, bytes, n);
	}
}

// Cut off or padded, with lengths as before, right outside, right everywhere.
static void resize(struct subject *s, uint32_t n)
{
	uint8_t bytes[512] = {0};

	memcpy(bytes, s->valid.at, RTE_MIN(n, s->valid.length));
	try(s, "length", n, bytes, n);
	lengths_right(s, bytes, n);
	try(s, "outer length", n, bytes, n);
	inner_lengths_right(s, bytes, n);
	try(s, "true length", n, bytes, n);
}

static uint32_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
	return (uint32_t)(*seed >> 16);
}

// One in so many bytes, lengths and rounds is tried.
static uint32_t stride(void)
{
	const char *text = getenv("FLOW_FRAMES_STEP");
	int n = text != NULL ? atoi(text) : 1;

	return n > 1 ? (uint32_t)n : 1;
}

// Several bytes at a time, checksums and lengths often right again.
static void scramble(struct subject *s, uint64_t seed)
{
	for (uint32_t round = 0; round < 300 / stride(); round++) {
		uint8_t bytes[512] = {0};
		uint32_t n = draw(&seed) % 4 ? s->valid.length : s->inner + 10 + draw(&seed) % 120, what = draw(&seed);

		memcpy(bytes, s->valid.at, RTE_MIN(n, s->valid.length));
		if (what & 1)
			lengths_right(s, bytes, n);
		if (what & 2)
			inner_lengths_right(s, bytes, n);
		for (uint32_t i = 0; i < 1 + what / 16 % 3; i++)
			bytes[s->l3 + draw(&seed) % (s->inner - s->l3 + 46)] = (uint8_t)draw(&seed);
		if (what & 4)
			sum_right(s, bytes, n);
		try(s, "round", round, bytes, n);
	}
}

static void differential(const struct tunnel_case *c)
{
	static struct subject s;

	for (int i = 0; i < 4; i++) {
		make_subject(&s, c, i & 1 ? 6 : 4, i & 2 ? 9 : NO_QFI);
		for (uint32_t at = 0; at < s.inner + 50 && (i == 0 || i == 3); at += stride())
			flip_byte(&s, at);
		for (uint32_t n = 1; n < s.valid.length + 70; n += stride())
			resize(&s, n);
		scramble(&s, 88172645463325252ull + (uint64_t)i);
		assert_in_range(s.fasts, 100 / stride(), UINT32_MAX); // else nothing was compared
	}
}

static void mobile(void **state)
{
	differential(&cases[0]);
}

static void mobile_vlan(void **state)
{
	differential(&cases[1]);
}

static void wireline(void **state)
{
	differential(&cases[2]);
}

static void wireline_vlan(void **state)
{
	differential(&cases[3]);
}

static void mobile_over_six(void **state)
{
	differential(&cases[4]);
}

static void mobile_vlan_over_six(void **state)
{
	differential(&cases[5]);
}

static void wireline_over_six(void **state)
{
	differential(&cases[6]);
}

static void wireline_vlan_over_six(void **state)
{
	differential(&cases[7]);
}

static void routed(void **state)
{
	static struct subject s;

	for (int i = 0; i < 4; i++) {
		settle_fixture(); // ICMP errors have a rate
		make_routed(&s, i & 1 ? "internet" : "ran", i & 2 ? 6 : 4);
		for (uint32_t at = 0; at < s.valid.length; at++)
			flip_byte(&s, at);
		for (uint32_t n = 1; n < s.valid.length + 70; n++)
			resize(&s, n);
		scramble(&s, 88172645463325252ull);
		assert_in_range(s.fasts, 100, UINT32_MAX);
	}
}

// More than one segment.
static void segments(void **state)
{
	static struct subject s;
	static struct frame big;

	make_subject(&s, &cases[0], 4, 9);
	for (uint32_t payload = 1400; payload < 6000; payload += 331) {
		gpdu(&big, &cases[0], 4, 9, 1, payload);
		as_the_full_nodes(&s, "payload", payload, big.at, big.length);
	}
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(mobile),
		cmocka_unit_test(mobile_vlan),
		cmocka_unit_test(wireline),
		cmocka_unit_test(wireline_vlan),
		cmocka_unit_test(mobile_over_six),
		cmocka_unit_test(mobile_vlan_over_six),
		cmocka_unit_test(wireline_over_six),
		cmocka_unit_test(wireline_vlan_over_six),
		cmocka_unit_test(routed),
		cmocka_unit_test(segments),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
