// SPDX-License-Identifier: Apache-2.0
#ifndef FLOW_FLOW_RTE_BENCH_H
#define FLOW_FLOW_RTE_BENCH_H

#include <stdint.h>

// Measures the libraries' pipeline with so many sessions in random order, and prints the median of the TSC ticks for
// each packet. `frame`: a G-PDU with a container, whose TEID and inner source it changes.
void flow_bench_rte(const uint8_t *frame, uint32_t length, uint32_t sessions);

#endif
