// SPDX-License-Identifier: Apache-2.0
// What flow-input costs a packet, all in cache: 64 sessions with a policer and a URR, vectors of 64 frames of 128 B or
// so. flow-bench [ROLE [ROUNDS]]; medians, TSC ticks per packet. Instructions, which do not depend on the machine's
// other work:  valgrind --tool=callgrind --toggle-collect=flow_input flow-bench upf-up 100
#include "meter/meter.h"
#include "session/mobile_fixture.h"
#include "testkit/bench.h"

#define SESSIONS 64
#define PAYLOAD 64

struct role {
	const char *name, *port;
	uint8_t up, sgw, six, outer6; // six: the user's packets
	uint8_t routed; // of no session
	uint8_t flows; // PDRs have filters
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
	{"router", "ran", .routed = 1},
	{"router6", "ran", .six = 1, .routed = 1},
	{"router-beside-ues", "internet", .routed = 1}, // where UEs are looked up
	{"upf-up-flows", "ran", .up = 1, .flows = 1},
	{"upf-down-flows", "internet", .flows = 1},
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
		struct api_qer *q = kit_qer(&k, 1, 9);
		snprintf(q->uplink_policer, sizeof(q->uplink_policer), "rate");
		snprintf(q->downlink_policer, sizeof(q->downlink_policer), "rate");
		kit_pdr_qer(&k.pdr[0], 1);
		kit_pdr_qer(&k.pdr[1], 1);
		kit_urr(&k, 1);
		kit_pdr_urr(&k.pdr[0], 1);
		kit_pdr_urr(&k.pdr[1], 1);
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

	if (r->six)
		snprintf(ue, sizeof(ue), "2001:db8:%x:%x::5", r->routed ? 0x18 : 1, n + 1);
	else
		snprintf(ue, sizeof(ue), "%s.0.%u", r->routed ? "198.18" : "10.45", n + 1);
	ip_packet(f, r->up ? ue : away, r->up ? away : ue, PAYLOAD);
	if (r->up || r->sgw)
		tunnel(f, end_of(r, r->up, 1), end_of(r, r->up, 0), (r->up ? 0x100 : 0x300) + n, 9,
			r->up ? API_PDU_UL : API_PDU_DL);
	link_layer(f, r->port, 1);
}

static struct frame f[SESSIONS];

static void send_vector(const void *role)
{
	const struct role *r = role;

	for (uint32_t n = 0; n < SESSIONS; n++)
		kit_send(r->port, f[n].at, f[n].length);
}

static void measure(const struct role *r, uint32_t rounds)
{
	kit_begin();
	for (uint32_t n = 0; n < SESSIONS; n++) {
		put_session(r, n);
		fill(r, n, &f[n]);
	}
	commit();
	kit_bench(r->name, "flow-input", "core-input", rounds, SESSIONS, send_vector, r);
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
	return 0;
}
