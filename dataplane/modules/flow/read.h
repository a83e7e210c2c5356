// SPDX-License-Identifier: Apache-2.0
// The first loop of flow-input: a packet's headers and key. Makes the checks of ip-input, gtpu-input and session nodes
// that the example (example.h) does not cover. A packet that fails is not plain and takes the full nodes.
#ifndef FLOW_READ_H
#define FLOW_READ_H

#include "flow/example.h"
#include "flow/flow.h"
#include "flow/mapping.h"
#include "flow/tuple.h"
#include "forward/template.h"
#include "instance/instance.h"
#include "mss/mss.h"
#include "path/udp_sum.h"
#include "route/route.h"
#include "route/ways.h"
#include "wire/cache_line.h"
#include "wire/ecn.h"
#include "wire/gtpu.h"
#include "wire/lanes.h"
#include "wire/unguarded.h"

#define FRAME_MIN 48u // what makes an example reads
#define FRAME_READ 96u // what may be read of any, for lanes behind the longest plain headers

// A packet between the loops. key 0: it takes the full nodes, and its session is not known. A packet that is not plain
// has a key where possible: its session's next packets follow it to the full nodes. All fields are 0 until written.
struct parsed {
	uint64_t key; // flow_entry_key(); of a packet from the access side, of its traffic endpoint
	union { // where to look, with a key and BY_KEY, BY_ROUTE; the state, of a plain one when the loops are through
		const uint32_t *slot;
		struct rule_state *state;
	};
	const struct example *example; // with a key, in flow-input
	struct user_head user; // with a key
	uint16_t length; // of the user's packet; this and the next two of plain packets alone
	uint16_t l4; // from its IP header
	uint8_t protocol; // with USER_EXTERNAL also of packets that are not plain
	uint8_t plain;
	uint8_t order; // in walk.full: of the key's state, which both families of a UE have; else of key or destination
	union {
		uint32_t list_slot; // of the access list's rule, behind that
		uint32_t owner; // BY_OWNER: the worker
	};
	uint32_t mapping; // with nat: its slot there, NAT_NONE: none is known
	const struct nat *nat; // translates the packet; found where it leaves, or with USER_EXTERNAL
} cache_aligned;

typedef uint8_t parsed_half __attribute__((vector_size(32), may_alias));
static_assert(sizeof(struct parsed) == 2 * sizeof(parsed_half), "cleared by two stores");

// No field is left as another packet wrote it. By itself the compiler takes four stores.
static __rte_always_inline void parsed_clear(struct parsed *l)
{
	parsed_half *half = (parsed_half *)l;

	half[0] = half[1] = (parsed_half){0};
}

// What holds for a vector.
struct walk {
	struct worker *w;
	uint32_t *index; // flow_index.state of the worker
	struct ways *ways;
	struct template *templates;
	const struct instances *instances;
	const struct example *last;
	uint32_t ways_generation;
	uint16_t resume; // edge of handover-rx that leads to the node
	uint8_t by_tuple; // a packet of the block is found so
	uint8_t indexed; // a packet of the block is looked for in the index
	uint8_t further; // rule_further says which meters a packet of the block has
	uint8_t drop_gtpu; // API_ENGINE_DROP_UE_GTPU
	uint16_t udp_sum; // udp_sum_mask()
	uint8_t translating; // some instance has NAT44
	uint8_t limited; // some session's MSS is: SYNs take the full nodes
	uint8_t external; // a packet of the block is to an external address
	uint8_t held; // something is in `full`
	uint32_t nat_now; // nat_time(), when translating
	uint8_t full[2 * ORDERS]; // by parsed.order: a packet took the full nodes, and none behind it overtakes it
	struct tuples *tuples;
	uint64_t *hits; // of the access list that permitted what has 5-tuple entries; NULL: no list
	uint32_t permitted; // acl_permission() of that list
	struct examples examples;
};

// `direction`: whose access list packets with 5-tuple entries have passed. `resume`: of the node.
static inline void walk_begin(
	struct walk *k, struct worker *w, enum acl_place direction, uint8_t drop_gtpu, uint16_t resume)
{
	const struct acl *list = firewall_list(direction);

	k->w = w;
	k->index = flow_index.state[w->id];
	k->ways = ways_of(w);
	k->templates = templates[w->id];
	k->ways_generation = __atomic_load_n(&ip_ways_generation, __ATOMIC_ACQUIRE); // before any table is read
	k->instances = instances_get();
	k->last = NULL;
	k->further = 0;
	k->drop_gtpu = drop_gtpu;
	k->udp_sum = udp_sum_mask();
	k->resume = resume;
	k->held = 0;
	k->translating = (uint8_t)nat_anywhere();
	k->limited = (uint8_t)mss_anywhere(k->instances);
	k->nat_now = k->translating ? nat_time(w) : 0;
	memset(k->full, 0, sizeof(k->full));
	k->tuples = &flow_tuples[w->id];
	k->permitted = tuples_enter(k->tuples, direction, list);
	k->hits = list != NULL ? acl_hits(list, w->id) : NULL;
}

// Routed packets, apart from those of sessions: odd ones sent on purpose delay no other.
static inline uint8_t order_of_destination(uint8_t version, const uint8_t *address)
{
	uint64_t half[2] = {0};

	memcpy(half, address, version == 4 ? 4 : 16);
	return (uint8_t)(ORDERS + order_of(half[0] ^ half[1]));
}

// ip_check() and ip_martian() for a packet that is whole and, with IPv4, has no options.
static __rte_always_inline int read_ip(struct ip_info *info, const uint8_t *ip, uint32_t rest, int simple)
{
	if (!simple)
		return ip_check(ip, rest, rest, info) == IP_OK && info->fragment == 0 &&
		       ip_martian(info->version, info->source, info->destination) == IP_MARTIAN_NONE;
	info->version = 4;
	info->protocol = ip[9];
	info->fragment = 0;
	info->l4 = IP4_HEADER;
	info->length = load16(ip + 2);
	return info->length >= IP4_HEADER && info->length <= rest && (load16(ip + 6) & 0x3fff) == 0 &&
	       ip4_checksum_ok20(ip) && ip_martian(4, ip + 12, ip + 16) == IP_MARTIAN_NONE &&
	       ip_transport_parse(ip, rest, info) == IP_OK;
}

// A SYN whose MSS may have to be lowered. Lanes leave it to the closer check.
static inline int is_limited(
	const struct walk *k, const struct parsed *l, const uint8_t *ip, const struct ip_info *info)
{
	return k->limited && info->protocol == IP_PROTOCOL_TCP && tcp_is_syn(ip + info->l4) &&
	       (l->user.by & ~BY_RPF) != BY_ROUTE;
}

// The user's packet at l->user.at, `rest` bytes to the end of the frame. Outside a tunnel there may be padding, and
// neighbour discovery is for us.
static __rte_always_inline int read_user(
	const struct walk *k, struct parsed *l, const uint8_t *ip, uint32_t rest, int tunnelled, int simple)
{
	struct ip_info info;

	if (!simple && l->user.version == 6 && likely(ip6_plain_good(ip, rest))) {
		l->length = (uint16_t)rest;
		l->l4 = IP6_HEADER;
		l->protocol = ip[6];
		return !(tunnelled && unlikely(k->drop_gtpu)) || ip[6] != IP_PROTOCOL_UDP ||
		       load16(ip + IP6_HEADER + 2) != GTPU_PORT;
	}
	if (unlikely(!read_ip(&info, ip, rest, simple) || info.version != l->user.version ||
		     is_limited(k, l, ip, &info) || (tunnelled ? info.length != rest : ip_is_discovery(ip, &info))))
		return 0;
	l->length = (uint16_t)info.length;
	l->l4 = (uint16_t)info.l4;
	l->protocol = info.protocol;
	// The full nodes know whether it may be sent.
	return !(tunnelled && unlikely(k->drop_gtpu)) || info.protocol != IP_PROTOCOL_UDP ||
	       info.destination_port != GTPU_PORT;
}

// The user's packet out of a tunnel, with the congestion mark of the tunnel's header (RFC 6040 §4.2).
NO_CANARY static __rte_noinline uint8_t read_tunnelled(
	const struct walk *k, struct parsed *l, uint8_t ecn, const uint8_t *ip, uint32_t rest, int simple)
{
	uint8_t inner = ip_ecn(simple ? 4 : l->user.version, ip);

	if (unlikely(ecn_acts(ecn, inner))) {
		l->user.change = ecn;
		if (inner == ECN_NOT_ECT)
			return 0;
	}
	return (uint8_t)read_user(k, l, ip, rest, 1, simple);
}

// Prefetches the state: at the key's place, or where the index says.
static __rte_always_inline void ask_for_entry(
	struct walk *k, struct parsed *l, const struct example *e, uint32_t low, int tunnel)
{
	if (likely(e->in_place)) {
		l->state = &session_pools.state[flow_place_in(low, e->offset)];
	} else {
		l->slot = flow_slot_in(k->index, low, e->offset, tunnel);
		k->indexed = 1;
	}
	rte_prefetch0(l->slot);
}

static __rte_always_inline void read_teid(struct walk *k, struct parsed *l, const struct example *e, uint32_t teid)
{
	l->key = e->key | teid;
	if (!(e->user.by & BY_TUPLE))
		ask_for_entry(k, l, e, teid, 1);
}

// A packet that lanes found good.
static __rte_always_inline int read_good(const struct walk *k, struct parsed *l, const uint8_t *ip, uint32_t length)
{
	l->length = (uint16_t)length;
	l->l4 = IP4_HEADER;
	l->protocol = ip[9];
	return !unlikely(k->drop_gtpu) || ip[9] != IP_PROTOCOL_UDP || load16(ip + IP4_HEADER + 2) != GTPU_PORT;
}

// Checks of ip-input and gtpu-input that the example does not cover.
static __rte_always_inline void read_plain(
	struct walk *k, struct parsed *l, const struct example *e, const struct rte_mbuf *m, uint32_t total)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *outer = frame + e->l3, *gtpu = outer + PLAIN_OUTER, *ip = frame + e->user.at;
	uint32_t length = total - e->l3, rest = total - e->user.at;

	read_teid(k, l, e, load32(gtpu + 4));
	if (e->user.pdu_type != API_PDU_NONE)
		l->user.qfi = gtpu[14] & 0x3f;
	if (likely(e->user.simple && ip_ecn(4, outer) == ECN_NOT_ECT && (load16(outer + 26) & k->udp_sum) == 0 &&
		    lanes_gpdu_good(outer, length, ip) && ip4_checksum_ok20(outer) && ip4_checksum_ok20(ip))) {
		l->plain = (uint8_t)read_good(k, l, ip, rest);
		return;
	}
	if (total < (uint32_t)e->user.at + IP4_HEADER || !plain_outer_good(4, outer, length) ||
		load16(gtpu + 2) != length - PLAIN_OUTER - GTPU_HEADER ||
		!udp_sum_good(m, 4, e->l3, e->l3 + IP4_HEADER))
		return;
	l->plain = read_tunnelled(k, l, ip_ecn(4, outer), ip, rest, e->user.simple);
}

// The same of another GTP-U header, and of all over IPv6.
static __rte_noinline void read_tunnel(
	struct walk *k, struct parsed *l, const struct example *e, const struct rte_mbuf *m, uint32_t total)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *outer = frame + e->l3;
	uint32_t at = e->l3 + (e->version == 4 ? PLAIN_OUTER : PLAIN_OUTER6);
	struct gtpu_info gtpu;

	if (unlikely(total < at + GTPU_HEADER || frame[at + 1] != GTPU_GPDU))
		return;
	read_teid(k, l, e, load32(frame + at + 4));
	if (!plain_outer_good(e->version, outer, total - e->l3) || !udp_sum_good(m, e->version, e->l3, at - 8) ||
		gtpu_parse(frame + at, total - at, total - at, &gtpu) != GTPU_OK)
		return;
	at += gtpu.header_length;
	if (gtpu.more != 0 || at + IP4_HEADER > total)
		return;
	const uint8_t *ip = frame + at;
	uint8_t ecn = ip_ecn(e->version, outer);
	int simple = ip[0] == 0x45;
	l->user = (struct user_head){.at = (uint16_t)at,
		.version = ip[0] >> 4,
		.pdu_type = (uint8_t)(gtpu.pdu_type + (gtpu.qfi != GTPU_NO_QFI)),
		.qfi = gtpu.qfi,
		.by = e->user.by};
	if (simple && ecn == ECN_NOT_ECT && total - at >= LANES_BYTES && lanes_ip4_good(ip, total - at) &&
		ip4_checksum_ok20(ip))
		l->plain = (uint8_t)read_good(k, l, ip, total - at);
	else
		l->plain = read_tunnelled(k, l, ecn, ip, total - at, simple);
}

// A packet outside a tunnel, of which all of an IP header can be read.
static __rte_always_inline uint8_t read_outside(
	const struct walk *k, struct parsed *l, uint8_t version, const uint8_t *ip, uint32_t rest)
{
	if (version == 6)
		return (uint8_t)read_user(k, l, ip, rest, 0, 0);
	if (unlikely(ip[0] != 0x45 || !ip4_checksum_ok20(ip)))
		return 0;
	return likely(lanes_ip4_good(ip, rest)) ? (uint8_t)read_good(k, l, ip, rest)
						: (uint8_t)read_user(k, l, ip, rest, 0, 1);
}

// `version`: a constant. Whether the packet is for us is a note of its way.
static __rte_always_inline void read_routed_ip(const struct walk *k, struct parsed *l, const struct example *e,
	uint8_t version, const uint8_t *ip, uint32_t rest)
{
	if (unlikely(rest < (version == 4 ? IP4_HEADER : IP6_HEADER)))
		return;
	l->state = e->routed;
	l->key = l->state->key;
	l->order = order_of_destination(version, ip + (version == 4 ? 16 : 24));
	l->plain = l->key != 0 && read_outside(k, l, version, ip, rest);
}

static __rte_noinline void read_routed(
	const struct walk *k, struct parsed *l, const struct example *e, const uint8_t *frame, uint32_t total)
{
	if (likely(e->version == 4))
		read_routed_ip(k, l, e, 4, frame + e->l3, total - e->l3);
	else
		read_routed_ip(k, l, e, 6, frame + e->l3, total - e->l3);
}

// Where the entry of a UE's IPv4 address (as on the wire) may be.
static __rte_always_inline void read_ue4(struct walk *k, struct parsed *l, const struct example *e, uint32_t address)
{
	address &= e->address_mask;
	l->key = e->key | address;
	if (!(e->user.by & BY_TUPLE))
		ask_for_entry(k, l, e, rte_be_to_cpu_32(address), 0);
}

static __rte_always_inline void ask_index_slot(struct walk *k, struct parsed *l, uint64_t key)
{
	l->slot = flow_slot(k->w, key);
	k->indexed = 1;
	rte_prefetch0(l->slot);
}

static __rte_always_inline void read_ue(
	struct walk *k, struct parsed *l, const struct example *e, uint8_t *frame, uint32_t total)
{
	uint8_t *ip = frame + e->l3;
	uint32_t rest = total - e->l3, address;

	if (likely(e->version == 4)) {
		memcpy(&address, ip + 16, 4);
		read_ue4(k, l, e, address);
		l->plain = read_outside(k, l, 4, ip, rest) && !ip_is_local(e->vrf, 4, ip + 16);
		if (unlikely(e->nat != NULL))
			flow_ask_mapping(k, l, ip, rest);
		return;
	}
	if (unlikely(rest < IP6_HEADER))
		return;
	uint64_t key = ue_key((uint8_t)e->instance, 0, 6, ip + 24, e->prefix);
	l->key = flow_entry_key(k->w, key);
	if (likely(!(e->user.by & BY_TUPLE)))
		ask_index_slot(k, l, key);
	l->plain = read_outside(k, l, 6, ip, rest) && !ip_is_local(e->vrf, 6, ip + 24);
}

// As ip-input.
static __rte_noinline int has_reverse_path(const struct walk *k, const struct example *e, const uint8_t *ip)
{
	const uint8_t *source = ip + (e->version == 4 ? 12 : 8);
	const struct way *way =
		ways_find(k->ways, k->ways_generation, way_table(e->vrf), e->version, source, UINT32_MAX);

	return way->table != 0 &&
	       instance_source_routed(next_hop_get(way->index), e->rpf, e->interface, e->vrf, e->version, source);
}

static __rte_always_inline void flow_read(struct walk *k, struct parsed *l, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t total = rte_pktmbuf_data_len(m);
	const struct example *e = k->last;

	parsed_clear(l);
	if (unlikely(total < FRAME_READ && (total < FRAME_MIN || m->data_off + FRAME_READ > m->buf_len)))
		return;
	if (unlikely(e == NULL || !example_holds(e, m, frame) ||
		     (e->is_wide && plain_to_gtpu(e->version, frame + e->l3)))) {
		e = example_find(&k->examples, k->w, m);
		if (e == NULL)
			return;
		k->last = e->kind != EXAMPLE_TUNNEL ? e : k->last;
	}
	l->example = e;
	l->user = e->user;
	if (e->kind == EXAMPLE_PLAIN)
		read_plain(k, l, e, m, total);
	else if (e->kind == EXAMPLE_UE)
		read_ue(k, l, e, frame, total);
	else if (e->kind == EXAMPLE_ROUTED)
		read_routed(k, l, e, frame, total);
	else if (e->kind != EXAMPLE_OTHER)
		read_tunnel(k, l, e, m, total);
	if (unlikely(total != rte_pktmbuf_pkt_len(m)))
		l->plain = 0;
	if (likely(!(l->user.by & (BY_TUPLE | BY_RPF))))
		return;
	if (l->user.by & BY_RPF) {
		l->user.by &= (uint8_t)~BY_RPF;
		l->plain = l->plain && has_reverse_path(k, e, frame + e->l3);
	}
	if (l->user.by & BY_TUPLE) {
		l->order = order_of(l->key);
		k->by_tuple = 1;
	}
}

#endif
