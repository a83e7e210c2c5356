// SPDX-License-Identifier: Apache-2.0
// Answers ARP requests and neighbour solicitations for the addresses of a tester's port. Pure.
#ifndef TRAFFIC_NEIGHBOUR_H
#define TRAFFIC_NEIGHBOUR_H

#include "traffic/engine/work.h"

#define NEIGHBOUR_ANSWER_BYTES 104 // the longest answer: four tags, IPv6 header, advertisement with its option

// Looks at a received frame without FCS (up to four VLAN tags, which the answer keeps). If it asks for one of the
// port's addresses and meets RFC 826 or RFC 4861 §7.1.1, writes the answer to `to`. The answer is without FCS and
// padded to 60 bytes. Returns its length; else 0, also when `room` bytes are too few. `mac` is the port's, in
// transmission order. `frame` and `to` may not overlap. Any thread.
uint16_t neighbour_answer(const struct job_port *p, const uint8_t mac[6], const uint8_t *frame, uint16_t length,
	uint8_t *to, uint16_t room);

#endif
