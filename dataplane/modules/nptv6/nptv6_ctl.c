// SPDX-License-Identifier: Apache-2.0
// The NPTV6 object: made beside the old one, swapped, and freed after a grace period. Its only state are counts, which
// remaining pairs keep.
#include "core/control.h"
#include "core/object.h"
#include "nptv6/nptv6.h"
#include "route/route.h"
#include "wire/cache_line.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>

struct nptv6_now nptv6_now;

static struct nptv6 *first; // in force

// A prefix, and the `n` before it.
static int check_prefix(
	const char *key, const struct api_address *a, const struct api_address *const *before, uint32_t n)
{
	char text[2][64];

	if (!address_valid(a) || !prefix_canonical(a) || a->family != 6 || a->prefix < 16 || a->prefix > 64 ||
		a->bytes[0] == 0xff || address_is_link_local(6, a->bytes))
		return object_error(EINVAL, "nptv6 of %s: %s is no unicast IPv6 prefix of 16 to 64 bits", key,
			address_text(a, text[0]));
	for (uint32_t i = 0; i < n; i++)
		if (ip_in_prefix(a, 6, before[i]->bytes) || ip_in_prefix(before[i], 6, a->bytes))
			return object_error(EINVAL, "nptv6 of %s: %s and %s overlap", key, address_text(a, text[0]),
				address_text(before[i], text[1]));
	return 0;
}

static int check_pairs(const char *key, const struct api_nptv6 *want)
{
	const struct api_address *all[2 * API_NPTV6_PAIRS];
	int error = 0;

	for (uint32_t i = 0; i < want->pairs && error == 0; i++) {
		all[2 * i] = &want->inside[i];
		all[2 * i + 1] = &want->outside[i];
		if ((error = check_prefix(key, all[2 * i], all, 2 * i)) == 0 &&
			(error = check_prefix(key, all[2 * i + 1], all, 2 * i + 1)) == 0 &&
			want->inside[i].prefix != want->outside[i].prefix)
			error = object_error(
				EINVAL, "nptv6 of %s: the prefixes of pair %u differ in length", key, i + 1);
	}
	return error;
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_nptv6 *want = body;
	int index = instance_index(key);

	if (index < 0 || instance_staged((uint16_t)index)->lookup != API_LOOKUP_DESTINATION)
		return object_error(
			ENOENT, "nptv6 of %s: there is no instance of that name that looks destinations up", key);
	if (want->pairs == 0 || want->pairs > API_NPTV6_PAIRS)
		return object_error(EINVAL, "nptv6 of %s: %u pairs, must be 1..%u", key, want->pairs, API_NPTV6_PAIRS);
	return check_pairs(key, want);
}

static int stage(struct object_change *c)
{
	const struct api_nptv6 *want = c->body;
	int error = want == NULL ? 0 : check(c->key, want, c->length);

	c->replaced = *c->live;
	if (want == NULL || error != 0)
		return error;
	struct nptv6 *n = rte_zmalloc("nptv6", sizeof(*n), CACHE_LINE);
	if (n == NULL)
		return object_error(ENOMEM, "no memory for the nptv6 of %s", c->key);
	snprintf(n->name, sizeof(n->name), "%s", c->key);
	n->want = *want;
	n->pairs = want->pairs;
	for (uint32_t i = 0; i < n->pairs; i++)
		nptv6_pair_set(&n->pair[i], want->inside[i].bytes, want->outside[i].bytes, want->inside[i].prefix);
	c->staged = n;
	return 0;
}

static void discard(struct object_change *c)
{
	rte_free(c->staged);
}

static void commit(struct object_change *c)
{
	struct nptv6 *n = c->staged, **link = &first;

	while (*link != NULL && *link != c->replaced)
		link = &(*link)->next;
	if (*link != NULL)
		*link = (*link)->next;
	if (n != NULL) {
		n->next = first;
		first = n;
	}
	*c->live = n;
}

static uint64_t total(const struct nptv6 *n, enum nptv6_direction d, uint32_t pair)
{
	uint64_t sum = n->before.packets[d][pair];

	for (uint32_t w = 0; w < API_MAX_WORKERS; w++)
		sum += __atomic_load_n(&n->counts[w].packets[d][pair], __ATOMIC_RELAXED);
	return sum;
}

static int same_pair(const struct nptv6_pair *a, const struct nptv6_pair *b)
{
	return a->mask == b->mask && a->prefix[0] == b->prefix[0] && a->prefix[1] == b->prefix[1];
}

// No worker counts in the old one any more.
static void release(struct object_change *c)
{
	struct nptv6 *n = c->staged, *old = c->replaced;

	for (uint32_t i = 0; n != NULL && old != NULL && i < n->pairs; i++)
		for (uint32_t k = 0; k < old->pairs; k++)
			if (same_pair(&n->pair[i], &old->pair[k]))
				for (int d = 0; d < 2; d++)
					n->before.packets[d][i] = total(old, d, k);
	rte_free(old);
}

// After a change of instances or of NPTv6.
static void bind(void)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct instance *in = instance_staged(i);
		struct nptv6 *n = in == NULL ? NULL : first;

		while (n != NULL && strncmp(n->name, in->name, API_NAME) != 0)
			n = n->next;
		__atomic_store_n(&nptv6_now.of[i], n, __ATOMIC_RELEASE);
		count += n != NULL;
	}
	__atomic_store_n(&nptv6_now.count, count, __ATOMIC_RELAXED);
	ip_ways_changed(); // what fast paths know of destinations
}

static const struct object_ops nptv6_ops = {
	OBJECT_OF_ONE(API_NPTV6, "nptv6", struct api_nptv6),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_commit = bind,
	.verify = check,
};
OBJECT_REGISTER(nptv6_ops)

static uint64_t rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	for (const struct nptv6 *n = first; n != NULL; n = n->next)
		for (uint32_t i = 0; i < n->pairs && (key[0] == 0 || strcmp(key, n->name) == 0); i++) {
			struct api_nptv6_row row = {.inside = n->want.inside[i],
				.outside = n->want.outside[i],
				.packets_out = total(n, NPTV6_OUT, i),
				.packets_in = total(n, NPTV6_IN, i)};

			snprintf(row.name, sizeof(row.name), "%s", n->name);
			stats_row(sink, &row, sizeof(row));
		}
	return 0;
}

RTE_INIT(nptv6_module)
{
	instance_watch(bind);
	stats_table_register(API_TABLE_NPTV6, sizeof(struct api_nptv6_row), rows);
}
