// SPDX-License-Identifier: Apache-2.0
// Sessions' settings of LCP echo, and events of silent subscribers. Control thread.
#include "lcp/lcp.h"
#include "core/control.h"
#include "core/event.h"
#include "core/object.h"
#include "rule/session.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>

#define COUNT 3 // what lcp_count 0 means
#define NEWS_MS 100
#define EVENTS_PER_VISIT 4096u
#define LOOKS_PER_VISIT (1u << 20)

struct lcp_table lcp_table;

int lcp_check(const struct api_session *want, const char *name)
{
	if (want->lcp_opened > 1)
		return object_error(EINVAL, "session %s: LCP is open or not, not %u", name, want->lcp_opened);
	if ((want->lcp_opened || want->lcp_magic != 0 || want->lcp_interval != 0) &&
		want->encap != API_ENCAP_QINQ_PPPOE)
		return object_error(EINVAL, "session %s has LCP and no PPPoE", name);
	return 0;
}

static uint16_t interval_of(const struct api_session *s)
{
	return s != NULL && s->lcp_opened ? s->lcp_interval : 0;
}

// Spreads the requests of sessions that begin together over their interval.
static void begin(struct lcp *l, uint32_t session, uint32_t now)
{
	uint32_t part = session * 0x9e3779b1u >> 16;

	l->due = now + 1 + (uint32_t)((uint64_t)part * l->interval * LCP_TICKS >> 16);
	l->waiting = l->state = 0;
	l->sent = l->heard = now;
}

void lcp_session(uint32_t session, const struct api_session *want, const struct api_session *old)
{
	struct lcp *l = &lcp_table.of[session];
	uint16_t interval = interval_of(want), before = interval_of(old);

	lcp_table.keepers += (interval != 0) - (before != 0);
	if (want == NULL) {
		__atomic_store_n(&l->opened, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&l->interval, 0, __ATOMIC_RELEASE);
		return;
	}
	l->magic = want->lcp_magic;
	l->count = want->lcp_count ? want->lcp_count : COUNT;
	l->worker = (uint8_t)want->worker;
	__atomic_store_n(&l->interval, interval, __ATOMIC_RELEASE);
	if (interval != before || old == NULL || want->lcp_magic != old->lcp_magic ||
		want->pppoe_session != old->pppoe_session)
		begin(l, session, lcp_clock(worker_get(want->worker)));
	__atomic_store_n(&l->opened, want->lcp_opened, __ATOMIC_RELEASE);
}

// Returns 0 when the event has to wait.
static int tell(uint32_t session, struct lcp *l)
{
	struct api_event e = {.type = API_EVENT_LCP_DOWN};
	uint8_t silent = LCP_SILENT;

	if (!session_identity(session, e.session, &e.seid))
		return 1;
	if (event_try(&e) != 0)
		return 0;
	// An echo may have come meanwhile.
	__atomic_compare_exchange_n(&l->state, &silent, LCP_TOLD, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return 1;
}

static void look(uint64_t now_ns)
{
	static uint32_t next, left; // where the look goes on; sessions that it has still to see
	uint32_t told = 0;

	if (__atomic_exchange_n(&lcp_table.news, 0, __ATOMIC_ACQUIRE))
		left = lcp_table.sessions;
	for (uint32_t n = RTE_MIN(left, LOOKS_PER_VISIT); n > 0; n--) {
		struct lcp *l = &lcp_table.of[next];

		if (__atomic_load_n(&l->state, __ATOMIC_RELAXED) == LCP_SILENT && l->opened &&
			(told++ >= EVENTS_PER_VISIT || !tell(next, l)))
			return; // later
		next = next + 1 < lcp_table.sessions ? next + 1 : 0;
		left--;
	}
}

static int start(const struct api_engine *e)
{
	lcp_table.of = rte_zmalloc("lcp", e->max_sessions * sizeof(struct lcp), CACHE_LINE);
	if (lcp_table.of == NULL)
		return object_error(ENOMEM, "no memory for LCP echo of %u sessions", e->max_sessions);
	lcp_table.sessions = e->max_sessions;
	return 0;
}

RTE_INIT(lcp_module)
{
	module_register(start);
	timer_register(NEWS_MS, look);
}
