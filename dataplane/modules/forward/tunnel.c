// SPDX-License-Identifier: Apache-2.0
#include "forward/tunnel.h"
#include <rte_ip.h>

void tunnel_ip6(struct rte_mbuf *m, uint8_t *ip, uint32_t length, uint8_t class)
{
	const struct rte_ipv6_hdr *header = (const struct rte_ipv6_hdr *)ip;
	int whole = rte_pktmbuf_data_len(m) == rte_pktmbuf_pkt_len(m);

	ip[0] = (uint8_t)(0x60 | class >> 4);
	ip[1] = (uint8_t)(class << 4);
	store16(ip + 4, (uint16_t)(length - IP6_HEADER));
	uint16_t sum = whole ? rte_ipv6_udptcp_cksum(header, ip + IP6_HEADER)
			     : rte_ipv6_udptcp_cksum_mbuf(m, header, IP6_HEADER);
	memcpy(ip + IP6_HEADER + 6, &sum, 2);
}

int tunnel_copy(struct worker *w, struct rte_mbuf *m, const struct action *a)
{
	const struct container none = {.qfi = GTPU_NO_QFI};

	return tunnel_encap(w, m, path_get(a->path), a, none) == TUNNEL_MADE;
}
