// SPDX-License-Identifier: Apache-2.0
// The workers' part at marks, and for rare URRs.
#include "core/control.h"
#include "core/event.h"
#include "core/node.h"
#include "usage/urr.h"

DROP_REASON(drop_quota, "usage-quota",
	"a quota of a URR is used up (TS 29.244 §5.2.2.2). See show rule, column GATE; show urr")

struct usage_pools usage_pools;
struct usage_table usage_table;

// Each bit of a URR has at most one notice in flight.
static void raise_news(struct worker *w, uint32_t index, uint32_t bits, int tell)
{
	struct usage_limits *l = &usage_table.limits[index];

	if ((__atomic_fetch_or(&l->raised, bits, __ATOMIC_ACQ_REL) & bits) != bits && tell)
		event_notify(w, usage_table.news, index, 0); // when the ring is full, the sweep finds `raised`
}

// Counts in the order of API_TOTAL, API_UPLINK, API_DOWNLINK.
static void volumes(const struct usage_state *u, uint64_t to[3])
{
	to[API_UPLINK] = u->bytes[0];
	to[API_DOWNLINK] = u->bytes[1];
	to[API_TOTAL] = u->bytes[0] + u->bytes[1];
}

// A used-up quota of one direction stops both, as it stops the URR.
static int used_up(const struct usage_limits *l, const uint64_t have[3])
{
	return have[API_TOTAL] >= l->quota[API_TOTAL] || have[API_UPLINK] >= l->quota[API_UPLINK] ||
	       have[API_DOWNLINK] >= l->quota[API_DOWNLINK];
}

int usage_blocked(uint32_t index)
{
	const struct usage_limits *l = &usage_table.limits[index];
	uint64_t have[3];

	usage_recall(index);
	volumes(&usage_pools.state[index], have);
	return l->stopped || used_up(l, have);
}

void usage_marks(const struct usage_state *u, const struct usage_limits *l, uint64_t to[3])
{
	uint64_t have[3];

	volumes(u, have);
	int decide = l->stopped || used_up(l, have) || l->asked != l->answered;
	for (int i = 0; i < 3; i++) {
		uint64_t mark = USAGE_NO_LIMIT;

		if (l->threshold[i] > have[i])
			mark = l->threshold[i];
		if (decide && i == API_TOTAL)
			mark = 0;
		to[i] = RTE_MIN(mark, l->quota[i]);
	}
}

void usage_set_marks(uint32_t index, uint32_t version)
{
	struct usage_state *u = &usage_pools.state[index];
	uint64_t mark[3];

	usage_marks(u, &usage_table.limits[index], mark);
	for (int i = 0; i < 3; i++)
		__atomic_store_n(&u->mark[i], mark[i], __ATOMIC_RELAXED);
	// The control thread changes limits, then the version, then the mark to 0: whichever thread writes the mark
	// last, no old limits' mark stays.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&usage_table.limits[index].version, __ATOMIC_RELAXED) != version)
		__atomic_store_n(&u->mark[API_TOTAL], 0, __ATOMIC_RELAXED);
}

void usage_add(struct worker *w, uint32_t index, uint32_t length, int uplink)
{
	struct usage_state *u = &usage_pools.state[index];
	struct usage_limits *l = &usage_table.limits[index];
	uint32_t version = __atomic_load_n(&l->version, __ATOMIC_ACQUIRE), asked = l->asked, news = 0;
	uint64_t have[3];
	int tell = 0;

	usage_recall(index);
	u->bytes[!uplink] += length;
	u->packets[!uplink]++;
	u->last = w->now;
	volumes(u, have);
	for (int i = 0; i < 3; i++)
		if (have[i] >= l->threshold[i] || have[i] >= l->quota[i])
			news |= USAGE_RAISED_LIMIT;
	tell = news != 0;
	if (asked != l->answered) {
		l->first = w->now;
		l->answered = asked;
		news |= USAGE_RAISED_FIRST;
		tell |= l->tell_first;
	}
	usage_set_marks(index, version);
	if (news != 0)
		raise_news(w, index, news, tell);
}

int usage_slow(struct worker *w, uint32_t index, uint32_t length, int uplink)
{
	// TS 29.244 §5.2.2.2: traffic stops when the quota is used up. The packet that reaches it passes and counts, so
	// reported usage may exceed the quota by less than a packet.
	if (usage_blocked(index))
		return 0;
	usage_add(w, index, length, uplink);
	return 1;
}

// ---- before QoS enforcement (MBQE, TS 29.244 §8.2.68) ---------------------------------------------------------------

int usage_measures_before_qos(uint32_t index)
{
	return usage_table.limits[index].before_qos;
}

// ---- rules ----------------------------------------------------------------------------------------------------------

int usage_rule_blocked(const struct rule *r)
{
	const struct rule_further *m = rule_further_of(r);

	if (r->urr != RULE_NONE && usage_blocked(r->urr))
		return 1;
	for (uint8_t i = 0; i < m->urrs; i++)
		if (usage_blocked(m->urr[i]))
			return 1;
	return 0;
}

// Counts, whatever the quotas.
static void add(struct worker *w, uint32_t index, uint32_t length, int uplink)
{
	uint64_t after = usage_look(&usage_pools.state[index], length, uplink);

	if (likely(after != 0))
		usage_note(w, &usage_pools.state[index], after, uplink);
	else
		usage_add(w, index, length, uplink);
}

void usage_rule_add(struct worker *w, const struct rule *r, uint32_t length, int uplink, int before_qos)
{
	const struct rule_further *m = rule_further_of(r);

	if (r->urr != RULE_NONE && !before_qos)
		add(w, r->urr, length, uplink);
	for (uint8_t i = 0; i < m->urrs; i++)
		if (usage_measures_before_qos(m->urr[i]) == before_qos)
			add(w, m->urr[i], length, uplink);
}

const struct reason *usage_quota_reason(void)
{
	return &drop_quota;
}

void usage_before_qos(struct worker *w, const struct rule *r, uint32_t length)
{
	const struct rule_further *m = rule_further_of(r);
	int uplink = (r->flags & RULE_UPLINK) != 0;

	if (!(r->flags & RULE_FURTHER_METERS))
		return;
	for (uint8_t i = 0; i < m->urrs; i++)
		if (usage_measures_before_qos(m->urr[i]) && !usage_blocked(m->urr[i]))
			usage_add(w, m->urr[i], length, uplink);
}

// ---- dropped downlink traffic (TS 29.244 §8.2.49) -------------------------------------------------------------------

static void add_dropped(struct worker *w, uint32_t index, uint32_t packets, uint64_t bytes)
{
	struct usage_limits *l = &usage_table.limits[index];

	if ((l->drop_mark[0] & l->drop_mark[1]) == USAGE_NO_LIMIT)
		return;
	// Atomic: of a session's buffer the control thread drops, too.
	uint64_t p = __atomic_add_fetch(&l->dropped[0], packets, __ATOMIC_RELAXED);
	uint64_t b = __atomic_add_fetch(&l->dropped[1], bytes, __ATOMIC_RELAXED);
	if (p < l->drop_mark[0] && b < l->drop_mark[1])
		return;
	if (w != worker_any(worker_count()))
		raise_news(w, index, USAGE_RAISED_DROPPED, 1);
	else if (usage_table.urr[index] != NULL)
		urr_look(usage_table.urr[index], control_now_ns());
}

void usage_dropped(const struct rule *r, uint32_t packets, uint64_t bytes)
{
	struct worker *w = worker_self();

	if (likely(r->worker == w->id))
		rule_account_of(r)->dropped += packets;
	if (r->flags & RULE_UPLINK)
		return;
	if (r->urr != RULE_NONE)
		add_dropped(w, r->urr, packets, bytes);
	if (r->flags & RULE_FURTHER_METERS) {
		const struct rule_further *m = rule_further_of(r);

		for (uint8_t i = 0; i < m->urrs; i++)
			add_dropped(w, m->urr[i], packets, bytes);
	}
}
