// SPDX-License-Identifier: Apache-2.0
// GTP-U paths (TS 29.281) as the nodes see them.
#ifndef GTPU_GTPU_H
#define GTPU_GTPU_H

#include "isthmus_api.h"
#include <stdint.h>

#define GTPU_MAX_PATHS 1024
#define GTPU_OUTER_MAX 64

// Index of a path by its name as it will be after the open transaction, or -1. Control thread.
int gtpu_path_index(const char *name);

#define GTPU_LOCAL_NONE UINT16_MAX

// A small number for the local end of a path, which stays the same as long as a path has it: part of the key of an F-TEID.
// GTPU_LOCAL_NONE when no path ends there. Workers (published paths); the control thread sees the open transaction's.
uint16_t gtpu_local_id(uint8_t family, const uint8_t *address);

// 1 when a path ends at this address after the open transaction. Control thread.
int gtpu_local_staged(const struct api_address *local);

#endif
