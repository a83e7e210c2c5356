// SPDX-License-Identifier: Apache-2.0
// The fast path against the full nodes: random changes, random vectors of good and bad packets. They enter by the first
// of two workers; sessions live on either. Each vector passes twice from the same state: with all entries forgotten,
// and with earlier packets' entries. Output, counters, meters and URRs are the same, and packets of a flow keep their
// order.
#ifndef FLOW_BOTH_WAYS_TEST_H
#define FLOW_BOTH_WAYS_TEST_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include "flow/flow.h"
#include "flow/tuple.h"
#include "meter/meter.h"
#include "reassembly/datagram.h"
#include "testkit/frame.h"
#include "testkit/mobile.h"
#include "testkit/testkit.h"
#include "usage/urr.h"
#include "wire/checksum.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 24 // packets of a vector
#define STATES 1088
#define METERS 256
#define TUPLES 1024
#define PORTS 4
#ifndef WORKERS
#define WORKERS 2
#endif

struct sent {
	struct frame f;
	const char *port;
};

struct both_ways {
	const char *ports[PORTS]; // NULL: no more
	uint32_t outer; // bit p: IPv4 packets without tags that leave by port p have an outer header of ours
	const char *node[2]; // first ones of the full nodes; NULL: none
	void (*change)(void); // something
	void (*make)(struct sent *s, uint32_t number); // a packet, its payload as flow_of() reads it
	// Other data that workers write: BEFORE both runs, by the FULL nodes, by the FAST path. NULL: none.
	void (*save)(int which);
	void (*restore)(void); // what was saved BEFORE
	int (*same)(void); // FULL and FAST
	uint32_t rounds;
};

enum { BEFORE, FULL, FAST };

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static struct sent sent[MOST];

// Rates that two runs cannot exhaust: the first run's tokens are missing in the second.
static inline struct api_engine both_ways_engine(void)
{
	struct api_engine e = kit_engine();

	e.workers = WORKERS;
	e.max_flows = TUPLES / 2;
	e.icmp_error_rate = e.error_indication_rate = e.echo_rate = e.punt_rate = 1000000;
	return e;
}

// ---- sessions -------------------------------------------------------------------------------------------------------

static void set_rates(struct api_qer *q)
{
	static const char *const policer[] = {"", "slow", "fast", "remark"};

	q->flags = draw(4) ? 0 : API_QER_RQI;
	snprintf(q->uplink_policer, sizeof(q->uplink_policer), "%s", policer[draw(4)]);
	snprintf(q->downlink_policer, sizeof(q->downlink_policer), "%s", policer[draw(4)]);
	q->gate_uplink = draw(12) == 0;
	q->gate_downlink = draw(12) == 0;
}

// A QER that all PDRs have.
static struct api_qer *add_qer(struct kit_mobile *k, uint32_t id)
{
	for (uint16_t i = 0; i < k->s.pdrs; i++)
		kit_pdr_qer(&k->pdr[i], id);
	return kit_qer(k, id, 0);
}

// One of two slices, whose sessions may differ in its rate. Packets of different sessions have no order, so it passes
// all.
static void set_share(struct api_qer *q)
{
	const char *policer = draw(4) ? "large" : "larger";

	q->share = 1 + draw(2);
	snprintf(q->uplink_policer, sizeof(q->uplink_policer), "%s", policer);
	snprintf(q->downlink_policer, sizeof(q->downlink_policer), "%s", policer);
}

// A QER for each PDR; some that all have, as for a session's AMBR and its slice; URRs that all have, and a threshold
// now and then.
static void add_rates(struct kit_mobile *k)
{
	uint32_t urrs = draw(4) ? draw(2) : 2 + draw(2);

	for (uint16_t i = 0; i < k->s.pdrs; i++) {
		set_rates(kit_qer(k, 1 + i, draw(2) ? (uint8_t)draw(64) : 0));
		kit_pdr_qer(&k->pdr[i], 1 + i);
	}
	for (uint32_t n = draw(3) ? 0 : 1 + draw(2); n > 0; n--)
		set_rates(add_qer(k, 60 + n));
	if (draw(3) == 0)
		set_share(add_qer(k, 63));
	for (uint32_t u = 1; u <= urrs; u++) {
		struct api_urr *urr = kit_urr(k, u);

		urr->flags = draw(4) ? 0 : API_URR_BEFORE_QOS;
		urr->triggers = draw(4) ? 0 : API_URR_VOLTH;
		urr->volume_threshold[draw(3)] = urr->triggers ? 2000 + draw(2) * draw(100000) : 0;
		if (draw(4) == 0) {
			urr->flags |= API_URR_HAS_VOLUME_QUOTA;
			urr->volume_quota[draw(3)] = 1 + draw(100000);
		}
		// A quota stops both directions, which have no order among them.
		uint32_t quota = urr->flags & API_URR_HAS_VOLUME_QUOTA, side = draw(2);
		for (uint16_t i = 0; i < k->s.pdrs; i++)
			if (!quota || (k->pdr[i].source == API_FROM_ACCESS) == side)
				kit_pdr_urr(&k->pdr[i], u);
	}
}

static void put_policer(const char *name, uint8_t type, uint64_t rate, uint64_t burst, uint8_t yellow)
{
	struct api_policer p = {.type = type, .cir = rate, .pir = 2 * rate, .cbs = burst, .pbs = 2 * burst};

	p.action[RTE_COLOR_GREEN] = draw(2) ? API_COLOUR_PASS : yellow;
	p.action[RTE_COLOR_YELLOW] = yellow;
	p.dscp[RTE_COLOR_GREEN] = 10;
	p.dscp[RTE_COLOR_YELLOW] = 8;
	p.colour_aware = draw(4) == 0;
	p.action[RTE_COLOR_RED] = API_COLOUR_DROP;
	kit_put(API_POLICER, name, &p, sizeof(p));
}

static void put_policers(void)
{
	kit_begin();
	put_policer("slow", draw(2) ? API_TRTCM : API_SRTCM, 20000, 3000, API_COLOUR_PASS);
	put_policer("fast", draw(2) ? API_TRTCM : API_SRTCM, 100000000, 3000, API_COLOUR_PASS);
	put_policer("remark", draw(2) ? API_TRTCM : API_SRTCM, 40000, 3000, API_COLOUR_REMARK);
	put_policer("large", API_TRTCM, 1000000000, 100000000, API_COLOUR_PASS);
	put_policer("larger", API_TRTCM, 2000000000, 100000000, API_COLOUR_PASS);
	assert_int_equal(kit_commit(), 0);
}

// DSCPs of QoS flows.
static void random_marks(uint8_t qfi_dscp[64])
{
	for (uint32_t q = 0, n = draw(65); q < n; q++)
		qfi_dscp[q] = (uint8_t)draw(65);
}

// Its headers, not its ends.
static inline void put_path(const char *name, const char *local, const char *peer)
{
	struct api_path p = {.local = kit_address(local), .peer = kit_address(peer), .dscp = (uint8_t)draw(64)};

	p.ttl = (uint8_t)(draw(2) ? 0 : 2 + draw(250));
	if (draw(2))
		random_marks(p.qfi_dscp);
	assert_int_equal(kit_change(API_PATH, name, &p, sizeof(p)), 0);
}

// ---- packets --------------------------------------------------------------------------------------------------------

#define MAGIC 0xf10f10f1u

static uint8_t random_class(void)
{
	static const uint8_t af[] = {10 << 2, 12 << 2, 14 << 2}; // green, yellow, red (RFC 2597)

	return (uint8_t)(draw(4) ? 2 : draw(2) ? af[draw(3)] : draw(256));
}

static void set_class(uint8_t *ip, uint8_t class)
{
	if (ip[0] >> 4 == 4)
		ip[1] = class;
	else
		ip[0] = (uint8_t)(0x60 | class >> 4), ip[1] = (uint8_t)(class << 4);
}

#define OPTIONS_MOST 128u // bytes of an IPv6 packet's

static void add_options(struct frame *f)
{
	frame_options(f, f->at[0] >> 4 == 4 ? 4 * (1 + draw(10)) : 8 * (1 + draw(OPTIONS_MOST / 8)));
}

// A small fault of the IP header at f->at, or a property that makes it not plain. The outer header is never a fragment,
// because it waits for packets of other vectors. It has no options: such packets have no order within their session.
// The destination stays: another is another flow's.
static void disturb(struct frame *f, int outer)
{
	uint8_t *ip = f->at;
	uint32_t at = draw(40);

	switch (draw(28)) {
	case 0:
		ip[ip[0] >> 4 == 4 ? 8 : 7] = (uint8_t)draw(3); // TTL
		break;
	case 1:
		ip[6] |= outer ? 0 : 0x20; // more fragments
		break;
	case 2:
		ip[3] ^= (uint8_t)draw(4);
		break;
	case 3:
		ip[at] ^= (uint8_t)(at >= (ip[0] >> 4 == 6 ? 24u : 16u) || (outer && (at == 6 || at == 7))
					    ? 0
					    : 1 << draw(8));
		break;
	case 4:
	case 5:
		if (!outer)
			add_options(f);
		break;
	case 6:
		if (!outer)
			frame_fragment(f, (uint16_t)(draw(3) ? draw(200) : draw(3)), (int)draw(2));
		break;
	}
	if (f->at[0] >> 4 == 4 && draw(40))
		frame_ip4_sum(f);
}

// ---- what became of a vector ----------------------------------------------------------------------------------------
#define WORDS 4096
#define MOST_OUT (8 * MOST)

struct left {
	uint64_t flow; // 0: of none
	uint8_t port;
	uint32_t length;
	uint8_t bytes[2048];
};

static uint32_t without_order; // rounds
static uint32_t states, usages; // of the pools: all; used ones: low ones come first
static size_t lines; // of 5-tuple entries

// What workers write.
struct written {
	struct rule_state state[STATES];
	struct rule_account account[STATES];
	struct usage_state usage[STATES];
	struct usage_limits limits[STATES];
	struct meter_state meter[METERS];
	struct tuple_line tuple[WORKERS][TUPLES];
	uint32_t era[WORKERS][2]; // of the table: cleared in the first run, restored for the second
	struct flow_routes routed[WORKERS];
};

static struct outcome {
	uint64_t words[WORDS];
	uint32_t counters, count;
	struct left left[MOST_OUT];
	struct written written;
} full, fast;

static void save(struct written *to)
{
	memcpy(to->state, session_pools.state, states * sizeof(to->state[0]));
	memcpy(to->account, session_pools.account, states * sizeof(to->account[0]));
	memcpy(to->usage, usage_pools.state, usages * sizeof(to->usage[0]));
	memcpy(to->limits, usage_table.limits, usages * sizeof(to->limits[0]));
	memcpy(to->meter, meter_states, sizeof(to->meter));
	for (int w = 0; w < WORKERS; w++) {
		memcpy(to->tuple[w], flow_tuples[w].line, lines * sizeof(to->tuple[w][0]));
		memcpy(to->era[w], flow_tuples[w].era, sizeof(to->era[w]));
		to->routed[w] = flow_routed[w];
	}
}

static void restore_written(const struct written *from)
{
	memcpy(session_pools.state, from->state, states * sizeof(from->state[0]));
	memcpy(session_pools.account, from->account, states * sizeof(from->account[0]));
	memcpy(usage_pools.state, from->usage, usages * sizeof(from->usage[0]));
	memcpy(usage_table.limits, from->limits, usages * sizeof(from->limits[0]));
	memcpy(meter_states, from->meter, sizeof(from->meter));
	for (int w = 0; w < WORKERS; w++) {
		memcpy(flow_tuples[w].line, from->tuple[w], lines * sizeof(from->tuple[w][0]));
		memcpy(flow_tuples[w].era, from->era[w], sizeof(from->era[w]));
		flow_routed[w] = from->routed[w];
	}
}

static int is_first_fragment(const uint8_t *ip)
{
	return (ip[0] == 0x45 && (load16(ip + 6) & 0x2000)) || (ip[0] >> 4 == 6 && ip[6] == 44);
}

// An ICMP error, whose own header begins at `frame` or behind it, quotes the packet with this IP header.
static int is_quoted(const uint8_t *frame, const uint8_t *ip)
{
	const uint8_t *outer = ip - 8 - (ip[0] >> 4 == 6 ? IP6_HEADER : IP4_HEADER);

	return outer >= frame && ((ip[0] == 0x45 && outer[0] == 0x45 && outer[9] == 1) ||
					 (ip[0] >> 4 == 6 && outer[0] >> 4 == 6 && outer[6] == 58));
}

// 4 bytes of the header, which a fault may have changed; of UDP with options or extension headers the same ones.
static uint32_t header_word(const uint8_t *frame, const uint8_t *payload)
{
	for (uint32_t more = 4; more <= OPTIONS_MOST; more += 4) {
		const uint8_t *four = payload - 8 - IP4_HEADER - more, *six = payload - 8 - IP6_HEADER - more;

		if (four >= frame + 14 && more <= 40 && four[0] == 0x45 + more / 4 && four[9] == 17)
			return load32(four + 12);
		if (six >= frame + 14 && six[0] >> 4 == 6 && (six[6] == 60 || six[6] == 44))
			return load32(six + 32);
	}
	return load32(payload - 16);
}

// Flow of a frame, by its payload and header_word(). Fragments and ICMP errors have none: they come from other nodes
// than forwarded packets.
static uint64_t flow_of(const uint8_t *frame, uint32_t length)
{
	static const uint32_t headers[] = {IP4_HEADER + 8, IP4_HEADER + 20, IP6_HEADER + 8, IP6_HEADER + 20};

	for (const uint8_t *at = frame + 54; at + 8 <= frame + length; at++) {
		if (load32(at) != MAGIC)
			continue;
		if (is_first_fragment(frame + 14) || is_first_fragment(at - 28) || is_first_fragment(at - 40))
			return 0;
		for (uint32_t i = 0; i < RTE_DIM(headers); i++)
			if (at - headers[i] >= frame + 14 && is_quoted(frame + 14, at - headers[i]))
				return 0;
		return (uint64_t)load32(at + 4) << 32 | header_word(frame, at);
	}
	return 0;
}

// Identifications follow the order of the nodes: they are made equal, after a check of the sum.
static void keep(struct outcome *o, uint8_t port, int outer, const struct kit_frame *k)
{
	struct left *l = &o->left[o->count++];

	assert_true(o->count <= MOST_OUT && k->length <= sizeof(l->bytes));
	l->port = port;
	l->length = k->length;
	memcpy(l->bytes, k->bytes, k->length);
	if (load16(l->bytes + 12) == 0x0800 && outer) {
		assert_true(ip4_checksum_ok(l->bytes + 14));
		memset(l->bytes + 18, 0, 2);
		memset(l->bytes + 24, 0, 2);
	}
	uint8_t *type = l->bytes + 12;
	while (load16(type) == 0x8100 || load16(type) == 0x88a8)
		type += 4;
	if (load16(type) == 0x8864) // the PPP protocol is behind it
		type += 8;
	if ((load16(type) == 0x86dd || load16(type) == 0x57) && type[8] == 44)
		memset(type + 2 + IP6_HEADER + 4, 0, 4);
	l->flow = flow_of(l->bytes, l->length);
}

static int is_before(const struct left *a, const struct left *b)
{
	if (a->flow != b->flow || a->flow != 0)
		return a->flow < b->flow;
	return a->length != b->length ? a->length < b->length : memcmp(a->bytes, b->bytes, a->length) < 0;
}

// By flow, the order within a flow as it was (insertion sort).
static void sort_by_flow(struct outcome *o)
{
	for (uint32_t i = 1; i < o->count; i++)
		for (uint32_t k = i; k > 0 && is_before(&o->left[k], &o->left[k - 1]); k--) {
			static struct left swap;

			swap = o->left[k];
			o->left[k] = o->left[k - 1];
			o->left[k - 1] = swap;
		}
}

// Reads of unwritten stack never find the previous run's values.
static __attribute__((noinline)) void dirty_stack(void)
{
	uint8_t room[1 << 16];

	memset(room, (int)draw(256), sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
}

// Drops waiting later fragments; knowledge of first ones does not reach the next run.
static void forget_fragments(void)
{
	for (uint32_t i = 0; i < worker_count(); i++) {
		const struct visit v = {.w = worker_get(i), .t = follow_table(i)};

		for (struct datagram *d; (d = datagram_oldest(v.t)) != NULL;)
			datagram_give_up(&v, d, v.t->late);
	}
}

static void run(const struct both_ways *how, struct outcome *o, uint32_t n)
{
	memset(o->words, 0, sizeof(o->words));
	o->count = 0;
	for (uint32_t w = 0; w < WORKERS; w++)
		worker_identify_from(worker_get(w), 1, worker_count());
	kit_clear();
	kit_count_words(o->words, WORDS, -1ull);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(kit_send(sent[i].port, sent[i].f.at, sent[i].f.length), 0);
	dirty_stack();
	kit_run();
	forget_fragments();
	o->counters = kit_count_words(o->words, WORDS, 1);
	for (uint8_t p = 0; p < PORTS && how->ports[p] != NULL; p++)
		for (uint32_t i = 0; i < kit_count(how->ports[p]); i++)
			keep(o, p, how->outer >> p & 1, kit_frame(how->ports[p], i));
	sort_by_flow(o);
	assert_true(kit_balance());
	save(&o->written);
}

static void forget_all(void)
{
	for (uint32_t i = 0; i < states; i++)
		session_pools.state[i].key = 0;
	for (uint32_t w = 0; w < WORKERS; w++) {
		memset(flow_index.state[w], 0, (flow_index.mask + 1) * sizeof(uint32_t)); // whose session it is, too
		for (uint32_t v = 0; v < MAX_VRFS; v++)
			flow_routed[w].of_vrf[v].key = 0;
	}
}

// Adds the fast path's use of loans where the full nodes count.
static void settle_loans(struct written *w)
{
	for (uint32_t i = 0; i < states; i++) {
		struct rule_account *a = &w->account[i];
		const struct rule_state *s = &w->state[i];
		struct rule_counts used = {.packets = s->taken, .bytes = a->loan - s->credit};

		for (uint8_t k = 0; a->loan != 0 && k < API_PDR_URRS && a->of.urr[k] != RULE_NONE; k++) {
			struct usage_state *u = &w->usage[a->of.urr[k]];

			u->bytes[!a->uplink] += used.bytes;
			u->packets[!a->uplink] += used.packets;
			u->last = used.packets != 0 ? RTE_MAX(u->last, rule_state_last(s)) : u->last;
		}
		a->forwarded.packets += used.packets;
		a->forwarded.bytes += used.bytes;
		a->six.packets += action_counts6(&s->action) ? s->packets6 : 0;
		a->six.bytes += action_counts6(&s->action) ? s->bytes6 : 0;
	}
}

// A threshold or quota was reached by these packets.
static int is_reached(const struct usage_state *before, const struct usage_state *after, const struct usage_limits *l)
{
	const uint64_t was[3] = {before->bytes[0] + before->bytes[1], before->bytes[0], before->bytes[1]};
	const uint64_t is[3] = {after->bytes[0] + after->bytes[1], after->bytes[0], after->bytes[1]};
	int reached = 0;

	for (int i = 0; i < 3; i++)
		reached |= (was[i] < l->threshold[i] && is[i] >= l->threshold[i]) ||
			   (was[i] < l->quota[i] && is[i] >= l->quota[i]);
	return reached;
}

static void compare_counts(
	const struct written *before, const struct written *a, const struct written *b, uint32_t round)
{
	for (uint32_t i = 0; i < states; i++)
		if (memcmp(&a->state[i].meter, &b->state[i].meter, sizeof(struct meter)) != 0 ||
			memcmp(&a->account[i].forwarded, &b->account[i].forwarded, sizeof(struct rule_counts)) != 0 ||
			(action_counts6(&b->state[i].action) &&
				memcmp(&a->account[i].six, &b->account[i].six, sizeof(struct rule_counts)) != 0) ||
			a->account[i].dropped != b->account[i].dropped)
			fail_msg("round %u: state %u has %lu B, meter %lu %lu; by the full nodes %lu B, %lu %lu", round,
				i, b->account[i].forwarded.bytes, b->state[i].meter.full[0], b->state[i].meter.full[1],
				a->account[i].forwarded.bytes, a->state[i].meter.full[0], a->state[i].meter.full[1]);
	for (uint32_t i = 0; i < usages; i++) {
		const struct usage_state *u = &a->usage[i], *v = &b->usage[i];
		const struct usage_limits *l = &a->limits[i], *m = &b->limits[i];

		if (memcmp(u->bytes, v->bytes, sizeof(u->bytes)) != 0 ||
			memcmp(u->packets, v->packets, sizeof(u->packets)) != 0 || u->last >> 16 != v->last >> 16 ||
			((l->raised ^ m->raised) & ~USAGE_RAISED_LIMIT) != 0 || l->answered != m->answered ||
			l->first != m->first ||
			// It is raised again when a worker looks at the limits again.
			(is_reached(&before->usage[i], u, l) && !(l->raised & m->raised & USAGE_RAISED_LIMIT)))
			fail_msg("round %u: URR %u counted %lu, %lu B, %lu, %lu packets, last %lx, first %lx, raised "
				 "%x; "
				 "by the full nodes %lu, %lu B, %lu, %lu, %lx, %lx, %x",
				round, i, v->bytes[0], v->bytes[1], v->packets[0], v->packets[1], v->last, m->first,
				m->raised, u->bytes[0], u->bytes[1], u->packets[0], u->packets[1], u->last, l->first,
				l->raised);
	}
}

// A session's packets have no order among each other if they take different ways through the graph: with and without
// NPTv6, or at closed and open gates. (Closed gates count before QoS.) Which of them reach a quota, and which are
// dropped or not counted beyond it, may then differ. Rare; both_ways() says how rare.
static int at_a_limit(const struct written *before, const struct written *a, const struct written *b)
{
	int differ = memcmp(full.words, fast.words, full.counters * sizeof(full.words[0])) != 0, reached = 0;

	for (uint32_t i = 0; i < usages; i++) {
		const struct usage_state *u = &a->usage[i], *v = &b->usage[i];
		int here = is_reached(&before->usage[i], u, &a->limits[i]) ||
			   is_reached(&before->usage[i], v, &b->limits[i]);

		reached |= here;
		differ |= here && (memcmp(u->bytes, v->bytes, sizeof(u->bytes)) != 0 ||
					  memcmp(u->packets, v->packets, sizeof(u->packets)) != 0);
	}
	return reached && differ;
}

static void compare(const struct both_ways *how, struct written *before, uint32_t round)
{
	struct written *a = &full.written, *b = &fast.written;

	assert_int_equal(full.counters, fast.counters);
	settle_loans(before);
	settle_loans(a);
	settle_loans(b);
	if (at_a_limit(before, a, b)) {
		without_order++;
		return;
	}
	for (uint32_t i = 0; i < full.counters; i++)
		if (full.words[i] != fast.words[i])
			fail_msg("round %u: %s (word %u) rose by %ld, by the full nodes %ld", round,
				i < reason_count() ? reason_get((uint16_t)i)->name : "a counter", i, fast.words[i],
				full.words[i]);
	if (full.count != fast.count)
		fail_msg("round %u: %u frames left, by the full nodes %u", round, fast.count, full.count);
	for (uint32_t i = 0; i < full.count; i++)
		if (full.left[i].port != fast.left[i].port || full.left[i].length != fast.left[i].length ||
			memcmp(full.left[i].bytes, fast.left[i].bytes, full.left[i].length) != 0)
			fail_msg("round %u: frame %u of flow %lx differs: port %u, %u B; by the full nodes %u, %u B",
				round, i, full.left[i].flow, fast.left[i].port, fast.left[i].length, full.left[i].port,
				full.left[i].length);
	compare_counts(before, a, b, round);
	for (uint32_t i = 0; i < METERS; i++)
		if (memcmp(&a->meter[i].meter, &b->meter[i].meter, sizeof(struct meter)) != 0 ||
			a->meter[i].policed != b->meter[i].policed)
			fail_msg("round %u: meter %u in common differs", round, i);
	if (how->same != NULL && !how->same())
		fail_msg("round %u: not the same is left", round);
}

static void run_from_before(const struct both_ways *how, const struct written *before, int fast_path, uint32_t n)
{
	if (fast_path) {
		restore_written(before);
		kit_advance(0);
	} else {
		forget_all();
		// Else the full nodes count on the loans that there are.
		for (uint32_t i = 0, without = draw(2); without && i < usages; i++)
			usage_recall(i);
	}
	if (how->restore != NULL && fast_path)
		how->restore();
	run(how, fast_path ? &fast : &full, n);
	if (how->save != NULL)
		how->save(fast_path ? FAST : FULL);
}

static uint64_t full_nodes(const struct both_ways *how)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < RTE_DIM(how->node); i++)
		packets += how->node[i] != NULL ? kit_node_packets(how->node[i]) : 0;
	return packets;
}

static inline void both_ways(const struct both_ways *how)
{
	static struct written before_both;
	const char *more = getenv("FLOW_MODEL_ROUNDS"), *other = getenv("FLOW_MODEL_SEED"); // a longer run, another one
	uint32_t rounds = more != NULL ? (uint32_t)strtoul(more, NULL, 10) : how->rounds;
	uint64_t sent_all = 0, before = full_nodes(how);

	if (other != NULL)
		seed += strtoull(other, NULL, 10) << 1; // stays odd: never 0
	states = session_pools.rules;
	assert_in_range(states, 1, STATES);
	usages = RTE_MIN(usage_pools.states, (uint32_t)STATES);
	lines = tuples_lines(&flow_tuples[0]);
	assert_in_range(lines, 1, TUPLES);
	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t n = 1 + draw(MOST);

		if (draw(24) == 0)
			how->change();
		kit_advance(1000000 / (1 + draw(20)));
		for (uint32_t i = 0; i < n; i++)
			how->make(&sent[i], i);
		save(&before_both);
		if (how->save != NULL)
			how->save(BEFORE);
		run_from_before(how, &before_both, 0, n);
		run_from_before(how, &before_both, 1, n);
		// A packet that asks for a neighbour does so once in two runs.
		if (full.words[reason_count() + KIT_HELD] == 0 && fast.words[reason_count() + KIT_HELD] == 0)
			compare(how, &before_both, round);
		sent_all += n;
	}
	// Some packets of each second run took the fast path, none of the first runs did.
	uint64_t slow = full_nodes(how) - before;
	print_message("%lu of %lu packets took the fast path\n", 2 * sent_all - slow, sent_all);
	assert_true(2 * sent_all - slow > sent_all / 10);
	print_message("%u of %u rounds reached a limit by packets without order\n", without_order, rounds);
	assert_true(without_order <= 1 + rounds / 50000);
}

#endif
