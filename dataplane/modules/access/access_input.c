// SPDX-License-Identifier: Apache-2.0
// access-input: frames of home gateways. Reads Ethernet, up to two VLAN tags and PPPoE, checks the IP header, and sorts
// out control packets. It strips nothing: the firewall comes before classification, as in the vAGF paper.
#include "core/node.h"
#include "core/port.h"
#include "host/host.h"
#include "lcp/lcp.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/eth.h"
#include "wire/ip.h"
#include "wire/pppoe.h"
#include <string.h>

DROP_REASON(drop_ethernet, "access-ethernet",
	"the Ethernet header is cut short. Capture the frame: its sender or a device between is at fault")
DROP_REASON(drop_tags, "access-tags", "the frame has more than two VLAN tags. See VLANs of the switch")
DROP_REASON(drop_mac, "access-mac-not-ours",
	"the frame is addressed to another MAC address. The sender has an old MAC address: see mac of the port, show "
	"port")
DROP_REASON(drop_group, "access-group-unicast",
	"the frame is for a broadcast or multicast MAC address, its IP packet for one host. Look at a switch or load "
	"balancer that sends it to all of a link")
DROP_REASON(drop_source, "access-source-mac",
	"the frame's source MAC address is a group address. Capture the frame: its sender or a device between is at "
	"fault")
DROP_REASON(drop_ethertype, "access-ethertype",
	"no such ethertype is served on the access side. Capture the frame: its sender or a device between is at fault")
DROP_REASON(drop_pppoe, "pppoe-malformed",
	"the PPPoE header is cut short, or its length does not fit the frame. Capture the frame: its sender or a "
	"device between is at fault")
DROP_REASON(drop_padt, "pppoe-padt-unknown",
	"PADT for a session that this subscriber does not have. Tags, PPPoE id, MAC address and port must all fit: see "
	"show session, show subscriber")
DROP_REASON(drop_ppp, "ppp-unknown-subscriber",
	"PPP control packet, or DHCP in PPP, of no known session. Tags, PPPoE id, MAC address and port must all fit: "
	"see show session, show subscriber")
DROP_REASON(drop_ip, "access-ip-malformed",
	"the subscriber's IP header is malformed, or its lengths do not fit the frame. Cut-off frames: see MTU, "
	"buffer_size, limits of net_af_packet")
DROP_REASON(drop_checksum, "access-ip-checksum",
	"the subscriber's IPv4 header checksum is wrong (RFC 1812 §5.2.2). Broken packets, or checksums left to a "
	"card: ethtool -K DEVICE tx off")
DROP_REASON(drop_ip_type, "access-ip-version",
	"the IP version does not fit the ethertype or PPP protocol. Capture the frame: its sender or a device between "
	"is at fault")
DROP_REASON(drop_martian, "access-martian",
	"the subscriber's source or destination address may not be used (RFC 1812 §5.3.7). Mostly a subscriber's own "
	"noise: multicast, ::, link-local")
DROP_REASON(drop_multicast, "access-multicast",
	"multicast and broadcast from subscribers is not forwarded. Mostly a subscriber's own noise: multicast, ::, "
	"link-local")

enum { EDGE_LOOKUP, EDGE_ARP, EDGE_ND, EDGE_LCP, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

static int to_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

static int to_us(const struct port *p, const uint8_t *mac)
{
	return memcmp(mac, p->mac.addr_bytes, 6) == 0;
}

// Row B4: the right session id from the wrong MAC or tags matches no session.
static int is_session(struct rte_mbuf *m, const struct endpoint_view *e)
{
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;

	return session_endpoint_known(packet_of(m)->port_in, e, mac) || host_ppp_begins(packet_of(m)->port_in, e, mac);
}

// Packets that skip the firewall: control protocols, and addresses that are never valid.
static rte_edge_t unusual(struct rte_mbuf *m, const struct ip_info *info, unsigned martian, const uint8_t *ip)
{
	enum host_protocol host = host_protocol_of(ip, info);

	if (host != HOST_NONE && endpoint_view_of(m)->pppoe_session != 0 && !is_session(m, endpoint_view_of(m)))
		return packet_leave(m, &drop_ppp, EDGE_DROP);
	if (host != HOST_NONE)
		return packet_leave(m, host_reason_of(host), EDGE_PUNT);
	if (ip_is_discovery(ip, info))
		return EDGE_ND;
	if (martian & (IP_MARTIAN_SOURCE | IP_MARTIAN_DESTINATION))
		return packet_leave(m, &drop_martian, EDGE_DROP);
	return packet_leave(m, &drop_multicast, EDGE_DROP);
}

static inline rte_edge_t ip_packet(struct rte_mbuf *m, uint32_t l3, uint32_t total, uint8_t version)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, l3);
	struct ip_info info;

	pkt->l3 = (uint16_t)l3;
	enum ip_status status = ip_check(ip, rte_pktmbuf_data_len(m) - l3, total, &info);
	if (unlikely(status != IP_OK))
		return packet_leave(m, status == IP_SUM ? &drop_checksum : &drop_ip, EDGE_DROP);
	if (unlikely(info.version != version))
		return packet_leave(m, &drop_ip_type, EDGE_DROP);
	uint32_t excess = rte_pktmbuf_pkt_len(m) - l3 - info.length;
	// Ethernet padding must not become payload. Padding that spans mbufs does not occur: frames are padded to 60
	// bytes.
	if (unlikely(excess != 0) && rte_pktmbuf_trim(m, (uint16_t)RTE_MIN(excess, 65535u)) != 0)
		return packet_leave(m, &drop_ip, EDGE_DROP);
	pkt->ip_version = info.version;
	pkt->protocol = info.protocol;
	pkt->fragment = info.fragment;
	pkt->l4 = (uint16_t)(l3 + info.l4);
	pkt->length = info.length;
	pkt->interface = UINT32_MAX;
	unsigned martian = ip_martian(info.version, info.source, info.destination);
	// RFC 1122 §3.3.6, RFC 1812 §5.3.4: other gateways of the link got it too.
	if (unlikely(to_group(rte_pktmbuf_mtod(m, const uint8_t *)) && !(martian & IP_MULTICAST)))
		return packet_leave(m, &drop_group, EDGE_DROP);
	if (unlikely(martian != 0))
		return unusual(m, &info, martian, ip);
	if (unlikely(endpoint_may_be_control(ip, &info)) &&
		(ip_is_discovery(ip, &info) || host_protocol_of(ip, &info) != HOST_NONE))
		return unusual(m, &info, 0, ip);
	return EDGE_LOOKUP;
}

static int is_lcp_echo(const struct rte_mbuf *m, uint32_t at)
{
	uint8_t code = at < rte_pktmbuf_data_len(m) ? *rte_pktmbuf_mtod_offset(m, const uint8_t *, at) : 0;

	return code >= LCP_ECHO_REQUEST && code <= LCP_DISCARD_REQUEST;
}

static rte_edge_t pppoe_session(struct rte_mbuf *m, struct endpoint_view *e)
{
	uint32_t at = e->l2_length;
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	struct pppoe_info info;

	if (unlikely(pppoe_session_parse(p, rte_pktmbuf_data_len(m) - at, rte_pktmbuf_pkt_len(m) - at, &info) !=
		     PPPOE_OK))
		return packet_leave(m, &drop_pppoe, EDGE_DROP);
	e->pppoe_session = info.session;
	e->encap = API_ENCAP_QINQ_PPPOE;
	e->l2_length += PPPOE_HEADER;
	if (likely(info.protocol == PPP_IP4 || info.protocol == PPP_IP6))
		return ip_packet(m, e->l2_length, info.payload, info.protocol == PPP_IP4 ? 4 : 6);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	const struct rule *r = session_endpoint_rule(packet_of(m)->port_in, e, mac);
	if (r == NULL && !host_ppp_begins(packet_of(m)->port_in, e, mac)) // row B4
		return packet_leave(m, &drop_ppp, EDGE_DROP);
	if (r != NULL && info.protocol == PPP_LCP && is_lcp_echo(m, e->l2_length) && lcp_is_open(r->session))
		return EDGE_LCP;
	return packet_leave(m, &punt_ppp_control, EDGE_PUNT);
}

static rte_edge_t pppoe_discovery(struct rte_mbuf *m, struct endpoint_view *e)
{
	uint32_t at = e->l2_length;
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	const struct reason *reason = host_pppoe_discovery(m, at);

	if (reason->kind == REASON_DROP)
		return packet_leave(m, reason, EDGE_DROP);
	e->pppoe_session = (uint16_t)(p[2] << 8 | p[3]);
	if (p[1] == PPPOE_PADT && !is_session(m, e))
		return packet_leave(m, &drop_padt, EDGE_DROP);
	return packet_leave(m, reason, EDGE_PUNT);
}

static rte_edge_t by_ethertype(struct rte_mbuf *m, struct endpoint_view *e)
{
	switch (e->ethertype) {
	case ETH_TYPE_IP4:
	case ETH_TYPE_IP6:
		e->encap = API_ENCAP_QINQ;
		return ip_packet(
			m, e->l2_length, rte_pktmbuf_pkt_len(m) - e->l2_length, e->ethertype == ETH_TYPE_IP4 ? 4 : 6);
	case ETH_TYPE_PPPOE_SESSION:
		return pppoe_session(m, e);
	case ETH_TYPE_PPPOE_DISCOVERY:
		return pppoe_discovery(m, e);
	case ETH_TYPE_ARP:
		return EDGE_ARP;
	default:
		return packet_leave(m, &drop_ethertype, EDGE_DROP);
	}
}

static rte_edge_t access_input_packet(struct worker *w, struct rte_node *node, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct endpoint_view *e = endpoint_view_of(m);
	const struct port *p = port_get(packet_of(m)->port_in);
	uint32_t l3, total;
	struct eth_info eth;

	packet_of(m)->ip_version = 0;
	e->permitted = 0;
	if (unlikely(p == NULL || rte_pktmbuf_data_len(m) < ETH_HEADER))
		return packet_leave(m, &drop_ethernet, EDGE_DROP);
	if (unlikely(!to_us(p, frame) && !to_group(frame)))
		return packet_leave(m, &drop_mac, EDGE_DROP);
	if (unlikely(to_group(frame + 6)))
		return packet_leave(m, &drop_source, EDGE_DROP);
	uint8_t version = endpoint_read(frame, rte_pktmbuf_data_len(m), rte_pktmbuf_pkt_len(m), e, &l3, &total);
	if (likely(version != 0))
		return ip_packet(m, l3, total, version);
	enum eth_status status = eth_parse(frame, rte_pktmbuf_data_len(m), &eth);
	if (unlikely(status != ETH_OK))
		return packet_leave(m, status == ETH_TAGS ? &drop_tags : &drop_ethernet, EDGE_DROP);
	e->l2_length = eth.length;
	e->ethertype = eth.ethertype;
	e->s_tag = eth.vlan[0];
	e->c_tag = eth.vlan[1];
	e->outer_tpid = eth.tpid[0];
	e->pppoe_session = 0;
	e->encap = API_ENCAP_NONE;
	e->tags = eth.tags;
	return by_ethertype(m, e);
}

NODE_EACH(access_input, access_input_packet)

static struct rte_node_register access_input_node = {
	.name = "access-input",
	.process = access_input,
	.nb_edges = EDGE_COUNT,
	.next_nodes =
		{
			[EDGE_LOOKUP] = "@lookup-uplink",
			[EDGE_ARP] = "arp-access",
			[EDGE_ND] = "nd-access",
			[EDGE_LCP] = "lcp-echo",
			[EDGE_PUNT] = "access-punt",
			[EDGE_DROP] = "drop",
		},
};
NODE_REGISTER(access_input_node)
NODE_ARC("input-access", "access-input")

RTE_INIT(access_input_of_ports)
{
	port_input_register(API_ROLE_ACCESS, "@input-access");
}
