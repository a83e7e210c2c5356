// SPDX-License-Identifier: Apache-2.0
// firewall-uplink and firewall-downlink: the subscriber's IP header against the access list of its direction.
//
// Uplink: the header inside the access encapsulation. Downlink: gtpu-input has set packet.l3 to the inner header.
#include "core/node.h"
#include "firewall/firewall.h"

enum { EDGE_SESSION, EDGE_DROP, EDGE_COUNT };

DROP_REASON(uplink_deny, "firewall-uplink-deny", "a rule of the uplink access list denies the packet")
DROP_REASON(uplink_default, "firewall-uplink-default", "no rule of the uplink access list matches; its default is deny")
DROP_REASON(uplink_short, "firewall-uplink-tiny-fragment",
	"the transport header is cut so that rules on ports cannot be checked (RFC 1858)")
DROP_REASON(downlink_deny, "firewall-downlink-deny", "a rule of the downlink access list denies the packet")
DROP_REASON(downlink_default, "firewall-downlink-default",
	"no rule of the downlink access list matches; its default is deny")
DROP_REASON(downlink_short, "firewall-downlink-tiny-fragment",
	"the transport header is cut so that rules on ports cannot be checked (RFC 1858)")

static const struct {
	const struct reason *deny, *by_default, *too_short;
} reasons[ACL_DIRECTIONS] = {
	[ACL_UPLINK] = {&uplink_deny, &uplink_default, &uplink_short},
	[ACL_DOWNLINK] = {&downlink_deny, &downlink_default, &downlink_short},
};

static __rte_always_inline rte_edge_t apply(
	uint64_t *hits, struct rte_mbuf *m, uint32_t verdict, enum acl_direction direction)
{
	if (unlikely(verdict == ACL_TOO_SHORT))
		return packet_leave(m, reasons[direction].too_short, EDGE_DROP);
	hits[verdict >> 1]++;
	if (likely(verdict & 1))
		return EDGE_SESSION;
	return packet_leave(m, verdict >> 1 ? reasons[direction].deny : reasons[direction].by_default, EDGE_DROP);
}

static __rte_always_inline void filter(
	const struct acl *a, void **objs, uint16_t n, rte_edge_t *next, enum acl_direction direction)
{
	uint64_t *hits = a->hits + (size_t)worker_self()->id * a->stride;
	uint32_t verdict[ACL_VECTOR];

	for (uint16_t base = 0; base < n; base += ACL_VECTOR) {
		uint16_t count = RTE_MIN(n - base, ACL_VECTOR);
		acl_classify(a, (struct rte_mbuf **)&objs[base], count, verdict);
		for (uint16_t i = 0; i < count; i++)
			next[base + i] = apply(hits, objs[base + i], verdict[i], direction);
	}
}

static __rte_always_inline uint16_t process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n, enum acl_direction direction)
{
	const struct acl *a = firewall_list(direction);
	rte_edge_t next[NODE_CHUNK];

	if (a == NULL) {
		rte_node_next_stream_move(graph, node, EDGE_SESSION);
		return n;
	}
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);
		filter(a, objs + base, count, next, direction);
		if (likely(n <= NODE_CHUNK))
			node_dispatch(graph, node, objs, next, count);
		else
			for (uint16_t i = 0; i < count; i++)
				rte_node_enqueue_x1(graph, node, next[i], objs[base + i]);
	}
	return n;
}

static uint16_t process_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, ACL_UPLINK);
}

static uint16_t process_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, ACL_DOWNLINK);
}

static struct rte_node_register firewall_uplink = {
	.name = "firewall-uplink",
	.process = process_uplink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "session-uplink", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(firewall_uplink)

static struct rte_node_register firewall_downlink = {
	.name = "firewall-downlink",
	.process = process_downlink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "session-downlink", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(firewall_downlink)
