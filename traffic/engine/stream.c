// SPDX-License-Identifier: Apache-2.0
// Makes and frees the two halves of a stream: tables of headers, flow state, checksum helpers.
#include "traffic/engine/stream.h"
#include <rte_byteorder.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LINE 64
#define HUGE_PAGE (2u << 20)

// Zeroed memory for a table, on huge pages if available: a walk over millions of flows would else miss the TLB with
// each packet.
static void *table_alloc(size_t bytes)
{
	size_t size = RTE_ALIGN_CEIL(bytes, (size_t)(bytes < HUGE_PAGE ? 4096 : HUGE_PAGE));
	void *p = aligned_alloc(size < HUGE_PAGE ? 4096 : HUGE_PAGE, size);

	if (p == NULL)
		return NULL;
	if (size >= HUGE_PAGE)
		madvise(p, size, MADV_HUGEPAGE);
	memset(p, 0, size);
	return p;
}

void pattern_fill(struct pattern *p)
{
	uint64_t state = 0x1575;

	for (uint32_t i = 0; i + 4 <= PATTERN_BYTES; i += 4) {
		uint32_t word = order_random(&state);

		memcpy(p->byte + i, &word, sizeof(word));
	}
}

uint32_t headers_stride(const struct template *t)
{
	return RTE_ALIGN_CEIL((uint32_t)t->length, (uint32_t)LINE);
}

// ceil(2^64 / d): the high half of its product with a number below 2^32 is that number divided by d (D. Lemire, O.
// Kaser, N. Kurz, "Faster remainder by direct computation", 2019). 0 for 1, where there is nothing to do.
static uint64_t inverse(uint32_t d)
{
	return d <= 1 ? 0 : UINT64_MAX / d + 1;
}

static inline uint32_t divided(uint32_t n, uint64_t inverse)
{
	return inverse == 0 ? n : (uint32_t)((unsigned __int128)inverse * n >> 64);
}

static uint16_t checksum_at(const uint8_t *row, uint32_t offset)
{
	uint16_t sum;

	memcpy(&sum, row + offset, sizeof(sum));
	return sum % 0xffff;
}

// Finds a field's effect on the checksums, by writing it twice.
static void prepare_field(struct headers *h, uint32_t index, const uint8_t *payload)
{
	const struct template_field *f = &h->t->field[index];
	struct header_field *to = &h->field[index];
	struct template alone = *h->t;
	uint8_t row[2][TEMPLATE_BYTES];

	*to = (struct header_field){.offset = f->offset,
		.width = f->width,
		.step = f->step,
		.count = f->count,
		.each = inverse(f->each),
		.wrap = inverse(f->count)};
	alone.fields = 1;
	alone.field[0] = *f;
	alone.field[0].each = 1;
	alone.field[0].count = 0;
	if (h->flows <= f->each || f->count == 1)
		return; // it is always 0, and 1 might be too much for its width
	for (uint32_t k = 0; k < 2; k++)
		template_write(&alone, k, h->frame[0], payload, row[k]);
	for (uint32_t i = 0; i < h->t->sums; i++) {
		uint32_t offset = h->t->sum[i].offset;
		uint16_t add =
			(uint16_t)((checksum_at(row[1], offset) + 0xffffu - checksum_at(row[0], offset)) % 0xffff);

		if (add != 0) {
			to->sum[to->sums].index = (uint16_t)i;
			to->sum[to->sums++].add = add;
		}
	}
}

static inline void add_to_field(uint8_t *at, uint32_t width, uint32_t add)
{
	uint32_t four;
	uint16_t two;

	if (width == 4) {
		memcpy(&four, at, sizeof(four));
		four = rte_cpu_to_be_32(rte_be_to_cpu_32(four) + add);
		memcpy(at, &four, sizeof(four));
	} else if (width == 2) {
		memcpy(&two, at, sizeof(two));
		two = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(two) + add));
		memcpy(at, &two, sizeof(two));
	} else {
		at[0] = (uint8_t)(at[0] + add);
	}
}

void headers_write(const struct headers *h, uint32_t size, uint32_t flow, uint8_t *to)
{
	const struct template *t = h->t;
	const uint8_t *first = h->first + (size_t)size * h->stride;
	uint64_t sum[TEMPLATE_SUMS], each = 0;
	uint32_t number = flow; // divided by `each`: neighbours often divide by the same

	for (uint32_t at = 0; at < h->stride; at += LINE)
		memcpy(to + at, first + at, LINE);
	for (uint32_t i = 0; i < t->sums; i++)
		sum[i] = checksum_at(first, t->sum[i].offset);
	for (uint32_t i = 0; i < t->fields; i++) {
		const struct header_field *f = &h->field[i];

		if (f->each != each) {
			each = f->each;
			number = divided(flow, each);
		}
		uint32_t k = number;

		if (f->count != 0)
			k -= divided(k, f->wrap) * f->count;
		add_to_field(to + f->offset, f->width, f->step * k);
		for (uint32_t s = 0; s < f->sums; s++)
			sum[f->sum[s].index] += (uint64_t)f->sum[s].add * k;
	}
	for (uint32_t i = 0; i < t->sums; i++) {
		uint16_t check = (uint16_t)(sum[i] % 0xffff);

		if (t->sum[i].udp && check == 0)
			check = 0xffff; // RFC 768
		memcpy(to + t->sum[i].offset, &check, sizeof(check));
	}
}

// The first flow's header at each size; its payload is only for the sum.
static int make_first(
	struct headers *h, const struct template *sent, const struct work_stream *s, const struct pattern *p)
{
	uint32_t length = h->t->length;
	uint8_t *payload = table_alloc(PATTERN_BYTES);

	h->first = table_alloc((size_t)h->sizes * h->stride);
	if (payload == NULL || h->first == NULL) {
		free(payload);
		return -1;
	}
	for (uint32_t i = 0; i < h->sizes; i++) {
		uint8_t *row = h->first + (size_t)i * h->stride;

		memcpy(payload, p->byte + sent->length, s->job.size[i].bytes - FCS - sent->length);
		template_write(h->t, 0, h->frame[i], payload, row);
		memcpy(row + length, p->byte + length, h->stride - length);
	}
	for (uint32_t i = 0; i < h->t->fields; i++)
		prepare_field(h, i, NULL);
	free(payload);
	return 0;
}

// `sent` is the sent header, which determines the payload's length. Room behind a header up to `stride` is filled from
// the pattern. Returns 0, or -1 without memory.
static int headers_init(struct headers *h, const struct template *t, const struct template *sent,
	const struct work_stream *s, const struct pattern *p, uint32_t stride)
{
	uint64_t rows = (uint64_t)s->job.flows * s->job.sizes;

	*h = (struct headers){.t = t, .stride = stride, .flows = s->job.flows, .sizes = s->job.sizes};
	for (uint32_t i = 0; i < s->job.sizes; i++)
		h->frame[i] = (uint16_t)(s->job.size[i].bytes - FCS - sent->length + t->length);
	if (make_first(h, sent, s, p) != 0)
		return -1;
	if (rows * stride > TABLE_BYTES_MAX)
		return 0;
	h->row = table_alloc((size_t)rows * stride);
	if (h->row == NULL)
		return -1;
	for (uint32_t i = 0; i < s->job.sizes; i++)
		for (uint32_t flow = 0; flow < s->job.flows; flow++)
			headers_write(h, i, flow, h->row + ((size_t)i * s->job.flows + flow) * stride);
	return 0;
}

static void headers_free(struct headers *h)
{
	free(h->row);
	free(h->first);
	h->row = h->first = NULL;
}

static void payload_sum_init(struct payload_sum *p, const struct headers *h)
{
	const struct template_sum *sum = h->t != NULL ? template_payload_sum(h->t) : NULL;

	*p = (struct payload_sum){0};
	// A checksum over a field of any value is computed per packet.
	if (sum == NULL || h->t->mask[sum->offset] == 0)
		return;
	p->offset = sum->offset;
	p->udp = sum->udp;
	for (uint32_t i = 0; i < h->sizes; i++)
		p->odd[i] = (h->frame[i] - TAG_BYTES - sum->start) & 1;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

// Spreads the sizes over the places of the mix as evenly as possible (smooth weighted round robin). The weights
// determine the number of places, so the mean size is exactly that of the bit rate's calculation.
static int make_mix(struct sender *s)
{
	int32_t credit[JOB_SIZES] = {0}, total = 0;
	uint32_t common = 0;

	for (uint32_t i = 0; i < s->want->job.sizes; i++) {
		total += s->want->job.size[i].weight;
		common = common_divisor(s->want->job.size[i].weight, common);
	}
	s->places = (uint32_t)total / RTE_MAX(common, 1u);
	s->mix = malloc(s->places + 1);
	if (s->mix == NULL)
		return -1;
	for (uint32_t place = 0; place < s->places; place++) {
		uint32_t best = 0;

		for (uint32_t i = 0; i < s->want->job.sizes; i++) {
			credit[i] += s->want->job.size[i].weight;
			if (credit[i] > credit[best])
				best = i;
		}
		credit[best] -= total;
		s->mix[place] = (uint8_t)best;
	}
	return 0;
}

int sender_init(
	struct sender *s, const struct work_stream *want, uint32_t index, const struct pattern *p, uint32_t stride)
{
	*s = (struct sender){.want = want, .index = index};
	if (order_init(&s->order, want->job.order, want->job.flows, want->job.zipf, want->job.seed) != 0 ||
		headers_init(&s->headers, &want->send, &want->send, want, p, stride) != 0)
		return -1;
	payload_sum_init(&s->sum, &s->headers);
	s->sequence = table_alloc(want->job.flows * sizeof(*s->sequence));
	return s->sequence != NULL ? make_mix(s) : -1;
}

void sender_free(struct sender *s)
{
	order_free(&s->order);
	headers_free(&s->headers);
	free(s->sequence);
	free(s->mix);
	s->sequence = NULL;
	s->mix = NULL;
}

// Checksums over a field that may be anything are summed up packet by packet.
static void find_open_sums(struct receiver *r, const struct template *t)
{
	for (uint32_t i = 0; i < t->sums; i++)
		if (t->mask[t->sum[i].offset] == 0)
			r->open_sum[r->open_sums++] = &t->sum[i];
}

int receiver_init(struct receiver *r, const struct work_stream *want, uint32_t index, const struct pattern *p)
{
	*r = (struct receiver){.want = want, .index = index, .sink = want->job.sink, .sent_header = want->send.length};
	r->inner_l3 = want->send.inner_l3;
	r->until_payload = want->job.check_payload;
	for (uint32_t i = 0; i < want->job.sizes; i++)
		r->sent_frame[i] = (uint16_t)(want->job.size[i].bytes - FCS);
	r->flow = table_alloc(want->job.flows * sizeof(*r->flow));
	if (r->flow == NULL)
		return -1;
	for (uint32_t i = 0; i < want->job.flows; i++)
		r->flow[i].window = UINT32_MAX;
	if (want->job.receive_any)
		return 0;
	const struct template *t = &want->receive;
	uint32_t stride = headers_stride(t);

	if (headers_init(&r->headers, t, &want->send, want, p, stride) != 0)
		return -1;
	payload_sum_init(&r->sum, &r->headers);
	r->mask = table_alloc(stride);
	if (r->mask == NULL)
		return -1;
	memcpy(r->mask, t->mask, t->length);
	if (r->sum.offset != 0) // compared apart, with the tag's share
		memset(r->mask + r->sum.offset, 0, 2);
	r->mask_lines = stride / LINE;
	find_open_sums(r, t);
	return 0;
}

void receiver_free(struct receiver *r)
{
	headers_free(&r->headers);
	free(r->mask);
	free(r->flow);
	r->mask = NULL;
	r->flow = NULL;
}
