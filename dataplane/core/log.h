// SPDX-License-Identifier: Apache-2.0
// Log lines of the data plane. Never called from a node: the graph counts, the control thread speaks.
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <rte_log.h>

extern int core_logtype;

#define LOG(level, format, ...) rte_log(RTE_LOG_##level, core_logtype, format, ##__VA_ARGS__)

// From here on the log is standard error alone, and `program`, which stays, begins each line. 0, or an errno.
int log_open(const char *program);
// The libraries of net_af_xdp, which EAL has loaded where its driver is there, write to the log too.
void log_drivers(void);
// Suppresses DPDK's messages about this thread, until 0: for attempts that may fail and that the caller reports itself.
void log_hush(int on);
// Remembers the next line of DPDK or its drivers, which says the cause; later ones say what did not work then.
void log_listen(void);
// That line, until the next log_listen(); empty without one.
const char *log_heard(void);

#endif
