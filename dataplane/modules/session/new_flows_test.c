// SPDX-License-Identifier: Apache-2.0
// Floods of first packets, of one subscriber and of all: known flows lose nothing, control protocols pass, urgent
// packets come first, and the reason counts. The buckets against a slow model.
#include "access/agf_test.h"
#include "core/worker.h"
#include "session/new_flows.h"
#include "testkit/mobile.h"
#include "wire/arp.h"
#include "wire/nd.h"

#define RATE 100 // of a subscriber: a bucket of 100, of which 75 for packets that are not urgent
#define WORKER_RATE 1000 // a tenth of a second: a bucket of 100 as well
#define FLOOD 400

static uint16_t next_port = 10000;

static struct api_engine roomy_engine(void)
{
	struct api_engine e = kit_engine();

	e.max_flows = 16384;
	return e;
}

static void set_rates(uint32_t subscriber, uint32_t worker)
{
	struct api_engine e = roomy_engine();

	e.subscriber_flow_rate = subscriber;
	e.flow_rate = worker;
	kit_begin();
	kit_put(API_ENGINE, "engine", &e, sizeof(e));
	commit();
	kit_advance(1500000); // buckets are full
	kit_clear();
}

static int start(void **state)
{
	struct api_engine e = roomy_engine();

	gateway_start(&e);
	return restore(state);
}

static void send_flow(uint32_t home, uint16_t source, uint8_t dscp)
{
	static struct frame f;

	frame_payload(&f, 40);
	frame_udp(&f, source, 5000);
	frame_ip(&f, gateway_ue(home, 4), FAR4, 17);
	f.at[1] = (uint8_t)(dscp << 2);
	frame_ip4_sum(&f);
	gateway_from_home(&f, home);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	kit_run();
}

static void message(struct frame *f, const uint8_t *bytes, uint32_t length)
{
	frame_payload(f, 0);
	frame_append(f, bytes, length);
}

// ARP and neighbour discovery from home 1 for its gateway, from the core for our address: all four are answered. A DHCP
// message goes to the host path. None reaches the session nodes.
static void link_control_passes(void)
{
	static struct frame f;
	uint8_t arp[ARP_LENGTH], nd[ND_LENGTH];
	const uint8_t *home = gateway_home_mac(1);
	uint64_t looked_up = kit_node_packets("session-uplink") + kit_node_packets("session-downlink"),
		 dhcp = kit_reason("dhcp");

	kit_clear();
	arp_put(arp, ARP_REQUEST, home, kit_address(gateway_ue(1, 4)).bytes, NULL, kit_address("100.64.0.1").bytes);
	message(&f, arp, sizeof(arp));
	frame_ethernet(&f, gateway_mac[0], home, 0x0806);
	frame_tag(&f, 0x8100, 1);
	frame_tag(&f, 0x88a8, 100);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	message(&f, nd, nd_put_ns(nd, kit_address("fe80::1").bytes, NULL, kit_address("2001:db8:1::1").bytes, home));
	gateway_from_home(&f, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	frame_payload(&f, 240);
	frame_udp(&f, 68, 67);
	frame_ip(&f, "0.0.0.0", "255.255.255.255", 17);
	gateway_from_home(&f, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	arp_put(arp, ARP_REQUEST, gateway_upf, kit_address("10.0.0.2").bytes, NULL, kit_address("10.0.0.1").bytes);
	message(&f, arp, sizeof(arp));
	frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x0806);
	assert_int_equal(kit_send("core", f.at, f.length), 0);
	message(&f, nd, nd_put_ns(nd, kit_address("fd00::2").bytes, NULL, kit_address("fd00::1").bytes, gateway_upf));
	frame_ethernet(&f, gateway_mac[1], gateway_upf, 0x86dd);
	assert_int_equal(kit_send("core", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("access"), 2);
	assert_int_equal(kit_count("core"), 2);
	assert_int_equal(kit_reason("dhcp") - dhcp, 1);
	assert_int_equal(kit_node_packets("session-uplink") + kit_node_packets("session-downlink") - looked_up, 0);
}

// Packets of a known flow from each home, and packets without a flow. All pass.
static void known_and_control_pass(void)
{
	static const uint8_t echo[] = {0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0}; // TS 29.281 §7.2.1
	static struct frame f;

	link_control_passes();

	kit_clear();
	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++)
		send_flow(home, 4000, 0);
	assert_int_equal(kit_count("core"), GATEWAY_HOMES);
	frame_payload(&f, 32);
	frame_icmp_echo(&f, gateway_ue(1, 4), "100.64.0.1");
	gateway_from_home(&f, 1);
	assert_int_equal(kit_send("access", f.at, f.length), 0);
	frame_payload(&f, 0);
	frame_append(&f, echo, sizeof(echo));
	gateway_outer(&f, 4, 0);
	assert_int_equal(kit_send("core", f.at, f.length), 0);
	kit_run();
	assert_int_equal(kit_count("access"), 1);
	assert_int_equal(kit_count("core"), GATEWAY_HOMES + 1);
}

static void learn_known(void)
{
	set_rates(0, 0);
	for (uint32_t home = 1; home <= GATEWAY_HOMES; home++)
		for (int i = 0; i < 3; i++)
			send_flow(home, 4000, 0);
}

// `homes`: flood. Of FLOOD packets of different flows, `pass` pass.
static void flood(uint32_t homes, uint8_t dscp, uint32_t pass, const char *reason)
{
	struct kit_reasons before = kit_reasons();

	kit_clear();
	for (uint32_t i = 0; i < FLOOD; i++)
		send_flow(1 + i % homes, next_port++, dscp);
	assert_int_equal(kit_count("core"), pass);
	kit_only_rose(&before, reason, FLOOD - pass);
	assert_true(kit_balance());
}

static void one_subscriber(void **state)
{
	learn_known();
	set_rates(RATE, 0);
	known_and_control_pass();
	flood(1, 0, 75, "new-flows-subscriber");
	known_and_control_pass();
	send_flow(2, next_port++, 0); // another's new flow
	assert_int_equal(kit_count("core"), GATEWAY_HOMES + 2);
	flood(1, 46, 25, "new-flows-subscriber");
	known_and_control_pass();
	kit_advance(500000); // half a bucket: above the last quarter
	flood(1, 0, 25, "new-flows-subscriber");
	flood(1, 48, 25, "new-flows-subscriber");
}

static void all_subscribers(void **state)
{
	learn_known();
	set_rates(0, WORKER_RATE);
	flood(GATEWAY_HOMES, 0, 75, "new-flows-worker");
	known_and_control_pass();
	flood(GATEWAY_HOMES, 56, 25, "new-flows-worker");
	known_and_control_pass();
}

// Flows of a key with several PDRs: classified once per flow.
static void classified_flows(void **state)
{
	struct kit_session as = gateway_home(1);
	static struct kit_mobile k;

	k.s = as.s;
	k.s.pdrs = k.s.fars = k.s.qers = 0;
	for (uint32_t i = 0; i < 2; i++) {
		struct api_pdr *p = kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1);

		p->match = API_PDR_ENDPOINT | API_PDR_UE_IP;
		p->precedence = 200 - 100 * i;
		if (i == 1)
			*kit_sdf(&k, p) = (struct api_sdf){.flags = API_SDF_PROTOCOL, .protocol = 6};
	}
	kit_pdr_fteid(&k, API_FROM_CORE, "10.0.0.1", as.pdr[1].teid, 2)->local = as.pdr[1].local;
	kit_far_gtpu(&k, 1, API_FROM_CORE, as.far[0].path, as.far[0].teid);
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	kit_begin();
	kit_put_mobile("home-1", &k);
	commit();
	learn_known();
	set_rates(RATE, 0);
	flood(1, 0, 75, "new-flows-subscriber");
	known_and_control_pass();
}

// Another access list, and another version of the session: known flows lose their entries but do not count as new.
static void known_flows_that_changed(void **state)
{
	struct kit_session k = gateway_home(1);

	learn_known();
	set_rates(RATE, 0);
	flood(1, 0, 75, "new-flows-subscriber");
	k.far[0].teid++;
	put("home-1", &k);
	known_and_control_pass();
	known_and_control_pass();
}

// Packets of a session that is mirrored take the full nodes, and its flows are limited as others' are.
static void mirrored_flows(void **state)
{
	struct kit_session k = gateway_home(1);
	struct api_mirror x = {.to = API_MIRROR_PORT, .ue_port = {0, UINT16_MAX}, .remote_port = {0, UINT16_MAX}};

	strcpy(x.target, "tap");
	strcpy(k.s.mirror, "m");
	kit_begin();
	kit_port("tap", API_ROLE_CORE);
	kit_put(API_MIRROR, "m", &x, sizeof(x));
	commit();
	put("home-1", &k);
	learn_known();
	assert_true(kit_count("tap") > 0);
	set_rates(RATE, 0);
	flood(1, 0, 75, "new-flows-subscriber");
	known_and_control_pass();
	k.s.mirror[0] = 0;
	put("home-1", &k);
	kit_begin();
	kit_delete(API_MIRROR, "m");
	kit_delete(API_PORT, "tap");
	commit();
	learn_known();
	uint64_t full = kit_node_packets("session-uplink");
	send_flow(1, 4000, 0);
	assert_int_equal(kit_node_packets("session-uplink"), full);
}

#define SESSIONS 8

struct bucket {
	uint64_t level, at;
};

static int model_room(struct bucket *b, const struct worker *w, uint32_t rate, uint64_t seconds_part, int urgent)
{
	uint64_t cost = rate ? w->tsc_hz / rate : 0, depth = RTE_MAX(w->tsc_hz / seconds_part, 4 * cost);

	b->level = RTE_MIN(depth, b->level + (w->now - b->at));
	b->at = w->now;
	return rate == 0 || b->level >= cost + (urgent ? 0 : depth / 4);
}

static uint32_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
	return (uint32_t)(*seed >> 20);
}

static void random_operations(void **state)
{
	static const uint32_t rates[] = {0, 1, 3, 50, 1000, 20000, 4000000};
	uint64_t seed = 0x9e3779b97f4a7c15ull, refused[2] = {0};
	struct worker w = {.tsc_hz = 2450000000ull, .now = 1ull << 50};

	for (uint32_t round = 0; round < 200; round++) {
		struct bucket session[SESSIONS], worker = {.level = UINT64_MAX / 2, .at = w.now += 100 * w.tsc_hz};
		uint32_t subscriber_rate = rates[draw(&seed) % 7], worker_rate = rates[draw(&seed) % 7];

		set_rates(subscriber_rate, worker_rate);
		for (uint32_t i = 0; i < SESSIONS; i++)
			session[i] = worker;
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t s = draw(&seed) % SESSIONS;
			uint8_t dscp = (uint8_t)(draw(&seed) % 64);
			int urgent = dscp == 46 || dscp == 48 || dscp > 48;

			w.now += draw(&seed) % 4 ? draw(&seed) % 2000 : w.tsc_hz / 100000 * (draw(&seed) % 1000);
			enum session_why want = WHY_COUNT;
			if (!model_room(&worker, &w, worker_rate, 10, urgent))
				want = WHY_WORKER_FLOWS;
			if (!model_room(&session[s], &w, subscriber_rate, 1, urgent))
				want = WHY_SUBSCRIBER_FLOWS;
			assert_int_equal(new_flow_refused(&w, s, dscp), want);
			if (want != WHY_COUNT) {
				refused[want == WHY_WORKER_FLOWS]++;
				continue;
			}
			new_flow_count(&w, s);
			session[s].level -= subscriber_rate ? w.tsc_hz / subscriber_rate : 0;
			worker.level -= worker_rate ? w.tsc_hz / worker_rate : 0;
		}
	}
	assert_true(refused[0] > 1000 && refused[1] > 1000);
}

// A flow whose entry was overwritten counts as new; there is room for it only when the buckets are full again.
static int refilled(void **state)
{
	kit_advance(2000000);
	return restore(state);
}

int main(void)
{
	const struct CMUnitTest list[] = {
		cmocka_unit_test_teardown(one_subscriber, refilled),
		cmocka_unit_test_teardown(all_subscribers, refilled),
		cmocka_unit_test_teardown(classified_flows, refilled),
		cmocka_unit_test_teardown(known_flows_that_changed, refilled),
		cmocka_unit_test_teardown(mirrored_flows, refilled),
		cmocka_unit_test(random_operations),
	};

	return cmocka_run_group_tests(list, start, NULL);
}
