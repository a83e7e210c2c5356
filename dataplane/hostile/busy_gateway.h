// SPDX-License-Identifier: Apache-2.0
// The gateway of testkit/gateway.h with everything switched on: access lists, policers, a scheduler, routes, two
// workers, and a home that is routed instead of tunnelled. State of the fuzz targets; small, so that it starts fast.
#ifndef HOSTILE_BUSY_GATEWAY_H
#define HOSTILE_BUSY_GATEWAY_H

#include "testkit/gateway.h"

#define HOME_ROUTED 5 // its uplink is plain IP towards the Internet

void busy_gateway_start(void);

#endif
