// SPDX-License-Identifier: Apache-2.0
// Words of core-input, ip-input, ip-forward and ip-output for traced packets.
#include "core/trace.h"
#include "route/route.h"
#include "rule/view.h"

static void say_packet(struct trace_text *to, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	int four = pkt->ip_version == 4;

	if (pkt->ip_version == 0 || pkt->l3 + (four ? 20u : 40u) > m->data_len)
		return;
	trace_say_address(to, pkt->ip_version, ip + (four ? 12 : 8));
	trace_say(to, " > ");
	trace_say_address(to, pkt->ip_version, ip + (four ? 16 : 24));
	trace_say(to, ", protocol %u, %u bytes", pkt->protocol, pkt->length);
}

static void after_input(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	const struct interface *i = interface_get(packet_of(m)->interface);

	if (i == NULL)
		return;
	trace_say(to, "interface %s", i->name);
	if (i->vlan[0] != 0)
		trace_say(to, ", VLAN %u", i->vlan[0]);
}

static void before_forward(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	say_packet(to, m);
}

static void say_neighbour(struct trace_text *to, const struct ip_address *a)
{
	uint8_t family = ip_address_family(a);

	trace_say_address(to, family, ip_address_bytes(a, family));
}

static void say_hop(struct trace_text *to, const struct next_hop *hop, const uint8_t *destination, uint8_t version)
{
	const struct interface *i = interface_get(hop->interface);

	static const char *const discard[] = {"no route leads there", "a blackhole route leads there",
		"an unreachable route leads there", "a prohibit route leads there",
		"nobody has the address: its prefix is one of subscribers or NAT44"};

	if (!next_hop_leads(hop)) {
		trace_say(to, "; %s", discard[hop->discard]);
		return;
	}
	if (hop->kind == NEXT_HOP_GLEAN) {
		trace_say(to, "; the neighbour ");
		trace_say_address(to, version, destination);
	} else {
		trace_say(to, "; by the neighbour ");
		say_neighbour(to, &hop->address);
	}
	trace_say(to, " on %s, MTU %u", i != NULL ? i->name : "?", hop->mtu);
	if (!hop->resolved)
		trace_say(to, ": its MAC address is not known, it is asked for");
}

static void before_output(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	const uint8_t *destination = ip + (pkt->ip_version == 4 ? 16 : 24);

	if (pkt->ip_version == 0 || pkt->l3 + (pkt->ip_version == 4 ? 20u : 40u) > m->data_len)
		return;
	say_packet(to, m);
	if (ip_is_local(pkt->vrf, pkt->ip_version, destination)) {
		trace_say(to, "; an address of our own");
		return;
	}
	const struct next_hop *hop =
		next_hop_of_packet(ip_route_of(pkt->vrf, pkt->ip_version, destination, pkt->interface), m);
	if (pkt->vrf != 0)
		trace_say(to, "; VRF %.*s", API_NAME - 1, vrf_name(pkt->vrf));
	say_hop(to, hop, destination, pkt->ip_version);
	if (next_hop_leads(hop) && pkt->length > hop->mtu)
		trace_say(to, ": longer than the MTU");
}

TRACE_STAGE("core-input", .after = after_input, .pure = 1)
TRACE_STAGE("ip-input", .after = NULL, .pure = 1)
TRACE_STAGE("ip-forward", .before = before_forward, .pure = 1)
TRACE_STAGE("ip-output", .before = before_output, .pure = 1)
