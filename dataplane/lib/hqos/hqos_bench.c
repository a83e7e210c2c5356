// SPDX-License-Identifier: Apache-2.0
// Cost of the scheduler: TSC ticks per packet for enqueue and dequeue together, beside DPDK's rte_sched, all conforming
// ("configured to allow all traffic to pass"), random pipes. Both alternate in short runs, so noise hits both alike;
// printed are the median and the spread. A last table has ours under 25 % more traffic than the subports may send, on a
// virtual clock: nearly every packet queues. README.md has figures.
//
//   hqos-bench [EAL options] [-- RUNS]
#include "hqos/hqos.h"
#include "testkit/bench.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_sched.h>
#include <stdio.h>
#include <stdlib.h>

#define BURST 64
#define BURSTS 4096 // of one run
#define ORDER (1u << 18) // places drawn beforehand
#define MAX_RUNS 99
#define SUBPORTS 4

struct setup {
	struct hqos *h;
	struct rte_sched_port *peer; // where h is NULL
	size_t memory;
	uint32_t held; // the peer's
	const char *name;
	double ticks[MAX_RUNS];
	uint64_t lost;
	uint64_t now, step; // virtual clock, and how far one burst moves it; step 0: the TSC
};

// rate: of each subport; the port and the pipes have room for all.
static struct hqos *make(uint32_t pipes, uint64_t rate, uint32_t queue_size)
{
	static struct api_scheduler s;
	char error[HQOS_ERROR] = "";
	s = (struct api_scheduler){.subports = SUBPORTS, .rate = HQOS_MAX_RATE, .frame_overhead = 24, .profiles = 1};
	for (int c = 0; c < API_TRAFFIC_CLASSES; c++)
		s.queue_size[c] = queue_size;
	for (int i = 0; i < SUBPORTS; i++)
		s.subport[i] = (struct api_subport){.rate = rate, .burst = rate / 10000, .pipes = pipes / SUBPORTS};
	s.profile[0] = (struct api_pipe_profile){.rate = 1250000000ull, .burst = 1000000, .weight = {1, 1, 1, 1}};
	struct hqos_params params = {.scheduler = &s,
		.worker = HQOS_ALL_WORKERS,
		.socket = SOCKET_ID_ANY,
		.hz = rte_get_tsc_hz(),
		.start = 0};
	struct hqos *h = hqos_create(&params, error);
	if (!h)
		fprintf(stderr, "%u pipes: %s\n", pipes, error);
	return h;
}

static size_t heap_used(void)
{
	struct rte_malloc_socket_stats stats;
	return rte_malloc_get_socket_stats(0, &stats) == 0 ? stats.heap_allocsz_bytes : 0;
}

// Our classes are its traffic classes 0, 1, 2 and its best-effort class; the other nine have no queues.
static uint32_t peer_class(uint32_t c)
{
	return c == HQOS_BEST_EFFORT ? RTE_SCHED_TRAFFIC_CLASS_BE : c;
}

// The same levels as make().
static struct rte_sched_port *make_peer(uint32_t pipes)
{
	struct rte_sched_subport_profile_params level = {
		.tb_rate = HQOS_MAX_RATE, .tb_size = HQOS_MAX_RATE / 10000, .tc_period = 10};
	struct rte_sched_pipe_params pipe = {.tb_rate = 1250000000ull,
		.tb_size = 1000000,
		.tc_period = 10,
		.tc_ov_weight = 1,
		.wrr_weights = {1, 1, 1, 1}};
	for (int c = 0; c < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; c++)
		level.tc_rate[c] = level.tb_rate;
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++)
		pipe.tc_rate[peer_class(c)] = pipe.tb_rate;
	struct rte_sched_port_params port = {.name = "peer",
		.rate = HQOS_MAX_RATE,
		.mtu = 9018,
		.frame_overhead = 24,
		.n_subports_per_port = SUBPORTS,
		.subport_profiles = &level,
		.n_subport_profiles = 1,
		.n_max_subport_profiles = 1,
		.n_pipes_per_subport = pipes / SUBPORTS};
	struct rte_sched_subport_params subport = {.n_pipes_per_subport_enabled = pipes / SUBPORTS,
		.pipe_profiles = &pipe,
		.n_pipe_profiles = 1,
		.n_max_pipe_profiles = 1};
	for (uint32_t c = 0; c < API_TRAFFIC_CLASSES; c++)
		subport.qsize[peer_class(c)] = 64;
	struct rte_sched_port *peer = rte_sched_port_config(&port);
	int status = peer == NULL;
	for (uint32_t i = 0; status == 0 && i < SUBPORTS; i++) {
		status = rte_sched_subport_config(peer, i, &subport, 0);
		for (uint32_t p = 0; status == 0 && p < pipes / SUBPORTS; p++)
			status = rte_sched_pipe_config(peer, i, p, 0);
	}
	if (status != 0)
		fprintf(stderr, "rte_sched, %u pipes: %d\n", pipes, status);
	return status == 0 ? peer : NULL;
}

// Returns how many it refused; those are free.
static uint32_t peer_enqueue(struct setup *setup, struct rte_mbuf **in)
{
	for (uint32_t k = 0; k < BURST; k++) {
		uint32_t place = in[k]->hash.sched.queue_id, queue = hqos_place_queue(place),
			 c = hqos_queue_class(queue);
		rte_sched_port_pkt_write(setup->peer, in[k], hqos_place_subport(place), hqos_place_pipe(place),
			peer_class(c), queue - c, RTE_COLOR_GREEN);
	}
	uint32_t taken = (uint32_t)rte_sched_port_enqueue(setup->peer, in, BURST);
	setup->held += taken;
	return BURST - taken;
}

static uint32_t enqueue(struct setup *setup, struct rte_mbuf **in, uint64_t now, struct rte_mbuf **rejected)
{
	return setup->h ? hqos_enqueue(setup->h, in, BURST, now, rejected) : peer_enqueue(setup, in);
}

static uint32_t dequeue(struct setup *setup, struct rte_mbuf **out, uint64_t now)
{
	if (setup->h)
		return hqos_dequeue(setup->h, out, BURST, now);
	uint32_t n = (uint32_t)rte_sched_port_dequeue(setup->peer, out, BURST);
	setup->held -= n;
	return n;
}

static uint32_t queued(const struct setup *setup)
{
	return setup->h ? hqos_queued(setup->h) : setup->held;
}

static uint64_t clock_of(struct setup *setup, uint64_t tsc)
{
	setup->now = setup->step ? setup->now + setup->step : tsc;
	return setup->now;
}

// One run: bursts in, bursts out, as a worker does. Mbufs come from a stack outside the measured time; their first
// lines are warm, as behind the preceding node.
static double run(struct setup *setup, struct rte_mbuf **stack, uint32_t *top, const uint32_t *place, uint32_t length)
{
	uint64_t spent = 0, count = 0;
	for (uint32_t i = 0; i < BURSTS && *top >= BURST; i++) {
		struct rte_mbuf *in[BURST], *out[BURST], *rejected[BURST];
		for (uint32_t k = 0; k < BURST; k++) {
			in[k] = stack[--*top];
			in[k]->pkt_len = length;
			hqos_set_place(in[k], place[(i * BURST + k) % ORDER]);
		}
		uint64_t start = rte_rdtsc();
		uint64_t now = clock_of(setup, start);
		uint32_t refused = enqueue(setup, in, now, rejected);
		uint32_t n = dequeue(setup, out, now);
		spent += rte_rdtsc() - start;
		count += BURST;
		setup->lost += refused;
		for (uint32_t k = 0; setup->h && k < refused; k++)
			stack[(*top)++] = rejected[k];
		for (uint32_t k = 0; k < n; k++)
			stack[(*top)++] = out[k];
	}
	return (double)spent / (count ? count : 1);
}

static void empty(struct setup *setup, struct rte_mbuf **stack, uint32_t *top)
{
	struct rte_mbuf *out[BURST];
	for (uint32_t i = 0; i < 10000000 && queued(setup); i++) {
		uint32_t n = dequeue(setup, out, clock_of(setup, rte_rdtsc()));
		for (uint32_t k = 0; k < n; k++)
			stack[(*top)++] = out[k];
	}
}

static void report(struct setup *setup, uint32_t pipes, uint32_t length, int runs)
{
	double median = kit_median(setup->ticks, (uint32_t)runs);
	printf("%-10s %6u pipes %4u B  median %6.1f  (%.1f .. %.1f)  refused %.0f a run  memory %.1f MB\n", setup->name,
		pipes, length, median, setup->ticks[0], setup->ticks[runs - 1], (double)setup->lost / runs,
		(double)setup->memory / 1e6);
}

static void draw(uint32_t *place, uint32_t pipes)
{
	uint64_t x = 88172645463325252ull;
	for (uint32_t i = 0; i < ORDER; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		uint32_t pipe = (x >> 20) % pipes;
		place[i] = hqos_place(pipe % SUBPORTS, pipe / SUBPORTS, x >> 50 & 3, x >> 52 & 3);
	}
}

static void compare(struct rte_mbuf **stack, uint32_t *top, uint32_t *place, uint32_t pipes, int runs)
{
	static const uint32_t lengths[] = {504, 650};
	static struct setup setups[2];
	setups[0] = (struct setup){.h = make(pipes, HQOS_MAX_RATE, 64), .name = "hqos"};
	setups[0].memory = setups[0].h ? hqos_memory(setups[0].h) : 0;
	size_t before = heap_used();
	setups[1] = (struct setup){.peer = make_peer(pipes), .name = "rte_sched"};
	setups[1].memory = heap_used() - before;
	draw(place, pipes);
	for (uint32_t l = 0; l < RTE_DIM(lengths); l++) {
		for (int r = -1; r < runs; r++)
			for (int e = 0; e < 2; e++) {
				if (!setups[e].h && !setups[e].peer)
					continue;
				double ticks = run(&setups[e], stack, top, place, lengths[l]);
				if (r < 0)
					setups[e].lost = 0; // warming up
				else
					setups[e].ticks[r] = ticks;
				empty(&setups[e], stack, top);
			}
		for (int e = 0; e < 2; e++)
			if (setups[e].h || setups[e].peer)
				report(&setups[e], pipes, lengths[l], runs);
	}
	hqos_free(setups[0].h);
	if (setups[1].peer)
		rte_sched_port_free(setups[1].peer);
}

static void congest(struct rte_mbuf **stack, uint32_t *top, uint32_t *place, uint32_t pipes, int runs)
{
	static struct setup setup;
	const uint64_t rate = 625000000; // of each of the subports
	const uint32_t length = 650;
	setup = (struct setup){.h = make(pipes, rate, 4), .name = "congested"};
	if (!setup.h)
		return;
	setup.memory = hqos_memory(setup.h);
	draw(place, pipes);
	setup.step = BURST * (length + 24) / (1.25 * SUBPORTS * rate) * rte_get_tsc_hz();
	for (int r = -1; r < runs; r++) {
		double ticks = run(&setup, stack, top, place, length);
		setup.lost = r < 0 ? 0 : setup.lost;
		setup.ticks[r < 0 ? 0 : r] = ticks;
	}
	report(&setup, pipes, length, runs);
	empty(&setup, stack, top);
	hqos_free(setup.h);
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	if (used < 0)
		return 1;
	int runs = used + 1 < argc ? atoi(argv[used + 1]) : 7;
	runs = runs < 1 ? 1 : runs > MAX_RUNS ? MAX_RUNS : runs;
	uint32_t buffers = 40959, top = 0;
	struct rte_mempool *pool = rte_pktmbuf_pool_create("hqos_bench", buffers, 0, 0, 0, SOCKET_ID_ANY);
	struct rte_mbuf **stack = calloc(buffers, sizeof(*stack));
	uint32_t *place = malloc(ORDER * sizeof(*place));
	if (!pool || !stack || !place)
		exit(1);
	while (top < buffers && (stack[top] = rte_pktmbuf_alloc(pool)))
		top++;
	printf("TSC %.2f GHz, %d alternating runs of %u packets, bursts of %u, ticks per packet (enqueue + dequeue)\n",
		rte_get_tsc_hz() / 1e9, runs, BURST * BURSTS, BURST);
	compare(stack, &top, place, 1024, runs);
	compare(stack, &top, place, 65536, runs);
	congest(stack, &top, place, 1024, runs);
	rte_eal_cleanup();
	return 0;
}
