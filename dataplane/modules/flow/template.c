// SPDX-License-Identifier: Apache-2.0
#include "flow/template.h"
#include "route/ways.h"
#include <errno.h>
#include <rte_malloc.h>
#include <string.h>

struct template *flow_templates[API_MAX_WORKERS];

static void fill(struct template *t, const struct path *p, const struct next_hop *hop)
{
	for (int i = 0; i < 2; i++) {
		uint8_t *end = t->header[i] + TEMPLATE_BYTES, *ip = end - p->length[i];

		memcpy(end - OUTER_LENGTH_MAX, p->header[i], OUTER_LENGTH_MAX);
		next_hop_header_put(hop, ip, p->version);
		t->outer[i] = p->length[i];
		// An IPv4 packet's length is 16 bits; of IPv6 a little is given away.
		uint32_t most = RTE_MIN(hop->mtu, (uint32_t)UINT16_MAX);
		t->room[i] = most > p->length[i] ? most - p->length[i] : 0;
	}
	t->ip4_sum = p->ip4_sum;
	t->l2 = hop->l2_length;
	t->version = p->version;
	t->class = (uint8_t)(p->want.dscp << 2);
	t->by_qfi = p->by_qfi;
	t->path = p;
	t->port = hop->port;
}

int template_make(struct template *t, const struct worker *w, uint32_t generation, uint16_t path)
{
	const struct path *p = path_get(path);

	if (p == NULL)
		return 0;
	const struct way *way =
		ways_find(ways_of(w), generation, way_table(path_vrf(p)), p->version, p->want.peer.bytes, UINT32_MAX);
	const struct next_hop *hop = next_hop_get(way->index);
	if (way->table == 0 || !__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE))
		return 0;
	fill(t, p, hop);
	t->made = template_made(generation, path);
	return 1;
}

const struct template *template_of_flow(struct template *templates, const struct worker *w, uint32_t generation,
	uint16_t path, const uint8_t *ip, uint32_t length)
{
	const struct path *p = path_get(path);

	if (p == NULL)
		return NULL;
	const struct way *way =
		ways_find(ways_of(w), generation, way_table(path_vrf(p)), p->version, p->want.peer.bytes, UINT32_MAX);
	uint32_t index = way->table == 0 ? NEXT_HOP_NONE : next_hop_of_flow(way->index, ip, length, length);
	const struct next_hop *hop = next_hop_get(index);
	uint64_t made = template_made(generation, path) | (uint64_t)index << 17;
	struct template *t = &templates[(path + 97 * index) % TEMPLATES];

	if (index == way->index || !__atomic_load_n(&hop->resolved, __ATOMIC_ACQUIRE))
		return NULL;
	if (t->made != made)
		fill(t, p, hop);
	t->made = made;
	return t;
}

int templates_create(uint32_t workers)
{
	for (uint32_t i = 0; i < workers; i++) {
		flow_templates[i] =
			rte_zmalloc("flow-templates", TEMPLATES * sizeof(struct template), RTE_CACHE_LINE_SIZE);
		if (flow_templates[i] == NULL)
			return ENOMEM;
	}
	return 0;
}
