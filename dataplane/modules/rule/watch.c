// SPDX-License-Identifier: Apache-2.0
#include "rule/watch.h"
#include <stddef.h>

static const struct session_watcher *watchers;

void session_watch(struct session_watcher *w)
{
	w->next = watchers;
	watchers = w;
}

void session_tunnel_moved(const struct rule *old)
{
	for (const struct session_watcher *w = watchers; w != NULL; w = w->next)
		if (w->tunnel_moved != NULL)
			w->tunnel_moved(old);
}

void session_changed(uint32_t session, uint32_t worker)
{
	for (const struct session_watcher *w = watchers; w != NULL; w = w->next)
		if (w->changed != NULL)
			w->changed(session, worker);
}

void session_removed(uint32_t session)
{
	for (const struct session_watcher *w = watchers; w != NULL; w = w->next)
		if (w->removed != NULL)
			w->removed(session);
}

uint32_t session_waiting(uint32_t session)
{
	uint32_t n = 0;

	for (const struct session_watcher *w = watchers; w != NULL; w = w->next)
		n += w->waiting != NULL ? w->waiting(session) : 0;
	return n;
}
