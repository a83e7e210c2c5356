// SPDX-License-Identifier: Apache-2.0
// Frames for tests, built from the inside out: a payload first, then header after header in front.
//
//   frame_payload(&f, 100); frame_udp(&f, 1000, 53); frame_ip(&f, "100.64.0.2", "8.8.8.8", 17);
//   frame_qinq(&f, home, 100, 1, 0x88a8);
//
// Everything is right unless the test breaks it: frame.at points to the outermost header of the moment.
#ifndef TESTKIT_FRAME_H
#define TESTKIT_FRAME_H

#include "isthmus_api.h"
#include <stdint.h>

#define FRAME_ROOM 2048
#define FRAME_MAX 12288

struct frame {
	uint8_t *at; // first byte
	uint32_t length;
	uint8_t room[FRAME_ROOM + FRAME_MAX];
};

void frame_payload(struct frame *f, uint32_t length); // starts a frame: bytes 0, 1, 2, ...
uint8_t *frame_push(struct frame *f, uint32_t length); // zeros in front; returns f->at
void frame_append(struct frame *f, const void *bytes, uint32_t length); // NULL: zeros
void frame_udp(struct frame *f, uint16_t source, uint16_t destination); // checksum 0, which IPv6 fills in
void frame_tcp(struct frame *f, uint16_t source, uint16_t destination); // SYN, no options, checksum 0
void frame_icmp_echo(struct frame *f, const char *source, const char *destination); // also the IP header
void frame_ip(struct frame *f, const char *source, const char *destination, uint8_t protocol); // TTL 64
// Options of the IPv4 header at f->at, a multiple of 4 bytes; behind an IPv6 header destination options, of 8.
void frame_options(struct frame *f, uint32_t length);
// The bytes behind the IP header at f->at are a fragment, from 8 * `offset` on; `more`: not the last one.
void frame_fragment(struct frame *f, uint16_t offset, int more);
void frame_ip4_sum(struct frame *f); // after a change of the IPv4 header at f->at
void frame_udp6_sum(uint8_t *ip); // UDP directly behind an IPv6 header, all of it there (RFC 8200 §8.1)
void frame_gtpu(struct frame *f, uint32_t teid, uint8_t qfi); // downlink G-PDU; qfi 0xff: without container
void frame_ethernet(struct frame *f, const uint8_t to[6], const uint8_t from[6], uint16_t type);
// One 802.1Q tag between the MAC addresses and the type of the Ethernet header at f->at.
void frame_tag(struct frame *f, uint16_t tpid, uint16_t vlan);
void frame_pppoe(struct frame *f, uint16_t session, uint16_t protocol);

#endif
