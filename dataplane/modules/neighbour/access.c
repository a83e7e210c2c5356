// SPDX-License-Identifier: Apache-2.0
// arp-access and nd-access: a subscriber asks for its gateway, and is answered in its own encapsulation.
//
// Answers only known subscribers, about the gateway addresses of their access port and, with local proxy ARP, about
// others of its networks. The question becomes the answer in place: addresses change sides, tags stay. A claim to an
// address that is not its session's is dropped (row B11). Answers to the control plane's questions whether a subscriber
// is there are punted.
#include "core/control.h"
#include "core/port.h"
#include "core/trace.h"
#include "host/host.h"
#include "host/ppp_begins.h"
#include "neighbour/neighbour.h"
#include "route/route.h"
#include "rule/endpoint.h"
#include "rule/rule.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "rule/view.h"
#include "wire/arp.h"
#include "wire/cache_line.h"
#include "wire/eth.h"
#include "wire/ip.h"
#include "wire/nd.h"
#include <string.h>

#define ANSWERS_PER_SECOND 10000 // and worker
#define ANSWERS_OF_SUBSCRIBER 100u // of these: an endless asker leaves the others theirs
#define BUCKETS (1u << 12) // of subscribers, by a secret hash: collisions cannot be aimed at

DROP_REASON(drop_unknown, "neighbour-unknown-subscriber",
	"ARP or neighbour discovery from no known subscriber. Tags, PPPoE id, MAC address and port must all fit: see "
	"show session, show subscriber")
DROP_REASON(drop_spoof, "neighbour-spoof",
	"a subscriber claims an address in ARP or neighbour discovery that it does not have. See addresses and netmask "
	"of the home router")
DROP_REASON(drop_not_gateway, "neighbour-not-gateway",
	"a subscriber asks for an address that is not its gateway's. See addresses and netmask of the home router")
DROP_REASON(drop_gratuitous, "neighbour-announcement",
	"a subscriber announces its address, which its session knows already. See addresses and netmask of the home "
	"router")
DROP_REASON(drop_rate, "neighbour-access-rate-limit",
	"more subscribers' ARP requests and solicitations than are answered. A storm of ARP or ND: look for a loop or "
	"a broken host")
DROP_REASON(drop_ppp, "neighbour-on-ppp",
	"neighbour discovery inside PPP, where there are no link-layer addresses. See addresses and netmask of the "
	"home router")
DROP_REASON(
	drop_room, "neighbour-no-room", "the frame's buffer has no room for the answer. Report it with show drop -j")

enum { EDGE_TX, EDGE_DROP, EDGE_PUNT, EDGE_COUNT };

// Each entry is used by its own worker only.
static struct {
	struct limiter limiter;
	uint64_t subscriber[BUCKETS]; // token buckets (clock/clock.h)
} cache_aligned limits[API_MAX_WORKERS];

static int start(const struct api_engine *engine)
{
	for (uint32_t i = 0; i < API_MAX_WORKERS; i++)
		limits[i].limiter = (struct limiter){.rate = ANSWERS_PER_SECOND};
	return 0;
}

static int within_limits(struct worker *w, const struct port *p, const struct endpoint_view *e, const uint8_t *mac)
{
	uint64_t cost = w->tsc_hz / ANSWERS_OF_SUBSCRIBER;
	struct exact_key k;

	endpoint_key(&k, p->index, e->s_tag, e->c_tag, e->pppoe_session, mac);
	uint64_t *bucket = &limits[w->id].subscriber[host_secret_hash(&k) % BUCKETS];
	if (bucket_lack(*bucket, w->now, w->tsc_hz) + cost > w->tsc_hz || !limiter_take(&limits[w->id].limiter, w))
		return 0;
	bucket_take(bucket, w->now, w->tsc_hz, cost);
	return 1;
}

static rte_edge_t send_back(struct rte_mbuf *m, const struct port *p)
{
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;

	endpoint_turn_back(m, p, session_endpoint_downlink(p->index, endpoint_view_of(m), mac));
	return EDGE_TX;
}

static rte_edge_t unknown(struct rte_mbuf *m, const struct port *p, const struct endpoint_view *e)
{
	return endpoint_signs_in(p->index, e) ? packet_leave(m, &punt_first_packet, EDGE_PUNT)
					      : packet_leave(m, &drop_unknown, EDGE_DROP);
}

static int is_to(const struct port *p, const uint8_t *frame)
{
	return memcmp(frame, p->mac.addr_bytes, 6) == 0;
}

// The gateway's address, or another host's of its network. A probe for one's own address (RFC 5227, RFC 4862 §5.4)
// finds it free.
static int may_answer(
	const struct port *p, const struct endpoint_view *e, const uint8_t *mac, uint8_t family, const uint8_t *target)
{
	return ip_is_gateway(family, target, p->index) ||
	       (ip_is_proxied(family, target, p->index) && !session_owns_address(p->index, e, mac, family, target));
}

static rte_edge_t arp_access(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	const struct port *p = port_get(packet_of(m)->port_in);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	static const uint8_t nobody[4];
	uint8_t asker[4], gateway[4];
	struct arp_info arp;

	if (p == NULL || e->l2_length > rte_pktmbuf_data_len(m) || e->l2_length < ETH_HEADER ||
		arp_parse(frame + e->l2_length, rte_pktmbuf_data_len(m) - e->l2_length, &arp) != ARP_OK)
		return packet_leave(m, &drop_arp_malformed, EDGE_DROP);
	if (!session_endpoint_known(p->index, e, frame + 6))
		return unknown(m, p, e);
	if (memcmp(arp.sender_mac, frame + 6, 6) != 0)
		return packet_leave(m, &drop_spoof, EDGE_DROP);
	// 0.0.0.0 asks whether an address is free (RFC 5227): for the gateway's the answer is no.
	if (memcmp(arp.sender, nobody, 4) != 0 && !session_owns_address(p->index, e, frame + 6, 4, arp.sender))
		return packet_leave(m, &drop_spoof, EDGE_DROP);
	if (arp.operation == ARP_REPLY && is_to(p, frame))
		return packet_leave(m, &punt_neighbour_answer, EDGE_PUNT);
	if (arp.operation != ARP_REQUEST || memcmp(arp.sender, arp.target, 4) == 0)
		return packet_leave(m, &drop_gratuitous, EDGE_DROP);
	if (!may_answer(p, e, frame + 6, 4, arp.target))
		return packet_leave(m, &drop_not_gateway, EDGE_DROP);
	if (!trace_is_hypothetical(m) && !within_limits(w, p, e, frame + 6))
		return packet_leave(m, &drop_rate, EDGE_DROP);
	memcpy(asker, arp.sender, 4);
	memcpy(gateway, arp.target, 4);
	rte_edge_t edge = send_back(m, p);
	arp_put(frame + e->l2_length, ARP_REPLY, p->mac.addr_bytes, gateway, frame, asker);
	return edge;
}

// Makes the frame `length` bytes long. 0 when it is in pieces or its buffer is too short.
static int resize(struct rte_mbuf *m, uint32_t length)
{
	uint32_t now = rte_pktmbuf_pkt_len(m);

	if (m->nb_segs != 1)
		return 0;
	if (now >= length)
		return rte_pktmbuf_trim(m, (uint16_t)(now - length)) == 0;
	return rte_pktmbuf_append(m, (uint16_t)(length - now)) != NULL;
}

static int sender_allowed(
	const struct port *p, const struct endpoint_view *e, const uint8_t *mac, const struct nd_info *nd)
{
	if (nd->mac != NULL && memcmp(nd->mac, mac, 6) != 0)
		return 0;
	if (nd->probe || (nd->source[0] == 0xfe && (nd->source[1] & 0xc0) == 0x80))
		return !ip_is_gateway(6, nd->source, p->index);
	return session_owns_address(p->index, e, mac, 6, nd->source);
}

static rte_edge_t nd_access(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	const struct endpoint_view *e = endpoint_view_of(m);
	const struct port *p = port_get(packet_of(m)->port_in);
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);
	uint8_t asker[16], gateway[16];
	struct nd_info nd;

	if (p == NULL || e->l2_length > readable || e->l2_length < ETH_HEADER ||
		nd_parse(frame + e->l2_length, readable - e->l2_length, total - e->l2_length, &nd) != ND_OK)
		return packet_leave(m, &drop_nd_malformed, EDGE_DROP);
	if (e->encap == API_ENCAP_QINQ_PPPOE)
		return packet_leave(m, &drop_ppp, EDGE_DROP); // RFC 5072 §5
	if (!session_endpoint_known(p->index, e, frame + 6))
		return unknown(m, p, e);
	int answer = nd.type == ND_ADVERT && (nd.flags & ND_SOLICITED) && is_to(p, frame);
	if (nd.type != ND_SOLICIT && !answer)
		return packet_leave(m, &drop_gratuitous, EDGE_DROP);
	if (!sender_allowed(p, e, frame + 6, &nd))
		return packet_leave(m, &drop_spoof, EDGE_DROP);
	if (answer)
		return packet_leave(m, &punt_neighbour_answer, EDGE_PUNT);
	if (!may_answer(p, e, frame + 6, 6, nd.target))
		return packet_leave(m, &drop_not_gateway, EDGE_DROP);
	// RFC 4389 §4.1.3.3: our answers for others have neither override nor router flag.
	uint8_t flags = ip_is_gateway(6, nd.target, p->index) ? ND_ROUTER | ND_OVERRIDE : 0;
	if (!trace_is_hypothetical(m) && !within_limits(w, p, e, frame + 6))
		return packet_leave(m, &drop_rate, EDGE_DROP);
	// RFC 4861 §7.2.4: a sender without an address is answered through the group.
	memcpy(asker, nd.probe ? all_nodes : nd.source, 16);
	memcpy(gateway, nd.target, 16);
	if (!resize(m, e->l2_length + ND_LENGTH))
		return packet_leave(m, &drop_room, EDGE_DROP);
	rte_edge_t edge = send_back(m, p);
	nd_put_na(frame + e->l2_length, gateway, asker, gateway, p->mac.addr_bytes,
		flags | (nd.probe ? 0 : ND_SOLICITED));
	return edge;
}

static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	if (strcmp(next, "port-tx") == 0)
		trace_say(to, "a question of a subscriber: its answer goes on");
}

TRACE_STAGE("arp-access", .after = after, .pure = 1)
TRACE_STAGE("nd-access", .after = after, .pure = 1)

NODE_EACH(arp_access_process, arp_access)

NODE_EACH(nd_access_process, nd_access)

static struct rte_node_register arp_access_node = {
	.name = "arp-access",
	.process = arp_access_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx", [EDGE_DROP] = "drop", [EDGE_PUNT] = "access-punt"},
};
NODE_REGISTER(arp_access_node)

static struct rte_node_register nd_access_node = {
	.name = "nd-access",
	.process = nd_access_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_TX] = "port-tx", [EDGE_DROP] = "drop", [EDGE_PUNT] = "access-punt"},
};
NODE_REGISTER(nd_access_node)

RTE_INIT(neighbour_access)
{
	module_register(start);
}
