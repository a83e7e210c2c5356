// SPDX-License-Identifier: Apache-2.0
// Takes IP reassembly out of DPDK's net_af_packet.
//
// The driver joins each of its sockets to a fanout group (packet(7)) with PACKET_FANOUT_FLAG_DEFRAG, whatever the number of
// queues: the kernel then reassembles IPv4 datagrams, and the ring's frame cuts what is larger than it. An argument for it there
// is none, and a group's flags never change. A forwarder wants the fragments as they were sent: the modules reassemble what is
// for us. So this program's setsockopt() stands before libc's for all that it loads, and takes that one flag away. The hash
// of a group spreads fragments by their addresses, first ones and others alike.
#include <linux/if_packet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int setsockopt(int s, int level, int name, const void *value, socklen_t n)
{
	int fanout;

	if (level == SOL_PACKET && name == PACKET_FANOUT && n == sizeof(fanout)) {
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~(PACKET_FANOUT_FLAG_DEFRAG << 16);
		return (int)syscall(SYS_setsockopt, s, level, name, &fanout, n);
	}
	return (int)syscall(SYS_setsockopt, s, level, name, value, n);
}
