// SPDX-License-Identifier: Apache-2.0
// The PATH object: GTP-U peers, the outer headers made for them, and the supervision by Echo Requests (TS 29.281 §7.2.1).
#include "gtpu/path.h"
#include "core/control.h"
#include "core/object.h"
#include "wire/checksum.h"
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#define MAX_LOCALS 256
#define ECHO_LOST 3 // unanswered requests until a path counts as down

struct local {
	uint8_t family;
	uint8_t address[16];
	uint32_t users; // paths, staged ones included; 0: free
};

static struct {
	struct path *staged[GTPU_MAX_PATHS]; // as after the open transaction
	struct local local[MAX_LOCALS]; // slots are filled before a path that uses them is published
	uint32_t locals; // slots ever used
	struct path_counters *counters[API_MAX_WORKERS + 1]; // by worker; last: the control thread
	struct {
		uint64_t next_ns;
		uint16_t sequence;
		uint8_t unanswered;
		uint8_t recovery; // the peer's restart counter
	} echo[GTPU_MAX_PATHS];
} paths;

struct path *path_table[GTPU_MAX_PATHS];

struct path_counters *path_counters_of(uint32_t index, uint32_t worker)
{
	return &paths.counters[RTE_MIN(worker, (uint32_t)API_MAX_WORKERS)][index];
}

static uint32_t address_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

int gtpu_path_index(const char *name)
{
	for (int i = 0; i < GTPU_MAX_PATHS; i++)
		if (paths.staged[i] != NULL && strncmp(paths.staged[i]->name, name, API_NAME) == 0)
			return i;
	return -1;
}

uint16_t gtpu_local_id(uint8_t family, const uint8_t *address)
{
	uint32_t n = __atomic_load_n(&paths.locals, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++)
		if (paths.local[i].family == family && paths.local[i].users != 0 &&
			memcmp(paths.local[i].address, address, address_bytes(family)) == 0)
			return (uint16_t)i;
	return GTPU_LOCAL_NONE;
}

int gtpu_local_staged(const struct api_address *local)
{
	for (int i = 0; i < GTPU_MAX_PATHS; i++)
		if (paths.staged[i] != NULL && paths.staged[i]->version == local->family &&
			memcmp(paths.staged[i]->want.local.bytes, local->bytes, address_bytes(local->family)) == 0)
			return 1;
	return 0;
}

const struct path *path_between(uint8_t family, const uint8_t *local, const uint8_t *peer)
{
	for (int i = 0; i < GTPU_MAX_PATHS; i++) {
		const struct path *p = path_get((uint32_t)i);

		if (p != NULL && p->version == family &&
			memcmp(p->want.local.bytes, local, address_bytes(family)) == 0 &&
			memcmp(p->want.peer.bytes, peer, address_bytes(family)) == 0)
			return p;
	}
	return NULL;
}

// ---- making a path ---------------------------------------------------------------------------------------------------

static int take_local(const struct api_address *a, uint16_t *id)
{
	uint16_t known = gtpu_local_id(a->family, a->bytes);
	uint32_t i = 0;

	if (known != GTPU_LOCAL_NONE) {
		paths.local[known].users++;
		*id = known;
		return 0;
	}
	while (i < paths.locals && paths.local[i].users != 0)
		i++;
	if (i == MAX_LOCALS)
		return object_error(ENOSPC, "paths have more than %d local addresses", MAX_LOCALS);
	memset(&paths.local[i], 0, sizeof(paths.local[i]));
	paths.local[i].family = a->family;
	memcpy(paths.local[i].address, a->bytes, address_bytes(a->family));
	paths.local[i].users = 1;
	if (i == paths.locals)
		__atomic_store_n(&paths.locals, i + 1, __ATOMIC_RELEASE);
	*id = (uint16_t)i;
	return 0;
}

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
	uint32_t ip = p->version == 4 ? 20 : 40;

	for (int container = 0; container < 2; container++) {
		uint32_t gtpu = container ? GTPU_HEADER_CONTAINER : GTPU_HEADER;
		uint8_t *h = p->header[container] + OUTER_LENGTH_MAX - ip - 8 - gtpu;

		p->length[container] = (uint8_t)(ip + 8 + gtpu);
		if (p->version == 4)
			p->ip4_sum = checksum_fold(put_ip4(p, h));
		else
			put_ip6(p, h);
		// TS 29.281 §4.4.2.1: a free source port, destination port 2152.
		store16(h + ip, p->want.source_port ? p->want.source_port : GTPU_PORT);
		store16(h + ip + 2, GTPU_PORT);
		gtpu_put_gpdu(h + ip + 8, 0, container ? 0 : GTPU_NO_QFI, GTPU_PDU_UL, 0);
	}
}

static int check(const char *key, const struct api_path *want)
{
	uint8_t family = want->local.family;

	if (engine_get() == NULL)
		return object_error(EINVAL, "path %s comes before the engine", key);
	if ((family != 4 && family != 6) || want->peer.family != family)
		return object_error(EINVAL, "path %s: local and peer are two addresses of one family", key);
	if (want->dscp > 63)
		return object_error(EINVAL, "path %s has DSCP %u, at most 63", key, want->dscp);
	if (want->echo_interval != 0 && want->echo_interval < 60)
		return object_error(EINVAL, "path %s: echo_interval is 0 or at least 60 s (TS 29.281 §7.2.1)", key);
	return 0;
}

static void path_free(struct path *p)
{
	if (p != NULL)
		paths.local[p->local_id].users--;
	rte_free(p);
}

static int stage(struct object_change *c)
{
	const struct api_path *want = c->body;
	struct path *old = *c->live;
	int index = old ? old->index : 0;

	c->replaced = old;
	if (want == NULL) {
		if (old != NULL)
			paths.staged[old->index] = NULL;
		return 0;
	}
	int error = check(c->key, want);
	if (error != 0)
		return error;
	while (old == NULL && index < GTPU_MAX_PATHS && (paths.staged[index] != NULL || path_table[index] != NULL))
		index++;
	if (index == GTPU_MAX_PATHS)
		return object_error(ENOSPC, "more than %d paths", GTPU_MAX_PATHS);
	struct path *p = rte_zmalloc("path", sizeof(*p), RTE_CACHE_LINE_SIZE);
	if (p == NULL)
		return object_error(ENOMEM, "no memory for path %s", c->key);
	error = take_local(&want->local, &p->local_id);
	if (error != 0) {
		rte_free(p);
		return error;
	}
	snprintf(p->name, sizeof(p->name), "%s", c->key);
	p->index = (uint16_t)index;
	p->version = want->local.family;
	p->want = *want;
	fill_header(p);
	// Sessions keep F-TEIDs on the old address; their own verify() says whether another path still has it.
	c->narrows = old != NULL && memcmp(&old->want.local, &want->local, sizeof(want->local)) != 0;
	paths.staged[index] = p;
	c->staged = p;
	return 0;
}

static void discard(struct object_change *c)
{
	struct path *p = c->staged, *old = c->replaced;

	if (p != NULL)
		paths.staged[p->index] = NULL;
	if (old != NULL)
		paths.staged[old->index] = old;
	path_free(p);
}

static void commit(struct object_change *c)
{
	struct path *p = c->staged, *old = c->replaced;
	uint32_t index = p ? p->index : old ? old->index : GTPU_MAX_PATHS;

	if (index == GTPU_MAX_PATHS)
		return;
	__atomic_store_n(&path_table[index], p, __ATOMIC_RELEASE);
	paths.echo[index].next_ns = 0;
	paths.echo[index].unanswered = 0;
	*c->live = p;
}

static void release(struct object_change *c)
{
	path_free(c->replaced);
}

static const struct object_ops path_ops = {
	.kind = API_PATH,
	.name = "path",
	.min_length = sizeof(struct api_path),
	.max_length = sizeof(struct api_path),
	.stage = stage,
	.commit = commit,
	.discard = discard,
	.release = release,
};
OBJECT_REGISTER(path_ops)

// ---- supervision -----------------------------------------------------------------------------------------------------

static void send_echo(const struct path *p)
{
	struct rte_mbuf *m = control_originate();
	uint32_t ip = p->version == 4 ? 20 : 40;

	if (m == NULL)
		return;
	uint8_t *h = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(ip + 8 + GTPU_MESSAGE_MAX));
	unsigned n = gtpu_put_echo_request(h + ip + 8, ++paths.echo[p->index].sequence);
	rte_pktmbuf_trim(m, (uint16_t)(GTPU_MESSAGE_MAX - n));
	memcpy(h, p->header[0] + OUTER_LENGTH_MAX - p->length[0], ip + 8);
	gtpu_finish_outer(m, p->version, ip + 8 + n);
	path_counters_of(p->index, API_MAX_WORKERS)->echo_sent++;
	paths.echo[p->index].unanswered++;
	control_inject(0, "ip-output", m);
}

static void tick(uint64_t now_ns)
{
	for (uint32_t i = 0; i < GTPU_MAX_PATHS; i++) {
		const struct path *p = path_table[i];

		if (p == NULL || p->want.echo_interval == 0 || now_ns < paths.echo[i].next_ns)
			continue;
		paths.echo[i].next_ns = now_ns + p->want.echo_interval * 1000000000ull;
		send_echo(p);
	}
}

void path_answered(uint32_t index, uint8_t recovery)
{
	paths.echo[index].unanswered = 0;
	paths.echo[index].recovery = recovery;
}

static int start(const struct api_engine *e)
{
	for (uint32_t w = 0; w <= API_MAX_WORKERS; w++) {
		if (w < API_MAX_WORKERS && w >= e->workers)
			continue;
		paths.counters[w] =
			rte_zmalloc("paths", sizeof(struct path_counters) * GTPU_MAX_PATHS, RTE_CACHE_LINE_SIZE);
		if (paths.counters[w] == NULL)
			return object_error(ENOMEM, "no memory for path counters");
	}
	return 0;
}

static void path_rows(struct stats_sink *s, const char *key)
{
	for (uint32_t i = 0; i < GTPU_MAX_PATHS; i++) {
		const struct path *p = path_table[i];
		struct api_path_row row = {0};

		if (p == NULL || (key[0] != 0 && strcmp(key, p->name) != 0))
			continue;
		snprintf(row.name, sizeof(row.name), "%s", p->name);
		row.local = p->want.local;
		row.peer = p->want.peer;
		for (uint32_t w = 0; w <= API_MAX_WORKERS; w++) {
			if (paths.counters[w] == NULL)
				continue;
			const struct path_counters *c = &paths.counters[w][i];
			row.echo_sent += c->echo_sent;
			row.echo_received += c->echo_received;
			row.error_indications_sent += c->errors_sent;
			row.error_indications_received += c->errors_received;
		}
		row.recovery = paths.echo[i].recovery;
		row.alive = paths.echo[i].unanswered < ECHO_LOST;
		stats_row(s, &row, sizeof(row));
	}
}

RTE_INIT(path_module)
{
	module_register("gtpu", start);
	timer_register("gtpu-echo", 1000, tick);
	stats_table_register(API_TABLE_PATH, sizeof(struct api_path_row), path_rows);
}
