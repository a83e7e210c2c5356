// SPDX-License-Identifier: Apache-2.0
// Inside of the gtpu module: paths and their header templates.
#ifndef GTPU_PATH_H
#define GTPU_PATH_H

#include "core/worker.h"
#include "gtpu/gtpu.h"
#include "wire/gtpu.h"

#define OUTER_LENGTH_MAX 64 // IPv6 40 + UDP 8 + GTP-U 16

// A path as workers read it: the outer header with everything but lengths, TEID, QFI and IPv4 identification.
struct path {
	char name[API_NAME];
	uint16_t index;
	uint8_t version; // of the outer header: 4 or 6
	uint8_t length[2]; // of the outer header: [1] with a PDU Session Container, [0] without
	uint16_t local_id;
	uint32_t ip4_sum; // of the IPv4 header with lengths, identification and DSCP 0
	struct api_path want;
	// Each lies at the end of its 64 bytes, so that one store of 64 that ends where the payload begins puts it in place.
	uint8_t header[2][OUTER_LENGTH_MAX] __rte_cache_aligned;
} __rte_cache_aligned;

// Written by the owner worker, or by the control thread in its own slot; added up for `show path`.
struct path_counters {
	uint64_t echo_sent, echo_received, errors_sent, errors_received, end_markers;
} __rte_cache_aligned;

extern struct path *path_table[GTPU_MAX_PATHS]; // published; replaced by the control thread
static inline const struct path *path_get(uint32_t index) // NULL when there is none; workers
{
	return likely(index < GTPU_MAX_PATHS) ? __atomic_load_n(&path_table[index], __ATOMIC_ACQUIRE) : NULL;
}
struct path_counters *path_counters_of(uint32_t index, uint32_t worker);
// The path between these two addresses (4 or 16 bytes), or NULL. Workers, off the fast path.
const struct path *path_between(uint8_t family, const uint8_t *local, const uint8_t *peer);

// Control thread: the peer answered our Echo Request.
void path_answered(uint32_t index, uint8_t recovery);
// Fills in the lengths and checksums of an outer header (IP and UDP, already in place at the data start of m) in front of a
// GTP-U message that we made, and the packet metadata that ip-output needs. `length` of the whole IP packet.
void gtpu_finish_outer(struct rte_mbuf *m, uint8_t version, uint32_t length);

#endif
