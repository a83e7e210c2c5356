// SPDX-License-Identifier: Apache-2.0
// The gateway of testkit/gateway.h with everything switched on: access lists, policers, a scheduler, routes, two
// workers, a home that is routed instead of tunnelled, and mobile sessions (busy_mobile.h). State of the fuzz targets;
// small, so that it starts fast.
#ifndef HOSTILE_BUSY_GATEWAY_H
#define HOSTILE_BUSY_GATEWAY_H

#include "testkit/gateway.h"

#define HOME_ROUTED 5 // its uplink is plain IP towards the Internet

// Makes the gateway at the first call, and waits until it is quiet.
void busy_gateway_start(void);
// When `good` is 0, ends the fuzz target with a message.
void busy_gateway_check(int good, const char *what);
// After an input: the counters add up; and when time has passed nothing is held and no buffer is lost.
void busy_gateway_rest(void);

#endif
