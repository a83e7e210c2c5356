// SPDX-License-Identifier: Apache-2.0
// The register of drop and punt reasons, filled by constructors before main().
#include "core/reason.h"
#include "core/reply.h"
#include "core/worker.h"
#include <rte_debug.h>
#include <string.h>

static struct {
	struct reason *list[MAX_REASONS];
	uint16_t count;
} reasons;

void reason_register(struct reason *r)
{
	// Two reasons of one name, or too many, are a programming error that must not reach an operator: before main().
	for (uint16_t i = 0; i < reasons.count; i++)
		if (strcmp(reasons.list[i]->name, r->name) == 0)
			rte_panic("reason %s is registered twice\n", r->name);
	if (reasons.count == MAX_REASONS)
		rte_panic("more than %d reasons\n", MAX_REASONS);
	r->id = reasons.count;
	reasons.list[reasons.count++] = r;
}

uint16_t reason_count(void)
{
	return reasons.count;
}

const struct reason *reason_get(uint16_t id)
{
	return id < reasons.count ? reasons.list[id] : NULL;
}

static void reason_rows(struct stats_sink *s, enum reason_kind kind)
{
	for (uint16_t i = 0; i < reasons.count; i++) {
		const struct reason *r = reasons.list[i];
		struct api_drop_row row = {0};

		if (r->kind != kind)
			continue;
		for (uint32_t w = 0; w < worker_total(); w++)
			row.packets += worker_any(w)->reason[i];
		strncpy(row.name, r->name, sizeof(row.name) - 1);
		strncpy(row.text, r->text, sizeof(row.text) - 1);
		stats_row(s, &row, sizeof(row));
	}
}

static uint64_t drop_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	reason_rows(s, REASON_DROP);
	return 0;
}

static uint64_t punt_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	reason_rows(s, REASON_PUNT);
	return 0;
}

RTE_INIT(reason_tables)
{
	stats_table_register(API_TABLE_DROP, sizeof(struct api_drop_row), drop_rows);
	stats_table_register(API_TABLE_PUNT, sizeof(struct api_drop_row), punt_rows);
}
