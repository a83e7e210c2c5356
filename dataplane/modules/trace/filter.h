// SPDX-License-Identifier: Apache-2.0
// Which frames a trace follows: the full examination behind the sieve (for tests).
#ifndef TRACE_FILTER_H
#define TRACE_FILTER_H

#include "core/trace.h"

uint32_t filter_look(const struct trace_filter *f, const struct rte_mbuf *m); // as trace_chooser.takes

#endif
