// SPDX-License-Identifier: Apache-2.0
// Which frames a trace follows, by its keys and programs. Examines received frames: Ethernet, tags, PPPoE, IP, and the
// packet inside a G-PDU.
#include "trace/filter.h"
#include "core/object.h"
#include "trace/program.h"
#include "trace/sessions.h"
#include "trace/sieve.h"
#include "wire/eth.h"
#include "wire/gtpu.h"
#include "wire/ip.h"
#include "wire/pppoe.h"
#include <errno.h>
#include <stdlib.h>

#define COMPARED_MOST (32u << 20) // for one trace: a million sessions of three keys with eight of the trace

struct trace_filter {
	struct sieve sieve;
	struct bpf_insn *frame, *packet;
	uint32_t keys;
	struct api_trace_key key[];
};

struct headers {
	const uint8_t *frame;
	struct eth_info eth;
	uint16_t pppoe_session;
	uint32_t at[2]; // offsets of IP packets: the outer one, a G-PDU's
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

// A malformed packet has fewer headers; the nodes' verdict does not matter here.
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

__rte_noinline uint32_t filter_look(const struct trace_filter *f, const struct rte_mbuf *m)
{
	struct headers h;

	read_headers(&h, m);
	if (!some_key_matches(f, &h))
		return 0;
	return some_program_takes(f, &h, m) ? TRACE_KEYS | TRACE_ALL : TRACE_KEYS;
}

static inline __attribute__((always_inline)) int passes(const struct trace_filter *f, const struct rte_mbuf *m)
{
	return sieve_passes(&f->sieve, rte_pktmbuf_mtod(m, const uint8_t *));
}

static uint32_t takes(const struct trace_filter *f, struct rte_mbuf *m)
{
	return passes(f, m) ? filter_look(f, m) : 0;
}

static uint64_t sieve(const struct trace_filter *f, void *const *mbufs, uint32_t n)
{
	uint64_t may = 0;

	// The inner packet of a G-PDU; port-rx has checked the outer headers.
	for (uint32_t i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod_offset((const struct rte_mbuf *)mbufs[i], const void *, 64));
	for (uint32_t i = 0; i < n; i++)
		may |= (uint64_t)passes(f, mbufs[i]) << i;
	return may;
}

static struct sieve noted[API_MAX_WORKERS]; // their workers'

static void note_flow(const struct worker *w, const struct rte_mbuf *m, int first)
{
	struct sieve *s = &noted[w->id];
	struct headers h;

	if (first)
		sieve_clear(s);
	read_headers(&h, m);
	sieve_add_flow(s, h.packets != 0 ? h.frame + h.at[h.packets - 1] : NULL);
}

static int may_be_noted(const struct worker *w, const struct rte_mbuf *m)
{
	return sieve_passes(&noted[w->id], rte_pktmbuf_mtod(m, const uint8_t *));
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
	if (error == 0) {
		sieve_make(&f->sieve, f->key, f->keys, f->frame, f->packet);
		*to = f;
	}
	return error;
}

static int withdraw(const struct trace_filter *f)
{
	return sessions_withdraw(f->key, f->keys, COMPARED_MOST);
}

static const struct trace_chooser chooser = {.make = make,
	.free = release,
	.sieve = sieve,
	.takes = takes,
	.note_flow = note_flow,
	.may_be_noted = may_be_noted,
	.withdraw = withdraw};

RTE_INIT(trace_filter_start)
{
	trace_chooser_register(&chooser);
}
