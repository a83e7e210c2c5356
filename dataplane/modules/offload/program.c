// SPDX-License-Identifier: Apache-2.0
// Puts plans into devices by rte_flow and rte_mtr. FULL is a transfer flow: between the network ports of one device,
// past the software. ENCAPSULATION is an ingress flow to the owner's queue.
#include "offload/program.h"
#include "wire/gtpu.h"
#include <rte_mtr.h>
#include <string.h>

#define PRIORITY_GUARD 0
#define PRIORITY_ENTRY 1
#define ITEMS_MORE 4 // the port, two of integrity, the end
#define ACTIONS 8

static const struct {
	enum rte_flow_item_type type;
	uint8_t bytes; // from the header
} item_of[] = {
	[PLAN_ETH] = {RTE_FLOW_ITEM_TYPE_ETH, 14},
	[PLAN_VLAN] = {RTE_FLOW_ITEM_TYPE_VLAN, 4},
	[PLAN_IP4] = {RTE_FLOW_ITEM_TYPE_IPV4, 20},
	[PLAN_IP6] = {RTE_FLOW_ITEM_TYPE_IPV6, 40},
	[PLAN_UDP] = {RTE_FLOW_ITEM_TYPE_UDP, 8},
	[PLAN_TCP] = {RTE_FLOW_ITEM_TYPE_TCP, 20},
	[PLAN_GTPU] = {RTE_FLOW_ITEM_TYPE_GTP, 8},
	[PLAN_CONTAINER] = {RTE_FLOW_ITEM_TYPE_GTP_PSC, 3},
};

// A flow with all that it points to. A header's bytes are at the beginning of its item's struct.
struct words {
	struct rte_flow_attr attr;
	struct rte_flow_item item[PLAN_ITEMS + ITEMS_MORE];
	struct rte_flow_action action[ACTIONS];
	uint32_t items, actions;
	uint64_t spec[PLAN_ITEMS][6], mask[PLAN_ITEMS][6];
	struct rte_flow_item_integrity good[2], good_mask[2];
	struct rte_flow_item_ethdev in;
	struct rte_flow_action_ethdev out;
	struct rte_flow_action_raw_decap decap;
	struct rte_flow_action_raw_encap encap;
	struct rte_flow_action_meter meter;
	struct rte_flow_action_mark mark;
	struct rte_flow_action_queue queue;
	uint8_t came[PLAN_HEADER], goes[PLAN_ENCAP];
};
static_assert(sizeof(struct rte_flow_item_ipv6) <= sizeof(((struct words *)NULL)->spec[0]), "the largest item fits");

static void add_item(struct words *w, enum rte_flow_item_type type, const void *spec, const void *mask)
{
	w->item[w->items++] = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

static void add_action(struct words *w, enum rte_flow_action_type type, const void *conf)
{
	w->action[w->actions++] = (struct rte_flow_action){.type = type, .conf = conf};
}

// Matches correct lengths and checksums of both IP headers; the software drops others by name.
static void add_integrity(struct words *w, const struct plan *p)
{
	uint32_t levels = 0;

	for (uint32_t i = 0; i < p->items; i++)
		levels += p->type[i] == PLAN_IP4 || p->type[i] == PLAN_IP6;
	for (uint32_t i = 0; i < levels; i++) {
		w->good_mask[i].level = w->good[i].level = i + 1;
		w->good[i].l3_ok = w->good[i].ipv4_csum_ok = w->good[i].l3_len_ok = 1;
		w->good_mask[i].value = w->good[i].value;
		add_item(w, RTE_FLOW_ITEM_TYPE_INTEGRITY, &w->good[i], &w->good_mask[i]);
	}
}

static void match(struct words *w, const struct plan *p)
{
	w->in.port_id = p->in;
	if (p->level == API_OFFLOAD_FULL)
		add_item(w, RTE_FLOW_ITEM_TYPE_REPRESENTED_PORT, &w->in, &rte_flow_item_ethdev_mask);
	add_integrity(w, p);
	for (uint32_t i = 0; i < p->items; i++) {
		uint32_t n = item_of[p->type[i]].bytes;

		memcpy(w->spec[i], p->spec + p->at[i], n);
		memcpy(w->mask[i], p->mask + p->at[i], n);
		add_item(w, item_of[p->type[i]].type, w->spec[i], w->mask[i]);
	}
	add_item(w, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
}

static void rewrite(struct words *w, const struct plan *p)
{
	memcpy(w->came, p->spec, p->decap);
	memcpy(w->goes, p->bytes, p->encap);
	w->decap = (struct rte_flow_action_raw_decap){.data = w->came, .size = p->decap};
	w->encap = (struct rte_flow_action_raw_encap){.data = w->goes, .size = p->encap};
	add_action(w, RTE_FLOW_ACTION_TYPE_RAW_DECAP, &w->decap);
	if (p->counts_hops)
		add_action(w, RTE_FLOW_ACTION_TYPE_DEC_TTL, NULL);
	add_action(w, RTE_FLOW_ACTION_TYPE_RAW_ENCAP, &w->encap);
}

static void entry_flow(struct words *w, const struct plan *p, const struct device_entry *e, uint32_t id)
{
	memset(w, 0, sizeof(*w));
	w->attr.priority = PRIORITY_ENTRY;
	match(w, p);
	if (p->level == API_OFFLOAD_FULL) {
		w->attr.transfer = 1;
		w->meter.mtr_id = e->meter;
		if (e->meter != 0)
			add_action(w, RTE_FLOW_ACTION_TYPE_METER, &w->meter);
		add_action(w, RTE_FLOW_ACTION_TYPE_INDIRECT, e->count);
		rewrite(w, p);
		w->out.port_id = p->out;
		add_action(w, RTE_FLOW_ACTION_TYPE_REPRESENTED_PORT, &w->out);
	} else {
		w->attr.ingress = 1;
		rewrite(w, p);
		w->mark.id = id;
		w->queue.index = p->queue;
		add_action(w, RTE_FLOW_ACTION_TYPE_MARK, &w->mark);
		add_action(w, RTE_FLOW_ACTION_TYPE_QUEUE, &w->queue);
	}
	add_action(w, RTE_FLOW_ACTION_TYPE_END, NULL);
}

// Packets that the entry must not take go to the software, like those without an entry.
static void guard_flow(struct words *w, const struct plan *p)
{
	struct plan guarded = *p;

	memset(w, 0, sizeof(*w));
	for (uint32_t i = 0; i < 2; i++) {
		guarded.spec[p->guard_at + i] &= (uint8_t)~p->guard_mask[i];
		guarded.mask[p->guard_at + i] |= p->guard_mask[i];
	}
	w->attr.priority = PRIORITY_GUARD;
	w->attr.transfer = 1;
	match(w, &guarded);
	w->out.port_id = p->in;
	add_action(w, RTE_FLOW_ACTION_TYPE_PORT_REPRESENTOR, &w->out);
	add_action(w, RTE_FLOW_ACTION_TYPE_END, NULL);
}

static const char *why_not(const struct rte_flow_error *error, const char *otherwise)
{
	return error->message != NULL ? error->message : otherwise;
}

// ---- meters ---------------------------------------------------------------------------------------------------------

static int add_policy(const struct plan *p, uint32_t id)
{
	static const struct rte_flow_action pass[] = {{.type = RTE_FLOW_ACTION_TYPE_END}};
	static const struct rte_flow_action drop[] = {
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_mtr_meter_policy_params policy;
	struct rte_mtr_error error;

	for (uint32_t c = 0; c < RTE_COLORS; c++)
		policy.actions[c] = p->policer.action[c] == API_COLOUR_DROP ? drop : pass;
	return rte_mtr_meter_policy_add(p->in, id, &policy, &error);
}

static void remove_meter(struct device_entry *e, const struct plan *p)
{
	struct rte_mtr_error error;

	rte_mtr_destroy(p->in, e->meter, &error);
	rte_mtr_meter_policy_delete(p->in, e->meter, &error);
	rte_mtr_meter_profile_delete(p->in, e->meter, &error);
	e->meter = 0;
}

static const char *add_meter(struct device_entry *e, const struct plan *p, uint32_t id)
{
	struct rte_mtr_meter_profile profile = {.alg = RTE_MTR_TRTCM_RFC2698,
		.trtcm_rfc2698 = {
			.cir = p->policer.cir, .pir = p->policer.pir, .cbs = p->policer.cbs, .pbs = p->policer.pbs}};
	struct rte_mtr_params meter = {.meter_profile_id = id,
		.meter_policy_id = id,
		.meter_enable = 1,
		.stats_mask = RTE_MTR_STATS_N_PKTS_DROPPED};
	struct rte_mtr_error error;

	if (p->policer.type == API_SRTCM)
		profile = (struct rte_mtr_meter_profile){.alg = RTE_MTR_SRTCM_RFC2697,
			.srtcm_rfc2697 = {.cir = p->policer.cir, .cbs = p->policer.cbs, .ebs = p->policer.pbs}};
	e->meter = id;
	if (rte_mtr_meter_profile_add(p->in, id, &profile, &error) == 0 && add_policy(p, id) == 0 &&
		rte_mtr_create(p->in, id, &meter, 0, &error) == 0)
		return NULL;
	remove_meter(e, p); // what there is of it
	return "the device does not take the policer's meter";
}

// ---- entries --------------------------------------------------------------------------------------------------------

// Counter and meter, which the flow refers to.
static const char *add_objects(struct device_entry *e, const struct plan *p, uint32_t id)
{
	static const struct rte_flow_action count = {.type = RTE_FLOW_ACTION_TYPE_COUNT};
	static const struct rte_flow_indir_action_conf conf = {.transfer = 1};
	struct rte_flow_error error = {0};

	if (p->level != API_OFFLOAD_FULL)
		return NULL;
	e->count = rte_flow_action_handle_create(p->in, &conf, &count, &error);
	if (e->count == NULL)
		return "no counters that outlive their flows";
	return p->is_policed ? add_meter(e, p, id) : NULL;
}

const char *program_put(struct device_entry *e, const struct plan *p, uint32_t id)
{
	struct rte_flow_error error = {0};
	struct words w;
	struct device_counts none = {0};
	const char *why;

	memset(e, 0, sizeof(*e));
	why = add_objects(e, p, id);
	if (why == NULL && (p->guard_mask[0] | p->guard_mask[1]) != 0) {
		guard_flow(&w, p);
		e->guard = rte_flow_create(p->in, &w.attr, w.item, w.action, &error);
		why = e->guard == NULL ? why_not(&error, "the device does not take the guard") : NULL;
	}
	if (why == NULL) {
		entry_flow(&w, p, e, id);
		e->flow = rte_flow_create(p->in, &w.attr, w.item, w.action, &error);
		why = e->flow == NULL ? why_not(&error, "the device does not take the flow") : NULL;
	}
	if (why != NULL)
		program_take(e, p, &none);
	return why;
}

void program_read(struct device_entry *e, const struct plan *p, struct device_counts *c)
{
	struct rte_flow_query_count q = {0};
	struct rte_flow_error error;
	struct rte_mtr_stats s;
	struct rte_mtr_error meter_error;
	uint64_t mask;

	if (e->count != NULL && rte_flow_action_handle_query(p->in, e->count, &q, &error) == 0 && q.hits_set &&
		q.bytes_set && q.hits >= e->packets) {
		c->packets += q.hits - e->packets;
		c->bytes += q.bytes - e->bytes - (q.hits - e->packets) * p->overhead;
		e->packets = q.hits;
		e->bytes = q.bytes;
	}
	if (e->meter != 0 && rte_mtr_stats_read(p->in, e->meter, &s, &mask, 0, &meter_error) == 0 &&
		s.n_pkts_dropped >= e->dropped) {
		c->dropped += s.n_pkts_dropped - e->dropped;
		e->dropped = s.n_pkts_dropped;
	}
}

// The flow first: behind it nothing counts any more.
void program_take(struct device_entry *e, const struct plan *p, struct device_counts *c)
{
	struct rte_flow_error error;

	if (e->flow != NULL)
		rte_flow_destroy(p->in, e->flow, &error);
	if (e->guard != NULL)
		rte_flow_destroy(p->in, e->guard, &error);
	program_read(e, p, c);
	if (e->count != NULL)
		rte_flow_action_handle_destroy(p->in, e->count, &error);
	if (e->meter != 0)
		remove_meter(e, p);
	memset(e, 0, sizeof(*e));
}

const char *program_validate(const struct plan *p)
{
	struct device_entry e = {0};
	struct device_counts none = {0};
	struct rte_flow_error error = {0};
	struct words w;
	const char *why = add_objects(&e, p, 1);

	if (why == NULL) {
		entry_flow(&w, p, &e, 1);
		if (rte_flow_validate(p->in, &w.attr, w.item, w.action, &error) != 0)
			why = why_not(&error, "the device refuses the flow");
	}
	program_take(&e, p, &none);
	return why;
}
