// SPDX-License-Identifier: Apache-2.0
// How stages speak of a rule, in traces.
#include "rule/words.h"
#include "rule/tables.h"

void rule_say_session(struct trace_text *to, const struct rule *r)
{
	const struct session *s = r->session < session_tables.capacity ? session_tables.session[r->session] : NULL;

	trace_say(to, "session %s", s != NULL ? s->name : "(gone)");
}

static const char *action_of(const struct rule *r)
{
	return r->flags & RULE_BUFFER           ? "buffer"
	       : r->flags & RULE_REDIRECT       ? "redirect"
	       : (r->flags & RULE_FORWARD) == 0 ? "drop"
	       : r->outer == API_OUTER_GTPU     ? "forward into a GTP-U tunnel"
	       : r->outer == API_OUTER_ENDPOINT ? "forward to the subscriber's endpoint"
	       : r->outer == API_OUTER_UDP      ? "forward in UDP"
						: "forward as IP";
}

void rule_say(struct trace_text *to, const struct rule *r)
{
	const struct rule_match *m = &session_pools.match[rule_index(r)];

	trace_say(to, "PDR %u (precedence %u), FAR %u: %s", m->pdr, m->precedence, m->far, action_of(r));
	if (r->flags & RULE_DUPLICATE)
		trace_say(to, ", with a copy");
	if (r->flags & RULE_GATE_CLOSED)
		trace_say(to, "; the QER's gate is closed");
	if ((r->flags & (RULE_SLOW_PATH | RULE_FORWARD)) == RULE_FORWARD && !(r->chain & CHAIN_PER_PACKET))
		trace_say(to, "; untraced, plain packets of it take the fast path");
}
