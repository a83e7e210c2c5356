// SPDX-License-Identifier: Apache-2.0
// The gateway with everything switched on.
#include "hostile/busy_gateway.h"
#include "hostile/busy_mobile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void access_list(const char *name, uint16_t denied_port)
{
	struct {
		struct api_acl head;
		struct api_acl_rule rule[2];
	} list = {.head = {.default_action = API_PERMIT, .count = 2}};

	for (int i = 0; i < 2; i++) {
		struct api_acl_rule *r = &list.rule[i];

		r->source = kit_address(i == 0 ? "198.51.100.66/31" : "2001:db8:bad::/48");
		r->source_port[1] = r->destination_port[1] = 65535;
		r->action = API_DENY;
		r->priority = 10;
	}
	list.rule[0].destination_port[0] = list.rule[0].destination_port[1] = denied_port;
	list.rule[0].protocol = 17;
	list.rule[0].protocol_mask = 0xff;
	kit_put(API_ACL, name, &list, sizeof(list));
}

static void policers(void)
{
	struct api_policer single = {.type = API_SRTCM,
		.cir = 125000,
		.cbs = 3000,
		.pbs = 3000,
		.action = {API_COLOUR_PASS, API_COLOUR_REMARK, API_COLOUR_DROP},
		.dscp = {0, 10, 0}};
	struct api_policer two = {.type = API_TRTCM,
		.cir = 125000,
		.cbs = 3000,
		.pir = 250000,
		.pbs = 3000,
		.action = {API_COLOUR_PASS, API_COLOUR_REMARK, API_COLOUR_DROP},
		.dscp = {0, 12, 0}};

	kit_put(API_POLICER, "single", &single, sizeof(single));
	kit_put(API_POLICER, "two", &two, sizeof(two));
}

static void scheduler(void)
{
	static struct api_scheduler s;

	s.subports = 2;
	s.rate = 12500000;
	s.frame_overhead = 24;
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 16;
	s.profiles = 1;
	for (int i = 0; i < 64; i++) {
		s.dscp_class[i] = (uint8_t)(i % 16);
		s.qfi_class[i] = i % 2 ? 0xff : (uint8_t)(i % 16);
	}
	for (uint32_t w = 0; w < 2; w++) {
		s.subport[w].rate = 6250000;
		s.subport[w].pipes = 16;
		s.subport[w].worker = w;
	}
	strcpy(s.profile[0].name, "home");
	s.profile[0].rate = 1250000;
	for (int i = 0; i < API_BE_QUEUES; i++)
		s.profile[0].weight[i] = (uint8_t)(1 + i);
	kit_put(API_SCHEDULER, "access", &s, sizeof(s));
}

static void route(const char *prefix, const char *via)
{
	struct api_route r = {.prefix = kit_address(prefix), .via = kit_address(via)};

	kit_put(API_ROUTE, prefix, &r, sizeof(r));
}

static void homes(void)
{
	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++) {
		struct kit_session k = gateway_home(home);

		k.s.worker = (uint16_t)(home / 2 % 2);
		k.s.subport = k.s.worker;
		k.s.pipe = home;
		strcpy(k.s.pipe_profile, "home");
		if (home <= 2) {
			strcpy(k.qer[0].uplink_policer, home == 1 ? "single" : "two");
			strcpy(k.qer[1].downlink_policer, home == 1 ? "two" : "single");
			k.s.mru = 1280;
		}
		if (home == HOME_ROUTED)
			k.far[0].outer = API_OUTER_NONE;
		kit_put_session(gateway_home_name(home), &k);
	}
}

static void make(void)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.packet_buffers = 2048;
	e.max_sessions = 32;
	e.max_flows = 64;
	e.max_fragments = 16;
	e.max_buffered = 32;
	e.max_scheduled = 256;
	e.max_urrs = 48;
	e.max_events = 64;
	gateway_start(&e);
	kit_begin();
	access_list("uplink", 4444);
	access_list("downlink", 5555);
	policers();
	scheduler();
	route("198.51.100.0/24", "192.0.2.2");
	route("2001:db8:ffff::/48", "2001:db8:6::2");
	route("203.0.113.0/24", "192.0.2.77"); // a neighbour that must be asked for
	homes();
	busy_mobile_objects();
	if (kit_commit() != 0) {
		fprintf(stderr, "busy gateway: %s\n", kit_error());
		exit(99);
	}
	kit_run();
}

#define SETTLE_STEPS 8
#define SCHEDULER_STEPS 1000

static uint32_t idle_buffers;

void busy_gateway_check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "broken: %s\n", what);
	kit_print();
	abort();
}

// Longer than reassembly (1 s) and neighbours (4 s) hold packets. Then until the scheduler is empty: it sends a burst
// of each pipe at every step of the clock.
static void settle(void)
{
	for (int i = 0; i < SETTLE_STEPS; i++)
		kit_advance(1000003);
	for (int i = 0; i < SCHEDULER_STEPS && kit_totals().held != 0; i++)
		kit_advance(10007);
	kit_clear();
}

void busy_gateway_start(void)
{
	static int started;

	if (started)
		return;
	started = 1;
	make();
	settle();
	idle_buffers = kit_buffers_in_use();
}

void busy_gateway_rest(void)
{
	busy_gateway_check(kit_balance(), "the counters do not add up");
	settle();
	busy_gateway_check(kit_balance(), "the counters do not add up after time passed");
	busy_gateway_check(kit_totals().held == 0, "packets are still held after time passed");
	busy_gateway_check(kit_buffers_in_use() == idle_buffers, "buffers are lost");
}
