// SPDX-License-Identifier: Apache-2.0
// Nodes fragment-core and fragment-access: packets that are larger than the way ahead takes.
//
// The pieces are made by rte_ip_frag: a fresh header, and references into the old packet's buffers behind it. So a
// fragment has several segments, and the old buffers live until the last fragment was sent.
#include "core/trace.h"
#include "icmp/icmp.h"
#include "route/route.h"
#include "rule/rule.h"
#include "rule/view.h"
#include "wire/cache_line.h"
#include "wire/checksum.h"
#include <rte_ip_frag.h>

DROP_REASON(broken, "fragment-malformed",
	"a packet that had to be fragmented has a broken IP header. Report it with show drop -j")
DROP_REASON(impossible, "fragment-impossible",
	"the MTU ahead is too small to fragment the packet into 64 pieces or fewer. Jumbo packets: see the MTU behind")
DROP_REASON(no_buffer, "fragment-no-buffer",
	"no packet buffers were left for the fragments. See engine.packet_buffers, show total: who holds them")

DROP_REASON(too_many, "fragment-limit",
	"more fragments in one vector than a worker makes at a time. A burst of jumbo packets: see the MTU behind")

#define MAX_PIECES 64
// Per visit of the node: a stream between two nodes of rte_graph holds 65535 packets, and one more ends the process.
#define MAX_PIECES_VISIT 8192

enum { ONWARD, TO_ICMP, DROP, EDGES };

// IPv6 identification (RFC 8200 §4.5): each worker counts in its own part of the space.
static struct {
	uint32_t next;
} cache_aligned identification[API_MAX_WORKERS];

// Leaves just the IP packet in the buffer: no bytes in front of l3, no Ethernet padding behind. 0 when the frame is
// broken.
static int strip(struct rte_mbuf *m, struct ip_info *info)
{
	struct packet *pkt = packet_of(m);

	if (pkt->l3 > rte_pktmbuf_data_len(m) || (pkt->l3 > 0 && rte_pktmbuf_adj(m, pkt->l3) == NULL))
		return 0;
	pkt->l3 = 0;
	if (ip_parse(rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_data_len(m), rte_pktmbuf_pkt_len(m), info) != IP_OK)
		return 0;
	return packet_trim(m, info->length);
}

// The work that rte_ip_frag leaves to its caller: checksum, identification, and each piece's head.
static void finish_piece(struct rte_mbuf *piece, const struct ip_info *info, uint32_t id)
{
	struct packet *pkt = packet_of(piece);
	uint8_t *p = rte_pktmbuf_mtod(piece, uint8_t *);
	uint16_t sum;

	pkt->l3 = 0;
	pkt->ip_version = info->version;
	pkt->length = rte_pktmbuf_pkt_len(piece);
	pkt->protocol = info->protocol;
	if (info->version == 6) {
		pkt->l4 = IP6_HEADER + 8;
		pkt->fragment = ip6_fragment(load16(p + IP6_HEADER + 2));
		store32(p + IP6_HEADER + 4, id);
		return;
	}
	pkt->l4 = (p[0] & 15) * 4;
	pkt->fragment = ip4_fragment(load16(p + 6));
	memset(p + 10, 0, 2);
	sum = checksum_finish(checksum_add(0, p, pkt->l4));
	memcpy(p + 10, &sum, 2);
}

// Splits the packet at m into out[]: the first piece replaces it in the counters, the others are originated. Returns
// how many, or 0 with the drop reason in m (m stays).
static int split(struct worker *w, struct rte_mbuf *m, const struct ip_info *info, uint32_t mtu, struct rte_mbuf **out)
{
	uint32_t id = identification[w->id].next++ * worker_count() + w->id;
	struct rte_mbuf *whole = likely(packet_own_buffers(m)) ? m : rte_pktmbuf_copy(m, w->pool, 0, UINT32_MAX);
	int32_t n = -ENOMEM;

	mtu = RTE_MIN(mtu, (uint32_t)UINT16_MAX);
	if (whole != NULL && info->version == 4)
		n = rte_ipv4_fragment_packet(whole, out, MAX_PIECES, (uint16_t)mtu, w->pool, w->pool);
	else if (whole != NULL)
		n = rte_ipv6_fragment_packet(whole, out, MAX_PIECES, (uint16_t)mtu, w->pool, w->pool);
	if (whole != m)
		rte_pktmbuf_free(whole); // the pieces hold its buffers
	if (n <= 0) {
		packet_leave(m, n == -ENOMEM ? &no_buffer : &impossible, DROP);
		return 0;
	}
	*packet_of(out[0]) = *packet_of(m);
	for (int i = 0; i < n; i++) {
		if (i > 0)
			packet_originate_like(w, out[i], m);
		finish_piece(out[i], info, id);
	}
	rte_pktmbuf_free(m); // the pieces hold its buffers
	return n;
}

static int has_df(const struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod(m, const uint8_t *)[6] & 0x40;
}

static rte_edge_t too_big(struct rte_mbuf *m, const struct ip_info *info, uint32_t mtu)
{
	struct icmp_type t = icmp_type_of(ICMP_PROBLEM_TOO_BIG, info->version);

	icmp_error_request(m, t.type, t.code, mtu);
	return TO_ICMP;
}

// MTU of the next hop that ip-output chose. 0 when there is none.
static uint32_t core_mtu(struct rte_mbuf *m)
{
	const struct next_hop *hop = next_hop_get(session_view_of(m)->next_hop);

	return hop == NULL ? 0 : hop->mtu;
}

// Largest packet that the subscriber takes. 0 when there is no rule.
static uint32_t access_mtu(struct rte_mbuf *m)
{
	const struct rule *rule = session_view_of(m)->rule;

	return rule == NULL ? 0 : rule->mru;
}

// Returns the edge; ONWARD: fragment it.
static rte_edge_t decide(struct rte_mbuf *m, uint32_t mtu, struct ip_info *info)
{
	if (!strip(m, info))
		return packet_leave(m, &broken, DROP);
	if (ip_is_local(packet_of(m)->vrf, info->version, info->source)) {
		if (info->version == 4)
			rte_pktmbuf_mtod(m, uint8_t *)[6] &=
				~0x40; // DF; gtpu-encap counts the identification (RFC 6864)
		return ONWARD;
	}
	// A router fragments IPv4 without DF only (RFC 1812 §5.2.7, RFC 8200 §5).
	if (info->version == 6 || has_df(m))
		return too_big(m, info, mtu);
	return ONWARD;
}

typedef uint32_t (*mtu_fn)(struct rte_mbuf *m);

static __rte_always_inline uint16_t process(
	struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n, mtu_fn mtu_of)
{
	struct worker *w = worker_self();
	struct rte_mbuf *out[MAX_PIECES];
	uint32_t made = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		struct ip_info info;
		uint32_t mtu = mtu_of(m);
		rte_edge_t edge = decide(m, mtu, &info);
		if (unlikely(edge == ONWARD && made + MAX_PIECES > MAX_PIECES_VISIT)) {
			rte_node_enqueue_x1(graph, node, packet_leave(m, &too_many, DROP), m);
			continue;
		}
		int pieces = edge == ONWARD ? split(w, m, &info, mtu, out) : 0;
		made += (uint32_t)pieces;
		if (pieces > 0)
			rte_node_enqueue(graph, node, ONWARD, (void **)out, pieces);
		else
			rte_node_enqueue_x1(graph, node, edge == ONWARD ? DROP : edge, m);
	}
	return n;
}

// As rte_ip_frag counts them, and the length of the first one; 0: it cannot.
static uint32_t pieces_of(const struct ip_info *info, uint32_t mtu, uint32_t *first)
{
	uint32_t own = info->version == 4 ? info->l4 : IP6_HEADER, header = own + (info->version == 4 ? 0 : 8);
	uint32_t each = mtu > header ? (mtu - header) & ~7u : 0;
	uint32_t n = each == 0 ? 0 : (info->length - own + each - 1) / each;

	*first = header + each;
	return n > MAX_PIECES ? 0 : n;
}

// A hypothetical packet is not split: its first piece goes on.
static int foresee(struct trace_text *to, struct rte_mbuf *m, uint32_t mtu)
{
	struct ip_info info;
	rte_edge_t edge = decide(m, mtu, &info);
	uint32_t first, n = edge == ONWARD ? pieces_of(&info, mtu, &first) : 0;

	if (edge != ONWARD)
		return edge;
	if (n == 0)
		return packet_leave(m, &impossible, DROP);
	trace_say(to, "in %u fragments of at most %u bytes", n, first);
	packet_of(m)->length = first;
	return packet_trim(m, first) ? ONWARD : TRACE_ENDS; // of several buffers
}

static int foresee_core(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(to, m, core_mtu(m));
}

static int foresee_access(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return foresee(to, m, access_mtu(m));
}

TRACE_STAGE("fragment-core", .foresee = foresee_core)
TRACE_STAGE("fragment-access", .foresee = foresee_access)

static uint16_t core_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, core_mtu);
}

static uint16_t access_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	return process(graph, node, objs, n, access_mtu);
}

// Fragments go round through ip-output once more: they fit now, and the neighbour may still have to be found.
static struct rte_node_register fragment_core_node = {
	.name = "fragment-core",
	.process = core_process,
	.nb_edges = EDGES,
	.next_nodes = {[ONWARD] = "ip-output", [TO_ICMP] = "@error", [DROP] = "drop"},
};
NODE_REGISTER(fragment_core_node)

static struct rte_node_register fragment_access_node = {
	.name = "fragment-access",
	.process = access_process,
	.nb_edges = EDGES,
	.next_nodes = {[ONWARD] = "access-encap", [TO_ICMP] = "@error", [DROP] = "drop"},
};
NODE_REGISTER(fragment_access_node)
