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

// ", QER 1, QER 2"
static void say_ids(struct trace_text *to, const char *what, const uint32_t *id, uint8_t count)
{
	for (uint8_t i = 0; i < count; i++)
		trace_say(to, ", %s %u", what, id[i]);
}

void rule_say(struct trace_text *to, const struct rule *r)
{
	const struct rule_match *m = &session_pools.match[rule_index(r)];

	trace_say(to, "PDR %u (precedence %u), FAR %u", m->pdr, m->precedence, m->far);
	say_ids(to, "QER", m->id, m->qer_ids);
	say_ids(to, "URR", m->id + m->qer_ids, m->urr_ids);
	trace_say(to, ": %s", action_of(r));
	if (r->flags & RULE_DUPLICATE)
		trace_say(to, ", with a copy");
	if (r->flags & RULE_GATE_CLOSED)
		trace_say(to, "; the QER's gate is closed");
	if ((r->flags & (RULE_SLOW_PATH | RULE_STAGE | RULE_FORWARD)) == RULE_FORWARD && !(r->chain & CHAIN_PER_PACKET))
		trace_say(to, "; untraced, plain packets of it take the fast path");
}
