// SPDX-License-Identifier: Apache-2.0
// The sessions that a trace is about.
#ifndef TRACE_SESSIONS_H
#define TRACE_SESSIONS_H

#include "isthmus_api.h"

// Takes the sessions that have one of the keys from the fast path. Returns 1 when each key is some session's. Returns 0
// also when it needs more than `most` comparisons, which would block the control thread: the trace then looks at
// frames. Control thread.
int sessions_withdraw(const struct api_trace_key *key, uint32_t keys, uint64_t most);

#endif
