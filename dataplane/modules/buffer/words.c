// SPDX-License-Identifier: Apache-2.0
// Words of buffer, redirect and duplicate for traced packets: only that they have them. Hypothetical ones end there.
#include "rule/words.h"
#include "core/trace.h"
#include "rule/view.h"

static void say(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;

	rule_say_session(to, r);
	trace_say(to, "%s%s",
		r->flags & RULE_BUFFER     ? ": the FAR says buffer, the packet waits for the UE"
		: r->flags & RULE_DRAINING ? ": what waits goes first"
					   : "",
		r->flags & RULE_NOTIFY ? "; the control plane is notified" : "");
}

static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return TRACE_ENDS;
}

TRACE_STAGE("buffer", .before = say, .foresee = foresee)
