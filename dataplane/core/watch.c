// SPDX-License-Identifier: Apache-2.0
// Which descriptors a worker sleeps on.
#include "core/watch.h"
#include <stdlib.h>
#include <sys/socket.h>

#define VAIN_MAX (WATCH_VAIN_FREE + 16)

struct watch *watch_new(uint32_t queues)
{
	struct watch *w = calloc(1, sizeof(*w) + queues * sizeof(w->known[0]));

	if (w != NULL)
		w->count = 1;
	return w;
}

void watch_judge(struct watch *w, bool brought)
{
	for (uint32_t i = 1; w->slept && i < w->count; i++) {
		uint8_t *vain = &w->known[w->queue[i]].vain;

		*vain = w->poll[i].revents == 0 || brought ? 0 : (uint8_t)RTE_MIN(*vain + 1u, VAIN_MAX);
	}
	w->count = 1;
	w->slept = false;
}

uint64_t watch_add(struct watch *w, uint16_t queue, int fd)
{
	uint32_t vain = w->known[queue].vain;

	if (fd < 0 || w->count > WATCHED_MAX)
		return POLLED_NS;
	w->known[queue].left_out = vain >= WATCH_VAIN_FREE && !w->known[queue].left_out;
	if (w->known[queue].left_out)
		return (uint64_t)POLLED_NS << (vain - WATCH_VAIN_FREE);
	w->poll[w->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	w->queue[w->count++] = queue;
	return UINT64_MAX;
}

void watch_sleep(struct watch *w, struct sleeper *s, uint64_t ns)
{
	int error;
	socklen_t n = sizeof(error);

	w->slept = true;
	sleeper_sleep(s, w->poll, w->count, ns);
	// A socket reports its error, such as an interface that went down, until it is read. Other descriptors keep
	// theirs.
	for (uint32_t i = 1; i < w->count; i++)
		if (w->poll[i].revents & POLLERR)
			getsockopt(w->poll[i].fd, SOL_SOCKET, SO_ERROR, &error, &n);
}
