// SPDX-License-Identifier: Apache-2.0
// Unix sockets whose peer may send unrequested descriptors. Closing the last descriptor of a socket with SO_LINGER
// blocks for as long as its owner chose, also within recv(2) or close(2) of the Unix socket that carried it. So
// SO_LINGER is cleared first.
#ifndef SHARE_RIGHTS_H
#define SHARE_RIGHTS_H

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define RIGHTS_MOST 253 // descriptors of a message
#define RIGHTS_WAITING 1024 // messages that wait in a socket

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

// No descriptors can be sent to a listening socket's connections from now on. Linux 6.16; older kernels lack it.
static inline void rights_refuse(int listener)
{
	int none = 0;

	(void)setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
}

// Closes a descriptor that came.
static inline void rights_close(int file)
{
	struct linger none = {0};

	(void)setsockopt(file, SOL_SOCKET, SO_LINGER, &none, sizeof(none)); // of what is no socket it fails
	close(file);
}

// As recv(2), without waiting. Descriptors that come along are closed.
static inline ssize_t rights_receive(int fd, void *to, size_t n)
{
	union {
		char bytes[CMSG_SPACE(RIGHTS_MOST * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {to, n};
	struct msghdr m = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	for (struct cmsghdr *h = got < 0 ? NULL : CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h)) {
		size_t bytes =
			h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS ? h->cmsg_len - CMSG_LEN(0) : 0;

		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int file;

			memcpy(&file, CMSG_DATA(h) + at, sizeof(file));
			rights_close(file);
		}
	}
	return got;
}

// Closes a Unix socket, and before it what waits there.
static inline void rights_close_socket(int fd)
{
	char bytes[4096];

	shutdown(fd, SHUT_RD); // no more comes
	for (int n = 0; n < RIGHTS_WAITING && rights_receive(fd, bytes, sizeof(bytes)) >= 0; n++)
		;
	close(fd);
}

#endif
