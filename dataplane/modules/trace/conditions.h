// SPDX-License-Identifier: Apache-2.0
// What a packet must have that a program of classic BPF takes: of each way through the program that ends in "yes",
// a word of 8 bytes, bits of which that way compared. A packet that has none of the words, the program does not take.
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

// One of them must hold: none, no packet is taken; one that always does, any may be. Behind the last one are some that
// never hold.
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
// Adds one, if it is not among them; too many become one that always holds.
void conditions_add(struct conditions *to, struct condition c);
// Adds those of a program, for packets of which `known` is true. Bytes in front of `common` are much the same in all
// packets: words behind it are taken, where a way has some. `shift` is added to offsets.
void conditions_of_program(
	struct conditions *to, const struct bpf_insn *p, const struct known *known, uint32_t common, uint32_t shift);

#endif
