// SPDX-License-Identifier: Apache-2.0
// mss-uplink and mss-downlink lower the MSS in SYNs of sessions to the MTU of both directions. So connections need
// neither fragments nor ICMP errors, which firewalls often drop (RFC 2923 §2.1).
//
//   written by: `counts` by their worker
#include "mss/mss.h"
#include "core/control.h"
#include "core/node.h"
#include "core/trace.h"
#include "path/path.h"
#include "route/route.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/cache_line.h"
#include "wire/ip.h"
#include "wire/tcp.h"

struct mss_counts {
	uint64_t lowered[2], malformed; // lowered: downlink, uplink
};
static struct {
	struct mss_counts of[MAX_INSTANCES + 1]; // the last one: of none
} cache_aligned counts[API_MAX_WORKERS];

enum { OF_SESSION, OF_ORIGIN, OF_EXIT, LIMITS };

static uint16_t limit_in(uint16_t instance)
{
	const struct instance *n = instance_get(instance);

	return n != NULL ? n->mss : 0;
}

// By which a packet leaves: the FAR's, else that of the tunnel's endpoint.
static uint16_t exit_of(const struct rule *r)
{
	const struct path *p = r->outer == API_OUTER_GTPU ? path_get(r->action.path) : NULL;

	return r->instance == INSTANCE_NONE && p != NULL ? instance_of_local(p->local_id) : r->instance;
}

// As in api_session; 0: there is none.
static void limits_of(const struct rule *r, uint16_t came, uint16_t limit[LIMITS])
{
	limit[OF_SESSION] = session_mss(r->session);
	limit[OF_ORIGIN] = limit_in(came);
	limit[OF_EXIT] = limit_in(exit_of(r));
}

int mss_is_limited(const struct rule *r, uint16_t came)
{
	uint16_t limit[LIMITS];

	limits_of(r, came, limit);
	return (limit[OF_SESSION] | limit[OF_ORIGIN] | limit[OF_EXIT]) != 0;
}

// What the way lets through.

// Of equal cost, the first way's.
static uint32_t route_mtu(uint8_t vrf, uint8_t version, const uint8_t *destination)
{
	const struct next_hop *hop = next_hop_get(ip_route_lookup(vrf, version, destination));
	const struct interface *i = next_hop_leads(hop) ? interface_get(hop->interface) : NULL;

	return i != NULL ? i->mtu : UINT32_MAX;
}

// Longest user's packet that leaves by the rule unfragmented. `remote`: the host at the other end, if routed.
static uint32_t rule_mtu(const struct rule *r, uint8_t version, const uint8_t *remote)
{
	if (r->outer == API_OUTER_ENDPOINT)
		return r->mru;
	if (r->outer == API_OUTER_NONE)
		return route_mtu(instance_vrf(instances_get(), r->instance), version, remote);
	const struct path *p = path_get(r->action.path);
	if (p == NULL)
		return UINT32_MAX;
	uint32_t header = r->outer == API_OUTER_UDP ? path_ip_length(p) + 8 : p->outer.length[1],
		 mtu = route_mtu(path_vrf(p), p->outer.version, p->want.peer.bytes);
	return mtu > header ? mtu - header : 0;
}

// Both ways: the MSS limits what its sender receives, and those packets take the same path as its own.
static uint32_t path_mtu(const struct rule *r, uint8_t version, const uint8_t *ip)
{
	const uint8_t *source = ip + (version == 4 ? 12 : 8), *destination = source + (version == 4 ? 4 : 16);
	uint32_t back = session_pools.match[rule_index(r)].other, mtu = rule_mtu(r, version, destination);

	if (back != RULE_NONE)
		mtu = RTE_MIN(mtu, rule_mtu(&session_pools.rule[back], version, source));
	return RTE_MAX(mtu, (uint32_t)API_MRU_MIN);
}

// The limit that counts; UINT16_MAX: none.
static uint16_t limit_of(const struct rule *r, const struct packet *pkt, const uint8_t *ip)
{
	uint32_t least = UINT16_MAX, off = pkt->ip_version == 4 ? TCP_OVER_IP4 : TCP_OVER_IP6;
	uint16_t limit[LIMITS];

	limits_of(r, pkt->instance, limit);
	for (uint32_t i = 0; i < LIMITS; i++) {
		if (limit[i] == 0)
			continue;
		uint32_t mtu = limit[i] == API_MSS_PATH ? path_mtu(r, pkt->ip_version, ip) : limit[i] + TCP_OVER_IP4;
		least = RTE_MIN(least, mtu - off);
	}
	return (uint16_t)least;
}

// Fragments stay unchanged: a later one does not show options.
static __rte_always_inline int is_syn(const struct packet *pkt, const uint8_t *data)
{
	return pkt->protocol == IP_PROTOCOL_TCP && pkt->fragment == 0 && tcp_is_syn(data + pkt->l4);
}

// Of the side of the data network.
static uint16_t instance_to_count(const struct rule *r, const struct packet *pkt, int uplink)
{
	uint16_t first = uplink ? r->instance : pkt->instance, second = uplink ? pkt->instance : r->instance;

	first = first < MAX_INSTANCES ? first : second;
	return RTE_MIN(first, (uint16_t)MAX_INSTANCES);
}

static __rte_noinline void clamp(struct worker *w, struct rte_mbuf *m, int uplink)
{
	const struct packet *pkt = packet_of(m);
	const struct rule *r = session_view_of(m)->rule;
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);
	uint16_t most = limit_of(r, pkt, data + pkt->l3);

	if (most == UINT16_MAX)
		return;
	unsigned done = tcp_clamp_mss(data + pkt->l4, rte_pktmbuf_data_len(m) - pkt->l4, most);
	if (unlikely(trace_is_hypothetical(m)))
		return;
	struct mss_counts *c = &counts[w->id].of[instance_to_count(r, pkt, uplink)];
	c->lowered[uplink] += (done & TCP_MSS_LOWERED) != 0;
	c->malformed += (done & TCP_MSS_MALFORMED) != 0;
}

static __rte_always_inline rte_edge_t look(struct worker *w, struct rte_mbuf *m, int uplink)
{
	if (unlikely(is_syn(packet_of(m), rte_pktmbuf_mtod(m, const uint8_t *))))
		clamp(w, m, uplink);
	return session_exit(m);
}

static __rte_always_inline rte_edge_t look_uplink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return look(w, m, 1);
}

static __rte_always_inline rte_edge_t look_downlink(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	return look(w, m, 0);
}

NODE_EACH(process_uplink, look_uplink)

NODE_EACH(process_downlink, look_downlink)

// Without a limit, packets pass by both nodes.
static enum stage_wants wants(void)
{
	return mss_anywhere(instances_get()) ? STAGE_ALL : STAGE_NONE;
}

// Standard: the fast path leaves SYNs to the full nodes where anything is limited.
static struct rte_node_register mss_uplink = {
	.name = "mss-uplink",
	.process = process_uplink,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("uplink")},
};
NODE_STAGE(mss_uplink, "uplink", .after = "policer-uplink", .standard = 1, .wants = wants)

static struct rte_node_register mss_downlink = {
	.name = "mss-downlink",
	.process = process_downlink,
	.nb_edges = SESSION_EXIT_COUNT,
	.next_nodes = {SESSION_EXITS("downlink")},
};
NODE_STAGE(mss_downlink, "downlink", .after = "policer-downlink", .standard = 1, .wants = wants)

static void before(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t most = is_syn(pkt, data) ? limit_of(session_view_of(m)->rule, pkt, data + pkt->l3) : UINT16_MAX;

	if (most != UINT16_MAX)
		trace_say(to, "SYN: MSS at most %u", most);
}
TRACE_STAGE("mss-uplink", .before = before, .pure = 1)
TRACE_STAGE("mss-downlink", .before = before, .pure = 1)

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint16_t i = 0; i <= MAX_INSTANCES; i++) {
		const struct instance *n = instance_get(i);
		struct api_mss_row row = {0};

		if (i < MAX_INSTANCES && n == NULL)
			continue;
		if (n != NULL)
			memcpy(row.name, n->name, sizeof(row.name));
		if (key[0] != 0 && strcmp(key, row.name) != 0)
			continue;
		for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
			const struct mss_counts *c = &counts[w].of[i];

			row.downlink += __atomic_load_n(&c->lowered[0], __ATOMIC_RELAXED);
			row.uplink += __atomic_load_n(&c->lowered[1], __ATOMIC_RELAXED);
			row.malformed += __atomic_load_n(&c->malformed, __ATOMIC_RELAXED);
		}
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(mss_module)
{
	stats_table_register(API_TABLE_MSS, sizeof(struct api_mss_row), rows);
}
