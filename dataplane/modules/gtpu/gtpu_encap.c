// SPDX-License-Identifier: Apache-2.0
// gtpu-encap: IP/UDP/GTP-U (TS 29.281) with the PDU Session Container (TS 38.415) in front of a subscriber's packet.
#include "core/node.h"
#include "forward/tunnel.h"
#include "rule/rule.h"
#include "rule/view.h"

DROP_REASON(drop_no_path, "gtpu-path-gone",
	"the GTP-U path of the session does not exist any more. Normal for an instant after config apply; for longer "
	"report it")
DROP_REASON(drop_room, "gtpu-headroom",
	"there is no room in front of the packet for the outer headers. Report it with show drop -j")
DROP_REASON(drop_long, "gtpu-too-long",
	"the packet with its outer headers is longer than 65535 bytes. Jumbo packets: see the MTU behind")

enum { EDGE_OUTPUT, EDGE_DROP, EDGE_COUNT };

// From tunnel to tunnel, with more in the received header than a QFI (SGW-U, UPF on N9, indirect forwarding at a
// handover): TS 29.244 §8.2.64 and §8.2.56, notes 1. That header is still in front of the packet.
static __rte_noinline enum tunnel_result relay(
	struct worker *w, struct rte_mbuf *m, const struct path *p, const struct action *a, struct container c)
{
	uint32_t came = session_view_of(m)->relayed, ip_length = path_ip_length(p);
	uint8_t type = a->flags >> ACTION_PDU_SHIFT;
	uint8_t class = tunnel_class(a, &p->outer, p, c.qfi) |
			ip_ecn(packet_of(m)->ip_version, rte_pktmbuf_mtod(m, const uint8_t *));

	if (rte_pktmbuf_headroom(m) < OUTER_LENGTH_MAX + came)
		return TUNNEL_NO_ROOM;
	uint32_t gtpu = gtpu_relay(rte_pktmbuf_mtod(m, uint8_t *), came,
		type == API_PDU_NONE || c.qfi == GTPU_NO_QFI ? GTPU_NO_QFI : tunnel_qfi_octet(a, c),
		tunnel_wire_type(type), a->flags & ACTION_WITHOUT_CONTAINER);
	uint32_t length = packet_of(m)->length + ip_length + 8 + gtpu;
	if (length > UINT16_MAX)
		return TUNNEL_TOO_LONG;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(ip_length + 8 + gtpu));
	memcpy(ip, path_header(p, 0), ip_length + 8);
	tunnel_finish(w, m, ip, &p->outer, a, length, class);
	path_describe(packet_of(m), path_vrf(p), p->outer.version, length);
	return TUNNEL_MADE;
}

static __rte_noinline rte_edge_t impossible(struct rte_mbuf *m, enum tunnel_result result)
{
	static struct reason *const why[] = {
		[TUNNEL_NO_PATH] = &drop_no_path, [TUNNEL_NO_ROOM] = &drop_room, [TUNNEL_TOO_LONG] = &drop_long};

	return packet_leave(m, why[result], EDGE_DROP);
}

static __rte_always_inline rte_edge_t gtpu_encap_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct session_view *v = session_view_of(m);
	const struct rule *r = v->rule;
	const struct path *p = path_get(r->action.path);
	struct container came = {.qfi = v->qfi, .pdu_type = v->pdu_type}, goes;
	enum tunnel_result result;

	packet_of(m)->shaped = r->up.shaped;
	if (unlikely(r->up.shaped != 0)) // ip-output, where the frame is whole, gives it to the scheduler
		v->pipe = session_pools.match[rule_index(r)].pipe;
	if (unlikely(v->relayed != 0) && !r->no_relay && p != NULL) {
		tunnel_container(&r->action, came, &goes);
		result = relay(w, m, p, &r->action, goes);
	} else {
		result = tunnel_encap(w, m, p, &r->action, came);
	}
	return likely(result == TUNNEL_MADE) ? EDGE_OUTPUT : impossible(m, result);
}

NODE_EACH(gtpu_encap, gtpu_encap_packet)

static struct rte_node_register gtpu_encap_node = {
	.name = "gtpu-encap",
	.process = gtpu_encap,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_OUTPUT] = "ip-output", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(gtpu_encap_node)
