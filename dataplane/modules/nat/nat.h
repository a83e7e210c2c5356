// SPDX-License-Identifier: Apache-2.0
// NAT44 (RFC 4787, RFC 5382, RFC 5508, RFC 6888, RFC 7422): where it applies.
//
//   written by: the control thread, with release stores; replaced ones are freed after a grace period
//   read by: workers, within a walk
#ifndef NAT_NAT_H
#define NAT_NAT_H

#include "core/worker.h"
#include "instance/instance.h"
#include "isthmus_api.h"
#include "nat/table.h"

struct nat {
	char name[API_NAME];
	struct api_nat want;
	struct nat_table *table;
	struct nat *next;
	uint32_t owed; // reports that found no room: the block to begin with, + 1
};

extern struct nat_now {
	const struct nat *of[MAX_INSTANCES];
	uint32_t count;
} nat_now;

static inline int nat_anywhere(void)
{
	return __atomic_load_n(&nat_now.count, __ATOMIC_RELAXED) != 0;
}

// Of an instance's index, or NULL.
static inline const struct nat *nat_of(uint16_t instance)
{
	return instance < MAX_INSTANCES ? __atomic_load_n(&nat_now.of[instance], __ATOMIC_ACQUIRE) : NULL;
}

// Of the instance by whose interface packets leave for a next hop (index), or NULL.
static inline const struct nat *nat_of_hop(uint32_t next_hop)
{
	return nat_of(instance_of_hop(next_hop_get(next_hop)));
}

// The time of mappings (table.h), in this walk.
static inline uint32_t nat_time(const struct worker *w)
{
	return (uint32_t)(w->now / (w->tsc_hz / NAT_SECOND));
}

#endif
