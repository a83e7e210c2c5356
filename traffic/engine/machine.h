// SPDX-License-Identifier: Apache-2.0
// Disturbance of a measurement by the machine: stolen time, context switches, the clock.
#ifndef TRAFFIC_MACHINE_H
#define TRAFFIC_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct machine_sample {
	uint64_t steal, total; // clock ticks of the CPUs asked for (/proc/stat)
	uint64_t switches; // involuntary context switches of the threads asked for (/proc/PID/task/TID/status)
};
// cpus 0: all CPUs. Unreadable values stay 0.
void machine_sample(const uint16_t *cpu, uint32_t cpus, const pid_t *tid, uint32_t tids, struct machine_sample *s);
double machine_steal(const struct machine_sample *a, const struct machine_sample *b); // part of the time between
// Estimates the core's clock in GHz by a chain of dependent additions (about 2 ms).
double machine_clock_ghz(double tsc_hz);
// Round trip of a cache line between two CPUs, in nanoseconds: the best of many short rounds, within 30 ms. 0 if
// unknown: one CPU, not ours to use, or too busy.
double machine_round_trip_ns(uint16_t a, uint16_t b, double tsc_hz);
void machine_describe(char *cpu, size_t n, char *kernel, size_t m); // model name; release

#endif
