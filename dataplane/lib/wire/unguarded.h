// SPDX-License-Identifier: Apache-2.0
// Build protections that the fast path omits because each costs it more than 2 % (bench/README.md, "Hardening").
#ifndef WIRE_UNGUARDED_H
#define WIRE_UNGUARDED_H

// No canary: of a function without an array, which only hands out addresses of numbers.
#define NO_CANARY __attribute__((no_stack_protector))

// Copies a number or two. memcpy() into an array's element is a call under _FORTIFY_SOURCE=3, whose room is known at
// run time only.
#define COPY_FIXED(to, from, size)                                                                                     \
	do {                                                                                                           \
		_Static_assert(__builtin_constant_p(size), "else memcpy() looks whether there is room");               \
		__builtin_memcpy(to, from, size);                                                                      \
	} while (0)

#endif
