// SPDX-License-Identifier: Apache-2.0
// Keeps EAL's descriptors of huge pages alive across the connecting of memif ports.
#include "traffic/engine/zero_copy.h"
#include "clock/clock.h"
#include <errno.h>
#include <fcntl.h>
#include <rte_ethdev.h>
#include <rte_memory.h>
#include <time.h>
#include <unistd.h>

static int remember(const struct rte_memseg_list *list, const struct rte_memseg *segment, void *arg)
{
	struct zero_copy *z = arg;
	int fd = list->external ? -1 : rte_memseg_get_fd_thread_unsafe(segment);

	for (uint32_t i = 0; i < z->lists; i++)
		if (z->fd[i] == fd)
			return 0;
	if (fd >= 0 && z->lists < ZERO_COPY_LISTS) {
		z->fd[z->lists] = fd;
		z->copy[z->lists] = fcntl(fd, F_DUPFD_CLOEXEC, 512);
		z->lists += z->copy[z->lists] >= 0;
	}
	return 0;
}

void zero_copy_keep(struct zero_copy *z)
{
	z->lists = 0;
	rte_memseg_walk(remember, z);
}

int zero_copy_restore(struct zero_copy *z, uint16_t id, uint64_t until_ns, const volatile sig_atomic_t *stop)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct rte_eth_link link = {0};

	while (rte_eth_link_get_nowait(id, &link) == 0 && link.link_status != RTE_ETH_LINK_UP &&
		clock_monotonic_ns() < until_ns && !*stop)
		nanosleep(&pause, NULL);
	// The driver says that the link is up after it closed them, in the same call.
	for (uint32_t i = 0; i < z->lists; i++) {
		if (fcntl(z->fd[i], F_GETFD) == -1 && errno == EBADF)
			dup2(z->copy[i], z->fd[i]);
		close(z->copy[i]);
	}
	z->lists = 0;
	return link.link_status == RTE_ETH_LINK_UP ? 0 : -1;
}
