// SPDX-License-Identifier: Apache-2.0
// Templates: what goes in front of a packet towards a GTP-U peer, from Ethernet to GTP-U, made once of the path and of
// the next hop to its peer. Each worker has its own, for as long as ip_ways_generation stays.
#ifndef FLOW_TEMPLATE_H
#define FLOW_TEMPLATE_H

#include "core/worker.h"
#include "path/path.h"
#include "route/route.h"

#define TEMPLATE_BYTES 96u // three stores of 32
#define TEMPLATES 1024u // of a worker, by the low bits of the path's index
static_assert(TEMPLATE_BYTES >= NEXT_HOP_HEADER + OUTER_LENGTH_MAX, "both headers fit");

struct template
{
	// Each ends where the packet begins; [1] with a PDU Session Container.
	uint8_t header[2][TEMPLATE_BYTES];
	uint64_t made; // template_made() of its path
	uint32_t ip4_sum; // path.ip4_sum
	uint32_t room[2]; // IP packets up to this length pass unfragmented
	uint16_t port;
	uint8_t outer[2]; // bytes from IP to GTP-U
	uint8_t l2;
	uint8_t version; // of the outer IP header
	uint8_t class; // the path's DSCP << 2, where none is by_qfi
	uint8_t by_qfi;
	const struct path *path; // as long as the template holds
}
__rte_cache_aligned;
extern struct template *flow_templates[API_MAX_WORKERS]; // TEMPLATES of each; written and read by its worker

static inline uint64_t template_made(uint32_t generation, uint16_t path)
{
	return (uint64_t)generation << 32 | path | 1u << 16; // no empty template has it
}

// Makes the template of the path anew. Returns 0 when there is none: no path, or no next hop that is resolved.
int template_make(struct template *t, const struct worker *w, uint32_t generation, uint16_t path);

// NULL: the full nodes have more to do. `generation`: of ip_ways_generation, read in this walk before any table.
static __rte_always_inline const struct template *template_of(
	struct template *templates, const struct worker *w, uint32_t generation, uint16_t path)
{
	struct template *t = &templates[path % TEMPLATES];

	return likely(t->made == template_made(generation, path)) || template_make(t, w, generation, path) ? t : NULL;
}

// The same where the way to the peer has next hops of equal cost: of the one that the user's packet of `length` bytes
// takes.
const struct template *template_of_flow(struct template *templates, const struct worker *w, uint32_t generation,
	uint16_t path, const uint8_t *ip, uint32_t length);

typedef uint8_t template_piece __attribute__((vector_size(32), aligned(1), may_alias));

// Puts the header in front of `end`; TEMPLATE_BYTES may be written there.
static __rte_always_inline void template_put(uint8_t *end, const uint8_t header[TEMPLATE_BYTES])
{
	const template_piece *from = (const template_piece *)header;
	template_piece *to = (template_piece *)(end - TEMPLATE_BYTES);

	for (uint32_t i = 0; i < TEMPLATE_BYTES / sizeof(template_piece); i++)
		to[i] = from[i];
}

int templates_create(uint32_t workers); // control thread, at start; 0 or ENOMEM

#endif
