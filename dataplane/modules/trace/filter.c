// SPDX-License-Identifier: Apache-2.0
// Which frames a trace follows: by its keys and its programs. A frame is looked at as it came: Ethernet, tags, PPPoE,
// IP, and the packet inside where that is a G-PDU.
#include "core/object.h"
#include "core/trace.h"
#include "trace/program.h"
#include "trace/sessions.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include "wire/pppoe.h"
#include <errno.h>
#include <stdlib.h>

#define QUICK_KEYS 4
#define COMPARED_MOST (32u << 20) // for one trace: a million sessions of three keys with eight of the trace

struct trace_filter {
	uint32_t quick; // of quick_key: all there is to match are these; 0: headers are read in any case
	uint32_t quick_key[QUICK_KEYS]; // IPv4 addresses and TEIDs, as on the wire
	struct bpf_insn *frame, *packet;
	uint32_t keys;
	struct api_trace_key key[];
};

// Headers of one frame.
struct headers {
	const uint8_t *frame;
	struct eth_info eth;
	uint16_t pppoe_session;
	uint32_t at[2]; // offsets of IP packets: the outer one, the one of a G-PDU
	uint32_t packets;
	uint8_t is_gpdu;
	uint32_t teid;
};

static uint32_t ip_header(const uint8_t *ip, uint32_t readable, uint8_t *protocol)
{
	if (readable >= IP4_HEADER && ip[0] >> 4 == 4 && (ip[0] & 15) >= 5) {
		*protocol = ip[9];
		return (ip[0] & 15u) * 4;
	}
	if (readable < IP6_HEADER || ip[0] >> 4 != 6)
		return 0;
	*protocol = ip[6];
	return IP6_HEADER;
}

// What is malformed has fewer headers; what the nodes say of it is not asked here.
static void read_headers(struct headers *h, const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t readable = m->data_len, at;
	struct pppoe_info ppp;
	struct gtpu_info gtpu;
	uint8_t protocol;

	*h = (struct headers){.frame = p};
	if (eth_parse(p, readable, &h->eth) != ETH_OK) {
		h->frame = NULL;
		return;
	}
	at = h->eth.length;
	if (h->eth.ethertype == ETH_TYPE_PPPOE_SESSION &&
		pppoe_session_parse(p + at, readable - at, m->pkt_len - at, &ppp) == PPPOE_OK) {
		h->pppoe_session = ppp.session;
		at += PPPOE_HEADER;
	}
	uint32_t header = ip_header(p + at, readable - at, &protocol);
	if (header == 0)
		return;
	h->at[h->packets++] = at;
	at += header;
	if (protocol != IP_PROTOCOL_UDP || readable < at + 8 + GTPU_HEADER || load16(p + at + 2) != GTPU_PORT)
		return;
	uint32_t total = load16(p + at + 4);
	at += 8;
	if (total < 8 || gtpu_parse(p + at, readable - at, total - 8, &gtpu) != GTPU_OK)
		return;
	h->is_gpdu = 1;
	h->teid = gtpu.teid;
	at += gtpu.header_length;
	if (gtpu.message == GTPU_GPDU && at < readable && ip_header(p + at, readable - at, &protocol) != 0)
		h->at[h->packets++] = at;
}

static int address_matches(const struct api_address *a, const uint8_t *ip)
{
	if (ip[0] >> 4 != a->family)
		return 0;
	const uint8_t *source = ip + (a->family == 4 ? 12 : 8), *destination = ip + (a->family == 4 ? 16 : 24);

	return ip_prefix_equal(source, a->bytes, a->prefix) || ip_prefix_equal(destination, a->bytes, a->prefix);
}

static int endpoint_matches(const struct api_trace_key *k, const struct headers *h)
{
	return h->frame != NULL && h->eth.vlan[0] == k->s_tag && h->eth.vlan[1] == k->c_tag &&
	       (k->pppoe_session == 0 || h->pppoe_session == k->pppoe_session) &&
	       (memcmp(h->frame + 6, k->mac, 6) == 0 || memcmp(h->frame, k->mac, 6) == 0);
}

static int key_matches(const struct api_trace_key *k, const struct headers *h)
{
	if (k->by == API_TRACE_BY_TEID)
		return h->is_gpdu && h->teid == k->teid;
	if (k->by == API_TRACE_BY_ENDPOINT)
		return endpoint_matches(k, h);
	for (uint32_t i = 0; i < h->packets; i++)
		if (address_matches(&k->address, h->frame + h->at[i]))
			return 1;
	return 0;
}

static int some_key_matches(const struct trace_filter *f, const struct headers *h)
{
	for (uint32_t i = 0; i < f->keys; i++)
		if (key_matches(&f->key[i], h))
			return 1;
	return f->keys == 0;
}

static int some_program_takes(const struct trace_filter *f, const struct headers *h, const struct rte_mbuf *m)
{
	if (f->frame == NULL && f->packet == NULL)
		return 1;
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

	if (f->frame != NULL && program_takes(f->frame, p, m->pkt_len, m->data_len))
		return 1;
	for (uint32_t i = 0; f->packet != NULL && i < h->packets; i++)
		if (program_takes(f->packet, p + h->at[i], m->pkt_len - h->at[i], m->data_len - h->at[i]))
			return 1;
	return 0;
}

static inline uint32_t word_at(const uint8_t *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

typedef uint32_t words __attribute__((vector_size(16), aligned(1)));
#define QUICK_FROM 14 // where addresses and TEIDs may lie, each two bytes off a multiple of four
#define QUICK_WORDS 6 // of 16 bytes: as far as a packet inside, behind 40 bytes of extension headers

// 0 when no key can be in the frame: some word of it would be one. Of frames that begin with tags or a plain IPv4
// header; others are looked at. What lies behind a short frame is still in its buffer.
static inline int may_match(const struct trace_filter *f, const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t type = load16(p + 12);
	words found = {0};

	if (unlikely(f->quick == 0 || !((type == ETH_TYPE_IP4 && p[14] == 0x45) || eth_is_tag(type))))
		return 1;
	for (uint32_t k = 0; k < f->quick; k++) {
		const words key = {f->quick_key[k], f->quick_key[k], f->quick_key[k], f->quick_key[k]};

#pragma GCC unroll 6
		for (uint32_t i = 0; i < QUICK_WORDS; i++)
			found |= (words)(*(const words *)(p + QUICK_FROM + 16 * i) == key);
	}
	return ((found[0] | found[1]) | (found[2] | found[3])) != 0;
}

static __rte_noinline uint32_t look(const struct trace_filter *f, const struct rte_mbuf *m)
{
	struct headers h;

	read_headers(&h, m);
	if (!some_key_matches(f, &h))
		return 0;
	return some_program_takes(f, &h, m) ? TRACE_KEYS | TRACE_ALL : TRACE_KEYS;
}

static uint32_t takes(const struct trace_filter *f, struct rte_mbuf *m)
{
	return unlikely(may_match(f, m)) ? look(f, m) : 0;
}

static int check_key(const struct api_trace_key *k)
{
	if (k->by < API_TRACE_BY_ADDRESS || k->by > API_TRACE_BY_ENDPOINT)
		return object_error(EINVAL, "a trace by %u, which is not known", k->by);
	if (k->by != API_TRACE_BY_ADDRESS)
		return 0;
	if ((k->address.family != 4 && k->address.family != 6) ||
		k->address.prefix > (k->address.family == 4 ? 32 : 128))
		return object_error(EINVAL, "a trace by an address of family %u with %u bits", k->address.family,
			k->address.prefix);
	return 0;
}

static void make_quick(struct trace_filter *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->keys; i++) {
		const struct api_trace_key *k = &f->key[i];
		int address = k->by == API_TRACE_BY_ADDRESS && k->address.family == 4 && k->address.prefix == 32;

		if (n == QUICK_KEYS || (!address && k->by != API_TRACE_BY_TEID))
			return;
		f->quick_key[n++] = address ? word_at(k->address.bytes) : rte_cpu_to_be_32(k->teid);
	}
	f->quick = n;
}

static void release(struct trace_filter *f)
{
	free(f->frame);
	free(f->packet);
	free(f);
}

static int make(struct trace_filter **to, const struct api_trace *want, const struct api_trace_key *keys,
	const struct api_trace_instruction *frame, const struct api_trace_instruction *packet)
{
	struct trace_filter *f = calloc(1, sizeof(*f) + want->keys * sizeof(*keys));
	int error = f == NULL ? object_error(ENOMEM, "no memory for a filter") : 0;

	for (uint32_t i = 0; error == 0 && i < want->keys; i++) {
		error = check_key(&keys[i]);
		f->key[f->keys++] = keys[i];
	}
	if (error == 0)
		error = program_load(&f->frame, frame, want->frame_code);
	if (error == 0)
		error = program_load(&f->packet, packet, want->packet_code);
	if (error != 0 && f != NULL)
		release(f);
	if (error == 0)
		make_quick(f);
	if (error == 0)
		*to = f;
	return error;
}

static int withdraw(const struct trace_filter *f)
{
	return sessions_withdraw(f->key, f->keys, COMPARED_MOST);
}

static const struct trace_chooser chooser = {.make = make, .free = release, .takes = takes, .withdraw = withdraw};

RTE_INIT(trace_filter_start)
{
	trace_chooser_register(&chooser);
}
