// SPDX-License-Identifier: Apache-2.0
// The TSC steps, back by an hour and by a millisecond, forward by an hour, under every module that uses it. (The
// control thread uses CLOCK_MONOTONIC, which does not step.) Afterwards limits pass as much as before, and time-outs
// still happen.
#include "core/event.h"
#include "core/trace_inside.h"
#include "flow/tuple.h"
#include "hostile/hostile.h"
#include "session/new_flows.h"
#include "testkit/channel.h"
#include "testkit/events.h"
#include "testkit/mobile.h"
#include "wire/pppoe.h"
#include <rte_cycles.h>
#include <stdlib.h>

#define SECOND 1000000
#define HOUR (3600ll * SECOND)
#define STEP_US 10000 // of a rate's second
#define SCHEDULED 2 // the home with a pipe
#define POLICED 1
#define MOBILES 3 // mobile sessions: NAT44, a UE that is idle, a URR

static const struct step {
	const char *name;
	int64_t us;
} steps[] = {{"back by an hour", -HOUR}, {"back by a millisecond", -1000}, {"forward by an hour", HOUR}};

static struct api_engine engine(void)
{
	struct api_engine e = kit_engine();

	e.workers = 2;
	e.max_sessions = 64;
	e.max_buffered = 64;
	e.max_urrs = 16;
	e.packet_buffers = 8192;
	e.max_scheduled = 4096;
	e.icmp_error_rate = e.echo_rate = 100;
	e.flow_idle = 10;
	return e;
}

static void set_flow_rates(uint32_t subscriber, uint32_t worker)
{
	struct api_engine e = engine();

	e.subscriber_flow_rate = subscriber;
	e.flow_rate = worker;
	assert_int_equal(kit_change(API_ENGINE, "engine", &e, sizeof(e)), 0);
}

static void put_scheduler(void)
{
	static struct api_scheduler s;

	s.subports = 2;
	s.rate = 12500000;
	for (int i = 0; i < API_TRAFFIC_CLASSES; i++)
		s.queue_size[i] = 64;
	s.profiles = 2;
	for (int i = 0; i < 64; i++)
		s.qfi_class[i] = 0xff;
	for (uint32_t w = 0; w < 2; w++) {
		s.subport[w].rate = 6250000;
		s.subport[w].pipes = 16;
		s.subport[w].worker = w;
	}
	for (int p = 0; p < 2; p++) {
		strcpy(s.profile[p].name, p == 0 ? "slow" : "fast");
		s.profile[p].rate = p == 0 ? 125000 : 6250000;
		for (int i = 0; i < API_BE_QUEUES; i++)
			s.profile[p].weight[i] = 1;
	}
	kit_put(API_SCHEDULER, "access", &s, sizeof(s));
}

static void put_home(uint32_t home)
{
	struct kit_session k = gateway_home(home);

	k.s.worker = (uint16_t)(home / 2 % 2);
	k.s.subport = k.s.worker;
	k.s.pipe = home;
	strcpy(k.s.pipe_profile, home == SCHEDULED ? "slow" : "fast");
	if (home == POLICED)
		strcpy(k.qer[0].uplink_policer, "limit");
	if (k.s.pppoe_session != 0) {
		k.s.lcp_magic = 77;
		k.s.lcp_interval = 1;
		k.s.lcp_count = 5;
		k.s.lcp_opened = 1;
	}
	kit_put_session(gateway_home_name(home), &k);
}

static void put_mobile(uint32_t n, uint8_t action)
{
	static struct kit_mobile k;
	char ue[32], name[16];

	snprintf(ue, sizeof(ue), "10.45.0.%u", n);
	snprintf(name, sizeof(name), "mobile-%u", n);
	kit_mobile(&k, 0x100 + n, ue, NULL);
	k.s.inactivity = n == 3 ? 3 : 0;
	kit_pdr_fteid(&k, API_FROM_ACCESS, "10.0.0.11", 0x1000 + n, 1)->match |= API_PDR_UE_IP;
	kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "core");
	struct api_far *down = kit_far_gtpu(&k, 2, API_FROM_ACCESS, "upf4", 0x3000 + n);
	down->action = action;
	down->buffer_ms = 500;
	if (n == 3) {
		kit_urr(&k, 1)->method = API_URR_VOLUME | API_URR_DURATION;
		k.urr[0].inactivity = 2;
		kit_pdr_urr(&k.pdr[0], 1);
	}
	kit_put_mobile(name, &k);
}

static int setup(void **state)
{
	struct api_engine e = engine();
	struct api_policer limit = {
		.type = API_SRTCM, .cir = 125000, .cbs = 5000, .pbs = 0, .action = {0, 0, API_COLOUR_DROP}};
	struct api_route all = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};
	struct api_instance access = kit_instance_body("n3", "10.0.0.11", API_LOOKUP_NONE, NULL);
	struct api_instance core = kit_instance_body("n6", NULL, API_LOOKUP_DESTINATION, "10.45.0.0/16");
	struct api_interface n3 = {.count = 3,
		.address = {kit_address("10.0.0.1/24"), kit_address("fd00::1/64"), kit_address("10.0.0.11/24")}};
	struct api_nat nat = kit_nat("10.45.0.1/32", "203.0.113.4/32");

	gateway_start(&e);
	strcpy(n3.port, "core");
	kit_begin();
	kit_port("tap", API_ROLE_CORE);
	kit_put(API_POLICER, "limit", &limit, sizeof(limit));
	put_scheduler();
	kit_put(API_INTERFACE, "n3", &n3, sizeof(n3));
	kit_put(API_ROUTE, "0.0.0.0/0", &all, sizeof(all));
	kit_put(API_INSTANCE, "access", &access, sizeof(access));
	kit_put(API_INSTANCE, "core", &core, sizeof(core));
	kit_put(API_NAT, "core", &nat, sizeof(nat));
	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++)
		put_home(home);
	for (uint32_t n = 1; n <= MOBILES; n++)
		put_mobile(n, n == 2 ? API_FAR_BUFFER | API_FAR_NOTIFY : API_FAR_FORWARD);
	if (kit_commit() != 0)
		fail_msg("refused: %s", kit_error());
	kit_channel_open();
	kit_events_clear();
	kit_run();
	kit_clear();
	return 0;
}

static struct frame f;

// How many frames leave by `port` because of the frame f.
static uint32_t sent(const char *in, const char *out)
{
	kit_clear();
	assert_int_equal(kit_send(in, f.at, f.length), 0);
	kit_run();
	return kit_count(out);
}

static uint32_t from_home(uint32_t home, uint16_t port, uint32_t payload)
{
	frame_payload(&f, payload);
	frame_udp(&f, port, 5000);
	frame_ip(&f, gateway_ue(home, 4), "198.51.100.9", 17);
	gateway_from_home(&f, home);
	return sent("access", "core");
}

static void mobile_uplink(uint32_t n, uint16_t port)
{
	char ue[32];

	snprintf(ue, sizeof(ue), "10.45.0.%u", n);
	frame_payload(&f, 40);
	frame_udp(&f, port, 53);
	frame_ip(&f, ue, "198.51.100.9", 17);
	frame_gtpu(&f, 0x1000 + n, 0xff);
	frame_udp(&f, 2152, 2152);
	frame_ip(&f, "10.0.0.2", "10.0.0.11", 17);
	frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0800);
}

static void from_internet(const char *to, uint16_t port)
{
	frame_payload(&f, 40);
	frame_udp(&f, 53, port);
	frame_ip(&f, "198.51.100.9", to, 17);
	frame_ethernet(&f, gateway_mac[2], gateway_router, 0x0800);
}

static uint16_t next_port = 10000;

static void subscriber_flows(void)
{
	set_flow_rates(100, 0);
}

static void worker_flows(void)
{
	set_flow_rates(0, 100);
}

static uint32_t three_flows(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 3; i++)
		n += from_home(HOME_QINQ_OTHER, next_port++, 40);
	return n;
}

static uint32_t padis(void)
{
	static const uint8_t padi[] = {0x11, PPPOE_PADI, 0, 0, 0, 4, 1, 1, 0, 0},
			     all[] = {255, 255, 255, 255, 255, 255};
	uint32_t before = kit_channel.frames;

	for (int i = 0; i < 3; i++) {
		frame_payload(&f, 0);
		frame_append(&f, padi, sizeof(padi));
		frame_ethernet(&f, all, gateway_home_mac(9), 0x8863);
		frame_tag(&f, 0x8100, 9);
		frame_tag(&f, 0x88a8, 100);
		sent("access", "access");
	}
	return kit_channel.frames - before;
}

static uint32_t pings(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 3; i++) {
		frame_payload(&f, 40);
		frame_icmp_echo(&f, gateway_ue(HOME_QINQ_OTHER, 4), "100.64.0.1");
		gateway_from_home(&f, HOME_QINQ_OTHER);
		n += sent("access", "access");
	}
	return n;
}

static uint32_t policed(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 3; i++)
		n += from_home(POLICED, 4000, 972); // 1,000 bytes
	return n;
}

// What leaves by itself is counted the next time.
static uint32_t scheduled(void)
{
	uint32_t n = kit_count("access");

	kit_clear();
	for (int i = 0; i < 3; i++) {
		frame_payload(&f, 1000);
		frame_udp(&f, 53, 4000);
		frame_ip(&f, "198.51.100.9", gateway_ue(SCHEDULED, 4), 17);
		gateway_from_upf(&f, SCHEDULED);
		assert_int_equal(kit_send("core", f.at, f.length), 0);
		kit_run();
	}
	return n;
}

static void mirrored(void)
{
	struct api_mirror x = {
		.to = API_MIRROR_PORT, .rate = 100, .ue_port = {0, UINT16_MAX}, .remote_port = {0, UINT16_MAX}};

	strcpy(x.target, "tap");
	x.ue = kit_address("100.64.0.0/24");
	assert_int_equal(kit_change(API_MIRROR, "m", &x, sizeof(x)), 0);
}

static void not_mirrored(void)
{
	kit_begin();
	kit_delete(API_MIRROR, "m");
	assert_int_equal(kit_commit(), 0);
}

static uint32_t copies(void)
{
	uint32_t n = 0;

	for (int i = 0; i < 3; i++) {
		from_home(HOME_QINQ_OTHER, 4000, 40);
		n += kit_count("tap");
	}
	return n;
}

static struct api_trace_state traced;

static void no_row(const struct api_trace_row *row)
{
}

static void trace(void)
{
	static struct trace_order o;

	memset(&o, 0, sizeof(o));
	o.want = (struct api_trace){.flags = API_TRACE_STEPS, .seconds = 100, .rate = 100};
	strcpy(o.want.port, "access");
	assert_int_equal(trace_begin(&o, &traced), 0);
}

static void trace_ends(void)
{
	assert_int_equal(kit_trace_poll(traced.trace, 1, no_row, &traced), 0);
}

static uint32_t followed(void)
{
	uint64_t before = traced.packets;

	for (int i = 0; i < 3; i++)
		from_home(HOME_QINQ_OTHER, 4000, 40);
	assert_int_equal(kit_trace_poll(traced.trace, 0, no_row, &traced), 0);
	return (uint32_t)(traced.packets - before);
}

// Three homes are asked each second, and answer.
static uint32_t keepalives(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < kit_count("access"); i++) {
		struct kit_frame k = *kit_frame("access", i);
		uint8_t answer[256];

		if (k.length > sizeof(answer) || k.bytes[30] != LCP_ECHO_REQUEST)
			continue;
		memcpy(answer, k.bytes, k.length);
		memcpy(answer, k.bytes + 6, 6);
		memcpy(answer + 6, k.bytes, 6);
		answer[30] = LCP_ECHO_REPLY;
		memset(answer + 34, 0, 4); // the home's magic number
		assert_int_equal(kit_send("access", answer, k.length), 0);
		n++;
	}
	kit_clear();
	kit_run();
	return n;
}

// `burst`: additional packets in the second after a step forward, when buckets are full.
static const struct rate {
	const char *name;
	void (*begin)(void), (*end)(void);
	uint32_t (*act)(void); // once in STEP_US: how many packets passed
	uint32_t burst;
} rates[] = {
	{"new flows of a subscriber", subscriber_flows, NULL, three_flows, 100},
	{"new flows of a worker", worker_flows, NULL, three_flows, 10},
	{"frames for the control plane", NULL, NULL, padis, 40},
	{"echo answers", NULL, NULL, pings, 10},
	{"a policer", NULL, NULL, policed, 5},
	{"a pipe of the scheduler", NULL, NULL, scheduled, 3},
	{"a mirror", mirrored, not_mirrored, copies, 100},
	{"a trace", trace, trace_ends, followed, 10},
	{"LCP echo", NULL, NULL, keepalives, 3},
};

static uint32_t in_a_second(const struct rate *r)
{
	uint32_t n = 0;

	for (int i = 0; i < SECOND / STEP_US; i++) {
		n += r->act();
		kit_advance(STEP_US);
	}
	return n;
}

static void rates_hold(void **state)
{
	for (uint32_t i = 0; i < RTE_DIM(rates); i++) {
		const struct rate *r = &rates[i];

		if (r->begin != NULL)
			r->begin();
		for (uint32_t k = 0; k < RTE_DIM(steps); k++) {
			in_a_second(r), in_a_second(r);
			uint32_t before = in_a_second(r);
			kit_step(steps[k].us);
			uint32_t after = in_a_second(r), most = before + 2 + (steps[k].us > 0 ? r->burst : 0);
			if (before < 2 || after + 2 < before || after > most)
				fail_msg("%s: %u in the second before the TSC steps %s, %u in the one after", r->name,
					before, steps[k].name, after);
		}
		if (r->end != NULL)
			r->end();
		set_flow_rates(0, 0);
	}
	kit_clear();
	assert_true(kit_balance());
}

// What ends after a time.

static uint16_t datagram;

static uint32_t fragment(int second)
{
	frame_payload(&f, 64);
	frame_ip(&f, "198.51.100.9", "192.0.2.1", 17);
	f.at[4] = 0x47;
	f.at[5] = (uint8_t)datagram;
	f.at[6] = second ? 0 : 0x20;
	f.at[7] = second ? 8 : 0;
	frame_ip4_sum(&f);
	frame_ethernet(&f, gateway_mac[2], gateway_router, 0x0800);
	return sent("internet", "core");
}

static void half_a_datagram(void)
{
	datagram++;
	fragment(0);
	assert_int_equal(kit_totals().held, 1);
}

static void datagram_ends(const struct step *s)
{
	uint64_t late = kit_reason("reassembly-timeout");

	if (s->us < 0) { // the other half is still waited for
		fragment(1);
		assert_int_equal(kit_totals().held, 0);
		half_a_datagram();
	}
	for (int i = 0; i < 300 && kit_totals().held != 0; i++)
		kit_advance(10000);
	assert_int_equal(kit_totals().held, 0);
	assert_int_equal(kit_reason("reassembly-timeout") - late, 1);
}

static char outside[32];
static uint16_t outside_port;

static uint32_t mappings(void)
{
	uint32_t count;

	return (uint32_t)((const struct api_nat_row *)kit_rows(
				  API_TABLE_NAT, "core", sizeof(struct api_nat_row), &count))
		->mappings;
}

static void mapping(void)
{
	mobile_uplink(1, 4000);
	assert_int_equal(sent("core", "internet"), 1);
	const uint8_t *ip = kit_frame("internet", 0)->bytes + 14;
	snprintf(outside, sizeof(outside), "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
	outside_port = (uint16_t)(ip[20] << 8 | ip[21]);
	assert_int_equal(mappings(), 1);
}

// UDP: 300 seconds (RFC 4787 REQ-5).
static void mapping_ends(const struct step *s)
{
	if (s->us < 0) {
		from_internet(outside, outside_port);
		assert_int_equal(sent("internet", "core"), 1);
		for (int i = 0; i < 295; i++)
			kit_advance(SECOND);
		assert_int_equal(mappings(), 1);
	}
	for (int i = 0; i < 10; i++)
		kit_advance(SECOND);
	assert_int_equal(mappings(), 0);
}

static void packet_for_an_idle_ue(void)
{
	from_internet("10.45.0.2", 4000);
	assert_int_equal(sent("internet", "core"), 0);
	assert_int_equal(kit_totals().held, 1);
}

// 500 ms, and a turn of the wheel.
static void buffered_packet_ends(const struct step *s)
{
	kit_advance(100000);
	assert_int_equal(kit_totals().held, s->us < 0);
	for (int i = 0; i < 60; i++)
		kit_advance(10000);
	assert_int_equal(kit_totals().held, 0);
}

static uint32_t flows(void)
{
	return flow_tuples[0].entries + flow_tuples[1].entries;
}

static void flow(void)
{
	for (int i = 0; i < 4; i++)
		from_home(HOME_QINQ_OTHER, 4000, 40);
	assert_int_not_equal(flows(), 0);
}

// Unused entries go after one to two times ten seconds. A worker's longer pause does not count.
static void flow_ends(const struct step *s)
{
	for (int i = 0; i < 900; i++) {
		kit_advance(10000);
		if (i % 100 == 0)
			from_home(HOME_QINQ_OTHER, 4000, 40);
	}
	assert_int_not_equal(flows(), 0);
	for (int i = 0; i < 2500; i++)
		kit_advance(10000);
	assert_int_equal(flows(), 0);
}

static void traffic_of_a_session(void)
{
	mobile_uplink(3, 4000);
	assert_int_equal(sent("core", "internet"), 1);
	kit_advance(10000);
	kit_events_clear();
}

// Three seconds of silence, checked every three seconds by the control thread's clock, for any TSC.
static void silence_is_told(const struct step *s)
{
	kit_advance(2 * SECOND);
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 0);
	for (int i = 0; i < 50; i++)
		kit_advance(100000);
	assert_int_equal(kit_events(API_EVENT_INACTIVE), 1);
}

static uint32_t duration(void)
{
	uint32_t count;
	const struct api_urr_row *r = kit_rows(API_TABLE_URR, "mobile-3", sizeof(*r), &count);

	assert_int_equal(count, 1);
	return r->duration;
}

static uint32_t before_pause;

static void measured_time(void)
{
	for (int i = 0; i < 60; i++)
		kit_advance(100000);
	before_pause = duration();
	for (int i = 0; i < 10; i++) {
		mobile_uplink(3, 4000);
		assert_int_equal(sent("core", "internet"), 1);
		kit_advance(100000);
	}
}

// Time is suspended two seconds behind the last packet (TS 29.244 §8.2.18). A step forward makes the pause seem longer
// than it was: less is measured, never more.
static void time_is_suspended(const struct step *s)
{
	for (int i = 0; i < 100; i++)
		kit_advance(100000);
	assert_in_range(duration() - before_pause, s->us < 0 ? 2 : 0, 4);
	uint32_t suspended = duration();
	for (int i = 0; i < 100; i++)
		kit_advance(100000);
	assert_int_equal(duration(), suspended);
}

static void lines_that_answer(void)
{
	in_a_second(&rates[RTE_DIM(rates) - 1]);
	kit_events_clear();
}

// Five requests without an answer, one a second; a step is no silence.
static void silent_line_is_told(const struct step *s)
{
	for (int i = 0; i < 8; i++)
		in_a_second(&rates[RTE_DIM(rates) - 1]);
	assert_int_equal(kit_events(API_EVENT_LCP_DOWN), 0);
	for (int i = 0; i < 800; i++)
		kit_advance(10000);
	assert_int_equal(kit_events(API_EVENT_LCP_DOWN), 3);
	kit_begin();
	for (uint32_t home = 2; home <= GATEWAY_HOMES; home += 2)
		kit_delete(API_SESSION, gateway_home_name(home));
	assert_int_equal(kit_commit(), 0);
	kit_begin();
	for (uint32_t home = 2; home <= GATEWAY_HOMES; home += 2)
		put_home(home);
	assert_int_equal(kit_commit(), 0);
}

static uint64_t walks[2], monotonic;

static void clocks(void)
{
	monotonic = control_now_ns();
	for (uint32_t w = 0; w < 2; w++)
		walks[w] = worker_get(w)->now;
}

// No worker's time goes back, and all continue together; the control thread's is unaffected.
static void clocks_go_on(const struct step *s)
{
	assert_int_equal(control_now_ns(), monotonic);
	kit_run();
	for (uint32_t w = 0; w < 2; w++)
		assert_true(worker_get(w)->now >= walks[w]);
	kit_advance(SECOND);
	uint64_t a = worker_get(0)->now, b = worker_get(1)->now, hz = rte_get_tsc_hz();
	uint64_t passed = a - walks[0], wanted = hz + (s->us > 0 ? 3600 * hz : 0);
	assert_true(clock_passed(a, b, hz) < hz / 500 && clock_passed(b, a, hz) < hz / 500);
	assert_in_range(passed, wanted - hz / 500, wanted + hz / 500);
	assert_in_range(event_age_ns(a - hz), 990000000, 1010000000);
}

static const struct life {
	const char *name;
	void (*begin)(void);
	void (*end)(const struct step *s);
} lives[] = {
	{"clocks", clocks, clocks_go_on},
	{"half a datagram", half_a_datagram, datagram_ends},
	{"a mapping of NAT44", mapping, mapping_ends},
	{"a packet for an idle UE", packet_for_an_idle_ue, buffered_packet_ends},
	{"a flow's entry", flow, flow_ends},
	{"a session without packets", traffic_of_a_session, silence_is_told},
	{"measured time", measured_time, time_is_suspended},
	{"lines that fall silent", lines_that_answer, silent_line_is_told},
};

static void times_end(void **state)
{
	for (uint32_t i = 0; i < RTE_DIM(lives); i++)
		for (uint32_t k = 0; k < RTE_DIM(steps); k++) {
			print_message("%s, %s\n", lives[i].name, steps[k].name);
			lives[i].begin();
			kit_step(steps[k].us);
			lives[i].end(&steps[k]);
			kit_clear();
			assert_true(kit_balance());
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_end),
		cmocka_unit_test(rates_hold),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
