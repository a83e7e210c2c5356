// SPDX-License-Identifier: Apache-2.0
// For tests: both ends of two links in one process. After <cmocka.h>.
#ifndef SHARE_KIT_H
#define SHARE_KIT_H

#include "share/inside.h"
#include <rte_eal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUFFERS 256u
#define RING 64u
#define ROOM 2176u

struct side {
	struct share *share;
	struct share_link *link[2];
};

static struct rte_mempool *copies;
static char path[2][64];

static inline struct share_link *open_link(struct share *s, int i, bool server)
{
	const struct share_link_want want = {
		.name = "x", .path = path[i], .server = server, .ring = RING, .headroom = 128, .pool = copies};
	char error[200];
	struct share_link *l = share_open(s, &want, error, sizeof(error));

	assert_non_null(l);
	return l;
}

static inline struct side side_open(bool server)
{
	const struct share_want want = {
		.name = server ? "server" : "client", .buffers = BUFFERS, .room = ROOM, .private_size = 64, .cache = 0};
	char error[200];
	struct side s = {.share = share_new(&want, error, sizeof(error))};

	assert_non_null(s.share);
	for (int i = 0; i < 2; i++)
		s.link[i] = open_link(s.share, i, server);
	return s;
}

static inline bool connected(const struct side *s)
{
	return share_up(s->link[0]) && share_up(s->link[1]);
}

static inline void connect_both(struct side *a, struct side *b)
{
	for (int i = 0; i < 10 && !(connected(a) && connected(b)); i++) {
		share_poll(a->share);
		share_poll(b->share);
	}
	assert_true(connected(a) && connected(b));
}

// The process of this side ends: nothing is given back, the kernel closes its files.
static inline void die(struct side *s)
{
	share_free(s->share);
	s->share = NULL;
}

// Notices dead peers and takes back buffers.
static inline void settle(struct side *s)
{
	struct rte_mbuf *m;

	for (int i = 0; i < 3; i++) {
		share_poll(s->share);
		for (int k = 0; k < 2; k++)
			assert_int_equal(share_rx(s->link[k], &m, 1), 0);
	}
}

static inline void assert_whole(struct side *s)
{
	settle(s);
	assert_int_equal(share_lent(s->share), 0);
	assert_int_equal(rte_mempool_avail_count(share_pool(s->share)), BUFFERS);
}

static inline struct rte_mbuf *frame(struct rte_mempool *pool, uint16_t length, uint8_t fill)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, length), fill, length);
	return m;
}

static inline uint16_t send_one(struct share_link *l, struct rte_mbuf *m)
{
	return share_tx(l, &m, 1);
}

static inline struct rte_mbuf *receive_one(struct share_link *l)
{
	struct rte_mbuf *m = NULL;

	return share_rx(l, &m, 1) == 1 ? m : NULL;
}

static inline void assert_frame(const struct rte_mbuf *m, uint16_t length, uint8_t fill)
{
	assert_non_null(m);
	assert_int_equal(m->pkt_len, length);
	for (uint16_t i = 0; i < length; i++)
		assert_int_equal(rte_pktmbuf_mtod(m, const uint8_t *)[i], fill);
}

static inline void assert_passes(struct side *a, struct side *b)
{
	assert_int_equal(send_one(a->link[0], frame(share_pool(a->share), 60, 7)), 1);
	struct rte_mbuf *m = receive_one(b->link[0]);

	assert_frame(m, 60, 7);
	rte_pktmbuf_free(m);
}

// Of the test program, at its start. Returns -1 when DPDK does not start.
static inline int kit_start(void)
{
	char *args[] = {"share-test", "--no-huge", "--no-shconf", "-m", "256", "--no-pci", "--no-telemetry", "-l", "0",
		"--log-level", "lib.eal:error", "--log-level", "isthmus.share:error"};

	if (rte_eal_init(RTE_DIM(args), args) < 0)
		return -1;
	copies = rte_pktmbuf_pool_create("copies", 1023, 0, 64, 2048 + 128, SOCKET_ID_ANY);
	for (int i = 0; i < 2; i++)
		snprintf(path[i], sizeof(path[i]), "/tmp/share-test-%d.%d", (int)getpid(), i);
	return 0;
}

#endif
