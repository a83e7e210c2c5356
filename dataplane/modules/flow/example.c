// SPDX-License-Identifier: Apache-2.0
// What makes a packet an example: what core-input, ip-input and gtpu-input look up.
#include "flow/example.h"
#include "core/port.h"
#include "firewall/firewall.h"
#include "instance/instance.h"
#include "path/local.h"
#include "route/route.h"

// The access list of an instance looks at more than a flow of the session says.
static int is_open(uint16_t instance)
{
	return instance != INSTANCE_NONE && firewall_instance_list(instance) == NULL;
}

// 1 when the packet is a G-PDU to one of our endpoints. Row G20: an endpoint serves only the interface that has its
// address.
static int fill_tunnel(struct example *e, const uint8_t *ip, const struct interface *i)
{
	if (e->version != 4 || e->l3 > ETH_HEADER + ETH_TAG || !plain_is_gpdu(ip) ||
		!ip_is_local_on(4, ip + 16, i->index))
		return 0;
	e->local = path_local_id(4, ip + 16);
	e->instance = instance_of_local(e->local);
	e->kind = is_open(e->instance) ? EXAMPLE_TUNNEL : EXAMPLE_OTHER;
	return 1;
}

static void fill_wide(struct example *e, const struct interface *i)
{
	e->instance = instance_of_lookup(i->index);
	const struct instance *n = instance_get(e->instance);

	e->kind = n != NULL && n->lookup == API_LOOKUP_DESTINATION && is_open(e->instance) ? EXAMPLE_UE : EXAMPLE_OTHER;
}

// As core-input: our MAC address, an interface of ours, IP.
static const struct interface *interface_of(struct example *e, const uint8_t *frame, uint32_t length)
{
	const struct port *p = port_get(e->port_in);
	struct eth_info eth;

	if (p == NULL || eth_parse(frame, length, &eth) != ETH_OK || (frame[0] & 1) ||
		(!p->want.promiscuous && !rte_is_same_ether_addr((const struct rte_ether_addr *)frame, &p->mac)))
		return NULL;
	e->l3 = eth.length;
	e->version = eth.ethertype == ETH_TYPE_IP4 ? 4 : eth.ethertype == ETH_TYPE_IP6 ? 6 : 0;
	return e->version != 0 ? interface_find(e->port_in, eth.vlan[0], eth.vlan[1]) : NULL;
}

static const struct example *keep(struct example *list, uint8_t *count, const struct example *e)
{
	if (*count == EXAMPLES)
		return NULL;
	list[*count] = *e;
	return &list[(*count)++];
}

static const struct example *make(struct examples *x, struct rte_mbuf *m, const uint8_t *frame)
{
	struct example e = {.port_in = packet_of(m)->port_in};
	const struct interface *i = interface_of(&e, frame, rte_pktmbuf_data_len(m));

	if (i == NULL)
		return NULL;
	int narrow = fill_tunnel(&e, frame + e.l3, i);
	if (!narrow)
		fill_wide(&e, i);
	plain_bytes_set(&e.bytes, frame, e.l3, narrow);
	return narrow ? keep(x->narrow, &x->narrows, &e) : keep(x->wide, &x->wides, &e);
}

const struct example *example_find(struct examples *x, struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct example *wide = NULL;

	for (uint8_t i = 0; i < x->narrows; i++)
		if (example_holds(&x->narrow[i], m, frame))
			return &x->narrow[i];
	for (uint8_t i = 0; i < x->wides && wide == NULL; i++)
		if (example_holds(&x->wide[i], m, frame))
			wide = &x->wide[i];
	if (wide != NULL && !(wide->version == 4 && plain_to_gtpu(frame + wide->l3)))
		return wide;
	if (x->looks >= EXAMPLE_LOOKS)
		return wide;
	x->looks++;
	const struct example *made = make(x, m, frame);
	return made != NULL ? made : wide;
}
