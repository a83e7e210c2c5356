// SPDX-License-Identifier: Apache-2.0
// Log lines of the data plane. Never called from a node: the graph counts, the control thread speaks.
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <rte_log.h>

extern int core_logtype;
extern const char *core_program; // who speaks; written once, by engine_eal_init()

#define LOG(level, format, ...) rte_log(RTE_LOG_##level, core_logtype, "%s: " format, core_program, ##__VA_ARGS__)

#endif
