// SPDX-License-Identifier: Apache-2.0
// Numbers for our tunnel addresses.
#ifndef PATH_LOCAL_H
#define PATH_LOCAL_H

#include "isthmus_api.h"
#include <stdint.h>

#define GTPU_MAX_LOCALS 256
#define PATH_LOCAL_NONE UINT16_MAX

// A small number for one of our tunnel addresses (local end of a path, endpoint of an instance), which stays the same
// as long as somebody has it: part of the key of an F-TEID. PATH_LOCAL_NONE when nobody has. Workers; the control
// thread sees those of the open transaction too.
uint16_t path_local_id(uint8_t family, const uint8_t *address);
// The number of an address, one user more; it is given back when no worker uses it any more (release() or discard()).
// Control thread. Returns 0, or an errno after object_error().
int path_local_take(const struct api_address *address, uint16_t *id);
void path_local_give(uint16_t id);

#endif
