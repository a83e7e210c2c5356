// SPDX-License-Identifier: Apache-2.0
// Modules' wishes for some sessions' packets: copies (mirror), or passing a stage (core/arc.h, STAGE_SOME). The
// sessions' rules keep them from the fast path and from devices.
#ifndef RULE_WISH_H
#define RULE_WISH_H

#include <rte_common.h>
#include <stdint.h>

struct session;

enum { WISH_UPLINK = 1, WISH_DOWNLINK = 2 };

struct session_wish {
	uint16_t flag; // of the rules: RULE_DUPLICATE, RULE_STAGE
	// Wishes for the session: WISH_*. Control thread; the session is in force, or not yet. It may note its answer
	// there.
	uint8_t (*ways)(struct session *s);
	struct session_wish *next;
};

void session_wish_register(struct session_wish *w); // from constructors
#define SESSION_WISH(wish_flag, fn)                                                                                    \
	RTE_INIT(session_wish_##fn)                                                                                    \
	{                                                                                                              \
		static struct session_wish wish = {.flag = (wish_flag), .ways = (fn)};                                 \
		session_wish_register(&wish);                                                                          \
	}

// Sets the flags of the session's rules. Returns 1 when some changed. For the session module, of a new version.
int wishes_session(struct session *s);
// The answers of ways() have changed: from the module's finish_commit(). Afterwards no old entry bypasses a session's
// wishes.
void wishes_renew(void);

#endif
