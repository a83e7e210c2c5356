// SPDX-License-Identifier: Apache-2.0
// Opening and closing: a link's socket and the messages on it.
#include "clock/clock.h"
#include "share/inside.h"
#include "share/rights.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BYTES_MIN 512
#define SILENCE_NS 1000000000u // longest wait for a silent peer

enum { MEMORY, OUTBOX, LIFELINE, FILES };

// The only message, with three files: the buffers, the outbox (read-only), and a pipe's end that is closed when the
// buffers are no longer needed.
struct hello {
	uint32_t magic, version;
	uint32_t buffers, bytes; // how many, of how many bytes
	uint32_t ring;
};

void link_drop(struct share_link *l)
{
	if (l->fd >= 0)
		rights_close_socket(l->fd);
	if (l->watch >= 0)
		close(l->watch);
	l->fd = l->watch = -1;
	memory_unmap(l->mine, sizeof(*l->mine));
	memory_unmap(l->theirs, sizeof(*l->theirs));
	l->mine = NULL;
	l->theirs = NULL;
}

static int send_hello(const struct share_link *l, const int *file)
{
	const struct share *s = l->share;
	struct hello h = {SHARE_MAGIC, SHARE_VERSION, s->own.count, s->own.bytes, l->ring};
	union {
		char bytes[CMSG_SPACE(FILES * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {&h, sizeof(h)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	*head = (struct cmsghdr){CMSG_LEN(FILES * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(head), file, FILES * sizeof(int));
	return sendmsg(l->fd, &message, MSG_NOSIGNAL) == sizeof(h) ? 0 : -1;
}

static void greet(struct share_link *l, int fd)
{
	int pipe[2] = {-1, -1}, outbox = -1, sent = -1;

	l->fd = fd;
	l->since = clock_monotonic_ns();
	l->broken = false;
	l->sent = l->taken = l->given = l->returned = 0;
	l->sleeps = l->rung = l->given_told = l->given_rung = 0;
	if (pipe2(pipe, O_CLOEXEC | O_NONBLOCK) == 0)
		outbox = memory_make("share-outbox", sizeof(*l->mine), (uint8_t **)&l->mine);
	l->watch = pipe[0];
	if (outbox >= 0)
		sent = send_hello(l, (int[FILES]){l->share->fd, outbox, pipe[1]});
	if (outbox >= 0)
		close(outbox);
	if (pipe[1] >= 0)
		close(pipe[1]); // theirs alone from now on
	if (sent != 0)
		link_drop(l);
}

static bool acceptable(const struct hello *h, ssize_t length)
{
	return length == sizeof(*h) && h->magic == SHARE_MAGIC && h->version == SHARE_VERSION && h->buffers >= 1 &&
	       h->buffers <= SHARE_BUFFERS_MAX && h->bytes >= BYTES_MIN && h->bytes <= UINT16_MAX &&
	       h->bytes % 64 == 0 && h->ring >= SHARE_RING_MIN && h->ring <= SHARE_RING_MAX &&
	       rte_is_power_of_2(h->ring);
}

// Returns whether the link is up. Files are closed by the caller, but for the lifeline of a link that is up.
static bool begin(struct share_link *l, const struct hello *h, const int *file)
{
	struct buffers theirs = {.count = h->buffers, .bytes = h->bytes};
	struct peer *p;

	l->theirs = (const struct outbox *)memory_map(file[OUTBOX], sizeof(*l->theirs), false);
	p = l->theirs != NULL ? peer_join(l, file[MEMORY], &theirs) : NULL;
	if (p == NULL)
		return false;
	p->watch[p->links] = l->watch;
	p->hold[p->links++] = file[LIFELINE];
	l->watch = -1;
	l->their_ring = h->ring;
	rte_spinlock_lock(&p->lock);
	if (p->give == NULL)
		p->give = l;
	rte_spinlock_unlock(&p->lock);
	rte_spinlock_lock(&l->rx_lock);
	rte_spinlock_lock(&l->tx_lock);
	__atomic_store_n(&l->peer, p, __ATOMIC_RELAXED);
	rte_spinlock_unlock(&l->tx_lock);
	rte_spinlock_unlock(&l->rx_lock);
	return true;
}

// Returns 1: up, 0: nothing arrived yet, -1: not a peer of ours, or gone.
static int hear_hello(struct share_link *l)
{
	struct hello h;
	union {
		char bytes[CMSG_SPACE(RIGHTS_MOST * sizeof(int))]; // what has no room, the kernel closes
		struct cmsghdr align;
	} control;
	struct iovec part = {&h, sizeof(h)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t length = recvmsg(l->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int file[sizeof(control.bytes) / sizeof(int)], up = -1;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return clock_monotonic_ns() - l->since < SILENCE_NS ? 0 : -1;
	if (length < 0)
		return -1;
	const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	size_t files = 0;

	if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		files = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (files > 0 && files <= RTE_DIM(file))
		memcpy(file, CMSG_DATA(head), files * sizeof(int));
	if (files == FILES && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && acceptable(&h, length) &&
		begin(l, &h, file))
		up = 1;
	for (size_t i = 0; i < files; i++)
		if (up != 1 || i != LIFELINE)
			rights_close(file[i]);
	return up;
}

static int socket_at(const char *path, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un at;
	int fd = socket_at(path, &at);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	if (fd >= 0) {
		int error = errno;

		close(fd);
		errno = error;
	}
	return -1;
}

// A dead process left its socket in the way, and connecting to it fails.
static void remove_stale(const char *path)
{
	struct stat file;
	int fd = -1;

	if (lstat(path, &file) == 0 && S_ISSOCK(file.st_mode) && (fd = connect_to(path)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	if (fd >= 0)
		close(fd);
}

static int listen_at(const char *path)
{
	struct sockaddr_un at;
	int fd = socket_at(path, &at);

	remove_stale(path);
	if (fd < 0 ||
		(bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && chmod(path, 0600) == 0 && listen(fd, 8) == 0))
		return fd;
	int error = errno;

	close(fd);
	errno = error;
	return -1;
}

static void poll_link(struct share_link *l)
{
	if (l->peer != NULL) {
		struct pollfd f = {.fd = l->fd, .events = POLLRDHUP}; // rings are the receiver's

		if (l->broken)
			peer_end(l->peer, "the other side broke a rule");
		else if (poll(&f, 1, 0) > 0)
			peer_end(l->peer, "the other side has gone");
		return;
	}
	if (l->fd < 0) {
		int fd = l->server ? accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
				   : connect_to(l->path);

		if (fd >= 0)
			greet(l, fd);
	}
	if (l->fd >= 0 && hear_hello(l) < 0)
		link_drop(l);
}

void share_poll(struct share *s)
{
	// Ended sessions first: a restarted process is not of its old session.
	for (int up = 1; up >= 0; up--)
		for (uint32_t i = 0; i < SHARE_LINKS; i++)
			if (s->link[i] != NULL && (s->link[i]->peer != NULL) == up)
				poll_link(s->link[i]);
	for (uint32_t i = 1; i <= SHARE_PEERS; i++)
		if (s->peer[i] != NULL && !s->peer[i]->up)
			peer_reap(s->peer[i]);
}

struct share_link *share_open(struct share *s, const struct share_link_want *want, char *error, size_t n)
{
	uint32_t place = 0;
	struct share_link *l;

	while (place < SHARE_LINKS && s->link[place] != NULL)
		place++;
	if (place == SHARE_LINKS) {
		snprintf(error, n, "more than %d links", SHARE_LINKS);
		return NULL;
	}
	if (want->ring < SHARE_RING_MIN || want->ring > SHARE_RING_MAX || !rte_is_power_of_2(want->ring)) {
		snprintf(error, n, "a ring has a power of two of %d to %d places, not %u", SHARE_RING_MIN,
			SHARE_RING_MAX, want->ring);
		return NULL;
	}
	if (want->path[0] == 0 || strlen(want->path) >= sizeof(l->path)) {
		snprintf(error, n, "the path of a socket has 1 to %zu bytes", sizeof(l->path) - 1);
		return NULL;
	}
	l = rte_zmalloc("share", sizeof(*l), CACHE_LINE);
	if (l == NULL) {
		snprintf(error, n, "no memory");
		return NULL;
	}
	l->share = s;
	snprintf(l->name, sizeof(l->name), "%s", want->name);
	snprintf(l->path, sizeof(l->path), "%s", want->path);
	l->server = want->server;
	l->ring = want->ring;
	l->headroom = want->headroom;
	l->copies = want->pool;
	l->listener = l->fd = l->watch = -1;
	if (l->server && (l->listener = listen_at(l->path)) < 0) {
		snprintf(error, n, "cannot listen at %s: %s", l->path, strerror(errno));
		rte_free(l);
		return NULL;
	}
	return s->link[place] = l;
}

void share_close(struct share_link *l)
{
	if (l->listener >= 0) {
		close(l->listener);
		unlink(l->path);
	}
	if (l->peer != NULL)
		peer_end(l->peer, "closed here");
	link_drop(l);
	for (uint32_t i = 0; i < SHARE_LINKS; i++)
		if (l->share->link[i] == l)
			l->share->link[i] = NULL;
	rte_free(l);
}

struct share *share_new(const struct share_want *want, char *error, size_t n)
{
	struct share *s = calloc(1, sizeof(*s));
	uint32_t bytes = RTE_ALIGN_CEIL(want->room, 64u);

	snprintf(error, n, "no memory for %u buffers of %u bytes", want->buffers, bytes);
	if (s == NULL || want->buffers < 1 || want->buffers > SHARE_BUFFERS_MAX || bytes < BYTES_MIN ||
		bytes > UINT16_MAX) {
		free(s);
		return NULL;
	}
	s->own = (struct buffers){.count = want->buffers, .bytes = bytes};
	s->fd = memory_make("share-buffers", buffers_bytes(&s->own), &s->own.base);
	s->lent = calloc(want->buffers, 1);
	if (s->fd >= 0 && s->lent != NULL)
		s->pool = buffers_pool(&s->own, want->name, want->private_size, want->cache, NULL);
	if (s->pool != NULL)
		return s;
	share_free(s);
	return NULL;
}

struct rte_mempool *share_pool(struct share *s)
{
	return s->pool;
}

void share_free(struct share *s)
{
	for (uint32_t i = 0; i < SHARE_LINKS; i++)
		if (s->link[i] != NULL)
			share_close(s->link[i]);
	for (uint32_t i = 1; i <= SHARE_PEERS; i++)
		if (s->peer[i] != NULL)
			peer_forget(s->peer[i]);
	rte_mempool_free(s->pool);
	buffers_forget(&s->own);
	if (s->fd >= 0)
		close(s->fd);
	free(s->lent);
	free(s);
}
