// SPDX-License-Identifier: Apache-2.0
// Delivery of packets to our addresses: ip-input sends them to the registered node; the rest goes to the host path or
// is dropped.
//
//   written by: constructors; the map of open ports: its module, with atomic operations
//   read by: workers
#ifndef ROUTE_DELIVER_H
#define ROUTE_DELIVER_H

#include "core/node.h"
#include <stdint.h>

#define MAX_LOCAL_NODES 16

// By node number: 1 is the first that asked; 0: none.
struct ip_deliveries {
	uint8_t protocol[256];
	struct {
		uint16_t port;
		uint8_t node;
	} udp[MAX_LOCAL_NODES];
	uint16_t udp_count;
	uint8_t open_node;
	const uint64_t *open; // further UDP ports, which change
};
extern struct ip_deliveries ip_deliveries;

// From constructors only; asking twice for the same is a programming error found at start-up.
void ip_local_register_udp(uint16_t port, const char *node);
// The same for changing ports: bit port % 64 of open[port / 64], changed with atomic operations.
void ip_local_register_udp_map(const uint64_t open[1024], const char *node);
void ip_local_register_protocol(uint8_t protocol, const char *node);

// Registers the node that delivers. Its array of next nodes has room for MAX_LOCAL_NODES more. They follow its own
// edges, by number: one for each node that asks, before this call or after it. From a constructor; the graph is built
// long after all of them.
void ip_deliver_from(struct rte_node_register *node);

#endif
