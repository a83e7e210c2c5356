// SPDX-License-Identifier: Apache-2.0
#ifndef HOST_LIMIT_H
#define HOST_LIMIT_H

#include <stdint.h>

enum limit_level { LIMIT_LINE, LIMIT_S_TAG, LIMIT_PORT, LIMIT_SUBSCRIBER, LIMIT_LEVELS }; // as they are asked

struct worker;
// A packet of the worker with this punt reason is over a limit; for `show channel` (channel_up.c).
void host_count_limited(struct worker *w, uint16_t reason, enum limit_level level);

#endif
