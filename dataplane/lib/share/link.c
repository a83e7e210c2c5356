// SPDX-License-Identifier: Apache-2.0
// Frames and buffers across a link.
#include "share/burst.h"
#include "share/inside.h"
#include "share/rights.h"
#include <string.h>
#include <sys/socket.h>

#define FRAME_MIN 14 // an Ethernet header
#define RINGS 8 // taken at once; one is honest, or two

// A packet mbuf as drivers make it; next is NULL while an mbuf is in a pool or under way.
static inline struct rte_mbuf *make(struct rte_mbuf *m, uint32_t offset, uint32_t length)
{
	uint64_t rearm = offset | 1ull << 16 | 1ull << 32 | (uint64_t)RTE_MBUF_PORT_INVALID << 48;

	memcpy(&m->rearm_data, &rearm, sizeof(rearm));
	m->ol_flags = 0;
	m->packet_type = 0;
	m->pkt_len = length;
	m->data_len = (uint16_t)length;
	return m;
}

// After giving to the other side: wakes it if it sleeps, once per sleep. The caller holds the lock of `rung`, so the
// socket is open.
static inline void ring(struct share_link *l, uint32_t *rung)
{
	// Either we see that it sleeps, or share_sleep() sees our frames.
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	uint32_t sleeps = __atomic_load_n(&l->theirs->sleeps, __ATOMIC_RELAXED);

	if (likely(sleeps == *rung))
		return;
	*rung = sleeps;
	// A socket full of rings wakes it, too.
	if (send(l->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return;
}

// A buffer belongs to a session with several links; a lock belongs to one link. If two links name the same buffer at
// once, one thread gets it: its owner changes from `from` to `to`.
static inline bool claim(uint8_t *whose, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(whose, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

// `to` may claim it at once: we no longer use its mbuf.
static inline void give_up(uint8_t *whose, uint8_t to)
{
	__atomic_store_n(whose, to, __ATOMIC_RELEASE);
}

// Freed mbufs of a session's pool, in any thread. An honest peer's give[] has room: it is as long as it can have
// buffers.
int give_back(struct rte_mempool *pool, void *const *mbufs, unsigned n)
{
	struct peer *p = pool->pool_config;
	struct share_link *l;

	if (unlikely(p->pool == NULL)) // the pool is being filled
		return 0;
	rte_spinlock_lock(&p->lock);
	l = p->give;
	for (unsigned i = 0; i < n; i++) {
		uint32_t buffer = buffer_of(&p->theirs, mbufs[i]);

		give_up(&p->borrowed[buffer], 0);
		if (l != NULL)
			l->mine->give[l->given++ % SHARE_BUFFERS_MAX] = (uint16_t)buffer;
	}
	if (l != NULL)
		__atomic_store_n(&l->mine->given, l->given, __ATOMIC_RELEASE);
	// A sleeper need not hear of each, but another of its threads may send and run out of them.
	if (l != NULL && l->given - l->given_told > p->theirs.count / 4) {
		l->given_told = l->given;
		ring(l, &l->given_rung);
	}
	__atomic_sub_fetch(&p->out, n, __ATOMIC_RELEASE);
	rte_spinlock_unlock(&p->lock);
	return 0;
}

static void take_back(struct share_link *l, struct peer *p)
{
	struct share *s = l->share;
	uint32_t ready = __atomic_load_n(&l->theirs->given, __ATOMIC_ACQUIRE) - l->returned;

	if (likely(ready == 0))
		return;
	if (unlikely(ready > SHARE_BUFFERS_MAX)) {
		l->broken = true;
		return;
	}
	for (uint32_t i = 0; i < ready; i++) {
		uint16_t buffer =
			__atomic_load_n(&l->theirs->give[l->returned++ % SHARE_BUFFERS_MAX], __ATOMIC_RELAXED);

		if (unlikely(buffer >= s->own.count || !claim(&s->lent[buffer], p->number, 0))) {
			l->broken = true;
			return;
		}
		struct rte_mbuf *m = s->own.mbuf[buffer];

		m->hash.usr = SHARE_UNKNOWN;
		rte_mempool_put(s->pool, m);
	}
}

uint32_t lent_sweep(struct share *s, uint8_t number)
{
	uint32_t swept = 0;

	for (uint32_t i = 0; i < s->own.count; i++)
		if (s->lent[i] == number) {
			s->lent[i] = 0;
			s->own.mbuf[i]->hash.usr = SHARE_UNKNOWN;
			rte_mempool_put(s->pool, s->own.mbuf[i]);
			swept++;
		}
	return swept;
}

// Reads one descriptor once. Returns NULL, and takes nothing, when it breaks a rule.
static inline struct rte_mbuf *accept_frame(struct share_link *l, struct peer *p, uint64_t descriptor)
{
	struct share *s = l->share;
	uint32_t buffer = (uint32_t)descriptor & ~DESCRIPTOR_HOME, offset = descriptor >> 32 & 0xffff,
		 length = descriptor >> 48;
	bool home = (descriptor & DESCRIPTOR_HOME) != 0;
	const struct buffers *b = home ? &s->own : &p->theirs;

	if (unlikely(buffer >= b->count || length < FRAME_MIN || offset + length > b->bytes))
		return NULL;
	if (unlikely(home ? !claim(&s->lent[buffer], p->number, 0) : !claim(&p->borrowed[buffer], 0, 1)))
		return NULL;
	return make(b->mbuf[buffer], offset, length);
}

// Copies into our buffers: a frame without headroom, and everything while we hold half of the other side's.
static uint16_t copy_received(struct share_link *l, struct rte_mbuf **pkts, uint16_t n, bool all)
{
	uint16_t left = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (all || m->data_off < l->headroom) {
			m = rte_pktmbuf_copy(pkts[i], l->copies, 0, UINT32_MAX);
			rte_pktmbuf_free(pkts[i]);
			l->received.copied += m != NULL;
			l->received.no_buffer += m == NULL;
		}
		if (m != NULL)
			pkts[left++] = m;
	}
	return left;
}

static uint16_t receive(struct share_link *l, struct peer *p, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t ready = __atomic_load_n(&l->theirs->sent, __ATOMIC_ACQUIRE) - l->taken, borrowed = 0;
	bool low = false;

	if (ready == 0)
		return 0;
	if (unlikely(ready > l->their_ring)) {
		l->broken = true;
		return 0;
	}
	n = (uint16_t)RTE_MIN(ready, (uint32_t)n);
	for (uint16_t i = 0; i < n; i++) {
		uint64_t descriptor =
			__atomic_load_n(&l->theirs->frame[(l->taken + i) & (l->their_ring - 1)], __ATOMIC_RELAXED);
		struct rte_mbuf *m = accept_frame(l, p, descriptor);

		if (unlikely(m == NULL)) {
			l->broken = true;
			n = i;
			break;
		}
		pkts[i] = m;
		low |= m->data_off < l->headroom;
		borrowed += (descriptor & DESCRIPTOR_HOME) == 0;
	}
	l->taken += n;
	__atomic_store_n(&l->mine->taken, l->taken, __ATOMIC_RELEASE);
	bool half = borrowed != 0 && __atomic_add_fetch(&p->out, borrowed, __ATOMIC_RELAXED) > p->theirs.count / 2;

	return unlikely(low || half) ? copy_received(l, pkts, n, half) : n;
}

uint16_t share_rx(struct share_link *l, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t got = 0;

	if (!rte_spinlock_trylock(&l->rx_lock))
		return 0;
	if (likely(l->peer != NULL && !l->broken)) {
		take_back(l, l->peer);
		if (likely(!l->broken))
			got = receive(l, l->peer, pkts, n);
	}
	rte_spinlock_unlock(&l->rx_lock);
	return got;
}

bool share_sleep(struct share_link *l, int *fd)
{
	bool nothing = true;
	char byte;

	*fd = -1;
	if (!rte_spinlock_trylock(&l->rx_lock))
		return false;
	if (likely(l->peer != NULL && !l->broken)) {
		*fd = l->fd;
		// They belong to earlier sleeps.
		for (int i = 0; i < RINGS && rights_receive(l->fd, &byte, 1) >= 0; i++)
			;
		__atomic_store_n(&l->mine->sleeps, ++l->sleeps, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST); // as in ring()
		take_back(l, l->peer);
		nothing = __atomic_load_n(&l->theirs->sent, __ATOMIC_ACQUIRE) == l->taken;
	}
	rte_spinlock_unlock(&l->rx_lock);
	return nothing;
}

static inline bool ours_alone(const struct rte_mbuf *m)
{
	return m->nb_segs == 1 && rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m);
}

// Into a buffer that can be lent. NULL when there is none, or it is too small.
static struct rte_mbuf *copy_to_send(const struct share *s, const struct rte_mbuf *from)
{
	void *object;
	uint32_t length = from->pkt_len;

	if (length > s->own.bytes - RTE_PKTMBUF_HEADROOM || rte_mempool_get(s->pool, &object) != 0)
		return NULL;
	struct rte_mbuf *m = make(object, RTE_PKTMBUF_HEADROOM, length);
	uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);
	const void *data = rte_pktmbuf_read(from, 0, length, to);

	if (data != to)
		memcpy(to, data, length);
	return m;
}

struct burst {
	struct rte_mbuf *copied[64]; // the originals
	uint16_t copies;
	uint32_t homed;
};

// Returns the descriptor, or 0 when the frame cannot be sent. From then on the buffer is the other side's.
static inline uint64_t hand_over(struct share_link *l, struct peer *p, struct rte_mbuf *m, struct burst *b)
{
	struct share *s = l->share;
	uint64_t frame = (uint64_t)m->data_off << 32 | (uint64_t)m->pkt_len << 48;
	uint32_t buffer;

	if (unlikely(m->pkt_len < FRAME_MIN))
		return 0;
	if (m->pool == p->pool && ours_alone(m)) {
		buffer = buffer_of(&p->theirs, m);
		give_up(&p->borrowed[buffer], 0);
		b->homed++;
		return frame | DESCRIPTOR_HOME | buffer;
	}
	if (m->pool != s->pool || !ours_alone(m)) {
		struct rte_mbuf *copy = copy_to_send(s, m);

		if (copy == NULL)
			return 0;
		b->copied[b->copies++] = m;
		m = copy;
		frame = (uint64_t)m->data_off << 32 | (uint64_t)m->pkt_len << 48;
	}
	buffer = buffer_of(&s->own, m);
	give_up(&s->lent[buffer], p->number);
	return frame | buffer;
}

static uint16_t send_burst(struct share_link *l, struct peer *p, struct rte_mbuf **pkts, uint16_t n)
{
	struct burst b = {.copies = 0};
	uint16_t sent = 0;
	uint32_t under_way = l->sent - __atomic_load_n(&l->theirs->taken, __ATOMIC_ACQUIRE);

	if (unlikely(under_way > l->ring)) {
		l->broken = true;
		return 0;
	}
	uint16_t room = (uint16_t)RTE_MIN(RTE_MIN(l->ring - under_way, (uint32_t)n), RTE_DIM(b.copied));
	for (uint16_t left = n; left > 0 && sent < room; left--) {
		uint64_t descriptor = hand_over(l, p, pkts[sent], &b);

		if (unlikely(descriptor == 0)) { // the caller keeps it
			burst_put_off(pkts + sent, n - sent);
			continue;
		}
		__atomic_store_n(&l->mine->frame[l->sent++ & (l->ring - 1)], descriptor, __ATOMIC_RELAXED);
		sent++;
	}
	__atomic_store_n(&l->mine->sent, l->sent, __ATOMIC_RELEASE);
	if (b.homed != 0)
		__atomic_sub_fetch(&p->out, b.homed, __ATOMIC_RELEASE);
	if (b.copies != 0)
		rte_pktmbuf_free_bulk(b.copied, b.copies);
	l->copied += b.copies;
	return sent;
}

uint16_t share_tx(struct share_link *l, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = 0, more = 1;

	rte_spinlock_lock(&l->tx_lock);
	while (l->peer != NULL && !l->broken && more > 0 && sent < n) {
		more = send_burst(l, l->peer, pkts + sent, (uint16_t)(n - sent));
		sent = (uint16_t)(sent + more);
	}
	if (likely(sent > 0))
		ring(l, &l->rung);
	rte_spinlock_unlock(&l->tx_lock);
	return sent;
}

bool share_up(const struct share_link *l)
{
	return __atomic_load_n(&l->peer, __ATOMIC_RELAXED) != NULL;
}

uint32_t share_lent(const struct share *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->own.count; i++)
		n += s->lent[i] != 0;
	return n;
}

void share_count(const struct share_link *l, struct share_counters *c)
{
	*c = l->received;
	c->copied += l->copied;
}
