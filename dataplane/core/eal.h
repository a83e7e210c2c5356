// SPDX-License-Identifier: Apache-2.0
// Starts DPDK's environment.
#ifndef CORE_EAL_H
#define CORE_EAL_H

#include <stdint.h>

// One EAL thread, no devices. huge: 1 yes, 0 no, -1 when enough are free; else memory_mb of ordinary memory, 0: 2048.
// Returns 0, or -1 after a log line.
int engine_eal_init(const char *program, int huge, uint32_t memory_mb, int argc, char **argv);
// The memory limit of the cgroup in MB where it is less than what DPDK was to take; 0: it is not. Set at the start.
extern uint32_t engine_memory_limit_mb;

#endif
