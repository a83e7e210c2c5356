// SPDX-License-Identifier: Apache-2.0
// Several memif ports that share this process's memory without copies. DPDK's driver (22.11, memif_connect()) closes
// the descriptors of EAL's huge pages when one port is connected. The next port would then pass whatever file has that
// number, and its peer would read foreign memory. So ports are connected one after the other, and the descriptors are
// restored in between. Main thread, before other threads open files.
#ifndef TRAFFIC_ZERO_COPY_H
#define TRAFFIC_ZERO_COPY_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#define ZERO_COPY_LISTS 16

struct zero_copy {
	uint32_t lists;
	int fd[ZERO_COPY_LISTS], copy[ZERO_COPY_LISTS]; // EAL's descriptor, and another of the same file
};

// Before a port is opened: remembers EAL's descriptors.
void zero_copy_keep(struct zero_copy *z);
// After it was opened: waits until port `id` has a link, puts closed descriptors back, and forgets them all. Returns
// 0, or -1 when there was no link until then (clock_monotonic_ns()), or until *stop was not 0.
int zero_copy_restore(struct zero_copy *z, uint16_t id, uint64_t until_ns, const volatile sig_atomic_t *stop);

#endif
