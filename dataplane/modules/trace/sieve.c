// SPDX-License-Identifier: Apache-2.0
// The sieve of a trace: conditions of its keys, or of its programs.
#include "trace/sieve.h"

#define MAC 6
#define IP4_ADDRESSES 12
#define IP6_ADDRESSES 8
#define TEID (8 + 4) // behind an IP header

// One of `bits` bits.
static void add(struct conditions *to, uint32_t at, const void *bytes, uint32_t bits)
{
	struct condition c = {.at = at};

	if (bits != 0)
		c.mask = __builtin_bswap64(UINT64_MAX << (64 - bits));
	memcpy(&c.value, bytes, (bits + 7) / 8);
	c.value &= c.mask;
	conditions_add(to, c);
}

static void add_ip(struct sieve *s, uint8_t family, uint32_t at, const void *bytes, uint32_t bits)
{
	add(family == 4 ? &s->untagged4 : &s->untagged6, ETH_HEADER + at, bytes, bits);
	add(family == 4 ? &s->packet4 : &s->packet6, at, bytes, bits);
}

// Of an IPv6 address 8 bytes: the prefix of a network, or the end.
static void add_address(struct sieve *s, const struct api_address *a)
{
	const uint32_t at = a->family == 4 ? IP4_ADDRESSES : IP6_ADDRESSES, size = a->family == 4 ? 4 : 16,
		       from = a->prefix > 64 ? 8 : 0;

	add_ip(s, a->family, at + from, a->bytes + from, a->prefix - 8 * from);
	add_ip(s, a->family, at + size + from, a->bytes + from, a->prefix - 8 * from);
}

static void add_key(struct sieve *s, const struct api_trace_key *k)
{
	struct conditions *frames[] = {&s->untagged4, &s->untagged6, &s->frame};
	const uint32_t teid = __builtin_bswap32(k->teid);

	if (k->by == API_TRACE_BY_ADDRESS)
		add_address(s, &k->address);
	if (k->by == API_TRACE_BY_TEID) {
		add_ip(s, 4, IP4_HEADER + TEID, &teid, 32);
		add_ip(s, 6, IP6_HEADER + TEID, &teid, 32);
	}
	for (uint32_t i = 0; k->by == API_TRACE_BY_ENDPOINT && i < 3; i++) {
		add(frames[i], 0, k->mac, 8 * MAC);
		add(frames[i], MAC, k->mac, 8 * MAC);
	}
}

static struct known with_type(uint16_t type)
{
	struct known k = {0};

	known_byte(&k, 12, 0xff, (uint8_t)(type >> 8));
	known_byte(&k, 13, 0xff, type & 0xff);
	return k;
}

static void add_programs(struct sieve *s, const struct bpf_insn *frame, const struct bpf_insn *packet)
{
	static const uint16_t other[] = {ETH_TYPE_CTAG, ETH_TYPE_STAG, ETH_TYPE_QINQ_OLD, ETH_TYPE_PPPOE_SESSION};
	struct known frame4 = with_type(ETH_TYPE_IP4), frame6 = with_type(ETH_TYPE_IP6), packet4 = {0}, packet6 = {0};

	known_byte(&frame4, ETH_HEADER, 0xff, 0x45);
	known_byte(&frame6, ETH_HEADER, 0xf0, 0x60);
	known_byte(&packet4, 0, 0xff, 0x45);
	known_byte(&packet6, 0, 0xf0, 0x60);
	if (frame != NULL) {
		conditions_of_program(&s->untagged4, frame, &frame4, ETH_HEADER + IP4_ADDRESSES, 0);
		conditions_of_program(&s->untagged6, frame, &frame6, ETH_HEADER + IP6_ADDRESSES, 0);
	}
	for (uint32_t i = 0; frame != NULL && i < sizeof(other) / sizeof(other[0]); i++) {
		const struct known k = with_type(other[i]);

		conditions_of_program(&s->frame, frame, &k, ETH_HEADER, 0);
	}
	if (packet == NULL)
		return;
	conditions_of_program(&s->untagged4, packet, &packet4, IP4_ADDRESSES, ETH_HEADER);
	conditions_of_program(&s->untagged6, packet, &packet6, IP6_ADDRESSES, ETH_HEADER);
	conditions_of_program(&s->packet4, packet, &packet4, IP4_ADDRESSES, 0);
	conditions_of_program(&s->packet6, packet, &packet6, IP6_ADDRESSES, 0);
}

static void each(struct sieve *s, void (*fn)(struct conditions *c))
{
	fn(&s->untagged4);
	fn(&s->untagged6);
	fn(&s->frame);
	fn(&s->packet4);
	fn(&s->packet6);
}

static void add_always(struct conditions *c)
{
	conditions_add(c, (struct condition){0});
}

void sieve_clear(struct sieve *s)
{
	each(s, conditions_clear);
}

void sieve_add_flow(struct sieve *s, const uint8_t *at)
{
	if (at == NULL)
		each(s, add_always);
	else if (at[0] >> 4 == 4)
		add_ip(s, 4, IP4_ADDRESSES, at + IP4_ADDRESSES, 64);
	else
		add_ip(s, 6, IP6_ADDRESSES, at + IP6_ADDRESSES, 64);
}

void sieve_make(struct sieve *s, const struct api_trace_key *key, uint32_t keys, const struct bpf_insn *frame,
	const struct bpf_insn *packet)
{
	sieve_clear(s);
	for (uint32_t i = 0; i < keys; i++)
		add_key(s, &key[i]);
	if (keys == 0)
		add_programs(s, frame, packet);
}
