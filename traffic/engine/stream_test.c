// SPDX-License-Identifier: Apache-2.0
// Sender and receiver, with the test as the gateway between them: every damage is seen, and undamaged packets are not
// blamed. No ports, no DPDK environment.
#include "traffic/engine/engine.h"
#include "traffic/wire/decode.h"
#include "traffic/wire/stack_kit.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROOM (FRAME_MAX + TEMPLATE_BYTES)
#define NONCE 77

// A bench of one stream.

struct bench {
	struct work_stream stream;
	struct pattern pattern;
	struct sender sender;
	struct receiver receiver;
	struct check check;
	uint8_t frame[ROOM];
};

// A stream: flows, sizes, sent headers and expected ones (NULL: any).
struct described {
	uint32_t flows, sizes;
	struct job_size size[JOB_SIZES];
	const char *send, *receive;
};

static void compile(const char *text, uint32_t flows, bool received, struct template *t)
{
	struct stack s = {0};

	kit_text(&s, text);
	kit_compile(&s, flows, received, t);
}

static struct bench *bench_open(const struct described *d)
{
	struct bench *b = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*b), 64));

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	struct work_stream *s = &b->stream;

	s->job = (struct job_stream){.name = "it",
		.seed = 1,
		.zipf = 1,
		.sink = 1,
		.answers = -1,
		.share = 1,
		.flows = d->flows,
		.block = 1,
		.check_payload = 1,
		.sizes = d->sizes,
		.receive_any = d->receive == NULL};
	memcpy(s->job.size, d->size, sizeof(d->size));
	compile(d->send, d->flows, false, &s->send);
	if (d->receive != NULL)
		compile(d->receive, d->flows, true, &s->receive);
	pattern_fill(&b->pattern);
	assert_int_equal(sender_init(&b->sender, s, 0, &b->pattern, headers_stride(&s->send)), 0);
	assert_int_equal(receiver_init(&b->receiver, s, 0, &b->pattern), 0);
	b->receiver.count.latency.min = UINT64_MAX;
	b->check = (struct check){.pattern = &b->pattern,
		.receivers = &b->receiver,
		.streams = 1,
		.port = 1,
		.nonce = NONCE,
		.decode_every = 1,
		.until_decode = 1};
	return b;
}

static void bench_close(struct bench *b)
{
	sender_free(&b->sender);
	receiver_free(&b->receiver);
	free(b);
}

// Makes the next packet of a flow in b->frame. Returns its length.
static uint16_t make(struct bench *b, uint32_t flow, uint32_t size)
{
	memcpy(b->frame, b->pattern.byte, sizeof(b->pattern.byte));
	return sender_make(&b->sender, b->frame, flow, size, 1000 >> TAG_TIME_SHIFT, NONCE);
}

// A correct gateway's output: the expected header replaces the sent one; the subscriber's L4 checksum stays.
static uint16_t forward(struct bench *b, uint32_t flow, uint16_t length, uint8_t *to)
{
	const struct template *in = &b->stream.send, *out = &b->stream.receive;
	uint16_t n = (uint16_t)(length - in->length + out->length);

	memcpy(to + out->length, b->frame + in->length, length - in->length);
	template_write(out, flow, n, to + out->length, to);
	if (template_payload_sum(out) != NULL)
		memcpy(to + template_payload_sum(out)->offset, b->frame + template_payload_sum(in)->offset, 2);
	return n;
}

static uint64_t wrongs(const struct bench *b)
{
	uint64_t sum = 0;

	for (int i = 0; i < WRONG_KINDS; i++)
		sum += b->receiver.count.wrong[i];
	return sum;
}

static bool arrive(struct bench *b, const uint8_t *frame, uint16_t length)
{
	bool wrong;
	uint8_t copy[ROOM] = {0};

	memcpy(copy, frame, length); // room to read whole lines, as in an mbuf
	check_frame(&b->check, copy, length, 9000, &wrong);
	return wrong;
}

// The streams that are tried.

#define ETHERNET "ethernet destination=0x020000aa0001 source=0x020100000000+1/4; "
#define CORE "ethernet destination=0x020000cc0002 source=0x020000cc0001; "
#define HOMES "ipv4 source=0x0a400000+1/4 destination=0xcb007150"
#define USERS "ipv4 source=0x0a400000+1 destination=0xcb007150"
static const struct described streams[] = {
	// plain IPv4 as it came, checksum over the payload, an odd payload
	{64, 1, {{129, 1}}, ETHERNET HOMES "; udp source=4000 destination=5000+1%4 checksum=1",
		ETHERNET HOMES "; udp source=4000 destination=5000+1%4 checksum=1"},
	// QinQ and PPPoE to GTP-U with an identification and a source port that the gateway chooses, a mix of sizes
	{64, 3, {{128, 2}, {650, 3}, {1200, 1}},
		ETHERNET "vlan tpid=0x88a8 id=100; vlan id=1+1/4%16; pppoe session=1; " HOMES
			 " ttl=63; udp source=4000 destination=5000+1%4",
		CORE "ipv4 source=0xc0000201 destination=0xc6336401 id=any ttl=64; udp source=any destination=2152; "
		     "gtpu teid=0x10000000+1/4 uplink=9; " HOMES " ttl=63; udp source=4000 destination=5000+1%4"},
	// IPv6 and TCP, one hop on
	{64, 1, {{200, 1}},
		ETHERNET "ipv6 source=0x20010db800000000:0+1 destination=0x20010db8000f0000:1 hop_limit=64; "
			 "tcp source=1000+1 destination=80",
		CORE "ipv6 source=0x20010db800000000:0+1 destination=0x20010db8000f0000:1 hop_limit=63; "
		     "tcp source=1000+1 destination=80"},
	// the smallest frame there is
	{64, 1, {{64, 1}}, ETHERNET USERS "; udp source=1 destination=2",
		ETHERNET USERS "; udp source=1 destination=2"},
	// an echo request
	{64, 1, {{100, 1}}, ETHERNET USERS "; icmp type=8 id=1+1", ETHERNET USERS "; icmp type=8 id=1+1"},
};
#define STREAMS (sizeof(streams) / sizeof(streams[0]))

static void a_right_gateway_is_not_blamed(void **state)
{
	uint8_t out[ROOM];

	for (size_t k = 0; k < STREAMS; k++) {
		struct bench *b = bench_open(&streams[k]);
		uint32_t n = 0;

		for (uint32_t flow = 0; flow < 64; flow++)
			for (uint32_t size = 0; size < b->stream.job.sizes; size++, n++) {
				uint16_t length = make(b, flow, size);
				struct decoded d;

				assert_int_equal(decode_frame(b->frame, length, &d), 0);
				if (arrive(b, out, forward(b, flow, length, out)))
					fail_msg("stream %zu, flow %u, size %u: %s", k, flow, size,
						b->receiver.count.wrong_frame[0].where);
			}
		assert_int_equal(b->receiver.count.received, n);
		assert_int_equal(b->receiver.count.decoded, n);
		assert_int_equal(
			wrongs(b) + b->check.foreign + b->receiver.count.reordered + b->receiver.count.duplicate, 0);
		assert_int_equal(b->receiver.count.latency.count, n);
		bench_close(b);
	}
}

// Without a table (too many flows for it) packets are the same.
static void tables_change_nothing(void **state)
{
	uint8_t a[ROOM], out[ROOM];

	for (size_t k = 0; k < 2; k++) {
		struct described many = streams[k];

		many.flows = 1 << 21;
		struct bench *few = bench_open(&streams[k]), *b = bench_open(&many);

		assert_non_null(few->sender.headers.row);
		assert_null(b->sender.headers.row);
		for (uint32_t flow = 0; flow < 64; flow++) {
			uint16_t length = make(few, flow, 0);

			memcpy(a, few->frame, length);
			assert_int_equal(make(b, flow, 0), length);
			assert_memory_equal(a, b->frame, length);
			assert_false(arrive(b, out, forward(b, flow, length, out)));
		}
		assert_int_equal(b->receiver.count.received, 64);
		bench_close(few);
		bench_close(b);
	}
}

// A header derived from the first flow's equals the template's, at any flow and size, on both sides.
static void headers_are_those_of_the_template(void **state)
{
	uint8_t want[TEMPLATE_BYTES + 64], got[TEMPLATE_BYTES + 64];
	const uint32_t flows = 1u << 15; // what 16-bit fields hold
	uint64_t seed = 7;

	for (size_t k = 0; k < STREAMS; k++) {
		struct described many = streams[k];

		many.flows = flows;
		struct bench *b = bench_open(&many);
		const struct headers *sides[] = {&b->sender.headers, &b->receiver.headers};

		for (uint32_t i = 0; i < 4000; i++) {
			const struct headers *h = sides[i % 2];
			uint32_t flow = i < 200 ? i / 2 : order_random(&seed) % flows, size = i % h->sizes;

			if (h->t == NULL) // anything may arrive
				continue;
			template_write(h->t, flow, h->frame[size], b->pattern.byte + b->sender.headers.t->length, want);
			headers_write(h, size, flow, got);
			assert_memory_equal(got, want, h->t->length);
			assert_memory_equal(
				got + h->t->length, b->pattern.byte + h->t->length, h->stride - h->t->length);
		}
		bench_close(b);
	}
}

// Each single bit of a frame, except those that the profile leaves open.
static void every_flipped_bit_is_seen(void **state)
{
	uint8_t out[ROOM];

	for (size_t k = 0; k < STREAMS; k++) {
		struct bench *b = bench_open(&streams[k]);
		const struct template *t = &b->stream.receive;

		for (uint32_t bit = 0;; bit++) {
			uint32_t flow = bit % 64;
			uint16_t n = forward(b, flow, make(b, flow, 0), out);

			if (bit == n * 8u)
				break;
			if (bit / 8 < t->length && (t->mask[bit / 8] >> (7 - bit % 8) & 1) == 0)
				continue;
			out[bit / 8] ^= (uint8_t)(1 << (7 - bit % 8));
			uint64_t before = wrongs(b) + b->check.foreign;

			arrive(b, out, n);
			assert_int_equal(wrongs(b) + b->check.foreign, before + 1);
		}
		bench_close(b);
	}
}

static void open_checksums_are_summed_up(void **state)
{
	struct bench *b = bench_open(&streams[1]);
	uint8_t out[ROOM];
	uint16_t n = forward(b, 5, make(b, 5, 1), out);

	b->check.until_decode = UINT32_MAX; // without the decoder's help
	out[18] ^= 0x55; // the outer identification, which may be anything, but not without its checksum
	assert_true(arrive(b, out, n));
	assert_int_equal(b->receiver.count.wrong[WRONG_CHECKSUM], 1);
	assert_string_equal(b->receiver.count.wrong_frame[0].where, "ipv4.checksum");
	bench_close(b);
}

static void a_swapped_subscriber_is_named(void **state)
{
	struct bench *b = bench_open(&streams[1]);
	uint8_t out[ROOM], other[ROOM];
	uint16_t n = forward(b, 8, make(b, 8, 1), out);

	forward(b, 12, make(b, 12, 1), other);
	memcpy(out + 46, other + 46, 4); // another subscriber's TEID
	assert_true(arrive(b, out, n));
	assert_int_equal(b->receiver.count.wrong[WRONG_HEADER], 1);
	const struct wrong_frame *w = &b->receiver.count.wrong_frame[0];

	assert_string_equal(w->where, "gtpu.teid");
	assert_int_equal(w->flow, 8);
	assert_int_equal(w->length, n);
	assert_memory_equal(w->frame, out, JOB_WRONG_BYTES);
	bench_close(b);
}

static void lengths_ports_and_unknown_packets(void **state)
{
	static const uint8_t arp[60] = {
		255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
	struct bench *b = bench_open(&streams[1]);
	uint8_t out[ROOM];
	uint16_t n = forward(b, 1, make(b, 1, 0), out);

	memmove(out + 60, out + 56, n - 56); // four bytes more than there should be
	assert_true(arrive(b, out, (uint16_t)(n + 4)));
	assert_int_equal(b->receiver.count.wrong[WRONG_LENGTH], 1);
	n = forward(b, 1, make(b, 1, 0), out);
	assert_false(arrive(b, out, (uint16_t)(n - 1))); // the tag is cut: foreign
	assert_int_equal(b->check.foreign, 1);
	n = forward(b, 1, make(b, 1, 0), out);
	b->check.port = 0;
	assert_true(arrive(b, out, n));
	assert_int_equal(b->receiver.count.wrong[WRONG_PORT], 1);
	assert_int_equal(b->receiver.count.received, 1);
	b->check.port = 1;
	assert_false(arrive(b, arp, sizeof(arp)));
	assert_int_equal(b->check.control, 1);
	for (uint16_t i = 0; i < 70; i++)
		assert_false(arrive(b, out, i));
	assert_int_equal(b->check.foreign, 71);
	for (int32_t late = 1; late <= 17; late++) { // the last one is too late to be known
		b->check.nonce = nonce_after(NONCE, late);
		assert_false(arrive(b, out, n));
		assert_int_equal(b->check.stray, late < 17 ? late : 16);
	}
	assert_int_equal(b->check.foreign, 72);
	bench_close(b);
}

// A gateway that removes tags may have to pad the rest to 60 bytes.
static void padding_is_no_fault(void **state)
{
	static const struct described untagged = {4, 1, {{66, 1}},
		ETHERNET "vlan id=5; ipv4 source=0x0a000001 destination=0x0a000002; udp source=1 destination=2",
		ETHERNET "ipv4 source=0x0a000001 destination=0x0a000002; udp source=1 destination=2"};
	struct bench *b = bench_open(&untagged);
	uint8_t out[ROOM] = {0};
	uint16_t n = forward(b, 1, make(b, 1, 0), out);

	assert_int_equal(n, 58);
	memset(out + n, 0, 2);
	assert_false(arrive(b, out, 60));
	assert_int_equal(b->receiver.count.received, 1);
	bench_close(b);
}

// A simple model: the received numbers, and the highest of them.
struct model {
	uint8_t came[4096];
	int highest;
	uint64_t received, duplicate, reordered, stale;
};

static void model_arrival(struct model *m, int sequence)
{
	if (sequence > m->highest) {
		m->highest = sequence;
		m->received++;
	} else if (m->highest - sequence >= 32) {
		m->stale++;
		m->received++;
	} else if (m->came[sequence]) {
		m->duplicate++;
	} else {
		m->reordered++;
		m->received++;
	}
	m->came[sequence] = 1;
}

static void sequences_are_judged_as_by_the_model(void **state)
{
	uint64_t random = 9;

	for (int round = 0; round < 20; round++) {
		struct bench *b = bench_open(&streams[3]);
		struct model m = {.highest = -1};
		static uint8_t sent[4096][64];
		uint16_t length = 0;

		for (int i = 0; i < 4096; i++) {
			length = forward(b, 3, make(b, 3, 0), sent[i]);
		}
		for (int at = 0; at < 4096; at++) {
			uint32_t dice = order_random(&random) % 100;
			int reach = (int)(order_random(&random) % 50);
			int which = dice < 70 ? at : dice < 85 ? RTE_MIN(at + reach, 4095) : RTE_MAX(at - reach, 0);

			if (dice == 99)
				continue; // lost
			assert_false(arrive(b, sent[which], length));
			model_arrival(&m, which);
		}
		assert_int_equal(b->receiver.count.received, m.received);
		assert_int_equal(b->receiver.count.duplicate, m.duplicate);
		assert_int_equal(b->receiver.count.reordered, m.reordered);
		assert_int_equal(b->receiver.count.stale, m.stale);
		bench_close(b);
	}
}

static void sequences_wrap(void **state)
{
	struct bench *b = bench_open(&streams[3]);
	uint8_t out[ROOM];

	b->sender.sequence[3] = TAG_SEQUENCES - 10;
	b->receiver.flow[3].next = TAG_SEQUENCES - 10;
	for (int i = 0; i < 20; i++) {
		uint16_t n = forward(b, 3, make(b, 3, 0), out);

		assert_false(arrive(b, out, n));
	}
	assert_int_equal(b->sender.sequence[3], 10);
	assert_int_equal(b->receiver.count.received, 20);
	assert_int_equal(b->receiver.count.duplicate + b->receiver.count.reordered + b->receiver.count.stale, 0);
	bench_close(b);
}

static void tag_sums_add_up(void **state)
{
	uint64_t random = 4;

	for (int i = 0; i < 10000; i++) {
		struct tag t = {.identity = (uint64_t)order_random(&random) << 32 | order_random(&random),
			.time = order_random(&random),
			.check = i % 7 ? order_random(&random) : UINT32_MAX};
		uint8_t bytes[TAG_BYTES + 2] = {0};

		for (int odd = 0; odd < 2; odd++) {
			uint64_t sum = 0;

			memset(bytes, 0, sizeof(bytes));
			memcpy(bytes + odd, &t, sizeof(t));
			for (int k = 0; k < TAG_BYTES + 2; k += 2)
				sum += (uint64_t)bytes[k] | (uint64_t)bytes[k + 1] << 8;
			while (sum >> 16)
				sum = (sum & 0xffff) + (sum >> 16);
			assert_int_equal(tag_sum(&t, odd) % 0xffff, sum % 0xffff);
		}
	}
}

// Every size comes exactly as often as its weight says, so the bit rate is exact.
static void mixes_are_exact(void **state)
{
	static const struct described odd = {
		4, 4, {{64, 7}, {594, 4}, {1518, 1}, {1000, 6553}}, "ethernet destination=2 source=4", NULL};
	static const struct described even = {
		4, 2, {{64, 3000}, {1500, 1000}}, "ethernet destination=2 source=4", NULL};
	struct bench *b = bench_open(&odd);
	static const uint32_t weights[] = {7, 4, 1, 6553};
	uint32_t seen[4] = {0}, round = 7 + 4 + 1 + 6553;

	for (uint32_t i = 0; i < 3 * round; i++)
		seen[sender_size(&b->sender)]++;
	for (int i = 0; i < 4; i++)
		assert_int_equal(seen[i], 3 * weights[i]);
	bench_close(b);
	b = bench_open(&even);
	assert_int_equal(b->sender.places, 4);
	bench_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_gateway_is_not_blamed),
		cmocka_unit_test(tables_change_nothing),
		cmocka_unit_test(headers_are_those_of_the_template),
		cmocka_unit_test(every_flipped_bit_is_seen),
		cmocka_unit_test(open_checksums_are_summed_up),
		cmocka_unit_test(a_swapped_subscriber_is_named),
		cmocka_unit_test(lengths_ports_and_unknown_packets),
		cmocka_unit_test(padding_is_no_fault),
		cmocka_unit_test(sequences_are_judged_as_by_the_model),
		cmocka_unit_test(sequences_wrap),
		cmocka_unit_test(tag_sums_add_up),
		cmocka_unit_test(mixes_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
