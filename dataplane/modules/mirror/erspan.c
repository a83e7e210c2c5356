// SPDX-License-Identifier: Apache-2.0
// ERSPAN type II (draft-foschiano-erspan-03 §4.2) over GRE with sequence numbers (RFC 2784, RFC 2890).
#include "mirror/mirror.h"
#include "path/path.h"
#include "route/route.h"
#include "rule/view.h"
#include "wire/checksum.h"
#include "wire/ecn.h"
#include "wire/eth.h"

#define GRE_SEQUENCE 0x1000u // RFC 2890 §2: S
#define GRE_ERSPAN 0x88beu // protocol type of ERSPAN I and II
#define GRE_HEADER 8
#define ERSPAN_HEADER 8
#define ERSPAN_VERSION_2 0x1000u
#define ERSPAN_TAGS_KEPT 0x1800u // En 11: the frame's VLAN tags are in it
#define ERSPAN_TRUNCATED 0x0400u // T

// Our address on the interface that the route to the collector leaves by.
static const uint8_t *source_towards(uint8_t family, const uint8_t *collector)
{
	const struct next_hop *hop = next_hop_get(ip_route_lookup(0, family, collector));

	return next_hop_leads(hop) ? ip_source_towards(family, hop->interface, collector) : NULL;
}

static void put_erspan(uint8_t *p, struct mirror *x, uint16_t session, int uplink, int truncated)
{
	uint16_t type = load16(p + GRE_HEADER + ERSPAN_HEADER + 12);
	int tagged = type == ETH_TYPE_CTAG || type == ETH_TYPE_STAG || type == ETH_TYPE_QINQ_OLD;

	store16(p, GRE_SEQUENCE);
	store16(p + 2, GRE_ERSPAN);
	store32(p + 4, __atomic_fetch_add(&x->sequence, 1, __ATOMIC_RELAXED));
	store16(p + 8, ERSPAN_VERSION_2); // VLAN 0: of the frame
	store16(p + 10, (uint16_t)((tagged ? ERSPAN_TAGS_KEPT : 0) | (truncated ? ERSPAN_TRUNCATED : 0) | session));
	store32(p + 12, uplink ? API_MIRROR_UPLINK : API_MIRROR_DOWNLINK); // index: the direction
}

static void put_ip(uint8_t *ip, struct worker *w, uint8_t family, const uint8_t *from, const struct api_mirror *want,
	uint32_t length)
{
	memset(ip, 0, family == 4 ? IP4_HEADER : IP6_HEADER);
	if (family == 4) {
		ip[0] = 0x45;
		store16(ip + 2, (uint16_t)length);
		ip[8] = 64;
		ip[9] = IP_PROTOCOL_GRE;
		memcpy(ip + 12, from, 4);
		memcpy(ip + 16, want->collector.bytes, 4);
		path_identify(ip, w, load32(want->collector.bytes));
	} else {
		ip[0] = 0x60;
		store16(ip + 4, (uint16_t)(length - IP6_HEADER));
		ip[6] = IP_PROTOCOL_GRE;
		ip[7] = 64;
		memcpy(ip + 8, from, 16);
		memcpy(ip + 24, want->collector.bytes, 16);
	}
	ip_traffic_class_set(family, ip, (uint8_t)(want->dscp << 2));
	if (family == 4)
		ip4_checksum_set(ip);
}

int mirror_erspan(struct worker *w, struct rte_mbuf *m, struct mirror *x, const struct api_mirror *want, int uplink,
	int truncated)
{
	uint8_t family = want->collector.family;
	uint32_t header = (family == 4 ? IP4_HEADER : IP6_HEADER), more = header + GRE_HEADER + ERSPAN_HEADER;
	uint32_t length = rte_pktmbuf_pkt_len(m) + more;
	const uint8_t *from = source_towards(family, want->collector.bytes);
	struct packet *pkt = packet_of(m);

	if (from == NULL || length > UINT16_MAX || rte_pktmbuf_data_len(m) < ETH_HEADER)
		return -1;
	uint8_t *ip = (uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)more);
	if (ip == NULL)
		return -1;
	put_erspan(ip + header, x, want->session, uplink, truncated);
	put_ip(ip, w, family, from, want, length);
	pkt->l3 = 0;
	pkt->l4 = (uint16_t)header;
	pkt->ip_version = family;
	pkt->protocol = IP_PROTOCOL_GRE;
	pkt->fragment = 0;
	pkt->translated = 0;
	pkt->length = length;
	pkt->interface = UINT32_MAX;
	pkt->vrf = 0; // the collector is there
	pkt->shaped = 0;
	return 0;
}
