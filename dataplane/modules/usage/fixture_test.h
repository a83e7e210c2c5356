// SPDX-License-Identifier: Apache-2.0
// A home with URRs in the whole graph, and a subscriber of its reports, for the tests of this module.
#ifndef USAGE_FIXTURE_TEST_H
#define USAGE_FIXTURE_TEST_H

#include "core/engine.h"
#include "core/event.h"
#include "testkit/gateway.h"
#include <string.h>

#define MAX_REPORTS 4096
#define SECONDS(s) ((uint64_t)(s)*1000000u)

// Reports in order, by event or in a commit's reply.
static struct {
	struct reply_sink sink; // first
	struct api_usage row[MAX_REPORTS];
	uint32_t count;
	uint32_t inactive; // INACTIVE events
	int deaf; // does not read
	uint64_t sequence;
} reports;

static int take_events(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	const struct api_event *e = rows;

	if (reports.deaf)
		return 1;
	for (uint32_t i = 0; i < part->count; i++) {
		reports.sequence = e[i].sequence;
		if (e[i].type == API_EVENT_USAGE && e[i].seid != 77)
			reports.row[reports.count++] = e[i].usage;
		reports.inactive += e[i].type == API_EVENT_INACTIVE;
	}
	return 0;
}

static inline void reports_subscribe(void)
{
	reports.sink = (struct reply_sink){.offer = take_events, .owner = 1};
	kit_request(&reports.sink, API_SUBSCRIBE, 0, NULL, 0);
}

static inline void reports_acknowledge(void)
{
	struct api_acknowledge a = {.sequence = reports.sequence};

	kit_request(&reports.sink, API_ACKNOWLEDGE, API_PART_ACKNOWLEDGE, &a, sizeof(a));
}

// Lets time pass in steps of at most 100 ms: timers, news from workers, delivery.
static inline void pass(uint64_t us)
{
	while (us > 0) {
		uint64_t step = us < 100000 ? us : 100000;

		kit_advance(step);
		us -= step;
		reports_acknowledge();
	}
}

// What was raised so far is here afterwards.
static inline void settle(void)
{
	for (int i = 0; i < 4; i++)
		pass(1000);
}

struct home {
	struct kit_session k;
	struct api_urr urr[API_MAX_URR];
};

static inline struct home home_with(uint32_t home, uint16_t urrs, const struct api_urr *urr)
{
	struct home h = {.k = gateway_home(home)};

	h.k.s.urrs = urrs;
	if (urrs > 0)
		memcpy(h.urr, urr, urrs * sizeof(*urr));
	for (int d = 0; d < 2; d++) {
		h.k.pdr[d].urrs = (uint8_t)(urrs < API_PDR_URRS ? urrs : API_PDR_URRS);
		for (uint8_t i = 0; i < h.k.pdr[d].urrs; i++)
			h.k.pdr[d].urr[i] = urr[i].id;
	}
	return h;
}

static inline void collect_rows(void)
{
	uint32_t n;
	const struct api_usage *row = event_commit_rows(&n);

	for (uint32_t i = 0; i < n; i++)
		reports.row[reports.count++] = row[i];
}

static inline void put_home(uint32_t home, const struct home *h)
{
	kit_begin();
	kit_put(API_SESSION, gateway_home_name(home), h,
		(uint32_t)(sizeof(h->k) + h->k.s.urrs * sizeof(struct api_urr)));
	if (kit_commit() != 0)
		fprintf(stderr, "%s\n", kit_error());
	collect_rows();
}

static inline void delete_home(uint32_t home)
{
	kit_begin();
	kit_delete(API_SESSION, gateway_home_name(home));
	kit_commit();
	collect_rows();
}

// One IP packet of `length` bytes. Returns how many left.
static inline uint32_t send_one(uint32_t home, int uplink, uint32_t length)
{
	static struct frame f;
	const char *port = uplink ? "core" : "access", *far = "198.51.100.9", *ue = gateway_ue(home, 4);
	uint32_t before = kit_count(port);

	frame_payload(&f, length - 28);
	frame_udp(&f, 4000, 5000);
	frame_ip(&f, uplink ? ue : far, uplink ? far : ue, 17);
	uplink ? gateway_from_home(&f, home) : gateway_from_upf(&f, home);
	kit_send(uplink ? "access" : "core", f.at, f.length);
	kit_run();
	uint32_t left = kit_count(port) - before;
	kit_clear();
	return left;
}

#endif
