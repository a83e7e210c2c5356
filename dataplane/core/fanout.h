// SPDX-License-Identifier: Apache-2.0
// Which sockets a DPDK driver receives on: the driver does not say.
#ifndef CORE_FANOUT_H
#define CORE_FANOUT_H

#include <stdint.h>

// The sockets that this thread made receive rings (net_af_packet, net_af_xdp) since the last call: in order, at most
// `room` are written to fd. Returns how many there were. They are their driver's still.
uint32_t ring_sockets(int *fd, uint32_t room);
// Frames dropped by the kernel since the last call, because the ring of a net_af_packet socket was full; 0 for other
// sockets, whose driver counts them.
uint32_t ring_dropped(int fd);

#endif
