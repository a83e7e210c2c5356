// SPDX-License-Identifier: Apache-2.0
// Node icmp-error: turns an offending packet into the ICMP error about it and sends it back to the origin.
#include "core/trace.h"
#include "icmp/icmp.h"
#include "instance/instance.h"
#include "route/route.h"
#include "rule/rule.h"
#include "rule/view.h"

DROP_REASON(rate_limit, "icmp-rate-limit",
	"an ICMP error was due, but engine.rates.icmp_errors is used up. A flood, or engine.rates is low: see show "
	"punt")
DROP_REASON(not_answerable, "icmp-not-answerable",
	"no ICMP error is sent about an ICMP error, a later fragment, or to or from more than one host. Normal: no "
	"answer is due")
DROP_REASON(no_source, "icmp-no-source",
	"no address of ours to send the ICMP error from. See addresses of that family of the interface or network "
	"instance")
DROP_REASON(no_session, "icmp-no-session",
	"the session has no rule for the way back, so no ICMP error can be sent. See show rule: the other direction is "
	"missing, idle or closed")
DROP_REASON(no_way, "icmp-no-way",
	"an ICMP error was due, but the session's FAR for the way back does not forward, or its gate is closed. See "
	"show rule: the other direction is missing, idle or closed")
DROP_REASON(no_room, "icmp-no-room",
	"the packet's buffer has no room for the headers of an ICMP error. Report it with show drop -j")

// The first ones are values of enum api_outer: the way of a rule.
enum {
	TO_IP = API_OUTER_NONE,
	TO_TUNNEL = API_OUTER_GTPU,
	TO_ACCESS = API_OUTER_ENDPOINT,
	TO_UDP = API_OUTER_UDP,
	TO_UE,
	DROP,
	EDGES
};

// An error that a session's rule forwards as IP may be for a UE, as the packet was from one (see ip-forward).
static rte_edge_t by_address(struct rte_mbuf *m, const struct rule *back, uint8_t version, const uint8_t *to)
{
	struct packet *pkt = packet_of(m);
	uint16_t instance;

	pkt->vrf = instance_vrf(instances_get(), back->instance);
	instance = instance_by_pool(back->instance, pkt->vrf, version, to);
	if (instance == INSTANCE_NONE || ++pkt->hops > PACKET_HOPS)
		return TO_IP;
	pkt->instance = instance;
	return TO_UE;
}

// Source of an error about a session's packet: the subscriber's gateway, in either direction; for a mobile session, the
// network instance. Else, and towards the data network of a translated subscriber, the received interface.
static const uint8_t *speaker(struct rte_mbuf *m, const struct rule *back, uint8_t version, const uint8_t *to)
{
	const struct packet *pkt = packet_of(m);
	const struct session_view *v = session_view_of(m);

	if (back == NULL || pkt->translated == PACKET_DESTINATION_TRANSLATED)
		return pkt->interface == UINT32_MAX ? NULL : ip_source_towards(version, pkt->interface, to);
	const struct rule *down = v->uplink ? back : v->rule;
	return down->outer == API_OUTER_ENDPOINT ? ip_source_on_port(version, down->down.port)
						 : instance_source(v->rule->instance, version);
}

// The error's way and source address. Sets the view for the node behind the edge.
static rte_edge_t way_back(struct rte_mbuf *m, uint8_t version, const uint8_t *to, const uint8_t **source)
{
	struct session_view *v = session_view_of(m);
	const struct rule *back;

	if (v->rule == NULL) {
		*source = speaker(m, NULL, version, to);
		v->uplink = 0;
		return *source ? TO_IP : packet_leave(m, &no_source, DROP);
	}
	back = v->uplink ? session_downlink_rule(v->rule) : session_uplink_rule(v->rule);
	if (back == NULL)
		return packet_leave(m, &no_session, DROP);
	// Without a tunnel, or while the UE is idle, there is no way: as IP the error would follow the routes to
	// anywhere.
	if ((back->flags & (RULE_FORWARD | RULE_GATE_CLOSED)) != RULE_FORWARD)
		return packet_leave(m, &no_way, DROP);
	*source = speaker(m, back, version, to);
	if (*source == NULL)
		return packet_leave(m, &no_source, DROP);
	v->uplink = !v->uplink;
	v->rule = (struct rule *)(uintptr_t)back;
	v->qfi = back->action.qfi;
	v->pdu_type = API_PDU_NONE;
	v->relayed = 0;
	if (back->outer == API_OUTER_ENDPOINT)
		v->pipe = back->down.pipe;
	return back->outer == API_OUTER_NONE ? by_address(m, back, version, to) : back->outer;
}

// Cuts the packet to the bytes that the error quotes, at the front of the first segment. 0 when that cannot be done
// here.
static int cut_to_quote(struct rte_mbuf *m, uint16_t l3, uint32_t quote, uint32_t header)
{
	if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
		return 0; // others read these bytes
	if (rte_pktmbuf_headroom(m) + (uint32_t)l3 < header)
		return 0;
	if (m->next != NULL) {
		rte_pktmbuf_free(m->next);
		m->next = NULL;
		m->nb_segs = 1;
	}
	m->data_off = m->data_off + l3 - header;
	m->data_len = header + quote;
	m->pkt_len = m->data_len;
	return 1;
}

static void set_head(struct rte_mbuf *m, const struct icmp_error *e, uint32_t length)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	pkt->l3 = 0;
	pkt->l4 = e->version == 4 ? IP4_HEADER : IP6_HEADER;
	pkt->ip_version = e->version;
	pkt->protocol = e->version == 4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMP6;
	pkt->fragment = 0;
	pkt->translated = 0;
	pkt->length = length;
	session_view_of(m)->dscp = e->version == 4 ? p[1] >> 2 : 0;
	m->ol_flags = 0;
}

// An error may be sent about a packet, whose headers are *info.
static int is_answerable(struct rte_mbuf *m, uint8_t type, struct ip_info *info)
{
	const struct packet *pkt = packet_of(m);
	uint32_t available = rte_pktmbuf_data_len(m);
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	return likely(pkt->l3 <= available) &&
	       ip_parse(p, available - pkt->l3, rte_pktmbuf_pkt_len(m) - pkt->l3, info) == IP_OK &&
	       icmp_answerable(p, info, type) == ICMP_ANSWER_OK && !ip_is_local(pkt->vrf, info->version, info->source);
}

static rte_edge_t answer(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct icmp_view want = *icmp_view_of(m);
	struct packet *pkt = packet_of(m);
	uint32_t available = rte_pktmbuf_data_len(m);
	uint8_t to[16];
	struct icmp_error e;
	struct ip_info info;

	if (!is_answerable(m, want.type, &info))
		return packet_leave(m, &not_answerable, DROP);
	// RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)
	if (!limiter_take(icmp_error_limiter(w), w))
		return packet_leave(m, &rate_limit, DROP);
	memcpy(to, info.source, info.version == 4 ? 4 : 16); // the buffer is about to be written over
	e = (struct icmp_error){
		.version = info.version, .type = want.type, .code = want.code, .mtu = want.mtu, .destination = to};
	rte_edge_t edge = way_back(m, info.version, to, &e.source);
	if (edge == DROP)
		return edge;
	uint32_t header = info.version == 4 ? ICMP4_ERROR_HEADER : ICMP6_ERROR_HEADER;
	uint32_t quote = icmp_quote(info.version, info.length, available - pkt->l3);
	if (!cut_to_quote(m, pkt->l3, quote, header))
		return packet_leave(m, &no_room, DROP);
	set_head(m, &e, icmp_put_error(rte_pktmbuf_mtod(m, uint8_t *), &e, quote));
	return edge;
}

NODE_EACH(process, answer)

static struct rte_node_register icmp_error_node = {
	.name = "icmp-error",
	.process = process,
	.nb_edges = EDGES,
	.next_nodes = {[TO_ACCESS] = "access-encap",
		[TO_TUNNEL] = "gtpu-encap",
		[TO_UDP] = "udp-encap",
		[TO_IP] = "@output-ip",
		[TO_UE] = "session-ue",
		[DROP] = "drop"},
};
NODE_REGISTER(icmp_error_node)
NODE_ARC("error", "icmp-error")

static void say(struct trace_text *to, uint8_t version, uint8_t type, uint8_t code)
{
	static const char *const words[] = {
		[ICMP_PROBLEM_TTL] = "time exceeded",
		[ICMP_PROBLEM_TOO_BIG] = "too big",
		[ICMP_PROBLEM_NO_ROUTE] = "no route",
		[ICMP_PROBLEM_HOST] = "host unreachable",
		[ICMP_PROBLEM_REJECTED] = "rejected by a route",
		[ICMP_PROBLEM_PROHIBITED] = "prohibited",
		[ICMP_PROBLEM_PORT] = "port unreachable",
		[ICMP_PROBLEM_PROTOCOL] = "protocol unreachable",
	};
	const char *what = "error";

	for (enum icmp_problem p = 0; p < ICMP_PROBLEM_COUNT; p++) {
		struct icmp_type t = icmp_type_of(p, version);

		if (t.type == type && t.code == code)
			what = words[p];
	}
	trace_say(to, "its sender is sent ICMP%s %s (type %u, code %u)", version == 6 ? "v6" : "", what, type, code);
}

// The error's own fate does not matter: its packet does not continue in any case.
static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct icmp_view *v = icmp_view_of(m);
	struct ip_info info;

	if (!is_answerable(m, v->type, &info))
		return packet_leave(m, &not_answerable, DROP);
	say(to, packet_of(m)->ip_version, v->type, v->code);
	return TRACE_LOST;
}

// The packet is the error by now.
static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *icmp = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l4);

	if (strcmp(next, "drop") != 0)
		say(to, pkt->ip_version, icmp[0], icmp[1]);
}

TRACE_STAGE("icmp-error", .after = after, .foresee = foresee)
