// SPDX-License-Identifier: Apache-2.0
// Memory of large tables of which most is often unused.
#ifndef CORE_LAZY_H
#define CORE_LAZY_H

#include <stddef.h>

// Zeroed memory from a cache line's begin, never given back. Pages are allocated at first touch; large tables get huge
// pages (transparent), because with small ones a random line costs a page walk beside the miss. NULL: no memory.
void *lazy_alloc(size_t bytes);

#endif
