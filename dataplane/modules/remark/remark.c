// SPDX-License-Identifier: Apache-2.0
// The boundary of a DS domain (RFC 2475 §2.3.4.2): packets that come in by an interface get its DSCP, whatever their
// sender wrote. The node, the REMARK object, its rows.
//
//   written by: the control thread; `counts` by their worker
//   safe because: a boundary is published whole, and freed a grace period after it was taken away
#include "core/control.h"
#include "core/node.h"
#include "core/object.h"
#include "core/port.h"
#include "core/trace.h"
#include "route/route.h"
#include "wire/cache_line.h"
#include "wire/ecn.h"
#include "wire/eth.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

struct boundary_counts {
	uint64_t packets, remarked;
} cache_aligned; // of a worker

struct boundary {
	char name[API_NAME]; // of the interface
	uint32_t dscp;
	SLIST_ENTRY(boundary) next;
	struct boundary_counts counts[API_MAX_WORKERS];
};

static SLIST_HEAD(, boundary) boundaries; // control thread
static struct boundary *boundary_of[MAX_INTERFACES]; // by interface; NULL: none

// No header was looked at so far. What cannot be read here, core-input or ip-input drops by its own name.
static uint8_t *header_of(struct rte_mbuf *m, const struct eth_info *eth, uint8_t *version)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, eth->length);
	uint32_t needed = eth->ethertype == ETH_TYPE_IP4 ? 20 : 40;

	if (eth->ethertype != ETH_TYPE_IP4 && eth->ethertype != ETH_TYPE_IP6)
		return NULL;
	*version = needed == 20 ? 4 : 6;
	return rte_pktmbuf_data_len(m) >= eth->length + needed && ip[0] >> 4 == *version ? ip : NULL;
}

static inline rte_edge_t mark(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const struct interface *i;
	struct boundary *b;
	struct eth_info eth;
	uint8_t version, *ip;

	if (eth_parse(rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m), &eth) != ETH_OK)
		return 0;
	i = interface_find(packet_of(m)->port_in, eth.vlan[0], eth.vlan[1]);
	b = i != NULL ? __atomic_load_n(&boundary_of[i->index], __ATOMIC_ACQUIRE) : NULL;
	if (b == NULL || (ip = header_of(m, &eth, &version)) == NULL)
		return 0;
	uint8_t dscp = (uint8_t)__atomic_load_n(&b->dscp, __ATOMIC_RELAXED);
	int other = ip_traffic_class(version, ip) >> 2 != dscp;

	if (other)
		ip_dscp_set(version, ip, dscp);
	if (!trace_is_hypothetical(m)) {
		b->counts[w->id].packets++;
		b->counts[w->id].remarked += (uint64_t)other;
	}
	return 0;
}

NODE_EACH(remark, mark)

static struct rte_node_register remark_node = {
	.name = "remark",
	.process = remark,
	.nb_edges = 1,
	.next_nodes = {"@input-core"},
};

// Without a boundary, packets pass by the node.
static enum stage_wants wants(void)
{
	return SLIST_EMPTY(&boundaries) ? STAGE_NONE : STAGE_ALL;
}

// Standard: it stands before the fast path, which leaves it out no more than the full nodes do. What a device forwards
// by itself would pass it: check().
NODE_STAGE(remark_node, "input-core", .before = "flow-input", .standard = 1, .wants = wants)

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_remark *want = body;
	uint32_t of_interface;
	const struct api_interface *i = object_find(API_INTERFACE, key, &of_interface);
	const struct port *p = i != NULL ? port_by_name(i->port) : NULL;

	if (p == NULL || p->role != API_ROLE_CORE)
		return object_error(ENOENT, "remark %s: there is no such interface of a core port", key);
	if (p->want.offload != API_OFFLOAD_NONE)
		return object_error(
			ENOTSUP, "remark %s: port %s has offload, and its device writes no DSCP", key, p->name);
	if (want->dscp > 63)
		return object_error(EINVAL, "remark %s: DSCP %u, must be 0..63", key, want->dscp);
	return 0;
}

static int stage(struct object_change *c)
{
	int error = c->body == NULL ? 0 : check(c->key, c->body, c->length);

	if (error != 0 || c->body == NULL || *c->live != NULL)
		return error;
	struct boundary *b = rte_zmalloc("remark", sizeof(*b), CACHE_LINE);
	if (b == NULL)
		return object_error(ENOMEM, "no memory for the remark of %s", c->key);
	snprintf(b->name, sizeof(b->name), "%s", c->key);
	c->staged = b;
	return 0;
}

static void discard(struct object_change *c)
{
	rte_free(c->staged);
}

// A boundary that is there stays, with what it counted.
static void commit(struct object_change *c)
{
	const struct api_remark *want = c->body;
	struct boundary *b = *c->live;

	if (want == NULL) {
		SLIST_REMOVE(&boundaries, b, boundary, next);
		c->replaced = b;
		*c->live = NULL;
		return;
	}
	if (b == NULL) {
		*c->live = b = c->staged;
		SLIST_INSERT_HEAD(&boundaries, b, next);
	}
	__atomic_store_n(&b->dscp, want->dscp, __ATOMIC_RELAXED);
}

static void release(struct object_change *c)
{
	rte_free(c->replaced);
}

// After a change of interfaces, which packets know by their index, or of boundaries.
static void bind(void)
{
	struct boundary *of[MAX_INTERFACES] = {NULL}, *b;

	SLIST_FOREACH(b, &boundaries, next)
	{
		const struct interface *i = interfaces_by_name(interfaces_now(), b->name);

		if (i != NULL)
			of[i->index] = b;
	}
	for (uint32_t i = 0; i < MAX_INTERFACES; i++)
		__atomic_store_n(&boundary_of[i], of[i], __ATOMIC_RELEASE);
}

static const struct object_ops remark_ops = {
	OBJECT_OF_ONE(API_REMARK, "remark", struct api_remark),
	.stage = stage,
	.discard = discard,
	.commit = commit,
	.finish_commit = bind,
	.release = release,
	.verify = check,
};
OBJECT_REGISTER(remark_ops)

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	const struct boundary *b;

	SLIST_FOREACH(b, &boundaries, next)
	{
		struct api_remark_row row = {.dscp = b->dscp};

		if (key[0] != 0 && strcmp(key, b->name) != 0)
			continue;
		memcpy(row.name, b->name, sizeof(row.name));
		for (uint32_t w = 0; w < API_MAX_WORKERS; w++) {
			row.packets += __atomic_load_n(&b->counts[w].packets, __ATOMIC_RELAXED);
			row.remarked += __atomic_load_n(&b->counts[w].remarked, __ATOMIC_RELAXED);
		}
		stats_row(s, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(remark_module)
{
	interface_watch(bind);
	stats_table_register(API_TABLE_REMARK, sizeof(struct api_remark_row), rows);
}

TRACE_STAGE("remark", .pure = 1)
