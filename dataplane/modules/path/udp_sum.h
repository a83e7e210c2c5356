// SPDX-License-Identifier: Apache-2.0
// The UDP checksum of received tunnel packets (RFC 1122 §4.1.3.4, RFC 8200 §8.1).
#ifndef PATH_UDP_SUM_H
#define PATH_UDP_SUM_H

#include <rte_mbuf.h>
#include <stdint.h>

// Bits of an IPv4 UDP checksum field that ask for verification: all, or none with API_ENGINE_UDP_SUM_IGNORED. Workers.
uint16_t udp_sum_mask(void);

// 1 when the datagram with its UDP header at offset `udp`, behind the IP header of `version` at `ip`, is accepted. The
// caller checked that the UDP length matches IP's, and that both headers are in the first segment.
//
// A checksum of 0 is none: allowed over IPv4, and over IPv6 with API_ENGINE_UDP_SUM_ZERO6 (RFC 6936 §4). If the device
// found the checksum good, this is believed. A sender on this machine, or a guest on its host, may leave the checksum
// to a device that the packet never met (veth, virtio). Such a packet has the sum of the pseudo-header alone, which is
// accepted. Workers.
int udp_sum_good(const struct rte_mbuf *m, uint8_t version, uint32_t ip, uint32_t udp);

#endif
