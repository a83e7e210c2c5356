// SPDX-License-Identifier: Apache-2.0
// The control socket, and the control thread's sleep on it.
#ifndef CORE_SOCKET_H
#define CORE_SOCKET_H

#include <stdint.h>

// fn runs on the control thread when fd can be read; one descriptor (epoll(7) combines several). Negative: none.
void control_listen(int fd, void (*fn)(void));

int socket_open(const char *path);
void socket_poll(uint64_t timeout_ns); // sleeps, as long as nothing comes
void socket_close(void);
uint32_t socket_clients(uint64_t *closed); // now; closed: those closed for misbehaviour, or turned away

#endif
