// SPDX-License-Identifier: Apache-2.0
// The engine of devices (rule/engine.h): flows that the full nodes passed are installed in the device that received
// them, where the port's `offload` allows it. The software's entry of the same rule stays and takes the rest.
//
//   Written by: workers put requests into a ring; all else is the control thread's, because rte_flow is slow.
//   Safe because: a request names the rule's generation, and a retired rule's entries go in the same commit (take())
#include "core/control.h"
#include "core/port.h"
#include "offload/mark.h"
#include "offload/program.h"
#include "route/route.h"
#include "rule/engine.h"
#include "rule/pool.h"
#include "rule/tables.h"
#include "rule/view.h"
#include "usage/usage.h"
#include "wire/cache_line.h"
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES MARKS // of all devices
#define OF_RULE 64u // more 5-tuples of one rule are the software's
#define REQUESTS 4096u
#define TICK_MS 4
#define LEARN 512u // requests of a tick, about 2 ms: a flood of new flows leaves the control thread time
#define SWEEP 400u // entries that a tick reads and renews if they changed: all in a second
#define SWEEP_NS 2000000ull // of a tick, where it has more to do
#define WHOLE_NS 100000000ull // between two whole sweeps: routes and neighbours may change without end
#define LOOK_NS 20000000ull // between two looks at links
#define RETRY_NS 10000000000ull // after a device refused

struct entry {
	struct offload_request q;
	struct plan plan; // of device
	struct device_entry device; // flow NULL: it has none
	const char *why; // not, or less than the port takes
	uint64_t retry_ns;
	uint32_t next; // of the rule, 1 + index
	uint8_t used, most; // the level that the device did not refuse
};

static struct {
	struct rte_ring *ring; // NULL: no port asks for it; workers
	struct entry *entry[ENTRIES];
	struct index_pool indices;
	uint32_t *of_rule; // 1 + index of the first entry, by rule
	uint32_t at, end; // of the sweep; behind the highest index that was used
	uint32_t generation; // ip_ways_generation of the last whole sweep
	uint32_t whole; // entries that it has still to see
	uint32_t missed[MAX_PORTS]; // as counted in port.offload.refused
	uint64_t look_ns, whole_ns;
	uint8_t down[MAX_PORTS], lost[RTE_MAX_ETHPORTS]; // links; devices that were reset (any thread)
} o;

// Of a worker.
static struct {
	uint32_t missed[MAX_PORTS]; // requests that the ring had no room for, by port
	uint32_t rule, generation; // of the last request: a vector asks once
} cache_aligned asked[API_MAX_WORKERS];

// ---- workers --------------------------------------------------------------------------------------------------------

static __rte_noinline void request(struct worker *w, const struct engine_flow *f, struct rte_ring *ring)
{
	const struct packet *pkt = packet_of(f->m);
	const struct port *in = port_get(pkt->port_in);
	struct offload_request q = {.rule = rule_index(f->rule),
		.generation = f->rule->generation,
		.port = pkt->port_in,
		.l3 = pkt->l3,
		.outer_l3 = f->tunnel ? tunnel_view_of(f->m)->outer_l3 : pkt->l3,
		.instance = pkt->instance,
		.interface = pkt->interface,
		.tunnel = f->tunnel,
		.by_tuple = f->tuple || (f->first->flags & RULE_SEVERAL_PDRS) != 0};

	if (in == NULL || in->offload.level == API_OFFLOAD_NONE || pkt->hops != 0 ||
		(f->tunnel && tunnel_view_of(f->m)->outer_version != 4) ||
		(!q.by_tuple && asked[w->id].rule == q.rule && asked[w->id].generation == q.generation))
		return;
	q.length = (uint16_t)RTE_MIN(rte_pktmbuf_data_len(f->m), PLAN_HEADER);
	memcpy(q.header, rte_pktmbuf_mtod(f->m, void *), q.length);
	if (rte_ring_mp_enqueue_elem(ring, &q, sizeof(q)) != 0) {
		asked[w->id].missed[q.port]++;
		return;
	}
	asked[w->id].rule = q.rule;
	asked[w->id].generation = q.generation;
}

static void put(struct worker *w, const struct engine_flow *f)
{
	struct rte_ring *ring = __atomic_load_n(&o.ring, __ATOMIC_ACQUIRE);

	if (unlikely(ring != NULL))
		request(w, f, ring);
}

// ---- entries --------------------------------------------------------------------------------------------------------

static void add_up(const struct entry *e, const struct device_counts *c)
{
	const struct rule *r = &session_pools.rule[e->q.rule];
	struct rule_match *m = &session_pools.match[e->q.rule];

	m->packets += c->packets;
	m->bytes += c->bytes;
	m->dropped += c->dropped;
	if (r->urr != RULE_NONE && c->packets != 0)
		usage_count_elsewhere(r->urr, c->packets, c->bytes, (r->flags & RULE_UPLINK) != 0);
}

static void leave_device(struct entry *e, uint32_t index)
{
	struct device_counts c = {0};
	struct port *in = port_get(e->q.port);

	if (e->device.flow == NULL)
		return;
	program_take(&e->device, &e->plan, &c);
	mark_give(index);
	add_up(e, &c);
	if (in != NULL)
		in->offload.entries--;
}

static const char *enter_device(struct entry *e, uint32_t index, const struct plan *p)
{
	struct port *in = port_get(e->q.port);
	uint32_t mark = p->level == API_OFFLOAD_FULL ? index + 1 : mark_take(index, &e->q);

	if (p->level != API_OFFLOAD_FULL)
		in->marks = 1;
	const char *why = program_put(&e->device, p, mark);
	if (why != NULL) {
		mark_give(index);
		return why;
	}
	e->plan = *p;
	in->offload.entries++;
	return NULL;
}

// `why` NULL: nothing is.
static void refuse(struct entry *e, struct port *in, const char *why)
{
	int same = e->why == why;

	e->why = why;
	if (same || why == NULL)
		return;
	in->offload.refused++;
	if (in->offload.level >= RTE_MIN(in->want.offload, (uint32_t)API_OFFLOAD_FULL))
		snprintf(in->offload.why, sizeof(in->offload.why), "an entry: %s", why);
}

// As the tables and the device are now. The highest level that both allow.
static void make(struct entry *e, uint32_t index, uint64_t now)
{
	struct port *in = port_get(e->q.port);
	struct plan plan;
	const char *why = "the device takes none", *less = NULL;

	if (in == NULL || o.down[in->index])
		return;
	if (now >= e->retry_ns)
		e->most = API_OFFLOAD_FULL;
	int tried = e->most >= in->offload.level; // else the device refused a moment ago
	uint8_t least = in->want.offload == API_OFFLOAD_FULL ? API_OFFLOAD_FULL : API_OFFLOAD_ENCAPSULATION;
	for (uint8_t level = RTE_MIN(in->offload.level, e->most); level >= least; level--) {
		why = plan_make(&plan, &e->q, level);
		if (why == NULL && e->device.flow != NULL && memcmp(&plan, &e->plan, sizeof(plan)) == 0)
			return;
		if (why == NULL) {
			leave_device(e, index);
			why = enter_device(e, index, &plan);
			e->retry_ns = why != NULL ? now + RETRY_NS : e->retry_ns;
			e->most = why != NULL ? level - 1 : e->most;
		}
		less = less == NULL ? why : less;
		if (why == NULL)
			break;
	}
	if (why != NULL)
		leave_device(e, index);
	if (tried)
		refuse(e, in, less);
}

static void forget(uint32_t index)
{
	struct entry *e = o.entry[index];
	uint32_t *at = &o.of_rule[e->q.rule];

	leave_device(e, index);
	while (*at != index + 1)
		at = &o.entry[*at - 1]->next;
	*at = e->next;
	e->used = 0;
	index_pool_give(&o.indices, index);
}

static int same_packets(const struct offload_request *a, const struct offload_request *b, const struct plan *p)
{
	int differ = a->port != b->port || a->l3 != b->l3 || a->outer_l3 != b->outer_l3 || a->tunnel != b->tunnel;

	for (uint32_t i = 0; i < PLAN_HEADER; i++)
		differ |= (a->header[i] ^ b->header[i]) & p->mask[i];
	return !differ;
}

static void learn(const struct offload_request *q, uint64_t now)
{
	const struct rule *r = &session_pools.rule[q->rule];
	struct port *in = port_get(q->port);
	uint32_t known = 0, index;
	struct plan p;

	if (r->generation != q->generation || (q->generation & RULE_RETIRED) || in == NULL ||
		in->offload.level == API_OFFLOAD_NONE)
		return;
	plan_make(&p, q, in->offload.level);
	for (uint32_t i = o.of_rule[q->rule]; i != 0; i = o.entry[i - 1]->next, known++)
		if (same_packets(&o.entry[i - 1]->q, q, &p))
			return;
	index = known < OF_RULE ? index_pool_take(&o.indices) : RULE_NONE;
	if (index != RULE_NONE && o.entry[index] == NULL &&
		(o.entry[index] = calloc(1, sizeof(struct entry))) == NULL) {
		index_pool_give(&o.indices, index);
		index = RULE_NONE;
	}
	if (index == RULE_NONE) {
		in->offload.refused++;
		return;
	}
	*o.entry[index] = (struct entry){.q = *q, .next = o.of_rule[q->rule], .used = 1};
	o.of_rule[q->rule] = index + 1;
	o.end = RTE_MAX(o.end, index + 1);
	make(o.entry[index], index, now);
}

static void take(const struct rule *r)
{
	while (o.of_rule != NULL && o.of_rule[rule_index(r)] != 0)
		forget(o.of_rule[rule_index(r)] - 1);
}

static void count(struct entry *e)
{
	struct device_counts c = {0};

	if (e->device.flow == NULL)
		return;
	program_read(&e->device, &e->plan, &c);
	add_up(e, &c);
}

static void read_rule(const struct rule *r)
{
	for (uint32_t i = o.of_rule != NULL ? o.of_rule[rule_index(r)] : 0; i != 0; i = o.entry[i - 1]->next)
		count(o.entry[i - 1]);
}

// ---- ports ----------------------------------------------------------------------------------------------------------

// What the port's device takes, asked with an example.
static void ask(struct port *p)
{
	struct plan plan;
	const char *why = NULL;
	uint8_t most = (uint8_t)RTE_MIN(p->want.offload, (uint32_t)API_OFFLOAD_FULL);
	uint8_t least = p->want.offload == API_OFFLOAD_FULL ? API_OFFLOAD_FULL : API_OFFLOAD_ENCAPSULATION;

	p->offload.asked = 1;
	p->offload.why[0] = 0;
	p->offload.level = API_OFFLOAD_NONE;
	for (uint8_t level = most; level >= least && p->offload.level == API_OFFLOAD_NONE; level--) {
		plan_sample(&plan, (uint16_t)p->device, level);
		why = p->device < 0 ? "the driver is none of DPDK's" : program_validate(&plan);
		size_t used = strlen(p->offload.why);
		if (why == NULL)
			p->offload.level = level;
		else
			snprintf(p->offload.why + used, sizeof(p->offload.why) - used, "%s%s: %s",
				used != 0 ? "; " : "", level == API_OFFLOAD_FULL ? "full" : "encapsulation", why);
	}
}

// Removes the port's entries from its device; `lost`: the device lost them.
static void empty(const struct port *p, int lost)
{
	for (uint32_t i = 0; i < o.end; i++) {
		struct entry *e = o.entry[i];

		if (e == NULL || !e->used || (e->q.port != p->index && e->plan.out != p->device))
			continue;
		if (lost && e->q.port == p->index && e->device.flow != NULL) {
			memset(&e->device, 0, sizeof(e->device));
			port_get(p->index)->offload.entries--;
			mark_give(i);
		}
		leave_device(e, i);
	}
}

static void closing(struct port *p)
{
	empty(p, 0);
	for (uint32_t i = 0; i < o.end; i++)
		if (o.entry[i] != NULL && o.entry[i]->used && o.entry[i]->q.port == p->index)
			forget(i);
}

static void look_at(struct port *p)
{
	struct rte_eth_link link;
	uint32_t missed = 0;

	for (uint32_t w = 0; w < worker_count(); w++)
		missed += __atomic_load_n(&asked[w].missed[p->index], __ATOMIC_RELAXED);
	p->offload.refused += missed - o.missed[p->index];
	o.missed[p->index] = missed;

	if (!p->offload.asked)
		ask(p);
	if (p->device < 0 || p->offload.level == API_OFFLOAD_NONE)
		return;
	if (__atomic_exchange_n(&o.lost[p->device], 0, __ATOMIC_ACQ_REL)) {
		empty(p, 1);
		o.generation--; // all are looked at now
	}
	uint8_t down = rte_eth_link_get_nowait((uint16_t)p->device, &link) == 0 && !link.link_status;
	if (down != o.down[p->index]) {
		o.down[p->index] = down;
		o.generation--;
		if (down)
			empty(p, 0);
	}
}

static int was_reset(uint16_t device, enum rte_eth_event_type type, void *arg, void *more)
{
	__atomic_store_n(&o.lost[device], 1, __ATOMIC_RELEASE);
	return 0;
}

// The first port that asks for it: memory for all.
static int begin(void)
{
	o.of_rule = calloc(session_pools.rules, sizeof(*o.of_rule));
	struct rte_ring *ring =
		rte_ring_create_elem("offload", sizeof(struct offload_request), REQUESTS, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (o.of_rule == NULL || ring == NULL || index_pool_create(&o.indices, ENTRIES) != 0)
		return -1;
	rte_eth_dev_callback_register(RTE_ETH_ALL, RTE_ETH_EVENT_INTR_RESET, was_reset, NULL);
	__atomic_store_n(&o.ring, ring, __ATOMIC_RELEASE);
	return 0;
}

static void look_at_ports(uint64_t now)
{
	if (now < o.look_ns)
		return;
	o.look_ns = now + LOOK_NS;
	for (uint16_t i = 0; i < MAX_PORTS; i++) {
		struct port *p = port_get(i);

		if (p != NULL && p->want.offload != API_OFFLOAD_NONE && (o.ring != NULL || begin() == 0))
			look_at(p);
	}
}

static void tick(uint64_t now)
{
	struct offload_request q;

	look_at_ports(now);
	if (o.ring == NULL)
		return;
	for (uint32_t i = 0; i < LEARN && rte_ring_sc_dequeue_elem(o.ring, &q, sizeof(q)) == 0; i++)
		learn(&q, now);
	if (o.generation != ip_ways_generation && now >= o.whole_ns) {
		o.generation = ip_ways_generation;
		o.whole_ns = now + WHOLE_NS;
		o.whole = o.end;
	}
	// A whole sweep takes as many ticks as devices need.
	const uint32_t steps = RTE_MIN(RTE_MAX(o.whole, SWEEP), o.end);
	for (uint32_t i = 0; i < steps && (i < SWEEP || control_now_ns() - now < SWEEP_NS); i++) {
		o.whole -= o.whole != 0;
		o.at = o.at + 1 >= o.end ? 0 : o.at + 1;
		if (o.entry[o.at] == NULL || !o.entry[o.at]->used)
			continue;
		count(o.entry[o.at]);
		make(o.entry[o.at], o.at, now);
	}
}

// In the commit by which a stage begins to want packets, devices are left; of the way back, the sweep takes care.
static void stages_changed(void)
{
	for (uint32_t i = 0; plan_bypass.closed && i < o.end; i++)
		if (o.entry[i] != NULL && o.entry[i]->used)
			make(o.entry[i], i, control_now_ns());
}

static const struct flow_engine device_engine = {.put = put, .take = take, .read = read_rule};

RTE_INIT(offload_device)
{
	flow_engine_register(&device_engine);
	plan_bypass.changed = stages_changed;
	arc_bypass_register(&plan_bypass);
	timer_register(TICK_MS, tick);
	port_closing_watch(closing);
}
