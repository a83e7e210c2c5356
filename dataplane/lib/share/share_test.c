// SPDX-License-Identifier: Apache-2.0
// Both ends of links in one process: frames in place, full and empty rings, copies, a peer that writes garbage, and the
// death of either side at every step. In the end every buffer is back and the next peer is served.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "share/share_kit.h"
#include <rte_malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

// Forward without a copy, on through another link without a copy, and home as the sent mbuf.
static void test_in_place(void **state)
{
	struct side a = side_open(true), b = side_open(false);

	connect_both(&a, &b);
	struct rte_mbuf *sent = frame(share_pool(a.share), 1400, 0x5a);

	sent->hash.usr = 99;
	assert_int_equal(send_one(a.link[0], sent), 1);
	struct rte_mbuf *there = receive_one(b.link[0]);

	assert_frame(there, 1400, 0x5a);
	assert_non_null(rte_pktmbuf_adj(there, 14));
	memset(rte_pktmbuf_prepend(there, 4), 0x11, 4);
	assert_int_equal(share_lent(a.share), 1);
	assert_int_equal(send_one(b.link[1], there), 1);
	struct rte_mbuf *home = receive_one(a.link[1]);

	assert_ptr_equal(home, sent);
	assert_int_equal(home->pkt_len, 1390);
	assert_int_equal(home->hash.usr, 99);
	assert_int_equal(rte_pktmbuf_mtod(home, uint8_t *)[3], 0x11);
	rte_pktmbuf_free(home);
	assert_int_equal(send_one(a.link[0], frame(share_pool(a.share), 60, 1)), 1);
	rte_pktmbuf_free(receive_one(b.link[0])); // given back without a frame
	assert_whole(&a);
	assert_whole(&b);
	die(&a);
	die(&b);
}

static void test_full_and_empty(void **state)
{
	struct side a = side_open(true), b = side_open(false);
	struct rte_mbuf *m[RING + 1];

	connect_both(&a, &b);
	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 0; i <= RING; i++)
			m[i] = frame(share_pool(a.share), 60, (uint8_t)i);
		assert_int_equal(share_tx(a.link[0], m, RING + 1), RING);
		assert_int_equal(share_tx(a.link[0], m + RING, 1), 0);
		rte_pktmbuf_free(m[RING]);
		assert_int_equal(share_rx(b.link[0], m, RING + 1), RING);
		for (uint32_t i = 0; i < RING; i++)
			assert_frame(m[i], 60, (uint8_t)i);
		assert_int_equal(share_rx(b.link[0], m, 1), 0);
		rte_pktmbuf_free_bulk(m, RING);
		assert_int_equal(share_rx(a.link[0], m, 1), 0);
	}
	assert_whole(&a);
	die(&b);
	assert_whole(&a);
	die(&a);
}

static void test_copies(void **state)
{
	struct side a = side_open(true), b = side_open(false);
	struct share_counters c;

	connect_both(&a, &b);
	struct rte_mbuf *chain = frame(copies, 1000, 3), *shared = frame(copies, 500, 3);

	assert_int_equal(rte_pktmbuf_chain(chain, frame(copies, 400, 3)), 0);
	assert_int_equal(send_one(a.link[0], chain), 1);
	assert_frame(chain = receive_one(b.link[0]), 1400, 3);
	rte_pktmbuf_free(chain);
	rte_mbuf_refcnt_update(shared, 1);
	assert_int_equal(send_one(a.link[0], shared), 1);
	assert_int_equal(rte_mbuf_refcnt_read(shared), 1);
	rte_pktmbuf_free(shared);
	rte_pktmbuf_free(receive_one(b.link[0]));
	share_count(a.link[0], &c);
	assert_int_equal(c.copied, 2);

	// Too long or too short for the link: the others go, and it stays with the caller.
	struct rte_mbuf *m[3] = {frame(copies, 1500, 4), frame(copies, 10, 4), frame(copies, 60, 5)};

	for (int i = 0; i < 2; i++)
		assert_int_equal(rte_pktmbuf_chain(m[0], frame(copies, 1500, 4)), 0);
	assert_int_equal(share_tx(a.link[0], m, 3), 1);
	rte_pktmbuf_free_bulk(m + 1, 2);
	assert_frame(m[0] = receive_one(b.link[0]), 60, 5);
	rte_pktmbuf_free(m[0]);

	// Without headroom.
	m[0] = frame(share_pool(a.share), 60, 6);
	rte_pktmbuf_prepend(m[0], 20);
	rte_pktmbuf_trim(m[0], 20);
	assert_int_equal(send_one(a.link[0], m[0]), 1);
	m[0] = receive_one(b.link[0]);
	assert_ptr_equal(m[0]->pool, copies);
	assert_int_equal(m[0]->data_off, 128);
	rte_pktmbuf_free(m[0]);
	receive_one(a.link[0]);
	assert_whole(&a);
	die(&a);
	die(&b);
	assert_int_equal(rte_mempool_avail_count(copies), 1023);
}

// Frames too short for a link, or without a buffer for their copy: sent and remaining ones keep their order.
static void test_order(void **state)
{
	struct side a = side_open(true), b = side_open(false);
	struct rte_mbuf *m[7], *got[7], *all[BUFFERS];

	connect_both(&a, &b);
	for (uint8_t i = 0; i < 7; i++)
		m[i] = frame(copies, i == 1 || i == 3 || i == 4 ? 10 : 60, i);
	assert_int_equal(share_tx(a.link[0], m, 7), 4);
	for (int i = 0; i < 3; i++)
		assert_frame(m[4 + i], 10, (const uint8_t[]){1, 3, 4}[i]);
	rte_pktmbuf_free_bulk(m + 4, 3);
	assert_int_equal(share_rx(b.link[0], got, 7), 4);
	for (int i = 0; i < 4; i++)
		assert_frame(got[i], 60, (const uint8_t[]){0, 2, 5, 6}[i]);
	rte_pktmbuf_free_bulk(got, 4);
	settle(&a);

	assert_int_equal(rte_pktmbuf_alloc_bulk(share_pool(a.share), all, BUFFERS), 0);
	for (uint8_t i = 0; i < 7; i++)
		m[i] = i % 2 ? frame(copies, 60, i) : all[i];
	for (uint8_t i = 0; i < 7; i += 2)
		memset(rte_pktmbuf_append(m[i], 60), i, 60);
	assert_int_equal(share_tx(a.link[0], m, 7), 4);
	for (uint8_t i = 0; i < 3; i++)
		assert_frame(m[4 + i], 60, 2 * i + 1);
	rte_pktmbuf_free_bulk(m + 4, 3);
	assert_int_equal(share_rx(b.link[0], got, 7), 4);
	for (uint8_t i = 0; i < 4; i++)
		assert_frame(got[i], 60, 2 * i);
	rte_pktmbuf_free_bulk(got, 4);
	for (uint32_t i = 0; i < BUFFERS; i++)
		if (i >= 7 || i % 2)
			rte_pktmbuf_free(all[i]);
	assert_whole(&a);
	die(&a);
	die(&b);
}

// A peer that keeps frames does not stop the link: from half of the buffers on they are copies.
static void test_hoarder(void **state)
{
	struct side a = side_open(true), b = side_open(false);
	struct rte_mbuf *kept[300];

	connect_both(&a, &b);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(send_one(a.link[0], frame(share_pool(a.share), 60, (uint8_t)i)), 1);
		assert_non_null(kept[i] = receive_one(b.link[0]));
		assert_null(receive_one(a.link[0]));
	}
	assert_int_equal(share_lent(a.share), BUFFERS / 2);
	for (int i = 0; i < 300; i++)
		assert_frame(kept[i], 60, (uint8_t)i);
	rte_pktmbuf_free_bulk(kept, 300);
	receive_one(a.link[0]);
	assert_whole(&a);
	die(&a);
	die(&b);
}

static const char *const steps[] = {"connects", "says hello", "lends", "borrows", "sends home", "receives home",
	"keeps one", "gives back", "is given back", "fills the ring"};

// Both sides advance to step `last`. kept[] has the frames that they hold.
static void go(struct side *a, struct side *b, int last, struct rte_mbuf *kept[2])
{
	struct rte_mbuf *m = NULL;

	kept[0] = kept[1] = NULL;
	if (last < 2) {
		share_poll(b->share); // connects to what may not have been accepted
		if (last == 1)
			share_poll(a->share);
		return;
	}
	connect_both(a, b);
	for (int step = 2; step <= last; step++) {
		if (step == 2)
			send_one(a->link[0], frame(share_pool(a->share), 60, 1));
		else if (step == 3)
			m = receive_one(b->link[0]);
		else if (step == 4)
			send_one(b->link[1], m);
		else if (step == 5)
			rte_pktmbuf_free(receive_one(a->link[1]));
		else if (step == 6)
			send_one(a->link[0], frame(share_pool(a->share), 60, 2)), kept[1] = receive_one(b->link[0]);
		else if (step == 7)
			send_one(b->link[0], frame(share_pool(b->share), 60, 3)),
				kept[0] = receive_one(a->link[0]),
				send_one(a->link[0], frame(share_pool(a->share), 60, 4)),
				rte_pktmbuf_free(receive_one(b->link[0]));
		else if (step == 8)
			assert_null(receive_one(a->link[1]));
		else
			for (uint32_t i = 0; i < RING; i++)
				send_one(a->link[1], frame(share_pool(a->share), 60, 5));
	}
	if (last == 3)
		kept[1] = m;
}

static void test_death(void **state)
{
	for (uint32_t i = 0; i < 2 * RTE_DIM(steps); i++) {
		int step = (int)i / 2;
		struct side a = side_open(true), b = side_open(false), c;
		struct rte_mbuf *kept[2];
		struct side *dead = i % 2 ? &a : &b, *alive = i % 2 ? &b : &a;

		go(&a, &b, step, kept);
		print_message("one dies: %s\n", steps[step]);
		die(dead);
		struct rte_mbuf *held = kept[i % 2];

		share_poll(alive->share); // a hello may still be there to be heard
		share_poll(alive->share);
		assert_false(share_up(alive->link[0]) || share_up(alive->link[1]));
		if (held != NULL) // of the dead side: it can be read and written until it is freed
			memset(rte_pktmbuf_mtod(held, uint8_t *), 9, 60), assert_frame(held, 60, 9);
		c = side_open(i % 2);
		connect_both(alive, &c); // before all that was the dead one's is gone
		assert_passes(alive, &c);
		assert_passes(&c, alive);
		rte_pktmbuf_free(held);
		assert_whole(alive);
		die(&c);
		assert_whole(alive);
		die(alive);
	}
}

// A side that lives on and closes a port keeps the frames that it has; the lender gets them when they are freed, not
// before.
static void test_close_alive(void **state)
{
	struct side a = side_open(true), b = side_open(false);

	connect_both(&a, &b);
	assert_int_equal(send_one(a.link[0], frame(share_pool(a.share), 60, 1)), 1);
	struct rte_mbuf *held = receive_one(b.link[0]);

	assert_non_null(held);
	share_close(b.link[0]);
	share_poll(a.share);
	share_poll(b.share);
	assert_int_equal(share_lent(a.share), 1);
	b.link[0] = open_link(b.share, 0, false);
	connect_both(&a, &b);
	assert_passes(&a, &b);
	settle(&a);
	assert_int_equal(share_lent(a.share), 1);
	assert_frame(held, 60, 1);
	rte_pktmbuf_free(held);
	share_poll(b.share);
	assert_whole(&a);
	die(&a);
	die(&b);
}

#define DESCRIPTOR(buffer, offset, length) ((uint64_t)(buffer) | (uint64_t)(offset) << 32 | (uint64_t)(length) << 48)

// Breaks each rule: written by b, noticed by a in share_rx or share_tx.
static void break_rule(struct side *a, struct side *b, uint32_t rule)
{
	struct outbox *o = b->link[0]->mine;
	const uint64_t frames[] = {DESCRIPTOR(BUFFERS, 128, 60), DESCRIPTOR(0x7fffffff, 128, 60),
		DESCRIPTOR(0, 2150, 60), DESCRIPTOR(0, 65535, 65535), DESCRIPTOR(0, 128, 13), DESCRIPTOR(0, 128, 0),
		DESCRIPTOR(DESCRIPTOR_HOME | 0, 128, 60), DESCRIPTOR(DESCRIPTOR_HOME | BUFFERS, 128, 60)};

	if (rule < RTE_DIM(frames)) {
		o->frame[0] = frames[rule];
		o->sent = 1;
	} else if (rule == 8) { // the same twice
		o->frame[0] = o->frame[1] = DESCRIPTOR(5, 128, 60);
		o->sent = 2;
	} else if (rule == 9) {
		o->sent = RING + 1;
	} else if (rule == 10) {
		o->sent = UINT32_MAX;
	} else if (rule == 11) { // gives what it was not lent
		o->give[0] = 3;
		o->given = 1;
	} else if (rule == 12) {
		o->give[0] = UINT16_MAX;
		o->given = 1;
	} else if (rule == 13) {
		o->given = UINT32_MAX;
	} else if (rule == 14) {
		o->taken = 1;
	} else {
		o->taken = UINT32_MAX / 2;
	}
}

static void test_broken_rules(void **state)
{
	struct side a = side_open(true);

	for (uint32_t rule = 0; rule < 16; rule++) {
		struct side b = side_open(false);
		struct rte_mbuf *m[8];

		connect_both(&a, &b);
		break_rule(&a, &b, rule);
		uint16_t n = share_rx(a.link[0], m, RTE_DIM(m));

		rte_pktmbuf_free_bulk(m, n);
		assert_int_equal(n, rule == 8);
		struct rte_mbuf *out = frame(share_pool(a.share), 60, 1);

		if (send_one(a.link[0], out) == 0)
			rte_pktmbuf_free(out);
		assert_true(a.link[0]->broken);
		share_poll(a.share);
		assert_false(share_up(a.link[0]) || share_up(a.link[1]));
		die(&b);
		assert_whole(&a);
	}
	struct side c = side_open(false);

	connect_both(&a, &c);
	assert_passes(&a, &c);
	die(&c);
	assert_whole(&a);
	die(&a);
}

// Arbitrary words while frames go both ways: no access outside (the sanitizers look), no loss.
static void test_random_words(void **state)
{
	struct side a = side_open(true);

	srandom(1);
	for (int round = 0; round < 300; round++) {
		struct side b = side_open(false);
		struct rte_mbuf *m[16], *held[64];
		uint32_t holds = 0;

		connect_both(&a, &b);
		for (int i = 0; i < 60; i++) {
			struct outbox *o = b.link[random() % 2]->mine;
			uint64_t word = (uint64_t)random() << 33 ^ (uint64_t)random() << 10 ^ (uint64_t)random();

			if (random() % 2)
				word = DESCRIPTOR(
					(random() % 2 ? DESCRIPTOR_HOME : 0u) | (uint32_t)random() % (BUFFERS + 2),
					random() % (ROOM + 9), random() % 300);
			o->frame[random() % RING] = word;
			o->give[(unsigned)random() % 80] = (uint16_t)(random() % (BUFFERS + 1));
			if (random() % 4 == 0)
				o->sent += (uint32_t)random() % 4;
			if (random() % 8 == 0)
				o->given += (uint32_t)random() % 2;
			if (random() % 8 == 0)
				o->taken += (uint32_t)random() % 2;
			for (int port = 0; port < 2; port++) {
				uint16_t n = share_rx(a.link[port], m, RTE_DIM(m));

				for (uint16_t k = 0; k < n; k++)
					memset(rte_pktmbuf_mtod(m[k], void *), 1, m[k]->data_len);
				if (n > 0 && holds < RTE_DIM(held))
					held[holds++] = m[--n];
				uint16_t sent = share_tx(a.link[!port], m, n);

				rte_pktmbuf_free_bulk(m + sent, n - sent);
				struct rte_mbuf *own = rte_pktmbuf_alloc(share_pool(a.share));

				if (own == NULL)
					continue;
				own->pkt_len = own->data_len = 60;
				if (send_one(a.link[port], own) == 0)
					rte_pktmbuf_free(own);
			}
		}
		die(&b);
		share_poll(a.share);
		rte_pktmbuf_free_bulk(held, holds);
		assert_whole(&a);
	}
	die(&a);
}

// Another thread receives by the second link at the moment when the first one changes the buffer's owner. The page is
// read-only, so that write faults, and the signal's handler plays the other thread.
static struct {
	struct side *side;
	uint8_t *page;
	struct rte_mbuf *m;
} other;

static void other_thread(int signal)
{
	if (mprotect(other.page, 4096, PROT_READ | PROT_WRITE) != 0)
		abort();
	other.m = receive_one(other.side->link[1]);
}

// Moves `whose` to a page of its own.
static uint8_t *watched(uint8_t *whose)
{
	other.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(other.page != MAP_FAILED);
	memcpy(other.page, whose, BUFFERS);
	assert_int_equal(mprotect(other.page, 4096, PROT_READ), 0);
	return other.page;
}

enum { NEW, HOME, GIVEN };

// By a link: a buffer of b's own is a's now, a's comes home, a's is given back.
static void say_by(struct side *b, int link, int what, uint32_t buffer)
{
	struct outbox *o = b->link[link]->mine;

	o->frame[0] = DESCRIPTOR((what == HOME ? DESCRIPTOR_HOME : 0) | buffer, 128, 60);
	o->give[0] = (uint16_t)buffer;
	o->sent = what != GIVEN;
	o->given = what == GIVEN;
}

// One buffer by both links.
static void test_twice_at_once(void **state)
{
	static const int said[][2] = {{NEW, NEW}, {HOME, HOME}, {HOME, GIVEN}, {GIVEN, HOME}, {GIVEN, GIVEN}};
	struct side a = side_open(true);
	struct sigaction action = {.sa_handler = other_thread, .sa_flags = SA_NODEFER}, before;

	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (uint32_t i = 0; i < RTE_DIM(said); i++) {
		struct side b = side_open(false);

		connect_both(&a, &b);
		struct rte_mbuf *lent = frame(share_pool(a.share), 60, 1);
		uint32_t buffer = buffer_of(&a.share->own, lent), there = rte_mempool_avail_count(share_pool(a.share));
		uint8_t **whose = said[i][0] == NEW ? &a.link[0]->peer->borrowed : &a.share->lent, *kept = *whose;

		assert_int_equal(send_one(a.link[0], lent), 1);
		for (int link = 0; link < 2; link++)
			say_by(&b, link, said[i][link], buffer);
		other.side = &a;
		other.m = NULL;
		*whose = watched(kept);
		struct rte_mbuf *m = receive_one(a.link[0]);

		memcpy(kept, *whose, BUFFERS);
		*whose = kept;
		munmap(other.page, 4096);
		uint32_t back = rte_mempool_avail_count(share_pool(a.share)) - there;

		assert_int_equal((m != NULL) + (other.m != NULL) + back, 1);
		assert_true(a.link[0]->broken);
		assert_false(a.link[1]->broken);
		rte_pktmbuf_free(m);
		rte_pktmbuf_free(other.m);
		die(&b);
		assert_whole(&a);
	}
	sigaction(SIGSEGV, &before, NULL);
	die(&a);
}

struct words {
	uint32_t word[5];
	size_t bytes;
	int memory, files; // memory -1: as it must be
};

static void say(int fd, struct words *w, int *file)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {w->word, w->bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (w->files > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE((size_t)w->files * sizeof(int));
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);

		*head = (struct cmsghdr){CMSG_LEN((size_t)w->files * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(head), file, (size_t)w->files * sizeof(int));
	}
	assert_true(sendmsg(fd, &message, 0) >= 0);
}

static uint32_t open_files(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += dup2(fd, fd) == fd;
	return n;
}

static int raw_client(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path[0]);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

// Each differs from the last, good one in one thing.
static void test_bad_hello(void **state)
{
	struct share *other = share_new(&(struct share_want){.name = "o", .buffers = 16, .room = ROOM}, path[0], 0);
	struct side a = side_open(true);
	int unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING), pipe_[2];

	assert_int_equal(pipe(pipe_), 0);
	const struct words row[] = {
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, -1, 2}, // too few files
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, -1, 0},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, -1, 8},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 19, -1, 3},
		{{SHARE_MAGIC + 1, SHARE_VERSION, 16, ROOM, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION + 1, 16, ROOM, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 0, ROOM, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 1600, ROOM, RING}, 20, -1, 3}, // more than there are
		{{SHARE_MAGIC, SHARE_VERSION, UINT32_MAX, ROOM, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, 0, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM + 1, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, 1u << 31, RING}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, 0}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, 96}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, 1u << 30}, 20, -1, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, unsealed, 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, pipe_[1], 3},
		{{SHARE_MAGIC, SHARE_VERSION, 16, ROOM, RING}, 20, -1, 3},
	};
	uint8_t *at_outbox;
	int outbox = memory_make("outbox", sizeof(struct outbox), &at_outbox);

	assert_true(outbox >= 0);
	assert_int_equal(ftruncate(unsealed, 1 << 20), 0);
	for (uint32_t i = 0; i < RTE_DIM(row); i++) {
		struct words w = row[i];
		int memory = w.memory >= 0 ? w.memory : other->fd, before = (int)open_files();
		int fd = raw_client(), file[8] = {memory, outbox, pipe_[1], 0, 0, 0, 0, 0};
		bool good = i == RTE_DIM(row) - 1;

		say(fd, &w, file);
		share_poll(a.share);
		share_poll(a.share);
		if (share_up(a.link[0]) != good)
			fail_msg("hello %u", i);
		close(fd);
		share_poll(a.share);
		assert_int_equal(a.link[0]->fd, -1);
		if (!good)
			assert_int_equal(open_files(), before);
	}
	memory_unmap(at_outbox, sizeof(struct outbox));
	close(outbox);
	close(unsealed);
	close(pipe_[0]);
	close(pipe_[1]);
	share_free(other);
	struct side b = side_open(false);

	connect_both(&a, &b);
	assert_passes(&a, &b);
	die(&b);
	assert_whole(&a);
	die(&a);
}

// Sends a socket whose last close(2) would block for an hour. This one is not the last.
static void say_lingering(int fd, int lingering, int times)
{
	struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	struct words w = {.bytes = 1, .files = times};
	int file[8];

	for (int i = 0; i < times; i++)
		file[i] = lingering;
	assert_int_equal(setsockopt(lingering, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	say(fd, &w, file);
}

static bool lingers(int fd)
{
	struct linger is;
	socklen_t n = sizeof(is);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_LINGER, &is, &n), 0);
	return is.l_onoff != 0;
}

// Closing received descriptors does not block: of a hello, of a link that sleeps, of an unread socket.
static void test_lingering(void **state)
{
	struct side a = side_open(true), b;
	int s = socket(AF_INET, SOCK_STREAM, 0), fd = raw_client(), any;

	say_lingering(fd, s, 8);
	share_poll(a.share);
	share_poll(a.share);
	assert_false(lingers(s));
	close(fd);
	b = side_open(false);
	connect_both(&a, &b);
	say_lingering(b.link[0]->fd, s, 1);
	assert_true(share_sleep(a.link[0], &any));
	assert_false(lingers(s));
	say_lingering(b.link[1]->fd, s, 1);
	die(&a);
	assert_false(lingers(s));
	die(&b);
	close(s);
}

// A killed server's socket is no obstacle; a live one's is.
static void test_socket(void **state)
{
	char error[200];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path[0]);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	struct side a = side_open(true);
	const struct share_link_want want = {
		.name = "y", .path = path[0], .server = true, .ring = RING, .pool = copies};

	assert_null(share_open(a.share, &want, error, sizeof(error)));
	assert_non_null(strstr(error, "in use"));
	die(&a);
	assert_int_equal(access(path[0], F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_full_and_empty),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_hoarder),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_close_alive),
		cmocka_unit_test(test_broken_rules),
		cmocka_unit_test(test_random_words),
		cmocka_unit_test(test_twice_at_once),
		cmocka_unit_test(test_bad_hello),
		cmocka_unit_test(test_lingering),
		cmocka_unit_test(test_socket),
	};
	if (kit_start() != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
