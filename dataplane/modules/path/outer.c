// SPDX-License-Identifier: Apache-2.0
// Outer headers of tunnels without GTP-U, and of messages of our own.
#include "core/packet.h"
#include "path/path.h"
#include "wire/ecn.h"
#include <rte_ip.h>

void path_finish_outer(struct rte_mbuf *m, uint8_t vrf, uint8_t version, uint32_t length)
{
	uint8_t *ip = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t header = version == 4 ? 20 : 40;

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
	path_describe(packet_of(m), vrf, version, length);
}

void path_mark(uint8_t *ip, const struct path *p, uint8_t dscp, uint8_t ecn)
{
	ip_traffic_class_set(p->outer.version, ip, (uint8_t)(path_dscp(p, dscp, GTPU_NO_QFI) << 2 | ecn));
}

void path_identify(uint8_t *ip, struct worker *w, uint32_t of)
{
	if (ip[0] >> 4 != 4)
		return;
	uint16_t id = worker_identify(w, of);

	memcpy(ip + 4, &id, 2);
}
