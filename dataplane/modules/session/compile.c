// SPDX-License-Identifier: Apache-2.0
// From a session object (PDR, FAR, QER, URR) to rules: one for each PDR, with its FAR, QERs and URRs folded in.
#include "session/compile.h"
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "flow/flow.h"
#include "hqos/hqos.h"
#include "instance/instance.h"
#include "meter/meter.h"
#include "meter/policer.h"
#include "path/local.h"
#include "scheduler/scheduler.h"
#include "usage/usage.h"
#include <errno.h>
#include <string.h>

// Anti-spoofing (rows G11, G12): an address that the UE does not have never matches.
static void set_ue(const struct session *s, const struct api_pdr *pdr, struct rule *r)
{
	r->flags |= RULE_UE4 | RULE_UE6;
	r->up.ue6_prefix = 0xff;
	if (s->has_ue4 && !(pdr->match & API_PDR_UE6_ONLY))
		memcpy(&r->up.ue4, s->ue4, 4);
	if (s->ue6_prefix <= 128 && !(pdr->match & API_PDR_UE4_ONLY)) {
		memcpy(r->up.ue6, s->ue6, 16);
		r->up.ue6_prefix = s->ue6_prefix;
	}
	if ((pdr->match & API_PDR_FRAMED) && s->routes != 0)
		r->flags |= RULE_FRAMED;
}

static int set_uplink(const struct parts *p, const struct api_pdr *pdr)
{
	if (!(pdr->match & API_PDR_ENDPOINT) || (pdr->match & API_PDR_FTEID))
		return object_error(
			EINVAL, "session %s: uplink PDR %u does not match the traffic endpoint", p->name, pdr->id);
	return 0;
}

// Packets arrive by an F-TEID, or at the UE's addresses in an instance, where the core side is IP.
static int check_downlink(const struct session *s, const struct parts *p, const struct api_pdr *pdr)
{
	uint16_t local = path_local_id(pdr->local.family, pdr->local.bytes);

	if ((pdr->match & API_PDR_ENDPOINT) || !(pdr->match & (API_PDR_FTEID | API_PDR_UE_IP)))
		return object_error(EINVAL,
			"session %s: downlink PDR %u matches neither an F-TEID nor the UE's address", p->name, pdr->id);
	if ((pdr->match & API_PDR_FTEID) &&
		(local == PATH_LOCAL_NONE || instance_of_local_staged(local) != INSTANCE_NONE))
		return object_error(
			ENOENT, "session %s: the F-TEID of PDR %u lies on no path's local address", p->name, pdr->id);
	if (pdr->match & API_PDR_FTEID)
		return 0;
	if (parts_instance(p, pdr->instance) == INSTANCE_NONE)
		return object_error(EINVAL, "session %s: downlink PDR %u names no network instance of the session",
			p->name, pdr->id);
	if (!s->has_ue4 && s->ue6_prefix > 128 && s->routes == 0)
		return object_error(
			EINVAL, "session %s: PDR %u matches the UE's address, and it has none", p->name, pdr->id);
	return 0;
}

static int set_downlink(const struct parts *p, struct rule *r)
{
	const struct api_session *s = p->s;
	const struct port *port = port_by_name(s->port);
	if (port == NULL || port->role != API_ROLE_ACCESS)
		return object_error(ENOENT, "session %s: there is no access port %s", p->name, s->port);
	memcpy(r->down.mac, s->mac, 6);
	r->down.s_tag = s->s_tag;
	r->down.c_tag = s->c_tag;
	r->down.pppoe_session = s->pppoe_session;
	r->down.tpid = s->outer_tpid;
	r->down.encap = s->encap;
	r->down.port = port->index;
	r->down.pipe = hqos_place(s->subport, s->pipe, 0, 0);
	uint32_t most = port->mtu - (s->encap == API_ENCAP_QINQ_PPPOE ? 8 : 0);
	r->mru = (uint16_t)(s->mru ? RTE_MIN(s->mru, most) : most);
	return scheduler_check_place(s->port, p->name, s->worker, s->subport, s->pipe, s->pipe_profile);
}

static int set_wireline(const struct session *s, const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	if (pdr->source > API_FROM_CORE)
		return object_error(EINVAL, "session %s: PDR %u has a value out of range", p->name, pdr->id);
	if (!pdr->outer_header_removal && (pdr->match & (API_PDR_ENDPOINT | API_PDR_FTEID)))
		return object_error(EINVAL, "session %s: PDR %u keeps the outer header, which no FAR here can forward",
			p->name, pdr->id);
	if (pdr->source == API_FROM_CORE) {
		int error = check_downlink(s, p, pdr);

		return error != 0 ? error : set_downlink(p, r);
	}
	if (pdr->match & API_PDR_UE_IP)
		set_ue(s, pdr, r);
	return set_uplink(p, pdr);
}

static int set_tunnel(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	uint16_t local = path_local_id(pdr->local.family, pdr->local.bytes);
	uint16_t instance = local == PATH_LOCAL_NONE ? INSTANCE_NONE : instance_of_local_staged(local);

	if (instance == INSTANCE_NONE)
		return object_error(
			ENOENT, "session %s: the F-TEID of PDR %u lies on no instance's endpoint", p->name, pdr->id);
	if (pdr->instance != 0xff && instance_index(p->s->instance[pdr->instance]) != instance)
		return object_error(EINVAL, "session %s: the F-TEID of PDR %u is not of network instance %s", p->name,
			pdr->id, p->s->instance[pdr->instance]);
	if (instance_staged(instance)->flags & API_INSTANCE_PIN_PEER)
		r->flags |= RULE_PIN_PEER;
	return 0;
}

// A mobile session with a port has a pipe there, for what it sends into tunnels on the downlink.
static int set_shaping(const struct parts *p, struct rule *r, struct rule_match *m)
{
	const struct api_session *s = p->s;
	const struct port *port = port_by_name(s->port);

	if (s->encap != API_ENCAP_NONE || s->port[0] == 0 || (r->flags & RULE_UPLINK) || r->outer != API_OUTER_GTPU)
		return 0;
	if (port == NULL || port->role != API_ROLE_CORE)
		return object_error(ENOENT, "session %s: there is no core port %s to shape it", p->name, s->port);
	r->up.shaped = (uint8_t)(port->index + 1);
	m->pipe = hqos_place(s->subport, s->pipe, 0, 0);
	return scheduler_check_place(s->port, p->name, s->worker, s->subport, s->pipe, s->pipe_profile);
}

static int set_mobile(const struct session *s, const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	if ((pdr->match & API_PDR_ENDPOINT) || !(pdr->match & (API_PDR_FTEID | API_PDR_UE_IP)))
		return object_error(
			EINVAL, "session %s: PDR %u matches neither an F-TEID nor a UE address", p->name, pdr->id);
	if ((pdr->match & API_PDR_UE_IP) && !s->has_ue4 && s->ue6_prefix > 128 && s->routes == 0)
		return object_error(
			EINVAL, "session %s: PDR %u matches the UE's address, and it has none", p->name, pdr->id);
	if (pdr->match & API_PDR_UE_IP)
		set_ue(s, pdr, r);
	return pdr->match & API_PDR_FTEID ? set_tunnel(p, pdr, r) : 0;
}

static int has_urr(const struct rule *r, const struct rule_further *f, uint32_t index)
{
	int has = r->urr == index;

	for (uint8_t i = 0; i < f->urrs; i++)
		has |= f->urr[i] == index;
	return has;
}

static int set_urrs(const struct session *s, const struct api_pdr *pdr, struct rule *r, struct rule_match *m)
{
	struct rule_further *f = rule_further_of(r);

	r->urr = m->urr6 = RULE_NONE;
	for (uint8_t i = 0; i < pdr->urrs; i++) {
		uint32_t index = usage_index(s->usage, pdr->urr[i]);

		if (usage_is_of_ip6(s->usage, pdr->urr[i])) {
			if (s->encap == API_ENCAP_NONE || r->outer == API_OUTER_GTPU || m->urr6 != RULE_NONE)
				return object_error(EINVAL,
					"session %s: PDR %u has URR %u of IPv6 alone beside another, or no IP core "
					"side",
					s->name, pdr->id, pdr->urr[i]);
			m->urr6 = index;
			continue;
		}
		// A quota that is used up has done its work: the packet follows the quota FAR.
		if (index == RULE_NONE || usage_exhausted(s->usage, pdr->urr[i]))
			continue;
		if (has_urr(r, f, index)) // named twice
			continue;
		if (r->urr == RULE_NONE && !usage_is_before_qos(s->usage, pdr->urr[i])) {
			r->urr = index;
		} else if (f->urrs == API_PDR_URRS - 1) {
			return object_error(ENOSPC,
				"session %s: PDR %u has %d URRs that measure before QoS, at most %d", s->name, pdr->id,
				API_PDR_URRS, API_PDR_URRS - 1);
		} else {
			f->urr[f->urrs++] = index;
			r->flags |= RULE_FURTHER_METERS;
		}
	}
	return 0;
}

// The FAR in force: a quota FAR, while the quota of one of the PDR's URRs is used up.
static uint32_t far_now(const struct session *s, const struct parts *p, const struct api_pdr *pdr)
{
	for (uint8_t i = 0; i < pdr->urrs; i++)
		for (uint16_t k = 0; k < p->s->urrs; k++)
			if (p->urr[k].id == pdr->urr[i] && p->urr[k].quota_far != 0 &&
				usage_exhausted(s->usage, pdr->urr[i]))
				return p->urr[k].quota_far;
	return pdr->far;
}

// Ids of the PDR's QERs and URRs, behind earlier PDRs'.
static void set_ids(struct session *s, const struct parts *p, const struct api_pdr *pdr, struct rule_match *m)
{
	uint32_t *id = s->rule + s->rules;

	for (const struct api_pdr *before = p->pdr; before < pdr; before++)
		id += before->qers + before->urrs;
	m->id = id;
	m->qer_ids = pdr->qers;
	m->urr_ids = pdr->urrs;
	for (uint8_t i = 0; i < pdr->qers; i++)
		*id++ = pdr->qer[i];
	for (uint8_t i = 0; i < pdr->urrs; i++)
		*id++ = pdr->urr[i];
}

static int set_rule(struct session *s, const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	struct rule_match *m = &session_pools.match[rule_index(r)];
	int error;

	r->worker = s->worker;
	r->action.qfi = ACTION_NO_QFI;
	r->instance = INSTANCE_NONE;
	if (pdr->source == API_FROM_ACCESS)
		r->flags |= RULE_UPLINK;
	m->precedence = pdr->precedence;
	m->match = pdr->match;
	m->qfis = pdr->qfis;
	m->pdr = pdr->id;
	m->sdf = s->sdf == NULL ? NULL : s->sdf + pdr->sdf_first;
	m->sdfs = pdr->sdf_count;
	set_ids(s, p, pdr, m);
	error = p->s->encap == API_ENCAP_NONE ? set_mobile(s, p, pdr, r) : set_wireline(s, p, pdr, r);
	if (error == 0)
		error = session_set_far(p, pdr, r, m, far_now(s, p, pdr));
	if (error == 0)
		error = session_set_qers(p, pdr, r);
	if (error == 0)
		error = set_shaping(p, r, m);
	return error == 0 ? set_urrs(s, pdr, r, m) : error;
}

static uint32_t rule_before(const struct session *old, uint16_t pdr)
{
	for (uint16_t k = 0; old != NULL && k < old->rules; k++)
		if (session_pools.match[old->rule[k]].pdr == pdr)
			return old->rule[k];
	return RULE_NONE;
}

// Place of the state that packets of the PDR's key look at first. Of a UE's two addresses the IPv4 one counts.
static uint32_t place_of(const struct session *s, const struct parts *p, const struct api_pdr *pdr)
{
	uint16_t local = path_local_id(pdr->local.family, pdr->local.bytes);

	if ((pdr->match & API_PDR_FTEID) && local != PATH_LOCAL_NONE)
		return flow_place(fteid_key(pdr->teid, local));
	if (!(pdr->match & API_PDR_UE_IP) || !s->has_ue4 || pdr->source == API_FROM_ACCESS)
		return INDEX_NONE;
	int instance = pdr->instance != 0xff ? instance_index(p->s->instance[pdr->instance]) : 0xff;
	return flow_place(ue_key((uint8_t)instance, 0, 4, s->ue4, 32));
}

// A PDR of the old session keeps its meter and counters: usage is exact across changes.
static int give_state(struct session *s, const struct parts *p, uint16_t i, const struct session *old)
{
	struct rule *r = &session_pools.rule[s->rule[i]];
	uint32_t before = rule_before(old, session_pools.match[s->rule[i]].pdr);

	// But not at a change of owner: a state is its worker's alone, and the old one may still be in its walk.
	if (before != RULE_NONE && old->worker == s->worker) {
		r->state = session_pools.rule[before].state;
		return 0;
	}
	r->state = index_pool_take_certain(&session_tables.states, place_of(s, p, &p->pdr[i]));
	if (r->state == RULE_NONE)
		return object_error(ENOSPC, "session %s: no more rules", s->name);
	memset(rule_state_of(r), 0, sizeof(struct rule_state));
	*rule_account_of(r) = (struct rule_account){.of = {{[0 ... API_PDR_URRS - 1] = RULE_NONE}}};
	meter_fill(&rule_state_of(r)->meter, worker_get(r->worker)->now);
	return 0;
}

// Packets of a rule that buffered until now may still wait: new ones go behind them.
static void set_held(const struct session *s, const struct session *old)
{
	for (uint16_t i = 0; i < s->rules; i++) {
		struct rule *r = &session_pools.rule[s->rule[i]];
		uint32_t before = rule_before(old, session_pools.match[s->rule[i]].pdr);

		if (before != RULE_NONE && (session_pools.rule[before].flags & (RULE_BUFFER | RULE_DRAINING)) &&
			!(r->flags & RULE_BUFFER) && (r->flags & RULE_FORWARD))
			r->flags |= RULE_DRAINING;
	}
}

// Whether answers go by rule a rather than by b: a forwarding rule first, then by the order of PDRs.
static int leads(uint32_t a, uint32_t b)
{
	uint32_t forwards = session_pools.rule[a].flags & RULE_FORWARD;

	if (forwards != (session_pools.rule[b].flags & RULE_FORWARD))
		return forwards != 0;
	return session_pools.match[a].precedence < session_pools.match[b].precedence;
}

static void link_directions(const struct session *s)
{
	uint32_t first[2] = {RULE_NONE, RULE_NONE};

	for (uint16_t i = 0; i < s->rules; i++) {
		int uplink = (session_pools.rule[s->rule[i]].flags & RULE_UPLINK) != 0;

		if (first[uplink] == RULE_NONE || leads(s->rule[i], first[uplink]))
			first[uplink] = s->rule[i];
	}
	for (uint16_t i = 0; i < s->rules; i++)
		session_pools.match[s->rule[i]].other = first[!(session_pools.rule[s->rule[i]].flags & RULE_UPLINK)];
}

// Fills the rules that the caller took from the pool (all states RULE_NONE).
int session_compile(struct session *s, const struct parts *p, const struct session *old)
{
	int error = 0;

	for (uint16_t i = 0; i < s->rules && error == 0; i++) {
		struct rule *r = &session_pools.rule[s->rule[i]];

		for (uint16_t k = 0; k < i; k++)
			if (p->pdr[k].id == p->pdr[i].id)
				return object_blame(
					object_error(EEXIST, "session %s has PDR %u twice", s->name, p->pdr[i].id),
					API_RULE_PDR, p->pdr[i].id);
		error = object_blame(set_rule(s, p, &p->pdr[i], r), API_RULE_PDR, p->pdr[i].id);
		if (error == 0)
			error = give_state(s, p, i, old);
	}
	if (error != 0)
		return error;
	set_held(s, old);
	link_directions(s);
	return 0;
}
