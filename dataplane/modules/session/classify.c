// SPDX-License-Identifier: Apache-2.0
// Which of a key's PDRs a packet belongs to (TS 29.244 §5.2.1): UE address, QFI, SDF filters, by precedence.
#include "reassembly/follow.h"
#include "route/address.h"
#include "session/match.h"
#include "wire/bytes.h"

// What filters look at, read once a packet.
struct fields {
	struct ip_info ip;
	uint8_t tos;
	uint8_t has_spi;
	uint32_t spi, flow_label;
	struct front front;
};

static int read_fields(struct fields *f, const struct packet *pkt, const uint8_t *ip)
{
	uint32_t header = pkt->l4 - pkt->l3;
	// Of a long packet, the first segment.
	uint32_t readable = RTE_MIN(rte_pktmbuf_data_len(packet_mbuf(pkt)) - (uint32_t)pkt->l3, pkt->length);

	if (ip_parse(ip, readable, pkt->length, &f->ip) != IP_OK)
		return 0;
	const uint8_t *l4 = ip + header;
	uint32_t room = readable - header; // ip_parse() has read as far
	if (unlikely(pkt->fragment & IP_FRAGMENT_LATER)) {
		l4 = follow_head(packet_mbuf(pkt));
		room = pkt->fragment & IP_FRAGMENT_FOLLOWS ? FOLLOW_HEAD : 0;
		f->ip.protocol = pkt->protocol;
		if (room != 0 && ip_has_ports(pkt->protocol)) {
			f->ip.source_port = load16(l4);
			f->ip.destination_port = load16(l4 + 2);
		}
	}
	f->tos = ip[0] >> 4 == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	f->flow_label = ip[0] >> 4 == 4 ? 0 : load32(ip) & 0xfffff;
	f->has_spi = 0;
	// RFC 4303 §2.1, RFC 4302 §2.4. An authentication header of IPv6 is walked over as an extension header.
	uint32_t at = f->ip.protocol == IP_PROTOCOL_ESP ? 0 : f->ip.protocol == IP_PROTOCOL_AH ? 4 : UINT32_MAX;
	if (at != UINT32_MAX && at + 4 <= room) {
		f->spi = load32(l4 + at);
		f->has_spi = 1;
	}
	return 1;
}

static int port_in(const uint16_t range[2], uint16_t port)
{
	return port >= range[0] && port <= range[1];
}

// TS 29.212 §5.3.8, TS 29.244 §8.2.5: `remote` and `local` as seen from the UE, in both directions.
static int sdf_matches(const struct api_sdf *f, const struct fields *x, int uplink)
{
	const uint8_t *remote = uplink ? x->ip.destination : x->ip.source;
	const uint8_t *local = uplink ? x->ip.source : x->ip.destination;
	uint16_t remote_port = uplink ? x->ip.destination_port : x->ip.source_port;
	uint16_t local_port = uplink ? x->ip.source_port : x->ip.destination_port;

	if ((f->remote.family != 0 && !ip_in_prefix(&f->remote, x->ip.version, remote)) ||
		(f->local.family != 0 && !ip_in_prefix(&f->local, x->ip.version, local)))
		return 0;
	if ((f->flags & API_SDF_PROTOCOL) && f->protocol != x->ip.protocol)
		return 0;
	if ((f->flags & API_SDF_TOS) && (x->tos & f->tos_mask) != (f->tos & f->tos_mask))
		return 0;
	if ((f->flags & API_SDF_SPI) && (!x->has_spi || f->spi != x->spi))
		return 0;
	if ((f->s_pcp != 0 && !(f->s_pcp & x->front.s_pcp)) || (f->c_pcp != 0 && !(f->c_pcp & x->front.c_pcp)))
		return 0;
	if ((f->flags & API_SDF_FLOW_LABEL) && (x->ip.version != 6 || f->flow_label != x->flow_label))
		return 0;
	return port_in(f->remote_port, remote_port) && port_in(f->local_port, local_port);
}

// The first filter that matches decides; none: the packet is another PDR's.
static int filters_match(const struct rule_match *m, const struct fields *x, int uplink)
{
	for (uint16_t i = 0; i < m->sdfs; i++)
		if (sdf_matches(&m->sdf[i], x, uplink))
			return !(m->sdf[i].flags & API_SDF_DENY);
	return 0;
}

// PDRs with this are not for the family.
static uint16_t other_family(uint8_t version)
{
	return version == 4 ? API_PDR_UE6_ONLY : API_PDR_UE4_ONLY;
}

int rule_has_address(const struct rule *r, uint8_t version, const uint8_t *address)
{
	const struct session *s = __atomic_load_n(&session_tables.session[r->session], __ATOMIC_ACQUIRE);
	const struct rule_match *m = &session_pools.match[rule_index(r)];

	if (s == NULL)
		return 0;
	if ((m->match & other_family(version)) == 0 &&
		(version == 4 ? s->has_ue4 && memcmp(s->ue4, address, 4) == 0
			      : s->ue6_prefix <= 128 && ip_prefix_equal(s->ue6, address, s->ue6_prefix)))
		return 1;
	// A mobile UE with one address may have networks of the other family behind it; a wireline subscriber's PDR of
	// a family is for its networks too.
	if (s->encap != API_ENCAP_NONE && (m->match & other_family(version)))
		return 0;
	for (uint8_t i = 0; (m->match & API_PDR_FRAMED) && i < s->routes; i++)
		if (ip_in_prefix(&s->route[i], version, address))
			return 1;
	return 0;
}

struct rule *rule_classify(
	struct rule *first, const struct packet *pkt, const uint8_t *ip, struct front front, int *spoofed)
{
	uint32_t i = rule_index(first);
	struct fields x = {.front = front};

	*spoofed = 0;
	if (!read_fields(&x, pkt, ip))
		return NULL;
	for (int n = 0; i != RULE_NONE && n < MAX_RULES_OF_SESSION; n++, i = session_pools.match[i].next) {
		const struct rule_match *m = &session_pools.match[i];
		struct rule *r = &session_pools.rule[i];
		int uplink = (r->flags & RULE_UPLINK) != 0;

		if ((m->match & API_PDR_QFI) && (front.qfi > 63 || !(m->qfis >> front.qfi & 1)))
			continue;
		if ((m->match & API_PDR_SDF) && !filters_match(m, &x, uplink))
			continue;
		if ((m->match & API_PDR_UE_IP) &&
			!rule_has_address(r, x.ip.version, uplink ? x.ip.source : x.ip.destination)) {
			*spoofed = 1;
			continue;
		}
		*spoofed = 0;
		return r;
	}
	return NULL;
}
