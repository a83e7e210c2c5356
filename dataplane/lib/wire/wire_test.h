// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of this folder: one program, one group of tests per decoder.
#ifndef WIRE_TEST_H
#define WIRE_TEST_H

#include "wire/frames_fixture.h"
#include "wire/wire_kit.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// after the four headers that it needs
#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

// A copy on the heap that ends exactly at `size`, so that ASan sees a read behind it.
static inline uint8_t *exact_copy(const uint8_t *from, size_t size)
{
	uint8_t *p = malloc(size ? size : 1);

	assert_non_null(p);
	memcpy(p, from, size);
	return p;
}

// Calls check on every prefix of the seed, and on copies with a few bytes changed (the same ones every time).
void mutate(wire_check_fn check, const uint8_t *seed, size_t size);

int eth_tests(void);
int pppoe_tests(void);
int ip_tests(void);
int gtpu_tests(void);
int checksum_tests(void);
int icmp_tests(void);
int neighbour_tests(void);
int lanes_tests(void);
int tcp_tests(void);
int circuit_tests(void);

#endif
