// SPDX-License-Identifier: Apache-2.0
// Programs of classic BPF, run by DPDK's rte_bpf on a packet or a part of it.
#ifndef TRACE_PROGRAM_H
#define TRACE_PROGRAM_H

#include "isthmus_api.h"
#include <rte_mbuf.h>

struct rte_bpf;

// Returns 0 and *to (NULL: no instructions), or a positive errno after object_error(). Control thread.
int program_load(struct rte_bpf **to, const struct api_trace_instruction *code, uint32_t count);
void program_free(struct rte_bpf *p); // NULL: does nothing
// 1 when it takes what is in m from `offset` on, in the first segment. Workers; m is theirs.
int program_takes(const struct rte_bpf *p, struct rte_mbuf *m, uint32_t offset);

#endif
