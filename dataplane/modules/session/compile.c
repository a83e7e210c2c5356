// SPDX-License-Identifier: Apache-2.0
// From a session object (PDR, FAR, QER) to rules: one for each PDR, with its FAR and QER folded in.
#include "core/control.h"
#include "core/object.h"
#include "core/port.h"
#include "gtpu/gtpu.h"
#include "hqos/hqos.h"
#include "policer/policer.h"
#include "scheduler/scheduler.h"
#include "session/tables.h"
#include <errno.h>
#include <string.h>

// The four arrays that follow the head of a session object, and the rule that is being made from them.
struct parts {
	const struct api_session *s;
	const struct api_pdr *pdr;
	const struct api_far *far;
	const struct api_qer *qer;
	const struct api_urr *urr;
	const struct api_sdf *sdf;
	const char *name;
};

static void find_parts(struct parts *p, const struct api_session *s, const char *name)
{
	p->s = s;
	p->pdr = (const struct api_pdr *)(s + 1);
	p->far = (const struct api_far *)(p->pdr + s->pdrs);
	p->qer = (const struct api_qer *)(p->far + s->fars);
	p->urr = (const struct api_urr *)(p->qer + s->qers);
	p->sdf = (const struct api_sdf *)(p->urr + s->urrs);
	p->name = name;
}

static const struct api_far *far_of(const struct parts *p, uint32_t id)
{
	for (uint16_t i = 0; i < p->s->fars; i++)
		if (p->far[i].id == id)
			return &p->far[i];
	return NULL;
}

static const struct api_qer *qer_of(const struct parts *p, uint32_t id)
{
	for (uint16_t i = 0; i < p->s->qers; i++)
		if (p->qer[i].id == id)
			return &p->qer[i];
	return NULL;
}

static int urr_known(const struct parts *p, uint32_t id)
{
	for (uint16_t i = 0; i < p->s->urrs; i++)
		if (p->urr[i].id == id)
			return 1;
	return 0;
}

static int set_far(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	const struct api_far *far = far_of(p, pdr->far);

	if (far == NULL)
		return object_error(
			EINVAL, "session %s: PDR %u refers to FAR %u, which is not there", p->name, pdr->id, pdr->far);
	if (far->action != API_FAR_FORWARD && far->action != API_FAR_DROP)
		return object_error(EINVAL, "session %s: FAR %u has action %u, only forward and drop are supported",
			p->name, far->id, far->action);
	if (far->destination != (pdr->source == API_FROM_ACCESS ? API_FROM_CORE : API_FROM_ACCESS))
		return object_error(
			EINVAL, "session %s: FAR %u leads back to where PDR %u comes from", p->name, far->id, pdr->id);
	r->outer = far->outer;
	r->teid = far->teid;
	r->dscp = far->dscp;
	if (far->action == API_FAR_FORWARD)
		r->flags |= RULE_FORWARD;
	if (far->outer == API_OUTER_GTPU) {
		int path = gtpu_path_index(far->path);

		if (path < 0)
			return object_error(ENOENT, "session %s: FAR %u uses path %s, which does not exist", p->name,
				far->id, far->path);
		r->path = (uint16_t)path;
	} else if (far->outer == API_OUTER_ENDPOINT ? pdr->source != API_FROM_CORE : far->outer != API_OUTER_NONE) {
		return object_error(
			EINVAL, "session %s: FAR %u cannot create outer header %u here", p->name, far->id, far->outer);
	}
	if (pdr->source == API_FROM_CORE && far->outer != API_OUTER_ENDPOINT)
		return object_error(EINVAL, "session %s: FAR %u leads from core to core", p->name, far->id);
	return 0;
}

static int set_qers(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	int uplink = pdr->source == API_FROM_ACCESS;

	for (uint8_t i = 0; i < pdr->qers; i++) {
		const struct api_qer *q = qer_of(p, pdr->qer[i]);

		if (q == NULL)
			return object_error(EINVAL, "session %s: PDR %u refers to QER %u, which is not there", p->name,
				pdr->id, pdr->qer[i]);
		const char *policer = uplink ? q->uplink_policer : q->downlink_policer;
		if (uplink ? q->gate_uplink : q->gate_downlink)
			r->flags |= RULE_GATE_CLOSED;
		if (q->qfi > 63)
			return object_error(
				EINVAL, "session %s: QER %u has QFI %u, at most 63", p->name, q->id, q->qfi);
		if (q->qfi != 0) // 0: no QoS flow (TS 24.501 §9.11.4.12), so no PDU Session Container
			r->qfi = q->qfi;
		if (policer[0] == 0)
			continue;
		int index = policer_index(policer);
		if (index < 0)
			return object_error(ENOENT, "session %s: QER %u uses policer %s, which does not exist", p->name,
				q->id, policer);
		if (r->flags & RULE_POLICED)
			return object_error(
				EINVAL, "session %s: PDR %u has two policers in one direction", p->name, pdr->id);
		r->policer = (uint16_t)index;
		r->flags |= RULE_POLICED;
	}
	for (uint16_t i = 0; i < p->s->urrs; i++)
		if (p->urr[i].method != 1)
			return object_error(EINVAL, "session %s: URR %u has method %u, only volume (1) is counted",
				p->name, p->urr[i].id, p->urr[i].method);
	for (uint8_t i = 0; i < pdr->urrs; i++)
		if (!urr_known(p, pdr->urr[i]))
			return object_error(EINVAL, "session %s: PDR %u refers to URR %u, which is not there", p->name,
				pdr->id, pdr->urr[i]);
	return 0;
}

static int set_uplink(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	if (!(pdr->match & API_PDR_ENDPOINT) || (pdr->match & API_PDR_FTEID))
		return object_error(
			EINVAL, "session %s: uplink PDR %u does not match the traffic endpoint", p->name, pdr->id);
	if (!(pdr->match & API_PDR_UE_IP))
		return 0;
	r->flags |= RULE_UE4 | RULE_UE6; // anti-spoofing: an address that the UE does not have never matches
	if (p->s->ue_ip4.family == 4)
		memcpy(&r->up.ue4, p->s->ue_ip4.bytes, 4);
	r->up.ue6_prefix = 0xff;
	if (p->s->ue_ip6.family == 6) {
		memcpy(r->up.ue6, p->s->ue_ip6.bytes, 16);
		r->up.ue6_prefix = p->s->ue_ip6.prefix;
	}
	return 0;
}

static int set_downlink(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	const struct api_session *s = p->s;

	if (!(pdr->match & API_PDR_FTEID) || (pdr->match & API_PDR_ENDPOINT) || pdr->teid == 0)
		return object_error(EINVAL, "session %s: downlink PDR %u does not match an F-TEID", p->name, pdr->id);
	if (gtpu_local_id(pdr->local.family, pdr->local.bytes) == GTPU_LOCAL_NONE)
		return object_error(
			ENOENT, "session %s: the F-TEID of PDR %u lies on no path's local address", p->name, pdr->id);
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

static int check_head(const struct parts *p, uint32_t length)
{
	const struct api_session *s = p->s;
	uint64_t want = sizeof(*s) + s->pdrs * sizeof(struct api_pdr) + s->fars * sizeof(struct api_far) +
			s->qers * sizeof(struct api_qer) + s->urrs * sizeof(struct api_urr) +
			s->sdfs * sizeof(struct api_sdf) + s->mores * sizeof(struct api_far_more) +
			s->routes * sizeof(struct api_address);
	static const uint8_t none[6];

	if (s->pdrs < 1 || s->pdrs > API_MAX_PDR || s->fars > API_MAX_FAR || s->qers > API_MAX_QER ||
		s->urrs > API_MAX_URR)
		return object_error(EINVAL,
			"session %s has %u PDR, %u FAR, %u QER, %u URR; the limits are %d, %d, %d, %d", p->name,
			s->pdrs, s->fars, s->qers, s->urrs, API_MAX_PDR, API_MAX_FAR, API_MAX_QER, API_MAX_URR);
	if (length != want)
		return object_error(EINVAL, "session %s has %u bytes where its rules need %lu", p->name, length, want);
	if (memchr(s->port, 0, API_NAME) == NULL || memchr(s->pipe_profile, 0, API_NAME) == NULL)
		return object_error(EINVAL, "session %s has a name without end", p->name);
	if (s->encap != API_ENCAP_QINQ && s->encap != API_ENCAP_QINQ_PPPOE)
		return object_error(EINVAL, "session %s has access encapsulation %u", p->name, s->encap);
	if (s->s_tag > 4094 || s->c_tag > 4094 || (s->c_tag != 0 && s->s_tag == 0))
		return object_error(EINVAL, "session %s has tags %u.%u", p->name, s->s_tag, s->c_tag);
	if ((s->encap == API_ENCAP_QINQ_PPPOE) != (s->pppoe_session != 0))
		return object_error(EINVAL, "session %s: a PPPoE session id goes with PPPoE, and is not 0", p->name);
	if (memcmp(s->mac, none, 6) == 0 || (s->mac[0] & 1))
		return object_error(EINVAL, "session %s has no unicast MAC address", p->name);
	// RFC 791 §3.1: every host takes 576 bytes; smaller only makes fragments.
	if (s->mru != 0 && s->mru < 576)
		return object_error(EINVAL, "session %s has an MRU of %u, at least 576", p->name, s->mru);
	if (s->worker >= worker_count())
		return object_error(
			EINVAL, "session %s belongs to worker %u, there are %u", p->name, s->worker, worker_count());
	if ((s->ue_ip4.family != 0 && (s->ue_ip4.family != 4 || s->ue_ip4.prefix != 32)) ||
		(s->ue_ip6.family != 0 && (s->ue_ip6.family != 6 || s->ue_ip6.prefix > 128)))
		return object_error(EINVAL, "session %s has an impossible UE address", p->name);
	return 0;
}

static int check_pdr(const struct parts *p, const struct api_pdr *pdr)
{
	if (pdr->source > API_FROM_CORE || pdr->qers > API_PDR_QERS || pdr->urrs > API_PDR_URRS ||
		pdr->sdf_first + pdr->sdf_count > p->s->sdfs ||
		(pdr->match & ~(API_PDR_ENDPOINT | API_PDR_FTEID | API_PDR_UE_IP | API_PDR_QFI | API_PDR_SDF)) != 0)
		return object_error(EINVAL, "session %s: PDR %u has a value out of range", p->name, pdr->id);
	if (!pdr->outer_header_removal)
		return object_error(EINVAL, "session %s: PDR %u keeps the outer header, which no FAR here can forward",
			p->name, pdr->id);
	return 0;
}

static int set_rule(const struct parts *p, const struct api_pdr *pdr, struct rule *r)
{
	int error = check_pdr(p, pdr);

	r->worker = (uint8_t)p->s->worker;
	r->qfi = 0xff;
	if (error == 0)
		error = set_far(p, pdr, r);
	if (error == 0)
		error = set_qers(p, pdr, r);
	if (error == 0)
		error = pdr->source == API_FROM_ACCESS ? set_uplink(p, pdr, r) : set_downlink(p, pdr, r);
	return error;
}

static void set_match(const struct parts *p, const struct api_pdr *pdr, struct rule_match *m)
{
	m->precedence = pdr->precedence;
	m->match = pdr->match;
	m->qfis = pdr->qfis;
	m->pdr = pdr->id;
	m->ue_ip4 = p->s->ue_ip4;
	m->ue_ip6 = p->s->ue_ip6;
	m->sdf = p->sdf + pdr->sdf_first;
	m->sdfs = pdr->sdf_count;
}

// Chains the rules of one direction by precedence (insertion sort: at most 16).
static void chain(struct session *s, uint8_t source, const struct parts *p)
{
	uint32_t *first = &s->first[source];
	uint32_t length = 0;

	*first = RULE_NONE;
	for (uint16_t i = 0; i < s->rules; i++) {
		if (p->pdr[i].source != source)
			continue;
		uint32_t *at = first;
		while (*at != RULE_NONE && session_pools.match[*at].precedence <= p->pdr[i].precedence)
			at = &session_pools.match[*at].next;
		session_pools.match[s->rule[i]].next = *at;
		*at = s->rule[i];
		length++;
	}
	for (uint32_t r = *first; r != RULE_NONE; r = session_pools.match[r].next)
		if (length > 1 || (session_pools.match[r].match & (API_PDR_SDF | API_PDR_QFI)) != 0)
			session_pools.rule[r].flags |= RULE_MANY;
}

// A rule whose PDR the old session had keeps its meter and counters: usage is exact across changes.
static int give_state(struct session *s, uint16_t i, const struct session *old)
{
	struct rule *r = &session_pools.rule[s->rule[i]];

	// But not when the owner changes: a state is its worker's alone, and the old one may still be in its walk.
	for (uint16_t k = 0; old != NULL && old->worker == s->worker && k < old->rules; k++)
		if (old->pdr[k] == s->pdr[i]) {
			s->state[i] = r->state = old->state[k];
			return 0;
		}
	s->state[i] = r->state = index_pool_take(&session_tables.states);
	if (r->state == RULE_NONE)
		return object_error(ENOSPC, "session %s: no more rules", s->name);
	memset(rule_state_of(r), 0, sizeof(struct rule_state));
	if (r->flags & RULE_POLICED)
		policer_state_init(r->policer, rule_state_of(r), worker_get(r->worker)->now);
	return 0;
}

// Fills the rules that the caller took from the pool (s->rule[], s->state[] all RULE_NONE). Returns 0, or an errno after
// object_error().
int session_compile(struct session *s, const struct api_session *want, const struct session *old)
{
	struct parts p;

	find_parts(&p, want, s->name);
	for (uint16_t i = 0; i < s->rules; i++) {
		uint32_t index = s->rule[i], generation = session_pools.rule[index].generation;
		struct rule *r = &session_pools.rule[index];

		for (uint16_t k = 0; k < i; k++)
			if (p.pdr[k].id == p.pdr[i].id)
				return object_error(EEXIST, "session %s has PDR %u twice", s->name, p.pdr[i].id);
		memset(r, 0, sizeof(*r));
		r->generation = generation + 1;
		r->session = s->index;
		memset(&session_pools.match[index], 0, sizeof(struct rule_match));
		int error = set_rule(&p, &p.pdr[i], r);
		if (error != 0)
			return error;
		set_match(&p, &p.pdr[i], &session_pools.match[index]);
		s->pdr[i] = p.pdr[i].id;
		error = give_state(s, i, old);
		if (error != 0)
			return error;
	}
	chain(s, API_FROM_ACCESS, &p);
	chain(s, API_FROM_CORE, &p);
	for (uint16_t i = 0; i < s->rules; i++)
		session_pools.match[s->rule[i]].other =
			s->first[p.pdr[i].source == API_FROM_ACCESS ? API_FROM_CORE : API_FROM_ACCESS];
	return 0;
}

// Every FAR and QER, used or not: what they name must be there, or a later deletion of something else would be refused.
static int check_far(const struct parts *p, const struct api_far *far)
{
	if (memchr(far->path, 0, API_NAME) == NULL)
		return object_error(EINVAL, "session %s: the path of FAR %u is a name without end", p->name, far->id);
	if (far->dscp > 63 && far->dscp != 0xff)
		return object_error(EINVAL, "session %s: FAR %u has DSCP %u, at most 63", p->name, far->id, far->dscp);
	if (far->outer == API_OUTER_GTPU && gtpu_path_index(far->path) < 0)
		return object_error(
			ENOENT, "session %s: FAR %u uses path %s, which does not exist", p->name, far->id, far->path);
	return 0;
}

static int check_qer(const struct parts *p, const struct api_qer *q)
{
	const char *const names[] = {q->uplink_policer, q->downlink_policer};

	for (int i = 0; i < 2; i++) {
		if (memchr(names[i], 0, API_NAME) == NULL)
			return object_error(
				EINVAL, "session %s: a policer of QER %u is a name without end", p->name, q->id);
		if (names[i][0] != 0 && policer_index(names[i]) < 0)
			return object_error(ENOENT, "session %s: QER %u uses policer %s, which does not exist", p->name,
				q->id, names[i]);
	}
	return 0;
}

int session_check(const struct api_session *want, uint32_t length, const char *name)
{
	struct parts p;

	find_parts(&p, want, name);
	int error = check_head(&p, length);
	for (uint16_t i = 0; error == 0 && i < want->fars; i++)
		error = check_far(&p, &p.far[i]);
	for (uint16_t i = 0; error == 0 && i < want->qers; i++)
		error = check_qer(&p, &p.qer[i]);
	return error;
}

// The keys under which packets find the session: its endpoint, and each F-TEID.
void session_keys(struct session *s, const struct api_session *want)
{
	const struct port *port = port_by_name(want->port);
	struct parts p;

	find_parts(&p, want, s->name);
	s->keys = 0;
	if (s->first[API_FROM_ACCESS] != RULE_NONE && port != NULL) {
		s->key[s->keys].endpoint = 1;
		endpoint_key(
			&s->key[s->keys++].key, port->index, want->s_tag, want->c_tag, want->pppoe_session, want->mac);
	}
	for (uint16_t i = 0; i < want->pdrs; i++) {
		struct exact_key k;
		int known = 0;

		if (p.pdr[i].source != API_FROM_CORE)
			continue;
		fteid_key(&k, p.pdr[i].teid, gtpu_local_id(p.pdr[i].local.family, p.pdr[i].local.bytes));
		for (uint16_t j = 0; j < s->keys; j++)
			known |= !s->key[j].endpoint && memcmp(&s->key[j].key, &k, sizeof(k)) == 0;
		if (known)
			continue;
		s->key[s->keys].endpoint = 0;
		s->key[s->keys++].key = k;
	}
}
