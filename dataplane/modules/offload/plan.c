// SPDX-License-Identifier: Apache-2.0
// From a packet's header to a device's matches and actions. Every field that the full nodes and the fast path check is
// compared or guarded, or the plan is refused.
#include "offload/plan.h"
#include "core/control.h"
#include "firewall/firewall.h"
#include "forward/route.h"
#include "forward/subscriber.h"
#include "meter/policer.h"
#include "mss/mss.h"
#include "nat/nat.h"
#include "nptv6/nptv6.h"
#include "route/ways.h"
#include "rule/tables.h"
#include "scheduler/instance.h"
#include "usage/usage.h"
#include "wire/bytes.h"
#include <rte_ip.h>
#include <string.h>

struct arc_bypass plan_bypass = {.arc = {"input-core", "input-ip", "input-gtpu", "lookup-tunnel", "lookup-ue", "uplink",
					 "downlink", "lookup-downlink", "output-ip", "output-core", "output-access"}};

// ---- what is compared -----------------------------------------------------------------------------------------------

static void item(struct plan *p, enum plan_type type, uint32_t at)
{
	p->type[p->items] = (uint8_t)type;
	p->at[p->items++] = (uint8_t)at;
}

static void compare(struct plan *p, uint32_t at, uint32_t n)
{
	memset(p->mask + at, 0xff, n);
}

// Ethernet to our address, and its tags: the interface. Returns where IP begins; 0: not of this kind.
static uint32_t link_layer(struct plan *p, const struct offload_request *q, const struct port *in)
{
	const uint8_t *f = q->header;
	uint32_t at = ETH_HEADER;

	if (memcmp(f, in->mac.addr_bytes, 6) != 0)
		return 0;
	item(p, PLAN_ETH, 0);
	compare(p, 0, in->role == API_ROLE_ACCESS ? 12 : 6); // a subscriber is known by the source, too
	compare(p, 12, 2);
	for (uint32_t tags = 0; eth_is_tag(load16(f + at - 2)); at += ETH_TAG) {
		if (tags++ == 2 || at + ETH_TAG > q->length)
			return 0;
		item(p, PLAN_VLAN, at);
		p->mask[at] = 0x0f;
		compare(p, at + 1, 3);
	}
	return at;
}

static int is_whole(const uint8_t *ip4)
{
	return ((ip4[6] & 0x3f) | ip4[7]) == 0;
}

// RFC 6040: a congestion mark is for the software. IPv4 without options, whole.
static void outer_ip4(struct plan *p, uint32_t at)
{
	item(p, PLAN_IP4, at);
	compare(p, at, 1);
	p->mask[at + 1] = 1;
	p->mask[at + 6] = 0x3f;
	compare(p, at + 7, 1);
	compare(p, at + 9, 1);
	compare(p, at + 16, 4);
}

// GTP-U to the endpoint with this TEID. Returns where the inner packet begins; 0: not of this kind.
static uint32_t tunnel(struct plan *p, const struct offload_request *q, uint32_t at, int qfi)
{
	const uint8_t *udp = q->header + at + IP4_HEADER, *gtpu = udp + 8;
	uint32_t header = gtpu[0] == 0x34 ? GTPU_HEADER_CONTAINER : GTPU_HEADER;

	if (q->outer_l3 != at || q->header[at] != 0x45 || !is_whole(q->header + at) || (q->header[at + 1] & 1) ||
		at + IP4_HEADER + 8 + header != q->l3 || (gtpu[0] != 0x30 && gtpu[0] != 0x34))
		return 0;
	// One container of four bytes without optional parts.
	if (gtpu[0] == 0x34 && (gtpu[11] != GTPU_EXT_PDU_SESSION || gtpu[12] != 1 || (gtpu[13] & 0xef) != 0 ||
				       (gtpu[14] & 0xc0) != 0 || gtpu[15] != 0))
		return 0;
	outer_ip4(p, at);
	at += IP4_HEADER;
	item(p, PLAN_UDP, at);
	compare(p, at + 2, 2);
	at += 8;
	item(p, PLAN_GTPU, at);
	compare(p, at, 2);
	compare(p, at + 4, 4);
	if (header == GTPU_HEADER_CONTAINER) {
		item(p, PLAN_CONTAINER, at + 12);
		compare(p, at + 12, 2);
		p->mask[at + 14] = qfi ? 0xff : 0xc0;
	}
	return q->l3;
}

static void prefix(uint8_t *mask, uint32_t bits)
{
	for (uint32_t i = 0; i < bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

// The ports of a whole packet. 0: not of this kind.
static int transport(struct plan *p, const struct offload_request *q, uint32_t at, uint8_t protocol)
{
	if ((protocol != IP_PROTOCOL_UDP && protocol != IP_PROTOCOL_TCP) || at + 4 > q->length)
		return 0;
	item(p, protocol == IP_PROTOCOL_UDP ? PLAN_UDP : PLAN_TCP, at);
	compare(p, at, 4);
	return 1;
}

// The user's packet: version, UE address, and the other address where it decides. `into_tunnel`: ECN is copied to the
// outer header, so an entry has one value. 0: not of this kind.
static int user(struct plan *p, const struct offload_request *q, const struct rule *r, int into_tunnel)
{
	const uint8_t *ip = q->header + q->l3;
	uint32_t at = q->l3, six = ip[0] >> 4 == 6, size = six ? 16 : 4, source = at + (six ? 8 : 12);
	int uplink = (r->flags & RULE_UPLINK) != 0;
	uint32_t ue = uplink ? source : source + size, other = uplink ? source + size : source;

	if (at + (six ? IP6_HEADER : IP4_HEADER) > q->length || (!six && ip[0] != 0x45))
		return 0;
	item(p, six ? PLAN_IP6 : PLAN_IP4, at);
	p->mask[at] = six ? 0xf0 : 0xff;
	if (p->level != API_OFFLOAD_FULL)
		return 1; // the software looks at it
	if (into_tunnel)
		p->mask[at + 1] |= six ? 0x30 : 0x03;
	// A session with a longer prefix may have addresses in this prefix.
	if (r->outer == API_OUTER_ENDPOINT || q->by_tuple || session_tables.lengths->prefix[1][0] != r->up.ue6_prefix)
		compare(p, ue, size);
	else if (r->flags & (six ? RULE_UE6 : RULE_UE4))
		prefix(p->mask + ue, six ? r->up.ue6_prefix : 32);
	if (uplink || q->by_tuple)
		compare(p, other, size);
	if (!q->by_tuple)
		return 1;
	if (!six && !is_whole(ip))
		return 0;
	p->mask[at + 6] |= six ? 0xff : 0x3f; // the protocol, of what is whole
	if (!six)
		compare(p, at + 7, 1), compare(p, at + 9, 1);
	return transport(p, q, at + (six ? IP6_HEADER : IP4_HEADER), six ? ip[6] : ip[9]);
}

// ---- what goes in front ---------------------------------------------------------------------------------------------

// The frame's header towards a next hop, and the device that it leaves by. `most`: of the packets behind it.
static const char *next_hop(struct plan *p, uint8_t vrf, uint8_t version, const uint8_t *destination, uint32_t most)
{
	uint32_t index = ip_route_lookup(vrf, version, destination);
	const struct next_hop *hop = next_hop_get(index);
	uint8_t room[NEXT_HOP_HEADER];

	if (!hop->resolved)
		return "the next hop is not resolved";
	const struct port *out = port_get(hop->port);
	if (out == NULL || out->device < 0)
		return "the port that packets leave by is no device";
	if (most > hop->mtu)
		return "what comes in may be too long for the port that it leaves by";
	if (nat_of_hop(index) != NULL || nptv6_of_hop(index))
		return "addresses are translated";
	p->out = (uint16_t)out->device;
	next_hop_header_put(hop, room + NEXT_HOP_HEADER, version);
	p->encap = hop->l2_length;
	memcpy(p->bytes, room + NEXT_HOP_HEADER - hop->l2_length, hop->l2_length);
	return NULL;
}

// As gtpu-encap; lengths, identification and checksum are the device's, which get what an empty packet has.
static const char *into_tunnel(struct plan *p, const struct offload_request *q, const struct rule *r, uint32_t most)
{
	const struct action *a = &r->action;
	const struct path *path = path_get(a->path);
	const uint8_t *ip = q->header + q->l3;
	uint8_t room[OUTER_LENGTH_MAX];
	struct container c;

	if (path == NULL || path->outer.version != 4)
		return "over IPv6 the outer header has a checksum of the whole packet";
	int container = tunnel_container(a, offload_came_with(q), &c);
	uint32_t length = path->outer.length[container];
	const char *why = next_hop(p, path_vrf(path), 4, path->want.peer.bytes, most + length);

	if (why != NULL)
		return why;
	uint8_t *end = room + sizeof(room), *at = end - length;
	uint8_t class = tunnel_class(a, &path->outer, path, c.qfi) | ip_ecn(ip[0] >> 4, ip);
	tunnel_put(end, &path->outer, sizeof(room), a, container, c);
	tunnel_lengths(at, IP4_HEADER, length, a->teid);
	tunnel_ip4(at, path->outer.ip4_sum, 0, length, class);
	memcpy(p->bytes + p->encap, at, length);
	p->encap = (uint8_t)(p->encap + length);
	return NULL;
}

// As ip-forward: nothing but the route decides about the destination.
static const char *routed(struct plan *p, const struct offload_request *q, const struct rule *r, uint32_t most)
{
	const uint8_t *ip = q->header + q->l3;
	uint8_t version = ip[0] >> 4, hops = version == 4 ? 8 : 7;
	const uint8_t *destination = ip + (version == 4 ? 16 : 24);
	const struct instances *n = instances_get();
	uint8_t vrf = instance_vrf(n, r->instance);

	if (route_to_ue(n, INSTANCE_NONE, vrf, version, destination) != INSTANCE_NONE || route_is_of_link(version, ip))
		return "the destination may be a UE";
	if (route_marks(n, &r->action))
		return "packets get another DSCP";
	p->counts_hops = 1;
	p->guard_at = (uint8_t)(q->l3 + hops);
	p->guard_mask[0] = 0xfe;
	return next_hop(p, vrf, version, destination, most);
}

// As access-encap.
static const char *to_subscriber(struct plan *p, const struct offload_request *q, const struct rule *r, uint32_t most)
{
	uint8_t room[ENDPOINT_HEADER_MAX];
	const struct port *out = port_get(r->down.port);

	if (out == NULL || out->device < 0)
		return "the port that packets leave by is no device";
	if (subscriber_takes(r, out, most, sizeof(room)) != SUBSCRIBER_TAKES || most > out->mtu)
		return "what comes in may be too long for the subscriber";
	if (scheduler_of(r->down.port) != NULL)
		return "the scheduler of the port queues its packets";
	p->out = (uint16_t)out->device;
	p->encap = (uint8_t)endpoint_put(room + ENDPOINT_HEADER_MAX, r, out, q->header[q->l3] >> 4, 0);
	memcpy(p->bytes, room + ENDPOINT_HEADER_MAX - p->encap, p->encap);
	return NULL;
}

// ---- received packets  ----------------------------------------------------------------------------------------------

// What core-input, ip-input and gtpu-input ask of the interface.
static const char *arrives(const struct offload_request *q, const struct port *in)
{
	struct eth_info eth;

	if (in->role != API_ROLE_CORE)
		return NULL;
	const struct interface *i = eth_parse(q->header, q->length, &eth) == ETH_OK
					    ? interface_find(q->port, eth.vlan[0], eth.vlan[1])
					    : NULL;
	if (i == NULL || i->index != q->interface || i->down)
		return "the interface that packets come in by is down, or another one";
	if (i->rpf != 0)
		return "the interface looks at the source of each packet";
	if (q->tunnel && !ip_is_local_on(4, q->header + q->outer_l3 + 16, i->index))
		return "the interface does not have the endpoint's address";
	return NULL;
}

// ---- the whole ------------------------------------------------------------------------------------------------------

// Rows A11, G9, G10: where subscribers may not send to.
static int guarded(const struct offload_request *q)
{
	const uint8_t *ip = q->header + q->l3, *destination = ip + (ip[0] >> 4 == 4 ? 16 : 24);
	uint8_t version = ip[0] >> 4;

	return destination[0] >= 0xe0 || !route_may_send(VRF_ANY, version, destination) ||
	       (engine_get()->flags & API_ENGINE_DROP_UE_GTPU);
}

static const char *refused(const struct plan *p, const struct offload_request *q, const struct rule *r)
{
	int wireline = r->outer == API_OUTER_ENDPOINT || instance_get(q->instance) == NULL;

	if (session_pools.match[q->rule].match & API_PDR_ENDPOINT ? r->outer == API_OUTER_NONE
								  : r->outer == API_OUTER_ENDPOINT && !q->tunnel)
		return "a wireline subscriber whose core side is IP";
	if (plan_bypass.closed)
		return "a stage stands in the way that is not ours";
	if (p->level != API_OFFLOAD_FULL)
		return q->tunnel && r->outer != API_OUTER_GTPU ? NULL : "only what leaves tunnels is decapsulated";
	if (wireline ? firewall_list(ACL_UPLINK) != NULL || firewall_list(ACL_DOWNLINK) != NULL
		     : firewall_instance_list(q->instance) != NULL || nat_of(q->instance) != NULL ||
				nptv6_of(q->instance) != NULL)
		return "an access list or address translation looks at the packets";
	if (mss_is_limited(r, q->instance))
		return "the MSS of its SYNs is limited";
	if ((r->flags & RULE_UPLINK) && guarded(q))
		return "subscribers may not send to the destination";
	if (!q->tunnel && (r->flags & RULE_UPLINK) && port_get(q->port)->role == API_ROLE_CORE)
		return "the UE is known by its source address";
	if ((r->flags & RULE_FURTHER_METERS) || (r->outer != API_OUTER_ENDPOINT && r->up.shaped != 0))
		return "it has several meters or URRs, or a pipe";
	if (r->urr != RULE_NONE && !usage_may_count_elsewhere(r->urr))
		return "a URR looks at each packet: it has thresholds, quotas or times";
	return NULL;
}

static const char *policed(struct plan *p, const struct rule *r)
{
	const struct api_policer *want = r->action.flags & ACTION_POLICED ? policer_body(r->action.policer) : NULL;

	if (!(r->action.flags & ACTION_POLICED))
		return NULL;
	if (want == NULL)
		return "the policer is gone";
	if (want->colour_aware)
		return "the policer is colour-aware";
	for (uint32_t c = 0; c < RTE_DIM(want->action); c++)
		if (want->action[c] == API_COLOUR_REMARK)
			return "the policer remarks";
	p->is_policed = 1;
	p->policer = *want;
	return NULL;
}

// Short frames are padded to 60 bytes: a device counts only those whose outer header alone is as long.
static void guard_short(struct plan *p, const struct offload_request *q)
{
	int six = q->header[q->l3] >> 4 == 6;

	p->guard_at = (uint8_t)(q->l3 + (six ? 4 : 2));
	p->guard_mask[0] = 0xff;
	p->guard_mask[1] = six ? 0xf8 : 0xc0;
}

// The frame's new link layer for the software: its origin.
static void marked(struct plan *p, const struct offload_request *q, const struct rule *r, const struct port *in)
{
	p->queue = in->rx_queues == worker_count() ? r->worker : 0;
	p->encap = ETH_HEADER;
	memcpy(p->bytes, q->header, 12);
	store16(p->bytes + 12, q->header[q->l3] >> 4 == 6 ? ETH_TYPE_IP6 : ETH_TYPE_IP4);
}

const char *plan_make(struct plan *p, const struct offload_request *q, uint8_t level)
{
	const struct rule *r = &session_pools.rule[q->rule];
	const struct port *in = port_get(q->port);

	memset(p, 0, sizeof(*p));
	p->level = level;
	if (in == NULL || in->device < 0)
		return "the port is gone";
	p->in = (uint16_t)in->device;
	int to_tunnel = r->outer == API_OUTER_GTPU && level == API_OFFLOAD_FULL;
	uint32_t at = link_layer(p, q, in), outer = q->tunnel ? q->l3 - q->outer_l3 : 0;
	int qfi = q->by_tuple || level != API_OFFLOAD_FULL ||
		  (to_tunnel && !(r->action.flags & ACTION_WITHOUT_CONTAINER));
	if (at != 0 && q->tunnel)
		at = tunnel(p, q, at, qfi);
	if (at == 0 || at != q->l3 || outer >= in->mtu || !user(p, q, r, to_tunnel))
		return "the headers are none that devices are told of";
	for (uint32_t i = 0; i < PLAN_HEADER; i++)
		p->spec[i] = q->header[i] & p->mask[i];
	p->decap = (uint8_t)q->l3;
	p->overhead = q->l3;
	const char *why = arrives(q, in);
	if (why == NULL)
		why = refused(p, q, r);
	if (why != NULL)
		return why;
	if (level != API_OFFLOAD_FULL) {
		marked(p, q, r, in);
		return NULL;
	}
	if (!q->tunnel)
		guard_short(p, q);
	uint32_t most = in->mtu - outer;
	why = r->outer == API_OUTER_GTPU       ? into_tunnel(p, q, r, most)
	      : r->outer == API_OUTER_ENDPOINT ? to_subscriber(p, q, r, most)
					       : routed(p, q, r, most);
	return why != NULL ? why : policed(p, r);
}

// ---- what a device is asked -----------------------------------------------------------------------------------------

void plan_sample(struct plan *p, uint16_t device, uint8_t level)
{
	static const struct {
		uint8_t type, at;
	} items[] = {{PLAN_ETH, 0}, {PLAN_IP4, 14}, {PLAN_UDP, 34}, {PLAN_GTPU, 42}, {PLAN_IP4, 50}};

	memset(p, 0, sizeof(*p));
	p->in = p->out = device;
	p->level = level;
	for (uint32_t i = 0; i < RTE_DIM(items); i++)
		item(p, items[i].type, items[i].at);
	memcpy(p->spec + 12, "\x08\x00\x45", 3);
	compare(p, 12, 2);
	outer_ip4(p, 14);
	p->items--;
	p->spec[23] = IP_PROTOCOL_UDP;
	store16(p->spec + 36, GTPU_PORT);
	compare(p, 36, 2);
	memcpy(p->spec + 42, "\x30\xff", 2);
	compare(p, 42, 2);
	compare(p, 46, 4);
	p->spec[50] = 0x45;
	compare(p, 50, 1);
	p->decap = 50;
	p->encap = ETH_HEADER;
	memcpy(p->bytes + 12, "\x08\x00", 2);
	p->counts_hops = level == API_OFFLOAD_FULL;
}
