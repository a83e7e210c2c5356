// SPDX-License-Identifier: Apache-2.0
// A valid job for the test and the fuzz target of work.c: two ports, a stream and its answer.
#ifndef TRAFFIC_WORK_KIT_H
#define TRAFFIC_WORK_KIT_H

#include "traffic/engine/work.h"
#include "traffic/wire/stack_kit.h"

struct work_kit {
	struct job job;
	struct job_port port[2];
	struct {
		struct job_stream job;
		struct stack stack[2];
	} stream[2];
};

static inline void work_kit(struct work_kit *k)
{
	memset(k, 0, sizeof(*k));
	k->job = (struct job){.number = JOB_VERSION,
		.bytes = sizeof(struct job) + sizeof(struct job_port) + sizeof(struct job_stream) +
			 sizeof(struct stack) + sizeof(struct trial) + sizeof(struct stream_count),
		.ports = 2,
		.streams = 2,
		.drain = 0.5,
		.link_wait = 1};
	for (uint32_t i = 0; i < 2; i++) {
		k->port[i] = (struct job_port){.driver = "net_ring", .mtu = 1500, .descriptors = 1024, .queues = 1};
		k->port[i].name[0] = (char)('a' + i);
		k->stream[i].job = (struct job_stream){.zipf = 1,
			.port = i,
			.sink = 1 - i,
			.answers = i ? 0 : -1,
			.share = i ? 0 : 1,
			.flows = 4,
			.block = 1,
			.sizes = 1,
			.size = {{128, 1}}};
		k->stream[i].job.name[0] = (char)('s' + i);
		for (uint32_t side = 0; side < 2; side++)
			kit_text(&k->stream[i].stack[side], "ethernet destination=2 source=4; ipv4 source=0x0a000001+1 "
							    "destination=0x0a000009; udp");
	}
}

#endif
