// SPDX-License-Identifier: Apache-2.0
// Sender and receiver face to face, with the test as the gateway between them: whatever it breaks is seen, whatever
// it leaves alone is not blamed. No ports, no DPDK environment.
#include "traffic/engine/engine.h"
#include "traffic/wire/decode.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM (FRAME_MAX + TEMPLATE_BYTES)
#define NONCE 77

// A bench of one stream.

struct bench {
	struct profile *profile;
	struct pattern pattern;
	struct sender sender;
	struct receiver receiver;
	struct check check;
	uint8_t frame[ROOM];
};

static const char profile_text[] = "name: bench\n"
				   "ports:\n"
				   "  - {name: access, driver: net_ring, mtu: 9100}\n"
				   "  - {name: core, driver: net_ring, mtu: 9100}\n"
				   "streams:\n"
				   "  - name: it\n"
				   "    port: access\n"
				   "    sink: core\n";

static struct profile *load(const char *stream)
{
	char file[] = "/tmp/stream-test-XXXXXX";
	int fd = mkstemp(file);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	fprintf(f, "%s%srun: {mode: fixed, rate: 1kpps}\n", profile_text, stream);
	fclose(f);
	struct profile *p = profile_load(file, stderr);

	unlink(file);
	assert_non_null(p);
	return p;
}

static struct bench *bench_open(const char *stream)
{
	struct bench *b = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*b), 64));

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->profile = load(stream);
	pattern_fill(&b->pattern);
	const struct profile_stream *s = &b->profile->stream[0];

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
	profile_free(b->profile);
	free(b);
}

// Makes the next packet of a flow in b->frame. Returns its length.
static uint16_t make(struct bench *b, uint32_t flow, uint32_t size)
{
	memcpy(b->frame, b->pattern.byte, sizeof(b->pattern.byte));
	return sender_make(&b->sender, b->frame, flow, size, 1000 >> TAG_TIME_SHIFT, NONCE);
}

// What a right gateway makes of it: the expected header in place of the sent one; the checksum of the subscriber's
// own L4 header is not touched.
static uint16_t forward(struct bench *b, uint32_t flow, uint16_t length, uint8_t *to)
{
	const struct template *in = &b->profile->stream[0].send, *out = &b->profile->stream[0].receive;
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

#define ETHERNET "      - ethernet: {destination: 02:00:00:aa:00:01, source: {base: 02:01:00:00:00:00, each: 4}}\n"
static const char *const streams[] = {
	// plain IPv4 as it came, checksum over the payload, an odd payload
	"    flows: 64\n    size: 129\n    send:\n" ETHERNET
	"      - ipv4: {source: {base: 10.64.0.0, each: 4}, destination: 203.0.113.80}\n"
	"      - udp: {source: 4000, destination: {base: 5000, count: 4}, checksum: 1}\n"
	"    receive:\n" ETHERNET "      - ipv4: {source: {base: 10.64.0.0, each: 4}, destination: 203.0.113.80}\n"
	"      - udp: {source: 4000, destination: {base: 5000, count: 4}, checksum: 1}\n",
	// QinQ and PPPoE to GTP-U with an identification and a source port that the gateway chooses, a mix of sizes
	"    flows: 64\n    size: {128: 2, 650: 3, 1200: 1}\n    send:\n" ETHERNET
	"      - vlan: {tpid: 0x88a8, id: 100}\n      - vlan: {id: {base: 1, each: 4, count: 16}}\n"
	"      - pppoe: {session: 1}\n"
	"      - ipv4: {source: {base: 10.64.0.0, each: 4}, destination: 203.0.113.80, ttl: 63}\n"
	"      - udp: {source: 4000, destination: {base: 5000, count: 4}}\n"
	"    receive:\n      - ethernet: {destination: 02:00:00:cc:00:02, source: 02:00:00:cc:00:01}\n"
	"      - ipv4: {source: 192.0.2.1, destination: 198.51.100.1, id: any, ttl: 64}\n"
	"      - udp: {source: any, destination: 2152}\n"
	"      - gtpu: {teid: {base: 0x10000000, each: 4}, extensions: [{pdu-session: {type: uplink, qfi: 9}}]}\n"
	"      - ipv4: {source: {base: 10.64.0.0, each: 4}, destination: 203.0.113.80, ttl: 63}\n"
	"      - udp: {source: 4000, destination: {base: 5000, count: 4}}\n",
	// IPv6 and TCP, one hop on
	"    flows: 64\n    size: 200\n    send:\n" ETHERNET
	"      - ipv6: {source: {base: '2001:db8::', step: '0:0:0:1::'}, destination: '2001:db8:f::1', hop_limit: 64}\n"
	"      - tcp: {source: {base: 1000}, destination: 80}\n"
	"    receive:\n      - ethernet: {destination: 02:00:00:cc:00:02, source: 02:00:00:cc:00:01}\n"
	"      - ipv6: {source: {base: '2001:db8::', step: '0:0:0:1::'}, destination: '2001:db8:f::1', hop_limit: 63}\n"
	"      - tcp: {source: {base: 1000}, destination: 80}\n",
	// the smallest frame there is
	"    flows: 64\n    size: 64\n    send:\n" ETHERNET "      - ipv4: {source: {base: 10.64.0.0}, destination: "
	"203.0.113.80}\n      - udp: {source: 1, destination: 2}\n"
	"    receive:\n" ETHERNET "      - ipv4: {source: {base: 10.64.0.0}, destination: 203.0.113.80}\n      - udp: "
	"{source: 1, destination: 2}\n",
	// an echo request
	"    flows: 64\n    size: 100\n    send:\n" ETHERNET
	"      - ipv4: {source: {base: 10.64.0.0}, destination: 203.0.113.80}\n      - icmp: {type: 8, id: {base: 1}}\n"
	"    receive:\n" ETHERNET "      - ipv4: {source: {base: 10.64.0.0}, destination: 203.0.113.80}\n      - icmp: "
	"{type: 8, id: {base: 1}}\n",
};
#define STREAMS (sizeof(streams) / sizeof(streams[0]))

static void a_right_gateway_is_not_blamed(void **state)
{
	uint8_t out[ROOM];

	for (size_t k = 0; k < STREAMS; k++) {
		struct bench *b = bench_open(streams[k]);
		uint32_t n = 0;

		for (uint32_t flow = 0; flow < 64; flow++)
			for (uint32_t size = 0; size < b->profile->stream[0].sizes; size++, n++) {
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
	char many[2048];
	uint8_t a[ROOM], out[ROOM];

	for (size_t k = 0; k < 2; k++) {
		struct bench *few = bench_open(streams[k]);

		snprintf(many, sizeof(many), "    flows: %d\n%s", 1 << 21, strchr(streams[k], '\n') + 1);
		struct bench *b = bench_open(many);

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

// A header that is made of the first flow's is the one that the template says, at any flow and size, on both sides.
static void headers_are_those_of_the_template(void **state)
{
	uint8_t want[TEMPLATE_BYTES + 64], got[TEMPLATE_BYTES + 64];
	const uint32_t flows = 1u << 15; // what 16-bit fields hold
	uint64_t seed = 7;

	for (size_t k = 0; k < STREAMS; k++) {
		char many[2048];

		snprintf(many, sizeof(many), "    flows: %u\n%s", flows, strchr(streams[k], '\n') + 1);
		struct bench *b = bench_open(many);
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

// Each single bit of a frame, but for those that the profile says may be anything.
static void every_flipped_bit_is_seen(void **state)
{
	uint8_t out[ROOM];

	for (size_t k = 0; k < STREAMS; k++) {
		struct bench *b = bench_open(streams[k]);
		const struct template *t = &b->profile->stream[0].receive;

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
	struct bench *b = bench_open(streams[1]);
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
	struct bench *b = bench_open(streams[1]);
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
	assert_memory_equal(w->frame, out, WRONG_BYTES);
	bench_close(b);
}

static void lengths_ports_and_unknown_packets(void **state)
{
	static const uint8_t arp[60] = {
		255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1};
	struct bench *b = bench_open(streams[1]);
	uint8_t out[ROOM];
	uint16_t n = forward(b, 1, make(b, 1, 0), out);

	memmove(out + 60, out + 56, n - 56); // four bytes more than there should be
	assert_true(arrive(b, out, (uint16_t)(n + 4)));
	assert_int_equal(b->receiver.count.wrong[WRONG_LENGTH], 1);
	n = forward(b, 1, make(b, 1, 0), out);
	assert_false(arrive(b, out, (uint16_t)(n - 1))); // the tag is cut: nobody's
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

// A gateway that takes tags off may have to pad what is left to 60 bytes.
static void padding_is_no_fault(void **state)
{
	struct bench *b = bench_open(
		"    flows: 4\n    size: 66\n    send:\n" ETHERNET
		"      - vlan: {id: 5}\n      - ipv4: {source: 10.0.0.1, destination: 10.0.0.2}\n"
		"      - udp: {source: 1, destination: 2}\n"
		"    receive:\n" ETHERNET
		"      - ipv4: {source: 10.0.0.1, destination: 10.0.0.2}\n      - udp: {source: 1, destination: 2}\n");
	uint8_t out[ROOM] = {0};
	uint16_t n = forward(b, 1, make(b, 1, 0), out);

	assert_int_equal(n, 58);
	memset(out + n, 0, 2);
	assert_false(arrive(b, out, 60));
	assert_int_equal(b->receiver.count.received, 1);
	bench_close(b);
}

// The obvious model: which numbers came, and the highest of them.
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
		struct bench *b = bench_open(streams[3]);
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
	struct bench *b = bench_open(streams[3]);
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

// Every size comes exactly as often as its weight says, so that a rate in bits is what was asked for.
static void mixes_are_exact(void **state)
{
	struct bench *b =
		bench_open("    flows: 4\n    size: {64: 7, 594: 4, 1518: 1, 1000: 6553}\n    send:\n" ETHERNET);
	static const uint32_t weights[] = {7, 4, 1, 6553};
	uint32_t seen[4] = {0}, round = 7 + 4 + 1 + 6553;

	for (uint32_t i = 0; i < 3 * round; i++)
		seen[sender_size(&b->sender)]++;
	for (int i = 0; i < 4; i++)
		assert_int_equal(seen[i], 3 * weights[i]);
	bench_close(b);
	b = bench_open("    flows: 4\n    size: {64: 3000, 1500: 1000}\n    send:\n" ETHERNET);
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
