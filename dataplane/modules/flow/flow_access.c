// SPDX-License-Identifier: Apache-2.0
// flow-access: the whole way of plain packets of wireline subscribers in one node, like flow-input: up to two tags,
// with PPPoE or without, IPv4 or IPv6, with a 5-tuple entry. All else goes to access-input unchanged.
//
// A block of packets goes through three loops; each prefetches the next one's lines.
//   0 headers, key; prefetches the entry
//   1 prefetches the rule's state, then the rule or further meters where needed
//   2 check, count, rewrite
#include "core/control.h"
#include "core/node.h"
#include "flow/finish.h"
#include "rule/endpoint.h"
#include "rule/view.h"

static struct arc_bypass bypass = {.arc = {"input-access", "lookup-uplink", "uplink", "output-ip"}};
static uint8_t drop_gtpu; // API_ENGINE_DROP_UE_GTPU
static uint16_t resume; // edge of handover-rx that leads here

// As access-input: our MAC address, and not from a group's.
static __rte_always_inline int is_ours(const struct port *p, const uint8_t *frame)
{
	return p != NULL && rte_is_same_ether_addr((const struct rte_ether_addr *)frame, &p->mac) && !(frame[6] & 1);
}

// access-input's checks of the IP packet, which may fill `rest` bytes; padding may follow.
static __rte_noinline int read_packet(
	const struct walk *k, struct parsed *l, struct tuple_lookup *t, const uint8_t *ip, uint32_t rest)
{
	struct ip_info info;

	if (unlikely(rest < IP4_HEADER || !read_ip(&info, ip, rest, ip[0] == 0x45) || info.version != l->user.version ||
		     endpoint_may_be_control(ip, &info) || is_limited(k, l, ip, &info)))
		return 0;
	l->length = (uint16_t)info.length;
	l->l4 = (uint16_t)info.l4;
	l->protocol = info.protocol;
	if (unlikely((k->drop_gtpu && info.protocol == IP_PROTOCOL_UDP && info.destination_port == GTPU_PORT) ||
		     !tuple_of_packet(&t->key, ip, l->user.version, l->protocol, l->l4, l->length)))
		return 0;
	flow_ask_line(k, t);
	return 1;
}

// The same for a packet that lanes found good.
static __rte_always_inline int read_plain_packet(
	const struct walk *k, struct parsed *l, struct tuple_lookup *t, const uint8_t *ip, uint32_t rest)
{
	if (unlikely(!read_good(k, l, ip, rest) ||
		     (ip[9] == IP_PROTOCOL_UDP && endpoint_is_dhcp(load16(ip + IP4_HEADER + 2)))))
		return 0;
	tuple_of_plain(&t->key, ip);
	flow_ask_line(k, t);
	return 1;
}

static __rte_always_inline void read_one(
	struct walk *k, struct parsed *l, struct tuple_lookup *t, struct rte_mbuf *m, const struct port *p)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t readable = rte_pktmbuf_data_len(m), total = rte_pktmbuf_pkt_len(m), l3, rest;
	struct endpoint_view e;

	parsed_clear(l);
	if (unlikely(readable < ETH_HEADER || !is_ours(p, frame)))
		return;
	uint8_t version = endpoint_read(frame, readable, total, &e, &l3, &rest);
	if (unlikely(version == 0)) {
		version = endpoint_read_any(frame, readable, total, &e, &l3, &rest);
		if (version == 0)
			return;
	}
	tuple_of_endpoint(&t->key, packet_of(m)->port_in, e.s_tag, e.c_tag, e.pppoe_session, frame + 6);
	l->key = tuple_endpoint(&t->key);
	l->user = (struct user_head){.at = (uint16_t)l3, .version = version, .qfi = GTPU_NO_QFI, .by = BY_SUBSCRIBER};
	l->order = order_of(l->key);
	const uint8_t *ip = frame + l3;
	if (unlikely(readable != total))
		return;
	if (likely(version == 4 && rest >= LANES_BYTES && ip[0] == 0x45 && lanes_ip4_good(ip, rest) &&
		    ip4_checksum_ok20(ip)))
		l->plain = (uint8_t)read_plain_packet(k, l, t, ip, rest);
	else
		l->plain = (uint8_t)read_packet(k, l, t, ip, rest);
}

// Separate functions: a single one runs out of registers.
static __rte_noinline void read_block(
	struct walk *k, struct parsed *parsed, struct tuple_lookup *tuple, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t port = PORT_NONE;
	const struct port *p = NULL;

	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(packet_of(pkts[i])->port_in != port)) {
			port = packet_of(pkts[i])->port_in;
			p = port_get(port);
		}
		read_one(k, &parsed[i], &tuple[i], pkts[i], p);
	}
}

// Good packets without an entry may be of a subscriber on another worker.
static __rte_noinline void find_with_owners(
	struct walk *k, struct parsed *parsed, struct tuple_lookup *tuple, uint16_t n)
{
	uint64_t key[FLOW_BLOCK];
	uint32_t *word[FLOW_BLOCK];
	uint64_t asked = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (!parsed[i].plain)
			continue;
		asked |= 1ull << i;
		key[i] = tuple_endpoint_key(&tuple[i].key);
		word[i] = flow_slot(k->w, key[i]);
		rte_prefetch0(word[i]);
	}
	flow_find_tuples(k, parsed, tuple, n);
	for (; asked != 0; asked &= asked - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(asked);

		if (!parsed[i].plain)
			parsed[i].plain = (uint8_t)flow_owned(k, &parsed[i], key[i], *word[i]);
	}
}
static_assert(FLOW_BLOCK <= 64, "a bit each");

static uint16_t flow_access(struct rte_graph *graph, struct rte_node *node, void **objs, uint16_t n)
{
	struct worker *w = worker_self();
	struct tuple_lookup tuple[FLOW_BLOCK];
	struct parsed parsed[FLOW_BLOCK];
	rte_edge_t next[NODE_CHUNK];
	struct walk k;

	if (__atomic_load_n(&bypass.closed, __ATOMIC_RELAXED) ||
		!(flow_tuples[w->id].is_used | flow_index.is_used[w->id])) {
		rte_node_next_stream_move(graph, node, FLOW_FULL);
		return n;
	}
	walk_begin(&k, w, ACL_UPLINK, drop_gtpu, resume);
	for (uint16_t base = 0; base < n; base += NODE_CHUNK) {
		uint16_t count = RTE_MIN(n - base, NODE_CHUNK);

		for (uint16_t i = 0; i < count; i += FLOW_BLOCK) {
			struct rte_mbuf **pkts = (struct rte_mbuf **)objs + base + i;
			uint16_t m = RTE_MIN(count - i, FLOW_BLOCK);

			read_block(&k, parsed, tuple, pkts, m);
			if (likely(!flow_index.is_used[w->id]))
				flow_find_tuples(&k, parsed, tuple, m);
			else
				find_with_owners(&k, parsed, tuple, m);
			flow_finish(&k, parsed, pkts, m, next + i);
		}
		flow_dispatch(w, graph, node, objs + base, next, count);
	}
	return n;
}

static struct rte_node_register flow_access_node = {
	.name = "flow-access",
	.process = flow_access,
	.nb_edges = FLOW_EDGES,
	.next_nodes = {[FLOW_TX] = "@output-core", [FLOW_FULL] = "@input-access", [FLOW_ACCESS] = "@output-access"},
};
NODE_STAGE(flow_access_node, "input-access", .standard = 1)

static int start(const struct api_engine *e)
{
	drop_gtpu = (e->flags & API_ENGINE_DROP_UE_GTPU) != 0;
	return 0;
}

RTE_INIT(flow_access_start)
{
	resume = resume_register("flow-access");
	arc_bypass_register(&bypass);
	module_register(start);
}
