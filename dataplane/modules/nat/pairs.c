// SPDX-License-Identifier: Apache-2.0
#include "nat/pairs.h"
#include "wire/cache_line.h"
#include <rte_malloc.h>
#include <string.h>

static int create_part(struct pair_part *p, uint32_t capacity)
{
	p->capacity = capacity;
	p->first = exact_create("nat-pairs", capacity, SOCKET_ID_ANY);
	p->pair = rte_zmalloc("nat-pairs", capacity * sizeof(*p->pair), CACHE_LINE);
	p->used = rte_zmalloc("nat-pairs", capacity * sizeof(*p->used), 0);
	for (uint32_t i = 0; p->used != NULL && i < capacity; i++)
		p->used[i] = i;
	return p->first != NULL && p->pair != NULL && p->used != NULL;
}

struct nat_pairs *nat_pairs_create(uint32_t most, uint32_t workers, uint32_t sessions)
{
	struct nat_pairs *p = rte_zmalloc("nat-pairs", sizeof(*p), CACHE_LINE);

	if (p == NULL)
		return NULL;
	p->workers = workers;
	p->of_session = rte_zmalloc("nat-pairs", sessions * sizeof(*p->of_session), CACHE_LINE);
	int good = p->of_session != NULL;
	for (uint32_t w = 0; w < workers && good; w++)
		good = create_part(&p->part[w], (most + workers - 1) / workers);
	if (good)
		return p;
	nat_pairs_free(p);
	return NULL;
}

void nat_pairs_free(struct nat_pairs *p)
{
	for (uint32_t w = 0; p != NULL && w < p->workers; w++) {
		exact_free(p->part[w].first);
		rte_free(p->part[w].pair);
		rte_free(p->part[w].used);
	}
	if (p != NULL)
		rte_free(p->of_session);
	rte_free(p);
}

static uint32_t bytes_of(const uint8_t *from, uint32_t n)
{
	uint32_t id = 0;

	memcpy(&id, from, n);
	return id;
}

static enum pair_kind gre_kind(const uint8_t *l4, uint32_t room, uint32_t *id)
{
	if (room < 4)
		return PAIR_SHORT;
	if ((l4[1] & 7) == 0) // RFC 2784 §2.3.1
		return PAIR_GRE;
	if ((l4[1] & 7) != 1 || l4[2] != 0x88 || l4[3] != 0x0b) // RFC 2637 §4.1
		return PAIR_NONE;
	if (room < 8)
		return PAIR_SHORT;
	*id = bytes_of(l4 + 6, 2);
	return PAIR_PPTP;
}

enum pair_kind nat_pair_kind(uint8_t protocol, const uint8_t *l4, uint32_t room, uint32_t *id)
{
	*id = 0;
	if (protocol == IP_PROTOCOL_GRE)
		return gre_kind(l4, room, id);
	if (protocol == IP_PROTOCOL_IPV6)
		return PAIR_6IN4;
	if (protocol != IP_PROTOCOL_ESP)
		return PAIR_NONE;
	if (room < 8)
		return PAIR_SHORT;
	*id = bytes_of(l4, 4);
	return PAIR_ESP;
}

static int has_ids(const struct pair_key *k)
{
	return k->kind == PAIR_PPTP || k->kind == PAIR_ESP;
}

static struct exact_key exact_of(const struct pair_key *k)
{
	struct exact_key e;

	exact_key_set(&e, (uint64_t)k->outside << 32 | k->remote, k->kind, 0, 0, 0, 0);
	return e;
}

static uint32_t first_of(const struct pair_part *p, const struct pair_key *k)
{
	struct exact_key e = exact_of(k);
	uint64_t at;

	return exact_lookup(p->first, exact_hash(p->first, &e), &e, &at) ? (uint32_t)at : NAT_NONE;
}

// 0: there was no place. Of a key that is held there always is.
static int set_first(struct pair_part *p, const struct pair_key *k, uint32_t at)
{
	struct exact_key e = exact_of(k);
	uint32_t hash = exact_hash(p->first, &e);

	if (at != NAT_NONE)
		return exact_add(p->first, hash, &e, at) == 0;
	exact_delete(p->first, hash, &e);
	return 1;
}

static void end(struct nat_pairs *all, struct pair_part *p, uint32_t at)
{
	struct pair *q = &p->pair[at];

	if (q->previous == NAT_NONE)
		set_first(p, &q->key, q->next);
	else
		p->pair[q->previous].next = q->next;
	if (q->next != NAT_NONE)
		p->pair[q->next].previous = q->previous;
	__atomic_fetch_sub(&all->of_session[q->session], 1, __ATOMIC_RELAXED);
	uint32_t last = p->used[--p->pairs];
	p->used[q->place] = last;
	p->pair[last].place = q->place;
	p->used[p->pairs] = at;
}

static int is_over(const struct nat_pairs *all, const struct pair *q, uint32_t now)
{
	return (int32_t)(q->expires - now) <= 0 || q->epoch != all->epoch[q->session];
}

static int waits(const struct pair *q, uint32_t now)
{
	return q->waits != 0 && (int32_t)(q->waits - now) > 0;
}

static int has(const uint32_t *ids, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++)
		if (ids[i] == id)
			return 1;
	return 0;
}

static void learn_id(uint32_t *ids, uint8_t *n, uint32_t id)
{
	*n = (uint8_t)RTE_MIN(*n + 1, PAIR_IDS);
	memmove(ids + 1, ids, (*n - 1u) * sizeof(*ids));
	ids[0] = id;
}

// Result of all pairs of a key for a packet. Expired ones are removed.
struct seen {
	struct pair *its; // of the inside address; whose the identifier is
	struct pair *waits; // for an answer, not `its`
	struct pair *only; // there is no other
	uint32_t count;
	int known; // the identifier is another one's
};

// `inside`: of the subscriber, 0: from outside. `out`: the identifier is outgoing.
static struct seen look(struct nat_pairs *all, struct pair_part *p, const struct pair_key *k, uint32_t inside,
	uint32_t id, int out, uint32_t now)
{
	struct seen s = {.count = 0};

	for (uint32_t at = first_of(p, k), next; at != NAT_NONE; at = next) {
		struct pair *q = &p->pair[at];

		next = q->next;
		if (is_over(all, q, now)) {
			end(all, p, at);
			continue;
		}
		int mine = has(out ? q->out : q->in, out ? q->outs : q->ins, id);
		s.only = s.count++ == 0 ? q : NULL;
		if (inside != 0 ? q->inside == inside : mine)
			s.its = q;
		else if (waits(q, now))
			s.waits = q;
		s.known |= inside != 0 && q->inside != inside && mine;
	}
	return s;
}

static enum pair_verdict begin(
	struct nat_pairs *all, struct pair_part *p, const struct pair_user *u, uint32_t others, struct pair **made)
{
	if (others >= PAIRS_AT_REMOTE || p->pairs == p->capacity)
		return PAIR_FULL;
	uint32_t at = p->used[p->pairs], next = first_of(p, &u->key);
	if (__atomic_fetch_add(&all->of_session[u->session], 1, __ATOMIC_RELAXED) >= u->most) {
		__atomic_fetch_sub(&all->of_session[u->session], 1, __ATOMIC_RELAXED);
		return PAIR_LIMIT;
	}
	if (!set_first(p, &u->key, at)) {
		__atomic_fetch_sub(&all->of_session[u->session], 1, __ATOMIC_RELAXED);
		return PAIR_FULL;
	}
	if (next != NAT_NONE)
		p->pair[next].previous = at;
	p->pair[at] = (struct pair){.key = u->key,
		.inside = u->inside,
		.session = u->session,
		.epoch = u->epoch,
		.next = next,
		.previous = NAT_NONE,
		.place = (uint32_t)p->pairs++};
	p->made++;
	*made = &p->pair[at];
	return PAIR_OK;
}

// A pair that waited in vain lets others begin, for as long; its packets still pass.
static void await(struct pair *q, uint32_t now)
{
	if (q->unanswered == 0 || waits(q, now) || (q->rests != 0 && (int32_t)(q->rests - now) > 0))
		return;
	q->waits = (now + PAIR_WAIT) | 1; // 0 is none
	q->rests = (q->waits + PAIR_WAIT) | 1;
}

static enum pair_verdict out(struct nat_pairs *all, struct pair_part *p, const struct pair_user *u)
{
	struct seen s = look(all, p, &u->key, u->inside, u->id, 1, u->now);
	enum pair_verdict verdict = PAIR_OK;

	if (s.its != NULL && (s.its->session != u->session || s.its->epoch != u->epoch)) {
		end(all, p, (uint32_t)(s.its - p->pair)); // of an earlier session with this address
		s.its = NULL;
		s.count--;
	}
	int is_new = s.its == NULL || (has_ids(&u->key) && !has(s.its->out, s.its->outs, u->id));
	if (is_new && (has_ids(&u->key) ? s.known || s.waits != NULL : s.count != 0))
		return PAIR_TAKEN;
	if (s.its == NULL && (verdict = begin(all, p, u, s.count, &s.its)) != PAIR_OK)
		return verdict;
	if (is_new && has_ids(&u->key)) {
		learn_id(s.its->out, &s.its->outs, u->id);
		s.its->unanswered = (uint8_t)RTE_MIN(s.its->unanswered + 1, PAIR_IDS);
	}
	if (s.waits == NULL)
		await(s.its, u->now);
	s.its->worker = u->worker;
	s.its->expires = u->now + u->timeout * NAT_SECOND;
	return PAIR_OK;
}

enum pair_verdict nat_pair_out(struct nat_pairs *all, uint32_t worker, const struct pair_user *u)
{
	enum pair_verdict verdict = out(all, &all->part[worker], u);

	all->part[worker].refused += verdict != PAIR_OK;
	return verdict;
}

const struct pair *nat_pair_in(
	struct nat_pairs *all, uint32_t worker, const struct pair_key *k, uint32_t id, uint32_t now, int learn)
{
	struct seen s = look(all, &all->part[worker], k, 0, id, 0, now);
	struct pair *q = s.its != NULL ? s.its : s.only != NULL ? s.only : s.waits;

	if (q == NULL || q == s.its || !learn || q->unanswered == 0)
		return q;
	learn_id(q->in, &q->ins, id);
	if (--q->unanswered == 0)
		q->waits = q->rests = 0;
	return q;
}

const struct pair *nat_pair_quoted(
	struct nat_pairs *all, uint32_t worker, const struct pair_key *k, uint32_t id, uint32_t now, int out)
{
	struct seen s = look(all, &all->part[worker], k, 0, id, out, now);

	return s.its != NULL ? s.its : s.only;
}

void nat_pairs_age(struct nat_pairs *all, uint32_t worker, uint32_t now, uint32_t pairs)
{
	struct pair_part *p = &all->part[worker];

	// A removed pair is replaced by the last one, so the cursor goes downwards.
	for (uint32_t n = (uint32_t)RTE_MIN(p->pairs, (uint64_t)pairs); n != 0 && p->pairs != 0; n--) {
		p->cursor = p->cursor == 0 || p->cursor > p->pairs ? (uint32_t)p->pairs - 1 : p->cursor - 1;
		const struct pair *q = &p->pair[p->used[p->cursor]];

		if (is_over(all, q, now) || !all->lives(q->session, q->worker))
			end(all, p, p->used[p->cursor]);
	}
}
