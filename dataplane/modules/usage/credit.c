// SPDX-License-Identifier: Apache-2.0
// Credits: the fast path counts a packet only in the rule's state, on a loan of its URRs. A loan never reaches a URR's
// mark, so the packet that reaches it takes the full nodes, as without credits. While a loan is out, the URR's mark is
// 0: a packet in the full nodes first settles the loans and then counts in the URR. A loan is of all URRs of the rule:
// each counts all use.
//
//   A loan is written by: the owner worker, through a rule in force whose URR it is. After the last such rule and a
//   grace period: the control thread (usage_return()).
//   Read by: the control thread, again when a version changed meanwhile
#include "core/control.h"
#include "rule/session.h"
#include "rule/tables.h"
#include "usage/urr.h"
#include <sched.h>

#define LOAN_MAX (1u << 28)
#define LOAN_PART 4u // of what is left until the next mark: others of the URR's rules want some, too

// ---- one loan -------------------------------------------------------------------------------------------------------

static struct lenders lenders_of(const struct rule *r)
{
	struct lenders l = {{[0 ... API_PDR_URRS - 1] = RULE_NONE}};
	const struct rule_further *f = rule_further_of(r);
	uint8_t n = 0;

	if (r->urr != RULE_NONE)
		l.urr[n++] = r->urr;
	for (uint8_t i = 0; (r->flags & RULE_FURTHER_METERS) && i < f->urrs && n < API_PDR_URRS; i++)
		l.urr[n++] = f->urr[i];
	return l;
}

static int is_lender(const struct lenders *l, uint8_t i)
{
	return i < API_PDR_URRS && l->urr[i] != RULE_NONE;
}

static int have_equal(const struct lenders *a, const struct lenders *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

// 1 when the state has a loan of the rule's URRs, one of which is `index`.
static int has_loan(const struct rule *r, uint32_t index)
{
	const struct rule_account *a = rule_account_of(r);
	const struct lenders l = lenders_of(r);
	int has = 0;

	for (uint8_t i = 0; is_lender(&l, i); i++)
		has |= l.urr[i] == index;
	return has && __atomic_load_n(&a->loan, __ATOMIC_ACQUIRE) != 0 && have_equal(&a->of, &l);
}

int usage_has_loan_of(const struct rule *r)
{
	const struct rule_account *a = rule_account_of(r);
	const struct lenders l = lenders_of(r);
	uint32_t version, loan, turns = 0;
	struct lenders of;

	// The control thread reads it, too, and `of` is more than one word.
	do {
		if (++turns % RULE_TURNS == 0)
			sched_yield(); // the worker may wait for this CPU
		version = __atomic_load_n(&a->version, __ATOMIC_ACQUIRE);
		loan = __atomic_load_n(&a->loan, __ATOMIC_ACQUIRE);
		of = a->of;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((version & 1) != 0 || __atomic_load_n(&a->version, __ATOMIC_RELAXED) != version);
	return loan == 0 || !is_lender(&of, 0) || have_equal(&of, &l);
}

// Moves the fast path's use from the loan to the account.
static void settle(struct rule_account *a, struct rule_state *s)
{
	struct rule_counts used = {.packets = s->taken, .bytes = a->loan - s->credit};

	__atomic_store_n(&a->version, a->version + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&a->forwarded.packets, a->forwarded.packets + used.packets, __ATOMIC_RELAXED);
	__atomic_store_n(&a->forwarded.bytes, a->forwarded.bytes + used.bytes, __ATOMIC_RELAXED);
	for (uint8_t i = 0; a->loan != 0 && is_lender(&a->of, i); i++) {
		struct usage_state *u = &usage_pools.state[a->of.urr[i]];

		u->packets[!a->uplink] += used.packets;
		u->bytes[!a->uplink] += used.bytes;
		u->last = used.packets != 0 ? RTE_MAX(u->last, rule_state_last(s)) : u->last;
		usage_table.limits[a->of.urr[i]].lent -= used.bytes;
	}
	if (action_counts6(&s->action)) {
		__atomic_store_n(&a->six.packets, a->six.packets + s->packets6, __ATOMIC_RELAXED);
		__atomic_store_n(&a->six.bytes, a->six.bytes + s->bytes6, __ATOMIC_RELAXED);
		__atomic_store_n(&s->packets6, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&s->bytes6, 0, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&s->taken, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&a->loan, s->credit, __ATOMIC_RELAXED);
	__atomic_store_n(&a->version, a->version + 1, __ATOMIC_RELEASE);
}

// Sets the loan to `bytes`. An existing loan is settled and has the same lenders.
static void lend(struct rule_account *a, struct rule_state *s, struct lenders of, int uplink, uint32_t bytes)
{
	uint64_t more = (uint64_t)bytes - a->loan;

	__atomic_store_n(&a->version, a->version + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	// Behind a loan of nothing its lenders may be another worker's.
	for (uint8_t i = 0; more != 0 && is_lender(&of, i); i++)
		usage_table.limits[of.urr[i]].lent += more;
	a->of = of;
	a->uplink = uplink != 0;
	__atomic_store_n(&s->credit, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&a->loan, bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&a->version, a->version + 1, __ATOMIC_RELEASE);
}

static void take_back(struct rule_account *a, struct rule_state *s)
{
	settle(a, s);
	lend(a, s, a->of, a->uplink, 0);
}

// ---- all loans of a URR ---------------------------------------------------------------------------------------------

static void take_back_all(uint32_t index)
{
	struct usage_limits *l = &usage_table.limits[index];
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(l->session, i)) != NULL; i++)
		if (has_loan(r, index))
			take_back(rule_account_of(r), rule_state_of(r));
	l->lent = 0; // what the control thread returned (usage_return()), too
}

void usage_recall(uint32_t index)
{
	struct usage_limits *l = &usage_table.limits[index];

	if (l->lent == 0)
		return;
	uint32_t version = __atomic_load_n(&l->version, __ATOMIC_ACQUIRE);

	take_back_all(index);
	usage_set_marks(index, version);
}

// How many bytes more the URR may count until something is to be decided. 0: at once.
static uint64_t room_of(const struct usage_state *u, const struct usage_limits *l, int uplink)
{
	uint64_t mark[3], total = u->bytes[0] + u->bytes[1], have = u->bytes[!uplink];

	usage_marks(u, l, mark);
	uint64_t of_all = mark[API_TOTAL] > total ? mark[API_TOTAL] - total : 0;
	uint64_t of_way = mark[API_UPLINK + !uplink] > have ? mark[API_UPLINK + !uplink] - have : 0;
	return RTE_MIN(of_all, of_way);
}

// What the URR can lend for a packet of `length` bytes. 0: the packet reaches a mark, or is awaited.
static uint32_t offer_of(uint32_t index, uint32_t length, int uplink)
{
	const struct usage_state *u = &usage_pools.state[index];
	const struct usage_limits *l = &usage_table.limits[index];
	uint64_t room = room_of(u, l, uplink);

	if (room <= l->lent + length && l->lent != 0) {
		take_back_all(index);
		room = room_of(u, l, uplink);
	}
	if (room <= length)
		return 0;
	// A mark is not to be reached.
	return (uint32_t)RTE_MAX(RTE_MIN((room - 1 - l->lent) / LOAN_PART, LOAN_MAX), length);
}

// The lowest offer determines the loan.
static int borrow_of(struct rule_account *a, struct rule_state *s, struct lenders of, uint32_t length, int uplink)
{
	uint32_t version[API_PDR_URRS], bytes = UINT32_MAX;
	int current = 1;

	for (uint8_t i = 0; is_lender(&of, i); i++) {
		rte_prefetch0(&usage_pools.state[of.urr[i]]);
		rte_prefetch0(&usage_table.limits[of.urr[i]]);
		rte_prefetch0(&usage_table.limits[of.urr[i]].answered);
	}
	for (uint8_t i = 0; is_lender(&of, i); i++) {
		version[i] = __atomic_load_n(&usage_table.limits[of.urr[i]].version, __ATOMIC_ACQUIRE);
		uint32_t offer = offer_of(of.urr[i], length, uplink);

		if (offer == 0)
			return 0;
		bytes = RTE_MIN(bytes, offer);
	}
	for (uint8_t i = 0; is_lender(&of, i); i++)
		__atomic_store_n(&usage_pools.state[of.urr[i]].mark[API_TOTAL], 0, __ATOMIC_RELAXED);
	lend(a, s, of, uplink, bytes);
	// The control thread changes limits, then the version, then reads loans: one of the two threads sees the
	// other's write.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint8_t i = 0; is_lender(&of, i); i++)
		current &= __atomic_load_n(&usage_table.limits[of.urr[i]].version, __ATOMIC_RELAXED) == version[i];
	for (uint8_t i = 0; !current && is_lender(&of, i); i++)
		usage_recall(of.urr[i]);
	return current;
}

int usage_borrow(const struct rule *r, uint32_t length, int uplink)
{
	struct rule_account *a = rule_account_of(r);
	struct rule_state *s = rule_state_of(r);

	__atomic_fetch_and(&s->bits, ~RULE_STATE_LOOK, __ATOMIC_SEQ_CST);
	// Of a rule that is retired the URRs know no loan any more.
	if (unlikely((__atomic_load_n(&r->generation, __ATOMIC_RELAXED) & RULE_RETIRED) || !usage_has_loan_of(r)))
		return 0;
	take_back(a, s); // of another URR, or of none, before the rule changed
	return borrow_of(a, s, lenders_of(r), length, uplink);
}

int usage_may_pay(const struct rule *r, uint32_t length, int uplink)
{
	const struct rule_account *a = rule_account_of(r);
	const struct rule_state *s = rule_state_of(r);
	const struct lenders l = lenders_of(r);

	return a->loan != 0 && s->credit >= length && !(s->bits & RULE_STATE_LOOK) && a->uplink == (uplink != 0) &&
	       have_equal(&a->of, &l);
}

void usage_pay(struct worker *w, const struct rule *r, uint32_t length, uint8_t version)
{
	struct rule_account *a = rule_account_of(r);
	struct rule_state *s = rule_state_of(r);

	rule_state_pay(s, w->now, length, version);
	if (version == 6 && !action_counts6(&s->action)) {
		a->six.packets++;
		a->six.bytes += length;
	}
}

// ---- control thread -------------------------------------------------------------------------------------------------

static uint32_t versions_of(uint32_t session)
{
	uint32_t sum = 0;
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(session, i)) != NULL; i++) {
		uint32_t version = __atomic_load_n(&rule_account_of(r)->version, __ATOMIC_ACQUIRE);

		if (version & 1)
			return UINT32_MAX;
		sum += version;
	}
	return sum & (UINT32_MAX >> 1);
}

static void add_loans(struct usage_totals *t, uint32_t index, uint64_t *last)
{
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(usage_table.limits[index].session, i)) != NULL; i++) {
		const struct rule_account *a = rule_account_of(r);
		const struct rule_state *s = rule_state_of(r);
		uint32_t taken = __atomic_load_n(&s->taken, __ATOMIC_RELAXED);

		if (!has_loan(r, index) || taken == 0)
			continue;
		t->packets[!a->uplink] += taken;
		t->bytes[!a->uplink] += a->loan - __atomic_load_n(&s->credit, __ATOMIC_RELAXED);
		*last = RTE_MAX(*last, rule_state_last(s));
	}
}

// A URR of IPv6 alone counts nothing itself.
static struct usage_totals counted6(uint32_t index, uint64_t *last)
{
	struct usage_totals t = {0};
	const struct rule *r;

	*last = 0;
	for (uint16_t i = 0; (r = session_rule_at(usage_table.limits[index].session, i)) != NULL; i++) {
		if (session_pools.match[rule_index(r)].urr6 != index)
			continue;
		struct rule_counts c = rule_counted(r, 1);
		int down = !(r->flags & RULE_UPLINK);
		t.packets[down] += c.packets;
		t.bytes[down] += c.bytes;
	}
	return t;
}

void usage_counts6_move(uint32_t from, uint32_t to, const struct rule *r)
{
	struct rule_counts c = rule_counted(r, 1);
	int down = !(r->flags & RULE_UPLINK);

	if (from != RULE_NONE && usage_table.urr[from] != NULL) {
		usage_table.urr[from]->base.packets[down] += c.packets;
		usage_table.urr[from]->base.bytes[down] += c.bytes;
	}
	if (to != RULE_NONE && usage_table.urr[to] != NULL) {
		usage_table.urr[to]->base.packets[down] -= c.packets;
		usage_table.urr[to]->base.bytes[down] -= c.bytes;
	}
}

struct usage_totals usage_counted(uint32_t index, uint64_t *last)
{
	if (usage_table.limits[index].counts6)
		return counted6(index, last);
	const struct usage_state *u = &usage_pools.state[index];
	uint32_t session = usage_table.limits[index].session, before;
	struct usage_totals t;
	uint32_t turns = 0;

	do {
		if (++turns % RULE_TURNS == 0)
			sched_yield(); // the worker may wait for this CPU
		before = versions_of(session);
		t = (struct usage_totals){0};
		*last = __atomic_load_n(&u->last, __ATOMIC_RELAXED);
		for (int d = 0; d < 2; d++) {
			t.bytes[d] = __atomic_load_n(&u->bytes[d], __ATOMIC_RELAXED);
			t.packets[d] = __atomic_load_n(&u->packets[d], __ATOMIC_RELAXED);
			t.dropped[d] = __atomic_load_n(&usage_table.limits[index].dropped[d], __ATOMIC_RELAXED);
		}
		add_loans(&t, index, last);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (before == UINT32_MAX || versions_of(session) != before);
	return t;
}

void usage_look_again(uint32_t index)
{
	const struct rule *r;

	for (uint16_t i = 0; (r = session_rule_at(usage_table.limits[index].session, i)) != NULL; i++)
		if (has_loan(r, index))
			__atomic_fetch_or(&rule_state_of(r)->bits, RULE_STATE_LOOK, __ATOMIC_SEQ_CST);
}

static void give_back(struct urr *u, const struct rule_counts *used, int down, uint64_t last)
{
	u->base.packets[down] += used->packets;
	u->base.bytes[down] += used->bytes;
	u->last = RTE_MAX(u->last, used->packets != 0 ? last : 0);
	urr_arm(u);
	// The worker's meanwhile counts may exceed a lower new limit, which it does not report.
	timers_set(&usage_table.timers, &u->timer, control_now_ns());
}

void usage_return(const struct rule *r)
{
	struct rule_account *a = rule_account_of(r);
	struct rule_state *s = rule_state_of(r);

	if (a->loan == 0 || !is_lender(&a->of, 0))
		return;
	struct rule_counts used = {.packets = s->taken, .bytes = a->loan - s->credit};
	struct rule_match *m = &session_pools.match[rule_index(r)];

	// The worker may count in the account, and for the URRs: each sum has a place of ours.
	m->packets += used.packets;
	m->bytes += used.bytes;
	for (uint8_t i = 0; is_lender(&a->of, i); i++)
		if (usage_table.urr[a->of.urr[i]] != NULL)
			give_back(usage_table.urr[a->of.urr[i]], &used, !a->uplink, rule_state_last(s));
	s->credit = s->taken = 0;
	__atomic_store_n(&a->loan, 0, __ATOMIC_RELEASE); // from here on the worker may lend again
}
