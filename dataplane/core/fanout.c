// SPDX-License-Identifier: Apache-2.0
// Takes IP reassembly out of DPDK's net_af_packet, and knows the sockets that drivers receive on.
//
// The driver joins its sockets to a fanout group (packet(7)) with PACKET_FANOUT_FLAG_DEFRAG. The kernel then
// reassembles IPv4 datagrams, and the ring's frame truncates the large ones. The driver has no argument against it, and
// a group's flags never change. A forwarder wants the fragments as sent: modules reassemble those for us. So this
// program's setsockopt() replaces libc's and clears that flag. The group's hash spreads fragments by their addresses,
// first and later ones alike.
#include "core/fanout.h"
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKETS 128

static __thread struct {
	uint32_t count;
	int fd[SOCKETS];
} rings;

uint32_t ring_sockets(int *fd, uint32_t room)
{
	uint32_t count = rings.count;

	for (uint32_t i = 0; i < count && i < room && i < SOCKETS; i++)
		fd[i] = rings.fd[i];
	rings.count = 0;
	return count;
}

uint32_t ring_dropped(int fd)
{
	struct tpacket_stats stats;
	socklen_t n = sizeof(stats);

	return getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &n) == 0 ? stats.tp_drops : 0;
}

static void note(int s, int level, int name)
{
	if ((level != SOL_PACKET || name != PACKET_RX_RING) && (level != SOL_XDP || name != XDP_RX_RING))
		return;
	if (rings.count < SOCKETS)
		rings.fd[rings.count] = s;
	rings.count++;
}

int setsockopt(int s, int level, int name, const void *value, socklen_t n)
{
	int fanout;

	note(s, level, name);
	if (level == SOL_PACKET && name == PACKET_FANOUT && n == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
		return (int)syscall(SYS_setsockopt, s, level, name, &fanout, n);
	}
	return (int)syscall(SYS_setsockopt, s, level, name, value, n);
}
