// SPDX-License-Identifier: Apache-2.0
// What the firewall nodes say of traced packets. A hypothetical one counts as a hit of its rule.
#include "core/trace.h"
#include <string.h>

static void after(struct trace_text *to, struct worker *w, struct rte_mbuf *m, const char *next)
{
	trace_say(to, "%s", strcmp(next, "drop") == 0 ? "the access list refuses it" : "no access list refuses it");
}

TRACE_STAGE("firewall-uplink", .after = after, .pure = 1)
TRACE_STAGE("firewall-downlink", .after = after, .pure = 1)
TRACE_STAGE("firewall-tunnel", .after = after, .pure = 1)
TRACE_STAGE("firewall-ue", .after = after, .pure = 1)
