// SPDX-License-Identifier: Apache-2.0
// Programs of classic BPF, run by libpcap. (DPDK's rte_bpf would compile them, but 22.11 reads a wrong byte for a load
// at an index, as in udp[9].)
#ifndef TRACE_PROGRAM_H
#define TRACE_PROGRAM_H

#include "isthmus_api.h"
#include <pcap/pcap.h>

// Copies a program. Returns 0 and *to (NULL: no instructions), or a positive errno after object_error(). Control
// thread.
int program_load(struct bpf_insn **to, const struct api_trace_instruction *code, uint32_t count);
// 1 when it takes a packet of `length` bytes, of which `available` may be read. Workers.
static inline int program_takes(const struct bpf_insn *p, const uint8_t *packet, uint32_t length, uint32_t available)
{
	return bpf_filter(p, packet, length, available) != 0;
}

#endif
