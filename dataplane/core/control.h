// SPDX-License-Identifier: Apache-2.0
// For modules: grace periods, timers, the host path, and rows for `show`.
#ifndef CORE_CONTROL_H
#define CORE_CONTROL_H

#include "core/host_path.h"
#include "core/module.h"
#include "core/node.h"
#include "core/reply.h"

#endif
