// SPDX-License-Identifier: Apache-2.0
#include "forward/template.h"
#include "route/ways.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <string.h>

struct template *templates[API_MAX_WORKERS];

static void fill(struct template *t, const struct path *p, const struct next_hop *hop)
{
	// An IPv4 packet's length is 16 bits; of IPv6 a little is given away.
	uint32_t most = RTE_MIN(hop->mtu, (uint32_t)UINT16_MAX);

	t->outer = p->outer;
	for (int i = 0; i < 2; i++) {
		uint32_t header = p->outer.length[i];

		next_hop_header_put(hop, t->outer.header[i] + OUTER_BYTES - header, p->outer.version);
		t->room[i] = most > header ? most - header : 0;
	}
	t->l2 = hop->l2_length;
	t->path = p;
	t->port = hop->port;
}

// The next hop; NEXT_HOP_NONE where the peer's address is link-local.
static uint32_t hop_to_peer(const struct path *p, const struct worker *w, uint32_t generation)
{
	const struct way *way = ways_find(
		ways_of(w), generation, way_table(path_vrf(p)), p->outer.version, p->want.peer.bytes, UINT32_MAX);

	return way->table != 0 ? way->index : NEXT_HOP_NONE;
}

int template_make(struct template *t, const struct worker *w, uint32_t generation, uint16_t path)
{
	const struct path *p = path_get(path);

	if (p == NULL)
		return 0;
	const struct next_hop *hop = next_hop_get(hop_to_peer(p, w, generation));
	if (!__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE))
		return 0;
	fill(t, p, hop);
	t->made = template_made(generation, path);
	return 1;
}

// template_made() keeps bits 17 up to its generation's for the next hop's index.
static_assert(MAX_NEXT_HOPS < 32768, "the mark of a flow's template has 15 bits for the next hop");

const struct template *template_of_flow(struct template *own, const struct worker *w, uint32_t generation,
	uint16_t path, const uint8_t *ip, uint32_t length)
{
	const struct path *p = path_get(path);

	if (p == NULL)
		return NULL;
	uint32_t first = hop_to_peer(p, w, generation), index = next_hop_of_flow(first, ip, length, length);
	const struct next_hop *hop = next_hop_get(index);
	uint64_t made = template_made(generation, path) | (uint64_t)index << 17;
	struct template *t = &own[(path + 97 * index) % TEMPLATES];

	if (index == first || !__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE))
		return NULL;
	if (t->made != made)
		fill(t, p, hop);
	t->made = made;
	return t;
}

int templates_create(uint32_t workers)
{
	for (uint32_t i = 0; i < workers; i++) {
		templates[i] = rte_zmalloc("templates", TEMPLATES * sizeof(struct template), CACHE_LINE);
		if (templates[i] == NULL)
			return ENOMEM;
	}
	return 0;
}
