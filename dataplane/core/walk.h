// SPDX-License-Identifier: Apache-2.0
// Inside of core: the workers' threads, and their replacement without threads.
#ifndef CORE_WALK_H
#define CORE_WALK_H

#include "isthmus_api.h"

void engine_walk(void); // one walk of every worker, no-thread mode
void engine_run(void); // walks until nothing moves, no-thread mode
void engine_advance(uint64_t ticks); // moves the clock and runs timers, no-thread mode
void engine_step(int64_t ticks); // the TSC jumps, no-thread mode
int worker_create_all(const struct api_engine *e);
int worker_start_all(void);
void engine_stop_workers(void); // joins the threads

#endif
