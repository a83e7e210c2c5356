// SPDX-License-Identifier: Apache-2.0
// Makes and frees the two halves of a stream: tables of headers, flow state, checksum helpers.
#include "traffic/engine/stream.h"
#include <stdlib.h>
#include <sys/mman.h>

#define LINE 64
#define HUGE_PAGE (2u << 20)

// Zeroed memory for a table, on huge pages when the kernel has them to give: a walk over millions of flows would else
// miss the TLB with each packet.
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

// ---- headers ---------------------------------------------------------------------------------------------------------

uint32_t headers_stride(const struct template *t)
{
	return RTE_ALIGN_CEIL((uint32_t)t->length, (uint32_t)LINE);
}

static void write_row(const struct headers *h, uint32_t size, uint32_t flow, const struct pattern *p, uint8_t *row)
{
	template_write(h->t, flow, h->frame[size], h->payload + (size_t)size * h->payload_stride, row);
	memcpy(row + h->t->length, p->byte + h->t->length, h->stride - h->t->length);
}

int headers_init(struct headers *h, const struct template *t, const struct template *sent,
	const struct profile_stream *s, const struct pattern *p, uint32_t stride)
{
	uint64_t rows = (uint64_t)s->flows * s->sizes;
	uint32_t largest = 0;

	*h = (struct headers){.t = t, .stride = stride, .flows = s->flows, .sizes = s->sizes};
	for (uint32_t i = 0; i < s->sizes; i++) {
		h->frame[i] = (uint16_t)(s->size[i].bytes - FCS - sent->length + t->length);
		largest = RTE_MAX(largest, (uint32_t)s->size[i].bytes);
	}
	h->payload_stride = largest;
	h->payload = table_alloc((size_t)largest * s->sizes);
	if (h->payload == NULL)
		return -1;
	for (uint32_t i = 0; i < s->sizes; i++) { // the tag's place stays zero
		uint32_t payload = (uint32_t)(s->size[i].bytes - FCS - sent->length - TAG_BYTES);

		memcpy(h->payload + (size_t)i * largest, p->byte + sent->length, payload);
	}
	if (rows * stride > TABLE_BYTES_MAX)
		return 0;
	h->row = table_alloc((size_t)rows * stride);
	if (h->row == NULL)
		return -1;
	for (uint32_t i = 0; i < s->sizes; i++)
		for (uint32_t flow = 0; flow < s->flows; flow++)
			write_row(h, i, flow, p, h->row + ((size_t)i * s->flows + flow) * stride);
	return 0;
}

void headers_free(struct headers *h)
{
	free(h->row);
	free(h->payload);
	h->row = h->payload = NULL;
}

void payload_sum_init(struct payload_sum *p, const struct headers *h)
{
	const struct template_sum *sum = h->t != NULL ? template_payload_sum(h->t) : NULL;

	*p = (struct payload_sum){0};
	// One over a field that may be anything is summed up packet by packet.
	if (sum == NULL || h->t->mask[sum->offset] == 0)
		return;
	p->offset = sum->offset;
	p->udp = sum->udp;
	for (uint32_t i = 0; i < h->sizes; i++)
		p->odd[i] = (h->frame[i] - TAG_BYTES - sum->start) & 1;
}

// ---- sender ----------------------------------------------------------------------------------------------------------

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

// Spreads the sizes over the places of the mix as evenly as they go (smooth weighted round robin). There are as many places as
// the weights need, so that the mean size is exactly what a rate in bits was calculated with.
static int make_mix(struct sender *s)
{
	int32_t credit[PROFILE_SIZES] = {0}, total = 0;
	uint32_t common = 0;

	for (uint32_t i = 0; i < s->want->sizes; i++) {
		total += s->want->size[i].weight;
		common = common_divisor(s->want->size[i].weight, common);
	}
	s->places = (uint32_t)total / RTE_MAX(common, 1u);
	s->mix = malloc(s->places + 1);
	if (s->mix == NULL)
		return -1;
	for (uint32_t place = 0; place < s->places; place++) {
		uint32_t best = 0;

		for (uint32_t i = 0; i < s->want->sizes; i++) {
			credit[i] += s->want->size[i].weight;
			if (credit[i] > credit[best])
				best = i;
		}
		credit[best] -= total;
		s->mix[place] = (uint8_t)best;
	}
	return 0;
}

int sender_init(
	struct sender *s, const struct profile_stream *want, uint32_t index, const struct pattern *p, uint32_t stride)
{
	*s = (struct sender){.want = want, .index = index};
	if (order_init(&s->order, want->order, want->flows, want->zipf, want->seed) != 0 ||
		headers_init(&s->headers, &want->send, &want->send, want, p, stride) != 0)
		return -1;
	payload_sum_init(&s->sum, &s->headers);
	s->sequence = table_alloc(want->flows * sizeof(*s->sequence));
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

// ---- receiver --------------------------------------------------------------------------------------------------------

// Checksums over a field that may be anything are summed up packet by packet.
static void find_open_sums(struct receiver *r, const struct template *t)
{
	for (uint32_t i = 0; i < t->sums; i++)
		if (t->mask[t->sum[i].offset] == 0)
			r->open_sum[r->open_sums++] = &t->sum[i];
}

int receiver_init(struct receiver *r, const struct profile_stream *want, uint32_t index, const struct pattern *p)
{
	*r = (struct receiver){.want = want, .index = index, .sink = want->sink, .sent_header = want->send.length};
	r->inner_l3 = want->send.inner_l3;
	r->until_payload = want->check_payload;
	for (uint32_t i = 0; i < want->sizes; i++)
		r->sent_frame[i] = (uint16_t)(want->size[i].bytes - FCS);
	r->flow = table_alloc(want->flows * sizeof(*r->flow));
	if (r->flow == NULL)
		return -1;
	for (uint32_t i = 0; i < want->flows; i++)
		r->flow[i].window = UINT32_MAX;
	if (want->receive_any)
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
