// SPDX-License-Identifier: Apache-2.0
// ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861) on core interfaces: questions, answers, and which packets
// are believed.
//
// Accepted are (1) answers to our own questions and (2) the sender of a question to us, if packets are sent to it
// anyway. Also (3) a gratuitous announcement of a known neighbour, by which a gateway moves to its standby. Received
// packets never create an entry.
#include "core/object.h"
#include "host/clone.h"
#include "neighbour/table.h"
#include "wire/arp.h"
#include "wire/eth.h"
#include "wire/ip.h"
#include "wire/nd.h"
#include <string.h>

#define ANSWERS_PER_SECOND 1000 // all interfaces together

DROP_REASON(drop_arp_target, "arp-not-for-us",
	"an ARP packet about an address that is not ours. Normal; many: a wrong netmask, proxy ARP")
DROP_REASON(drop_arp_unsolicited, "arp-unsolicited",
	"an ARP reply to no question of ours. Normal; many: a wrong netmask, proxy ARP")
DROP_REASON(drop_nd_target, "nd-not-for-us",
	"a neighbour solicitation for an address that is not ours. Normal; many: a wrong netmask, proxy ARP")
DROP_REASON(drop_nd_unsolicited, "nd-unsolicited",
	"a neighbour advertisement to no question of ours. Normal; many: a wrong netmask, proxy ARP")
DROP_REASON(drop_conflict, "address-conflict",
	"another host on the link says that it has one of our addresses. Look for that host by its MAC address: "
	"capture --port")
DROP_REASON(drop_rate, "neighbour-rate-limit",
	"more ARP requests and neighbour solicitations than are answered. A storm of ARP or ND: look for a loop or a "
	"broken host")

static struct {
	uint64_t second; // of the count below
	uint32_t answers;
} limit;

static int may_answer(void)
{
	uint64_t second = control_now_ns() / 1000000000ull;

	if (second != limit.second) {
		limit.second = second;
		limit.answers = 0;
	}
	return limit.answers++ < ANSWERS_PER_SECOND;
}

// Begins our frame on an interface; returns the place of its payload. NULL when there are no buffers.
static uint8_t *frame_begin(struct rte_mbuf **m, const struct interface *i, const uint8_t *destination,
	uint16_t ethertype, uint16_t payload)
{
	*m = control_originate();
	if (*m == NULL)
		return NULL;
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(*m, i->l2_length + payload);
	if (p == NULL) { // buffers are far larger than any of these messages
		control_drop(*m, &drop_rate);
		return NULL;
	}
	p = interface_header(p, i, destination);
	store16(p, ethertype);
	packet_of(*m)->port_out = i->port;
	packet_of(*m)->interface = i->index;
	return p + 2;
}

static void frame_send(struct rte_mbuf *m)
{
	control_inject(0, "port-tx", m);
}

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void arp_send(const struct interface *i, uint16_t operation, const uint8_t *to_mac, const uint8_t *sender,
	const uint8_t *target)
{
	struct rte_mbuf *m;
	uint8_t *p = frame_begin(&m, i, to_mac, ETH_TYPE_ARP, ARP_LENGTH);

	if (p == NULL)
		return;
	arp_put(p, operation, i->mac.addr_bytes, sender, to_mac == broadcast ? NULL : to_mac, target);
	frame_send(m);
}

static void ns_send(const struct interface *i, const uint8_t *to_mac, const uint8_t *source, const uint8_t *target)
{
	uint8_t group[16], mac[6];
	struct rte_mbuf *m;

	nd_solicited_node(group, target);
	nd_group_mac(mac, group);
	uint8_t *p = frame_begin(&m, i, to_mac ? to_mac : mac, ETH_TYPE_IP6, ND_LENGTH);
	if (p == NULL)
		return;
	nd_put_ns(p, source, to_mac ? target : NULL, target, i->mac.addr_bytes);
	frame_send(m);
}

static void na_send(
	const struct interface *i, const uint8_t *to_mac, const uint8_t *to, const uint8_t *target, uint8_t flags)
{
	struct rte_mbuf *m;
	uint8_t *p = frame_begin(&m, i, to_mac, ETH_TYPE_IP6, ND_LENGTH);

	if (p == NULL)
		return;
	nd_put_na(p, target, to, target, i->mac.addr_bytes, flags);
	frame_send(m);
}

void exchange_probe(const struct neighbour *n)
{
	const struct interface *i = interface_get(n->interface);
	const uint8_t *address = neighbour_bytes(n);
	const uint8_t *source = ip_source_towards(n->family, n->interface, address);
	const uint8_t *mac = n->state == STALE ? n->mac.addr_bytes : NULL;

	if (i == NULL || i->down || source == NULL)
		return; // nothing leaves, or we have no address to ask from; the neighbour fails in time
	if (n->family == 4)
		arp_send(i, ARP_REQUEST, mac ? mac : broadcast, source, address);
	else
		ns_send(i, mac, source, address);
}

static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};

void exchange_announce(const struct interface *i, const struct api_address *a)
{
	uint8_t mac[6];

	nd_group_mac(mac, all_nodes);
	if (a->family == 4)
		arp_send(i, ARP_REQUEST, broadcast, a->bytes, a->bytes);
	else
		na_send(i, mac, all_nodes, a->bytes, ND_ROUTER | ND_OVERRIDE);
}

static int asked(const struct neighbour *n)
{
	return n->state == INCOMPLETE || n->state == FAILED || (n->state == STALE && n->probes > 0);
}

static int known(const struct neighbour *n)
{
	return n->state == REACHABLE || n->state == STALE;
}

// A message that says `address` has `mac`. Returns 1 when it was believed.
static int believe(uint32_t interface, uint8_t family, const uint8_t *address, const uint8_t *mac, int solicited)
{
	struct neighbour *n = neighbour_find(interface, family, address);

	if (n == NULL || n->state == STATIC)
		return 0;
	if (asked(n) || (known(n) && (!solicited || memcmp(&n->mac, mac, 6) == 0))) {
		neighbour_learn(n, mac);
		return 1;
	}
	return 0;
}

static const struct reason *arp_request(const struct interface *i, const struct arp_info *arp)
{
	static const uint8_t nobody[4];

	if (memcmp(arp->sender, arp->target, 4) == 0) // gratuitous
		return believe(i->index, 4, arp->sender, arp->sender_mac, 0) ? NULL : &drop_arp_target;
	if (!ip_is_local_on(4, arp->target, i->index))
		return &drop_arp_target;
	if (memcmp(arp->sender, nobody, 4) != 0)
		believe(i->index, 4, arp->sender, arp->sender_mac, 0);
	if (!may_answer())
		return &drop_rate;
	arp_send(i, ARP_REPLY, arp->sender_mac, arp->target, arp->sender);
	return NULL;
}

static const struct reason *arp_packet(const struct interface *i, const struct arp_info *arp)
{
	if (memcmp(arp->sender_mac, &i->mac, 6) == 0 || ip_is_local_on(4, arp->sender, i->index))
		return &drop_conflict;
	if (arp->operation == ARP_REQUEST)
		return arp_request(i, arp);
	// A reply whose sender is its target is an announcement too (RFC 5944 §4.6).
	int gratuitous = memcmp(arp->sender, arp->target, 4) == 0;
	if (!gratuitous && !ip_is_local_on(4, arp->target, i->index))
		return &drop_arp_target;
	return believe(i->index, 4, arp->sender, arp->sender_mac, !gratuitous) ? NULL : &drop_arp_unsolicited;
}

static int mac_usable(const uint8_t *mac)
{
	return mac != NULL && !(mac[0] & 1) && !rte_is_zero_ether_addr((const struct rte_ether_addr *)mac);
}

static const struct reason *solicitation(const struct interface *i, const struct nd_info *nd, const uint8_t *from_mac)
{
	if (!ip_is_local_on(6, nd->target, i->index))
		return &drop_nd_target;
	if (!nd->probe && mac_usable(nd->mac))
		believe(i->index, 6, nd->source, nd->mac, 0);
	if (!may_answer())
		return &drop_rate;
	// RFC 4861 §7.2.4: the answer to a duplicate address probe is multicast.
	if (nd->probe) {
		struct api_address ours = {.family = 6, .prefix = 128};

		memcpy(ours.bytes, nd->target, 16);
		exchange_announce(i, &ours);
		return NULL;
	}
	na_send(i, mac_usable(nd->mac) ? nd->mac : from_mac, nd->source, nd->target,
		ND_ROUTER | ND_SOLICITED | ND_OVERRIDE);
	return NULL;
}

static const struct reason *advertisement(const struct interface *i, const struct nd_info *nd)
{
	if (ip_is_local_on(6, nd->target, i->index))
		return &drop_conflict;
	// Without its option an advertisement only confirms what we know (RFC 4861 §7.2.5).
	struct neighbour *n = neighbour_find(i->index, 6, nd->target);
	const uint8_t *mac = nd->mac;
	if (mac == NULL && n != NULL && known(n))
		mac = n->mac.addr_bytes;
	if (!mac_usable(mac))
		return &drop_nd_unsolicited;
	int solicited = (nd->flags & ND_SOLICITED) || !(nd->flags & ND_OVERRIDE);
	return believe(i->index, 6, nd->target, mac, solicited) ? NULL : &drop_nd_unsolicited;
}

static const struct reason *nd_packet(const struct interface *i, const struct nd_info *nd, const uint8_t *from_mac)
{
	if (!nd->probe && ip_is_local_on(6, nd->source, i->index))
		return &drop_conflict;
	return nd->type == ND_SOLICIT ? solicitation(i, nd, from_mac) : advertisement(i, nd);
}

// The kernel also asks and listens, but we answer for both; a packet that is not for us may be its answer.
static const struct reason *tell_kernel(const struct rte_mbuf *m, int answered, const struct reason *drop)
{
	if (answered || drop == &drop_conflict || clone_up(m) != CLONE_TAKEN)
		return drop;
	return NULL;
}

// The frame ends here: served, or dropped with a reason.
static void finish(struct rte_mbuf *m, const struct reason *drop)
{
	if (drop != NULL)
		control_drop(m, drop);
	else
		rte_pktmbuf_free(m);
}

static void arp_arrived(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const struct interface *i = interface_get(pkt->interface);
	struct arp_info arp;

	if (i == NULL || pkt->l3 > rte_pktmbuf_data_len(m) ||
		arp_parse(rte_pktmbuf_mtod_offset(m, const uint8_t *, pkt->l3), rte_pktmbuf_data_len(m) - pkt->l3,
			&arp) != ARP_OK) {
		finish(m, &drop_arp_malformed);
		return;
	}
	int ours = arp.operation == ARP_REQUEST && ip_is_local_on(4, arp.target, i->index);
	finish(m, tell_kernel(m, ours, arp_packet(i, &arp)));
}

static void nd_arrived(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const struct interface *i = interface_get(pkt->interface);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m);
	struct nd_info nd;

	if (i == NULL || pkt->l3 > readable || pkt->l3 < ETH_HEADER ||
		nd_parse(frame + pkt->l3, readable - pkt->l3, total - pkt->l3, &nd) != ND_OK) {
		finish(m, &drop_nd_malformed);
		return;
	}
	int ours = nd.type == ND_SOLICIT && ip_is_local_on(6, nd.target, i->index);
	finish(m, tell_kernel(m, ours, nd_packet(i, &nd, frame + 6)));
}

void exchange_start(void)
{
	punt_handler_register(&punt_arp, arp_arrived);
	punt_handler_register(&punt_nd, nd_arrived);
}
