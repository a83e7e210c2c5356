// SPDX-License-Identifier: Apache-2.0
// `show route`.
#include "core/control.h"
#include "route/tables.h"
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct rib_entry *r = &rib[*(const uint32_t *)a], *s = &rib[*(const uint32_t *)b];
	struct api_address x = rib_prefix(r), y = rib_prefix(s);

	return r->table / 2 != s->table / 2 ? r->table - s->table : prefix_compare(&x, &y);
}

static void row_by(struct stats_sink *s, const struct rib_entry *r, const struct next_hop *h)
{
	const struct interface *f = interface_get(h->interface);
	struct api_route_row row = {.prefix = rib_prefix(r)};

	if (f != NULL)
		memcpy(row.interface, f->name, sizeof(row.interface));
	if (h->kind == NEXT_HOP_NEIGHBOUR) {
		row.via = (struct api_address){
			.family = row.prefix.family, .prefix = (uint8_t)(8 * address_length(row.prefix.family))};
		memcpy(row.via.bytes, h->address.bytes + 16 - address_length(row.via.family),
			address_length(row.via.family));
	}
	memcpy(row.vrf, vrf_name(r->table / 2), sizeof(row.vrf));
	row.resolved = h->kind == NEXT_HOP_GLEAN || h->resolved;
	stats_row(s, &row, sizeof(row));
}

// A row for each next hop.
static void row(struct stats_sink *s, const struct rib_entry *r)
{
	const struct next_hop *h = next_hop_get(r->hop);
	uint16_t hop[HOPS_MAX];

	if (h->kind != NEXT_HOP_SEVERAL) {
		row_by(s, r, h);
		return;
	}
	memcpy(hop, &h->address, sizeof(hop));
	for (uint32_t n = 0; n < HOPS_MAX; n++)
		if (hop[n] != NEXT_HOP_NONE)
			row_by(s, r, next_hop_get(hop[n]));
}

// `key`: empty, a prefix, or the address `to`, to which it may lead.
static int is_asked(const struct rib_entry *r, const char *key, const struct api_address *to)
{
	struct api_address prefix = rib_prefix(r);
	char text[64];

	return key[0] == 0 || ip_in_prefix(&prefix, to->family, to->bytes) ||
	       strcmp(address_text(&prefix, text), key) == 0;
}

static void rows(struct stats_sink *s, const char *key)
{
	uint32_t *list = malloc(rib_end() * sizeof(*list)), count = 0;
	struct api_address to = address_of_text(key);

	if (list == NULL)
		return;
	for (uint32_t n = 1; n < rib_end(); n++)
		if ((rib[n].flags & RIB_PRESENT) && is_asked(&rib[n], key, &to))
			list[count++] = n;
	if (count > 0)
		qsort(list, count, sizeof(*list), compare);
	for (uint32_t i = 0; i < count; i++)
		row(s, &rib[list[i]]);
	free(list);
}

RTE_INIT(route_rows)
{
	stats_table_register(API_TABLE_ROUTE, sizeof(struct api_route_row), rows);
}
