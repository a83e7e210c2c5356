// SPDX-License-Identifier: Apache-2.0
// Mappings, blocks and subscribers of one network instance.
#include "nat/table.h"
#include "nat/pairs.h"
#include "wire/cache_line.h"
#include <rte_byteorder.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <string.h>

uint32_t nat_ranges(struct nat_range *to, const struct api_address *from, uint32_t count)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t base;

		memcpy(&base, from[i].bytes, 4);
		to[i] = (struct nat_range){.base = rte_be_to_cpu_32(base),
			.size = (uint32_t)(1ull << (32 - from[i].prefix)),
			.first = (uint32_t)all};
		all += to[i].size;
	}
	return all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static void list_append(struct nat_table *t, struct nat_part *p, uint32_t id)
{
	struct nat_block *b = &t->block[id];
	uint32_t address = id / t->per_address;

	b->subscriber = b->next = b->newer = NAT_NONE;
	b->older = p->newest;
	if (p->newest != NAT_NONE)
		t->block[p->newest].newer = id;
	else
		p->oldest = id;
	p->newest = id;
	if (p->first_of[address] != NAT_NONE)
		t->block[p->last_of[address]].next = id;
	else
		p->first_of[address] = id;
	p->last_of[address] = id;
	p->free++;
}

// The oldest of an address, of which the oldest of all is always one.
static void list_remove(struct nat_table *t, struct nat_part *p, uint32_t id)
{
	struct nat_block *b = &t->block[id];

	p->first_of[id / t->per_address] = b->next;
	if (b->older != NAT_NONE)
		t->block[b->older].newer = b->newer;
	else
		p->oldest = b->newer;
	if (b->newer != NAT_NONE)
		t->block[b->newer].older = b->older;
	else
		p->newest = b->older;
	p->free--;
}

static uint32_t blocks_of_part(const struct nat_table *t)
{
	return t->want.mode == API_NAT_DETERMINISTIC ? t->blocks : t->blocks / t->workers + 1;
}

static int create_part(struct nat_table *t, struct nat_part *p)
{
	uint64_t ports = (uint64_t)blocks_of_part(t) << t->shift;
	uint32_t most = t->want.mappings != 0 ? t->want.mappings / t->workers + 1 : UINT32_MAX;

	p->map = narrow_create("nat", (uint32_t)RTE_MIN(ports, (uint64_t)most), SOCKET_ID_ANY);
	p->used = rte_zmalloc("nat", blocks_of_part(t) * sizeof(*p->used), 0);
	p->first_of = rte_malloc("nat", t->addresses * sizeof(*p->first_of), 0);
	p->last_of = rte_malloc("nat", t->addresses * sizeof(*p->last_of), 0);
	if (p->map == NULL || p->used == NULL || p->first_of == NULL || p->last_of == NULL)
		return 0;
	memset(p->first_of, 0xff, t->addresses * sizeof(*p->first_of));
	p->oldest = p->newest = NAT_NONE;
	return 1;
}

static void fill_blocks(struct nat_table *t)
{
	for (uint32_t i = 0; i < API_NAT_ADDRESSES && t->outside[i].size != 0; i++)
		for (uint32_t k = 0; k < t->outside[i].size * t->per_address; k++) {
			struct nat_block *b = &t->block[t->outside[i].first * t->per_address + k];

			b->outside = rte_cpu_to_be_32(t->outside[i].base + k / t->per_address);
			b->first = (uint16_t)(t->want.port[0] + (k % t->per_address << t->shift));
			b->subscriber = NAT_NONE;
		}
	if (t->mask < 63)
		for (uint32_t i = 0; i < t->blocks; i++)
			t->bits[i] = UINT64_MAX << (t->mask + 1); // ports that a block does not have
	// New subscribers spread over the addresses, so that each finds further blocks of its own.
	for (uint32_t i = 0; i < t->per_address && t->want.mode == API_NAT_BLOCKS; i++)
		for (uint32_t a = 0; a < t->addresses; a++)
			list_append(t, &t->part[(a * t->per_address + i) % t->workers], a * t->per_address + i);
}

struct nat_table *nat_table_create(const struct api_nat *want, uint32_t workers, uint32_t sessions)
{
	struct nat_table *t = rte_zmalloc("nat", sizeof(*t), CACHE_LINE);

	if (t == NULL)
		return NULL;
	t->want = *want;
	t->workers = workers;
	t->shift = rte_log2_u32(want->block);
	t->mask = want->block - 1u;
	t->words = RTE_MAX(want->block / 64u, 1u);
	t->sessions = nat_ranges(t->inside, want->inside_prefix, want->inside);
	if (want->mode == API_NAT_BLOCKS)
		t->sessions = sessions;
	t->addresses = nat_ranges(t->outside, want->address, want->addresses);
	t->per_address = (want->port[1] - want->port[0] + 1u) >> t->shift;
	t->blocks = t->addresses * t->per_address;
	t->slot = rte_zmalloc("nat", ((size_t)t->blocks << t->shift) * sizeof(*t->slot), CACHE_LINE);
	t->block = rte_zmalloc("nat", t->blocks * sizeof(*t->block), CACHE_LINE);
	t->bits = rte_zmalloc("nat", (size_t)t->blocks * t->words * 8, CACHE_LINE);
	t->subscriber = rte_zmalloc("nat", t->sessions * sizeof(*t->subscriber), CACHE_LINE);
	if (want->pairs != 0)
		t->pairs = nat_pairs_create(want->pairs, workers, sessions);
	int good = (want->pairs == 0) == (t->pairs == NULL) && t->slot != NULL && t->block != NULL && t->bits != NULL &&
		   t->subscriber != NULL;
	for (uint32_t w = 0; w < workers && good; w++)
		good = create_part(t, &t->part[w]);
	if (!good) {
		nat_table_free(t);
		return NULL;
	}
	fill_blocks(t);
	return t;
}

void nat_table_free(struct nat_table *t)
{
	for (uint32_t w = 0; t != NULL && w < t->workers; w++) {
		narrow_free(t->part[w].map);
		rte_free(t->part[w].used);
		rte_free(t->part[w].first_of);
		rte_free(t->part[w].last_of);
	}
	if (t == NULL)
		return;
	nat_pairs_free(t->pairs);
	rte_free(t->slot);
	rte_free(t->block);
	rte_free(t->bits);
	rte_free(t->subscriber);
	rte_free(t);
}

static uint64_t *bits_of(const struct nat_table *t, uint32_t block)
{
	return &t->bits[(size_t)block * t->words];
}

static void unmap(struct nat_table *t, struct nat_part *p, uint32_t slot)
{
	struct nat_slot *s = &t->slot[slot];
	uint32_t block = slot >> t->shift, port = slot & t->mask;

	narrow_delete(p->map, nat_key(s->inside, s->port, s->protocol));
	s->protocol = 0;
	bits_of(t, block)[port / 64] &= ~(1ull << port % 64);
	t->block[block].used--;
	p->mappings--;
}

// Those that have expired, or all.
static void unmap_block(struct nat_table *t, struct nat_part *p, uint32_t id, uint32_t now, int all)
{
	for (uint32_t w = 0; t->block[id].used != 0 && w < t->words; w++)
		for (uint64_t bits = bits_of(t, id)[w]; bits != 0; bits &= bits - 1) {
			uint32_t port = w * 64 + (uint32_t)__builtin_ctzll(bits);
			uint32_t slot = (id << t->shift) + port;

			if (port <= t->mask && (all || (int32_t)(t->slot[slot].expires - now) <= 0))
				unmap(t, p, slot);
		}
}

static void give_back(struct nat_table *t, uint32_t worker, uint32_t id, uint32_t now)
{
	struct nat_part *p = &t->part[worker];
	struct nat_block *b = &t->block[id];

	unmap_block(t, p, id, now, 1);
	uint32_t last = p->used[--p->blocks];
	p->used[b->place] = last;
	t->block[last].place = b->place;
	b->since = now;
	if (t->want.mode == API_NAT_BLOCKS)
		list_append(t, p, id);
	__atomic_store_n(&b->subscriber, NAT_NONE, __ATOMIC_RELEASE);
	t->told(t, worker, id);
}

static void leave(struct nat_part *p, struct nat_subscriber *s)
{
	p->subscribers--;
	__atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE); // another worker may have it
}

// Returns an earlier session's blocks one by one, within this visit's work. 1 when none is left.
static int give_back_all(struct nat_table *t, const struct nat_user *u, struct nat_subscriber *s)
{
	for (uint32_t id = s->first; id != NAT_NONE && *u->work != 0; id = s->first) {
		*u->work -= RTE_MIN(*u->work, t->block[id].used + 1u);
		s->first = t->block[id].next;
		give_back(t, u->worker, id, u->now);
	}
	if (s->first != NAT_NONE)
		return 0;
	leave(&t->part[u->worker], s);
	return 1;
}

static uint32_t free_block(
	const struct nat_table *t, const struct nat_user *u, const struct nat_subscriber *s, uint32_t at)
{
	const struct nat_part *p = &t->part[u->worker];
	int first = s->owner == 0;

	if (t->want.mode == API_NAT_DETERMINISTIC)
		return at;
	// RFC 4787 REQ-2: all of a subscriber's ports are on one address.
	uint32_t id = first ? p->oldest : p->first_of[s->first / t->per_address];
	if (id == NAT_NONE || nat_rests(t, &t->block[id], u->now))
		return NAT_NONE;
	return id;
}

static uint32_t take_block(struct nat_table *t, const struct nat_user *u, uint32_t at)
{
	struct nat_part *p = &t->part[u->worker];
	struct nat_subscriber *s = &t->subscriber[at];
	uint32_t id = free_block(t, u, s, at);

	if (id == NAT_NONE)
		return NAT_NONE;
	struct nat_block *b = &t->block[id];
	if (t->want.mode == API_NAT_BLOCKS)
		list_remove(t, p, id);
	if (s->owner == 0) {
		s->session = u->session;
		s->epoch = t->epoch[u->session];
		s->first = NAT_NONE;
		p->subscribers++;
	}
	b->next = s->first;
	s->first = id;
	b->inside = u->inside;
	b->since = u->now;
	b->place = p->blocks;
	p->used[p->blocks++] = id;
	__atomic_store_n(&b->subscriber, at, __ATOMIC_RELEASE);
	__atomic_store_n(&s->owner, u->worker + 1, __ATOMIC_RELEASE);
	t->told(t, u->worker, id);
	return id;
}

// A free port of the block, from a random one on (RFC 6888 REQ-15).
static uint32_t take_port(struct nat_table *t, uint32_t block)
{
	uint64_t *bits = bits_of(t, block);
	uint32_t start = (uint32_t)rte_rand() & t->mask, at = start / 64;
	uint64_t free = ~bits[at] & UINT64_MAX << start % 64;

	for (uint32_t i = 0; free == 0 && i < t->words; i++) {
		at = (at + 1) % t->words;
		free = ~bits[at];
	}
	uint32_t bit = (uint32_t)__builtin_ctzll(free);
	bits[at] |= 1ull << bit;
	t->block[block].used++;
	return (block << t->shift) + at * 64 + bit;
}

static uint32_t place_of(const struct nat_table *t, const struct nat_user *u)
{
	return t->want.mode == API_NAT_BLOCKS ? u->session
					      : nat_range_find(t->inside, t->want.inside, rte_be_to_cpu_32(u->inside));
}

static int is_users(const struct nat_table *t, const struct nat_subscriber *s, const struct nat_user *u)
{
	return s->session == u->session && s->epoch == t->epoch[u->session];
}

NO_CANARY uint32_t nat_find_any(
	const struct nat_table *t, uint32_t worker, uint32_t inside, uint16_t port, uint8_t protocol)
{
	const struct narrow *map = t->part[worker].map;
	uint64_t slot, key = nat_key(inside, port, protocol);

	return narrow_lookup(map, narrow_hash(map, key), key, &slot) ? (uint32_t)slot : NAT_NONE;
}

NO_CANARY uint32_t nat_find(const struct nat_table *t, const struct nat_user *u)
{
	uint32_t slot = nat_find_any(t, u->worker, u->inside, u->port, u->protocol);

	return slot != NAT_NONE && is_users(t, &t->subscriber[nat_block_of(t, slot)->subscriber], u) ? slot : NAT_NONE;
}

// A block of the subscriber with a free port.
static enum nat_verdict room_for(struct nat_table *t, const struct nat_user *u, uint32_t *block)
{
	uint32_t at = place_of(t, u), n = 0;
	struct nat_subscriber *s = &t->subscriber[at];
	uint32_t owner = __atomic_load_n(&s->owner, __ATOMIC_ACQUIRE);

	if (owner != 0 && owner != u->worker + 1)
		return NAT_MOVING;
	if (owner != 0 && !is_users(t, s, u)) {
		if (!give_back_all(t, u, s))
			return NAT_MOVING;
		owner = 0;
	}
	for (uint32_t id = owner ? s->first : NAT_NONE; id != NAT_NONE; id = t->block[id].next, n++)
		if (t->block[id].used <= t->mask) {
			*block = id;
			return NAT_OK;
		}
	if (n >= u->blocks)
		return NAT_LIMIT;
	*block = take_block(t, u, at);
	return *block == NAT_NONE ? NAT_EXHAUSTED : NAT_OK;
}

enum nat_verdict nat_map(struct nat_table *t, const struct nat_user *u, uint32_t *slot)
{
	struct nat_part *p = &t->part[u->worker];
	uint64_t key = nat_key(u->inside, u->port, u->protocol);
	uint32_t block;

	*slot = nat_find(t, u);
	if (*slot != NAT_NONE)
		return NAT_OK;
	uint32_t old = nat_find_any(t, u->worker, u->inside, u->port, u->protocol);
	if (old != NAT_NONE)
		unmap(t, p, old); // of an earlier session with this address
	if (narrow_count(p->map) >= narrow_capacity(p->map))
		return NAT_FULL; // before a block is given
	enum nat_verdict verdict = room_for(t, u, &block);
	if (verdict != NAT_OK)
		return verdict;
	*slot = take_port(t, block);
	t->slot[*slot] = (struct nat_slot){
		.inside = u->inside, .port = u->port, .protocol = u->protocol, .expires = u->now + NAT_SECOND};
	p->mappings++;
	if (narrow_add(p->map, key, *slot) != 0) {
		unmap(t, p, *slot);
		return NAT_FULL;
	}
	p->made++;
	return NAT_OK;
}

uint32_t nat_owner(const struct nat_table *t, uint32_t slot)
{
	uint32_t block = slot >> t->shift;

	if (t->want.mode == API_NAT_BLOCKS)
		return block % t->workers;
	return block < t->sessions ? __atomic_load_n(&t->subscriber[block].owner, __ATOMIC_ACQUIRE) - 1 : NAT_NONE;
}

struct nat_slot *nat_enter(struct nat_table *t, uint32_t slot, uint8_t protocol, uint32_t now)
{
	struct nat_slot *s = &t->slot[slot];

	if (s->protocol != protocol || (int32_t)(s->expires - now) <= 0)
		return NULL;
	const struct nat_subscriber *who = &t->subscriber[nat_block_of(t, slot)->subscriber];
	return who->epoch == t->epoch[who->session] ? s : NULL;
}

#define TCP_FIN 1u
#define TCP_SYN 2u
#define TCP_RST 4u
#define TCP_ACK 16u
#define FINS (NAT_TCP_FIN_OUT | NAT_TCP_FIN_IN)

static int is_closing(const struct nat_slot *s)
{
	return (s->tcp & NAT_TCP_RST) || (s->tcp & FINS) == FINS;
}

// RFC 5382 REQ-5: a mapping may serve several connections; it is established while one of them may be.
static uint32_t timeout(const struct api_nat *times, const struct nat_slot *s)
{
	if (s->protocol == IP_PROTOCOL_UDP)
		return times->udp;
	if (s->protocol == IP_PROTOCOL_ICMP)
		return times->icmp;
	if (s->protocol != IP_PROTOCOL_TCP)
		return times->pair_timeout;
	return (s->tcp & NAT_TCP_OUT) && (s->tcp & NAT_TCP_IN) && !is_closing(s) ? times->tcp : times->tcp_transitory;
}

// RFC 4787 REQ-6: what the subscriber sends keeps the mapping.
void nat_refresh(const struct api_nat *times, struct nat_slot *s, uint32_t now, uint8_t flags, int data)
{
	if (s->protocol == IP_PROTOCOL_TCP) {
		if (is_closing(s) && (flags & TCP_SYN))
			s->tcp = 0; // a new connection from the same port
		else if (is_closing(s) && data && !(flags & (TCP_RST | TCP_FIN)))
			s->tcp &= NAT_TCP_OUT | NAT_TCP_IN; // another one, which lives
		s->tcp |= flags & TCP_FIN ? NAT_TCP_FIN_OUT : 0;
		s->tcp |= flags & TCP_RST ? NAT_TCP_RST : flags & TCP_ACK ? NAT_TCP_OUT : 0;
	}
	s->expires = now + timeout(times, s) * NAT_SECOND;
}

void nat_arrived(const struct api_nat *times, struct nat_slot *s, uint32_t now, uint8_t flags)
{
	if (s->protocol != IP_PROTOCOL_TCP)
		return;
	s->tcp |= flags & TCP_FIN ? NAT_TCP_FIN_IN : 0;
	s->tcp |= flags & TCP_RST ? NAT_TCP_RST : flags & TCP_ACK ? NAT_TCP_IN : 0;
	uint32_t soon = now + times->tcp_transitory * NAT_SECOND;
	if (is_closing(s) && (int32_t)(s->expires - soon) > 0)
		s->expires = soon;
}

// Returns how many mappings went.
static uint32_t age_block(struct nat_table *t, uint32_t worker, uint32_t id, uint32_t now)
{
	struct nat_block *b = &t->block[id];
	struct nat_subscriber *s = &t->subscriber[b->subscriber];
	uint32_t before = b->used;

	unmap_block(t, &t->part[worker], id, now, s->epoch != t->epoch[s->session] || !t->lives(s->session, worker));
	if (b->used != 0)
		return before - b->used;
	uint32_t *link = &s->first;
	while (*link != id)
		link = &t->block[*link].next;
	*link = b->next;
	give_back(t, worker, id, now);
	if (s->first == NAT_NONE)
		leave(&t->part[worker], s);
	return before;
}

uint32_t nat_age(struct nat_table *t, uint32_t worker, uint32_t now, uint32_t ports)
{
	struct nat_part *p = &t->part[worker];
	uint32_t looked = 0, gone = 0;

	// A removed block is replaced by the last one, so the cursor goes downwards.
	for (uint32_t n = p->blocks; n != 0 && p->blocks != 0 && looked < ports && gone < NAT_WORK; n--) {
		p->cursor = p->cursor == 0 || p->cursor > p->blocks ? p->blocks - 1 : p->cursor - 1;
		uint32_t id = p->used[p->cursor];

		looked += t->block[id].used + t->words;
		gone += age_block(t, worker, id, now);
	}
	return looked;
}
