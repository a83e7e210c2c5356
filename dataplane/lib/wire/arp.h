// SPDX-License-Identifier: Apache-2.0
// ARP for IPv4 over Ethernet (RFC 826, RFC 5227).
#ifndef WIRE_ARP_H
#define WIRE_ARP_H

#include "wire/bytes.h"

#define ARP_LENGTH 28
#define ARP_REQUEST 1
#define ARP_REPLY 2

enum arp_status {
	ARP_OK,
	ARP_SHORT, // fewer than ARP_LENGTH bytes
	ARP_TYPE, // not IPv4 over Ethernet, or neither request nor reply
	ARP_ADDRESS, // sender hardware address is zero or multicast, or an IP address that no host can have
};

struct arp_info {
	uint16_t operation; // ARP_REQUEST or ARP_REPLY
	const uint8_t *sender_mac; // 6 bytes in the packet
	const uint8_t *sender; // IPv4, 4 bytes in the packet; 0.0.0.0 in a probe (RFC 5227)
	const uint8_t *target_mac;
	const uint8_t *target;
};

// Reads the ARP packet at p (behind the Ethernet header), of which `available` bytes may be read.
enum arp_status arp_parse(const uint8_t *p, uint32_t available, struct arp_info *out);

// Writes ARP_LENGTH bytes. target_mac may be NULL (zero, as in a request). Arguments must not lie in `to`.
void arp_put(uint8_t *to, uint16_t operation, const uint8_t *sender_mac, const uint8_t *sender,
	const uint8_t *target_mac, const uint8_t *target);

#endif
