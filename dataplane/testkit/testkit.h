// SPDX-License-Identifier: Apache-2.0
// Runs the whole graph in a test's own thread: no huge pages, no root, a clock that the test moves.
//
//   kit_start(NULL);                              // EAL and engine, once a program
//   kit_begin(); kit_port("a", API_ROLE_ACCESS); ...; kit_commit();
//   kit_send("a", frame, length); kit_run();
//   assert_int_equal(kit_count("c"), 1); kit_frame("c", 0)...
//   kit_balance();                                // in + originated = out + punted + held + dropped + merged
#ifndef TESTKIT_H
#define TESTKIT_H

#include "core/control.h"
#include "core/port.h"
#include "isthmus_api.h"

struct kit_frame {
	uint32_t length;
	uint8_t *bytes;
};

// Starts DPDK without huge pages and applies an ENGINE object (NULL: one worker, small limits). Aborts the test program
// with a message when that fails.
void kit_start(const struct api_engine *engine);
struct api_engine kit_engine(void); // the defaults, to be changed and given to kit_start

// One transaction. kit_commit returns 0 or the errno, with the reason in kit_error().
void kit_begin(void);
void kit_put(uint32_t kind, const char *key, const void *body, uint32_t length);
void kit_delete(uint32_t kind, const char *key);
int kit_commit(void);
int kit_change(uint32_t kind, const char *key, const void *body, uint32_t length); // all three, of one object
const char *kit_error(void);
const struct api_status *kit_status(void); // of the last commit

// A request of one struct, as from the socket; part 0: of none.
struct reply_sink;
void kit_request(struct reply_sink *sink, uint16_t type, uint16_t part, const void *body, uint32_t size);

// Common objects. MAC of port i in order of creation: 02:00:00:00:99:0i.
void kit_port(const char *name, uint32_t role);
void kit_interface(
	const char *name, const char *port, const char *address4, const char *address6); // "10.0.0.1/24", or NULL
void kit_neighbour(const char *interface, const char *address, const uint8_t mac[6]);
void kit_path(const char *name, const char *local, const char *peer);
struct api_address kit_address(const char *text); // "10.0.0.0/8", "2001:db8::1"
// NAT44 from one prefix to another, blocks of 64 ports, 4 per subscriber; times of RFC 4787 and 5382.
struct api_nat kit_nat(const char *inside, const char *outside);

// A subscriber: endpoint, UE addresses (or NULL), local and peer TEID. Change the session before kit_put_session.
struct kit_session {
	struct api_session s;
	struct api_pdr pdr[2];
	struct api_far far[2];
	struct api_qer qer[2];
};
struct kit_session kit_session(const char *port, const uint8_t mac[6], uint16_t s_tag, uint16_t c_tag, uint16_t pppoe,
	const char *ue4, const char *ue6, const char *path, uint32_t teid);
void kit_put_session(const char *name, const struct kit_session *k);

// Packets. kit_send returns 0 or an errno; kit_run walks until nothing moves; kit_advance moves the clock (and runs).
int kit_send(const char *port, const void *frame, uint32_t length);
void kit_run(void);
void kit_advance(uint64_t microseconds);
void kit_step(int64_t microseconds); // the TSC jumps: no time goes by
uint32_t kit_count(const char *port); // frames that left since kit_clear
const struct kit_frame *kit_frame(const char *port, uint32_t i);
void kit_clear(void);

// Counters since start.
uint64_t kit_reason(const char *name); // of a drop or punt reason; an unknown name fails the test
uint64_t kit_reason_of(uint16_t reason);
struct api_total_row kit_totals(void);
int kit_balance(void); // 1 when the sum holds
uint32_t kit_buffers_in_use(void);
// Rows of a table (enum api_table), good until the next call; key "" for all.
const void *kit_rows(uint32_t table, const char *key, uint32_t row_length, uint32_t *count);
// Calls fn for objects in a range, ascending; returns 1 when the limit cut the list.
int kit_list(const struct api_list *l, void (*fn)(const struct api_digest *d, void *arg), void *arg);
// One poll of a trace, with its rows to fn. Returns 0 or the errno.
int kit_trace_poll(uint32_t trace, int stop, void (*fn)(const struct api_trace_row *row), struct api_trace_state *to);
struct api_session_row kit_session_row(const char *name); // fails the test when there is no such session
// Packets that reached a graph node, of all workers; an unknown node fails the test.
uint64_t kit_node_packets(const char *node);
// Adds (sign 1) or subtracts (-1) all counters, as words of 8 bytes: reasons, totals (enum kit_total), rows of ports,
// rules, instances, access lists and paths. Other fields cancel out. `most`: the room. Returns how many words.
enum kit_total { KIT_IN, KIT_ORIGINATED, KIT_OUT, KIT_PUNTED, KIT_DROPPED, KIT_MERGED, KIT_HELD, KIT_TOTALS };
uint32_t kit_count_words(uint64_t *words, uint32_t most, uint64_t sign);
void kit_print(void); // all counters that are not 0, for a test that failed

#endif
