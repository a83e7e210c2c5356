// SPDX-License-Identifier: Apache-2.0
// `show route`.
#include "core/control.h"
#include "route/tables.h"
#include <string.h>

static void row_by(struct stats_sink *s, const struct rib_entry *r, const struct next_hop *h)
{
	const struct interface *f = interface_get(h->interface);
	struct api_route_row row = {.prefix = rib_prefix(r)};

	if (f != NULL)
		memcpy(row.interface, f->name, sizeof(row.interface));
	if (h->kind == NEXT_HOP_NEIGHBOUR) {
		row.via.family = ip_address_family(&h->address);
		row.via.prefix = (uint8_t)(8 * address_length(row.via.family));
		memcpy(row.via.bytes, ip_address_bytes(&h->address, row.via.family), address_length(row.via.family));
	}
	memcpy(row.vrf, vrf_name(r->table / 2), sizeof(row.vrf));
	row.discard = h->discard;
	row.resolved = h->kind == NEXT_HOP_GLEAN || h->kind == NEXT_HOP_DISCARD || h->resolved;
	stats_row(s, &row, sizeof(row));
}

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

// `key`: empty, a prefix, or an address that it may lead to.
static int is_asked(const struct rib_entry *r, const char *key)
{
	struct api_address prefix = rib_prefix(r), to;
	char text[64];

	if (key[0] == 0)
		return 1;
	to = address_of_text(key);
	return ip_in_prefix(&prefix, to.family, to.bytes) || strcmp(address_text(&prefix, text), key) == 0;
}

// In the order of the table, without place 0; the reader sorts.
static uint64_t rows(struct stats_sink *s, const char *key, uint64_t place)
{
	if (place < rib_end() && (rib[place].flags & RIB_PRESENT) && is_asked(&rib[place], key))
		row(s, &rib[place]);
	return stats_next(place, rib_end());
}

RTE_INIT(route_rows)
{
	stats_table_register(API_TABLE_ROUTE, sizeof(struct api_route_row), rows);
}
