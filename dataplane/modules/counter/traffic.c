// SPDX-License-Identifier: Apache-2.0
// Rows of traffic, found by a hash of their names.
#include "counter/traffic.h"
#include "core/control.h"
#include "core/object.h"
#include <errno.h>
#include <rte_hash_crc.h>
#include <stdlib.h>
#include <string.h>

#define OTHER 0u

static struct {
	struct api_traffic_row *row; // OTHER, then others in the order in which they came
	uint32_t *slot; // a row's number, 0: none; twice as many as rows, a power of two
	uint32_t rows, most, mask;
} traffic;

int traffic_start(uint32_t rows)
{
	traffic.most = rows;
	traffic.mask = rte_align32pow2(rows * 2) - 1;
	traffic.row = calloc(rows, sizeof(*traffic.row));
	traffic.slot = calloc((size_t)traffic.mask + 1, sizeof(*traffic.slot));
	if (traffic.row == NULL || traffic.slot == NULL)
		return object_error(ENOMEM, "no memory for %u rows of traffic", rows);
	traffic.row[OTHER].other = 1;
	traffic.row[OTHER].qfi = API_NO_QFI;
	traffic.rows = 1;
	return 0;
}

// Number of the row with the names of `want`, whose counts are zero.
static uint32_t find(const struct api_traffic_row *want)
{
	const uint32_t names = offsetof(struct api_traffic_row, uplink_packets);
	uint32_t at = rte_hash_crc(want, names, 0) & traffic.mask;

	for (; traffic.slot[at] != 0; at = (at + 1) & traffic.mask)
		if (memcmp(&traffic.row[traffic.slot[at]], want, names) == 0)
			return traffic.slot[at];
	if (traffic.rows == traffic.most)
		return OTHER;
	traffic.row[traffic.rows] = *want;
	return traffic.slot[at] = traffic.rows++;
}

uint32_t traffic_row(const char *instance, const char *dnn, uint8_t qfi)
{
	struct api_traffic_row want = {.qfi = qfi == 0xff ? API_NO_QFI : qfi};

	strncpy(want.instance, instance, API_NAME - 1);
	strncpy(want.dnn, dnn, API_NAME - 1);
	return find(&want);
}

void traffic_add(uint32_t rule, const struct rule_counts *more)
{
	struct api_traffic_row *row = &traffic.row[session_pools.match[rule].traffic];

	if (session_pools.rule[rule].flags & RULE_UPLINK) {
		row->uplink_packets += more->packets;
		row->uplink_bytes += more->bytes;
	} else {
		row->downlink_packets += more->packets;
		row->downlink_bytes += more->bytes;
	}
}

static uint64_t rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	if (place < traffic.rows && (key[0] == 0 || strncmp(key, traffic.row[place].instance, API_NAME) == 0))
		stats_row(sink, &traffic.row[place], sizeof(traffic.row[place]));
	return stats_next(place, traffic.rows);
}

RTE_INIT(traffic_rows)
{
	stats_table_register(API_TABLE_TRAFFIC, sizeof(struct api_traffic_row), rows);
}
