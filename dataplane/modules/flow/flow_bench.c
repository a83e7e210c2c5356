// SPDX-License-Identifier: Apache-2.0
// Cost of flow-input per packet, all in cache: 64 sessions with a policer and a URR, vectors of 64 frames of about 128
// B. upf-up-rte: the same with DPDK's libraries. Usage: flow-bench [ROLE [ROUNDS [SESSIONS]]], SESSIONS for upf-up-rte.
// Prints medians in TSC ticks per packet. Instruction counts, which other load does not change: valgrind
// --tool=callgrind --toggle-collect=flow_input flow-bench upf-up 100
#include "flow/flow_rte_bench.h"
#include "meter/meter.h"
#include "session/mobile_fixture.h"
#include "testkit/bench.h"
#include "wire/eth.h"
#include "wire/ip.h"

#define SESSIONS 64
#define PAYLOAD 64
#define ROUTES 4096u // of role.many: /24 of 16.0.0.0/12, /48 of 2400::/36

struct role {
	const char *name, *port;
	uint8_t up, sgw, six, outer6; // six: the user's packets
	uint8_t routed; // of no session
	uint8_t alone; // routed, and there are none
	uint8_t many; // routed, each to another destination, by ROUTES routes: no way is known
	uint8_t flows; // PDRs have filters
	uint8_t more; // meters and URRs: three, two
	uint8_t nat; // NAT44
};
static const struct role roles[] = {
	{"upf-up", "ran", .up = 1},
	{"upf-down", "internet", .up = 0},
	{"sgwu-up", "ran", .up = 1, .sgw = 1},
	{"sgwu-down", "peers", .sgw = 1},
	{"upf-up6", "ran", .up = 1, .six = 1},
	{"upf-down6", "internet", .six = 1},
	{"upf-up-over6", "ran", .up = 1, .outer6 = 1},
	{"upf-up6-over6", "ran", .up = 1, .six = 1, .outer6 = 1},
	{"sgwu-up-over6", "ran", .up = 1, .sgw = 1, .outer6 = 1},
	{"router", "ran", .routed = 1, .alone = 1},
	{"router6", "ran", .six = 1, .routed = 1, .alone = 1},
	{"router-many", "ran", .routed = 1, .alone = 1, .many = 1},
	{"router6-many", "ran", .six = 1, .routed = 1, .alone = 1, .many = 1},
	{"router-beside-ues", "internet", .routed = 1}, // where UEs are looked up
	{"upf-up-flows", "ran", .up = 1, .flows = 1},
	{"upf-down-flows", "internet", .flows = 1},
	{"upf-up-more", "ran", .up = 1, .flows = 1, .more = 1},
	{"nat-up", "ran", .up = 1, .nat = 1}, // the last ones: NAT44 stays
	{"nat-down", "internet", .nat = 1},
};

// Ends of the tunnel that packets come in by.
static const char *end_of(const struct role *r, int from_access, int peers)
{
	static const char *const ends[2][2][2] = {{{"10.9.0.1", "10.9.0.2"}, {"10.1.0.1", "10.1.0.2"}},
		{{"fd00:9::1", "fd00:9::2"}, {"fd00:1::1", "fd00:1::2"}}};

	return ends[r->outer6][from_access][peers];
}

static void put_session(const struct role *r, uint32_t n)
{
	static struct kit_mobile k;
	char name[16], ue4[32], ue6[64];

	snprintf(name, sizeof(name), "s%u", n);
	snprintf(ue4, sizeof(ue4), "10.45.0.%u", n + 1);
	snprintf(ue6, sizeof(ue6), "2001:db8:1:%x::/64", n + 1);
	kit_mobile(&k, n + 1, ue4, ue6);
	kit_pdr_fteid(&k, API_FROM_ACCESS, end_of(r, 1, 0), 0x100 + n, 1);
	if (r->sgw) {
		kit_pdr_fteid(&k, API_FROM_CORE, end_of(r, 0, 0), 0x300 + n, 2);
		kit_far_gtpu(&k, 1, API_FROM_CORE, "peer", 0x400 + n);
	} else {
		k.pdr[0].match |= API_PDR_UE_IP;
		kit_pdr_ue(&k, API_FROM_CORE, "core", 2);
		kit_far_ip(&k, 1, API_FROM_CORE, "core");
		for (uint32_t id = 1; id <= (r->more ? 3 : 1); id++) {
			struct api_qer *q = kit_qer(&k, id, 9);
			snprintf(q->uplink_policer, sizeof(q->uplink_policer), "rate");
			snprintf(q->downlink_policer, sizeof(q->downlink_policer), "rate");
			kit_pdr_qer(&k.pdr[0], id);
			kit_pdr_qer(&k.pdr[1], id);
		}
		for (uint32_t id = 1; id <= (r->more ? 2 : 1); id++) {
			kit_urr(&k, id);
			kit_pdr_urr(&k.pdr[0], id);
			kit_pdr_urr(&k.pdr[1], id);
		}
	}
	for (uint32_t i = 0; r->flows && i < 2; i++)
		*kit_sdf(&k, &k.pdr[i]) = (struct api_sdf){
			.flags = API_SDF_PROTOCOL, .protocol = 17, .remote_port = {0, 65535}, .local_port = {0, 65535}};
	kit_far_gtpu(&k, 2, API_FROM_ACCESS, "gnb", 0x200 + n);
	kit_put_mobile(name, &k);
}

static void fill(const struct role *r, uint32_t n, struct frame *f)
{
	char ue[64];
	const char *away = r->six ? FAR6 : FAR4;
	int is_up = r->up || r->nat;

	if (r->six)
		snprintf(ue, sizeof(ue), "2001:db8:%x:%x::5", r->routed ? 0x18 : 1, n + 1);
	else
		snprintf(ue, sizeof(ue), "%s.0.%u", r->routed ? "198.18" : "10.45", n + 1);
	ip_packet(f, is_up ? ue : away, is_up ? away : ue, PAYLOAD);
	if (is_up || r->sgw)
		tunnel(f, end_of(r, is_up, 1), end_of(r, is_up, 0), (is_up ? 0x100 : 0x300) + n, 9,
			is_up ? API_PDU_UL : API_PDU_DL);
	link_layer(f, is_up ? "ran" : r->port, 1);
}

// A subscriber's frame becomes one to its external address and port, known from the full nodes.
static void turn_round(struct frame *f)
{
	kit_clear();
	kit_send("ran", f->at, f->length);
	kit_run();
	const uint8_t *ip = kit_frame("internet", 0)->bytes + ETH_HEADER;
	uint8_t source[4];
	uint16_t port = load16(ip + IP4_HEADER);

	memcpy(source, ip + 12, 4);
	ip_packet(f, FAR4, UE4, PAYLOAD);
	memcpy(f->at + 16, source, 4);
	store16(f->at + IP4_HEADER + 2, port);
	frame_ip4_sum(f);
	link_layer(f, "internet", 1);
}

static void put_nat(void)
{
	struct api_nat n = kit_nat("10.45.0.0/16", "203.0.113.4/31");

	kit_begin();
	kit_put(API_NAT, "core", &n, sizeof(n));
	commit();
}

static struct frame f[SESSIONS];

// An odd factor takes all hosts of all routes in turn, so that no two of a vector are neighbours.
static void redirect(const struct role *r, uint8_t *ip)
{
	static uint32_t turn;
	uint32_t to = turn++ * 2654435761u % (ROUTES * 256);

	if (r->six) {
		store32(ip + 24, 0x24000000);
		store32(ip + 28, to / 256 << 16 | to % 256);
		return;
	}
	store32(ip + 16, 0x10000000 | to);
	ip4_checksum_set(ip);
}

static void put_routes(const struct role *r)
{
	struct api_route route = {0};
	char prefix[API_NAME];

	kit_begin();
	for (uint32_t n = 0; n < ROUTES; n++) {
		if (r->six)
			snprintf(prefix, sizeof(prefix), "2400:0:%x::/48", n);
		else
			snprintf(prefix, sizeof(prefix), "16.%u.%u.0/24", n / 256, n % 256);
		route.prefix = kit_address(prefix);
		route.via = kit_address(r->six ? "2001:db8:6::2" : "192.0.2.2");
		kit_put(API_ROUTE, prefix, &route, sizeof(route));
	}
	commit();
}

static void send_vector(const void *role)
{
	const struct role *r = role;

	for (uint32_t n = 0; n < SESSIONS; n++) {
		if (r->many)
			redirect(r, f[n].at + ETH_HEADER);
		kit_send(r->port, f[n].at, f[n].length);
	}
}

static void measure(const struct role *r, uint32_t rounds)
{
	if (r->nat)
		put_nat();
	if (r->many)
		put_routes(r);
	kit_begin();
	for (uint32_t n = 0; n < SESSIONS; n++) {
		if (!r->alone)
			put_session(r, n);
		fill(r, n, &f[n]);
	}
	commit();
	for (uint32_t n = 0; r->nat && !r->up && n < SESSIONS; n++)
		turn_round(&f[n]);
	kit_bench(r->name, "flow-input", "core-input", rounds, SESSIONS, send_vector, r);
}

// Frames as upf-up's through DPDK's libraries.
static void measure_rte(uint32_t sessions)
{
	static const struct role up = {"upf-up-rte", "ran", .up = 1};

	fill(&up, 0, &f[0]);
	flow_bench_rte(f[0].at, f[0].length, sessions);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : KIT_BENCH_ROUNDS;
	struct api_policer rate = {
		.type = API_TRTCM, .cir = 1000000000, .pir = 1000000000, .cbs = 1 << 20, .pbs = 1 << 20};

	rate.action[RTE_COLOR_RED] = API_COLOUR_DROP;
	fixture_start(NULL);
	kit_begin();
	kit_put(API_POLICER, "rate", &rate, sizeof(rate));
	commit();
	for (uint32_t i = 0; i < RTE_DIM(roles); i++)
		if (argc < 2 || strcmp(argv[1], roles[i].name) == 0)
			measure(&roles[i], rounds);
	if (argc < 2 || strcmp(argv[1], "upf-up-rte") == 0)
		measure_rte(argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : SESSIONS);
	return 0;
}
