// SPDX-License-Identifier: Apache-2.0
// Inside of the host module: the clones. Control thread.
#ifndef HOST_CLONE_TABLE_H
#define HOST_CLONE_TABLE_H

#include "host/clone.h"
#include "host/tap.h"
#include "isthmus_api.h"
#include "route/route.h"

struct clone {
	char interface[API_NAME]; // name; empty: a free place
	char device[API_DEVICE];
	char netns[API_TEXT];
	struct tap tap;
	uint32_t index; // of the interface; UINT32_MAX: it is not there
	uint8_t wanted, linked;
	uint64_t retry_ns; // not opened before
	uint64_t to_kernel, from_kernel, refused, dropped;
	char why[API_CLONE_WHY];
};

// Reads what the kernel sent, up to a vector of frames.
void clone_down(struct clone *c, const struct interface *i);
struct clone *clone_of(uint32_t interface); // NULL: none

#endif
