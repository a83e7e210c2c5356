// SPDX-License-Identifier: Apache-2.0
// What gtpu-input and gtpu-encap say of traced packets.
#include "core/trace.h"
#include "path/path.h"
#include "rule/view.h"

static void after_input(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	if (strcmp(next, "drop") != 0)
		trace_say(to, "message %u, TEID 0x%08x", tunnel_view_of(m)->message, tunnel_view_of(m)->teid);
}

static void before_encap(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct rule *r = session_view_of(m)->rule;
	const struct path *p = path_get(r->action.path);

	if (p == NULL) {
		trace_say(to, "the path is gone");
		return;
	}
	trace_say(to, "to ");
	trace_say_address(to, p->outer.version, p->want.peer.bytes);
	trace_say(to, ", TEID 0x%08x", r->action.teid);
	if (r->action.qfi != GTPU_NO_QFI)
		trace_say(to, ", QFI %u", r->action.qfi);
}

TRACE_STAGE("gtpu-input", .after = after_input, .pure = 1)
TRACE_STAGE("gtpu-encap", .before = before_encap, .pure = 1)
