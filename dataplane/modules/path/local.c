// SPDX-License-Identifier: Apache-2.0
// Numbers for our tunnel addresses.
#include "core/object.h"
#include "path/path.h"
#include "route/address.h"
#include <errno.h>
#include <string.h>

struct local {
	uint8_t family;
	uint8_t address[16];
	uint32_t users; // paths and instances, staged ones included; 0: free; the address is seen with it
};

static struct {
	struct local local[GTPU_MAX_LOCALS]; // slots are filled before anything that uses them is published
	uint32_t count; // slots ever used
} locals;

uint16_t path_local_id(uint8_t family, const uint8_t *address)
{
	uint32_t n = __atomic_load_n(&locals.count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (__atomic_load_n(&locals.local[i].users, __ATOMIC_ACQUIRE) != 0 &&
			locals.local[i].family == family &&
			memcmp(locals.local[i].address, address, address_length(family)) == 0)
			return (uint16_t)i;
	return PATH_LOCAL_NONE;
}

int path_local_take(const struct api_address *a, uint16_t *id)
{
	uint16_t known = path_local_id(a->family, a->bytes);
	uint32_t i = 0;

	if (known != PATH_LOCAL_NONE) {
		locals.local[known].users++;
		*id = known;
		return 0;
	}
	while (i < locals.count && locals.local[i].users != 0)
		i++;
	if (i == GTPU_MAX_LOCALS)
		return object_error(ENOSPC, "more than %d local tunnel addresses", GTPU_MAX_LOCALS);
	memset(&locals.local[i], 0, sizeof(locals.local[i]));
	locals.local[i].family = a->family;
	memcpy(locals.local[i].address, a->bytes, address_length(a->family));
	__atomic_store_n(&locals.local[i].users, 1, __ATOMIC_RELEASE);
	if (i == locals.count)
		__atomic_store_n(&locals.count, i + 1, __ATOMIC_RELEASE);
	*id = (uint16_t)i;
	return 0;
}

void path_local_give(uint16_t id)
{
	if (id < GTPU_MAX_LOCALS && locals.local[id].users > 0)
		locals.local[id].users--;
}
