// SPDX-License-Identifier: Apache-2.0
// Routes: the ROUTE objects and the networks of interfaces, made into forwarding tables.
//
// Every transaction that touches interfaces or routes makes a plan: the sorted list of all routes as they will be, each
// with its next hop. The plan is where everything can be refused. Making it true is then a walk along the old and the
// new list that adds, replaces and deletes what differs; a table that is too small is replaced by a larger one, built
// beside.
#include "core/control.h"
#include "core/object.h"
#include "route/tables.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024

struct route {
	struct api_address prefix, via;
	uint32_t next_hop;
	uint32_t interface;
	uint8_t connected;
};

struct routes {
	struct route *list;
	uint32_t count, room;
	uint32_t of_family[2], groups[2]; // IPv4, IPv6
	struct fib *fresh[2]; // replacements for tables that are too small
};

static struct {
	struct fib *fib[2]; // IPv4, IPv6; read by workers; NULL: no route of that family
	struct routes now;
	struct routes *plan;
} table;

static uint32_t slot_of(uint8_t family)
{
	return family == 4 ? 0 : 1;
}

uint32_t ip_route_lookup(uint8_t family, const uint8_t *destination)
{
	uint32_t index = fib_lookup(__atomic_load_n(&table.fib[slot_of(family)], __ATOMIC_ACQUIRE), destination);
	const struct next_hop *h = next_hop_get(index);

	if (h->kind != NEXT_HOP_GLEAN)
		return index;
	uint32_t neighbour = next_hop_find(h->interface, family, destination);
	return neighbour != NEXT_HOP_NONE ? neighbour : index;
}

uint32_t ip_route_of(uint8_t family, const uint8_t *destination, uint32_t interface)
{
	// A link-local destination is on the link that the packet came from: an answer to a neighbour.
	if (likely(!address_is_link_local(family, destination) || interface == UINT32_MAX))
		return ip_route_lookup(family, destination);
	uint32_t neighbour = next_hop_find(interface, family, destination);
	return neighbour != NEXT_HOP_NONE ? neighbour : next_hop_find(interface, family, NULL);
}

// ---- planning -------------------------------------------------------------------------------------------------------

static int plan_add(struct routes *r, const struct route *route)
{
	if (r->count == r->room) {
		uint32_t room = r->room ? 2 * r->room : 64;
		struct route *list = realloc(r->list, room * sizeof(*list));

		if (list == NULL)
			return object_error(ENOMEM, "no memory for routes");
		r->list = list;
		r->room = room;
	}
	uint32_t slot = slot_of(route->prefix.family);
	r->of_family[slot]++;
	r->groups[slot] += fib_groups(&route->prefix);
	r->list[r->count++] = *route;
	return 0;
}

static int route_form(const char *key, const struct api_route *want)
{
	char text[64];

	if (!address_valid(&want->prefix))
		return object_error(EINVAL, "route %s: the prefix is neither IPv4 nor IPv6", key);
	if (!prefix_canonical(&want->prefix))
		return object_error(EINVAL, "route %s: %s has bits set behind its prefix length", key,
			address_text(&want->prefix, text));
	if (memchr(want->interface, 0, API_NAME) == NULL)
		return object_error(EINVAL, "route %s: the interface's name has no end", key);
	if (address_is_link_local(want->prefix.family, want->prefix.bytes) && want->prefix.prefix > 9)
		return object_error(EINVAL, "route %s: link-local destinations are never forwarded", key);
	if (want->via.family == 0)
		return want->interface[0]
			       ? 0
			       : object_error(EINVAL, "route %s has neither a gateway nor an interface", key);
	if (!address_valid(&want->via) || want->via.family != want->prefix.family)
		return object_error(EINVAL, "route %s: the gateway is not of the prefix's family", key);
	struct api_address host = want->via;
	host.prefix = (uint8_t)(8 * address_length(host.family));
	if (!address_assignable(&host))
		return object_error(EINVAL, "route %s: %s cannot be a gateway", key, address_text(&host, text));
	return 0;
}

static int prefix_holds(const struct interface *i, const struct api_address *a)
{
	for (uint32_t n = 0; n < i->addresses; n++)
		if (i->address[n].family == a->family &&
			ip_prefix_equal(i->address[n].bytes, a->bytes, i->address[n].prefix))
			return 1;
	return 0;
}

static int is_address_of(const struct interface *i, const struct api_address *a)
{
	for (uint32_t n = 0; n < i->addresses; n++)
		if (i->address[n].family == a->family && memcmp(i->address[n].bytes, a->bytes, 16) == 0)
			return 1;
	return 0;
}

// The interface that the route leaves by, or NULL after object_error().
static const struct interface *route_interface(const char *key, const struct api_route *want)
{
	const struct interfaces *s = interfaces_next();
	const struct interface *i;
	struct api_address via = want->via;
	char text[64];

	via.prefix = (uint8_t)(8 * address_length(via.family));
	if (want->interface[0] != 0) {
		i = interfaces_by_name(s, want->interface);
		if (i == NULL)
			object_error(ENOENT, "route %s: there is no interface \"%s\"", key, want->interface);
	} else {
		i = interfaces_by_prefix(s, &via);
		if (i == NULL)
			object_error(ENOENT, "route %s: gateway %s is in no interface's network", key,
				address_text(&via, text));
	}
	if (i == NULL)
		return NULL;
	if (i->role != API_ROLE_CORE) {
		object_error(EINVAL, "route %s: interface %s is on an access port", key, i->name);
		return NULL;
	}
	if (via.family == 0)
		return i;
	if (!address_is_link_local(via.family, via.bytes) && !prefix_holds(i, &via)) {
		object_error(EINVAL, "route %s: gateway %s is in no network of interface %s", key,
			address_text(&via, text), i->name);
		return NULL;
	}
	if (is_address_of(i, &via)) {
		object_error(EINVAL, "route %s: gateway %s is our own address", key, address_text(&via, text));
		return NULL;
	}
	return i;
}

static int plan_route(const char *key, const void *body, uint32_t length, void *arg)
{
	const struct api_route *want = body;
	struct routes *r = arg;
	struct route route = {.prefix = want->prefix, .via = want->via};
	// Objects that are not staged yet are checked here too: interfaces finish before routes are staged.
	int error = route_form(key, want);

	if (error != 0)
		return error;
	const struct interface *i = route_interface(key, want);
	if (i == NULL)
		return EINVAL;
	struct ip_address via = ip_address_of(want->via.family == 4 ? 4 : 6, want->via.bytes);
	route.interface = i->index;
	route.next_hop = next_hop_hold(i, want->via.family == 0 ? NULL : &via);
	if (route.next_hop == NEXT_HOP_NONE)
		return object_error(ENOSPC, "route %s: more than %d next hops", key, MAX_NEXT_HOPS - 1);
	error = plan_add(r, &route);
	if (error != 0)
		next_hop_release(route.next_hop);
	return error;
}

static int plan_connected(struct routes *r, const struct interface *i)
{
	for (uint32_t n = 0; n < i->addresses; n++) {
		struct route route = {.prefix = i->address[n], .interface = i->index, .connected = 1};
		uint8_t *bytes = route.prefix.bytes;

		if (address_is_link_local(route.prefix.family, bytes))
			continue;
		for (uint32_t bit = route.prefix.prefix; bit < 8 * address_length(route.prefix.family); bit++)
			bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
		route.next_hop = next_hop_hold(i, NULL);
		if (route.next_hop == NEXT_HOP_NONE)
			return object_error(ENOSPC, "interface %s: more than %d next hops", i->name, MAX_NEXT_HOPS - 1);
		int error = plan_add(r, &route);
		if (error != 0) {
			next_hop_release(route.next_hop);
			return error;
		}
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct route *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order != 0 ? order : (int)y->connected - (int)x->connected;
}

// Two addresses of one interface in one network give the same connected route twice: that is fine, anything else is
// not.
static int drop_doubles(struct routes *r)
{
	uint32_t kept = 0;
	char text[64];

	for (uint32_t i = 0; i < r->count; i++) {
		const struct route *last = kept > 0 ? &r->list[kept - 1] : NULL;
		struct route one = r->list[i];

		if (last != NULL && prefix_compare(&last->prefix, &one.prefix) == 0) {
			if (!one.connected)
				return object_error(EEXIST,
					last->connected ? "route %s is an interface's own network already"
							: "route %s is there twice",
					address_text(&one.prefix, text));
			next_hop_release(one.next_hop);
			r->of_family[slot_of(one.prefix.family)]--;
			r->groups[slot_of(one.prefix.family)] -= fib_groups(&one.prefix);
			r->list[i].next_hop = NEXT_HOP_NONE;
			continue;
		}
		r->list[i].next_hop = NEXT_HOP_NONE; // it moves: held once
		r->list[kept++] = one;
	}
	r->count = kept;
	return 0;
}

// Calls fn with what is only in the old list, only in the new one, or in both.
static void compare_lists(const struct routes *old, const struct routes *fresh,
	void (*fn)(const struct route *was, const struct route *is, void *arg), void *arg)
{
	uint32_t o = 0, n = 0;

	while (o < old->count || n < fresh->count) {
		int order = o == old->count     ? 1
			    : n == fresh->count ? -1
						: prefix_compare(&old->list[o].prefix, &fresh->list[n].prefix);
		const struct route *was = order <= 0 ? &old->list[o++] : NULL;
		const struct route *is = order >= 0 ? &fresh->list[n++] : NULL;

		fn(was, is, arg);
	}
}

struct need {
	uint32_t routes[2], groups[2];
};

static void add_need(const struct route *was, const struct route *is, void *arg)
{
	const struct api_address *prefix = was ? &was->prefix : &is->prefix;
	struct need *need = arg;

	need->routes[slot_of(prefix->family)]++; // NOLINT(clang-analyzer-core.NullDereference): one of the two is there
	need->groups[slot_of(prefix->family)] += fib_groups(prefix);
}

static int plan_tables(struct routes *r)
{
	struct need both = {0}; // while the new routes are in and the old ones not yet out

	compare_lists(&table.now, r, add_need, &both);
	for (uint32_t slot = 0; slot < 2; slot++) {
		uint8_t family = slot == 0 ? 4 : 6;
		uint32_t most = fib_groups_max(family), capacity = FIRST_CAPACITY;

		if (r->of_family[slot] == 0 || fib_fits(table.fib[slot], both.routes[slot], both.groups[slot]))
			continue;
		if (r->of_family[slot] > MAX_ROUTES)
			return object_error(ENOSPC, "%u IPv%u routes, at most %d are possible", r->of_family[slot],
				family, MAX_ROUTES);
		if (r->groups[slot] > most)
			return object_error(ENOSPC,
				"the IPv%u routes longer than 24 bits need %u table groups, %u are possible", family,
				r->groups[slot], most);
		while (capacity < r->of_family[slot])
			capacity *= 4;
		uint32_t groups = RTE_MIN(most, RTE_MAX(capacity, 2 * r->groups[slot]));
		r->fresh[slot] = fib_create(family, RTE_MIN(capacity, (uint32_t)MAX_ROUTES), groups);
		if (r->fresh[slot] == NULL)
			return object_error(ENOMEM, "no memory for %u IPv%u routes", r->of_family[slot], family);
		for (uint32_t i = 0; i < r->count; i++)
			if (r->list[i].prefix.family == family &&
				fib_add(r->fresh[slot], &r->list[i].prefix, r->list[i].next_hop) != 0)
				return object_error(ENOSPC, "no room in the IPv%u forwarding table", family);
	}
	return 0;
}

static void routes_free(struct routes *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		next_hop_release(r->list[i].next_hop);
	free(r->list);
	fib_free(r->fresh[0]);
	fib_free(r->fresh[1]);
	memset(r, 0, sizeof(*r));
}

void routes_forget(void)
{
	if (table.plan == NULL)
		return;
	routes_free(table.plan);
	free(table.plan);
	table.plan = NULL;
}

int routes_plan(void)
{
	const struct interfaces *s = interfaces_next();
	struct routes *r = calloc(1, sizeof(*r));
	int error = r == NULL ? object_error(ENOMEM, "no memory for routes") : 0;

	routes_forget(); // of the interfaces that finished before the routes of the same transaction
	for (uint32_t i = 0; i < s->count && error == 0; i++)
		if (s->interface[i].name[0] != 0 && s->interface[i].role == API_ROLE_CORE)
			error = plan_connected(r, &s->interface[i]);
	if (error == 0)
		error = object_each(API_ROUTE, plan_route, r);
	if (error == 0) {
		if (r->count > 0)
			qsort(r->list, r->count, sizeof(r->list[0]), compare);
		error = drop_doubles(r);
	}
	if (error == 0)
		error = plan_tables(r);
	if (error == 0) {
		table.plan = r;
		return 0;
	}
	if (r != NULL)
		routes_free(r);
	free(r);
	return error;
}

// ---- making it true -------------------------------------------------------------------------------------------------

static void add_fresh(const struct route *was, const struct route *is, void *arg)
{
	struct fib *const *in_place = arg;

	if (is != NULL && (was == NULL || was->next_hop != is->next_hop) &&
		in_place[slot_of(is->prefix.family)] != NULL)
		fib_add(in_place[slot_of(is->prefix.family)], &is->prefix, is->next_hop);
}

static void delete_gone(const struct route *was, const struct route *is, void *arg)
{
	struct fib *const *in_place = arg;

	if (is == NULL && was != NULL && in_place[slot_of(was->prefix.family)] != NULL)
		fib_delete(in_place[slot_of(was->prefix.family)], &was->prefix);
}

void routes_apply(void)
{
	struct routes *r = table.plan;
	struct fib *old[2] = {NULL, NULL};
	struct fib *in_place[2] = {table.fib[0], table.fib[1]};

	if (r == NULL)
		return;
	table.plan = NULL;
	for (uint32_t slot = 0; slot < 2; slot++)
		if (r->fresh[slot] != NULL) {
			old[slot] = table.fib[slot];
			__atomic_store_n(&table.fib[slot], r->fresh[slot], __ATOMIC_RELEASE);
			r->fresh[slot] = NULL;
			in_place[slot] = NULL;
		}
	// First in, then out: a reader never misses a route that is only replaced. The plan made sure that there is
	// room.
	compare_lists(&table.now, r, add_fresh, in_place);
	compare_lists(&table.now, r, delete_gone, in_place);
	ip_ways_changed();
	control_synchronize();
	fib_free(old[0]);
	fib_free(old[1]);
	routes_free(&table.now);
	table.now = *r;
	free(r);
}

static int stage(struct object_change *c)
{
	return c->body == NULL ? 0 : route_form(c->key, c->body);
}

static void commit(struct object_change *c)
{
}

static const struct object_ops route_ops = {
	.kind = API_ROUTE,
	.name = "route",
	.min_length = sizeof(struct api_route),
	.max_length = sizeof(struct api_route),
	.stage = stage,
	.commit = commit,
	.finish_stage = routes_plan,
	.finish_discard = routes_forget,
	.finish_commit = routes_apply,
};
OBJECT_REGISTER(route_ops)

// ---- show -----------------------------------------------------------------------------------------------------------

static void rows(struct stats_sink *s, const char *key)
{
	for (uint32_t i = 0; i < table.now.count; i++) {
		const struct route *r = &table.now.list[i];
		const struct interface *f = interface_get(r->interface);
		const struct next_hop *h = next_hop_get(r->next_hop);
		struct api_route_row row = {.prefix = r->prefix, .via = r->via};

		if (f != NULL)
			memcpy(row.interface, f->name, sizeof(row.interface));
		row.resolved = h->kind == NEXT_HOP_GLEAN || h->resolved;
		stats_row(s, &row, sizeof(row));
	}
}

RTE_INIT(route_start)
{
	stats_table_register(API_TABLE_ROUTE, sizeof(struct api_route_row), rows);
}
