// SPDX-License-Identifier: Apache-2.0
// Configurations of URRs. Most subscribers share a few: each is held once, with a reference count.
#include "usage/urr.h"
#include <rte_random.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 65536u // pages that are not touched cost nothing

struct config {
	struct api_urr c; // first
	struct config *next; // in its bucket
	uint32_t users;
};

static struct config *bucket[BUCKETS];
static uint64_t secret; // a CP function cannot choose configurations of one bucket

RTE_INIT(choose_secret)
{
	secret = rte_rand();
}

static struct config **bucket_of(const struct api_urr *c)
{
	const uint8_t *bytes = (const uint8_t *)c;
	uint64_t h = secret, word;

	for (size_t i = 0; i < sizeof(*c); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		unsigned __int128 product = (unsigned __int128)(h ^ word) * 0x9e3779b97f4a7c15ull;
		h = (uint64_t)product ^ (uint64_t)(product >> 64);
	}
	return &bucket[h % BUCKETS];
}
static_assert(sizeof(struct api_urr) % sizeof(uint64_t) == 0, "read by words");

const struct api_urr *urr_config_take(const struct api_urr *want)
{
	struct config **first = bucket_of(want), *k = *first;

	while (k != NULL && memcmp(&k->c, want, sizeof(k->c)) != 0)
		k = k->next;
	if (k == NULL) {
		k = malloc(sizeof(*k));
		if (k == NULL)
			return NULL;
		*k = (struct config){.c = *want, .next = *first};
		*first = k;
	}
	k->users++;
	return &k->c;
}

void urr_config_give(const struct api_urr *config)
{
	struct config *k = (struct config *)(uintptr_t)config;

	if (k == NULL || --k->users != 0)
		return;
	struct config **at = bucket_of(&k->c);
	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	free(k);
}
