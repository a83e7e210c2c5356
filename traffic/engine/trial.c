// SPDX-License-Identifier: Apache-2.0
// One trial: set the rates, send for a while, wait for packets in flight, reconcile.
#include "core/ethdev.h"
#include "traffic/engine/engine.h"
#include <math.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_NS 20000000 // the main thread looks this often: each look may take the CPU from a tester thread
#define LINK_NAPS 50 // and at the links every so many times
#define CATCH_UP 100e-6 // seconds that a late thread may make up for; more would be an unwanted burst
#define LATE_DRAINS 20 // waits of a trial, for what is late at the end of a run
#define LIMITED 0.995 // of the rate asked for
// Involuntary ones per second of a pinned thread, above which a trial counts as disturbed. On a small machine the
// control threads of gateway and tester take the CPU for microseconds a thousand times a second; pauses count the rest.
#define SWITCHES 2000
#define GAP_MIN 50e-6 // seconds; shorter pauses are part of life
// A virtual machine's CPUs move. In different parts of the processor, a cache line between them takes six times as
// long, and so does a link over shared memory. FAR times the nearest distance is far.
#define FAR 2.0
#define START_DELAY 1e-3 // seconds from the command to the first packet, so that all threads begin together

static void nap(const struct tester *t)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};

	if (t->share != NULL)
		share_poll(t->share);
	nanosleep(&pause, NULL);
}

static bool is_up(const struct tester_port *p)
{
	struct rte_eth_link link;

	if (p->link != NULL)
		return share_up(p->link);
	return rte_eth_link_get_nowait(p->dev.id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

// Writes the names of ports without a link. Returns how many they are.
static uint32_t down(const struct tester *t, char *names, size_t n)
{
	uint32_t count = 0;
	size_t used = 0;

	names[0] = 0;
	for (uint32_t i = 0; i < t->ports; i++) {
		const struct job_port *p = t->port[i].want;

		if (is_up(&t->port[i]))
			continue;
		if (used < n)
			used += (size_t)snprintf(names + used, n - used, "%s%s (%s %s)", count ? ", " : "", p->name,
				p->driver, p->device);
		count++;
	}
	return count;
}

int tester_wait_links(struct tester *t, char *error, size_t n)
{
	char names[2 * JOB_TEXT];

	while (down(t, names, sizeof(names)) != 0) {
		if (*t->stop) {
			snprintf(error, n, "interrupted while waiting for the links of %s", names);
			return -1;
		}
		if (clock_monotonic_ns() > t->links_until) {
			snprintf(error, n, "no link after %.3g s: %s; is the other side running?",
				t->work->job.link_wait, names);
			return -1;
		}
		nap(t);
	}
	return 0;
}

static uint64_t step_of(const struct tester *t, double pps)
{
	return isinf(pps) ? PACER_UNLIMITED : (uint64_t)(pps / t->tsc_hz * 281474976710656.0); // 2^48
}

static void set_pacer(struct tester *t, struct group *g, double pps, uint32_t ring)
{
	g->pacer.step = step_of(t, pps);
	g->pacer.may_catch_up =
		isinf(pps) ? BURST : RTE_MAX((uint64_t)RTE_MIN(pps * CATCH_UP, ring / 4.0), (uint64_t)BURST);
}

static uint64_t egress_share(const struct egress *l)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < l->senders; i++)
		sum += l->sender[i]->want->job.share;
	return sum;
}

// Sets every pacer. Returns the highest rate at which a port sends or has to receive, in packets per second.
static double set_rates(struct tester *t, double rate)
{
	uint64_t total = 0;
	double highest = 0, arriving[JOB_PORTS] = {0};

	for (uint32_t i = 0; i < t->ports; i++)
		total += egress_share(&t->egress[i]);
	for (uint32_t i = 0; i < t->ports; i++) {
		struct egress *l = &t->egress[i];
		uint32_t ring = l->port->want->descriptors;
		uint64_t mine = egress_share(l);
		double shared = mine == 0 ? 0 : rate * (double)mine / (double)total, sum = shared;

		set_pacer(t, &l->group[0], shared, ring);
		for (uint32_t g = 1; g < l->groups; g++) {
			double own = l->sender[l->group[g].place[0]]->want->job.own_pps;

			set_pacer(t, &l->group[g], own, ring);
			sum += own;
		}
		highest = RTE_MAX(highest, sum);
	}
	for (uint32_t i = 0; i < t->work->job.streams; i++) {
		const struct job_stream *s = &t->work->stream[i].job;

		arriving[s->sink] += s->share != 0 ? rate * s->share / (double)total : s->own_pps;
		highest = RTE_MAX(highest, arriving[s->sink]);
	}
	return highest;
}

// A longer pause of the tester than half a ring may lose packets at the gateway's exit.
static double gap_allowed(const struct tester *t, double highest)
{
	uint32_t ring = UINT32_MAX;

	for (uint32_t i = 0; i < t->ports; i++)
		ring = RTE_MIN(ring, t->port[i].want->descriptors);
	return isinf(highest) || highest == 0 ? 1e-3 : RTE_MAX(ring / 2.0 / highest, GAP_MIN);
}

static uint64_t after(double seconds)
{
	return clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
}

// Until the end of sending, an interruption, or the loss of a link. Returns how many ports have lost it, with their
// names.
static uint32_t pass_time(const struct tester *t, uint64_t until_ns, char *names, size_t n)
{
	for (uint32_t naps = 1; clock_monotonic_ns() < until_ns && !*t->stop; naps++) {
		nap(t);
		if (t->capture != NULL)
			capture_poll(t->capture);
		uint32_t lost = naps % LINK_NAPS == 0 ? down(t, names, n) : 0;

		if (lost != 0)
			return lost;
	}
	return 0;
}

static bool all_back(const struct tester *t)
{
	for (uint32_t i = 0; i < t->work->job.streams; i++)
		if (t->sender[i].sent != t->receiver[i].count.received + t->sender[i].refused)
			return false;
	return true;
}

static void look(struct tester *t)
{
	uint64_t arrived = 0;

	nap(t);
	if (t->capture != NULL)
		capture_poll(t->capture);
	for (uint32_t i = 0; i < t->ports; i++)
		arrived += t->port[i].received_frames;
	if (arrived != t->arrived)
		t->silent_since = clock_monotonic_ns();
	t->arrived = arrived;
}

// Until all packets are back, or too long. Silence proves nothing: a gateway that lost its CPU for a while still sends
// what it holds.
static void drain(struct tester *t)
{
	uint64_t end = after(t->work->job.drain);

	while (clock_monotonic_ns() < end && !all_back(t))
		look(t);
	look(t); // duplicates arrive behind the last expected packet
}

// Packets of earlier trials that no result has counted yet.
static uint64_t new_strays(struct tester *t)
{
	uint64_t before = t->stray_told;

	t->stray_told = 0;
	for (uint32_t i = 0; i < t->ports; i++)
		t->stray_told += t->port[i].check.stray;
	return t->stray_told - before;
}

static void add_up(struct tester *t, struct trial *r, struct stream_count *count)
{
	uint64_t sent = 0, lost = 0;

	for (uint32_t i = 0; i < t->work->job.streams; i++) {
		struct stream_count *c = &count[i];

		*c = t->receiver[i].count;
		c->wrong_kept = RTE_MIN(c->wrong_kept, (uint32_t)JOB_WRONG_KEPT);
		c->sent = t->sender[i].sent;
		c->sent_bytes = t->sender[i].sent_bytes;
		c->refused = t->sender[i].refused;
		c->lost = c->sent > c->received ? c->sent - c->received : 0;
		r->sent += c->sent;
		r->received += c->received;
		r->lost += c->lost;
		r->duplicate += c->duplicate;
		r->reordered += c->reordered;
		r->stale += c->stale;
		for (int k = 0; k < WRONG_KINDS; k++)
			r->wrong += c->wrong[k];
		if (!t->work->stream[i].job.judged)
			continue;
		sent += c->sent;
		lost += c->lost;
	}
	r->loss_ratio = sent ? (double)lost / (double)sent : 0;
	for (uint32_t i = 0; i < t->ports; i++) {
		r->foreign += t->port[i].check.foreign;
		r->control += t->port[i].check.control;
	}
	r->stray = new_strays(t);
}

// Each pacer is judged: others do not make up for a port that fell behind. Packets due at the very end may be unsent.
static bool limited(const struct tester *t, uint64_t end)
{
	end -= (uint64_t)(CATCH_UP * t->tsc_hz);
	for (uint32_t i = 0; i < t->ports; i++)
		for (uint32_t g = 0; g < t->egress[i].groups; g++)
			if (pacer_fell_behind(&t->egress[i].group[g].pacer, end, LIMITED))
				return true;
	for (uint32_t i = 0; i < t->work->job.streams; i++) // answers that could not be sent
		if ((double)t->receiver[i].answers_lost > (1 - LIMITED) * (double)t->receiver[i].count.received)
			return true;
	return false;
}

static void add_rates(const struct tester *t, uint64_t end, struct trial *r, const struct stream_count *count)
{
	uint64_t shared = 0;

	for (uint32_t i = 0; i < t->work->job.streams; i++)
		if (t->work->stream[i].job.share != 0)
			shared += count[i].sent;
	r->offered_pps = r->seconds > 0 ? (double)shared / r->seconds : 0;
	r->tester_limited = !r->interrupted && limited(t, end);
}

// What the threads and the machine went through.
struct circumstances {
	struct machine_sample before, after;
	uint64_t longest, busy, missed;
};

// Frames that the ports have dropped so far because the tester did not fetch them, as far as their drivers count them.
static uint64_t missed(struct tester *t)
{
	struct share_counters c;
	struct rte_eth_stats s;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < t->ports; i++) {
		if (t->port[i].link != NULL) {
			share_count(t->port[i].link, &c);
			sum += c.no_buffer;
		} else if (ethdev_counts(&t->port[i].dev, &s) == 0) {
			sum += s.imissed + s.rx_nombuf;
		}
	}
	return sum;
}

static void sample(const struct tester *t, struct machine_sample *s)
{
	pid_t tid[JOB_CPUS];

	for (uint32_t i = 0; i < t->threads && i < JOB_CPUS; i++)
		tid[i] = t->thread[i].tid;
	machine_sample(NULL, 0, tid, RTE_MIN(t->threads, (uint32_t)JOB_CPUS), s);
}

static void add_circumstances(const struct tester *t, const struct circumstances *c, double gap, struct trial *r)
{
	r->steal = machine_steal(&c->before, &c->after);
	r->switches = c->after.switches - c->before.switches;
	r->gap_us = (double)c->longest / t->tsc_hz * 1e6;
	uint64_t packets = RTE_MAX(r->sent, r->received);

	r->busy_ticks = packets ? (double)c->busy / (double)packets : 0;
	if (r->steal > t->work->job.steal_max)
		r->disturbed |= JOB_DISTURBED_STEAL;
	// A thread that is not pinned is pushed aside by its nature. A pause loses packets all the same.
	if (t->work->job.cpus != 0 && (double)r->switches > SWITCHES * r->seconds * t->threads)
		r->disturbed |= JOB_DISTURBED_SWITCHED;
	if (r->round_trip_ns > FAR * t->nearest_ns)
		r->disturbed |= JOB_DISTURBED_FAR;
	if (r->gap_us > gap * 1e6)
		r->disturbed |= JOB_DISTURBED_GAP;
	r->missed = c->missed;
	if (r->missed != 0)
		r->disturbed |= JOB_DISTURBED_MISSED;
}

static void note_threads(const struct tester *t, struct circumstances *c)
{
	for (uint32_t i = 0; i < t->threads; i++) {
		c->longest = RTE_MAX(c->longest, t->thread[i].longest);
		c->busy += t->thread[i].busy;
	}
}

static double round_trip(struct tester *t)
{
	const struct job *j = &t->work->job;

	if (j->gateway_cpu == JOB_NO_CPU || j->cpus == 0)
		return 0;
	double ns = machine_round_trip_ns(j->cpu[0], (uint16_t)j->gateway_cpu, t->tsc_hz);

	if (ns > 0 && (t->nearest_ns == 0 || ns < t->nearest_ns))
		t->nearest_ns = ns;
	return ns;
}

int tester_trial(struct tester *t, const struct job_request *asked, struct trial *result, struct stream_count *count,
	char *error, size_t n)
{
	struct circumstances c = {0};
	char names[2 * JOB_TEXT];

	*result = (struct trial){.interrupted = 0};
	result->clock_ghz = machine_clock_ghz(t->tsc_hz);
	result->round_trip_ns = round_trip(t);
	t->nonce = nonce_after(t->nonce, 1);
	double gap = gap_allowed(t, set_rates(t, asked->rate));

	threads_command(t, COMMAND_ARM);
	sample(t, &c.before);
	uint64_t missed_before = missed(t);

	t->begin = rte_rdtsc() + (uint64_t)(START_DELAY * t->tsc_hz);
	t->end = t->begin + (uint64_t)(asked->seconds * t->tsc_hz);
	uint64_t until = after(START_DELAY + asked->seconds);
	threads_command(t, COMMAND_SEND);
	uint32_t links_lost = pass_time(t, until, names, sizeof(names));
	uint64_t end = RTE_MIN(rte_rdtsc(), t->end);

	threads_command(t, COMMAND_DRAIN);
	note_threads(t, &c);
	sample(t, &c.after);
	drain(t);
	threads_command(t, COMMAND_IDLE);
	c.missed = missed(t) - missed_before;
	result->round_trip_ns = fmax(result->round_trip_ns, round_trip(t));
	result->interrupted = *t->stop != 0;
	result->seconds = end > t->begin ? (double)(end - t->begin) / t->tsc_hz : 0;
	add_up(t, result, count);
	add_rates(t, end, result, count);
	add_circumstances(t, &c, gap, result);
	if (links_lost == 0 && down(t, names, sizeof(names)) == 0)
		return 0;
	snprintf(error, n, "the link went down: %s", names);
	return -1;
}

// The links close afterwards, and packets still on their way are not counted: silence for a trial's waiting time
// suffices.
uint64_t tester_end(struct tester *t, uint64_t lost)
{
	uint64_t now = clock_monotonic_ns(), silence = (uint64_t)(t->work->job.drain * 1e9);

	uint64_t end = now + LATE_DRAINS * silence, came = new_strays(t);

	while (came < lost && now < end && now - t->silent_since < silence && !*t->stop) {
		look(t);
		came += new_strays(t);
		now = clock_monotonic_ns();
	}
	return came;
}

void tester_speeds(const struct tester *t, uint32_t *mbps)
{
	struct rte_eth_link link;

	for (uint32_t i = 0; i < t->ports; i++) {
		bool known = t->port[i].link == NULL && rte_eth_link_get_nowait(t->port[i].dev.id, &link) == 0 &&
			     link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;

		mbps[i] = known ? link.link_speed : 0;
	}
}

double tester_tsc_hz(const struct tester *t)
{
	return t->tsc_hz;
}
