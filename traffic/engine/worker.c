// SPDX-License-Identifier: Apache-2.0
// The tester's threads: receive, judge, send, over and over.
#include "traffic/engine/engine.h"
#include "traffic/engine/neighbour.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define AHEAD 6 // packets prefetched ahead of the judged one
#define IDLE_LOOPS 64 // without work, before a thread that is not pinned sleeps
#define IDLE_SLEEP_NS 50000

// Frames in one piece; chained ones are copied together.
static const uint8_t *in_one_piece(struct rte_mbuf *m, uint8_t *linear)
{
	if (likely(m->nb_segs == 1))
		return rte_pktmbuf_mtod(m, const uint8_t *);
	return rte_pktmbuf_read(m, 0, RTE_MIN(m->pkt_len, (uint32_t)FRAME_MAX), linear);
}

// Asks of neighbours are answered by the thread that sends on the port.
static void answer_neighbour(struct tester_port *p, const uint8_t *frame, uint16_t length, struct rte_mempool *pool)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	if (m == NULL)
		return;
	uint16_t n = neighbour_answer(
		p->want, p->dev.mac.addr_bytes, frame, length, rte_pktmbuf_mtod(m, uint8_t *), rte_pktmbuf_tailroom(m));

	m->data_len = n;
	m->pkt_len = n;
	if (n == 0 || rte_ring_mp_enqueue(p->neighbour_answers, m) != 0)
		rte_pktmbuf_free(m);
}

static __rte_noinline void sample(struct tester_thread *th, const uint8_t *frame, uint16_t length, bool wrong)
{
	struct capture *capture = th->tester->capture;
	struct timespec at = {0};

	if (wrong || capture_wants(capture, th->index))
		clock_gettime(CLOCK_REALTIME, &at);
	uint64_t ns = (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
	if (wrong)
		capture_keep(capture, th->index, frame, length, ns);
	else
		capture_offer(capture, th->index, frame, length, ns);
}

static void judge(struct tester_thread *th, struct tester_port *p, struct rte_mbuf *m, uint64_t now)
{
	uint16_t length = (uint16_t)RTE_MIN(m->pkt_len, (uint32_t)FRAME_MAX);
	const uint8_t *frame = in_one_piece(m, th->linear);
	bool wrong;
	struct receiver *r = check_frame(&p->check, frame, length, now, &wrong);

	if (unlikely(r == NULL && p->want->addresses != 0))
		answer_neighbour(p, frame, length, th->tester->rx_pool);
	if (p->link != NULL && m->pool == th->tester->tx_pool)
		egress_buffer_home(m, r != NULL && !wrong);
	if (unlikely(th->tester->capture != NULL))
		sample(th, frame, length, wrong);
}

static inline void prefetch_frame(struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

	rte_prefetch0(frame);
	rte_prefetch0(frame + m->data_len - 1);
}

static uint32_t receive(struct tester_thread *th, struct tester_port *p, uint64_t now)
{
	struct rte_mbuf *m[BURST];
	uint32_t all = 0;

	for (uint16_t q = 0; q < p->dev.rx_queues; q++) {
		uint16_t n = port_receive(p, q, m, BURST);

		// Not the loop's time: after a pause, packets would arrive before they were sent.
		if (n > 0)
			now = rte_rdtsc();
		for (uint32_t i = 0; i < (uint32_t)n + 2 * AHEAD; i++) {
			if (i < n)
				prefetch_frame(m[i]);
			if (i >= AHEAD && i - AHEAD < n)
				check_prefetch(&p->check, rte_pktmbuf_mtod(m[i - AHEAD], const uint8_t *),
					m[i - AHEAD]->data_len);
			if (i >= 2 * AHEAD)
				judge(th, p, m[i - 2 * AHEAD], now);
		}
		rte_pktmbuf_free_bulk(m, n);
		all += n;
	}
	p->received_frames += all;
	return all;
}

static void clear_receivers(struct tester_port *p, const struct tester *t)
{
	struct check *c = &p->check;

	c->nonce = t->nonce;
	c->foreign = c->control = 0;
	c->until_decode = 1;
	for (uint32_t i = 0; i < c->streams; i++) {
		struct receiver *r = &c->receivers[i];

		if (r->sink != p->index)
			continue;
		memset(&r->count, 0, sizeof(r->count));
		r->count.latency.min = UINT64_MAX;
		r->answers_lost = 0;
	}
}

static void obey(struct tester_thread *th, uint32_t command)
{
	const struct tester *t = th->tester;

	switch (command & 7) {
	case COMMAND_ARM:
		for (uint32_t i = 0; i < th->ports; i++)
			clear_receivers(th->port[i], t);
		for (uint32_t i = 0; i < th->egresses; i++)
			egress_clear(th->egress[i], t->nonce);
		break;
	case COMMAND_SEND:
		th->busy = th->longest = 0;
		for (uint32_t i = 0; i < th->egresses; i++)
			egress_begin(th->egress[i], t->begin);
		break;
	case COMMAND_DRAIN:
		for (uint32_t i = 0; i < th->egresses; i++)
			egress_end(th->egress[i]);
		break;
	case COMMAND_IDLE: // waits for the next trial's number, which nothing carries yet
		for (uint32_t i = 0; i < th->ports; i++)
			th->port[i]->check.nonce = nonce_after(t->nonce, 1);
		break;
	}
	__atomic_store_n(&th->seen, command, __ATOMIC_RELEASE);
}

static void rest(const struct tester_thread *th, uint32_t idle)
{
	const struct timespec pause = {.tv_nsec = IDLE_SLEEP_NS};

	if (th->cpu < 0 && idle > IDLE_LOOPS)
		nanosleep(&pause, NULL);
	else
		rte_pause();
}

static uint32_t send_due(struct tester_thread *th, uint64_t now)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < th->egresses && now < th->tester->end; i++)
		work += egress_send(th->egress[i], now);
	return work;
}

static void loop(struct tester_thread *th)
{
	struct tester *t = th->tester;
	uint64_t now = rte_rdtsc();
	uint32_t idle = 0;

	for (;;) {
		uint32_t command = __atomic_load_n(&t->command, __ATOMIC_ACQUIRE), work = 0;

		if (unlikely(command != th->seen)) {
			obey(th, command);
			now = rte_rdtsc();
		}
		if (unlikely((command & 7) == COMMAND_STOP))
			return;
		for (uint32_t i = 0; i < th->ports; i++)
			work += receive(th, th->port[i], now);
		for (uint32_t i = 0; i < th->egresses; i++)
			if (unlikely(rte_ring_count(th->egress[i]->port->neighbour_answers) != 0))
				work += egress_send_neighbour_answers(th->egress[i]);
		if ((command & 7) == COMMAND_SEND) // packets carry this time: what was received has been judged by now
			work += send_due(th, work != 0 ? rte_rdtsc() : now);
		if (work == 0)
			rest(th, ++idle);
		else
			idle = 0;
		uint64_t last = now;

		now = rte_rdtsc();
		uint64_t took = clock_passed(now, last, UINT64_MAX);
		th->busy += work != 0 ? took : 0;
		if (unlikely(took > th->longest))
			th->longest = took;
	}
}

static void *thread_main(void *arg)
{
	struct tester_thread *th = arg;

	th->tid = gettid();
	if (rte_thread_register() == 0) { // a packet cache of its own
		loop(th);
		rte_thread_unregister();
	} else {
		loop(th);
	}
	return NULL;
}

static int start_one(struct tester_thread *th, char *error, size_t n)
{
	char name[16];

	if (pthread_create(&th->thread, NULL, thread_main, th) != 0) {
		th->thread = 0; // threads_command() waits for those that there are
		snprintf(error, n, "no thread to be had");
		return -1;
	}
	snprintf(name, sizeof(name), "tester-%u", th->index);
	pthread_setname_np(th->thread, name);
	if (th->cpu < 0)
		return 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(th->cpu, &set);
	if (pthread_setaffinity_np(th->thread, sizeof(set), &set) == 0)
		return 0;
	snprintf(error, n, "CPU %d is not ours to use", th->cpu);
	return -1;
}

int threads_start(struct tester *t, char *error, size_t n)
{
	for (uint32_t i = 0; i < t->threads; i++)
		if (start_one(&t->thread[i], error, n) != 0)
			return -1;
	threads_command(t, COMMAND_IDLE);
	return 0;
}

void threads_command(struct tester *t, enum command c)
{
	const struct timespec pause = {.tv_nsec = 20000};
	uint32_t command = ((t->command >> 3) + 1) << 3 | (uint32_t)c;

	__atomic_store_n(&t->command, command, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < t->threads; i++)
		while (t->thread[i].thread != 0 && __atomic_load_n(&t->thread[i].seen, __ATOMIC_ACQUIRE) != command)
			nanosleep(&pause, NULL);
}

void threads_stop(struct tester *t)
{
	threads_command(t, COMMAND_STOP);
	for (uint32_t i = 0; i < t->threads; i++)
		if (t->thread[i].thread != 0)
			pthread_join(t->thread[i].thread, NULL);
}
