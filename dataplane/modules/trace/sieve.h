// SPDX-License-Identifier: Apache-2.0
// Finds frames that a trace cannot follow, by a few words at known offsets. Judges plain frames alone: IPv4 without
// options or IPv6, behind tags, PPPoE or nothing, with G-PDUs of at most one extension of four bytes. All other frames
// pass.
#ifndef TRACE_SIEVE_H
#define TRACE_SIEVE_H

#include "isthmus_api.h"
#include "trace/conditions.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include "wire/pppoe.h"
#include <stdint.h>
#include <string.h>

struct sieve {
	struct conditions untagged4, untagged6; // of frames, and of the packet in them
	struct conditions frame; // of those with tags or PPPoE
	struct conditions packet4, packet6;
};

void sieve_clear(struct sieve *s); // nothing plain passes
// Packets of a flow pass, by a word of its addresses; at: its IP header. NULL: all packets do.
void sieve_add_flow(struct sieve *s, const uint8_t *at);

// From keys, one of which every frame must have; without keys, from programs (NULL: matches nothing). Control thread.
void sieve_make(struct sieve *s, const struct api_trace_key *key, uint32_t keys, const struct bpf_insn *frame,
	const struct bpf_insn *packet);

static inline int sieve_one(const struct condition *c, const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p + c->at, sizeof(word));
	return (word & c->mask) == c->value;
}

// Two of them, without a branch: an address or a port is the source's or the destination's.
static inline __attribute__((always_inline)) int sieve_holds(const struct conditions *c, const uint8_t *p)
{
	if (sieve_one(&c->of[0], p) | sieve_one(&c->of[1], p))
		return 1;
	for (uint32_t i = 2; __builtin_expect(i < c->n, 0); i++)
		if (sieve_one(&c->of[i], p))
			return 1;
	return 0;
}

// Where the packet in a G-PDU begins, `gtpu` being its header; NULL: elsewhere.
static inline const uint8_t *sieve_inside(const uint8_t *gtpu)
{
	if ((gtpu[0] & 7) == 0)
		return gtpu + GTPU_HEADER;
	if (!(gtpu[0] & 4) || gtpu[11] == 0)
		return gtpu + 12;
	return gtpu[12] == 1 && gtpu[15] == 0 ? gtpu + GTPU_HEADER_CONTAINER : NULL;
}

// 1 when some condition holds, or the frame is not plain. Bytes behind a short frame are still in its buffer: none
// behind 22 + 8 + 40 + 8 + 16 + CONDITIONS_REACH is read. Workers.
static inline __attribute__((always_inline)) int sieve_passes(const struct sieve *s, const uint8_t *p)
{
	uint16_t type = load16(p + 12);
	const uint8_t *ip = p + ETH_HEADER, *udp;

	if (__builtin_expect(type == ETH_TYPE_IP4 && ip[0] == 0x45, 1)) {
		if (sieve_holds(&s->untagged4, p))
			return 1;
	} else if (type == ETH_TYPE_IP6 && ip[0] >> 4 == 6) {
		if (sieve_holds(&s->untagged6, p))
			return 1;
	} else if (type != ETH_TYPE_PPPOE_SESSION && !eth_is_tag(type)) {
		return 1;
	} else {
		for (uint32_t tags = 0; tags < 2 && eth_is_tag(type); tags++, ip += ETH_TAG)
			type = load16(ip + 2);
		if (type == ETH_TYPE_PPPOE_SESSION)
			ip += PPPOE_HEADER;
		else if (type != ETH_TYPE_IP4 && type != ETH_TYPE_IP6)
			return 1;
		if ((ip[0] != 0x45 && ip[0] >> 4 != 6) || sieve_holds(&s->frame, p) ||
			sieve_holds(ip[0] == 0x45 ? &s->packet4 : &s->packet6, ip))
			return 1;
	}
	udp = ip + (ip[0] == 0x45 ? IP4_HEADER : IP6_HEADER);
	if (ip[ip[0] == 0x45 ? 9 : 6] != IP_PROTOCOL_UDP || load16(udp + 2) != GTPU_PORT)
		return 0;
	ip = sieve_inside(udp + 8);
	if (ip == NULL || udp[9] != GTPU_GPDU)
		return 1;
	if (ip[0] == 0x45)
		return sieve_holds(&s->packet4, ip);
	return ip[0] >> 4 == 6 ? sieve_holds(&s->packet6, ip) : ip[0] >> 4 == 4;
}

#endif
