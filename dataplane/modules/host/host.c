// SPDX-License-Identifier: Apache-2.0
// The host path's reasons, and the checks that stand before it.
#include "host/host.h"
#include "wire/ip.h"
#include "wire/pppoe.h"

#define DHCP_SERVER 67
#define DHCP6_SERVER 547
#define ICMP6_ROUTER_SOLICITATION 133
#define BGP 179 // RFC 4271 §8.2.1
#define BFD 3784 // RFC 5881 §4
#define BFD_ECHO 3785
#define BFD_MULTIHOP 4784 // RFC 5883 §5

// Shared by the nodes that punt, so these are not static.
struct reason punt_pppoe_discovery = {
	.name = "pppoe-discovery", .text = "a PPPoE discovery packet (RFC 2516 §5)", .kind = REASON_PUNT, .control = 1};
struct reason punt_ppp_control = {.name = "ppp-control",
	.text = "a PPP control packet: LCP, authentication or a network control protocol",
	.kind = REASON_PUNT,
	.control = 1};
struct reason punt_dhcp = {
	.name = "dhcp", .text = "a DHCP message from a subscriber", .kind = REASON_PUNT, .control = 1};
struct reason punt_dhcp6 = {
	.name = "dhcp6", .text = "a DHCPv6 message from a subscriber", .kind = REASON_PUNT, .control = 1};
struct reason punt_router_solicitation = {.name = "router-solicitation",
	.text = "an IPv6 router solicitation or advertisement",
	.kind = REASON_PUNT,
	.control = 1};
struct reason punt_routing = {.name = "routing",
	.text = "BGP or BFD to one of our addresses, which no node serves",
	.kind = REASON_PUNT,
	.control = 1};
struct reason punt_host = {
	.name = "host", .text = "a packet to one of our addresses that no node serves", .kind = REASON_PUNT};
struct reason drop_pppoe_discovery = {.name = "pppoe-discovery-malformed",
	.text = "a PPPoE discovery packet with a wrong header, length or tag",
	.kind = REASON_DROP};

RTE_INIT(host_reasons)
{
	struct reason *const all[] = {&punt_pppoe_discovery, &punt_ppp_control, &punt_dhcp, &punt_dhcp6,
		&punt_router_solicitation, &punt_routing, &punt_host, &drop_pppoe_discovery};

	for (unsigned i = 0; i < RTE_DIM(all); i++)
		reason_register(all[i]);
}

enum host_protocol host_protocol_of(const uint8_t *packet, const struct ip_info *ip)
{
	if (ip->fragment != 0)
		return HOST_NONE;
	if (ip->protocol == IP_PROTOCOL_UDP) {
		if (ip->version == 4 && ip->destination_port == DHCP_SERVER)
			return HOST_DHCP;
		if (ip->version == 6 && ip->destination_port == DHCP6_SERVER)
			return HOST_DHCP6;
	}
	if (ip->version == 6 && ip->protocol == IP_PROTOCOL_ICMP6 && packet[ip->l4] == ICMP6_ROUTER_SOLICITATION)
		return HOST_ROUTER_SOLICITATION;
	return HOST_NONE;
}

const struct reason *host_reason_of(enum host_protocol protocol)
{
	switch (protocol) {
	case HOST_DHCP:
		return &punt_dhcp;
	case HOST_DHCP6:
		return &punt_dhcp6;
	case HOST_ROUTER_SOLICITATION:
		return &punt_router_solicitation;
	case HOST_NONE:
		break;
	}
	return NULL;
}

const struct reason *host_reason_to_us(const struct ip_info *ip)
{
	uint16_t port = ip->destination_port;
	int routing = ip->protocol == IP_PROTOCOL_TCP   ? port == BGP || ip->source_port == BGP
		      : ip->protocol == IP_PROTOCOL_UDP ? port == BFD || port == BFD_ECHO || port == BFD_MULTIHOP
							: 0;

	return routing ? &punt_routing : &punt_host;
}

const struct reason *host_pppoe_discovery(const struct rte_mbuf *m, uint32_t offset)
{
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);

	if (offset > readable || pppoe_discovery_check(rte_pktmbuf_mtod_offset(m, const uint8_t *, offset),
					 readable - offset, total - offset) != PPPOE_OK)
		return &drop_pppoe_discovery;
	return &punt_pppoe_discovery;
}
