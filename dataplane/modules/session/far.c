// SPDX-License-Identifier: Apache-2.0
// A PDR's FAR and QERs, folded into its rule.
#include "core/control.h"
#include "core/object.h"
#include "instance/instance.h"
#include "meter/policer.h"
#include "path/path.h"
#include "session/compile.h"
#include <errno.h>
#include <string.h>

// TS 29.244 §8.2.26: exactly one of DROP, FORW and BUFF; NOCP goes with BUFF or DROP.
static int check_action(const struct parts *p, const struct api_far *far)
{
	uint32_t one = far->action & (API_FAR_DROP | API_FAR_FORWARD | API_FAR_BUFFER);

	if ((one != API_FAR_DROP && one != API_FAR_FORWARD && one != API_FAR_BUFFER) ||
		(far->action &
			~(API_FAR_DROP | API_FAR_FORWARD | API_FAR_BUFFER | API_FAR_NOTIFY | API_FAR_DUPLICATE)) != 0 ||
		((far->action & API_FAR_NOTIFY) && one == API_FAR_FORWARD))
		return object_error(
			EINVAL, "session %s: FAR %u has action %u, which is none", p->name, far->id, far->action);
	if (p->s->encap != API_ENCAP_NONE && far->action != API_FAR_FORWARD && far->action != API_FAR_DROP)
		return object_error(EINVAL,
			"session %s: FAR %u has action %u, only forward and drop are for wireline access", p->name,
			far->id, far->action);
	return 0;
}

static int set_wireline(const struct parts *p, const struct api_pdr *pdr, const struct api_far *far, struct rule *r)
{
	if (far->destination != (pdr->source == API_FROM_ACCESS ? API_FROM_CORE : API_FROM_ACCESS))
		return object_error(
			EINVAL, "session %s: FAR %u leads back to where PDR %u comes from", p->name, far->id, pdr->id);
	if (far->outer == API_OUTER_ENDPOINT ? pdr->source != API_FROM_CORE
					     : far->outer != API_OUTER_NONE && far->outer != API_OUTER_GTPU)
		return object_error(
			EINVAL, "session %s: FAR %u cannot create outer header %u here", p->name, far->id, far->outer);
	if (pdr->source == API_FROM_CORE && far->outer != API_OUTER_ENDPOINT)
		return object_error(EINVAL, "session %s: FAR %u leads from core to core", p->name, far->id);
	if (far->outer == API_OUTER_NONE)
		r->instance = parts_instance(p, far->instance);
	return 0;
}

static int set_mobile(const struct parts *p, const struct api_pdr *pdr, const struct api_far *far, struct rule *r)
{
	if (far->outer != API_OUTER_NONE && far->outer != API_OUTER_GTPU && far->outer != API_OUTER_UDP)
		return object_error(
			EINVAL, "session %s: FAR %u cannot create outer header %u here", p->name, far->id, far->outer);
	if (far->destination > API_FROM_CP)
		return object_error(
			EINVAL, "session %s: FAR %u has destination %u", p->name, far->id, far->destination);
	// Kept, the outer header is addressed to us: as an IP packet it leads nowhere, only into another tunnel.
	if (!pdr->outer_header_removal && (pdr->match & API_PDR_FTEID)) {
		if (far->outer == API_OUTER_NONE && (far->action & API_FAR_FORWARD))
			return object_blame(
				object_error(EINVAL,
					"session %s: PDR %u keeps the outer header, and FAR %u puts none in front of "
					"it",
					p->name, pdr->id, far->id),
				API_RULE_PDR, pdr->id);
		r->flags |= RULE_KEEP_OUTER;
	}
	if (far->instance != 0xff)
		r->instance = (uint16_t)instance_index(p->s->instance[far->instance]);
	return 0;
}

// But for what QERs say.
static void set_action(const struct api_far *far, const struct api_pdr *pdr, struct rule *r)
{
	struct action *a = &r->action;

	a->teid = far->teid;
	a->dscp = far->dscp & ACTION_NO_DSCP;
	a->flags = r->flags & RULE_UPLINK ? ACTION_UPLINK : 0;
	a->flags |= r->flags & RULE_UE4 ? ACTION_UE4 : 0;
	a->flags |= r->flags & RULE_UE6 ? ACTION_UE6 : 0;
	if (far->outer == API_OUTER_GTPU || far->outer == API_OUTER_UDP)
		a->path = (uint16_t)path_index(far->path); // checked by session_check()
	else
		a->instance = r->instance;
	if (far->outer == API_OUTER_ENDPOINT)
		a->flags |= ACTION_SUBSCRIBER | ACTION_HOME;
	if (far->outer == API_OUTER_NONE && (pdr->match & API_PDR_ENDPOINT))
		a->flags |= ACTION_HOME;
	if (far->outer != API_OUTER_GTPU)
		return;
	a->flags |= (uint8_t)(ACTION_TUNNEL | far->pdu_type << ACTION_PDU_SHIFT);
	if (pdr->outer_header_removal == API_REMOVAL_CONTAINER || far->pdu_type == API_PDU_NONE)
		a->flags |= ACTION_WITHOUT_CONTAINER;
}

static int set_special(const struct parts *p, const struct api_far *far, struct rule *r, struct rule_match *m)
{
	const struct api_far_more *more = far->more ? &p->more[far->more - 1] : NULL;
	int error = far_more_compile(p->name, far, more, &m->more);

	if (error != 0)
		return error;
	if (far->action & API_FAR_DUPLICATE)
		r->flags |= RULE_DUPLICATE;
	if (more != NULL && more->redirect != API_REDIRECT_NONE)
		r->flags |= RULE_REDIRECT;
	if (far->action & API_FAR_BUFFER)
		r->flags |= RULE_BUFFER;
	if (far->action & API_FAR_NOTIFY)
		r->flags |= RULE_NOTIFY;
	return 0;
}

// `id`: of the PDR's own FAR, or of the quota FAR in its place.
int session_set_far(const struct parts *p, const struct api_pdr *pdr, struct rule *r, struct rule_match *m, uint32_t id)
{
	const struct api_far *far = parts_far(p, id);

	if (far == NULL)
		return object_error(
			EINVAL, "session %s: PDR %u refers to FAR %u, which is not there", p->name, pdr->id, id);
	int error = check_action(p, far);
	if (error == 0)
		error = p->s->encap == API_ENCAP_NONE ? set_mobile(p, pdr, far, r) : set_wireline(p, pdr, far, r);
	if (error == 0)
		error = set_special(p, far, r, m);
	if (error != 0)
		return object_blame(error, API_RULE_FAR, far->id);
	m->far = far->id;
	r->outer = far->outer;
	r->port = far->port;
	r->no_relay = far->destination > API_FROM_CORE;
	if (far->action & API_FAR_FORWARD)
		r->flags |= RULE_FORWARD;
	set_action(far, pdr, r);
	return 0;
}

// The first policer that is the PDR's alone has its tokens in the rule's state, at no cost of a further line.
static int add_policer(const struct parts *p, const struct api_pdr *pdr, const struct api_qer *q, struct rule *r)
{
	int uplink = pdr->source == API_FROM_ACCESS, users = 0;
	const char *policer = uplink ? q->uplink_policer : q->downlink_policer;
	uint32_t index = (uint32_t)policer_index(policer);

	for (uint16_t i = 0; i < p->s->pdrs; i++)
		for (uint8_t k = 0; k < p->pdr[i].qers; k++)
			users += p->pdr[i].qer[k] == q->id && (p->pdr[i].source == API_FROM_ACCESS) == uplink;
	if (q->share == 0 && users < 2 && !(r->action.flags & ACTION_POLICED)) {
		r->action.policer = index & (POLICER_MAX_PROFILES - 1);
		r->action.flags |= ACTION_POLICED;
		return 0;
	}
	struct rule_further *f = rule_further_of(r);
	struct meter_key key = {.owner = q->share ? q->share : r->session,
		.qer = q->share ? 0 : q->id,
		.shared = q->share != 0,
		.worker = r->worker,
		.uplink = (uint8_t)uplink};
	uint32_t state = meter_acquire(&key, worker_get(r->worker)->now);
	if (state == METER_NONE)
		return object_error(
			ENOSPC, "session %s: no more meters that PDRs share (engine.limits.shared_meters)", p->name);
	f->meter[f->meters].policer = index;
	f->meter[f->meters++].state = state;
	r->flags |= RULE_FURTHER_METERS;
	r->action.further = 1;
	return 0;
}

int session_set_qers(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	int uplink = pdr->source == API_FROM_ACCESS, error = 0;

	for (uint8_t i = 0; i < pdr->qers && error == 0; i++) {
		const struct api_qer *q = parts_qer(p, pdr->qer[i]);

		if (q == NULL)
			return object_error(EINVAL, "session %s: PDR %u refers to QER %u, which is not there", p->name,
				pdr->id, pdr->qer[i]);
		if (uplink ? q->gate_uplink : q->gate_downlink)
			r->flags |= RULE_GATE_CLOSED;
		if (q->qfi != 0) // 0: no QoS flow (TS 24.501 §9.11.4.12), so no PDU Session Container
			r->action.qfi = q->qfi;
		r->action.rqi |= q->flags & API_QER_RQI;
		if ((uplink ? q->uplink_policer : q->downlink_policer)[0] != 0)
			error = add_policer(p, pdr, q, r);
	}
	return error;
}
