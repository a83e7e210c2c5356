// SPDX-License-Identifier: Apache-2.0
// Path management (TS 29.281 §7.2.1, TS 23.007 §20): Echo Requests, repeated after T3-RESPONSE. After N3-REQUESTS
// unanswered ones a path is down until its peer answers.
#include "core/control.h"
#include "core/event.h"
#include "core/node.h"
#include "path/path.h"
#include <string.h>

#define NS 1000000000ull
#define T3_RESPONSE (3 * NS)
#define N3_REQUESTS 3
#define TICK_MS 100
#define TICK_ECHOES 128 // in one tick; the workers' inboxes are finite

enum pending { PENDING_NOTHING, PENDING_DOWN, PENDING_UP, PENDING_RESTARTED }; // events that were not accepted yet

struct echo {
	uint64_t next_ns; // of the next request that is no repetition
	uint64_t retry_ns;
	uint16_t sequence;
	uint8_t tries; // of the outstanding request; 0: none
	uint8_t down;
	uint8_t recovery, has_recovery; // the peer's restart counter
	uint8_t pending;
};

static struct {
	struct echo echo[GTPU_MAX_PATHS];
	uint32_t at; // where the next tick begins
} supervision;

void path_supervise(uint32_t index, int anew)
{
	struct echo *e = &supervision.echo[index];

	if (anew)
		memset(e, 0, sizeof(*e));
	e->next_ns = 0; // at once
}

int path_alive(uint32_t index)
{
	return !supervision.echo[index].down;
}

uint32_t path_recovery(uint32_t index)
{
	return supervision.echo[index].recovery;
}

static void send_echo(const struct path *p, uint16_t sequence)
{
	struct rte_mbuf *m = control_originate();
	uint32_t ip = path_ip_length(p);

	if (m == NULL)
		return;
	uint8_t *h = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(ip + 8 + GTPU_MESSAGE_MAX));
	unsigned n = gtpu_put_echo_request(h + ip + 8, sequence);
	rte_pktmbuf_trim(m, (uint16_t)(GTPU_MESSAGE_MAX - n));
	memcpy(h, path_header(p, 0), ip + 8);
	path_finish_outer(m, path_vrf(p), p->outer.version, ip + 8 + n);
	path_counters_of(p->index, API_MAX_WORKERS)->echo_sent++;
	control_inject(0, "ip-output", m);
}

// An event that finds the queue full is raised again, if it is still true then.
static void raise_pending(const struct path *p, struct echo *e)
{
	struct api_event event = {
		.type = e->pending == PENDING_DOWN ? API_EVENT_PATH_DOWN : API_EVENT_PATH_UP,
		.rule = e->pending == PENDING_RESTARTED,
		.local = p->want.local,
		.peer = p->want.peer,
	};

	if (e->pending != PENDING_NOTHING && event_try(&event) == 0)
		e->pending = PENDING_NOTHING;
}

static int supervise(const struct path *p, struct echo *e, uint64_t now_ns)
{
	if (e->tries == 0) {
		if (now_ns < e->next_ns)
			return 0;
		e->sequence++;
		e->next_ns = now_ns + p->want.echo_interval * NS;
	} else if (now_ns < e->retry_ns) {
		return 0;
	} else if (e->tries == N3_REQUESTS) {
		e->tries = 0;
		if (!e->down)
			e->pending = PENDING_DOWN;
		e->down = 1;
		return 0;
	}
	e->tries++;
	e->retry_ns = now_ns + T3_RESPONSE;
	send_echo(p, e->sequence);
	return 1;
}

static void tick(uint64_t now_ns)
{
	uint32_t count = path_count(), sent = 0;

	for (uint32_t n = 0; n < count && sent < TICK_ECHOES; n++) {
		uint32_t i = supervision.at >= count ? 0 : supervision.at;
		const struct path *p = path_table[i];
		struct echo *e = &supervision.echo[i];

		supervision.at = i + 1;
		if (p == NULL)
			continue;
		if (p->want.echo_interval != 0)
			sent += (uint32_t)supervise(p, e, now_ns);
		else if (e->tries != 0 || e->down)
			path_supervise(i, 1);
		raise_pending(p, e);
	}
}

void path_answered(uint32_t index, uint16_t sequence, int recovery)
{
	struct echo *e = &supervision.echo[index];
	const struct path *p = path_table[index];

	if (p == NULL || sequence != e->sequence)
		return; // answers nothing that we asked
	// TS 29.281 §8.2: most peers always send 0; a peer that counts its restarts is believed.
	int restarted = recovery >= 0 && e->has_recovery && e->recovery != recovery;

	e->tries = 0;
	if (e->down || restarted)
		e->pending = restarted ? PENDING_RESTARTED : PENDING_UP;
	e->down = 0;
	if (recovery >= 0) {
		e->has_recovery = 1;
		e->recovery = (uint8_t)recovery;
	}
	raise_pending(p, e);
}

RTE_INIT(supervision_module)
{
	timer_register(TICK_MS, tick);
}
