// SPDX-License-Identifier: Apache-2.0
// The PATH object: GTP-U peers and the outer headers made for them.
#include "path/path.h"
#include "core/control.h"
#include "core/object.h"
#include "route/address.h"
#include "route/route.h"
#include "wire/cache_line.h"
#include "wire/checksum.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS GTPU_MAX_PATHS
#define NO_PATH UINT16_MAX
static_assert(GTPU_MAX_PATHS < NO_PATH, "an index of a path is 16 bits");

// Chains of indices + 1; 0 ends a chain. Workers walk those of `pair`. An index enters at a chain's head when its path
// is published and leaves when it is withdrawn. It gets another path only after a grace period.
struct chains {
	uint16_t head[BUCKETS];
	uint16_t next[GTPU_MAX_PATHS];
};

static struct {
	struct path *staged[GTPU_MAX_PATHS]; // as after the open transaction
	struct path *gone[GTPU_MAX_PATHS]; // deleted by the last transaction; for End Markers
	struct path_counters *counters[GTPU_MAX_PATHS]; // by worker; last: the control thread. Stay for the next path.
	struct chains name; // control thread only
	struct chains pair; // (local, peer)
	uint16_t local_paths[GTPU_MAX_LOCALS]; // staged paths by local address
	uint32_t used; // indices ever used
	uint32_t lowest; // below it no index is free
} paths;

struct path *path_table[GTPU_MAX_PATHS];

struct path_counters *path_counters_of(uint32_t index, uint32_t worker)
{
	return &paths.counters[index][RTE_MIN(worker, worker_count())];
}

uint32_t path_count(void)
{
	return paths.used;
}

// ---- chains ---------------------------------------------------------------------------------------------------------

static uint32_t mix(uint64_t h, const void *data, uint32_t n)
{
	const uint8_t *p = data;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t name_bucket(const char *name)
{
	return mix(0xcbf29ce484222325ull, name, (uint32_t)strnlen(name, API_NAME)) % BUCKETS;
}

static uint32_t pair_bucket(uint8_t family, const uint8_t *local, const uint8_t *peer)
{
	uint32_t n = address_length(family);

	return mix(mix(family, local, n), peer, n) % BUCKETS;
}

static uint32_t pair_bucket_of(const struct path *p)
{
	return pair_bucket(p->outer.version, p->want.local.bytes, p->want.peer.bytes);
}

static void chain_add(struct chains *c, uint32_t bucket, uint16_t index)
{
	c->next[index] = c->head[bucket];
	__atomic_store_n(&c->head[bucket], (uint16_t)(index + 1), __ATOMIC_RELEASE);
}

static void chain_remove(struct chains *c, uint32_t bucket, uint16_t index)
{
	uint16_t *at = &c->head[bucket];

	while (*at != 0 && *at != index + 1)
		at = &c->next[*at - 1];
	if (*at != 0)
		__atomic_store_n(at, c->next[index], __ATOMIC_RELEASE);
}

static int index_by_name(const char *name)
{
	for (uint16_t i = paths.name.head[name_bucket(name)]; i != 0; i = paths.name.next[i - 1])
		if (paths.staged[i - 1] != NULL && strncmp(paths.staged[i - 1]->name, name, API_NAME) == 0)
			return i - 1;
	return -1;
}

int path_index(const char *name)
{
	return index_by_name(name);
}

int path_local_staged(const struct api_address *local)
{
	uint16_t id = path_local_id(local->family, local->bytes);

	return id != PATH_LOCAL_NONE && paths.local_paths[id] != 0;
}

const struct path *path_between(uint8_t family, const uint8_t *local, const uint8_t *peer)
{
	uint32_t bucket = pair_bucket(family, local, peer), n = address_length(family);
	uint16_t i = __atomic_load_n(&paths.pair.head[bucket], __ATOMIC_ACQUIRE);

	// Bounded: a path may move to another chain under our feet.
	for (uint32_t hops = 0; i != 0 && hops < GTPU_MAX_PATHS; hops++) {
		const struct path *p = path_get(i - 1u);

		if (p != NULL && p->outer.version == family && memcmp(p->want.local.bytes, local, n) == 0 &&
			memcmp(p->want.peer.bytes, peer, n) == 0)
			return p;
		i = __atomic_load_n(&paths.pair.next[i - 1], __ATOMIC_ACQUIRE);
	}
	return NULL;
}

int path_exists(uint8_t family, const uint8_t *local, const uint8_t *peer)
{
	return path_between(family, local, peer) != NULL;
}

// ---- making a path --------------------------------------------------------------------------------------------------

static uint64_t put_ip4(const struct path *p, uint8_t *h)
{
	h[0] = 0x45;
	h[8] = p->want.ttl ? p->want.ttl : 64;
	h[9] = 17;
	memcpy(h + 12, p->want.local.bytes, 4);
	memcpy(h + 16, p->want.peer.bytes, 4);
	// Without DSCP, which the FAR may set, and without length and identification.
	uint64_t sum = ip4_sum20(h);
	h[1] = (uint8_t)(p->want.dscp << 2);
	return sum;
}

static void put_ip6(const struct path *p, uint8_t *h)
{
	h[0] = (uint8_t)(0x60 | p->want.dscp >> 2);
	h[1] = (uint8_t)(p->want.dscp << 6);
	h[6] = 17;
	h[7] = p->want.ttl ? p->want.ttl : 64;
	memcpy(h + 8, p->want.local.bytes, 16);
	memcpy(h + 24, p->want.peer.bytes, 16);
}

static void fill_header(struct path *p)
{
	uint32_t ip = path_ip_length(p);

	for (int container = 0; container < 2; container++) {
		uint32_t gtpu = container ? GTPU_HEADER_CONTAINER : GTPU_HEADER;
		uint8_t *h = p->outer.header[container] + OUTER_BYTES - ip - 8 - gtpu;

		p->outer.length[container] = (uint8_t)(ip + 8 + gtpu);
		if (p->outer.version == 4)
			p->outer.ip4_sum = checksum_fold(put_ip4(p, h));
		else
			put_ip6(p, h);
		// TS 29.281 §4.4.2.1: a free source port, destination port 2152.
		store16(h + ip, p->want.source_port ? p->want.source_port : GTPU_PORT);
		store16(h + ip + 2, GTPU_PORT);
		gtpu_put_gpdu(h + ip + 8, 0, container ? 0 : GTPU_NO_QFI, GTPU_PDU_UL, 0);
	}
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_path *want = body;
	uint8_t family = want->local.family;

	if (engine_get() == NULL)
		return object_error(EINVAL, "path %s comes before the engine", key);
	if ((family != 4 && family != 6) || want->peer.family != family)
		return object_error(EINVAL, "path %s: local and peer are two addresses of one family", key);
	if (interfaces_vrf_of(interfaces_next(), &want->local) < 0)
		return object_error(EINVAL, "path %s: its local address is on interfaces of several VRFs", key);
	if (want->dscp > 63)
		return object_error(EINVAL, "path %s has DSCP %u, at most 63", key, want->dscp);
	for (uint32_t q = 0; q < RTE_DIM(want->qfi_dscp); q++)
		if (want->qfi_dscp[q] > 64)
			return object_error(
				EINVAL, "path %s has DSCP %u for QFI %u, at most 63", key, want->qfi_dscp[q] - 1, q);
	if (want->echo_interval != 0 && want->echo_interval < 60)
		return object_error(EINVAL, "path %s: echo_interval is 0 or at least 60 s (TS 29.281 §7.2.1)", key);
	return 0;
}

static int index_free(uint32_t i)
{
	return paths.staged[i] == NULL && path_table[i] == NULL;
}

// The lowest free index, with its counters; GTPU_MAX_PATHS after object_error().
static uint32_t take_index(const char *key)
{
	uint32_t i = paths.lowest;

	while (i < GTPU_MAX_PATHS && !index_free(i))
		i++;
	if (i == GTPU_MAX_PATHS) {
		object_explain("more than %d paths", GTPU_MAX_PATHS);
		return i;
	}
	if (paths.counters[i] == NULL)
		paths.counters[i] =
			rte_zmalloc("path", sizeof(struct path_counters) * (worker_count() + 1), CACHE_LINE);
	if (paths.counters[i] == NULL) {
		object_explain("no memory for path %s", key);
		return GTPU_MAX_PATHS;
	}
	memset(paths.counters[i], 0, sizeof(struct path_counters) * (worker_count() + 1));
	rte_free(paths.gone[i]);
	paths.gone[i] = NULL;
	paths.lowest = i + 1;
	paths.used = RTE_MAX(paths.used, i + 1);
	return i;
}

static uint8_t vrf_of(const struct path *p)
{
	int vrf = interfaces_vrf_of(interfaces_next(), &p->want.local);

	return (uint8_t)RTE_MAX(vrf, 0);
}

static struct path *path_new(const char *key, const struct api_path *want, uint32_t index)
{
	struct path *p = rte_zmalloc("path", sizeof(*p), CACHE_LINE);

	if (p == NULL) {
		object_explain("no memory for path %s", key);
		return NULL;
	}
	if (path_local_take(&want->local, &p->local_id) != 0) {
		rte_free(p);
		return NULL;
	}
	snprintf(p->name, sizeof(p->name), "%s", key);
	p->index = (uint16_t)index;
	p->outer.version = want->local.family;
	p->want = *want;
	p->outer.class = (uint8_t)(want->dscp << 2);
	for (uint32_t q = 0; q < RTE_DIM(want->qfi_dscp); q++)
		p->outer.by_qfi |= want->qfi_dscp[q] != 0;
	p->vrf = vrf_of(p);
	fill_header(p);
	return p;
}

static void set_staged(uint32_t index, struct path *p)
{
	if (paths.staged[index] != NULL)
		paths.local_paths[paths.staged[index]->local_id]--;
	paths.staged[index] = p;
	if (p != NULL)
		paths.local_paths[p->local_id]++;
	else if (path_table[index] == NULL)
		paths.lowest = RTE_MIN(paths.lowest, index);
}

static int stage(struct object_change *c)
{
	const struct api_path *want = c->body;
	struct path *old = *c->live;

	c->replaced = old;
	if (want == NULL) {
		if (old != NULL)
			set_staged(old->index, NULL);
		return 0;
	}
	int error = check(c->key, want, c->length);
	if (error != 0)
		return error;
	uint32_t index = old != NULL ? old->index : take_index(c->key);
	if (index == GTPU_MAX_PATHS)
		return ENOSPC;
	struct path *p = path_new(c->key, want, index);
	if (p == NULL) {
		paths.lowest = old == NULL ? RTE_MIN(paths.lowest, index) : paths.lowest;
		return ENOSPC;
	}
	// Sessions keep F-TEIDs on the old address; their verify() checks whether another path still has it.
	c->narrows = old != NULL && memcmp(&old->want.local, &want->local, sizeof(want->local)) != 0;
	set_staged(index, p);
	if (old == NULL)
		chain_add(&paths.name, name_bucket(p->name), p->index);
	c->staged = p;
	return 0;
}

static void path_free(struct path *p)
{
	path_local_give(p->local_id);
	rte_free(p);
}

static void discard(struct object_change *c)
{
	struct path *p = c->staged, *old = c->replaced;

	if (p != NULL && old == NULL)
		chain_remove(&paths.name, name_bucket(p->name), p->index);
	if (p != NULL)
		set_staged(p->index, NULL);
	if (old != NULL)
		set_staged(old->index, old);
	if (p != NULL)
		path_free(p);
}

static int same_ends(const struct path *a, const struct path *b)
{
	return a->outer.version == b->outer.version &&
	       memcmp(&a->want.local, &b->want.local, sizeof(a->want.local)) == 0 &&
	       memcmp(&a->want.peer, &b->want.peer, sizeof(a->want.peer)) == 0;
}

static void commit(struct object_change *c)
{
	struct path *p = c->staged, *old = c->replaced;
	int moved = old != NULL && p != NULL && !same_ends(old, p);

	if (p == NULL && old == NULL)
		return;
	uint16_t index = p != NULL ? p->index : old->index;
	if (old != NULL && (p == NULL || moved))
		chain_remove(&paths.pair, pair_bucket_of(old), index);
	__atomic_store_n(&path_table[index], p, __ATOMIC_RELEASE);
	ip_ways_changed(); // header templates are made of both
	if (p != NULL && (old == NULL || moved))
		chain_add(&paths.pair, pair_bucket_of(p), index);
	if (p == NULL)
		chain_remove(&paths.name, name_bucket(old->name), index);
	if (p != NULL)
		path_supervise(index, old == NULL || moved);
	*c->live = p;
}

static void release(struct object_change *c)
{
	struct path *old = c->replaced;

	if (old == NULL)
		return;
	if (c->staged != NULL) {
		path_free(old);
		return;
	}
	// Sessions of the same transaction, which are released later, may still have to end a tunnel over it.
	path_local_give(old->local_id);
	paths.gone[old->index] = old;
	paths.lowest = RTE_MIN(paths.lowest, old->index);
}

const struct path *path_before(uint32_t index)
{
	if (index >= GTPU_MAX_PATHS)
		return NULL;
	return path_table[index] != NULL ? path_table[index] : paths.gone[index];
}

// Templates of headers are made of next hops in the path's VRF.
static void interfaces_changed(void)
{
	for (uint32_t i = 0; i < paths.used; i++) {
		struct path *p = path_table[i];

		if (p != NULL)
			__atomic_store_n(&p->vrf, vrf_of(p), __ATOMIC_RELAXED);
	}
	ip_ways_changed();
}

static const struct object_ops path_ops = {
	OBJECT_OF_ONE(API_PATH, "path", struct api_path),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
	.verify = check,
};
OBJECT_REGISTER(path_ops)

// ---- show -----------------------------------------------------------------------------------------------------------

static void path_row(struct stats_sink *s, const struct path *p)
{
	struct api_path_row row = {0};

	snprintf(row.name, sizeof(row.name), "%s", p->name);
	row.local = p->want.local;
	row.peer = p->want.peer;
	for (uint32_t w = 0; w <= worker_count(); w++) {
		const struct path_counters *c = &paths.counters[p->index][w];

		row.echo_sent += c->echo_sent;
		row.echo_received += c->echo_received;
		row.error_indications_sent += c->errors_sent;
		row.error_indications_received += c->errors_received;
	}
	row.recovery = path_recovery(p->index);
	row.alive = (uint32_t)path_alive(p->index);
	stats_row(s, &row, sizeof(row));
}

static uint64_t path_rows(struct stats_sink *s, const char *key, uint64_t place)
{
	int at = key[0] != 0 ? index_by_name(key) : place < paths.used ? (int)place : -1;

	if (at >= 0 && path_table[at] != NULL)
		path_row(s, path_table[at]);
	return key[0] != 0 ? 0 : stats_next(place, paths.used);
}

RTE_INIT(path_module)
{
	interface_watch(interfaces_changed);
	stats_table_register(API_TABLE_PATH, sizeof(struct api_path_row), path_rows);
}
