// SPDX-License-Identifier: Apache-2.0
// Node icmp-echo: answers echo requests to our own addresses, in place. Other ICMP to us goes to the host path.
#include "core/port.h"
#include "core/trace.h"
#include "host/host.h"
#include "icmp/icmp.h"
#include "route/deliver.h"
#include "route/route.h"
#include "rule/rule.h"
#include "rule/view.h"

DROP_REASON(rate_limit, "echo-rate-limit",
	"an ICMP echo request was due an answer, but engine.rates.echo is used up. A flood, or engine.rates is low: "
	"see show punt")
DROP_REASON(not_answerable, "echo-not-answerable",
	"an ICMP echo request from no single host, or to a group. Normal: no answer is due")
DROP_REASON(malformed, "echo-malformed", "an ICMP message to us whose IP header is broken. Normal: no answer is due")
DROP_REASON(no_session, "echo-no-session",
	"the session has no downlink rule, so its echo request cannot be answered. See show rule: the other direction "
	"is missing, idle or closed")
DROP_REASON(shared, "echo-shared",
	"the echo request's buffer is shared, so it cannot become the answer. Report it with show drop -j")

enum { TO_ACCESS, TO_IP, DROP, PUNT, EDGES };

// Subscribers' packets have a session view; those of a core port are plain.
static rte_edge_t way_back(struct rte_mbuf *m)
{
	const struct port *port = port_get(packet_of(m)->port_in);
	struct session_view *v = session_view_of(m);
	const struct rule *back;

	if (port == NULL || port->role != API_ROLE_ACCESS) {
		memset(v, 0, sizeof(*v));
		return TO_IP;
	}
	back = v->rule == NULL ? NULL : session_downlink_rule(v->rule);
	if (back == NULL)
		return packet_leave(m, &no_session, DROP);
	v->rule = (struct rule *)(uintptr_t)back;
	v->uplink = 0;
	v->qfi = back->action.qfi;
	v->pipe = back->down.pipe;
	return TO_ACCESS;
}

static rte_edge_t answer(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	struct packet *pkt = packet_of(m);
	uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);
	uint32_t available = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);
	struct ip_info info;

	if (unlikely(pkt->l3 > available) || ip_parse(p, available - pkt->l3, total - pkt->l3, &info) != IP_OK)
		return packet_leave(m, &malformed, DROP);
	if (!icmp_is_echo(p, &info))
		return packet_leave(m, &punt_icmp, PUNT);
	// An answer to a group or broadcast address would make us an amplifier.
	if (ip_martian(info.version, info.source, info.destination) != IP_MARTIAN_NONE)
		return packet_leave(m, &not_answerable, DROP);
	if (!trace_is_hypothetical(m) && !limiter_take(icmp_echo_limiter(w), w))
		return packet_leave(m, &rate_limit, DROP);
	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
		return packet_leave(m, &shared, DROP);
	rte_edge_t edge = way_back(m);
	if (edge == DROP)
		return edge;
	icmp_make_echo_reply(p, &info);
	// As the encapsulating nodes expect: the packet begins with its IP header, and ends with it if possible.
	rte_pktmbuf_adj(m, pkt->l3);
	if (rte_pktmbuf_pkt_len(m) > info.length)
		rte_pktmbuf_trim(m, (uint16_t)RTE_MIN(rte_pktmbuf_pkt_len(m) - info.length, (uint32_t)UINT16_MAX));
	pkt->l3 = 0;
	pkt->ip_version = info.version;
	pkt->protocol = info.protocol;
	pkt->fragment = 0;
	pkt->l4 = info.l4;
	pkt->length = info.length;
	session_view_of(m)->dscp = info.dscp;
	m->ol_flags = 0;
	return edge;
}

NODE_EACH(process, answer)

static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	if (strcmp(next, "drop") != 0 && strcmp(next, "punt") != 0)
		trace_say(to, "an echo request to us: its answer goes on");
}

TRACE_STAGE("icmp-echo", .after = after, .pure = 1)

static struct rte_node_register icmp_echo_node = {
	.name = "icmp-echo",
	.process = process,
	.nb_edges = EDGES,
	.next_nodes = {[TO_ACCESS] = "access-encap", [TO_IP] = "ip-output", [DROP] = "drop", [PUNT] = "punt"},
};
NODE_REGISTER(icmp_echo_node)

RTE_INIT(icmp_echo_local)
{
	ip_local_register_protocol(IP_PROTOCOL_ICMP, "icmp-echo");
	ip_local_register_protocol(IP_PROTOCOL_ICMP6, "icmp-echo");
}
