// SPDX-License-Identifier: Apache-2.0
// NEIGHBOUR objects: neighbours whose MAC address is configured. They are never probed and never overwritten.
#include "core/object.h"
#include "neighbour/table.h"
#include <errno.h>
#include <string.h>

static uint32_t count; // while a set is checked

static int check(const char *key, const void *body, uint32_t length)
{
	const struct api_neighbour *n = body;
	const struct api_interface *i = NULL;
	uint32_t size;

	if (memchr(n->interface, 0, API_NAME) != NULL)
		i = object_find(API_INTERFACE, n->interface, &size);
	if (i == NULL)
		return object_error(
			ENOENT, "neighbour %s: there is no interface \"%.*s\"", key, API_NAME - 1, n->interface);
	if (i->port[0] == 0)
		return object_error(EINVAL, "neighbour %s: interface %s has no link", key, n->interface);
	if (n->address.family != 4 && n->address.family != 6)
		return object_error(EINVAL, "neighbour %s has no address", key);
	struct api_address host = n->address; // of whatever network: a route may name it as on the link
	host.prefix = (uint8_t)(8 * address_length(host.family));
	if (!address_assignable(&host))
		return object_error(EINVAL, "neighbour %s: its address is not one host's", key);
	if ((n->mac[0] & 1) || rte_is_zero_ether_addr((const struct rte_ether_addr *)n->mac))
		return object_error(EINVAL, "neighbour %s: the MAC address is not one host's", key);
	return 0;
}

// Holds the next hop until the neighbour itself does: a commit cannot fail.
static int stage(struct object_change *c)
{
	const struct api_neighbour *want = c->body;

	if (want == NULL)
		return 0;
	int error = check(c->key, want, c->length);
	if (error != 0)
		return error;
	const struct interface *i = interfaces_by_name(interfaces_next(), want->interface);
	struct ip_address address = ip_address_of(want->address.family, want->address.bytes);
	uintptr_t hop = i == NULL ? NEXT_HOP_NONE : next_hop_hold(i, &address);
	if (hop == NEXT_HOP_NONE)
		return object_error(ENOSPC, "neighbour %s: routes and neighbours have all next hops", c->key);
	c->staged = (void *)hop;
	return 0;
}

static void unhold(struct object_change *c)
{
	next_hop_release((uint32_t)(uintptr_t)c->staged);
}

static void commit(struct object_change *c)
{
}

static int count_one(const char *key, const void *body, uint32_t length, void *arg)
{
	if (++count <= neighbour_room())
		return 0;
	return object_error(ENOSPC, "neighbour %s: more than %u static ones", key, neighbour_room());
}

static int finish_stage(void)
{
	count = 0;
	return object_each(API_NEIGHBOUR, count_one, NULL);
}

static uint32_t interface_by_name(const char *name)
{
	for (uint32_t k = 0; k < interface_count(); k++) {
		const struct interface *i = interface_get(k);

		if (i != NULL && strcmp(i->name, name) == 0)
			return k;
	}
	return UINT32_MAX;
}

static int keep_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_neighbour *want = body;
	uint32_t interface = interface_by_name(want->interface);
	struct neighbour *n = neighbour_find(interface, want->address.family, want->address.bytes);

	if (n != NULL)
		n->wanted = 1;
	return 0;
}

// There is room: no more of these are wanted than the table has places, the others may all go, and stage() holds the
// next hop.
static int set_one(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_neighbour *want = body;
	uint32_t interface = interface_by_name(want->interface);
	struct neighbour *n = neighbour_ensure(interface, want->address.family, want->address.bytes, FOR_CONFIG);

	if (n != NULL) {
		neighbour_set_state(n, STATIC);
		neighbour_learn(n, want->mac);
	}
	return 0;
}

static void forget(struct neighbour *n, void *arg)
{
	n->wanted = 0;
}

// Is probed from now on, and used as long as it answers: its address was right until now.
static void remove_unwanted(struct neighbour *n, void *arg)
{
	if (n->state != STATIC || n->wanted)
		return;
	neighbour_set_state(n, STALE);
	n->probes = 0;
	n->due_ns = control_now_ns();
}

static void finish_commit(void)
{
	neighbour_each(forget, NULL);
	object_each(API_NEIGHBOUR, keep_one, NULL);
	neighbour_each(remove_unwanted, NULL);
	object_each(API_NEIGHBOUR, set_one, NULL);
}

static const struct object_ops neighbour_ops = {
	OBJECT_OF_ONE(API_NEIGHBOUR, "neighbour", struct api_neighbour),
	.stage = stage,
	.commit = commit,
	.discard = unhold,
	.release = unhold,
	.finish_stage = finish_stage,
	.finish_commit = finish_commit,
	.verify = check,
};
OBJECT_REGISTER(neighbour_ops)
