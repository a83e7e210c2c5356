// SPDX-License-Identifier: Apache-2.0
// Data of first fragments, and later ones that wait for theirs (follow.h).
//
// Each worker has a table (datagram.h). A packet is known until all its bytes have passed, at most a second after its
// last fragment; a fragment waits for a second. If two first fragments differ in their ports, later ones follow
// neither: a receiver could combine them with the other (RFC 1858 §4, RFC 5722 §4). Each first fragment was judged by
// its own ports.
#include "reassembly/follow.h"
#include "core/control.h"
#include "core/object.h"
#include "core/trace.h"
#include "reassembly/datagram.h"
#include <errno.h>
#include <rte_mbuf_dyn.h>

DROP_REASON(no_first, "fragment-no-first",
	"a later fragment whose first did not come within a second, where rules or NAT44 ask for ports. Loss on the "
	"way, or an attack")
DROP_REASON(two_firsts, "fragment-two-firsts",
	"a fragment of a packet that has two first ones with different ports (RFC 5722). An attack, or a sender that "
	"numbers packets badly")

int follow_offset;

static struct datagrams *tables[API_MAX_WORKERS]; // one worker's each

int follow_start(uint32_t worker, uint32_t share)
{
	static const struct rte_mbuf_dynfield field = {
		.name = "isthmus_follow_head", .size = FOLLOW_HEAD, .align = FOLLOW_HEAD};

	follow_offset = rte_mbuf_dynfield_register(&field);
	if (follow_offset < 0)
		return ENOMEM;
	tables[worker] = datagrams_create(share, &no_first);
	return tables[worker] == NULL ? ENOMEM : 0;
}

struct datagrams *follow_table(uint32_t worker)
{
	return tables[worker];
}

static enum follow drop(struct rte_mbuf *m, const struct reason *why)
{
	packet_leave(m, why, 0);
	return FOLLOW_DROP;
}

// Its place in the packet, bytes.
struct part {
	uint32_t offset, size;
};

static struct part part_of(const struct packet *pkt, const uint8_t *ip)
{
	if (pkt->ip_version == 4)
		return (struct part){(load16(ip + 6) & 0x1fffu) * 8, pkt->length - (ip[0] & 15) * 4u};
	const uint8_t *header = ip6_fragment_header(ip);

	return (struct part){load16(header + 2) & 0xfff8u, pkt->length - (uint32_t)(header + 8 - ip)};
}

// The fields of the transport header at l4 by which flows differ; eight bytes are readable.
static void read_head(uint8_t head[FOLLOW_HEAD], uint8_t protocol, const uint8_t *l4)
{
	memset(head, 0, FOLLOW_HEAD);
	if (ip_has_ports(protocol) || protocol == IP_PROTOCOL_ESP) {
		memcpy(head, l4, 4);
	} else if (protocol == IP_PROTOCOL_AH) { // RFC 4302 §2.4
		memcpy(head + 4, l4 + 4, 4);
	} else if (protocol == IP_PROTOCOL_ICMP) {
		head[0] = l4[0];
		memcpy(head + 4, l4 + 4, 2);
	} else if (protocol == IP_PROTOCOL_GRE) { // RFC 2784 §2.1; RFC 2637 §4.1
		head[1] = l4[1] & 7;
		memcpy(head + 2, l4 + 2, 2);
		if (head[1] == 1)
			memcpy(head + 6, l4 + 6, 2);
	}
}

// 1 when all bytes of the packet have passed. The first and the last fragment count once. A copy of another makes the
// sums too large: then a second ends the packet. The sum of end² - offset² is total² for parts that fill it.
static int passed(struct datagram *d, const struct part *p, int more)
{
	uint32_t end = p->offset + p->size;

	if (p->offset == 0 ? d->first != FIRST_MISSING : !more && d->total != 0)
		return 0;
	d->got += p->size;
	d->squares += (uint64_t)end * end - (uint64_t)p->offset * p->offset;
	if (!more)
		d->total = end;
	return d->total != 0 && d->got == d->total && d->squares == (uint64_t)d->total * d->total;
}

static void know(struct rte_mbuf *m, const struct datagram *d)
{
	struct packet *pkt = packet_of(m);

	memcpy(follow_head(m), d->head, FOLLOW_HEAD);
	pkt->protocol = d->first_protocol; // of IPv6, the first fragment may have further headers in front of it
	pkt->fragment |= IP_FRAGMENT_FOLLOWS;
}

// They leave the inbox in the next walk, behind the first one.
static void release(struct worker *w, struct datagram *d)
{
	for (struct rte_mbuf *m = d->waiting, *next; m != NULL; m = next) {
		next = follow_next(m);
		know(m, d);
		datagram_let_go(w, m);
		worker_hand_over(w, w->id, packet_of(m)->resume, 0, m);
	}
	d->waiting = d->last = NULL;
}

static enum follow first_fragment(
	const struct visit *v, struct rte_mbuf *m, const struct datagram_key *key, const struct part *part)
{
	struct packet *pkt = packet_of(m);
	uint32_t end = RTE_MIN((uint32_t)rte_pktmbuf_data_len(m), pkt->l3 + pkt->length);
	uint8_t head[FOLLOW_HEAD];

	if ((uint32_t)pkt->l4 + FOLLOW_HEAD > end)
		return FOLLOW_ON;
	pkt->fragment |= IP_FRAGMENT_FOLLOWS;
	if (trace_is_hypothetical(m))
		return FOLLOW_ON;
	read_head(head, pkt->protocol, rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l4));
	struct datagram *d = datagram_find(v->t, key);
	if (d == NULL)
		d = datagram_enter(v, key, 1);
	if (d == NULL)
		return drop(m, fragments_full);
	if (d->first == FIRST_TWICE || (d->first == FIRST_KNOWN && (d->first_protocol != pkt->protocol ||
									   memcmp(d->head, head, FOLLOW_HEAD) != 0))) {
		d->first = FIRST_TWICE;
		return drop(m, &two_firsts);
	}
	int all = passed(d, part, 1);
	d->first = FIRST_KNOWN;
	d->first_protocol = pkt->protocol;
	memcpy(d->head, head, FOLLOW_HEAD);
	release(v->w, d);
	datagram_count(v->t, d, 1);
	datagram_touch(v->t, d, v->w->now);
	if (all)
		datagram_remove(v->t, d);
	return FOLLOW_ON;
}

static enum follow wait(
	const struct visit *v, struct rte_mbuf *m, const struct datagram_key *key, const struct part *part)
{
	struct datagram *d = datagram_enter(v, key, m->nb_segs);
	struct rte_mbuf *none = NULL;

	if (d == NULL)
		return drop(m, fragments_source_full);
	memcpy(follow_head(m), &none, sizeof(none));
	if (d->last != NULL)
		memcpy(follow_head(d->last), &m, sizeof(m));
	else
		d->waiting = m;
	d->last = m;
	datagram_hold(v->w, v->t, d, m);
	passed(d, part, packet_of(m)->fragment & IP_FRAGMENT_MORE);
	return FOLLOW_GONE;
}

static enum follow later_fragment(
	const struct visit *v, struct rte_mbuf *m, const struct datagram_key *key, const struct part *part)
{
	struct datagram *d = datagram_find(v->t, key);

	if (d != NULL && d->first == FIRST_TWICE)
		return drop(m, &two_firsts);
	if (d == NULL || d->first == FIRST_MISSING)
		return trace_is_hypothetical(m) ? drop(m, &no_first) : wait(v, m, key, part);
	know(m, d);
	if (trace_is_hypothetical(m))
		return FOLLOW_ON;
	if (passed(d, part, packet_of(m)->fragment & IP_FRAGMENT_MORE))
		datagram_remove(v->t, d);
	else
		datagram_touch(v->t, d, v->w->now);
	return FOLLOW_ON;
}

enum follow fragment_follow(struct worker *w, struct rte_mbuf *m, const struct follow_scope *scope, uint16_t resume)
{
	const struct visit v = {.w = w, .t = tables[w->id]};
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	struct datagram_key key;

	if (v.t == NULL)
		return drop(m, fragments_full);
	datagram_key_of(&key, scope, pkt->ip_version, ip);
	uint32_t owner = scope->kind == FOLLOW_SESSION ? w->id : datagram_owner(&key);
	if (owner != w->id && !trace_is_hypothetical(m)) {
		worker_hand_over(w, owner, resume, 0, m);
		return FOLLOW_GONE;
	}
	pkt->resume = (uint8_t)resume;
	const struct part part = part_of(pkt, ip);
	return pkt->fragment & IP_FRAGMENT_LATER ? later_fragment(&v, m, &key, &part)
						 : first_fragment(&v, m, &key, &part);
}
