// SPDX-License-Identifier: Apache-2.0
// Modules that follow a session's changes: they keep its index or send on its behalf.
#ifndef RULE_WATCH_H
#define RULE_WATCH_H

#include <stdint.h>

struct rule;

// All called on the control thread; NULL: not asked for.
struct session_watcher {
	// The FAR of this rule sends elsewhere now. After a grace period: the last packet of the old rule is out.
	void (*tunnel_moved)(const struct rule *old);
	// A new version has been in force for a grace period; the old or the new one has a rule with RULE_BUFFER,
	// RULE_DRAINING or RULE_NOTIFY. `worker` is the old version's.
	void (*changed)(uint32_t session, uint32_t worker);
	// The session has been gone for a grace period; its index is not reused yet.
	void (*removed)(uint32_t session);
	// Packets of the session that wait now.
	uint32_t (*waiting)(uint32_t session);
	const struct session_watcher *next; // session_watch()'s
};

void session_watch(struct session_watcher *w); // from constructors

// For the session module: calls all watchers.
void session_tunnel_moved(const struct rule *old);
void session_changed(uint32_t session, uint32_t worker);
void session_removed(uint32_t session);
uint32_t session_waiting(uint32_t session);

#endif
