// SPDX-License-Identifier: Apache-2.0
// Checks of a session object by itself, before anything is made of it.
#include "core/control.h"
#include "core/object.h"
#include "instance/instance.h"
#include "lcp/lcp.h"
#include "meter/policer.h"
#include "path/path.h"
#include "route/address.h"
#include "session/compile.h"
#include <errno.h>
#include <string.h>

// URRs have fields of 8 bytes: the structs before them keep that alignment.
static_assert(sizeof(struct api_session) % 8 == 0 && sizeof(struct api_pdr) % 8 == 0 &&
		      sizeof(struct api_far) % 8 == 0 && sizeof(struct api_qer) % 8 == 0,
	"the arrays of a session are aligned");

void session_parts(struct parts *p, const struct api_session *s, const char *name)
{
	p->s = s;
	p->pdr = (const struct api_pdr *)(s + 1);
	p->far = (const struct api_far *)(p->pdr + s->pdrs);
	p->qer = (const struct api_qer *)(p->far + s->fars);
	p->urr = (const struct api_urr *)(p->qer + s->qers);
	p->sdf = (const struct api_sdf *)(p->urr + s->urrs);
	p->more = (const struct api_far_more *)(p->sdf + s->sdfs);
	p->route = (const struct api_address *)(p->more + s->mores);
	p->name = name;
}

const struct api_far *parts_far(const struct parts *p, uint32_t id)
{
	for (uint16_t i = 0; i < p->s->fars; i++)
		if (p->far[i].id == id)
			return &p->far[i];
	return NULL;
}

const struct api_qer *parts_qer(const struct parts *p, uint32_t id)
{
	for (uint16_t i = 0; i < p->s->qers; i++)
		if (p->qer[i].id == id)
			return &p->qer[i];
	return NULL;
}

uint16_t parts_instance(const struct parts *p, uint8_t place)
{
	int index = -1;

	if (place < API_SESSION_INSTANCES && p->s->instance[place][0] != 0)
		index = instance_index(p->s->instance[place]);
	return index < 0 ? INSTANCE_NONE : (uint16_t)index;
}

static int check_counts(const struct parts *p, uint32_t length)
{
	const struct api_session *s = p->s;
	uint64_t want = sizeof(*s) + s->pdrs * sizeof(struct api_pdr) + s->fars * sizeof(struct api_far) +
			s->qers * sizeof(struct api_qer) + s->urrs * sizeof(struct api_urr) +
			s->sdfs * sizeof(struct api_sdf) + s->mores * sizeof(struct api_far_more) +
			s->routes * sizeof(struct api_address);

	// A mobile session may be without PDRs for a while (TS 29.244 §7.5.4); a subscriber of the file is not.
	if ((s->pdrs < 1 && s->encap != API_ENCAP_NONE) || s->pdrs > API_MAX_PDR || s->fars > API_MAX_FAR ||
		s->qers > API_MAX_QER || s->urrs > API_MAX_URR)
		return object_error(EINVAL,
			"session %s has %u PDR, %u FAR, %u QER, %u URR; the limits are %d, %d, %d, %d", p->name,
			s->pdrs, s->fars, s->qers, s->urrs, API_MAX_PDR, API_MAX_FAR, API_MAX_QER, API_MAX_URR);
	if (s->sdfs > API_MAX_SDF || s->mores > API_MAX_FAR || s->routes > API_MAX_ROUTES)
		return object_error(EINVAL,
			"session %s has %u filters, %u FARs with more, %u framed routes; the limits are %d, %d, %d",
			p->name, s->sdfs, s->mores, s->routes, API_MAX_SDF, API_MAX_FAR, API_MAX_ROUTES);
	if (length != want)
		return object_error(EINVAL, "session %s has %u bytes where its rules need %lu", p->name, length, want);
	return 0;
}

static int check_access(const struct parts *p)
{
	const struct api_session *s = p->s;
	static const uint8_t none[6];

	if (s->s_tag > 4094 || s->c_tag > 4094 || (s->c_tag != 0 && s->s_tag == 0))
		return object_error(EINVAL, "session %s has tags %u.%u", p->name, s->s_tag, s->c_tag);
	if ((s->encap == API_ENCAP_QINQ_PPPOE) != (s->pppoe_session != 0))
		return object_error(EINVAL, "session %s: a PPPoE session id goes with PPPoE, and is not 0", p->name);
	if (memcmp(s->mac, none, 6) == 0 || (s->mac[0] & 1))
		return object_error(EINVAL, "session %s has no unicast MAC address", p->name);
	if (s->mru != 0 && s->mru < API_MRU_MIN)
		return object_error(EINVAL, "session %s has an MRU of %u, at least %u", p->name, s->mru, API_MRU_MIN);
	return 0;
}

static int check_head(const struct parts *p)
{
	const struct api_session *s = p->s;

	if (s->mss != 0 && s->mss < API_MSS_MIN)
		return object_error(EINVAL, "session %s has an MSS of %u, at least %u", p->name, s->mss, API_MSS_MIN);
	if (memchr(s->port, 0, API_NAME) == NULL || memchr(s->pipe_profile, 0, API_NAME) == NULL ||
		memchr(s->mirror, 0, API_NAME) == NULL || memchr(s->counter, 0, API_NAME) == NULL ||
		memchr(s->dnn, 0, API_NAME) == NULL)
		return object_error(EINVAL, "session %s has a name without end", p->name);
	for (int i = 0; i < API_SESSION_INSTANCES; i++) {
		if (memchr(s->instance[i], 0, API_NAME) == NULL)
			return object_error(EINVAL, "session %s has a name without end", p->name);
		if (s->instance[i][0] != 0 && instance_index(s->instance[i]) < 0)
			return object_error(
				ENOENT, "session %s: there is no network instance %s", p->name, s->instance[i]);
	}
	if (s->encap > API_ENCAP_QINQ_PPPOE)
		return object_error(EINVAL, "session %s has access encapsulation %u", p->name, s->encap);
	if (s->worker >= worker_count())
		return object_error(
			EINVAL, "session %s belongs to worker %u, there are %u", p->name, s->worker, worker_count());
	if ((s->ue_ip4.family != 0 && (s->ue_ip4.family != 4 || s->ue_ip4.prefix != 32)) ||
		(s->ue_ip6.family != 0 && (s->ue_ip6.family != 6 || s->ue_ip6.prefix > 128)))
		return object_error(EINVAL, "session %s has an impossible UE address", p->name);
	for (uint16_t i = 0; i < s->routes; i++)
		if (!address_valid(&p->route[i]) || !prefix_canonical(&p->route[i]))
			return object_error(EINVAL, "session %s: framed route %u is no proper prefix", p->name, i + 1);
	int error = lcp_check(s, p->name);
	return error != 0 || s->encap == API_ENCAP_NONE ? error : check_access(p);
}

// Wireline rules with a tunnel have no network instance, and leave the octet alone.
static int instance_named(const struct parts *p, uint8_t index)
{
	return p->s->encap != API_ENCAP_NONE || index == 0xff ||
	       (index < API_SESSION_INSTANCES && p->s->instance[index][0] != 0);
}

static int check_pdr(const struct parts *p, const struct api_pdr *pdr)
{
	const uint16_t all = API_PDR_ENDPOINT | API_PDR_FTEID | API_PDR_UE_IP | API_PDR_QFI | API_PDR_SDF |
			     API_PDR_UE4_ONLY | API_PDR_UE6_ONLY | API_PDR_FRAMED;

	if (pdr->outer_header_removal > API_REMOVAL_CONTAINER || pdr->source > API_FROM_CP ||
		pdr->qers > API_PDR_QERS || pdr->urrs > API_PDR_URRS || pdr->sdf_first + pdr->sdf_count > p->s->sdfs ||
		(pdr->match & ~all) != 0 || !instance_named(p, pdr->instance))
		return object_error(EINVAL, "session %s: PDR %u has a value out of range", p->name, pdr->id);
	if ((pdr->match & (API_PDR_UE4_ONLY | API_PDR_UE6_ONLY | API_PDR_FRAMED)) != 0 && !(pdr->match & API_PDR_UE_IP))
		return object_error(
			EINVAL, "session %s: PDR %u restricts UE addresses that it does not match", p->name, pdr->id);
	if ((pdr->match & API_PDR_SDF) != 0 && pdr->sdf_count == 0)
		return object_error(EINVAL, "session %s: PDR %u matches filters and has none", p->name, pdr->id);
	if ((pdr->match & API_PDR_FTEID) != 0 && (pdr->teid == 0 || !address_valid(&pdr->local)))
		return object_error(EINVAL, "session %s: PDR %u has no proper F-TEID", p->name, pdr->id);
	for (uint8_t i = 0; i < pdr->urrs; i++) {
		int known = 0;

		for (uint16_t k = 0; k < p->s->urrs; k++)
			known |= p->urr[k].id == pdr->urr[i];
		if (!known)
			return object_error(EINVAL, "session %s: PDR %u refers to URR %u, which is not there", p->name,
				pdr->id, pdr->urr[i]);
	}
	return 0;
}

static int check_sdf(const struct parts *p, const struct api_sdf *f)
{
	if ((f->remote.family != 0 && !address_valid(&f->remote)) ||
		(f->local.family != 0 && !address_valid(&f->local)) ||
		(f->remote.family != 0 && f->local.family != 0 && f->remote.family != f->local.family) ||
		f->remote_port[0] > f->remote_port[1] || f->local_port[0] > f->local_port[1] || f->flow_label > 0xfffff)
		return object_error(
			EINVAL, "session %s: filter %ld has a value out of range", p->name, (long)(f - p->sdf) + 1);
	if ((f->s_pcp != 0 || f->c_pcp != 0) && p->s->encap == API_ENCAP_NONE)
		return object_error(EINVAL, "session %s: filter %ld looks at VLAN tags, which its packets do not have",
			p->name, (long)(f - p->sdf) + 1);
	return 0;
}

// Every FAR and QER, used or not: objects that they name must exist, or a later deletion of another would be refused.
static int check_far(const struct parts *p, const struct api_far *far)
{
	if (memchr(far->path, 0, API_NAME) == NULL)
		return object_error(EINVAL, "session %s: the path of FAR %u is a name without end", p->name, far->id);
	if (far->dscp > 63 && far->dscp != 0xff)
		return object_error(EINVAL, "session %s: FAR %u has DSCP %u, at most 63", p->name, far->id, far->dscp);
	if ((far->outer == API_OUTER_GTPU || far->outer == API_OUTER_UDP) && path_index(far->path) < 0)
		return object_error(
			ENOENT, "session %s: FAR %u uses path %s, which does not exist", p->name, far->id, far->path);
	if (far->pdu_type > API_PDU_UL || far->more > p->s->mores)
		return object_error(EINVAL, "session %s: FAR %u has a value out of range", p->name, far->id);
	if (!instance_named(p, far->instance))
		return object_error(
			EINVAL, "session %s: FAR %u names no network instance of the session", p->name, far->id);
	return 0;
}

static int check_qer(const struct parts *p, const struct api_qer *q)
{
	const char *const names[] = {q->uplink_policer, q->downlink_policer};

	if (q->qfi > 63)
		return object_error(EINVAL, "session %s: QER %u has QFI %u, at most 63", p->name, q->id, q->qfi);
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

	session_parts(&p, want, name);
	int error = check_counts(&p, length);
	if (error == 0)
		error = check_head(&p);
	for (uint16_t i = 0; error == 0 && i < want->pdrs; i++)
		error = object_blame(check_pdr(&p, &p.pdr[i]), API_RULE_PDR, p.pdr[i].id);
	for (uint16_t i = 0; error == 0 && i < want->fars; i++)
		error = object_blame(check_far(&p, &p.far[i]), API_RULE_FAR, p.far[i].id);
	for (uint16_t i = 0; error == 0 && i < want->qers; i++)
		error = object_blame(check_qer(&p, &p.qer[i]), API_RULE_QER, p.qer[i].id);
	for (uint16_t i = 0; error == 0 && i < want->sdfs; i++)
		error = check_sdf(&p, &p.sdf[i]);
	return error;
}
