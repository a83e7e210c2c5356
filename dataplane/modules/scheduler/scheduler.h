// SPDX-License-Identifier: Apache-2.0
// The scheduler for the session module. Control thread.
#ifndef SCHEDULER_SCHEDULER_H
#define SCHEDULER_SCHEDULER_H

#include <stdint.h>

// 0 when the port has no scheduler, or when place and pipe profile exist after the open transaction and the subport
// belongs to the worker. Else a positive errno after object_error().
int scheduler_check_place(
	const char *port, const char *session, uint32_t worker, uint32_t subport, uint32_t pipe, const char *profile);
int scheduler_has_place(const char *port, uint32_t subport, uint32_t pipe);
// Gives the pipe its profile (by the worker that owns it, at its next walk). Nothing happens when the port has none.
void scheduler_pipe_profile(const char *port, uint32_t subport, uint32_t pipe, const char *profile);

#endif
