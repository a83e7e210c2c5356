// SPDX-License-Identifier: Apache-2.0
// The register of nodes and the building of a worker's graph from it.
#include "core/node.h"
#include "core/log.h"
#include "core/reply.h"
#include <rte_errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_NODES 128
#define STREAM_PACKETS 4096

static struct {
	struct rte_node_register *list[MAX_NODES];
	const char *names[MAX_NODES];
	uint32_t count;
	int registered;
	struct rte_node *of[API_MAX_WORKERS][MAX_NODES]; // the nodes of each graph, in the list's order
} nodes;

void node_register(struct rte_node_register *node)
{
	// A programming error, found at every start before main(): never reachable from input.
	for (uint32_t i = 0; i < nodes.count; i++)
		if (strcmp(nodes.list[i]->name, node->name) == 0)
			rte_panic("node %s is registered twice\n", node->name);
	if (nodes.count == MAX_NODES)
		rte_panic("more than %d nodes\n", MAX_NODES);
	nodes.list[nodes.count++] = node;
}

static int node_known(const char *name)
{
	for (uint32_t i = 0; i < nodes.count; i++)
		if (strcmp(nodes.list[i]->name, name) == 0)
			return 1;
	return 0;
}

int graph_register_nodes(void)
{
	if (nodes.registered)
		return 0;
	if (arcs_assemble(nodes.list, nodes.count) != 0)
		return -1;
	for (uint32_t i = 0; i < nodes.count; i++) {
		struct rte_node_register *n = nodes.list[i];

		nodes.names[i] = n->name;
		for (uint16_t e = 0; e < n->nb_edges; e++)
			if (n->next_nodes[e] == NULL || !node_known(n->next_nodes[e])) {
				LOG(ERR, "node %s leads to %s, which does not exist\n", n->name,
					n->next_nodes[e] ? n->next_nodes[e] : "(nothing)");
				return -1;
			}
	}
	for (uint32_t i = 0; i < nodes.count; i++) {
		nodes.list[i]->parent_id = RTE_NODE_ID_INVALID;
		nodes.list[i]->id = __rte_node_register(nodes.list[i]);
		if (nodes.list[i]->id == RTE_NODE_ID_INVALID) {
			LOG(ERR, "node %s cannot be registered: %s\n", nodes.names[i], rte_strerror(rte_errno));
			return -1;
		}
	}
	nodes.registered = 1;
	return 0;
}

// Allocates the streams. rte_graph would grow them on the worker, at its first longer vector, and ends the process when
// memory is short.
static void streams_make(struct rte_graph *graph)
{
	struct rte_node *node;
	rte_graph_off_t off;
	rte_node_t i;

	rte_graph_foreach_node(i, off, graph, node) if (node->size < STREAM_PACKETS)
		__rte_node_stream_alloc_size(graph, node, STREAM_PACKETS);
}

uint32_t graph_nodes(struct rte_node_register *const **list)
{
	*list = nodes.list;
	return nodes.count;
}

struct rte_node *graph_node(uint32_t worker, uint32_t number)
{
	return nodes.of[worker][number];
}

struct rte_graph *graph_create(uint32_t worker)
{
	char name[RTE_GRAPH_NAMESIZE];
	struct rte_graph_param param = {
		.socket_id = SOCKET_ID_ANY,
		.nb_node_patterns = (uint16_t)nodes.count,
		.node_patterns = nodes.names,
	};

	snprintf(name, sizeof(name), "worker-%u", worker);
	if (rte_graph_create(name, &param) == RTE_GRAPH_ID_INVALID)
		return NULL;
	struct rte_graph *graph = rte_graph_lookup(name);
	if (graph == NULL)
		return NULL;
	streams_make(graph);
	for (uint32_t i = 0; i < nodes.count; i++)
		nodes.of[worker][i] = rte_graph_node_get(graph->id, nodes.list[i]->id);
	return graph;
}

void graph_link(struct worker *w)
{
	w->linked = arcs_link(nodes.of[w->id]);
}

void packets_drop(struct worker *w, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		w->reason[packet_of(pkts[i])->reason]++;
	w->dropped += n;
	rte_pktmbuf_free_bulk(pkts, n);
}

struct rte_mbuf *packet_originate(struct worker *w)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(w->pool);

	if (m == NULL)
		return NULL;
	memset(packet_of(m), 0, sizeof(struct packet));
	packet_of(m)->port_in = PORT_NONE;
	packet_of(m)->port_out = PORT_NONE;
	packet_of(m)->interface = UINT32_MAX;
	packet_of(m)->instance = UINT16_MAX;
	w->originated++;
	return m;
}

void packet_originate_like(struct worker *w, struct rte_mbuf *m, struct rte_mbuf *from)
{
	*packet_of(m) = *packet_of(from);
	w->originated++;
}

static uint64_t node_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	const struct rte_graph *graph = place < worker_count() ? worker_get((uint32_t)place)->graph : NULL;
	const struct rte_node *node;
	rte_graph_off_t off;
	rte_node_t i;

	if (graph == NULL)
		return stats_next(place, worker_count());
	rte_graph_foreach_node(i, off, graph, node)
	{
		if (key[0] != 0 && strcmp(key, node->name) != 0)
			continue;
		struct api_node_row row = {
			.worker = (uint32_t)place,
			.calls = node->total_calls,
			.packets = node->total_objs,
			.ticks = node->total_cycles,
		};
		snprintf(row.name, sizeof(row.name), "%s", node->name);
		stats_row(s, &row, sizeof(row));
	}
	return stats_next(place, worker_count());
}

RTE_INIT(node_table)
{
	stats_table_register(API_TABLE_NODE, sizeof(struct api_node_row), node_rows);
}
