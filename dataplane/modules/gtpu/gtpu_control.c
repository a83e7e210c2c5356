// SPDX-License-Identifier: Apache-2.0
// gtpu-control: GTP-U messages other than user data (TS 29.281 §7), and G-PDUs of tunnels that do not exist.
#include "core/control.h"
#include "core/event.h"
#include "core/node.h"
#include "core/trace.h"
#include "gtpu/gtpu.h"
#include "path/path.h"
#include "rule/rule.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "rule/view.h"
#include <string.h>

DROP_REASON(drop_teid, "gtpu-teid-unknown",
	"no session has this TEID; answered with an Error Indication within the rate limit. See show association: "
	"sessions of the peer that are not ours, teid_downlink, local of the path")
DROP_REASON(drop_teid_zero, "gtpu-teid-zero",
	"a G-PDU with TEID 0, which is never answered (TS 29.281 §7.3.1). Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_echo_rate, "gtpu-echo-rate-limit",
	"more GTP-U Echo Requests than engine.rates.echo allows. A flood, or engine.rates is low: see show punt")
DROP_REASON(drop_echo, "gtpu-echo-malformed",
	"a GTP-U Echo message that cannot be answered. Capture it: the peer's GTP-U or UDP is wrong")
DROP_REASON(drop_error, "gtpu-error-indication-malformed",
	"an Error Indication without TEID or address, or with a TEID in its header. Capture it: the peer's GTP-U or "
	"UDP is wrong")
DROP_REASON(drop_forged, "gtpu-error-indication-stranger",
	"an Error Indication from an address that is no peer of ours. Forged, or a peer without path: see show path")
DROP_REASON(drop_required, "gtpu-extension-unknown",
	"an extension header must be understood and is not; answered within the rate limit. Capture it: the peer's "
	"GTP-U or UDP is wrong")
DROP_REASON(drop_end_marker, "gtpu-end-marker-unknown",
	"an End Marker for a tunnel that does not exist. Normal after a handover; many: see show association")
DROP_REASON(drop_message, "gtpu-message-unknown",
	"a GTP-U message type that is not served. Capture it: the peer's GTP-U or UDP is wrong")
PUNT_REASON(punt_echo, "gtpu-echo-response", "an answer to our Echo Request", .control = CONTROL_PROTOCOL)
PUNT_REASON(punt_error, "gtpu-error-indication", "a peer does not know a tunnel that we send to",
	.control = CONTROL_PROTOCOL)
PUNT_REASON(punt_end, "gtpu-end-marker",
	"the last packet of a tunnel that moved, whose session has no tunnel behind it", .control = CONTROL_PROTOCOL)

enum { EDGE_OUTPUT, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };
#define EDGE_GONE EDGE_COUNT // handed over to the session's worker

static uint16_t resume; // of packets handed over to this node
static uint16_t output; // edge of handover-rx that leads to ip-output

// Separate limits for peers and for all others: floods do not use up the peers' answers. Each is its worker's.
enum { STRANGER, PEER, SENDERS };
static struct {
	struct limiter error[SENDERS][API_MAX_WORKERS], echo[SENDERS][API_MAX_WORKERS];
} limits;

// Outer addresses of the packet that is being answered: ours and the peer's.
struct ends {
	uint8_t version, length; // of an address
	uint8_t vrf; // that it came in by
	uint8_t local[16], peer[16];
};

static void read_ends(struct rte_mbuf *m, struct ends *e)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, t->outer_l3);

	e->version = t->outer_version;
	e->vrf = packet_of(m)->vrf;
	e->length = e->version == 4 ? 4 : 16;
	memcpy(e->peer, ip + (e->version == 4 ? 12 : 8), e->length);
	memcpy(e->local, ip + (e->version == 4 ? 16 : 24), e->length);
}

static const struct path *path_of(struct rte_mbuf *m)
{
	struct ends e;

	read_ends(m, &e);
	return path_between(e.version, e.local, e.peer);
}

// Writes outer IP and UDP from us to the peer in front of a message of `length` bytes that `m` holds at its data start.
static int wrap(struct rte_mbuf *m, const struct ends *e, uint32_t length, uint16_t port)
{
	uint32_t header = e->version == 4 ? 20 : 40;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)(header + 8));

	if (ip == NULL)
		return -1;
	memset(ip, 0, header + 8);
	ip[0] = e->version == 4 ? 0x45 : 0x60;
	ip[e->version == 4 ? 8 : 7] = 64;
	ip[e->version == 4 ? 9 : 6] = 17;
	memcpy(ip + (e->version == 4 ? 12 : 8), e->local, e->length);
	memcpy(ip + (e->version == 4 ? 16 : 24), e->peer, e->length);
	store16(ip + header, GTPU_PORT);
	store16(ip + header + 2, port);
	path_finish_outer(m, e->vrf, e->version, header + 8 + length);
	memset(session_view_of(m), 0, sizeof(struct session_view));
	return 0;
}

// Reports a fault to the packet's sender, within the limit of such messages (rows G14, G17). The destination port is
// 2152 (TS 29.281 §4.4.2.3 ff.). Returns 1 when it was sent.
static int tell_peer(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m,
	const struct ends *e, const uint8_t *message, unsigned length)
{
	struct rte_mbuf *reply = packet_originate(w);

	if (reply == NULL)
		return 0;
	memcpy(rte_pktmbuf_append(reply, (uint16_t)length), message, length);
	if (wrap(reply, e, length, GTPU_PORT) != 0) {
		rte_node_enqueue_x1(graph, node, packet_leave(reply, &drop_echo, EDGE_DROP), reply);
		return 0;
	}
	rte_node_enqueue_x1(graph, node, EDGE_OUTPUT, reply);
	return 1;
}

static int may_tell(struct rte_mbuf *m, const struct worker *w, struct limiter (*of)[API_MAX_WORKERS])
{
	return limiter_take(&of[path_of(m) != NULL ? PEER : STRANGER][w->id], w);
}

static void send_error_indication(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	uint8_t message[GTPU_MESSAGE_MAX];
	struct ends e;

	if (!may_tell(m, w, limits.error))
		return;
	read_ends(m, &e);
	unsigned length = gtpu_put_error_indication(message, tunnel_view_of(m)->teid, e.version, e.local);
	const struct path *p = path_between(e.version, e.local, e.peer);
	if (tell_peer(graph, node, w, m, &e, message, length) && p != NULL)
		path_counters_of(p->index, w->id)->errors_sent++;
}

// TS 29.281 §5.2.1, §7.2.3: the peer learns which extension headers are understood.
static rte_edge_t unknown_extension(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	uint8_t message[GTPU_MESSAGE_MAX];
	struct ends e;

	if (may_tell(m, w, limits.error)) {
		read_ends(m, &e);
		unsigned length = gtpu_put_supported_extensions(message, 0);
		tell_peer(graph, node, w, m, &e, message, length);
	}
	return packet_leave(m, &drop_required, EDGE_DROP);
}

static rte_edge_t unknown_tunnel(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	if (tunnel_view_of(m)->teid == 0)
		return packet_leave(m, &drop_teid_zero, EDGE_DROP);
	send_error_indication(graph, node, w, m);
	return packet_leave(m, &drop_teid, EDGE_DROP);
}

// Answered in place, with any IEs (row G18), to the source port (TS 29.281 §4.4.2.2).
static rte_edge_t echo_request(struct worker *w, struct rte_mbuf *m)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	uint16_t sequence = t->sequence, gtpu = t->gtpu;
	struct ends e;

	if (!may_tell(m, w, limits.echo))
		return packet_leave(m, &drop_echo_rate, EDGE_DROP);
	if (m->nb_segs != 1 || !t->has_sequence || rte_pktmbuf_data_len(m) < gtpu)
		return packet_leave(m, &drop_echo, EDGE_DROP);
	read_ends(m, &e);
	uint16_t port = load16(rte_pktmbuf_mtod_offset(m, const uint8_t *, gtpu - 8));
	rte_pktmbuf_adj(m, gtpu);
	rte_pktmbuf_trim(m, rte_pktmbuf_data_len(m));
	uint8_t *message = (uint8_t *)rte_pktmbuf_append(m, GTPU_MESSAGE_MAX);
	if (message == NULL)
		return packet_leave(m, &drop_echo, EDGE_DROP);
	unsigned length = gtpu_put_echo_response(message, sequence);
	rte_pktmbuf_trim(m, (uint16_t)(GTPU_MESSAGE_MAX - length));
	if (wrap(m, &e, length, port) != 0)
		return packet_leave(m, &drop_echo, EDGE_DROP);
	return EDGE_OUTPUT;
}

static rte_edge_t echo_response(struct worker *w, struct rte_mbuf *m)
{
	const struct path *p = path_of(m);

	if (p == NULL)
		return packet_leave(m, &drop_echo, EDGE_DROP);
	path_counters_of(p->index, w->id)->echo_received++;
	return packet_leave(m, &punt_echo, EDGE_PUNT);
}

static int error_ies(struct rte_mbuf *m, struct gtpu_ies *ies)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	uint32_t at = t->gtpu + t->header_length;

	return rte_pktmbuf_data_len(m) >= at &&
	       gtpu_ies_parse(rte_pktmbuf_mtod_offset(m, const uint8_t *, at), rte_pktmbuf_data_len(m) - at, ies) ==
		       GTPU_OK &&
	       ies->has_teid && ies->family != 0;
}

// TS 29.281 §7.3.1: the header's TEID is 0; IEs have the tunnel's TEID and the address that it was sent to. Sender and
// address must be peers of ours (row G17). The control plane finds the session.
static rte_edge_t error_indication(struct worker *w, struct rte_mbuf *m)
{
	struct gtpu_ies ies;
	struct ends e;

	if (tunnel_view_of(m)->teid != 0 || !error_ies(m, &ies))
		return packet_leave(m, &drop_error, EDGE_DROP);
	read_ends(m, &e);
	const struct path *p = path_between(e.version, e.local, e.peer);
	if (p == NULL || ies.family != e.version || path_between(e.version, e.local, ies.address) == NULL)
		return packet_leave(m, &drop_forged, EDGE_DROP);
	path_counters_of(p->index, w->id)->errors_received++;
	return packet_leave(m, &punt_error, EDGE_PUNT);
}

// A tunnel of a downlink FAR that is in use: End Markers follow the user's packets through SGW-U and N9 UPF (TS 23.401
// §5.5.1.1.2, TS 23.502 §4.9.1.3.2).
static int passes_on(const struct rule *r)
{
	return r->outer == API_OUTER_GTPU && !r->no_relay && (r->flags & (RULE_FORWARD | RULE_UPLINK)) == RULE_FORWARD;
}

// 1 when the tunnel of rule r has had its End Marker: PDRs of one F-TEID mostly share a FAR.
static int ended_already(const struct rule *first, const struct rule *r)
{
	for (const struct rule *o = first; o != r; o = &session_pools.rule[session_pools.match[rule_index(o)].next])
		if (passes_on(o) && o->action.path == r->action.path && o->action.teid == r->action.teid)
			return 1;
	return 0;
}

// One End Marker for each tunnel behind the F-TEID: the received packet becomes the first, the others are originated.
// Returns 1 when m was used.
static int pass_end_marker(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m,
	struct rule *first, uint8_t order)
{
	uint8_t hops = packet_of(m)->hops;
	uint32_t next, used = 0;

	for (uint32_t i = rule_index(first), n = 0; i != RULE_NONE && n < API_MAX_PDR; i = next, n++) {
		const struct rule *r = &session_pools.rule[i];
		const struct path *p = passes_on(r) ? path_get(r->action.path) : NULL;

		next = session_pools.match[i].next;
		if (p == NULL || ended_already(first, r))
			continue;
		struct rte_mbuf *out = used ? packet_originate(w) : m;
		if (out == NULL)
			break;
		if (!used)
			rte_pktmbuf_reset(m);
		used = 1;
		packet_of(out)->hops = hops; // as the first's: sessions may send them round in a circle
		// TS 29.281 §7.3.2: behind the last packet of the tunnel, which may be in this walk and have more nodes
		// before it.
		if (gtpu_put_end_marker_packet(out, p, &r->action) == 0)
			worker_hand_over(w, w->id, output, order, out);
		else
			rte_node_enqueue_x1(graph, node, packet_leave(out, &drop_echo, EDGE_DROP), out);
	}
	return (int)used;
}

static rte_edge_t end_marker(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	const struct tunnel_view *t = tunnel_view_of(m);
	struct rule *first = session_fteid_rule(t->teid, t->local);
	uint8_t order = order_of(flow_entry_key(w, fteid_key(t->teid, t->local)));

	if (first == NULL)
		return packet_leave(m, &drop_end_marker, EDGE_DROP);
	if (first->worker != w->id) {
		worker_hand_over(w, first->worker, resume, order, m);
		return EDGE_GONE;
	}
	const struct reason *stranger = session_stranger(m, first);
	if (stranger != NULL)
		return packet_leave(m, stranger, EDGE_DROP);
	const struct path *p = path_of(m);
	if (p != NULL)
		path_counters_of(p->index, w->id)->end_markers++;
	if (m->nb_segs == 1 && pass_end_marker(graph, node, w, m, first, order))
		return EDGE_GONE;
	return packet_leave(m, &punt_end, EDGE_PUNT);
}

static rte_edge_t message(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct rte_mbuf *m)
{
	if (tunnel_view_of(m)->header_length == 0)
		return unknown_extension(graph, node, w, m);
	switch (tunnel_view_of(m)->message) {
	case GTPU_GPDU:
		return unknown_tunnel(graph, node, w, m);
	case GTPU_ECHO_REQUEST:
		return echo_request(w, m);
	case GTPU_ECHO_RESPONSE:
		return echo_response(w, m);
	case GTPU_ERROR_INDICATION:
		return error_indication(w, m);
	case GTPU_END_MARKER:
		return end_marker(graph, node, w, m);
	default:
		return packet_leave(m, &drop_message, EDGE_DROP);
	}
}

// Of a hypothetical message: no limit is asked, nothing is sent or counted.
static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct tunnel_view *t = tunnel_view_of(m);

	if (t->header_length == 0) {
		trace_say(to, "its sender is sent Supported Extension Headers Notification");
		return packet_leave(m, &drop_required, EDGE_DROP);
	}
	switch (t->message) {
	case GTPU_GPDU:
		if (t->teid != 0)
			trace_say(to, "its sender is sent Error Indication");
		return packet_leave(m, t->teid != 0 ? &drop_teid : &drop_teid_zero, EDGE_DROP);
	case GTPU_ECHO_REQUEST:
		trace_say(to, "answered with Echo Response");
		return TRACE_ENDS;
	case GTPU_ECHO_RESPONSE:
		return packet_leave(m, &punt_echo, EDGE_PUNT);
	case GTPU_ERROR_INDICATION:
		return packet_leave(m, &punt_error, EDGE_PUNT);
	case GTPU_END_MARKER:
		trace_say(to, "an End Marker, which is passed on behind the packets of its tunnel");
		return TRACE_ENDS;
	default:
		return packet_leave(m, &drop_message, EDGE_DROP);
	}
}

TRACE_STAGE("gtpu-control", .foresee = foresee)

static uint16_t gtpu_control(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();

	for (uint16_t i = 0; i < n; i++) {
		rte_edge_t edge = message(graph, node, w, objs[i]);

		if (edge != EDGE_GONE)
			rte_node_enqueue_x1(graph, node, edge, objs[i]);
	}
	return n;
}

static struct rte_node_register gtpu_control_node = {
	.name = "gtpu-control",
	.process = gtpu_control,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_OUTPUT] = "ip-output", [EDGE_PUNT] = "punt", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(gtpu_control_node)

static void on_echo_response(struct rte_mbuf *m)
{
	const struct path *p = path_of(m);
	const struct tunnel_view *t = tunnel_view_of(m);
	uint32_t at = t->gtpu + t->header_length;
	struct gtpu_ies ies = {0};

	if (rte_pktmbuf_data_len(m) > at)
		gtpu_ies_parse(rte_pktmbuf_mtod_offset(m, const uint8_t *, at), rte_pktmbuf_data_len(m) - at, &ies);
	if (p != NULL && t->has_sequence)
		path_answered(p->index, t->sequence, ies.has_recovery ? ies.recovery : -1);
	rte_pktmbuf_free(m);
}

static void on_error_indication(struct rte_mbuf *m)
{
	struct api_event event = {.type = API_EVENT_ERROR_INDICATION};
	struct gtpu_ies ies;
	struct ends e;

	if (error_ies(m, &ies)) {
		read_ends(m, &e);
		event.teid = ies.teid;
		event.local.family = event.peer.family = e.version;
		event.local.prefix = event.peer.prefix = (uint8_t)(e.length * 8);
		memcpy(event.local.bytes, e.local, e.length);
		memcpy(event.peer.bytes, ies.address, e.length);
		event_raise(&event);
	}
	rte_pktmbuf_free(m);
}

static void set_rates(const struct api_engine *e)
{
	for (uint32_t i = 0; i < SENDERS; i++)
		for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
			limits.error[i][w].rate = e->error_indication_rate;
			limits.echo[i][w].rate = e->echo_rate;
		}
}

static int start(const struct api_engine *e)
{
	punt_handler_register(&punt_echo, on_echo_response);
	punt_handler_register(&punt_error, on_error_indication);
	return 0;
}

RTE_INIT(gtpu_control_module)
{
	module_register(start);
	resume = resume_register("gtpu-control");
	output = resume_register("ip-output");
	engine_watch(set_rates);
}
