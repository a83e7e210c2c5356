// SPDX-License-Identifier: Apache-2.0
// A test program, never installed. Relays frames between two DPDK ports and damages every n-th packet as its arguments
// say, so a test knows exactly what the tester must find. Each fault is counted when it is made. SIGTERM or SIGINT ends
// the program, which then prints the counts as JSON.
//
//   fault-relay [OPTIONS] -- --vdev net_memif0,… --vdev net_memif1,…
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST 32
#define BUFFERS 16383
#define FRAME_ROOM 9300
#define QUEUE 8192 // frames on their way to a port, a power of two
#define HELD_MS 300 // longest wait of a held frame for a later one; then it leaves undamaged
#define ROW_FRAMES 3 // that overtake a reordered one
#define SWAP_BYTES 4
#define CUT_BYTES 4

// In the order of their trial: a packet has one fault at most.
enum fault {
	FAULT_DROP,
	FAULT_MISROUTE,
	FAULT_DUPLICATE,
	FAULT_REORDER,
	FAULT_SWAP,
	FAULT_FLIP,
	FAULT_TRUNCATE,
	FAULT_CUT,
	FAULTS
};
static const char *const fault_name[FAULTS] = {
	"dropped", "misrouted", "duplicated", "reordered", "swapped", "flipped", "truncated", "cut"};

struct options {
	int64_t one_in[FAULTS]; // 0: never
	int64_t flip_at, swap_at, cut_at; // negative: from the frame's end
	int64_t flip_mask, truncate; // bits; bytes
	int64_t every; // of the faults with a place
	int64_t delay_us;
	int64_t from; // only frames from this port have faults; -1: both
	int64_t cpu; // -1: not pinned
	int64_t descriptors;
	bool polite;
};

struct held {
	struct rte_mbuf *frame;
	uint64_t since; // ticks
	uint32_t left; // frames that must pass first
};

struct side {
	uint16_t id;
	struct {
		struct rte_mbuf *frame;
		uint64_t due; // ticks
	} queue[QUEUE]; // to be sent by this port
	uint64_t head, tail;
	struct held row, pair; // received on this port: to be overtaken, to be swapped with the next
	uint64_t received, sent, refused; // refused: the queue was full
};

struct relay {
	struct options o;
	struct side side[2];
	uint64_t seen, done[FAULTS]; // done: packets that left with the fault
	uint64_t now, tsc_hz;
	struct rte_mempool *pool;
};

static volatile sig_atomic_t ended;

static void end(int signal)
{
	ended = signal;
}

static void queue_frame(struct relay *r, uint32_t to, struct rte_mbuf *m)
{
	struct side *s = &r->side[to];

	if (s->head - s->tail == QUEUE) {
		s->refused++;
		rte_pktmbuf_free(m);
		return;
	}
	s->queue[s->head % QUEUE].frame = m;
	s->queue[s->head % QUEUE].due = r->now + (uint64_t)r->o.delay_us * r->tsc_hz / 1000000;
	s->head++;
}

// Sends a frame that came in at `from` to the other side, and behind it the frame that it overtook.
static void pass(struct relay *r, uint32_t from, struct rte_mbuf *m)
{
	struct held *row = &r->side[from].row;

	queue_frame(r, !from, m);
	if (row->frame != NULL && --row->left == 0) {
		r->done[FAULT_REORDER]++;
		queue_frame(r, !from, row->frame);
		row->frame = NULL;
	}
}

// Pointer to `bytes` bytes at an option's place in a frame; NULL when the frame has no such place.
static uint8_t *place(struct rte_mbuf *m, int64_t at, uint32_t bytes)
{
	int64_t offset = at < 0 ? m->data_len + at : at;

	return offset >= 0 && offset + bytes <= m->data_len ? rte_pktmbuf_mtod_offset(m, uint8_t *, offset) : NULL;
}

// Exchanges the bytes of two frames, the later one and the held one. Packets count, two each time, when they differ.
static void swap(struct relay *r, struct rte_mbuf *a, struct rte_mbuf *b)
{
	uint8_t *p = place(a, r->o.swap_at, SWAP_BYTES), *q = place(b, r->o.swap_at, SWAP_BYTES), kept[SWAP_BYTES];

	if (p == NULL || q == NULL || memcmp(p, q, SWAP_BYTES) == 0)
		return;
	memcpy(kept, p, SWAP_BYTES);
	memcpy(p, q, SWAP_BYTES);
	memcpy(q, kept, SWAP_BYTES);
	r->done[FAULT_SWAP] += 2;
}

static void damage(struct relay *r, enum fault fault, struct rte_mbuf *m)
{
	uint8_t *p;

	switch (fault) {
	case FAULT_FLIP:
		p = place(m, r->o.flip_at, 1);
		if (p == NULL)
			return;
		*p ^= (uint8_t)r->o.flip_mask;
		break;
	case FAULT_TRUNCATE:
		if (rte_pktmbuf_trim(m, (uint16_t)r->o.truncate) != 0)
			return;
		break;
	case FAULT_CUT: // what is behind moves up: a length fault with the frame's end intact
		p = place(m, r->o.cut_at, CUT_BYTES);
		if (p == NULL)
			return;
		memmove(p, p + CUT_BYTES, (size_t)(rte_pktmbuf_mtod(m, uint8_t *) + m->data_len - p - CUT_BYTES));
		rte_pktmbuf_trim(m, CUT_BYTES);
		break;
	default:
		return;
	}
	r->done[fault]++;
}

// Which fault the next packet from a port has; FAULTS: none.
static enum fault choose(struct relay *r, uint32_t from)
{
	if (r->o.from >= 0 && r->o.from != from)
		return FAULTS;
	r->seen++;
	for (enum fault f = 0; f < FAULTS; f++)
		if (r->o.one_in[f] > 0 && r->seen % (uint64_t)r->o.one_in[f] == 0)
			return f;
	return FAULTS;
}

static void take(struct relay *r, uint32_t from, struct rte_mbuf *m)
{
	struct side *s = &r->side[from];
	struct rte_mbuf *copy;

	s->received++;
	enum fault fault = choose(r, from);
	if (s->pair.frame != NULL) {
		swap(r, s->pair.frame, m);
		pass(r, from, s->pair.frame);
		s->pair.frame = NULL;
		pass(r, from, m);
		return;
	}
	switch (fault) {
	case FAULT_DROP:
		r->done[fault]++;
		rte_pktmbuf_free(m);
		return;
	case FAULT_MISROUTE:
		r->done[fault]++;
		queue_frame(r, from, m);
		return;
	case FAULT_DUPLICATE:
		copy = rte_pktmbuf_copy(m, r->pool, 0, UINT32_MAX);
		if (copy != NULL) {
			r->done[fault]++;
			pass(r, from, copy);
		}
		break;
	case FAULT_REORDER:
		if (s->row.frame == NULL) {
			s->row = (struct held){.frame = m, .since = r->now, .left = ROW_FRAMES};
			return;
		}
		break;
	case FAULT_SWAP:
		s->pair = (struct held){.frame = m, .since = r->now};
		return;
	default:
		damage(r, fault, m);
	}
	pass(r, from, m);
}

// Releases a held frame that waits in vain. Its fault counts only if it was made.
static void release(struct relay *r, uint32_t from, struct held *h)
{
	if (h->frame == NULL || r->now - h->since < r->tsc_hz * HELD_MS / 1000)
		return;
	if (h == &r->side[from].row && h->left < ROW_FRAMES)
		r->done[FAULT_REORDER]++;
	queue_frame(r, !from, h->frame);
	h->frame = NULL;
}

static uint32_t transmit(struct relay *r, struct side *s)
{
	struct rte_mbuf *burst[BURST];
	uint16_t n = 0;

	while (n < BURST && s->tail + n != s->head && s->queue[(s->tail + n) % QUEUE].due <= r->now) {
		burst[n] = s->queue[(s->tail + n) % QUEUE].frame;
		n++;
	}
	uint16_t sent = n ? rte_eth_tx_burst(s->id, 0, burst, n) : 0;
	s->tail += sent;
	s->sent += sent;
	return sent;
}

static void run(struct relay *r)
{
	while (!ended) {
		uint32_t work = 0;

		for (uint32_t i = 0; i < 2; i++) {
			struct rte_mbuf *burst[BURST];
			uint16_t n = rte_eth_rx_burst(r->side[i].id, 0, burst, BURST);
			r->now = rte_rdtsc(); // behind the burst, so that no delay is shorter than asked for
			for (uint16_t k = 0; k < n; k++)
				take(r, i, burst[k]);
			release(r, i, &r->side[i].row);
			release(r, i, &r->side[i].pair);
			work += n;
		}
		for (uint32_t i = 0; i < 2; i++)
			work += transmit(r, &r->side[i]);
		if (work == 0 && r->o.polite)
			usleep(50);
	}
}

static void print_counts(const struct relay *r)
{
	printf("{\"received\": [%" PRIu64 ", %" PRIu64 "], \"sent\": [%" PRIu64 ", %" PRIu64 "], \"refused\": [%" PRIu64
	       ", %" PRIu64 "]",
		r->side[0].received, r->side[1].received, r->side[0].sent, r->side[1].sent, r->side[0].refused,
		r->side[1].refused);
	for (enum fault f = 0; f < FAULTS; f++)
		printf(", \"%s\": %" PRIu64, fault_name[f], r->done[f]);
	printf("}\n");
}

static void usage(FILE *to)
{
	fputs("usage: fault-relay [OPTIONS] -- --vdev PORT --vdev PORT [EAL OPTIONS]\n"
	      "  --drop-one-in N        --duplicate-one-in N\n"
	      "  --reorder-one-in N     behind the next 3 from the same port\n"
	      "  --misroute-one-in N    out of the port that it came from\n"
	      "  --flip-byte AT         the bits of --flip-mask (1)\n"
	      "  --swap AT              4 bytes, with the next packet from the same port\n"
	      "  --truncate BYTES\n"
	      "  --cut AT               4 bytes; what is behind moves up\n"
	      "  --every N              one packet in N has the faults with AT or BYTES (1000)\n"
	      "  --from 0|1             only frames from this port; AT < 0 counts from the frame's end\n"
	      "  --delay-us N --descriptors N (1024) --cpu N --polite (sleep when idle)\n",
		to);
}

static int64_t number(const char *option, const char *text)
{
	char *rest;
	errno = 0;
	long long v = strtoll(text, &rest, 0);

	if (errno != 0 || *rest != '\0' || rest == text || v < -65536 || v > 1000000000) {
		fprintf(stderr, "fault-relay: --%s %s: a number is needed\n", option, text);
		exit(2);
	}
	return v;
}

// Returns how many of argv were read.
static int read_options(int argc, char **argv, struct options *o)
{
	const struct {
		const char *name;
		int64_t *to;
		enum fault fault; // that happens once in `every`
	} known[] = {{"drop-one-in", &o->one_in[FAULT_DROP], FAULTS},
		{"misroute-one-in", &o->one_in[FAULT_MISROUTE], FAULTS},
		{"duplicate-one-in", &o->one_in[FAULT_DUPLICATE], FAULTS},
		{"reorder-one-in", &o->one_in[FAULT_REORDER], FAULTS}, {"swap", &o->swap_at, FAULT_SWAP},
		{"flip-byte", &o->flip_at, FAULT_FLIP}, {"flip-mask", &o->flip_mask, FAULTS},
		{"truncate", &o->truncate, FAULT_TRUNCATE}, {"cut", &o->cut_at, FAULT_CUT},
		{"every", &o->every, FAULTS}, {"from", &o->from, FAULTS}, {"delay-us", &o->delay_us, FAULTS},
		{"descriptors", &o->descriptors, FAULTS}, {"cpu", &o->cpu, FAULTS}};
	struct option names[RTE_DIM(known) + 3] = {{0}};
	bool placed[FAULTS] = {false};
	int option;

	*o = (struct options){.flip_mask = 1, .every = 1000, .from = -1, .cpu = -1, .descriptors = 1024};
	for (size_t i = 0; i < RTE_DIM(known); i++)
		names[i] = (struct option){.name = known[i].name, .has_arg = required_argument, .val = (int)i};
	names[RTE_DIM(known)] = (struct option){.name = "polite", .val = 'p'};
	names[RTE_DIM(known) + 1] = (struct option){.name = "help", .val = 'h'};
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'p') {
			o->polite = true;
		} else if (option == 'h' || option == '?') {
			usage(option == 'h' ? stdout : stderr);
			exit(option == 'h' ? 0 : 2);
		} else {
			*known[option].to = number(known[option].name, optarg);
			if (known[option].fault != FAULTS)
				placed[known[option].fault] = true;
		}
	}
	for (enum fault f = 0; f < FAULTS; f++)
		if (placed[f])
			o->one_in[f] = o->every;
	return optind;
}

// "--lcores=0@(0,1)": one thread that floats over this process's CPUs, or is pinned to the given one.
static void choose_cpus(char *to, size_t n, int64_t cpu)
{
	cpu_set_t set;
	size_t used = (size_t)snprintf(to, n, "--lcores=0@(");
	const char *comma = "";

	if (cpu >= 0 || sched_getaffinity(0, sizeof(set), &set) != 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)(cpu >= 0 ? cpu : 0), &set);
	}
	for (int i = 0; i < CPU_SETSIZE && used + 8 < n; i++)
		if (CPU_ISSET(i, &set)) {
			used += (size_t)snprintf(to + used, n - used, "%s%d", comma, i);
			comma = ",";
		}
	snprintf(to + used, n - used, ")");
}

// DPDK without huge pages.
static int start_eal(int argc, char **argv, int64_t cpu)
{
	static char cores[512];
	char *fixed[] = {"fault-relay", cores, "--no-huge", "-m", "256", "--no-shconf", "--no-telemetry", "--no-pci",
		"--iova-mode=va", "--log-level=lib.eal:4"};
	char *args[64];
	int n = 0;

	choose_cpus(cores, sizeof(cores), cpu);
	for (size_t i = 0; i < RTE_DIM(fixed); i++)
		args[n++] = fixed[i];
	for (int i = 0; i < argc && n < 63; i++)
		args[n++] = argv[i];
	args[n] = NULL;
	if (rte_eal_init(n, args) >= 0)
		return 0;
	fprintf(stderr, "fault-relay: DPDK does not start: %s\n", rte_strerror(rte_errno));
	return -1;
}

static int start_port(struct relay *r, uint16_t id)
{
	struct rte_eth_conf conf = {0};
	uint16_t descriptors = (uint16_t)r->o.descriptors;
	int error = rte_eth_dev_configure(id, 1, 1, &conf);

	if (error == 0)
		error = rte_eth_rx_queue_setup(id, 0, descriptors, SOCKET_ID_ANY, NULL, r->pool);
	if (error == 0)
		error = rte_eth_tx_queue_setup(id, 0, descriptors, SOCKET_ID_ANY, NULL);
	if (error == 0)
		error = rte_eth_dev_start(id);
	if (error != 0)
		fprintf(stderr, "fault-relay: port %u does not start: %s\n", id, rte_strerror(-error));
	else
		rte_eth_promiscuous_enable(id);
	return error;
}

int main(int argc, char **argv)
{
	struct relay *r = calloc(1, sizeof(*r));
	int used;

	if (r == NULL)
		return 2;
	used = read_options(argc, argv, &r->o);
	if (start_eal(argc - used, argv + used, r->o.cpu) != 0)
		return 2;
	r->tsc_hz = rte_get_tsc_hz();
	r->pool = rte_pktmbuf_pool_create("relay", BUFFERS, 256, 0, FRAME_ROOM + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (r->pool == NULL || rte_eth_dev_count_avail() != 2) {
		fprintf(stderr, "fault-relay: %s\n", r->pool ? "two ports are needed" : "no memory");
		return 2;
	}
	for (uint16_t i = 0; i < 2; i++) {
		r->side[i].id = i;
		if (start_port(r, i) != 0)
			return 2;
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	fprintf(stderr, "fault-relay: ready\n");
	run(r);
	print_counts(r);
	fflush(stdout);
	for (uint16_t i = 0; i < 2; i++) {
		rte_eth_dev_stop(i);
		rte_eth_dev_close(i);
	}
	return 0;
}
