// SPDX-License-Identifier: Apache-2.0
// The control socket: a Unix stream socket, a few clients, all on the control thread, which waits for none of them.
//
// All clients together get VISIT_NS a visit, in turn; the next visit continues. A client's unread replies stay in its
// `out`. Until it has read them, none of its requests is taken and no rows are made for it. A client that exceeds a
// time limit is closed, with all that it had open, and counted.
#include "core/socket.h"
#include "core/channel.h"
#include "core/log.h"
#include "core/module.h"
#include "core/object.h"
#include "core/reply.h"
#include "core/request.h"
#include "core/sleeper.h"
#include "core/worker.h"
#include "share/rights.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CLIENTS 16
#define MAX_STRANGERS 4 // of them without an accepted HELLO: the next one replaces the first
#define STRANGER_BODY (64u << 10) // bytes of a message of theirs
#define VISIT_NS 1000000ull // of all clients together
#define READ_BYTES (64u << 10) // at once
#define OUT_BYTES (64u << 10) // that wait for a client: it is asked nothing more
// Time limits of a client in all: for a message that has begun, an unread reply, a transaction that blocks others; for
// silence within one and until its COMMIT.
#define MESSAGE_NS (10ull * NS_PER_S)
#define READER_NS (10ull * NS_PER_S)
#define SILENT_TRANSACTION_NS (2ull * NS_PER_S)
#define TRANSACTION_NS (30ull * NS_PER_S)

struct client {
	struct reply_sink sink; // first: send() casts back
	int fd; // -1: free
	const char *ends; // why it is to be closed; empty: it closed
	uint8_t *in; // from `at` on not dealt with
	uint32_t at, used, room;
	uint64_t awaited_ns; // start of the wait for its first message, or the rest of one; 0: it may be silent
	uint64_t heard_ns; // when it last sent something
	int drained; // in this visit: all that it sent was read
	uint8_t *out; // what it has not read, from out_sent on
	uint32_t out_used, out_sent, out_room;
	uint64_t unread_ns; // since when it does not read; 0: all is read
	uint64_t waited_ns; // before that, for the same reply
};

static struct {
	int listener;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct client client[MAX_CLIENTS];
	uint32_t next_owner, turn;
	uint64_t closed, told_ns;
	int other; // of control_listen()
	void (*other_ready)(void);
} control_socket = {.listener = -1, .other = -1};

void control_listen(int fd, void (*fn)(void))
{
	control_socket.other = fd;
	control_socket.other_ready = fn;
}

static uint32_t unread(const struct client *c)
{
	return c->out_used - c->out_sent;
}

static int append(struct client *c, const void *data, size_t n)
{
	if (c->out_used + n > c->out_room) {
		uint32_t room = (uint32_t)RTE_MAX(c->out_used + n, 2ul * c->out_room);
		uint8_t *out = realloc(c->out, room);

		if (out == NULL)
			return -1;
		c->out = out;
		c->out_room = room;
	}
	if (n != 0)
		memcpy(c->out + c->out_used, data, n);
	c->out_used += (uint32_t)n;
	return 0;
}

// Sends what the client takes now.
static void flush(struct client *c)
{
	while (c->ends == NULL && unread(c) != 0) {
		ssize_t k = send(c->fd, c->out + c->out_sent, unread(c), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && errno == EAGAIN) {
			if (c->unread_ns == 0)
				c->unread_ns = control_now_ns();
			return;
		}
		if (k <= 0)
			c->ends = "";
		else
			c->out_sent += (uint32_t)k;
	}
	if (c->ends != NULL)
		return; // client_close() asks what was not sent
	if (c->unread_ns != 0)
		c->waited_ns += control_now_ns() - c->unread_ns;
	if (c->sink.rest == NULL)
		c->waited_ns = 0;
	free(c->out);
	c->out = NULL;
	c->out_used = c->out_sent = c->out_room = 0;
	c->unread_ns = 0;
}

// A message of which `rest` bytes follow its first part's head.
static int put(
	struct client *c, const struct api_header *h, const struct api_part_head *part, const void *rows, size_t rest)
{
	static const uint8_t zeros[8];
	size_t padding = h->length - sizeof(*part) - rest;

	if (c->ends == NULL && (append(c, h, sizeof(*h)) != 0 || append(c, part, sizeof(*part)) != 0 ||
				       append(c, rows, rest) != 0 || append(c, zeros, padding) != 0))
		c->ends = "there is no memory for what it is to read"; // half a message makes no sense any more
	return c->ends == NULL ? 0 : -1;
}

static int client_send(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	return put((struct client *)s, h, part, rows, (size_t)part->size * part->count);
}

static int client_offer(
	struct reply_sink *s, const struct api_header *h, const struct api_part_head *part, const void *rows)
{
	struct client *c = (struct client *)s;

	flush(c);
	if (c->ends == NULL && (unread(c) != 0 || s->rest != NULL))
		return 1;
	int error = put(c, h, part, rows, h->length - sizeof(*part));
	flush(c);
	return error;
}

uint32_t socket_clients(uint64_t *closed)
{
	uint32_t n = 0;

	for (int i = 0; i < MAX_CLIENTS; i++)
		n += control_socket.listener >= 0 && control_socket.client[i].fd >= 0;
	*closed = control_socket.closed;
	return n;
}

// At most a line a second.
static void count_closed(const char *why)
{
	uint64_t now = control_now_ns();

	control_socket.closed++;
	if (control_socket.told_ns != 0 && now - control_socket.told_ns < NS_PER_S)
		return;
	LOG(WARNING, "a client of the control socket: %s; connection closed, the %lu. of such\n", why,
		control_socket.closed);
	control_socket.told_ns = now;
}

static void client_close(struct client *c)
{
	if (c->ends[0] != 0)
		count_closed(c->ends);
	request_forget(&c->sink, unread(c) == 0);
	request_client_gone(c->sink.owner);
	rights_close_socket(c->fd);
	free(c->in);
	free(c->out);
	*c = (struct client){.fd = -1};
}

// A free place. Clients without HELLO have few; when these are used up, the oldest such client is closed.
static struct client *find_place(void)
{
	struct client *place = NULL, *oldest = NULL;
	int strangers = 0;

	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &control_socket.client[i];

		if (c->fd < 0) {
			place = c;
		} else if (c->sink.version == 0) {
			strangers++;
			oldest = oldest == NULL || c->sink.owner < oldest->sink.owner ? c : oldest;
		}
	}
	if (oldest == NULL || (place != NULL && strangers < MAX_STRANGERS))
		return place;
	oldest->ends = "others came before its HELLO";
	client_close(oldest);
	return oldest;
}

static void accept_client(void)
{
	int fd = accept4(control_socket.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	struct client *c = find_place();
	if (c == NULL) {
		count_closed("there is no place for it");
		rights_close_socket(fd);
		return;
	}
	*c = (struct client){.fd = fd,
		.awaited_ns = control_now_ns(),
		.sink = {.send = client_send, .offer = client_offer, .paced = 1, .owner = ++control_socket.next_owner}};
}

static int may_ask(const struct client *c)
{
	return c->ends == NULL && c->sink.rest == NULL && unread(c) < OUT_BYTES && !channel_holds(&c->sink);
}

// 1: a whole message waits. Anything else ends the connection.
static int has_message(struct client *c, struct api_header *h)
{
	if (c->used - c->at < sizeof(*h))
		return 0;
	memcpy(h, c->in + c->at, sizeof(*h));
	if (h->magic != API_MAGIC || h->length > (c->sink.version == 0 ? STRANGER_BODY : API_MAX_BODY))
		c->ends = "it sent what is not a message";
	else if (h->type != API_HELLO && c->sink.version == 0)
		c->ends = "it had no HELLO that is accepted";
	return c->ends == NULL && c->used - c->at >= sizeof(*h) + h->length;
}

static void handle_message(struct client *c, const struct api_header *h)
{
	// Bodies hold 64-bit fields: handlers get an aligned copy where the stream is not.
	void *body = c->in + c->at + sizeof(*h), *copy = NULL;

	if (((uintptr_t)body & 7) != 0 && h->length > 0) {
		copy = malloc(h->length);
		if (copy == NULL) {
			c->ends = "there is no memory for its message";
			return;
		}
		body = memcpy(copy, body, h->length);
	}
	request_handle(&c->sink, h, body);
	free(copy);
	c->at += (uint32_t)sizeof(*h) + h->length;
	c->awaited_ns = 0;
}

// Makes room for `need` more bytes of input. A message has at most API_MAX_BODY; a long one's buffer is freed with it.
static int make_room(struct client *c, uint32_t need)
{
	if (c->at == c->used && c->room > 4 * READ_BYTES) {
		free(c->in);
		c->in = NULL;
		c->room = 0;
	} else if (c->at != 0) {
		memmove(c->in, c->in + c->at, c->used - c->at);
	}
	c->used -= c->at;
	c->at = 0;
	uint32_t room = c->room ? c->room : READ_BYTES;
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

static int read_more(struct client *c)
{
	if (make_room(c, READ_BYTES) != 0) {
		c->ends = "there is no memory for its message";
		return 0;
	}
	ssize_t k = rights_receive(c->fd, c->in + c->used, c->room - c->used);
	c->drained = k < 0;
	if (k < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (k <= 0) {
		c->ends = "";
		return 0;
	}
	c->used += (uint32_t)k;
	c->heard_ns = control_now_ns();
	return 1;
}

// Continues its reply, then its messages, until time is up or the client must act.
static void serve(struct client *c, int readable, uint64_t until_ns)
{
	struct api_header h;

	flush(c);
	while (c->ends == NULL && control_now_ns() < until_ns) {
		if (c->sink.rest != NULL && unread(c) == 0)
			request_continue(&c->sink, until_ns);
		else if (!may_ask(c))
			break;
		else if (has_message(c, &h))
			handle_message(c, &h);
		else if (c->ends != NULL || !readable || !read_more(c))
			break;
		flush(c);
	}
	if (c->ends == NULL && c->used != c->at && c->awaited_ns == 0)
		c->awaited_ns = control_now_ns();
}

// 1 when the next visit has something to do for a client that need not send or read for it.
static int is_ready(struct client *c)
{
	struct api_header h;

	return c->fd >= 0 && (c->sink.rest != NULL ? unread(c) == 0 : may_ask(c) && has_message(c, &h));
}

static void judge(struct client *c, uint64_t now)
{
	uint64_t open = request_open_since(&c->sink);

	if (c->unread_ns != 0 && c->waited_ns + (now - c->unread_ns) >= READER_NS)
		c->ends = "it does not read";
	else if (c->drained && c->awaited_ns != 0 && now - c->awaited_ns >= MESSAGE_NS)
		c->ends = "it did not send a whole message in time";
	else if (open != 0 &&
		 (now - open >= TRANSACTION_NS || (c->drained && now - c->heard_ns >= SILENT_TRANSACTION_NS)))
		c->ends = "it left its transaction open";
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
	rights_refuse(control_socket.listener);
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

// Visits all clients, starting with another each time, so that no client always finds the time used up.
static void visit(const struct pollfd *fds)
{
	uint64_t until = control_now_ns() + VISIT_NS;

	control_socket.turn++;
	for (uint32_t n = 0; n < MAX_CLIENTS; n++) {
		uint32_t i = (control_socket.turn + n) % MAX_CLIENTS;
		struct client *c = &control_socket.client[i];
		const struct pollfd *p = &fds[FD_CLIENT + i];
		int readable = (p->revents & ~POLLOUT) != 0;

		if (c->fd < 0)
			continue;
		if (p->revents != 0 || is_ready(c))
			control_stir();
		c->drained = (p->events & POLLIN) != 0 && !readable;
		serve(c, readable, until);
		if (c->ends == NULL)
			judge(c, control_now_ns());
		if (c->ends != NULL)
			client_close(c);
	}
}

void socket_poll(uint64_t timeout_ns)
{
	struct pollfd fds[FDS] = {[FD_LISTENER] = {.fd = control_socket.listener, .events = POLLIN},
		[FD_OTHER] = {.fd = control_socket.other, .events = POLLIN}};

	channel_flush(); // what the host path brought since
	for (int i = 0; i < MAX_CLIENTS; i++) {
		struct client *c = &control_socket.client[i];
		short what = 0;

		if (c->fd >= 0)
			what = (unread(c) != 0 ? POLLOUT : 0) | (may_ask(c) ? POLLIN : 0);
		if (is_ready(c))
			timeout_ns = 0;
		fds[FD_CLIENT + i] = (struct pollfd){.fd = c->fd, .events = what};
	}
	sleeper_sleep(&control_sleeper, fds, FDS, timeout_ns);
	visit(fds);
	if (fds[FD_LISTENER].revents != 0)
		accept_client();
	if (fds[FD_OTHER].revents != 0) {
		control_stir();
		control_socket.other_ready();
	}
}

void socket_close(void)
{
	if (control_socket.listener >= 0) {
		close(control_socket.listener);
		unlink(control_socket.path);
	}
}

static uint64_t total_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	struct api_total_row row = {.commits = object_totals.commits, .refused_commits = object_totals.refused};

	row.clients = socket_clients(&row.clients_closed);
	workers_sum(&row);
	if (engine_pool() != NULL) {
		row.buffers = engine_pool()->size;
		row.buffers_free = rte_mempool_avail_count(engine_pool());
	}
	stats_row(s, &row, sizeof(row));
	return 0;
}

RTE_INIT(total_table)
{
	stats_table_register(API_TABLE_TOTAL, sizeof(struct api_total_row), total_rows);
}
