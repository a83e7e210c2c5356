// SPDX-License-Identifier: Apache-2.0
// A control plane in the test's own thread with the channel: received frames, and frames to send.
//
//   kit_channel_open();  kit_send(...), kit_run();  kit_channel.frame[0].h.reason ...  kit_channel_send(&h, octets);
#ifndef TESTKIT_CHANNEL_H
#define TESTKIT_CHANNEL_H

#include "core/engine.h"
#include "testkit/testkit.h"
#include <string.h>

#define KIT_UP 4096 // frames that are kept
#define KIT_UP_OCTETS 2048u // of a frame that are kept

static struct {
	struct reply_sink sink; // first
	struct {
		struct api_frame h;
		uint8_t octets[KIT_UP_OCTETS];
	} frame[KIT_UP];
	uint32_t frames;
	struct api_frame_port port[MAX_PORTS];
	uint32_t ports;
	uint32_t wrong; // parts that make no sense
	struct api_status status; // of the last refusal
	int busy; // takes nothing
} kit_channel;

static inline void kit_channel_part(const struct part *p)
{
	uint32_t last = (kit_channel.frames - 1) % KIT_UP;

	if (p->number == API_PART_FRAME && p->count == 1)
		memcpy(&kit_channel.frame[kit_channel.frames++ % KIT_UP].h, p->rows, sizeof(struct api_frame));
	else if (p->number == API_PART_FRAME_OCTETS && kit_channel.frames != 0)
		memcpy(kit_channel.frame[last].octets, p->rows, RTE_MIN(p->count * p->size, KIT_UP_OCTETS));
	else if (p->number == API_PART_FRAME_PORT)
		memcpy(kit_channel.port, p->rows, (kit_channel.ports = p->count) * sizeof(struct api_frame_port));
	else if (p->number == API_PART_STATUS)
		memcpy(&kit_channel.status, p->rows, sizeof(kit_channel.status));
	else
		kit_channel.wrong++;
}

static inline int kit_channel_offered(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rest)
{
	struct part p = {.number = part->part, .size = part->size, .count = part->count, .rows = rest};
	uint32_t first = (uint32_t)part_padded((uint64_t)part->size * part->count);
	struct part_reader r = {.at = p.rows + first, .left = h->length - (uint32_t)sizeof(*part) - first};

	if (kit_channel.busy)
		return 1;
	kit_channel_part(&p);
	while (r.left != 0)
		if (part_next(&r, &p) == 1)
			kit_channel_part(&p);
		else
			return kit_channel.wrong++, 0;
	return 0;
}

// Opens the channel, or forgets earlier frames.
static inline void kit_channel_open(void)
{
	memset(&kit_channel, 0, sizeof(kit_channel));
	kit_channel.sink = (struct reply_sink){.send = kit_channel_offered, .offer = kit_channel_offered, .owner = 8};
	kit_request(&kit_channel.sink, API_CHANNEL, 0, NULL, 0);
}

// One message of one frame. `sink`: NULL for the channel's reader.
static inline void kit_channel_send(struct reply_sink *sink, const struct api_frame *h, const void *octets)
{
	uint8_t body[2 * sizeof(struct api_part_head) + sizeof(*h) + API_FRAME_MOST + 8] = {0};
	uint32_t count = (h->length + 7) / 8;
	const struct api_part_head head[2] = {{API_PART_FRAME, sizeof(*h), 1}, {API_PART_FRAME_OCTETS, 8, count}};
	struct api_header request = {
		.magic = API_MAGIC, .type = API_CHANNEL_SEND, .length = sizeof(head[0]) + sizeof(*h)};

	memcpy(body, &head[0], sizeof(head[0]));
	memcpy(body + sizeof(head[0]), h, sizeof(*h));
	if (count != 0) {
		memcpy(body + request.length, &head[1], sizeof(head[1]));
		memcpy(body + request.length + sizeof(head[1]), octets, h->length);
		request.length += (uint32_t)sizeof(head[1]) + 8 * count;
	}
	request_handle(sink != NULL ? sink : &kit_channel.sink, &request, body);
}

#endif
