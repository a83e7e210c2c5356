// SPDX-License-Identifier: Apache-2.0
// Events: reports that the control plane gets without a request (api_event), and notices from workers to the control
// thread.
//
// The queue holds events until they are acknowledged; a slow subscriber gets them later. A full queue refuses usage
// reports, which their reporter keeps, and suppresses other kinds, which MISSED counts.
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "isthmus_api.h"
#include <stdint.h>

struct reply_sink;
struct worker;

// To the control plane (control thread).

// Copies *e; fills sequence and boot_id. Returns 0. ENOSPC: a usage report found the queue full; keep the counts and
// try again. EAGAIN: another kind was suppressed by the queue's limit or by engine.event_rate.
int event_raise(const struct api_event *e);
// The same for a caller that retries until the event is accepted: a refusal does not count as suppressed.
int event_try(const struct api_event *e);
// A report for the running commit's reply (removed and queried URRs; from release()). The row precedes the commit's
// status. Returns 0, or ENOMEM.
int event_commit_usage(const struct api_usage *u);

// From workers to the control thread.

// fn is called on the control thread, within about a millisecond, for each notice that a worker sends under the
// returned number. A worker's ring holds EVENT_RING notices. A notice that finds it full is counted and lost; `lost`
// (may be NULL) is then called after the ring was drained, and must find out from the state itself. From constructors
// only.
#define EVENT_RING 4096u
uint16_t event_notice_register(void (*fn)(uint32_t worker, uint32_t index, uint64_t argument), void (*lost)(void));
// Worker, inside a node. Returns 0, or -1 when the ring is full.
int event_notify(struct worker *w, uint16_t number, uint32_t index, uint64_t argument);

// CLOCK_REALTIME in ns. Replay and tests: their own clock, from 2024-01-01T00:00:00Z on.
uint64_t event_realtime_ns(void);
// How long ago worker.now was that, ns.
uint64_t event_age_ns(uint64_t ticks);
// CLOCK_REALTIME of a reading of worker.now, which lies in the past.
uint64_t event_realtime_of(uint64_t ticks);
// CLOCK_REALTIME when this process was first asked; a number that no other life of it has.
uint64_t engine_start_ns(void);
uint64_t engine_boot_id(void);

// Of core: requests of a subscriber, and the reports that the reply of a commit carries
void event_subscribe(struct reply_sink *sink, const struct api_header *h);
void event_acknowledge(const struct reply_sink *sink, uint64_t sequence);
void event_client_gone(uint32_t owner);
void event_commit_begin(void);
const struct api_usage *event_commit_rows(uint32_t *count);
struct api_usage *event_commit_take(uint32_t *count); // the same, the caller's from now on; NULL: none
void event_commit_unsent(const struct api_usage *row, uint32_t count); // the client is gone: they become events

#endif
