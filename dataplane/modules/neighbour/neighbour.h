// SPDX-License-Identifier: Apache-2.0
// Neighbours on core interfaces (ARP, ND), and answers to subscribers about their gateway.
//
// Nodes punt with these reasons; the control thread does the rest.
#ifndef NEIGHBOUR_NEIGHBOUR_H
#define NEIGHBOUR_NEIGHBOUR_H

#include "core/node.h"

extern struct reason punt_arp; // an ARP packet: l3 is its offset, interface is valid
extern struct reason punt_nd; // a neighbour solicitation or advertisement: l3 as for IP, interface is valid
extern struct reason punt_resolve; // an IP packet that waits for the MAC address of its next hop

// Malformed messages, wherever they came from.
extern struct reason drop_arp_malformed, drop_nd_malformed;

#endif
