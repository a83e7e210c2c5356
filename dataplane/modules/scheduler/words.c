// SPDX-License-Identifier: Apache-2.0
// The scheduler's words for traced packets: queue and its length.
#include "core/trace.h"
#include "rule/view.h"
#include "scheduler/instance.h"
#include "scheduler/queue.h"

static void say(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	struct scheduler *s = scheduler_of(packet_of(m)->port_out);
	struct hqos *h = s ? s->instance[w->id] : NULL;
	const struct session_view *v = session_view_of(m);
	struct hqos_stats stats = {0};

	if (h == NULL) {
		trace_say(to, "the port has no scheduler here");
		return;
	}
	uint32_t place = hqos_place_class(v->pipe, scheduler_class_of(s, v));
	uint32_t class = hqos_queue_class(hqos_place_queue(place));
	hqos_pipe_stats(h, hqos_place_subport(place), hqos_place_pipe(place), class, &stats);
	trace_say(to, "%s: subport %u, pipe %u, class %u; %u packets of the class wait", s->name,
		hqos_place_subport(place), hqos_place_pipe(place), class, stats.queued);
}

static int foresee(struct trace_text *to, struct worker *w, struct rte_mbuf *m)
{
	int edge = scheduler_passes(w, m);

	if (edge < 0)
		trace_say(to, "; it would be queued");
	return edge < 0 ? TRACE_ENDS : edge;
}

TRACE_STAGE("scheduler", .before = say, .foresee = foresee, .single = 1)
TRACE_STAGE("scheduler-tx", .pure = 1)
