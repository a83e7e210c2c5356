// SPDX-License-Identifier: Apache-2.0
// Runs the tests of all decoders.
#include "wire/wire_test.h"

#define ROUNDS 20000

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

void mutate(wire_check_fn check, const uint8_t *seed, size_t size)
{
	static const uint8_t nasty[] = {0, 1, 2, 4, 0x7f, 0x80, 0xff, 0x45, 0x60, 0x34, 0x85};
	uint64_t state = 88172645463325252ull;

	for (size_t n = 0; n <= size; n++) {
		uint8_t *p = exact_copy(seed, n);
		check(p, n);
		free(p);
	}
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = next(&state) % 4 ? size : next(&state) % (size + 1);
		uint8_t *p = exact_copy(seed, n);
		for (uint64_t changes = n ? 1 + next(&state) % 4 : 0; changes > 0; changes--) {
			uint64_t r = next(&state);
			// Headers matter more than what they carry.
			size_t at = (r >> 8) % (r & 1 ? n : n < 48 ? n : 48);
			p[at] = r & 2 ? nasty[(r >> 40) % sizeof(nasty)] : (uint8_t)(r >> 40);
		}
		check(p, n);
		free(p);
	}
}

int main(void)
{
	return eth_tests() + pppoe_tests() + ip_tests() + gtpu_tests() + checksum_tests() + icmp_tests() +
	       neighbour_tests() + lanes_tests() + circuit_tests() + tcp_tests();
}
