// SPDX-License-Identifier: Apache-2.0
// Cost of flow-access and flow-input per packet of a wireline subscriber, all in cache: 64 homes, half of them PPPoE, a
// policer, access lists of 150 and 4,096 rules. Usage: flow-home-bench [up|down|up-new|down-new [ROUNDS]], as
// flow-bench. "new": every packet is a flow's first; the figure is of the session node, which makes the entry. Prefix
// "ip-": the core side is IP, not GTP-U. "ip6-": IPv6 packets. "signed-": a signed-in home, with URRs of all packets
// and of IPv6, and LCP for PPPoE.
#include "testkit/bench.h"
#include "testkit/gateway.h"
#include "testkit/mobile.h"
#include "wire/bytes.h"
#include <rte_common.h>
#include <rte_meter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOMES 64
#define PAYLOAD 64
#define RULES_MAX 4096

static struct frame f[2][2][HOMES + 1]; // IPv4, IPv6; down, up

static void commit(void)
{
	if (kit_commit() == 0)
		return;
	fprintf(stderr, "refused: %s\n", kit_error());
	exit(1);
}

// Denies hosts that do not exist.
static void put_list(const char *key, uint32_t rules)
{
	static struct {
		struct api_acl head;
		struct api_acl_rule rule[RULES_MAX];
	} l;

	l.head = (struct api_acl){.default_action = API_PERMIT, .count = rules};
	for (uint32_t i = 0; i < rules; i++) {
		char host[32];

		snprintf(host, sizeof(host), "198.19.%u.%u", i >> 8, i & 255);
		l.rule[i] = (struct api_acl_rule){.source = kit_address(host),
			.source_port = {0, UINT16_MAX},
			.destination_port = {(uint16_t)i, UINT16_MAX},
			.protocol = 17,
			.protocol_mask = 0xff,
			.action = API_DENY};
	}
	kit_put(API_ACL, key, &l, (uint32_t)(sizeof(l.head) + rules * sizeof(l.rule[0])));
}

static void put_homes(void)
{
	struct api_policer rate = {
		.type = API_TRTCM, .cir = 1000000000, .pir = 1000000000, .cbs = 1 << 20, .pbs = 1 << 20};

	rate.action[RTE_COLOR_RED] = API_COLOUR_DROP;
	kit_begin();
	kit_put(API_POLICER, "rate", &rate, sizeof(rate));
	put_list("uplink", 150);
	put_list("downlink", RULES_MAX);
	for (uint32_t home = 1; home <= HOMES; home++) {
		struct kit_session k = gateway_home(home);

		snprintf(k.far[0].path, API_NAME, "upf4");
		k.pdr[1].local = kit_address("10.0.0.1");
		snprintf(k.qer[0].uplink_policer, API_NAME, "rate");
		snprintf(k.qer[1].downlink_policer, API_NAME, "rate");
		kit_put_session(gateway_home_name(home), &k);
	}
	commit();
}

static void put_ip_home(uint32_t home, int signed_in)
{
	struct kit_session was = gateway_home(home);
	static struct kit_mobile k;

	kit_mobile(&k, home, NULL, NULL);
	k.s = was.s;
	k.s.pdrs = k.s.fars = k.s.qers = 0;
	if (signed_in && k.s.encap == API_ENCAP_QINQ_PPPOE) {
		k.s.lcp_opened = 1;
		k.s.lcp_magic = home;
	}
	kit_pdr_ue(&k, API_FROM_ACCESS, NULL, 1)->match |= API_PDR_ENDPOINT;
	kit_pdr_ue(&k, API_FROM_CORE, "internet", 2);
	kit_far_ip(&k, 1, API_FROM_CORE, "internet");
	kit_far(&k, 2, API_FAR_FORWARD, API_FROM_ACCESS)->outer = API_OUTER_ENDPOINT;
	struct api_qer *q = kit_qer(&k, 1, 0);
	snprintf(q->uplink_policer, API_NAME, "rate");
	snprintf(q->downlink_policer, API_NAME, "rate");
	for (int i = 0; i < 2; i++) {
		kit_pdr_qer(&k.pdr[i], 1);
		for (uint32_t urr = 1; signed_in && urr <= 2; urr++)
			kit_pdr_urr(&k.pdr[i], urr);
	}
	if (signed_in) {
		kit_urr(&k, 1);
		kit_urr(&k, 2)->flags = API_URR_IP6;
	}
	kit_put_mobile(gateway_home_name(home), &k);
}

static void put_ip_homes(int signed_in)
{
	struct api_route r = {.prefix = kit_address("0.0.0.0/0"), .via = kit_address("192.0.2.2")};

	kit_begin();
	kit_put(API_ROUTE, "0.0.0.0/0", &r, sizeof(r));
	r = (struct api_route){.prefix = kit_address("::/0"), .via = kit_address("2001:db8:6::2")};
	kit_put(API_ROUTE, "::/0", &r, sizeof(r));
	kit_instance("internet", "n6", NULL, API_LOOKUP_DESTINATION, "100.64.0.0/16");
	for (uint32_t home = 1; home <= HOMES; home++)
		put_ip_home(home, signed_in);
	commit();
}

static void fill(int up, uint32_t home, int family, int ip_core)
{
	struct frame *to = &f[family == 6][up][home];
	const char *ue = gateway_ue(home, family), *away = family == 6 ? "2001:db8:ffff::9" : "198.51.100.9";

	frame_payload(to, PAYLOAD);
	frame_udp(to, 4000, 5000);
	frame_ip(to, up ? ue : away, up ? away : ue, 17);
	if (up) {
		gateway_from_home(to, home);
		return;
	}
	if (ip_core) {
		frame_ethernet(to, gateway_mac[2], gateway_router, family == 6 ? 0x86dd : 0x0800);
		return;
	}
	frame_gtpu(to, 0x200 + home, 9);
	gateway_outer(to, 4, 0);
}

struct role {
	const char *name, *node, *full;
	int up, is_new;
	int ip_core, six, signed_in;
};
static const struct role roles[] = {
	{"up", "flow-access", "access-input", 1, 0, 0, 0, 0},
	{"down", "flow-input", "core-input", 0, 0, 0, 0, 0},
	{"up-new", "session-uplink", NULL, 1, 1, 0, 0, 0},
	{"down-new", "session-downlink", NULL, 0, 1, 0, 0, 0},
	{"ip-up", "flow-access", "access-input", 1, 0, 1, 0, 0},
	{"ip-down", "flow-input", "core-input", 0, 0, 1, 0, 0},
	{"ip6-up", "flow-access", "access-input", 1, 0, 1, 1, 0},
	{"ip6-down", "flow-input", "core-input", 0, 0, 1, 1, 0},
	{"ip-up-new", "session-uplink", NULL, 1, 1, 1, 0, 0},
	{"ip-down-new", "session-ue", NULL, 0, 1, 1, 0, 0},
	{"signed-up", "flow-access", "access-input", 1, 0, 1, 0, 1},
	{"signed-down", "flow-input", "core-input", 0, 0, 1, 0, 1},
	{"signed6-up", "flow-access", "access-input", 1, 0, 1, 1, 1},
	{"signed6-down", "flow-input", "core-input", 0, 0, 1, 1, 1},
};

static void send_vector(const void *role)
{
	const struct role *r = role;
	static uint32_t flows;

	for (uint32_t home = 1; home <= HOMES; home++) {
		const struct frame *one = &f[r->six][r->up][home];
		uint8_t *udp = one->at + one->length - PAYLOAD - 8;

		if (r->is_new)
			store32(udp, ++flows * 0x9e3779b1u);
		kit_send(r->up ? "access" : r->ip_core ? "internet" : "core", one->at, one->length);
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 2 ? (uint32_t)atoi(argv[2]) : KIT_BENCH_ROUNDS;

	gateway_start(NULL);
	put_homes();
	for (uint32_t i = 0; i < RTE_DIM(roles); i++) {
		if (argc >= 2 && strcmp(argv[1], roles[i].name) != 0)
			continue;
		if (roles[i].ip_core)
			put_ip_homes(roles[i].signed_in);
		for (uint32_t home = 1; home <= HOMES; home++)
			fill(roles[i].up, home, roles[i].six ? 6 : 4, roles[i].ip_core);
		kit_bench(roles[i].name, roles[i].node, roles[i].full, rounds, HOMES, send_vector, &roles[i]);
	}
	return 0;
}
