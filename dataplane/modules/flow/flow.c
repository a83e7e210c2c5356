// SPDX-License-Identifier: Apache-2.0
// Entries of the fast path, and the index that leads to them.
#include "flow/flow.h"
#include "core/control.h"
#include "core/object.h"
#include "flow/tuple.h"
#include "forward/template.h"
#include "instance/instance.h"
#include "meter/policer.h"
#include "rule/engine.h"
#include "rule/view.h"
#include "usage/usage.h"
#include "wire/cache_line.h"
#include "wire/gtpu.h"
#include <errno.h>
#include <rte_malloc.h>

struct flow_index flow_index;
struct flow_routes flow_routed[API_MAX_WORKERS];

// A UE of both families has two keys and one state with the IPv4 key: the prefix is compared per packet.
static uint64_t key_to_keep(const struct rule_state *s, uint64_t key, uint32_t rule)
{
	uint64_t before = s->rule == rule ? __atomic_load_n(&s->key, __ATOMIC_RELAXED) : 0;

	return FLOW_KIND(before) == KEY_UE4 && FLOW_KIND(key) == KEY_UE6 ? before : key;
}

// The key is stored last. After that: is the rule retired, and has forget() perhaps been before us?
static void publish(const struct rule *r, uint64_t key)
{
	struct rule_state *s = rule_state_of(r);

	__atomic_store_n(&s->key, key, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (unlikely(__atomic_load_n(&r->generation, __ATOMIC_RELAXED) & RULE_RETIRED))
		__atomic_store_n(&s->key, 0, __ATOMIC_RELEASE);
}

// Sets the policer profile of the meter's entries. Returns 0 where sessions name different profiles for a shared meter.
// Entries of earlier versions of a session, the only ones with the old profile, are gone.
static int note_policer(struct meter_state *m, uint32_t policer)
{
	if (m->shared && m->policer != METER_NONE && m->policer != policer)
		return 0;
	m->policer = policer;
	return 1;
}

// Packets find a rule's one or two further meters here, without reading rule_further.
static struct state_meters meters_of(const struct rule *r)
{
	const struct state_meters none = {{STATE_METER_NONE, STATE_METER_NONE}};
	const struct rule_further *f = rule_further_of(r);
	struct state_meters to = none;

	if (f->meters > RTE_DIM(to.index) || (f->meters == 2 && f->meter[0].state == f->meter[1].state))
		return none;
	for (uint8_t i = 0; i < f->meters; i++) {
		to.index[i] = f->meter[i].state;
		if (to.index[i] >= STATE_METER_NONE || !note_policer(&meter_states[to.index[i]], f->meter[i].policer))
			return none;
	}
	return to;
}

static void fill(struct rule_state *s, const struct rule *r)
{
	struct action a = r->action;
	uint32_t ue4 = r->up.ue4;

	if (action_counts6(&a)) { // what it counted stays
		ue4 = action_counts6(&s->action) ? s->packets6 : 0;
		a.teid = action_counts6(&s->action) ? s->bytes6 : 0;
	}
	s->rule = rule_index(r);
	if (a.further)
		rule_state_set_meters(s, meters_of(r));
	s->ue4 = ue4;
	s->action = a;
	s->bits |= RULE_STATE_LOOK; // last: the control thread may have written the word
}

// Of an endpoint or instance; with `elsewhere` the index leads to another worker.
static void note_habit(int16_t *habit, int has, int elsewhere)
{
	int now = *habit + (has ? 1 : -FLOW_HABIT_BREACH);

	now = elsewhere ? -FLOW_HABIT_MOST : RTE_MAX(now, RTE_MIN(*habit, 0));
	*habit = (int16_t)RTE_MIN(now, FLOW_HABIT_MOST);
}

// Stores where the key leads, and the habits of such keys.
static void note(const struct worker *w, uint64_t key, uint32_t to)
{
	uint32_t *slot = flow_slot(w, key), elsewhere = to & FLOW_ELSEWHERE;
	int tunnel = FLOW_KIND(key) == KEY_FTEID;

	if (!flow_index.is_used[w->id])
		flow_index.is_used[w->id] = 1;
	if (*slot == to)
		return;
	*slot = to;
	if (FLOW_KIND(key) == KEY_UE6) // does not say its instance
		return;
	note_habit(flow_several(w, tunnel, flow_id(key)), (to & FLOW_SEVERAL) != 0, elsewhere != 0);
	note_habit(flow_in_place(w, tunnel, flow_id(key)), to == flow_place(key), elsewhere != 0);
}

static void learn(struct worker *w, uint64_t key, const struct rule *r)
{
	struct rule_state *s = rule_state_of(r);

	note(w, key, r->state);
	key = flow_entry_key(w, key);
	uint64_t keep = key_to_keep(s, key, rule_index(r));
	if ((s->key == keep && s->rule == rule_index(r)) || !usage_has_loan_of(r))
		return;
	fill(s, r);
	publish(r, keep);
}

// A word that leads to a live state stays: two keys with one word would alternate.
void flow_note_owner(struct worker *w, uint64_t key, uint32_t owner)
{
	uint32_t at = *flow_slot(w, key), word = flow_elsewhere(key, owner);

	if (at == word)
		return;
	if (!(at & FLOW_ELSEWHERE)) {
		uint64_t there = __atomic_load_n(&session_pools.state[at & ~FLOW_SEVERAL].key, __ATOMIC_RELAXED);

		if (there != 0 && (there >> 56 & 63) == w->id &&
			((at & FLOW_SEVERAL) || flow_slot(w, there) == flow_slot(w, key)))
			return;
	}
	note(w, key, word);
}

void flow_correct_owner(const struct worker *asked, uint64_t key, uint32_t wrong, uint32_t owner)
{
	uint32_t was = flow_elsewhere(key, wrong), is = owner != asked->id ? flow_elsewhere(key, owner) : 0;

	__atomic_compare_exchange_n(flow_slot(asked, key), &was, is, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// ---- 5-tuple entries ------------------------------------------------------------------------------------------------

// The number of the rule's entries, which it gets when it has none.
static uint32_t number_of(struct worker *w, struct tuples *t, const struct rule *r, int plain)
{
	struct rule_state *s = rule_state_of(r);
	uint64_t key = __atomic_load_n(&s->key, __ATOMIC_RELAXED);

	int is_full = (s->bits & RULE_STATE_FULL) != 0;

	if (s->rule == rule_index(r) && is_full == !plain && key != 0 && key == tuple_key_of(w, (uint32_t)key))
		return (uint32_t)key;
	uint32_t number = tuples_number(t);
	fill(s, r);
	s->bits |= plain ? 0 : RULE_STATE_FULL;
	publish(r, tuple_key_of(w, number));
	return number;
}

void flow_keep(
	struct worker *w, const struct tuple *key, uint32_t hash, const struct rule *r, uint32_t permitted, int plain)
{
	struct tuples *tuples = &flow_tuples[w->id];
	struct tuple t = *key;

	if (unlikely(!usage_has_loan_of(r)))
		return;
	t.first.number = number_of(w, tuples, r, plain);
	t.first.state = r->state;
	t.first.permitted = permitted;
	t.first.idle = t.first.age = 0;
	tuples_put(w, tuples, hash, &t);
}

// A packet that passed the access list of its direction: it has an endpoint_view or a tunnel_view. Or it is of an
// instance, which has no list where flow-input serves it.
static void keep(struct worker *w, const struct engine_flow *f)
{
	enum acl_place direction = f->tunnel ? ACL_DOWNLINK : ACL_UPLINK;
	struct tuples *tuples = &flow_tuples[w->id];
	uint32_t permitted, given;

	if (f->home) {
		permitted = given = f->first->state;
	} else {
		permitted = tuples_enter(tuples, direction, firewall_list(direction));
		given = f->tunnel ? tunnel_view_of(f->m)->permitted : endpoint_view_of(f->m)->permitted;
	}
	// Another list, since the firewall's node.
	if (unlikely((given ^ permitted) >> ACL_SLOT_BITS != 0))
		return;
	struct tuple_entry *known = tuple_find(tuples, f->hash, f->flow);
	if (known == NULL)
		*f->is_new = 1;
	if (known == NULL && f->refused)
		return;
	if (known != NULL ? tuple_state(w, known, permitted) == rule_state_of(f->rule) : !tuples_met(tuples, f->hash))
		return;
	flow_keep(w, f->flow, f->hash, f->rule, given, 1);
}

// ---- the engine -----------------------------------------------------------------------------------------------------

int flow_may_pass(const struct rule *r, int tuple)
{
	return ((r->outer == API_OUTER_GTPU || r->outer == API_OUTER_NONE) && r->up.shaped == 0) ||
	       (tuple && r->outer == API_OUTER_ENDPOINT);
}

static void put(struct worker *w, const struct engine_flow *f)
{
	if (!flow_may_pass(f->rule, f->tuple))
		return;
	if (f->key != 0 && flow_has_tuples(f->first))
		note(w, f->key, f->first->state | FLOW_SEVERAL);
	else if (f->key != 0)
		learn(w, f->key, f->rule);
	if (f->tuple && f->flow != NULL)
		keep(w, f);
}

// Packets of the rule take the full nodes until an entry is put again.
static void forget(const struct rule *r)
{
	__atomic_store_n(&rule_state_of(r)->key, 0, __ATOMIC_RELEASE);
}

static const struct flow_engine software = {.put = put, .take = forget};

// The n-th number in places as far apart as can be: 0, 1/2, 1/4, 3/4, ... of the whole.
static uint32_t spread(uint32_t n, uint32_t whole)
{
	uint32_t at = 0;

	for (; n != 0 && whole > 1; n >>= 1) {
		whole /= 2;
		at += n & 1 ? whole : 0;
	}
	return at;
}

// Twice as many places as sessions with an uplink and a downlink have keys.
static int start(const struct api_engine *e)
{
	uint32_t places = 1024;

	while (places < 4 * e->max_sessions)
		places *= 2;
	flow_index.mask = places - 1;
	flow_index.place_mask = places_of(e) - 1;
	for (uint32_t i = 0; i < RTE_DIM(flow_index.offset); i++) {
		flow_index.offset[i] = spread(i, places / 2);
		flow_index.place[1][i] = spread(2 * i, places_of(e));
		flow_index.place[0][i] = spread(2 * i + 1, places_of(e));
	}
	for (uint32_t w = 0; w < e->workers; w++) {
		for (uint32_t v = 0; v < MAX_VRFS; v++)
			flow_routed[w].of_vrf[v] = (struct rule_state){.rule = RULE_NONE,
				.action = {.dscp = ACTION_NO_DSCP,
					.instance = (uint16_t)instance_of_vrf(v),
					.qfi = GTPU_NO_QFI}};
		flow_index.state[w] = rte_zmalloc("flow-index", places * sizeof(uint32_t), CACHE_LINE);
		if (flow_index.state[w] == NULL)
			return object_error(ENOMEM, "no memory for the index of flows");
	}
	if (templates_create(e->workers) != 0)
		return object_error(ENOMEM, "no memory for header templates");
	if (tuples_create(e->workers, e->max_flows) != 0)
		return object_error(ENOMEM, "no memory for 5-tuple entries of %u flows a worker", e->max_flows);
	return 0;
}

ENGINE_LIMIT(max_rules, 1, (1u << TUPLE_STATE_BITS) - API_MAX_PDR)

RTE_INIT(flow_module)
{
	module_register(start);
	flow_engine_register(&software);
}

static_assert(POLICER_MAX_PROFILES == 1 << 21, "action.policer has as many bits");
