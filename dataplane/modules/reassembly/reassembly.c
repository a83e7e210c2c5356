// SPDX-License-Identifier: Apache-2.0
// Node reassembly: fragments to us wait here for the rest and return to ip-input as one packet.
//
// Each worker has its own table (datagram.h). Time is worker.now. Waiting fragments count as `held`; a completed packet
// counts as one of them, the others as `merged`.
#include "core/control.h"
#include "core/object.h"
#include "reassembly/datagram.h"
#include "wire/cache_line.h"
#include "wire/ecn.h"
#include "wire/ip.h"
#include <errno.h>

DROP_REASON(timed_out, "reassembly-timeout",
	"a fragment whose siblings did not all arrive within a second. Loss on the way, or an attack")
DROP_REASON(conflict, "reassembly-overlap",
	"fragments of one packet that overlap, pass its end, or are more than eight. Loss on the way, or an attack")
DROP_REASON(mixed, "reassembly-ecn",
	"fragments of one packet, some marked for congestion, some not ECN-capable (RFC 3168 §5.3). Look for a router "
	"on the way that fragments and marks wrongly")
DROP_REASON(broken, "reassembly-malformed",
	"a fragment that is empty, no multiple of 8 bytes, past 65535 bytes, or behind other extension headers. Loss "
	"on the way, or an attack")

// Made by the control thread before the first walk; then each worker uses its own.
static struct reassembly {
	struct datagrams *table;
	uint64_t next_check; // of time-outs, ticks
} cache_aligned tables[API_MAX_WORKERS];

static uint16_t resume; // edge of handover-rx that leads here

static int start(const struct api_engine *engine)
{
	for (uint32_t i = 0; i < engine->workers && i < API_MAX_WORKERS; i++) {
		if (fragments_holder.share == 0 || tables[i].table != NULL)
			continue;
		// Half each, so that neither uses the other's.
		uint32_t share = fragments_holder.share, through = share / 2;
		tables[i].table = datagrams_create(share - through, &timed_out);
		if (tables[i].table == NULL || follow_start(i, through) != 0)
			return object_error(ENOMEM, "no memory for %u buffers of fragments", engine->max_fragments);
	}
	return 0;
}

RTE_INIT(reassembly_module)
{
	module_register(start);
	resume = resume_register("reassembly");
}

// Checks the fragment and finds its place: l2_len and l3_len are the bytes before its data. 0 when it is broken.
static int prepare(struct rte_mbuf *m, struct ip_info *info, struct piece *piece)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	uint32_t available = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);
	uint32_t header, offset, size;

	if (pkt->l3 > available || pkt->l3 >= 128 /* l2_len has 7 bits */)
		return 0;
	if (ip_parse(p, available - pkt->l3, total - pkt->l3, info) != IP_OK || info->fragment == 0)
		return 0;
	if (info->version == 4) {
		header = (p[0] & 15) * 4u;
		offset = (load16(p + 6) & 0x1fffu) * 8;
	} else {
		// Only right behind the IPv6 header.
		if (p[6] != IP_PROTOCOL_FRAGMENT)
			return 0;
		header = IP6_HEADER + 8;
		offset = load16(p + IP6_HEADER + 2) & 0xfff8u;
	}
	if (pkt->l3 + header > available)
		return 0;
	size = info->length - header;
	if (size == 0 || (info->fragment & IP_FRAGMENT_MORE && size % 8 != 0))
		return 0;
	if (offset + size + header > UINT16_MAX) // RFC 791: total length has 16 bits ("ping of death")
		return 0;
	if (!packet_trim(m, pkt->l3 + info->length))
		return 0;
	m->l2_len = pkt->l3;
	m->l3_len = header;
	*piece = (struct piece){.m = m, .offset = offset, .length = size, .ecn = ip_ecn(info->version, p)};
	return 1;
}

// All pieces are here. The packet goes on, or all are dropped.
static void finish(const struct visit *v, struct datagram *d)
{
	struct rte_mbuf *m;

	for (uint8_t i = 0; i < d->pieces; i++)
		datagram_let_go(v->w, d->piece[i].m);
	m = datagram_join(d);
	if (d->ecn & 1 << ECN_CE) {
		uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3);

		ip_traffic_class_set(d->key.version, ip, ip_traffic_class(d->key.version, ip) | ECN_CE);
	}
	// A card's verdict on the first fragment does not hold for the whole.
	m->ol_flags &= ~(uint64_t)(RTE_MBUF_F_RX_L4_CKSUM_MASK | RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK);
	v->w->merged += d->pieces - 1;
	datagram_remove(v->t, d);
	struct packet *pkt = packet_of(m);
	pkt->fragment = 0;
	pkt->length = rte_pktmbuf_pkt_len(m) - pkt->l3;
	rte_node_enqueue_x1(v->graph, v->node, DATAGRAM_TO_INPUT, m);
}

static void drop(const struct visit *v, struct rte_mbuf *m, const struct reason *why)
{
	rte_node_enqueue_x1(v->graph, v->node, packet_leave(m, why, DATAGRAM_DROP), m);
}

static void wait(const struct visit *v, const struct datagram_key *key, const struct piece *piece, int more)
{
	struct datagram *d = datagram_enter(v, key, piece->m->nb_segs);

	if (d == NULL) {
		drop(v, piece->m, fragments_source_full);
		return;
	}
	if (!datagram_add(d, piece, more)) {
		drop(v, piece->m, &conflict);
		datagram_give_up(v, d, &conflict);
		return;
	}
	datagram_hold(v->w, v->t, d, piece->m);
	d->ecn |= (uint8_t)(1 << piece->ecn);
	if (!datagram_complete(d))
		return;
	// RFC 791 §3.1: the total length has 16 bits, and the first header may be longer than the last.
	if (d->piece[0].m->l3_len + d->total > UINT16_MAX)
		datagram_give_up(v, d, &conflict);
	else if ((d->ecn & (1 << ECN_CE | 1 << ECN_NOT_ECT)) == (1 << ECN_CE | 1 << ECN_NOT_ECT))
		datagram_give_up(v, d, &mixed);
	else
		finish(v, d);
}

static void take(const struct visit *v, struct rte_mbuf *m)
{
	const struct follow_scope scope = {.kind = FOLLOW_VRF, .of = {packet_of(m)->vrf}};
	struct datagram_key key;
	struct piece piece;
	struct ip_info info;

	if (!prepare(m, &info, &piece)) {
		drop(v, m, &broken);
		return;
	}
	datagram_key_of(&key, &scope, info.version, rte_pktmbuf_mtod_offset(m, const uint8_t *, m->l2_len));
	uint32_t owner = datagram_owner(&key);
	if (owner != v->w->id)
		worker_hand_over(v->w, owner, resume, 0, m);
	else
		wait(v, &key, &piece, info.fragment & IP_FRAGMENT_MORE);
}

static uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	const struct visit v = {.w = w, .t = tables[w->id].table, .graph = graph, .node = node};

	if (v.t != NULL)
		datagrams_expire(&v);
	for (uint16_t i = 0; i < n; i++) {
		if (likely(v.t != NULL))
			take(&v, objs[i]);
		else
			drop(&v, objs[i], fragments_full);
	}
	return n;
}

static struct rte_node_register reassembly_node = {
	.name = "reassembly",
	.process = process,
	.nb_edges = DATAGRAM_EDGES,
	.next_nodes = {[DATAGRAM_TO_INPUT] = "@input-ip", [DATAGRAM_DROP] = "drop"},
};
NODE_REGISTER(reassembly_node)

// Time-outs when no fragment comes.

static uint16_t age(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct reassembly *r = &tables[w->id];
	struct datagrams *const table[] = {r->table, follow_table(w->id)};
	int more = 0;

	if (r->table == NULL || likely(datagram_oldest(table[0]) == NULL && datagram_oldest(table[1]) == NULL))
		return 0;
	if (w->now < r->next_check) {
		worker_due(w, r->next_check);
		return 0;
	}
	for (int i = 0; i < 2; i++)
		more |= datagrams_expire(&(struct visit){.w = w, .t = table[i], .graph = graph, .node = node});
	// Expired ones beyond this visit: in the next walk.
	if (!more)
		r->next_check = w->now + w->tsc_hz / 100;
	return 0;
}

static struct rte_node_register reassembly_age_node = {
	.name = "reassembly-age",
	.flags = RTE_NODE_SOURCE_F,
	.process = age,
	.nb_edges = DATAGRAM_EDGES,
	.next_nodes = {[DATAGRAM_TO_INPUT] = "@input-ip", [DATAGRAM_DROP] = "drop"},
};
NODE_REGISTER(reassembly_age_node)
