// SPDX-License-Identifier: Apache-2.0
// What making and judging a packet costs without a link: ticks of one thread, medians of many short rounds (a round
// that was interrupted does not move them). `stream-bench [PROFILE.yaml…]`: the first stream of each.
#include "traffic/engine/engine.h"
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>

#define FRAMES 512 // buffers, as many as a ring keeps warm
#define ROUNDS 2000
#define NONCE 99
#define AHEAD 6 // as the tester's threads

struct bench {
	struct pattern pattern;
	struct sender sender;
	struct receiver receiver;
	struct check check;
	uint8_t *frame[FRAMES];
	uint16_t length[FRAMES];
	double make[ROUNDS], judge[ROUNDS];
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *list)
{
	qsort(list, ROUNDS, sizeof(*list), by_size);
	return list[ROUNDS / 2];
}

static void one_round(struct bench *b, uint32_t round)
{
	struct sender *s = &b->sender;
	bool wrong;
	uint64_t begin = rte_rdtsc();

	for (uint32_t i = 0; i < FRAMES; i += BURST) {
		uint32_t flow[BURST], size[BURST];

		for (uint32_t k = 0; k < BURST; k++) {
			size[k] = sender_size(s);
			flow[k] = order_next(&s->order);
			sender_prefetch(s, flow[k], size[k]);
		}
		for (uint32_t k = 0; k < BURST; k++)
			b->length[i + k] = sender_make(
				s, b->frame[i + k], flow[k], size[k], (uint32_t)(begin >> TAG_TIME_SHIFT), NONCE);
	}
	uint64_t made = rte_rdtsc();

	// What is received is what was sent: only profiles whose `receive` is their `send`, or absent, have no wrong
	// packets.
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t next = RTE_MIN(i + AHEAD, FRAMES - 1u);

		check_prefetch(&b->check, b->frame[next], b->length[next]);
		check_frame(&b->check, b->frame[i], b->length[i], made, &wrong);
	}
	b->make[round] = (double)(made - begin) / FRAMES;
	b->judge[round] = (double)(rte_rdtsc() - made) / FRAMES;
}

static int run(const char *file)
{
	struct profile *p = profile_load(file, stderr);
	struct bench *b = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*b), (size_t)64));

	if (p == NULL || b == NULL)
		return 1;
	memset(b, 0, sizeof(*b));
	struct profile_stream *s = &p->stream[0];

	pattern_fill(&b->pattern);
	s->receive = s->send;
	if (sender_init(&b->sender, s, 0, &b->pattern, headers_stride(&s->send)) != 0 ||
		receiver_init(&b->receiver, s, 0, &b->pattern) != 0)
		return 1;
	for (uint32_t i = 0; i < FRAMES; i++) {
		b->frame[i] = aligned_alloc(64, PATTERN_BYTES);
		if (b->frame[i] == NULL)
			return 1;
		memcpy(b->frame[i], b->pattern.byte, PATTERN_BYTES - 64);
	}
	b->check = (struct check){.pattern = &b->pattern,
		.receivers = &b->receiver,
		.streams = 1,
		.port = s->sink,
		.nonce = NONCE,
		.decode_every = 1024,
		.until_decode = 1024};
	for (uint32_t i = 0; i < ROUNDS; i++)
		one_round(b, i);
	uint64_t wrong = 0;

	for (int i = 0; i < WRONG_KINDS; i++)
		wrong += b->receiver.count.wrong[i];
	printf("%-40s %6.0f B  make %6.1f  judge %6.1f ticks  (%lu of %u received, %lu wrong)\n", file,
		stream_mean_bytes(s), median(b->make), median(b->judge), b->receiver.count.received, ROUNDS * FRAMES,
		wrong);
	return b->receiver.count.received != ROUNDS * FRAMES || wrong != 0;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"traffic/profiles/rfc2544-router.yaml", "traffic/profiles/imix.yaml",
		"traffic/profiles/agf-symmetric.yaml"};
	int bad = 0;

	for (int i = 1; i < argc; i++)
		bad |= run(argv[i]);
	for (int i = 0; argc == 1 && i < 3; i++)
		bad |= run(usual[i]);
	return bad;
}
