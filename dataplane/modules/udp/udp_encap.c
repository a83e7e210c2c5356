// SPDX-License-Identifier: Apache-2.0
// udp-encap: outer UDP/IPv4 or UDP/IPv6 header (TS 29.244 §8.2.56) with the ends of the rule's path and the FAR's port.
// Behind the policer.
#include "core/node.h"
#include "core/trace.h"
#include "path/path.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "wire/ecn.h"

DROP_REASON(drop_no_path, "udp-path-gone",
	"the path of the UDP tunnel does not exist any more. Normal for an instant after config apply; for longer "
	"report it")
DROP_REASON(drop_room, "udp-headroom",
	"there is no room in front of the packet for the outer UDP and IP headers. Report it with show drop -j")
DROP_REASON(drop_long, "udp-too-long",
	"the packet with its outer UDP and IP headers is longer than 65535 bytes. Jumbo packets: see the MTU behind")

enum { EDGE_OUTPUT, EDGE_DROP, EDGE_COUNT };

static rte_edge_t udp_encap_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct path *p = path_get(r->action.path);

	if (unlikely(p == NULL))
		return packet_leave(m, &drop_no_path, EDGE_DROP);
	uint32_t header = path_ip_length(p), length = packet_of(m)->length + header + 8;
	if (unlikely(length > UINT16_MAX))
		return packet_leave(m, &drop_long, EDGE_DROP);
	uint8_t ecn = ip_ecn(packet_of(m)->ip_version, rte_pktmbuf_mtod(m, const uint8_t *)); // RFC 6040 §4.1
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(header + 8));
	if (unlikely(ip == NULL))
		return packet_leave(m, &drop_room, EDGE_DROP);
	memcpy(ip, path_header(p, 0), header);
	path_mark(ip, p, r->action.dscp, ecn);
	// The path's source port; else the peer's destination port serves both ways.
	store16(ip + header, p->want.source_port ? p->want.source_port : r->port);
	store16(ip + header + 2, r->port);
	path_identify(ip, w, p->index);
	path_finish_outer(m, path_vrf(p), p->outer.version, length);
	return EDGE_OUTPUT;
}

NODE_EACH(udp_encap, udp_encap_packet)

static void before(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct path *p = path_get(r->action.path);

	if (p == NULL)
		return;
	trace_say(to, "to ");
	trace_say_address(to, p->outer.version, p->want.peer.bytes);
	trace_say(to, ", port %u", r->port);
}

TRACE_STAGE("udp-encap", .before = before, .pure = 1)

static struct rte_node_register udp_encap_node = {
	.name = "udp-encap",
	.process = udp_encap,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_OUTPUT] = "ip-output", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(udp_encap_node)
