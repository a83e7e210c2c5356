// SPDX-License-Identifier: Apache-2.0
// Invariants of the decoders, and decoders against a second, slower reading of the same bytes.
#include "wire/wire_kit.h"
#include "wire/arp.h"
#include "wire/checksum.h"
#include "wire/circuit.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/icmp.h"
#include "wire/ip.h"
#include "wire/nd.h"
#include "wire/pppoe.h"
#include "wire/tcp.h"
#include <stdio.h>
#include <stdlib.h>

#define PROMISE(x)                                                                                                     \
	do {                                                                                                           \
		if (!(x)) {                                                                                            \
			fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #x);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

// The frame may continue behind the readable bytes.
static const uint32_t behind[] = {0, 1, 46, 60000};
#define BEHIND (sizeof(behind) / sizeof(behind[0]))

static void touch(const uint8_t *p, size_t n)
{
	volatile uint8_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum ^= p[i];
	(void)sum;
}

void check_eth(const uint8_t *data, size_t size)
{
	struct eth_info e;

	switch (eth_parse(data, size, &e)) {
	case ETH_OK:
		PROMISE(e.length == ETH_HEADER + e.tags * ETH_TAG && e.length <= size);
		PROMISE(e.tags <= 2 && e.vlan[0] < 4096 && e.vlan[1] < 4096);
		PROMISE(!eth_is_tag(e.ethertype));
		PROMISE((e.tags > 0) == (e.tpid[0] != 0) && (e.tags > 1) == (e.tpid[1] != 0));
		break;
	case ETH_SHORT:
		PROMISE(size < ETH_HEADER + 2 * ETH_TAG);
		break;
	case ETH_TAGS:
		PROMISE(size >= ETH_HEADER + 2 * ETH_TAG);
		break;
	}
}

void check_pppoe(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < BEHIND; i++) {
		struct pppoe_info s;
		uint32_t total = size + behind[i];
		if (pppoe_session_parse(data, size, total, &s) == PPPOE_OK) {
			uint8_t again[PPPOE_HEADER];
			PROMISE(s.payload + (uint32_t)PPPOE_HEADER <= total);
			pppoe_put_session(again, s.session, s.protocol, s.payload);
			PROMISE(memcmp(again, data, PPPOE_HEADER) == 0);
		}
		if (pppoe_discovery_check(data, size, total) == PPPOE_OK)
			PROMISE(load16(data + 4) + 6u <= size);
	}
}

void check_ip(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < BEHIND; i++) {
		struct ip_info p;
		uint32_t total = size + behind[i];
		if (ip_parse(data, size, total, &p) != IP_OK)
			continue;
		PROMISE(p.version == data[0] >> 4 && (p.version == 4 || p.version == 6));
		PROMISE(p.length <= total && p.l4 <= p.length && p.l4 <= size);
		PROMISE(p.l4 >= (p.version == 4 ? IP4_HEADER : IP6_HEADER) && p.dscp < 64);
		PROMISE(p.fragment <= 3);
		touch(p.source, p.version == 4 ? 4 : 16);
		touch(p.destination, p.version == 4 ? 4 : 16);
		if (p.version == 4)
			(void)ip4_checksum_ok(data);
		if (p.fragment & IP_FRAGMENT_LATER)
			PROMISE(p.source_port == 0 && p.destination_port == 0);
		else if (p.protocol == IP_PROTOCOL_UDP || p.protocol == IP_PROTOCOL_TCP ||
			 p.protocol == IP_PROTOCOL_SCTP)
			PROMISE(p.l4 + 8u <= size && p.source_port == load16(data + p.l4));
		PROMISE(ip_martian(p.version, p.source, p.destination) < 8);
	}
}

static void check_gtpu_encoder(const struct gtpu_info *g)
{
	uint8_t to[GTPU_HEADER_CONTAINER];
	struct gtpu_info again;
	unsigned n = gtpu_put_gpdu(to, g->teid, g->qfi, g->pdu_type, 1000);

	PROMISE(gtpu_parse(to, n, n + 1000, &again) == GTPU_OK);
	PROMISE(again.teid == g->teid && again.qfi == g->qfi && again.pdu_type == g->pdu_type);
	PROMISE(again.header_length == n && again.message == GTPU_GPDU && !again.has_sequence);
}

// A relayed header reads back the same and has nothing that is not for the next node.
static void check_gtpu_relay(const uint8_t *data, const struct gtpu_info *g, uint8_t qfi, int without)
{
	static uint8_t room[8 + GTPU_MAX_EXTENSIONS * 1020 + 32];
	uint8_t *end = room + sizeof(room), *to, type;
	struct gtpu_info again;

	memcpy(end - g->header_length, data, g->header_length);
	unsigned n = gtpu_relay(end, g->header_length, qfi, GTPU_PDU_UL, without);
	PROMISE(n >= GTPU_HEADER && n <= g->header_length + 8u);
	to = end - n;
	store16(to + 2, n - GTPU_HEADER);
	PROMISE(gtpu_parse(to, n, n, &again) == GTPU_OK && again.header_length == n && again.message == GTPU_GPDU);
	PROMISE(again.has_sequence == g->has_sequence && again.sequence == g->sequence);
	PROMISE(again.qfi == (qfi != GTPU_NO_QFI ? qfi : without ? GTPU_NO_QFI : g->qfi));
	PROMISE((again.more & GTPU_ENDPOINT) == (g->more & GTPU_ENDPOINT));
	type = to[0] & 4 ? to[11] : 0;
	for (unsigned at = 12; type != 0; at += to[at] * 4u) {
		PROMISE(type >> 6 != 1);
		type = to[at + to[at] * 4u - 1];
	}
}

void check_gtpu(const uint8_t *data, size_t size)
{
	struct gtpu_ies ies;

	for (size_t i = 0; i < BEHIND; i++) {
		struct gtpu_info g, slow;
		uint32_t total = size + behind[i];
		if (gtpu_parse(data, size, total, &g) != GTPU_OK)
			continue;
		PROMISE(g.header_length >= GTPU_HEADER && g.header_length <= total && g.header_length <= size);
		PROMISE(g.qfi <= 63 || g.qfi == GTPU_NO_QFI);
		PROMISE(g.pdu_type <= GTPU_PDU_UL && (g.qfi != GTPU_NO_QFI || g.pdu_type == 0));
		PROMISE(g.has_sequence || g.sequence == 0);
		if (data[0] & 7) { // the short cut for one container must agree with the general path
			slow = g;
			slow.qfi = GTPU_NO_QFI;
			slow.pdu_type = slow.has_sequence = slow.more = 0;
			slow.sequence = slow.header_length = 0;
			PROMISE(gtpu_options_parse(data, size, total, &slow) == GTPU_OK);
			PROMISE(slow.qfi == g.qfi && slow.pdu_type == g.pdu_type && slow.sequence == g.sequence);
			PROMISE(slow.header_length == g.header_length && slow.has_sequence == g.has_sequence);
			for (unsigned k = 0; k < 4; k++)
				check_gtpu_relay(data, &g, k & 1 ? 33 : GTPU_NO_QFI, k & 2);
		}
		check_gtpu_encoder(&g);
		if (gtpu_ies_parse(data + g.header_length, size - g.header_length, &ies) == GTPU_OK && ies.address)
			touch(ies.address, ies.family == 4 ? 4 : 16);
	}
	(void)gtpu_ies_parse(data, size, &ies);
}

static void check_arp(const uint8_t *data, size_t size)
{
	uint8_t again[ARP_LENGTH];
	struct arp_info a;

	if (arp_parse(data, size, &a) != ARP_OK)
		return;
	arp_put(again, a.operation, a.sender_mac, a.sender, a.target_mac, a.target);
	PROMISE(memcmp(again, data, ARP_LENGTH) == 0);
}

void check_neighbour(const uint8_t *data, size_t size)
{
	uint8_t again[ND_LENGTH];
	struct nd_info n, back;

	check_arp(data, size);
	for (size_t i = 0; i < BEHIND; i++) {
		if (nd_parse(data, size, size + behind[i], &n) != ND_OK)
			continue;
		PROMISE(n.length <= size && (n.type == ND_SOLICIT || n.type == ND_ADVERT));
		PROMISE(n.target[0] != 0xff && !(n.probe && n.mac != NULL));
		touch(n.target, 16);
		if (n.mac == NULL)
			continue;
		touch(n.mac, 6);
		if (n.type == ND_SOLICIT)
			nd_put_ns(again, n.source, n.destination, n.target, n.mac);
		else
			nd_put_na(again, n.source, n.destination, n.target, n.mac, n.flags);
		PROMISE(nd_parse(again, ND_LENGTH, ND_LENGTH, &back) == ND_OK);
		PROMISE(back.type == n.type && back.flags == n.flags && memcmp(back.mac, n.mac, 6) == 0);
		PROMISE(memcmp(back.target, n.target, 16) == 0 && memcmp(back.source, n.source, 16) == 0);
	}
}

static void check_icmp_error(const uint8_t *data, size_t size, const struct ip_info *p)
{
	static const uint8_t ours[16] = {0x20, 0x01, 0x0d, 0xb8};
	struct icmp_type t = icmp_type_of(ICMP_PROBLEM_TOO_BIG, p->version);
	uint32_t header = p->version == 4 ? ICMP4_ERROR_HEADER : ICMP6_ERROR_HEADER;
	uint32_t quote = icmp_quote(p->version, p->length, size), length;
	uint8_t *to = malloc(header + quote);
	struct icmp_error e = {.version = p->version,
		.type = t.type,
		.code = t.code,
		.mtu = 1400,
		.source = ours,
		.destination = p->source};
	struct ip_info back;

	PROMISE(to != NULL);
	memcpy(to + header, data, quote);
	length = icmp_put_error(to, &e, quote);
	PROMISE(length == header + quote && length <= (p->version == 4 ? 576 : 1280));
	PROMISE(ip_parse(to, length, length, &back) == IP_OK && back.length == length);
	PROMISE(p->version == 6 || ip4_checksum_ok(to));
	uint64_t sum = p->version == 4
			       ? 0
			       : checksum_pseudo(6, back.source, back.destination, IP_PROTOCOL_ICMP6, length - back.l4);
	PROMISE(checksum_finish(checksum_add(sum, to + back.l4, length - back.l4)) == 0);
	PROMISE(icmp_answerable(to, &back, e.type) != ICMP_ANSWER_OK); // never an error about an error
	free(to);
}

// The sum of a packet's transport part as a receiver sees it: 0 is right.
static uint16_t transport_sum(const uint8_t *p, const struct ip_info *i)
{
	uint32_t size = i->length - i->l4;
	uint64_t sum = i->version == 4 ? 0 : checksum_pseudo(6, i->source, i->destination, IP_PROTOCOL_ICMP6, size);

	return checksum_finish(checksum_add(sum, p + i->l4, size));
}

static void check_echo(const uint8_t *data, size_t size, const struct ip_info *p)
{
	uint8_t *copy = malloc(size);
	struct ip_info back;

	PROMISE(copy != NULL);
	memcpy(copy, data, size);
	icmp_make_echo_reply(copy, p);
	PROMISE(ip_parse(copy, size, size, &back) == IP_OK && !icmp_is_echo(copy, &back));
	PROMISE(memcmp(back.source, p->destination, p->version == 4 ? 4 : 16) == 0);
	PROMISE(memcmp(back.destination, p->source, p->version == 4 ? 4 : 16) == 0);
	if (p->length <= size && transport_sum(data, p) == 0)
		PROMISE(transport_sum(copy, &back) == 0);
	if (p->version == 4 && ip4_checksum_ok(data))
		PROMISE(ip4_checksum_ok(copy));
	free(copy);
}

void check_icmp(const uint8_t *data, size_t size)
{
	struct ip_info p;

	if (ip_parse(data, size, size, &p) != IP_OK)
		return;
	for (unsigned type = 0; type < 4; type++)
		if (icmp_answerable(data, &p, type) == ICMP_ANSWER_OK)
			check_icmp_error(data, size, &p);
	if (icmp_is_echo(data, &p))
		check_echo(data, size, &p);
}

void check_circuit(const uint8_t *data, size_t size)
{
	struct circuit (*const of[])(const uint8_t *, uint32_t) = {
		circuit_of_pppoe, circuit_of_dhcp4, circuit_of_dhcp6};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const struct circuit c = of[i](data, (uint32_t)size);

		PROMISE(c.length == 0 || (c.id > data && c.id + c.length <= data + size));
		touch(c.id, c.length);
	}
}

// A TCP header and its data: the sum over both stays, no value rises, a second call changes nothing.
void check_tcp(const uint8_t *data, size_t size)
{
	const uint16_t most = 1400;

	if (size < TCP_HEADER)
		return;
	uint8_t *tcp = malloc(size);
	PROMISE(tcp != NULL);
	memcpy(tcp, data, size);
	unsigned done = tcp_clamp_mss(tcp, (uint32_t)size, most);
	uint32_t changed = 0;
	for (size_t i = 0; i < size; i++) {
		PROMISE(tcp[i] == data[i] || i / 2 == 8 || (i >= TCP_HEADER && i < 60));
		changed += tcp[i] != data[i];
	}
	PROMISE(changed == 0 || (done & TCP_MSS_LOWERED));
	uint16_t was = checksum_fold(checksum_add(0, data, (uint32_t)size)),
		 is = checksum_fold(checksum_add(0, tcp, (uint32_t)size));
	PROMISE(was % 0xffff == is % 0xffff); // 0 and -0
	PROMISE(tcp_clamp_mss(tcp, (uint32_t)size, most) == (done & TCP_MSS_MALFORMED));
	free(tcp);
}
