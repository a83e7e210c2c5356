// SPDX-License-Identifier: Apache-2.0
// The circuit id that an access node puts into a subscriber's message (TR-101 §3.8, §3.9): PPPoE tag 0x0105, DHCPv4
// option 82 (RFC 3046), Interface-Id of a DHCPv6 Relay-Forward (RFC 6221).
#ifndef WIRE_CIRCUIT_H
#define WIRE_CIRCUIT_H

#include "wire/bytes.h"

struct circuit {
	const uint8_t *id; // in the message
	uint32_t length; // 0: there is none
};

// Of a message of `n` readable bytes: a PPPoE discovery packet from its header on, a DHCP message behind UDP's.
struct circuit circuit_of_pppoe(const uint8_t *p, uint32_t n);
struct circuit circuit_of_dhcp4(const uint8_t *p, uint32_t n);
struct circuit circuit_of_dhcp6(const uint8_t *p, uint32_t n); // the innermost relay's, which is the access node

#endif
