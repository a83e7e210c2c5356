// SPDX-License-Identifier: Apache-2.0
// GTP-U paths (TS 29.281) as the nodes and other modules see them.
#ifndef GTPU_GTPU_H
#define GTPU_GTPU_H

#include "isthmus_api.h"
#include <stdint.h>

#define GTPU_MAX_PATHS 16384
#define GTPU_MAX_LOCALS 256
#define GTPU_OUTER_MAX 64

// Index of a path by its name as it will be after the open transaction, or -1. Control thread.
int gtpu_path_index(const char *name);

#define GTPU_LOCAL_NONE UINT16_MAX

// A small number for one of our tunnel addresses (local end of a path, endpoint of an instance), which stays the same as long as
// somebody has it: part of the key of an F-TEID. GTPU_LOCAL_NONE when nobody has. Workers; the control thread sees those of the
// open transaction too.
uint16_t gtpu_local_id(uint8_t family, const uint8_t *address);
// The number of an address, one user more; it is given back when no worker uses it any more (release() or discard()). Control
// thread. Returns 0, or an errno after object_error().
int gtpu_local_take(const struct api_address *address, uint16_t *id);
void gtpu_local_give(uint16_t id);

// 1 when a path goes from the one address to the other (4 or 16 bytes). Any thread, off the fast path.
int gtpu_is_path(uint8_t family, const uint8_t *local, const uint8_t *peer);

// 1 when a path ends at this address after the open transaction. Control thread.
int gtpu_local_staged(const struct api_address *local);

struct rule;

// The FAR of this rule now sends elsewhere: End Marker on the old tunnel (TS 29.281 §7.3.2), with a PDU Session Container if the
// tunnel used one. From release(), so that it comes after the last packet of the old rule. Nothing for other than GTP-U tunnels.
void gtpu_end_marker(const struct rule *old);

#endif
