// SPDX-License-Identifier: Apache-2.0
// Clients of the real control socket in the test's own thread. The data plane gets a visit with each call.
//
//   kit_socket_open();  int fd = kit_dial_hello();  kit_ask(fd, API_BEGIN, 0, NULL, 0);  kit_status_of(fd) ...
#ifndef TESTKIT_SOCKET_H
#define TESTKIT_SOCKET_H

#include "core/engine.h"
#include "testkit/testkit.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define KIT_MESSAGE (1u << 17) // bytes of a message to a client

static inline struct sockaddr_un kit_socket_address(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/tmp/kit-%d.sock", getpid());
	return a;
}

static inline int kit_socket_open(void)
{
	return socket_open(kit_socket_address().sun_path);
}

static inline int kit_dial(void)
{
	struct sockaddr_un a = kit_socket_address();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	socket_poll(0);
	return fd;
}

// A message of one part; number 0: of none.
static inline uint32_t kit_message(void *to, uint16_t type, uint16_t number, const void *body, uint16_t size)
{
	const struct api_part_head part = {.part = number, .size = size, .count = 1};
	struct api_header h = {.magic = API_MAGIC, .type = type};
	uint8_t *at = to;

	h.length = number == 0 ? 0 : (uint32_t)(sizeof(part) + part_padded(size));
	memset(to, 0, sizeof(h) + h.length);
	memcpy(at, &h, sizeof(h));
	if (number != 0) {
		memcpy(at + sizeof(h), &part, sizeof(part));
		memcpy(at + sizeof(h) + sizeof(part), body, size);
	}
	return (uint32_t)sizeof(h) + h.length;
}

static inline void kit_write(int fd, const void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = send(fd, (const uint8_t *)bytes + at, n - at, MSG_NOSIGNAL);

		socket_poll(0);
		assert_true(k > 0 || errno == EAGAIN);
		at += k > 0 ? (size_t)k : 0;
	}
}

static inline void kit_ask(int fd, uint16_t type, uint16_t number, const void *body, uint16_t size)
{
	uint8_t bytes[2048];

	kit_write(fd, bytes, kit_message(bytes, type, number, body, size));
}

// Exactly n bytes. The data plane gets its turns and time.
static inline void kit_read(int fd, void *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = recv(fd, (uint8_t *)to + at, n - at, MSG_DONTWAIT);

		if (k < 0) {
			kit_advance(1000);
			socket_poll(0);
			continue;
		}
		assert_true(k > 0);
		at += (size_t)k;
	}
}

// The next message: its header, and its body, of at most KIT_MESSAGE bytes.
static inline struct api_header kit_answer(int fd, void *body)
{
	struct api_header h;

	kit_read(fd, &h, sizeof(h));
	assert_int_equal(h.magic, API_MAGIC);
	assert_true(h.length <= KIT_MESSAGE);
	kit_read(fd, body, h.length);
	return h;
}

// Reads one reply of a status.
static inline struct api_status kit_status_of(int fd)
{
	struct {
		struct api_part_head part;
		struct api_status status;
	} body;
	struct api_header h;

	kit_read(fd, &h, sizeof(h));
	assert_int_equal(h.length, sizeof(body));
	kit_read(fd, &body, sizeof(body));
	assert_int_equal(body.part.part, API_PART_STATUS);
	return body.status;
}

static inline int kit_dial_hello(void)
{
	static uint8_t body[KIT_MESSAGE];
	struct api_hello me = {.version = API_VERSION, .oldest = API_VERSION_OLDEST};
	struct api_header h = {0};
	int fd = kit_dial();

	kit_ask(fd, API_HELLO, API_PART_HELLO, &me, sizeof(me));
	while (!(h.flags & API_F_LAST)) {
		h = kit_answer(fd, body);
		assert_int_equal(h.type, API_HELLO);
		assert_false(h.flags & API_F_ERROR);
	}
	return fd;
}

// What was sent before is read and forgotten.
static inline int kit_is_closed(int fd)
{
	uint8_t rest[65536];
	ssize_t k;

	do
		k = recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
	while (k > 0);
	return k == 0;
}

static inline void kit_hang_up(int fd)
{
	close(fd);
	socket_poll(0);
}

#endif
