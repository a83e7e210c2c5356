// SPDX-License-Identifier: Apache-2.0
// The INSTANCE object, and the snapshot of all instances that workers read.
#include "instance/instance.h"
#include "core/control.h"
#include "core/object.h"
#include "path/local.h"
#include "route/route.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct instances snapshot[2];
static struct {
	struct instance *staged[MAX_INSTANCES]; // as after the open transaction
	struct {
		uint32_t tunnels, ue_addresses;
	} use[MAX_INSTANCES];
	void (*watcher[4])(void);
	uint32_t watchers;
} own;

const struct instances *instances_now = &snapshot[0];
struct instance_counters instance_counters[API_MAX_WORKERS];

uint64_t instance_udp_open[65536 / 64];
static uint16_t udp_users[65536]; // instances, staged ones included

static void take_port(uint16_t port)
{
	if (udp_users[port]++ == 0)
		__atomic_or_fetch(&instance_udp_open[port / 64], 1ull << port % 64, __ATOMIC_RELEASE);
}

static void give_port(uint16_t port)
{
	if (udp_users[port] > 0 && --udp_users[port] == 0)
		__atomic_and_fetch(&instance_udp_open[port / 64], ~(1ull << port % 64), __ATOMIC_RELEASE);
}

uint16_t instance_udp_port(uint32_t interface)
{
	const struct instance *n = instance_get(instance_of_interface(interface));

	return n == NULL ? 0 : n->udp_port;
}

int instance_owns(const struct instance *n, uint8_t family, const uint8_t *address)
{
	for (uint8_t i = 0; i < n->pools; i++)
		if (ip_in_prefix(&n->pool[i], family, address))
			return 1;
	return 0;
}

int instance_guards(const struct instances *s, uint8_t vrf, uint8_t family, const uint8_t *address)
{
	for (uint32_t i = 0; i < s->guarded; i++)
		if (s->guard[i].family == family && (vrf == VRF_ANY || instance_vrf(s, s->guard_of[i]) == vrf) &&
			memcmp(s->guard[i].bytes, address, address_length(family)) == 0)
			return 1;
	return 0;
}

uint16_t instance_by_pool_exactly(
	const struct instances *s, uint16_t index, uint8_t vrf, uint8_t family, const uint8_t *address)
{
	for (uint8_t i = 0; i < s->owners; i++)
		if ((index == INSTANCE_NONE ? instance_vrf(s, s->owner[i]) == vrf : index == s->owner[i]) &&
			instance_owns(s->instance[s->owner[i]], family, address))
			return s->owner[i];
	return INSTANCE_NONE;
}

const uint8_t *instance_source(uint16_t index, uint8_t family)
{
	const struct instances *s = instances_get();

	for (uint32_t i = 0; i < INSTANCE_INTERFACES; i++) {
		if (s->of_interface[i] == 0 || (index != INSTANCE_NONE && s->of_interface[i] != index + 1))
			continue;
		const uint8_t *a = ip_source_on_interface(family, i);
		if (a != NULL)
			return a;
	}
	return NULL;
}

void instance_watch(void (*changed)(void))
{
	if (own.watchers < RTE_DIM(own.watcher))
		own.watcher[own.watchers++] = changed;
}

int instance_index(const char *name)
{
	for (int i = 0; i < MAX_INSTANCES; i++)
		if (own.staged[i] != NULL && strncmp(own.staged[i]->name, name, API_NAME) == 0)
			return i;
	return -1;
}

const struct instance *instance_staged(uint16_t index)
{
	return index < MAX_INSTANCES ? own.staged[index] : NULL;
}

uint16_t instance_of_local_staged(uint16_t local)
{
	for (uint16_t i = 0; i < MAX_INSTANCES; i++)
		for (uint8_t e = 0; own.staged[i] != NULL && e < own.staged[i]->endpoints; e++)
			if (own.staged[i]->local[e] == local)
				return i;
	return INSTANCE_NONE;
}

void instance_count(uint16_t index, int tunnels, int ue_addresses)
{
	if (index >= MAX_INSTANCES)
		return;
	own.use[index].tunnels += (uint32_t)tunnels;
	own.use[index].ue_addresses += (uint32_t)ue_addresses;
}

static int check_interfaces(const char *key, const struct api_instance *want)
{
	const struct interface *first = NULL;

	for (uint32_t i = 0; i < want->interfaces; i++) {
		uint32_t length;

		if (memchr(want->interface[i], 0, API_NAME) == NULL ||
			object_find(API_INTERFACE, want->interface[i], &length) == NULL)
			return object_error(
				ENOENT, "instance %s: there is no interface %.*s", key, API_NAME, want->interface[i]);
		const struct interface *f = interfaces_by_name(interfaces_next(), want->interface[i]);
		if (f == NULL || f->role != API_ROLE_CORE)
			return object_error(
				EINVAL, "instance %s: interface %s is not on a core port", key, want->interface[i]);
		first = first != NULL ? first : f;
		if (f->vrf != first->vrf)
			return object_error(EINVAL, "instance %s: its interfaces %s and %s are in different VRFs", key,
				first->name, f->name);
	}
	return 0;
}

// Row G20: an endpoint is an address of one of the instance's own interfaces.
static int check_endpoint(const char *key, const struct api_instance *want, const struct api_address *a)
{
	char text[64];

	// The tunnels of one would be open to the other.
	if (interfaces_vrf_of(interfaces_next(), a) < 0)
		return object_error(EINVAL, "instance %s: endpoint %s is on interfaces of several VRFs", key,
			address_text(a, text));
	for (uint32_t i = 0; i < want->interfaces; i++) {
		const struct interface *f = interfaces_by_name(interfaces_next(), want->interface[i]);

		for (uint32_t k = 0; f != NULL && k < f->addresses; k++)
			if (f->address[k].family == a->family &&
				memcmp(f->address[k].bytes, a->bytes, address_length(a->family)) == 0)
				return 0;
	}
	return object_error(
		EINVAL, "instance %s: endpoint %s is on none of its interfaces", key, address_text(a, text));
}

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_instance *want = body;
	int error = 0;

	if (engine_get() == NULL)
		return object_error(EINVAL, "instance %s comes before the engine", key);
	if (want->lookup > API_LOOKUP_SOURCE ||
		(want->flags & ~(API_INSTANCE_NO_UE_TO_UE | API_INSTANCE_UE_OUT | API_INSTANCE_PIN_PEER)) != 0 ||
		((want->flags & API_INSTANCE_NO_UE_TO_UE) && (want->flags & API_INSTANCE_UE_OUT)))
		return object_error(EINVAL, "instance %s has a value out of range", key);
	if (want->interfaces > API_INSTANCE_INTERFACES || want->endpoints > API_INSTANCE_ENDPOINTS ||
		want->pools > API_INSTANCE_POOLS || want->guarded > API_INSTANCE_GUARDED)
		return object_error(EINVAL,
			"instance %s has %u interfaces, %u endpoints, %u pools, %u guarded hosts; the limits are %d, "
			"%d, %d, %d",
			key, want->interfaces, want->endpoints, want->pools, want->guarded, API_INSTANCE_INTERFACES,
			API_INSTANCE_ENDPOINTS, API_INSTANCE_POOLS, API_INSTANCE_GUARDED);
	error = check_interfaces(key, want);
	for (uint32_t i = 0; i < want->endpoints && error == 0; i++)
		error = check_endpoint(key, want, &want->endpoint[i]);
	for (uint32_t i = 0; i < want->pools && error == 0; i++)
		if (!address_valid(&want->pool[i]) || !prefix_canonical(&want->pool[i]))
			error = object_error(EINVAL, "instance %s: pool %u is no proper prefix", key, i + 1);
	for (uint32_t i = 0; i < want->guarded && error == 0; i++)
		if (!address_valid(&want->guard[i]))
			error = object_error(EINVAL, "instance %s: guarded host %u is no address", key, i + 1);
	for (uint32_t q = 0; q < RTE_DIM(want->qfi_dscp) && error == 0; q++)
		if (want->qfi_dscp[q] > 64)
			error = object_error(EINVAL, "instance %s has DSCP %u for QFI %u, at most 63", key,
				want->qfi_dscp[q] - 1, q);
	if (error == 0 && want->mss != 0 && want->mss < API_MSS_MIN)
		error = object_error(EINVAL, "instance %s has an MSS of %u, at least %u", key, want->mss, API_MSS_MIN);
	// GTP-U has its port to itself (TS 29.281 §4.4.2).
	if (error == 0 && want->udp_port == 2152)
		error = object_error(EINVAL, "instance %s: UDP port 2152 is GTP-U's", key);
	return error;
}

static void instance_free(struct instance *n)
{
	if (n == NULL)
		return;
	for (uint8_t i = 0; i < n->endpoints; i++)
		path_local_give(n->local[i]);
	if (n->udp_port != 0)
		give_port(n->udp_port);
	free(n);
}

static int take_endpoints(struct instance *n, const struct api_instance *want)
{
	for (uint32_t i = 0; i < want->endpoints; i++) {
		int error = path_local_take(&want->endpoint[i], &n->local[i]);

		if (error != 0)
			return error;
		n->endpoint[n->endpoints++] = want->endpoint[i];
	}
	return 0;
}

static int fill(struct instance *n, const char *key, const struct api_instance *want)
{
	int error = take_endpoints(n, want);

	if (error != 0)
		return error;
	snprintf(n->name, sizeof(n->name), "%s", key);
	n->lookup = (uint8_t)want->lookup;
	n->flags = (uint8_t)want->flags;
	n->pools = (uint8_t)want->pools;
	memcpy(n->pool, want->pool, sizeof(n->pool));
	memcpy(n->qfi_dscp, want->qfi_dscp, sizeof(n->qfi_dscp));
	n->mss = want->mss;
	n->udp_port = want->udp_port;
	if (n->udp_port != 0)
		take_port(n->udp_port);
	return 0;
}

static int take_slot(const struct instance *old)
{
	int i = old ? old->index : 0;

	// A slot that workers still see is not given to another name.
	while (old == NULL && i < MAX_INSTANCES && (own.staged[i] != NULL || instances_now->instance[i] != NULL))
		i++;
	return i;
}

static int stage(struct object_change *c)
{
	const struct api_instance *want = c->body;
	struct instance *old = *c->live;

	c->replaced = old;
	if (want == NULL) {
		if (old != NULL)
			own.staged[old->index] = NULL;
		return 0;
	}
	int error, index = take_slot(old);

	if (index == MAX_INSTANCES)
		return object_error(ENOSPC, "more than %d instances", MAX_INSTANCES);
	struct instance *n = calloc(1, sizeof(*n));
	if (n == NULL)
		return object_error(ENOMEM, "no memory for instance %s", c->key);
	n->index = (uint16_t)index;
	error = fill(n, c->key, want);
	if (error != 0) {
		instance_free(n);
		return error;
	}
	// Sessions must accept it: F-TEIDs on a removed endpoint, or wireline F-TEIDs on a new one.
	c->narrows = old == NULL ? n->endpoints != 0
				 : old->endpoints != n->endpoints || old->lookup != n->lookup ||
					   memcmp(old->local, n->local, sizeof(n->local)) != 0;
	own.staged[index] = n;
	c->staged = n;
	return 0;
}

// An endpoint and an interface belong to one instance.
static int finish_stage(void)
{
	uint8_t seen[INSTANCE_LOCALS] = {0};

	for (uint16_t i = 0; i < MAX_INSTANCES; i++)
		for (uint8_t e = 0; own.staged[i] != NULL && e < own.staged[i]->endpoints; e++) {
			uint16_t local = own.staged[i]->local[e];
			char text[64];

			if (local >= INSTANCE_LOCALS || seen[local]++)
				return object_error(EEXIST, "endpoint %s of instance %s is another instance's too",
					address_text(&own.staged[i]->endpoint[e], text), own.staged[i]->name);
		}
	return 0;
}

static void discard(struct object_change *c)
{
	struct instance *n = c->staged, *old = c->replaced;

	if (n != NULL)
		own.staged[n->index] = NULL;
	if (old != NULL)
		own.staged[old->index] = old;
	instance_free(n);
}

static void commit(struct object_change *c)
{
	*c->live = c->staged;
}

static void release(struct object_change *c)
{
	instance_free(c->replaced);
}

static void set_tables(struct instances *s)
{
	memset(s->table, way_table(0), sizeof(s->table));
	for (uint32_t v = 0; v < MAX_VRFS; v++)
		s->table[instance_of_vrf(v) & UINT8_MAX] = way_table((uint8_t)v);
}

static void map_interfaces(struct instances *s, const struct instance *n)
{
	uint32_t length;
	const struct api_instance *want = object_find(API_INSTANCE, n->name, &length);

	for (uint32_t k = 0; want != NULL && k < want->interfaces; k++) {
		const struct interface *f = interfaces_by_name(interfaces_now(), want->interface[k]);

		if (f == NULL || f->index >= INSTANCE_INTERFACES)
			continue;
		s->table[n->index] = way_table(f->vrf);
		s->of_interface[f->index] = (uint8_t)(n->index + 1);
		s->of_lookup[f->index] = n->lookup != API_LOOKUP_NONE ? (uint8_t)(n->index + 1) : 0;
	}
}

static void add_guards(struct instances *s, const struct instance *n)
{
	uint32_t length;
	const struct api_instance *want = object_find(API_INSTANCE, n->name, &length);

	for (uint32_t i = 0; want != NULL && i < want->guarded; i++) {
		const struct api_address *a = &want->guard[i];
		uint32_t bit = ip_filter_bit(a->family, a->bytes);

		s->guard_filter.bits[bit / 64] |= 1ull << bit % 64;
		s->guard_of[s->guarded] = (uint8_t)n->index;
		s->guard[s->guarded++] = *a;
	}
}

static void add_owner(struct instances *s, const struct instance *n)
{
	s->owner[s->owners++] = (uint8_t)n->index;
	for (uint8_t i = 0; i < n->pools; i++) {
		struct pool_filter *f = &s->pools[n->pool[i].family == 6];

		f->shift = RTE_MAX(f->shift, 64u - RTE_MIN(n->pool[i].prefix, 64u));
	}
}

// Behind all owners, when the shortest pools are known.
static void fill_filters(struct instances *s)
{
	for (uint8_t k = 0; k < s->owners; k++) {
		const struct instance *n = s->instance[s->owner[k]];

		for (uint8_t i = 0; i < n->pools; i++) {
			const struct api_address *a = &n->pool[i];
			struct pool_filter *f = &s->pools[a->family == 6];
			uint32_t bit = pool_filter_bit(f, a->family, a->bytes);

			f->bits[bit / 64] |= 1ull << bit % 64;
		}
	}
	for (uint8_t six = 0; six < 2; six++)
		if (s->pools[six].shift == 64)
			memset(s->pools[six].bits, 0xff, sizeof(s->pools[six].bits));
}

static void finish_commit(void)
{
	struct instances *s = instances_now == &snapshot[0] ? &snapshot[1] : &snapshot[0];

	memset(s, 0, sizeof(*s));
	set_tables(s);
	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct instance *n = own.staged[i];

		s->instance[i] = n;
		if (n == NULL)
			continue;
		map_interfaces(s, n);
		add_guards(s, n);
		s->clamping |= n->mss != 0;
		for (uint32_t q = 0; q < RTE_DIM(n->qfi_dscp); q++)
			s->marking |= n->qfi_dscp[q] != 0;
		for (uint8_t e = 0; e < n->endpoints; e++)
			s->of_local[n->local[e]] = (uint8_t)(i + 1);
		if (n->lookup == API_LOOKUP_DESTINATION && n->pools != 0)
			add_owner(s, n);
		if (n->lookup == API_LOOKUP_DESTINATION && n->pools == 0)
			s->looker[s->lookers++] = (uint8_t)i;
	}
	fill_filters(s);
	__atomic_store_n(&instances_now, s, __ATOMIC_RELEASE);
	ip_ways_changed(); // addresses of UEs, and guarded ones
	for (uint32_t i = 0; i < own.watchers; i++)
		own.watcher[i]();
}

// For new interfaces, or those moved to another VRF, with unchanged instances.
static void interfaces_changed(void)
{
	struct instances *s = instances_now == &snapshot[0] ? &snapshot[0] : &snapshot[1];

	for (uint32_t i = 0; i < interface_count(); i++) {
		const struct interface *f = interface_get(i);

		if (f != NULL && i < INSTANCE_INTERFACES && s->of_interface[i] != 0)
			__atomic_store_n(&s->table[s->of_interface[i] - 1], way_table(f->vrf), __ATOMIC_RELAXED);
	}
	ip_ways_changed();
}

static int one_interface(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_instance *a = body, *b = ((void **)arg)[1];
	const char *name = ((void **)arg)[0];

	if (strcmp(key, name) == 0)
		return 0;
	// Another one of the same transaction may still be unchecked.
	for (uint32_t i = 0; i < a->interfaces && i < API_INSTANCE_INTERFACES; i++)
		for (uint32_t k = 0; k < b->interfaces; k++)
			if (strncmp(a->interface[i], b->interface[k], API_NAME) == 0)
				return object_error(EEXIST, "interface %s belongs to instances %s and %s",
					a->interface[i], key, name);
	return 0;
}

static int stage_alone(struct object_change *c)
{
	void *arg[2] = {(void *)(uintptr_t)c->key, (void *)(uintptr_t)c->body};
	int error = c->body == NULL ? 0 : check(c->key, c->body, c->length);

	if (error == 0 && c->body != NULL)
		error = object_each(API_INSTANCE, one_interface, arg);
	return error != 0 ? error : stage(c);
}

static const struct object_ops instance_ops = {
	OBJECT_OF_ONE(API_INSTANCE, "instance", struct api_instance),
	.stage = stage_alone,
	.commit = commit,
	.discard = discard,
	.release = release,
	.finish_stage = finish_stage,
	.finish_commit = finish_commit,
	.verify = check,
};
OBJECT_REGISTER(instance_ops)

static uint64_t instance_rows(struct stats_sink *sink, const char *key, uint64_t place)
{
	for (uint16_t i = 0; i < MAX_INSTANCES; i++) {
		const struct instance *n = own.staged[i];
		struct api_instance_row row = {0};

		if (n == NULL || (key[0] != 0 && strcmp(key, n->name) != 0))
			continue;
		snprintf(row.name, sizeof(row.name), "%s", n->name);
		row.lookup = n->lookup;
		row.tunnels = own.use[i].tunnels;
		row.ue_addresses = own.use[i].ue_addresses;
		for (uint32_t w = 0; w < worker_count(); w++) {
			row.unknown_ue += instance_counters[w].unknown_ue[i];
			row.unknown_teid += instance_counters[w].unknown_teid[i];
		}
		stats_row(sink, &row, sizeof(row));
	}
	return 0;
}

RTE_INIT(instance_module)
{
	set_tables(&snapshot[0]);
	interface_watch(interfaces_changed);
	stats_table_register(API_TABLE_INSTANCE, sizeof(struct api_instance_row), instance_rows);
}
