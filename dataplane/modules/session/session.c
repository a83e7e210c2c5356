// SPDX-License-Identifier: Apache-2.0
// The SESSION object: sessions come, change and go as whole transactions. A new version is built beside the old one, then
// its keys replace the old ones; create and delete are the same steps with one side empty.
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "gtpu/gtpu.h"
#include "scheduler/scheduler.h"
#include "session/tables.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session_pools session_pools;
struct session_tables session_tables;

#define RULES_PER_SESSION                                                                                              \
	4 // of the pool, on average (a session may have API_MAX_PDR): all sessions of two PDRs can change at once

static int start(const struct api_engine *e)
{
	struct session_tables *t = &session_tables;
	uint32_t rules = e->max_sessions * RULES_PER_SESSION + API_MAX_PDR;

	session_pools.rules = rules;
	session_pools.rule = rte_zmalloc("rules", (size_t)rules * sizeof(struct rule), RTE_CACHE_LINE_SIZE);
	session_pools.state =
		rte_zmalloc("rule-states", (size_t)rules * sizeof(struct rule_state), RTE_CACHE_LINE_SIZE);
	session_pools.match = calloc(rules, sizeof(struct rule_match));
	t->capacity = e->max_sessions;
	t->session = calloc(e->max_sessions, sizeof(*t->session));
	t->endpoint = exact_create("endpoints", e->max_sessions * 2, SOCKET_ID_ANY);
	t->fteid = exact_create("fteids", rules, SOCKET_ID_ANY);
	int short_of_memory = session_pools.rule == NULL || session_pools.state == NULL ||
			      session_pools.match == NULL || t->session == NULL || t->endpoint == NULL ||
			      t->fteid == NULL || index_pool_create(&t->indices, e->max_sessions) != 0 ||
			      index_pool_create(&t->rules, rules) != 0 || index_pool_create(&t->states, rules) != 0;
	for (uint32_t w = 0; w < e->workers && !short_of_memory; w++) {
		t->flow[w] = exact_create("flows", e->max_flows, SOCKET_ID_ANY);
		short_of_memory = t->flow[w] == NULL;
	}
	if (short_of_memory)
		return object_error(
			ENOMEM, "no memory for %u sessions and %u flows a worker", e->max_sessions, e->max_flows);
	return 0;
}

RTE_INIT(session_module)
{
	module_register("session", start);
}

// ---- look-ups --------------------------------------------------------------------------------------------------------

static struct exact *table_of(const struct session *s, uint16_t key)
{
	return s->key[key].endpoint ? session_tables.endpoint : session_tables.fteid;
}

static struct rule *find(struct exact *t, const struct exact_key *k)
{
	uint64_t value;

	return exact_lookup(t, exact_hash(t, k), k, &value) ? rule_of_value(value) : NULL;
}

struct rule *session_endpoint_rule(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	struct exact_key k;

	endpoint_key(&k, port, e->s_tag, e->c_tag, e->pppoe_session, mac);
	return find(session_tables.endpoint, &k);
}

int session_endpoint_known(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	return session_endpoint_rule(port, e, mac) != NULL;
}

static int in_prefix(const struct api_address *prefix, uint8_t family, const uint8_t *address)
{
	uint32_t whole = prefix->prefix / 8, rest = prefix->prefix % 8;

	if (prefix->family != family || memcmp(prefix->bytes, address, whole) != 0)
		return 0;
	return rest == 0 || (prefix->bytes[whole] ^ address[whole]) >> (8 - rest) == 0;
}

int session_owns_address(
	uint16_t port, const struct endpoint_view *e, const uint8_t mac[6], uint8_t family, const uint8_t *address)
{
	const struct rule *r = session_endpoint_rule(port, e, mac);

	if (r == NULL)
		return 0;
	const struct rule_match *m = &session_pools.match[rule_index(r)];
	return in_prefix(family == 4 ? &m->ue_ip4 : &m->ue_ip6, family, address);
}

int session_teid_known(uint32_t teid, uint16_t local)
{
	struct exact_key k;

	fteid_key(&k, teid, local);
	return find(session_tables.fteid, &k) != NULL;
}

static const struct rule *other_direction(const struct rule *r)
{
	uint32_t other = session_pools.match[rule_index(r)].other;

	return other == RULE_NONE ? NULL : &session_pools.rule[other];
}

const struct rule *session_downlink_rule(const struct rule *uplink_rule)
{
	return other_direction(uplink_rule);
}

const struct rule *session_uplink_rule(const struct rule *downlink_rule)
{
	return other_direction(downlink_rule);
}

const struct rule *session_endpoint_downlink(uint16_t port, const struct endpoint_view *e, const uint8_t mac[6])
{
	const struct rule *r = session_endpoint_rule(port, e, mac);

	return r == NULL ? NULL : other_direction(r);
}

// ---- classification --------------------------------------------------------------------------------------------------

static int port_in(const uint16_t range[2], uint16_t port)
{
	return port >= range[0] && port <= range[1];
}

static int sdf_matches(const struct api_sdf *f, const struct packet *pkt, const struct ip_info *info, int uplink)
{
	const uint8_t *remote = uplink ? info->destination : info->source;
	uint16_t remote_port = uplink ? info->destination_port : info->source_port;
	uint16_t local_port = uplink ? info->source_port : info->destination_port;

	if (f->remote.family != 0 && !in_prefix(&f->remote, pkt->ip_version, remote))
		return 0;
	if ((f->flags & API_SDF_PROTOCOL) && f->protocol != pkt->protocol)
		return 0;
	if ((f->flags & API_SDF_TOS) && ((info->dscp << 2) & f->tos_mask) != (f->tos & f->tos_mask))
		return 0;
	return port_in(f->remote_port, remote_port) && port_in(f->local_port, local_port);
}

struct rule *rule_classify(struct rule *first, const struct packet *pkt, const uint8_t *ip, uint8_t qfi, int uplink)
{
	struct ip_info info;
	uint32_t i = rule_index(first);

	if (ip_parse(ip, pkt->length, pkt->length, &info) != IP_OK)
		return NULL;
	const uint8_t *ue = uplink ? info.source : info.destination;
	for (int n = 0; i != RULE_NONE && n < MAX_RULES_OF_SESSION; n++, i = session_pools.match[i].next) {
		const struct rule_match *m = &session_pools.match[i];

		if ((m->match & API_PDR_QFI) && (qfi > 63 || !(m->qfis >> qfi & 1)))
			continue;
		if ((m->match & API_PDR_UE_IP) && !uplink &&
			!in_prefix(pkt->ip_version == 4 ? &m->ue_ip4 : &m->ue_ip6, pkt->ip_version, ue))
			continue;
		if ((m->match & API_PDR_SDF) && !sdf_matches(m->sdf, pkt, &info, uplink))
			continue;
		return &session_pools.rule[i];
	}
	return NULL;
}

// ---- the object ------------------------------------------------------------------------------------------------------

static void give_back(struct session *s, const struct session *heir)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		int kept = 0;

		for (uint16_t k = 0; heir != NULL && k < heir->rules; k++)
			kept |= heir->state[k] == s->state[i];
		if (!kept)
			index_pool_give(&session_tables.states, s->state[i]);
		if (s->rule[i] != RULE_NONE) {
			session_pools.rule[s->rule[i]].generation++; // flows that point here are stale from now on
			index_pool_give(&session_tables.rules, s->rule[i]);
		}
	}
}

// Sessions that the open transaction makes or changes, to find two that claim one key.
static struct {
	struct session **list;
	uint32_t count, room;
} pending;

static int remember(struct session *s)
{
	if (pending.count == pending.room) {
		uint32_t room = pending.room ? pending.room * 2 : 64;
		struct session **list = realloc(pending.list, room * sizeof(*list));

		if (list == NULL)
			return object_error(ENOMEM, "no memory");
		pending.list = list;
		pending.room = room;
	}
	pending.list[pending.count++] = s;
	return 0;
}

static void forget_pending(void)
{
	pending.count = 0;
}

static int take_rules(struct session *s, uint16_t rules)
{
	s->rules = rules;
	for (uint16_t i = 0; i < rules; i++)
		s->rule[i] = s->state[i] = RULE_NONE;
	for (uint16_t i = 0; i < rules; i++) {
		s->rule[i] = index_pool_take(&session_tables.rules);
		if (s->rule[i] == RULE_NONE)
			return object_error(
				ENOSPC, "session %s: no more rules (%u in all)", s->name, session_pools.rules);
	}
	return 0;
}

static int build(struct session *s, const struct api_session *want, const struct session *old)
{
	s->seid = want->seid;
	s->worker = (uint8_t)want->worker;
	s->index = old ? old->index : index_pool_take(&session_tables.indices);
	if (s->index == RULE_NONE)
		return object_error(ENOSPC, "session %s: no more than %u sessions (engine.limits.sessions)", s->name,
			session_tables.capacity);
	int error = take_rules(s, want->pdrs);
	if (error == 0)
		error = session_compile(s, want, old);
	if (error == 0)
		session_keys(s, want);
	return error == 0 ? remember(s) : error;
}

static void undo(struct session *s, const struct session *old)
{
	give_back(s, old);
	if (old == NULL)
		index_pool_give(&session_tables.indices, s->index);
	free(s);
}

static int stage(struct object_change *c)
{
	const struct api_session *want = c->body;
	struct session *old = *c->live;

	c->replaced = old;
	if (want == NULL)
		return 0;
	if (engine_get() == NULL)
		return object_error(EINVAL, "session %s comes before the engine", c->key);
	int error = session_check(want, c->length, c->key);
	if (error != 0)
		return error;
	struct session *s = calloc(1, sizeof(*s));
	if (s == NULL)
		return object_error(ENOMEM, "no memory for session %s", c->key);
	snprintf(s->name, sizeof(s->name), "%s", c->key);
	error = build(s, want, old);
	if (error != 0) {
		undo(s, old);
		return error;
	}
	c->staged = s;
	return 0;
}

struct claim {
	const struct exact_key *key;
	const struct session *by;
	uint8_t endpoint;
};

static int claim_order(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->endpoint != y->endpoint)
		return x->endpoint - y->endpoint;
	return memcmp(x->key, y->key, sizeof(struct exact_key));
}

static int conflict(const struct session *a, const struct session *b, int endpoint)
{
	return object_error(EEXIST, "sessions %s and %s have the same %s", a->name, b->name,
		endpoint ? "traffic endpoint (port, tags, PPPoE id, MAC)" : "F-TEID");
}

// A key may belong to one session only: within the transaction, and against sessions that it leaves alone.
static int check_claims(void)
{
	struct claim *claims = malloc((size_t)(pending.count + 1) * (MAX_RULES_OF_SESSION + 1) * sizeof(*claims));
	uint32_t n = 0;
	int error = 0;

	if (claims == NULL)
		return object_error(ENOMEM, "no memory");
	for (uint32_t i = 0; i < pending.count && error == 0; i++)
		for (uint16_t k = 0; k < pending.list[i]->keys && error == 0; k++) {
			const struct session *s = pending.list[i];
			const struct rule *r = find(table_of(s, k), &s->key[k].key);

			claims[n++] = (struct claim){.key = &s->key[k].key, .by = s, .endpoint = s->key[k].endpoint};
			const struct session *holder = r ? session_tables.session[r->session] : NULL;
			if (holder != NULL && holder->index != s->index && !object_changing(API_SESSION, holder->name))
				error = conflict(s, holder, s->key[k].endpoint);
		}
	qsort(claims, n, sizeof(*claims), claim_order);
	for (uint32_t i = 1; i < n && error == 0; i++)
		if (claim_order(&claims[i - 1], &claims[i]) == 0)
			error = conflict(claims[i - 1].by, claims[i].by, claims[i].endpoint);
	free(claims);
	return error;
}

static int finish_stage(void)
{
	int error = check_claims();

	if (error == 0 &&
		exact_count(session_tables.endpoint) + pending.count > exact_capacity(session_tables.endpoint))
		error = object_error(ENOSPC, "too many sessions change at once");
	forget_pending();
	return error;
}

static void discard(struct object_change *c)
{
	forget_pending();
	if (c->staged != NULL)
		undo(c->staged, c->replaced);
}

static void unpublish(const struct session *old, const struct session *heir)
{
	for (uint16_t k = 0; k < old->keys; k++) {
		struct exact *t = table_of(old, k);
		const struct rule *r = find(t, &old->key[k].key);
		int kept = 0;

		for (uint16_t j = 0; heir != NULL && j < heir->keys; j++)
			kept |= heir->key[j].endpoint == old->key[k].endpoint &&
				memcmp(&heir->key[j].key, &old->key[k].key, sizeof(struct exact_key)) == 0;
		// In one transaction another session may have taken the key over already.
		if (!kept && r != NULL && r->session == old->index)
			exact_delete(t, exact_hash(t, &old->key[k].key), &old->key[k].key);
	}
}

static void publish(const struct session *s)
{
	for (uint16_t k = 0; k < s->keys; k++) {
		struct exact *t = table_of(s, k);
		uint32_t first = s->first[s->key[k].endpoint ? API_FROM_ACCESS : API_FROM_CORE];

		if (exact_add(t, exact_hash(t, &s->key[k].key), &s->key[k].key, rule_value(first)) != 0)
			session_tables.unplaced++;
	}
}

static void commit(struct object_change *c)
{
	struct session *s = c->staged, *old = c->replaced;
	const struct api_session *want = c->body;

	if (s != NULL) {
		publish(s);
		__atomic_store_n(&session_tables.session[s->index], s, __ATOMIC_RELEASE);
		worker_get(s->worker)->sessions++;
		session_tables.count++;
		scheduler_pipe_profile(want->port, want->subport, want->pipe, want->pipe_profile);
	} else if (old != NULL) {
		__atomic_store_n(&session_tables.session[old->index], NULL, __ATOMIC_RELEASE);
	}
	if (old != NULL) {
		unpublish(old, s);
		worker_get(old->worker)->sessions--;
		session_tables.count--;
	}
	*c->live = s;
}

// What a PDR counted on another worker is added to what it counts now; that worker has left the state by now.
static void carry_counters(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < s->rules; i++)
		for (uint16_t k = 0; k < old->rules; k++) {
			const struct rule_match *was = &session_pools.match[old->rule[k]];
			struct rule_match *is = &session_pools.match[s->rule[i]];
			const struct rule_state *state = &session_pools.state[old->state[k]];
			int moved = s->state[i] != old->state[k];

			if (s->pdr[i] != old->pdr[k])
				continue;
			is->packets = was->packets + (moved ? state->packets : 0);
			is->bytes = was->bytes + (moved ? state->bytes : 0);
			is->policed = was->policed + (moved ? state->policed : 0);
		}
}

static void release(struct object_change *c)
{
	struct session *old = c->replaced;

	if (old == NULL)
		return;
	if (c->staged != NULL)
		carry_counters(c->staged, old);
	give_back(old, c->staged);
	if (c->staged == NULL)
		index_pool_give(&session_tables.indices, old->index);
	free(old);
}

static int verify(const char *key, const void *body, uint32_t length)
{
	const struct api_session *s = body;
	const struct api_pdr *pdr = (const struct api_pdr *)(s + 1);
	const struct api_far *far = (const struct api_far *)(pdr + s->pdrs);
	const struct api_qer *qer = (const struct api_qer *)(far + s->fars);
	uint32_t n;

	if (object_find(API_PORT, s->port, &n) == NULL)
		return object_error(EBUSY, "port %s is still used by session %s", s->port, key);
	for (uint16_t i = 0; i < s->fars; i++)
		if (far[i].outer == API_OUTER_GTPU && object_find(API_PATH, far[i].path, &n) == NULL)
			return object_error(EBUSY, "path %s is still used by session %s", far[i].path, key);
	for (uint16_t i = 0; i < s->qers; i++)
		if ((qer[i].uplink_policer[0] && object_find(API_POLICER, qer[i].uplink_policer, &n) == NULL) ||
			(qer[i].downlink_policer[0] && object_find(API_POLICER, qer[i].downlink_policer, &n) == NULL))
			return object_error(EBUSY, "a policer is still used by session %s", key);
	for (uint16_t i = 0; i < s->pdrs; i++)
		if (pdr[i].source == API_FROM_CORE && !gtpu_local_staged(&pdr[i].local))
			return object_error(
				EBUSY, "session %s has an F-TEID on an address that no path would have any more", key);
	return scheduler_check_place(s->port, key, s->worker, s->subport, s->pipe, s->pipe_profile);
}

static const struct object_ops session_ops = {
	.kind = API_SESSION,
	.name = "session",
	.min_length = sizeof(struct api_session),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_stage = finish_stage,
	.verify = verify,
};
OBJECT_REGISTER(session_ops)
