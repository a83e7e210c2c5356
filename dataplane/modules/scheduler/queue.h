// SPDX-License-Identifier: Apache-2.0
// Inside of the scheduler module: the class and queue of a packet.
#ifndef SCHEDULER_QUEUE_H
#define SCHEDULER_QUEUE_H

#include "rule/view.h"
#include "scheduler/instance.h"

// The QFI decides the class if the operator configured it, else the DSCP: class << 2 | queue.
static inline uint8_t scheduler_class_of(const struct scheduler *s, const struct session_view *v)
{
	uint8_t by_qfi = v->qfi < 64 ? s->want.qfi_class[v->qfi] : 0xff;

	return by_qfi != 0xff ? by_qfi : s->want.dscp_class[v->dscp & 63];
}

#endif
