// SPDX-License-Identifier: Apache-2.0
// Outer headers: of copies, UDP tunnels and our own messages, by the full nodes; the mark also by offload.
#include "core/packet.h"
#include "path/path.h"
#include "wire/ecn.h"
#include <rte_ip.h>

void path_finish_outer(struct rte_mbuf *m, uint8_t vrf, uint8_t version, uint32_t length)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t header = version == 4 ? 20 : 40;
	struct packet *pkt = packet_of(m);

	store16(ip + header + 4, (uint16_t)(length - header));
	memset(ip + header + 6, 0, 2);
	if (version == 4) {
		store16(ip + 2, (uint16_t)length);
		ip4_checksum_set(ip);
	} else {
		store16(ip + 4, (uint16_t)(length - 40));
		uint16_t sum = rte_ipv6_udptcp_cksum_mbuf(m, (const struct rte_ipv6_hdr *)ip, 40);
		memcpy(ip + header + 6, &sum, 2);
	}
	pkt->l3 = 0;
	pkt->l4 = (uint16_t)header;
	pkt->ip_version = version;
	pkt->vrf = vrf;
	pkt->protocol = 17;
	pkt->fragment = 0;
	pkt->translated = 0;
	pkt->length = length;
}

void path_mark(uint8_t *ip, const struct path *p, uint8_t dscp, uint8_t ecn)
{
	ip_traffic_class_set(p->version, ip, (uint8_t)((dscp == 0xff ? p->want.dscp : dscp) << 2 | ecn));
}

void path_identify(uint8_t *ip, struct worker *w, uint32_t of)
{
	if (ip[0] >> 4 != 4)
		return;
	uint16_t id = worker_identify(w, of);

	memcpy(ip + 4, &id, 2);
}

int path_wrap(struct worker *w, struct rte_mbuf *m, const struct path *p, uint32_t teid, uint8_t dscp)
{
	uint32_t ip_length = path_ip_length(p), outer = p->length[0], length = packet_of(m)->length + outer;
	uint8_t ecn = ip_ecn(packet_of(m)->ip_version, rte_pktmbuf_mtod(m, const uint8_t *));

	if (length > UINT16_MAX)
		return -1;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)outer);
	if (ip == NULL)
		return -1;
	memcpy(ip, path_header(p, 0), outer);
	path_mark(ip, p, dscp, ecn);
	store16(ip + ip_length + 8 + 2, (uint16_t)(length - ip_length - 16));
	store32(ip + ip_length + 8 + 4, teid);
	path_identify(ip, w, p->index);
	path_finish_outer(m, path_vrf(p), p->version, length);
	return 0;
}
