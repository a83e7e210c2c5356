// SPDX-License-Identifier: Apache-2.0
// GTP-U paths (TS 29.281) and their header templates.
#ifndef PATH_PATH_H
#define PATH_PATH_H

#include "core/packet.h"
#include "core/worker.h"
#include "isthmus_api.h"
#include "path/local.h"
#include "route/route.h"
#include "wire/cache_line.h"
#include "wire/gtpu.h"

#define GTPU_MAX_PATHS 16384
#define OUTER_LENGTH_MAX 64 // IPv6 40 + UDP 8 + GTP-U 16
#define OUTER_BYTES 96u // three stores of 32: room for a next hop's header as well
static_assert(OUTER_BYTES >= NEXT_HOP_HEADER + OUTER_LENGTH_MAX, "both headers fit");

// The outer header of G-PDUs, [1] with a PDU Session Container, [0] without: everything but lengths, TEID, QFI and IPv4
// identification.
struct outer {
	uint8_t header[2][OUTER_BYTES]; // each ends where the user's packet begins
	uint32_t ip4_sum; // of the IPv4 header with lengths, identification and DSCP 0; 16 bits
	uint8_t length[2]; // from IP to GTP-U
	uint8_t version; // 4 or 6
	uint8_t class; // the path's DSCP << 2
	uint8_t by_qfi; // the path has other ones for some QFIs
};

struct path {
	char name[API_NAME];
	uint16_t index;
	uint16_t local_id;
	uint8_t vrf; // of the interface that has the local address; written by the control thread alone, atomic
	struct api_path want;
	struct outer outer cache_aligned;
} cache_aligned;

// Written by the owner worker, or by the control thread in its own slot; added up for `show path`.
struct path_counters {
	uint64_t echo_sent, echo_received, errors_sent, errors_received, end_markers;
} cache_aligned;

extern struct path *path_table[GTPU_MAX_PATHS]; // published; replaced by the control thread
static inline const struct path *path_get(uint32_t index) // NULL when there is none; workers
{
	return likely(index < GTPU_MAX_PATHS) ? __atomic_load_n(&path_table[index], __ATOMIC_ACQUIRE) : NULL;
}

// DSCP of the outer header for this QFI. The FAR's Transport Level Marking (`marking`, up to 63) comes first (TS 29.244
// §8.2.12); then our map.
static __rte_always_inline uint8_t path_dscp(const struct path *p, uint8_t marking, uint8_t qfi)
{
	if (marking < 64)
		return marking;
	return unlikely(p->outer.by_qfi) && qfi < 64 && p->want.qfi_dscp[qfi] != 0
		       ? (uint8_t)(p->want.qfi_dscp[qfi] - 1)
		       : p->want.dscp;
}

// `index` is of a path that path_get() gave. Workers; API_MAX_WORKERS: the control thread's.
struct path_counters *path_counters_of(uint32_t index, uint32_t worker);
// Index of a path by its name as it will be after the open transaction, or -1. Control thread.
int path_index(const char *name);
// 1 when a path exists between these addresses (4 or 16 bytes). Any thread, off the fast path.
int path_exists(uint8_t family, const uint8_t *local, const uint8_t *peer);
// 1 when a path ends at this address after the open transaction. Control thread.
int path_local_staged(const struct api_address *local);
// A path between these two addresses (4 or 16 bytes), or NULL. Workers, off the fast path.
const struct path *path_between(uint8_t family, const uint8_t *local, const uint8_t *peer);
uint32_t path_count(void); // indices ever used; control thread
// The path of an index, also if the running commit deleted it. From release().
const struct path *path_before(uint32_t index);

// ---- supervision.c (control thread) ---------------------------------------------------------------------------------
void path_supervise(uint32_t index, int anew); // the path is new or its ends changed (`anew`), or it changed otherwise
// The peer answered our Echo Request. recovery: of the Recovery IE, -1 when there was none.
void path_answered(uint32_t index, uint16_t sequence, int recovery);
int path_alive(uint32_t index);
uint32_t path_recovery(uint32_t index);

// ---- outer.c: headers off the fast path -----------------------------------------------------------------------------

static inline uint32_t path_ip_length(const struct path *p)
{
	return p->outer.version == 4 ? 20 : 40;
}

// The outer header's template, IP first; with a PDU Session Container or without.
static inline const uint8_t *path_header(const struct path *p, int container)
{
	return p->outer.header[container] + OUTER_BYTES - p->outer.length[container];
}

static inline uint8_t path_vrf(const struct path *p)
{
	return __atomic_load_n(&p->vrf, __ATOMIC_RELAXED);
}

// The metadata that ip-output needs of a packet of `length` bytes of IP and UDP of ours, at the data start.
static inline void path_describe(struct packet *pkt, uint8_t vrf, uint8_t version, uint32_t length)
{
	pkt->l3 = 0;
	pkt->l4 = version == 4 ? 20 : 40;
	pkt->ip_version = version;
	pkt->vrf = vrf;
	pkt->protocol = 17;
	pkt->fragment = 0;
	pkt->translated = 0;
	pkt->length = length;
}

// Fills in lengths and checksums of an outer header (IP and UDP, at the data start of m) in front of our own GTP-U
// message, and calls path_describe(). `length` of the whole IP packet.
void path_finish_outer(struct rte_mbuf *m, uint8_t vrf, uint8_t version, uint32_t length);
// Sets the DSCP (above 63: the path's) and ECN of an outer header.
void path_mark(uint8_t *ip, const struct path *p, uint8_t dscp, uint8_t ecn);
// worker_identify() in an IPv4 header; nothing in an IPv6 one. `of`: the path's index, or another number for the
// destination.
void path_identify(uint8_t *ip, struct worker *w, uint32_t of);

#endif
