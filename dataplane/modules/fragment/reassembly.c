// SPDX-License-Identifier: Apache-2.0
// Node reassembly: fragments addressed to us wait here for their siblings and go back to ip-input as one packet.
//
// Each worker has its own table (datagram.h). Time is worker.now. Every fragment waits as `held`; the packet that they
// make counts as one of them, the others as `merged`.
#include "core/control.h"
#include "core/hold.h"
#include "core/node.h"
#include "core/object.h"
#include "fragment/datagram.h"
#include "fragment/fragment.h"
#include "wire/checksum.h"
#include "wire/ecn.h"
#include "wire/ip.h"
#include <errno.h>

DROP_REASON(timed_out, "reassembly-timeout", "a fragment whose siblings did not all arrive within a second")
DROP_REASON(share_full, "reassembly-full",
	"fragments held all buffers that engine max_fragments gives them: those of the oldest packet made room")
DROP_REASON(source_full, "reassembly-source",
	"fragments of one source held a quarter of those buffers: those of its oldest packet made room")
DROP_REASON(
	conflict, "reassembly-overlap", "fragments of one packet that overlap, pass its end, or are more than eight")
DROP_REASON(mixed, "reassembly-ecn",
	"fragments of one packet, of which some are marked for congestion and some say not to know ECN (RFC 3168 "
	"section 5.3)")
DROP_REASON(broken, "reassembly-malformed",
	"a fragment that is empty, not a multiple of 8 bytes, past 65535 bytes, or behind other extension headers")

#define TIMEOUT_MS 1000
// Packets given up in one visit of a node because their time is over, the rest in the next: a stream between two nodes
// of rte_graph holds 65535 packets, and one more ends the process.
#define EXPIRE_VISIT 512

enum { TO_INPUT, DROP, EDGES };

HOLDER(reassembly_holder, "reassembly", max_fragments)

// Made by the control thread before the first walk, then used by one worker each.
static struct reassembly {
	struct datagrams *table;
	uint64_t next_check; // of time-outs, ticks
} __rte_cache_aligned tables[API_MAX_WORKERS];

static uint16_t resume; // edge of handover-rx that leads here

static int start(const struct api_engine *engine)
{
	for (uint32_t i = 0; i < engine->workers && i < API_MAX_WORKERS; i++) {
		if (reassembly_holder.share == 0 || tables[i].table != NULL)
			continue;
		tables[i].table = datagrams_create(reassembly_holder.share);
		if (tables[i].table == NULL)
			return object_error(ENOMEM, "no memory for %u buffers under reassembly", engine->max_fragments);
	}
	return 0;
}

RTE_INIT(reassembly_module)
{
	module_register("reassembly", start);
	resume = resume_register("reassembly");
}

// ---- accounting ------------------------------------------------------------------------------------------------------

static void count_in(struct worker *w, struct datagrams *t, uint32_t source, const struct rte_mbuf *m)
{
	hold_add(w, &reassembly_holder, m->nb_segs);
	t->source[source].buffers += m->nb_segs;
	w->held++;
}

static void count_out(struct worker *w, struct datagrams *t, uint32_t source, const struct rte_mbuf *m)
{
	hold_give(w, &reassembly_holder, m->nb_segs);
	t->source[source].buffers -= m->nb_segs;
	w->held--;
}

static void give_up(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t,
	struct datagram *d, const struct reason *why)
{
	for (uint8_t i = 0; i < d->pieces; i++) {
		struct rte_mbuf *m = d->piece[i].m;

		count_out(w, t, d->source, m);
		rte_node_enqueue_x1(graph, node, packet_leave(m, why, DROP), m);
	}
	datagram_remove(t, d);
}

static void expire(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t)
{
	uint64_t longest = w->tsc_hz * TIMEOUT_MS / 1000;
	struct datagram *d;

	for (int i = 0; i < EXPIRE_VISIT && (d = datagram_oldest(t)) != NULL && w->now - d->since > longest; i++)
		give_up(graph, node, w, t, d, &timed_out);
}

// Room for `buffers` of the source: the oldest goes, of the source where its own share is used, else of all. 0 when
// there can be none.
static int make_room(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t,
	uint32_t source, uint32_t buffers)
{
	struct datagram *d;

	if (buffers > RTE_MIN(t->source_share, (uint32_t)HOLD_RING_CHAIN))
		return 0;
	while (t->source[source].buffers + buffers > t->source_share && (d = datagram_oldest_of(t, source)) != NULL)
		give_up(graph, node, w, t, d, &source_full);
	while (hold_room(w, &reassembly_holder) < buffers && (d = datagram_oldest(t)) != NULL)
		give_up(graph, node, w, t, d, &share_full);
	return 1;
}

// ---- reassembly ------------------------------------------------------------------------------------------------------

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
	if (!fragment_trim(m, pkt->l3 + info->length))
		return 0;
	m->l2_len = pkt->l3;
	m->l3_len = header;
	*piece = (struct piece){.m = m, .offset = offset, .length = size, .ecn = ip_ecn(info->version, p)};
	return 1;
}

// Fragments of one packet may reach different workers (later ones have no ports for the NIC to hash), so all go to the
// one that addresses and identification choose.
static uint32_t owner_of(const uint8_t *p, const struct ip_info *info)
{
	uint32_t size = info->version == 4 ? 4 : 16;
	uint64_t sum = info->version == 4 ? load16(p + 4) : load32(p + IP6_HEADER + 4);

	sum = checksum_add(checksum_add(sum, info->source, size), info->destination, size);
	return (uint32_t)(sum * 0x9e3779b97f4a7c15ull >> 32) % worker_count();
}

// RFC 791 §3.2 and RFC 8200 §4.5: what the fragments of one packet have in common.
static void key_of(struct datagram_key *key, uint8_t vrf, const uint8_t *p, const struct ip_info *info)
{
	uint32_t size = info->version == 4 ? 4 : 16;

	memset(key, 0, sizeof(*key));
	memcpy(key->source, info->source, size);
	memcpy(key->destination, info->destination, size);
	key->version = info->version;
	key->vrf = vrf;
	key->protocol = info->version == 4 ? p[9] : 0;
	key->id = info->version == 4 ? load16(p + 4) : load32(p + IP6_HEADER + 4);
}

// All pieces are here. The packet goes on, or all of them are dropped.
static void finish(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t, struct datagram *d)
{
	struct rte_mbuf *m;

	for (uint8_t i = 0; i < d->pieces; i++)
		count_out(w, t, d->source, d->piece[i].m);
	m = datagram_join(d);
	if (d->ecn & 1 << ECN_CE) {
		uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, packet_of(m)->l3);

		ip_traffic_class_set(d->key.version, ip, ip_traffic_class(d->key.version, ip) | ECN_CE);
	}
	// What a card found of the first fragment is not true of the whole.
	m->ol_flags &= ~(uint64_t)(RTE_MBUF_F_RX_L4_CKSUM_MASK | RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK);
	w->merged += d->pieces - 1;
	datagram_remove(t, d);
	struct packet *pkt = packet_of(m);
	pkt->fragment = 0;
	pkt->length = rte_pktmbuf_pkt_len(m) - pkt->l3;
	rte_node_enqueue_x1(graph, node, TO_INPUT, m);
}

static void wait(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t,
	const struct datagram_key *key, const struct piece *piece, int more)
{
	uint32_t source = datagram_source(t, key);
	struct datagram *d;

	if (!make_room(graph, node, w, t, source, piece->m->nb_segs)) {
		rte_node_enqueue_x1(graph, node, packet_leave(piece->m, &source_full, DROP), piece->m);
		return;
	}
	d = datagram_find(t, key);
	if (d == NULL)
		d = datagram_new(t, key, w->now); // one for each buffer of the share, so there is one
	if (d == NULL || !datagram_add(d, piece, more)) {
		rte_node_enqueue_x1(graph, node, packet_leave(piece->m, &conflict, DROP), piece->m);
		if (d != NULL)
			give_up(graph, node, w, t, d, &conflict);
		return;
	}
	count_in(w, t, source, piece->m);
	d->ecn |= (uint8_t)(1 << piece->ecn);
	if (!datagram_complete(d))
		return;
	// RFC 791 §3.1: the total length has 16 bits, and the first header may be longer than the last.
	if (d->piece[0].m->l3_len + d->total > UINT16_MAX)
		give_up(graph, node, w, t, d, &conflict);
	else if ((d->ecn & (1 << ECN_CE | 1 << ECN_NOT_ECT)) == (1 << ECN_CE | 1 << ECN_NOT_ECT))
		give_up(graph, node, w, t, d, &mixed);
	else
		finish(graph, node, w, t, d);
}

static void take(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct datagrams *t, struct rte_mbuf *m)
{
	struct datagram_key key;
	struct piece piece;
	struct ip_info info;

	if (!prepare(m, &info, &piece)) {
		rte_node_enqueue_x1(graph, node, packet_leave(m, &broken, DROP), m);
		return;
	}
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, m->l2_len);
	uint32_t owner = owner_of(p, &info);
	if (owner != w->id) {
		worker_hand_over(w, owner, resume, 0, m);
		return;
	}
	key_of(&key, packet_of(m)->vrf, p, &info);
	wait(graph, node, w, t, &key, &piece, info.fragment & IP_FRAGMENT_MORE);
}

static uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct datagrams *t = tables[w->id].table;

	if (t != NULL)
		expire(graph, node, w, t);
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];

		if (likely(t != NULL))
			take(graph, node, w, t, m);
		else
			rte_node_enqueue_x1(graph, node, packet_leave(m, &share_full, DROP), m);
	}
	return n;
}

static struct rte_node_register reassembly_node = {
	.name = "reassembly",
	.process = process,
	.nb_edges = EDGES,
	.next_nodes = {[TO_INPUT] = "@input-ip", [DROP] = "drop"},
};
NODE_REGISTER(reassembly_node)

// ---- time-outs when no fragment comes --------------------------------------------------------------------------------

static uint16_t age(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct reassembly *r = &tables[w->id];

	if (r->table == NULL || likely(datagram_oldest(r->table) == NULL))
		return 0;
	if (w->now < r->next_check) {
		worker_due(w, r->next_check);
		return 0;
	}
	expire(graph, node, w, r->table);
	struct datagram *d = datagram_oldest(r->table);
	// Those whose time is over but did not fit into this visit: in the next walk.
	if (d == NULL || w->now - d->since <= w->tsc_hz * TIMEOUT_MS / 1000)
		r->next_check = w->now + w->tsc_hz / 100;
	return 0;
}

static struct rte_node_register reassembly_age_node = {
	.name = "reassembly-age",
	.flags = RTE_NODE_SOURCE_F,
	.process = age,
	.nb_edges = EDGES,
	.next_nodes = {[TO_INPUT] = "@input-ip", [DROP] = "drop"},
};
NODE_REGISTER(reassembly_age_node)
