// SPDX-License-Identifier: Apache-2.0
// The engine as the program and tests drive it.
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include "core/channel.h"
#include "core/contract.h"
#include "core/control.h"
#include "core/eal.h"
#include "core/event.h"
#include "core/object.h"
#include "core/port.h"
#include "core/request.h"
#include "core/sleeper.h"
#include "core/socket.h"
#include "core/walk.h"

// The engine could not start: the process answers and ends, for a supervisor to start it afresh.
int engine_failed(void);

#endif
