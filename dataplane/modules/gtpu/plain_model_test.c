// SPDX-License-Identifier: Apache-2.0
// The fast path of plain G-PDUs decides as the full parse does, for every frame: each is sent right behind an example of a
// plain G-PDU, and
// again when core-input has looked at so many other packets of the vector that it takes no example. Both vectors hold the same
// frames, so everything that counts must count the same, and nodes behind must see the same metadata.
#include "flow/off_stage.h"
#include "gtpu/plain_fixture.h"
#include <rte_graph.h>

// ---- what became of a vector -----------------------------------------------------------------------------------------------------

#define WORDS 1024
#define MAX_SEEN 64
#define OUT_BYTES 65536

struct seen {
	struct packet packet;
	uint32_t segments, offset, length, total;
	const struct rte_node *where;
};

static struct outcome {
	uint64_t words[WORDS]; // differences of counters
	uint32_t counters, seens, out;
	struct seen seen[MAX_SEEN]; // by session-tunnel and firewall-downlink
	uint8_t frames[OUT_BYTES]; // that left: port, length, bytes
} outcomes[2], *now;

static rte_node_process_t real[2];
static struct rte_node *watched[2], *ip_input;

static uint16_t watch(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	for (uint16_t i = 0; i < n && now != NULL; i++) {
		const struct rte_mbuf *m = objs[i];
		struct seen *s = &now->seen[now->seens++];

		assert_true(now->seens <= MAX_SEEN);
		memset(s, 0, sizeof(*s));
		s->packet = *packet_of(objs[i]);
		s->segments = m->nb_segs;
		s->offset = m->data_off;
		s->length = m->data_len;
		s->total = m->pkt_len;
		s->where = node;
	}
	return real[node == watched[1]](graph, node, objs, n);
}

static int setup(void **state)
{
	static const char *const names[2] = {"session-tunnel", "firewall-downlink"};

	start_fixture();
	ip_input = rte_graph_node_get_by_name(worker_get(0)->graph->name, "ip-input");
	assert_non_null(ip_input);
	for (int i = 0; i < 2; i++) {
		watched[i] = rte_graph_node_get_by_name(worker_get(0)->graph->name, names[i]);
		assert_non_null(watched[i]);
		real[i] = watched[i]->process;
		watched[i]->process = watch;
	}
	return 0;
}

static void keep_frames(struct outcome *o)
{
	static const char *const ports[] = {"ran", "peers", "internet", "homes", "loose"};

	for (uint32_t p = 0; p < RTE_DIM(ports); p++)
		for (uint32_t i = 0; i < kit_count(ports[p]); i++) {
			const struct kit_frame *k = kit_frame(ports[p], i);

			assert_true(o->out + 5 + k->length < OUT_BYTES);
			o->frames[o->out++] = (uint8_t)p;
			memcpy(o->frames + o->out, &k->length, 4);
			memcpy(o->frames + o->out + 4, k->bytes, k->length);
			o->out += 4 + k->length;
		}
}

static void run(struct outcome *o, const struct frame *example, const uint8_t *bytes, uint32_t n, int strays_first)
{
	struct api_total_row before = kit_totals(), after;

	memset(o->words, 0, sizeof(o->words));
	o->seens = o->out = 0;
	worker_get(0)->identification = 1;
	kit_clear();
	kit_count_words(o->words, WORDS, -1ull);
	if (strays_first)
		send_strays();
	assert_int_equal(kit_send("ran", example->at, example->length), 0);
	assert_int_equal(kit_send("ran", bytes, n), 0);
	if (!strays_first)
		send_strays();
	now = o;
	kit_run();
	now = NULL;
	o->counters = kit_count_words(o->words, WORDS, 1);
	keep_frames(o);
	assert_true(kit_balance());
	after = kit_totals();
	if (after.held != before.held || after.originated != before.originated || after.punted != before.punted)
		settle_fixture();
}

// Which way the frame took in the first run.
static int was_short;

static void as_the_long_way(
	const char *name, const char *what, uint32_t at, const struct frame *example, const uint8_t *bytes, uint32_t n)
{
	struct outcome *a = &outcomes[0], *b = &outcomes[1];
	uint64_t before = ip_input->total_objs;

	run(a, example, bytes, n, 0);
	was_short = ip_input->total_objs - before == PLAIN_LOOKS && a->seens == 2;
	run(b, example, bytes, n, 1);
	assert_int_equal(a->counters, b->counters);
	for (uint32_t i = 0; i < a->counters; i++)
		if (a->words[i] != b->words[i])
			fail_msg("%s, %s %u: %s (word %u) differs: %lu, the full parse %lu", name, what, at,
				i < reason_count() ? reason_get((uint16_t)i)->name : "a counter", i, a->words[i],
				b->words[i]);
	if (a->seens != b->seens || memcmp(a->seen, b->seen, a->seens * sizeof(a->seen[0])) != 0)
		fail_msg("%s, %s %u: the metadata differs", name, what, at);
	if (a->out != b->out || memcmp(a->frames, b->frames, a->out) != 0)
		fail_msg("%s, %s %u: other frames left", name, what, at);
}

// ---- the frames ------------------------------------------------------------------------------------------------------------------

struct subject {
	char name[64];
	const struct tunnel_case *c;
	struct frame valid, example;
	uint32_t l3, gtpu, inner; // offsets
	uint32_t shorts; // frames that took the fast path
};

static void make_subject(struct subject *s, const struct tunnel_case *c, int family, uint8_t qfi)
{
	snprintf(s->name, sizeof(s->name), "%s, IPv%d%s", c->name, family, qfi == NO_QFI ? "" : ", container");
	s->c = c;
	gpdu(&s->valid, c, family, qfi, 1, 40);
	gpdu(&s->example, c, family, qfi, 0, 40);
	s->l3 = c->vlan != 0 ? 18 : 14;
	s->gtpu = s->l3 + 28;
	s->inner = s->gtpu + (qfi == NO_QFI ? 8 : 16);
	s->shorts = 0;
}

static void try(struct subject *s, const char *what, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	as_the_long_way(s->name, what, at, &s->example, bytes, n);
	s->shorts += (uint32_t)was_short;
}

static void sum_right(const struct subject *s, uint8_t *bytes, uint32_t n)
{
	if (n >= s->l3 + 20)
		ip4_checksum_set(bytes + s->l3);
}

// Makes the lengths of the headers outside fit a frame of n bytes.
static void lengths_right(const struct subject *s, uint8_t *bytes, uint32_t n)
{
	if (n < s->gtpu + 8)
		return;
	store16(bytes + s->l3 + 2, (uint16_t)(n - s->l3));
	store16(bytes + s->l3 + 24, (uint16_t)(n - s->l3 - 20));
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
	if (header == 20)
		ip4_checksum_set(bytes + s->inner);
}

static void flip_byte(struct subject *s, uint32_t at)
{
	uint8_t bytes[512];
	uint32_t n = s->valid.length;
	int in_header = at >= s->l3 && at < s->l3 + 20;

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

// Several bytes at a time, checksums and lengths often right again.
static void scramble(struct subject *s, uint64_t seed)
{
	for (uint32_t round = 0; round < 300; round++) {
		uint8_t bytes[512] = {0};
		uint32_t n = draw(&seed) % 4 ? s->valid.length : 60 + draw(&seed) % 120, what = draw(&seed);

		memcpy(bytes, s->valid.at, RTE_MIN(n, s->valid.length));
		if (what & 1)
			lengths_right(s, bytes, n);
		if (what & 2)
			inner_lengths_right(s, bytes, n);
		for (uint32_t i = 0; i < 1 + what / 16 % 3; i++)
			bytes[s->l3 + draw(&seed) % 90] = (uint8_t)draw(&seed);
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
		for (uint32_t at = 0; at < 110 && (i == 0 || i == 3); at++)
			flip_byte(&s, at);
		for (uint32_t n = 1; n < s.valid.length + 70; n++)
			resize(&s, n);
		scramble(&s, 88172645463325252ull + (uint64_t)i);
		assert_in_range(s.shorts, 100, UINT32_MAX); // else nothing was compared
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

// More than one segment, in and out.
static void segments(void **state)
{
	static struct subject s;
	static struct frame big;

	make_subject(&s, &cases[0], 4, 9);
	for (uint32_t payload = 1400; payload < 6000; payload += 331) {
		gpdu(&big, &cases[0], 4, 9, 1, payload);
		as_the_long_way(s.name, "payload", payload, &s.example, big.at, big.length);
		assert_true(was_short);
	}
	assert_int_equal(outcomes[0].seen[1].segments > 1, 1);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(mobile),
		cmocka_unit_test(mobile_vlan),
		cmocka_unit_test(wireline),
		cmocka_unit_test(wireline_vlan),
		cmocka_unit_test(segments),
	};

	return cmocka_run_group_tests(all, setup, NULL);
}
