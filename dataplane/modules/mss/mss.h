// SPDX-License-Identifier: Apache-2.0
// Which TCP connections have a limit of their Maximum Segment Size (MSS).
#ifndef MSS_MSS_H
#define MSS_MSS_H

#include "instance/instance.h"
#include "rule/tables.h"

// 0: no packet needs a look. Workers; the control thread.
static inline int mss_anywhere(const struct instances *n)
{
	return n->clamping || __atomic_load_n(&session_tables.clamping, __ATOMIC_ACQUIRE) != 0;
}

// 1 when the MSS of the rule's packets, received by the instance (its index), is limited. Workers, within a walk; the
// control thread.
int mss_is_limited(const struct rule *r, uint16_t came);

#endif
