// SPDX-License-Identifier: Apache-2.0
// redirect: packets of a FAR with redirect information (TS 29.244 §8.2.20, §5.4.3). HTTP is answered with 302 in the
// server's name; everything else is dropped.
#include "core/control.h"
#include "core/node.h"
#include "core/object.h"
#include "core/trace.h"
#include "redirect/http.h"
#include "rule/far_more.h"
#include "rule/view.h"
#include "usage/usage.h"
#include "wire/checksum.h"
#include <errno.h>
#include <rte_ip.h>
#include <sys/random.h>

DROP_REASON(drop_other, "redirect-not-http",
	"the FAR redirects to a URL, and this is not TCP from the UE to port 80. Normal of a redirected UE: HTTPS "
	"cannot be redirected")
DROP_REASON(drop_answered, "redirect-answered",
	"a packet of a redirected HTTP connection, which was answered. Normal of a redirected UE: see show rule, "
	"ACTION redirect")
DROP_REASON(drop_silent, "redirect-silent",
	"a packet of a redirected HTTP connection that needs no answer. Normal of a redirected UE: see show rule, "
	"ACTION redirect")
DROP_REASON(drop_strange, "redirect-strange",
	"TCP to port 80 that is no HTTP request of an answered connection, or has a wrong checksum. Normal of a "
	"redirected UE: see show rule, ACTION redirect")
DROP_REASON(drop_no_way, "redirect-no-way",
	"the session has no FAR that leads to the UE, by which the answer could go. See show rule: the other direction "
	"is missing, idle or closed")

enum { EDGE_ANSWER, EDGE_DROP, EDGE_COUNT };

static struct http_key key;

// Of TCP alone: extension headers may be in front of it (RFC 8200 §8.1), which DPDK's functions do not know.
static int checksum_ok(const struct rte_mbuf *m, const struct ip_info *info)
{
	uint32_t length = info->length - info->l4;
	uint64_t pseudo = checksum_pseudo(info->version, info->source, info->destination, IP_PROTOCOL_TCP, length);
	uint16_t sum;

	return rte_raw_cksum_mbuf(m, info->l4, length, &sum) == 0 && checksum_finish(pseudo + sum) == 0;
}

static void prepare(struct rte_mbuf *reply, const struct ip_info *info, const struct rule *r, uint32_t length)
{
	struct packet *pkt = packet_of(reply);

	pkt->l3 = 0;
	pkt->l4 = info->version == 4 ? IP4_HEADER : IP6_HEADER;
	pkt->ip_version = info->version;
	pkt->protocol = IP_PROTOCOL_TCP;
	pkt->length = length;
	*session_view_of(reply) = (struct session_view){.rule = (struct rule *)(uintptr_t)r, .qfi = r->action.qfi};
}

// The rule that answers go by: the FAR that redirects, where it leads to the UE itself, else the session's downlink
// rule. NULL: none.
static const struct rule *way(const struct rule *r, const struct far_more *more)
{
	const struct rule *down = session_downlink_rule(r);

	if (more->leads_back)
		return r;
	if (down == NULL || (down->flags & (RULE_FORWARD | RULE_GATE_CLOSED | RULE_REDIRECT)) != RULE_FORWARD)
		return NULL;
	return down;
}

// Redirected traffic belongs to its PDR and counts as in the policer nodes (TS 29.244 §5.2.2.2).
static const struct reason *counted(struct worker *w, struct rte_mbuf *m, const struct reason *why)
{
	uint32_t length = packet_of(m)->length;
	struct rule *r = session_view_of(m)->rule;

	for (int before_qos = 0; before_qos < 2; before_qos++)
		usage_rule_add(w, r, length, 1, before_qos);
	rule_count(rule_account_of(r), packet_of(m)->ip_version, length);
	return why;
}

// Sends the answer to the UE, as any downlink packet of the rule. Returns the reason to drop the request.
static const struct reason *answer(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m,
	const struct ip_info *info, const uint8_t *bytes, uint32_t length)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct rule *down = way(r, far_more_of(r));
	struct rte_mbuf *reply = down == NULL ? NULL : packet_originate(w);

	if (reply == NULL)
		return &drop_no_way;
	prepare(reply, info, down, length);
	char *to = rte_pktmbuf_append(reply, (uint16_t)length);
	if (to == NULL) {
		rte_node_enqueue_x1(graph, node, packet_leave(reply, &drop_no_way, EDGE_DROP), reply);
		return &drop_no_way;
	}
	memcpy(to, bytes, length);
	rte_node_enqueue_x1(graph, node, EDGE_ANSWER, reply);
	return counted(w, m, &drop_answered);
}

// What becomes of a packet; the answer to an answered one is bytes[*length].
static const struct reason *judge(struct rte_mbuf *m, struct ip_info *info, uint8_t *bytes, uint32_t *length)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct far_more *more = far_more_of(r);
	uint32_t readable = rte_pktmbuf_data_len(m);

	if (more == NULL || more->redirect != API_REDIRECT_URL || !session_view_of(m)->uplink ||
		ip_parse(rte_pktmbuf_mtod(m, const uint8_t *), readable, packet_of(m)->length, info) != IP_OK)
		return &drop_other;
	struct http_server server = {.key = key, .location = more->location, .location_length = more->location_length};
	switch (http_answer(&server, rte_pktmbuf_mtod(m, const uint8_t *), readable, info, bytes, length)) {
	case HTTP_ANSWERED:
		if (!checksum_ok(m, info))
			return &drop_strange;
		return usage_rule_blocked(r) ? usage_quota_reason() : &drop_answered;
	case HTTP_SILENT:
		return usage_rule_blocked(r) ? usage_quota_reason() : &drop_silent;
	case HTTP_STRANGE:
		return &drop_strange;
	default:
		return &drop_other;
	}
}

static const struct reason *redirected(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	uint8_t bytes[HTTP_ANSWER_MAX];
	uint32_t length;
	struct ip_info info;
	const struct reason *why = judge(m, &info, bytes, &length);

	if (why == &drop_answered)
		return answer(graph, node, w, m, &info, bytes, length);
	return why == &drop_silent ? counted(w, m, why) : why;
}

static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct far_more *more = far_more_of(r);
	uint8_t bytes[HTTP_ANSWER_MAX];
	uint32_t length;
	struct ip_info info;
	const struct reason *why = judge(m, &info, bytes, &length);

	if (why == &drop_answered && way(r, more) == NULL)
		why = &drop_no_way;
	if (why == &drop_answered)
		trace_say(to, "answered in the server's name: its HTTP request with 302 to %.*s",
			(int)more->location_length, more->location);
	return packet_leave(m, why, EDGE_DROP);
}

TRACE_STAGE("redirect", .foresee = foresee)

static uint16_t redirect(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		const struct rule *r = session_view_of(objs[i])->rule;
		const struct reason *why = redirected(graph, node, w, objs[i]);

		if (why != &drop_answered && why != &drop_silent) // those were served
			rule_account_of(r)->dropped++;
		rte_node_enqueue_x1(graph, node, packet_leave(objs[i], why, EDGE_DROP), objs[i]);
	}
	return n;
}

static struct rte_node_register redirect_node = {
	.name = "redirect",
	.process = redirect,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_ANSWER] = "@downlink", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(redirect_node)

static int start(const struct api_engine *e)
{
	key = (struct http_key){{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull}}; // replay repeats itself
	if (!engine_without_threads() && getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		return object_error(errno, "no random numbers for redirected connections");
	return 0;
}

RTE_INIT(redirect_module)
{
	module_register(start);
}
