// SPDX-License-Identifier: Apache-2.0
// Templates: the headers from Ethernet to GTP-U towards a peer, made once from the path and the next hop. Each worker
// has its own, valid while ip_ways_generation stays.
#ifndef FORWARD_TEMPLATE_H
#define FORWARD_TEMPLATE_H

#include "core/worker.h"
#include "path/path.h"
#include "route/route.h"
#include "wire/cache_line.h"

#define TEMPLATES 1024u // of a worker, by the low bits of the path's index

struct template
{
	struct outer outer; // the path's, with the next hop's header in front of it
	uint64_t made; // template_made() of its path
	uint32_t room[2]; // IP packets up to this length pass unfragmented
	uint16_t port;
	uint8_t l2; // bytes of the next hop's header
	const struct path *path; // as long as the template holds
}
cache_aligned;
extern struct template *templates[API_MAX_WORKERS]; // TEMPLATES of each; written and read by its worker

static inline uint64_t template_made(uint32_t generation, uint16_t path)
{
	return (uint64_t)generation << 32 | path | 1u << 16; // no empty template has it
}

// Renews the path's template. Returns 0 when there is none: no path, or no resolved next hop.
int template_make(struct template *t, const struct worker *w, uint32_t generation, uint16_t path);

// NULL: there is none. `own`: the worker's. `generation`: of ip_ways_generation, read in this walk before any table.
static __rte_always_inline const struct template *template_of(
	struct template *own, const struct worker *w, uint32_t generation, uint16_t path)
{
	struct template *t = &own[path % TEMPLATES];

	return likely(t->made == template_made(generation, path)) || template_make(t, w, generation, path) ? t : NULL;
}

// The same for a peer with next hops of equal cost: the next hop of the user's packet of `length` bytes.
const struct template *template_of_flow(struct template *own, const struct worker *w, uint32_t generation,
	uint16_t path, const uint8_t *ip, uint32_t length);

int templates_create(uint32_t workers); // control thread, at start; 0 or ENOMEM

#endif
