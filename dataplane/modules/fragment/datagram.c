// SPDX-License-Identifier: Apache-2.0
// Datagrams whose fragments wait: table by key, lists by age, and the joining of the pieces.
#include "fragment/datagram.h"
#include "core/control.h"
#include "wire/checksum.h"
#include <rte_common.h>
#include <rte_jhash.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

#define MIN_OF_SOURCE 16 // buffers: two datagrams of most pieces

struct datagrams *datagrams_create(uint32_t share)
{
	uint32_t count = RTE_MAX(share, 1u), buckets = rte_align32pow2(count);
	struct datagrams *t = rte_zmalloc("reassembly", sizeof(*t), RTE_CACHE_LINE_SIZE);

	if (t == NULL)
		return NULL;
	t->list = rte_zmalloc("reassembly-list", count * sizeof(*t->list), RTE_CACHE_LINE_SIZE);
	t->bucket = rte_malloc("reassembly-buckets", buckets * sizeof(*t->bucket), RTE_CACHE_LINE_SIZE);
	if (t->list == NULL || t->bucket == NULL)
		return NULL; // the engine does not start, and the process ends
	t->mask = buckets - 1;
	t->seed = engine_without_threads() ? 0 : (uint32_t)rte_rand(); // a replay gives the same result every time
	t->source_share = RTE_MIN(RTE_MAX(share / 4, (uint32_t)MIN_OF_SOURCE), share);
	memset(t->bucket, 0xff, buckets * sizeof(*t->bucket));
	for (uint32_t i = 0; i < count; i++)
		t->list[i].next = i + 1 < count ? i + 1 : DATAGRAM_NONE;
	t->all = (struct age_list){DATAGRAM_NONE, DATAGRAM_NONE};
	for (uint32_t i = 0; i < DATAGRAM_SOURCES; i++)
		t->source[i].age = t->all;
	return t;
}

// ---- lists by age ----------------------------------------------------------------------------------------------------

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

// ---- the table -------------------------------------------------------------------------------------------------------

uint32_t datagram_source(const struct datagrams *t, const struct datagram_key *key)
{
	return rte_jhash(key->source, sizeof(key->source), t->seed) % DATAGRAM_SOURCES;
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

struct datagram *datagram_new(struct datagrams *t, const struct datagram_key *key, uint64_t now)
{
	uint32_t at = t->free, *bucket = bucket_of(t, key);
	struct datagram *d = &t->list[at];

	if (at == DATAGRAM_NONE)
		return NULL;
	t->free = d->next;
	*d = (struct datagram){.key = *key, .since = now, .source = datagram_source(t, key), .next = *bucket};
	*bucket = at;
	age_add(t, &t->all, at, AGE_ALL);
	age_add(t, &t->source[d->source].age, at, AGE_SOURCE);
	return d;
}

void datagram_remove(struct datagrams *t, struct datagram *d)
{
	uint32_t at = (uint32_t)(d - t->list), *from = bucket_of(t, &d->key);

	while (*from != at)
		from = &t->list[*from].next;
	*from = d->next;
	age_remove(t, &t->all, at, AGE_ALL);
	age_remove(t, &t->source[d->source].age, at, AGE_SOURCE);
	d->next = t->free;
	t->free = at;
}

// ---- pieces ----------------------------------------------------------------------------------------------------------

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
	// RFC 8200 §4.5: the fragment header goes, and what it names as the next one is behind the IPv6 header.
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
