// SPDX-License-Identifier: Apache-2.0
// A sample of received frames in a pcap file, for tshark. The receiving threads hand frames over through a ring; the
// main thread writes. A full ring loses the sample, never a packet of the test.
#ifndef TRAFFIC_CAPTURE_H
#define TRAFFIC_CAPTURE_H

#include "traffic/engine/work.h"

struct capture;

// Makes the file (nanosecond pcap, Ethernet) and a ring for each of the `threads` that will offer frames. Returns
// NULL with a sentence in `error` when the file cannot be made or memory is short. Main thread.
struct capture *capture_open(const struct job_capture *want, uint32_t threads, char *error, size_t n);
// Copies one frame in `every`. `thread`: 0 .. threads - 1, one caller each. `frame` has `length` bytes without FCS, at
// most FRAME_MAX; `ns` is its arrival, since 1970. Never blocks. `c` NULL: nothing to do.
void capture_offer(struct capture *c, uint32_t thread, const uint8_t *frame, uint16_t length, uint64_t ns);
// The same for every frame (wrong ones), also beyond `count`: up to as many again.
void capture_keep(struct capture *c, uint32_t thread, const uint8_t *frame, uint16_t length, uint64_t ns);
// Whether the next capture_offer() of the thread would take its frame; spares the caller a look at the clock.
bool capture_wants(const struct capture *c, uint32_t thread);
// Main thread: writes new frames, thread by thread; within a thread in order.
void capture_poll(struct capture *c);
// Why the file is cut short (disk full), as a sentence; NULL while all is well. Main thread.
const char *capture_error(const struct capture *c);
// Main thread, when the others have stopped: writes the rest, closes the file, frees everything. Returns the number of
// frames in the file. `c` NULL: 0.
uint32_t capture_close(struct capture *c);

#endif
