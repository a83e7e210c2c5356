// SPDX-License-Identifier: Apache-2.0
// ip-forward: a router's work on a forwarded packet (RFC 1812 §5.3.1, RFC 8200 §3), before ip-output.
#include "core/node.h"
#include "core/trace.h"
#include "flow/flow.h"
#include "forward/route.h"
#include "icmp/icmp.h"
#include "rule/view.h"

DROP_REASON(drop_link_local, "forward-link-local",
	"link-local addresses are not forwarded. See what neighbours send, and their anti-spoofing")
DROP_REASON(drop_hops, "forward-hops",
	"the packet went from UE to UE too often: sessions send it round in a circle. See show rule of both sessions: "
	"their FARs")
DROP_REASON(drop_version, "forward-no-packet", "there is no IP packet to forward. Report it with show drop -j")

enum { EDGE_OUTPUT, EDGE_UE, EDGE_ERROR, EDGE_DROP, EDGE_COUNT };

// A UE's packet to another UE turns round here or leaves by the route (row G21). Bounded, because a FAR may send it
// back.
static rte_edge_t to_ue(struct rte_mbuf *m, const struct rule *r, const uint8_t *destination)
{
	struct packet *pkt = packet_of(m);

	uint16_t instance = route_to_ue(instances_get(), r->instance, pkt->vrf, pkt->ip_version, destination);
	pkt->instance = likely(instance == INSTANCE_NONE) || instance_lets_out(instance) ? INSTANCE_NONE : instance;
	if (likely(pkt->instance == INSTANCE_NONE))
		return EDGE_OUTPUT;
	if (unlikely(++pkt->hops > PACKET_HOPS))
		return packet_leave(m, &drop_hops, EDGE_DROP);
	return EDGE_UE;
}

static inline rte_edge_t ip_forward(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	uint8_t *packet = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);
	uint8_t version = pkt->ip_version;

	if (unlikely((version != 4 && version != 6) || pkt->l3 + (version == 4 ? 20u : 40u) > rte_pktmbuf_data_len(m)))
		return packet_leave(m, &drop_version, EDGE_DROP);
	if (unlikely(route_is_of_link(version, packet)))
		return packet_leave(m, &drop_link_local, EDGE_DROP);
	if (unlikely(route_hops(version, packet) <= 1)) {
		icmp_error_request_problem(m, ICMP_PROBLEM_TTL, 0);
		return EDGE_ERROR;
	}
	route_count_hop(version, packet);
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
	if (unlikely(route_marks(s, &r->action) && edge == EDGE_OUTPUT && r->outer == API_OUTER_NONE))
		route_mark(s, &r->action, session_view_of(m)->qfi, version, packet);
	return edge;
}

NODE_EACH(ip_forward_process, ip_forward)

static struct rte_node_register ip_forward_node = {
	.name = "ip-forward",
	.process = ip_forward_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes =
		{[EDGE_OUTPUT] = "@output-ip", [EDGE_UE] = "@lookup-ue", [EDGE_ERROR] = "@error", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(ip_forward_node)
