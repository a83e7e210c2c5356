// SPDX-License-Identifier: Apache-2.0
// Limits on access ports' packets for the control plane: per reason, for a subscriber, its line, its S-tag and its
// port.
//
// A packet takes from all its buckets (subscriber, line, S-tag, port). If one is empty, it takes only from the narrower
// ones of line and S-tag, which so measure a line's demand. A line that has used more than half of a bucket may not use
// the last quarter of wider ones. Flooding lines thus spend their own share and leave room for good ones. A
// subscriber's bucket comes last: a flood touches no cold line of memory, and a packet that finds it empty takes
// nothing. Known subscribers have separate buckets at each level, which strangers cannot empty. A level's buckets are a
// table without keys, shared by lines with the same place; a port has its own.
//
// A line is one subscriber's (lines.c): a VLAN, or a circuit named by a trusted access node. Other pairs of tags have
// many subscribers: they have no limit of their own, but above half of it they leave the S-tag's last quarter to
// others. Where lines are not distinguished, the S-tag's bucket is the next wider one; without tags, the port's.
#include "host/limit.h"
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "core/trace.h"
#include "host/channel.h"
#include "host/host.h"
#include "host/lines.h"
#include "host/ppp_begins.h"
#include "rule/view.h"
#include "wire/bytes.h"
#include "wire/cache_line.h"
#include "wire/circuit.h"
#include "wire/eth.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_malloc.h>

#define BUCKETS_LEAST (1u << 14)
#define BUCKETS_MOST (1u << 20)
#define BUCKETS_OF_SESSION 4 // subscribers speak for several reasons at once
#define BUCKETS_S_TAG (1u << 14)
#define BUCKETS_PORT (MAX_PORTS * 16u) // by reason, of known subscribers and of strangers

DROP_REASON(drop_subscriber, "punt-subscriber-limit",
	"a subscriber sends more for the control plane than engine.rates.punt_subscriber. See isthmus capture "
	"--drop: one MAC address is a flood, all are a power cut")
DROP_REASON(drop_line, "punt-line-limit",
	"a line sends more for the control plane than engine.rates.punt_line. See isthmus capture --drop: one "
	"MAC address is a flood, all are a power cut")
DROP_REASON(drop_s_tag, "punt-s-tag-limit",
	"an S-tag sends more for the control plane than engine.rates.punt_s_tag. See isthmus capture --drop: "
	"one MAC address is a flood, all are a power cut")
DROP_REASON(drop_port, "punt-port-limit",
	"a port sends more for the control plane than engine.rates.punt_port. See isthmus capture --drop: one "
	"MAC address is a flood, all are a power cut")

static const struct {
	const struct reason *reason;
	size_t field; // of struct api_engine
	uint32_t usual;
	uint32_t depth; // parts of a second that a full bucket is worth
} level[LIMIT_LEVELS] = {
	[LIMIT_SUBSCRIBER] = {&drop_subscriber, offsetof(struct api_engine, punt_subscriber_rate), API_PUNT_SUBSCRIBER,
		1},
	[LIMIT_LINE] = {&drop_line, offsetof(struct api_engine, punt_line_rate), API_PUNT_LINE, 1},
	[LIMIT_S_TAG] = {&drop_s_tag, offsetof(struct api_engine, punt_s_tag_rate), API_PUNT_S_TAG, 10},
	[LIMIT_PORT] = {&drop_port, offsetof(struct api_engine, punt_port_rate), API_PUNT_PORT, 10},
};

static struct {
	uint64_t cost[LIMIT_LEVELS], depth[LIMIT_LEVELS]; // ticks; written by the control thread, words of their own
	uint32_t mask[LIMIT_LEVELS];
	uint64_t *bucket[API_MAX_WORKERS][LIMIT_LEVELS]; // its worker's
} limits;

struct line {
	uint64_t circuit; // 0: none is known
	uint8_t is_there, is_one; // lines are not distinguished; a subscriber's
};

static uint64_t circuit_of(struct rte_mbuf *m)
{
	const struct packet *pkt = packet_of(m);
	const struct endpoint_view *e = endpoint_view_of(m);
	int discovery = pkt->reason == punt_pppoe_discovery.id;
	uint32_t at = discovery ? ETH_HEADER + e->tags * (uint32_t)ETH_TAG : pkt->l4 + 8u; // UDP's header
	uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a: who writes circuit ids is trusted
	struct circuit c;

	if (at > rte_pktmbuf_data_len(m) || (!discovery && e->pppoe_session != 0))
		return 0;
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, const uint8_t *, at);
	uint32_t n = rte_pktmbuf_data_len(m) - at;
	if (discovery)
		c = circuit_of_pppoe(p, n);
	else if (pkt->reason == punt_dhcp.id)
		c = circuit_of_dhcp4(p, n);
	else if (pkt->reason == punt_dhcp6.id)
		c = circuit_of_dhcp6(p, n);
	else
		return 0;
	for (uint32_t i = 0; i < c.length; i++)
		hash = (hash ^ c.id[i]) * 0x100000001b3ull;
	return c.length != 0 ? hash | 1 : 0;
}

static struct line line_of(struct rte_mbuf *m)
{
	const struct endpoint_view *e = endpoint_view_of(m);
	uint32_t flags = host_line(packet_of(m)->port_in, e->s_tag, e->c_tag);
	struct line l = {.is_one = (flags & API_LINE_ONE) && e->s_tag != 0};

	if (!l.is_one && (flags & API_LINE_TRUSTED)) {
		l.circuit = circuit_of(m);
		l.is_one = l.circuit != 0;
	}
	l.is_there = l.is_one || e->c_tag != 0;
	return l;
}

static uint64_t *bucket_of(const struct worker *w, struct rte_mbuf *m, int i, int known, uint64_t circuit)
{
	const struct packet *pkt = packet_of(m);
	const struct endpoint_view *e = endpoint_view_of(m);
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;
	uint64_t kind = channel_kind(pkt->reason) * 2u + (uint32_t)known, c_tag = i != LIMIT_S_TAG ? e->c_tag : 0;
	struct exact_key k;

	if (i == LIMIT_PORT)
		return &limits.bucket[w->id][i][pkt->port_in * 16u + kind];
	exact_key_set(&k, pkt->port_in | (uint64_t)e->s_tag << 16 | c_tag << 32 | kind << 48,
		i == LIMIT_SUBSCRIBER ? (uint64_t)load32(mac) << 16 | load16(mac + 4) : 0,
		i == LIMIT_LINE ? circuit : 0, 0, 0, 0);
	return &limits.bucket[w->id][i][host_secret_hash(&k) & limits.mask[i]];
}

static int applies(const struct endpoint_view *e, const struct line *l, int i)
{
	return i == LIMIT_LINE ? l->is_there : i == LIMIT_S_TAG ? e->s_tag != 0 : 1;
}

// Adds a packet's cost to each bucket from `first` to before `end`. NULL: the level does not apply.
static void take(const struct worker *w, uint64_t *const bucket[LIMIT_LEVELS], int first, int end)
{
	for (int i = first; i < end; i++)
		if (bucket[i] != NULL)
			bucket_take(bucket[i], w->now, limits.depth[i], limits.cost[i]);
}

// The first level whose bucket has not enough; LIMIT_LEVELS: none.
static int level_over(const struct worker *w, struct rte_mbuf *m, int known, uint64_t *bucket[LIMIT_LEVELS])
{
	const struct line line = line_of(m);
	int heavy = 0;

	for (int i = 0; i < LIMIT_LEVELS; i++) {
		bucket[i] = NULL;
		if (!applies(endpoint_view_of(m), &line, i))
			continue;
		bucket[i] = bucket_of(w, m, i, known, line.circuit);
		uint64_t depth = limits.depth[i], used = bucket_lack(*bucket[i], w->now, depth);
		int bounds = i != LIMIT_LINE || line.is_one;
		if (bounds && used + limits.cost[i] > (heavy && i != LIMIT_SUBSCRIBER ? depth - depth / 4 : depth))
			return i;
		heavy |= used > depth / 2;
	}
	return LIMIT_LEVELS;
}

int host_within_limits(struct worker *w, struct rte_mbuf *m, int known)
{
	uint64_t *bucket[LIMIT_LEVELS];
	int over = level_over(w, m, known, bucket), counts = !trace_is_hypothetical(m);

	if (counts && over != LIMIT_SUBSCRIBER)
		take(w, bucket, 0, over);
	if (over == LIMIT_LEVELS)
		return 1;
	if (counts)
		host_count_limited(w, packet_of(m)->reason, (enum limit_level)over);
	packet_of(m)->reason = level[over].reason->id;
	return 0;
}

#define RATE_MOST 10000000
ENGINE_LIMIT(punt_subscriber_rate, 1, RATE_MOST)
ENGINE_LIMIT(punt_line_rate, 1, RATE_MOST)
ENGINE_LIMIT(punt_s_tag_rate, 1, RATE_MOST)
ENGINE_LIMIT(punt_port_rate, 1, RATE_MOST)

static void set_rates(const struct api_engine *e)
{
	for (int i = 0; i < LIMIT_LEVELS; i++) {
		uint32_t rate;

		memcpy(&rate, (const uint8_t *)e + level[i].field, sizeof(rate));
		limits.cost[i] = rte_get_tsc_hz() / (rate != 0 ? rate : level[i].usual);
		limits.depth[i] = RTE_MAX(rte_get_tsc_hz() / level[i].depth, 4 * limits.cost[i]);
	}
}

static int start(const struct api_engine *e)
{
	uint64_t wanted = (uint64_t)e->max_sessions * BUCKETS_OF_SESSION;
	uint32_t buckets = (uint32_t)RTE_MIN(RTE_MAX(wanted, (uint64_t)BUCKETS_LEAST), (uint64_t)BUCKETS_MOST);

	buckets = rte_align32pow2(buckets);
	const uint32_t count[LIMIT_LEVELS] = {[LIMIT_LINE] = buckets,
		[LIMIT_S_TAG] = BUCKETS_S_TAG,
		[LIMIT_PORT] = BUCKETS_PORT,
		[LIMIT_SUBSCRIBER] = buckets};
	for (int i = 0; i < LIMIT_LEVELS; i++) {
		limits.mask[i] = count[i] - 1;
		for (uint32_t w = 0; w < e->workers; w++) {
			limits.bucket[w][i] = rte_zmalloc("punt-limits", count[i] * sizeof(uint64_t), CACHE_LINE);
			if (limits.bucket[w][i] == NULL)
				return object_error(
					ENOMEM, "no memory for the limits of %u subscribers", e->max_sessions);
		}
	}
	set_rates(e);
	return 0;
}

RTE_INIT(host_limits)
{
	module_register(start);
	engine_watch(set_rates);
}
