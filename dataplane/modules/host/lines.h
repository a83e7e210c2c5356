// SPDX-License-Identifier: Apache-2.0
#ifndef HOST_LINES_H
#define HOST_LINES_H

#include <stdint.h>

// API_LINE_* of a VLAN of an access port. Workers.
uint32_t host_line(uint16_t port, uint16_t s_tag, uint16_t c_tag);

#endif
