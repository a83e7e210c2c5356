// SPDX-License-Identifier: Apache-2.0
// Packets that a device marked after it removed the outer header: the header's fields.
//
//   Written by: the control thread, before the device may mark with it and after it no longer does.
//   Read by: workers.
//   Safe because: a mark has the epoch of its place, which is checked again behind the copy. It leads to the words of
//   a header, with which the tables of sessions are asked
#ifndef OFFLOAD_MARK_H
#define OFFLOAD_MARK_H

#include "offload/plan.h"

#define MARKS 65536u
#define MARK_EPOCHS 256u // marks of 24 bits, which all devices have

// A mark that was not in use for long, of the place `index`.
uint32_t mark_take(uint32_t index, const struct offload_request *q);
void mark_give(uint32_t index);

#endif
