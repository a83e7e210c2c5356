// SPDX-License-Identifier: Apache-2.0
// Sleeping in ppoll(), with an eventfd for wake-ups.
#include "core/sleeper.h"
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND 1000000000u

int sleeper_open(struct sleeper *s)
{
	s->listening = 0;
	s->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return s->event < 0 ? -1 : 0;
}

void sleeper_close(struct sleeper *s)
{
	close(s->event);
}

void sleeper_sleep(struct sleeper *s, struct pollfd *fds, uint32_t n, uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_SECOND), .tv_nsec = (long)(ns % NS_PER_SECOND)};
	uint64_t rung;

	fds[0] = (struct pollfd){.fd = s->event, .events = POLLIN};
	// A signal ends the sleep as time does.
	if (ppoll(fds, n, &t, NULL) > 0 && fds[0].revents != 0 && read(s->event, &rung, sizeof(rung)) < 0)
		return; // a spurious one: nothing to clear
}

void sleeper_ring(struct sleeper *s)
{
	const uint64_t one = 1;

	// Cannot fill the counter: only who clears the flag writes.
	if (__atomic_exchange_n(&s->listening, 0, __ATOMIC_SEQ_CST) && write(s->event, &one, sizeof(one)) < 0)
		return;
}
