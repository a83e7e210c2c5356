// SPDX-License-Identifier: Apache-2.0
// LCP echo of PPPoE subscribers (RFC 1661 §5.8): answers, requests, silent subscribers.
//
//   Written by: the control thread (the session's settings); the owner worker (sent, waiting); any worker (heard,
//   answers).
//   Safe because: single aligned fields, each valid by itself; a place gets another session after a grace period
#ifndef LCP_LCP_H
#define LCP_LCP_H

#include "core/worker.h"
#include "isthmus_api.h"

#define LCP_TICKS 16u // of lcp_clock(), a second
#define LCP_ANSWERS 10u // Echo-Requests of one subscriber that are answered in a second

enum { LCP_ALIVE, LCP_SILENT, LCP_TOLD }; // no answer; and the control plane knows

// Of a session, by its index.
struct lcp {
	uint32_t magic; // ours, host order; 0: none
	uint16_t interval; // seconds; 0: no requests are sent
	uint8_t count; // of requests without an answer
	uint8_t opened; // 1: echoes are ours; else the control plane's
	uint8_t worker;
	uint8_t waiting; // requests since the last answer
	uint8_t state; // LCP_*
	uint8_t identifier; // of the last request
	uint32_t due, sent, heard; // lcp_clock(): the next request, the last one, the last echo
	uint32_t answered; // second of lcp_clock() << 8 | answers in it
};

struct lcp_table {
	struct lcp *of; // by index of session
	uint32_t sessions; // capacity
	uint32_t keepers; // sessions with an interval; control thread
	uint32_t news; // some session is LCP_SILENT
};
extern struct lcp_table lcp_table;

static inline uint32_t lcp_clock(const struct worker *w)
{
	return (uint32_t)(w->now / (w->tsc_hz / LCP_TICKS));
}

// a is not before b.
static inline int lcp_reached(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

// Echoes of the session (its index) are answered by the data plane: LCP is open (RFC 1661 §5.8). Workers, within a
// walk.
static inline int lcp_is_open(uint32_t session)
{
	return session < lcp_table.sessions && __atomic_load_n(&lcp_table.of[session].opened, __ATOMIC_ACQUIRE);
}

// A session object is in force, in place of `old` or NULL; `want` NULL: deleted. Control thread, at a commit.
void lcp_session(uint32_t session, const struct api_session *want, const struct api_session *old);
// Refuses invalid settings. 0, or EINVAL after object_error().
int lcp_check(const struct api_session *want, const char *name);

#endif
