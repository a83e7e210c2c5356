// SPDX-License-Identifier: Apache-2.0
// The host path: packets of control protocols. Nodes punt them with one of these reasons (packet_leave(m, &punt_...,
// edge to "punt")). The protocol's module registers a handler with punt_handler_register(). Without a handler they are
// counted and freed.
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include "core/node.h"

extern struct reason punt_pppoe_discovery, punt_ppp_control, punt_dhcp, punt_dhcp6, punt_router_solicitation,
	punt_routing, punt_link, punt_icmp, punt_host, punt_neighbour_answer;
extern struct reason punt_router_discovery; // on core links
extern struct reason drop_pppoe_discovery; // malformed

enum host_protocol { HOST_NONE, HOST_DHCP, HOST_DHCP6, HOST_ROUTER_SOLICITATION };

// The control protocol of a subscriber's IP packet to us, if any. `packet` is the IP header, with ip_parse()'s l4
// offset and ports; ip_parse() checked all that is read here.
struct ip_info;
enum host_protocol host_protocol_of(const uint8_t *packet, const struct ip_info *ip);
const struct reason *host_reason_of(enum host_protocol protocol); // NULL for HOST_NONE

// For packets to our addresses that no node serves: 1 for a routing protocol; the reason of UDP, TCP, SCTP.
int host_is_routing(const struct ip_info *ip);
const struct reason *host_reason_to_us(const struct ip_info *ip);

// Reason for a packet to a multicast group or broadcast address, on an interface with a clone; NULL: no listener.
const struct reason *host_reason_of_group(const struct ip_info *ip);
// 1 when a frame that is neither IP nor ARP is of a link protocol: IS-IS, LLDP, spanning tree.
int host_is_link_protocol(uint16_t ethertype, const uint8_t *payload, uint32_t available);

// 1 when the control plane has lately given this PPPoE session id, by the PADS that it sent, and there may be no
// SESSION yet. Workers and the control thread.
struct endpoint_view;
int host_ppp_begins(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6]);
// 1 when the packet, on its way to the host path with packet.reason, is within all limits; else packet.reason becomes
// the drop reason. `known`: of a known subscriber, whom others' floods cost nothing.
int host_within_limits(struct worker *w, struct rte_mbuf *m, int known);

// Copies a frame into a chain of buffers, originated; NULL when there are none left. A long frame that does not fit is
// counted as a drop. Control thread.
struct rte_mbuf *host_packet(const uint8_t *frame, uint32_t length);

// Reason for a PPPoE discovery frame whose PPPoE header is at `offset`: host path if well-formed (row B1). The reason's
// kind decides the edge.
const struct reason *host_pppoe_discovery(const struct rte_mbuf *m, uint32_t offset);

#endif
