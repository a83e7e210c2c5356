// SPDX-License-Identifier: Apache-2.0
// nptv6-uplink: inside source addresses become outside ones. nptv6-downlink: destinations, the reverse. nptv6-error: in
// our ICMP errors, the quoted packet becomes the sender's.
#include "core/node.h"
#include "core/trace.h"
#include "nptv6/nptv6.h"
#include "route/ways.h"
#include "rule/view.h"

DROP_REASON(drop_unmapped, "nptv6-unmapped",
	"the address has no counterpart: subnet 0xffff of a /48 or shorter prefix, or an identifier of all ones. "
	"Number subnets of nptv6 prefixes otherwise")
DROP_REASON(drop_inside, "nptv6-inside-address",
	"from the data network to an inside address. The prefix is routed to us by mistake, or a scan")

enum { EDGE_NEXT, EDGE_DROP, EDGE_HAIRPIN };

// An error quotes the packet with the addresses that its receiver knows. Checksums stay valid when the addresses
// change.
static void translate_quoted(const struct nptv6 *n, struct rte_mbuf *m, enum nptv6_direction d)
{
	const struct packet *pkt = packet_of(m);

	if (likely(pkt->protocol != IP_PROTOCOL_ICMP6 || (pkt->fragment & IP_FRAGMENT_LATER) || pkt->l4 > m->data_len))
		return;
	uint8_t *address = nptv6_quoted(rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l4), m->data_len - pkt->l4, d);
	int i = address == NULL ? -1 : nptv6_find(n->pair, n->pairs, d, address);
	if (i >= 0)
		nptv6_map(&n->pair[i], d, address);
}

// Returns 0 when the address has no counterpart. `i`: its pair, -1: none.
static int translate(
	const struct worker *w, struct nptv6 *n, int i, enum nptv6_direction d, struct rte_mbuf *m, uint8_t *address)
{
	if (i < 0)
		return 1;
	if (unlikely(!nptv6_map(&n->pair[i], d, address)))
		return 0;
	if (likely(!trace_is_hypothetical(m)))
		n->counts[w->id].packets[d][i]++;
	packet_of(m)->translated |= d == NPTV6_OUT ? PACKET_SOURCE_TRANSLATED : PACKET_DESTINATION_TRANSLATED;
	return 1;
}

// A packet of the data network with an inside source, routed back there, is not of the inside. Nor are our errors.
static int comes_from_inside(struct rte_mbuf *m, uint16_t instance, const uint8_t *source)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct packet *pkt = packet_of(m);

	if (unlikely(pkt->protocol == IP_PROTOCOL_ICMP6) && ip_is_local(pkt->vrf, 6, source))
		return 0;
	return r != NULL ? (r->flags & RULE_UPLINK) != 0 : instance_of_interface(pkt->interface) != instance;
}

static rte_edge_t to_outside(const struct worker *w, struct nptv6 *n, struct rte_mbuf *m, uint16_t instance)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3);
	int i = comes_from_inside(m, instance, ip + 8) ? nptv6_find(n->pair, n->pairs, NPTV6_OUT, ip + 8) : -1;

	packet_of(m)->instance = instance;
	if (unlikely(!translate(w, n, i, NPTV6_OUT, m, ip + 8)))
		return packet_leave(m, &drop_unmapped, EDGE_DROP);
	translate_quoted(n, m, NPTV6_OUT);
	// §4.3 (hairpinning): it turns round, translated both ways, as if it had been outside.
	return likely(nptv6_find(n->pair, n->pairs, NPTV6_IN, ip + 24) < 0) ? EDGE_NEXT : EDGE_HAIRPIN;
}

// Where no route leads on, outside addresses are still reached from inside: their prefix may have a discard route,
// which announces it.
static __rte_noinline uint16_t hairpin_instance(uint8_t vrf, const uint8_t *destination)
{
	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct nptv6 *n = nptv6_of(i);

		if (n != NULL && instance_vrf(instances_get(), i) == vrf &&
			nptv6_find(n->pair, n->pairs, NPTV6_IN, destination) >= 0)
			return i;
	}
	return INSTANCE_NONE;
}

static inline rte_edge_t uplink(const struct worker *w, struct ways *ways, uint32_t generation, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	if (pkt->ip_version != 6)
		return EDGE_NEXT;
	const struct next_hop *hop =
		next_hop_get(ways_find(ways, generation, way_table(pkt->vrf), 6, ip + 24, pkt->interface)->index);
	uint16_t instance = likely(next_hop_leads(hop)) ? instance_of_hop(hop) : hairpin_instance(pkt->vrf, ip + 24);
	struct nptv6 *n = nptv6_of(instance);

	return n == NULL ? EDGE_NEXT : to_outside(w, n, m, instance);
}

static uint16_t nptv6_uplink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	const struct worker *w = worker_self();
	rte_edge_t next[NODE_CHUNK];

	if (likely(!nptv6_anywhere())) {
		rte_node_next_stream_move(graph, node, EDGE_NEXT);
		return n;
	}
	uint32_t generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE); // before any table is read
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = uplink(w, ways_of(w), generation, objs[base + i]);
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

// Without NPTv6, packets pass by both nodes. nptv6-error stays: its packet may have waited.
static enum stage_wants wants(void)
{
	return nptv6_anywhere() ? STAGE_ALL : STAGE_NONE;
}

static struct rte_node_register nptv6_uplink_node = {
	.name = "nptv6-uplink",
	.process = nptv6_uplink,
	.nb_edges = EDGE_HAIRPIN + 1,
	.next_nodes = {[EDGE_NEXT] = "@output-ip", [EDGE_HAIRPIN] = "nptv6-downlink", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nptv6_uplink_node, "output-ip", .standard = 1, .wants = wants)

static inline rte_edge_t downlink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	struct nptv6 *n = nptv6_of(pkt->instance);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);

	if (n == NULL || pkt->ip_version != 6)
		return EDGE_NEXT;
	int i = nptv6_find(n->pair, n->pairs, NPTV6_IN, ip + 24);
	if (unlikely(i < 0)) {
		// Not from another UE, and not out of a tunnel of UDP/IP, where no address is translated.
		if (session_view_of(m)->rule == NULL && instance_get(pkt->instance)->udp_port == 0 &&
			nptv6_find(n->pair, n->pairs, NPTV6_OUT, ip + 24) >= 0)
			return packet_leave(m, &drop_inside, EDGE_DROP);
		return EDGE_NEXT;
	}
	if (unlikely(!translate(w, n, i, NPTV6_IN, m, ip + 24)))
		return packet_leave(m, &drop_unmapped, EDGE_DROP);
	translate_quoted(n, m, NPTV6_IN);
	return EDGE_NEXT;
}

static uint16_t nptv6_downlink(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	if (unlikely(nptv6_anywhere()))
		return node_each(graph, node, objs, n, downlink);
	rte_node_next_stream_move(graph, node, EDGE_NEXT);
	return n;
}

static struct rte_node_register nptv6_downlink_node = {
	.name = "nptv6-downlink",
	.process = nptv6_downlink,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@lookup-ue", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nptv6_downlink_node, "lookup-ue", .before = "firewall-ue", .standard = 1, .wants = wants)

// Our error quotes the packet as its sender sent it. Of a packet that turned round only the destination is restored:
// the error turns round in its turn.
static inline rte_edge_t untranslate(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	enum nptv6_direction d = pkt->translated == PACKET_SOURCE_TRANSLATED ? NPTV6_IN : NPTV6_OUT;

	if (pkt->translated == 0 || pkt->ip_version != 6)
		return EDGE_NEXT;
	const struct nptv6 *n = nptv6_of(pkt->instance);
	uint8_t *address = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3 + (d == NPTV6_IN ? 8 : 24));
	int i = n == NULL ? -1 : nptv6_find(n->pair, n->pairs, d, address);
	// The pair may be gone since.
	return i >= 0 && nptv6_map(&n->pair[i], d, address) ? EDGE_NEXT : packet_leave(m, &drop_unmapped, EDGE_DROP);
}

NODE_EACH(nptv6_error, untranslate)

static struct rte_node_register nptv6_error_node = {
	.name = "nptv6-error",
	.process = nptv6_error,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@error", [EDGE_DROP] = "drop"},
};
NODE_STAGE(nptv6_error_node, "error", .standard = 1)

TRACE_STAGE("nptv6-error", .pure = 1)
TRACE_STAGE("nptv6-uplink", .pure = 1)
TRACE_STAGE("nptv6-downlink", .pure = 1)
