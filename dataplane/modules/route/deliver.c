// SPDX-License-Identifier: Apache-2.0
// Who takes packets to our addresses; see deliver.h.
#include "route/deliver.h"
#include "core/control.h"
#include "core/object.h"
#include <errno.h>
#include <string.h>

struct ip_deliveries ip_deliveries;

static struct {
	struct rte_node_register *from;
	const char *node[MAX_LOCAL_NODES];
	uint8_t count;
	const char *refused; // a node whose registration cannot be
} local;

void ip_deliver_from(struct rte_node_register *node)
{
	local.from = node;
	for (uint8_t i = 0; i < local.count; i++)
		node->next_nodes[node->nb_edges++] = local.node[i];
}

// A node's number, found or new. 0: too many.
static uint8_t number_of(const char *node)
{
	for (uint8_t i = 0; i < local.count; i++)
		if (strcmp(local.node[i], node) == 0)
			return (uint8_t)(i + 1);
	if (local.count == MAX_LOCAL_NODES) {
		local.refused = node;
		return 0;
	}
	local.node[local.count++] = node;
	if (local.from != NULL)
		local.from->next_nodes[local.from->nb_edges++] = node;
	return local.count;
}

void ip_local_register_protocol(uint8_t protocol, const char *node)
{
	if (ip_deliveries.protocol[protocol] != 0)
		local.refused = node;
	else
		ip_deliveries.protocol[protocol] = number_of(node);
}

void ip_local_register_udp(uint16_t port, const char *node)
{
	int refused = ip_deliveries.udp_count == MAX_LOCAL_NODES;

	for (uint16_t i = 0; i < ip_deliveries.udp_count; i++)
		refused |= ip_deliveries.udp[i].port == port;
	if (refused) {
		local.refused = node;
		return;
	}
	ip_deliveries.udp[ip_deliveries.udp_count].port = port;
	ip_deliveries.udp[ip_deliveries.udp_count++].node = number_of(node);
}

void ip_local_register_udp_map(const uint64_t open[1024], const char *node)
{
	if (ip_deliveries.open != NULL)
		local.refused = node;
	ip_deliveries.open = open;
	ip_deliveries.open_node = number_of(node);
}

// A programming error that must not wait for its packet: the engine does not start.
static int start(const struct api_engine *engine)
{
	if (local.refused != NULL)
		return object_error(EEXIST,
			"node %s registers for local packets that another node has, or is one too many", local.refused);
	return 0;
}

RTE_INIT(ip_deliver_start)
{
	module_register(start);
}
