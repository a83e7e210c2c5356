// SPDX-License-Identifier: Apache-2.0
// Mobile sessions for tests.
#include "testkit/mobile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct api_instance kit_instance_body(const char *interface, const char *endpoint, uint32_t lookup, const char *pool)
{
	struct api_instance n = {.lookup = lookup};

	if (interface != NULL)
		snprintf(n.interface[n.interfaces++], API_NAME, "%s", interface);
	if (endpoint != NULL)
		n.endpoint[n.endpoints++] = kit_address(endpoint);
	if (pool != NULL)
		n.pool[n.pools++] = kit_address(pool);
	return n;
}

void kit_instance(const char *name, const char *interface, const char *endpoint, uint32_t lookup, const char *pool)
{
	struct api_instance n = kit_instance_body(interface, endpoint, lookup, pool);

	kit_put(API_INSTANCE, name, &n, sizeof(n));
}

void kit_mobile(struct kit_mobile *k, uint64_t seid, const char *ue4, const char *ue6)
{
	memset(k, 0, sizeof(*k));
	k->s.seid = seid;
	k->s.encap = API_ENCAP_NONE;
	if (ue4 != NULL)
		k->s.ue_ip4 = kit_address(ue4);
	if (ue6 != NULL)
		k->s.ue_ip6 = kit_address(ue6);
}

static void too_many(void)
{
	fprintf(stderr, "testkit: too many rules of a session\n");
	exit(99);
}

// Index of an instance among the session's; it is added when it is new.
static uint8_t instance_of(struct kit_mobile *k, const char *name)
{
	if (name == NULL)
		return 0xff;
	for (uint8_t i = 0; i < API_SESSION_INSTANCES; i++) {
		if (k->s.instance[i][0] == 0)
			snprintf(k->s.instance[i], API_NAME, "%s", name);
		if (strcmp(k->s.instance[i], name) == 0)
			return i;
	}
	too_many();
	return 0xff;
}

static struct api_pdr *new_pdr(struct kit_mobile *k, enum api_source source, uint32_t far)
{
	if (k->s.pdrs == API_MAX_PDR)
		too_many();
	struct api_pdr *pdr = &k->pdr[k->s.pdrs++];
	*pdr = (struct api_pdr){.id = k->s.pdrs,
		.precedence = 100,
		.source = (uint8_t)source,
		.outer_header_removal = 1,
		.instance = 0xff,
		.far = far};
	return pdr;
}

struct api_pdr *kit_pdr_fteid(
	struct kit_mobile *k, enum api_source source, const char *local, uint32_t teid, uint32_t far)
{
	struct api_pdr *pdr = new_pdr(k, source, far);

	pdr->match = API_PDR_FTEID;
	pdr->local = kit_address(local);
	pdr->teid = teid;
	return pdr;
}

struct api_pdr *kit_pdr_ue(struct kit_mobile *k, enum api_source source, const char *instance, uint32_t far)
{
	struct api_pdr *pdr = new_pdr(k, source, far);

	pdr->match = API_PDR_UE_IP;
	pdr->instance = instance_of(k, instance);
	return pdr;
}

struct api_far *kit_far(struct kit_mobile *k, uint32_t id, uint8_t action, enum api_source destination)
{
	if (k->s.fars == API_MAX_FAR)
		too_many();
	struct api_far *far = &k->far[k->s.fars++];
	*far = (struct api_far){
		.id = id, .action = action, .destination = (uint8_t)destination, .dscp = 0xff, .instance = 0xff};
	return far;
}

struct api_far *kit_far_ip(struct kit_mobile *k, uint32_t id, enum api_source destination, const char *instance)
{
	struct api_far *far = kit_far(k, id, API_FAR_FORWARD, destination);

	far->instance = instance_of(k, instance);
	return far;
}

struct api_far *kit_far_gtpu(
	struct kit_mobile *k, uint32_t id, enum api_source destination, const char *path, uint32_t teid)
{
	struct api_far *far = kit_far(k, id, API_FAR_FORWARD, destination);

	far->outer = API_OUTER_GTPU;
	far->teid = teid;
	far->pdu_type = destination == API_FROM_ACCESS ? API_PDU_DL : API_PDU_UL;
	snprintf(far->path, API_NAME, "%s", path);
	return far;
}

struct api_far_more *kit_far_more(struct kit_mobile *k, struct api_far *far)
{
	if (k->s.mores == API_MAX_FAR)
		too_many();
	struct api_far_more *more = &k->more[k->s.mores++];
	more->duplicate_dscp = 0xff;
	far->more = (uint8_t)k->s.mores;
	return more;
}

struct api_qer *kit_qer(struct kit_mobile *k, uint32_t id, uint8_t qfi)
{
	if (k->s.qers == API_MAX_QER)
		too_many();
	struct api_qer *q = &k->qer[k->s.qers++];
	*q = (struct api_qer){.id = id, .qfi = qfi};
	return q;
}

struct api_urr *kit_urr(struct kit_mobile *k, uint32_t id)
{
	if (k->s.urrs == API_MAX_URR)
		too_many();
	struct api_urr *u = &k->urr[k->s.urrs++];
	*u = (struct api_urr){.id = id, .method = API_URR_VOLUME};
	return u;
}

void kit_pdr_qer(struct api_pdr *pdr, uint32_t qer)
{
	if (pdr->qers == API_PDR_QERS)
		too_many();
	pdr->qer[pdr->qers++] = qer;
}

void kit_pdr_urr(struct api_pdr *pdr, uint32_t urr)
{
	if (pdr->urrs == API_PDR_URRS)
		too_many();
	pdr->urr[pdr->urrs++] = urr;
}

struct api_sdf *kit_sdf(struct kit_mobile *k, struct api_pdr *pdr)
{
	if (k->s.sdfs == KIT_MOBILE_SDF)
		too_many();
	if (pdr->sdf_count == 0)
		pdr->sdf_first = k->s.sdfs;
	pdr->match |= API_PDR_SDF;
	pdr->sdf_count++;
	struct api_sdf *f = &k->sdf[k->s.sdfs++];
	*f = (struct api_sdf){.remote_port = {0, 65535}, .local_port = {0, 65535}, .tos_mask = 0xff};
	return f;
}

void kit_framed_route(struct kit_mobile *k, const char *prefix)
{
	if (k->s.routes == API_MAX_ROUTES)
		too_many();
	k->route[k->s.routes++] = kit_address(prefix);
}

void kit_put_mobile(const char *name, const struct kit_mobile *k)
{
	static uint8_t body[sizeof(struct kit_mobile)];
	uint8_t *at = body;
	const struct {
		const void *from;
		size_t bytes;
	} part[] = {
		{&k->s, sizeof(k->s)},
		{k->pdr, k->s.pdrs * sizeof(k->pdr[0])},
		{k->far, k->s.fars * sizeof(k->far[0])},
		{k->qer, k->s.qers * sizeof(k->qer[0])},
		{k->urr, k->s.urrs * sizeof(k->urr[0])},
		{k->sdf, k->s.sdfs * sizeof(k->sdf[0])},
		{k->more, k->s.mores * sizeof(k->more[0])},
		{k->route, k->s.routes * sizeof(k->route[0])},
	};

	for (unsigned i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		memcpy(at, part[i].from, part[i].bytes);
		at += part[i].bytes;
	}
	kit_put(API_SESSION, name, body, (uint32_t)(at - body));
}
