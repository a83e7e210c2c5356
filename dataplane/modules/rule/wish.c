// SPDX-License-Identifier: Apache-2.0
// Sets flags of rules in force in place: a changed wish makes no new version of the session.
#include "rule/wish.h"
#include "core/control.h"
#include "rule/engine.h"
#include "rule/far_more.h"
#include "rule/tables.h"

#define WISHES (RULE_DUPLICATE | RULE_STAGE)

// session.wished: some rule has a flag by a wish; entries of rules of these directions are still to be taken.
#define WISHED 4u
#define CHANGED (WISH_UPLINK | WISH_DOWNLINK)

static struct session_wish *wishes;

void session_wish_register(struct session_wish *w)
{
	w->next = wishes;
	wishes = w;
}

static uint8_t direction_of(const struct rule *r)
{
	return r->flags & RULE_UPLINK ? WISH_UPLINK : WISH_DOWNLINK;
}

int wishes_session(struct session *s)
{
	uint16_t up = 0, down = 0;

	for (const struct session_wish *w = wishes; w != NULL; w = w->next) {
		uint8_t ways = w->ways(s);

		up |= ways & WISH_UPLINK ? w->flag : 0;
		down |= ways & WISH_DOWNLINK ? w->flag : 0;
	}
	if ((up | down) == 0 && !(s->wished & WISHED))
		return 0; // of a million sessions, no rule is read
	s->wished = (uint8_t)((s->wished & CHANGED) | ((up | down) != 0 ? WISHED : 0));
	for (uint16_t i = 0; i < s->rules; i++) {
		struct rule *r = &session_pools.rule[s->rule[i]];
		const struct far_more *more = far_more_of(r);
		uint16_t of_far = more != NULL && more->duplicate ? RULE_DUPLICATE : 0;
		uint16_t differ = (r->flags ^ (of_far | (direction_of(r) == WISH_UPLINK ? up : down))) & WISHES;

		if (differ == 0)
			continue;
		s->wished |= direction_of(r);
		// Owner workers change other bits of rules in force (buffer).
		__atomic_xor_fetch(&r->flags, differ, __ATOMIC_RELAXED);
	}
	return (s->wished & CHANGED) != 0;
}

void wishes_renew(void)
{
	int changed = 0;

	for (uint32_t i = 0; i < session_tables.capacity; i++)
		if (session_tables.session[i] != NULL)
			changed |= wishes_session(session_tables.session[i]);
	if (!changed)
		return;
	control_synchronize(); // every worker sees the flags, and makes no entry by the old ones
	for (uint32_t i = 0; i < session_tables.capacity; i++) {
		struct session *s = session_tables.session[i];

		for (uint16_t k = 0; s != NULL && (s->wished & CHANGED) && k < s->rules; k++)
			if (s->wished & direction_of(&session_pools.rule[s->rule[k]]))
				engines_take(&session_pools.rule[s->rule[k]]);
		if (s != NULL && (s->wished & CHANGED))
			s->wished &= (uint8_t)~CHANGED;
	}
}
