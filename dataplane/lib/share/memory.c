// SPDX-License-Identifier: Apache-2.0
// Memory that two processes share, and pools of mbufs over it.
#include "share/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <rte_mbuf_pool_ops.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int memory_make(const char *name, size_t bytes, uint8_t **at)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	// Allocated at once: a missing page would later be a signal in the middle of a packet.
	if (fd >= 0 && fallocate(fd, 0, 0, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
		(*at = memory_map(fd, bytes, true)) != NULL)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

uint8_t *memory_map(int fd, size_t bytes, bool writable)
{
	struct stat file;
	int seals = fcntl(fd, F_GET_SEALS);

	// Without the seal the other side could cut the file, and reading it would end this process.
	if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &file) != 0 || (size_t)file.st_size < bytes)
		return NULL;
	uint8_t *at = mmap(NULL, bytes + SHARE_GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (mmap(at, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		return at;
	munmap(at, bytes + SHARE_GUARD);
	return NULL;
}

void memory_unmap(const void *at, size_t bytes)
{
	if (at != NULL)
		munmap((void *)(uintptr_t)at, bytes + SHARE_GUARD);
}

size_t buffers_bytes(const struct buffers *b)
{
	return RTE_ALIGN_CEIL((size_t)b->count * b->bytes, (size_t)4096);
}

// A session's pool gives no mbufs (share_rx() uses the received buffer's); freed ones return to it.
static int nothing(struct rte_mempool *pool)
{
	return 0;
}

static int none_to_take(struct rte_mempool *pool, void **mbufs, unsigned n)
{
	return -ENOBUFS;
}

static unsigned at_home(const struct rte_mempool *pool)
{
	const struct peer *p = pool->pool_config;

	return pool->size - __atomic_load_n(&p->out, __ATOMIC_RELAXED);
}

static const struct rte_mempool_ops session_ops = {
	.name = "share", .alloc = nothing, .enqueue = give_back, .dequeue = none_to_take, .get_count = at_home};
RTE_MEMPOOL_REGISTER_OPS(session_ops)

static void bind(struct rte_mempool *pool, void *arg, void *object, unsigned i)
{
	struct buffers *b = arg;
	struct rte_mbuf *m = object;

	memset(m, 0, sizeof(*m));
	m->buf_addr = b->base + (size_t)i * b->bytes;
	m->buf_iova = (rte_iova_t)(uintptr_t)m->buf_addr;
	m->buf_len = (uint16_t)b->bytes;
	m->priv_size = rte_pktmbuf_priv_size(pool);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->pool = pool;
	m->nb_segs = 1;
	m->port = RTE_MBUF_PORT_INVALID;
	rte_mbuf_refcnt_set(m, 1);
	b->mbuf[i] = m;
}

struct rte_mempool *buffers_pool(
	struct buffers *b, const char *name, uint16_t private_size, uint32_t cache, struct peer *peer)
{
	struct rte_pktmbuf_pool_private about = {
		.mbuf_data_room_size = (uint16_t)b->bytes, .mbuf_priv_size = private_size};
	struct rte_mempool *pool = rte_mempool_create_empty(
		name, b->count, sizeof(struct rte_mbuf) + private_size, cache, sizeof(about), SOCKET_ID_ANY, 0);

	b->reciprocal = (uint32_t)((1ull << 32) / (b->bytes / 64) + 1);
	if (pool == NULL)
		return NULL;
	if (rte_mempool_set_ops_byname(pool, peer != NULL ? "share" : rte_mbuf_best_mempool_ops(), peer) == 0) {
		rte_pktmbuf_pool_init(pool, &about);
		b->mbuf = calloc(b->count, sizeof(*b->mbuf));
		if (b->mbuf != NULL && rte_mempool_populate_default(pool) == (int)b->count) {
			rte_mempool_obj_iter(pool, bind, b);
			return pool;
		}
		free(b->mbuf);
		b->mbuf = NULL;
	}
	rte_mempool_free(pool);
	return NULL;
}

void buffers_forget(struct buffers *b)
{
	memory_unmap(b->base, buffers_bytes(b));
	free(b->mbuf);
	*b = (struct buffers){0};
}
