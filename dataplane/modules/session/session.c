// SPDX-License-Identifier: Apache-2.0
// The SESSION object. A new version is built beside the old one, then its keys replace the old ones. Creation and
// deletion are the same steps with one side empty.
#include "core/control.h"
#include "core/lazy.h"
#include "core/log.h"
#include "core/object.h"
#include "core/port.h"
#include "counter/counter.h"
#include "counter/traffic.h"
#include "instance/instance.h"
#include "lcp/lcp.h"
#include "meter/policer.h"
#include "rule/engine.h"
#include "rule/watch.h"
#include "rule/wish.h"
#include "scheduler/scheduler.h"
#include "session/compile.h"
#include "usage/usage.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <rte_random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int start_pools(uint32_t sessions, uint32_t rules, uint32_t states)
{
	struct session_tables *t = &session_tables;

	session_pools.rules = rules;
	session_pools.rule = rte_zmalloc("rules", (size_t)rules * sizeof(struct rule), CACHE_LINE);
	session_pools.state = rte_zmalloc("rule-states", (size_t)states * sizeof(struct rule_state), CACHE_LINE);
	session_pools.account = lazy_alloc((size_t)states * sizeof(struct rule_account));
	session_pools.match = lazy_alloc((size_t)rules * sizeof(struct rule_match));
	session_pools.further = lazy_alloc((size_t)rules * sizeof(struct rule_further));
	t->capacity = sessions;
	t->session = calloc(sessions, sizeof(*t->session));
	t->endpoint = exact_create("endpoints", sessions * 2, SOCKET_ID_ANY);
	t->key = narrow_create("session-keys", rules, SOCKET_ID_ANY);
	for (unsigned i = 0; i < RTE_DIM(t->secret); i++)
		t->secret[i] = rte_rand() | 1;
	return session_pools.rule != NULL && session_pools.state != NULL && session_pools.account != NULL &&
	       session_pools.match != NULL && session_pools.further != NULL && t->session != NULL &&
	       t->endpoint != NULL && t->key != NULL && index_pool_create(&t->indices, sessions) == 0 &&
	       index_pool_create(&t->rules, rules) == 0 && index_pool_create_certain(&t->states, states) == 0;
}

static int start(const struct api_engine *e)
{
	uint32_t rules = rules_of(e), states = RTE_MAX(rules, places_of(e));

	if (!start_pools(e->max_sessions, rules, states))
		return object_error(ENOMEM, "no memory for %u sessions and %u rules", e->max_sessions, rules);
	session_lengths_publish();
	return 0;
}

RTE_INIT(session_module)
{
	module_register(start);
}

static void forget_further(struct rule *r)
{
	struct rule_further *f = rule_further_of(r);

	if (!(r->flags & RULE_FURTHER_METERS))
		return;
	for (uint8_t k = 0; k < f->meters; k++)
		meter_release(f->meter[k].state);
	memset(f, 0, sizeof(*f));
}

// Returns rules and states to their pools; `successor`, the next version, keeps the states that it uses.
static void give_back(struct session *s, const struct session *successor)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		if (s->rule[i] == RULE_NONE)
			continue;
		struct rule *r = &session_pools.rule[s->rule[i]];
		struct rule_match *m = &session_pools.match[s->rule[i]];
		int kept = 0;

		for (uint16_t k = 0; successor != NULL && k < successor->rules; k++)
			kept |= successor->rule[k] != RULE_NONE &&
				session_pools.rule[successor->rule[k]].state == r->state;
		if (!kept)
			index_pool_give(&session_tables.states, r->state);
		forget_further(r);
		far_more_free(m->more);
		m->more = NULL;
		r->generation = (r->generation | RULE_RETIRED) + 1; // of another meaning from now on
		index_pool_give(&session_tables.rules, s->rule[i]);
	}
}

static void session_free(struct session *s)
{
	free(s->key);
	free(s->sdf);
	free(s->route);
	free(s->mirror);
	free(s->counter);
	free(s);
}

static int take_rules(struct session *s)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		uint32_t index = s->rule[i] = index_pool_take(&session_tables.rules);

		if (index == RULE_NONE)
			return object_error(
				ENOSPC, "session %s: no more rules (%u in all)", s->name, session_pools.rules);
		struct rule *r = &session_pools.rule[index];
		uint32_t generation = r->generation;
		memset(r, 0, sizeof(*r));
		r->generation = (generation | RULE_RETIRED) + 1;
		r->session = s->index;
		r->state = RULE_NONE;
		memset(&session_pools.match[index], 0, sizeof(struct rule_match));
	}
	return 0;
}

static int copy_arrays(struct session *s, const struct parts *p)
{
	if ((p->s->mirror[0] != 0 && (s->mirror = strndup(p->s->mirror, API_NAME)) == NULL) ||
		(p->s->counter[0] != 0 && (s->counter = strndup(p->s->counter, API_NAME)) == NULL))
		return object_error(ENOMEM, "no memory for session %s", s->name);
	if (p->s->sdfs != 0) {
		s->sdf = malloc(p->s->sdfs * sizeof(*s->sdf));
		if (s->sdf == NULL)
			return object_error(ENOMEM, "no memory for session %s", s->name);
		memcpy(s->sdf, p->sdf, p->s->sdfs * sizeof(*s->sdf));
	}
	if (p->s->routes != 0) {
		s->route = malloc(p->s->routes * sizeof(*s->route));
		if (s->route == NULL)
			return object_error(ENOMEM, "no memory for session %s", s->name);
		memcpy(s->route, p->route, p->s->routes * sizeof(*s->route));
		s->routes = (uint8_t)p->s->routes;
	}
	return 0;
}

static int stage_usage(struct session *s, const struct parts *p, const struct session *old)
{
	const struct usage_session us = {.name = s->name,
		.seid = s->seid,
		.index = s->index,
		.inactivity = p->s->inactivity,
		.worker = s->worker};

	return usage_stage(&s->usage, old ? old->usage : NULL, &us, p->urr, p->s->urrs);
}

static void fill_head(struct session *s, const struct api_session *want)
{
	s->seid = want->seid;
	s->worker = (uint8_t)want->worker;
	s->encap = want->encap;
	s->has_ue4 = want->ue_ip4.family == 4;
	memcpy(s->ue4, want->ue_ip4.bytes, 4);
	s->discard = want->discard;
	s->association = want->association;
	s->mss = want->mss;
	s->ue6_prefix = want->ue_ip6.family == 6 ? want->ue_ip6.prefix : 0xff;
	memcpy(s->ue6, want->ue_ip6.bytes, 16);
	s->rules = want->pdrs;
	for (uint16_t i = 0; i < s->rules; i++)
		s->rule[i] = RULE_NONE;
}

static int build(struct session *s, const struct api_session *want, const struct session *old)
{
	struct parts p;

	session_parts(&p, want, s->name);
	fill_head(s, want);
	s->index = old ? old->index : index_pool_take(&session_tables.indices);
	if (s->index == RULE_NONE)
		return object_error(ENOSPC, "session %s: no more than %u sessions (engine.limits.sessions)", s->name,
			session_tables.capacity);
	int error = copy_arrays(s, &p);
	if (error == 0)
		error = stage_usage(s, &p, old);
	if (error == 0)
		error = take_rules(s);
	if (error == 0)
		error = session_compile(s, &p, old);
	if (error == 0)
		error = session_keys(s, &p);
	if (error == 0)
		wishes_session(s);
	for (uint16_t i = 0; i < s->rules && error == 0; i++)
		s->notifies |=
			(session_pools.rule[s->rule[i]].flags & (RULE_BUFFER | RULE_DRAINING | RULE_NOTIFY)) != 0;
	return error == 0 ? session_claim(s) : error;
}

static void undo(struct session *s, const struct session *old)
{
	give_back(s, old);
	if (s->usage != NULL)
		usage_discard(s->usage);
	if (old == NULL)
		index_pool_give(&session_tables.indices, s->index);
	session_free(s);
}

// Entries of session.rule: a rule of each PDR, and ids.
static uint32_t places(const struct api_session *want)
{
	struct parts p;
	uint32_t count = want->pdrs;

	session_parts(&p, want, "");
	for (uint16_t i = 0; i < want->pdrs; i++)
		count += p.pdr[i].qers + p.pdr[i].urrs;
	return count;
}

static int stage(struct object_change *c)
{
	const struct api_session *want = c->body;
	struct session *old = *c->live;

	c->replaced = old;
	if (want == NULL) {
		int error = session_leaves(old);

		if (error == 0)
			session_use(c->old_body, -1);
		return error;
	}
	if (engine_get() == NULL)
		return object_error(EINVAL, "session %s comes before the engine", c->key);
	int error = session_check(want, c->length, c->key);
	if (error != 0)
		return error;
	struct session *s = calloc(1, sizeof(*s) + places(want) * sizeof(s->rule[0]));
	if (s == NULL)
		return object_error(ENOMEM, "no memory for session %s", c->key);
	s->name = c->key;
	error = build(s, want, old);
	if (error == 0 && old != NULL)
		error = session_leaves(old);
	if (error != 0) {
		undo(s, old);
		return error;
	}
	c->staged = s;
	session_use(c->old_body, -1);
	session_use(want, 1);
	return 0;
}

static void discard(struct object_change *c)
{
	session_claims_forget();
	session_use(c->old_body, 1);
	if (c->staged == NULL)
		return;
	session_use(c->body, -1);
	undo(c->staged, c->replaced);
}

static void publish(const struct session *s)
{
	for (uint16_t i = 0; i < s->keys; i++)
		session_key_publish(&s->key[i], rule_value(s->key[i].first));
}

// From now on flows that lead to these rules are stale, and the rules borrow no more. This comes before the session's
// new rules can be found: their URRs do not know of the old loans.
static void retire(const struct session *old)
{
	for (uint16_t i = 0; i < old->rules; i++)
		__atomic_or_fetch(&session_pools.rule[old->rule[i]].generation, RULE_RETIRED, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// After the grace period the rules, and what they point to, have no user.
static void take_from_engines(const struct session *old)
{
	for (uint16_t i = 0; i < old->rules; i++)
		engines_take(&session_pools.rule[old->rule[i]]);
}

// IPv6 counts of kept states are not new URRs'.
static void move_counts6(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < s->rules; i++)
		for (uint16_t k = 0; k < old->rules; k++) {
			const struct rule *is = &session_pools.rule[s->rule[i]],
					  *was = &session_pools.rule[old->rule[k]];
			uint32_t from = session_pools.match[old->rule[k]].urr6,
				 to = session_pools.match[s->rule[i]].urr6;

			if (is->state == was->state && from != to)
				usage_counts6_move(from, to, was);
		}
}

// Those of states that go are the URRs' own.
static void return_counts6(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < old->rules; i++) {
		const struct rule *r = &session_pools.rule[old->rule[i]];
		int kept = 0;

		for (uint16_t k = 0; s != NULL && k < s->rules; k++)
			kept |= session_pools.rule[s->rule[k]].state == r->state;
		if (!kept)
			usage_counts6_move(session_pools.match[old->rule[i]].urr6, RULE_NONE, r);
	}
}

static void count_clamping(const struct session *s, const struct session *old)
{
	int difference = (s != NULL && s->mss != 0) - (old != NULL && old->mss != 0);

	__atomic_store_n(&session_tables.clamping, session_tables.clamping + (uint32_t)difference, __ATOMIC_RELEASE);
}

static void commit(struct object_change *c)
{
	struct session *s = c->staged, *old = c->replaced;
	const struct api_session *want = c->body;

	if (old != NULL)
		engines_read(old->index); // first: the URRs' counts decide how much they have left
	if ((s != NULL && s->usage != NULL) || (old != NULL && old->usage != NULL))
		usage_commit(s ? s->usage : NULL, old ? old->usage : NULL);
	if (s != NULL && old != NULL)
		move_counts6(s, old);
	if (old != NULL)
		retire(old);
	count_clamping(s, old); // first: its packets are looked at as soon as they find it
	if (s != NULL) {
		session_lengths_add(s, 1);
		__atomic_store_n(&session_tables.session[s->index], s, __ATOMIC_RELEASE);
		lcp_session(s->index, want, c->old_body);
		publish(s);
		worker_get(s->worker)->sessions++;
		session_tables.count++;
		if (want->port[0] != 0)
			scheduler_pipe_profile(want->port, want->subport, want->pipe, want->pipe_profile);
	} else if (old != NULL) {
		lcp_session(old->index, NULL, c->old_body);
		__atomic_store_n(&session_tables.session[old->index], NULL, __ATOMIC_RELEASE);
	}
	if (old != NULL) {
		take_from_engines(old);
		session_lengths_add(old, -1);
		worker_get(old->worker)->sessions--;
		session_tables.count--;
	}
	*c->live = s;
}

// Adds a PDR's counts in another state to its present ones: no worker counts there any more.
static void carry_counters(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < s->rules; i++)
		for (uint16_t k = 0; k < old->rules; k++) {
			const struct rule_match *was = &session_pools.match[old->rule[k]];
			struct rule_match *is = &session_pools.match[s->rule[i]];
			const struct rule *before = &session_pools.rule[old->rule[k]];
			struct rule_counts counts = rule_forwarded(before);
			int moved = session_pools.rule[s->rule[i]].state != before->state;

			if (is->pdr != was->pdr)
				continue;
			is->packets = was->packets + (moved ? counts.packets : 0);
			is->bytes = was->bytes + (moved ? counts.bytes : 0);
			is->dropped = was->dropped + (moved ? rule_account_of(before)->dropped : 0);
			is->told = was->told;
		}
}

// Returns loans of URRs that no rule of the new version uses.
static void return_loans(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < old->rules; i++) {
		const struct rule *r = &session_pools.rule[old->rule[i]];
		int kept = 0;

		for (uint16_t k = 0; s != NULL && k < s->rules; k++) {
			const struct rule *now = &session_pools.rule[s->rule[k]];
			kept |= now->state == r->state && usage_has_loan_of(now);
		}
		if (!kept)
			usage_return(r);
	}
}

// TS 29.244 §5.2.3.2: the control plane asks for End Markers when it moves a tunnel; one per FAR, on the old tunnel.
static void end_markers(const struct object_change *c, const struct session *old)
{
	struct parts now, before;

	session_parts(&now, c->body, c->key);
	session_parts(&before, c->old_body, c->key);
	for (uint16_t i = 0; i < now.s->fars; i++) {
		const struct api_far *was = parts_far(&before, now.far[i].id);

		if (was == NULL || was->end_marker == now.far[i].end_marker || was->outer != API_OUTER_GTPU)
			continue;
		for (uint16_t k = 0; k < old->rules; k++)
			if (session_pools.match[old->rule[k]].far == was->id) {
				session_tunnel_moved(&session_pools.rule[old->rule[k]]);
				break;
			}
	}
}

static void give_traffic(const struct session *s, const struct api_session *body)
{
	struct parts p;

	session_parts(&p, body, s->name);
	for (uint16_t i = 0; i < s->rules; i++)
		session_pools.match[s->rule[i]].traffic =
			traffic_row(p.pdr[i].instance < API_SESSION_INSTANCES ? body->instance[p.pdr[i].instance] : "",
				body->dnn, session_pools.rule[s->rule[i]].action.qfi);
}

static void release(struct object_change *c)
{
	struct session *old = c->replaced, *s = c->staged;

	if (old != NULL) {
		return_loans(s, old);
		return_counts6(s, old);
	}
	if (s != NULL && old != NULL)
		carry_counters(s, old); // first: usage asks for the session's packets
	if ((s != NULL && s->usage != NULL) || (old != NULL && old->usage != NULL))
		usage_release(s ? s->usage : NULL, old ? old->usage : NULL);
	if (s != NULL)
		give_traffic(s, c->body);
	counter_session(s, old);
	if (s != NULL)
		session_homes_renew(s, old);
	if (old == NULL)
		return;
	if (s != NULL)
		end_markers(c, old);
	give_back(old, s);
	if (s != NULL && (s->notifies || old->notifies))
		session_changed(s->index, old->worker);
	if (s == NULL)
		session_removed(old->index);
	if (s == NULL)
		index_pool_give(&session_tables.indices, old->index);
	session_free(old);
}

static void finish_commit(void)
{
	session_leave_all();
	session_lengths_publish();
}

static const struct object_array session_arrays[] = {
	OBJECT_ARRAY(API_PART_PDR, struct api_pdr, struct api_session, pdrs),
	OBJECT_ARRAY(API_PART_FAR, struct api_far, struct api_session, fars),
	OBJECT_ARRAY(API_PART_QER, struct api_qer, struct api_session, qers),
	OBJECT_ARRAY(API_PART_URR, struct api_urr, struct api_session, urrs),
	OBJECT_ARRAY(API_PART_SDF, struct api_sdf, struct api_session, sdfs),
	OBJECT_ARRAY(API_PART_FAR_MORE, struct api_far_more, struct api_session, mores),
	OBJECT_ARRAY(API_PART_ADDRESS, struct api_address, struct api_session, routes),
	{0},
};

static const struct object_ops session_ops = {
	.kind = API_SESSION,
	.name = "session",
	.min_length = sizeof(struct api_session),
	.arrays = session_arrays,
	.packed = 1,
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_stage = session_claims_check,
	.finish_discard = session_reservations_undo,
	.finish_commit = finish_commit,
	.verify = session_verify,
	.counts = session_counts_use,
};
OBJECT_REGISTER(session_ops)
