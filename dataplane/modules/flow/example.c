// SPDX-License-Identifier: Apache-2.0
// Makes a packet an example: the look-ups of core-input, ip-input and gtpu-input.
#include "flow/example.h"
#include "core/port.h"
#include "firewall/firewall.h"
#include "flow/flow.h"
#include "instance/instance.h"
#include "nat/nat.h"
#include "nptv6/nptv6.h"
#include "path/local.h"
#include "route/route.h"

// An access list looks at more fields than a flow of the session has.
static int is_open(uint16_t instance)
{
	return instance != INSTANCE_NONE && firewall_instance_list(instance) == NULL;
}

static const uint8_t *destination_of(const struct example *e, const uint8_t *ip)
{
	return ip + (e->version == 4 ? 16 : 24);
}

// 1 when the packet is a G-PDU to one of our endpoints (over IPv6, any GTP-U). Row G20: an endpoint serves only the
// interface with its address.
static int is_tunnel(const struct example *e, const uint8_t *ip, const struct interface *i)
{
	return e->l3 <= ETH_HEADER + ETH_TAG && (e->version == 4 ? plain_is_gpdu(ip) : plain_to_gtpu(6, ip)) &&
	       ip_is_local_on(e->version, destination_of(e, ip), i->index);
}

static void fill_tunnel(struct example *e, const struct worker *w, const uint8_t *ip)
{
	e->local = path_local_id(e->version, destination_of(e, ip));
	e->instance = instance_of_local(e->local);
	e->user.by = e->instance == INSTANCE_NONE ? BY_SUBSCRIBER : BY_KEY;
	if (e->local == PATH_LOCAL_NONE || (e->user.by == BY_KEY && !is_open(e->instance)))
		return;
	e->user.by |= e->rpf != 0 ? BY_RPF : 0;
	e->kind = e->version == 4 ? EXAMPLE_TUNNEL : EXAMPLE_TUNNEL6;
	e->key = flow_entry_key(w, fteid_key(0, e->local));
	e->in_place = *flow_in_place(w, 1, e->local) > 0;
	if (e->instance != INSTANCE_NONE && *flow_several(w, 1, e->local) > 0)
		e->user.by = BY_FLOW | (e->user.by & BY_RPF);
	e->offset = e->in_place ? flow_place_offset(e->key) : flow_offset(e->key);
}

// Turns a tunnel's example into an example of this packet's GTP-U header. Its fields that are the same in all packets
// are compared as well, and the first byte behind it. Returns 0 when the header does not pass unchanged.
static int fill_plain(struct example *e, const uint8_t *frame, uint32_t total)
{
	uint32_t gtpu = e->l3 + PLAIN_OUTER;
	uint8_t *mask = e->bytes.mask + gtpu;
	struct gtpu_info g;

	if (total <= gtpu + GTPU_HEADER_CONTAINER ||
		gtpu_parse(frame + gtpu, total - gtpu, total - gtpu, &g) != GTPU_OK || g.more != 0 ||
		(g.header_length != GTPU_HEADER && (frame[gtpu] != 0x34 || g.qfi == GTPU_NO_QFI)))
		return 0;
	uint8_t first = frame[gtpu + g.header_length];
	if (first != 0x45 && first >> 4 != 6)
		return 0;
	memcpy(e->bytes.want, frame, PLAIN_BYTES);
	mask[0] = 0xff;
	if (g.qfi != GTPU_NO_QFI) {
		memset(mask + 11, 0xff, 5);
		mask[14] = 0xc0; // all but the QFI
	}
	mask[g.header_length] = first == 0x45 ? 0xff : 0xf0;
	e->kind = EXAMPLE_PLAIN;
	e->user = (struct user_head){.at = (uint16_t)(gtpu + g.header_length),
		.version = first >> 4,
		.simple = first == 0x45,
		.pdu_type = (uint8_t)(g.qfi != GTPU_NO_QFI ? g.pdu_type + 1 : API_PDU_NONE),
		.qfi = g.qfi,
		.by = e->user.by};
	return 1;
}

static int translates(const struct instances *n, uint8_t vrf, int six)
{
	for (uint16_t i = 0; i < MAX_INSTANCES; i++)
		if ((six ? nptv6_of(i) != NULL : nat_of(i) != NULL) && instance_vrf(n, i) == vrf)
			return 1;
	return 0;
}

// 1 when only destinations in the VRF's pools can be UEs, and no packet that leaves by it is translated.
static int is_alone(uint8_t vrf, int six)
{
	const struct instances *n = instances_get();

	for (uint8_t i = 0; i < n->lookers; i++)
		if (instance_vrf(n, n->looker[i]) == vrf)
			return 0;
	for (uint8_t i = 0; i < n->owners; i++)
		if (instance_vrf(n, n->owner[i]) == vrf && session_homes_of(n->owner[i]) != 0)
			return 0;
	return !((six ? nptv6_anywhere() : nat_anywhere()) && translates(n, vrf, six));
}

static void fill_wide(struct example *e, const struct worker *w, const struct interface *i)
{
	static const uint8_t zero[16];
	const struct ue_lengths *lengths = __atomic_load_n(&session_tables.lengths, __ATOMIC_ACQUIRE);
	int six = e->version == 6;

	e->is_wide = 1;
	e->instance = instance_of_lookup(i->index);
	const struct instance *n = instance_get(e->instance);
	if (e->instance != INSTANCE_NONE && (n == NULL || n->lookup != API_LOOKUP_DESTINATION || !is_open(e->instance)))
		return;
	if (six && nptv6_of(e->instance) != NULL) // nptv6-downlink says whose the packet is
		return;
	e->user.at = e->l3;
	e->user.version = e->version;
	e->user.qfi = GTPU_NO_QFI;
	e->user.by = BY_ROUTE;
	e->routed = &flow_routed[w->id].of_vrf[e->vrf];
	e->nat = nat_of(e->instance);
	if (e->instance == INSTANCE_NONE || lengths->count[six] == 0) {
		e->kind = e->nat == NULL || six ? EXAMPLE_ROUTED : EXAMPLE_OTHER;
		e->alone = e->kind == EXAMPLE_ROUTED && e->rpf == 0 && is_alone(e->vrf, six);
		return;
	}
	e->kind = EXAMPLE_UE;
	e->homes = session_homes_of(e->instance) != 0;
	e->user.by = e->homes || *flow_several(w, 0, e->instance) > 0 ? BY_FLOW : BY_KEY;
	e->prefix = lengths->prefix[six][0];
	e->key = flow_entry_key(w, ue_key((uint8_t)e->instance, 0, e->version, zero, e->prefix));
	e->address_mask = e->prefix == 0 ? 0 : rte_cpu_to_be_32(UINT32_MAX << (32 - RTE_MIN(e->prefix, 32)));
	e->in_place = !six && *flow_in_place(w, 0, e->instance) > 0;
	e->offset = e->in_place ? flow_place_offset(e->key) : flow_offset(e->key);
}

// As core-input: our MAC address, an interface of ours that is up, IP.
static const struct interface *interface_of(struct example *e, const uint8_t *frame, uint32_t length)
{
	const struct port *p = port_get(e->port_in);
	struct eth_info eth;

	if (p == NULL || eth_parse(frame, length, &eth) != ETH_OK || (frame[0] & 1) ||
		(!p->want.promiscuous && !rte_is_same_ether_addr((const struct rte_ether_addr *)frame, &p->mac)))
		return NULL;
	e->l3 = eth.length;
	e->version = eth.ethertype == ETH_TYPE_IP4 ? 4 : eth.ethertype == ETH_TYPE_IP6 ? 6 : 0;
	const struct interface *i = e->version != 0 ? interface_find(e->port_in, eth.vlan[0], eth.vlan[1]) : NULL;
	if (i == NULL || i->down)
		return NULL;
	e->vrf = i->vrf;
	e->rpf = i->rpf;
	e->interface = i->index;
	return i;
}

static const struct example *keep(struct example *list, uint8_t *count, const struct example *e)
{
	if (*count == EXAMPLES)
		return NULL;
	list[*count] = *e;
	return &list[(*count)++];
}

static const struct example *make(struct examples *x, const struct worker *w, struct rte_mbuf *m, const uint8_t *frame)
{
	struct example e = {.port_in = packet_of(m)->port_in, .kind = EXAMPLE_OTHER};
	const struct interface *i = interface_of(&e, frame, rte_pktmbuf_data_len(m));

	x->looks++;
	if (i == NULL)
		return NULL;
	int tunnel = is_tunnel(&e, frame + e.l3, i);
	plain_bytes_set(&e.bytes, frame, e.l3, tunnel ? e.version : 0);
	if (tunnel) {
		fill_tunnel(&e, w, frame + e.l3);
		return keep(x->tunnel, &x->tunnels, &e);
	}
	fill_wide(&e, w, i);
	e.user.by |= e.rpf != 0 ? BY_RPF : 0;
	return keep(x->wide, &x->wides, &e);
}

static const struct example *find(const struct example *list, uint8_t count, struct rte_mbuf *m, const uint8_t *frame)
{
	for (uint8_t i = 0; i < count; i++)
		if (example_holds(&list[i], m, frame))
			return &list[i];
	return NULL;
}

// The example of an endpoint's packet: by its GTP-U header where possible, so that all packets have keys.
static const struct example *plain_of(
	struct examples *x, const struct example *tunnel, const uint8_t *frame, uint32_t total)
{
	struct example e = *tunnel;
	const struct example *plain =
		x->plains < EXAMPLES && fill_plain(&e, frame, total) ? keep(x->plain, &x->plains, &e) : NULL;

	return plain != NULL ? plain : tunnel;
}

const struct example *example_find(struct examples *x, const struct worker *w, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct example *e = find(x->plain, x->plains, m, frame), *wide = NULL;

	if (e != NULL)
		return e;
	e = find(x->tunnel, x->tunnels, m, frame);
	if (e == NULL) {
		wide = find(x->wide, x->wides, m, frame);
		if (wide != NULL && !plain_to_gtpu(wide->version, frame + wide->l3))
			return wide;
		e = x->looks < EXAMPLE_LOOKS ? make(x, w, m, frame) : NULL;
	}
	if (e != NULL && e->kind == EXAMPLE_TUNNEL)
		return plain_of(x, e, frame, rte_pktmbuf_data_len(m));
	return e != NULL ? e : wide;
}
