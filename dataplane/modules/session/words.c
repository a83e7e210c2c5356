// SPDX-License-Identifier: Apache-2.0
// What the session nodes say of traced packets.
#include "rule/words.h"
#include "path/path.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "rule/view.h"
#include <string.h>

static void say_first(struct trace_text *to, const struct rule *first, const struct worker *w)
{
	if (first == NULL) {
		trace_say(to, ": no session has it");
		return;
	}
	trace_say(to, ": ");
	rule_say_session(to, first);
	if (first->worker != w->id)
		trace_say(to, ", of worker %u", first->worker);
}

static void before_tunnel(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct tunnel_view *t = tunnel_view_of(m);

	trace_say(to, "F-TEID 0x%08x", t->teid);
	if (t->qfi != GTPU_NO_QFI)
		trace_say(to, ", QFI %u", t->qfi);
	say_first(to, session_fteid_rule(t->teid, t->local), w);
}

static void before_endpoint(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;

	trace_say(to, "S-tag %u, C-tag %u", e->s_tag, e->c_tag);
	if (e->pppoe_session != 0)
		trace_say(to, ", PPPoE session %u", e->pppoe_session);
	trace_say(to, ", MAC %02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	say_first(to, session_endpoint_rule(packet_of(m)->port_in, e, mac), w);
}

static void before_ue(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);

	trace_say(to, "UE address ");
	trace_say_address(to, pkt->ip_version, ip + (pkt->ip_version == 4 ? 16 : 24));
	if (!session_ue_known(pkt->instance, pkt->ip_version, ip + (pkt->ip_version == 4 ? 16 : 24)))
		trace_say(to, ": no session has it");
}

static int has_rule(struct rte_mbuf *m, const char *next)
{
	return !(strcmp(next, "drop") == 0 || strcmp(next, "ip-forward") == 0 || strcmp(next, "gtpu-control") == 0 ||
		 strcmp(next, "icmp-echo") == 0 || session_view_of(m)->rule == NULL);
}

static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	if (!has_rule(m, next))
		return;
	trace_say(to, "; ");
	rule_say(to, session_view_of(m)->rule);
}

static void after_ue(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	if (!has_rule(m, next))
		return;
	trace_say(to, ": ");
	rule_say_session(to, session_view_of(m)->rule);
	after(to, w, m, next);
}

// A hypothetical packet begins no flow, and is counted by nothing.
TRACE_STAGE("session-tunnel", .before = before_tunnel, .after = after, .pure = 1, .inside = 1)
TRACE_STAGE("session-downlink", .before = before_tunnel, .after = after, .pure = 1, .inside = 1)
TRACE_STAGE("session-uplink", .before = before_endpoint, .after = after, .pure = 1, .inside = 1)
TRACE_STAGE("session-ue", .before = before_ue, .after = after_ue, .pure = 1, .inside = 1)
