// SPDX-License-Identifier: Apache-2.0
// What the engine's own nodes say of traced packets.
#include "core/port.h"
#include "core/trace_inside.h"

static void say_reason(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct reason *r = reason_get(packet_of(m)->reason);

	if (r != NULL)
		trace_say(to, "%s: %s", r->name, r->text);
}

static void say_port(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	const struct port *p = port_get(packet_of(m)->port_out);

	if (p == NULL)
		trace_say(to, "the port is gone");
	else
		trace_say(to, "%u bytes on %s", rte_pktmbuf_pkt_len(m), p->name);
}

// A hypothetical packet is not sent: it ends here, as the earlier words said.
static int ends(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	return TRACE_ENDS;
}

TRACE_STAGE("port-tx", .before = say_port, .foresee = ends, .end = TRACE_SENDS)
TRACE_STAGE("drop", .before = say_reason, .foresee = ends, .end = TRACE_DROPS)
TRACE_STAGE("punt", .before = say_reason, .foresee = ends, .end = TRACE_PUNTS)
TRACE_STAGE("handover-rx", .pure = 1)
