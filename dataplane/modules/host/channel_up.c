// SPDX-License-Identifier: Apache-2.0
// Subscribers' control packets go up the channel (core/channel.h), with their attachment.
#include "core/channel.h"
#include "core/control.h"
#include "core/port.h"
#include "host/channel.h"
#include "host/host.h"
#include "host/limit.h"
#include "route/route.h"
#include "rule/endpoint.h"
#include "rule/session.h"
#include "rule/view.h"
#include "wire/cache_line.h"
#include "wire/eth.h"
#include "wire/pppoe.h"
#include <stdio.h>
#include <string.h>

DROP_REASON(drop_full, "channel-full",
	"the control plane reads subscribers' frames more slowly than they come. See CPU of the control plane, "
	"engine.limits.channel")
DROP_REASON(drop_long, "channel-too-long",
	"a subscriber's frame for the control plane is longer than it takes. Capture it: more than 9,216 octets")

// Octets behind the EtherType: by PPPoE's own length, else all. access-input has trimmed IP packets.
static uint32_t octets_of(const struct rte_mbuf *m, const struct endpoint_view *e, uint32_t offset)
{
	uint32_t all = rte_pktmbuf_pkt_len(m) - offset;
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, offset);

	if (e->ethertype != ETH_TYPE_PPPOE_DISCOVERY && e->ethertype != ETH_TYPE_PPPOE_SESSION)
		return all;
	return RTE_MIN(all, (uint32_t)PPPOE_DISCOVERY_HEADER + load16(p + 4)); // checked when it was punted
}

static uint64_t seid_of(uint16_t port, const struct endpoint_view *e, const uint8_t *mac)
{
	const struct rule *r = session_endpoint_rule(port, e, mac);
	char name[API_NAME];
	uint64_t seid;

	return r != NULL && session_identity(r->session, name, &seid) ? seid : 0;
}

// Kinds of frames, by reason: enum api_frame_reason is the index.
static struct kind {
	const struct reason *reason;
	uint64_t frames, full, refused;
} kinds[] = {
	[API_FRAME_PPPOE_DISCOVERY] = {.reason = &punt_pppoe_discovery},
	[API_FRAME_PPP_CONTROL] = {.reason = &punt_ppp_control},
	[API_FRAME_DHCP] = {.reason = &punt_dhcp},
	[API_FRAME_DHCP6] = {.reason = &punt_dhcp6},
	[API_FRAME_ROUTER_SOLICITATION] = {.reason = &punt_router_solicitation},
	[API_FRAME_FIRST_PACKET] = {.reason = &punt_first_packet},
	[API_FRAME_NEIGHBOUR_ANSWER] = {.reason = &punt_neighbour_answer},
};

static struct {
	uint64_t over[RTE_DIM(kinds)][LIMIT_LEVELS];
} cache_aligned limited[API_MAX_WORKERS]; // its worker's

uint8_t channel_kind(uint16_t reason)
{
	for (uint32_t i = 1; i < RTE_DIM(kinds); i++)
		if (kinds[i].reason->id == reason)
			return (uint8_t)i;
	return 0;
}

void host_count_limited(struct worker *w, uint16_t reason, enum limit_level level)
{
	limited[w->id].over[channel_kind(reason)][level]++;
}

static void up(struct rte_mbuf *m)
{
	const struct port *p = port_get(packet_of(m)->port_in);
	const struct endpoint_view *e = endpoint_view_of(m);

	if (p == NULL) { // host_path.c asked for its role just now
		rte_pktmbuf_free(m);
		return;
	}
	uint8_t reason = channel_kind(packet_of(m)->reason);
	uint32_t offset = ETH_HEADER + e->tags * ETH_TAG;
	struct kind *k = &kinds[reason];
	struct api_frame h = {.reason = reason,
		.ethertype = e->ethertype,
		.tpid = e->tags != 0 ? e->outer_tpid : 0,
		.s_tag = e->s_tag,
		.c_tag = e->c_tag,
		.length = octets_of(m, e, offset)};

	memcpy(h.port, p->name, API_NAME);
	memcpy(h.mac, rte_pktmbuf_mtod(m, const uint8_t *) + 6, 6);
	h.seid = seid_of(p->index, e, h.mac);
	if (h.length > API_FRAME_MOST) {
		k->refused++;
		control_drop(m, &drop_long);
		return;
	}
	switch (channel_put(&h, m, offset)) {
	case CHANNEL_FULL:
		k->full++;
		control_drop(m, &drop_full);
		return;
	case CHANNEL_CLOSED:
		k->refused++; // it counts as punted, as one without a handler
		break;
	case CHANNEL_TAKEN:
		k->frames++;
	}
	rte_pktmbuf_free(m);
}

static void describe(const struct port *p, struct api_frame_port *row)
{
	ip_link_local(p, row->link_local);
}

static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	for (uint32_t i = 1; i < RTE_DIM(kinds); i++) {
		struct api_channel_row row = {
			.frames = kinds[i].frames, .full = kinds[i].full, .refused = kinds[i].refused};

		snprintf(row.name, sizeof(row.name), "%s", kinds[i].reason->name);
		for (uint32_t w = 0; w < worker_count(); w++) {
			row.over_subscriber += limited[w].over[i][LIMIT_SUBSCRIBER];
			row.over_line += limited[w].over[i][LIMIT_LINE];
			row.over_s_tag += limited[w].over[i][LIMIT_S_TAG];
			row.over_port += limited[w].over[i][LIMIT_PORT];
		}
		stats_row(s, &row, sizeof(row));
	}
	struct api_channel_row row = channel_down_row();
	stats_row(s, &row, sizeof(row));
	return 0;
}

static int start(const struct api_engine *engine)
{
	for (uint32_t i = 1; i < RTE_DIM(kinds); i++)
		punt_access_handler_register(kinds[i].reason, up);
	return 0;
}

RTE_INIT(channel_up)
{
	module_register(start);
	channel_port_register(describe);
	stats_table_register(API_TABLE_CHANNEL, sizeof(struct api_channel_row), rows);
}
