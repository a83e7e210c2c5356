// SPDX-License-Identifier: Apache-2.0
// What access-input and access-encap say of traced packets.
#include "core/trace.h"
#include "rule/view.h"
#include <string.h>

static void after_input(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	const struct endpoint_view *e = endpoint_view_of(m);

	if (strcmp(next, "drop") != 0)
		trace_say(to, "%u tags%s", e->tags, e->pppoe_session != 0 ? ", PPPoE" : "");
}

static void before_encap(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;

	trace_say(to, "S-tag %u, C-tag %u", r->down.s_tag, r->down.c_tag);
	if (r->down.encap == API_ENCAP_QINQ_PPPOE)
		trace_say(to, ", PPPoE session %u", r->down.pppoe_session);
}

TRACE_STAGE("access-input", .after = after_input, .pure = 1)
TRACE_STAGE("access-encap", .before = before_encap, .pure = 1)
