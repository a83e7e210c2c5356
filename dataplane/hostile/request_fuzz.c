// SPDX-License-Identifier: Apache-2.0
// Arbitrary requests of the control plane to a running gateway. The engine object exists, so limits and workers stay;
// everything else may come, change and go.
//
// An input is a sequence of messages: type (1 byte), kind (1 byte), key (1 byte), length (2 bytes, big endian), parts.
// A PUT's object head is made from kind and key, or taken from the input when the kind says 0xff.
#include "core/engine.h"
#include "core/object.h"
#include "hostile/busy_gateway.h"
#include "hostile/busy_mobile.h"
#include "wire/bytes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MESSAGES 64
#define HEAD 5
#define MAX_OBJECTS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Names that occur in the state, so that changes and references find something.
// Keys are names within their kind: "access", "core" are network instances too.
static const char *const keys[] = {"engine", "access", "core", "internet", "homes", "n3", "n6", "uplink", "downlink",
	"single", "two", "upf4", "upf6", "home-1", "home-2", "home-3", "home-4", "home-5", "home-6", "198.51.100.0/24",
	"2001:db8:ffff::/48", "203.0.113.0/24", "new-1", "new-2", "n3|10.0.0.2", "n3|fd00::2", "", "radio", "mobile4",
	"mobile6", "self", "mobile-1", "mobile-2", "mobile-3", "mobile-4", "mobile-5", "mobile-6", "mobile-7",
	"mobile-8", "mobile-9", "mobile-10", "mobile-11", "mobile-12", "new-3"};

struct client {
	struct reply_sink sink;
	uint32_t replies, last, wrong;
};

// The channel's messages have further parts.
static int parts_are_wrong(const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	uint64_t first = part_padded((uint64_t)part->size * part->count);
	struct part p;
	int more;

	if (part->size == 0 || (part->count != 0 && rows == NULL) || h->length < sizeof(*part) + first)
		return 1;
	struct part_reader r = {
		.at = (const uint8_t *)rows + first, .left = h->length - (uint32_t)(sizeof(*part) + first)};
	if (h->type != API_CHANNEL && r.left != 0)
		return 1;
	while ((more = part_next(&r, &p)) == 1)
		;
	return more != 0;
}

static int answer(struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct client *c = (struct client *)s;

	c->replies++;
	c->last += (h->flags & API_F_LAST) != 0;
	c->wrong += h->magic != API_MAGIC || parts_are_wrong(h, part, rows);
	return 0;
}

// The body in memory of exactly its size, so that reading past it is seen.
static void message(struct client *c, uint8_t type, uint8_t kind, uint8_t key, const uint8_t *body, uint32_t length)
{
	struct {
		struct api_part_head part;
		struct api_object_head object;
	} head = {{API_PART_OBJECT_HEAD, sizeof(head.object), 1}, {.kind = kind}};
	int made = (type == API_PUT || type == API_DELETE) && kind != 0xff;
	struct api_header h = {.magic = API_MAGIC, .type = type, .length = length + (made ? sizeof(head) : 0)};
	uint8_t *bytes = malloc(h.length);

	if (made && type == API_DELETE)
		length = 0, h.length = sizeof(head);
	snprintf(head.object.key, sizeof(head.object.key), "%s", keys[key % (sizeof(keys) / sizeof(keys[0]))]);
	if (made)
		memcpy(bytes, &head, sizeof(head));
	if (length != 0)
		memcpy(bytes + (made ? sizeof(head) : 0), body, length);
	request_handle(&c->sink, &h, bytes);
	free(bytes);
}

// A driver that opens devices of this machine is not for here.
static int harmless(uint8_t type, const uint8_t *body, uint32_t length)
{
	struct part_reader r = {.at = body, .left = length};
	struct part p;

	if (type != API_PUT)
		return 1;
	while (part_next(&r, &p) == 1)
		if ((p.number == API_PART_PORT || p.number == API_PART_SYNTH) && p.count != 0 &&
			(p.number == API_PART_SYNTH || p.size < API_NAME || memcmp(p.rows, "inject", 7) != 0))
			return 0;
	return 1;
}

static void drain(void)
{
	struct client c = {.sink = {.send = answer, .owner = 2}};

	request_client_gone(1);
	for (int table = 0; table <= API_TABLE_COUNT; table++) {
		struct api_stats_request r = {.table = (uint32_t)table};

		kit_request(&c.sink, API_STATS, API_PART_STATS_REQUEST, &r, sizeof(r));
	}
	if (c.last != API_TABLE_COUNT + 1 || c.wrong != 0 || object_totals.objects > MAX_OBJECTS) {
		fprintf(stderr, "%u answers, %u wrong, %lu objects\n", c.last, c.wrong, object_totals.objects);
		abort();
	}
}

// Packets pass through the resulting state.
static void traffic(void)
{
	static struct frame f;

	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++) {
		for (int family = 4; family <= 6; family += 2) {
			const char *far = family == 4 ? "198.51.100.9" : "2001:db8:ffff::9",
				   *ue = gateway_ue(home, family);

			frame_payload(&f, 1300);
			frame_udp(&f, 4000, 5000);
			frame_ip(&f, ue, far, 17);
			gateway_from_home(&f, home);
			if (port_by_name("access") != NULL)
				kit_send("access", f.at, f.length);
			frame_payload(&f, 1300);
			frame_udp(&f, 4000, 5000);
			frame_ip(&f, far, ue, 17);
			gateway_from_upf(&f, home);
			if (port_by_name("core") != NULL)
				kit_send("core", f.at, f.length);
		}
	}
	for (uint8_t n = 0; n < BUSY_MOBILE; n++)
		for (uint8_t kind = 0; kind < 16; kind++) {
			static const uint8_t bytes[64] = {0, 9, 17, 0x15, 0xb3, 0x13, 0x88, 0, 61};
			uint8_t copy[64];

			memcpy(copy, bytes, sizeof(copy));
			copy[0] = n;
			const char *port = busy_mobile_frame(&f, kind, copy, sizeof(copy));
			if (port_by_name(port) != NULL)
				kit_send(port, f.at, f.length);
		}
	kit_run();
	kit_advance(2000003);
	kit_clear();
	if (!kit_balance())
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client c = {.sink = {.send = answer, .offer = answer, .owner = 1}};
	size_t at = 0;

	busy_gateway_start();
	for (int n = 0; n < MAX_MESSAGES && size - at >= HEAD; n++) {
		uint8_t type = data[at], kind = data[at + 1], key = data[at + 2];
		uint32_t length = load16(data + at + 3);

		at += HEAD;
		length = length > size - at ? (uint32_t)(size - at) : length;
		uint8_t *body = malloc(length + 1);
		memcpy(body, data + at, length);
		if (harmless(type, body, length))
			message(&c, type, kind, key, body, length);
		free(body);
		at += length;
	}
	drain();
	traffic();
	return c.wrong != 0;
}
