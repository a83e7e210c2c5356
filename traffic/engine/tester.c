// SPDX-License-Identifier: Apache-2.0
// Opens the tester: DPDK, ports, pools, streams, egresses, threads; and closes it.
#include "traffic/engine/tester.h"
#include "core/eal.h"
#include "core/log.h"
#include "traffic/engine/engine.h"
#include "traffic/engine/zero_copy.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define L2_ROOM 26 // Ethernet, two tags and FCS
#define CACHE 256 // mbufs of a thread
#define ANSWERS 1024
#define PLACES_MAX (1u << 17) // two streams of any shares fit exactly
#define DECODE_EVERY 1021 // a prime: streams that take turns are all looked at
#define XDP_RINGS 8192 // buffers that net_af_xdp always takes for its fill and completion rings

static bool is_link(const struct job_port *p)
{
	return strcmp(p->driver, "share") == 0;
}

// Where there is a link, what is sent is lent.
static struct rte_mempool *send_pool(struct tester *t, uint32_t buffers, uint32_t room, char *error, size_t n)
{
	const struct share_want want = {.name = "traffic-tx", .buffers = buffers, .room = room, .cache = CACHE};
	bool lent = false;

	for (uint32_t i = 0; i < t->work->job.ports; i++)
		lent |= is_link(&t->work->port[i]);
	if (!lent)
		return rte_pktmbuf_pool_create("traffic-tx", buffers, CACHE, 0, (uint16_t)room, SOCKET_ID_ANY);
	t->share = share_new(&want, error, n);
	return t->share != NULL ? share_pool(t->share) : NULL;
}

static int make_pools(struct tester *t, char *error, size_t n)
{
	const struct work *p = t->work;
	uint32_t room = RTE_MBUF_DEFAULT_DATAROOM, tx = t->threads * (2 * CACHE + BURST), rx = tx;

	for (uint32_t i = 0; i < p->job.ports; i++) {
		uint32_t ring = p->port[i].queues * (p->port[i].descriptors + 2 * BURST);

		room = RTE_MAX(room, p->port[i].mtu + L2_ROOM);
		tx += (is_link(&p->port[i]) ? 3 : 1) * ring +
		      BURST; // both rings of a link, and what the other side has
		rx += ring + BURST + (strcmp(p->port[i].driver, "net_af_xdp") == 0 ? XDP_RINGS : 0);
	}
	for (uint32_t i = 0; i < p->job.streams; i++) // with more tags than L2_ROOM has room for
		for (uint32_t k = 0; k < p->stream[i].job.sizes; k++)
			room = RTE_MAX(room, (uint32_t)p->stream[i].job.size[k].bytes);
	room = RTE_MAX(room, (uint32_t)TEMPLATE_BYTES) + RTE_PKTMBUF_HEADROOM;
	room = RTE_ALIGN_CEIL(room, (uint32_t)CACHE_LINE);
	t->tx_pool = send_pool(t, tx, room, error, n);
	t->rx_pool = rte_pktmbuf_pool_create("traffic-rx", rx, CACHE, 0, (uint16_t)room, SOCKET_ID_ANY);
	if (t->tx_pool == NULL || t->rx_pool == NULL) {
		snprintf(error, n, "no memory for %u packets of %u bytes: %s; %s", tx + rx, room,
			rte_strerror(rte_errno),
			rte_eal_has_hugepages() ? "free some huge pages or set huge_pages: false" : "raise memory_mb");
		return -1;
	}
	rte_mempool_obj_iter(t->tx_pool, egress_prepare_buffer, &t->pattern);
	return 0;
}

static int allocate(struct tester *t)
{
	const struct work *p = t->work;

	t->ports = p->job.ports;
	t->threads = p->job.cpus ? p->job.cpus : 1;
	t->port = rte_zmalloc("ports", p->job.ports * sizeof(*t->port), CACHE_LINE);
	t->egress = rte_zmalloc("egresses", p->job.ports * sizeof(*t->egress), CACHE_LINE);
	t->sender = rte_zmalloc("senders", p->job.streams * sizeof(*t->sender), CACHE_LINE);
	t->receiver = rte_zmalloc("receivers", p->job.streams * sizeof(*t->receiver), CACHE_LINE);
	t->thread = rte_zmalloc("threads", t->threads * sizeof(*t->thread), CACHE_LINE);
	return t->port && t->egress && t->sender && t->receiver && t->thread ? 0 : -1;
}

// DPDK's arguments, from the words of the job, as in the gateway's configuration.
static void device_args(const struct job_port *p, char *args, size_t n)
{
	const char *key = "iface=", *more = p->args;

	if (strcmp(p->driver, "pci") == 0 || p->device[0] == 0) {
		snprintf(args, n, "%s%s%s", p->device, p->device[0] && more[0] ? "," : "", more);
		return;
	}
	if (strcmp(p->driver, "net_memif") == 0)
		key = "socket-abstract=no,socket=";
	else if (strcmp(p->driver, "net_virtio_user") == 0)
		key = "path="; // of a vhost-user socket, as in the gateway's configuration
	snprintf(args, n, "%s%s%s%s", key, p->device, more[0] ? "," : "", more);
	if (strcmp(p->driver, "net_memif") != 0)
		return;
	size_t used = strlen(args);

	if (strstr(more, "role=") ==
		NULL) // a client gives its own memory to the link, so nothing is copied on this side
		used += (size_t)snprintf(
			args + used, n - used, ",role=client%s", rte_eal_has_hugepages() ? ",zero-copy=yes" : "");
	if (strstr(more, "rsize=") == NULL && used < n)
		snprintf(args + used, n - used, ",rsize=%d", rte_log2_u32(p->descriptors));
}

// A memif client starts only when its server listens; its driver says -1 (EPERM) before. We wait for it as for a link.
static int open_device(struct tester *t, struct tester_port *p, const struct ethdev_want *device, char *error, size_t n)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	bool client =
		strcmp(device->source.driver, "net_memif") == 0 && strstr(device->source.args, "role=client") != NULL;
	int code;

	while ((code = ethdev_open(&p->dev, p->want->name, device, error, n)) == EPERM && client &&
		clock_monotonic_ns() < t->links_until && !*t->stop) {
		log_hush(1); // it would complain each time
		nanosleep(&pause, NULL);
	}
	log_hush(0);
	if (code != 0 && *t->stop)
		snprintf(error, n, "interrupted while waiting for the link of port %s", p->want->name);
	else if (code == EPERM && client)
		snprintf(error, n, "port %s: no link after %.3g s: nobody listens at %s; is the other side running?",
			p->want->name, t->work->job.link_wait, p->want->device);
	return code == 0 ? 0 : -1;
}

// A memif port that shares its memory is connected before the next one is opened (zero_copy.h).
static int open_shared(struct tester *t, struct tester_port *p, const struct ethdev_want *device, char *error, size_t n)
{
	struct zero_copy kept;

	zero_copy_keep(&kept);
	bool opened = open_device(t, p, device, error, n) == 0;

	if (zero_copy_restore(&kept, p->dev.id, opened ? t->links_until : 0, t->stop) == 0 || !opened)
		return opened ? 0 : -1;
	if (*t->stop)
		snprintf(error, n, "interrupted while waiting for the link of port %s", p->want->name);
	else
		snprintf(error, n,
			"port %s: no link after %.3g s: whoever listens at %s does not answer; has it another client?",
			p->want->name, t->work->job.link_wait, p->want->device);
	return -1;
}

static int open_link(struct tester *t, struct tester_port *p, const struct ethdev_want *device, char *error, size_t n)
{
	const struct share_link_want want = {
		.name = p->want->name, .path = p->want->device, .ring = device->descriptors, .pool = t->rx_pool};

	p->dev.rx_queues = p->dev.tx_queues = 1;
	rte_eth_random_addr(p->dev.mac.addr_bytes);
	mac_given(&p->dev.mac, device->mac);
	p->link = share_open(t->share, &want, error, n);
	return p->link != NULL ? 0 : -1;
}

static int open_any(struct tester *t, struct tester_port *p, const struct ethdev_want *device, char *error, size_t n)
{
	if (is_link(p->want))
		return open_link(t, p, device, error, n);
	if (strstr(device->source.args, "zero-copy=yes") != NULL)
		return open_shared(t, p, device, error, n);
	return open_device(t, p, device, error, n);
}

static int open_port(struct tester *t, uint16_t index, char *error, size_t n)
{
	const struct job_port *want = &t->work->port[index];
	struct tester_port *p = &t->port[index];
	char args[2 * JOB_TEXT + 64], name[RTE_RING_NAMESIZE];
	struct ethdev_want device = {
		.source = {want->driver, args},
		.mtu = want->mtu,
		.tags = 8,
		.rx_queues = (uint16_t)want->queues,
		.tx_queues = (uint16_t)want->queues,
		.descriptors = (uint16_t)want->descriptors,
		.promiscuous = 1,
		.pool = t->rx_pool,
	};

	p->want = want;
	p->index = index;
	memcpy(device.mac, want->mac, 6);
	device_args(want, args, sizeof(args));
	if (open_any(t, p, &device, error, n) != 0)
		return -1;
	if (p->dev.tx_queues < device.tx_queues || p->dev.rx_queues < device.rx_queues) {
		ethdev_close(&p->dev);
		snprintf(error, n, "port %s: the device has %u+%u queues at most, not %u", want->name, p->dev.rx_queues,
			p->dev.tx_queues, device.tx_queues);
		return -1;
	}
	snprintf(name, sizeof(name), "neighbours-%u", index);
	p->neighbour_answers = rte_ring_create(name, BURST, SOCKET_ID_ANY, RING_F_SC_DEQ);
	p->check = (struct check){.pattern = &t->pattern,
		.receivers = t->receiver,
		.streams = t->work->job.streams,
		.port = index,
		.decode_every = DECODE_EVERY};
	return p->neighbour_answers != NULL ? 0 : -1;
}

static int make_streams(struct tester *t, char *error, size_t n)
{
	const struct work *p = t->work;
	uint32_t stride = 64;
	char name[RTE_RING_NAMESIZE];

	for (uint32_t i = 0; i < p->job.streams; i++)
		stride = RTE_MAX(stride, headers_stride(&p->stream[i].send));
	for (uint32_t i = 0; i < p->job.streams; i++) {
		const struct work_stream *s = &p->stream[i];

		if (sender_init(&t->sender[i], s, i, &t->pattern, stride) != 0 ||
			receiver_init(&t->receiver[i], s, i, &t->pattern) != 0) {
			snprintf(error, n, "no memory for the %u flows of stream %s", s->job.flows, s->job.name);
			return -1;
		}
	}
	for (uint32_t i = 0; i < p->job.streams; i++) {
		if (p->stream[i].job.answers < 0)
			continue;
		snprintf(name, sizeof(name), "answers-%u", i);
		t->sender[i].answers = rte_ring_create_elem(
			name, sizeof(struct answer), ANSWERS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (t->sender[i].answers == NULL) {
			snprintf(error, n, "no memory for the answers of stream %s", p->stream[i].job.name);
			return -1;
		}
		t->receiver[p->stream[i].job.answers].answers = t->sender[i].answers;
	}
	return 0;
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
	return b == 0 ? a : divisor(b, a % b);
}

// A stream with too small a part of all places would never be sent, and never be missed.
static int every_share_has_a_place(const struct egress *l, const struct group *g, char *error, size_t n)
{
	for (uint32_t i = 0; i < l->senders; i++) {
		bool found = l->sender[i]->want->job.share == 0;

		for (uint32_t place = 0; place < g->places && !found; place++)
			found = g->place[place] == i;
		if (found)
			continue;
		snprintf(error, n, "stream %s: its share of %u is too small beside those of the others at port %s",
			l->sender[i]->want->job.name, l->sender[i]->want->job.share, l->port->want->name);
		return -1;
	}
	return 0;
}

// The group of an egress's streams that share a rate: a pattern of places, in which each stream has its share, spread
// evenly (smooth weighted round robin). More than PLACES_MAX places are rounded.
static int make_shared_group(struct egress *l, struct group *g, char *error, size_t n)
{
	uint64_t total = 0;
	uint32_t common = 0;
	int64_t *credit = calloc(l->senders + 1, sizeof(*credit));

	for (uint32_t i = 0; i < l->senders; i++) {
		total += l->sender[i]->want->job.share;
		common = divisor(l->sender[i]->want->job.share, common);
	}
	g->places = common != 0 ? (uint32_t)RTE_MIN(total / common, (uint64_t)PLACES_MAX) : 0;
	g->place = calloc(g->places + 1, sizeof(*g->place));
	if (credit == NULL || g->place == NULL) {
		free(credit);
		return -1;
	}
	for (uint32_t place = 0; place < g->places; place++) {
		uint32_t best = 0;

		for (uint32_t i = 0; i < l->senders; i++) {
			credit[i] += l->sender[i]->want->job.share;
			if (credit[i] > credit[best])
				best = i;
		}
		credit[best] -= (int64_t)total;
		g->place[place] = (uint16_t)best;
	}
	free(credit);
	return every_share_has_a_place(l, g, error, n);
}

static int make_egress(struct tester *t, uint16_t index, char *error, size_t n)
{
	struct egress *l = &t->egress[index];

	l->port = &t->port[index];
	l->pool = t->tx_pool;
	l->stride = t->work->job.streams ? t->sender[0].headers.stride : 64;
	l->senders = l->groups = 0;
	l->sender = calloc(t->work->job.streams + 1, sizeof(*l->sender));
	l->group = calloc(t->work->job.streams + 1, sizeof(*l->group));
	if (l->sender == NULL || l->group == NULL)
		return -1;
	for (uint32_t i = 0; i < t->work->job.streams; i++)
		if (t->work->stream[i].job.port == index)
			l->sender[l->senders++] = &t->sender[i];
	if (make_shared_group(l, &l->group[l->groups++], error, n) != 0)
		return -1;
	for (uint32_t i = 0; i < l->senders; i++) { // each with a rate of its own
		struct group *g = &l->group[l->groups];

		if (l->sender[i]->want->job.own_pps == 0)
			continue;
		g->place = calloc(1, sizeof(*g->place));
		if (g->place == NULL)
			return -1;
		g->place[0] = (uint16_t)i;
		g->places = 1;
		l->groups++;
	}
	return 0;
}

// With a thread per direction of each port, every thread has one; else ports are dealt out in blocks.
static void deal_out(struct tester *t)
{
	for (uint32_t i = 0; i < t->threads; i++) {
		t->thread[i].tester = t;
		t->thread[i].index = i;
		t->thread[i].cpu = t->work->job.cpus ? t->work->job.cpu[i] : -1;
	}
	for (uint32_t i = 0; i < t->ports; i++) {
		uint32_t whole = i * t->threads / t->ports;
		struct tester_thread *receives = &t->thread[t->threads >= 2 * t->ports ? 2 * i : whole];
		struct tester_thread *sends = &t->thread[t->threads >= 2 * t->ports ? 2 * i + 1 : whole];

		receives->port[receives->ports++] = &t->port[i];
		sends->egress[sends->egresses++] = &t->egress[i];
	}
}

static int open_all(struct tester *t, char *error, size_t n)
{
	const struct work *p = t->work;

	pattern_fill(&t->pattern);
	snprintf(error, n, "no memory");
	if (allocate(t) != 0 || make_pools(t, error, n) != 0 || make_streams(t, error, n) != 0)
		return -1;
	for (uint16_t i = 0; i < p->job.ports; i++)
		if (open_port(t, i, error, n) != 0 || make_egress(t, i, error, n) != 0)
			return -1;
	deal_out(t);
	for (uint32_t i = 0; i < t->threads; i++) {
		t->thread[i].linear = rte_malloc("linear", FRAME_MAX + TEMPLATE_BYTES, CACHE_LINE);
		if (t->thread[i].linear == NULL)
			return -1;
	}
	if (p->job.capture.file[0] != 0) {
		t->capture = capture_open(&p->job.capture, t->threads, error, n);
		if (t->capture == NULL)
			return -1;
	}
	// Two testers, or two runs, must not take each other's packets for their own.
	t->nonce = (uint32_t)(rte_rdtsc() ^ (uint64_t)time(NULL) << 20);
	return threads_start(t, error, n);
}

struct tester *tester_open(
	const struct work *w, int argc, char **argv, const volatile sig_atomic_t *stop, char *error, size_t n)
{
	if (engine_eal_init("isthmus-traffic", w->job.huge_pages ? -1 : 0, w->job.memory_mb, argc, argv) != 0) {
		snprintf(error, n, "DPDK does not start: %s", rte_strerror(rte_errno));
		return NULL;
	}
	struct tester *t = calloc(1, sizeof(*t));

	if (t == NULL) {
		snprintf(error, n, "no memory");
		return NULL;
	}
	t->work = w;
	t->stop = stop;
	t->tsc_hz = (double)rte_get_tsc_hz();
	t->links_until = clock_monotonic_ns() + (uint64_t)(w->job.link_wait * 1e9);
	if (open_all(t, error, n) == 0) {
		error[0] = 0;
		return t;
	}
	tester_close(t);
	return NULL;
}

void tester_close(struct tester *t)
{
	if (t->thread != NULL)
		threads_stop(t);
	if (t->capture != NULL) {
		capture_poll(t->capture);
		if (capture_error(t->capture) != NULL)
			LOG(WARNING, "%s; the rest is missing\n", capture_error(t->capture));
		capture_close(t->capture);
	}
	for (uint32_t i = 0; t->port != NULL && t->egress != NULL && i < t->ports; i++) {
		if (t->port[i].link == NULL && t->port[i].neighbour_answers != NULL)
			ethdev_close(&t->port[i].dev);
		rte_ring_free(t->port[i].neighbour_answers);
		for (uint32_t g = 0; g < t->egress[i].groups; g++)
			free(t->egress[i].group[g].place);
		free(t->egress[i].group);
		free(t->egress[i].sender);
	}
	for (uint32_t i = 0; t->sender != NULL && t->receiver != NULL && i < t->work->job.streams; i++) {
		rte_ring_free(t->sender[i].answers);
		sender_free(&t->sender[i]);
		receiver_free(&t->receiver[i]);
	}
	for (uint32_t i = 0; t->thread != NULL && i < t->threads; i++)
		rte_free(t->thread[i].linear);
	if (t->share != NULL)
		share_free(t->share);
	else
		rte_mempool_free(t->tx_pool);
	rte_mempool_free(t->rx_pool);
	rte_free(t->port);
	rte_free(t->egress);
	rte_free(t->sender);
	rte_free(t->receiver);
	rte_free(t->thread);
	free(t);
}
