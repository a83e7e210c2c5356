// SPDX-License-Identifier: Apache-2.0
// redirect: packets of a FAR with redirect information (TS 29.244 §8.2.20, §5.4.3). HTTP is answered with 302 in the server's name;
// everything else is dropped.
#include "core/control.h"
#include "core/node.h"
#include "core/object.h"
#include "redirect/http.h"
#include "session/far_more.h"
#include <errno.h>
#include <rte_ip.h>
#include <sys/random.h>

DROP_REASON(drop_other, "redirect-not-http", "the FAR redirects to a URL, and this is not TCP from the UE to port 80")
DROP_REASON(drop_answered, "redirect-answered", "a packet of a redirected HTTP connection, which was answered")
DROP_REASON(drop_silent, "redirect-silent", "a packet of a redirected HTTP connection that needs no answer")
DROP_REASON(drop_strange, "redirect-strange",
	"TCP to port 80 that is no HTTP request of a connection that was answered, or has a wrong checksum")
DROP_REASON(
	drop_no_way, "redirect-no-way", "the session has no downlink FAR that forwards, by which the answer could go")

// The first ones are values of enum api_outer.
enum {
	EDGE_GTPU = API_OUTER_GTPU,
	EDGE_ENDPOINT = API_OUTER_ENDPOINT,
	EDGE_UDP = API_OUTER_UDP,
	EDGE_DROP = 0,
	EDGE_COUNT = 4
};

static struct http_key key;

static int checksum_ok(struct rte_mbuf *m, const struct ip_info *info)
{
	const void *ip = rte_pktmbuf_mtod(m, const void *);

	if (info->version == 4)
		return rte_ipv4_udptcp_cksum_mbuf_verify(m, ip, info->l4) == 0;
	return rte_ipv6_udptcp_cksum_mbuf_verify(m, ip, info->l4) == 0;
}

static void prepare(struct rte_mbuf *reply, const struct ip_info *info, const struct rule *r, uint32_t length)
{
	struct packet *pkt = packet_of(reply);

	pkt->l3 = 0;
	pkt->l4 = info->version == 4 ? IP4_HEADER : IP6_HEADER;
	pkt->ip_version = info->version;
	pkt->protocol = IP_PROTOCOL_TCP;
	pkt->length = length;
	*session_view_of(reply) = (struct session_view){.rule = (struct rule *)(uintptr_t)r, .qfi = r->qfi};
}

// Sends the answer back to the UE, past the policers: it is no traffic of the network's. Returns the reason to drop the request.
static const struct reason *answer(struct rte_graph *graph, struct rte_node *node, struct worker *w,
	const struct rule *r, const struct ip_info *info, const uint8_t *bytes, uint32_t length)
{
	const struct rule *down = session_downlink_rule(r);

	if (down == NULL || !(down->flags & RULE_FORWARD) || down->outer == API_OUTER_NONE || down->outer >= EDGE_COUNT)
		return &drop_no_way;
	struct rte_mbuf *reply = packet_originate(w);
	if (reply == NULL)
		return &drop_no_way;
	prepare(reply, info, down, length);
	char *to = rte_pktmbuf_append(reply, (uint16_t)length);
	if (to == NULL) {
		rte_node_enqueue_x1(graph, node, packet_leave(reply, &drop_no_way, EDGE_DROP), reply);
		return &drop_no_way;
	}
	memcpy(to, bytes, length);
	rte_node_enqueue_x1(graph, node, down->outer, reply);
	return &drop_answered;
}

static const struct reason *redirected(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct far_more *more = far_more_of(r);
	uint32_t readable = rte_pktmbuf_data_len(m), length;
	uint8_t bytes[HTTP_ANSWER_MAX];
	struct ip_info info;

	if (more == NULL || more->redirect != API_REDIRECT_URL || !session_view_of(m)->uplink ||
		ip_parse(rte_pktmbuf_mtod(m, const uint8_t *), readable, packet_of(m)->length, &info) != IP_OK)
		return &drop_other;
	struct http_server server = {.key = key, .location = more->location, .location_length = more->location_length};
	switch (http_answer(&server, rte_pktmbuf_mtod(m, const uint8_t *), readable, &info, bytes, &length)) {
	case HTTP_ANSWERED:
		return checksum_ok(m, &info) ? answer(graph, node, w, r, &info, bytes, length) : &drop_strange;
	case HTTP_SILENT:
		return &drop_silent;
	case HTTP_STRANGE:
		return &drop_strange;
	default:
		return &drop_other;
	}
}

static uint16_t redirect(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		const struct reason *why = redirected(graph, node, w, objs[i]);

		rte_node_enqueue_x1(graph, node, packet_leave(objs[i], why, EDGE_DROP), objs[i]);
	}
	return n;
}

static struct rte_node_register redirect_node = {
	.name = "redirect",
	.process = redirect,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_DROP] = "drop",
		[EDGE_GTPU] = "gtpu-encap",
		[EDGE_ENDPOINT] = "access-encap",
		[EDGE_UDP] = "udp-encap"},
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
	module_register("redirect", start);
}
