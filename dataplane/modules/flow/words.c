// SPDX-License-Identifier: Apache-2.0
// The fast path leaves traced packets to the full nodes, whose words describe it as well.
#include "core/trace.h"
#include "flow/finish.h"

static void say(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	trace_say(to, "the fast path leaves what is traced to the full nodes");
}

TRACE_STAGE("flow-input", .after = say, .fast = 1, .full = FLOW_FULL)
TRACE_STAGE("flow-access", .after = say, .fast = 1, .full = FLOW_FULL)

RTE_INIT(flow_trace_entries)
{
	trace_entry_register(API_ROLE_CORE, "core-input");
	trace_entry_register(API_ROLE_ACCESS, "access-input");
}
