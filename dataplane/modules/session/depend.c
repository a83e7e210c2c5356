// SPDX-License-Identifier: Apache-2.0
// Objects that sessions depend on, which cannot be deleted.
#include "core/object.h"
#include "core/port.h"
#include "instance/instance.h"
#include "path/path.h"
#include "scheduler/scheduler.h"
#include "session/compile.h"
#include <errno.h>

// Wireline F-TEIDs depend on the address that a path ends at, beside the paths that FARs name.
static uint32_t wireline;

int session_counts_use(uint32_t kind)
{
	return kind == API_POLICER || kind == API_ROUTE || kind == API_INSTANCE || (kind == API_PATH && wireline == 0);
}

// What the session depends on, by name; see session_verify().
void session_use(const void *body, int difference)
{
	const struct api_session *s = body;
	struct parts p;

	if (s == NULL)
		return;
	session_parts(&p, s, "");
	for (int i = 0; i < API_SESSION_INSTANCES; i++)
		object_use(API_INSTANCE, s->instance[i], difference);
	for (uint16_t i = 0; i < s->fars; i++) {
		const struct api_far *far = &p.far[i];

		if (far->outer == API_OUTER_GTPU || far->outer == API_OUTER_UDP)
			object_use(API_PATH, far->path, difference);
		if (far->more != 0 && p.more[far->more - 1].duplicate_outer == API_OUTER_GTPU)
			object_use(API_PATH, p.more[far->more - 1].duplicate_path, difference);
	}
	for (uint16_t i = 0; i < s->qers; i++) {
		object_use(API_POLICER, p.qer[i].uplink_policer, difference);
		object_use(API_POLICER, p.qer[i].downlink_policer, difference);
	}
	for (uint16_t i = 0; i < s->pdrs; i++)
		if (s->encap != API_ENCAP_NONE && (p.pdr[i].match & API_PDR_FTEID))
			wireline += (uint32_t)difference;
}

static int is_there(uint32_t kind, const char *name)
{
	return name[0] == 0 || object_is_there(kind, name);
}

static int verify_far(const struct parts *p, const struct api_far *far)
{
	if ((far->outer == API_OUTER_GTPU || far->outer == API_OUTER_UDP) && !is_there(API_PATH, far->path))
		return object_error(EBUSY, "path %s is still used by session %s", far->path, p->name);
	if (far->more != 0 && (far->action & API_FAR_DUPLICATE) &&
		p->more[far->more - 1].duplicate_outer == API_OUTER_GTPU &&
		!is_there(API_PATH, p->more[far->more - 1].duplicate_path))
		return object_error(
			EBUSY, "path %s is still used by session %s", p->more[far->more - 1].duplicate_path, p->name);
	return 0;
}

static int verify_pdr(const struct parts *p, const struct api_pdr *pdr)
{
	uint16_t instance;

	if (!(pdr->match & API_PDR_FTEID))
		return 0;
	instance = instance_of_local_staged(path_local_id(pdr->local.family, pdr->local.bytes));
	if (p->s->encap == API_ENCAP_NONE) {
		if (instance == INSTANCE_NONE)
			return object_error(
				EBUSY, "session %s has an F-TEID on an address that is no endpoint any more", p->name);
		return 0;
	}
	if (!path_local_staged(&pdr->local))
		return object_error(
			EBUSY, "session %s has an F-TEID on an address that no path would have any more", p->name);
	if (instance != INSTANCE_NONE)
		return object_error(
			EBUSY, "an endpoint of an instance has the address of an F-TEID of session %s", p->name);
	return 0;
}

int session_verify(const char *key, const void *body, uint32_t length)
{
	const struct api_session *s = body;
	struct parts p;
	int error = 0;

	session_parts(&p, s, key);
	if (!is_there(API_PORT, s->port))
		return object_error(EBUSY, "port %s is still used by session %s", s->port, key);
	for (int i = 0; i < API_SESSION_INSTANCES; i++)
		if (!is_there(API_INSTANCE, s->instance[i]))
			return object_error(EBUSY, "instance %s is still used by session %s", s->instance[i], key);
	for (uint16_t i = 0; i < s->fars && error == 0; i++)
		error = verify_far(&p, &p.far[i]);
	for (uint16_t i = 0; i < s->qers && error == 0; i++)
		if (!is_there(API_POLICER, p.qer[i].uplink_policer) ||
			!is_there(API_POLICER, p.qer[i].downlink_policer))
			error = object_error(EBUSY, "a policer is still used by session %s", key);
	for (uint16_t i = 0; i < s->pdrs && error == 0; i++)
		error = verify_pdr(&p, &p.pdr[i]);
	if (error != 0 || s->port[0] == 0)
		return error;
	return scheduler_check_place(s->port, key, s->worker, s->subport, s->pipe, s->pipe_profile);
}
