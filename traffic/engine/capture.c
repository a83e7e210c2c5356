// SPDX-License-Identifier: Apache-2.0
// Sample frames for a pcap file: one byte ring per receiving thread, emptied by the main thread.
#include "traffic/engine/capture.h"
#include "wire/cache_line.h"
#include <assert.h>
#include <errno.h>
#include <pcap/pcap.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES (1u << 20) // a power of two; more than a hundred of the longest frames

// Precedes each frame in a ring; both together are rounded up to a multiple of this.
struct record {
	uint64_t ns;
	uint16_t length, kept; // bytes of the frame; of these in the ring. length 0: nothing more before the ring's end
	bool sampled; // counts against job_capture.count
};
#define RECORD_BYTES sizeof(struct record)
static_assert(RECORD_BYTES == 16 && RING_BYTES % RECORD_BYTES == 0, "records never straddle the ring's end");

// One thread writes `head` and `next`, the main thread writes `tail`. Positions grow for ever; their low bits are
// places.
struct ring {
	alignas(CACHE_LINE) atomic_uint_fast64_t head;
	uint64_t seen_tail; // the writer's copy, looked up again only when the ring seems full
	uint32_t next; // frames until the next sample
	alignas(CACHE_LINE) atomic_uint_fast64_t tail;
	uint8_t *bytes;
};

struct capture {
	pcap_t *pcap;
	pcap_dumper_t *dumper;
	uint32_t every, count, threads;
	uint32_t sampled, kept; // frames written, of either kind
	atomic_bool enough; // `count` samples are in the file
	char error[JOB_TEXT];
	char file[JOB_TEXT];
	struct ring *ring;
};

static void free_all(struct capture *c)
{
	for (uint32_t i = 0; c->ring != NULL && i < c->threads; i++)
		free(c->ring[i].bytes);
	free(c->ring);
	if (c->dumper != NULL)
		pcap_dump_close(c->dumper);
	if (c->pcap != NULL)
		pcap_close(c->pcap);
	free(c);
}

static bool make_rings(struct capture *c)
{
	c->ring = aligned_alloc(CACHE_LINE, c->threads * sizeof(*c->ring));
	if (c->ring == NULL)
		return false;
	memset(c->ring, 0, c->threads * sizeof(*c->ring));
	for (uint32_t i = 0; i < c->threads; i++) {
		c->ring[i].bytes = aligned_alloc(CACHE_LINE, RING_BYTES);
		if (c->ring[i].bytes == NULL)
			return false;
		atomic_init(&c->ring[i].head, 0);
		atomic_init(&c->ring[i].tail, 0);
		c->ring[i].next = 1; // the first frame is a sample, so that short runs have one
	}
	return true;
}

struct capture *capture_open(const struct job_capture *want, uint32_t threads, char *error, size_t n)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		snprintf(error, n, "capture: no memory");
		return NULL;
	}
	c->every = want->every ? want->every : 1;
	c->count = want->count;
	c->threads = threads ? threads : 1;
	snprintf(c->file, sizeof(c->file), "%s", want->file);
	atomic_init(&c->enough, c->count == 0);
	c->pcap = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
	if (c->pcap == NULL || !make_rings(c)) {
		snprintf(error, n, "capture: no memory");
		free_all(c);
		return NULL;
	}
	c->dumper = pcap_dump_open(c->pcap, c->file);
	if (c->dumper == NULL) {
		snprintf(error, n, "capture: %s", pcap_geterr(c->pcap)); // names the file
		free_all(c);
		return NULL;
	}
	return c;
}

// Any thread with a ring of its own. A full ring loses the frame.
static void put(struct ring *r, const uint8_t *frame, uint16_t length, uint64_t ns, bool sampled)
{
	struct record record = {
		.ns = ns, .length = length, .kept = length < FRAME_MAX ? length : FRAME_MAX, .sampled = sampled};
	uint64_t bytes = (RECORD_BYTES + record.kept + RECORD_BYTES - 1) & ~(uint64_t)(RECORD_BYTES - 1);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t place = head & (RING_BYTES - 1);
	uint64_t skip = place + bytes > RING_BYTES ? RING_BYTES - place : 0;

	if (head + skip + bytes - r->seen_tail > RING_BYTES) {
		r->seen_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head + skip + bytes - r->seen_tail > RING_BYTES)
			return;
	}
	if (skip != 0) {
		memset(r->bytes + place, 0, RECORD_BYTES);
		place = 0;
	}
	memcpy(r->bytes + place, &record, RECORD_BYTES);
	memcpy(r->bytes + place + RECORD_BYTES, frame, record.kept);
	atomic_store_explicit(&r->head, head + skip + bytes, memory_order_release);
}

bool capture_wants(const struct capture *c, uint32_t thread)
{
	return c != NULL && c->ring[thread].next <= 1 && !atomic_load_explicit(&c->enough, memory_order_relaxed);
}

void capture_offer(struct capture *c, uint32_t thread, const uint8_t *frame, uint16_t length, uint64_t ns)
{
	if (c == NULL || length == 0)
		return;
	struct ring *r = &c->ring[thread];
	if (r->next-- > 1)
		return;
	r->next = c->every;
	if (!atomic_load_explicit(&c->enough, memory_order_relaxed))
		put(r, frame, length, ns, true);
}

void capture_keep(struct capture *c, uint32_t thread, const uint8_t *frame, uint16_t length, uint64_t ns)
{
	if (c != NULL && length != 0)
		put(&c->ring[thread], frame, length, ns, false);
}

static void write_record(struct capture *c, const struct record *record, const uint8_t *frame)
{
	struct pcap_pkthdr head = {.caplen = record->kept, .len = record->length};
	uint32_t *written = record->sampled ? &c->sampled : &c->kept;

	if (*written >= c->count || c->error[0] != '\0')
		return;
	head.ts.tv_sec = (time_t)(record->ns / 1000000000);
	head.ts.tv_usec = (suseconds_t)(record->ns % 1000000000); // nanoseconds, as the file's header says
	pcap_dump((u_char *)c->dumper, &head, frame);
	if (ferror(pcap_dump_file(c->dumper))) {
		snprintf(c->error, sizeof(c->error), "capture: %.200s: %s", c->file, strerror(errno));
		atomic_store_explicit(&c->enough, true, memory_order_relaxed);
		return;
	}
	(*written)++;
	if (c->sampled == c->count)
		atomic_store_explicit(&c->enough, true, memory_order_relaxed);
}

static void drain(struct capture *c, struct ring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	while (tail != head) {
		uint64_t place = tail & (RING_BYTES - 1);
		struct record record;
		memcpy(&record, r->bytes + place, RECORD_BYTES);
		if (record.length == 0) {
			tail += RING_BYTES - place;
			continue;
		}
		write_record(c, &record, r->bytes + place + RECORD_BYTES);
		tail += (RECORD_BYTES + record.kept + RECORD_BYTES - 1) & ~(uint64_t)(RECORD_BYTES - 1);
		atomic_store_explicit(&r->tail, tail, memory_order_release);
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
}

void capture_poll(struct capture *c)
{
	if (c == NULL)
		return;
	uint32_t before = c->sampled + c->kept;
	for (uint32_t i = 0; i < c->threads; i++)
		drain(c, &c->ring[i]);
	// Makes the file readable even if this program is killed. A full disk shows here at the latest.
	if (c->sampled + c->kept != before && pcap_dump_flush(c->dumper) != 0 && c->error[0] == '\0')
		snprintf(c->error, sizeof(c->error), "capture: %.200s: %s", c->file, strerror(errno));
}

const char *capture_error(const struct capture *c)
{
	return c != NULL && c->error[0] != '\0' ? c->error : NULL;
}

uint32_t capture_close(struct capture *c)
{
	if (c == NULL)
		return 0;
	capture_poll(c);
	uint32_t written = c->sampled + c->kept;
	free_all(c);
	return written;
}
