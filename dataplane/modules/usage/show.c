// SPDX-License-Identifier: Apache-2.0
// Rows of `show urr`: counts since the last report, and the rest of the quotas.
#include "core/control.h"
#include "usage/urr.h"
#include <string.h>

static int is_out(uint32_t index)
{
	return index != RULE_NONE && usage_table.urr[index] != NULL && usage_table.urr[index]->out != 0;
}

int usage_rule_out(const struct rule *r)
{
	const struct rule_further *f = rule_further_of(r);
	int out = is_out(r->urr);

	for (uint8_t i = 0; (r->flags & RULE_FURTHER_METERS) && i < f->urrs; i++)
		out |= is_out(f->urr[i]);
	return out;
}

static void fill(struct api_urr_row *row, const struct urr *u)
{
	struct usage_totals t = urr_totals(u, control_now_ns());
	uint64_t have[3] = {t.bytes[0] + t.bytes[1], t.bytes[0], t.bytes[1]};

	memcpy(row->session, u->set->name, sizeof(row->session));
	row->urr = u->c->id;
	row->sequence = u->sequence;
	for (int d = 0; d < 2; d++) {
		row->bytes[API_UPLINK + d] = t.bytes[d] - u->reported.bytes[d];
		row->packets[API_UPLINK + d] = t.packets[d] - u->reported.packets[d];
		row->bytes[API_TOTAL] += row->bytes[API_UPLINK + d];
		row->packets[API_TOTAL] += row->packets[API_UPLINK + d];
	}
	for (int i = 0; i < 3; i++)
		row->quota_left[i] = u->quota[i] == USAGE_NO_LIMIT ? UINT64_MAX
				     : u->quota[i] > have[i]       ? u->quota[i] - have[i]
								   : 0;
	row->duration = (uint32_t)((t.active_ns - u->reported.active_ns) / 1000000000u);
	row->exhausted = u->out;
}

static uint64_t urr_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	const struct urr *u = place < usage_pools.states ? usage_table.urr[place] : NULL;
	struct api_urr_row row = {0};

	if (u != NULL && u->state == place && (key[0] == 0 || strcmp(key, u->set->name) == 0)) {
		fill(&row, u);
		stats_row(s, &row, sizeof(row));
	}
	return stats_next(place, usage_pools.states);
}

RTE_INIT(urr_table)
{
	stats_table_register(API_TABLE_URR, sizeof(struct api_urr_row), urr_rows);
}
