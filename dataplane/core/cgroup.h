// SPDX-License-Identifier: Apache-2.0
// What the process' cgroup leaves it of the machine: a container's limits, and those of systemd's units.
#ifndef CORE_CGROUP_H
#define CORE_CGROUP_H

#include <stdint.h>

// The smallest memory limit of the process' cgroup and of those above it, in bytes. Both versions of cgroups.
// UINT64_MAX: none. root: "" or the folder, without a slash at its end, that has another /proc and /sys (in tests).
uint64_t cgroup_memory(const char *root);

#endif
