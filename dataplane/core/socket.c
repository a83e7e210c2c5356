// SPDX-License-Identifier: Apache-2.0
// The control socket: a Unix stream socket, a few clients, all on the control thread.
//
// Reads never block; a message is handled when it is whole, and a client whose message does not become whole, or
// never comes, is dropped after 10 seconds, so that its place is free for another. Writes block for at most a
// second, after which a client that does not read is dropped, so a stuck client cannot hold the control thread.
#include "core/channel.h"
#include "core/engine.h"
#include "core/log.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CLIENTS 16
#define WRITE_TIMEOUT_MS 1000
#define READ_TIMEOUT_MS 10000
#define READS_PER_VISIT 4 // of 64 KiB: then punted packets and timers have their turn

struct client {
	struct reply_sink sink; // first: send() casts back
	int fd;
	int dead; // a reply could not be written
	uint8_t *in;
	uint32_t used, room;
	uint64_t awaited_ns; // since when its first message, or the rest of one, is awaited; 0: it may be silent
	uint8_t *out; // rest of a message that client_offer could write in part only
	uint32_t out_used, out_sent;
};

static struct {
	int listener;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct client client[MAX_CLIENTS];
	uint32_t next_owner;
	int other; // of control_listen()
	void (*other_ready)(void);
} control_socket = {.listener = -1, .other = -1};

void control_listen(int fd, void (*fn)(void))
{
	control_socket.other = fd;
	control_socket.other_ready = fn;
}

// One deadline for a whole reply, however slowly the client reads.
static int write_all(int fd, const void *data, size_t n, uint64_t deadline_ns)
{
	const uint8_t *p = data;

	while (n > 0) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && (errno == EAGAIN || errno == EINTR)) {
			struct pollfd wait = {.fd = fd, .events = POLLOUT};
			uint64_t now = control_now_ns();

			if (now >= deadline_ns || poll(&wait, 1, (int)((deadline_ns - now) / 1000000) + 1) <= 0)
				return -1;
			continue;
		}
		if (k <= 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

// Writes what is left of the last offer, without waiting. Returns 1 when something is left still, -1 when the client
// is gone.
static int flush_offer(struct client *c)
{
	while (c->out_sent < c->out_used) {
		ssize_t k = send(c->fd, c->out + c->out_sent, c->out_used - c->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN)
			return 1;
		if (k <= 0)
			return -1;
		c->out_sent += (uint32_t)k;
	}
	free(c->out);
	c->out = NULL;
	c->out_used = c->out_sent = 0;
	return 0;
}

static int client_offer(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct client *c = (struct client *)s;

	if (c->dead)
		return -1;
	int left = flush_offer(c);
	if (left != 0) {
		c->dead = left < 0;
		return left;
	}
	c->out = malloc(sizeof(*h) + h->length);
	if (c->out == NULL)
		return 1;
	memcpy(c->out, h, sizeof(*h));
	memcpy(c->out + sizeof(*h), part, sizeof(*part));
	memcpy(c->out + sizeof(*h) + sizeof(*part), rows, h->length - sizeof(*part));
	c->out_used = (uint32_t)sizeof(*h) + h->length;
	c->dead = flush_offer(c) < 0;
	return c->dead ? -1 : 0;
}

static int client_send(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	static const uint8_t zeros[8];
	struct client *c = (struct client *)s;
	uint64_t deadline = control_now_ns() + WRITE_TIMEOUT_MS * 1000000ull;
	size_t bytes = (size_t)part->size * part->count, padding = part_padded(bytes) - bytes;

	if (c->dead)
		return -1;
	// After half a reply the connection makes no sense any more.
	if (c->out_sent < c->out_used)
		c->dead = write_all(c->fd, c->out + c->out_sent, c->out_used - c->out_sent, deadline) != 0;
	c->out_sent = c->out_used;
	c->dead = c->dead || write_all(c->fd, h, sizeof(*h), deadline) != 0 ||
		  write_all(c->fd, part, sizeof(*part), deadline) != 0 ||
		  (bytes != 0 && write_all(c->fd, rows, bytes, deadline) != 0) ||
		  (padding != 0 && write_all(c->fd, zeros, padding, deadline) != 0);
	return c->dead ? -1 : 0;
}

static void client_close(struct client *c)
{
	request_client_gone(c->sink.owner);
	close(c->fd);
	free(c->in);
	free(c->out);
	*c = (struct client){.fd = -1};
}

static void accept_client(void)
{
	int fd = accept4(control_socket.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &control_socket.client[i];

		if (c->fd >= 0)
			continue;
		*c = (struct client){
			.fd = fd, .awaited_ns = control_now_ns(), .sink = {.send = client_send, .offer = client_offer}};
		c->sink.owner = ++control_socket.next_owner;
		return;
	}
	LOG(WARNING, "more than %d clients on the control socket, one was turned away\n", MAX_CLIENTS);
	close(fd);
}

// Room for `need` more bytes of input. A message is at most API_MAX_BODY.
static int make_room(struct client *c, uint32_t need)
{
	uint32_t room = c->room ? c->room : 1u << 16;

	while (room < c->used + need)
		room *= 2;
	if (room == c->room)
		return 0;
	uint8_t *in = realloc(c->in, room);
	if (in == NULL)
		return -1;
	c->in = in;
	c->room = room;
	return 0;
}

// Handles every whole message in the buffer. Returns -1 when the client speaks something else, or does not read.
static int handle_input(struct client *c)
{
	uint32_t at = 0;

	while (c->used - at >= sizeof(struct api_header)) {
		struct api_header h;

		memcpy(&h, c->in + at, sizeof(h));
		if (h.magic != API_MAGIC || h.length > API_MAX_BODY || (h.type != API_HELLO && c->sink.version == 0))
			return -1;
		if (c->used - at < sizeof(h) + h.length)
			break;
		// Bodies hold 64-bit fields: handlers get an aligned copy where the stream is not.
		void *body = c->in + at + sizeof(h);
		void *copy = NULL;
		if (((uintptr_t)body & 7) != 0 && h.length > 0) {
			copy = malloc(h.length);
			if (copy == NULL)
				return -1;
			memcpy(copy, body, h.length);
			body = copy;
		}
		request_handle(&c->sink, &h, body);
		free(copy);
		if (c->dead)
			return -1;
		at += sizeof(h) + h.length;
	}
	memmove(c->in, c->in + at, c->used - at);
	c->used -= at;
	if (at > 0)
		c->awaited_ns = 0;
	if (c->used > 0 && c->awaited_ns == 0)
		c->awaited_ns = control_now_ns();
	return 0;
}

static void drop_silent(uint64_t now)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &control_socket.client[i];

		if (c->fd < 0 || c->awaited_ns == 0 || now - c->awaited_ns < READ_TIMEOUT_MS * 1000000ull)
			continue;
		LOG(WARNING, "a client of the control socket did not send a whole message in %d s; connection closed\n",
			READ_TIMEOUT_MS / 1000);
		client_close(c);
	}
}

static void read_client(struct client *c)
{
	for (int i = 0; i < READS_PER_VISIT && !channel_holds(&c->sink); i++) {
		if (make_room(c, 1u << 16) != 0) {
			client_close(c);
			return;
		}
		ssize_t k = recv(c->fd, c->in + c->used, c->room - c->used, 0);
		if (k < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (k <= 0) {
			client_close(c);
			return;
		}
		c->used += (uint32_t)k;
		if (handle_input(c) != 0) {
			LOG(WARNING, "a client of the control socket sent what is not a message, or no HELLO that is "
				     "accepted, or does not read; connection closed\n");
			client_close(c);
			return;
		}
	}
}

int socket_open(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	for (int i = 0; i < MAX_CLIENTS; i++)
		control_socket.client[i].fd = -1;
	if (strlen(path) >= sizeof(a.sun_path)) {
		LOG(ERR, "socket path %s is too long\n", path);
		return -1;
	}
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	snprintf(control_socket.path, sizeof(control_socket.path), "%s", path);
	// A socket of an instance that runs must not be taken away from it.
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe >= 0 && connect(probe, (struct sockaddr *)&a, sizeof(a)) == 0) {
		LOG(ERR, "another data plane answers on %s\n", path);
		close(probe);
		return -1;
	}
	close(probe);
	unlink(path);
	control_socket.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old = umask(0117);
	int error = control_socket.listener < 0 ||
		    bind(control_socket.listener, (struct sockaddr *)&a, sizeof(a)) != 0 ||
		    listen(control_socket.listener, MAX_CLIENTS) != 0;
	umask(old);
	if (error) {
		LOG(ERR, "cannot listen on %s: %s\n", path, strerror(errno));
		return -1;
	}
	return 0;
}

enum { FD_SLEEPER, FD_LISTENER, FD_OTHER, FD_CLIENT, FDS = FD_CLIENT + MAX_CLIENTS };

static void serve_ready(const struct pollfd *fds)
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		const struct pollfd *p = &fds[FD_CLIENT + i];

		if (p->revents != 0)
			control_stir();
		if ((p->revents & ~POLLOUT) != 0 && control_socket.client[i].fd == p->fd)
			read_client(&control_socket.client[i]);
	}
	if (fds[FD_LISTENER].revents != 0)
		accept_client();
	if (fds[FD_OTHER].revents != 0) {
		control_stir();
		control_socket.other_ready();
	}
}

static void flush_offers(void)
{
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (control_socket.client[i].out != NULL && flush_offer(&control_socket.client[i]) < 0)
			control_socket.client[i].dead = 1;
}

void socket_poll(uint64_t timeout_ns)
{
	struct pollfd fds[FDS] = {[FD_LISTENER] = {.fd = control_socket.listener, .events = POLLIN},
		[FD_OTHER] = {.fd = control_socket.other, .events = POLLIN}};

	for (int i = 0; i < MAX_CLIENTS; i++) {
		const struct client *c = &control_socket.client[i];
		short what = (c->out != NULL ? POLLOUT : 0) | (channel_holds(&c->sink) ? 0 : POLLIN);

		fds[FD_CLIENT + i] = (struct pollfd){.fd = c->fd, .events = what};
	}
	sleeper_sleep(&control_sleeper, fds, FDS, timeout_ns);
	flush_offers();
	serve_ready(fds);
	drop_silent(control_now_ns());
}

void socket_close(void)
{
	if (control_socket.listener >= 0) {
		close(control_socket.listener);
		unlink(control_socket.path);
	}
}
