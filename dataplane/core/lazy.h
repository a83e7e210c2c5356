// SPDX-License-Identifier: Apache-2.0
// Memory of large tables of which most is often unused.
#ifndef CORE_LAZY_H
#define CORE_LAZY_H

#include <stddef.h>

// Zeroed memory at a cache line's begin, never given back. Pages come when they are touched: large ones (transparent
// huge pages) for a large table, since with small ones a random line costs a page walk beside the miss. NULL: there is
// none.
void *lazy_alloc(size_t bytes);

#endif
