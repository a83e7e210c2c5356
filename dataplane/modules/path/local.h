// SPDX-License-Identifier: Apache-2.0
// Numbers for our tunnel addresses.
#ifndef PATH_LOCAL_H
#define PATH_LOCAL_H

#include "isthmus_api.h"
#include <stdint.h>

#define GTPU_MAX_LOCALS 256
#define PATH_LOCAL_NONE UINT16_MAX

// A small number for one of our tunnel addresses (local end of a path, endpoint of an instance), fixed while the
// address is in use. It is part of an F-TEID's key. PATH_LOCAL_NONE: not in use. Workers; the control thread also sees
// those of the open transaction.
uint16_t path_local_id(uint8_t family, const uint8_t *address);
// The number of an address, with one user more; returned when no worker uses it any more (release() or discard()).
// Control thread. Returns 0, or an errno after object_error().
int path_local_take(const struct api_address *address, uint16_t *id);
void path_local_give(uint16_t id);

#endif
