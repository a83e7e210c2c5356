// SPDX-License-Identifier: Apache-2.0
#include "core/lazy.h"
#include <rte_common.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE (8 * HUGE_PAGE) // smaller tables would mostly hold what is never touched

void *lazy_alloc(size_t bytes)
{
	size_t room = bytes < LARGE ? bytes : bytes + HUGE_PAGE;
	void *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (bytes < LARGE)
		return p;
	p = RTE_PTR_ALIGN(p, HUGE_PAGE);
	(void)madvise(p, bytes, MADV_HUGEPAGE); // without it the table is slower, and as good
	return p;
}
