// SPDX-License-Identifier: Apache-2.0
// Compiles what few FARs have; see far_more.h.
#include "core/object.h"
#include "path/path.h"
#include "session/compile.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUFFER_PACKETS 1024 // of a session: they leave in one walk (TS 29.244 §8.2.100 has room for 255)

static int check_duplicate(const char *session, const struct api_far *far, const struct api_far_more *more)
{
	if (more == NULL)
		return object_error(
			EINVAL, "session %s: FAR %u duplicates without duplicating parameters", session, far->id);
	if (more->duplicate_outer != API_OUTER_NONE && more->duplicate_outer != API_OUTER_GTPU)
		return object_error(
			EINVAL, "session %s: copies of FAR %u go out by GTP-U or IP only", session, far->id);
	if (more->duplicate_dscp != 0xff && more->duplicate_dscp > 63)
		return object_error(EINVAL, "session %s: copies of FAR %u have DSCP %u, at most 63", session, far->id,
			more->duplicate_dscp);
	if (more->duplicate_outer == API_OUTER_NONE)
		return 0;
	if (memchr(more->duplicate_path, 0, API_NAME) == NULL || path_index(more->duplicate_path) < 0)
		return object_error(
			EINVAL, "session %s: the path for copies of FAR %u does not exist", session, far->id);
	return 0;
}

// A redirect to a URL is answered to the HTTP client (node redirect). A redirect to an address would need state per
// flow, to translate the answers' source back; none is kept.
static int check_redirect(const char *session, const struct api_far *far, const struct api_far_more *more)
{
	size_t length = strnlen(more->redirect_to, API_REDIRECT);

	if (more->redirect == API_REDIRECT_IP4 || more->redirect == API_REDIRECT_IP6)
		return object_error(
			ENOTSUP, "session %s: FAR %u redirects to an address; only URLs are served", session, far->id);
	if (more->redirect != API_REDIRECT_URL)
		return object_error(EINVAL, "session %s: FAR %u has redirect type %u, which does not exist", session,
			far->id, more->redirect);
	if (length == 0 || length == API_REDIRECT)
		return object_error(EINVAL, "session %s: FAR %u redirects to no proper URL", session, far->id);
	// A header field value must not end the line (RFC 9110 §5.5) and a URL has no spaces (RFC 3986).
	for (size_t i = 0; i < length; i++)
		if (more->redirect_to[i] <= ' ' || more->redirect_to[i] > '~')
			return object_error(EINVAL, "session %s: the URL of FAR %u has a character that none may have",
				session, far->id);
	return 0;
}

int far_more_compile(
	const char *session, const struct api_far *far, const struct api_far_more *more, const struct far_more **out)
{
	int redirect = more != NULL && more->redirect != API_REDIRECT_NONE, duplicate = far->action & API_FAR_DUPLICATE;
	int buffer = far->buffer_packets != 0 || far->notify_delay != 0 || far->buffer_ms != 0, error = 0;

	*out = NULL;
	if (far->buffer_packets > MAX_BUFFER_PACKETS)
		return object_error(EINVAL, "session %s: FAR %u buffers %u packets, at most %d", session, far->id,
			far->buffer_packets, MAX_BUFFER_PACKETS);
	if (duplicate)
		error = check_duplicate(session, far, more);
	if (error == 0 && redirect)
		error = check_redirect(session, far, more);
	if (error != 0 || !(redirect || duplicate || buffer))
		return error;
	size_t length = redirect ? strnlen(more->redirect_to, API_REDIRECT) : 0;
	struct far_more *m = calloc(1, sizeof(*m) + length);
	if (m == NULL)
		return object_error(ENOMEM, "no memory for session %s", session);
	m->buffer_ms = far->buffer_ms;
	m->buffer_packets = far->buffer_packets;
	m->notify_delay = far->notify_delay;
	if (duplicate) {
		m->duplicate = 1;
		m->duplicate_outer = more->duplicate_outer;
	}
	if (m->duplicate_outer == API_OUTER_GTPU)
		m->copy = action_tunnel(
			(uint16_t)path_index(more->duplicate_path), more->duplicate_teid, more->duplicate_dscp);
	if (redirect) {
		m->redirect = more->redirect;
		m->leads_back = far->destination == API_FROM_ACCESS && far->outer != API_OUTER_NONE;
		m->location_length = (uint16_t)length;
		memcpy(m->location, more->redirect_to, length);
	}
	*out = m;
	return 0;
}

void far_more_free(const struct far_more *m)
{
	free((void *)(uintptr_t)m);
}
