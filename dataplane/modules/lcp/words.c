// SPDX-License-Identifier: Apache-2.0
// What lcp-echo says of traced frames.
#include "core/trace.h"
#include "rule/view.h"

static void before(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const uint8_t *lcp = rte_pktmbuf_mtod_offset(m, const uint8_t *, endpoint_view_of(m)->l2_length);

	trace_say(to, "LCP code %u, identifier %u", lcp[0], lcp[1]);
}

static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	trace_say(to, "; an Echo-Request is answered, the rest is heard");
	return TRACE_ENDS;
}

TRACE_STAGE("lcp-echo", .before = before, .foresee = foresee)
