// SPDX-License-Identifier: Apache-2.0
// Cost of making and judging a packet without a link: ticks of one thread, medians of many short rounds (an interrupted
// round does not move them). The streams are the first of three profiles in traffic/profiles.
#include "traffic/engine/engine.h"
#include "traffic/wire/stack_kit.h"
#include <rte_cycles.h>

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

	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t next = RTE_MIN(i + AHEAD, FRAMES - 1u);

		check_prefetch(&b->check, b->frame[next], b->length[next]);
		check_frame(&b->check, b->frame[i], b->length[i], made, &wrong);
	}
	b->make[round] = (double)(made - begin) / FRAMES;
	b->judge[round] = (double)(rte_rdtsc() - made) / FRAMES;
}

struct described {
	const char *name, *send;
	struct job_stream job;
};

#define WAY "ethernet destination=0x020000001801 source=0x020000001802; ipv4 source=0xc6120002 destination=0xc6130002; "
static const struct described streams[] = {
	{"rfc2544-router", WAY "udp source=49152+1 destination=7", {.flows = 256, .sizes = 1, .size = {{64, 1}}}},
	{"imix", WAY "udp source=1024+1%256 destination=10000+1/256",
		{.flows = 65536, .order = ORDER_ZIPF, .seed = 42, .sizes = 3, .size = {{64, 7}, {594, 4}, {1518, 1}}}},
	{"agf-symmetric",
		"ethernet destination=0x020000aa0001 source=0x020100000000+1/4; vlan tpid=0x88a8 id=100+1/1024; "
		"vlan id=1+1/4%256; pppoe session=1+1/4; ipv4 source=0x0a400001+1/4 destination=0xcb007150 ttl=63 "
		"df=1; "
		"udp source=4000 destination=5000+1%4",
		{.flows = 4096, .order = ORDER_RANDOM, .seed = 1, .sizes = 1, .size = {{650, 1}}}},
};

// What is received is what was sent.
static int run(const struct described *d)
{
	struct bench *b = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*b), (size_t)64));
	static struct work_stream stream;
	struct work_stream *s = &stream;
	struct stack stack = {0};

	if (b == NULL)
		return 1;
	memset(b, 0, sizeof(*b));
	memset(s, 0, sizeof(*s));
	s->job = d->job;
	s->job.zipf = s->job.share = s->job.block = s->job.check_payload = 1;
	s->job.sink = 1;
	kit_text(&stack, d->send);
	kit_compile(&stack, s->job.flows, false, &s->send);
	s->receive = s->send;
	pattern_fill(&b->pattern);
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
		.port = 1,
		.nonce = NONCE,
		.decode_every = 1024,
		.until_decode = 1024};
	for (uint32_t i = 0; i < ROUNDS; i++)
		one_round(b, i);
	uint64_t wrong = 0;

	for (int i = 0; i < WRONG_KINDS; i++)
		wrong += b->receiver.count.wrong[i];
	printf("%-20s make %6.1f  judge %6.1f ticks  (%lu of %u received, %lu wrong)\n", d->name, median(b->make),
		median(b->judge), b->receiver.count.received, ROUNDS * FRAMES, wrong);
	return b->receiver.count.received != ROUNDS * FRAMES || wrong != 0;
}

int main(void)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		bad |= run(&streams[i]);
	return bad;
}
