// SPDX-License-Identifier: Apache-2.0
// The engine's task: a checked job with compiled stacks.
#ifndef TRAFFIC_WORK_H
#define TRAFFIC_WORK_H

#include "traffic/wire/stack.h"

#define FRAME_MIN 64 // bytes with FCS
#define FRAME_MAX 9216

struct work_stream {
	struct job_stream job;
	struct template send, receive; // compiled; `receive` of zeros where anything may arrive
};

struct work {
	struct job job;
	struct job_port port[JOB_PORTS];
	struct work_stream *stream; // allocated
};

struct work_faults {
	uint32_t n;
	struct job_fault fault[JOB_FAULTS]; // the first of them
};

#define WORK_BYTES                                                                                                     \
	(sizeof(struct job) + JOB_PORTS * sizeof(struct job_port) +                                                    \
		JOB_STREAMS * (sizeof(struct job_stream) + 2 * sizeof(struct stack)))

// Checks and compiles the `n` bytes of a job (job.h). NULL, with a sentence in `error`, when they are no job of this
// version within its bounds. A wrong stack or packet size is a fault; work with a fault may only be freed by
// work_free().
struct work *work_parse(const uint8_t *bytes, size_t n, struct work_faults *faults, char *error, size_t room);
void work_free(struct work *w);

#endif
