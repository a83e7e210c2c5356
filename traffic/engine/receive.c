// SPDX-License-Identifier: Apache-2.0
// Judges received frames: the tag identifies the packet, the table has its expected bytes. One thread per port.
#include "traffic/engine/stream.h"
#include "traffic/wire/decode.h"
#include <arpa/inet.h>
#include <rte_ip.h>
#include <stdio.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define PADDED 60 // shortest frame without FCS on a wire; what is shorter may arrive padded
#define READABLE 64 // bytes at a time
#define LATE_TRIALS 16 // that a packet may be late by and is known

const char *const wrong_name[WRONG_KINDS] = {
	[WRONG_PORT] = "port",
	[WRONG_LENGTH] = "length",
	[WRONG_HEADER] = "header",
	[WRONG_CHECKSUM] = "checksum",
	[WRONG_PAYLOAD] = "payload",
	[WRONG_STRUCTURE] = "structure",
};

// Notes the arrival of a packet of a flow. Returns whether it is the first time.
static inline bool note_sequence(struct receiver *r, struct flow_state *f, uint32_t sequence)
{
	int32_t ahead = tag_distance(sequence, f->next);

	if (likely(ahead == 0)) {
		f->window = f->window << 1 | 1;
		f->next = (sequence + 1) & (TAG_SEQUENCES - 1);
		return true;
	}
	if (ahead > 0) {
		f->window = ahead >= 31 ? 1 : f->window << (ahead + 1) | 1;
		f->next = (sequence + 1) & (TAG_SEQUENCES - 1);
		return true;
	}
	uint32_t back = (uint32_t)(-ahead - 1);

	if (back >= 32) {
		r->count.stale++;
		return true;
	}
	if (f->window >> back & 1) {
		r->count.duplicate++;
		return false;
	}
	f->window |= 1u << back;
	r->count.reordered++;
	return true;
}

typedef uint64_t line __attribute__((vector_size(64), aligned(1)));

// By address: without AVX-512 clang refuses a vector of 64 bytes as an argument (-Wpsabi).
static inline bool line_is_zero(const line *l)
{
#ifdef __AVX512F__
	return _mm512_test_epi64_mask((__m512i)*l, (__m512i)*l) == 0;
#else
	return ((*l)[0] | (*l)[1] | (*l)[2] | (*l)[3] | (*l)[4] | (*l)[5] | (*l)[6] | (*l)[7]) == 0;
#endif
}

static inline bool lines_differ(const uint8_t *frame, const uint8_t *row, const uint8_t *mask, uint32_t lines)
{
	line sum = {0};

	for (uint32_t i = 0; i < lines; i++)
		sum |= (*(const line *)(frame + 64 * i) ^ *(const line *)(row + 64 * i)) &
		       *(const line *)(mask + 64 * i);
	return !line_is_zero(&sum);
}

// Compares payloads in whole lines, the last one overlapping, or in words; short ones byte by byte.
static inline bool bytes_differ(const uint8_t *a, const uint8_t *b, uint32_t n)
{
	line sum = {0};
	uint64_t x, y, words = 0;

	if (n >= 64) {
		for (uint32_t i = 0; i + 64 < n; i += 64)
			sum |= *(const line *)(a + i) ^ *(const line *)(b + i);
		sum |= *(const line *)(a + n - 64) ^ *(const line *)(b + n - 64);
		return !line_is_zero(&sum);
	}
	for (; n >= 8; n -= 8, a += 8, b += 8) {
		memcpy(&x, a, 8);
		memcpy(&y, b, 8);
		words |= x ^ y;
	}
	for (; n > 0; n--)
		words |= *a++ ^ *b++;
	return words != 0;
}

static uint16_t first_difference(const uint8_t *a, const uint8_t *b, const uint8_t *mask, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if (((a[i] ^ b[i]) & (mask != NULL ? mask[i] : 0xff)) != 0)
			return i;
	return n;
}

// Whether the words of an IPv4 header of 20 bytes add up to all ones (RFC 791).
static inline bool ip_header_sum_good(const uint8_t *ip)
{
	uint32_t word[5];

	memcpy(word, ip, sizeof(word));
	uint64_t sum = (uint64_t)word[0] + word[1] + word[2] + word[3] + word[4];

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

// An L4 checksum with pseudo header (RFC 768, RFC 8200 §8.1). Absent in UDP counts as good.
static bool l4_sum_good(const struct template_sum *s, const uint8_t *frame, uint16_t length)
{
	uint16_t given, covered = (uint16_t)(length - s->start);

	memcpy(&given, frame + s->offset, sizeof(given));
	if (s->udp && given == 0)
		return true;
	uint32_t sum = rte_raw_cksum(frame + s->start, covered);

	if (s->address_bytes != 0)
		sum += rte_raw_cksum(frame + s->addresses, s->address_bytes) + htons(s->protocol) + htons(covered);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static inline bool open_sum_good(const struct template_sum *s, const uint8_t *frame, uint16_t length)
{
	return s->kind == SUM_IPV4_HEADER ? ip_header_sum_good(frame + s->start) : l4_sum_good(s, frame, length);
}

// A packet with a good tag whose contents are judged.
struct suspect {
	const uint8_t *frame, *expected;
	uint16_t length, expected_length, at;
	struct tag tag;
	const char *what; // the decoder's words
};

static int checksums_differ(const struct receiver *r, struct suspect *p)
{
	uint32_t size = tag_size(&p->tag);
	uint16_t zero, got;

	for (uint32_t i = 0; i < r->open_sums; i++)
		if (!open_sum_good(r->open_sum[i], p->frame, p->length)) {
			p->at = r->open_sum[i]->offset;
			return 1;
		}
	if (r->sum.offset == 0)
		return 0;
	memcpy(&zero, p->expected + r->sum.offset, sizeof(zero));
	memcpy(&got, p->frame + r->sum.offset, sizeof(got));
	p->at = r->sum.offset;
	return got != payload_sum_with(&r->sum, size, zero, &p->tag);
}

static int payload_differs(const struct check *c, const struct receiver *r, struct suspect *p)
{
	uint16_t sent = r->sent_frame[tag_size(&p->tag)];
	uint16_t n = (uint16_t)(sent - r->sent_header - TAG_BYTES);
	const uint8_t *payload = p->frame + p->length - TAG_BYTES - n, *want = c->pattern->byte + r->sent_header;

	if (!bytes_differ(payload, want, n))
		return 0;
	p->at = (uint16_t)(payload - p->frame + first_difference(payload, want, NULL, n));
	return 1;
}

// Returns an enum wrong, or -1. Reads the frame's header in whole lines: buffers have the room.
static inline int contents(struct check *c, struct receiver *r, struct suspect *p, uint8_t *scratch)
{
	uint32_t size = tag_size(&p->tag);

	p->at = 0;
	if (unlikely(c->port != r->sink))
		return WRONG_PORT;
	if (likely(r->headers.t != NULL)) {
		p->expected_length = r->headers.frame[size];
		p->expected = headers_of(&r->headers, size, tag_flow(&p->tag), scratch);
		if (unlikely(p->length != p->expected_length))
			return WRONG_LENGTH;
		if (unlikely(lines_differ(p->frame, p->expected, r->mask, r->mask_lines))) {
			p->at = first_difference(p->frame, p->expected, r->mask, r->headers.t->length);
			return WRONG_HEADER;
		}
		if (unlikely(checksums_differ(r, p)))
			return WRONG_CHECKSUM;
	} else if (unlikely(p->length < r->sent_frame[size] - r->sent_header)) {
		return WRONG_LENGTH;
	}
	if (r->until_payload != 0 && --r->until_payload == 0) {
		r->until_payload = r->want->job.check_payload;
		if (unlikely(payload_differs(c, r, p)))
			return WRONG_PAYLOAD;
	}
	return -1;
}

static int structure(struct check *c, struct receiver *r, struct suspect *p)
{
	struct decoded d;

	c->until_decode = c->decode_every;
	r->count.decoded++;
	if (decode_frame(p->frame, p->length, &d) == 0)
		return -1;
	p->what = d.fault;
	p->at = d.at;
	return WRONG_STRUCTURE;
}

static void count_wrong(struct receiver *r, const struct suspect *p, int kind)
{
	// Atomic, because a packet at a wrong port is seen by that port's thread.
	uint32_t place = __atomic_fetch_add(&r->count.wrong_kept, 1, __ATOMIC_RELAXED);

	__atomic_fetch_add(&r->count.wrong[kind], 1, __ATOMIC_RELAXED);
	if (place >= JOB_WRONG_KEPT)
		return;
	struct wrong_frame *w = &r->count.wrong_frame[place];

	*w = (struct wrong_frame){
		.kind = (uint8_t)kind, .offset = p->at, .length = p->length, .flow = tag_flow(&p->tag)};
	w->kept = RTE_MIN(p->length, (uint16_t)JOB_WRONG_BYTES);
	memcpy(w->frame, p->frame, w->kept);
	if (p->expected != NULL)
		memcpy(w->expected, p->expected, RTE_MIN(w->kept, r->headers.t->length));
	if (kind == WRONG_STRUCTURE)
		snprintf(w->where, sizeof(w->where), "%s", p->what);
	else if (kind == WRONG_PORT)
		snprintf(w->where, sizeof(w->where), "another port than the sink");
	else if (kind == WRONG_LENGTH)
		snprintf(w->where, sizeof(w->where), "%u bytes, expected %u", p->length, p->expected_length);
	else if (kind == WRONG_PAYLOAD || r->headers.t == NULL)
		snprintf(w->where, sizeof(w->where), "payload");
	else
		template_name(r->headers.t, p->at, w->where, sizeof(w->where));
}

// A frame that does not end in a tag: padded to the shortest frame (IEEE 802.3 §3.2.7), of an earlier trial, or
// foreign.
static bool find_tag(struct check *c, const uint8_t *frame, uint16_t *length, struct tag *tag)
{
	struct decoded d;

	for (uint16_t n = *length; *length == PADDED && n >= TAG_BYTES; n--)
		if (tag_read(frame + n - TAG_BYTES, c->nonce, tag)) {
			*length = n;
			return true;
		}
	for (int32_t late = 1; *length >= TAG_BYTES && late <= LATE_TRIALS; late++)
		if (tag_read(frame + *length - TAG_BYTES, nonce_after(c->nonce, -late), tag)) {
			c->stray++;
			return false;
		}
	decode_frame(frame, *length, &d);
	if (d.control)
		c->control++;
	else
		c->foreign++;
	return false;
}

static void answer(struct receiver *r, const struct tag *tag)
{
	struct answer a = {.flow = tag_flow(tag), .time = tag->time};

	if (rte_ring_sp_enqueue_elem(r->answers, &a, sizeof(a)) != 0)
		r->answers_lost++;
}

struct receiver *check_frame(struct check *c, const uint8_t *frame, uint16_t length, uint64_t now, bool *wrong)
{
	struct suspect p = {.frame = frame, .length = length};
	uint8_t scratch[TEMPLATE_BYTES + READABLE];

	*wrong = false;
	if (unlikely(length < TAG_BYTES || !tag_read(frame + length - TAG_BYTES, c->nonce, &p.tag)) &&
		!find_tag(c, frame, &p.length, &p.tag))
		return NULL;
	uint32_t stream = tag_stream(&p.tag), flow = tag_flow(&p.tag), size = tag_size(&p.tag);

	if (unlikely(stream >= c->streams || flow >= c->receivers[stream].want->job.flows ||
		     size >= c->receivers[stream].want->job.sizes)) {
		c->foreign++;
		return NULL;
	}
	struct receiver *r = &c->receivers[stream];

	// A packet at a wrong port is counted there, but its flow belongs to the sink's thread.
	if (likely(c->port == r->sink) && unlikely(!note_sequence(r, &r->flow[flow], tag_sequence(&p.tag))))
		return r;
	int kind = contents(c, r, &p, scratch);

	if (kind < 0 && --c->until_decode == 0)
		kind = structure(c, r, &p);
	if (unlikely(kind >= 0)) {
		*wrong = true;
		count_wrong(r, &p, kind);
		if (kind == WRONG_PORT)
			return r;
	}
	r->count.received++;
	r->count.received_bytes += p.length + FCS;
	r->count.received_l3_bytes += r->sent_frame[size] - r->inner_l3;
	histogram_add(&r->count.latency, (uint64_t)((uint32_t)(now >> TAG_TIME_SHIFT) - p.tag.time) << TAG_TIME_SHIFT);
	if (r->answers != NULL)
		answer(r, &p.tag);
	return r;
}
