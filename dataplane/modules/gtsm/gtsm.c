// SPDX-License-Identifier: Apache-2.0
// GTSM (RFC 5082): BGP packets to our addresses that came from further away than the interface's neighbours are
// dropped, before the control thread sees them. The node, the GTSM object, its rows.
//
//   written by: the control thread; `counts` by their worker
//   safe because: a guard is published whole, and freed a grace period after it was taken away
#include "core/control.h"
#include "core/node.h"
#include "core/object.h"
#include "core/trace.h"
#include "route/route.h"
#include "wire/cache_line.h"
#include "wire/ip.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#define BGP 179 // RFC 4271 §8.2.1

DROP_REASON(drop_ttl, "gtsm-ttl",
	"a BGP packet to us came from further away than gtsm allows (RFC 5082). See show gtsm: gtsm of the interface, "
	"and the TTL of 255 that the neighbour must send")

struct guard_counts {
	uint64_t passed, dropped;
} cache_aligned; // of a worker

struct guard {
	char name[API_NAME]; // of the interface
	uint32_t hops;
	struct guard *next;
	struct guard_counts counts[API_MAX_WORKERS];
};

static struct guard *first; // control thread
static struct guard *guard_of[MAX_INTERFACES]; // by interface; NULL: none

enum { EDGE_NEXT, EDGE_DROP };

// What cannot be read here, ip-input drops by its own name. A fragment comes again when it is whole.
static int is_bgp_to_us(struct rte_mbuf *m, struct ip_info *ip)
{
	uint32_t l3 = packet_of(m)->l3, readable = rte_pktmbuf_data_len(m);

	return l3 <= readable &&
	       ip_parse(rte_pktmbuf_mtod_offset(m, const uint8_t *, l3), readable - l3, rte_pktmbuf_pkt_len(m) - l3,
		       ip) == IP_OK &&
	       ip->protocol == IP_PROTOCOL_TCP && (ip->destination_port == BGP || ip->source_port == BGP) &&
	       ip->fragment == 0 && ip_is_local(packet_of(m)->vrf, ip->version, ip->destination);
}

static inline rte_edge_t look(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	uint32_t interface = packet_of(m)->interface;
	struct guard *g = interface < MAX_INTERFACES ? __atomic_load_n(&guard_of[interface], __ATOMIC_ACQUIRE) : NULL;
	struct ip_info ip;

	if (g == NULL || !is_bgp_to_us(m, &ip))
		return EDGE_NEXT;
	// §3: sent with 255, each router on the way takes 1 off.
	if (ip.ttl + __atomic_load_n(&g->hops, __ATOMIC_RELAXED) > UINT8_MAX) {
		g->counts[w->id].passed += !trace_is_hypothetical(m);
		return EDGE_NEXT;
	}
	g->counts[w->id].dropped += !trace_is_hypothetical(m);
	return packet_leave(m, &drop_ttl, EDGE_DROP);
}

NODE_EACH(gtsm, look)

static struct rte_node_register gtsm_node = {
	.name = "gtsm",
	.process = gtsm,
	.nb_edges = EDGE_DROP + 1,
	.next_nodes = {[EDGE_NEXT] = "@input-ip", [EDGE_DROP] = "drop"},
};

// Without a guard, packets pass by the node.
static enum stage_wants wants(void)
{
	return first != NULL ? STAGE_ALL : STAGE_NONE;
}

// Standard: the fast path takes no TCP to us, so it may leave this stage out.
NODE_STAGE(gtsm_node, "input-ip", .standard = 1, .wants = wants)

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_gtsm *want = body;
	const struct interface *i = interfaces_by_name(interfaces_next(), key);

	if (i == NULL || i->role != API_ROLE_CORE)
		return object_error(ENOENT, "gtsm %s: there is no such interface of a core port", key);
	if (want->hops == 0 || want->hops > API_GTSM_HOPS)
		return object_error(EINVAL, "gtsm %s: %u hops, must be 1..%u", key, want->hops, API_GTSM_HOPS);
	return 0;
}

static int stage(struct object_change *c)
{
	int error = c->body == NULL ? 0 : check(c->key, c->body, c->length);

	if (error != 0 || c->body == NULL || *c->live != NULL)
		return error;
	struct guard *g = rte_zmalloc("gtsm", sizeof(*g), CACHE_LINE);
	if (g == NULL)
		return object_error(ENOMEM, "no memory for the gtsm of %s", c->key);
	snprintf(g->name, sizeof(g->name), "%s", c->key);
	c->staged = g;
	return 0;
}

static void discard(struct object_change *c)
{
	rte_free(c->staged);
}

static void unlink_guard(const struct guard *g)
{
	struct guard **at = &first;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
}

// An existing guard stays, with its counts.
static void commit(struct object_change *c)
{
	const struct api_gtsm *want = c->body;
	struct guard *g = *c->live;

	if (want == NULL) {
		unlink_guard(g);
		c->replaced = g;
		*c->live = NULL;
		return;
	}
	if (g == NULL) {
		*c->live = g = c->staged;
		g->next = first;
		first = g;
	}
	__atomic_store_n(&g->hops, want->hops, __ATOMIC_RELAXED);
}

static void release(struct object_change *c)
{
	rte_free(c->replaced);
}

// After a change of interfaces, which packets know by their index, or of guards.
static void bind(void)
{
	struct guard *of[MAX_INTERFACES] = {NULL};

	for (struct guard *g = first; g != NULL; g = g->next) {
		const struct interface *i = interfaces_by_name(interfaces_now(), g->name);

		if (i != NULL)
			of[i->index] = g;
	}
	for (uint32_t i = 0; i < MAX_INTERFACES; i++)
		__atomic_store_n(&guard_of[i], of[i], __ATOMIC_RELEASE);
}

static const struct object_ops gtsm_ops = {
	OBJECT_OF_ONE(API_GTSM, "gtsm", struct api_gtsm),
	.stage = stage,
	.discard = discard,
	.commit = commit,
	.finish_commit = bind,
	.release = release,
	.verify = check,
};
OBJECT_REGISTER(gtsm_ops)

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (const struct guard *g = first; g != NULL; g = g->next) {
		struct api_gtsm_row row = {.hops = g->hops};

		if (key[0] != 0 && strcmp(key, g->name) != 0)
			continue;
		memcpy(row.name, g->name, sizeof(row.name));
		for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
			row.passed += __atomic_load_n(&g->counts[w].passed, __ATOMIC_RELAXED);
			row.dropped += __atomic_load_n(&g->counts[w].dropped, __ATOMIC_RELAXED);
		}
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(gtsm_module)
{
	interface_watch(bind);
	stats_table_register(API_TABLE_GTSM, sizeof(struct api_gtsm_row), rows);
}

TRACE_STAGE("gtsm", .pure = 1)
