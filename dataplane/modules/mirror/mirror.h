// SPDX-License-Identifier: Apache-2.0
// Mirrors: copies of the packets of some sessions go to a port, into a GTP-U tunnel or to an ERSPAN collector.
//
//   Written by: the control thread (name, target, the sets of sessions); each line by its worker; window, sequence:
//   by workers, with atomic operations.
//   Read by: workers, within a walk; a replaced target is freed after a grace period
#ifndef MIRROR_MIRROR_H
#define MIRROR_MIRROR_H

#include "isthmus_api.h"
#include "rule/tables.h"
#include "wire/cache_line.h"
#include <rte_mbuf.h>

struct mirror_line { // a worker's
	uint64_t seen; // packets that matched, of which one in api_mirror.sample is copied
	uint64_t packets, bytes, limited, no_buffer, failed;
} cache_aligned;

struct mirror_target {
	struct api_mirror want;
	uint16_t port, instance; // indices, of what `want` names
	struct action action; // of a GTP-U tunnel
};

struct mirror {
	char name[API_NAME]; // empty: none
	const struct mirror_target *target; // NULL: none
	uint64_t window; // the second that runs << 32 | copies in it
	uint32_t sequence; // of GRE, the next one
	struct mirror_line line[API_MAX_WORKERS];
};
extern struct mirror mirrors[API_MAX_MIRRORS];

// Which way a copy goes on.
enum mirror_way { MIRROR_NONE, MIRROR_PORT, MIRROR_IP, MIRROR_FAILED };

// Copies a packet of this session and chooses the copy's way; MIRROR_NONE: none. MIRROR_FAILED: `copy` has a drop
// reason. `m` has its IP header at l3 = 0, the session_view, and in front of it what `front` says; it is unchanged.
// Owner worker.
enum mirror_way mirror_copy(struct worker *w, struct rte_mbuf *m, struct rte_mbuf **copy);

// erspan.c: puts GRE and ERSPAN headers in front of the frame in m, and an IP header from our address to the collector.
// Returns 0; -1 without such an address, or without room.
int mirror_erspan(struct worker *w, struct rte_mbuf *m, struct mirror *x, const struct api_mirror *want, int uplink,
	int truncated);

#endif
