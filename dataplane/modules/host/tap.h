// SPDX-License-Identifier: Apache-2.0
// A kernel TAP device in a network namespace: created, or taken over from the previous process. It outlives its
// descriptor (TUNSETPERSIST), with its addresses and routes; only its carrier goes.
#ifndef HOST_TAP_H
#define HOST_TAP_H

#include <rte_ether.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tap {
	int fd; // -1: closed. Frames as Ethernet has them
	int inet; // a socket in the namespace, for requests about the device
	const char *device, *netns; // of the caller, who keeps them; netns "": ours
	dev_t netns_device; // which namespace that was
	ino_t netns_inode;
};

// 0, or -1 with a sentence in `why`. A new device is set up with this MTU; an existing one keeps its own.
int tap_open(struct tap *t, const struct rte_ether_addr *mac, uint32_t mtu, char *why, size_t n);
void tap_close(struct tap *t);
void tap_delete(struct tap *t); // with the device
// 1 while the device exists and its namespace still has its name. Restores the MAC address.
int tap_alive(const struct tap *t, const struct rte_ether_addr *mac, char *why, size_t n);
void tap_link(const struct tap *t, int up);

#endif
