// SPDX-License-Identifier: Apache-2.0
// The channel's queue of frames, and its one reader.
//
// Frames are copied into batches of one message each, in a ring allocated once: a slow reader fills it, but holds no
// packet buffer. A message is a sequence of parts: api_frame, then its octets.
#include "core/channel.h"
#include "core/contract.h"
#include "core/host_path.h"
#include "core/module.h"
#include "core/port.h"
#include "core/reply.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES_PER_VISIT 64 // two megabytes
#define HOLD_NS 20000000ull // longest time that frames down wait for room

static struct {
	uint8_t *room; // of all batches
	uint32_t *length; // bytes of each
	uint32_t batches, first, used; // those with frames begin at `first`
	struct reply_stream reader;
	struct api_frame_port port[MAX_PORTS]; // access ports
	uint32_t ports;
	int told; // the reader knows them
	uint64_t held_ns; // since when frames down wait for room (control_now_ns()); 0: they do not
	void (*handler)(const struct api_frame *h, const uint8_t *octets);
	void (*describe)(const struct port *p, struct api_frame_port *row);
} channel;

static uint8_t *batch(uint32_t i)
{
	return channel.room + (size_t)i * API_CHANNEL_MOST;
}

// The batch that has room for `need` bytes more; UINT32_MAX: none.
static uint32_t batch_for(uint32_t need)
{
	uint32_t last = (channel.first + channel.used - 1) % channel.batches;

	if (channel.used != 0 && channel.length[last] + need <= API_CHANNEL_MOST)
		return last;
	if (channel.used == channel.batches)
		return UINT32_MAX;
	last = (channel.first + channel.used++) % channel.batches;
	channel.length[last] = 0;
	return last;
}

static uint8_t *put_head(uint8_t *to, uint16_t part, uint16_t size, uint32_t count)
{
	const struct api_part_head head = {.part = part, .size = size, .count = count};

	memcpy(to, &head, sizeof(head));
	return to + sizeof(head);
}

static void put_octets(uint8_t *to, uint32_t length, const struct rte_mbuf *m, uint32_t offset)
{
	uint32_t count = (length + 7) / 8;

	to = put_head(to, API_PART_FRAME_OCTETS, sizeof(struct api_frame_octets), count);
	memset(to + (count - 1) * 8, 0, 8);
	const void *octets = rte_pktmbuf_read(m, offset, length, to);
	if (octets != to)
		memcpy(to, octets, length);
}

enum channel_result channel_put(const struct api_frame *h, const struct rte_mbuf *m, uint32_t offset)
{
	uint32_t need = sizeof(struct api_part_head) + sizeof(*h);

	if (channel.reader.to == NULL)
		return CHANNEL_CLOSED;
	if (h->length != 0)
		need += (uint32_t)(sizeof(struct api_part_head) + part_padded(h->length));
	uint32_t i = batch_for(need);
	if (i == UINT32_MAX)
		return CHANNEL_FULL;
	uint8_t *to = put_head(batch(i) + channel.length[i], API_PART_FRAME, sizeof(*h), 1);
	memcpy(to, h, sizeof(*h));
	if (h->length != 0)
		put_octets(to + sizeof(*h), h->length, m, offset);
	channel.length[i] += need;
	control_stir();
	return CHANNEL_TAKEN;
}

static void list_ports(void)
{
	struct api_frame_port now[MAX_PORTS] = {0};
	uint32_t count = 0;

	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		const struct port *p = port_get(i);

		if (p == NULL || p->role != API_ROLE_ACCESS)
			continue;
		memcpy(now[count].name, p->name, API_NAME);
		memcpy(now[count].mac, p->mac.addr_bytes, 6);
		if (channel.describe != NULL)
			channel.describe(p, &now[count]);
		count++;
	}
	if (count == channel.ports && memcmp(now, channel.port, count * sizeof(now[0])) == 0)
		return;
	memcpy(channel.port, now, sizeof(now));
	channel.ports = count;
	channel.told = 0;
}

static int tell_ports(void)
{
	const struct api_part_head part = {
		.part = API_PART_FRAME_PORT, .size = sizeof(channel.port[0]), .count = channel.ports};

	if (!channel.told)
		channel.told = stream_offer(&channel.reader, &part, channel.port, part.count * part.size) == 0;
	return channel.told;
}

void channel_flush(void)
{
	// The client does not read, or is gone, which socket.c notices later.
	if (channel.reader.to == NULL || !tell_ports())
		return;
	for (int n = 0; n < BATCHES_PER_VISIT && channel.used != 0; n++) {
		const uint8_t *b = batch(channel.first);
		struct api_part_head part;

		memcpy(&part, b, sizeof(part));
		if (stream_offer(&channel.reader, &part, b + sizeof(part),
			    channel.length[channel.first] - sizeof(part)) != 0)
			return;
		channel.used--;
		channel.first = (channel.first + 1) % channel.batches;
	}
}

static void visit(uint64_t now_ns)
{
	if (channel.reader.to == NULL)
		return;
	list_ports();
	channel_flush();
	if (channel.used != 0)
		control_stir();
}

void channel_open(struct reply_sink *sink, const struct api_header *h)
{
	stream_take(&channel.reader, sink, h, "another control plane took the channel over");
	channel.told = 0;
	list_ports();
	channel_flush();
}

void channel_client_gone(uint32_t owner)
{
	if (stream_gone(&channel.reader, owner))
		channel.used = 0; // its answers are of no use to the next reader
}

static int read_frame(struct part_reader *r, const struct part *p, struct api_frame *h, const uint8_t **octets)
{
	struct part o = {0};

	*octets = NULL;
	if (p->number != API_PART_FRAME || p->count != 1)
		return object_error(EPROTO, "frames with a part that is no %s", part_name(API_PART_FRAME));
	int error = part_fit(p, sizeof(*h), h, "a frame");
	if (error != 0)
		return error;
	if (h->length > API_FRAME_MOST || memchr(h->port, 0, API_NAME) == NULL)
		return object_error(EINVAL, "a frame of %u octets, or with a port's name that does not end", h->length);
	if (h->length == 0)
		return 0;
	if (part_next(r, &o) != 1 || o.number != API_PART_FRAME_OCTETS || o.size != sizeof(struct api_frame_octets) ||
		o.count != (h->length + 7) / 8)
		return object_error(EPROTO, "a frame of %u octets without them", h->length);
	*octets = o.rows;
	return 0;
}

// A worker may be behind with other workers' packets, too, which fill the same inbox: then only its frames are lost.
int channel_holds(const struct reply_sink *sink)
{
	if (sink != channel.reader.to)
		return 0;
	if (!inboxes_crowded()) {
		channel.held_ns = 0;
		return 0;
	}
	if (channel.held_ns == 0)
		channel.held_ns = control_now_ns();
	return control_now_ns() - channel.held_ns < HOLD_NS;
}

int channel_send(const struct reply_sink *sink, const struct api_header *h, const void *body)
{
	struct part_reader r = {.at = body, .left = h->length};
	struct api_frame frame;
	const uint8_t *octets;
	struct part p;
	int more, error;

	if (sink != channel.reader.to)
		return 0; // of a former reader, which knows that the channel was taken over
	while ((more = part_next(&r, &p)) == 1) {
		error = read_frame(&r, &p, &frame, &octets);
		if (error != 0)
			return error;
		channel.handler(&frame, octets);
	}
	return more;
}

void channel_port_register(void (*fn)(const struct port *p, struct api_frame_port *row))
{
	channel.describe = fn;
}

void channel_handler_register(void (*fn)(const struct api_frame *h, const uint8_t *octets))
{
	channel.handler = fn;
}

ENGINE_LIMIT(channel_kib, 64, 1u << 20)

static int start(const struct api_engine *e)
{
	uint32_t kib = e->channel_kib != 0 ? e->channel_kib : API_CHANNEL_KIB;

	channel.batches = kib / (API_CHANNEL_MOST / 1024);
	channel.room = malloc((size_t)channel.batches * API_CHANNEL_MOST);
	channel.length = calloc(channel.batches, sizeof(*channel.length));
	if (channel.room == NULL || channel.length == NULL)
		return object_error(ENOMEM, "no memory for %u KiB of frames", kib);
	return 0;
}

RTE_INIT(channel_module)
{
	module_register(start);
	timer_register(1, visit);
}
