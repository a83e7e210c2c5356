// SPDX-License-Identifier: Apache-2.0
// The subscriber's IP header (packet.l3: inside the access encapsulation or GTP-U) against an access list, before the
// session look-up. Nodes firewall-uplink and firewall-downlink use wireline's list of the direction. Nodes
// firewall-tunnel and firewall-ue use the list of the network instance that the packet enters.
#include "core/control.h"
#include "core/trace.h"
#include "firewall/firewall.h"
#include "reassembly/follow.h"
#include "rule/view.h"
#include <string.h>

enum { EDGE_SESSION, EDGE_DROP, EDGE_COUNT, EDGE_GONE = EDGE_COUNT };

DROP_REASON(uplink_deny, "firewall-uplink-deny",
	"a rule of the uplink access list denies the packet. See show acl: hits of each rule")
DROP_REASON(uplink_default, "firewall-uplink-default",
	"no rule of the uplink access list matches; its default is deny. See show acl: hits of each rule")
DROP_REASON(uplink_short, "firewall-uplink-tiny-fragment",
	"the transport header is cut so that rules on ports cannot be checked (RFC 1858). An attempt to hide ports: "
	"capture the sender")
DROP_REASON(downlink_deny, "firewall-downlink-deny",
	"a rule of the downlink access list denies the packet. See show acl: hits of each rule")
DROP_REASON(downlink_default, "firewall-downlink-default",
	"no rule of the downlink access list matches; its default is deny. See show acl: hits of each rule")
DROP_REASON(downlink_short, "firewall-downlink-tiny-fragment",
	"the transport header is cut so that rules on ports cannot be checked (RFC 1858). An attempt to hide ports: "
	"capture the sender")
DROP_REASON(instance_deny, "firewall-instance-deny",
	"a rule of the network instance's access list denies the packet. See show acl: hits of each rule")
DROP_REASON(instance_default, "firewall-instance-default",
	"no rule of the network instance's access list matches; its default is deny. See show acl: hits of each rule")
DROP_REASON(instance_short, "firewall-instance-tiny-fragment",
	"the transport header is cut so that rules on ports cannot be checked (RFC 1858). An attempt to hide ports: "
	"capture the sender")

static const struct {
	const struct reason *deny, *by_default, *too_short;
} reasons[ACL_PLACES] = {
	[ACL_UPLINK] = {&uplink_deny, &uplink_default, &uplink_short},
	[ACL_DOWNLINK] = {&downlink_deny, &downlink_default, &downlink_short},
	[ACL_INSTANCE] = {&instance_deny, &instance_default, &instance_short},
};

// The nodes: which lists they have, whose packets they see, and the edges of handover-rx that lead to them.
static struct front {
	const char *node;
	enum acl_place place;
	enum follow_kind scope;
	uint16_t resume;
} fronts[] = {
	{"firewall-uplink", ACL_UPLINK, FOLLOW_ENDPOINT, 0},
	{"firewall-downlink", ACL_DOWNLINK, FOLLOW_TUNNEL, 0},
	{"firewall-tunnel", ACL_INSTANCE, FOLLOW_TUNNEL, 0},
	{"firewall-ue", ACL_INSTANCE, FOLLOW_INSTANCE, 0},
};
enum { UPLINK, DOWNLINK, TUNNEL, UE };

RTE_INIT(firewall_resume)
{
	for (uint32_t i = 0; i < RTE_DIM(fronts); i++)
		fronts[i].resume = resume_register(fronts[i].node);
}

// Scope by the fields of an access header or F-TEID.
static struct follow_scope scope_of(const struct front *f, struct rte_mbuf *m)
{
	struct follow_scope s = follow_instance(packet_of(m)->instance);
	const struct endpoint_view *e = endpoint_view_of(m);
	const struct tunnel_view *t = tunnel_view_of(m);
	const uint16_t line[] = {packet_of(m)->port_in, e->s_tag, e->c_tag}, pppoe = e->pppoe_session;

	s.kind = f->scope;
	if (f->scope == FOLLOW_ENDPOINT) {
		static_assert(offsetof(struct follow_scope, of) + sizeof(line) == FOLLOW_LINE, "their share");
		memcpy(s.of, line, sizeof(line));
		memcpy(s.of + sizeof(line), &pppoe, sizeof(pppoe));
		memcpy(s.of + sizeof(line) + sizeof(pppoe), rte_pktmbuf_mtod(m, const uint8_t *) + 6, 6);
	} else if (f->scope == FOLLOW_TUNNEL) {
		memcpy(s.of, &t->teid, sizeof(t->teid));
		memcpy(s.of + sizeof(t->teid), &t->local, sizeof(t->local));
	}
	return s;
}

static __rte_always_inline rte_edge_t decide(
	const struct acl *a, struct rte_mbuf *m, uint32_t verdict, enum acl_place direction)
{
	if (likely(verdict & 1)) {
		if (direction == ACL_UPLINK)
			endpoint_view_of(m)->permitted = acl_permission(a, verdict >> 1);
		else if (direction == ACL_DOWNLINK)
			tunnel_view_of(m)->permitted = acl_permission(a, verdict >> 1);
		return EDGE_SESSION;
	}
	return packet_leave(m, verdict >> 1 ? reasons[direction].deny : reasons[direction].by_default, EDGE_DROP);
}

// ACL_FRAGMENT, ACL_TOO_SHORT. hits: NULL of a hypothetical packet, which is no hit of its rule.
static __rte_noinline rte_edge_t decide_fragment(
	const struct acl *a, struct rte_mbuf *m, uint32_t verdict, const struct front *f, uint64_t *hits)
{
	const struct follow_scope scope = scope_of(f, m);

	if (verdict == ACL_FRAGMENT) {
		enum follow answer = fragment_follow(worker_self(), m, &scope, f->resume);

		if (answer != FOLLOW_ON)
			return answer == FOLLOW_GONE ? EDGE_GONE : EDGE_DROP;
		acl_classify(a, &m, 1, &verdict);
	}
	if (verdict >= ACL_FRAGMENT)
		return packet_leave(m, reasons[f->place].too_short, EDGE_DROP);
	if (hits != NULL)
		hits[verdict >> 1]++;
	return decide(a, m, verdict, f->place);
}

static __rte_always_inline void filter(
	const struct acl *a, void **objs, uint16_t n, rte_edge_t *next, const struct front *f, enum acl_place direction)
{
	uint64_t *hits = acl_hits(a, worker_self()->id);
	uint32_t verdict[ACL_VECTOR];

	for (uint16_t base = 0; base < n; base += ACL_VECTOR) {
		uint16_t count = RTE_MIN(n - base, ACL_VECTOR);
		acl_classify(a, (struct rte_mbuf **)&objs[base], count, verdict);
		for (uint16_t i = 0; i < count; i++) {
			if (unlikely(verdict[i] >= ACL_FRAGMENT)) {
				next[base + i] = decide_fragment(a, objs[base + i], verdict[i], f, hits);
				continue;
			}
			hits[verdict[i] >> 1]++;
			next[base + i] = decide(a, objs[base + i], verdict[i], direction);
		}
	}
}

static __rte_always_inline uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n,
	const struct front *f, enum acl_place direction)
{
	const struct acl *a = firewall_list(direction);
	rte_edge_t next[NODE_CHUNK];

	if (a == NULL) {
		rte_node_next_stream_move(graph, node, EDGE_SESSION);
		return n;
	}
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		filter(a, objs + base, count, next, f, direction);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

// Consecutive packets into one instance share a list. At most NODE_CHUNK.
static void filter_instances(void **objs, uint16_t n, rte_edge_t *next, const struct front *f)
{
	for (uint16_t from = 0, to; from < n; from = to) {
		uint16_t instance = packet_of(objs[from])->instance;
		const struct acl *a = firewall_instance_list(instance);

		for (to = from + 1; to < n && packet_of(objs[to])->instance == instance;)
			to++;
		if (a != NULL)
			filter(a, objs + from, to - from, next + from, f, ACL_INSTANCE);
		else
			for (uint16_t i = from; i < to; i++)
				next[i] = EDGE_SESSION;
	}
}

static uint16_t process_instance(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n, const struct front *f)
{
	rte_edge_t next[NODE_CHUNK];

	if (likely(!firewall_instances())) {
		rte_node_next_stream_move(graph, node, EDGE_SESSION);
		return n;
	}
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		filter_instances(objs + base, count, next, f);
		node_dispatch_except(graph, node, objs + base, next, count, EDGE_GONE);
	}
	return n;
}

static uint16_t process_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, &fronts[UPLINK], ACL_UPLINK);
}

static uint16_t process_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, &fronts[DOWNLINK], ACL_DOWNLINK);
}

static uint16_t process_tunnel(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process_instance(graph, node, objs, n, &fronts[TUNNEL]);
}

static uint16_t process_ue(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process_instance(graph, node, objs, n, &fronts[UE]);
}

// Without a list of theirs, packets pass by the nodes.
static enum stage_wants wants_uplink(void)
{
	return firewall_list(ACL_UPLINK) != NULL ? STAGE_ALL : STAGE_NONE;
}

static enum stage_wants wants_downlink(void)
{
	return firewall_list(ACL_DOWNLINK) != NULL ? STAGE_ALL : STAGE_NONE;
}

static enum stage_wants wants_instance(void)
{
	return firewall_instances() ? STAGE_ALL : STAGE_NONE;
}

static struct rte_node_register firewall_uplink = {
	.name = "firewall-uplink",
	.process = process_uplink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "@lookup-uplink", [EDGE_DROP] = "drop"},
};
NODE_STAGE(firewall_uplink, "lookup-uplink", .standard = 1, .wants = wants_uplink)

static struct rte_node_register firewall_downlink = {
	.name = "firewall-downlink",
	.process = process_downlink,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "@lookup-downlink", [EDGE_DROP] = "drop"},
};
NODE_STAGE(firewall_downlink, "lookup-downlink", .standard = 1, .wants = wants_downlink)

static struct rte_node_register firewall_tunnel = {
	.name = "firewall-tunnel",
	.process = process_tunnel,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "@lookup-tunnel", [EDGE_DROP] = "drop"},
};
NODE_STAGE(firewall_tunnel, "lookup-tunnel", .standard = 1, .wants = wants_instance)

static struct rte_node_register firewall_ue = {
	.name = "firewall-ue",
	.process = process_ue,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_SESSION] = "@lookup-ue", [EDGE_DROP] = "drop"},
};
NODE_STAGE(firewall_ue, "lookup-ue", .standard = 1, .wants = wants_instance)

static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	trace_say(to, "%s", strcmp(next, "drop") == 0 ? "the access list refuses it" : "no access list refuses it");
}

static int foresee(const struct acl *a, struct rte_mbuf *m, const struct front *f)
{
	uint32_t verdict;

	if (a == NULL)
		return EDGE_SESSION;
	acl_classify(a, &m, 1, &verdict);
	return verdict < ACL_FRAGMENT ? decide(a, m, verdict, f->place) : decide_fragment(a, m, verdict, f, NULL);
}

static int foresee_uplink(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(firewall_list(ACL_UPLINK), m, &fronts[UPLINK]);
}

static int foresee_downlink(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(firewall_list(ACL_DOWNLINK), m, &fronts[DOWNLINK]);
}

static int foresee_tunnel(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(firewall_instance_list(packet_of(m)->instance), m, &fronts[TUNNEL]);
}

static int foresee_ue(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(firewall_instance_list(packet_of(m)->instance), m, &fronts[UE]);
}

TRACE_STAGE("firewall-uplink", .after = after, .foresee = foresee_uplink)
TRACE_STAGE("firewall-downlink", .after = after, .foresee = foresee_downlink)
TRACE_STAGE("firewall-tunnel", .after = after, .foresee = foresee_tunnel)
TRACE_STAGE("firewall-ue", .after = after, .foresee = foresee_ue)
