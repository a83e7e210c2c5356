// SPDX-License-Identifier: Apache-2.0
// Node reassembly: fragments addressed to us wait here for their siblings and go back to ip-input as one packet.
//
// Each worker has its own rte_ip_frag table (what the library does and what it leaves to us is in README.md). Time is
// worker.now. Every fragment waits as `held`; the packet that they make counts as one of them, the others as `merged`.
#include "core/control.h"
#include "core/hold.h"
#include "core/node.h"
#include "core/object.h"
#include "fragment/fragment.h"
#include "wire/checksum.h"
#include "wire/ip.h"
#include <errno.h>
#include <rte_ip_frag.h>
#include <rte_log.h>

DROP_REASON(timed_out, "reassembly-timeout", "a fragment whose siblings did not all arrive within a second")
DROP_REASON(table_full, "reassembly-full", "a fragment of a new packet while engine max_fragments packets were waiting")
DROP_REASON(
	conflict, "reassembly-overlap", "fragments of one packet that overlap, leave a hole, or are more than eight")
DROP_REASON(broken, "reassembly-malformed",
	"a fragment that is empty, not a multiple of 8 bytes, past 65535 bytes, or behind other extension headers")

#define TIMEOUT_MS 1000
#define BUCKET 8

enum { TO_INPUT, DROP, EDGES };

HOLDER(reassembly_holder, "reassembly", max_fragments)

// Made by the control thread before the first walk, then used by one worker each.
static struct reassembly {
	struct rte_ip_frag_tbl *table;
	struct rte_ip_frag_death_row dead; // what the library gave up; empty between two calls
	uint64_t waiting; // fragments in the table
	uint64_t next_check; // of time-outs, ticks
} __rte_cache_aligned tables[API_MAX_WORKERS];

// While a fragment waits, tells its first segment from the others, so that a chain of fragments can be counted.
struct reassembly_view {
	uint32_t head;
};
PACKET_VIEW(reassembly_view)

static uint16_t resume; // edge of handover-rx that leads here

static int start(const struct api_engine *engine)
{
	uint64_t timeout = rte_get_tsc_hz() * TIMEOUT_MS / 1000;
	uint32_t buckets = rte_align32pow2(RTE_MAX(engine->max_fragments / BUCKET * 2, 2u));

	rte_log_set_level(RTE_LOGTYPE_USER1, RTE_LOG_WARNING); // the library tells the size of each table
	for (uint32_t i = 0; i < engine->workers && i < API_MAX_WORKERS; i++) {
		if (engine->max_fragments == 0 || tables[i].table != NULL)
			continue;
		tables[i].table = rte_ip_frag_table_create(
			buckets, BUCKET, RTE_MAX(engine->max_fragments, 1u), timeout, SOCKET_ID_ANY);
		if (tables[i].table == NULL)
			return object_error(ENOMEM, "no memory for %u packets under reassembly", engine->max_fragments);
	}
	return 0;
}

RTE_INIT(reassembly_module)
{
	module_register("reassembly", start);
	resume = resume_register("reassembly");
}

// ---- accounting ------------------------------------------------------------------------------------------------------

static void mark_heads(struct rte_mbuf *m)
{
	for (struct rte_mbuf *s = m; s != NULL; s = s->next)
		reassembly_view_of(s)->head = s == m;
}

static uint32_t count_heads(struct rte_mbuf *m)
{
	uint32_t n = 0;

	for (struct rte_mbuf *s = m; s != NULL; s = s->next)
		n += reassembly_view_of(s)->head;
	return n;
}

static void leave_table(struct worker *w, struct reassembly *r, uint32_t fragments)
{
	r->waiting -= fragments;
	w->held -= fragments;
}

// Sends what the library gave up to `drop`. An mbuf there may be a chain of several fragments; drop counts one of them.
static void bury(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct reassembly *r,
	const struct reason *why)
{
	for (uint32_t i = 0; i < r->dead.cnt; i++) {
		struct rte_mbuf *m = r->dead.row[i];
		uint32_t fragments = count_heads(m);
		leave_table(w, r, fragments);
		w->dropped += fragments - 1;
		w->reason[why->id] += fragments - 1;
		rte_node_enqueue_x1(graph, node, packet_leave(m, why, DROP), m);
	}
	r->dead.cnt = 0;
}

static void expire(struct rte_graph *graph, struct rte_node *node, struct worker *w, struct reassembly *r)
{
	uint32_t dead;

	do { // a full death row stops the library; the table is finite, so this ends
		rte_ip_frag_table_del_expired_entries(r->table, &r->dead, w->now);
		dead = r->dead.cnt;
		bury(graph, node, w, r, &timed_out);
	} while (dead > 0);
}

// ---- reassembly ------------------------------------------------------------------------------------------------------

// Checks what the library takes for granted. Sets l2_len and l3_len, which it reads. 0 when the fragment is broken.
static int prepare(struct rte_mbuf *m, struct ip_info *info)
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
		// The library looks for the fragment header right behind the IPv6 header only.
		if (p[6] != IP_PROTOCOL_FRAGMENT)
			return 0;
		header = IP6_HEADER + 8;
		offset = load16(p + IP6_HEADER + 2) & 0xfff8u;
	}
	size = info->length - header;
	if (size == 0 || (info->fragment & IP_FRAGMENT_MORE && size % 8 != 0))
		return 0;
	if (offset + size + header > UINT16_MAX) // RFC 791: total length has 16 bits ("ping of death")
		return 0;
	if (!fragment_trim(m, pkt->l3 + info->length))
		return 0;
	m->l2_len = pkt->l3;
	m->l3_len = header;
	return 1;
}

static struct rte_mbuf *add(struct worker *w, struct reassembly *r, struct rte_mbuf *m, const struct ip_info *info)
{
	uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, m->l2_len);

	if (info->version == 4)
		return rte_ipv4_frag_reassemble_packet(r->table, &r->dead, m, w->now, (struct rte_ipv4_hdr *)p);
	return rte_ipv6_frag_reassemble_packet(r->table, &r->dead, m, w->now, (struct rte_ipv6_hdr *)p,
		(struct rte_ipv6_fragment_ext *)(p + IP6_HEADER));
}

// The whole packet: the library moved IPv6 headers and left the IPv4 checksum 0.
static void finish(struct worker *w, struct reassembly *r, struct rte_mbuf *m)
{
	uint32_t fragments = count_heads(m);
	struct packet *pkt = packet_of(m);
	uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, pkt->l3);

	leave_table(w, r, fragments);
	w->merged += fragments - 1;
	pkt->fragment = 0;
	pkt->length = rte_pktmbuf_pkt_len(m) - pkt->l3;
	if (p[0] >> 4 == 4) {
		uint16_t sum = checksum_finish(checksum_add(0, p, (p[0] & 15) * 4u));
		memcpy(p + 10, &sum, 2);
	}
}

// Fragments of one packet may reach different workers (later ones have no ports for the NIC to hash), so all go to the one
// that addresses and identification choose.
static uint32_t owner_of(const uint8_t *p, const struct ip_info *info)
{
	uint32_t size = info->version == 4 ? 4 : 16;
	uint64_t sum = info->version == 4 ? load16(p + 4) : load32(p + IP6_HEADER + 4);

	sum = checksum_add(checksum_add(sum, info->source, size), info->destination, size);
	return (uint32_t)(sum * 0x9e3779b97f4a7c15ull >> 32) % worker_count();
}

static void take(
	struct rte_graph *graph, struct rte_node *node, struct worker *w, struct reassembly *r, struct rte_mbuf *m)
{
	struct rte_mbuf *whole;
	struct ip_info info;

	if (!prepare(m, &info)) {
		rte_node_enqueue_x1(graph, node, packet_leave(m, &broken, DROP), m);
		return;
	}
	uint32_t owner = owner_of(rte_pktmbuf_mtod_offset(m, const uint8_t *, m->l2_len), &info);
	if (owner != w->id) {
		worker_hand_over(w, owner, resume, m);
		return;
	}
	mark_heads(m);
	w->held++;
	r->waiting++;
	whole = add(w, r, m, &info);
	if (whole != NULL) {
		finish(w, r, whole);
		rte_node_enqueue_x1(graph, node, TO_INPUT, whole);
	}
	// Time-outs were taken out before, so the new fragment alone on the death row means: no room for it.
	bury(graph, node, w, r, r->dead.cnt == 1 && r->dead.row[0] == m ? &table_full : &conflict);
}

static uint16_t process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct reassembly *r = &tables[w->id];

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = objs[i];
		if (unlikely(r->table == NULL)) {
			rte_node_enqueue_x1(graph, node, packet_leave(m, &table_full, DROP), m);
			continue;
		}
		expire(graph, node, w, r);
		take(graph, node, w, r, m);
	}
	return n;
}

static struct rte_node_register reassembly_node = {
	.name = "reassembly",
	.process = process,
	.nb_edges = EDGES,
	.next_nodes = {[TO_INPUT] = "ip-input", [DROP] = "drop"},
};
NODE_REGISTER(reassembly_node)

// ---- time-outs when no fragment comes --------------------------------------------------------------------------------

static uint16_t age(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct reassembly *r = &tables[w->id];

	if (likely(r->waiting == 0) || w->now < r->next_check)
		return 0;
	r->next_check = w->now + w->tsc_hz / 100;
	expire(graph, node, w, r);
	return 0;
}

static struct rte_node_register reassembly_age_node = {
	.name = "reassembly-age",
	.flags = RTE_NODE_SOURCE_F,
	.process = age,
	.nb_edges = EDGES,
	.next_nodes = {[TO_INPUT] = "ip-input", [DROP] = "drop"},
};
NODE_REGISTER(reassembly_age_node)
