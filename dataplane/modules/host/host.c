// SPDX-License-Identifier: Apache-2.0
// The host path's reasons, and the checks before it.
#include "host/host.h"
#include "wire/bytes.h"
#include "wire/ip.h"
#include "wire/pppoe.h"

#define DHCP_SERVER 67
#define DHCP6_SERVER 547
#define ICMP6_ROUTER_SOLICITATION 133
#define BGP 179 // RFC 4271 §8.2.1
#define BFD 3784 // RFC 5881 §4
#define BFD_ECHO 3785
#define BFD_MULTIHOP 4784 // RFC 5883 §5
#define RIP 520 // RFC 2453 §3.9.2
#define RIPNG 521 // RFC 2080 §2.1
#define LDP 646 // RFC 5036 §2.4
#define IGMP 2 // RFC 3376 §4
#define RSVP 46 // RFC 2205 §3.1
#define EIGRP 88 // RFC 7868 §3
#define OSPF 89 // RFC 2328 §A.1
#define PIM 103 // RFC 7761 §4.9
#define VRRP 112 // RFC 5798 §5.1.1.4
#define ETH_TYPE_LLDP 0x88cc // IEEE 802.1AB §7.4
#define LLC_OSI 0xfefe // DSAP and SSAP of ISO 9577: IS-IS (ISO 10589 §8.4.8), ES-IS
#define LLC_BPDU 0x4242 // IEEE 802.1D

// Shared by the nodes that punt, so these are not static.
struct reason punt_pppoe_discovery = {.name = "pppoe-discovery",
	.text = "a PPPoE discovery packet (RFC 2516 §5)",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_ppp_control = {.name = "ppp-control",
	.text = "a PPP control packet: LCP, authentication or a network control protocol",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_dhcp = {.name = "dhcp",
	.text = "a DHCP message from a subscriber",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_dhcp6 = {.name = "dhcp6",
	.text = "a DHCPv6 message from a subscriber",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_router_solicitation = {.name = "router-solicitation",
	.text = "an IPv6 router solicitation from a subscriber",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_neighbour_answer = {.name = "neighbour-answer",
	.text = "a subscriber's ARP reply or neighbour advertisement to us",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL,
	.limited = 1};
struct reason punt_router_discovery = {.name = "router-discovery",
	.text = "an IPv6 router solicitation or advertisement on a core link",
	.kind = REASON_PUNT,
	.control = CONTROL_PROTOCOL};
struct reason punt_routing = {.name = "routing",
	.text = "a routing protocol's packet to one of our addresses or to a link's routers, which no node serves",
	.kind = REASON_PUNT,
	.control = CONTROL_NEIGHBOUR};
struct reason punt_link = {.name = "link-protocol",
	.text = "a link protocol's frame (IS-IS, LLDP, spanning tree) on an interface with a clone",
	.kind = REASON_PUNT,
	.control = CONTROL_NEIGHBOUR};
struct reason punt_icmp = {
	.name = "icmp-to-host", .text = "ICMP to one of our addresses other than an echo request", .kind = REASON_PUNT};
struct reason punt_host = {
	.name = "host", .text = "a packet to one of our addresses that no node serves", .kind = REASON_PUNT};
struct reason drop_pppoe_discovery = {.name = "pppoe-discovery-malformed",
	.text = "a PPPoE discovery packet with a wrong header, length or tag",
	.kind = REASON_DROP};

RTE_INIT(host_reasons)
{
	struct reason *const all[] = {&punt_pppoe_discovery, &punt_ppp_control, &punt_dhcp, &punt_dhcp6,
		&punt_router_solicitation, &punt_routing, &punt_link, &punt_icmp, &punt_host, &punt_router_discovery,
		&punt_neighbour_answer, &drop_pppoe_discovery};

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

static int is_routing_port(uint16_t port)
{
	return port == BFD || port == BFD_ECHO || port == BFD_MULTIHOP || port == RIP || port == RIPNG || port == LDP;
}

int host_is_routing(const struct ip_info *ip)
{
	switch (ip->protocol) {
	case IP_PROTOCOL_TCP:
		return ip->destination_port == BGP || ip->source_port == BGP || ip->destination_port == LDP ||
		       ip->source_port == LDP;
	case IP_PROTOCOL_UDP:
		return is_routing_port(ip->destination_port);
	case IGMP:
	case RSVP:
	case EIGRP:
	case OSPF:
	case PIM:
	case VRRP:
		return 1;
	default:
		return 0;
	}
}

const struct reason *host_reason_to_us(const struct ip_info *ip)
{
	return host_is_routing(ip) ? &punt_routing : &punt_host;
}

const struct reason *host_reason_of_group(const struct ip_info *ip)
{
	const uint8_t *d = ip->destination;
	// RFC 5771 §4, RFC 4291 §2.7: groups of the link alone; the limited broadcast.
	int of_link = ip->version == 6 ? (d[1] & 15) == 2 : load32(d) >> 8 == 0xe00000 || load32(d) == 0xffffffffu;

	if (ip->fragment != 0 || !of_link)
		return NULL;
	return host_reason_to_us(ip);
}

int host_is_link_protocol(uint16_t ethertype, const uint8_t *payload, uint32_t available)
{
	// IEEE 802.3 §3.2.6: up to 1500 it is a length, and an LLC header follows.
	if (ethertype > 1500)
		return ethertype == ETH_TYPE_LLDP;
	return available >= 3 && (load16(payload) == LLC_OSI || load16(payload) == LLC_BPDU);
}

const struct reason *host_pppoe_discovery(const struct rte_mbuf *m, uint32_t offset)
{
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);

	if (offset > readable || pppoe_discovery_check(rte_pktmbuf_mtod_offset(m, const uint8_t *, offset),
					 readable - offset, total - offset) != PPPOE_OK)
		return &drop_pppoe_discovery;
	return &punt_pppoe_discovery;
}
