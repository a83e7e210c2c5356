// SPDX-License-Identifier: Apache-2.0
// What makes a packet an example for plain_take().
#include "gtpu/plain.h"
#include "route/route.h"

int plain_learn(struct plain *p, struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *), *ip = frame + pkt->l3;

	p->looked++;
	// A group's MAC address is for core-input to look at (RFC 1122 §3.3.6).
	if (pkt->ip_version != 4 || (frame[0] & 1) || (pkt->l3 != ETH_HEADER && pkt->l3 != ETH_HEADER + ETH_TAG) ||
		rte_pktmbuf_data_len(m) < PLAIN_LENGTH_MIN)
		return 0;
	if (!plain_is_gpdu(ip))
		return 0;
	p->known = 0;
	// Row G20: an endpoint serves only the interface that has its address.
	p->local = ip_is_local_on(4, ip + 16, pkt->interface) ? path_local_id(4, ip + 16) : PATH_LOCAL_NONE;
	if (p->local == PATH_LOCAL_NONE)
		return 0;
	p->instance = instance_of_local(p->local);
	p->interface = pkt->interface;
	p->port_in = pkt->port_in;
	p->l3 = pkt->l3;
	plain_bytes_set(&p->bytes, frame, p->l3, 1);
	p->known = 1;
	return 1;
}
