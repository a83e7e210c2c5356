// SPDX-License-Identifier: Apache-2.0
// Inside of the tester: a stream's sending and receiving halves, each of one thread only.
//
//   sender    written by the thread that sends on the stream's port.
//   Receiver  written by the thread that receives on the stream's sink.
//
// The main thread reads counters while they run (64-bit words, late at worst) and copies them when the threads rest.
#ifndef TRAFFIC_STREAM_H
#define TRAFFIC_STREAM_H

#include "traffic/engine/order.h"
#include "traffic/engine/tester.h"
#include "traffic/wire/tag.h"
#include "wire/cache_line.h"
#include <rte_common.h>
#include <rte_prefetch.h>
#include <rte_ring.h>

#define PATTERN_BYTES (FRAME_MAX + 64)
#define TABLE_BYTES_MAX (512ull << 10) // beyond L2 a stored row costs more than a computed one

// The bytes behind every packet's header: byte k of a sent frame is byte k of the pattern, up to the tag. It never
// repeats, so a shifted payload is seen.
struct pattern {
	uint8_t byte[PATTERN_BYTES];
};
void pattern_fill(struct pattern *p);

// A field that differs from flow to flow, by step * k with k = flow / each % count, as headers_write() needs it.
struct header_field {
	uint16_t offset, width;
	uint32_t step, count; // count 0: never wraps
	uint64_t each, wrap; // 2^64 / each and / count, rounded up; 0: by 1
	uint32_t sums;
	struct {
		uint16_t index, add; // added to a checksum by k = 1, modulo 65535; the checksums that it changes
	} sum[TEMPLATE_SUMS];
};

// Headers of all flows at all sizes, precomputed if they fit into TABLE_BYTES_MAX; else derived from the first flow's.
// A one's complement checksum is linear in its data, so each field contributes separately.
struct headers {
	const struct template *t;
	uint8_t *row; // [size][flow], stride bytes each; NULL: none
	uint8_t *first; // [size], the first flow's
	struct header_field field[TEMPLATE_FIELDS];
	uint32_t stride, flows, sizes;
	uint16_t frame[JOB_SIZES]; // bytes without FCS, of this side
};

// Writes the header of a flow, and the pattern behind it up to `stride`.
void headers_write(const struct headers *h, uint32_t size, uint32_t flow, uint8_t *to);

// The header of a flow: in the table, or written to `scratch` (TEMPLATE_BYTES rounded up to the stride).
static inline const uint8_t *headers_of(const struct headers *h, uint32_t size, uint32_t flow, uint8_t *scratch)
{
	if (likely(h->row != NULL))
		return h->row + ((size_t)size * h->flows + flow) * h->stride;
	headers_write(h, size, flow, scratch);
	return scratch;
}

// How the tag changes the checksum over the payload.
struct payload_sum {
	uint16_t offset; // of the checksum; 0: none
	uint8_t odd[JOB_SIZES]; // the tag begins at an odd byte of what is summed up
	uint8_t udp; // 0 is sent as 0xffff (RFC 768)
};

// The sum of a tag's 16-bit words, folded.
static inline uint32_t tag_sum(const struct tag *t, int odd)
{
	uint64_t words[2];

	memcpy(words, t, sizeof(words));
	uint64_t sum = (words[0] & 0xffffffff) + (words[0] >> 32) + (words[1] & 0xffffffff) + (words[1] >> 32);

	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return odd ? ((uint32_t)sum & 0xff) << 8 | (uint32_t)sum >> 8 : (uint32_t)sum;
}

// The checksum of a packet, in memory order, from that with a tag of zeros.
static inline uint16_t payload_sum_with(const struct payload_sum *p, uint32_t size, uint16_t zero, const struct tag *t)
{
	uint32_t sum = (uint16_t)~zero + tag_sum(t, p->odd[size]);

	sum = (sum & 0xffff) + (sum >> 16);
	uint16_t check = (uint16_t) ~((sum & 0xffff) + (sum >> 16));

	return p->udp && check == 0 ? 0xffff : check;
}

// An answer that a receiver asks a sender for.
struct answer {
	uint32_t flow, time;
};

struct sender {
	const struct work_stream *want;
	uint32_t index; // of the stream
	struct order order;
	struct headers headers;
	struct payload_sum sum;
	uint32_t *sequence; // of each flow, the next one's
	uint8_t *mix; // indices of sizes, each as often as its weight says
	uint32_t places, at; // in `mix`
	struct rte_ring *answers; // elements of struct answer, or NULL
	uint64_t sent, sent_bytes, refused;
} cache_aligned;

// A flow's receive state: the next sequence number, and which of the 32 before it arrived (bit 0: the last).
struct flow_state {
	uint32_t next, window;
};

struct receiver {
	const struct work_stream *want;
	uint32_t index;
	uint16_t sink; // port
	struct headers headers; // as they must arrive; t NULL when anything may
	uint8_t *mask; // stride bytes
	uint32_t mask_lines; // 64-byte pieces to compare
	struct payload_sum sum;
	const struct template_sum *open_sum[TEMPLATE_SUMS]; // checksums that are not known beforehand
	uint32_t open_sums;
	uint16_t sent_header, inner_l3; // bytes of the header as sent; offset of its innermost IP header
	uint16_t sent_frame[JOB_SIZES];
	struct flow_state *flow;
	struct rte_ring *answers; // of the stream that answers this one
	uint64_t answers_lost; // the ring was full
	uint32_t until_payload;
	struct stream_count count; // without what the sender counts
} cache_aligned;

static inline uint32_t sender_size(struct sender *s)
{
	uint32_t at = s->at;

	s->at = at + 1 < s->places ? at + 1 : 0;
	return s->mix[at];
}

static inline void sender_prefetch(const struct sender *s, uint32_t flow, uint32_t size)
{
	if (s->headers.row != NULL)
		rte_prefetch0(s->headers.row + ((size_t)size * s->headers.flows + flow) * s->headers.stride);
	rte_prefetch0(&s->sequence[flow]);
}

int sender_init(
	struct sender *s, const struct work_stream *want, uint32_t index, const struct pattern *p, uint32_t stride);
void sender_free(struct sender *s);
int receiver_init(struct receiver *r, const struct work_stream *want, uint32_t index, const struct pattern *p);
void receiver_free(struct receiver *r);

// Bytes that a sender's rows take up, for a common stride of all senders of a buffer pool.
uint32_t headers_stride(const struct template *t);

// receive.c

// The number of the trial `trials` after this one; numbers repeat only after all were used.
static inline uint32_t nonce_after(uint32_t nonce, int32_t trials)
{
	return nonce + (uint32_t)trials * 2654435761u;
}

// What the receiving of one port needs to know.
struct check {
	const struct pattern *pattern;
	struct receiver *receivers; // by stream
	uint32_t streams;
	uint16_t port;
	uint32_t nonce; // of the trial
	uint32_t decode_every, until_decode;
	uint64_t foreign, control;
	uint64_t stray; // of all trials together: they come between two as well
};

static inline void check_prefetch(const struct check *c, const uint8_t *frame, uint16_t length)
{
	struct tag tag;

	if (unlikely(length < TAG_BYTES))
		return;
	memcpy(&tag, frame + length - TAG_BYTES, sizeof(tag)); // good or not
	uint32_t stream = tag_stream(&tag), flow = tag_flow(&tag), size = tag_size(&tag);

	if (unlikely(stream >= c->streams))
		return;
	const struct receiver *r = &c->receivers[stream];

	if (unlikely(flow >= r->want->job.flows || size >= r->want->job.sizes))
		return;
	rte_prefetch0(&r->flow[flow]);
	if (r->headers.row != NULL)
		rte_prefetch0(r->headers.row + ((size_t)size * r->headers.flows + flow) * r->headers.stride);
}

// Judges a frame that arrived at `now` (ticks) and counts it. Returns the stream, or NULL when it has none; *wrong says
// whether to keep it in the capture.
struct receiver *check_frame(struct check *c, const uint8_t *frame, uint16_t length, uint64_t now, bool *wrong);

// send.c

// Writes header, tag and checksums of a flow's next packet into a buffer that has the pattern as payload. Returns the
// frame's length.
uint16_t sender_make(struct sender *s, uint8_t *frame, uint32_t flow, uint32_t size, uint32_t time, uint32_t nonce);

#endif
