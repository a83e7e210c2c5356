// SPDX-License-Identifier: Apache-2.0
// core-input: frames from core ports. Checks that the frame is for us, and finds its interface and content.
#include "core/control.h"
#include "core/node.h"
#include "core/port.h"
#include "host/clone.h"
#include "host/host.h"
#include "neighbour/neighbour.h"
#include "route/route.h"
#include "wire/eth.h"
#include "wire/ip.h"

DROP_REASON(drop_short, "ethernet-short",
	"the frame ends within its Ethernet header or a VLAN tag. Capture the frame: its sender or a device between is "
	"at fault")
DROP_REASON(drop_tags, "ethernet-tags", "the frame has more than two VLAN tags. See VLANs of the switch")
DROP_REASON(drop_mac, "mac-not-ours",
	"the frame's destination MAC address is another host's. The sender has an old MAC address: see mac of the "
	"port, show port")
DROP_REASON(drop_group, "ethernet-group-unicast",
	"the frame is for a broadcast or multicast MAC address, its IP packet for one host. Look at a switch or load "
	"balancer that sends it to all of a link")
DROP_REASON(drop_vlan, "interface-unknown",
	"no interface is configured on the frame's port and VLAN. See interfaces of the file, VLANs of the switch")
DROP_REASON(drop_down, "interface-down",
	"the frame's interface is down. See ip link in the clone's namespace: it was set down")
DROP_REASON(drop_type, "ethertype-unknown",
	"the frame carries neither IPv4, IPv6 nor ARP. Capture the frame: its sender or a device between is at fault")

enum { EDGE_IP, EDGE_PUNT, EDGE_DROP, EDGE_COUNT };

// The last port and interface: most frames of a vector share one. Lives for one vector, within a walk.
struct last {
	uint16_t port;
	uint16_t vlan[2];
	const struct port *p;
	const struct interface *interface; // NULL also when it is down
	int down;
};

static inline void look_up(struct last *last, uint16_t port, const struct eth_info *eth)
{
	if (likely(last->port == port && last->vlan[0] == eth->vlan[0] && last->vlan[1] == eth->vlan[1]))
		return;
	// A priority tag (VLAN id 0) belongs to the untagged interface (IEEE 802.1Q §6.9.1).
	*last = (struct last){.port = port, .vlan = {eth->vlan[0], eth->vlan[1]}};
	last->p = port_get(port);
	last->interface = last->p != NULL ? interface_find(port, eth->vlan[0], eth->vlan[1]) : NULL;
	if (last->interface != NULL && last->interface->down) {
		last->interface = NULL;
		last->down = 1;
	}
}

// IEEE 802.3: our own address, or a group. Which groups matter is for IP and the neighbour module to say.
static inline int mac_for_us(const struct port *p, const uint8_t *destination)
{
	return rte_is_same_ether_addr((const struct rte_ether_addr *)destination, &p->mac) || (destination[0] & 1) ||
	       p->want.promiscuous;
}

// RFC 1122 §3.3.6, RFC 1812 §5.3.4: a frame to many hosts is neither forwarded nor answered by each of them, unless
// IP's destination is multicast too. Too short to check: ip-input drops it.
static __rte_noinline int is_unicast(const struct rte_mbuf *m, const struct packet *pkt)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3);
	uint32_t at = pkt->ip_version == 4 ? 16 : 24;

	return rte_pktmbuf_data_len(m) >= pkt->l3 + at + 4 && !ip_is_group(pkt->ip_version, ip + at);
}

// Neither IP nor ARP.
static __rte_noinline rte_edge_t other_type(struct rte_mbuf *m, uint16_t ethertype)
{
	const struct packet *pkt = packet_of(m);

	if (clone_exists(pkt->interface) &&
		host_is_link_protocol(ethertype, rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3),
			rte_pktmbuf_data_len(m) - pkt->l3))
		return packet_leave(m, &punt_link, EDGE_PUNT);
	return packet_leave(m, &drop_type, EDGE_DROP);
}

static __rte_always_inline rte_edge_t core_input(struct rte_mbuf *m, struct last *last)
{
	struct packet *pkt = packet_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct eth_info eth;
	enum eth_status status = eth_parse(frame, rte_pktmbuf_data_len(m), &eth);

	pkt->interface = UINT32_MAX;
	pkt->ip_version = 0;
	if (unlikely(status != ETH_OK))
		return packet_leave(m, status == ETH_TAGS ? &drop_tags : &drop_short, EDGE_DROP);
	look_up(last, pkt->port_in, &eth);
	if (unlikely(last->p == NULL || !mac_for_us(last->p, frame)))
		return packet_leave(m, &drop_mac, EDGE_DROP);
	if (unlikely(last->interface == NULL))
		return packet_leave(m, last->down ? &drop_down : &drop_vlan, EDGE_DROP);
	pkt->interface = last->interface->index;
	pkt->vrf = last->interface->vrf;
	pkt->rpf = last->interface->rpf;
	pkt->l3 = eth.length;
	pkt->ip_version = eth.ethertype == ETH_TYPE_IP4 ? 4 : eth.ethertype == ETH_TYPE_IP6 ? 6 : 0;
	if (likely(pkt->ip_version != 0)) {
		if (unlikely((frame[0] & 1) && is_unicast(m, pkt)))
			return packet_leave(m, &drop_group, EDGE_DROP);
		return EDGE_IP;
	}
	if (eth.ethertype == ETH_TYPE_ARP)
		return packet_leave(m, &punt_arp, EDGE_PUNT);
	return other_type(m, eth.ethertype);
}

static uint16_t core_input_process(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct last last = {.port = PORT_NONE};
	rte_edge_t next[NODE_CHUNK];

	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i++)
			next[i] = core_input(objs[base + i], &last);
		node_dispatch(graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register core_input_node = {
	.name = "core-input",
	.process = core_input_process,
	.nb_edges = EDGE_COUNT,
	.next_nodes = {[EDGE_IP] = "@input-ip", [EDGE_PUNT] = "punt", [EDGE_DROP] = "drop"},
};
NODE_REGISTER(core_input_node)
NODE_ARC("input-core", "core-input")

RTE_INIT(core_input_of_ports)
{
	port_input_register(API_ROLE_CORE, "@input-core");
}
