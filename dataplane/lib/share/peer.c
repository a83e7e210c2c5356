// SPDX-License-Identifier: Apache-2.0
// Sessions with other processes: their buffers, and each buffer's owner at the end.
#include "share/inside.h"
#include "share/rights.h"
#include "wire/cache_line.h"
#include <poll.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

RTE_LOG_REGISTER(share_logtype, isthmus.share, NOTICE);
#define LOG(level, format, ...) rte_log(RTE_LOG_##level, share_logtype, "share: " format, ##__VA_ARGS__)

static struct peer *peer_make(
	struct share *s, uint8_t number, int memory, const struct buffers *theirs, uint16_t private_size)
{
	static uint32_t pools;
	struct peer *p = rte_zmalloc("share", sizeof(*p), CACHE_LINE);
	char name[RTE_MEMPOOL_NAMESIZE];

	if (p == NULL)
		return NULL;
	p->share = s;
	p->number = number;
	p->theirs = *theirs;
	rte_spinlock_init(&p->lock);
	p->borrowed = calloc(theirs->count, 1);
	p->theirs.base = memory_map(memory, buffers_bytes(theirs), true);
	snprintf(name, sizeof(name), "share-%u", pools++);
	if (p->borrowed != NULL && p->theirs.base != NULL)
		p->pool = buffers_pool(&p->theirs, name, private_size, 0, p);
	if (p->pool != NULL) {
		p->up = true;
		return s->peer[number] = p;
	}
	free(p->borrowed);
	buffers_forget(&p->theirs);
	rte_free(p);
	return NULL;
}

struct peer *peer_join(struct share_link *l, int memory, const struct buffers *theirs)
{
	struct share *s = l->share;
	struct stat file;
	uint32_t number = 0;

	if (fstat(memory, &file) != 0)
		return NULL;
	for (uint32_t i = 1; i <= SHARE_PEERS; i++) {
		struct peer *p = s->peer[i];

		if (p == NULL)
			number = number ? number : i;
		else if (p->up && p->device == file.st_dev && p->inode == file.st_ino)
			return p->links < SHARE_LINKS && p->theirs.count == theirs->count &&
					       p->theirs.bytes == theirs->bytes
				       ? p
				       : NULL;
	}
	struct peer *p =
		number ? peer_make(s, (uint8_t)number, memory, theirs, rte_pktmbuf_priv_size(l->copies)) : NULL;

	if (p == NULL)
		return NULL;
	p->device = file.st_dev;
	p->inode = file.st_ino;
	return p;
}

void peer_end(struct peer *p, const char *why)
{
	for (uint32_t i = 0; i < SHARE_LINKS; i++) {
		struct share_link *l = p->share->link[i];

		if (l == NULL || l->peer != p)
			continue;
		rte_spinlock_lock(&l->rx_lock);
		rte_spinlock_lock(&l->tx_lock);
		rte_spinlock_lock(&p->lock);
		p->give = NULL;
		rte_spinlock_unlock(&p->lock);
		__atomic_store_n(&l->peer, NULL, __ATOMIC_RELAXED);
		rte_spinlock_unlock(&l->tx_lock);
		rte_spinlock_unlock(&l->rx_lock);
		link_drop(l);
		LOG(NOTICE, "port %s: link down, %s\n", l->name, why);
	}
	p->up = false;
}

// All their buffers were given back or freed: we no longer access them, which closing the lifelines says.
static void forget_theirs(struct peer *p)
{
	rte_spinlock_lock(&p->lock); // the thread that freed the last one has left give_back()
	rte_spinlock_unlock(&p->lock);
	rte_mempool_free(p->pool);
	p->pool = NULL;
	buffers_forget(&p->theirs);
	free(p->borrowed);
	p->borrowed = NULL;
	for (uint32_t i = 0; i < p->links; i++)
		rights_close(p->hold[i]);
}

static bool lifelines_ended(struct peer *p)
{
	bool all = true;

	for (uint32_t i = 0; i < p->links; i++) {
		struct pollfd f = {.fd = p->watch[i]};

		all = all && poll(&f, 1, 0) == 1 && (f.revents & POLLHUP) != 0;
	}
	return all;
}

void peer_forget(struct peer *p)
{
	if (p->pool != NULL)
		forget_theirs(p);
	for (uint32_t i = 0; p->watch[0] >= 0 && i < p->links; i++)
		close(p->watch[i]);
	p->share->peer[p->number] = NULL;
	rte_free(p);
}

void peer_reap(struct peer *p)
{
	struct share *s = p->share;

	if (p->pool != NULL && __atomic_load_n(&p->out, __ATOMIC_ACQUIRE) == 0)
		forget_theirs(p);
	if (p->watch[0] >= 0 && lifelines_ended(p)) {
		for (uint32_t i = 0; i < p->links; i++)
			close(p->watch[i]);
		p->watch[0] = -1;
		uint32_t back = lent_sweep(s, p->number);

		LOG(NOTICE, "the other side needs none of our buffers any more: %u came back\n", back);
	}
	if (p->pool == NULL && p->watch[0] < 0)
		peer_forget(p);
}
