// SPDX-License-Identifier: Apache-2.0
// A necessary condition of a classic BPF program, cheap to check. For each path through the program that accepts, a
// word of 8 bytes and the bits that the path compares. A packet with none of the words is not accepted.
#ifndef TRACE_CONDITIONS_H
#define TRACE_CONDITIONS_H

#include <pcap/pcap.h>
#include <stdint.h>

#define CONDITIONS_MOST 8u
#define CONDITIONS_REACH 96u // words lie in so many bytes

struct condition {
	uint32_t at; // offset of the word
	uint64_t mask, value; // as memory has them
};

// One of them must hold. None: no packet is accepted; an always true one: any may be. Unused places hold conditions
// that never hold.
struct conditions {
	uint32_t n;
	struct condition of[CONDITIONS_MOST];
};

// What is known of the packets asked about.
struct known {
	uint8_t mask[CONDITIONS_REACH], value[CONDITIONS_REACH];
};

void conditions_clear(struct conditions *c);
void known_byte(struct known *k, uint32_t at, uint8_t mask, uint8_t value);
// Adds a condition unless it is there; too many become a single one, which always holds.
void conditions_add(struct conditions *to, struct condition c);
// Adds those of a program, for packets with `known` true. Bytes before `common` are alike in all packets: words behind
// it are preferred. `shift` is added to offsets.
void conditions_of_program(
	struct conditions *to, const struct bpf_insn *p, const struct known *known, uint32_t common, uint32_t shift);

#endif
