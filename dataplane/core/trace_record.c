// SPDX-License-Identifier: Apache-2.0
// Rows of traces: words, frames, and the ring in which they wait for the control thread. A worker never waits here. And
// how many packets went from node to node.
#include "core/event.h"
#include "core/reply.h"
#include "core/trace_inside.h"
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tracer *tracers;
struct trace *traces_now[API_MAX_TRACES];

void trace_say(struct trace_text *to, const char *format, ...)
{
	uint32_t room = sizeof(to->text) - to->used;
	va_list list;

	va_start(list, format);
	int n = vsnprintf(to->text + to->used, room, format, list);
	va_end(list);
	if (n > 0)
		to->used += RTE_MIN((uint32_t)n, room - 1);
}

void trace_say_address(struct trace_text *to, uint8_t version, const uint8_t *address)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(version == 4 ? AF_INET : AF_INET6, address, text, sizeof(text));
	trace_say(to, "%s", text);
}

static void put(struct tracer *t, const struct api_trace_row *row)
{
	if (rte_ring_sp_enqueue_elem(t->ring, (void *)(uintptr_t)row, sizeof(*row)) == 0)
		return;
	for (uint32_t k = 0; k < API_MAX_TRACES; k++)
		t->of[k].lost += row->traces >> k & 1;
}

// The traces that follow the packet and want this kind of row, and how much of the frame.
static uint8_t wanted_by(uint8_t traced, uint32_t flag, uint32_t *snap)
{
	uint8_t by = 0;

	*snap = 0;
	for (uint32_t k = 0; k < API_MAX_TRACES; k++) {
		const struct trace *tr = __atomic_load_n(&traces_now[k], __ATOMIC_ACQUIRE);

		if (!(traced >> k & 1) || tr == NULL || !(tr->want.flags & flag))
			continue;
		by |= (uint8_t)(1u << k);
		*snap = RTE_MAX(*snap, tr->want.snap);
	}
	return by;
}

static void record_frame(struct tracer *t, struct api_trace_row *row, const struct trace_row *r, uint8_t traced)
{
	uint32_t snap, length = rte_pktmbuf_pkt_len(r->frame);

	row->traces = wanted_by(traced, r->of, &snap);
	if (row->traces == 0 || r->from > length)
		return;
	row->what = API_TRACE_DATA;
	row->of = r->of;
	row->frame = length - r->from;
	snap = RTE_MIN(snap, row->frame);
	for (uint32_t at = 0; at < snap || at == 0; at += sizeof(row->data)) {
		row->length = (uint16_t)RTE_MIN(snap - at, sizeof(row->data));
		const void *bytes = rte_pktmbuf_read(r->frame, r->from + at, row->length, row->data);

		if (bytes == NULL)
			return;
		if (bytes != row->data)
			memcpy(row->data, bytes, row->length);
		put(t, row);
	}
}

static void copy_name(char *to, size_t size, const char *from)
{
	if (from != NULL)
		snprintf(to, size, "%s", from);
}

void trace_record(struct tracer *t, const struct worker *w, uint32_t number, uint8_t traced, const struct trace_row *r)
{
	if ((traced & TRACED_BY & (t->early | t->late | t->only)) == 0)
		return;
	struct api_trace_row row = {.packet = number,
		.what = r->what,
		.worker = (uint8_t)RTE_MIN(w->id, (uint32_t)API_MAX_WORKERS),
		.ns = event_realtime_ns(),
		.ticks = r->ticks,
		.outcome = r->outcome};

	row.traces = traced & TRACED_BY & (t->early | t->late | t->only);
	copy_name(row.node, sizeof(row.node), r->node);
	copy_name(row.next, sizeof(row.next), r->next);
	copy_name(row.port, sizeof(row.port), r->port);
	if (r->frame != NULL)
		row.frame = rte_pktmbuf_pkt_len(r->frame);
	if (r->text != NULL) {
		row.length = (uint16_t)r->text->used;
		memcpy(row.data, r->text->text, r->text->used);
	}
	put(t, &row);
	if (r->frame != NULL && r->of != 0)
		record_frame(t, &row, r, traced);
}

static uint64_t edge_packets(uint32_t node, uint16_t edge)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; tracers != NULL && node < TRACE_NODES && edge < TRACE_EDGES && i < worker_count(); i++)
		sum += __atomic_load_n(&tracers[i].edge[node][edge], __ATOMIC_RELAXED);
	return sum;
}

static uint64_t edge_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	struct rte_node_register *const *list;
	uint32_t count = graph_nodes(&list);
	const struct rte_node_register *node = place < count ? list[place] : NULL;

	for (uint16_t e = 0; node != NULL && e < node->nb_edges; e++) {
		struct api_edge_row row = {0};

		snprintf(row.from, sizeof(row.from), "%s", node->name);
		snprintf(row.to, sizeof(row.to), "%s", node->next_nodes[e]);
		row.packets = edge_packets(node->id, e);
		stats_row(s, &row, sizeof(row));
	}
	return stats_next(place, count);
}

RTE_INIT(edge_table)
{
	stats_table_register(API_TABLE_EDGE, sizeof(struct api_edge_row), edge_rows);
}
