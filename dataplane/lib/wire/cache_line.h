// SPDX-License-Identifier: Apache-2.0
// The cache line that structures are laid out for. DPDK's RTE_CACHE_LINE_SIZE is the largest of an architecture: 128 in
// arm64 packages, where most processors have 64.
#ifndef WIRE_CACHE_LINE_H
#define WIRE_CACHE_LINE_H

#define CACHE_LINE 64
#define cache_aligned __attribute__((aligned(CACHE_LINE)))

#endif
