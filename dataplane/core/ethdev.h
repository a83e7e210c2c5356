// SPDX-License-Identifier: Apache-2.0
// Opens and closes one DPDK device (PCI, net_memif, net_af_packet, …), for gateway and tester; independent of workers
// and graphs. All calls: the thread that owns the devices.
#ifndef CORE_ETHDEV_H
#define CORE_ETHDEV_H

#include "core/steering.h"
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mempool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ETHDEV_DESCRIPTORS 1024 // of a queue, when not given
#define ETHDEV_MEMBERS 8 // of a bonding device
#define ETHDEV_QUEUES STEERING_QUEUES // for receiving

struct ethdev_source {
	const char *driver; // "pci", or a virtual device's: "net_memif", …
	const char *args; // the driver's, as after --vdev NAME,; for PCI the address and its arguments
};

struct ethdev_want {
	struct ethdev_source source;
	struct ethdev_source member[ETHDEV_MEMBERS]; // the devices that a bonding device is made of
	uint32_t members;
	uint32_t mtu; // largest L3 packet
	// Bytes of VLAN tags in addition; Linux counts them in an interface's frame size
	uint32_t tags;
	uint16_t rx_queues, tx_queues; // as many as the device has at most; ETHDEV_QUEUES to receive
	uint16_t descriptors; // of each queue; 0: ETHDEV_DESCRIPTORS
	uint8_t mac[6]; // zeros: the device's own
	uint8_t promiscuous;
	uint8_t access; // the fields that differ between subscribers stand before IP
	uint8_t marks; // of rte_flow are wanted with received frames
	struct rte_mempool *pool; // for received frames; must outlive the device
};

struct ethdev_handle {
	uint16_t id; // rte_ethdev's port number
	char bus[16], device[80];
};

struct ethdev {
	uint16_t id; // rte_ethdev's port number
	uint16_t rx_queues, tx_queues; // really made
	int rx_fd[ETHDEV_QUEUES]; // can be read as long as the queue has frames; -1: the queue must be polled
	int socket[ETHDEV_MEMBERS * ETHDEV_QUEUES]; // that it and its members receive on; their drivers'
	uint32_t sockets;
	uint64_t dropped; // there, by the kernel, as far as ethdev_counts() has looked
	uint8_t steering; // enum api_steering
	uint8_t multi_segment; // the device sends chained mbufs
	struct rte_ether_addr mac;
	// In the order of their making: members, then the device itself
	struct ethdev_handle handle[ETHDEV_MEMBERS + 1];
	uint32_t handles;
};

// The address that a port was given; false, and nothing is written, when it was given none.
static inline bool mac_given(struct rte_ether_addr *mac, const uint8_t given[RTE_ETHER_ADDR_LEN])
{
	static const uint8_t none[RTE_ETHER_ADDR_LEN];

	if (memcmp(given, none, sizeof(none)) == 0)
		return false;
	memcpy(mac->addr_bytes, given, sizeof(none));
	return true;
}

// Opens and starts device DRIVER_NAME. Returns 0; else a positive errno after a sentence in `error`, and nothing
// stays open.
int ethdev_open(struct ethdev *e, const char *name, const struct ethdev_want *want, char *error, size_t n);
// As rte_eth_stats_get(), but imissed has what the kernel dropped at the device's sockets.
int ethdev_counts(struct ethdev *e, struct rte_eth_stats *s);
int ethdev_link(const struct ethdev *e); // 1: up
void ethdev_close(struct ethdev *e);

#endif
