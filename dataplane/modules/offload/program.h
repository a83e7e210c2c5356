// SPDX-License-Identifier: Apache-2.0
// A plan in the words of rte_flow and rte_mtr.
#ifndef OFFLOAD_PROGRAM_H
#define OFFLOAD_PROGRAM_H

#include "offload/plan.h"
#include <rte_flow.h>

// What a device has of an entry.
struct device_entry {
	struct rte_flow *flow, *guard;
	// Outlives the flow: no packet is lost between the last one and its reading
	struct rte_flow_action_handle *count;
	uint32_t meter; // id of the MTR object, its profile and its policy; 0: none
	uint64_t packets, bytes, dropped; // read so far
};

// Packets and bytes (of IP) since the last reading.
struct device_counts {
	uint64_t packets, bytes, dropped;
};

// `id` is not 0: of the meter, or the mark. Returns 0, or why not.
const char *program_put(struct device_entry *e, const struct plan *p, uint32_t id);
// Removes all; adds the counts so far to *c.
void program_take(struct device_entry *e, const struct plan *p, struct device_counts *c);
void program_read(struct device_entry *e, const struct plan *p, struct device_counts *c);
// Asks whether the device would accept such a plan: NULL, or why not.
const char *program_validate(const struct plan *p);

#endif
