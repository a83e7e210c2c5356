// SPDX-License-Identifier: Apache-2.0
// Incomplete datagrams: table by key, lists by age, joining of the pieces.
#include "reassembly/datagram.h"
#include "core/control.h"
#include "wire/cache_line.h"
#include "wire/checksum.h"
#include <rte_common.h>
#include <rte_jhash.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

DROP_REASON(full, "reassembly-full",
	"fragments held their half of engine.limits.fragments: those of the oldest packet made room. See "
	"engine.limits.fragments; MTU before us")
DROP_REASON(source_full, "reassembly-source",
	"fragments of one source held a quarter of that half: those of its oldest packet made room. See "
	"engine.limits.fragments; MTU before us")

const struct reason *const fragments_full = &full, *const fragments_source_full = &source_full;

HOLDER(fragments_holder, "reassembly", max_fragments)

#define MIN_OF_SOURCE 16 // buffers: two datagrams of most pieces
// Datagrams that one visit of a node may time out; the rest follow in the next. A stream between two nodes of rte_graph
// holds 65535 packets, and one more ends the process.
#define EXPIRE_VISIT 512

struct datagrams *datagrams_create(uint32_t share, const struct reason *late)
{
	uint32_t count = RTE_MAX(share, 1u), buckets = rte_align32pow2(count);
	struct datagrams *t = rte_zmalloc("reassembly", sizeof(*t), CACHE_LINE);

	if (t == NULL)
		return NULL;
	t->list = rte_zmalloc("reassembly-list", count * sizeof(*t->list), CACHE_LINE);
	t->bucket = rte_malloc("reassembly-buckets", buckets * sizeof(*t->bucket), CACHE_LINE);
	if (t->list == NULL || t->bucket == NULL)
		return NULL; // the engine does not start, and the process ends
	t->mask = buckets - 1;
	t->seed = engine_without_threads() ? 0 : (uint32_t)rte_rand(); // a replay gives the same result every time
	t->share = share;
	t->source_share = RTE_MIN(RTE_MAX(share / 4, (uint32_t)MIN_OF_SOURCE), share);
	t->late = late;
	memset(t->bucket, 0xff, buckets * sizeof(*t->bucket));
	for (uint32_t i = 0; i < count; i++)
		t->list[i].next = i + 1 < count ? i + 1 : DATAGRAM_NONE;
	t->all = (struct age_list){DATAGRAM_NONE, DATAGRAM_NONE};
	for (uint32_t i = 0; i < DATAGRAM_SOURCES; i++)
		t->source[i].age = t->all;
	return t;
}

static void age_add(struct datagrams *t, struct age_list *list, uint32_t at, int of)
{
	t->list[at].link[of] = (struct age_link){.older = list->newest, .newer = DATAGRAM_NONE};
	if (list->newest != DATAGRAM_NONE)
		t->list[list->newest].link[of].newer = at;
	else
		list->oldest = at;
	list->newest = at;
}

static void age_remove(struct datagrams *t, struct age_list *list, uint32_t at, int of)
{
	struct age_link link = t->list[at].link[of];

	if (link.older != DATAGRAM_NONE)
		t->list[link.older].link[of].newer = link.newer;
	else
		list->oldest = link.newer;
	if (link.newer != DATAGRAM_NONE)
		t->list[link.newer].link[of].older = link.older;
	else
		list->newest = link.older;
}

void datagram_key_of(struct datagram_key *key, const struct follow_scope *scope, uint8_t version, const uint8_t *ip)
{
	int six = version == 6;

	memset(key, 0, sizeof(*key));
	memcpy(key->source, ip + (six ? 8 : 12), six ? 16 : 4);
	memcpy(key->destination, ip + (six ? 24 : 16), six ? 16 : 4);
	key->scope = *scope;
	key->version = version;
	key->protocol = six ? 0 : ip[9];
	key->id = six ? load32(ip6_fragment_header(ip) + 4) : load16(ip + 4);
}

uint32_t datagram_owner(const struct datagram_key *key)
{
	uint64_t sum = checksum_add(key->id, key->source, sizeof(key->source));

	sum = checksum_add(sum, key->destination, sizeof(key->destination));
	return (uint32_t)(sum * 0x9e3779b97f4a7c15ull >> 32) % worker_count();
}

// A subscriber has one share for all addresses in its packets and frames.
static uint32_t source_of(const struct datagrams *t, const struct datagram_key *key)
{
	const struct follow_scope *s = &key->scope;
	uint32_t size = s->kind == FOLLOW_ENDPOINT ? FOLLOW_LINE : sizeof(*s);
	uint32_t hash = follow_is_subscriber(s) ? rte_jhash(s, size, t->seed)
						: rte_jhash(key->source, sizeof(key->source), t->seed);

	return hash % DATAGRAM_SOURCES;
}

static uint32_t *bucket_of(const struct datagrams *t, const struct datagram_key *key)
{
	return &t->bucket[rte_jhash(key, sizeof(*key), t->seed) & t->mask];
}

struct datagram *datagram_find(const struct datagrams *t, const struct datagram_key *key)
{
	for (uint32_t i = *bucket_of(t, key); i != DATAGRAM_NONE; i = t->list[i].next)
		if (memcmp(&t->list[i].key, key, sizeof(*key)) == 0)
			return &t->list[i];
	return NULL;
}

static struct datagram *add(struct datagrams *t, const struct datagram_key *key, uint64_t now)
{
	uint32_t at = t->free, *bucket = bucket_of(t, key);
	struct datagram *d = &t->list[at];

	if (at == DATAGRAM_NONE)
		return NULL;
	t->free = d->next;
	*d = (struct datagram){.key = *key, .since = now, .source = source_of(t, key), .next = *bucket};
	*bucket = at;
	age_add(t, &t->all, at, AGE_ALL);
	age_add(t, &t->source[d->source].age, at, AGE_SOURCE);
	return d;
}

void datagram_touch(struct datagrams *t, struct datagram *d, uint64_t now)
{
	uint32_t at = (uint32_t)(d - t->list);

	d->since = now;
	age_remove(t, &t->all, at, AGE_ALL);
	age_remove(t, &t->source[d->source].age, at, AGE_SOURCE);
	age_add(t, &t->all, at, AGE_ALL);
	age_add(t, &t->source[d->source].age, at, AGE_SOURCE);
}

void datagram_count(struct datagrams *t, struct datagram *d, uint32_t units)
{
	t->units += units - d->units;
	t->source[d->source].units += units - d->units;
	d->units = units;
}

void datagram_remove(struct datagrams *t, struct datagram *d)
{
	uint32_t at = (uint32_t)(d - t->list), *from = bucket_of(t, &d->key);

	while (*from != at)
		from = &t->list[*from].next;
	*from = d->next;
	datagram_count(t, d, 0);
	age_remove(t, &t->all, at, AGE_ALL);
	age_remove(t, &t->source[d->source].age, at, AGE_SOURCE);
	d->next = t->free;
	t->free = at;
}

void datagram_hold(struct worker *w, struct datagrams *t, struct datagram *d, const struct rte_mbuf *m)
{
	hold_add(w, &fragments_holder, m->nb_segs);
	datagram_count(t, d, d->units + m->nb_segs);
	w->held++;
}

void datagram_let_go(struct worker *w, const struct rte_mbuf *m)
{
	hold_give(w, &fragments_holder, m->nb_segs);
	w->held--;
}

static void drop(const struct visit *v, struct rte_mbuf *m, const struct reason *why)
{
	datagram_let_go(v->w, m);
	if (v->node != NULL)
		rte_node_enqueue_x1(v->graph, v->node, packet_leave(m, why, DATAGRAM_DROP), m);
	else
		worker_drop(v->w, m, why);
}

void datagram_give_up(const struct visit *v, struct datagram *d, const struct reason *why)
{
	for (uint8_t i = 0; i < d->pieces; i++)
		drop(v, d->piece[i].m, why);
	for (struct rte_mbuf *m = d->waiting, *next; m != NULL; m = next) {
		next = follow_next(m);
		drop(v, m, why);
	}
	datagram_remove(v->t, d);
}

int datagrams_expire(const struct visit *v)
{
	uint64_t longest = v->w->tsc_hz * DATAGRAM_LIFE_MS / 1000;
	struct datagram *d;

	for (int i = 0; (d = datagram_oldest(v->t)) != NULL && v->w->now - d->since > longest; i++) {
		if (i == EXPIRE_VISIT)
			return 1;
		datagram_give_up(v, d, v->t->late);
	}
	return 0;
}

static int make_room(const struct visit *v, uint32_t source, uint32_t units)
{
	struct datagrams *t = v->t;
	struct datagram *d;

	if (units > RTE_MIN(t->source_share, (uint32_t)HOLD_RING_CHAIN))
		return 0;
	while (t->source[source].units + units > t->source_share && (d = datagram_oldest_of(t, source)) != NULL)
		datagram_give_up(v, d, &source_full);
	while (t->units + units > t->share && (d = datagram_oldest(t)) != NULL)
		datagram_give_up(v, d, &full);
	return 1;
}

struct datagram *datagram_enter(const struct visit *v, const struct datagram_key *key, uint32_t units)
{
	if (!make_room(v, source_of(v->t, key), units))
		return NULL;
	struct datagram *d = datagram_find(v->t, key);
	return d != NULL ? d : add(v->t, key, v->w->now);
}

int datagram_add(struct datagram *d, const struct piece *p, int more)
{
	uint32_t end = p->offset + p->length;
	uint8_t at = d->pieces;

	if (d->pieces == DATAGRAM_PIECES || (!more && d->total != 0) || (d->total != 0 && end > d->total))
		return 0;
	while (at > 0 && d->piece[at - 1].offset > p->offset)
		at--;
	if (at > 0 && d->piece[at - 1].offset + d->piece[at - 1].length > p->offset)
		return 0;
	// Behind the end, or over the next one.
	if (at < d->pieces && (!more || end > d->piece[at].offset))
		return 0;
	memmove(&d->piece[at + 1], &d->piece[at], (d->pieces - at) * sizeof(d->piece[0]));
	d->piece[at] = *p;
	d->pieces++;
	d->got += p->length;
	if (!more)
		d->total = end;
	return 1;
}

// The first fragment's headers, as of a packet that was never fragmented.
static void join_header(struct rte_mbuf *m, uint32_t total)
{
	uint32_t l2 = m->l2_len;
	uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, l2);

	if (p[0] >> 4 == 4) {
		uint32_t header = (p[0] & 15) * 4u;

		store16(p + 2, (uint16_t)(header + total));
		store16(p + 6, 0);
		memset(p + 10, 0, 2);
		uint16_t sum = checksum_finish(checksum_add(0, p, header));
		memcpy(p + 10, &sum, 2);
		return;
	}
	// RFC 8200 §4.5: the fragment header is removed; its next header follows the IPv6 header.
	p[6] = p[IP6_HEADER];
	store16(p + 4, (uint16_t)total);
	memmove(rte_pktmbuf_mtod(m, uint8_t *) + 8, rte_pktmbuf_mtod(m, uint8_t *), l2 + IP6_HEADER);
	rte_pktmbuf_adj(m, 8);
}

struct rte_mbuf *datagram_join(struct datagram *d)
{
	struct rte_mbuf *m = d->piece[0].m;

	for (uint8_t i = 1; i < d->pieces; i++) {
		struct rte_mbuf *next = d->piece[i].m;

		rte_pktmbuf_adj(next, (uint16_t)(next->l2_len + next->l3_len));
		rte_pktmbuf_chain(m, next);
	}
	join_header(m, d->total);
	return m;
}
