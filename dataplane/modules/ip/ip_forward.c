// SPDX-License-Identifier: Apache-2.0
// ip-forward: what a router does to a packet that it passes on (RFC 1812 §5.3.1, RFC 8200 §3), before ip-output.
#include "core/node.h"
#include "core/trace.h"
#include "flow/flow.h"
#include "icmp/icmp.h"
#include "instance/instance.h"
#include "route/address.h"
#include "rule/rule.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/checksum.h"
#include "wire/ecn.h"

DROP_REASON(drop_link_local, "forward-link-local",
	"link-local addresses are not forwarded. See what neighbours send, and their anti-spoofing")
DROP_REASON(drop_hops, "forward-hops",
	"the packet went from UE to UE too often: sessions send it round in a circle. See show rule of both sessions: "
	"their FARs")
DROP_REASON(drop_version, "forward-no-packet", "there is no IP packet to forward. Report it with show drop -j")

enum { EDGE_OUTPUT, EDGE_UE, EDGE_ERROR, EDGE_DROP, EDGE_COUNT };

static int is_instance(const struct instances *s, const struct rule *r, uint8_t vrf, uint8_t index)
{
	return r->instance == INSTANCE_NONE ? instance_vrf(s, index) == vrf : r->instance == index;
}

// The instance in which a packet to this address is a UE's. Where pools do not say whose addresses are UEs', the
// sessions do: a packet must not pass a UE's downlink rules by because a route leads to an access side of plain IP.
// Networks behind a wireline subscriber are in no pool.
static uint16_t ue_instance(const struct rule *r, uint8_t vrf, uint8_t version, const uint8_t *destination)
{
	const struct instances *s = instances_get();
	uint16_t found = s->owners != 0 ? instance_by_pool(r->instance, vrf, version, destination) : INSTANCE_NONE;

	for (uint8_t i = 0; found == INSTANCE_NONE && i < s->lookers; i++)
		if (is_instance(s, r, vrf, s->looker[i]) && session_ue_known(s->looker[i], version, destination))
			found = s->looker[i];
	for (uint8_t i = 0; found == INSTANCE_NONE && i < s->owners; i++)
		if (is_instance(s, r, vrf, s->owner[i]) && session_home_known(s->owner[i], version, destination))
			found = s->owner[i];
	return found;
}

// A UE's packet to another UE turns round here, or goes out by the route (row G21). Bounded, as a FAR may send it back
// to where it came from.
static rte_edge_t to_ue(struct rte_mbuf *m, const struct rule *r, const uint8_t *destination)
{
	struct packet *pkt = packet_of(m);

	uint16_t instance = ue_instance(r, pkt->vrf, pkt->ip_version, destination);
	pkt->instance = likely(instance == INSTANCE_NONE) || instance_lets_out(instance) ? INSTANCE_NONE : instance;
	if (likely(pkt->instance == INSTANCE_NONE))
		return EDGE_OUTPUT;
	if (unlikely(++pkt->hops > PACKET_HOPS))
		return packet_leave(m, &drop_hops, EDGE_DROP);
	return EDGE_UE;
}

// What leaves by an instance without a tunnel (N6, SGi) has the DSCP of its QoS flow: of the QER's QFI, else of the one
// that came, as in gtpu-encap.
static void mark(struct rte_mbuf *m, const struct rule *r, const struct instances *s, uint8_t *packet)
{
	uint8_t qfi = r->action.qfi != 0xff ? r->action.qfi : session_view_of(m)->qfi;
	uint8_t version = packet_of(m)->ip_version, dscp = instance_dscp(s, r->instance, r->action.dscp, qfi);

	if (dscp < 64)
		ip_dscp_set(version, packet, dscp);
}

static inline rte_edge_t ip_forward(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	uint8_t *packet = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);
	uint8_t version = pkt->ip_version;

	if (unlikely((version != 4 && version != 6) || pkt->l3 + (version == 4 ? 20u : 40u) > rte_pktmbuf_data_len(m)))
		return packet_leave(m, &drop_version, EDGE_DROP);
	// RFC 3927 §2.7, RFC 4291 §2.5.6
	if (unlikely(address_is_link_local(version, packet + (version == 4 ? 12 : 8)) ||
		     address_is_link_local(version, packet + (version == 4 ? 16 : 24))))
		return packet_leave(m, &drop_link_local, EDGE_DROP);
	uint8_t *ttl = packet + (version == 4 ? 8 : 7);
	if (unlikely(*ttl <= 1)) {
		icmp_error_request_problem(m, ICMP_PROBLEM_TTL, 0);
		return EDGE_ERROR;
	}
	if (version == 4)
		ip4_decrement_ttl(packet);
	else
		--*ttl;
	const struct rule *r = session_view_of(m)->rule;
	if (r == NULL) {
		if (likely(!trace_is_hypothetical(m)))
			flow_learn_routed(w, pkt->vrf);
		return EDGE_OUTPUT;
	}
	const struct instances *s = instances_get();
	pkt->vrf = instance_vrf(s, r->instance);
	rte_edge_t edge = EDGE_OUTPUT;
	if (unlikely(s->owners + s->lookers != 0))
		edge = to_ue(m, r, packet + (version == 4 ? 16 : 24));
	if (unlikely((s->marking || r->action.dscp < 64) && edge == EDGE_OUTPUT && r->outer == API_OUTER_NONE))
		mark(m, r, s, packet);
	return edge;
}

static uint16_t ip_forward_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return node_each(graph, node, objs, n, ip_forward);
}

static struct rte_node_register ip_forward_node = {
	.name = "ip-forward",
	.process = ip_forward_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes =
		{[EDGE_OUTPUT] = "@output-ip", [EDGE_UE] = "@lookup-ue", [EDGE_ERROR] = "@error", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(ip_forward_node)
