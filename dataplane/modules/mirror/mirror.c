// SPDX-License-Identifier: Apache-2.0
// Which packets are copied, and what of them.
#include "mirror/mirror.h"
#include "core/node.h"
#include "forward/tunnel.h"
#include "route/address.h"
#include "rule/view.h"
#include "wire/eth.h"

DROP_REASON(drop_copy, "mirror-impossible",
	"the copy of a packet could not be sent: no route from us, no path, or too long with outer headers. See show "
	"mirror, show route to the collector, MTU")
DROP_REASON(no_buffer, "mirror-no-buffer",
	"no copy of a mirrored packet, for want of a packet buffer; the packet itself went on. See "
	"engine.packet_buffers, or rate and sample of the mirror")

static int port_in(const uint16_t range[2], uint16_t port)
{
	return port >= range[0] && port <= range[1];
}

static int any_port(const uint16_t range[2])
{
	return range[0] == 0 && range[1] == UINT16_MAX;
}

// `from` 1: the UE sent the packet.
static int matches(const struct api_mirror *x, struct rte_mbuf *m, int from)
{
	struct ip_info ip;

	if (x->direction != API_MIRROR_BOTH && x->direction != (from ? API_MIRROR_UPLINK : API_MIRROR_DOWNLINK))
		return 0;
	if (x->protocol == 0 && x->remote.family == 0 && any_port(x->ue_port) && any_port(x->remote_port))
		return 1;
	if (ip_parse(rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m), rte_pktmbuf_pkt_len(m), &ip) !=
		IP_OK)
		return 0;
	if ((x->protocol != 0 && x->protocol != ip.protocol) ||
		(x->remote.family != 0 && !ip_in_prefix(&x->remote, ip.version, from ? ip.destination : ip.source)))
		return 0;
	return port_in(x->ue_port, from ? ip.source_port : ip.destination_port) &&
	       port_in(x->remote_port, from ? ip.destination_port : ip.source_port);
}

// Counts a copy in this second, over all workers: the latest second that any has read. Returns 0 when the limit is
// reached.
static int may_copy(struct mirror *x, uint32_t rate, const struct worker *w)
{
	uint32_t second = (uint32_t)(w->now / w->tsc_hz);
	uint64_t old = __atomic_load_n(&x->window, __ATOMIC_RELAXED), next;

	if (rate == 0)
		return 1;
	for (int i = 0; i < API_MAX_WORKERS; i++) {
		int begins = (int32_t)(second - (uint32_t)(old >> 32)) > 0;

		if (!begins && (uint32_t)old >= rate)
			return 0;
		next = begins ? (uint64_t)second << 32 | 1 : old + 1;
		if (__atomic_compare_exchange_n(&x->window, &old, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return 1;
	}
	return 0; // others take what there is
}

// The bytes in front of the IP header are still there: session_strip() only moved the data's start. A packet to
// ourselves has no Ethernet header (packet.hops).
static struct rte_mbuf *copy_frame(struct worker *w, struct rte_mbuf *m, uint32_t snap)
{
	uint16_t front = session_view_of(m)->front;
	int made = front < ETH_HEADER || packet_of(m)->hops != 0;
	struct rte_mbuf *copy;

	if (front != 0 && rte_pktmbuf_prepend(m, front) == NULL)
		return NULL;
	copy = rte_pktmbuf_copy(m, w->pool, 0, made ? snap - ETH_HEADER : snap);
	if (copy != NULL && made) {
		uint8_t version = *rte_pktmbuf_mtod(copy, const uint8_t *) >> 4;
		uint8_t *p = (uint8_t *)rte_pktmbuf_prepend(copy, ETH_HEADER);

		memset(p, 0, 12);
		store16(p + 12, version == 4 ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	}
	rte_pktmbuf_adj(m, front);
	return copy;
}

static enum mirror_way finish(
	struct worker *w, struct rte_mbuf *copy, struct mirror *x, const struct mirror_target *t, int truncated)
{
	struct session_view *v = session_view_of(copy);

	v->rule = NULL; // no session's packet from here on
	switch (t->want.to) {
	case API_MIRROR_PORT:
		packet_of(copy)->port_out = t->port;
		return MIRROR_PORT;
	case API_MIRROR_GTPU:
		packet_of(copy)->length = rte_pktmbuf_pkt_len(copy);
		if (tunnel_copy(w, copy, &t->action))
			return MIRROR_IP;
		break;
	default:
		if (mirror_erspan(w, copy, x, &t->want, v->uplink, truncated) == 0)
			return MIRROR_IP;
	}
	packet_of(copy)->reason = drop_copy.id;
	return MIRROR_FAILED;
}

static enum mirror_way copy_for(
	struct worker *w, struct mirror *x, const struct mirror_target *t, struct rte_mbuf *m, struct rte_mbuf **copy)
{
	struct mirror_line *line = &x->line[w->id];
	uint32_t snap = t->want.snap != 0 ? t->want.snap : UINT32_MAX;
	int gtpu = t->want.to == API_MIRROR_GTPU;
	uint32_t whole = gtpu ? packet_of(m)->length : rte_pktmbuf_pkt_len(m) + session_view_of(m)->front;

	if (t->want.sample > 1 && line->seen++ % t->want.sample != 0)
		return MIRROR_NONE;
	if (!may_copy(x, t->want.rate, w)) {
		line->limited++;
		return MIRROR_NONE;
	}
	*copy = gtpu ? rte_pktmbuf_copy(m, w->pool, 0, RTE_MIN(snap, packet_of(m)->length)) : copy_frame(w, m, snap);
	if (*copy == NULL) {
		line->no_buffer++;
		w->reason[no_buffer.id]++;
		return MIRROR_NONE;
	}
	packet_originate_like(w, *copy, m);
	line->packets++;
	line->bytes += rte_pktmbuf_pkt_len(*copy);
	enum mirror_way way = finish(w, *copy, x, t, snap < whole);
	line->failed += way == MIRROR_FAILED;
	return way;
}

enum mirror_way mirror_copy(struct worker *w, struct rte_mbuf *m, struct rte_mbuf **copy)
{
	const struct session_view *v = session_view_of(m);
	const struct session *s = v->rule->session < session_tables.capacity
					  ? __atomic_load_n(&session_tables.session[v->rule->session], __ATOMIC_ACQUIRE)
					  : NULL;
	uint64_t set = s != NULL ? __atomic_load_n(&s->mirrors, __ATOMIC_RELAXED) : 0;

	for (; set != 0; set &= set - 1) {
		struct mirror *x = &mirrors[__builtin_ctzll(set)];
		const struct mirror_target *t = __atomic_load_n(&x->target, __ATOMIC_ACQUIRE);

		if (t != NULL && matches(&t->want, m, v->uplink))
			return copy_for(w, x, t, m, copy);
	}
	return MIRROR_NONE;
}
